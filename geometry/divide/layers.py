"""Points spread evenly over the layers of a shell (levine-2014 section 4).

Layer k is where the depth below the surface is k times the layer spacing; layer 0 is the surface
itself. On each layer points repel each other by the energy of Meyer, Kirby and Whitaker 2007,

    E(r) = cot(x) + x - pi/2,  x = (pi/2) r / sigma,  for r < sigma, and 0 beyond,

and go down its gradient: push = sum cot^2(x) (p - q)/r, each divided by the curvature of its own
energy, sum cot(x)/sin^2(x). After each step a point returns to its layer along the way to the
nearest point of the surface; a point of a sharp edge returns to that edge. Points of two sides of
a thin wall or a narrow gap do not see each other: each side needs points of its own.

Points start as a maximal set no two of which are nearer than a share of the spacing, chosen from
points thrown into the band of the shell: their number is then right everywhere, and only their
places have to be smoothed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.band import Band
from vfx.geometry.divide.features import Features, sample_segments
from vfx.geometry.handoff.elements import Progress
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.distance import DistanceTree, build_distance

#: sigma in spacings: the push reaches the second neighbours of a hexagonal lattice.
ENERGY_REACH = 1.8
#: Least distance of the first points in spacings: a maximal set of that distance has as many
#: points as a hexagonal lattice of one spacing.
FIRST_DISTANCE = 0.776
SPREAD_STEPS = 30
_RATE = 1.0                  # of the step that the energy's own curvature asks for
_MOST_MOVE = 0.2             # spacings a step
_LANDINGS = 4                # at the end, to come to rest on ridges of a layer
_OFF_LAYER = 0.05            # layer spacings that a point may end off its layer

_FREE, _ON_EDGE, _AT_CORNER = 0, 1, 2


@dataclass
class Points:
    """Points on layers; arrays of the device."""

    point: Any               # (n, 3) float64
    layer: Any               # (n,) int32
    kind: Any                # (n,) uint8: free on its layer, on a sharp edge, or at a corner
    nearest: Any             # (n, 3) float64: a near point of the surface, the last one known
    normal: Any              # (n, 3) float64: of the surface for those that are free on it, or 0

    def take(self, index: Any) -> Points:
        """Return those of ``index``."""
        return Points(self.point[index], self.layer[index], self.kind[index],
                      self.nearest[index], self.normal[index])


def candidate_points(
    tree: DistanceTree, band: Band, features: Features, *, spacing: float, layers: int
) -> Points:
    """Return far more points on the layers than are needed, from which to choose."""
    device, xp = tree.device, tree.device.xp
    layer = np.maximum(np.rint(band.depth / spacing), 0).astype(np.int32)
    edge_point, which = sample_segments(features.segment, spacing / 8.0)
    sharp = np.concatenate([features.corner, edge_point])
    sharp_normal = np.concatenate([features.corner_normal, features.normal[which]])
    kind = np.repeat(np.array([_AT_CORNER, _ON_EDGE], np.uint8),
                     [len(features.corner), len(edge_point)])
    seen = is_resolved(tree, sharp, sharp_normal, 0.5 * spacing)
    sharp, kind = sharp[seen], kind[seen]
    _, sharp_triangle = tree.nearest(device.from_host(sharp))
    triangle = np.concatenate([device.to_host(sharp_triangle), band.triangle])
    layer = np.concatenate([np.zeros(len(sharp), np.int32), layer])
    kind = np.concatenate([kind, np.full(len(band.depth), _FREE, np.uint8)])
    points = Points(
        point=device.from_host(np.concatenate([sharp, band.point])),
        layer=device.from_host(layer), kind=device.from_host(kind),
        nearest=device.from_host(np.concatenate([sharp, band.nearest])),
        normal=_surface_normals(tree, device.from_host(triangle), device.from_host(layer),
                                device.from_host(kind)))
    points = points.take(xp.flatnonzero(points.layer < layers))
    return points.take(xp.flatnonzero(first_landing(tree, points, spacing)))


def first_points(device: Device, candidates: Points, *, across: float, seed: int) -> Points:
    """Choose points that are ``across`` apart or so on each layer, corners and edges first."""
    n = len(candidates.point)
    rank = np.random.Generator(np.random.Philox(seed + 1)).permutation(n)
    order = device.from_host(rank) - n * candidates.kind.astype(device.xp.int64)
    return thin(device, candidates, order, FIRST_DISTANCE * across)


def first_landing(tree: DistanceTree, points: Points, spacing: float) -> Any:
    """Put points (in place) onto their layers; return which of them (n,) found theirs.

    One that rises to its layer keeps its nearest point. One that sinks may come nearer to
    another side of the body, or to none where the layer has died out.
    """
    device, xp = tree.device, tree.device.xp
    rises = xp.sqrt(((points.point - points.nearest) ** 2).sum(axis=1)) >= spacing * points.layer
    sinking = xp.flatnonzero(~rises)
    kernels = device.module("geometry/divide/layers.cu")
    kernels.land_points(len(points.point), spacing, points.layer, points.nearest,
                        (points.kind == _AT_CORNER).astype(xp.uint8), points.point)
    sunk = land(tree, None, points.take(sinking), spacing, 2)
    found = on_layer(tree, sunk, spacing)
    points.point[sinking], points.nearest[sinking] = sunk.point, sunk.nearest
    rises[sinking] = found
    return rises


def thin(device: Device, points: Points, rank: Any, distance: float) -> Points:
    """Choose points no two of which, on one layer, are nearer than ``distance``.

    Those of low ``rank`` (n,) go first, and no other could be added.
    """
    xp = device.xp
    kernels = device.module("geometry/divide/layers.cu")
    points, start, order = bucketed(device, points, distance)
    rank = rank[order]
    state = xp.zeros(len(rank), xp.uint8)
    undecided = xp.arange(len(rank), dtype=xp.int32)
    is_first_round = 1
    while len(undecided):
        following = state.copy()
        kernels.thin_points(
            len(undecided), len(start) - 1, is_first_round, distance, undecided, points.point,
            points.normal, points.layer, start, rank, state, following)
        state, is_first_round = following, 0
        undecided = undecided[state[undecided] == 0]
    return points.take(xp.flatnonzero(state == 1))


def is_resolved(tree: DistanceTree, point: Array, normal: Array, step: float) -> Array:
    """Return whether points of sharp edges are so also for one who sees no less than ``step``.

    On a flat surface a step along the normal leads as far from the surface; from a sharp edge
    of any kind, one of the two ways out of it stays nearer.
    """
    device = tree.device
    nearest = np.full(len(point), np.inf)
    for sign in (-1.0, 1.0):
        probe = point + sign * step * normal
        found, _ = tree.nearest(device.from_host(probe))
        nearest = np.minimum(nearest, np.linalg.norm(device.to_host(found) - probe, axis=1))
    return nearest < 0.95 * step


def spread(
    tree: DistanceTree, features: Features, points: Points, *, spacing: float, across: float,
    steps: int, progress: Progress | None = None, share: tuple[float, float] = (0.0, 1.0)
) -> Points:
    """Let the points repel each other for ``steps``, on their layers."""
    device, xp = tree.device, tree.device.xp
    kernels = device.module("geometry/divide/layers.cu")
    edge = ENERGY_REACH * across
    sharp = None
    if len(features.segment):
        corner = features.segment[:, [0, 1, 1]]
        sharp = build_distance(device, corner)
    for step in range(steps):
        points, start, _order = bucketed(device, points, edge)
        n = len(points.point)
        moved = xp.empty((n, 3))
        kernels.spread_points(
            n, len(start) - 1, edge, _MOST_MOVE * across, _RATE, points.point, points.normal,
            points.layer, start, (points.kind == _AT_CORNER).astype(xp.uint8), moved)
        points = land(tree, sharp, replace(points, point=moved), spacing, 1)
        if progress is not None:
            progress("Spreading points", share[0] + (share[1] - share[0]) * (step + 1) / steps)
    points = land(tree, sharp, points, spacing, _LANDINGS)
    return points.take(xp.flatnonzero(on_layer(tree, points, spacing)))


def land(
    tree: DistanceTree, sharp: DistanceTree | None, points: Points, spacing: float, times: int
) -> Points:
    """Return points to their layers; on a ridge it takes some times."""
    device, xp = tree.device, tree.device.xp
    if not len(points.point):
        return points
    kernels = device.module("geometry/divide/layers.cu")
    point, nearest = points.point.copy(), points.nearest
    fixed = (points.kind == _AT_CORNER).astype(xp.uint8)
    on_edge = xp.flatnonzero(points.kind == _ON_EDGE)
    for _ in range(times):
        nearest, triangle = tree.nearest(point, _bound(xp, point, nearest))
        if sharp is not None:
            nearest[on_edge], _segment = sharp.nearest(point[on_edge])
        kernels.land_points(len(point), spacing, points.layer, nearest, fixed, point)
    normal = _surface_normals(tree, triangle, points.layer, points.kind)
    return replace(points, point=point, nearest=nearest, normal=normal)


def _surface_normals(tree: DistanceTree, triangle: Any, layer: Any, kind: Any) -> Any:
    """Return the normals (n, 3) of points that are free on the surface; of others, zero."""
    on_surface = (layer == 0) & (kind == _FREE)
    return tree.normal[triangle] * on_surface.astype(tree.device.xp.float64)[:, None]


def on_layer(tree: DistanceTree, points: Points, spacing: float) -> Any:
    """Return whether each point (n,) is about as deep as its layer, and inside."""
    xp = tree.device.xp
    nearest, triangle = tree.nearest(points.point, _bound(xp, points.point, points.nearest))
    depth = xp.sqrt(((points.point - nearest) ** 2).sum(axis=1))
    is_right = xp.absolute(depth - spacing * points.layer) <= _OFF_LAYER * spacing
    below = xp.flatnonzero(points.layer > 0)
    is_right[below] &= tree.inside(points.point[below], nearest[below], triangle[below])
    return is_right


def _bound(xp: Any, point: Any, nearest: Any) -> Any:
    """Return how far (n,) the surface can be, from a point of it that was near before."""
    return xp.sqrt(((point - nearest) ** 2).sum(axis=1)) * (1.0 + 1e-9) + 1e-12


def bucketed(device: Device, points: Points, edge: float) -> tuple[Points, Any, Any]:
    """Sort points by buckets of cells of ``edge``; return them, the buckets' starts, the order."""
    xp = device.xp
    n = len(points.point)
    n_buckets = 1 << max(12, (2 * n - 1).bit_length())
    key = xp.empty(n, xp.int64)
    if n:
        device.module("geometry/divide/layers.cu").bucket_points(
            n, n_buckets, edge, points.point, points.layer, key)
    key = xp.sort(key)
    start = xp.searchsorted(key, xp.arange(n_buckets + 1, dtype=xp.int64) << 32)
    order = key & 0xFFFFFFFF
    return points.take(order), start.astype(xp.int32), order
