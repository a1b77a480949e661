"""Pieces as convex hulls: one where the piece is nearly convex, else a few that fill it.

Every element is convex (cubes, tetrahedra, Voronoi cells), so a piece is a union of convex things
and no search for a decomposition is needed: elements are grouped until the hull of each group
holds little else. The group with the most volume that is not its own is cut in two next, across
its longest extent, until all are nearly convex or there are enough hulls.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.types import Array, Solid

#: Hulls shrink about their middles by this share, so that pieces born touching do not press.
SHRINK = 1e-3
#: Hulls of more corners are thinned out to those that are farthest in as many directions.
MOST_CORNERS = 256
#: A hull is taken for a ball if its nearest face is so near to its farthest corner.
ROUND = 0.97
#: With fewer corners no hull is as round: their caps would not cover the ball (2 / (1 - ROUND)).
ROUND_CORNERS = 67


@dataclass(frozen=True)
class Shape:
    """What a piece is to the engine: a ball about ``center``, or the union of hulls; at rest."""

    hulls: tuple[Array, ...]                    # (v, 3) float64 [m] each
    radius: float = 0.0                         # [m]; above 0 for a ball
    center: Array | None = None                 # (3,) [m] of the ball


class Corners:
    """The corners of every element of a solid at rest."""

    def __init__(self, solid: Solid) -> None:
        faces = all_faces(solid)
        self.vertex = faces.vertex
        face = np.repeat(np.arange(len(faces.side)), np.diff(faces.start))
        inner = face < faces.n_inner
        element = np.concatenate([faces.side[face, 0], faces.side[face[inner], 1]])
        corner = np.concatenate([faces.corner, faces.corner[inner]]).astype(np.int64)
        key = np.unique(element.astype(np.int64) * len(self.vertex) + corner)
        self._start = np.searchsorted(
            key, np.arange(solid.n_elements + 1, dtype=np.int64) * len(self.vertex))
        self._corner = key % max(1, len(self.vertex))
        count = np.diff(self._start)
        #: Where all elements have as many corners, they are a table.
        self._table = (self._corner.reshape(len(count), -1)
                       if len(count) and (count == count[0]).all() else None)

    def of(self, elements: Array) -> Array:
        """Return the corners of some elements, each once, (v, 3) [m]."""
        if len(elements) == 1:
            element = int(elements[0])
            return np.asarray(
                self.vertex[self._corner[self._start[element] : self._start[element + 1]]])
        if self._table is not None:
            corner = self._table[elements].ravel()
        else:
            first, last = self._start[elements], self._start[elements + 1]
            count = last - first
            index = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
            corner = self._corner[index]
        if len(corner) < 128:       # for a few, numpy's own way takes several times as long
            return np.asarray(self.vertex[sorted(set(corner.tolist()))])
        return np.asarray(self.vertex[np.unique(corner)])


def piece_shape(
    corners: Corners, solid: Solid, members: Array, most_hulls: int, convexity: float
) -> Shape:
    """Return the shape of the piece that some elements make up."""
    point = corners.of(members)
    if len(members) == 1 or (most_hulls == 1 and len(point) < ROUND_CORNERS):
        return Shape((_shrunk(point),))
    groups = [_Group.make(corners, solid, members)]
    first = groups[0]
    if first.excess <= convexity * first.own and first.is_round():
        middle, radius = first.ball()
        return Shape((), radius * (1.0 - SHRINK), middle)
    heap = [(-first.excess, 0)]
    count = 1
    while heap and count < most_hulls:
        _, number = heapq.heappop(heap)
        group = groups[number]
        if group.excess <= convexity * group.own or len(group.members) < 2:
            continue
        for half in group.halves(solid.position):
            heapq.heappush(heap, (-(made := _Group.make(corners, solid, half)).excess, len(groups)))
            groups.append(made)
        group.is_cut = True
        count += 1
    return Shape(tuple(_shrunk(_thinned(group.outer())) for group in groups if not group.is_cut))


@dataclass
class _Group:
    """Some elements of a piece, and their hull."""

    members: Array
    point: Array        # (v, 3) [m]: corners of the elements
    own: float          # [m^3]: volume of the elements
    excess: float       # [m^3]: volume of the hull that is none of theirs
    hull: ConvexHull | None
    is_cut: bool = False

    @staticmethod
    def make(corners: Corners, solid: Solid, members: Array) -> _Group:
        point = corners.of(members)
        own = float(solid.volume[members].sum())
        if len(members) == 1:       # elements are convex
            return _Group(members, point, own, 0.0, None)
        if len(point) == 5:
            return _Group(members, point, own, max(0.0, _volume_of_five(point) - own), None)
        try:
            hull = ConvexHull(point)
        except (QhullError, ValueError):
            return _Group(members, point, own, 0.0, None)
        return _Group(members, point, own, max(0.0, float(hull.volume) - own), hull)

    def outer(self) -> Array:
        """Return the corners of the hull, (v, 3) [m]; of few, with those inside it."""
        return self.point if self.hull is None else self.point[self.hull.vertices]

    def halves(self, position: Array) -> tuple[Array, Array]:
        """Return the elements on both sides of a cut across the longest extent."""
        place = position[self.members]
        if len(place) == 2:
            way = (place[1] - place[0]).tolist()
            first, second = self.members[:1], self.members[1:]
            return (first, second) if max(way, key=abs) > 0.0 else (second, first)
        arm = place - place.mean(axis=0)
        spread = np.einsum("ni,nj->ij", arm, arm)
        axis = np.linalg.eigh(spread)[1][:, -1]
        # An eigenvector's sign is arbitrary; only which half comes first hangs on it.
        axis = axis * np.sign(axis[np.argmax(np.abs(axis))])
        reach = arm[:, 0] * axis[0] + arm[:, 1] * axis[1] + arm[:, 2] * axis[2]
        order = np.argsort(reach, kind="stable")
        below = np.zeros(len(order), bool)
        below[order[: min(max(1, int((reach < 0.0).sum())), len(order) - 1)]] = True
        return self.members[below], self.members[~below]

    def ball(self) -> tuple[Array, float]:
        """Return middle and radius of the ball of the hull's volume."""
        middle = 0.5 * (self.point.min(axis=0) + self.point.max(axis=0))
        return middle, math.cbrt(0.75 / math.pi * (self.own + self.excess))

    def is_round(self) -> bool:
        """Whether the hull is a ball but for its facets."""
        if self.hull is None or len(self.point) < ROUND_CORNERS:
            return False
        middle, _ = self.ball()
        farthest = float(np.sqrt(((self.outer() - middle) ** 2).sum(axis=1)).max())
        plane = self.hull.equations
        nearest = float((-(plane[:, 0] * middle[0] + plane[:, 1] * middle[1]
                           + plane[:, 2] * middle[2] + plane[:, 3])).min())
        return nearest > ROUND * farthest


