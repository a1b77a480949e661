"""What lies inside a body before anything is built: another body, or a ball.

Only surfaces are known then, so that bodies are compared at places spread evenly over what
their boxes have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from vfx.device import Device
from vfx.geometry.bodies import Body
from vfx.geometry.crossings import build_tree, points_inside
from vfx.geometry.distance import build_distance
from vfx.geometry.filling import even_places
from vfx.geometry.grid import body_orientation
from vfx.geometry.handoff import Array
from vfx.geometry.sources import body_size, encloses, surface_of

#: Places at which two bodies are compared.
SAMPLES = 20_000
#: A common box thinner than this share of its length is that of bodies which just touch.
_THINNEST = 1e-6


@dataclass(frozen=True)
class Overlap:
    """Two bodies that share space at rest."""

    names: tuple[str, str]
    place: Array             # (3,) [m]: the middle of what they share
    volume: float            # [m^3] of it, about


def find_overlaps(
    device: Device, bodies: Sequence[Body], folder: Path | None = None
) -> Iterator[Overlap]:
    """Yield the pairs of bodies, one of them at least a mesh, that share space at rest."""
    box = [_world_box(body, folder) for body in bodies]
    for a, b in combinations(range(len(bodies)), 2):
        if not (bodies[a].mesh or bodies[b].mesh):
            continue
        low, high = np.maximum(box[a][0], box[b][0]), np.minimum(box[a][1], box[b][1])
        extent = high - low
        if extent.min() <= _THINNEST * np.abs(extent).max():
            continue
        point = low + extent * even_places(SAMPLES)
        for body in (bodies[a], bodies[b]):
            surface = surface_of(body, folder)[0]
            tree = build_tree(surface.vertex, surface.triangle)
            local = (point - np.array(body.center)) @ body_orientation(body)
            point = point[points_inside(device, tree, local)]
        if len(point):
            yield Overlap((bodies[a].name, bodies[b].name), point.mean(axis=0),
                          len(point) / SAMPLES * float(extent.prod()))


def ball_depth(
    device: Device, body: Body, center: Sequence[float], radius: float,
    folder: Path | None = None,
) -> float:
    """Return how deep a ball reaches into a body at rest [m]; 0 or less where it does not."""
    surface = surface_of(body, folder)[0]
    local = body_orientation(body).T @ np.subtract(center, body.center)
    low, high = surface.vertex.min(axis=0), surface.vertex.max(axis=0)
    outside = np.linalg.norm(np.maximum(np.maximum(low - local, local - high), 0.0))
    if outside >= radius:
        return radius - float(outside)
    scale = float((high - low).max())
    middle = 0.5 * (low + high)
    tree = build_distance(device, (surface.vertex[surface.triangle] - middle) / scale)
    nearest, _ = tree.nearest(device.from_host(((local - middle) / scale)[None]))
    distance = scale * float(np.linalg.norm(
        device.to_host(nearest)[0] - (local - middle) / scale))
    return radius + distance if encloses(surface, local) else radius - distance


def harmless_depth(body: Body, folder: Path | None = None) -> float:
    """Return how deep a ball may reach into a body without touching a particle [m], about."""
    return 0.5 * body_size(body, folder).spacing


def _world_box(body: Body, folder: Path | None) -> tuple[Array, Array]:
    """Return the lower and upper corner of a body at rest."""
    vertex = surface_of(body, folder)[0].vertex @ body_orientation(body).T + np.array(body.center)
    return vertex.min(axis=0), vertex.max(axis=0)
