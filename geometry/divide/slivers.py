"""Sliver control: flat tetrahedra go when the tetrahedra around one of their edges are joined anew.

The n tetrahedra around an inner edge a-b fill a space between a, b and a ring of n vertices. Each
triangulation of the ring gives 2 (n - 2) others that fill it too: over each of its triangles one
to a and one to b (edge removal; n = 3 and 4 are the flips 3-2 and 4-4). Of two tetrahedra on one
face the flip 2-3 makes three around a new edge. Whatever leaves a larger smallest dihedral angle
is done, the flattest first, where it does not touch another change of the same pass. Points stay
where they are, and so does the boundary.
"""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np

from vfx.geometry.divide.tetrahedra import FACES, least_dihedral, volumes
from vfx.geometry.handoff.types import Array

#: Tetrahedra with a smaller dihedral angle are worth a change [degrees].
FLAT_ANGLE = 12.0
_PASSES = 10
_LARGEST_RING = 7
_LEAST_GAIN = 0.5            # degrees
_EDGES = np.array(list(combinations(range(4), 2)))
#: For each edge of _EDGES the two other vertices, so that all four are oriented as before.
_OTHERS = np.array([[2, 3], [3, 1], [1, 2], [0, 3], [2, 0], [0, 1]])


def remove_slivers(point: Array, tet: Array) -> Array:
    """Return tetrahedra over the same points and within the same boundary, fewer of them flat."""
    angle = least_dihedral(point, tet)
    for _ in range(_PASSES):
        found = [*_edge_removals(point, tet, angle), *_face_flips(point, tet, angle)]
        if not found:
            break
        gone, fresh = _choose(tet, angle, found)
        if not len(fresh):
            break
        tet = np.concatenate([tet[~gone], fresh])
        angle = np.concatenate([angle[~gone], least_dihedral(point, fresh)])
    return tet


class _Changes:
    """Changes of one kind: which tetrahedra (c, n) go, which (c, m, 4) come, the angle then."""

    def __init__(self, old: Array, new: Array, angle: Array) -> None:
        self.old, self.new, self.angle = old, new, angle


def _choose(tet: Array, angle: Array, found: list[_Changes]) -> tuple[Array, Array]:
    """Choose changes that have no tetrahedron in common; return which go (n,), and the new."""
    before = np.concatenate([angle[c.old].min(axis=1) for c in found])
    after = np.concatenate([c.angle for c in found])
    group = np.repeat(np.arange(len(found)), [len(c.old) for c in found])
    place = np.concatenate([np.arange(len(c.old)) for c in found])
    gone = np.zeros(len(tet), bool)
    fresh = []
    for k in np.lexsort((-after, before)):
        change = found[group[k]]
        old = change.old[place[k]]
        if not gone[old].any():
            gone[old] = True
            fresh.append(change.new[place[k]])
    return gone, np.concatenate(fresh) if fresh else np.zeros((0, 4), tet.dtype)


