"""``vfx bench sim --case handover``: thousands of pieces, from the engine to bonds and back.

The vase is in tetrahedra, each piece those of them that hold together and are nearest to the same
one of some thousand. Both
ways are those of the schedule (:mod:`vfx.sim.auto.solver`): its pieces are taken out of the engine
and a window of bonds is opened on all of their elements; then they are found again among the broken
edges, fitted, and given back with new hulls.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from vfx.bench.rows import Row, less_is_better
from vfx.bench.setups import bond_setup
from vfx.bench.timing import peak_memory
from vfx.device import Device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.auto.pieces import parts
from vfx.sim.auto.window import Window, matter_of
from vfx.sim.control.controls import make_world
from vfx.sim.rigid.fleet import Fleet
from vfx.sim.rigid.mass import element_mass
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.settings import Floor, Material
from vfx.sim.solver import World

PIECES, ELEMENTS = 6000, 40_000
#: Of so many places are the pieces made, relative: some are not in one piece.
PLACES = 0.75
#: What both ways are to take [s].
AIM, AIM_SECONDS = "aim", 2.0
CERAMIC = Material(density=2000.0, bulk_modulus=4e9, strain_limit=1.5e-3)


@dataclass
class Spent:
    """Seconds of one round of hand-overs, by the clock and in CPU time."""

    opened: float = 0.0
    opened_cpu: float = 0.0
    closed: float = 0.0
    closed_cpu: float = 0.0


def measure_handover(
    device: Device, n_pieces: int | None, n_elements: int | None, repeats: int,
    say: Callable[[str], None],
) -> list[Row]:
    """Hand a vase over both ways some times; the least counts."""
    body = Body(name="vase", material="ceramic", mesh="asset:vase", height=0.3,
                shape="tet-shell", elements=n_elements or ELEMENTS, layers=6)
    world: World[Any] = make_world(build_solid(device, [body]).solid, bond_setup(
        horizon=2.0, materials={"ceramic": CERAMIC}, bodies=(body,), floor=Floor(enabled=False)))
    solid, mass = world.solid, element_mass(world)
    broken = broken_edges(solid, n_pieces or PIECES)
    count, label = parts(solid, broken, np.arange(solid.n_elements))
    fleet = Fleet(world, RigidSettings(), device.threads)
    fleet.begin(np.arange(solid.n_elements), label, count)
    say(f"{solid.n_elements:,} elements in {count:,} pieces ...")
    # What is known of a whole world is found once a shot, not once a hand-over.
    _round(device, world, fleet, mass, broken)
    rounds = [_round(device, world, fleet, mass, broken) for _ in range(repeats)]
    case = f"hand-over, {count:,} pieces of {solid.n_elements:,} elements"
    both = min(each.opened + each.closed for each in rounds)
    full = n_pieces is None and n_elements is None
    return [
        Row(case, "to bonds, wall", min(each.opened for each in rounds), "s"),
        Row(case, "to bonds, CPU", min(each.opened_cpu for each in rounds), "s"),
        Row(case, "to the engine, wall", min(each.closed for each in rounds), "s"),
        Row(case, "to the engine, CPU", min(each.closed_cpu for each in rounds), "s"),
        less_is_better(case, "both ways, wall", both, "s", AIM, AIM_SECONDS) if full
        else Row(case, "both ways, wall", both, "s"),
        Row(case, "peak memory", peak_memory() / 1e9, "GB"),
    ]


def broken_edges(solid: Solid, n_pieces: int) -> Array:
    """Return the edges between elements that are nearest to different ones of ``n_pieces``."""
    chosen = np.random.Generator(np.random.Philox(1)).permutation(solid.n_elements)
    chosen = chosen[:max(1, round(PLACES * n_pieces))]
    _, nearest = cKDTree(solid.position[chosen]).query(solid.position)
    return np.flatnonzero(nearest[solid.edge[:, 0]] != nearest[solid.edge[:, 1]])


def _round(device: Device, world: World[Any], fleet: Fleet, mass: Array,
           broken: Array) -> Spent:
    """Hand all pieces over to bonds and back."""
    spent, ids = Spent(), fleet.id
    wall, cpu = time.perf_counter(), time.process_time()
    matter = matter_of(fleet, world.solid.position, ids, fleet.after)
    window = Window(device, world, mass, matter, np.zeros((0, 2), np.int32), 0)
    window.surround(fleet, ids[:0], fleet.after.rows(np.arange(0)))
    fleet.leave(ids)
    spent.opened, spent.opened_cpu = time.perf_counter() - wall, time.process_time() - cpu

    wall, cpu = time.perf_counter(), time.process_time()
    window.bonds.energies()
    members, poses = window.pieces(broken)
    window.bonds.damage()
    window.dead(np.zeros((0, 2), np.int32))
    fleet.join(members, poses)
    fleet.energies(fleet.after)
    spent.closed, spent.closed_cpu = time.perf_counter() - wall, time.process_time() - cpu
    return spent
