"""When things that fly toward each other first touch, found by their hulls, never too late.

Between two convex hulls the largest gap along the normals of their faces is never more than their
distance, so a touch is not missed, only now and then told early.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vfx.geometry.handoff.types import Array
from vfx.sim.control.extent import depth_in
from vfx.sim.rigid.poses import fly
from vfx.sim.settings import Collider
from vfx.sim.solver import Poses, Prop

#: Moments of a flight that are looked at.
MOMENTS = 32


@dataclass(frozen=True)
class Outline:
    """A rigid thing by its hulls: corners (v, 3) and planes (f, 4) of each, about its centre."""

    radius: float
    corners: tuple[Array, ...]
    planes: tuple[Array, ...]

    @functools.cached_property
    def reach(self) -> float:
        """Radius [m] of a ball around it."""
        return max([self.radius, *(float(np.linalg.norm(each, axis=1).max())
                                   for each in self.corners)])


def outline(prop: Prop) -> Outline:
    """Return the outline of a prop."""
    return Outline(prop.radius, prop.hulls, tuple(map(_planes, prop.hulls)))


def _planes(corner: Array) -> Array:
    """Return the planes n x + d <= 0 of a hull, (f, 4)."""
    try:
        return np.unique(ConvexHull(corner).equations.round(9), axis=0)
    except QhullError:
        # Flat: the directions of its box.
        low, high = corner.min(axis=0), corner.max(axis=0)
        return np.vstack([np.column_stack([np.eye(3), -high]), np.column_stack([-np.eye(3), low])])


def first_touch(
    pairs: Sequence[tuple[Callable[[float], float], float]], duration: float
) -> float:
    """Return a time [s] before which no gap falls to its margin, 0 to ``duration``.

    Each of ``pairs`` is a gap [m] as a function of time, and its margin [m].
    """
    time = np.linspace(0.0, duration, MOMENTS + 1)
    for number, moment in enumerate(time):
        if any(gap(float(moment)) <= margin for gap, margin in pairs):
            return float(time[max(0, number - 1)])
    return float(time[-2])


def floor_gap(thing: Outline, poses: Poses, height: float, gravity: Array) -> Callable[
        [float], float]:
    """Return the height of a thing above the floor, as a function of time."""
    def gap(time: float) -> float:
        now = fly(poses, time, gravity)
        if thing.radius > 0.0:
            return float(now.center[0, 1]) - thing.radius - height
        return min(float((corner @ now.rotation[0, 1]).min()) for corner in thing.corners) + float(
            now.center[0, 1]) - height
    return gap


def collider_gap(thing: Outline, poses: Poses, collider: Collider, start: float,
                 gravity: Array) -> Callable[[float], float]:
    """Return how far a thing is from a collider, from ``start`` [s] on."""
    def gap(time: float) -> float:
        now = fly(poses, time, gravity)
        if thing.radius > 0.0:
            depth = depth_in(collider, now.center, start + time)
            return -float(depth[0]) - thing.radius
        return min(-float(depth_in(
            collider, corner @ now.rotation[0].T + now.center[0], start + time).max())
            for corner in thing.corners)
    return gap


def pair_gap(first: Outline, first_pose: Poses, second: Outline, second_pose: Poses,
             first_pull: Array, second_pull: Array) -> Callable[[float], float]:
    """Return how far two things are from each other, as a function of time."""
    def gap(time: float) -> float:
        a, b = fly(first_pose, time, first_pull), fly(second_pose, time, second_pull)
        # In the second's frame.
        turn = b.rotation[0].T @ a.rotation[0]
        shift = b.rotation[0].T @ (a.center[0] - b.center[0])
        return _distance(first, second, turn, shift)
    return gap


def _distance(first: Outline, second: Outline, turn: Array, shift: Array) -> float:
    """Return a bound from below of the distance of two outlines; x goes to turn x + shift."""
    if first.radius > 0.0 and second.radius > 0.0:
        return float(np.linalg.norm(shift)) - first.radius - second.radius
    if first.radius > 0.0:
        return min(float((plane[:, :3] @ shift + plane[:, 3]).max()) for plane in second.planes
                   ) - first.radius
    if second.radius > 0.0:
        return _distance(second, first, turn.T, -turn.T @ shift)
    here = [corner @ turn.T + shift for corner in first.corners]
    back = [(corner - shift) @ turn for corner in second.corners]
    low, high = (np.array([bound(corner, axis=0) for corner in here]) for bound in (np.min, np.max))
    nearest = np.inf
    for number, corner in enumerate(second.corners):
        # Boxes that are farther apart than the nearest pair so far need no look.
        beside = np.maximum(np.maximum(low - corner.max(axis=0), corner.min(axis=0) - high), 0.0)
        away = np.linalg.norm(beside, axis=1)
        for k in np.argsort(away, kind="stable").tolist():
            if away[k] >= nearest:
                break
            plane, other = second.planes[number], first.planes[k]
            one = (here[k] @ plane[:, :3].T).min(axis=0) + plane[:, 3]
            two = (back[number] @ other[:, :3].T).min(axis=0) + other[:, 3]
            nearest = min(nearest, max(float(one.max()), float(two.max())))
    return nearest
