"""Faces of any number of corners as triangles.

A fan from the first corner does for faces that are seen whole from there, as convex ones are. Of
others, as an L or a star may be, a fan would lie over itself: ears are cut off them one by one.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff import Array

#: A fan's triangle faces backward if its area is less than minus this share of the face's.
_ROUNDING = 1e-12


def polygon_corners(vertex: Array, index: Array, count: Array) -> Array:
    """Return the triangles of polygons as corners (t, 3): places in ``index``.

    Polygon k has ``count[k]`` corners, which follow each other in ``index``; they name rows of
    ``vertex`` (v, 3).
    """
    corner = fan_corners(count)
    folded = folded_fans(vertex, index, count)
    if not folded.any():
        return corner
    first = np.cumsum(count) - count
    fan_end = np.cumsum(np.maximum(count - 2, 0))
    for k in np.flatnonzero(folded).tolist():
        own = index[first[k]:first[k] + count[k]]
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
    at = vertex[index[fan_corners(count)]]
    normal = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    whole = np.stack([np.bincount(owner, normal[:, axis], minlength=len(count))
                      for axis in range(3)], axis=1)
    along = np.einsum("ij,ij->i", normal, whole[owner])
    backward = along < -_ROUNDING * (whole**2).sum(axis=1)[owner]
    return np.bincount(owner, backward, minlength=len(count)) > 0


def cut_ears(point: Array) -> Array:
    """Return the triangles (n - 2, 3) of one polygon of corners ``point`` (n, 3), about flat.

    One that cuts itself has no right triangles; it gets some of the same border.
    """
    flat = _in_its_plane(point)
    left = list(range(len(point)))
    triangle = []
    while len(left) > 3:
        places = flat[left]
        before, after = np.roll(places, 1, axis=0), np.roll(places, -1, axis=0)
        turn = _turn(before, places, after)
        # The widest ear first; corners on a straight side come last.
        for at in np.argsort(-turn, kind="stable").tolist():
            if turn[at] < 0.0 or not _holds_any(before[at], places[at], after[at],
                                                places[turn <= 0.0]):
                break
        else:
            at = 0
        triangle.append([left[at - 1], left[at], left[(at + 1) % len(left)]])
        del left[at]
    return np.array([*triangle, left], dtype=np.int64)


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


def _holds_any(a: Array, b: Array, c: Array, point: Array) -> bool:
    """Whether a triangle has one of the points (n, 2) in it or on it, but for its corners."""
    other = ~((point == a).all(axis=1) | (point == b).all(axis=1) | (point == c).all(axis=1))
    p = point[other]
    return bool(((_turn(a, b, p) >= 0.0) & (_turn(b, c, p) >= 0.0)
                 & (_turn(c, a, p) >= 0.0)).any())
