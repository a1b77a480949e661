"""The tree over triangles in which rays find their hits.

Built on the device in parallel and without atomics, so that it is the same for any number of
threads: primitives are sorted along a Morton curve and merged pairwise with their best
neighbours (Meister and Bittner 2018, "Parallel locally-ordered clustering for bounding volume
hierarchy construction"), and the binary tree is then folded into eight-wide nodes. A leaf is
a packet of up to eight triangles; lanes, layouts and the tests are in ``bvh.cuh``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vfx.device import Device, Record

LANES = 8
#: How many neighbours along the curve a cluster is compared with, on either side.
SEARCH_RADIUS = 6
#: STACK_ENTRIES of bvh.cuh: each level of the tree leaves up to seven siblings waiting.
STACK_ENTRIES = 160
MAX_LEVELS = (STACK_ENTRIES - 1) // (LANES - 1)

Pairing = Callable[[Device, Any], Any]


@dataclass(frozen=True)
class Bvh:
    """A tree on its device: m nodes, p packets; node 0 is the root."""

    device: Device
    node_box: Any         # (m, 6, 8) float32 [m]: lower x, y, z, upper x, y, z of the children
    node_child: Any       # (m, 8) int32: a node, or ~packet for a leaf
    packet: Any           # (p, 9, 8) float32 [m]: corners of the triangles
    slot_triangle: Any    # (p, 8) int32: index of the triangle in each lane, or -1
    slot_piece: Any       # (p, 8) int32: the piece that the triangle bounds, or -1
    n_levels: int

    @property
    def struct(self) -> Record:
        """The tree as kernels take it."""
        return self.device.struct(
            "raytrace/tree/bvh.cuh", "Bvh", node_box=self.node_box, node_child=self.node_child,
            packet=self.packet, slot_piece=self.slot_piece)

    def closest_hits(self, origin: Any, direction: Any, t_max: Any) -> tuple[Any, Any]:
        """Return distance (n,) in units of ``direction``, inf for a miss, and triangle (n,).

        Arguments are device arrays, float32: (n, 3), (n, 3) and (n,).
        """
        xp = self.device.xp
        t = xp.empty(len(origin), xp.float32)
        triangle = xp.empty(len(origin), xp.int32)
        self.device.module("raytrace/tree/bvh.cu").trace_closest(
            len(origin), self.struct, self.slot_triangle, origin, direction, t_max, t, triangle)
        return t, triangle

    def any_hits(self, origin: Any, direction: Any, t_max: Any) -> Any:
        """Return (n,) int32: 1 where the ray meets a triangle before ``t_max``."""
        xp = self.device.xp
        blocked = xp.empty(len(origin), xp.int32)
        self.device.module("raytrace/tree/bvh.cu").trace_any(
            len(origin), self.struct, origin, direction, t_max, blocked)
        return blocked

    def first_hits(self, origin: Any, direction: Any, inside: Any) -> tuple[Any, Any]:
        """Return distance (n,) and slot (n,) of the first surface that each ray crosses.

        A slot is 8 * packet + lane, -1 for a miss. Rays (n, 3) float32, n a multiple of 8, are
        fastest where eight in a row run side by side. ``inside`` (9,) int32 holds the number of
        pieces that all of them start in, and which.
        """
        xp = self.device.xp
        t = xp.empty(len(origin), xp.float32)
        slot = xp.empty(len(origin), xp.int32)
        self.device.module("raytrace/tree/bvh.cu").first_hits(
            len(origin) // LANES, self.struct, origin, direction, inside, t, slot)
        return t, slot


def build_bvh(device: Device, triangle: Any, group: int = 1, *, piece: Any = None) -> Bvh:
    """Build the tree over ``triangle`` (n, 3, 3) float32, a device array.

    ``piece`` (n,) int32, not below 0, says what closed piece each triangle bounds; all bound
    one where it is left out.
    ``group`` consecutive triangles stay together as one primitive (2 for quadrilaterals):
    it saves time where they share a box anyway. n is a multiple of it.
    """
    n_triangles = len(triangle)
    if triangle.shape[1:] != (3, 3) or not 1 <= group <= LANES or n_triangles % group:
        raise ValueError(f"triangles of shape {triangle.shape} do not form groups of {group}; "
                         "build_bvh takes (n, 3, 3) with n a multiple of the group")
    if n_triangles == 0:
        return _empty_bvh(device)
    if piece is None:
        piece = device.xp.zeros(n_triangles, device.xp.int32)
    for pairing in (nearest_by_area, nearest_by_order):
        tree = _fold(device, _cluster(device, triangle, group, pairing), triangle, group, piece)
        if tree.n_levels <= MAX_LEVELS:
            return tree
    raise ValueError(f"{n_triangles} triangles are more than the tree's stack of "
                     f"{STACK_ENTRIES} entries allows")


@dataclass(frozen=True)
class _BinaryTree:
    """2n - 1 nodes over n primitives; the primitives come first, the root last."""

    primitive: Any        # (n,) int32
    child: Any            # (2n - 1, 2) int32: -1 for a primitive
    count: Any            # (2n - 1,) int32
    box: Any              # (2n - 1, 6) float32


def nearest_by_area(device: Device, box: Any) -> Any:
    """Pair clusters (n, 6) with the neighbour that makes the smallest union."""
    nearest = device.xp.empty(len(box), device.xp.int32)
    device.module("raytrace/tree/bvh.cu").nearest_clusters(len(box), SEARCH_RADIUS, box, nearest)
    return nearest


def nearest_by_order(device: Device, box: Any) -> Any:
    """Pair clusters (n, 6) two by two along the curve: never deeper than log2(n)."""
    xp = device.xp
    return xp.arange(len(box), dtype=xp.int32) ^ 1


def _cluster(device: Device, triangle: Any, group: int, pairing: Pairing) -> _BinaryTree:
    """Merge primitives pairwise until one is left."""
    xp = device.xp
    kernels = device.module("raytrace/tree/bvh.cu")
    n = len(triangle) // group
    box = xp.empty((n, 6), xp.float32)
    kernels.bound_primitives(n, group, triangle, box)

    # Sort along a Morton curve with as many bits as fit above the index.
    lower = box[:, :3].min(axis=0)
    extent = float((box[:, 3:].max(axis=0) - lower).max())
    index_bits = max(n.bit_length(), 1)
    bits = min(20, (64 - index_bits) // 3)
    key = xp.empty(n, xp.uint64)
    scale = ((1 << bits) - 1) / extent if extent > 0.0 else 0.0
    kernels.morton_keys(n, bits, index_bits, scale, lower, box, key)
    key.sort()
    primitive = xp.empty(n, xp.int32)
    node_box = xp.empty((2 * n - 1, 6), xp.float32)
    kernels.sorted_leaves(n, index_bits, key, box, primitive, node_box)
    del key, box

    node_child = xp.full((2 * n - 1, 2), -1, xp.int32)
    node_count = xp.ones(2 * n - 1, xp.int32)
    cluster = xp.arange(n, dtype=xp.int32)
    cluster_box = node_box[:n]
    n_nodes = n
    while len(cluster) > 1:
        count = len(cluster)
        nearest = pairing(device, cluster_box)
        stays = xp.empty(count, xp.int32)
        merges = xp.empty(count, xp.int32)
        kernels.mark_merges(count, nearest, stays, merges)
        stays_sum = xp.cumsum(stays, dtype=xp.int32)
        merges_sum = xp.cumsum(merges, dtype=xp.int32)
        del stays, merges
        next_cluster = xp.empty(int(stays_sum[-1]), xp.int32)
        next_box = xp.empty((len(next_cluster), 6), xp.float32)
        kernels.merge_clusters(
            count, n_nodes, nearest, stays_sum, merges_sum, cluster, cluster_box,
            node_child, node_count, node_box, next_cluster, next_box)
        n_nodes += count - len(next_cluster)
        cluster, cluster_box = next_cluster, next_box
    return _BinaryTree(primitive, node_child, node_count, node_box)


def _fold(device: Device, binary: _BinaryTree, triangle: Any, group: int,
          piece: Any) -> Bvh:
    """Fold the binary tree into eight-wide nodes, level by level, and fill the packets."""
    xp = device.xp
    kernels = device.module("raytrace/tree/bvh.cu")
    leaf_size = LANES // group
    frontier = xp.full(1, len(binary.count) - 1, xp.int32)
    boxes, children, leaves = [], [], []
    n_nodes, n_packets = 1, 0
    while len(frontier) > 0:
        count = len(frontier)
        opened = xp.empty((count, LANES), xp.int32)
        n_inner = xp.empty(count, xp.int32)
        n_leaf = xp.empty(count, xp.int32)
        kernels.open_nodes(count, leaf_size, frontier, binary.child, binary.count, binary.box,
                           opened, n_inner, n_leaf)
        inner_sum = xp.cumsum(n_inner, dtype=xp.int32)
        leaf_sum = xp.cumsum(n_leaf, dtype=xp.int32)
        box = xp.empty((count, 6, LANES), xp.float32)
        child = xp.empty((count, LANES), xp.int32)
        next_frontier = xp.empty(int(inner_sum[-1]), xp.int32)
        leaf = xp.empty(int(leaf_sum[-1]), xp.int32)
        kernels.write_nodes(
            count, leaf_size, n_nodes, n_packets, opened, inner_sum, leaf_sum,
            binary.count, binary.box, box, child, next_frontier, leaf)
        boxes.append(box)
        children.append(child)
        leaves.append(leaf)
        n_nodes += len(next_frontier)
        n_packets += len(leaf)
        frontier = next_frontier

    # The largest trees fill the memory: keep no more of the binary one than the packets need.
    below, primitive = binary.child, binary.primitive
    del binary
    packet = xp.empty((n_packets, 9, LANES), xp.float32)
    slot_triangle = xp.empty((n_packets, LANES), xp.int32)
    slot_piece = xp.empty((n_packets, LANES), xp.int32)
    kernels.fill_packets(n_packets, group, xp.concatenate(leaves), below, primitive, triangle,
                         piece, packet, slot_triangle, slot_piece)
    return Bvh(device, xp.concatenate(boxes), xp.concatenate(children), packet, slot_triangle,
               slot_piece, len(boxes))


def _empty_bvh(device: Device) -> Bvh:
    """Return a tree whose root has no children: every ray misses."""
    xp = device.xp
    box = xp.full((1, 6, LANES), xp.inf, xp.float32)
    box[:, 3:] = -xp.inf
    nothing = xp.full((1, LANES), -1, xp.int32)
    return Bvh(device, box, xp.zeros((1, LANES), xp.int32),
               xp.zeros((1, 9, LANES), xp.float32), nothing, nothing, 1)
