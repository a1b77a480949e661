"""How far cracks within pieces gape: a piece is rigid, so its cracks have no width of their own.

Symbols: n normal of an open face at rest, out of the element that it bounds; w width of the crack;
d displacement of the corners of the elements that hang together around a vertex.

Each side of a crack draws back by half of the width, d . n = -w/2 for each of its faces there, and
slides along the surface and along faces to other pieces, d . n = 0 for those; d is the least
square answer of least length. Around the tip of a crack all elements hang together, and d = 0: a
crack is a closed wedge of air that ends in a sharp edge. Both follow from the rest state and from
which faces are open, so that nothing moves from frame to frame until a crack grows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.corner_groups import corner_groups
from vfx.geometry.handoff.faces import face_normals, spans
from vfx.geometry.handoff.open_faces import are_open, faces_of_edges
from vfx.geometry.handoff.types import Array, Faces

#: Of the sum of n n^T of a group, directions with less than this share of the largest value count
#: for nothing: faces that are nearly parallel would ask for far ways to go.
_LEAST_SHARE = 0.05
#: No corner goes farther than so many half widths.
_FARTHEST = 2.0


@dataclass(frozen=True)
class Opening:
    """Where the corners of elements along cracks are, in rest axes: p places for s of them."""

    key: Array          # (s,) int64: element * v + vertex, ascending
    row: Array          # (s,) int32: place of each; those that hang together have one
    place: Array        # (p, 3) float64 [m]

    def corners(self, n_vertices: int, element: Array, vertex: Array) -> Array:
        """Return rows (q,) int64 among the vertices and, behind them, the places."""
        row: Array = vertex.astype(np.int64)
        if not len(self.key):
            return row
        wanted = element * np.int64(n_vertices) + vertex
        at = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where(self.key[at] == wanted, n_vertices + self.row[at], row)


def open_cracks(faces: Faces, piece: Array, crack_edge: Array, width: Array) -> Opening:
    """Return where corners go when the cracks ``crack_edge`` (e,) open.

    ``piece`` (n,) is the piece of each element, ``width`` (n,) [m] what a crack there has. Without
    a width, corners stay in place, but each side of a crack has its own.
    """
    if not len(crack_edge):
        return Opening(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, 3)))
    crack = faces_of_edges(faces, crack_edge)
    around = np.zeros(len(faces.vertex), bool)
    around[faces.corner[spans(faces.start[crack], np.diff(faces.start)[crack])]] = True
    is_open = are_open(faces, piece, crack_edge)
    groups = corner_groups(faces, is_open, around)

    # The narrowest crack at a vertex counts for all sides.
    is_crack = np.zeros(len(faces.side), bool)
    is_crack[crack] = True
    at_crack = np.flatnonzero(is_crack[groups.face])
    half = np.full(len(faces.vertex), np.inf)
    np.minimum.at(half, groups.vertex[groups.own[at_crack]],
                  0.5 * width[faces.side[groups.face[at_crack]]].min(axis=1))

    # What each group asks for: a row for either side of each of its open faces.
    chosen = np.flatnonzero(is_open[groups.face])
    back = chosen[groups.other[chosen] >= 0]
    face = np.concatenate([groups.face[chosen], groups.face[back]])
    row = np.concatenate([groups.own[chosen], groups.other[back]])
    area = _rows_of(faces, face)
    normal = area / np.maximum(np.linalg.norm(area, axis=1, keepdims=True), 1e-300)
    normal[len(chosen):] *= -1.0
    wanted = np.where(is_crack[face], -half[groups.vertex[row]], 0.0)
    moved = _displacements(groups.group[row], groups.n_groups, normal, wanted, is_crack[face])

    vertex = np.zeros(groups.n_groups, np.int64)
    vertex[groups.group] = groups.vertex
    key = groups.element * np.int64(len(faces.vertex)) + groups.vertex
    return Opening(key, groups.group, faces.vertex[vertex] + moved)


def _rows_of(faces: Faces, face: Array) -> Array:
    """Return the area vectors (r, 3) of some faces, which may repeat."""
    some, own = np.unique(face, return_inverse=True)
    count = np.diff(faces.start)[some]
    part = Faces(
        vertex=faces.vertex, start=np.concatenate([[0], np.cumsum(count)]),
        corner=faces.corner[spans(faces.start[some], count)], side=faces.side[some],
        edge=faces.edge[:0], normal=faces.normal[:0], uv=faces.uv[:0], triangle=faces.triangle[:0])
    area: Array = face_normals(part)[own] if len(some) else np.zeros((0, 3))
    return area


def _displacements(group: Array, n_groups: int, normal: Array, wanted: Array,
                   is_crack: Array) -> Array:
    """Return d (n_groups, 3): the least squares answer to d . normal = wanted, row by row."""
    total, target = np.zeros((n_groups, 3, 3)), np.zeros((n_groups, 3))
    for i in range(3):
        target[:, i] = np.bincount(group, normal[:, i] * wanted, n_groups)
        for j in range(3):
            total[:, i, j] = np.bincount(group, normal[:, i] * normal[:, j], n_groups)
    asks = np.flatnonzero(target.any(axis=1))
    moved = np.zeros((n_groups, 3))
    moved[asks] = np.einsum("gij,gj->gi", np.linalg.pinv(
        total[asks], rcond=_LEAST_SHARE, hermitian=True), target[asks])
    limit = np.zeros(n_groups)
    np.maximum.at(limit, group, -_FARTHEST * wanted)
    length = np.linalg.norm(moved, axis=1)
    moved *= np.minimum(1.0, limit / np.maximum(length, 1e-300))[:, None]
    # What would go through the other side of a crack stays: sides never cross.
    across = is_crack & (np.einsum("ri,ri->r", normal, moved[group]) > 1e-9 * limit[group])
    moved[group[across]] = 0.0
    return moved
