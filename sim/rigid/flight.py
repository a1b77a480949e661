"""Free flight of rigid bodies, in double precision.

The engine's step is Euler's: a fall is late by g t dt/2, and the momentum of a body that spins
about no axis of its own drifts. Here a centre flies its parabola exactly, and a body turns with a
constant angular momentum: the free top's energy is a sum of three terms, one a principal axis, and
the motion of each alone is a turn about that axis. Turns in a symmetric order (Strang) keep the
angular momentum to rounding, and the energy without drift.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array

#: The largest turn [rad] of one round of turns.
LARGEST_TURN = 0.05
#: The most rounds a step; what spins faster is a blur.
MOST_ROUNDS = 256
#: Moments of inertia that differ by less are alike.
ALIKE = 1e-9


def principal_axes(tensor: Array) -> tuple[Array, Array]:
    """Return moments (k, 3) [kg m^2] and axes, as quaternions (k, 4): rest from own axes."""
    moment, axes = np.linalg.eigh(tensor)
    axes[np.linalg.det(axes) < 0.0, :, 2] *= -1.0
    return np.maximum(moment, 0.0), quaternion_of(axes)


def turn_freely(
    orientation: Array, spin: Array, moment: Array, axes: Array, duration: float
) -> tuple[Array, Array]:
    """Return orientation (k, 4) and angular velocity (k, 3) [rad/s] after a time without torque.

    ``moment`` and ``axes`` are those of :func:`principal_axes`.
    """
    own = multiply(orientation, axes)
    local = rotate(conjugate(own), spin)
    momentum = local * moment
    spread = np.ptp(moment, axis=1)
    symmetric = spread <= ALIKE * moment[:, 2]
    speed = length(spin)
    rounds = np.ceil(speed * duration / LARGEST_TURN)
    # Powers of two: few classes, each of which is done at once.
    rounds = 2.0 ** np.ceil(np.log2(np.clip(rounds, 1.0, MOST_ROUNDS)))
    rounds[symmetric] = 1.0
    turned = np.empty_like(own)
    after = np.empty_like(local)
    for n_rounds in np.unique(rounds):
        which = np.flatnonzero((rounds == n_rounds) & ~symmetric)
        if len(which):
            turned[which], after[which] = _rounds(
                own[which], momentum[which], moment[which], duration / n_rounds, int(n_rounds))
    which = np.flatnonzero(symmetric)
    turned[which] = multiply(turn_by(spin[which] * duration), own[which])
    after[which] = local[which]
    result = multiply(turned, conjugate(axes))
    result /= np.sqrt((result**2).sum(axis=1))[:, None]
    return result, np.where(symmetric[:, None], spin, rotate(turned, after))


def _rounds(
    own: Array, momentum: Array, moment: Array, step: float, n_rounds: int
) -> tuple[Array, Array]:
    """Return orientation and local angular velocity after rounds of turns about own axes."""
    q, p = own.copy(), momentum.copy()
    for _ in range(n_rounds):
        for axis, share in ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5)):
            angle = share * step * p[:, axis] / moment[:, axis]
            cosine, sine = np.cos(angle), np.sin(angle)
            u, v = (axis + 1) % 3, (axis + 2) % 3
            # The body turns by +angle, so what it sees turns back.
            p[:, u], p[:, v] = (cosine * p[:, u] + sine * p[:, v],
                                cosine * p[:, v] - sine * p[:, u])
            half = np.zeros_like(q)
            half[:, axis] = np.sin(0.5 * angle)
            half[:, 3] = np.cos(0.5 * angle)
            q = multiply(q, half)
    return q, p / moment


def multiply(first: Array, second: Array) -> Array:
    """Return products of quaternions (k, 4), xyzw: the turn ``first`` after ``second``."""
    ax, ay, az, aw = first.T
    bx, by, bz, bw = second.T
    return np.stack([
        aw * bx + ax * bw + ay * bz - az * by, aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw, aw * bw - ax * bx - ay * by - az * bz], axis=1)


def conjugate(quaternion: Array) -> Array:
    """Return the turns back."""
    return np.asarray(quaternion * np.array([-1.0, -1.0, -1.0, 1.0]))


def length(vector: Array) -> Array:
    """Return the lengths (k,) of vectors (k, 3); sums over rows take several times as long."""
    x, y, z = vector.T
    return np.asarray(np.sqrt(x * x + y * y + z * z))


def cross(first: Array, second: Array) -> Array:
    """Return the products (k, 3) of vectors (k, 3), as ``np.cross`` but without its detours."""
    ax, ay, az = first.T
    bx, by, bz = second.T
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=1)


def rotate(quaternion: Array, vector: Array) -> Array:
    """Return vectors (k, 3) turned by quaternions (k, 4)."""
    axis, w = quaternion[:, :3], quaternion[:, 3:]
    twice = 2.0 * cross(axis, vector)
    return np.asarray(vector + w * twice + cross(axis, twice))


def turn_by(rotation_vector: Array) -> Array:
    """Return the quaternions (k, 4) of rotation vectors (k, 3) [rad]."""
    angle = length(rotation_vector)
    half = 0.5 * angle
    scale = 0.5 * np.sinc(half / np.pi)
    return np.concatenate([rotation_vector * scale[:, None], np.cos(half)[:, None]], axis=1)


def turn_vector(quaternion: Array) -> Array:
    """Return the rotation vectors (k, 3) [rad] of quaternions, the shorter way round."""
    q = np.where(quaternion[:, 3:] < 0.0, -quaternion, quaternion)
    sine = length(q[:, :3])
    angle = 2.0 * np.arctan2(sine, q[:, 3])
    scale = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-300), 2.0)
    return np.asarray(q[:, :3] * scale[:, None])


def slerp(first: Array, second: Array, share: float) -> Array:
    """Return the orientations a share of the way from first to second."""
    way = turn_vector(multiply(second, conjugate(first)))
    return multiply(turn_by(share * way), first)


def matrix_of(quaternion: Array) -> Array:
    """Return rotation matrices (k, 3, 3) of unit quaternions (k, 4)."""
    x, y, z, w = quaternion.T
    return np.stack([
        np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], axis=1),
        np.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], axis=1),
        np.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], axis=1)],
        axis=1)


def quaternion_of(matrix: Array) -> Array:
    """Return unit quaternions (k, 4), xyzw, of rotation matrices (k, 3, 3)."""
    if not len(matrix):
        return np.zeros((0, 4))
    m = matrix
    trace = m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    # Each component in turn as the largest; the one that is largest loses no digits.
    choice = np.stack([m[:, 0, 0], m[:, 1, 1], m[:, 2, 2], trace], axis=1).argmax(axis=1)
    square = np.stack([1 + 2 * m[:, 0, 0] - trace, 1 + 2 * m[:, 1, 1] - trace,
                       1 + 2 * m[:, 2, 2] - trace, 1 + trace], axis=1)
    xy, xz, yz = m[:, 1, 0] + m[:, 0, 1], m[:, 2, 0] + m[:, 0, 2], m[:, 2, 1] + m[:, 1, 2]
    wx, wy, wz = m[:, 2, 1] - m[:, 1, 2], m[:, 0, 2] - m[:, 2, 0], m[:, 1, 0] - m[:, 0, 1]
    rows = np.stack([
        np.stack([square[:, 0], xy, xz, wx], axis=1), np.stack([xy, square[:, 1], yz, wy], axis=1),
        np.stack([xz, yz, square[:, 2], wz], axis=1), np.stack([wx, wy, wz, square[:, 3]], axis=1)],
        axis=1)
    q = rows[np.arange(len(m)), choice]
    return np.asarray(q / np.sqrt((q**2).sum(axis=1))[:, None])
