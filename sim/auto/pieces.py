"""Pieces between bonds and the engine: who is together, and their rigid motion.

What bonds leave is fitted by Kabsch (:mod:`vfx.geometry.pieces.kabsch`); velocity and angular
velocity are those that keep the momentum P and the angular momentum L of the elements, with the
inertia I that the engine has: v = P / m, omega = I^-1 L. Particles are points, but an element has
an extent: beside r x p of its particle it has an angular momentum of its own, that with which it
came into bonds, for nothing there turns it. So L is kept both ways, and kinetic energy never grows:
of all motions with this P and L the rigid one has the least. Bonds have no memory of shape: a rigid
piece is as it was at rest, and the strain that is left at the end of an impact is lost.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array, Solid
from vfx.geometry.pieces.kabsch import POINT, UNIQUE, fit_rigid
from vfx.sim.solver import Poses


def parts(solid: Solid, broken: Array, element: Array) -> tuple[int, Array]:
    """Return how many pieces the elements (k,), ascending, are in, and that of each, (k,).

    ``broken`` are adjacency edges that do not hold.
    """
    place = np.full(solid.n_elements, -1, np.int64)
    place[element] = np.arange(len(element))
    holds = np.ones(len(solid.edge), bool)
    holds[broken] = False
    pair = place[solid.edge[holds]]
    return components(len(element), pair[(pair >= 0).all(axis=1)])


def fit_poses(
    rest: Array, position: Array, velocity: Array, mass: Array, label: Array, inertia: Array,
    held: Array, own: Array,
) -> Poses:
    """Return the rigid motion of pieces whose particles moved from rest (n, 3) to here.

    ``own`` (n, 3) [kg m^2/s] is the angular momentum of the elements about their particles.
    ``inertia`` (k, 3, 3) is the engine's, as at rest; ``held`` (k, 3, 3) how what they were a part
    of was turned, for pieces whose particles do not tell it.
    """
    count = len(inertia)
    fit = fit_rigid(rest, position, velocity, mass, label, count)
    rotation = fit.rotation
    free = np.flatnonzero(fit.free != UNIQUE)
    if len(free):
        rotation[free] = _settled(held[free], fit.rest_axis[free], fit.axis[free],
                                  fit.free[free] == POINT)
    arm = position - fit.center[label]
    spin = own + mass[:, None] * np.cross(arm, velocity - fit.velocity[label])
    momentum = np.stack([np.bincount(label, spin[:, axis], count) for axis in range(3)], axis=1)
    turned = rotation @ inertia @ np.swapaxes(rotation, 1, 2)
    omega = np.linalg.solve(turned, momentum[:, :, None])[:, :, 0]
    return Poses(fit.center, rotation, fit.velocity, omega)


def _settled(held: Array, rest_axis: Array, axis: Array, is_point: Array) -> Array:
    """Return rotations (k, 3, 3): as held, and for rows turned so that their axis is in place."""
    expected = np.einsum("kij,kj->ki", held, rest_axis)
    # A row may be found either way round.
    axis = axis * np.where((expected * axis).sum(axis=1) < 0.0, -1.0, 1.0)[:, None]
    cross = np.cross(expected, axis)
    sine = np.linalg.norm(cross, axis=1)
    angle = np.arctan2(sine, (expected * axis).sum(axis=1))
    vector = cross * (angle / np.where(sine > 1e-12, sine, 1.0))[:, None]
    turn = Rotation.from_rotvec(np.where(is_point[:, None], 0.0, vector)).as_matrix()
    return np.asarray(turn @ held)
