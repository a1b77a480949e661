"""Where parts of a closed mesh touch at an edge or a vertex: which triangles go on from which.

Four triangles or more at one edge bound two wedges of solid or more. Around a wedge, the triangle
on one side of it goes on in that on the other, so that parts that only touch are told apart.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array

#: Directions around an edge that are nearer are one [radians].
_SAME_ANGLE = 1e-7


def wedge_pairs(vertex: Array, triangle: Array, half: Array, edge: Array) -> Array:
    """Return the sides of triangles (p, 2) that go on in each other at crowded edges.

    half (h,): sides, 3 t + i, of the edges; edge (h,): the edge of each. As many triangles run
    along each edge one way as the other.
    """
    start = triangle.ravel()[half]
    end = np.roll(triangle, -1, axis=1).ravel()[half]
    apex = np.roll(triangle, -2, axis=1).ravel()[half]
    is_forward = start < end
    low = vertex[np.minimum(start, end)]
    axis = vertex[np.maximum(start, end)] - low
    axis /= np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-300)
    # Two directions across the edge from which all its triangles measure their angles.
    least = np.eye(3)[np.abs(axis).argmin(axis=1)]
    across = np.cross(axis, least)
    across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
    toward = vertex[apex] - low
    angle = np.arctan2(np.einsum("ij,ij->i", toward, np.cross(axis, across)),
                       np.einsum("ij,ij->i", toward, across))
    pairs = []
    order = np.lexsort((angle, edge))
    for own in np.split(order, np.flatnonzero(np.diff(edge[order])) + 1):
        pairs += _matched(half[own], angle[own], is_forward[own])
    return np.array(pairs, np.int64).reshape(-1, 2)


def _matched(half: Array, angle: Array, is_forward: Array) -> list[tuple[int, int]]:
    """Return pairs of the sides at one edge, sorted by angle, with solid between them.

    Solid begins, with growing angle, behind a triangle that runs backward, and ends before one
    that runs forward: they match as brackets do.
    """
    gap = np.diff(angle, append=angle[0] + 2.0 * np.pi)
    turn = (int(gap.argmax()) + 1) % len(half)
    half, is_forward = np.roll(half, -turn), np.roll(is_forward, -turn)
    # Where two lie on each other, the solid of one ends before that of the other begins.
    place = np.concatenate([[0], np.cumsum(np.roll(gap, -turn)[:-1] > _SAME_ANGLE)])
    order = np.lexsort((~is_forward, place))
    half, is_forward = half[order], is_forward[order]
    # Begin where the fewest wedges are open: there, none is.
    depth = np.cumsum(np.where(is_forward, -1, 1))
    first = (int(depth.argmin()) + 1) % len(half)
    pairs: list[tuple[int, int]] = []
    open_sides: list[int] = []
    for side, ends in zip(np.roll(half, -first).tolist(), np.roll(is_forward, -first).tolist(),
                          strict=True):
        if ends:
            pairs.append((open_sides.pop(), side))
        else:
            open_sides.append(side)
    return pairs


def part_vertices(triangle: Array, pair: Array) -> tuple[Array, Array]:
    """Return the triangles (t, 3) with vertices of their own where they only touch at vertices.

    pair (p, 2): the sides that go on in each other. Also which vertex each new one was, (w,).
    """
    n = triangle.size
    following = np.arange(n).reshape(-1, 3)[:, [1, 2, 0]].ravel()
    # The sides run opposite ways: the start of one is at the end of the other.
    low = np.concatenate([pair[:, 0], following[pair[:, 0]]])
    high = np.concatenate([following[pair[:, 1]], pair[:, 1]])
    n_fans, fan = components(n, np.column_stack([low, high]))
    place = np.empty(n_fans, np.int64)
    place[fan] = triangle.ravel()
    # In the order of the vertices that they were.
    order = np.argsort(place, kind="stable")
    rank = np.empty(n_fans, np.int64)
    rank[order] = np.arange(n_fans)
    return rank[fan].reshape(-1, 3), place[order]
