"""Voronoi cells, each computed on its own.

A box about the site is clipped by the bisectors to its neighbours, nearest first, until no
site within twice the distance of the farthest vertex is left (the radius of security: Ray,
Sokolov, Lefebvre, Levy 2018, "Meshless Voronoi on the GPU"). Cells do not wait for each
other, and no Delaunay triangulation is built. A vertex is known by the four sites at it, and
kept once, by the cell of the lowest of them: chunks of cells are computed in ascending order,
so that a chunk finds the vertices of lower cells as soon as it is computed, and the positions of
all others need not leave its room.

The box about a site has half-width ``reach``, so that cells at the hull of the sites, which
would go far, stay small where only what is near matters. Where a reach cuts, the cell has a
"reach wall" among its planes: see ``Cells.plane``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device, Record
from vfx.geometry.divide.point_grid import PointGrid, grid_points
from vfx.geometry.handoff.types import Array

#: As in cells.cu.
MOST_PLANES, MOST_VERTICES = 64, 128
FIRST_REACH_WALL = -7
#: Planes of the largest cell that is tried.
LARGEST_CELL = 16_384
#: Cells computed at once: a bound of the scratch memory.
CHUNK = 16_384
#: Planes, vertices and own vertices a cell that room is made for: random points have 15.5, 27.1
#: and 6.8.
PLANES_A_CELL, VERTICES_A_CELL, OWN_A_CELL = 16.5, 29.0, 9.0
#: Sites a cell of the grid that they are searched in.
SITES_A_CELL = 1.5


class TiedSitesError(ValueError):
    """So many sites are at one distance from a place that rounding cannot tell them apart."""


@dataclass(frozen=True)
class Cells:
    """Cells of n sites, on their device; v vertices, each counted once."""

    grid: PointGrid       # the sites, sorted by the cells of a grid: cells are in that order
    plane_start: Any      # (n + 1,) int64
    plane: Any            # int32: neighbour beyond each plane, ascending in a cell; -1 to -6 a
                          # wall of the box; -7 and below a reach wall
    vertex_start: Any     # (n + 1,) int64
    vertex_plane: Any     # (..., 3) uint16: planes at each vertex of a cell, counted in the cell;
                          # (a, b, c) is followed by (a, c, .) anticlockwise around plane a
    vertex: Any           # (...,) int32: which of the v vertices it is
    position: Any         # (v, 3) float64


def voronoi_cells(device: Device, site: Any, lower: Array, upper: Array, reach: Any) -> Cells:
    """Return the cells of device sites (n, 3) in a box; ``reach`` (n,), in the same order.

    No two sites may be at one place. Raises TiedSitesError where sites are to be moved a little.
    """
    xp = device.xp
    n = len(site)
    grid = _site_grid(device, site)
    box = device.struct("geometry/divide/cells.cu", "Box", lower=lower, upper=upper)
    given = (grid.struct, box, xp.ascontiguousarray(reach[grid.order]))
    room = _Room(device, min(CHUNK, n), MOST_PLANES, MOST_VERTICES)
    lists = _Lists(device, n)
    for first in range(0, n, CHUNK):
        _compute_chunk(device, first, min(CHUNK, n - first), given, room, lists)
    position = lists.position.filled
    if lists.lost:
        vertex, place = (xp.concatenate(part) for part in zip(*lists.lost, strict=True))
        lists.vertex.filled[vertex] = len(position) + xp.arange(len(vertex), dtype=xp.int32)
        position = xp.concatenate([position, place])
    return Cells(grid, lists.plane_start, lists.plane.filled, lists.vertex_start,
                 lists.vertex_plane.filled, lists.vertex.filled, position)


class _GrowingList:
    """Rows of a device array that are added chunk by chunk; it is moved only when it is full."""

    def __init__(self, device: Device, n: int, rows: float, shape: tuple[int, ...],
                 dtype: Any) -> None:
        self._xp = device.xp
        self._array = device.xp.empty((int(rows * n) + MOST_VERTICES, *shape), dtype)
        self._count = 0

    def extend(self, count: int) -> Any:
        """Make it ``count`` rows long, the new ones to be filled; return all of them."""
        if count > len(self._array):
            larger = self._xp.empty((2 * count, *self._array.shape[1:]), self._array.dtype)
            larger[:self._count] = self.filled
            self._array = larger
        self._count = count
        return self.filled

    @property
    def filled(self) -> Any:
        """The rows so far."""
        return self._array[:self._count]


class _Lists:
    """The lists of all cells so far, as in ``Cells``."""

    def __init__(self, device: Device, n: int) -> None:
        self._device, xp = device, device.xp
        self.plane_start, self.vertex_start, self.own_start = (
            xp.zeros(n + 1, xp.int64) for _ in range(3))
        self.plane, self.vertex_plane, self.vertex, self.other, self.position = (
            _GrowingList(device, n, *kind) for kind in (
                (PLANES_A_CELL, (), xp.int32), (VERTICES_A_CELL, (3,), xp.uint16),
                (VERTICES_A_CELL, (), xp.int32), (OWN_A_CELL, (3,), xp.int32),
                (OWN_A_CELL, (3,), xp.float64)))
        #: Vertices that no lower cell knows though it should, where rounding decides, and where
        #: they are.
        self.lost: list[tuple[Any, Any]] = []

    def extend(self, first: int, *count: Any) -> Record:
        """Make room for cells from ``first`` on with so many planes, vertices, own vertices.

        Returns the lists as kernels take them.
        """
        starts = (self.plane_start, self.vertex_start, self.own_start)
        ends = []
        for start, added in zip(starts, count, strict=True):
            here = start[first + 1:first + 1 + len(added)]
            added.cumsum(dtype=start.dtype, out=here)
            here += start[first]
            ends.append(int(here[-1]))
        planes, vertices, own = ends
        return self._device.struct(
            "geometry/divide/cells.cu", "CellLists", plane_start=self.plane_start,
            vertex_start=self.vertex_start, own_start=self.own_start,
            plane=self.plane.extend(planes), vertex_plane=self.vertex_plane.extend(vertices),
            vertex=self.vertex.extend(vertices), other=self.other.extend(own),
            position=self.position.extend(own))


def _site_grid(device: Device, site: Any) -> PointGrid:
    """Sort sites into a grid with about SITES_A_CELL in the cells that have any."""
    low, high = (np.asarray(corner.tolist()) for corner in (site.min(axis=0), site.max(axis=0)))
    extent = np.maximum(high - low, 1e-6 * float((high - low).max()) + 1e-300)
    cell = float((SITES_A_CELL * np.prod(extent) / len(site)) ** (1.0 / 3.0))
    while True:
        grid = grid_points(device, site, low, low + extent, cell, a_point=64.0)
        occupied = int((grid.start[1:] > grid.start[:-1]).sum())
        crowd = len(site) / occupied
        if crowd < 2.0 * SITES_A_CELL or grid.cell > 1.01 * cell:
            return grid
        cell *= (SITES_A_CELL / crowd) ** (1.0 / 3.0)


def _compute_chunk(
    device: Device, first: int, n: int, given: tuple[Any, ...], room: _Room, lists: _Lists
) -> None:
    """Add the cells of consecutive sites to the lists.

    ``room`` is for n cells at least; it may be used again.
    """
    xp = device.xp
    kernels = device.module("geometry/divide/cells.cu")
    kernels.compute_cells(n, first, *given, room.struct)
    _refuse_ties(room.n_planes[:n])
    rooms = [(xp.arange(n, dtype=xp.int32), room)]
    n_planes, n_vertices, n_own = (
        part[:n].copy() for part in (room.n_planes, room.n_vertices, room.n_own))

    # Cells with many neighbours get larger rooms until they fit.
    crowded = xp.flatnonzero(n_planes < 0).astype(xp.int32)
    room.n_planes[crowded] = 0
    most_planes, most_vertices = MOST_PLANES, MOST_VERTICES
    while len(crowded) > 0:
        most_planes, most_vertices = 4 * most_planes, 4 * most_vertices
        if most_planes > LARGEST_CELL:
            raise ValueError(f"a Voronoi cell has more than {most_planes // 4} neighbours; "
                             "spread the sites more evenly")
        larger = _Room(device, len(crowded), most_planes, most_vertices)
        number = xp.empty((len(crowded), 4 * (most_planes + most_vertices)), xp.float64)
        neighbor = xp.empty((len(crowded), most_planes), xp.int32)
        triple = xp.empty((len(crowded), 6 * most_vertices), xp.uint16)
        kernels.compute_large_cells(
            len(crowded), crowded + np.int32(first), *given, number, neighbor, triple,
            larger.struct)
        _refuse_ties(larger.n_planes)
        rooms.append((crowded, larger))
        n_planes[crowded], n_vertices[crowded] = larger.n_planes, larger.n_vertices
        n_own[crowded] = larger.n_own
        crowded = crowded[larger.n_planes < 0]
        larger.n_planes[larger.n_planes < 0] = 0

    packed = lists.extend(first, n_planes, n_vertices, n_own)
    for which, filled in rooms:
        kernels.pack_cells(len(which), first, which, filled.struct, packed)
    kernels.link_vertices(n, first, packed)

    vertex, vertex_start = lists.vertex.filled, lists.vertex_start
    begin = int(vertex_start[first])
    lost = begin + xp.flatnonzero(vertex[begin:] < 0)
    for which, filled in rooms if len(lost) else []:
        cell = xp.searchsorted(vertex_start[:first + n + 1], lost, side="right") - 1
        row = xp.searchsorted(which, cell - first)
        here = (row < len(which)) & (which[xp.minimum(row, len(which) - 1)] == cell - first)
        here &= filled.n_planes[xp.minimum(row, len(which) - 1)] > 0
        lists.lost.append(
            (lost[here], filled.position[row[here], (lost - vertex_start[cell])[here]]))


def _refuse_ties(n_planes: Any) -> None:
    """Raise TiedSitesError if a cell was spoilt by ties."""
    n_tied = int((n_planes == -2).sum())
    if n_tied:
        raise TiedSitesError(f"{n_tied} Voronoi cells have more neighbours at one place than "
                             "rounding can tell apart; move the sites a little")


class _Room:
    """Arrays for n cells of at most so many planes and vertices."""

    def __init__(self, device: Device, n: int, planes: int, vertices: int) -> None:
        xp = device.xp
        self.n_planes, self.n_vertices, self.n_own = (xp.empty(n, xp.int32) for _ in range(3))
        self.position = xp.empty((n, vertices, 3), xp.float64)
        #: As kernels take it.
        self.struct = device.struct(
            "geometry/divide/cells.cu", "CellRoom", most_planes=planes, most_vertices=vertices,
            n_planes=self.n_planes, n_vertices=self.n_vertices, n_own=self.n_own,
            plane=xp.empty((n, planes), xp.int32),
            vertex_plane=xp.empty((n, vertices, 3), xp.uint16), position=self.position)


def list_starts(device: Device, count: Any) -> Any:
    """Return where each of the lists of these lengths starts, and the end of the last."""
    xp = device.xp
    start = xp.zeros(len(count) + 1, xp.int64)
    start[1:] = xp.cumsum(count, dtype=xp.int64)
    return start
