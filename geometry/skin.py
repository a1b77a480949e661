"""What the outside of a shell shows: normals, texture coordinates and triangles of its mesh."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vfx.geometry.distance import DistanceTree
from vfx.geometry.elements import Surface
from vfx.geometry.handoff import Array

#: Share of the way from a corner to the middle of its face at which the mesh is looked up, so
#: that a corner on a sharp edge or a seam gets the side that its face is on.
_INWARD = 0.02


def dress_faces(
    tree: DistanceTree, surface: Surface, corner: Array
) -> tuple[Array, Array, Array]:
    """Return normals (f, 3, 3), uv (f, 3, 2) and triangles (f,) of faces near the surface.

    ``corner`` (f, 3, 3) is in the axes and the size of the tree.
    """
    middle = corner.mean(axis=1, keepdims=True)
    _, triangle = _look_up(tree, middle[:, 0])
    probe = (corner + _INWARD * (middle - corner)).reshape(-1, 3)
    corner_place, corner_triangle = _look_up(tree, probe)

    vertex = _tree_corners(tree)
    weight = _barycentric(vertex[corner_triangle], corner_place)
    normal = np.einsum("ni,nij->nj", weight, surface.normal[corner_triangle].astype(np.float64))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-300
    uv = np.einsum("ni,nij->nj", weight, surface.uv[corner_triangle].astype(np.float64))

    if surface.uv.any():
        # A corner beyond a seam takes the plane map of the triangle under the face's middle.
        chart = uv_charts(surface)
        owner = np.repeat(triangle, 3)
        beyond = np.flatnonzero(chart[owner] != chart[corner_triangle])
        weight = _barycentric(vertex[owner[beyond]], corner.reshape(-1, 3)[beyond])
        uv[beyond] = np.einsum("ni,nij->nj", weight, surface.uv[owner[beyond]].astype(np.float64))
    return (normal.reshape(-1, 3, 3).astype(np.float32), uv.reshape(-1, 3, 2).astype(np.float32),
            triangle)


def uv_charts(surface: Surface) -> Array:
    """Return the chart (t,) of each triangle: charts meet where texture coordinates jump."""
    triangle, uv = surface.triangle, surface.uv
    n = len(triangle)
    side = np.array([[0, 1], [1, 2], [2, 0]])
    ends = triangle[:, side].reshape(-1, 2).astype(np.int64)
    end_uv = uv[:, side].reshape(-1, 2, 2)
    turned = ends[:, 0] > ends[:, 1]
    ends[turned] = ends[turned][:, ::-1]
    end_uv[turned] = end_uv[turned][:, ::-1]
    key = ends[:, 0] << 32 | ends[:, 1]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    first, second = order[same], order[same + 1]
    joined = np.abs(end_uv[first] - end_uv[second]).max(axis=(1, 2)) < 1e-6
    pair = np.stack([first, second], axis=1)[joined] // 3
    graph = coo_array((np.ones(len(pair), np.int8), (pair[:, 0], pair[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph.tocsr(), directed=False)[1])


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