def _volume_of_five(point: Array) -> float:
    """Return the volume [m^3] of the hull of five points (5, 3).

    The hull is filled twice by tetrahedra of them, be it convex with five corners or with four and
    one inside (Radon): half of the sum of all five. Two tetrahedra that share a face are so many
    of all groups that a search for their hull would take most of the time.
    """
    base = point[4]
    (a, b, c, d) = (point[:4] - base).tolist()

    def triple(u: list[float], v: list[float], w: list[float]) -> float:
        return (u[0] * (v[1] * w[2] - v[2] * w[1]) + u[1] * (v[2] * w[0] - v[0] * w[2])
                + u[2] * (v[0] * w[1] - v[1] * w[0]))

    part = (triple(b, c, d), -triple(a, c, d), triple(a, b, d), -triple(a, b, c))
    return (sum(map(abs, part)) + abs(sum(part))) / 12.0


def _shrunk(point: Array) -> Array:
    middle = 0.5 * (point.min(axis=0) + point.max(axis=0))
    return np.asarray(middle + (1.0 - SHRINK) * (point - middle))


def _thinned(point: Array) -> Array:
    """Return the corners of a hull that count, a few hundred at most."""
    if len(point) <= MOST_CORNERS:
        return point
    number = np.arange(MOST_CORNERS) + 0.5
    height = 1.0 - 2.0 * number / MOST_CORNERS
    turn = math.pi * (1.0 + math.sqrt(5.0)) * number
    ring = np.sqrt(1.0 - height**2)
    way = np.stack([ring * np.cos(turn), height, ring * np.sin(turn)], axis=1)
    reach = np.einsum("vi,di->vd", point, way)
    return np.asarray(point[np.unique(reach.argmax(axis=0))])
