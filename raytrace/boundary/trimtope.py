"""Trimtopes by constructive geometry, as levine-2014 section 5 renders them: a reference.

A trimtope is a Voronoi cell cut by the triangles of the object's surface that cross it. A ray is
clipped by the cell's planes; then figure 4 decides:

- C: it meets a triangle that faces it first: that is the hit.
- D: it meets a triangle that faces away first: it was inside already, and its entry is the hit.
- it meets none: a second ray from the entry to the Voronoi site, which is inside the object, tells
  whether the entry is outside (A, a miss: that ray meets a facing triangle first) or inside (B).

The nearest triangle decides in all cases, so that a cell may hold several sheets. Every ray tries
every cell, in double precision: this is to check the boundary faces that are rendered instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array


@dataclass(frozen=True)
class Trimtopes:
    """c cells: their planes and the mesh's triangles that may cross them."""

    site: Array             # (c, 3) float64 [m]: inside of the object
    plane_start: Array      # (c + 1,) int32
    plane: Array            # (p, 4) float64: unit normal and offset; normal . x <= offset inside
    triangle_start: Array   # (c + 1,) int32
    triangle: Array         # (t, 3, 3) float64 [m]


def voronoi_trimtopes(site: Array, cells: Array, triangle: Array, reach: float) -> Trimtopes:
    """Return the ``cells`` (c,) of all sites (n, 3) cut by the mesh ``triangle`` (t, 3, 3).

    A plane stands between a site and every other one within twice ``reach`` [m], which no cell
    extends beyond; a triangle counts where its box comes within ``reach`` of the site.
    """
    site, triangle = np.asarray(site, float), np.asarray(triangle, float)
    low, high = triangle.min(axis=1), triangle.max(axis=1)
    planes, triangles = [], []
    for cell in cells:
        own = site[cell]
        apart = site - own
        distance = np.linalg.norm(apart, axis=1)
        near = np.flatnonzero((distance > 0.0) & (distance < 2.0 * reach))
        normal = apart[near] / distance[near, None]
        offset = np.einsum("pi,pi->p", normal, 0.5 * (site[near] + own))
        planes.append(np.column_stack([normal, offset]))
        gap = np.maximum(np.maximum(low - own, own - high), 0.0)
        triangles.append(triangle[np.linalg.norm(gap, axis=1) <= reach])
    return Trimtopes(
        site[cells], *_lists(planes, (4,)), *_lists(triangles, (3, 3)))


def trimtope_hits(device: Device, cells: Trimtopes, origin: Array,
                  direction: Array) -> tuple[Array, Array, Array]:
    """Return distance (n,), inf for a miss, cell (n,), and whether (n,) the mesh itself is hit."""
    xp = device.xp
    n = len(origin)
    t: Any = xp.empty(n, xp.float64)
    cell: Any = xp.empty(n, xp.int32)
    on_mesh: Any = xp.empty(n, xp.int32)
    device.module("raytrace/boundary/trimtope.cu").trimtope_hits(
        n, len(cells.site), *(device.from_host(np.ascontiguousarray(array)) for array in (
            cells.site, cells.plane_start, cells.plane, cells.triangle_start, cells.triangle,
            np.asarray(origin, float), np.asarray(direction, float))), t, cell, on_mesh)
    return device.to_host(t), device.to_host(cell), device.to_host(on_mesh).astype(bool)


def _lists(parts: list[Array], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return where each part begins (c + 1,) int32, and all parts in one array."""
    start = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int32)
    return start, np.concatenate([*parts, np.zeros((0, *shape))])
