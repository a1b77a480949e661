"""Points in the cells of a uniform grid, laid out cell by cell for search in kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device, Record
from vfx.geometry.handoff.types import Array

#: Cells of the largest grid: objects that fill little of their box get larger cells.
MOST_CELLS = 32_000_000


@dataclass(frozen=True)
class PointGrid:
    """n points on their device, sorted by cell, as ``point_grid.cuh`` takes them."""

    struct: Record        # of these arrays, as kernels take it
    start: Any            # (cells + 1,) int32
    point: Any            # (n, 3) float64, cell by cell
    order: Any            # (n,) int32: index of the point at each place
    cell: float           # edge of a cell


def grid_points(
    device: Device, point: Any, lower: Array, upper: Array, cell: float, a_point: float = 4.0
) -> PointGrid:
    """Sort device points (n, 3) into cells no smaller than ``cell``, ``a_point`` cells a point.

    lower, upper (3,): a box that holds the points.
    """
    xp = device.xp
    n = len(point)
    extent = np.maximum(np.asarray(upper, float) - lower, 1e-300)
    most = min(a_point * n + 64.0, float(MOST_CELLS))
    cell = max(cell, float(extent.max()) * 1e-6)
    # Widen the cells until they are few enough; along short axes there is always one.
    while np.prod(np.floor(extent / cell) + 1.0) > most:
        cell *= 1.01 + 0.25 * min(1.0, np.log2(np.prod(extent / cell + 1.0) / most))
    shape = np.floor(extent / cell) + 1.0
    kernels = device.module("geometry/divide/point_grid.cu")
    n_cells = int(np.prod(shape))
    start = xp.zeros(n_cells + 1, xp.int32)
    order = xp.empty(n, xp.int32)
    placed = xp.empty((n, 3), xp.float64)
    nx, ny, nz = map(int, shape)
    x, y, z = map(float, lower)
    grid = device.struct("geometry/divide/point_grid.cuh", "PointGrid", nx=nx, ny=ny, nz=nz,
                         x=x, y=y, z=z, scale=1.0 / cell, start=start, point=placed)
    if n > 0:
        key = xp.empty(n, xp.int64)
        kernels.point_cell_keys(n, grid, point, key)
        key.sort()
        kernels.point_cell_starts(n, n_cells, key, point, order, placed, start)
    return PointGrid(grid, start, placed, order, cell)
