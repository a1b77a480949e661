"""Faces of cubes on a lattice, and where its points stand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array, Faces, Solid


def grid_faces(solid: Solid) -> Faces:
    """Return every face of every cube once; neighbours share their vertices.

    There is one inner face for each edge between cubes, in their order. The outer faces
    follow, for -x, +x, -y, +y, -z, +z in turn, each in order of the elements.
    """
    is_cube = (solid.kind == "grid")[solid.body]
    inner = np.flatnonzero(is_cube[solid.edge[:, 0]]).astype(np.int32)
    edge = solid.edge[inner]
    inner_axis = np.argmax(solid.cell[edge[:, 1]] != solid.cell[edge[:, 0]], axis=1)
    has_face = np.broadcast_to(is_cube, (3, 2, solid.n_elements)).copy()
    has_face[inner_axis, 0, edge[:, 1]] = False
    has_face[inner_axis, 1, edge[:, 0]] = False
    outer_axis, outer_up, outer = np.nonzero(has_face)

    side = np.full((len(inner_axis) + len(outer), 2), -1, dtype=np.int32)
    side[:len(inner_axis)] = edge
    side[len(inner_axis):, 0] = outer
    axis = np.concatenate([inner_axis, outer_axis])
    up = np.concatenate([np.ones_like(inner_axis), outer_up])

    # Look corners up in each body's table of lattice points, so that they are shared exactly.
    lattice, first, stride = _corner_lattice(solid)
    corner_offset = _face_corner_offsets()[axis, up]                       # (f, 4, 3)
    body = solid.body[side[:, 0]]
    base = first[body] + (solid.cell[side[:, 0]] * stride[body]).sum(axis=1)
    index = base[:, None] + (corner_offset * stride[body][:, None, :]).sum(axis=2)
    # A mesh fills a part of its lattice only.
    used = np.zeros(len(lattice), dtype=bool)
    used[index] = True
    index = (np.cumsum(used) - 1)[index]
    return Faces(
        vertex=lattice[used], start=4 * np.arange(len(side) + 1, dtype=np.int64),
        corner=index.astype(np.int32).ravel(), side=side, edge=inner,
        normal=np.zeros((4 * len(outer), 3), np.float32),
        uv=np.zeros((4 * len(outer), 2), np.float32),
        triangle=np.full(len(outer), -1, np.int32))


def box_cells(shape: tuple[int, int, int]) -> Array:
    """Return the grid index of every cube, (n, 3) int32, z fastest."""
    return np.ascontiguousarray(np.indices(shape, dtype=np.int32).reshape(3, -1).T)


def lattice_points(offset: Array, spacing: float, axes: Array, origin: Sequence[float]) -> Array:
    """Return origin + axes @ (spacing * offset) for offsets (n, 3), row by row alike."""
    return turned(offset * spacing, axes) + np.asarray(origin, dtype=np.float64)


def lattice_origin(solid: Solid, first: Array) -> Array:
    """Return where each body's lattice point (0, 0, 0), a corner of its box, lies: (b, 3)."""
    offset = (solid.cell[first] + 0.5) * solid.length_scale[:, None]
    return np.asarray(solid.position[first] - np.einsum("bij,bj->bi", solid.orientation, offset))


def _corner_lattice(solid: Solid) -> tuple[Array, Array, Array]:
    """Return all cube corners of all bodies (l, 3), and ``first`` (b,), ``stride`` (b, 3).

    Corner (i, j, k) of a body stands at ``first[body] + stride[body] @ (i, j, k)``.
    """
    n_bodies = len(solid.length_scale)
    start = np.searchsorted(solid.body, np.arange(n_bodies + 1))
    origin = lattice_origin(solid, start[:-1])
    points, first, stride = [], [0], []
    for b in range(n_bodies):
        nx, ny, nz = (int(c) + 2 for c in solid.cell[start[b]:start[b + 1]].max(axis=0))
        points.append(lattice_points(box_cells((nx, ny, nz)), float(solid.length_scale[b]),
                                      solid.orientation[b], origin[b]))
        first.append(first[-1] + nx * ny * nz)
        stride.append((ny * nz, nz, 1))
    return np.concatenate(points), np.array(first[:-1]), np.array(stride)


def _face_corner_offsets() -> Array:
    """Return the lattice offsets of a face's corners, (axis, down/up, 4, 3), anticlockwise."""
    offset = np.zeros((3, 2, 4, 3), dtype=np.int64)
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        offset[axis, :, :, u] = [0, 1, 1, 0]
        offset[axis, :, :, v] = [0, 0, 1, 1]
        offset[axis, 1, :, axis] = 1
        offset[axis, 0] = offset[axis, 0, ::-1]
    return offset
