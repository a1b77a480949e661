"""Where bodies are put that stand on the floor or on one another: their centres, exactly.

A shot says on what a body stands and from how high it falls; its centre follows from the lowest
point of its surface, turned and scaled as it is. A mesh has to be read for that, so it is done
when places are asked for, not when a shot file is read.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from vfx.geometry.divide.sources import block_edges, surface_of
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.orientation import body_orientation

#: How far above what it falls on a body begins that has a speed of fall, in its own heights.
CLEARANCE = 0.01


def heights(body: Body, folder: Path | None = None) -> tuple[float, float]:
    """Return the heights y [m] of a body's lowest and highest point at rest, from its centre."""
    up = body_orientation(body)[1]
    if not body.mesh:
        half = float(np.abs(up) @ np.array(block_edges(body)) / 2)
        return -half, half
    height = surface_of(body, folder)[0].vertex @ up
    return float(height.min()), float(height.max())


def placed_bodies(
    bodies: Sequence[Body], floor: float, folder: Path | None = None
) -> tuple[Body, ...]:
    """Return bodies with centres and velocities in numbers; the floor is at a height [m].

    Those that a shot places by numbers stay as they are. Raises as ``surface_of``.
    """
    named = {body.name: body for body in bodies}
    found = {body.name: body for body in bodies if body.place == "free"}
    for body in bodies:
        # First what is below; a stack may be high.
        stack = [body.name]
        while (below := named[stack[-1]].stands_on) and below not in found:
            stack.append(below)
        for name in reversed(stack):
            if name not in found:
                found[name] = _put(named[name], found, floor, folder)
    return tuple(found[body.name] for body in bodies)


def _put(body: Body, found: Mapping[str, Body], floor: float, folder: Path | None) -> Body:
    """Return a body in its place, where what it stands on was found."""
    base = floor
    if body.stands_on:
        under = found[body.stands_on]
        base = under.center[1] + heights(under, folder)[1]
    low, high = heights(body, folder)
    drop = body.drop or (CLEARANCE * (high - low) if body.fall_speed else 0.0)
    x, _, z = body.center
    across, up, along = body.velocity
    return dataclasses.replace(
        body, center=(x, base + drop - low, z), place="free", drop=0.0, fall_speed=0.0,
        velocity=(across, up - body.fall_speed, along))
