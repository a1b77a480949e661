"""Points thrown evenly into the band of a body that its shell fills.

A grid is refined from coarse to fine where its cells can meet the band; each finest cell gets one
point at a random place. A point of a band as thick as the distance of two layers, moved to the
layer in its middle, lies anywhere on that layer with nearly the same chance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.distance import DistanceTree

_COARSE_CELLS = 24           # along the longest side, at least


@dataclass(frozen=True)
class Band:
    """Points in the band; each stands for the volume of one cell."""

    point: Array             # (n, 3) float64
    depth: Array             # (n,) float64: distance from the surface, negative outside
    nearest: Array           # (n, 3) float64: the nearest point of the surface
    triangle: Array          # (n,) int32: the triangle that it is on
    cell_volume: float

    def volume(self, depth: float) -> float:
        """Return the volume of the solid down to ``depth``, at most that of the band."""
        return float(((self.depth >= 0.0) & (self.depth < depth)).sum()) * self.cell_volume


def fill_band(
    tree: DistanceTree, lower: Array, upper: Array, *, edge: float, outside: float,
    inside: float, blur: float, seed: int
) -> Band:
    """Throw a point into each cell of ``edge`` between two distances from the surface.

    ``lower`` and ``upper`` (3,) bound the mesh. Within ``blur`` of the surface it does not matter
    on which side a point is, and all count as inside.
    """
    extent = float((upper - lower).max()) + 2.0 * outside
    halvings = max(0, math.ceil(math.log2(extent / (_COARSE_CELLS * edge))))
    size = edge * 2**halvings
    shape = np.ceil((upper - lower + 2.0 * outside) / size).astype(int)
    cell = np.stack(np.unravel_index(np.arange(shape.prod()), tuple(shape)), axis=1)
    point = lower - outside + (cell + 0.5) * size
    random = np.random.Generator(np.random.Philox(seed))
    if halvings == 0:
        point = point + size * (random.random(point.shape) - 0.5)
    depth, nearest, triangle = _depth(
        tree, point, np.full(len(point), 1e12), np.zeros(len(point)), 0.0)

    for level in range(1, halvings + 1):
        # Points deeper or farther out than the band by half a diagonal have no part in it.
        reach = 0.5 * math.sqrt(3.0) * size
        near = (depth <= inside + reach) & (depth >= -outside - reach)
        size *= 0.5
        corner = np.stack(np.unravel_index(np.arange(8), (2, 2, 2)), axis=1) - 0.5
        child = (point[near][:, None] + size * corner).reshape(-1, 3)
        if level == halvings:
            child += size * (random.random(child.shape) - 0.5)
        from_parent = np.linalg.norm(child - np.repeat(point[near], 8, axis=0), axis=1)
        parent_depth = np.repeat(depth[near], 8)
        point = child
        depth, nearest, triangle = _depth(
            tree, point, np.abs(parent_depth) + from_parent,
            np.where(np.abs(parent_depth) > from_parent, parent_depth, 0.0),
            blur if level == halvings else 0.0)
    kept = (depth <= inside) & (depth >= -outside)
    return Band(point[kept], depth[kept], nearest[kept], triangle[kept], size**3)


def _depth(
    tree: DistanceTree, point: Array, reach: Array, side: Array, blur: float
) -> tuple[Array, Array, Array]:
    """Return the depth of points (n, 3), negative outside, and the surface's nearest points.

    ``reach`` (n,) is an upper bound of the distance; ``side`` (n,) is positive inside, negative
    outside, and 0 where the side has to be found, if the surface is not within ``blur``.
    """
    device = tree.device
    on_device = device.from_host(point)
    found, triangle = tree.nearest(
        on_device, device.from_host(reach * (1.0 + 1e-9) + 1e-12))
    nearest = device.to_host(found)
    distance = np.linalg.norm(nearest - point, axis=1)
    is_inside = side > 0.0
    is_inside |= distance < blur
    unknown = np.flatnonzero((side == 0.0) & ~is_inside)
    which = device.from_host(unknown)
    is_inside[unknown] = device.to_host(
        tree.inside(on_device[which], found[which], triangle[which]))
    return np.where(is_inside, distance, -distance), nearest, device.to_host(triangle)
