"""What lies inside a closed mesh, along columns of a regular lattice.

Every column along z is cut by the triangles of the mesh (``columns.cu``); from below, each cut
into the solid adds 1 to the winding number and each cut out of it takes 1 away. Over a closed
mesh that comes back to exactly 0 in every column, however the numbers round, so there are no
stray rows of cells. A place is inside where the winding number is above 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff import Array

#: Cells that are looked at together, at most, to bound the memory.
_CELLS_AT_ONCE = 1 << 26


@dataclass
class Columns:
    """The cuts of nx x ny columns with a mesh; arrays live on the device."""

    device: Device
    shape: tuple[int, int]
    start: Any                # (nx * ny + 1,) int64
    height: Any               # (k,) float64: ascending in each column
    turns: Any                # (k,) int32: -1 into the solid, 1 out of it

    def lengths(self) -> tuple[Array, Array]:
        """Return how much of each column is wound once, and how much below 0 or above 1.

        Both (nx * ny,) float64, in the unit of the mesh.
        """
        n = self.shape[0] * self.shape[1]
        once, wrong = (self.device.xp.zeros(n, np.float64) for _ in range(2))
        self._module.column_lengths(n, self.start, self.height, self.turns, once, wrong)
        return self.device.to_host(once), self.device.to_host(wrong)

    def cells_inside(self, z0: float, step: float, nz: int) -> Iterator[Array]:
        """Yield the cells (k, 3) int32 whose places z0 + k step are inside, in order."""
        n_columns = self.shape[0] * self.shape[1]
        at_once = max(1, _CELLS_AT_ONCE // nz)
        for first in range(0, n_columns, at_once):
            n = min(at_once, n_columns - first)
            inside = self.device.xp.zeros((n, nz), np.uint8)
            self._module.fill_cuts(n, nz, z0, step, self.start[first:first + n + 1],
                                   self.height, self.turns, inside)
            column, z = np.nonzero(self.device.to_host(inside))
            x, y = np.divmod(column + first, self.shape[1])
            yield np.column_stack([x, y, z]).astype(np.int32)

    @property
    def _module(self) -> Any:
        return self.device.module("geometry/columns.cu")


def cut_columns(
    device: Device, vertex: Array, triangle: Array, *, origin: tuple[float, float], step: float,
    shape: tuple[int, int],
) -> Columns:
    """Cut columns at origin + (i, j) step by a mesh: vertex (v, 3), triangle (t, 3)."""
    module, xp = device.module("geometry/columns.cu"), device.xp
    points = device.from_host(np.ascontiguousarray(vertex, dtype=np.float64))
    corners = device.from_host(np.ascontiguousarray(triangle, dtype=np.int32))
    n_columns = shape[0] * shape[1]
    count = xp.zeros(n_columns, np.int32)
    grid = (*shape, *origin, step)
    module.count_crossings(len(triangle), *grid, points, corners, count)
    start = np.zeros(n_columns + 1, np.int64)
    np.cumsum(device.to_host(count), out=start[1:])
    first = device.from_host(start)
    height = xp.zeros(int(start[-1]), np.float64)
    turns = xp.zeros(int(start[-1]), np.int32)
    filled = xp.zeros(n_columns, np.int32)
    module.list_crossings(len(triangle), *grid, points, corners, first, filled, height, turns)
    module.sort_crossings(n_columns, first, height, turns)
    return Columns(device, shape, first, height, turns)


def wound_volumes(
    device: Device, vertex: Array, triangle: Array, n_across: int = 512
) -> tuple[float, float]:
    """Return about the volume that a mesh winds around once, and that below 0 or above 1.

    From ``n_across`` columns along the longer side of the mesh's box, shifted off its walls.
    """
    low, high = vertex.min(axis=0), vertex.max(axis=0)
    size = high - low
    step = float(max(size[0], size[1])) / n_across
    if step == 0.0:
        return 0.0, 0.0
    shape = (int(size[0] / step) + 1, int(size[1] / step) + 1)
    columns = cut_columns(device, vertex, triangle, step=step, shape=shape,
                          origin=(float(low[0]) + 0.4142 * step, float(low[1]) + 0.7321 * step))
    once, wrong = columns.lengths()
    return float(once.sum()) * step**2, float(wrong.sum()) * step**2
