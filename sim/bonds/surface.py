"""How much stiffer bonds near surfaces are, so that walls stretch and bend as their matter does.

A particle at a surface has fewer bonds than one inside, so a thin wall of plain bonds is too soft:
one of four layers bends at 0.85 of its stiffness with a horizon of 2 lambda, at 0.61 with 3. Here
every particle gets a factor q, and the bond of i and j is stiffer by q_i q_j. That is symmetric, so
Newton's third law holds exactly, and the kernels know only weights of particles.

1. Which strain a place can bear. The fabric of a particle, sum_j V_j w xi xi / |xi|, tells in which
   directions there is matter around it. Stress along a direction in which there is little is small:
   a surface bears strain within it, a rod along it. So the kind T of strain that counts for a
   particle has the axes of the fabric, as much of each as (lack / LACKING)^2 leaves of 1, where a
   moment lacks that share of the largest, and the trace 1. The weight w falls toward the horizon,
   so that fabrics of irregular elements differ less by chance.
2. How stiff it is to be. Isotropic matter with Poisson ratio 1/4 resists a strain T by
   T:C:T = 3/5 K (1 + 2 T:T), bonds by 1/2 c sum_j q_i q_j V_j (xi.T.xi)^2 / |xi|^3, where
   c = 18 K / (pi delta^4). The two are made equal for all particles at once. Volume and energy
   methods (Le and Bobaru 2018) do so in one step, for dilation or for stretches along the axes.
3. Where its energy is. A bond's energy is in its middle, so that of a particle at a surface lies
   further in, by half of its mean bond d. A wall in bending is softer by that. So some energy p - 1
   is taken from further in and given to the outside: p_i = 1 + sum_j V_j (b_i + b_j).xi / |xi|,
   with M b = d and M = sum_j V_j xi xi / |xi|. It is antisymmetric in i and j: sum V (p - 1) = 0,
   extension is not changed; and sum V (p - 1) x = - sum V d: the middles are where they should be.

Factors are those of bodies before anything is cut or broken: faces of cracks are as soft as in
levine-2014.

Symbols: V volume, xi rest bond, delta horizon, c stiffness of bonds, K bulk modulus.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.bonds.cluster_bonds import Bonds
from vfx.sim.bonds.lattice import LatticeBonds, offsets_ahead
from vfx.sim.bonds.settings import BondSettings

#: A direction that lacks this share of the matter does not count; a little less lacks by chance.
LACKING = 0.2
#: How far beyond the horizon [lambda] neighbours would count no more in the fabric.
BEYOND = 0.5
#: Rounds in which factors settle; each takes most of what is left.
ROUNDS = 4
#: Factors of few bonds stay within this and its inverse: the stable step must not collapse.
LARGEST = 1.7
#: Bounds of the energy p that a particle is to have, relative; walls do not reach them, edges and
#: corners do.
LEAST_ENERGY, MOST_ENERGY = 0.8, 1.2
#: Cells of a box beyond this many horizons from a side are as those in its middle.
DEEP = 3
#: Words of bits whose bonds, some tens each, are looked at at once; of many, at most so many times.
_CHUNK, _MOST_CHUNKS = 1 << 12, 64
#: Components of a symmetric tensor, those off the diagonal for both places.
_ROW, _COLUMN, _TWICE = [0, 1, 2, 0, 1, 2], [0, 1, 2, 1, 2, 0], np.array([1.0] * 3 + [2.0] * 3)

#: Goes through all bonds: pairs of particles (k, 2).
Pairs = Callable[[], Iterable[Array]]


def surface_factors(solid: Solid, bonds: Bonds, live: Array, settings: BondSettings) -> Array:
    """Return the factor (n,) float64 of each element, of bonds whose bits are in ``live``."""
    if not isinstance(bonds, LatticeBonds):
        scale = solid.length_scale[solid.body]
        return find_factors(
            AtRest(solid.position / scale[:, None], solid.volume / scale**3, solid.grade),
            lambda: live_pairs(bonds, live), settings.horizon, settings.edge_volume)
    factor = np.ones(solid.n_elements)
    for body in bonds.boxes:
        inside = solid.body == body
        factor[inside] = box_factors(solid.cell[inside], settings.horizon, settings.edge_volume)
    return factor


@dataclass(frozen=True)
class AtRest:
    """Particles at rest, in units of the lambda of their body."""

    position: Array     # (n, 3)
    volume: Array       # (n,)
    grade: Array        # (n,): see Solid


@dataclass(frozen=True)
class Ends:
    """Bonds as seen from both of their ends, so each stands there twice."""

    first: Array        # (k,)
    second: Array       # (k,)
    xi: Array           # (k, 3): from the first to the second
    length: Array       # (k,)
    volume: Array       # (k,): of the second, as far as it counts
    near: Array         # (k,): how much more those count that are nearer than the horizon


def find_factors(rest: AtRest, pairs: Pairs, horizon: float, edge_volume: str) -> Array:
    """Return the factor (n,) of each particle."""
    n, size = len(rest.volume), rest.grade**-0.5

    def visit() -> Iterator[Ends]:
        for pair in pairs():
            first, second = np.concatenate([pair, pair[:, ::-1]]).T
            xi = rest.position[second] - rest.position[first]
            length = np.sqrt(_dot(xi, xi))
            relative = length / (0.5 * (size[first] + size[second]))
            share = 1.0 if edge_volume == "full" else np.clip(horizon + 0.5 - relative, 0.5, 1.0)
            near = np.maximum(0.0, 1.0 - (relative / (horizon + BEYOND)) ** 2)
            yield Ends(first, second, xi, length, share * rest.volume[second], near)

    def total(value: Callable[[Ends], Array], width: int) -> Array:
        """Return the sums (n, width) over the bonds of each particle."""
        found = np.zeros((n, width))
        for ends in visit():
            each = value(ends).reshape(-1, width)
            for k in range(width):
                found[:, k] += np.bincount(ends.first, weights=each[:, k], minlength=n)
        return found

    # Which strain a place can bear.
    fabric = total(lambda ends: np.column_stack([ends.near, np.ones(len(ends.xi))])[:, :, None]
                   * (ends.volume / ends.length)[:, None, None] * _squares(ends.xi)[:, None], 12)
    moment, axis = np.linalg.eigh(_matrix(fabric[:, :6]))
    lacking = 1.0 - moment / np.maximum(moment[:, -1:], 1e-300)
    lacking[:, -1] = 0.0        # of a particle without bonds, too
    kind = np.maximum(0.0, 1.0 - (lacking / LACKING) ** 2)
    kind /= kind.sum(1, keepdims=True)
    strain = ((axis * kind[:, None, :]) @ axis.swapaxes(1, 2))[:, _ROW, _COLUMN] * _TWICE
    # Without 1/2 c, by which both sides are multiplied.
    ideal = (3.0 / 5.0) * (1.0 + 2.0 * (kind**2).sum(1)) * math.pi * horizon**4 / 9.0

    def resistance(ends: Ends) -> Array:
        """Return what bonds without factors add to the resistance of their first ends."""
        along = _dot(strain[ends.first], _squares(ends.xi))
        grade = rest.grade[ends.first] * rest.grade[ends.second]
        return np.asarray(grade * ends.volume * along**2 / ends.length**3)

    # Where its energy is, and is to be.
    middle = total(lambda ends: resistance(ends)[:, None] * np.column_stack(
        [0.5 * ends.xi, np.ones(len(ends.xi))]), 4)
    inward = middle[:, :3] / np.maximum(middle[:, 3:], 1e-300)
    lever = (np.linalg.pinv(_matrix(fabric[:, 6:]), rcond=1e-3, hermitian=True)
             @ inward[:, :, None])[:, :, 0]
    energy = 1.0 + total(lambda ends: ends.volume / ends.length * _dot(
        lever[ends.first] + lever[ends.second], ends.xi), 1)[:, 0]
    goal = ideal * np.clip(energy, LEAST_ENERGY, MOST_ENERGY)

    def factor_sums(factor: Array) -> Array:
        return total(lambda ends: factor[ends.second] * resistance(ends), 1)[:, 0]

    factor, found = np.ones(n), middle[:, 3]
    for left in reversed(range(ROUNDS)):
        # Half of the way, for the neighbours go theirs.
        better = np.sqrt(factor * goal / np.maximum(found, 1e-300))
        factor = np.where(found > 0.0, np.clip(better, 1.0 / LARGEST, LARGEST), 1.0)
        if left:
            found = factor_sums(factor)
    return factor


def box_factors(cell: Array, horizon: float, edge_volume: str) -> Array:
    """Return the factors (k,) of cells (k, 3) that are a whole box of cubes."""
    size = cell.max(axis=0) + 1
    deep = DEEP * math.ceil(horizon)
    few = np.minimum(size, 2 * deep + 1)
    factor = _small_box_factors(*few.tolist(), horizon, edge_volume)
    # A cell beyond both ends' reach is as the one in the middle.
    beyond = cell - (size - few)
    place = np.where(cell <= deep, cell, np.maximum(beyond, deep))
    place = np.where(size == few, cell, place)
    return np.asarray(factor[tuple(place.T)])


@functools.lru_cache(maxsize=32)
def _small_box_factors(a: int, b: int, c: int, horizon: float, edge_volume: str) -> Array:
    """Return the factors (a, b, c) of a whole box of so many cubes."""
    number = np.arange(a * b * c).reshape(a, b, c)

    def pairs() -> Iterator[Array]:
        for offset in offsets_ahead(horizon).tolist():
            here, there = (tuple(
                slice(max(0, sign * step), max(0, count + min(0, sign * step)))
                for step, count in zip(offset, (a, b, c), strict=True)) for sign in (-1, 1))
            yield np.column_stack([number[here].ravel(), number[there].ravel()])

    every = np.ones(a * b * c)
    place = np.indices((a, b, c)).reshape(3, -1).T.astype(np.float64)
    return find_factors(AtRest(place, every, every), pairs, horizon, edge_volume).reshape(a, b, c)


def live_pairs(bonds: Bonds, live: Array) -> Iterator[Array]:
    """Yield the pairs of elements (k, 2) whose bonds have a bit, some at a time."""
    words = live.reshape(-1)
    step = max(_CHUNK, -(-len(words) // _MOST_CHUNKS))
    for start in range(0, len(words), step):
        yield bonds.pairs(words[start:start + step], start)


def _squares(vector: Array) -> Array:
    """Return the products (k, 6) of the components of vectors (k, 3): xx, yy, zz, xy, yz, zx."""
    product = np.empty((len(vector), 6))
    np.multiply(vector, vector, out=product[:, :3])
    np.multiply(vector, vector[:, [1, 2, 0]], out=product[:, 3:])
    return product


def _dot(one: Array, other: Array) -> Array:
    """Return the products (k,) of the rows of two arrays (k, m)."""
    return np.asarray(np.einsum("ki,ki->k", one, other))


def _matrix(tensor: Array) -> Array:
    """Return symmetric tensors (n, 6) as matrices (n, 3, 3)."""
    matrix = np.empty((len(tensor), 3, 3))
    for k, (row, column) in enumerate(zip(_ROW, _COLUMN, strict=True)):
        matrix[:, row, column] = matrix[:, column, row] = tensor[:, k]
    return matrix
