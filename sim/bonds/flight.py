"""Free flight: while bodies touch nothing, their motion is known and need not be stepped.

A body whose particles all have one velocity and feel gravity alone keeps its shape: velocity
Verlet moves it by x(n) = x + n dt v + (n dt)^2 g / 2 exactly. The flight begins at step 0 and
ends, conservatively by bounding boxes, before anything can touch: the floor, a projectile's
shell, another body. Its end and all positions on the way are functions of the start alone, so
that neither the chunks in which steps are asked for nor a resume changes a bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.bodies import Vector
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.settings import Floor, Projectile

#: Clearance that counts as a touch, in units of the largest lambda.
CLEARANCE = 1.0


_BLOCK = 16384


@dataclass
class Flight:
    """All bodies in free flight from step 0 on."""

    solid: Solid
    timestep: float         # [s]
    gravity: Vector         # [m/s^2]
    floor: Floor
    projectiles: tuple[Projectile, ...]
    support: Array          # (n,) float64 [m]: reach of the elements downward
    position: Array         # (n, 3) float64 [m] at step 0
    velocity: Array         # (n, 3) float64 [m/s] at step 0
    searched: int = 0       # steps known to be free
    ended: bool = False     # whether the step after those is not

    def free_until(self, step: int) -> int:
        """Return the last free step, at most ``step``."""
        while self.searched < step and not self.ended:
            block = np.arange(self.searched + 1, self.searched + 1 + _BLOCK)
            free = self._is_free(block)
            self.searched += int(_BLOCK if free.all() else np.argmin(free))
            self.ended = not free.all()
        return min(step, self.searched)

    def state_at(self, step: int) -> tuple[Array, Array]:
        """Return (position, velocity), (n, 3) each, at a free step."""
        time = step * self.timestep
        gravity = np.asarray(self.gravity)
        return (self.position + (self.velocity * time + 0.5 * gravity * time**2),
                self.velocity + gravity * time)

    def _is_free(self, step: Array) -> Array:
        """Return for each step whether nothing can touch anything, (k,) bool."""
        clearance = CLEARANCE * float(self.solid.length_scale.max())
        time = step[:, None] * self.timestep
        fall = 0.5 * np.asarray(self.gravity) * time**2
        boxes = []
        free = np.ones(len(step), bool)
        for body in range(len(self.solid.length_scale)):
            inside = self.solid.body == body
            moved = self.velocity[np.argmax(inside)] * time + fall
            low, high = (bound(self.position[inside], axis=0) + moved
                         for bound in (np.min, np.max))
            boxes.append((low, high))
            if self.floor.enabled:
                lowest = low[:, 1] - self.support[inside].max()
                free &= lowest > self.floor.height + clearance
            for ball in self.projectiles:
                center = np.asarray(ball.position) + time * np.asarray(ball.velocity)
                apart = np.clip(center, low, high) - center
                free &= (apart**2).sum(1) > (1.5 * ball.radius + clearance) ** 2
        for number, (low, high) in enumerate(boxes):
            for other_low, other_high in boxes[:number]:
                gap = np.maximum(low - other_high, other_low - high).max(1)
                free &= gap > 2.0 * clearance
        return free


def take_off(
    solid: Solid, timestep: float, gravity: Vector, floor: Floor,
    projectiles: tuple[Projectile, ...], support: Array, position: Array, velocity: Array,
    acceleration: Array,
) -> Flight | None:
    """Return the flight of all bodies, or None if one spins, is strained or is pushed."""
    if not (acceleration == np.asarray(gravity, np.float32)).all():
        return None
    first = np.array([velocity[np.argmax(solid.body == body)]
                      for body in range(len(solid.length_scale))])
    if not (velocity == first[solid.body]).all():
        return None
    return Flight(solid, timestep, gravity, floor, projectiles, support, position, velocity)
