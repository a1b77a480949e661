"""Mass, centre and inertia of pieces, from the elements in them and never from hulls.

An element is a point mass at its particle, as it is for solvers of particles, plus the inertia
of a cube of its volume about that point. So momentum that is fitted to particles is that of the
piece, and cubes are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.solver import Given, S, World


@dataclass(frozen=True)
class Inertia:
    """Masses of k pieces at rest; double precision."""

    mass: Array         # (k,) [kg]
    center: Array       # (k, 3) [m]: centres of mass
    tensor: Array       # (k, 3, 3) [kg m^2] about the centres


def element_mass(world: World[S]) -> Array:
    """Return the mass of each element, (n,) float64 [kg]."""
    return np.asarray(densities(world, world.solid.material_name)[world.solid.body]
                      * world.solid.volume)


def densities(given: Given[S], material_name: Array) -> Array:
    """Return the density of the material of each body, (b,) [kg/m^3]."""
    return np.array([given.materials[name].density for name in material_name.tolist()])


def inertia_of(
    members: Sequence[Array], position: Array, volume: Array, mass: Array
) -> Inertia:
    """Return the inertia of pieces, given the elements of each and what all elements have."""
    count = np.array([len(each) for each in members])
    element = np.concatenate([*members, np.zeros(0, np.int64)]).astype(np.int64)
    piece = np.repeat(np.arange(len(members)), count)
    m, x = mass[element], position[element]

    def total(value: Array) -> Array:
        return np.bincount(piece, value, minlength=len(members))

    whole = total(m)
    # About the first element of each piece, so that far from the origin no digits are lost.
    first = np.concatenate([[0], np.cumsum(count)])[:-1]
    base = x[first]
    arm = x - base[piece]
    offset = np.stack([total(m * arm[:, axis]) / whole for axis in range(3)], axis=1)
    arm -= offset[piece]
    tensor = np.zeros((len(members), 3, 3))
    square = (arm**2).sum(axis=1)
    own = total(own_moment(m, volume[element]))
    for i in range(3):
        for j in range(i, 3):
            tensor[:, i, j] = -total(m * arm[:, i] * arm[:, j])
            tensor[:, j, i] = tensor[:, i, j]
        tensor[:, i, i] += total(m * square) + own
    return Inertia(whole, base + offset, tensor)


def own_moment(mass: Array, volume: Array) -> Array:
    """Return the moments of inertia (n,) [kg m^2] of elements about their particles."""
    return np.asarray(mass * np.cbrt(volume) ** 2 / 6.0)


def ball_inertia(mass: float, radius: float) -> Array:
    """Return the inertia of a solid ball, (3, 3) [kg m^2]."""
    return np.asarray(0.4 * mass * radius**2 * np.eye(3))
