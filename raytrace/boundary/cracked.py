"""The boundary of rigid pieces with cracks in them: thin wedges of air.

Both sides of a crack in a rigid piece are at one place. Rays know but inside and outside, and two
faces at one place are crossed in either order; so cracks gape by a small width
(:mod:`vfx.geometry.handoff.crack_opening`), and each piece stays bounded by one closed surface: a
ray in glass leaves it, goes through air and enters it again. Along the tip, where a crack is
closed, triangles whose two sides are at one place are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.crack_opening import open_cracks
from vfx.geometry.handoff.open_faces import OpenFaces, faces_of_edges, open_faces
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid
from vfx.raytrace.boundary.visible import Boundary, Corners, fan_boundary
from vfx.raytrace.settings import Look, MaterialLook
from vfx.raytrace.surface.materials import material_look

#: The width of a crack, in sizes of the elements beside it, where a shot says "auto".
AUTO_WIDTH = 0.04
#: No crack is wider than this part of an element: its sides would meet those of the next.
MOST_WIDTH = 0.5
#: Narrower cracks than this part of a solid's extent are drawn as wide: places are float32.
LEAST_WIDTH = 4e-6


def crack_widths(solid: Solid, looks: Mapping[str, Look | MaterialLook]) -> Array:
    """Return how wide cracks at each element are drawn, (n,) float64 [m]; 0: not at all."""
    width = np.zeros(solid.n_elements)
    least = LEAST_WIDTH * float(np.ptp(solid.position, axis=0).max()) if len(width) else 0.0
    for body, name in enumerate(solid.material_name):
        given = material_look(looks.get(str(name), Look())).fracture.crack_width
        own = solid.body == body
        if given == "auto":
            width[own] = AUTO_WIDTH * solid.size[own]
        elif given > 0.0:
            width[own] = np.minimum(max(float(given), least), MOST_WIDTH * solid.size[own])
    return width


def drawn_cracks(solid: Solid, pieces: Pieces, width: Array) -> Array:
    """Return the edges (e,) of cracks that have a width.

    Raises ValueError where they do not belong to the solid.
    """
    edge = pieces.crack_edge
    if len(edge) and not (edge.min() >= 0 and edge.max() < len(solid.edge)):
        raise ValueError(f"frame {pieces.frame}: a crack is at edge {int(edge.max())}, but the "
                         f"solid has {len(solid.edge)}; align that frame again")
    wide: Array = edge[(width[solid.edge[edge]] > 0.0).all(axis=1)]
    return wide


def cracked_boundary(device: Device, solid: Solid, faces: Faces, pieces: Pieces,
                     width: Array) -> Boundary:
    """Return the boundary of rigid pieces whose cracks are ``width`` (n,) [m] wide."""
    crack = drawn_cracks(solid, pieces, width)
    is_crack = np.zeros(len(faces.side), bool)
    is_crack[faces_of_edges(faces, crack)] = True
    opening = open_cracks(faces, pieces.fragment, crack, width)
    place = np.concatenate([faces.vertex, opening.place])
    chosen, is_part, start, count, vertex = _in_triangles(
        faces, open_faces(faces, pieces.fragment, crack), is_crack)

    def corners(owner: Array) -> Array:
        return opening.corners(len(faces.vertex), np.repeat(owner, count), vertex)

    # Triangles that are closed have all their corners where those of the other side are.
    side = faces.side[chosen.face]
    other = np.where(is_part, side.sum(axis=1) - chosen.owner, chosen.owner)
    own = corners(chosen.owner)
    apart = np.logical_or.reduceat((place[own] != place[corners(other)]).any(axis=1), start)
    is_closed = is_part & ~apart & (pieces.fragment[chosen.owner] == pieces.fragment[other])
    kept = np.flatnonzero(~is_closed)
    return fan_boundary(
        device, solid, faces, pieces, _some(chosen, kept),
        Corners(start[kept], count[kept], own.astype(np.int32), place), faces.normal)


def _in_triangles(faces: Faces, chosen: OpenFaces,
                  is_cut: Array) -> tuple[OpenFaces, Array, Array, Array, Array]:
    """Cut the faces ``is_cut`` (f,) among open ones into the triangles of their fans.

    Returns the rows, which of them are triangles of a cut face (r,), where their corners begin (r,)
    and how many they are (r,), and the vertices of the corners (c,).
    """
    whole, cut = np.diff(faces.start)[chosen.face], is_cut[chosen.face]
    row, number = _counted(np.where(cut, whole - 2, 1))
    is_part = cut[row]
    count = np.where(is_part, 3, whole[row])
    at, within = _counted(count)
    # The k-th triangle of a fan has the corners 0, k + 1 and k + 2 of its face.
    skipped = np.where(is_part[at] & (within > 0), number[at], 0)
    vertex = faces.corner[faces.start[chosen.face[row]][at] + within + skipped]
    return _some(chosen, row), is_part, np.cumsum(count) - count, count, vertex


def _counted(count: Array) -> tuple[Array, Array]:
    """Return 0 count[0] times, then 1 count[1] times ..., and how often each has come before."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - (np.cumsum(count) - count)[row]


def _some(chosen: OpenFaces, row: Array) -> OpenFaces:
    """Return rows (r,) of open faces."""
    return OpenFaces(chosen.face[row], chosen.owner[row], chosen.reverse[row],
                     chosen.is_fracture[row])
