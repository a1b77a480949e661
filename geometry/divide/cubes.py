"""Cubes of a regular lattice: a whole box of them, or those with centres inside a surface.

The elements of levine-2014 section 4 for the glass plate: positions at the centres, edges
through shared faces. The cell index along z runs fastest, then y, then x.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.sources import surface_area, surface_volume
from vfx.geometry.divide.thickness import way_out
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.cube_faces import box_cells
from vfx.geometry.handoff.elements import Elements, Progress, Surface
from vfx.geometry.handoff.faces import empty_faces
from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.columns import cut_columns
from vfx.geometry.mesh.inspect import counted

#: Bytes of memory at the peak for a cube of a box and for an edge (measured; the Solid itself
#: holds 60 and 8).
_PEAK_BYTES = 150
_PEAK_BYTES_EDGE = 100
#: Columns of cells that are looked at, at most: of memory they take 16 bytes each.
_MOST_COLUMNS = 2**28
#: Share of the mesh's volume by which that of the cubes may be off.
MOST_OFF = 0.5
#: Shares of volume and count that are near enough.
_NEAR = 0.01
#: Spacings that are tried for a number of elements, as shares of that of its volume.
_FACTORS = (1.0, 0.99, 1.01, 0.98, 1.02, 0.97, 1.03)


def divide_grid(
    device: Device, surface: Surface, *, spacing: float | None, count: int | None,
    progress: Progress,
) -> tuple[Elements, Array]:
    """Return the cubes inside a surface, and their cells (n, 3) int32, in order of their cells.

    One of ``spacing`` [m] and ``count`` is given. A cube or a side of cubes is in the middle of the
    mesh along each axis, whichever brings their volume, and the count, nearest.
    """
    volume = surface_volume(surface)
    trials = [spacing] if spacing is not None else [
        (volume / (count or 1)) ** (1 / 3) * factor for factor in _FACTORS]
    least, cell, low = math.inf, np.zeros((0, 3), np.int32), np.zeros(3)
    for number, (trial, more) in enumerate(product(trials, product((0, 1), repeat=3))):
        progress("cubes", number / (8 * len(trials)))
        found, corner = _fill(device, surface, trial, more)
        off = abs(len(found) * trial**3 / volume - 1.0)
        if count is not None:
            off = max(off, abs(len(found) / count - 1.0))
        if off < least:
            least, spacing, cell, low = off, trial, found, corner
        # Other spacings, near this one, do not help where none fits.
        if least <= _NEAR or (number == 7 and least >= MOST_OFF):
            break
    assert spacing is not None
    filled = len(cell) * spacing**3 / volume
    if not 1.0 - MOST_OFF < filled < 1.0 + MOST_OFF:
        room = (f"is too thin for cubes of {spacing:.4g} m, which would have {100 * filled:.0f} % "
                "of its volume" if len(cell) else f"has no room for a cube of {spacing:.4g} m")
        fix = way_out(volume, surface_area(surface), "lower the spacing, ask for more elements")
        raise MeshError(f"{room}; {fix}")
    cell -= cell.min(axis=0)
    edge = cell_edges(cell)
    progress("cubes", 1.0)
    n = len(cell)
    position = low + (cell + 0.5) * spacing
    notes = _notes(n, spacing, filled, edge)
    return Elements(
        position=position, volume=np.full(n, spacing**3), size=np.full(n, spacing),
        length_scale=spacing, edge=edge, faces=empty_faces(),
        notes=tuple(notes)), cell


def block_elements(cells: tuple[int, int, int], spacing: float) -> tuple[Elements, Array]:
    """Return a box of cubes around the origin, and their cells (n, 3) int32."""
    cell = box_cells(cells)
    n = len(cell)
    elements = Elements(
        position=(cell + 0.5 - np.array(cells) / 2) * spacing,
        volume=np.full(n, float(spacing) ** 3), size=np.full(n, float(spacing)),
        length_scale=spacing, edge=box_edges(cells), faces=empty_faces(), notes=())
    return elements, cell


def box_edges(shape: tuple[int, int, int]) -> Array:
    """Return the face-adjacent pairs of a box, (m, 2) int32, sorted."""
    nx, ny, nz = shape
    low = np.arange(nx * ny * nz, dtype=np.int32)
    cell = box_cells(shape)
    # Neighbours along z, y, x have ascending indices, so row order is lexicographic order.
    pair = np.stack([low + np.int32(1), low + np.int32(nz), low + np.int32(ny * nz)], axis=1)
    exists = cell[:, ::-1] < np.array([nz, ny, nx], dtype=np.int32) - 1
    low = np.broadcast_to(low[:, None], pair.shape)
    return np.stack([low[exists], pair[exists]], axis=1)


def block_bytes(cells: tuple[int, int, int]) -> int:
    """Return about how much memory building a box of cubes takes [bytes]; exact for any size."""
    n = math.prod(cells)
    return _PEAK_BYTES * n + _PEAK_BYTES_EDGE * sum(n - n // side for side in cells)


def cell_edges(cell: Array) -> Array:
    """Return the pairs of cells that share a face, (m, 2) int32, sorted; cells are in order."""
    size = cell.max(axis=0).astype(np.int64) + 2
    stride = np.array([size[1] * size[2], size[2], 1])
    key = cell.astype(np.int64) @ stride
    # Neighbours along z, y, x follow in the order of keys, so rows are in order, too.
    wanted = key[:, None] + stride[::-1]
    found = np.searchsorted(key, wanted)
    exists = key[np.minimum(found, len(key) - 1)] == wanted
    low = np.broadcast_to(np.arange(len(key))[:, None], wanted.shape)
    return np.column_stack([low[exists], found[exists]]).astype(np.int32)


def _fill(
    device: Device, surface: Surface, spacing: float, more: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the cells inside, (n, 3) int32, and the corner (3,) of the lowest cell of them.

    ``more`` (3,) is how many cells the lattice has beyond those that cover the surface.
    """
    low, high = surface.vertex.min(axis=0), surface.vertex.max(axis=0)
    shape = np.maximum(np.ceil((high - low) / spacing - 1e-9), 1.0) + more
    if shape[0] * shape[1] > _MOST_COLUMNS or shape[2] > _MOST_COLUMNS:
        raise MeshError(f"has {shape[0]:.3g} x {shape[1]:.3g} x {shape[2]:.3g} places for cubes of "
                        f"{spacing:g} m, too many to look at; raise the spacing")
    nx, ny, nz = (int(n) for n in shape)
    # The lattice is centred in the box of the surface.
    origin = 0.5 * (low + high) - 0.5 * spacing * shape
    first = origin + 0.5 * spacing
    columns = cut_columns(device, surface.vertex, surface.triangle, shape=(nx, ny), step=spacing,
                          origin=(float(first[0]), float(first[1])))
    parts = list(columns.cells_inside(float(first[2]), spacing, nz))
    cell = np.concatenate(parts) if parts else np.zeros((0, 3), np.int32)
    lowest = cell.min(axis=0) if len(cell) else np.zeros(3)
    return cell, origin + spacing * lowest


def _notes(n: int, spacing: float, filled: float, edge: Array) -> list[str]:
    n_parts, part = components(n, edge)
    notes = [f"{counted(n, 'cube')} of {spacing:.4g} m for {100 * filled:.2f} % of the mesh's "
             "volume."]
    if n_parts > 1:
        largest = int(np.bincount(part).max())
        notes.append(f"They hang together in {n_parts:,} parts, the largest of "
                     f"{counted(largest, 'cube')}. If the mesh has fewer, what joins them is "
                     "thinner than a cube: lower the spacing to keep it.")
    return notes
