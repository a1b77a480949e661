"""How far a point is from a closed triangle mesh, where the mesh is nearest, and on which side.

Triangles are sorted along a Morton curve and joined by eights, and the groups by eights again
up to one root: a tree without pointers, as place c of a level has the children 8 c ... 8 c + 7 of
the level below. A node holds the bounds of its children (in single precision, rounded outward) or,
on the lowest level, the corners of its triangles; single precision sieves, double decides. For
winding numbers it holds the dipole of the triangles below it.

Inside is where the generalised winding number is above one half: that is right also where parts
of a mesh overlap, and next to edges that more than two triangles share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array

_WIDTH = 8
_MORTON_BITS = 20
_NOWHERE = 1e15              # where children are that are missing
_FAR = 1e12                  # beyond everything else
_STRAIGHT = 0.99             # cosine above which a point is straight above a triangle
_TOUCHING = 1e-9             # nearer to the surface the side is unclear
_PROBES = 4096               # triangles next to which the side is tried out
_DIPOLE_FAR = 2.0            # radii from which a group of triangles is seen as one dipole


@dataclass(frozen=True)
class DistanceTree:
    """The tree over the triangles of a mesh; its arrays are the device's."""

    device: Device
    n_levels: int
    n_triangles: int
    level_start: Any         # (n_levels + 1,) int32: first node of each level, the lowest first
    box: Any                 # (nodes above, 6, 8) float32: lower, upper bounds of the children
    packet: Any              # (nodes of the lowest level, 9, 8) float32: corners of triangles
    dipole: Any              # (nodes above, 7, 8) float32: centre, area vector / 4 pi of each
                             #   child, and the distance from which that stands for it
    corner: Any              # (t, 3, 3) float64: corners, in the order of the tree
    triangle: Any            # (t,) int32: their numbers in the mesh
    normal: Any              # (t, 3) float64: unit normals, in the order of the mesh
    is_simple: bool = False  # whether just inside the surface is inside, and just outside outside

    def nearest(self, point: Any, reach: Any | None = None) -> tuple[Any, Any]:
        """Return the nearest point of the mesh (n, 3) and its triangle (n,), of device points.

        With ``reach`` (n,) only what is no farther is looked for; where there is nothing,
        the triangle is -1 and the nearest point is the point itself.
        """
        xp = self.device.xp
        n = len(point)
        if reach is None:
            reach = xp.full(n, _FAR)
        found = xp.empty((n, 3))
        triangle = xp.empty(n, xp.int32)
        if n:
            self.device.module("geometry/inside/distance.cu").find_nearest(
                n, self.n_levels, self.level_start, self.box, self.packet, self.corner,
                self.triangle, point, reach, found, triangle)
        return found, triangle

    def winding(self, point: Any) -> Any:
        """Return the winding number (n,) of device points: 1 inside, 0 outside."""
        xp = self.device.xp
        n = len(point)
        winding = xp.empty(n)
        if n:
            self.device.module("geometry/inside/distance.cu").find_winding(
                n, self.n_levels, self.n_triangles, self.level_start, self.packet, self.dipole,
                point, winding)
        return winding


    def inside(self, point: Any, nearest: Any, triangle: Any) -> Any:
        """Return whether device points (n, 3) are inside, (n,), from what is nearest to them.

        A point straight above or below the nearest triangle is on the side that its normal tells,
        unless parts of the mesh reach into each other; all others take the winding number.
        """
        xp = self.device.xp
        way = point - nearest
        height = (way * self.normal[triangle]).sum(axis=1)
        length = xp.sqrt((way**2).sum(axis=1))
        result = height < 0.0
        unclear = xp.flatnonzero(xp.absolute(height) < _STRAIGHT * length + _TOUCHING)
        if not self.is_simple:
            unclear = xp.arange(len(point))
        result[unclear] = self.winding(point[unclear]) > 0.5
        return result


def build_distance(device: Device, corner: Array) -> DistanceTree:
    """Build the tree over triangles with the corners ``corner`` (t, 3, 3) of size one or so."""
    tree = _build_tree(device, corner)
    return replace(tree, is_simple=_is_simple(tree, corner))


