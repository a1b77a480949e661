"""The bond network: which particles are joined, and how that is laid out for the kernels.

Bonds join all pairs within the horizon delta (levine-2014 section 3) and all adjacent
elements. They are kept as pairs of 8-particle clusters with a 64-bit mask of live bonds, as
the cluster-pair lists of molecular dynamics do (Páll & Hess 2013); each pair is stored once,
with its first cluster. Rest lengths are not stored but computed from rest positions.

Clusters are grouped into tiles; a tile sums the forces of its pairs into slots of its own,
one for each cluster that it touches, and each cluster adds up its slots in tile order. The
tiling does not depend on the number of threads, and so neither does a single bit of a sum.

Positions enter the bond loop as displacements in fixed point, int32 modulo 2^32 with a unit
of a few 1e-9 bond lengths: differences of near particles are exact anywhere in the world.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from vfx.device import Device
from vfx.geometry.handoff import Array, Solid
from vfx.sim.ordering import LANES, order_particles

TILE_CLUSTERS = 64
HORIZON_TOLERANCE = 1e-6


@dataclass
class Network:
    """The layout, on the host; see the kernels of ``bonds.cu`` for the meaning of each array."""

    particle: Array         # (n_clusters, 8) int64: particle in each lane, -1 for padding
    cluster_count: Array    # (n_clusters,) int32
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
    source_start: Array     # (n_clusters + 1,) int32
    source: Array           # (n_slots,) int32
    unit: float             # [m] of the fixed-point displacement

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return len(self.particle)

    @property
    def n_tiles(self) -> int:
        """Number of tiles."""
        return len(self.tile_start) - 1

    @property
    def n_slots(self) -> int:
        """Number of slots."""
        return len(self.source)

    def scatter(self, value: Array, fill: float = 0.0) -> Array:
        """Bring (n,) particle values to (n_clusters, 8), (n, 3) to (n_clusters, 3, 8)."""
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


def build_network(device: Device, solid: Solid, horizon: float) -> Network:
    """Find the bonds of a solid; ``horizon`` is delta in units of each body's lambda."""
    particle, count = order_particles(solid.position, solid.body)
    lane_of = np.empty(solid.n_particles, np.int64)
    lane_of[particle[particle >= 0]] = np.flatnonzero(particle.ravel() >= 0)

    edge_lane = np.sort(lane_of[solid.edge.reshape(-1, 2)], axis=1)
    first, second = candidate_pairs(solid, particle, horizon, edge_lane // LANES)
    live = find_bonds(device, solid, particle, count, horizon, first, second)

    # Join adjacent elements, however far apart their centres are.
    width = np.int64(len(particle))
    key = first.astype(np.int64) * width + second
    at = np.searchsorted(key, (edge_lane[:, 0] // LANES) * width + edge_lane[:, 1] // LANES)
    bit = LANES * (edge_lane[:, 0] % LANES) + edge_lane[:, 1] % LANES
    edge = np.zeros(len(first), np.uint64)
    np.bitwise_or.at(edge, at, np.uint64(1) << bit.astype(np.uint64))
    live |= edge

    # Number the edges as the kernel counts them: by pair, then by bit.
    edge_number = np.lexsort((bit, at))
    pair_edges = np.bincount(at, minlength=len(first))
    edge_start = np.concatenate([[0], np.cumsum(pair_edges)[:-1]])

    keep = live != 0
    first, second, live, edge, edge_start = (
        array[keep] for array in (first, second, live, edge, edge_start))
    tile_start, tile_slot, pair_slot, source_start, source = lay_out_slots(
        len(particle), first, second)
    reach = longest_bond(solid, horizon)
    return Network(
        particle=particle, cluster_count=count, tile_start=tile_start, tile_slot=tile_slot,
        pair_start=row_starts(first, len(particle)), pair_first=first, pair_second=second,
        pair_slot=pair_slot, pair_live=live, pair_edge=edge,
        pair_edge_start=edge_start.astype(np.int32), edge_number=edge_number,
        source_start=source_start, source=source,
        # A bond turned around by its ends' displacements still fits into 32 bits.
        unit=2.0 ** math.ceil(math.log2(4.0 * reach / 2.0**31)))


def longest_bond(solid: Solid, horizon: float) -> float:
    """Return an upper bound of the bond lengths at rest [m]."""
    edge = solid.position[solid.edge[:, 0]] - solid.position[solid.edge[:, 1]]
    adjacent = np.sqrt((edge**2).sum(1).max(initial=0.0))
    return max(horizon * float(solid.length_scale.max()), float(adjacent))


def candidate_pairs(
    solid: Solid, particle: Array, horizon: float, edge_cluster: Array
) -> tuple[Array, Array]:
    """Return the pairs of clusters (first <= second, sorted) that may hold a bond."""
    inside = (particle >= 0)[..., None]
    position = solid.position[particle]
    low = np.where(inside, position, np.inf).min(1)
    high = np.where(inside, position, -np.inf).max(1)
    center = (low + high) / 2
    radius = np.sqrt(((high - low) ** 2).sum(1)).max() / 2
    reach = horizon * solid.length_scale.max() + 2 * radius
    near = cKDTree(center).query_pairs(reach, output_type="ndarray")
    own = np.repeat(np.arange(len(particle))[:, None], 2, axis=1)
    body = solid.body[particle[:, 0]]
    pairs = np.concatenate([own, near[body[near[:, 0]] == body[near[:, 1]]], edge_cluster])
    pairs.sort(axis=1)
    width = np.int64(len(particle))
    key = np.unique(pairs[:, 0] * width + pairs[:, 1])
    return (key // width).astype(np.int32), (key % width).astype(np.int32)


def find_bonds(
    device: Device, solid: Solid, particle: Array, count: Array, horizon: float,
    first: Array, second: Array,
) -> Array:
    """Return the mask of particles within the horizon for each pair of clusters."""
    position = np.ascontiguousarray(np.moveaxis(solid.position[np.maximum(particle, 0)], 2, 1))
    mask = device.xp.zeros(len(first), np.uint64)
    reach = horizon * solid.length_scale * (1 + HORIZON_TOLERANCE)
    body = solid.body[particle[first, 0]]
    module = device.module("sim/bonds.cu")
    result = np.zeros(len(first), np.uint64)
    for number, limit in enumerate(reach):
        module.find_bonds(
            len(first), float(limit), device.from_host(first), device.from_host(second),
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
    cluster = np.arange(n_clusters)
    width = np.int64(n_clusters)
    pair_key = (first.astype(np.int64) // TILE_CLUSTERS) * width + second
    key = np.unique(np.concatenate([(cluster // TILE_CLUSTERS) * width + cluster, pair_key]))
    slot_tile, slot_cluster = key // width, key % width
    source = np.argsort(slot_cluster, kind="stable")
    return (tile_start.astype(np.int32), row_starts(slot_tile, n_tiles),
            np.searchsorted(key, pair_key).astype(np.int32),
            row_starts(slot_cluster[source], n_clusters), source.astype(np.int32))


def to_device(device: Device, network: Network) -> dict[str, Any]:
    """Copy the arrays that the time loop reads to the device."""
    names = ("tile_start", "tile_slot", "pair_start", "pair_second", "pair_slot", "pair_live",
             "pair_edge", "pair_edge_start", "source_start", "source")
    return {name: device.from_host(getattr(network, name)) for name in names}
