"""What is measured: the three objects of levine-2014 (Table 2), and plain blocks of any size.

Before any impact a body swings in its lowest mode along x, far below its strain limits: nothing
is at rest that a solver could skip, and no bond breaks.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.bench.points import dragon_points, irregular_solid, vase_points
from vfx.bench.setups import BondLayout, bond_simulation
from vfx.device import Device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array, Solid
from vfx.pipeline.errors import DamagedFile, MissingInput
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.shot.templates import FOLDER
from vfx.pipeline.work.cache import read_npz, write_npz
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.controls import make_world
from vfx.sim.settings import Floor, Material
from vfx.sim.solver import Setup

#: Speed of the swing [m/s]; over the speed of sound, about 5 km/s, it gives a strain of 1e-4.
SWING_SPEED = 0.5
GLASS = Material(density=2200.0, bulk_modulus=32.81e9, strain_limit=2e-3)
_LENGTH_SCALE = 1e-3


@dataclass(frozen=True)
class Irregular:
    """A body of irregular points, as large as one of the paper's."""

    n_particles: int
    horizon: float                  # [lambda]
    mean_bonds: float
    points: Callable[[int], Array]


IRREGULAR = {
    "vase": Irregular(637_027, 2.0, 110.0, vase_points),
    "dragon": Irregular(473_380, 6.0, 446.0, dragon_points),
}
CASES = ("glass", *IRREGULAR)

#: Seconds for 1000 steps on a Tesla K20, levine-2014 Table 2; the least where it gives a range.
PAPER = "levine-2014 Table 2"
PAPER_SECONDS = {
    ("glass", 0): 30.2, ("glass", 50_000): 226.9, ("glass", 100_000): 239.9,
    ("vase", 0): 265.0, ("dragon", 0): 505.0,
}
#: The paper stores an index and a rest length for each end of a bond.
PAPER_BOND_BYTES = 8


def glass_shot(n_particles: int | None) -> Shot:
    """Return shots/glass.toml, or a square plate of about ``n_particles`` as thick as it."""
    shot = load_shot(FOLDER / "glass.toml")
    if n_particles is None:
        return shot
    (plate,) = shot.bodies
    side = 8 * max(1, round(np.sqrt(n_particles / plate.cells[2]) / 8))
    return dataclasses.replace(shot, bodies=(
        dataclasses.replace(plate, cells=(side, side, plate.cells[2])),))


def flying_glass(device: Device, shot: Shot) -> Simulation:
    """Return the shot as it is, projectile and all."""
    return Simulation(device, make_world(build_solid(device, shot.bodies).solid, bonds_of(shot)))


def swinging_glass(device: Device, shot: Shot, layout: BondLayout | None = None) -> Simulation:
    """Return the plate before any impact."""
    alone = dataclasses.replace(bonds_of(shot), bodies=(), projectiles=())
    world = make_world(build_solid(device, shot.bodies).solid, alone)
    return swing(Simulation(device, world, layout))


def bonds_of(shot: Shot) -> Setup[BondSettings]:
    """Return the setup of a shot, with numbers where it says "auto"."""
    return dataclasses.replace(shot.setup, settings=shot.plan.settings)


def irregular_body(device: Device, name: str, solid: Solid, contact: bool) -> Simulation:
    """Return the vase or the dragon."""
    settings = with_contact(BondSettings(horizon=IRREGULAR[name].horizon), contact)
    return swing(bond_simulation(
        device, solid, settings=settings, materials={"glass": GLASS}, floor=Floor(enabled=False)))


def block(device: Device, cells: tuple[int, int, int], horizon: float,
          layout: BondLayout | None = None) -> Simulation:
    """Return a block of cubes."""
    solid = build_solid(device, [Body(
        name="block", material="glass", cells=cells, spacing=_LENGTH_SCALE)]).solid
    return swing(bond_simulation(
        device, solid, layout, materials={"glass": GLASS}, horizon=horizon,
        floor=Floor(enabled=False)))


def swing(simulation: Simulation) -> Simulation:
    """Set the body swinging along x."""
    position = simulation.solid.position
    along = position[:, 0] - position[:, 0].min()
    velocity = np.zeros_like(position)
    velocity[:, 0] = SWING_SPEED * np.cos(np.pi * along / max(float(along.max()), 1e-300))
    simulation.place(position, velocity)
    return simulation


def with_contact(settings: BondSettings, contact: bool) -> BondSettings:
    """Return the settings, contact turned off if not wanted."""
    return settings if contact else dataclasses.replace(settings, contact_stiffness=0.0)


def irregular_points(name: str, n_particles: int | None, cache: Path) -> Solid:
    """Return the solid of a vase or dragon, from the cache if it was made before."""
    body = IRREGULAR[name]
    n = n_particles or body.n_particles
    source = Path(__file__).with_name("points.py").read_bytes()
    stamp = hashlib.sha256(source + repr((body.horizon, body.mean_bonds)).encode()).hexdigest()
    path = cache / f"{name}-{n}-{stamp[:8]}.npz"
    try:
        return Solid.from_arrays(read_npz(path))
    except (MissingInput, DamagedFile, KeyError):
        solid = irregular_solid(body.points(n), body.mean_bonds, body.horizon, _LENGTH_SCALE)
        write_npz(path, solid.to_arrays())
        return solid