def _is_simple(tree: DistanceTree, corner: Array) -> bool:
    """Return whether winding numbers next to triangles (some thousands of them) are 1 and 0."""
    step = max(1, len(corner) // _PROBES)
    at = corner[::step]
    area = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    size = np.linalg.norm(area, axis=1)
    at, area, size = at[size > 1e-12], area[size > 1e-12], size[size > 1e-12]
    away = area / size[:, None] * (0.01 * np.sqrt(size))[:, None]
    for side, low, high in ((-1.0, 0.5, 1.5), (1.0, -0.5, 0.5)):
        probe = tree.device.from_host(at.mean(axis=1) + side * away)
        winding = tree.device.to_host(tree.winding(probe))
        if not ((winding > low) & (winding < high)).all():
            return False
    return True


def _build_tree(device: Device, corner: Array) -> DistanceTree:
    """Build the tree alone."""
    order = morton_order(corner.mean(axis=1))
    sorted_corner = np.ascontiguousarray(corner[order])
    lower, upper = _round_out(sorted_corner.min(axis=1), sorted_corner.max(axis=1))
    area = 0.5 * np.cross(sorted_corner[:, 1] - sorted_corner[:, 0],
                          sorted_corner[:, 2] - sorted_corner[:, 0])
    weight = np.linalg.norm(area, axis=1) + 1e-300
    normal = np.empty_like(area)
    normal[order] = area / weight[:, None]
    center = sorted_corner.mean(axis=1)

    boxes: list[Array] = [np.zeros((0, 6, _WIDTH), np.float32)]
    dipoles: list[Array] = [np.zeros((0, 7, _WIDTH), np.float32)]
    level_start = [0]
    moment = weight[:, None] * center
    while True:
        first = np.arange(0, len(lower), _WIDTH)
        lower, upper = np.minimum.reduceat(lower, first), np.maximum.reduceat(upper, first)
        area, weight = np.add.reduceat(area, first), np.add.reduceat(weight, first)
        moment = np.add.reduceat(moment, first)
        level_start.append(level_start[-1] + len(lower))
        if len(lower) == 1:
            break
        # The radius is that of the box about the centre: at most a little too large.
        middle = moment / weight[:, None]
        radius = np.linalg.norm(np.maximum(upper - middle, middle - lower), axis=1)
        boxes.append(_by_eights(np.concatenate([lower, upper], axis=1)))
        dipoles.append(_by_eights(np.column_stack(
            [middle, area / (4.0 * np.pi), _DIPOLE_FAR * radius]), nowhere=(1e9, 0.0)))
    return DistanceTree(
        device=device, n_levels=len(level_start) - 1, n_triangles=len(corner),
        level_start=device.from_host(np.array(level_start, np.int32)),
        box=device.from_host(np.concatenate(boxes)),
        packet=device.from_host(_by_eights(sorted_corner.reshape(-1, 9).astype(np.float32))),
        dipole=device.from_host(np.concatenate(dipoles)),
        corner=device.from_host(sorted_corner),
        triangle=device.from_host(order.astype(np.int32)),
        normal=device.from_host(normal))


def morton_order(point: Array) -> Array:
    """Return the order (n,) that sorts points (n, 3) along a Morton curve."""
    lower = point.min(axis=0)
    extent = float((point.max(axis=0) - lower).max()) or 1.0
    cell = ((point - lower) * ((2**_MORTON_BITS - 1) / extent)).astype(np.uint64)
    code = np.zeros(len(point), np.uint64)
    for k in range(3):
        code |= _spread_bits(cell[:, k]) << np.uint64(k)
    return np.argsort(code, kind="stable")


def _spread_bits(value: Array) -> Array:
    """Return 21-bit numbers (n,) uint64 with two zeros between their bits."""
    for shift, mask in ((32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F),
                        (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249)):
        value = (value | (value << np.uint64(shift))) & np.uint64(mask)
    return value


def _round_out(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Return bounds (t, 3) as float32 that are not inside those given."""
    return (np.nextafter(lower.astype(np.float32), np.float32(-np.inf)),
            np.nextafter(upper.astype(np.float32), np.float32(np.inf)))


def _by_eights(value: Array, nowhere: tuple[float, float] = (_NOWHERE, _NOWHERE)) -> Array:
    """Return values (n, k) of children as (nodes, k, 8).

    ``nowhere`` fills the place of missing ones, their first three values and the others.
    """
    n_nodes = -(-len(value) // _WIDTH)
    padded = np.full((n_nodes * _WIDTH, value.shape[1]), nowhere[1], np.float32)
    padded[:, :3] = nowhere[0]
    padded[:len(value)] = value
    return np.ascontiguousarray(padded.reshape(n_nodes, _WIDTH, -1).swapaxes(1, 2))
