"""Pieces between frames: where they are while the shutter is open, and where they go next.

A piece goes evenly: its centre of mass straight, its rotation about one axis at one speed, from
its place in one frame to that in the next, so that both are met exactly; where the speed of the
shot changes, evenly in simulated time. Pieces are those of the
frame that is rendered; one that splits before the next moves on as its largest part, which keeps
its id. Motion vectors know better: every element goes where it is in the next frame. Nodes
of pieces that deform go evenly to where they are then; beyond the ends of a shot pieces keep their
shape.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.types import Array, Faces, Pieces
from vfx.raytrace.boundary.places import carried_points, offsets_toward, turned
from vfx.raytrace.settings import Camera

if TYPE_CHECKING:
    from vfx.raytrace.camera.camera import View
    from vfx.raytrace.props import Prop

#: How far away what is nowhere is taken to be, for its motion by the camera alone [m].
FAR_AWAY = 1e6


@dataclass(frozen=True)
class Neighbors:
    """The frames before and after one, where there are any.

    Beyond the ends of a shot pieces go on at their velocities, and balls as they went from or to
    the frame that there is; ``step`` [s] is the simulated time from frame to frame. Where it
    changes, ``passed`` says how much [s] has passed a part of a frame later or, below 0, before.
    """

    previous: Pieces | None = None
    following: Pieces | None = None
    step: float = 0.0
    passed: Callable[[float], float] | None = None

    def seconds(self, time: float) -> float:
        """Return the simulated time [s] that passes in ``time`` frames."""
        return time * self.step if self.passed is None else self.passed(time)

    def part(self, time: float) -> float:
        """Return how much of the way to the next frame, or the one before, is gone by then."""
        if self.passed is None:
            return abs(time)
        return self.passed(time) / self.passed(math.copysign(1.0, time))


def shutter_times(camera: Camera, count: int) -> Array:
    """Return the middles (count,) of equal parts of the open shutter, in frames."""
    width = camera.shutter_angle / 360.0
    opens = -0.5 * width if camera.shutter == "centred" else 0.0
    return opens + width * (np.arange(count) + 0.5) / count


def moved_pieces(pieces: Pieces, near: Neighbors, time: float, faces: Faces) -> Pieces:
    """Return pieces and balls at ``time`` frames after their own, from -1 to 1."""
    if time == 0.0:
        return pieces
    seconds = pieces.time + near.seconds(time)
    other = end_of_way(pieces, near, faces, forward=time > 0.0)
    part = near.part(time)
    rest = rest_centers(pieces)
    begin, end = pieces.center, turned(other.rotation, rest) + other.translation
    turn = _rotation_between(pieces, other, near.seconds(math.copysign(1.0, time)))
    rotation = Rotation.from_rotvec(part * turn).as_matrix() @ pieces.rotation
    center = _between(begin, end, part)
    balls = _between(pieces.projectile_position, other.projectile_position, part)
    return dataclasses.replace(
        pieces, time=seconds, rotation=rotation, center=center,
        translation=center - turned(rotation, rest), projectile_position=balls,
        node_offset=_between(pieces.node_offset, other.node_offset, part))


def end_of_way(pieces: Pieces, near: Neighbors, faces: Faces, *, forward: bool) -> Pieces:
    """Return the pieces of ``pieces`` with the poses that they have one frame on, or before."""
    other = near.following if forward else near.previous
    if other is None:
        return coasted(pieces, near, forward=forward)
    if forward:
        row = np.searchsorted(other.id, pieces.id)
    else:
        # What was one piece before is found by any of its elements.
        element = np.zeros(len(pieces.id), np.int64)
        piece = np.searchsorted(pieces.id, pieces.fragment)
        element[piece] = np.arange(len(piece))
        row = np.searchsorted(other.id, other.fragment[element])
    balls = other.projectile_position
    if len(balls) != len(pieces.projectile_position):
        balls = pieces.projectile_position
    rotation, translation, offset = other.rotation[row], other.translation[row], (
        pieces.node_offset)
    if not pieces.is_rigid:
        offset = offsets_toward(faces, pieces, other, rotation, translation)
    return dataclasses.replace(
        pieces, rotation=rotation, translation=translation, projectile_position=balls,
        node_offset=offset)


def coasted(pieces: Pieces, near: Neighbors, *, forward: bool) -> Pieces:
    """Return pieces and balls that went on evenly for a frame, or came so."""
    seconds, other_way = near.seconds(1.0), near.seconds(-1.0)
    if not forward:
        seconds, other_way = other_way, seconds
    rest = rest_centers(pieces)
    rotation = (Rotation.from_rotvec(seconds * pieces.angular_velocity).as_matrix()
                @ pieces.rotation)
    center = pieces.center + seconds * pieces.velocity
    balls, known = pieces.projectile_position, near.previous if forward else near.following
    if known is not None and len(known.projectile_position) == len(balls):
        if near.passed is None:
            balls = 2.0 * balls - known.projectile_position
        else:
            balls = balls + (seconds / other_way) * (known.projectile_position - balls)
    return dataclasses.replace(pieces, time=pieces.time + seconds, rotation=rotation,
                               center=center, translation=center - turned(rotation, rest),
                               projectile_position=balls)


def rest_centers(pieces: Pieces) -> Array:
    """Return the centres of mass (k, 3) of pieces at rest [m]."""
    offset = pieces.center - pieces.translation
    return turned(np.swapaxes(pieces.rotation, 1, 2), offset)


def _between(begin: Array, end: Array, part: float) -> Array:
    """Return what lies at ``part`` of the way between two values."""
    return (1.0 - part) * begin + part * end


def _rotation_between(pieces: Pieces, other: Pieces, seconds: float) -> Array:
    """Return rotation vectors (k, 3) from one pose to the other [rad].

    A piece may turn by more than half a circle: of all ways, the one is taken that is nearest to
    what its angular velocity says.
    """
    turn: Array = Rotation.from_matrix(
        other.rotation @ np.swapaxes(pieces.rotation, 1, 2)).as_rotvec()
    expected = seconds * pieces.angular_velocity
    angle = np.linalg.norm(turn, axis=1)
    spin = np.linalg.norm(expected, axis=1)
    safe = np.maximum(angle, 1e-12)[:, None]
    # A whole number of circles has no axis of its own.
    axis = np.where(angle[:, None] > 1e-9, turn / safe, expected / np.maximum(spin, 1e-12)[:, None])
    more = np.round(((axis * expected).sum(axis=1) - angle) / (2.0 * np.pi))
    whole: Array = turn + (2.0 * np.pi * more)[:, None] * axis
    return whole


def forward_motion(pieces: Pieces, near: Neighbors, faces: Faces, *, position: Array,
                   met: Array, element: Array, material: Array, triangle: Array,
                   direction: Array, view: View, next_view: View, resolution: tuple[int, int],
                   props: Sequence[Prop] = (), first_prop: int = 0) -> Array:
    """Return where each pixel's point goes until the next frame, (h, w, 2) float32 [pixels].

    u runs to the right, v up, as comp programs have it. ``position`` (h, w, 3) [m] is in the
    world, ``met`` (h, w) says where there is anything, ``element``, ``material`` and ``triangle``
    are -1 or those of the surface, ``direction`` (h, w, 3) are the rays: what is nowhere moves
    with the camera alone. The materials of ``props`` begin at ``first_prop``.
    """
    following = near.following or coasted(pieces, near, forward=True)
    here = np.where(met[..., None], position, view.eye + FAR_AWAY * direction).astype(np.float64)
    there = here.copy()
    on_piece = met & (element >= 0)
    there[on_piece] = carried_points(
        faces, pieces, following, element=element[on_piece], triangle=triangle[on_piece],
        point=here[on_piece])
    on_ball = met & (element < 0) & (material == 1)
    if on_ball.any() and len(following.projectile_position) == len(pieces.projectile_position):
        # The ball whose surface is nearest.
        gap = np.abs(np.linalg.norm(
            here[on_ball][:, None] - pieces.projectile_position, axis=2)
            - pieces.projectile_radius)
        move = following.projectile_position - pieces.projectile_position
        there[on_ball] += move[gap.argmin(axis=1)]
    for number, prop in enumerate(props):
        on_prop = met & (element < 0) & (material == first_prop + number)
        there[on_prop] += prop.place(following.time) - prop.place(pieces.time)
    begin, end = view.project(here, resolution), next_view.project(there, resolution)
    motion = (end - begin) * [1.0, -1.0]
    # What is behind the next camera has no place in its picture.
    finite: Array = np.nan_to_num(motion, nan=0.0, posinf=0.0, neginf=0.0).astype(np.float32)
    return finite
