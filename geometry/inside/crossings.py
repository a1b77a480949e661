"""A tree over the triangles of a mesh: which of them cut each other, and which lie above points.

The tree is complete and binary, four triangles a leaf, over triangles sorted along a Morton
curve (``crossings.cu``, ``nesting.cu``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.handoff.types import Array

#: Pairs of triangles whose boxes meet that are looked at, and triangles above points, at most:
#: what takes half a minute, and the memory of a laptop.
MOST_PAIRS = 1_000_000_000
MOST_ABOVE = 100_000_000
#: Pairs from which it is estimated how many meet.
_SAMPLES = (512, 16384)

_LEAF = 4
_BITS = 21


@dataclass(frozen=True)
class TriangleTree:
    """Triangles sorted along a curve, and the boxes of a tree over them.

    Coordinates are taken around the middle of the mesh and at unit size, so that rounding is
    what the kernels expect of it.
    """

    vertex: Array            # (v, 3) float64: (position - middle) / scale
    triangle: Array          # (t, 3) int32, sorted
    order: Array             # (t,) int64: which triangle of the mesh each is
    box: Array               # (t, 6) float64: low and high
    node: Array              # (2 l, 6) float64: node k has the children 2k and 2k + 1
    middle: Array            # (3,)
    scale: float


def build_tree(vertex: Array, triangle: Array) -> TriangleTree:
    """Sort the triangles of a mesh, vertex (v, 3) and triangle (t, 3), into a tree."""
    low, high = vertex.min(axis=0), vertex.max(axis=0)
    scale = float((high - low).max()) or 1.0
    middle = 0.5 * (low + high)
    unit = np.ascontiguousarray((vertex - middle) / scale)
    order = np.argsort(curve_position(unit[triangle].mean(axis=1)), kind="stable")
    sorted_triangle = np.ascontiguousarray(triangle[order], dtype=np.int32)
    corner = unit[sorted_triangle]
    box = np.concatenate([corner.min(axis=1), corner.max(axis=1)], axis=1)
    return TriangleTree(unit, sorted_triangle, order, box, _node_boxes(box), middle, scale)


def find_crossings(device: Device, tree: TriangleTree) -> tuple[Array, int]:
    """Return an example pair (k, 2) for each triangle that cuts others, and all pairs' number.

    Triangles that touch, or share a vertex (by its number), do not cut each other there.
    """
    n = len(tree.triangle)
    _refuse_slivers(tree)
    count, partner = (device.xp.zeros(n, np.int32) for _ in range(2))
    device.module("geometry/inside/crossings.cu").find_crossings(
        n, len(tree.node) // 2, device.from_host(tree.vertex), device.from_host(tree.triangle),
        device.from_host(tree.box), device.from_host(tree.node), count, partner)
    found, other = device.to_host(count), device.to_host(partner)
    first = np.flatnonzero(found)
    pair = np.column_stack([tree.order[first], tree.order[other[first]]])
    return pair, int(found.sum(dtype=np.int64))


def _refuse_slivers(tree: TriangleTree) -> None:
    """Raise MeshError where so many triangles reach past so many others that it takes too long."""
    n = len(tree.triangle)
    if n * n <= 2 * MOST_PAIRS:
        return
    own, other = (tree.box[np.unique(np.linspace(0, n - 1, k).astype(np.int64))]
                  for k in _SAMPLES)
    meets = np.ones((len(own), len(other)), dtype=bool)
    for axis in range(3):
        meets &= own[:, axis, None] <= other[:, 3 + axis]
        meets &= own[:, 3 + axis, None] >= other[:, axis]
    pairs = float(meets.mean()) * n * n / 2
    if pairs > MOST_PAIRS:
        raise MeshError(
            f"has {n:,} triangles so long and thin, or so much over each other, that about "
            f"{pairs:.2g} pairs of them would have to be compared, over the {MOST_PAIRS:.2g} that "
            "are; export it with faces that are more even, without fans of very many")


def triangles_above(
    device: Device, tree: TriangleTree, point: Array
) -> tuple[Array, Array, Array]:
    """Return (which point, triangle, turns) of every triangle straight above points (n, 3).

    Above means along +z; turns is 1 where the triangle's normal points up and -1 where down.
    Their sum over a closed shell is its winding number around the point.
    """
    module = device.module("geometry/inside/nesting.cu")
    arrays = [device.from_host(np.ascontiguousarray(array)) for array in (
        (point - tree.middle) / tree.scale, tree.vertex, tree.triangle, tree.box, tree.node)]
    sizes = (len(point), len(tree.triangle), len(tree.node) // 2)
    count = device.xp.zeros(len(point), np.int32)
    module.count_above(*sizes, *arrays, count)
    number = device.to_host(count)
    start = np.concatenate([[0], np.cumsum(number, dtype=np.int64)])
    if start[-1] > MOST_ABOVE:
        raise MeshError(f"has so many parts around one another that {int(start[-1]):,} triangles "
                        f"are above {len(point):,} places, over the {MOST_ABOVE:,} that are "
                        "counted; leave out inner ones")
    found, turns = (device.xp.zeros(int(start[-1]), np.int32) for _ in range(2))
    module.list_above(*sizes, *arrays, device.from_host(start), found, turns)
    return (np.repeat(np.arange(len(point)), number), tree.order[device.to_host(found)],
            device.to_host(turns))


def curve_position(point: Array) -> Array:
    """Return where points (n, 3) lie along a Morton curve through their box, (n,) uint64."""
    low, high = point.min(axis=0), point.max(axis=0)
    size = float((high - low).max()) or 1.0
    cell = ((point - low) / size * (2**_BITS - 1)).astype(np.uint64)
    code = np.zeros(len(point), np.uint64)
    for axis in range(3):
        spread = cell[:, axis]
        for shift, mask in ((32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF),
                            (8, 0x100F00F00F00F00F), (4, 0x10C30C30C30C30C3),
                            (2, 0x1249249249249249)):
            spread = (spread | (spread << np.uint64(shift))) & np.uint64(mask)
        code |= spread << np.uint64(axis)
    return code


def _node_boxes(box: Array) -> Array:
    """Return the boxes (2 l, 6) of a complete binary tree over boxes (t, 6); node 0 is unused."""
    n_leaves = 1 << (-(-len(box) // _LEAF) - 1).bit_length()
    padded = np.full((n_leaves * _LEAF, 6), np.inf)
    padded[:, 3:] = -np.inf
    padded[:len(box)] = box
    node = np.empty((2 * n_leaves, 6))
    level = _joined(padded, _LEAF)
    at = n_leaves
    while True:
        node[at:2 * at] = level
        if at == 1:
            break
        level, at = _joined(level, 2), at // 2
    node[0] = node[1]
    return node


def _joined(box: Array, group: int) -> Array:
    """Return the box around every ``group`` boxes of (n, 6)."""
    grouped = box.reshape(-1, group, 6)
    return np.concatenate([grouped[..., :3].min(axis=1), grouped[..., 3:].max(axis=1)], axis=1)
