"""Which hits may break what they hit: a cautious estimate, a memory and a budget.

A bar that hits end-on at speed v is strained by v / c, c = sqrt(E / rho), so at c times the strain
limit it breaks. Bending and corners multiply that strain by a few; ``caution`` is that factor. A
hit above the estimate is tried out with bonds. If nothing breaks the trial leaves no trace, but
that the piece has survived such a hit: weaker ones are not tried again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.auto.settings import AutoSettings
from vfx.sim.matter.material import YOUNGS_SHARE
from vfx.sim.rigid.mass import element_mass
from vfx.sim.settings import Material
from vfx.sim.solver import World

#: Pieces of fewer elements do not break again: there is no shape left to find.
LEAST_ELEMENTS = 8


class BreakingSpeed:
    """The speed of a hit from which pieces of elements may break."""

    def __init__(self, world: World[AutoSettings], limit: Array) -> None:
        """``limit`` (n,) are the strain limits of all elements."""
        self._body, self._mass = world.solid.body, element_mass(world)
        self._speed = breaking_speeds(world, limit)
        body_mass = np.bincount(self._body, self._mass, len(world.solid.length_scale))
        self._least = world.settings.least_mass * body_mass

    def __call__(self, member: Array) -> tuple[float, float]:
        """Return the speed [m/s] for the piece of some elements, infinite where it is too small.

        The second number is that of pieces which ``least_mass`` spares, else infinite.
        """
        if len(member) < LEAST_ELEMENTS:
            return np.inf, np.inf
        speed = float(self._speed[member].min())
        is_spared = self._mass[member].sum() < self._least[self._body[member[0]]]
        return (np.inf, speed) if is_spared else (speed, np.inf)


def breaking_speeds(world: World[AutoSettings], limit: Array) -> Array:
    """Return the speed [m/s] of a hit from which each element may break, (n,).

    ``limit`` (n,) are the strain limits. Elements of bodies that never break have infinity.
    """
    settings, solid = world.settings, world.solid
    given = settings.impact_speed
    speed = np.empty(len(solid.material_name))
    for body, name in enumerate(solid.material_name):
        speed[body] = wave_speed(world.materials[str(name)]) / settings.caution
    each = speed[solid.body] * limit if isinstance(given, str) else np.full(len(limit), given)
    whole = np.array([body.whole for body in world.bodies], bool)
    return np.where(whole[solid.body], np.inf, each)


def sound_speed(world: World[AutoSettings]) -> float:
    """Return the slowest sound [m/s] in any of the bodies."""
    return min(wave_speed(world.materials[str(name)]) for name in world.solid.material_name)


def wave_speed(material: Material) -> float:
    """Return c, the speed of sound [m/s] along a bar of a material."""
    return math.sqrt(YOUNGS_SHARE * material.bulk_modulus / material.density)


@dataclass
class Budget:
    """What a shot may spend on breaking, and what it did without."""

    most_steps: int
    steps: int = 0                  # of bonds, done
    skipped: int = 0                # hits that might have broken something

    @property
    def is_spent(self) -> bool:
        """Whether nothing more may be broken."""
        return self.steps >= self.most_steps
