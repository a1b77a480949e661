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
from vfx.geometry.handoff.types import Array

#: Cells that are looked at together, at most, to bound the memory.
_CELLS_AT_ONCE = 1 << 26
#: Cuts of columns from which volumes are estimated, at most, and columns along a side at least.
_MOST_CUTS = 100_000_000
_FEWEST_ACROSS = 16


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

    def wrong_height(self, column: int) -> float:
        """Return the middle of the longest part of a column that is wound below 0 or above 1."""
        first, last = self.device.to_host(self.start[column:column + 2]).tolist()
        height = self.device.to_host(self.height[first:last])
        winding = -np.cumsum(self.device.to_host(self.turns[first:last]))[:-1]
        length = np.where((winding < 0) | (winding > 1), np.diff(height), 0.0)
        longest = int(np.argmax(length))
        return float(0.5 * (height[longest] + height[longest + 1]))

    def cells_inside(self, z0: float, step: float, nz: int) -> Iterator[Array]:
        """Yield the cells (k, 3) int32 whose places z0 + k step are inside, in order."""
        # Columns beside the mesh have no cuts: those of the others still follow each other.
        every = self.device.to_host(self.start)
        busy = np.flatnonzero(np.diff(every))
        start = self.device.from_host(np.append(every[busy], every[-1]))
        at_once = max(1, _CELLS_AT_ONCE // nz)
        for first in range(0, len(busy), at_once):
            n = min(at_once, len(busy) - first)
            inside = self.device.xp.zeros((n, nz), np.uint8)
            self._module.fill_cuts(n, nz, z0, step, start[first:first + n + 1],
                                   self.height, self.turns, inside)
            column, z = np.nonzero(self.device.to_host(inside))
            x, y = np.divmod(busy[first + column], self.shape[1])
            yield np.column_stack([x, y, z]).astype(np.int32)

    @property
    def _module(self) -> Any:
        return self.device.module("geometry/inside/columns.cu")


def cut_columns(
    device: Device, vertex: Array, triangle: Array, *, origin: tuple[float, float], step: float,
    shape: tuple[int, int],
) -> Columns:
    """Cut columns at origin + (i, j) step by a mesh: vertex (v, 3), triangle (t, 3)."""
    module, xp = device.module("geometry/inside/columns.cu"), device.xp
    points = device.from_host(np.ascontiguousarray(vertex, dtype=np.float64))
    corners = device.from_host(np.ascontiguousarray(triangle, dtype=np.int32))
    n_columns = shape[0] * shape[1]
    count = xp.zeros(n_columns, np.int32)
    raster = device.struct("geometry/inside/columns.cu", "Raster", nx=shape[0], ny=shape[1],
                           x0=origin[0], y0=origin[1], step=step)
    module.count_crossings(len(triangle), raster, points, corners, count)
    start = np.zeros(n_columns + 1, np.int64)
    np.cumsum(device.to_host(count), out=start[1:])
    first = device.from_host(start)
    height = xp.zeros(int(start[-1]), np.float64)
    turns = xp.zeros(int(start[-1]), np.int32)
    filled = xp.zeros(n_columns, np.int32)
    module.list_crossings(len(triangle), raster, points, corners, first, filled, height, turns)
    module.sort_crossings(n_columns, first, height, turns)
    return Columns(device, shape, first, height, turns)


def wound_volumes(
    device: Device, vertex: Array, triangle: Array, n_across: int = 512
) -> tuple[float, float, Array | None]:
    """Return about the volume that a mesh winds around once, and that below 0 or above 1.

    From ``n_across`` columns along the longer side of the mesh's box, shifted off its walls.
    Third comes a place (3,) where the winding is wrong, or None.
    """
    low, high = vertex.min(axis=0), vertex.max(axis=0)
    size = high - low
    if not max(size[0], size[1]) > 0.0:
        return 0.0, 0.0, None
    # Where very many walls lie above each other, fewer columns have to do.
    a, b, c = (vertex[triangle[:, k], :2] for k in range(3))
    walls = 0.5 * np.abs((b - a)[:, 0] * (c - a)[:, 1] - (b - a)[:, 1] * (c - a)[:, 0]).sum()
    n_cuts = float(walls) * (n_across / float(max(size[0], size[1]))) ** 2
    n_across = max(_FEWEST_ACROSS, int(n_across * min(1.0, (_MOST_CUTS / max(n_cuts, 1.0)) ** 0.5)))
    step = float(max(size[0], size[1])) / n_across
    shape = (int(size[0] / step) + 1, int(size[1] / step) + 1)
    origin = (float(low[0]) + 0.4142 * step, float(low[1]) + 0.7321 * step)
    columns = cut_columns(device, vertex, triangle, step=step, shape=shape, origin=origin)
    once, wrong = columns.lengths()
    if not wrong.any():
        return float(once.sum()) * step**2, 0.0, None
    worst = int(np.argmax(wrong))
    x, y = divmod(worst, shape[1])
    place = np.array([origin[0] + x * step, origin[1] + y * step, columns.wrong_height(worst)])
    return float(once.sum()) * step**2, float(wrong.sum()) * step**2, place
