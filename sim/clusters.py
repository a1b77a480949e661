"""Find the bonds of any set of particles, as pairs of 8-particle clusters.

Bonds join all pairs within the horizon delta (levine-2014 section 3) and all adjacent
elements. A pair of clusters holds a 64-bit mask of live bonds, as the cluster-pair lists of
molecular dynamics do (Páll & Hess 2013); each pair is stored once, with its first cluster.
Clusters are grouped into tiles, and a tile sums the forces of its pairs into slots of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from vfx.device import Device
from vfx.geometry.handoff import Array, Solid
from vfx.sim.ordering import LANES, Layout, order_particles

TILE_CLUSTERS = 64
HORIZON_TOLERANCE = 1e-6


@dataclass
class ClusterNetwork:
    """The network on the host; see the kernels of ``bonds.cu`` for the meaning of each array."""

    layout: Layout
    tile_start: Array       # (n_tiles + 1,) int32
    tile_slot: Array        # (n_tiles + 1,) int32
    pair_start: Array       # (n_clusters + 1,) int32
    pair_first: Array       # (n_pairs,) int32
    pair_second: Array      # (n_pairs,) int32
    pair_slot: Array        # (n_pairs,) int32
    pair_live: Array        # (n_pairs,) uint64: the bonds at the start
    pair_edge: Array        # (n_pairs,) uint64
    pair_edge_start: Array  # (n_pairs,) int32
    edge_number: Array      # (n_edges,) int64: the solid's edge behind each recorded one


def find_network(device: Device, solid: Solid, horizon: float) -> ClusterNetwork:
    """Find the bonds of a solid; ``horizon`` is delta in units of each body's lambda."""
    particle = order_particles(solid.position, solid.body)
    lane = np.empty(solid.n_particles, np.int64)
    lane[particle[particle >= 0]] = np.flatnonzero(particle.ravel() >= 0)

    edge_lane = np.sort(lane[solid.edge.reshape(-1, 2)], axis=1)
    first, second = candidate_pairs(solid, particle, horizon, edge_lane // LANES)
    live = find_bonds(device, solid, particle, horizon, first, second)

    # Join adjacent elements, however far apart their centres are.
    width = len(particle)
    key = first.astype(np.int64) * width + second
    at = np.searchsorted(key, (edge_lane[:, 0] // LANES) * width + edge_lane[:, 1] // LANES)
    bit = LANES * (edge_lane[:, 0] % LANES) + edge_lane[:, 1] % LANES
    edge = np.zeros(len(first), np.uint64)
    np.bitwise_or.at(edge, at, np.uint64(1) << bit.astype(np.uint64))
    live |= edge

    # Number the edges as the kernel counts them: by pair, then by bit.
    edge_number = np.lexsort((bit, at))
    edge_start = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(first)))[:-1]])

    keep = live != 0
    first, second, live, edge, edge_start = (
        array[keep] for array in (first, second, live, edge, edge_start))
    tile_start, tile_slot, pair_slot, source_start, source = lay_out_slots(
        len(particle), first, second)
    layout = Layout(
        particle=particle, source_start=source_start, n_slot_floats=4 * LANES * len(source),
        source=np.column_stack([4 * LANES * source, np.full(len(source), LANES)]),
        unit=displacement_unit(solid, horizon), cluster_stride=3 * LANES, axis_stride=LANES)
    return ClusterNetwork(
        layout=layout, tile_start=tile_start, tile_slot=tile_slot,
        pair_start=row_starts(first, len(particle)), pair_first=first, pair_second=second,
        pair_slot=pair_slot, pair_live=live, pair_edge=edge,
        pair_edge_start=edge_start.astype(np.int32), edge_number=edge_number)


def displacement_unit(solid: Solid, horizon: float) -> float:
    """Return the unit [m] of the fixed-point displacements, a power of two.

    A bond turned around by its ends' displacements still fits into 32 bits.
    """
    edge = solid.position[solid.edge[:, 0]] - solid.position[solid.edge[:, 1]]
    adjacent = math.sqrt((edge**2).sum(1).max(initial=0.0))
    longest = max(horizon * float(solid.length_scale.max()), adjacent)
    return float(2.0 ** math.ceil(math.log2(4.0 * longest / 2.0**31)))


