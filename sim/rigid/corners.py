"""Faces of hulls with more than four corners, which the engine rests on four of.

Of a face that lies on something rapier takes the first four corners alone, wherever they are: a
prism on a hexagon tips over its missing corners and sinks in. So the four that span most of a face
stay where they are, and the others go back along their own edges until the engine takes what is
between for faces of its own. What rests on such a corner leans by a degree or two.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vfx.geometry.handoff.types import Array

#: Corners of a face that the engine rests on.
MOST = 4
#: The engine joins faces whose normals differ by less than about 0.026 rad: it bends by this.
BEND = 0.05
#: Normals of one plane differ by less.
SAME_NORMAL = 1e-4
#: Corners may stand out of their hull by this share of its size: rounding.
INSIDE = 1e-9
#: Faces of more corners give up every so many of them instead of the best.
MANY = 10


def four_cornered(point: Array) -> Array:
    """Return the corners (v, 3) of a hull, moved so that its flat faces have four at the most."""
    if len(point) <= MOST + 1:
        return point
    middle = point.mean(axis=0)
    try:
        hull = ConvexHull(point - middle)
    except (QhullError, ValueError):
        return point
    corner, faces = point[hull.vertices] - middle, _faces(hull)
    large = [number for number, (_, members) in enumerate(faces) if len(members) > MOST]
    if not large:
        return np.asarray(point[hull.vertices])
    place = {vertex: row for row, vertex in enumerate(hull.vertices.tolist())}
    moved = corner.copy()
    for number in large:
        normal, members = faces[number]
        row = np.array([place[each] for each in members])
        for vertex, depth in _given_up(corner[row], normal):
            others = [other for k, (other, those) in enumerate(faces)
                      if k != number and members[vertex] in those]
            way = _edge(others, normal)
            moved[row[vertex]] -= way * (depth / float(way @ normal))
    # Past the end of a short edge is outside: the corner at that end will do for both.
    height = moved @ hull.equations[:, :3].T + hull.equations[:, 3]
    inside = height.max(axis=1) <= INSIDE * np.abs(corner).max()
    return np.asarray((moved[inside] if inside.sum() >= MOST else corner) + middle)


def _faces(hull: ConvexHull) -> list[tuple[Array, list[int]]]:
    """Return normal and corners of each flat face."""
    normal, simplex, neighbor = hull.equations[:, :3], hull.simplices, hull.neighbors
    label = np.full(len(normal), -1)
    faces: list[tuple[Array, list[int]]] = []
    for first in range(len(normal)):
        if label[first] >= 0:
            continue
        label[first] = len(faces)
        stack, members = [first], set()
        while stack:
            here = stack.pop()
            members.update(simplex[here].tolist())
            for other in neighbor[here].tolist():
                if label[other] < 0 and np.abs(normal[other] - normal[first]).max() < SAME_NORMAL:
                    label[other] = len(faces)
                    stack.append(other)
        faces.append((normal[first], sorted(members)))
    return faces


def _given_up(corner: Array, normal: Array) -> list[tuple[int, float]]:
    """Return the corners (n, 3) of a face beside the four that span most, and how far each goes.

    The distance [m] is that back along the normal.
    """
    arm = corner - corner.mean(axis=0)
    u = arm[0] / math.sqrt(float(arm[0] @ arm[0]))
    v = np.cross(normal, u)
    flat = np.stack([arm @ u, arm @ v], axis=1)
    order = np.argsort(np.arctan2(flat[:, 1], flat[:, 0]), kind="stable")
    ring = flat[order]
    n = len(ring)
    choices = (itertools.combinations(range(n), MOST) if n <= MANY
               else [tuple(k * n // MOST for k in range(MOST))])
    kept = max(choices, key=lambda four: _area(ring[list(four)]))
    found = []
    for k in range(n):
        if k in kept:
            continue
        before = max((each for each in kept if each < k), default=kept[-1])
        after = min((each for each in kept if each > k), default=kept[0])
        side = ring[after] - ring[before]
        way = ring[k] - ring[before]
        away = abs(side[0] * way[1] - side[1] * way[0]) / math.sqrt(float(side @ side))
        found.append((int(order[k]), BEND * away))
    return found


def _area(ring: Array) -> float:
    x, y = ring.T
    return 0.5 * abs(float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum()))


def _edge(others: list[Array], normal: Array) -> Array:
    """Return the way along which a corner leaves a face, on its other two if it has two."""
    if len(others) == 2:
        way = np.cross(others[0], others[1])
        size = math.sqrt(float(way @ way))
        if size > 0.1 and abs(float(way @ normal)) > 0.1 * size:
            return np.asarray(way / size * np.sign(way @ normal))
    return normal
