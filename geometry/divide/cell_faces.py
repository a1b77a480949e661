"""The faces between clipped Voronoi cells: what of each is inside the surface.

A face that the surface does not touch is wholly inside or outside. Of the others the border is
known bit by bit: the edges of surface polygons on the face, against their direction, and the
parts of the face's own edges that are inside. Followed from vertex to vertex these are loops,
and the region within is cut into convex polygons (``convex.cuh``), without new vertices: each
edge is also an edge of a polygon beside it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.cells import FIRST_REACH_WALL, Cells, list_starts
from vfx.geometry.divide.clip import SurfacePolygons
from vfx.geometry.inside.points import WindingNumbers

#: Edges of the faces put together at once: a bound of the scratch memory.
CHUNK_EDGES = 4_000_000


@dataclass(frozen=True)
class InnerPolygons:
    """Convex polygons between cells, on their device; they turn around what leaves the lower."""

    plane_start: Any      # (planes + 1,) int64: polygons of each plane, stored at the lower cell
    start: Any            # (m + 1,) int64
    vertex: Any           # (c,) int32: numbered as in SurfacePolygons
    plane_cell: Any       # (planes,) int32: the cell that each plane belongs to
    failed: Any           # (f,) int32: faces whose border did not close
    walled: Any           # (w,) int32: cells whose reach is too short for what they hold


def inner_polygons(
    device: Device, cells: Cells, surface: SurfacePolygons, windings: WindingNumbers,
    position: Any,
) -> InnerPolygons:
    """Return the inner faces; position (v, 3) of Voronoi vertices, the mesh's, and cuts."""
    xp = device.xp
    kernels = device.module("geometry/divide/cell_faces.cu")
    n, n_planes = len(cells.grid.point), len(cells.plane)
    plane_cell = xp.empty(n_planes, xp.int32)
    kernels.mark_planes(n, cells.plane_start, plane_cell)
    touched = xp.flatnonzero(surface.cell_start[1:] > surface.cell_start[:-1]).astype(xp.int32)
    winding = _vertex_windings(device, cells, touched, windings)

    n_segments, n_corners = xp.empty(n_planes, xp.int32), xp.empty(n_planes, xp.int32)
    kernels.count_segments(n, cells.plane_start, cells.plane, cells.vertex_start,
                           cells.vertex_plane, surface.cell_start, surface.start, surface.label,
                           n_segments, n_corners)
    segment_end = list_starts(device, n_segments)[:-1].copy()
    segment = xp.empty((int(n_segments.sum()), 4), xp.int32)
    kernels.list_segments(n, cells.plane_start, cells.plane, surface.cell_start, surface.start,
                          surface.label, surface.vertex, segment_end, segment)
    copies, mixed = xp.empty(n_planes, xp.int32), xp.empty(n_planes, xp.int32)
    kernels.whole_faces(n_planes, plane_cell, cells.plane_start, cells.vertex_start,
                        cells.vertex_plane, cells.vertex, winding, n_segments, n_corners, copies,
                        mixed)

    # Put the crossed faces together, a part of them at a time.
    crossed = xp.flatnonzero(n_segments > 0).astype(xp.int32)
    room = 2 * n_segments[crossed] + 2 * n_corners[crossed] + 8
    room_start = device.to_host(list_starts(device, room))
    faces = device.struct(
        "geometry/divide/cell_faces.cu", "Faces", cell=plane_cell, plane_start=cells.plane_start,
        plane=cells.plane, site=cells.grid.point, vertex_start=cells.vertex_start,
        vertex_plane=cells.vertex_plane, vertex=cells.vertex, winding=winding)
    segments = device.struct(
        "geometry/divide/cell_faces.cu", "Segments", count=n_segments, end=segment_end,
        segment=segment)
    parts = []
    bounds = _bounds(room_start, CHUNK_EDGES)
    for first, end in itertools.pairwise(bounds):
        face = crossed[first:end]
        start = device.from_host(room_start[first:end + 1] - room_start[first])
        size = int(room_start[end] - room_start[first])
        corner, length = xp.empty(6 * size, xp.int32), xp.empty(2 * size, xp.int32)
        n_cut, n_cut_corners, failed = (xp.empty(len(face), xp.int32) for _ in range(3))
        kernels.assemble_regions(
            len(face), face, faces, segments, position, device.struct(
                "geometry/divide/cell_faces.cu", "RegionRoom", start=start,
                scratch=xp.empty(9 * size, xp.int32),
                plane_place=xp.empty(2 * size, xp.float64), corner=corner, length=length,
                n_cut=n_cut, n_cut_corners=n_cut_corners, failed=failed))
        parts.append((face, start, corner, length, n_cut, n_cut_corners, failed))

    # Lay whole faces and cut ones out in the order of the planes.
    n_polygons, polygon_corners = copies.copy(), copies * n_corners
    for face, _, _, _, n_cut, n_cut_corners, _ in parts:
        n_polygons[face] = n_cut
        polygon_corners[face] = n_cut_corners
    polygon_start = list_starts(device, n_polygons)
    corner_start = list_starts(device, polygon_corners)
    end_of = xp.zeros(int(polygon_start[-1]) + 1, xp.int64)
    vertex = xp.empty(int(corner_start[-1]), xp.int32)
    kernels.write_whole_faces(n_planes, plane_cell, cells.plane_start, cells.vertex_start,
                              cells.vertex_plane, cells.vertex, copies, n_corners,
                              polygon_start, corner_start, end_of[1:], vertex)
    for face, start, corner, length, n_cut, _, _ in parts:
        kernels.write_polygons(len(face), face, start, corner, length, n_cut, polygon_start,
                               corner_start, end_of[1:], vertex)
    failed = xp.concatenate([xp.flatnonzero(mixed).astype(xp.int32),
                             *(part[0][part[6] > 0] for part in parts)])
    return InnerPolygons(polygon_start, end_of, vertex, plane_cell, failed,
                         _walled(device, cells, touched, winding))


def _vertex_windings(
    device: Device, cells: Cells, touched: Any, windings: WindingNumbers
) -> Any:
    """Return the winding number (v,) of each Voronoi vertex; cells without surface are inside."""
    xp = device.xp
    marked = xp.zeros(len(cells.position), xp.uint8)
    device.module("geometry/divide/cell_faces.cu").mark_vertices(
        len(touched), touched, cells.vertex_start, cells.vertex, marked)
    winding = xp.ones(len(cells.position), xp.int32)
    near = xp.flatnonzero(marked)
    winding[near] = windings.of(xp.ascontiguousarray(cells.position[near]))
    if len(near) > 0 and int(winding.max()) > 1:
        # The inside lies upon itself: so it may in cells without surface.
        winding = windings.of(cells.position)
    return winding


def _walled(device: Device, cells: Cells, touched: Any, winding: Any) -> Any:
    """Return the cells that have a vertex on a reach wall inside the surface."""
    xp = device.xp
    walled = xp.empty(len(cells.grid.point), xp.int32)
    device.module("geometry/divide/cell_faces.cu").count_walls(
        len(walled), FIRST_REACH_WALL, cells.plane_start, cells.plane, cells.vertex_start,
        cells.vertex_plane, cells.vertex, winding, walled)
    return xp.flatnonzero(walled > 0).astype(xp.int32)


def _bounds(start: Any, most: int) -> list[int]:
    """Return where to cut lists so that no part holds much more than ``most`` items."""
    bounds = [0]
    while bounds[-1] < len(start) - 1:
        end = int(np.searchsorted(start, start[bounds[-1]] + most))
        bounds.append(min(max(end, bounds[-1] + 1), len(start) - 1))
    return bounds
