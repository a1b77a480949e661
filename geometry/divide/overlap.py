"""What lies inside a body before anything is built: another body, or a ball.

Only surfaces are known then. Two boxes are compared exactly, other bodies at places spread
evenly over what their bounds have in common.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.filling import even_places
from vfx.geometry.divide.sources import block_edges, body_size, filling_of, surface_of
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.orientation import body_orientation
from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.door import points_inside

#: Share of lambda by which lattices may be off and touching boxes may overlap: far above
#: round-off, far below anything that matters to bonds or pictures.
TOLERANCE = 1e-6
#: Places at which two bodies are compared.
SAMPLES = 20_000
#: Pairs of bodies that are compared, at most: what takes a minute.
MOST_PAIRS = 1_000
#: A common box thinner than this share of its length is that of bodies which just touch.
_THINNEST = 1e-6
#: A length [m] beyond all.
_FAR = 1e9


@dataclass(frozen=True)
class Overlap:
    """Two bodies that share space at rest."""

    names: tuple[str, str]
    place: Array             # (3,) [m]: the middle of what they share
    volume: float            # [m^3] of it, about


def refuse_box_overlap(bodies: Sequence[Body]) -> None:
    """Raise ValueError if two of the bodies that are boxes overlap; they may touch."""
    bodies = [body for body in bodies if not body.mesh]
    if not bodies:
        return
    names = [body.name for body in bodies]
    center = np.array([body.center for body in bodies], dtype=np.float64)
    half = np.array([block_edges(body) for body in bodies]) / 2
    axes = np.stack([body_orientation(body) for body in bodies])
    slack = TOLERANCE * min(body_size(body).spacing for body in bodies)
    reach = np.einsum("bij,bj->bi", np.abs(axes), half)
    for a in range(len(names) - 1):
        gap = np.abs(center[a + 1:] - center[a]) - (reach[a + 1:] + reach[a])
        for b in map(int, a + 1 + np.flatnonzero((gap < -slack).all(axis=1))):
            if _box_gap(center[b] - center[a], half[a], axes[a], half[b], axes[b]) < -slack:
                raise ValueError(f"bodies '{names[a]}' and '{names[b]}' overlap at rest; move or "
                                 "turn one of them")


def _box_gap(shift: Array, half_a: Array, axes_a: Array, half_b: Array, axes_b: Array) -> float:
    """Return the largest gap of two boxes over their separating axes [m]; below 0 they meet."""
    cross = np.cross(axes_a.T[:, None, :], axes_b.T[None, :, :]).reshape(9, 3)
    length = np.linalg.norm(cross, axis=1)
    # Parallel edges give no axis of their own.
    cross = cross[length > 1e-6] / length[length > 1e-6, None]
    direction = np.concatenate([axes_a.T, axes_b.T, cross])
    reach = np.abs(direction @ axes_a) @ half_a + np.abs(direction @ axes_b) @ half_b
    return float(np.max(np.abs(direction @ shift) - reach))


def find_overlaps(
    device: Device, bodies: Sequence[Body], folder: Path | None = None
) -> Iterator[Overlap]:
    """Yield the pairs of bodies, one of them at least a mesh, that share space at rest.

    Of very many that are near each other the first are compared.
    """
    low, high = world_boxes(bodies, folder)
    for a, b in islice(_near_pairs(bodies, low, high), MOST_PAIRS):
        corner, extent = _common_box(low, high, a, b)
        point = corner + extent * even_places(SAMPLES)
        for body in (bodies[a], bodies[b]):
            surface = surface_of(body, folder)[0]
            local = (point - np.array(body.center)) @ body_orientation(body)
            point = point[points_inside(device, surface, local)]
        if len(point):
            yield Overlap((bodies[a].name, bodies[b].name), point.mean(axis=0),
                          len(point) / SAMPLES * float(extent.prod()))


def _near_pairs(bodies: Sequence[Body], low: Array, high: Array) -> Iterator[tuple[int, int]]:
    """Yield pairs of bodies, one of them at least a mesh, whose boxes share space."""
    is_mesh = np.array([bool(body.mesh) for body in bodies])
    for a in range(len(bodies) - 1):
        _, extent = _common_box(low, high, a, slice(a + 1, None))
        near = extent.min(axis=1) > _THINNEST * np.abs(extent).max(axis=1)
        for b in np.flatnonzero(near & (is_mesh[a] | is_mesh[a + 1:])).tolist():
            yield a, a + 1 + b


def _common_box(low: Array, high: Array, a: int, b: int | slice) -> tuple[Array, Array]:
    """Return the lower corner and the edges of what boxes have in common; below 0 for nothing."""
    corner = np.maximum(low[a], low[b])
    return corner, np.minimum(high[a], high[b]) - corner


def ball_depths(body: Body, center: Array, radius: Array, folder: Path | None = None) -> Array:
    """Return how deep balls, center (k, 3) and radius (k,), reach into a body at rest (k,) [m].

    0 or less where they do not.
    """
    local = turned(center - np.array(body.center), body_orientation(body).T)
    if not body.mesh:
        beside = np.abs(local) - 0.5 * np.array(block_edges(body))
        outside = np.linalg.norm(np.maximum(beside, 0.0), axis=1)
        depth: Array = radius - outside - np.minimum(beside.max(axis=1), 0.0)
        return depth
    filling = filling_of(body, folder)
    away = filling.depth(local, np.full(len(local), _FAR))
    return np.asarray(radius + np.where(filling.holds(local), away, -away))


def harmless_depth(body: Body, folder: Path | None = None) -> float:
    """Return about how deep a ball may reach into a body and not touch an element's middle [m]."""
    return 0.5 * body_size(body, folder).spacing


def world_boxes(bodies: Sequence[Body], folder: Path | None = None) -> tuple[Array, Array]:
    """Return the lower and upper corners (b, 3) of bodies at rest [m]."""
    vertex = [surface_of(body, folder)[0].vertex @ body_orientation(body).T
              + np.array(body.center) for body in bodies]
    return np.array([v.min(axis=0) for v in vertex]), np.array([v.max(axis=0) for v in vertex])
