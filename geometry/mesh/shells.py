"""Which shells of a mesh lie inside which: hollow parts, and several parts in one file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.crossings import TriangleTree, triangles_above

#: Triangles of a shell from which it is judged whether others hold it.
_WITNESSES = 3


@dataclass(frozen=True)
class Shells:
    """The shells of a mesh, s of them."""

    volume: Array            # (s,) as the triangles face: negative where inward
    depth: Array             # (s,) int64: how many others it lies inside of

    @property
    def is_cavity(self) -> Array:
        """Which shells bound a hollow, (s,) bool: those inside an odd number of others."""
        return np.asarray(self.depth % 2 == 1)

    @property
    def faces_wrong(self) -> Array:
        """Which shells face the other way than their depth asks for, (s,) bool."""
        return np.asarray((self.volume < 0) != self.is_cavity)

    @property
    def n_parts(self) -> int:
        """Parts of the mesh: shells that bound no hollow."""
        return int((~self.is_cavity).sum())


def signed_volumes(vertex: Array, triangle: Array, shell: Array) -> Array:
    """Return the volume within each shell by the divergence theorem, (s,)."""
    corner = vertex[triangle] - vertex.mean(axis=0)
    part = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6.0
    return np.bincount(shell, weights=part)


def nest_shells(
    device: Device, tree: TriangleTree, vertex: Array, triangle: Array, shell: Array,
    crossing: Array,
) -> Shells:
    """Find how deep each shell lies; ``shell`` (t,) is that of each triangle.

    Shells that cut each other, by the pairs of triangles ``crossing`` (k, 2), are not nested, nor
    is one whose box reaches out of the other's: where sides lie in one plane, no triangle is cut.
    """
    volume = signed_volumes(vertex, triangle, shell)
    n = len(volume)
    depth = np.zeros(n, dtype=np.int64)
    if n > 1:
        order = np.argsort(shell, kind="stable")
        first = np.searchsorted(shell[order], np.arange(n + 1))
        share = (np.arange(_WITNESSES) + 0.5) / _WITNESSES
        pick = (first[:-1, None] + share * np.diff(first)[:, None]).astype(np.int64)
        witness = vertex[triangle[order[pick.ravel()]]].mean(axis=1)
        which, above, turns = triangles_above(device, tree, witness)
        # Winding number of every shell around every witness that it is near.
        key, member = np.unique(which * n + shell[above], return_inverse=True)
        winding = np.bincount(member, weights=turns, minlength=len(key))
        who, holder = np.divmod(key[np.abs(winding) > 0.5], n)
        own = who // _WITNESSES
        # A majority of witnesses decides.
        pair, count = np.unique(own * n + holder, return_counts=True)
        inner, outer = np.divmod(pair[count > _WITNESSES // 2], n)
        cut = shell[crossing]
        apart = ~np.isin(inner * n + outer, np.concatenate([
            cut[:, 0] * n + cut[:, 1], cut[:, 1] * n + cut[:, 0]])) & (inner != outer)
        corner = vertex[triangle[order]]
        low = np.minimum.reduceat(corner.min(axis=1), first[:-1])
        high = np.maximum.reduceat(corner.max(axis=1), first[:-1])
        apart &= ((low[inner] >= low[outer]) & (high[inner] <= high[outer])).all(axis=1)
        depth = np.bincount(inner[apart], minlength=n)
    return Shells(volume, depth)
