"""How stiff a wall of few layers is against bending, of plain bonds or of corrected ones.

A sheet of cubes, infinitely wide and n layers thick, is rolled to a curvature k along x: the
particles of a layer at height z move by (-k x z, 0, k x^2 / 2 + f(z)), where f is free, as nothing
presses on the faces. A bond xi between layers at z and z', with its middle at m = (z + z') / 2, is
then stretched by (-k m xi_x^2 + xi_z (f(z') - f(z))) / |xi|^2, to first order. The energy of the
bonds with the best f is D11 k^2 / 2 an area. With xi_y^2, and with 2 xi_x xi_y for a twist, the
same gives D12 and D66.

Kirchhoff: D = E h^3 / (12 (1 - nu^2)), E = 3/2 K, nu = 1/4, so D = 8/5 K h^3 / 12. A sheet of a
cubic lattice bends somewhat more easily in one direction than in another; what counts for a
square that is held at its edges is (14 D11 + 4 (D12 + 2 D66)) / 18 (Ritz, with the deflection
(1 - x^2)^2 (1 - y^2)^2).
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.surface import DEEP, box_factors
from vfx.sim.matter.material import lattice_offsets, volume_share

#: Kirchhoff's stiffness of a plate of thickness 1, over K.
PLATE = 8.0 / 5.0
#: Horizons beyond which it takes long to find factors for a number to be told.
LARGEST_CORRECTED = 4.0


@dataclass(frozen=True)
class SheetStiffness:
    """Of a sheet of cubes of edge 1, where K is 1: against being stretched, or bent."""

    along: float        # D11: in one direction of the lattice
    cross: float        # D12
    twist: float        # D66

    @property
    def square(self) -> float:
        """Of a square that is held at its edges."""
        return (14.0 * self.along + 4.0 * (self.cross + 2.0 * self.twist)) / 18.0


@functools.lru_cache(maxsize=64)
def bending_share(layers: int, horizon: float, edge_volume: str, *, corrected: bool) -> float:
    """Return the bending stiffness of a square wall, over Kirchhoff's."""
    factor = wall_factors(layers, horizon, edge_volume) if corrected else np.ones(layers)
    found = sheet_stiffness(factor, horizon, edge_volume)[1]
    return found.square / (PLATE * layers**3 / 12.0)


def wall_factors(layers: int, horizon: float, edge_volume: str) -> Array:
    """Return the factors (layers,) in the middle of a wide sheet."""
    side = 2 * DEEP * math.ceil(horizon) + 1
    cell = np.indices((side, side, layers)).reshape(3, -1).T
    middle = (cell[:, :2] == side // 2).all(axis=1)
    return np.asarray(box_factors(cell, horizon, edge_volume)[middle])


def sheet_stiffness(
    factor: Array, horizon: float, edge_volume: str
) -> tuple[SheetStiffness, SheetStiffness]:
    """Return the stiffness against stretching and bending of layers with factors (n,)."""
    n = len(factor)
    xi, here, there = _bonds(n, horizon)
    length = np.sqrt((xi**2).sum(1))
    share = np.array([volume_share(x, horizon, edge_volume) for x in length.tolist()])
    stiffness = 18.0 / (math.pi * horizon**4)
    # Every bond stands here from both of its ends.
    weight = 0.5 * stiffness * share * factor[here] * factor[there] / length**3
    middle = 0.5 * (here + there) - 0.5 * (n - 1)
    rows = np.arange(len(xi))
    lift = np.zeros((len(xi), n))
    np.add.at(lift, (rows, there), xi[:, 2])
    np.add.at(lift, (rows, here), -xi[:, 2])
    inner = np.linalg.pinv((lift * weight[:, None]).T @ lift, rcond=1e-9, hermitian=True)

    def energy(strain: Array) -> float:
        push = lift.T @ (weight * strain)
        return float((weight * strain**2).sum() - push @ inner @ push)

    x, y = xi[:, 0], xi[:, 1]
    found = []
    for lever in (np.ones(len(xi)), -middle):
        along, both = energy(lever * x**2), energy(lever * (x**2 + y**2))
        found.append(SheetStiffness(
            along, 0.5 * both - along, 0.25 * energy(lever * 2.0 * x * y)))
    return found[0], found[1]


def _bonds(layers: int, horizon: float) -> tuple[Array, Array, Array]:
    """Return the bonds of a column: xi (k, 3), and the layers of their ends."""
    offset = np.array(lattice_offsets(horizon), np.float64).reshape(-1, 3)
    here = np.repeat(np.arange(layers), len(offset))
    xi = np.tile(offset, (layers, 1))
    there = here + xi[:, 2].astype(np.int64)
    inside = (there >= 0) & (there < layers)
    return xi[inside], here[inside], there[inside]
