"""Which places regions and colliders cover, and whether a body has an element there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.bodies import Body
from vfx.geometry.handoff import Array
from vfx.geometry.products import turned
from vfx.sim.settings import Collider, Region


def covers(region: Region, position: Array) -> Array:
    """Return which of (n, 3) positions a region covers, (n,) bool."""
    away = position - np.array(region.center)
    if region.shape == "sphere":
        inside: Array = (away**2).sum(1) <= region.radius**2
    else:
        axes = Rotation.from_euler("xyz", region.rotation, degrees=True).as_matrix()
        inside = np.all(np.abs(turned(away, axes.T)) <= 0.5 * np.array(region.size), axis=1)
    return inside


def depth_in(collider: Collider, position: Array, time: float = 0.0) -> Array:
    """Return how deep (n, 3) positions are in a collider at a time [s], (n,) [m].

    Below 0 outside; of a box it is then a bound.
    """
    key = np.array(collider.keys or ((0.0, *collider.position),))
    away = position - [np.interp(time, key[:, 0], axis) for axis in key[:, 1:].T]
    if collider.shape == "plane":
        normal = np.array(collider.normal)
        depth: Array = -(away @ normal) / np.linalg.norm(normal)
    elif collider.shape == "sphere":
        depth = collider.radius - np.linalg.norm(away, axis=1)
    else:
        axes = Rotation.from_euler("xyz", collider.rotation, degrees=True).as_matrix()
        depth = (0.5 * np.array(collider.size) - np.abs(turned(away, axes.T))).min(axis=1)
    return depth


def is_empty(region: Region, bodies: Sequence[Body]) -> bool:
    """Whether a region covers no element's centre, as far as is known before they are built."""
    return not any(_meets(region, body) for body in bodies
                   if region.body in ("", body.name))


def nothing_there(region: Region) -> str:
    """Return the sentence on a region that covers no element."""
    body = f"body {region.body!r}" if region.body else "any body"
    return (f"holds no element of {body}; move or enlarge it (it is compared with the centres of "
            "the elements at rest)")


def _meets(region: Region, body: Body) -> bool:
    """Whether a region covers an element of a body; of one that is no box of cubes: perhaps."""
    if not body.is_block:
        return True
    # Look at the cells around the region alone, layer by layer.
    axes = Rotation.from_euler("xyz", body.rotation, degrees=True).as_matrix()
    reach = region.radius if region.shape == "sphere" else 0.5 * float(np.linalg.norm(region.size))
    middle = 0.5 * (np.array(body.cells) - 1)
    place = axes.T @ (np.array(region.center) - np.array(body.center)) / body.spacing + middle
    low, high = (np.clip(place + side, -1, np.array(body.cells)).round().astype(np.int64)
                 for side in (-reach / body.spacing, reach / body.spacing))
    span = [np.arange(max(first - 1, 0), min(last + 2, n))
            for first, last, n in zip(low, high, body.cells, strict=True)]
    across = np.stack(np.meshgrid(span[1], span[2], indexing="ij"), -1).reshape(-1, 2)
    for layer in span[0]:
        cell = np.column_stack([np.full(len(across), layer), across])
        centers = np.array(body.center) + body.spacing * (cell - middle) @ axes.T
        if covers(region, centers).any():
            return True
    return False
