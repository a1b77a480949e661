"""Plates a few cells thick: cut, hold, drive, and read their cracks.

Pre-cracks and held or driven parts are set on a simulation's arrays: a particle without
inverse mass feels no force and keeps the velocity it starts with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import open_device
from vfx.geometry.bodies import Body
from vfx.geometry.grid import build_solid
from vfx.geometry.handoff import Array
from vfx.sim.settings import Floor, Material, Solver
from vfx.sim.simulate import Simulation

#: Share of lost bonds above which a particle lies on a crack: a flat crack cuts some 40 %.
CRACKED = 0.35


def make_plate(
    cells: tuple[int, int, int], spacing: float, material: Material, **options: object
) -> Simulation:
    """Make a plate in the x-y plane, its centre at the origin, without gravity and floor."""
    bodies = [Body(name="plate", material="plate", cells=cells, spacing=spacing)]
    solver = Solver(gravity=(0.0, 0.0, 0.0), **options)  # type: ignore[arg-type]
    return Simulation(open_device("cpu"), build_solid(bodies), {"plate": material}, solver,
                      Floor(enabled=False), (), (), bodies)


def cut(sim: Simulation, segments: list[tuple[float, float, float, float]]) -> None:
    """Cut the bonds that cross segments (x0, y0, x1, y1) [m], extruded along z.

    The cut bonds no longer count as bonds the particles had.
    """
    sim.bonds.weaken(sim.solid.position[:, :2], np.array(segments))
    weak: Any = sim.bonds._weak  # type: ignore[attr-defined]
    sim.bonds.live &= ~weak
    weak[...] = 0
    sim.initial_bonds = np.rint(sim.bond_sums()["count"]).astype(np.int32)


def hold(sim: Simulation, held: Array) -> None:
    """Let the particles of an (n,) mask keep their velocities, whatever pulls at them."""
    inverse = sim.layout.gather(sim.device.to_host(sim.particles.inverse_mass))
    inverse[held] = 0.0
    sim.particles.inverse_mass[...] = sim.device.from_host(sim.layout.scatter(inverse))


def toughen(sim: Simulation, tough: Array) -> None:
    """Let no bond of the particles of an (n,) mask break: grips must not tear out."""
    for name in ("base_threshold", "threshold"):
        limit = getattr(sim.particles, name)
        value = sim.layout.gather(sim.device.to_host(limit))
        value[tough] = 1e3
        limit[...] = sim.device.from_host(sim.layout.scatter(value, fill=1.0))


def damage(sim: Simulation) -> Array:
    """Return the broken share of each particle's bonds, (n,) in 0..1; cuts do not count."""
    lost: Array = 1.0 - sim.bond_sums()["count"] / np.maximum(sim.initial_bonds, 1)
    return lost


def damage_map(sim: Simulation) -> Array:
    """Return the damage over the plate, (cells x, cells y): the largest through the thickness."""
    cell = sim.solid.cell
    size = cell.max(0) + 1
    grid = np.zeros(size)
    grid[tuple(cell.T)] = damage(sim)
    worst: Array = grid.max(2)
    return worst


def rayleigh_speed(material: Material) -> float:
    """Return the speed of Rayleigh waves [m/s] for a Poisson ratio of 1/4.

    There mu = 3 K / 5 and c_R = c_s sqrt(2 - 2 / sqrt(3)) = 0.9194 c_s (a root of Rayleigh's
    cubic).
    """
    shear = np.sqrt(0.6 * material.bulk_modulus / material.density)
    return float(shear * np.sqrt(2.0 - 2.0 / np.sqrt(3.0)))
