"""Cuts that are there from the start: rectangles that no bond crosses."""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array


def rectangles(device: Device, cuts: Array) -> Any:
    """Return cuts, (c, 3, 3), as rows of ``struct Rectangle`` of ``laws.cuh``, on the device.

    The product of a place on the rectangle, seen from its origin, with the dual of a side runs
    from 0 to 1 along that side.
    """
    rows = []
    for origin, u, v in cuts:
        normal = np.cross(u, v)
        area2 = normal @ normal
        rows.append({
            "origin": origin, "normal": normal / np.sqrt(area2),
            "across_u": np.cross(v, normal) / area2, "across_v": np.cross(normal, u) / area2})
    return device.rows("sim/matter/laws.cuh", "Rectangle", rows)
