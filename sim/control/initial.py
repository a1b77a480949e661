"""What the particles start with: velocity, support and strain limit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import lowest_corners
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.matter import scatter
from vfx.sim.matter.material import critical_stretch
from vfx.sim.settings import Material


def initial_velocity(solid: Solid, bodies: Sequence[Body]) -> Array:
    """Return (n, 3) velocities: each body's linear one and its spin about its centre."""
    velocity = np.zeros((solid.n_elements, 3))
    for number, body in enumerate(bodies):
        inside = solid.body == number
        arm = solid.position[inside] - np.array(body.center)
        velocity[inside] = np.array(body.velocity) + np.cross(np.array(body.angular_velocity), arm)
    return velocity


def element_support(solid: Solid) -> Array:
    """Return how far each element reaches below its centre at rest, (n,) float64 [m].

    A cube of edge lambda with axes R reaches lambda/2 (|R_yx| + |R_yy| + |R_yz|), other
    elements to their lowest corner. One without faces is taken for a ball of its volume.
    """
    reach = 0.5 * solid.length_scale * np.abs(solid.orientation[:, 1, :]).sum(1)
    lowest = lowest_corners(solid.stored_faces, solid.n_elements)
    ball = np.cbrt(0.75 / np.pi * solid.volume)
    below = np.where(np.isfinite(lowest), solid.position[:, 1] - lowest, ball)
    return np.where((solid.kind == "grid")[solid.body], reach[solid.body], below)


def strain_limits(
    solid: Solid, materials: Sequence[Material], horizon: float, seed: int,
    strength: Sequence[Array],
) -> Array:
    """Return the strain limit tau of each particle: its body's, with scatter, weakened.

    ``materials`` are those of the bodies, ``horizon`` is in units of lambda, ``strength`` are
    the factors of :class:`Controls`.
    """
    limit = np.empty(solid.n_elements)
    for number, material in enumerate(materials):
        inside = solid.body == number
        length_scale = float(solid.length_scale[number])
        limit[inside] = critical_stretch(material, horizon * length_scale)
        if material.strain_limit == 0.0 and material.strength == 0.0:
            # s0 falls with the root of the horizon, which is each particle's own if graded.
            limit[inside] *= np.sqrt(length_scale / solid.size[inside])
    spread = np.array([material.strain_scatter for material in materials])
    noise = scatter.normal(seed, np.arange(solid.n_elements))
    threshold: Array = limit * np.maximum(0.05, 1.0 + spread[solid.body] * noise)
    for factor in strength:
        threshold *= factor
    return threshold
