"""Where points of the matter are in other frames: corners of elements, nodes, and what is seen.

A point is known by its element, and on a piece that deforms by its place in a triangle: pieces
split and cracks part nodes from frame to frame, but elements and vertices at rest stay.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.nodes import corner_nodes, node_elements, node_vertices
from vfx.geometry.handoff.open_faces import open_faces
from vfx.geometry.handoff.types import Array, Faces, Pieces
from vfx.raytrace.boundary.deforming import fan_corners


def corner_places(faces: Faces, pieces: Pieces, element: Array, vertex: Array) -> Array:
    """Return where ``vertex`` (q,) of ``element`` (q,) is in the world, (q, 3) [m]."""
    place = faces.vertex[vertex]
    if not pieces.is_rigid:
        place = place + pieces.node_offset[corner_nodes(
            pieces, len(faces.vertex), element, vertex)]
    piece = np.searchsorted(pieces.id, pieces.fragment[element])
    return turned(pieces.rotation[piece], place) + pieces.translation[piece]


def offsets_toward(faces: Faces, pieces: Pieces, other: Pieces, rotation: Array,
                   translation: Array) -> Array:
    """Return the offsets (w, 3) float32 that put nodes of ``pieces`` where ``other`` has them.

    They are for poses ``rotation`` (k, 3, 3) and ``translation`` (k, 3) of the pieces.
    """
    vertex, element = node_vertices(pieces, len(faces.vertex)), node_elements(faces, pieces)
    piece = np.searchsorted(pieces.id, pieces.fragment[element])
    away = corner_places(faces, other, element, vertex) - translation[piece]
    own: Array = turned(np.swapaxes(rotation, 1, 2)[piece], away) - faces.vertex[vertex]
    return own.astype(np.float32)


def carried_points(faces: Faces, pieces: Pieces, following: Pieces, *, element: Array,
                   triangle: Array, point: Array) -> Array:
    """Return where points (q, 3) of pieces are in the frame ``following``, (q, 3) [m].

    ``element`` and ``triangle`` (q,) are those of the boundary that each is on.
    """
    # Triangles of rigid pieces with cracks are not those of their faces; there the pose must do.
    if pieces.is_rigid and (following.is_rigid or len(pieces.crack_edge)):
        now = np.searchsorted(pieces.id, pieces.fragment[element])
        then = np.searchsorted(following.id, following.fragment[element])
        offset = point - pieces.translation[now]
        rest = turned(np.swapaxes(pieces.rotation, 1, 2)[now], offset)
        return turned(following.rotation[then], rest) + following.translation[then]
    chosen = open_faces(faces, pieces.fragment, pieces.crack_edge)
    count = np.diff(faces.start)[chosen.face]
    first = np.cumsum(count - 2) - (count - 2)
    row = np.searchsorted(first, triangle, side="right") - 1
    corner = faces.corner[fan_corners(
        faces.start[chosen.face[row]], triangle - first[row], chosen.reverse[row])]
    here, there = (np.stack([corner_places(faces, frame, element, vertex) for vertex in corner.T],
                            axis=1) for frame in (pieces, following))
    moved: Array = point + np.einsum("qc,qci->qi", _weights(here, point), there - here)
    return moved


def turned(rotation: Array, vector: Array) -> Array:
    """Return rotation (k, 3, 3) times vector (k, 3)."""
    product: Array = np.einsum("kij,kj->ki", rotation, vector)
    return product


def _weights(triangle: Array, point: Array) -> Array:
    """Return the weights (q, 3) of the corners of triangles (q, 3, 3) at points (q, 3) of them."""
    one, two = triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]
    away, across = point - triangle[:, 0], np.cross(one, two)
    scale = 1.0 / np.maximum((across * across).sum(axis=1), 1e-300)
    second = (np.cross(away, two) * across).sum(axis=1) * scale
    third = (np.cross(one, away) * across).sum(axis=1) * scale
    return np.stack([1.0 - second - third, second, third], axis=1)
