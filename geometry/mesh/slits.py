"""Slits of no width in a mesh: open edges on which vertices of other open edges lie.

Such T-junctions come from faces divided on one side of an edge only. Split at those vertices, the
triangle has the edges that the other side has, and nothing is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.spatial import cKDTree

from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.topology import find_topology

#: Distance of a vertex from an edge, as a share of the mesh's size, at which it lies on it.
WIDTH = 1e-5
#: Pairs of an edge and a vertex that are looked at, at most.
_MOST_PAIRS = 20_000_000


@dataclass(frozen=True)
class Split:
    """Triangles of a mesh, some of them parts of what they were."""

    triangle: Array          # (t, 3)
    parent: Array            # (t,): which triangle each was
    weight: Array            # (t, 3, 3): of the parent's corners at each corner
    n_split: int             # triangles that are split

    def at_corners(self, value: Array) -> Array:
        """Return values (s, 3, k) at the parents' corners as those at the corners, (t, 3, k)."""
        mixed = np.einsum("tij,tjk->tik", self.weight, value[self.parent])
        return np.ascontiguousarray(mixed, dtype=value.dtype)


def split_slits(vertex: Array, triangle: Array) -> Split:
    """Split triangles (t, 3) of open edges at the vertices (v, 3) of others that lie on them."""
    n = len(triangle)
    split = Split(triangle, np.arange(n), np.broadcast_to(np.eye(3), (n, 3, 3)), 0)
    # Of each triangle one edge at a time.
    for _ in range(3):
        side, inserted = _on_open_edges(vertex, split.triangle)
        if not len(side):
            break
        split = _split_sides(split, side, inserted, vertex)
    touched = np.unique(split.parent, return_counts=True)[1] > 1
    return Split(split.triangle, split.parent, split.weight, int(touched.sum()))


def _on_open_edges(vertex: Array, triangle: Array) -> tuple[Array, Array]:
    """Return sides (m,), 3 t + i, and the vertices (m,) on them in order; one side a triangle."""
    nothing = np.zeros(0, np.int64), np.zeros(0, np.int64)
    topology = find_topology(vertex, triangle)
    side = np.flatnonzero(topology.is_open[topology.half_edge])
    if not len(side):
        return nothing
    start, end = triangle.ravel()[side], np.roll(triangle, -1, axis=1).ravel()[side]
    opposite = np.roll(triangle, -2, axis=1).ravel()[side]
    border = np.union1d(start, end)
    along = vertex[end] - vertex[start]
    length = np.linalg.norm(along, axis=1)
    near = 0.5 * (vertex[start] + vertex[end]), 0.5 * length
    tree = cKDTree(vertex[border])
    count = tree.query_ball_point(*near, return_length=True)
    if count.sum() > _MOST_PAIRS:
        return nothing
    which = np.repeat(np.arange(len(side)), count)
    found = border[np.concatenate(tree.query_ball_point(*near)).astype(np.int64)]
    apart = vertex[found] - vertex[start[which]]
    share = np.einsum("ij,ij->i", apart, along[which]) / length[which] ** 2
    distance = np.linalg.norm(apart - share[:, None] * along[which], axis=1)
    width = WIDTH * float((vertex.max(axis=0) - vertex.min(axis=0)).max())
    inside = np.minimum(share, 1.0 - share) * length[which] > width
    keep = inside & (distance <= width) & (found != opposite[which])
    which, found, share = which[keep], found[keep], share[keep]
    order = np.lexsort((share, which))
    which, found = which[order], found[order]
    # The first side of each triangle that has any.
    parent, first = np.unique(side[which] // 3, return_index=True)
    chosen = which[first][np.searchsorted(parent, side[which] // 3)]
    keep = which == chosen
    return side[which[keep]], found[keep]


def _split_sides(split: Split, side: Array, inserted: Array, vertex: Array) -> Split:
    """Split triangles into fans from the corners opposite to the sides with vertices on them."""
    triangle, parent, weight = [], [], []
    bounds = np.flatnonzero(np.diff(side, prepend=-1, append=-1))
    for first, last in pairwise(bounds.tolist()):
        t, i = divmod(int(side[first]), 3)
        a, b, c = (int(split.triangle[t, (i + k) % 3]) for k in range(3))
        of_a, of_b, of_c = (split.weight[t, (i + k) % 3] for k in range(3))
        chain = [a, *inserted[first:last].tolist(), b]
        along = vertex[b] - vertex[a]
        share = (vertex[chain] - vertex[a]) @ along / (along @ along)
        mixed = (1.0 - share[:, None]) * of_a + share[:, None] * of_b
        for k in range(len(chain) - 1):
            triangle.append((chain[k], chain[k + 1], c))
            parent.append(split.parent[t])
            weight.append((mixed[k], mixed[k + 1], of_c))
    stays = np.ones(len(split.triangle), dtype=bool)
    stays[side // 3] = False
    return Split(np.concatenate([split.triangle[stays], np.array(triangle, np.int64)]),
                 np.concatenate([split.parent[stays], np.array(parent, np.int64)]),
                 np.concatenate([split.weight[stays], np.array(weight)]), split.n_split)
