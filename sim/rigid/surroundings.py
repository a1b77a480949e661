"""Floor and colliders in the engine, and how they bounce what is of which material.

The engine combines two numbers of two things. A floor has its own number, or that of whatever
touches it: so there is a copy of it for each kind of surface, which meets that kind alone, and the
copy's number wins by being the smaller or the larger of the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.types import Array
from vfx.sim.control.surfaces import coefficients
from vfx.sim.rigid.engine import DEBRIS, FLOOR, LARGE, STATIC, Engine, Form, Surface
from vfx.sim.settings import Collider, Floor, Material

#: As many kinds of surface have groups of their own; with more of them means are taken.
MOST_KINDS = 16
#: A half-space at rest: no turn.
UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])


class Surfaces:
    """The kinds of surface of all that moves: pairs of restitution and friction."""

    def __init__(self, materials: Sequence[Material]) -> None:
        found = {(material.restitution, material.friction): material for material in materials}
        self._kinds = dict(sorted(found.items())) if len(found) <= MOST_KINDS else {}
        self._mean = Material(
            restitution=float(np.mean([material.restitution for material in materials])),
            friction=float(np.mean([material.friction for material in materials])))

    def moving(self, restitution: float, friction: float, is_quiet_debris: bool) -> Surface:
        """Return the surface of a piece or ball; quiet debris does not meet its like."""
        kind = list(self._kinds).index((restitution, friction)) if self._kinds else 0
        is_what, meets = (DEBRIS, LARGE) if is_quiet_debris else (LARGE, LARGE | DEBRIS)
        return Surface(restitution, friction, 1 << kind | is_what, meets | STATIC)

    def copies(self, thing: Floor | Collider) -> list[Surface]:
        """Return the surfaces of the copies of a floor or collider."""
        if not self._kinds:
            return [Surface(*coefficients(thing, self._mean), STATIC, LARGE | DEBRIS)]
        made = []
        for kind, ((bounce, slide), material) in enumerate(self._kinds.items()):
            restitution, friction = coefficients(thing, material)
            made.append(Surface(restitution, friction, STATIC, 1 << kind,
                                (restitution <= bounce, friction <= slide)))
        return made


class Surroundings:
    """Floor and colliders of a shot; those with keys move."""

    def __init__(self, floor: Floor, colliders: Sequence[Collider], surfaces: Surfaces) -> None:
        self._floor, self._colliders, self._surfaces = floor, tuple(colliders), surfaces

    def build(self, engine: Engine) -> None:
        """Put them into an engine."""
        if self._floor.enabled:
            place = np.array([0.0, self._floor.height, 0.0])
            form = Form(normal=np.array([0.0, 1.0, 0.0]))
            for surface in self._surfaces.copies(self._floor):
                engine.add_static(FLOOR, place, UPRIGHT, form, surface, is_moved=False)
        for number, collider in enumerate(self._colliders):
            turn = UPRIGHT
            if collider.shape == "plane":
                normal = np.array(collider.normal)
                form = Form(normal=normal / math.hypot(*collider.normal))
            elif collider.shape == "sphere":
                form = Form(radius=collider.radius)
            else:
                form = Form(half_size=0.5 * np.array(collider.size))
                turn = Rotation.from_euler("xyz", collider.rotation, degrees=True).as_quat()
            for surface in self._surfaces.copies(collider):
                engine.add_static(collider_key(number), place_of(collider, 0.0), turn, form,
                                  surface, is_moved=is_moved(collider))

    def move(self, engine: Engine, time: float, duration: float) -> None:
        """Let moved colliders go on through a step that begins at a time [s]."""
        for number, collider in enumerate(self._colliders):
            if is_moved(collider) and self._moves_about(collider, time, duration):
                engine.drive_static(collider_key(number), place_of(collider, time),
                                    self.velocity(collider_key(number), time, duration))

    def velocity(self, key: int, time: float, duration: float) -> Array:
        """Return the velocity (3,) [m/s] of floor or collider through a step."""
        if key == FLOOR:
            return np.zeros(3)
        collider = self._colliders[-2 - key]
        way = place_of(collider, time + duration) - place_of(collider, time)
        return np.asarray(way / duration)

    def _moves_about(self, collider: Collider, time: float, duration: float) -> bool:
        """Whether it moves in this step or did in the one before, and has to be told to stop."""
        first, last = collider.keys[0][0], collider.keys[-1][0]
        return first < time + duration and last > time - 2.0 * duration


def collider_key(number: int) -> int:
    """Return the engine's key of a collider, counted from 0."""
    return -2 - number


def is_moved(collider: Collider) -> bool:
    """Whether its keys take it anywhere."""
    return len({key[1:] for key in collider.keys}) > 1


def place_of(collider: Collider, time: float) -> Array:
    """Return where a collider is at a time [s], (3,) [m]."""
    if not collider.keys:
        return np.array(collider.position)
    key = np.array(collider.keys)
    return np.array([np.interp(time, key[:, 0], key[:, axis]) for axis in (1, 2, 3)])
