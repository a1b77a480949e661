"""What the outside of a shell shows: normals, texture coordinates and triangles of its mesh."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.distance import DistanceTree

#: Share of the way from a corner to the middle of its face at which the mesh is looked up, so
#: that a corner on a sharp edge or a seam gets the side that its face is on.
_INWARD = 0.02
#: How many times faster than on its triangle texture coordinates may change before it is a seam.
_SEAM_RATE = 4.0


def dress_faces(
    tree: DistanceTree, surface: Surface, corner: Array
) -> tuple[Array, Array, Array]:
    """Return normals (f, 3, 3), uv (f, 3, 2) and triangles (f,) of faces near the surface.

    ``corner`` (f, 3, 3) is in the axes and the size of the tree.
    """
    middle = corner.mean(axis=1, keepdims=True)
    place, triangle = _look_up(tree, middle[:, 0])
    probe = (corner + _INWARD * (middle - corner)).reshape(-1, 3)
    corner_place, corner_triangle = _look_up(tree, probe)

    vertex = _tree_corners(tree)
    weight = _barycentric(vertex[corner_triangle], corner_place)
    normal = np.einsum("ni,nij->nj", weight, surface.normal[corner_triangle].astype(np.float64))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-300
    uv = _mapped(surface, vertex, corner_triangle, corner_place)
    if surface.uv.any():
        _mend_seams(surface, vertex, triangle, place, corner, uv)
    return (normal.reshape(-1, 3, 3).astype(np.float32), uv.reshape(-1, 3, 2).astype(np.float32),
            triangle)


def _mend_seams(
    surface: Surface, vertex: Array, triangle: Array, place: Array, corner: Array, uv: Array
) -> None:
    """Let texture coordinates ``uv`` (3 f, 2) run on beyond a seam within a face, in place.

    A corner whose coordinates are farther from those of its face's middle ``place`` than the map
    of the triangle there can explain takes that map, as if its plane went on.
    """
    around = vertex[triangle]
    length = np.linalg.norm(around - np.roll(around, 1, axis=1), axis=2)
    steps = surface.uv[triangle].astype(np.float64)
    rate = (np.linalg.norm(steps - np.roll(steps, 1, axis=1), axis=2)
            / np.maximum(length, 1e-300)).max(axis=1)
    way = np.linalg.norm(corner - place[:, None], axis=2).ravel()
    owner = np.repeat(np.arange(len(triangle)), 3)
    jump = np.linalg.norm(uv - _mapped(surface, vertex, triangle, place)[owner], axis=1)
    beyond = np.flatnonzero(jump > _SEAM_RATE * rate[owner] * way)
    uv[beyond] = _mapped(
        surface, vertex, triangle[owner[beyond]], corner.reshape(-1, 3)[beyond])


def _mapped(surface: Surface, vertex: Array, triangle: Array, point: Array) -> Array:
    """Return the texture coordinates (n, 2) of points in the planes of triangles."""
    weight = _barycentric(vertex[triangle], point)
    return np.asarray(np.einsum("ni,nij->nj", weight, surface.uv[triangle].astype(np.float64)))


def _look_up(tree: DistanceTree, point: Array) -> tuple[Array, Array]:
    """Return the nearest points (n, 3) of the mesh and their triangles (n,)."""
    device = tree.device
    place, triangle = tree.nearest(device.from_host(point))
    return device.to_host(place), device.to_host(triangle)


def _tree_corners(tree: DistanceTree) -> Array:
    """Return the corners (t, 3, 3) of the triangles of the tree, in the order of the mesh."""
    device = tree.device
    corner = np.empty((tree.n_triangles, 3, 3))
    corner[device.to_host(tree.triangle)] = device.to_host(tree.corner)
    return corner


def _barycentric(corner: Array, point: Array) -> Array:
    """Return the weights (n, 3) of the corners (n, 3, 3) at points, in the plane of each."""
    a = corner[:, 0]
    ab, ac, ap = corner[:, 1] - a, corner[:, 2] - a, point - a
    normal = np.cross(ab, ac)
    square = (normal**2).sum(axis=1)
    scale = 1.0 / np.where(square > 0.0, square, 1.0)
    c = (np.cross(ab, ap) * normal).sum(axis=1) * scale
    b = (np.cross(ap, ac) * normal).sum(axis=1) * scale
    return np.stack([1.0 - b - c, b, c], axis=1)
