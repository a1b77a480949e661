"""The rigid motion that best fits each of many particle sets, all at once.

levine-2014 section 4 (Alignment) moves each component by the rigid transform that best
takes its rest points P to its present points Q [Kabsch 1978]. Here both are weighted by
mass and centred, H = sum m p q^T = U S V^T, and R = V diag(1, 1, d) U^T with
d = sign det(V U^T), the best proper rotation even for mirrored or flat sets.

R is unique only while sigma_2 + d sigma_3 > 0. Below a tolerance the set is a line, whose
spin about itself is free, or a point, which may turn any way; ``free`` says which, and
:mod:`vfx.geometry.pieces.align` settles what is left.

Symbols: p, q rest and present positions from the centre of mass; m mass; sigma_i singular
values of H, descending; L angular momentum; I inertia tensor about the centre of mass.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array

# Singular values below this share of sqrt(sum m p^2 * sum m q^2) count as zero. Collinear
# rest points leave 1e-13 or less; a row of 1000 cubes with one beside it leaves 1e-8.
TOLERANCE = 1e-10

# How many axes of rotation a set leaves free.
UNIQUE, LINE, POINT = 0, 1, 3


@dataclass
class RigidFit:
    """Rigid motion of k particle sets.

    ``rotation`` of a set that is not UNIQUE is one of the equally good ones; its
    ``angular_velocity`` is zero about the free axes.
    """

    mass: Array              # (k,) float64 [kg]
    rest_center: Array       # (k, 3) float64 [m]: centre of mass at rest
    center: Array            # (k, 3) float64 [m]: centre of mass now
    rotation: Array          # (k, 3, 3) float64
    free: Array              # (k,) int8: UNIQUE, LINE or POINT
    rest_axis: Array         # (k, 3) float64: main direction at rest, unit; of use for a LINE
    axis: Array              # (k, 3) float64: the same direction now
    velocity: Array          # (k, 3) float64 [m/s] of the centre of mass
    angular_velocity: Array  # (k, 3) float64 [rad/s], world axes


def fit_rigid(
    rest: Array, position: Array, velocity: Array, mass: Array, group: Array, n_groups: int
) -> RigidFit:
    """Fit a rigid motion to each group of particles.

    rest, position (n, 3) [m]; velocity (n, 3) [m/s]; mass (n,) [kg], positive; group (n,)
    int, the set each particle belongs to: 0..n_groups-1, none of them empty.
    """
    count = np.bincount(group, minlength=n_groups)
    if len(count) != n_groups or (count == 0).any():
        raise ValueError(f"Every one of the {n_groups} groups needs at least one particle, and "
                         "no particle may be in another.")
    group_mass = np.bincount(group, weights=mass, minlength=n_groups)
    member = np.zeros(n_groups, dtype=np.int64)
    member[group] = np.arange(len(group))
    rest_center, p = _centered(rest, mass, group, group_mass, member)
    center, q = _centered(position, mass, group, group_mass, member)
    mean_velocity, v = _centered(velocity, mass, group, group_mass, member)

    covariance = _sum_outer(mass[:, None] * p, q, group, n_groups)
    size = np.sqrt(_sum(mass * (p * p).sum(axis=1), group, n_groups)
                   * _sum(mass * (q * q).sum(axis=1), group, n_groups))
    rotation, free, rest_axis, axis = _best_rotation(covariance, size)

    momentum = _sum(mass[:, None] * np.cross(q, v), group, n_groups)
    scatter = _sum_outer(mass[:, None] * q, q, group, n_groups)
    return RigidFit(group_mass, rest_center, center, rotation, free, rest_axis, axis,
                    mean_velocity, _angular_velocity(momentum, scatter, free, axis))


def _sum(value: Array, group: Array, n_groups: int) -> Array:
    """Sum ``value`` (n,) or (n, c) over each group, in particle order: (k,) or (k, c)."""
    if value.ndim == 1:
        return np.bincount(group, weights=value, minlength=n_groups)
    return np.stack([np.bincount(group, weights=value[:, c], minlength=n_groups)
                     for c in range(value.shape[1])], axis=1)


def _sum_outer(a: Array, b: Array, group: Array, n_groups: int) -> Array:
    """Sum the outer products a b^T of (n, 3) and (n, 3) over each group: (k, 3, 3)."""
    return np.stack([_sum(a[:, i:i + 1] * b, group, n_groups) for i in range(3)], axis=1)


def _centered(
    value: Array, mass: Array, group: Array, group_mass: Array, member: Array
) -> tuple[Array, Array]:
    """Return each group's mass-weighted mean (k, 3) and the values less it (n, 3).

    Sums are taken relative to one member, so that far from the origin nothing is lost.
    """
    origin = value[member]
    local = value - origin[group]
    mean = _sum(mass[:, None] * local, group, len(member)) / group_mass[:, None]
    return origin + mean, local - mean[group]


def _best_rotation(covariance: Array, size: Array) -> tuple[Array, Array, Array, Array]:
    """Return rotation (k, 3, 3), freedom (k,), and the main axis at rest and now (k, 3).

    covariance (k, 3, 3) is H; size (k,) bounds its singular values.
    """
    k = len(covariance)
    rotation = np.tile(np.eye(3), (k, 1, 1))
    free = np.full(k, POINT, dtype=np.int8)
    rest_axis = np.tile(np.array([1.0, 0.0, 0.0]), (k, 1))
    axis = rest_axis.copy()

    # Lone particles have H = 0 and no need of a decomposition.
    solve = np.flatnonzero(size > 0)
    u, sigma, vt = np.linalg.svd(covariance[solve] / size[solve, None, None])
    handed = np.where(np.linalg.det(u) * np.linalg.det(vt) < 0, -1.0, 1.0)
    v = np.swapaxes(vt, 1, 2).copy()
    flipped = v.copy()
    flipped[:, :, 2] *= handed[:, None]
    rotation[solve] = flipped @ np.swapaxes(u, 1, 2)
    rest_axis[solve], axis[solve] = u[:, :, 0], v[:, :, 0]
    unique = sigma[:, 1] + handed * sigma[:, 2] > TOLERANCE
    has_axis = sigma[:, 0] - np.abs(sigma[:, 1]) > TOLERANCE
    free[solve] = np.where(unique, UNIQUE, np.where(has_axis, LINE, POINT))
    return rotation, free, rest_axis, axis


def _angular_velocity(momentum: Array, scatter: Array, free: Array, axis: Array) -> Array:
    """Return omega with I omega = L, zero about free axes.

    momentum (k, 3) is L [kg m^2/s]; scatter (k, 3, 3) is sum m q q^T [kg m^2].
    """
    trace = np.trace(scatter, axis1=1, axis2=2)
    inertia = trace[:, None, None] * np.eye(3) - scatter
    omega = np.zeros_like(momentum)

    # A UNIQUE set can still be flattened onto a line now: leave out what has no inertia.
    solid = np.flatnonzero((free == UNIQUE) & (trace > 0))
    value, vector = np.linalg.eigh(inertia[solid] / trace[solid, None, None])
    along = np.einsum("kji,kj->ki", vector, momentum[solid] / trace[solid, None])
    has_inertia = value > TOLERANCE
    rate = np.where(has_inertia, along, 0.0) / np.where(has_inertia, value, 1.0)
    omega[solid] = np.einsum("kij,kj->ki", vector, rate)

    line = np.flatnonzero((free == LINE) & (trace > 0))
    across = momentum[line] - axis[line] * (momentum[line] * axis[line]).sum(axis=1)[:, None]
    omega[line] = across / trace[line, None]
    return omega
