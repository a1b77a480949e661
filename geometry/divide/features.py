"""Sharp edges and corners of a mesh, which the points of the outermost layer must stand on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.types import Array

#: Faces that turn by more than this at an edge make it sharp [degrees].
SHARP_ANGLE = 35.0
#: Sharp edges that meet at a vertex and turn by more than this make it a corner [degrees].
CORNER_ANGLE = 40.0


@dataclass(frozen=True)
class Features:
    """Sharp edges of a mesh."""

    segment: Array           # (e, 2, 3) float64: their ends
    normal: Array            # (e, 3) float64: mean normal of the faces that meet there
    corner: Array            # (c, 3) float64: vertices where they end, branch or turn
    corner_normal: Array     # (c, 3) float64


def find_features(vertex: Array, triangle: Array) -> Features:
    """Find the sharp edges of a mesh, ``vertex`` (v, 3) and ``triangle`` (t, 3)."""
    corner = vertex[triangle]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-300
    pair, first, second = _edges(triangle)
    turn = (normal[first] * normal[second]).sum(axis=1)
    sharp = turn < math.cos(math.radians(SHARP_ANGLE))
    pair = pair[sharp]
    mean = normal[first[sharp]] + normal[second[sharp]]
    length = np.linalg.norm(mean, axis=1, keepdims=True)
    # Folded back on itself, an edge has no outward direction of its own: that along its face.
    mean = np.where(length > 1e-6, mean / np.maximum(length, 1e-300), normal[first[sharp]])
    at_corner, corner_normal = _corners(vertex, pair, mean)
    return Features(vertex[pair], mean, vertex[at_corner], corner_normal)


def sample_segments(segment: Array, step: float) -> tuple[Array, Array]:
    """Return points (n, 3) no farther than ``step`` apart on segments, and their segments."""
    length = np.linalg.norm(segment[:, 1] - segment[:, 0], axis=1)
    count = np.maximum(1, np.ceil(length / step)).astype(np.int64)
    which = np.repeat(np.arange(len(segment)), count)
    place = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
    share = ((place + 0.5) / count[which])[:, None]
    return segment[which, 0] * (1.0 - share) + segment[which, 1] * share, which


def _edges(triangle: Array) -> tuple[Array, Array, Array]:
    """Return the edges (e, 2), and two triangles at each: all pairs next in order about it."""
    directed = triangle[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2)
    ends = np.sort(directed, axis=1).astype(np.int64)
    key = ends[:, 0] << 32 | ends[:, 1]
    order = np.argsort(key, kind="stable")
    same = np.flatnonzero(key[order][1:] == key[order][:-1])
    return ends[order[same]], order[same] // 3, order[same + 1] // 3


def _corners(vertex: Array, pair: Array, normal: Array) -> tuple[Array, Array]:
    """Return the vertices (c,) at which sharp edges end, branch or turn, and their normals."""
    if not len(pair):
        return np.zeros(0, np.int64), np.zeros((0, 3))
    ends = pair.ravel()
    used, slot, degree = np.unique(ends, return_inverse=True, return_counts=True)
    direction = vertex[pair[:, 1]] - vertex[pair[:, 0]]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True) + 1e-300
    outgoing = np.stack([direction, -direction], axis=1).reshape(-1, 3)
    total = np.stack([np.bincount(slot, outgoing[:, k], len(used)) for k in range(3)], axis=1)
    # Two unit directions that enclose an angle of 180 degrees less the turn add up to this.
    turns = np.linalg.norm(total, axis=1) > 2.0 * math.sin(math.radians(CORNER_ANGLE) / 2.0)
    is_corner = (degree != 2) | turns
    both = np.repeat(normal, 2, axis=0)
    mean = np.stack([np.bincount(slot, both[:, k], len(used)) for k in range(3)], axis=1)
    mean = mean / (np.linalg.norm(mean, axis=1, keepdims=True) + 1e-300)
    return used[is_corner], mean[is_corner]
