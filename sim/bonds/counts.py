"""How many bonds and lanes bodies come to, told before anything is built."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from vfx.geometry.divide.filling import PLACES
from vfx.geometry.divide.sources import mean_neighbors
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array
from vfx.sim.matter.ordering import LANES


@functools.cache
def bonded_neighbors(
    body: Body, offsets: tuple[tuple[int, int, int], ...], reach: float
) -> float:
    """Return about how many others are bonded to an element of a body that is no box of cubes."""
    if body.shape == "grid":
        return mean_neighbors(body, np.array(offsets), len(offsets))
    # A ball around an element holds the element, too.
    return mean_neighbors(body, reach * ball_places(PLACES), ball_volume(reach)) - 1.0


def ball_places(n: int) -> Array:
    """Return n places (n, 3) spread over the unit ball, the same ones every time."""
    random = np.random.default_rng(0)
    way = random.normal(size=(n, 3))
    radius = np.cbrt((np.arange(n) + 0.5) / n)
    return np.asarray(way * (radius / np.linalg.norm(way, axis=1))[:, None])


def around_middle(
    cells: tuple[int, int, int], offsets: Sequence[tuple[int, int, int]]
) -> Array:
    """Return which neighbours the cube in the middle of a box has, (o,): no other has more."""
    place = np.array(cells) // 2 + np.array(offsets, np.int64).reshape(-1, 3)
    return np.asarray(((place >= 0) & (place < np.array(cells))).all(axis=1))


def ball_volume(radius: float) -> float:
    """Return the volume of a ball."""
    return 4.0 / 3.0 * math.pi * radius**3


def count_bonds(cells: tuple[int, int, int], offsets: Sequence[tuple[int, int, int]]) -> int:
    """Return the bonds of a whole box: the pairs of its cubes that are such an offset apart."""
    pairs = np.maximum(np.array(cells, np.int64) - np.abs(np.array(offsets, np.int64)), 0)
    return int(pairs.prod(axis=1).sum()) // 2


def count_lanes(cells: tuple[int, int, int]) -> int:
    """Return the lanes of a box whose rows lie along the axis that wastes the fewest."""
    return min(math.prod(cells) // n * (-(-n // LANES) * LANES) for n in cells)
