"""How a body fills its surroundings, before it is built: what its bonds and sizes follow from.

Only the surface is known then. Places are spread evenly over its box; those inside stand for
elements, and what is so far away from them for their neighbours.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.distance import build_distance

#: Places inside a body that are looked for: what is counted over them is right to a few percent.
PLACES = 4096
#: Places that are tried, for a thin body fills little of its box.
MOST_TRIED = 50 * PLACES


class Filling:
    """What a closed surface encloses."""

    def __init__(self, device: Device, surface: Surface) -> None:
        self._device, self._surface = device, surface
        self._low, self._high = surface.vertex.min(axis=0), surface.vertex.max(axis=0)
        self._scale = float((self._high - self._low).max())
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

    @functools.cached_property
    def place(self) -> Array:
        """(n, 3) [m]: places spread evenly over it, ``PLACES`` or somewhat more.

        Where so little of the box is filled that none is met, they are those of its triangles.
        """
        even = even_places(MOST_TRIED)
        found: list[Array] = []
        for first in range(0, MOST_TRIED, 4 * PLACES):
            point = self._low + (self._high - self._low) * even[first:first + 4 * PLACES]
            found.append(point[self.holds(point)])
            if sum(map(len, found)) >= PLACES:
                break
        place = np.concatenate(found)
        return place if len(place) else self._surface.vertex[self._surface.triangle].mean(axis=1)

    def _unit(self, point: Array) -> Array:
        middle = 0.5 * (self._low + self._high)
        return np.ascontiguousarray((point - middle) / self._scale)


def even_places(n: int) -> Array:
    """Return n points (n, 3) spread evenly over the unit cube: an additive recurrence.

    Its steps are the powers of 1/g, with g^4 = g + 1.
    """
    ratio = 1.2207440846057596
    step = ratio ** -np.arange(1.0, 4.0)
    return np.asarray((0.5 + np.arange(n)[:, None] * step) % 1.0)
