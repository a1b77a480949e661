"""Where cracks run first: weak walls across bodies, and places of a lower strain limit.

Walls are random walks (levine-2014 section 6) or the artist's polylines, extruded along a
normal; bonds that cross them are weak. Points and pictures scale the strain limit of particles.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.settings import MAX_SEGMENTS, Weakening


def plane_axes(normal: Array) -> Array:
    """Return (2, 3) orthonormal axes perpendicular to ``normal``."""
    n = np.asarray(normal, float)
    length = np.linalg.norm(n)
    if length == 0.0:
        raise ValueError("weakening.normal: found [0, 0, 0]; give a direction, e.g. [0, 0, 1]")
    n = n / length
    helper = np.eye(3)[np.argmin(np.abs(n))]
    first = np.cross(helper, n)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(n, first)])


def random_walks(settings: Weakening) -> Array:
    """Return the walks as (s, 4) float64 segments in the plane, the origin at zero [m].

    Walks leave the origin at even angles with some jitter; a stride turns by a normal angle,
    and now and then starts a branch that turns off and runs for the length that is left.
    """
    rng = np.random.Generator(np.random.Philox(settings.seed))
    turn = np.radians(settings.wander)
    heading = (np.arange(settings.paths) + 0.6 * rng.random(settings.paths)) \
        * (2.0 * np.pi / max(settings.paths, 1))
    ends = [(np.zeros(2), float(angle), settings.length) for angle in heading]
    segments: list[Array] = []
    while ends and len(segments) < MAX_SEGMENTS:
        at, angle, left = ends.pop(0)
        while left > 0.0 and len(segments) < MAX_SEGMENTS:
            angle += turn * rng.normal()
            to = at + min(settings.step, left) * np.array([np.cos(angle), np.sin(angle)])
            segments.append(np.concatenate([at, to]))
            at, left = to, left - settings.step
            if rng.random() < settings.branching:
                side = rng.choice([-1.0, 1.0]) * np.radians(rng.uniform(25.0, 60.0))
                ends.append((at, angle + side, 0.6 * left))
    return np.array(segments).reshape(-1, 4)


def polyline_segments(settings: Weakening) -> Array:
    """Return the artist's polylines as (s, 4) float64 segments in the plane of the walks [m]."""
    axes = plane_axes(np.array(settings.normal))
    segments = [np.zeros((0, 4))]
    for line in settings.polylines:
        flat = (np.array(line) - np.array(settings.origin)) @ axes.T
        segments.append(np.concatenate([flat[:-1], flat[1:]], axis=1))
    return np.concatenate(segments)


def weak_segments(settings: Weakening) -> Array:
    """Return all walls of a weakening as (s, 4) float64 segments in its plane [m]."""
    return np.concatenate([random_walks(settings), polyline_segments(settings)])


def weakness(settings: Weakening, position: Array, images: Mapping[str, Array]) -> Array:
    """Return how weak (n, 3) positions are by points and picture, (n,) float64 from 0 to 1."""
    weak = np.zeros(len(position))
    for point in settings.points:
        distance2 = ((position - np.array(point)) ** 2).sum(1)
        weak = np.maximum(weak, 1.0 - distance2 / settings.radius**2)
    if settings.image:
        weak = np.maximum(weak, darkness(settings, position, images[settings.image]))
    return weak


def darkness(settings: Weakening, position: Array, image: Array) -> Array:
    """Return the darkness of a picture at (n, 3) positions, (n,) float64; 0 beside it.

    ``image`` is (h, w) from 0 to 1, its first row the top. Between the centres of pixels it is
    bilinear, in the outermost half pixel constant.
    """
    u, v = np.array(settings.image_u), np.array(settings.image_v)
    across = np.stack([u, v, np.cross(u, v)], axis=1)
    # Scaled so, the matrix is as well conditioned for millimetres as for metres.
    scale = np.linalg.norm(across, axis=0)
    place = np.linalg.solve(across / scale, (position - np.array(settings.image_origin)).T)
    x, y = place[0] / scale[0], 1.0 - place[1] / scale[1]
    inside = (x >= 0.0) & (x <= 1.0) & (y >= 0.0) & (y <= 1.0)
    height, width = image.shape
    column = np.clip(x * width - 0.5, 0.0, width - 1.0)
    row = np.clip(y * height - 0.5, 0.0, height - 1.0)
    left, top = column.astype(np.int64), row.astype(np.int64)
    right, low = np.minimum(left + 1, width - 1), np.minimum(top + 1, height - 1)
    a, b = column - left, row - top
    value = ((1 - b) * ((1 - a) * image[top, left] + a * image[top, right])
             + b * ((1 - a) * image[low, left] + a * image[low, right]))
    return np.where(inside, 1.0 - value, 0.0)
