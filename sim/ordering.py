"""Sort particles into compact clusters of eight, along a kD-tree.

Splitting a body again and again across its longest side, always at a multiple of eight,
leaves clusters that are near cubes and an order in which near particles are near in memory.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff import Array

LANES = 8


def order_particles(position: Array, body: Array) -> tuple[Array, Array]:
    """Return (slot_of_cluster, count): the particles of each cluster.

    ``slot_of_cluster`` is (n_clusters, 8) int64, particle indices with -1 for padding at the
    end of a cluster; ``count`` is (n_clusters,) int32. A cluster never mixes bodies.
    """
    rows = []
    for number in np.unique(body):
        members = np.flatnonzero(body == number)
        order = members[kd_order(position[members])]
        padded = np.full(-(-len(order) // LANES) * LANES, -1, np.int64)
        padded[: len(order)] = order
        rows.append(padded.reshape(-1, LANES))
    slot = np.concatenate(rows)
    return slot, (slot >= 0).sum(1).astype(np.int32)


def kd_order(position: Array) -> Array:
    """Return the permutation that sorts (n, 3) positions along a kD-tree with leaves of 8.

    All segments of a level are split at once: sort by (segment, coordinate along the
    segment's longest side), then cut each segment in the middle, at a multiple of 8.
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
