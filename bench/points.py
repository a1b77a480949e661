"""Irregular bodies to measure on: points spread evenly, but on no lattice.

One point is thrown into each cell of a grid and then pushed from its near neighbours a few
times, which leaves gaps of about one size everywhere (blue noise). The vase of levine-2014 is
stood in for by a slab of about six layers bent to a vase, its dragon by a solid of blobs: what
a bond kernel sees is the number of points and of bonds, and how irregular they are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial import cKDTree

from vfx.geometry.handoff.types import Array, Solid

VASE_LAYERS = 6
_RELAXATIONS = 4
_REACH = 1.25                # of the mean spacing: neighbours that push
_JITTER = 0.8                # of a cell: where its point may fall


def vase_points(n: int) -> Array:
    """Return (n, 3) points of a shell of about six layers, one unit apart in the mean.

    The slab (around, up, deep) is bent to a vase whose radius varies with the height, so the
    spacing around the neck is narrower than around the belly.
    """
    side = np.sqrt(n / VASE_LAYERS)
    around, up = int(np.ceil(1.6 * side)), int(np.ceil(side / 1.6)) + 1
    cell = np.stack(np.unravel_index(np.arange(around * up * VASE_LAYERS)[:n],
                                     (up, around, VASE_LAYERS)), axis=1)
    slab = jittered(cell)
    height, angle = slab[:, 0], 2.0 * np.pi * slab[:, 1] / around
    waist = 1.0 + 0.2 * np.sin(2.0 * np.pi * height / up - 0.6)
    radius = around / (2.0 * np.pi) * waist + slab[:, 2] - 0.5 * VASE_LAYERS
    return relaxed(np.stack(
        [radius * np.cos(angle), height, radius * np.sin(angle)], axis=1))


def dragon_points(n: int) -> Array:
    """Return (n, 3) points of a solid of overlapping balls, one unit apart in the mean."""
    turn = np.linspace(0.0, 2.5 * np.pi, 14)
    center = np.stack([0.55 * np.cos(turn) + 0.03 * turn, 0.28 * turn - 1.1,
                       0.55 * np.sin(turn)], axis=1)
    radius = 0.42 + 0.12 * np.cos(1.7 * turn)

    def is_inside(point: Array) -> Array:
        inside = np.zeros(len(point), bool)
        for middle, r in zip(center, radius, strict=True):
            inside |= ((point - middle) ** 2).sum(1) < r * r
        return inside

    low = (center - radius[:, None]).min(0)
    high = (center + radius[:, None]).max(0)
    return relaxed(cells_inside(is_inside, low, high, n))


def cells_inside(is_inside: Callable[[Array], Array], low: Array, high: Array, n: int) -> Array:
    """Return n jittered points of a unit grid that a body is scaled up to hold."""
    probe = low + (high - low) * np.stack(np.meshgrid(*3 * [(np.arange(64) + 0.5) / 64]),
                                          axis=-1).reshape(-1, 3)
    volume = float(np.prod(high - low) * is_inside(probe).mean())
    scale = (n / volume) ** (1.0 / 3.0)
    while True:
        shape = np.ceil((high - low) * scale).astype(int)
        cell = np.stack(np.unravel_index(np.arange(np.prod(shape)), tuple(shape)), axis=1)
        cell = cell[is_inside((cell + 0.5) / scale + low)]
        if len(cell) >= n:
            return jittered(cell[:n])
        scale *= 1.0 + max(1e-4, 0.4 * (n - len(cell)) / n)


def jittered(cell: Array) -> Array:
    """Throw a point into each cell."""
    shift = np.random.Generator(np.random.Philox(1)).random(cell.shape) - 0.5
    point: Array = cell + 0.5 + _JITTER * shift
    return point


def relaxed(point: Array) -> Array:
    """Push points that are too near to each other apart."""
    for _ in range(_RELAXATIONS):
        first, second = cKDTree(point).query_pairs(_REACH, output_type="ndarray").T
        apart = point[first] - point[second]
        distance = np.sqrt((apart**2).sum(1))
        push = 0.3 * (_REACH - distance) / np.maximum(distance, 1e-6)
        move = np.stack([
            np.bincount(first, push * apart[:, k], len(point))
            - np.bincount(second, push * apart[:, k], len(point)) for k in range(3)], axis=1)
        length = np.sqrt((move**2).sum(1, keepdims=True))
        point = point + move * np.minimum(1.0, 0.2 / np.maximum(length, 1e-6))
    return point


def reach_for(point: Array, bonds: float) -> float:
    """Return the reach within which a point has ``bonds`` others in the mean, by bisection."""
    tree = cKDTree(point)
    sample = point[:: max(1, len(point) // 4000)]
    low, high = 0.5, 12.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        count = tree.query_ball_point(sample, middle, return_length=True) - 1
        low, high = (middle, high) if count.mean() < bonds else (low, middle)
    return high


def irregular_solid(point: Array, bonds: float, horizon: float, length_scale: float) -> Solid:
    """Return a body of the points, scaled so that ``horizon`` lambda hold ``bonds`` bonds.

    Adjacent are the four nearest, as many as a tetrahedron has faces.
    """
    spacing = horizon * length_scale / reach_for(point, bonds)
    position = spacing * point
    near = cKDTree(position).query(position, 5)[1][:, 1:]
    pair = np.stack([np.repeat(np.arange(len(point)), 4), near.ravel()], axis=1)
    edge = np.unique(np.sort(pair, axis=1), axis=0)
    n = len(point)
    return Solid(
        position=position, volume=np.full(n, spacing**3),
        size=np.full(n, length_scale), body=np.zeros(n, np.int32),
        cell=np.zeros((n, 3), np.int32), edge=edge.astype(np.int32),
        length_scale=np.array([length_scale]), orientation=np.eye(3)[None],
        kind=np.array(["voronoi"]), body_name=np.array(["body"]), material_name=np.array(["glass"]))
