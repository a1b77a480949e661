"""Faces of any number of corners as triangles.

A fan from the first corner does for faces that are seen whole from there, as convex ones are. Of
others, as an L or a star may be, a fan would lie over itself: ears are cut off them one by one.
"""

from __future__ import annotations

import heapq

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.handoff.types import Array

#: A fan's triangle faces backward if its area is less than minus this share of the face's.
_ROUNDING = 1e-12
#: Corners of a face from which a fan is tried before ears are cut.
FANS_TRIED = 8
#: Corners of a face that ears are cut from: that takes time with the square of them.
MOST_CORNERS = 20_000


def polygon_corners(vertex: Array, index: Array, count: Array) -> Array:
    """Return the triangles of polygons as corners (t, 3): places in ``index``.

    Polygon k has ``count[k]`` corners, which follow each other in ``index``; they name rows of
    ``vertex`` (v, 3).
    """
    corner = fan_corners(count)
    first = np.cumsum(count) - count
    fan_end = np.cumsum(np.maximum(count - 2, 0))
    folded = np.flatnonzero(folded_fans(vertex, index, count))
    # Many faces that are not seen whole from the first corner are from another.
    for turn in range(1, FANS_TRIED):
        if not len(folded):
            break
        length = count[folded]
        fan = fan_corners(length)
        owner = np.repeat(np.arange(len(folded)), length - 2)
        start = (np.cumsum(length) - length)[owner, None]
        fan = first[folded][owner, None] + (fan - start + turn) % length[owner, None]
        still = _lie_over(vertex[index[fan]], owner, len(folded))
        mended = ~still[owner]
        step = np.arange(len(owner)) - (np.cumsum(length - 2) - length + 2)[owner]
        corner[((fan_end - count + 2)[folded][owner] + step)[mended]] = fan[mended]
        folded = folded[still]
    for k in folded.tolist():
        own = index[first[k]:first[k] + count[k]]
        if len(own) > MOST_CORNERS:
            raise MeshError(f"has a face of {len(own):,} corners that is not convex, and over the "
                            f"{MOST_CORNERS:,} that are cut into triangles; triangulate it before")
        corner[fan_end[k] - count[k] + 2:fan_end[k]] = first[k] + cut_ears(vertex[own])
    return corner


def fan_corners(count: Array) -> Array:
    """Return the triangles of polygons of ``count`` (p,) corners, as fans: (t, 3) corners."""
    first = np.cumsum(count) - count
    n_fans = np.maximum(count - 2, 0)
    start = np.repeat(first, n_fans)
    step = np.arange(int(n_fans.sum())) - np.repeat(np.cumsum(n_fans) - n_fans, n_fans)
    return np.column_stack([start, start + step + 1, start + step + 2])


def folded_fans(vertex: Array, index: Array, count: Array) -> Array:
    """Return which polygons (p,) bool have a fan that lies over itself."""
    owner = np.repeat(np.arange(len(count)), np.maximum(count - 2, 0))
    return _lie_over(vertex[index[fan_corners(count)]], owner, len(count))


@np.errstate(over="ignore", invalid="ignore")      # places too far away are refused later
def _lie_over(at: Array, owner: Array, n: int) -> Array:
    """Return which of n polygons (n,) bool have triangles (t, 3, 3) that face opposite sides."""
    normal = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    whole = np.stack([np.bincount(owner, normal[:, axis], minlength=n) for axis in range(3)],
                     axis=1)
    along = np.einsum("ij,ij->i", normal, whole[owner])
    backward = along < -_ROUNDING * (whole**2).sum(axis=1)[owner]
    return np.bincount(owner, backward, minlength=n) > 0


def cut_ears(point: Array) -> Array:
    """Return the triangles (n - 2, 3) of one polygon of corners ``point`` (n, 3), about flat.

    The widest ear goes first; corners on a straight side come last. One that cuts itself has no
    right triangles; it gets some of the same border.
    """
    flat = _in_its_plane(point)
    n = len(point)
    before, after = (np.arange(n) - 1) % n, (np.arange(n) + 1) % n
    turn = _turn(flat[before], flat, flat[after])
    left = np.ones(n, dtype=bool)
    order = [(-wide, k) for k, wide in enumerate(turn.tolist())]
    heapq.heapify(order)
    # An ear with a corner in it waits until that one is cut off, or no longer points inward.
    waiting: dict[int, list[int]] = {}
    triangle: list[list[int]] = []
    while len(triangle) < n - 3:
        at = -1
        while order and at < 0:
            wide, k = heapq.heappop(order)
            if not left[k] or -wide != turn[k]:
                continue
            held = -1 if turn[k] < 0.0 else _held(
                flat, before[k], k, after[k], np.flatnonzero(left & (turn <= 0.0)))
            if held < 0:
                at = k
            else:
                waiting.setdefault(held, []).append(k)
        if at < 0:
            at = int(np.argmax(left))
        a, b = int(before[at]), int(after[at])
        triangle.append([a, at, b])
        left[at] = False
        after[a], before[b] = b, a
        freed = waiting.pop(at, [])
        for k in (a, b):
            turn[k] = _turn(flat[before[k]], flat[k], flat[after[k]])
            freed.append(k)
            if turn[k] > 0.0:
                freed += waiting.pop(k, [])
        for k in freed:
            heapq.heappush(order, (-float(turn[k]), k))
    rest = np.flatnonzero(left).tolist()
    return np.array([*triangle, rest], dtype=np.int64)


def _in_its_plane(point: Array) -> Array:
    """Return corners (n, 2) of a polygon in its own plane, anticlockwise."""
    at = point - point.mean(axis=0)
    normal = np.cross(at, np.roll(at, -1, axis=0)).sum(axis=0)
    axis = np.eye(3)[np.argmin(np.abs(normal))]
    u = np.cross(axis, normal)
    v = np.cross(normal, u)
    lengths = np.maximum([np.linalg.norm(u), np.linalg.norm(v)], 1e-300)
    return np.asarray(np.column_stack([at @ u, at @ v]) / lengths)


def _turn(a: Array, b: Array, c: Array) -> Array:
    """Return twice the area of triangles (..., 2), positive where anticlockwise."""
    ab, ac = b - a, c - a
    return np.asarray(ab[..., 0] * ac[..., 1] - ab[..., 1] * ac[..., 0])


def _held(flat: Array, a: int, b: int, c: int, other: Array) -> int:
    """Return one of the ``other`` corners (m,) in a triangle or on it, but at none of its own."""
    low, high = flat[[a, b, c]].min(axis=0), flat[[a, b, c]].max(axis=0)
    point = flat[other]
    near = ((point >= low) & (point <= high)).all(axis=1)
    point, other = point[near], other[near]
    inside = ((_turn(flat[a], flat[b], point) >= 0.0) & (_turn(flat[b], flat[c], point) >= 0.0)
              & (_turn(flat[c], flat[a], point) >= 0.0))
    for own in (a, b, c):
        inside &= (point != flat[own]).any(axis=1)
    return int(other[np.argmax(inside)]) if inside.any() else -1
