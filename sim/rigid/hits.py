"""Contacts that were fast: who hit whom, where, and how fast before the step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid.rows import Rows

#: Share of the speed of approach that is left after a hit, at most.
KEPT = 0.5


@dataclass(frozen=True)
class Hits:
    """Contacts of a step whose approach was fast; rows sorted by (first, second)."""

    first: Array     # (h,) int64: body
    second: Array    # (h,) int64: body, or FLOOR = -1, or -2 - c for collider c
    speed: Array     # (h,) [m/s]: of the approach along the normal before the step
    point: Array     # (h, 3) [m]
    normal: Array    # (h, 3): from the first toward the second

    def __len__(self) -> int:
        return len(self.first)


def find_hits(
    contacts: Iterable[tuple[int, int, Array, Array]],
    velocity_at: Callable[[Rows, int, Array], Array], before: Rows, after: Rows,
) -> Hits:
    """Return the hits among contacts (body, other, point, normal), of each pair the fastest.

    ``velocity_at`` is the velocity [m/s] of a thing at a point, before or after the step. A hit
    takes away most of the speed of approach; what only comes near keeps it.
    """
    least = before.least_hit
    fastest: dict[tuple[int, int], tuple[float, Array, Array]] = {}
    for first, second, point, normal in contacts:
        if 0 <= second < first:
            first, second, normal = second, first, -normal

        def approach(rows: Rows, pair: tuple[int, int] = (first, second), point: Array = point,
                     normal: Array = normal) -> float:
            gap = velocity_at(rows, pair[0], point) - velocity_at(rows, pair[1], point)
            return float((gap * normal).sum())

        speed = approach(before)
        enough = min(least[first], least[second] if second >= 0 else np.inf)
        known = fastest.get((first, second))
        if (speed > enough and (known is None or speed > known[0])
                and approach(after) < KEPT * speed):
            fastest[first, second] = speed, point, normal
    rows = sorted(fastest.items(), key=lambda item: item[0])
    pair = np.array([key for key, _ in rows], np.int64).reshape(-1, 2)
    return Hits(
        pair[:, 0], pair[:, 1], np.array([speed for _, (speed, _, _) in rows]),
        np.array([point for _, (_, point, _) in rows]).reshape(-1, 3),
        np.array([normal for _, (_, _, normal) in rows]).reshape(-1, 3))
