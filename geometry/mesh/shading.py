"""Shading normals of a mesh: those of its file where they make sense, smooth ones elsewhere."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array

#: Faces that meet at a greater angle [degrees] keep a sharp edge.
CREASE = 40.0
#: Faces at a creased vertex, above which each keeps its own normal: the tip of a cone, or the
#: middle of a disc, has as many as its rim has edges, and every pair of them would be compared.
MOST_FACES = 256


def corner_normals(vertex: Array, triangle: Array, given: Array | None) -> Array:
    """Return unit normals at the corners, (t, 3, 3) float32.

    ``given`` (t, 3, 3) are those of the file: turned where they point into the face, and
    replaced where they are zero or not finite. Without any, faces around a vertex that meet at
    less than CREASE share the mean of their normals, weighted by area.
    """
    corner = vertex[triangle]
    weighted = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    length = np.linalg.norm(weighted, axis=1)
    flat = weighted / np.where(length > 0.0, length, 1.0)[:, None]
    if given is None:
        normal = _smooth(len(vertex), triangle, weighted, flat)
    else:
        normal = np.nan_to_num(given.astype(np.float64), posinf=0.0, neginf=0.0)
        inward = np.einsum("tij,tj->ti", normal, flat) < 0.0
        normal[inward] *= -1.0
    size = np.linalg.norm(normal, axis=2)
    fallback = np.broadcast_to(flat[:, None, :], normal.shape)
    unit = np.where((size > 1e-200)[..., None], normal / np.maximum(size, 1e-200)[..., None],
                    fallback)
    return np.ascontiguousarray(unit, dtype=np.float32)


def _smooth(n_vertices: int, triangle: Array, weighted: Array, flat: Array) -> Array:
    """Return normals (t, 3, 3) smoothed over the faces around each vertex, creases kept."""
    at = triangle.ravel()
    mean = np.stack([np.bincount(at, weights=np.repeat(weighted[:, axis], 3),
                                 minlength=n_vertices) for axis in range(3)], axis=1)
    mean = mean / np.maximum(np.linalg.norm(mean, axis=1), 1e-300)[:, None]
    normal: Array = mean[triangle]
    # Where a face leans far from the mean, look at the faces around the vertex one by one.
    lean = np.einsum("tij,tj->ti", normal, flat) < np.cos(np.radians(0.5 * CREASE))
    creased = np.zeros(n_vertices, dtype=bool)
    creased[triangle[lean]] = True
    corners = np.flatnonzero(creased[at])
    corners = corners[np.argsort(at[corners], kind="stable")]
    smooth = normal.reshape(-1, 3)
    crowded = np.bincount(at, minlength=n_vertices)[at[corners]] > MOST_FACES
    smooth[corners[crowded]] = flat[corners[crowded] // 3]
    corners = corners[~crowded]
    if not len(corners):
        return normal
    start = np.searchsorted(at[corners], at[corners], side="left")
    count = np.searchsorted(at[corners], at[corners], side="right") - start
    row = np.repeat(np.arange(len(corners)), count)
    skip = start - (np.cumsum(count) - count)
    other = np.arange(len(row)) + np.repeat(skip, count)
    face, beside = corners[row] // 3, corners[other] // 3
    alike = np.einsum("ij,ij->i", flat[face], flat[beside]) >= np.cos(np.radians(CREASE))
    row, beside = row[alike], beside[alike]
    summed = np.stack([np.bincount(row, weights=weighted[beside, axis], minlength=len(corners))
                       for axis in range(3)], axis=1)
    smooth[corners] = summed
    return normal
