"""Which elements hang together around a vertex, once faces have opened.

Around a vertex of the faces, elements fall into groups joined by faces that are not open. That
tells where a crack parts anything (:mod:`vfx.geometry.handoff.open_faces`), how far it opens
(:mod:`vfx.geometry.handoff.crack_opening`) and which corners share a node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array, Faces


@dataclass(frozen=True)
class CornerGroups:
    """The groups around some vertices: of q corners of elements, and of c corners of faces.

    A corner of an element is one of its vertices, however many of its faces have it. Corners of
    faces are in the order of the faces.
    """

    element: Array     # (q,) int64: corners of elements, by element and vertex
    vertex: Array      # (q,) int64
    group: Array       # (q,) int32
    n_groups: int
    face: Array        # (c,) int64
    own: Array         # (c,) int64: row of the element on the first side of the face, among the q
    other: Array       # (c,) int64: of that on its second side; -1 on the surface


def corner_groups(faces: Faces, is_open: Array, around: Array | None = None) -> CornerGroups:
    """Return the groups around all vertices, or those where ``around`` (v,) is true.

    ``is_open`` (f,) says which faces are open.
    """
    from vfx.geometry.handoff.components import components

    n_vertices = np.int64(max(len(faces.vertex), 1))
    if around is None:
        face, vertex = np.repeat(np.arange(len(faces.side)), np.diff(faces.start)), faces.corner
    else:
        chosen = np.flatnonzero(around[faces.corner])
        face, vertex = np.searchsorted(faces.start, chosen, side="right") - 1, faces.corner[chosen]
    inner = face < faces.n_inner
    first = faces.side[face, 0] * n_vertices + vertex
    second = faces.side[face[inner], 1] * n_vertices + vertex[inner]
    key, row = np.unique(np.concatenate([first, second]), return_inverse=True)
    own, other = row[:len(face)], np.full(len(face), -1, np.int64)
    other[inner] = row[len(face):]
    holds = inner & ~is_open[face]
    n_groups, group = components(len(key), np.column_stack([own[holds], other[holds]]))
    element, vertex = np.divmod(key, n_vertices)
    return CornerGroups(element, vertex, group, n_groups, face, own, other)