def candidate_pairs(
    solid: Solid, particle: Array, horizon: float, edge_cluster: Array
) -> tuple[Array, Array]:
    """Return the pairs of clusters (first <= second, sorted) that may hold a bond."""
    inside = (particle >= 0)[..., None]
    position = solid.position[particle]
    low = np.where(inside, position, np.inf).min(1)
    high = np.where(inside, position, -np.inf).max(1)
    reach = horizon * float(solid.length_scale.max()) * (1 + HORIZON_TOLERANCE)
    near = near_boxes(low, high, reach)
    own = np.repeat(np.arange(len(particle))[:, None], 2, axis=1)
    body = solid.body[particle[:, 0]]
    pairs = np.concatenate([own, near[body[near[:, 0]] == body[near[:, 1]]], edge_cluster])
    pairs.sort(axis=1)
    width = len(particle)
    key = np.unique(pairs[:, 0].astype(np.int64) * width + pairs[:, 1])
    return (key // width).astype(np.int32), (key % width).astype(np.int32)


def near_boxes(low: Array, high: Array, reach: float) -> Array:
    """Return the pairs of boxes (n, 3) that are within ``reach`` of each other, (pairs, 2).

    A few boxes span a gap of the body and are far wider than the others. They are searched for
    apart: one radius for all would give every box thousands of neighbours.
    """
    center, radius = (low + high) / 2, np.sqrt(((high - low) ** 2).sum(1)) / 2
    usual = 1.25 * float(np.median(radius))
    slim, wide = np.flatnonzero(radius <= usual), np.flatnonzero(radius > usual)
    pairs = [slim[cKDTree(center[slim]).query_pairs(reach + 2 * usual, output_type="ndarray")]]
    for others, largest in ((slim, usual), (wide, float(radius.max()))):
        if len(wide) and len(others):
            found = cKDTree(center[others]).query_ball_point(
                center[wide], reach + radius[wide] + largest)
            count = [len(row) for row in found]
            second = others[np.concatenate(found).astype(np.int64)]
            pairs.append(np.stack([np.repeat(wide, count), second], axis=1))
    first, second = np.concatenate(pairs).T
    gap = np.zeros(len(first))
    for axis in range(3):
        apart = np.maximum(low[first, axis] - high[second, axis],
                           low[second, axis] - high[first, axis])
        gap += np.maximum(apart, 0.0) ** 2
    keep = (gap <= reach * reach) & (first != second)
    return np.stack([first[keep], second[keep]], axis=1)


def find_bonds(
    device: Device, solid: Solid, particle: Array, horizon: float, first: Array, second: Array
) -> Array:
    """Return the mask of particles within the horizon for each pair of clusters."""
    position = np.ascontiguousarray(np.moveaxis(solid.position[np.maximum(particle, 0)], 2, 1))
    count = (particle >= 0).sum(1).astype(np.int32)
    mask = device.xp.zeros(len(first), np.uint64)
    body = solid.body[particle[first, 0]]
    module = device.module("sim/bonds.cu")
    result = np.zeros(len(first), np.uint64)
    for number, length_scale in enumerate(solid.length_scale):
        reach = horizon * float(length_scale) * (1 + HORIZON_TOLERANCE)
        module.find_bonds(
            len(first), reach, device.from_host(first), device.from_host(second),
            device.from_host(count), device.from_host(position), mask)
        result = np.where(body == number, device.to_host(mask), result)
    return result


def row_starts(row: Array, n_rows: int) -> Array:
    """Return the (n_rows + 1,) int32 starts of sorted row numbers."""
    return np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int32)


def lay_out_slots(n_clusters: int, first: Array, second: Array) -> tuple[Array, ...]:
    """Give every tile a slot for each cluster that its pairs touch: its own first.

    Returns (tile_start, tile_slot, pair_slot, source_start, source).
    """
    n_tiles = -(-n_clusters // TILE_CLUSTERS)
    tile_start = np.minimum(np.arange(n_tiles + 1) * TILE_CLUSTERS, n_clusters)
    # A slot is a (tile, cluster) that occurs; sorted keys put a tile's own clusters first,
    # because its pairs only reach to later clusters.
    cluster = np.arange(n_clusters, dtype=np.int64)
    pair_key = (first.astype(np.int64) // TILE_CLUSTERS) * n_clusters + second
    own_key = (cluster // TILE_CLUSTERS) * n_clusters + cluster
    key = np.unique(np.concatenate([own_key, pair_key]))
    slot_tile, slot_cluster = key // n_clusters, key % n_clusters
    source = np.argsort(slot_cluster, kind="stable")
    return (tile_start.astype(np.int32), row_starts(slot_tile, n_tiles),
            np.searchsorted(key, pair_key).astype(np.int32),
            row_starts(slot_cluster[source], n_clusters), source)
