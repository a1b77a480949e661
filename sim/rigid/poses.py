"""Poses of rigid things: what they carry along, and where they are at other times."""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.types import Array
from vfx.sim.solver import Poses


def groups(element: Array, label: Array, count: int) -> list[Array]:
    """Return the elements of each label, ascending."""
    order = np.argsort(label, kind="stable")
    return np.split(element[order], np.cumsum(np.bincount(label, minlength=count))[:-1])


def moved(poses: Poses, rest: Array, rest_center: Array, piece: Array) -> Array:
    """Return where points at rest (n, 3) of the pieces ``piece`` (n,) are, (n, 3)."""
    arm = rest - rest_center[piece]
    return np.asarray(poses.center[piece]
                      + np.einsum("nij,nj->ni", poses.rotation[piece], arm))


def carried(poses: Poses, position: Array, piece: Array) -> Array:
    """Return the velocities (n, 3) of points (n, 3) that move with their pieces."""
    arm = position - poses.center[piece]
    return np.asarray(poses.velocity[piece] + np.cross(poses.angular_velocity[piece], arm))


def fly(poses: Poses, duration: float, gravity: Array) -> Poses:
    """Return free flight for a moment: the angular velocity stays as it is."""
    turn = Rotation.from_rotvec(duration * poses.angular_velocity).as_matrix()
    return Poses(
        poses.center + duration * poses.velocity + 0.5 * duration**2 * gravity,
        turn @ poses.rotation, poses.velocity + duration * gravity, poses.angular_velocity)


def between(before: Poses, after: Poses, share: float, duration: float, gravity: Array) -> Poses:
    """Return poses at a share of the time between two, ``duration`` [s] apart.

    Where nothing but gravity acted, the way is the parabola; else it is straight. Velocities
    change evenly, so that the sum of momentum does.
    """
    if share >= 1.0:
        return after
    is_free = _is_free(before, after, duration, gravity)
    drop = np.where(is_free, 0.5 * share * (share - 1.0) * duration**2, 0.0)
    turn = Rotation.from_matrix(after.rotation @ np.swapaxes(before.rotation, 1, 2)).as_rotvec()
    return Poses(
        before.center + share * (after.center - before.center) + drop[:, None] * gravity,
        Rotation.from_rotvec(share * turn).as_matrix() @ before.rotation,
        before.velocity + share * (after.velocity - before.velocity),
        before.angular_velocity + share * (after.angular_velocity - before.angular_velocity))


def seen_between(
    before: Poses, after: Poses, share: float, duration: float, gravity: Array
) -> Poses:
    """Return the poses of :func:`between` with velocities that the bodies had.

    What hit something moves as before the hit or as after it, never by a mixture of both: motion
    blur would show that.
    """
    poses = between(before, after, share, duration, gravity)
    if share >= 1.0:
        return poses
    # The hit is where the flight on from before and the flight back from after are nearest.
    change = after.velocity - before.velocity
    apart = before.center - after.center + duration * after.velocity
    size = duration * (change**2).sum(axis=1)
    hit = (apart * change).sum(axis=1) / np.where(size > 0.0, -size, 1.0)
    is_free = _is_free(before, after, duration, gravity)[:, None]
    is_past = (share > hit)[:, None]
    return dataclasses.replace(
        poses, velocity=np.where(is_free, poses.velocity, np.where(
            is_past, after.velocity, before.velocity)),
        angular_velocity=np.where(is_free, poses.angular_velocity, np.where(
            is_past, after.angular_velocity, before.angular_velocity)))


def _is_free(before: Poses, after: Poses, duration: float, gravity: Array) -> Array:
    """Return on which bodies nothing but gravity acted, (k,) bool."""
    change = after.velocity - before.velocity - duration * gravity
    size = 1e-4 * (np.linalg.norm(after.velocity, axis=1) + duration * np.linalg.norm(gravity))
    return np.asarray(np.linalg.norm(change, axis=1) <= size)