def _edge_removals(point: Array, tet: Array, angle: Array) -> list[_Changes]:
    """Return what can be gained by joining anew around the edges of flat tetrahedra."""
    flat = np.flatnonzero(angle < FLAT_ANGLE)
    key = np.unique(_edge_keys(tet[flat]))
    # Only tetrahedra with two vertices of flat ones can be around those edges.
    marked = np.zeros(len(point), bool)
    marked[tet[flat]] = True
    near = np.flatnonzero(marked[tet].sum(axis=1) >= 2)
    near_key = _edge_keys(tet[near])
    slot = np.searchsorted(key, near_key)
    hit = key[np.minimum(slot, len(key) - 1)] == near_key if len(key) else np.zeros(0, bool)
    which = np.flatnonzero(hit)
    order = which[np.argsort(slot[which], kind="stable")]
    count = np.bincount(slot[order], minlength=len(key))
    first = np.cumsum(count) - count

    found = []
    for n in range(3, _LARGEST_RING + 1):
        rows = order[first[count == n][:, None] + np.arange(n)]        # (c, n) into near_key
        if not len(rows):
            continue
        ring_tet, local = near[rows // 6], rows % 6
        ends = np.sort(tet[ring_tet[:, 0][:, None], _EDGES[local[:, 0]]], axis=1)
        found += _ring_changes(point, tet, angle, ring_tet, local, ends)
    return found


def _ring_changes(
    point: Array, tet: Array, angle: Array, ring_tet: Array, local: Array, ends: Array
) -> list[_Changes]:
    """Return the best new join around each edge ``ends`` (c, 2) with n tetrahedra around it."""
    n = ring_tet.shape[1]
    at = tet[ring_tet]                                                 # (c, n, 4)
    step = np.take_along_axis(at, _OTHERS[local], axis=2)              # (c, n, 2)
    # The other two vertices follow each other around the edge; the other way where it is turned.
    low = np.take_along_axis(at, _EDGES[local][:, :, :1], axis=2)[:, :, 0]
    turned = low != ends[:, :1]
    step[turned] = step[turned][:, ::-1]
    ring = np.empty(step.shape[:2], tet.dtype)
    closed = np.ones(len(ring), bool)
    ring[:, 0] = step[:, 0, 0]
    current = step[:, 0, 0]
    for k in range(1, n + 1):
        match = step[:, :, 0] == current[:, None]
        closed &= match.sum(axis=1) == 1
        current = step[np.arange(len(step)), match.argmax(axis=1), 1]
        if k < n:
            ring[:, k] = current
    closed &= current == ring[:, 0]
    ring, ends, ring_tet = ring[closed], ends[closed], ring_tet[closed]
    if not len(ring):
        return []

    triangles, choices = _triangulations(n)
    corner = ring[:, triangles]                                        # (c, k, 3)
    to_b = np.concatenate(
        [corner, np.broadcast_to(ends[:, 1][:, None, None], (*corner.shape[:2], 1))], axis=2)
    to_a = np.concatenate(
        [corner[:, :, [0, 2, 1]],
         np.broadcast_to(ends[:, 0][:, None, None], (*corner.shape[:2], 1))], axis=2)
    both = np.stack([to_a, to_b], axis=2)                              # (c, k, 2, 4)
    worth = _signed_angle(point, both.reshape(-1, 4)).reshape(both.shape[:3]).min(axis=2)
    gained = np.stack([worth[:, list(choice)].min(axis=1) for choice in choices], axis=1)
    best = gained.argmax(axis=1)
    after = gained[np.arange(len(best)), best]
    better = after > angle[ring_tet].min(axis=1) + _LEAST_GAIN
    picked = np.array(choices)[best[better]]                           # (c, n - 2)
    new = both[better][np.arange(len(picked))[:, None], picked].reshape(-1, 2 * (n - 2), 4)
    return [_Changes(ring_tet[better], new, after[better])] if len(picked) else []


def _face_flips(point: Array, tet: Array, angle: Array) -> list[_Changes]:
    """Return what can be gained by a new edge through a face of flat tetrahedra."""
    flat = np.flatnonzero(angle < FLAT_ANGLE)
    marked = np.zeros(len(point), bool)
    marked[tet[flat]] = True
    near = np.flatnonzero(marked[tet].sum(axis=1) >= 3)
    triple = np.sort(tet[near][:, FACES].reshape(-1, 3), axis=1)
    order = np.lexsort(triple.T)
    same = np.flatnonzero((triple[order][1:] == triple[order][:-1]).all(axis=1))
    one, two = order[same], order[same + 1]
    old = np.stack([near[one // 4], near[two // 4]], axis=1)
    useful = angle[old].min(axis=1) < FLAT_ANGLE
    old, one, two = old[useful], one[useful], two[useful]
    if not len(old):
        return []
    face = tet[old[:, 0]][np.arange(len(old))[:, None], FACES[one % 4]]
    inside = tet[old[:, 0], one % 4]
    outside = tet[old[:, 1], two % 4]
    # The face turns anticlockwise seen from the tetrahedron beyond it.
    new = np.stack([np.stack([face[:, i], face[:, j], outside, inside], axis=1)
                    for i, j in ((0, 1), (1, 2), (2, 0))], axis=1)
    new = new[:, :, [1, 0, 2, 3]]
    after = _signed_angle(point, new.reshape(-1, 4)).reshape(-1, 3).min(axis=1)
    better = after > angle[old].min(axis=1) + _LEAST_GAIN
    return [_Changes(old[better], new[better], after[better])] if better.any() else []


def _signed_angle(point: Array, tet: Array) -> Array:
    """Return the smallest dihedral angle (m,), below nought where inverted [degrees]."""
    angle: Array = np.where(volumes(point, tet) > 0.0, least_dihedral(point, tet), -1.0)
    return angle


def _edge_keys(tet: Array) -> Array:
    """Return a number for each of the six edges of tetrahedra, (6 m,) int64."""
    ends = np.sort(tet[:, _EDGES].reshape(-1, 2), axis=1).astype(np.int64)
    key: Array = ends[:, 0] << 32 | ends[:, 1]
    return key


@cache
def _triangulations(n: int) -> tuple[Array, list[tuple[int, ...]]]:
    """Return the triangles (k, 3) of a ring of n, and each choice of n - 2 that fill it."""
    triangles = list(combinations(range(n), 3))

    def fill(i: int, j: int) -> list[tuple[int, ...]]:
        if j - i < 2:
            return [()]
        return [(*left, *right, triangles.index((i, k, j)))
                for k in range(i + 1, j) for left in fill(i, k) for right in fill(k, j)]

    return np.array(triangles), fill(0, n - 1)
