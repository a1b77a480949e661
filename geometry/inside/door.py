"""The one door to what is inside a closed surface: ask here, whoever counts behind it.

Inside is where the winding number is above one half: of two shells that face alike and overlap,
all; of a shell with an inward one in it (hollow), what is between. Several count it, and all say
the same of a point that is not on the surface itself:

- ``crossings``: cuts straight above, found in a tree over the triangles. Quick to build, slow for
  a point: for points that are few beside the triangles. It names the triangles, so that it also
  counts shell by shell (:mod:`vfx.geometry.mesh.shells`).
- ``points``: cuts along two axes, and the third where they differ, from lists by columns. Five
  times as fast for a point. Voronoi division asks it on the device, for millions of points.
- ``distance``: triangles far away seen as dipoles. Where how deep a point lies is asked as well,
  its tree is there already. Tetrahedra between layers ask it on the device.
- ``columns``: cuts along every column of a regular lattice, for cells instead of points.
- solid angles, here: exact, over every triangle: for one point, without a device.
"""

from __future__ import annotations

import math

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.crossings import build_tree, triangles_above
from vfx.geometry.inside.distance import build_distance
from vfx.geometry.inside.points import WindingNumbers

#: Points a triangle from which the lists by columns pay (measured for 8e4 to 5e5 triangles).
_MANY = 1 / 12
#: Points counted at once: a bound of the memory on the device.
_CHUNK = 4_000_000


def points_inside(device: Device, surface: Surface, point: Array) -> Array:
    """Return which of the points (n, 3) float64 [m] are inside a surface, (n,) bool."""
    count = count_by_columns if len(point) > _MANY * len(surface.triangle) else count_above
    return np.asarray(count(device, surface, point) > 0)


def count_above(device: Device, surface: Surface, point: Array) -> Array:
    """Return the winding numbers (n,) of points (n, 3) by the triangles straight above them."""
    tree = build_tree(surface.vertex, surface.triangle)
    which, _, turns = triangles_above(device, tree, point)
    return np.rint(np.bincount(which, weights=turns, minlength=len(point)))


def count_by_columns(device: Device, surface: Surface, point: Array) -> Array:
    """Return the winding numbers (n,) of points (n, 3), counted along two axes or three."""
    windings = WindingNumbers(
        device, device.from_host(np.asarray(surface.vertex, np.float64)),
        device.from_host(np.asarray(surface.triangle, np.int32)))
    point = np.ascontiguousarray(point, np.float64)
    winding = np.empty(len(point), np.int32)
    for first in range(0, len(point), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        winding[chunk] = device.to_host(windings.of(device.from_host(point[chunk])))
    return winding


def encloses(surface: Surface, point: Array) -> bool:
    """Whether a closed surface has a point (3,) inside; needs no device."""
    if (point < surface.vertex.min(axis=0)).any() or (point > surface.vertex.max(axis=0)).any():
        return False
    return winding_about(point, surface.vertex[surface.triangle]) > 0.5


def winding_about(point: Array, corner: Array) -> float:
    """Return the winding number of triangles (t, 3, 3) about a point (3,), by solid angles.

    Van Oosterom and Strackee 1983.
    """
    a, b, c = (corner[:, k] - point for k in range(3))
    la, lb, lc = (np.linalg.norm(v, axis=1) for v in (a, b, c))
    dots = [(x * y).sum(axis=1) for x, y in ((a, b), (b, c), (c, a))]
    volume = (a * np.cross(b, c)).sum(axis=1)
    angle = np.arctan2(volume, la * lb * lc + dots[0] * lc + dots[1] * la + dots[2] * lb)
    return float(angle.sum() / (2.0 * np.pi))


class Interior:
    """What a closed surface encloses, for those who also ask how deep points lie."""

    def __init__(self, device: Device, surface: Surface) -> None:
        self._device = device
        low, high = surface.vertex.min(axis=0), surface.vertex.max(axis=0)
        self._middle, self._scale = 0.5 * (low + high), float((high - low).max())
        self._tree = build_distance(device, self._unit(surface.vertex[surface.triangle]))

    def holds(self, point: Array) -> Array:
        """Return which of points (n, 3) [m] are inside, (n,) bool."""
        winding = self._tree.winding(self._device.from_host(self._unit(point)))
        inside: Array = self._device.to_host(winding) > 0.5
        return inside

    def depth(self, point: Array, reach: Array) -> Array:
        """Return how far points (n, 3) are from the surface, (n,) [m]; inf beyond ``reach``."""
        unit = self._unit(point)
        nearest, triangle = self._tree.nearest(
            self._device.from_host(unit), self._device.from_host(reach / self._scale))
        away = self._scale * np.linalg.norm(self._device.to_host(nearest) - unit, axis=1)
        return np.where(self._device.to_host(triangle) < 0, math.inf, away)

    def _unit(self, point: Array) -> Array:
        return np.ascontiguousarray((point - self._middle) / self._scale)
