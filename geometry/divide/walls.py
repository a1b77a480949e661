"""How thick the thin parts of a body are, told from its surface before anything is built.

From places spread evenly over the surface one goes straight in until the surface is met again. Of
these lengths the one that a small share of the surface falls short of counts: single sharp edges
do not.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from vfx.geometry.divide.filling import Filling, even_places
from vfx.geometry.divide.sources import block_edges, filling_of, surface_of, unplaced
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array

#: Places on the surface that are looked at.
PROBES = 1024
#: Share of the surface whose parts are thinner than what counts as thin.
THIN_SHARE = 0.15
#: How deep the way in begins, in sizes of the body, and how near the surface it ends.
_BEGIN = 1e-5
#: Strides of a way; each goes as far as nothing can be in the way. Those that take more lead along
#: another side, close to it, and are left out.
_STRIDES = 60
#: Of a wall this many times as wide as it is thick bending matters.
WIDE = 5.0


@functools.cache
def wall_thickness(body: Body, folder: Path | None = None) -> float:
    """Return the thickness [m] of the thin parts of a body."""
    if not body.mesh:
        return min(block_edges(body))
    surface = surface_of(body, folder)[0]
    found = chords(filling_of(body, folder), surface)
    if not len(found):
        return float(np.ptp(surface.vertex, axis=0).min())
    return float(np.quantile(found, THIN_SHARE))


def is_wall(body: Body, folder: Path | None = None) -> bool:
    """Whether a body is so thin, or has parts so thin, that they bend."""
    plain = unplaced(body)
    vertex = surface_of(plain, folder)[0].vertex
    return float(np.ptp(vertex, axis=0).max()) >= WIDE * wall_thickness(plain, folder)


def chords(filling: Filling, surface: Surface) -> Array:
    """Return how far (p,) [m] it is straight in from the surface to the surface again."""
    place, inward = _probes(surface)
    size = float(np.ptp(surface.vertex, axis=0).max())
    gone = np.full(len(place), _BEGIN * size)
    on_the_way = np.ones(len(place), bool)
    for _ in range(_STRIDES):
        some = np.flatnonzero(on_the_way)
        if not len(some):
            break
        point = place[some] + gone[some, None] * inward[some]
        depth = filling.depth(point, np.full(len(some), 2.0 * size))
        gone[some] += depth
        # The surface that one comes from is as near as one has gone.
        on_the_way[some] = depth > 1e-3 * gone[some]
    return np.asarray(gone[~on_the_way])


def _probes(surface: Surface) -> tuple[Array, Array]:
    """Return places (p, 3) spread evenly over a surface, and the way in (p, 3) from each."""
    a, b, c = (surface.vertex[surface.triangle[:, k]] for k in range(3))
    out = np.cross(b - a, c - a)
    area = np.linalg.norm(out, axis=1)
    even = even_places(PROBES)
    # In the order of the triangles, so that the parts of a mesh get their share.
    share = (np.arange(PROBES) + 0.5) / PROBES
    which = np.searchsorted(np.cumsum(area) / area.sum(), share).clip(0, len(area) - 1)
    s, t = even[:, 0], even[:, 1]
    fold = s + t > 1.0
    s, t = np.where(fold, 1.0 - s, s)[:, None], np.where(fold, 1.0 - t, t)[:, None]
    place = a[which] + s * (b - a)[which] + t * (c - a)[which]
    return place, -out[which] / area[which, None]
