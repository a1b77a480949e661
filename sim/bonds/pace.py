"""How fast a device steps, from a small block stepped for a moment: for estimates before a run.

The time of a step is that of its bonds: within a factor of 1.5, a bond costs the same in a
small block as in a large one.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.blue_noise import SITES_A_CUBE
from vfx.geometry.divide.build import build_solid
from vfx.geometry.divide.sources import body_size
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.cluster_bonds import ClusterBonds
from vfx.sim.bonds.plan import make_plan
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.controls import make_world
from vfx.sim.settings import Floor, Material, Shared
from vfx.sim.solver import Setup

#: Cells of the block along an axis, at most.
LARGEST_SIDE = 40
#: Cells of the block for bodies of other shapes, whose bonds lie in clusters.
IRREGULAR_CELLS = (24, 24, 24)
#: Speed of its particles [m/s]: strains far below those that break.
SWING = 1e-3
WARM_UP_STEPS = 4
SECONDS = 0.4
BATCHES = 5


#: Bodies that are stepped; the largest stand for all others.
MOST_BODIES = 4


def seconds_per_step(device: Device, setup: Setup[BondSettings]) -> float:
    """Return the time [s] that one step of all bodies takes while they are whole."""
    plan = make_plan(setup)
    largest = sorted(plan.bodies, key=lambda needs: -needs.n_bonds)
    paces = [seconds_per_bond(device, needs.body, setup.materials[needs.body.material],
                              plan.settings) for needs in largest[:MOST_BODIES]]
    return sum(needs.n_bonds * pace for needs, pace in zip(
        largest, paces + [sum(paces) / len(paces)] * len(largest), strict=False))


def seconds_per_bond(
    device: Device, body: Body, material: Material, settings: BondSettings
) -> float:
    """Return the time [s] that one step takes for each bond of a whole body like ``body``.

    A block of its lambda and, if it is one, of its thickness swings a little, for at rest its
    steps would be jumped over. Of several batches of steps the fastest counts, as whatever else
    runs on the machine only ever slows one down.
    """
    size = body_size(body)
    # As many neighbours as the body's own elements have, however they stand.
    spacing = size.spacing if body.is_block else (size.volume / size.elements) ** (1 / 3)
    # Graded elements reach as far as their own lambda says, not as the finest one does.
    finer = SITES_A_CUBE ** (1 / 3) if body.grading_deviation else size.spacing / spacing
    horizon = settings.horizon * finer
    x, y, z = (min(n, LARGEST_SIDE) for n in (body.cells if body.is_block else IRREGULAR_CELLS))
    solid = build_solid(device, [Body(
        name=body.name, material=body.material, cells=(x, y, z), spacing=spacing,
        rotation=body.rotation)]).solid
    setup = Setup(
        settings=dataclasses.replace(settings, horizon=horizon),
        materials={body.material: dataclasses.replace(material, prestress=0.0)},
        shared=Shared(gravity=(0.0, 0.0, 0.0)), floor=Floor(enabled=False))
    in_rows = body.is_block and material.prestress == 0.0
    simulation = Simulation(
        device, make_world(solid, setup), layout=None if in_rows else ClusterBonds)
    simulation.place(solid.position, SWING * np.sin(solid.position / spacing))

    def time_steps(n_steps: int) -> float:
        begun = time.perf_counter()
        simulation.advance(n_steps)
        device.synchronize()
        return (time.perf_counter() - begun) / n_steps

    pace = time_steps(WARM_UP_STEPS)
    n_steps = max(1, int(SECONDS / BATCHES / max(pace, 1e-9)))
    pace = min(time_steps(n_steps) for _ in range(BATCHES))
    return pace / max(1, simulation.n_bonds)
