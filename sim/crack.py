"""Cuts that are there from the start: rectangles that no bond crosses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vfx.geometry.handoff import Array
from vfx.sim.settings import Crack


def rectangles(cracks: Sequence[Crack]) -> Array:
    """Return (c, 12) float64: origin, normal, and the duals of the two sides of each crack.

    The product of a place on the rectangle, seen from its origin, with the dual of a side runs
    from 0 to 1 along that side.
    """
    words = []
    for crack in cracks:
        u, v = np.array(crack.u), np.array(crack.v)
        normal = np.cross(u, v)
        area2 = normal @ normal
        words.append(np.concatenate([
            crack.origin, normal / np.sqrt(area2), np.cross(v, normal) / area2,
            np.cross(normal, u) / area2]))
    return np.array(words, np.float64).reshape(-1, 12)
