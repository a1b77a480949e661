"""Divide the solid in a closed surface into clipped Voronoi cells (levine-2014 4, trimtopes).

Blue-noise points are the sites (``blue_noise.py``); their cells (``cells.py``) are clipped to
the surface: polygons of its triangles in each cell (``clip.py``), and what of the faces between
cells is inside (``cell_faces.py``). A cell that the surface cuts into several lumps becomes
several elements (``clipped_cells.py``). Two elements are adjacent where they share area inside.

Everything is computed at unit size about the origin, so that neither scale nor place matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.blue_noise import blue_noise
from vfx.geometry.divide.cell_faces import InnerPolygons, inner_polygons
from vfx.geometry.divide.cells import Cells, TiedSitesError, voronoi_cells
from vfx.geometry.divide.clip import SurfacePolygons, clip_surface, edge_owners
from vfx.geometry.divide.clipped_cells import assemble_elements
from vfx.geometry.divide.grading import Grading
from vfx.geometry.handoff.elements import Elements, Progress, Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.points import WindingNumbers

#: How often sites are moved a little where a clipping failed: exact ties need it, nothing else.
MOST_TRIES = 4
#: How far sites are moved then, relative to their size, and ten times more at each try.
NUDGE = 1e-7


def divide_voronoi(
    device: Device, surface: Surface, *, spacing: float | None, count: int | None,
    grading: Grading | None = None, seed: int = 0, progress: Progress,
) -> Elements:
    """Divide a surface into Voronoi cells ``spacing`` [m] apart at least, or ``count`` of them."""
    samples = blue_noise(device, surface, spacing=spacing, count=count, grading=grading, seed=seed,
                         progress=progress)
    return clip_voronoi(device, surface, samples.point, samples.size, samples.distance,
                        reach=1.001 * samples.cover * samples.size, seed=seed, progress=progress)


def clip_voronoi(
    device: Device, surface: Surface, site: Array, size: Array, length_scale: float, *,
    reach: Array, seed: int = 0, progress: Progress, nudged: bool = False,
) -> Elements:
    """Divide a surface by the cells of sites (n, 3) inside it.

    size (n,): the length scale of each; reach (n,): how far from its site a cell probably goes
    inside the surface, at most: where it goes farther, the cell is computed again.
    """
    frame = _Frame.of(surface)
    vertex = device.from_host(frame.to_unit(surface.vertex))
    triangle = device.from_host(np.asarray(surface.triangle, np.int32))
    windings = WindingNumbers(device, vertex, triangle)
    edge_owner = edge_owners(device, triangle, len(surface.vertex))
    mesh = _Mesh(vertex, triangle, edge_owner, windings)
    for attempt in range(MOST_TRIES):
        moved = frame.to_unit(site)
        if attempt or nudged:
            random = np.random.default_rng([seed, attempt]).uniform(-1.0, 1.0, site.shape)
            moved = moved + NUDGE * 10.0**attempt * random * (size * frame.scale)[:, None]
        try:
            clipped = _clip_cells(device, mesh, moved, reach * frame.scale, progress)
        except TiedSitesError:
            if attempt == MOST_TRIES - 1:
                raise
            continue
        if clipped.n_wrong == 0:
            break
    progress("elements", 0.9)
    return assemble_elements(device, surface, clipped, frame.from_unit(moved), size, length_scale,
                             frame)


@dataclass(frozen=True)
class _Frame:
    """From metres to unit size about the origin."""

    center: Array
    scale: float

    @classmethod
    def of(cls, surface: Surface) -> _Frame:
        used = surface.vertex[np.unique(surface.triangle)]
        low, high = used.min(axis=0), used.max(axis=0)
        return cls(0.5 * (low + high), 1.0 / float((high - low).max()))

    def to_unit(self, point: Array) -> Array:
        unit: Array = (np.asarray(point, np.float64) - self.center) * self.scale
        return unit

    def from_unit(self, point: Array) -> Array:
        metres: Array = point / self.scale + self.center
        return metres


@dataclass(frozen=True)
class _Mesh:
    vertex: Any
    triangle: Any
    edge_owner: Any
    windings: WindingNumbers


@dataclass(frozen=True)
class Clipped:
    """Cells, their surface polygons and inner polygons, at unit size, on their device."""

    cells: Cells
    surface: SurfacePolygons
    inner: InnerPolygons
    position: Any         # (v, 3): Voronoi vertices, the mesh's, cuts
    n_wrong: int          # corners and faces that did not fit together


def _clip_cells(
    device: Device, mesh: _Mesh, site: Array, reach: Array, progress: Progress
) -> Clipped:
    """Clip the cells of sites, with a longer reach for those that need it."""
    xp = device.xp
    box = np.full(3, 0.5 + 1e-3)
    while True:
        progress("Voronoi cells", 0.3)
        cells = voronoi_cells(device, device.from_host(site), -box, box, device.from_host(reach))
        order = device.to_host(cells.grid.order)
        progress("clipping", 0.5)
        surface = clip_surface(device, cells, device.from_host(reach[order]), mesh.vertex,
                               mesh.triangle, mesh.edge_owner)
        walled = device.to_host(surface.walled)
        if len(walled) == 0:
            position = xp.concatenate([cells.position, mesh.vertex, surface.cut])
            progress("faces", 0.7)
            inner = inner_polygons(device, cells, surface, mesh.windings, position)
            walled = device.to_host(inner.walled)
        if len(walled) == 0:
            return Clipped(cells, surface, inner, position, surface.n_lost + len(inner.failed))
        reach = reach.copy()
        reach[order[walled]] *= 2.0
