"""Plates a few cells thick: cut, held, driven, and how to read their cracks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfx.bench.setups import bond_simulation
from vfx.device import open_device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.settings import Crack, Floor, Material, Region

#: Factor of the strain limit near grips: they must not tear out.
TOUGH = 1e6
#: Share of lost bonds above which a particle lies on a crack: a flat crack cuts some 40 %.
CRACKED = 0.35


def make_plate(
    cells: tuple[int, int, int], spacing: float, material: Material, *,
    notches: Sequence[tuple[float, float, float]] = (), regions: Sequence[Region] = (),
    **options: object,
) -> Simulation:
    """Make a plate in the x-y plane, its centre at the origin, without gravity and floor.

    ``notches`` (x0, x1, y) [m] go through the whole thickness.
    """
    bodies = [Body(name="plate", material="plate", cells=cells, spacing=spacing)]
    thick = (cells[2] + 1) * spacing
    cracks = [Crack(origin=(x0, y, -0.5 * thick), u=(x1 - x0, 0.0, 0.0), v=(0.0, 0.0, thick))
              for x0, x1, y in notches]
    device = open_device("cpu")
    return bond_simulation(
        device, build_solid(device, bodies).solid, bodies=bodies, materials={"plate": material},
        gravity=(0.0, 0.0, 0.0), floor=Floor(enabled=False), regions=list(regions), cracks=cracks,
        **options)  # type: ignore[arg-type]


def grip(cells: tuple[int, int, int], spacing: float, depth: float, side: float,
         **what: object) -> Region:
    """Return the rows within ``depth`` [m] of the edge at +y or -y, as a region."""
    width, height, thick = (n * spacing for n in cells)
    return Region(center=(0.0, side * 0.5 * (height - depth), 0.0),
                  size=(2.0 * width, depth, 2.0 * thick), **what)  # type: ignore[arg-type]


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
