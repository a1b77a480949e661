"""Find the bonds of any set of particles, as pairs of 8-particle clusters.

Bonds join all pairs within the horizon delta (levine-2014 section 3) and all adjacent
elements, of the same part of a body. Where the length scale lambda is graded, the horizon of a
pair is that of its mean. A pair of clusters holds a 64-bit mask of live bonds, as the cluster-pair
lists of molecular dynamics do (Páll & Hess 2013); each pair is stored once, with its first cluster:
the one of the two with fewer bonded particles, because the kernels do a row of the mask at a time.
Clusters are grouped into tiles, and a tile sums the forces of its pairs into slots of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from vfx.device import Device
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.matter.ordering import LANES, Layout, order_particles
from vfx.sim.matter.parts import solid_parts

TILE_CLUSTERS = 64
HORIZON_TOLERANCE = 1e-6


@dataclass
class ClusterNetwork:
    """The network on the host; see the kernels of ``bonds.cu`` for the meaning of each array."""

    layout: Layout
    tile_start: Array       # (n_tiles + 1,) int32
    tile_slot: Array        # (n_tiles + 1,) int32
    own_slot: Array         # (n_clusters,) int32
    pair_start: Array       # (n_clusters + 1,) int32
    pair_first: Array       # (n_pairs,) int32
    pair_second: Array      # (n_pairs,) int32
    pair_slot: Array        # (n_pairs,) int32
    pair_live: Array        # (n_pairs,) uint64: the bonds at the start
    pair_edge: Array        # (n_pairs,) uint64
    pair_edge_start: Array  # (n_pairs,) int32
    edge_number: Array      # (n_edges,) int64: the solid's edge behind each recorded one


def find_network(
    device: Device, solid: Solid, horizon: float, part: Array | None = None
) -> ClusterNetwork:
    """Find the bonds of a solid; ``horizon`` is delta in units of each body's lambda.

    ``part`` (n,) is given where the solid is a subset: the part that each is of in the whole.
    """
    part = solid_parts(solid) if part is None else part
    particle = order_particles(solid.position, part)
    lane = np.empty(solid.n_elements, np.int64)
    lane[particle[particle >= 0]] = np.flatnonzero(particle.ravel() >= 0)

    edge_lane = np.sort(lane[solid.edge.reshape(-1, 2)], axis=1)
    first, second = candidate_pairs(solid, particle, part, horizon, edge_lane // LANES)
    live = find_bonds(device, solid, particle, horizon, first, second)

    # Join adjacent elements, however far apart their centres are.
    width = len(particle)
    key = first.astype(np.int64) * width + second
    at = np.searchsorted(key, (edge_lane[:, 0] // LANES) * width + edge_lane[:, 1] // LANES)
    bit = LANES * (edge_lane[:, 0] % LANES) + edge_lane[:, 1] % LANES
    edge = np.zeros(len(first), np.uint64)
    np.bitwise_or.at(edge, at, np.uint64(1) << bit.astype(np.uint64))
    live |= edge

    # Turn the pairs that get fewer rows by it, and put them where their first cluster is.
    across = transposed(live)
    turned = (first != second) & (count_rows(across) < count_rows(live))
    live, edge = np.where(turned, across, live), np.where(turned, transposed(edge), edge)
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    bit = np.where(turned[at], LANES * (bit % LANES) + bit // LANES, bit)
    order = np.lexsort((second, first))
    first, second, live, edge = (array[order] for array in (first, second, live, edge))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    at = place[at]

    # Number the edges as the kernel counts them: by pair, then by bit.
    edge_number = np.lexsort((bit, at))
    edge_start = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=len(first)))[:-1]])

    keep = live != 0
    first, second, live, edge, edge_start = (
        array[keep] for array in (first, second, live, edge, edge_start))
    tile_start, tile_slot, own_slot, pair_slot, source_start, source = lay_out_slots(
        len(particle), first, second)
    layout = Layout(
        particle=particle, source_start=source_start, n_slot_floats=4 * LANES * len(source),
        source=np.column_stack([4 * LANES * source, np.full(len(source), LANES)]),
        spacing=typical_spacing(solid, particle), unit=displacement_unit(solid, horizon),
        cluster_stride=3 * LANES, axis_stride=LANES)
    return ClusterNetwork(
        layout=layout, tile_start=tile_start, tile_slot=tile_slot, own_slot=own_slot,
        pair_start=row_starts(first, len(particle)), pair_first=first, pair_second=second,
        pair_slot=pair_slot, pair_live=live, pair_edge=edge,
        pair_edge_start=edge_start.astype(np.int32), edge_number=edge_number)


def displacement_unit(solid: Solid, horizon: float) -> float:
    """Return the unit [m] of the fixed-point displacements, a power of two.

    A bond turned around by its ends' displacements still fits into 32 bits.
    """
    edge = solid.position[solid.edge[:, 0]] - solid.position[solid.edge[:, 1]]
    adjacent = math.sqrt((edge**2).sum(1).max(initial=0.0))
    longest = max(horizon * float(solid.size.max(initial=0.0)), adjacent, 1e-300)
    return float(2.0 ** math.ceil(math.log2(displacement_grain(longest))))


def displacement_grain(longest: float) -> float:
    """Return how fine displacements in 32 bits are for bonds of a length, at best, in its unit.

    Of the horizon in lambda that is a stretch of neighbours.
    """
    return 4.0 * longest / 2.0**31


def typical_spacing(solid: Solid, particle: Array) -> float:
    """Return the median distance [m] to the nearest particle of the same cluster."""
    some = particle[:: max(1, len(particle) // 4096)]
    position = np.where((some >= 0)[..., None], solid.position[some], np.nan)
    apart = np.sqrt(((position[:, :, None] - position[:, None]) ** 2).sum(3))
    apart[:, np.arange(LANES), np.arange(LANES)] = np.nan
    nearest = np.fmin.reduce(apart, axis=2)
    known = nearest[np.isfinite(nearest)]
    return float(np.median(known)) if len(known) else float(solid.length_scale.min())


def candidate_pairs(
    solid: Solid, particle: Array, part: Array, horizon: float, edge_cluster: Array
) -> tuple[Array, Array]:
    """Return the pairs of clusters (first <= second, sorted) that may hold a bond."""
    inside = (particle >= 0)[..., None]
    position = solid.position[particle]
    low = np.where(inside, position, np.inf).min(1)
    high = np.where(inside, position, -np.inf).max(1)
    half = np.where(inside[..., 0], half_reach(solid, horizon)[particle], 0.0).max(1)
    near = near_boxes(low, high, half)
    own = np.repeat(np.arange(len(particle))[:, None], 2, axis=1)
    of = part[particle[:, 0]]
    pairs = np.concatenate([own, near[of[near[:, 0]] == of[near[:, 1]]], edge_cluster])
    pairs.sort(axis=1)
    width = len(particle)
    key = distinct(pairs[:, 0].astype(np.int64) * width + pairs[:, 1])
    return (key // width).astype(np.int32), (key % width).astype(np.int32)


def distinct(key: Array) -> Array:
    """Return the values of ``key`` in order, each once.

    Recent versions of ``np.unique`` look them up in a table before they sort them, which takes
    several times as long as the sorting.
    """
    ordered = np.sort(key)
    is_new = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]
    return np.asarray(ordered[is_new])


def half_reach(solid: Solid, horizon: float) -> Array:
    """Return half the horizon of each particle, (n,) [m]; two of them make that of a pair."""
    reach: Array = 0.5 * horizon * (1 + HORIZON_TOLERANCE) * solid.size
    return reach


def near_boxes(low: Array, high: Array, half: Array) -> Array:
    """Return the pairs of boxes closer than the sum of their ``half`` (n,), (k, 2).

    Boxes are sorted into classes by size, so that a few large ones (a cluster across a gap)
    do not widen the search for all others.
    """
    center = (low + high) / 2
    radius = np.sqrt(((high - low) ** 2).sum(1)) / 2 + half
    size = np.ceil(np.log2(np.maximum(radius / max(float(np.median(radius)), 1e-300), 0.5)) * 4)
    classes = [np.flatnonzero(size == number) for number in np.unique(size)]
    trees = [cKDTree(center[members]) for members in classes]
    largest = [float(radius[members].max()) for members in classes]
    found = []
    for i, one in enumerate(classes):
        for j, other in enumerate(classes[: i + 1]):
            limit = largest[i] + largest[j]
            if i == j:
                pair = trees[i].query_pairs(limit, output_type="ndarray")
                first, second = one[pair[:, 0]], one[pair[:, 1]]
            else:
                near = trees[i].sparse_distance_matrix(trees[j], limit, output_type="ndarray")
                first, second = one[near["i"]], other[near["j"]]
            gap = np.maximum(low[first] - high[second], low[second] - high[first])
            apart = (np.maximum(gap, 0.0) ** 2).sum(1)
            found.append(np.column_stack([first, second])[
                apart <= (half[first] + half[second]) ** 2])
    return np.concatenate(found)


def find_bonds(
    device: Device, solid: Solid, particle: Array, horizon: float, first: Array, second: Array
) -> Array:
    """Return the mask of particles within the horizon for each pair of clusters."""
    position = np.ascontiguousarray(np.moveaxis(solid.position[np.maximum(particle, 0)], 2, 1))
    count = (particle >= 0).sum(1).astype(np.int32)
    half = half_reach(solid, horizon)[np.maximum(particle, 0)]
    mask = device.xp.zeros(len(first), np.uint64)
    device.module("sim/bonds/cluster_bonds.cu").find_bonds(
        len(first), *map(device.from_host, (first, second, count, position, half)), mask)
    return device.to_host(mask)


def transposed(mask: Array) -> Array:
    """Return 8 x 8 bit matrices (n,) uint64 with rows and columns exchanged."""
    # Exchange the off-diagonal blocks of 1, then 2, then 4 bits.
    for shift, block in ((7, 0x00AA00AA00AA00AA), (14, 0x0000CCCC0000CCCC),
                         (28, 0x00000000F0F0F0F0)):
        by = np.uint64(shift)
        swap = (mask ^ (mask >> by)) & np.uint64(block)
        mask = mask ^ swap ^ (swap << by)
    return mask


def count_rows(mask: Array) -> Array:
    """Return the number of rows of 8 x 8 bit matrices that hold a bit, (n,)."""
    row = np.ascontiguousarray(mask).view(np.uint8).reshape(-1, LANES)
    count: Array = (row != 0).sum(axis=1)
    return count


def row_starts(row: Array, n_rows: int) -> Array:
    """Return the (n_rows + 1,) int32 starts of sorted row numbers."""
    return np.searchsorted(row, np.arange(n_rows + 1)).astype(np.int32)


def lay_out_slots(n_clusters: int, first: Array, second: Array) -> tuple[Array, ...]:
    """Give every tile a slot for each of its clusters and each that its pairs touch.

    Returns (tile_start, tile_slot, own_slot, pair_slot, source_start, source).
    """
    n_tiles = -(-n_clusters // TILE_CLUSTERS)
    tile_start = np.minimum(np.arange(n_tiles + 1) * TILE_CLUSTERS, n_clusters)
    # A slot is a (tile, cluster) that occurs.
    cluster = np.arange(n_clusters, dtype=np.int64)
    pair_key = (first.astype(np.int64) // TILE_CLUSTERS) * n_clusters + second
    own_key = (cluster // TILE_CLUSTERS) * n_clusters + cluster
    key = distinct(np.concatenate([own_key, pair_key]))
    slot_tile, slot_cluster = key // n_clusters, key % n_clusters
    source = np.argsort(slot_cluster, kind="stable")
    return (tile_start.astype(np.int32), row_starts(slot_tile, n_tiles),
            np.searchsorted(key, own_key).astype(np.int32),
            np.searchsorted(key, pair_key).astype(np.int32),
            row_starts(slot_cluster[source], n_clusters), source)
