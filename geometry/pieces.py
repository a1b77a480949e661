"""From clipped cells to elements: connected pieces, volumes, adjacency, faces.

A cell that the surface cuts into pieces becomes as many elements. A piece is what one closed
outer border encloses, less what inner borders within it (bubbles) do: the border of a cell is
numbered by connected parts, and a part that encloses a negative volume goes to the piece
around it. Volumes are exact, by the divergence theorem (yan-2023 eq. 9).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from vfx.device import Device
from vfx.geometry.cells import list_starts
from vfx.geometry.elements import Elements, Surface
from vfx.geometry.handoff import Array, Faces

if TYPE_CHECKING:
    from vfx.geometry.voronoi import Clipped


def assemble_elements(
    device: Device, surface: Surface, clipped: Clipped, site: Array, size: Array,
    length_scale: float, frame: Any,
) -> Elements:
    """Return the elements in metres; site (n, 3), size (n,) in the order they were given."""
    cells, outer, inner = clipped.cells, clipped.surface, clipped.inner
    order = device.to_host(cells.grid.order)
    n_cells = len(order)
    outer_part, inner_part, n_parts = _parts(device, clipped)

    # Parts of borders, numbered cell by cell.
    first = np.concatenate([[0], np.cumsum(n_parts)])
    n_all = int(first[-1])
    lower = device.to_host(inner.plane_cell)
    plane = device.to_host(cells.plane)
    of_plane = np.repeat(np.arange(len(plane)), np.diff(device.to_host(inner.plane_start)))
    inner_side = np.stack([first[lower[of_plane]] + inner_part[:, 0],
                           first[plane[of_plane]] + inner_part[:, 1]], axis=1)
    outer_side = first[device.to_host(outer.cell)] + outer_part
    inner_moment = _moments(device, inner.start, inner.vertex, clipped.position)
    outer_moment = _moments(device, outer.start, outer.vertex, clipped.position)
    moment = np.stack([
        np.bincount(inner_side[:, 0], inner_moment[:, k], n_all)
        - np.bincount(inner_side[:, 1], inner_moment[:, k], n_all)
        + np.bincount(outer_side, outer_moment[:, k], n_all) for k in range(4)], axis=1)

    cell_of = np.repeat(np.arange(n_cells), n_parts)
    piece, notes = _pieces(clipped, cell_of, moment, outer_side, inner_side, device)
    n = int(piece.max(initial=-1)) + 1
    total = np.stack([np.bincount(piece, moment[:, k], n) for k in range(4)], axis=1)
    of_cell = np.zeros(n, np.int64)
    of_cell[piece] = cell_of
    position = site[order[of_cell]]
    split = np.bincount(of_cell, minlength=n_cells)[of_cell] > 1
    centroid = total[:, 1:] / total[:, :1]
    position[split] = frame.from_unit(centroid[split])

    faces, edge = _faces(device, surface, clipped, piece[inner_side], piece[outer_side], frame)
    n_split = len(np.unique(of_cell[split]))
    if n_split:
        notes += (f"{n_split} cells were cut into pieces by the surface: "
                  f"{int(split.sum())} elements of their own",)
    return Elements(
        position=position, volume=total[:, 0] / frame.scale**3, size=size[order[of_cell]],
        length_scale=length_scale, edge=edge, faces=faces, notes=notes)


def _parts(device: Device, clipped: Clipped) -> tuple[Array, Array, Array]:
    """Return the connected part of its cell's border that each polygon belongs to.

    Of each surface polygon (m,), of each inner polygon in its lower and higher cell (k, 2); and
    the number of parts of each cell (n,).
    """
    xp = device.xp
    kernels = device.module("geometry/pieces.cu")
    cells, outer, inner = clipped.cells, clipped.surface, clipped.inner
    n_outer, n_inner = len(outer.cell), len(inner.start) - 1
    outer_part, inner_part = xp.zeros(n_outer, xp.int32), xp.zeros((n_inner, 2), xp.int32)
    n_parts = np.ones(len(cells.grid.point), np.int64)
    touched = xp.flatnonzero(outer.cell_start[1:] > outer.cell_start[:-1]).astype(xp.int32)
    if len(touched) > 0:
        n = len(touched)
        counts = xp.empty(n, xp.int32), xp.empty(n, xp.int32)
        lists = (cells.plane_start, cells.plane, outer.cell_start, outer.start)
        kernels.count_cell_polygons(n, touched, *lists, inner.plane_start, inner.start, *counts)
        polygon_room, corner_room = (list_starts(device, count) for count in counts)
        found = xp.empty(n, xp.int32)
        kernels.label_pieces(
            n, touched, *lists, outer.vertex, inner.plane_start, inner.start, inner.vertex,
            polygon_room, corner_room, xp.empty(int(polygon_room[-1]), xp.int32),
            xp.empty(4 * int(corner_room[-1]) + 2 * n, xp.int32), outer_part, inner_part, found)
        n_parts[device.to_host(touched)] = device.to_host(found)
    return device.to_host(outer_part), device.to_host(inner_part), n_parts


def _moments(device: Device, start: Any, vertex: Any, position: Any) -> Array:
    """Return volume and first moments (m, 4) of the pyramids from the origin to polygons."""
    moment = device.xp.empty((len(start) - 1, 4), device.xp.float64)
    device.module("geometry/pieces.cu").polygon_moments(
        len(moment), start, vertex, position, moment)
    return device.to_host(moment)


def _pieces(
    clipped: Clipped, cell_of: Array, moment: Array, outer_side: Array, inner_side: Array,
    device: Device,
) -> tuple[Array, tuple[str, ...]]:
    """Return the piece of each part, numbered in the order of their cells, and notes."""
    solid = moment[:, 0] > 0.0
    number = np.cumsum(solid) - 1
    n_solid = np.bincount(cell_of, solid, int(cell_of.max()) + 1).astype(np.int64)
    first_solid = np.concatenate([[0], np.cumsum(n_solid)])[:-1]
    # A bubble belongs to the only piece of its cell, or to the one around it.
    piece = np.where(solid, number, first_solid[cell_of])
    bubble = np.flatnonzero(~solid)
    doubtful = bubble[n_solid[cell_of[bubble]] > 1]
    if len(doubtful):
        around = _pieces_around(clipped, cell_of, solid, doubtful, outer_side, inner_side, device)
        piece[doubtful] = number[around]
    notes: tuple[str, ...] = ()
    if len(bubble):
        notes = (f"{len(bubble)} bubbles lie within single cells",)
    return piece, notes


def _pieces_around(
    clipped: Clipped, cell_of: Array, solid: Array, bubble: Array, outer_side: Array,
    inner_side: Array, device: Device,
) -> Array:
    """Return the solid part of its cell that is around each bubble."""
    position = device.to_host(clipped.position)
    outer = [device.to_host(a) for a in (clipped.surface.start, clipped.surface.vertex)]
    inner = [device.to_host(a) for a in (clipped.inner.start, clipped.inner.vertex)]

    def triangles(part: Any) -> Array:
        found = []
        for (start, vertex), side, sign in ((outer, outer_side, 1), (inner, inner_side[:, 0], 1),
                                            (inner, inner_side[:, 1], -1)):
            for polygon in np.flatnonzero(side == part):
                corner = vertex[start[polygon]:start[polygon + 1]][::sign]
                found += [[corner[0], b, c] for b, c in itertools.pairwise(corner[1:])]
        return position[np.array(found)]

    around = []
    for part in bubble:
        probe = triangles(part)[0].mean(axis=0)
        candidate = np.flatnonzero(solid & (cell_of == cell_of[part]))
        turns = [np.abs(solid_angles(triangles(other) - probe).sum()) for other in candidate]
        around.append(candidate[int(np.argmax(turns))])
    return np.array(around)


def solid_angles(triangle: Array) -> Array:
    """Return the solid angles (n,) of triangles (n, 3, 3) seen from the origin."""
    a, b, c = triangle[:, 0], triangle[:, 1], triangle[:, 2]
    la, lb, lc = (np.linalg.norm(x, axis=1) for x in (a, b, c))
    above = np.einsum("ij,ij->i", a, np.cross(b, c))
    below = (la * lb * lc + np.einsum("ij,ij->i", a, b) * lc + np.einsum("ij,ij->i", b, c) * la
             + np.einsum("ij,ij->i", c, a) * lb)
    angle: Array = 2.0 * np.arctan2(above, below)
    return angle


def _faces(
    device: Device, surface: Surface, clipped: Clipped, inner_side: Array, outer_side: Array,
    frame: Any,
) -> tuple[Faces, Array]:
    """Return faces and adjacency; sides (k, 2) of inner and (m,) of surface polygons."""
    xp = device.xp
    outer, inner = clipped.surface, clipped.inner
    n_corners = len(outer.vertex)
    normal, uv = xp.empty((n_corners, 3), xp.float32), xp.empty((n_corners, 2), xp.float32)
    mesh_vertex = device.from_host(frame.to_unit(surface.vertex))
    device.module("geometry/pieces.cu").corner_attributes(
        len(outer.cell), outer.start, outer.vertex, outer.triangle, clipped.position, mesh_vertex,
        device.from_host(np.asarray(surface.triangle, np.int32)),
        device.from_host(np.asarray(surface.normal, np.float32)),
        device.from_host(np.asarray(surface.uv, np.float32)), normal, uv)

    # Inner faces in the order of their edges: they nearly are.
    inner_start, inner_vertex = device.to_host(inner.start), device.to_host(inner.vertex)
    n_elements = int(max(inner_side.max(initial=0), outer_side.max(initial=0))) + 1
    key = inner_side[:, 0].astype(np.int64) * n_elements + inner_side[:, 1]
    order = np.argsort(key, kind="stable")
    key = key[order]
    if not np.array_equal(order, np.arange(len(order))):
        count = np.diff(inner_start)[order]
        begin = np.concatenate([[0], np.cumsum(count)])
        inner_vertex = inner_vertex[np.repeat(inner_start[order] - begin[:-1], count)
                                    + np.arange(len(inner_vertex))]
        inner_start, inner_side = begin, inner_side[order]
    new = np.ones(len(key), np.bool_)
    new[1:] = key[1:] != key[:-1]
    edge = np.stack([key[new] // n_elements, key[new] % n_elements], axis=1).astype(np.int32)

    outer_start, outer_vertex = device.to_host(outer.start), device.to_host(outer.vertex)
    corner = np.concatenate([inner_vertex, outer_vertex])
    used = np.zeros(len(clipped.position), np.bool_)
    used[corner] = True
    number = np.cumsum(used, dtype=np.int32) - 1
    side = np.concatenate([inner_side, np.stack([outer_side, np.full_like(outer_side, -1)], 1)])
    faces = Faces(
        vertex=frame.from_unit(device.to_host(clipped.position)[used]),
        start=np.concatenate([inner_start, inner_start[-1] + outer_start[1:]]),
        corner=number[corner], side=side.astype(np.int32),
        edge=(np.cumsum(new) - 1).astype(np.int32), normal=device.to_host(normal),
        uv=device.to_host(uv), triangle=device.to_host(outer.triangle))
    return faces, edge
