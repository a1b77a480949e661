"""Bodies that follow an animation: where they are at any moment, and how they leave it.

Between the moments of a course a centre goes straight and a body turns evenly. After the last one
it flies, so that a step may go on beyond it: the body is let go at the step's end, in flight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid import flight
from vfx.sim.rigid.engine import Frame
from vfx.sim.solver import Course

#: Times [s] that differ by less are the same: ticks are added up.
SAME_MOMENT = 1e-9


class Courses:
    """The courses of a shot, for pieces of the bodies that have one."""

    def __init__(self, courses: Sequence[Course], gravity: Array) -> None:
        self._courses, self._gravity = tuple(courses), gravity
        self._turn = [flight.quaternion_of(course.rotation) for course in courses]

    def of_body(self, body: int) -> int:
        """Return the number of a body's course, or -1."""
        return next((number for number, course in enumerate(self._courses)
                     if course.body == body), -1)

    def until(self, number: int) -> float:
        """Return when [s] a course ends."""
        return self._courses[number].until

    def at(self, number: int, rest_center: Array, moment: Array, axes: Array,
           time: float) -> Frame:
        """Return where a piece is that has this centre (3,) at rest, and how it moves.

        ``moment`` (3,) and ``axes`` (4,) are its principal ones; a row each comes back.
        """
        course = self._courses[number]
        if time < course.until - SAME_MOMENT:
            return self._following(number, rest_center, time)
        velocity, spin = _leaving(course, rest_center)
        center = course.place[-1] + course.rotation[-1] @ rest_center
        beyond = time - course.until
        turn, spin_now = flight.turn_freely(
            self._turn[number][-1:], spin[None], moment[None], axes[None], beyond)
        return Frame((center + beyond * velocity + 0.5 * beyond**2 * self._gravity)[None], turn,
                     (velocity + beyond * self._gravity)[None], spin_now)

    def _following(self, number: int, rest_center: Array, time: float) -> Frame:
        course, turn = self._courses[number], self._turn[number]
        first = int(np.clip(np.searchsorted(course.time, time, "right") - 1, 0,
                            len(course.time) - 2))
        pair = slice(first, first + 2)
        length = course.time[first + 1] - course.time[first]
        share = (time - course.time[first]) / length
        before, after = course.place[pair] + course.rotation[pair] @ rest_center
        way = flight.turn_vector(flight.multiply(
            turn[first + 1:first + 2], flight.conjugate(turn[first:first + 1])))
        return Frame(((1.0 - share) * before + share * after)[None],
                     flight.multiply(flight.turn_by(share * way), turn[first:first + 1]),
                     ((after - before) / length)[None], way / length)


def _leaving(course: Course, rest_center: Array) -> tuple[Array, Array]:
    """Return velocity (3,) [m/s] of a centre and angular velocity (3,) at the last moment."""
    center = course.near_place + course.near_rotation @ rest_center
    turned = course.near_rotation @ course.rotation[-1].T
    way = flight.turn_vector(flight.quaternion_of(turned))
    return course.rate @ center, course.rate @ way
