"""Small blocks to prove laws on."""

from __future__ import annotations

import numpy as np

from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.settings import Floor, Material, Projectile

SPACING = 1e-3
GLASS = Material(bulk_modulus=32.81e9, density=2200.0, strain_limit=5e-4, strain_scatter=0.0,
                 compression_strengthening=0.0)


def block(
    device: Device, cells: tuple[int, int, int], *, material: Material = GLASS,
    center: tuple[float, float, float] = (0.0, 0.0, 0.0),
    gravity: tuple[float, float, float] = (0.0, 0.0, 0.0), floor: Floor | None = None,
    projectiles: tuple[Projectile, ...] = (), **settings: object,
) -> Simulation:
    """One glass block of 1 mm cubes without floor or gravity, unless asked for."""
    bodies = [Body(name="block", material="glass", cells=cells, spacing=SPACING, center=center)]
    return bond_simulation(
        device, build_solid(bodies), bodies=bodies, materials={"glass": material},
        gravity=gravity, floor=floor or Floor(enabled=False), projectiles=projectiles, **settings)


def lattice(horizon: float) -> np.ndarray:
    """Neighbours (k, 3) of a point of the unit cubic lattice within `horizon`."""
    reach = int(horizon)
    axis = np.arange(-reach, reach + 1)
    grid = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    squared = (grid**2).sum(1)
    return grid[(squared > 0) & (squared <= horizon**2 + 1e-9)].astype(float)


def pairwise_force(
    sim: Simulation, position: np.ndarray, factor: np.ndarray | float = 1.0
) -> np.ndarray:
    """Bond forces [N] by a plain double-precision sum over all pairs, levine-2014 eq. 3.

    Bonds are stiffer by the factors of their ends.
    """
    rest = sim.solid.position
    delta = sim.settings.horizon * SPACING
    stiffness = 18.0 * GLASS.bulk_modulus / (np.pi * delta**4)
    xi = rest[:, None] - rest[None]
    length = np.sqrt((xi**2).sum(2))
    bonded = (length > 0) & (length <= delta * (1 + 1e-6))
    y = position[:, None] - position[None]
    now = np.sqrt((y**2).sum(2))
    with np.errstate(invalid="ignore", divide="ignore"):
        pull = np.where(bonded, (now - length) / length / now, 0.0)
    volume = sim.solid.volume * factor
    weight = stiffness * volume[:, None] * volume[None]
    force: np.ndarray = -(np.nan_to_num(pull * weight)[..., None] * y).sum(1)
    return force
