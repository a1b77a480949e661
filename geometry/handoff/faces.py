"""Faces of all the elements of a solid, whatever their kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfx.geometry.handoff.cube_faces import grid_faces
from vfx.geometry.handoff.types import Array, Faces, Solid

__all__ = ["Faces", "all_faces", "empty_faces", "face_normals", "join_faces", "lowest_corners"]

_FACES_AT_ONCE = 1 << 18


def all_faces(solid: Solid) -> Faces:
    """Return the faces of every element: of cubes from their cells, of others as stored."""
    parts = [faces for faces in (grid_faces(solid), solid.stored_faces) if len(faces.side)]
    return join_faces(parts)


def empty_faces() -> Faces:
    """Return no faces at all."""
    return Faces(
        vertex=np.zeros((0, 3)), start=np.zeros(1, np.int64), corner=np.zeros(0, np.int32),
        side=np.zeros((0, 2), np.int32), edge=np.zeros(0, np.int32),
        normal=np.zeros((0, 3), np.float32), uv=np.zeros((0, 2), np.float32),
        triangle=np.zeros(0, np.int32))


def join_faces(parts: Sequence[Faces]) -> Faces:
    """Return the faces of all ``parts``, inner ones first and in the order of their edges.

    The parts name the same elements and edges; no two have a face of one edge.
    """
    if not parts:
        return empty_faces()
    if len(parts) == 1:
        return parts[0]
    first_vertex = np.cumsum([0] + [len(part.vertex) for part in parts])
    count = np.concatenate([np.diff(part.start) for part in parts])
    start = np.concatenate([[0], np.cumsum(count)])
    corner = np.concatenate([part.corner + np.int32(base)
                             for part, base in zip(parts, first_vertex, strict=False)])
    side = np.concatenate([part.side for part in parts])
    edge = np.concatenate([part.edge for part in parts])
    n_faces = [len(part.side) for part in parts]
    is_inner = np.concatenate([np.arange(n) < part.n_inner
                               for n, part in zip(n_faces, parts, strict=True)])
    inner = np.flatnonzero(is_inner)
    by_edge = np.argsort(edge, kind="stable")
    order = np.concatenate([inner[by_edge], np.flatnonzero(~is_inner)])
    return Faces(
        vertex=np.concatenate([part.vertex for part in parts]),
        start=np.concatenate([[0], np.cumsum(count[order])]),
        corner=corner[spans(start[order], count[order])],
        side=side[order], edge=edge[by_edge],
        normal=np.concatenate([part.normal for part in parts]),
        uv=np.concatenate([part.uv for part in parts]),
        triangle=np.concatenate([part.triangle for part in parts]))


def spans(start: Array, count: Array) -> Array:
    """Return start[0], start[0] + 1, ... (count[0] of them), then those of start[1], and so on."""
    first = np.cumsum(count) - count
    return np.repeat(start - first, count) + np.arange(int(count.sum()))


def face_normals(faces: Faces) -> Array:
    """Return the area vectors of the faces, (f, 3) [m^2]: normal times area."""
    area = np.empty((len(faces.side), 3))
    # So many faces at a time that the corners' vectors take little room.
    for low in range(0, len(area), _FACES_AT_ONCE):
        start = faces.start[low : low + _FACES_AT_ONCE + 1]
        first = start[:-1] - start[0]
        corner = faces.vertex[faces.corner[start[0] : start[-1]]]
        corner -= np.repeat(corner[first], np.diff(start), axis=0)
        following = np.arange(len(corner)) + 1
        following[start[1:] - start[0] - 1] = first
        x, y, z = corner.T
        xx, yy, zz = corner[following].T
        for axis, cross in enumerate((y * zz - z * yy, z * xx - x * zz, x * yy - y * xx)):
            area[low : low + len(first), axis] = 0.5 * np.add.reduceat(cross, first)
    return area


def lowest_corners(faces: Faces, n_elements: int) -> Array:
    """Return the height y of the lowest corner of each element, (n,) [m]; inf without faces."""
    lowest = np.full(n_elements, np.inf)
    if len(faces.side):
        height = np.minimum.reduceat(faces.vertex[faces.corner, 1], faces.start[:-1])
        np.minimum.at(lowest, faces.side[:, 0], height)
        inner = slice(0, faces.n_inner)
        np.minimum.at(lowest, faces.side[inner, 1], height[inner])
    return lowest
