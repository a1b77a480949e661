"""How a body fills its surroundings, before it is built: what its bonds and sizes follow from.

Only the surface is known then. Places are spread evenly over its box; those inside stand for
elements, and what is so far away from them for their neighbours.
"""

from __future__ import annotations

import functools

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.door import Interior

#: Places inside a body that are looked for: what is counted over them is right to a few percent.
PLACES = 4096
#: Places that are tried, for a thin body fills little of its box.
MOST_TRIED = 50 * PLACES


class Filling(Interior):
    """What a closed surface encloses, and places spread evenly over it."""

    def __init__(self, device: Device, surface: Surface) -> None:
        super().__init__(device, surface)
        self._surface = surface
        self._low, self._high = surface.vertex.min(axis=0), surface.vertex.max(axis=0)

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


def even_places(n: int) -> Array:
    """Return n points (n, 3) spread evenly over the unit cube: an additive recurrence.

    Its steps are the powers of 1/g, with g^4 = g + 1.
    """
    ratio = 1.2207440846057596
    step = ratio ** -np.arange(1.0, 4.0)
    return np.asarray((0.5 + np.arange(n)[:, None] * step) % 1.0)
