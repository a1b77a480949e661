"""From clipped cells to elements: connected lumps, volumes, adjacency, faces.

A cell that the surface cuts into lumps becomes as many elements. A lump is what one closed
outer border encloses, less what inner borders within it (bubbles) do: the border of a cell is
numbered by connected parts, and a part that encloses a negative volume goes to the lump
around it. Volumes are exact, by the divergence theorem (yan-2023 eq. 9).
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.cells import list_starts
from vfx.geometry.handoff.elements import Elements, Surface
from vfx.geometry.handoff.types import Array, Faces
from vfx.geometry.mesh.inspect import counted

#: A lump of a cell that is smaller than this, relative to the cubed length scale, is no element.
CHIP = 0.01

if TYPE_CHECKING:
    from vfx.geometry.divide.voronoi import Clipped


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
    lump, n_bubbles = _lumps(clipped, cell_of, moment, outer_side, inner_side, device)
    inner_side, outer_side = lump[inner_side], lump[outer_side]
    n_lumps = int(lump.max()) + 1
    of_cell = np.zeros(n_lumps, np.int64)
    of_cell[lump] = cell_of
    total = _sums(lump, moment, n_lumps)
    host = _hosts(device, clipped, of_cell, total[:, 0] / (size[order] * frame.scale)[of_cell]**3,
                  inner_side)

    # Elements are the lumps that are not part of another.
    alone = host == np.arange(n_lumps)
    element = (np.cumsum(alone) - 1)[host]
    n_split = np.bincount(of_cell[alone], minlength=n_cells)[of_cell] > 1
    position = site[order[of_cell]]
    position[n_split] = frame.from_unit(total[n_split, 1:] / total[n_split, :1])
    volume = _sums(element, total, int(alone.sum()))[:, 0] / frame.scale**3
    faces, edge = _faces(device, surface, clipped, element[inner_side], element[outer_side], frame)
    return Elements(
        position=position[alone], volume=volume, size=size[order[of_cell[alone]]],
        length_scale=length_scale, edge=edge, faces=faces,
        notes=(f"{counted(len(volume), 'element')} from Voronoi cells, with sites "
               f"{length_scale:.4g} m apart or more",
               *_notes(clipped, int((n_split & alone).sum()), n_lumps - len(volume), n_bubbles)))


def _sums(group: Array, value: Array, n: int) -> Array:
    """Return the sums (n, k) of values (m, k) over groups."""
    return np.stack([np.bincount(group, column, n) for column in value.T], axis=1)


def _notes(clipped: Clipped, n_split: int, n_chips: int, n_bubbles: int) -> tuple[str, ...]:
    """Return what a person should know of the clipping."""
    notes = []
    if n_split:
        notes.append(f"{counted(n_split, 'element')} from lumps of cells that the surface cuts")
    if n_chips:
        notes.append(f"{counted(n_chips, 'chip')} of cells, below {CHIP:g} of the cubed length "
                     "scale, went to the element beside")
    if n_bubbles:
        notes.append(f"{counted(n_bubbles, 'bubble')} within single cells")
    if clipped.n_wrong:
        notes.append(f"at {counted(clipped.n_wrong, 'place')} the surface touches or crosses "
                     "itself so that faces do not fit together exactly")
    return tuple(notes)


def _hosts(
    device: Device, clipped: Clipped, of_cell: Array, relative: Array, inner_side: Array
) -> Array:
    """Return the lump that each lump goes to: itself, but another for chips of cells.

    of_cell (n,): the cell of each lump; relative (n,): its volume by its cubed length scale;
    inner_side (k, 2): lumps on both sides of the inner polygons.
    """
    host = np.arange(len(of_cell))
    n_of_cell = np.bincount(of_cell)
    chip = (n_of_cell[of_cell] > 1) & (relative < CHIP)
    if not chip.any():
        return host
    polygon = np.flatnonzero(chip[inner_side].any(axis=1))
    area = _areas(device, clipped, polygon)
    for lump in np.flatnonzero(chip)[np.argsort(relative[chip], kind="stable")]:
        # The lump behind most of its border, or else the largest of its cell.
        touches = (inner_side[polygon] == lump).any(axis=1)
        other = host[inner_side[polygon[touches]].sum(axis=1) - lump]
        shared = np.bincount(other, area[touches], 1)
        shared[host[lump]:host[lump] + 1] = 0.0
        if shared.max() > 0.0:
            target = int(np.argmax(shared))
        else:
            mates = np.flatnonzero((of_cell == of_cell[lump]) & (host == np.arange(len(host))))
            target = int(host[mates[np.argmax(relative[mates])]])
        host[host == lump] = target
    return host


def _areas(device: Device, clipped: Clipped, polygon: Array) -> Array:
    """Return the areas (k,) of some inner polygons."""
    start, vertex = device.to_host(clipped.inner.start), device.to_host(clipped.inner.vertex)
    position = device.to_host(clipped.position)
    area = np.empty(len(polygon))
    for place, index in enumerate(polygon):
        corner = position[vertex[start[index]:start[index + 1]]] - position[vertex[start[index]]]
        area[place] = 0.5 * np.linalg.norm(np.cross(corner[1:-1], corner[2:]).sum(axis=0))
    return area


def _parts(device: Device, clipped: Clipped) -> tuple[Array, Array, Array]:
    """Return the connected part of its cell's border that each polygon belongs to.

    Of each surface polygon (m,), of each inner polygon in its lower and higher cell (k, 2); and
    the number of parts of each cell (n,).
    """
    xp = device.xp
    kernels = device.module("geometry/divide/clipped_cells.cu")
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
        polygons = [device.struct("geometry/divide/clipped_cells.cu", "Polygons",
                                  start=start, corner=corner, vertex=vertex)
                    for start, corner, vertex in (
                        (outer.cell_start, outer.start, outer.vertex),
                        (inner.plane_start, inner.start, inner.vertex))]
        kernels.label_lumps(
            n, touched, cells.plane_start, cells.plane, *polygons,
            polygon_room, corner_room, xp.empty(int(polygon_room[-1]), xp.int32),
            xp.empty(4 * int(corner_room[-1]) + 2 * n, xp.int32), outer_part, inner_part, found)
        n_parts[device.to_host(touched)] = device.to_host(found)
    return device.to_host(outer_part), device.to_host(inner_part), n_parts


def _moments(device: Device, start: Any, vertex: Any, position: Any) -> Array:
    """Return volume and first moments (m, 4) of the pyramids from the origin to polygons."""
    moment = device.xp.empty((len(start) - 1, 4), device.xp.float64)
    device.module("geometry/divide/clipped_cells.cu").polygon_moments(
        len(moment), start, vertex, position, moment)
    return device.to_host(moment)


def _lumps(
    clipped: Clipped, cell_of: Array, moment: Array, outer_side: Array, inner_side: Array,
    device: Device,
) -> tuple[Array, int]:
    """Return the lump of each part, numbered in the order of their cells; number of bubbles."""
    solid = moment[:, 0] > 0.0
    number = np.cumsum(solid) - 1
    n_solid = np.bincount(cell_of, solid, int(cell_of.max()) + 1).astype(np.int64)
    first_solid = np.concatenate([[0], np.cumsum(n_solid)])[:-1]
    # A bubble belongs to the only lump of its cell, or to the one around it.
    lump = np.where(solid, number, first_solid[cell_of])
    bubble = np.flatnonzero(~solid)
    doubtful = bubble[n_solid[cell_of[bubble]] > 1]
    if len(doubtful):
        around = _lumps_around(clipped, cell_of, solid, doubtful, outer_side, inner_side, device)
        lump[doubtful] = number[around]
    return np.minimum(lump, number[-1]), len(bubble)


def _lumps_around(
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
    device.module("geometry/divide/clipped_cells.cu").corner_attributes(
        len(outer.cell), outer.start, outer.vertex, outer.triangle, clipped.position, mesh_vertex,
        device.from_host(np.asarray(surface.triangle, np.int32)),
        device.from_host(np.asarray(surface.normal, np.float32)),
        device.from_host(np.asarray(surface.uv, np.float32)), normal, uv)

    # Inner faces in the order of their edges, which they nearly are; not those within an element.
    inner_start, inner_vertex = device.to_host(inner.start), device.to_host(inner.vertex)
    n_elements = int(outer_side.max()) + 1 if len(inner_side) == 0 else int(
        max(inner_side.max(), outer_side.max())) + 1
    flipped = inner_side[:, 0] > inner_side[:, 1]
    key = inner_side.min(axis=1).astype(np.int64) * n_elements + inner_side.max(axis=1)
    order = np.argsort(key, kind="stable")
    order = order[inner_side[order, 0] != inner_side[order, 1]]
    key = key[order]
    if flipped.any() or not np.array_equal(order, np.arange(len(inner_side))):
        count = np.diff(inner_start)[order]
        begin = np.concatenate([[0], np.cumsum(count)])
        step = np.repeat(np.where(flipped[order], -1, 1), count)
        first = np.where(flipped[order], inner_start[order + 1] - 1, inner_start[order])
        within = np.arange(int(begin[-1])) - np.repeat(begin[:-1], count)
        inner_vertex = inner_vertex[np.repeat(first, count) + step * within]
        inner_start, inner_side = begin, np.sort(inner_side[order], axis=1)
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
