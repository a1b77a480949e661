"""Winding numbers of very many points in one closed surface.

A winding number is counted along a half-line parallel to an axis: triangles that it
leaves the solid through, less those that it enters by. Triangles are listed in columns along
the axis. Whether a triangle covers the half-line is decided by comparisons that its
neighbours make with the very same numbers (``triangle_covers`` in ``columns.cuh``), so that no
half-line slips through an edge, or meets it twice. Two axes are counted, and the third decides
where they differ: a mesh that is not quite closed has errors along single lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import Device

#: Columns along each axis of the grid of columns.
MOST_COLUMNS = 2048
#: Entries a triangle that long triangles may cause before the columns are made wider.
MOST_ENTRIES = 24


class WindingNumbers:
    """Counts winding numbers of points in one surface; keeps the columns between calls."""

    def __init__(self, device: Device, vertex: Any, triangle: Any) -> None:
        """Take device arrays: ``vertex`` (v, 3) float64 and ``triangle`` (t, 3) int32."""
        self.device = device
        self.corner = device.xp.ascontiguousarray(vertex[triangle])
        self._columns: dict[int, Columns] = {}

    def along(self, axis: int, point: Any) -> Any:
        """Return winding numbers (n,) int32 of device points (n, 3), counted along one axis."""
        return self.columns(axis).winding(point)

    def columns(self, axis: int) -> Columns:
        """Return the triangles by columns along an axis."""
        if axis not in self._columns:
            self._columns[axis] = Columns(self.device, axis, self.corner)
        return self._columns[axis]

    def of(self, point: Any) -> Any:
        """Return winding numbers (n,) int32 of device points (n, 3) float64."""
        xp = self.device.xp
        winding = self.along(2, point)
        second = self.along(0, point)
        differs = xp.flatnonzero(winding != second)
        if len(differs) > 0:
            first, second = winding[differs], second[differs]
            third = self.along(1, xp.ascontiguousarray(point[differs]))
            # The middle one of three.
            winding[differs] = xp.maximum(
                xp.minimum(first, second), xp.minimum(xp.maximum(first, second), third))
        return winding


class Columns:
    """Triangles by the columns along one axis that they may touch."""

    def __init__(self, device: Device, axis: int, corner: Any) -> None:
        xp = device.xp
        kernels = device.module("geometry/inside/points.cu")
        self.device = device
        u, v = (axis + 1) % 3, (axis + 2) % 3
        lower, upper = corner.min(axis=(0, 1)), corner.max(axis=(0, 1))
        lower_u, lower_v = float(lower[u]), float(lower[v])
        extent = max(float(upper[u]) - lower_u, float(upper[v]) - lower_v, 1e-300)
        n = len(corner)
        cells = int(min(max(np.sqrt(2.0 * n), 8.0), MOST_COLUMNS))
        while True:
            scale = cells / extent
            cells_u = int(min(cells, (float(upper[u]) - lower_u) * scale + 1.0))
            cells_v = int(min(cells, (float(upper[v]) - lower_v) * scale + 1.0))
            grid = device.struct(
                "geometry/inside/columns.cuh", "ColumnGrid", axis=axis, cells_u=cells_u,
                cells_v=cells_v, lower_u=lower_u, lower_v=lower_v, scale=scale)
            count = xp.empty(n, xp.int32)
            kernels.count_columns(n, grid, corner, count)
            end = xp.cumsum(count, dtype=xp.int64)
            if int(end[-1]) <= MOST_ENTRIES * n + 1_000_000 or cells <= 8:
                break
            cells //= 2
        key = xp.empty(int(end[-1]), xp.int64)
        kernels.fill_columns(n, grid, corner, end, count, key)
        key.sort()
        n_columns = cells_u * cells_v
        self.start = xp.searchsorted(key, xp.arange(n_columns + 1, dtype=xp.int64) * n)
        self.column_triangle = (key % n).astype(xp.int32)
        self.grid, self.corner = grid, corner

    def winding(self, point: Any) -> Any:
        """Return winding numbers (n,) of points (n, 3)."""
        winding = self.device.xp.empty(len(point), self.device.xp.int32)
        self.device.module("geometry/inside/points.cu").column_winding(
            len(point), self.grid, self.corner, self.start, self.column_triangle, point, winding)
        return winding
