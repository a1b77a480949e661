"""Clip a closed surface to Voronoi cells: the polygons of each triangle in each cell.

Triangles are followed from cell to cell: an edge of a polygon that lies on a plane of its cell
leads to the same triangle in the cell beyond. Every corner is known by what meets in it (a
vertex of the mesh; an edge of the mesh and two cells; a triangle and three cells), and is
found by that in the one polygon that owns it: polygons that meet share their corners exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vfx.device import Device
from vfx.geometry.divide.cells import FIRST_REACH_WALL, Cells, list_starts

#: As in clip.cu.
MOST_CORNERS = 24
#: Pairs clipped at once: a bound of the scratch memory.
CHUNK = 131_072
#: Corners of the largest polygon that is tried.
LARGEST_POLYGON = 100_000


@dataclass(frozen=True)
class SurfacePolygons:
    """m polygons on their device, cell by cell; c corners, of which k were made by clipping."""

    cell_start: Any       # (n + 1,) int64: polygons of each cell
    cell: Any             # (m,) int32
    triangle: Any         # (m,) int32
    start: Any            # (m + 1,) int64: corners of each polygon
    label: Any            # (c,) int32: as clip.cu says
    vertex: Any           # (c,) int32: Voronoi vertices first, then those of the mesh, then cuts
    cut: Any              # (k, 3) float64: position of the cuts
    n_lost: int           # corners that were not found where they should be
    walled: Any           # (w,) int32: cells whose reach is too short for what they hold


def edge_owners(device: Device, triangle: Any, n_vertices: int) -> Any:
    """Return 3 * triangle + side of the lowest triangle at each edge of each triangle, (t, 3)."""
    xp = device.xp
    following = triangle[:, xp.asarray([1, 2, 0])]
    low = xp.minimum(triangle, following).astype(xp.int64).ravel()
    high = xp.maximum(triangle, following).astype(xp.int64).ravel()
    key = low * n_vertices + high
    order = xp.argsort(key, kind="stable")
    sorted_key = key[order]
    first = xp.ones(len(key), xp.bool_)
    first[1:] = sorted_key[1:] != sorted_key[:-1]
    place = xp.cumsum(first) - 1
    owner = xp.empty(len(key), xp.int32)
    owner[order] = order[xp.flatnonzero(first)][place].astype(xp.int32)
    return owner


def clip_surface(
    device: Device, cells: Cells, reach: Any, vertex: Any, triangle: Any, edge_owner: Any
) -> SurfacePolygons:
    """Return the polygons of all triangles (t, 3) in all cells; reach (n,) in their order.

    Where cells are walled, the polygons' corners are not known as vertices yet.
    """
    xp = device.xp
    kernels = device.module("geometry/divide/clip.cu")
    n_sites, n_triangles = len(cells.grid.point), len(triangle)
    pairs, counts, labels, positions = _follow(device, cells, reach, vertex, triangle)

    # Lay the polygons out cell by cell.
    by_triangle = xp.argsort(pairs)
    pair = pairs[by_triangle]
    triangle_of, cell = (pair // n_sites), (pair % n_sites)
    place = xp.argsort(cell * n_triangles + triangle_of)
    which = by_triangle[place].astype(xp.int32)
    count = counts[which]
    start = list_starts(device, count)
    label = xp.empty(int(start[-1]), xp.int32)
    position = xp.empty((int(start[-1]), 3), xp.float64)
    kernels.gather_polygons(len(which), which, list_starts(device, counts), start, labels,
                            positions, label, position)
    del labels, positions
    sorted_cell = cell[place].astype(xp.int32)
    sorted_triangle = triangle_of[place].astype(xp.int32)
    # The places of a triangle's polygons, cell by cell.
    polygon = xp.empty(len(place), xp.int32)
    polygon[place] = xp.arange(len(place), dtype=xp.int32)
    triangle_start = xp.searchsorted(triangle_of, xp.arange(n_triangles + 1, dtype=xp.int64))
    cell_start = xp.searchsorted(sorted_cell, xp.arange(n_sites + 1, dtype=xp.int32))

    walled = _walled(device, cells, sorted_cell, start, label)
    if len(walled) > 0:
        # Of no use, and walls are nothing that corners could be known by.
        return SurfacePolygons(cell_start, sorted_cell, sorted_triangle, start, label,
                               xp.zeros(len(label), xp.int32), position, 0, walled)
    link = xp.empty(len(label), xp.int64)
    lost = xp.empty(len(which), xp.int32)
    kernels.link_corners(len(which), sorted_cell, sorted_triangle, start, label, triangle_start,
                         polygon, triangle, edge_owner, cells.plane_start, cells.plane, link, lost)
    own = link == xp.arange(len(link), dtype=xp.int64)
    number = xp.cumsum(own, dtype=xp.int32) - 1
    n_voronoi = len(cells.position)
    index = xp.where(link < 0, n_voronoi - 1 - link,
                     n_voronoi + len(vertex) + number[xp.maximum(link, 0)]).astype(xp.int32)
    return SurfacePolygons(
        cell_start, sorted_cell, sorted_triangle, start, label, index, position[own],
        int(lost.sum()), walled)


def _follow(
    device: Device, cells: Cells, reach: Any, vertex: Any, triangle: Any
) -> tuple[Any, Any, Any, Any]:
    """Clip triangles, from the cells of their corners to the cells beyond, until none is new."""
    xp = device.xp
    kernels = device.module("geometry/divide/clip.cu")
    grid = cells.grid
    n_sites = len(grid.point)
    nearest = xp.empty(len(vertex), xp.int32)
    kernels.nearest_sites(len(vertex), grid.struct, vertex, nearest)
    each = xp.arange(len(triangle), dtype=xp.int64) * n_sites
    frontier = xp.unique((each[:, None] + nearest[triangle]).ravel())
    known = frontier
    found: list[tuple[Any, ...]] = []
    while len(frontier) > 0:
        beyond = []
        for first in range(0, len(frontier), CHUNK):
            *polygons, neighbors = _clip(device, cells, reach, vertex, triangle,
                                         frontier[first:first + CHUNK])
            found.append(tuple(polygons))
            beyond.append(neighbors)
        # What is new: not among the pairs that are known.
        candidate = xp.unique(xp.concatenate(beyond))
        candidate = candidate[candidate >= 0]
        place = xp.minimum(xp.searchsorted(known, candidate), len(known) - 1)
        frontier = candidate[known[place] != candidate]
        known = xp.sort(xp.concatenate([known, frontier]))
    pair, count, label, position = (xp.concatenate(part) for part in zip(*found, strict=True))
    return pair, count, label, position


def _clip(
    device: Device, cells: Cells, reach: Any, vertex: Any, triangle: Any, pair: Any
) -> tuple[Any, ...]:
    """Return the pairs with a polygon, their corners, labels and positions, and pairs beyond."""
    xp = device.xp
    kernels = device.module("geometry/divide/clip.cu")
    n_sites = len(cells.grid.point)
    given = (cells.grid.point, cells.plane_start, cells.plane, reach, vertex, triangle)
    parts = []
    most = MOST_CORNERS
    while len(pair) > 0:
        n = len(pair)
        count = xp.empty(n, xp.int32)
        label = xp.empty((n, most), xp.int32)
        position = xp.empty((n, most, 3), xp.float64)
        if most == MOST_CORNERS:
            kernels.clip_pairs(n, n_sites, pair, *given, count, label, position)
        else:
            kernels.clip_large_pairs(
                n, n_sites, most, pair, *given, xp.empty((n, 7 * most), xp.float64),
                xp.empty((n, 2 * most), xp.int32), count, label, position)
        too_large = pair[count < 0]
        count = xp.maximum(count, 0)
        start = list_starts(device, count)
        packed = (xp.empty(int(start[-1]), xp.int32), xp.empty((int(start[-1]), 3), xp.float64),
                  xp.empty(int(start[-1]), xp.int64))
        kernels.pack_polygons(n, n_sites, most, pair, cells.plane_start, cells.plane, count,
                              label, position, start, *packed)
        parts.append((pair[count > 0], count[count > 0], *packed))
        pair = too_large
        most *= 8
        if most > LARGEST_POLYGON:
            raise ValueError("a triangle crosses too many planes of one Voronoi cell; "
                             "spread the sites more evenly")
    return tuple(xp.concatenate(part) for part in zip(*parts, strict=True))


def _walled(device: Device, cells: Cells, cell: Any, start: Any, label: Any) -> Any:
    """Return the cells whose polygons end at a reach wall."""
    xp = device.xp
    owner = xp.zeros(len(label) + 1, xp.int32)
    owner[start[1:-1]] = 1
    of_corner = cell[xp.cumsum(owner[:-1])]
    plane = cells.plane[cells.plane_start[of_corner] + xp.maximum(label, 0)]
    return xp.unique(of_corner[(label >= 0) & (plane <= FIRST_REACH_WALL)])
