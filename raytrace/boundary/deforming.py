"""The boundary of pieces that deform: corners stand on nodes, which have left their places at rest.

Symbols: X place at rest, u offset of a node, which is at X + u in the frame of its piece;
F = 1 + du/dX. Normals go by cof F, as areas do (Nanson's formula). Bump and texture stay at rest:
every triangle has a pose of its own that takes its points back there.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.faces import spans
from vfx.geometry.handoff.nodes import check_nodes, corner_nodes, element_corners, node_vertices
from vfx.geometry.handoff.open_faces import OpenFaces, open_faces
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid
from vfx.raytrace.boundary.visible import Boundary, Corners, fan_boundary


def deforming_boundary(device: Device, solid: Solid, faces: Faces, pieces: Pieces) -> Boundary:
    """Return the boundary of pieces whose nodes have offsets."""
    check_nodes(faces, pieces)
    chosen = open_faces(faces, pieces.fragment, pieces.crack_edge)
    count = np.diff(faces.start)[chosen.face]
    node = corner_nodes(pieces, len(faces.vertex), np.repeat(chosen.owner, count),
                        faces.corner[spans(faces.start[chosen.face], count)])
    place = faces.vertex[node_vertices(pieces, len(faces.vertex))] + pieces.node_offset
    corners = Corners(np.cumsum(count) - count, count, node.astype(np.int32), place)
    boundary = fan_boundary(device, solid, faces, pieces, chosen, corners,
                            _deformed_normals(faces, pieces))
    rest_pose = device.from_host(_rest_poses(device, faces, pieces, chosen, corners, boundary))
    return dataclasses.replace(boundary, rest_pose=rest_pose, is_rigid=False)


def fan_corners(start: Array, number: Array, reverse: Array) -> Array:
    """Return the corners (t, 3) int64 of triangles: the ``number``-th (t,) of fans at ``start``."""
    second, third = start + number + 1, start + number + 2
    corner: Array = np.stack([start, np.where(reverse, third, second),
                              np.where(reverse, second, third)], axis=1)
    return corner


def _rest_poses(device: Device, faces: Faces, pieces: Pieces, chosen: OpenFaces, corners: Corners,
                boundary: Boundary) -> Array:
    """Return (t, 12) float32: the poses that take the points of triangles back to rest."""
    face, pose = device.to_host(boundary.face), device.to_host(boundary.pose)
    number = np.arange(len(face)) - device.to_host(boundary.first)[face]
    reverse = chosen.reverse[face]
    rest = faces.vertex[faces.corner[fan_corners(
        faces.start[chosen.face][face], number, reverse)]]
    moved = pieces.node_offset[corners.corner[fan_corners(
        corners.start[face], number, reverse)]].any(axis=(1, 2))
    scene = device.to_host(boundary.triangle).astype(np.float64)

    # Two edges and the normal at rest (columns) go to those of the scene: X = M^T (x - p).
    frame_rest, is_flat_rest = _frames(rest)
    frame_scene, is_flat_scene = _frames(scene)
    # What has not moved, or has no area, goes with its piece.
    rigid = ~moved | is_flat_rest | is_flat_scene
    frame_rest[rigid] = frame_scene[rigid] = np.eye(3)
    back = frame_rest @ np.linalg.inv(frame_scene)
    forth = frame_scene @ np.linalg.inv(frame_rest)
    place = scene[:, 0] - np.einsum("tij,tj->ti", forth, rest[:, 0])
    own: Array = np.column_stack([
        np.swapaxes(back, 1, 2).reshape(-1, 9), place]).astype(np.float32)
    own[rigid] = pose[device.to_host(boundary.piece)[rigid]]
    return own


def _frames(triangle: Array) -> tuple[Array, Array]:
    """Return two edges and a unit normal (t, 3, 3) as columns, and which have no area (t,)."""
    one, two = triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]
    across = np.cross(one, two)
    area = np.linalg.norm(across, axis=1)
    is_flat = area <= 1e-9 * np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.stack([one, two, across / np.maximum(area, 1e-300)[:, None]], axis=2), is_flat


def _deformed_normals(faces: Faces, pieces: Pieces) -> Array:
    """Return the shading normals (cs, 3) float32 of deformed pieces, in their axes."""
    outer = slice(faces.start[faces.n_inner], len(faces.corner))
    shaded = np.flatnonzero(faces.normal.any(axis=1))
    if not len(shaded):
        return faces.normal
    element, vertex = element_corners(faces)
    node = corner_nodes(pieces, len(faces.vertex), element, vertex)
    used, own = np.unique(node[outer][shaded], return_inverse=True)
    gradient = _gradients(faces, pieces, element, vertex, node, used)[own]
    cofactor = np.stack([np.cross(gradient[:, (k + 1) % 3], gradient[:, (k + 2) % 3])
                         for k in range(3)], axis=1)
    rest = faces.normal[shaded].astype(np.float64)
    turned = np.einsum("cij,cj->ci", cofactor, rest)
    length = np.linalg.norm(turned, axis=1)
    # They are weighed against each other within a face: keep their lengths.
    scale = np.linalg.norm(rest, axis=1) / np.where(length > 0.0, length, 1.0)
    normal = faces.normal.copy()
    normal[shaded] = np.where((length > 0.0)[:, None], scale[:, None] * turned, rest)
    return normal


def _gradients(faces: Faces, pieces: Pieces, element: Array, vertex: Array, node: Array,
               used: Array) -> Array:
    """Return F (w', 3, 3) at the nodes ``used`` (w',), ascending.

    Of all elements around a node, the corners (q,) from their element's middle, before and after,
    say what F fits them best.
    """
    n = int(element.max()) + 1
    count = np.bincount(element, minlength=n)

    def from_middle(value: Array) -> Array:
        middle = np.stack([np.bincount(element, axis, n) for axis in value.T], axis=1)
        return np.asarray(value - (middle / np.maximum(count, 1)[:, None])[element])

    rest = from_middle(faces.vertex[vertex])
    offset = from_middle(pieces.node_offset[node].astype(np.float64))

    # Sum over the corners of each element, then over the elements at each node.
    row = np.minimum(np.searchsorted(used, node), len(used) - 1)
    at_node = np.flatnonzero(used[row] == node)
    row, around = row[at_node], element[at_node]

    def moments(left: Array) -> Array:
        total = np.empty((len(used), 3, 3))
        for i in range(3):
            for j in range(3):
                of_element = np.bincount(element, left[:, i] * rest[:, j], n)
                total[:, i, j] = np.bincount(row, of_element[around], len(used))
        return total

    spread = np.linalg.pinv(moments(rest), rcond=1e-12, hermitian=True)
    return np.asarray(np.eye(3) + moments(offset) @ spread)
