"""Which places regions and colliders cover, and whether a body has an element there."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.bodies import Body
from vfx.geometry.filling import even_places
from vfx.geometry.grid import body_orientation
from vfx.geometry.handoff import Array
from vfx.geometry.overlap import world_boxes
from vfx.geometry.products import turned
from vfx.geometry.sources import body_size, filling_of, places_in
from vfx.sim.settings import Collider, Region

#: Elements expected in a region from which some surely are.
_SURELY = 8.0
#: Places in all regions that are tried, and pairs of a region and a body that are looked at.
_ALL_SAMPLES = 1_000_000
_MOST_LOOKS = 50_000


def covers(region: Region, position: Array) -> Array:
    """Return which of (n, 3) positions a region covers, (n,) bool."""
    away = position - np.array(region.center)
    if region.shape == "sphere":
        inside: Array = (away**2).sum(1) <= region.radius**2
    else:
        beside = np.abs(turned(away, _axes(region).T))
        inside = np.all(beside <= 0.5 * np.array(region.size), axis=1)
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
        depth = (0.5 * np.array(collider.size) - np.abs(turned(away, _axes(collider).T))).min(
            axis=1)
    return depth


class Held(enum.Enum):
    """Whether a region covers the centre of an element, as far as is known before any is built."""

    NONE = "none"
    PERHAPS = "perhaps"
    SOME = "some"


def find_held(regions: Sequence[Region], bodies: Sequence[Body]) -> list[Held]:
    """Return for each region whether it holds an element; of bodies that it names if any."""
    if not regions:
        return []
    low, high = world_boxes(bodies)
    n_samples = min(max(_ALL_SAMPLES // len(regions), 128), 2048)
    n_looks, found = 0, []
    for region in regions:
        center, reach = np.array(region.center), _reach(region)
        beside = np.maximum(np.maximum(low - center, center - high), 0.0)
        answer = Held.NONE
        for k in np.flatnonzero((beside**2).sum(axis=1) <= reach**2).tolist():
            if region.body not in ("", bodies[k].name):
                continue
            n_looks += 1
            held = Held.PERHAPS if n_looks > _MOST_LOOKS else _held_of(
                region, bodies[k], n_samples)
            answer = held if answer is Held.NONE else answer
            if held is Held.SOME:
                answer = held
                break
        found.append(answer)
    return found


def _held_of(region: Region, body: Body, n_samples: int) -> Held:
    """Return whether a region holds an element of a body."""
    if body.is_block:
        return Held.SOME if _meets(region, body) else Held.NONE
    size = body_size(body)
    # Of what is spread evenly over the body the share in the region, and the other way round.
    if size.elements * float(covers(region, places_in(body)).mean()) > _SURELY:
        return Held.SOME

    def in_body(place: Array) -> Array:
        return turned(place - np.array(body.center), body_orientation(body).T)

    filling, middle = filling_of(body), in_body(np.array([region.center]))
    reach = np.array([_reach(region)])
    if not filling.holds(middle)[0] and filling.depth(middle, reach)[0] > reach[0]:
        return Held.NONE
    edges = np.array(region.size) if region.shape == "box" else np.full(3, 2.0 * region.radius)
    axes = np.eye(3) if region.shape == "sphere" else _axes(region)
    place = np.array(region.center) + turned((even_places(n_samples) - 0.5) * edges, axes)
    shared = float((filling.holds(in_body(place)) & covers(region, place)).mean())
    expected = size.elements * shared * float(edges.prod()) / size.volume
    return Held.SOME if expected > _SURELY else Held.PERHAPS


def _axes(thing: Region | Collider) -> Array:
    """Return world_from_thing (3, 3) of a box."""
    axes: Array = Rotation.from_euler("xyz", thing.rotation, degrees=True).as_matrix()
    return axes


def _reach(region: Region) -> float:
    """Return the radius [m] of a ball around all of a region."""
    return region.radius if region.shape == "sphere" else 0.5 * float(np.linalg.norm(region.size))


def nothing_there(region: Region) -> str:
    """Return the sentence on a region that covers no element."""
    body = f"body {region.body!r}" if region.body else "any body"
    return (f"holds no element of {body}; move or enlarge it (it is compared with the centres of "
            "the elements at rest)")


def _meets(region: Region, body: Body) -> bool:
    """Whether a region covers an element of a box of cubes."""
    axes = Rotation.from_euler("xyz", body.rotation, degrees=True).as_matrix()
    reach = _reach(region)
    middle = 0.5 * (np.array(body.cells) - 1)
    place = axes.T @ (np.array(region.center) - np.array(body.center)) / body.spacing + middle

    def holds_one(cell: Array) -> bool:
        centers = np.array(body.center) + body.spacing * (cell - middle) @ axes.T
        return bool(covers(region, centers).any())

    # The cube nearest to its middle is in most regions that hold any.
    if holds_one(np.clip(place.round(), 0, np.array(body.cells) - 1)[None]):
        return True
    # Look at the cells around the region alone, layer by layer.
    low, high = (np.clip(place + side, -1, np.array(body.cells)).round().astype(np.int64)
                 for side in (-reach / body.spacing, reach / body.spacing))
    span = [np.arange(max(first - 1, 0), min(last + 2, n))
            for first, last, n in zip(low, high, body.cells, strict=True)]
    across = np.stack(np.meshgrid(span[1], span[2], indexing="ij"), -1).reshape(-1, 2)
    return any(holds_one(np.column_stack([np.full(len(across), layer), across]))
               for layer in span[0])
