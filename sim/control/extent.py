"""Which places regions and colliders cover, and whether a body has an element there."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.divide.filling import even_places
from vfx.geometry.divide.overlap import world_boxes
from vfx.geometry.divide.sources import body_size, filling_of, places_in
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.orientation import body_orientation
from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array
from vfx.sim.settings import Collider, Region

#: Elements expected in a region from which some surely are.
_SURELY = 8.0
#: Places in all regions that are tried; pairs of a region and a body that are looked at, and
#: cubes that take as long as a pair.
_ALL_SAMPLES = 1_000_000
_MOST_LOOKS = 50_000
_CELLS_A_LOOK = 1_000


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


def find_held(regions: Sequence[Region], bodies: Sequence[Body]) -> Iterator[Held]:
    """Yield for each region whether it holds an element; of the body that it names if any.

    Where there are very many regions and cubes to look at, that is not known of the last.
    """
    if not regions:
        return
    low, high = world_boxes(bodies)
    n_samples = min(max(_ALL_SAMPLES // len(regions), 128), 2048)
    left = float(_MOST_LOOKS)
    for region in regions:
        center, reach = np.array(region.center), _reach(region)
        beside = np.maximum(np.maximum(low - center, center - high), 0.0)
        answer = Held.NONE
        for k in np.flatnonzero((beside**2).sum(axis=1) <= reach**2).tolist():
            if region.body not in ("", bodies[k].name):
                continue
            left -= 1.0
            if bodies[k].is_block:
                held, n_cells = _held_cubes(region, bodies[k], int(left * _CELLS_A_LOOK))
                left -= n_cells / _CELLS_A_LOOK
            else:
                held = Held.PERHAPS if left < 0.0 else _held_of(region, bodies[k], n_samples)
            answer = held if answer is Held.NONE else answer
            if held is Held.SOME:
                answer = held
                break
        yield answer


def _held_of(region: Region, body: Body, n_samples: int) -> Held:
    """Return whether a region holds an element of a body that is no box of cubes."""
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
    edges, axes = _box_around(region)
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


def _box_around(region: Region) -> tuple[Array, Array]:
    """Return the edges (3,) [m] and the axes (3, 3) of a box around a region."""
    if region.shape == "sphere":
        return np.full(3, 2.0 * region.radius), np.eye(3)
    return np.array(region.size), _axes(region)


def _cells_around(region: Region, body: Body) -> list[Array]:
    """Return the numbers along x, y and z of the cubes of a box around a region."""
    edges, axes = _box_around(region)
    axes = body_orientation(body).T @ axes
    place = body_orientation(body).T @ (np.array(region.center) - np.array(body.center))
    place = place / body.spacing + 0.5 * (np.array(body.cells) - 1)
    reach = np.abs(axes) @ edges / (2.0 * body.spacing)
    low, high = (np.clip(place + side, -2, np.array(body.cells) + 1).round().astype(np.int64)
                 for side in (-reach, reach))
    return [np.arange(max(first - 1, 0), min(last + 2, n))
            for first, last, n in zip(low, high, body.cells, strict=True)]


def _held_cubes(region: Region, body: Body, most: int) -> tuple[Held, int]:
    """Return whether a region holds a cube of a box, and how many were looked at, not over most."""
    middle, span = 0.5 * (np.array(body.cells) - 1), _cells_around(region, body)

    def holds_one(cell: Array) -> bool:
        centers = np.array(body.center) + body.spacing * (cell - middle) @ body_orientation(body).T
        return bool(covers(region, centers).any())

    if not all(map(len, span)):
        return Held.NONE, 0
    # The cube in the middle is in most regions that hold any; else look layer by layer.
    if holds_one(np.array([[number[len(number) // 2] for number in span]])):
        return Held.SOME, 1
    if (n_cells := math.prod(map(len, span))) > most:
        return Held.PERHAPS, 0
    across = np.stack(np.meshgrid(span[1], span[2], indexing="ij"), -1).reshape(-1, 2)
    found = any(holds_one(np.column_stack([np.full(len(across), layer), across]))
                for layer in span[0])
    return Held.SOME if found else Held.NONE, n_cells
