"""Sort particles into clusters of eight lanes: along a kD-tree, or along the rows of a grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array

LANES = 8


@dataclass
class Layout:
    """Which particle stands in which lane, and where its sums are collected.

    ``particle`` is (C, 8) int64 with -1 for padding. A cluster's force is the sum of its
    sources ``source[source_start[c]:source_start[c + 1]]``, in that order: where among the
    slots' floats the first component's lanes begin, and the stride to the next. ``unit`` [m]
    is that of the fixed-point displacement, of which component k of cluster c begins at
    ``c * cluster_stride + k * axis_stride``.
    """

    particle: Array         # (C, 8) int64
    source_start: Array     # (C + 1,) int32
    source: Array           # (s, 2) int64
    n_slot_floats: int
    spacing: float          # [m]: how far apart neighbours typically stand
    unit: float
    cluster_stride: int
    axis_stride: int

    @property
    def n_clusters(self) -> int:
        """Number of clusters C."""
        return len(self.particle)

    def scatter(self, value: Array, fill: float = 0.0) -> Array:
        """Bring (n,) particle values to (C, 8), (n, 3) to (C, 3, 8)."""
        inside = self.particle >= 0
        result = np.full((*self.particle.shape, *value.shape[1:]), fill, value.dtype)
        result[inside] = value[self.particle[inside]]
        return np.ascontiguousarray(np.moveaxis(result, 2, 1)) if value.ndim == 2 else result

    def gather(self, value: Array) -> Array:
        """Undo :meth:`scatter`."""
        lanes = np.moveaxis(value, 1, 2) if value.ndim == 3 else value
        inside = self.particle >= 0
        result = np.empty((int(inside.sum()), *lanes.shape[2:]), value.dtype)
        result[self.particle[inside]] = lanes[inside]
        return result

    def lane_of(self) -> Array:
        """Return the lane (8 c + l) of each particle, (n,) int64."""
        flat = self.particle.ravel()
        lane = np.empty(int((flat >= 0).sum()), np.int64)
        lane[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
        return lane


def order_particles(position: Array, part: Array) -> Array:
    """Return the particles of each cluster along a kD-tree, (C, 8) int64 with -1 for padding.

    A cluster never mixes parts, (n,) numbers.
    """
    rows = []
    by_part = np.argsort(part, kind="stable")
    for members in np.split(by_part, np.flatnonzero(np.diff(part[by_part])) + 1):
        order = members[kd_order(position[members])]
        padded = np.full(-(-len(order) // LANES) * LANES, -1, np.int64)
        padded[: len(order)] = order
        rows.append(padded.reshape(-1, LANES))
    return np.concatenate(rows)


def kd_order(position: Array) -> Array:
    """Return the permutation that sorts (n, 3) positions along a kD-tree with leaves of 8.

    Splitting again and again across the longest side, always at a multiple of eight, leaves
    clusters that are near cubes, and near particles near in memory. All segments of a level
    are split at once: sort by (segment, coordinate along the segment's longest side), then cut
    each segment in the middle.
    """
    n = len(position)
    order = np.arange(n)
    start = np.array([0, n])
    while True:
        size = np.diff(start)
        if (size <= LANES).all():
            return order
        x = position[order]
        low = np.minimum.reduceat(x, start[:-1], axis=0)
        high = np.maximum.reduceat(x, start[:-1], axis=0)
        axis = np.argmax(high - low, axis=1)
        segment = np.repeat(np.arange(len(size)), size)
        along = x[np.arange(n), axis[segment]]
        order = order[np.lexsort((along, segment))]
        middle = start[:-1] + (size // LANES + 1) // 2 * LANES
        start = np.unique(np.concatenate([start, middle[size > LANES]]))
