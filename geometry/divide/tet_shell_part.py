"""The tet-shell of one part: points on layers joined to tetrahedra, less what does not belong.

A part of a mesh is one connected solid, with the walls of its cavities, moved and scaled with its
mesh to size one. Parts of one mesh are worked on one by one: however near they are to each other,
no point of one sees the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.band import fill_band
from vfx.geometry.divide.features import Features, find_features
from vfx.geometry.divide.layers import SPREAD_STEPS, Points, candidate_points, first_points, spread
from vfx.geometry.divide.slivers import remove_slivers
from vfx.geometry.divide.tetrahedra import (
    EDGES,
    connected_parts,
    least_dihedral,
    share_faces,
    triangulate,
    volumes,
)
from vfx.geometry.handoff.elements import Progress, Surface
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.distance import DistanceTree, build_distance, morton_order

#: Edge of the cells into which candidates for points are thrown, in layer spacings.
CANDIDATE_CELL = 0.6
#: Steps of spreading after which the tetrahedra can be counted.
TRIAL_STEPS = 6
#: Where all vertices are on the surface, one with a smaller dihedral angle is the flat space
#: between neighbours on a curved surface, and not solid [degrees].
SOLID_ANGLE = 10.0
#: An edge between two places of the surface may be so far outside, in layer spacings, where the
#: surface is hollow; farther, it spans a gap.
LEAST_GAP = 0.5
#: How far points below the surface are moved before they are joined, in layer spacings.
NUDGE = 2e-3
#: How far the sides of a part are bulged while points are joined, in layer spacings.
BULGE = 1e-2
#: In cubed layer spacings: four vertices of one sharp edge have less, whatever their angles are.
LEAST_VOLUME = 1e-6


@dataclass(frozen=True)
class Part:
    """A part of a mesh, of size one or less, and what is known of it."""

    surface: Surface         # of the part; vertices in units of the mesh's size
    triangle: Array          # (t,) int32: its triangles in the mesh
    tree: DistanceTree
    features: Features
    area: float
    volume: float

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper corner."""
        return self.surface.vertex.min(axis=0), self.surface.vertex.max(axis=0)


@dataclass(frozen=True)
class TetShell:
    """The tetrahedra of a part, and what was left out."""

    point: Array             # (p, 3)
    layer: Array             # (p,)
    tet: Array               # (n, 4)
    lost_volume: float       # of solid that no element fills though it is no deeper than the layers
    detached: int            # tetrahedra dropped since no face joins them to the rest
    detached_volume: float


def make_part(device: Device, surface: Surface, triangle: Array) -> Part:
    """Measure the part of ``triangle`` (t,) of a mesh of size one."""
    used, corner = np.unique(surface.triangle[triangle], return_inverse=True)
    own = Surface(surface.vertex[used], corner.reshape(-1, 3).astype(np.int32),
                  surface.normal[triangle], surface.uv[triangle])
    at = own.vertex[own.triangle]
    product = np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])
    return Part(own, triangle.astype(np.int32), build_distance(device, at),
                find_features(own.vertex, own.triangle),
                area=0.5 * float(np.linalg.norm(product, axis=1).sum()),
                volume=float((product * at[:, 0]).sum()) / 6.0)


def shell_candidates(part: Part, spacing: float, layers: int, seed: int) -> Points:
    """Return points on the layers from which to choose."""
    lower, upper = part.bounds
    band = fill_band(part.tree, lower, upper, edge=CANDIDATE_CELL * spacing,
                     outside=0.5 * spacing, inside=(layers - 0.5) * spacing, blur=0.5 * spacing,
                     seed=seed)
    return candidate_points(part.tree, band, part.features, spacing=spacing, layers=layers)


def shell_points(
    part: Part, candidates: Points, spacing: float, across: float, seed: int
) -> Points:
    """Choose points on the layers, ``across`` layer spacings apart, and spread them a few steps."""
    points = first_points(part.tree.device, candidates, across=across * spacing, seed=seed)
    return spread(part.tree, part.features, points, spacing=spacing, across=across * spacing,
                  steps=TRIAL_STEPS)


def finish_shell(
    part: Part, points: Points, spacing: float, across: float, layers: int, progress: Progress,
    share: tuple[float, float]
) -> TetShell:
    """Spread the points over their layers and join them to well-shaped tetrahedra."""
    middle = share[0] + 0.6 * (share[1] - share[0])
    points = spread(part.tree, part.features, points, spacing=spacing, across=across * spacing,
                    steps=SPREAD_STEPS - TRIAL_STEPS, progress=progress,
                    share=(share[0], middle))
    progress("Joining points to tetrahedra", middle)
    shell = join_points(part, points, spacing, layers)
    return replace(shell, tet=remove_slivers(shell.point, shell.tet))


def join_points(part: Part, points: Points, spacing: float, layers: int) -> TetShell:
    """Join points to the tetrahedra of a tet-shell."""
    device = part.tree.device
    point, layer = device.to_host(points.point), device.to_host(points.layer)
    order = morton_order(point)
    point, layer = point[order], layer[order]
    # Points below the surface leave the planes and spheres that symmetric parts put them on,
    # where four of them would make a tetrahedron of no volume.
    noise = np.random.Generator(np.random.Philox(0)).uniform(-1.0, 1.0, point.shape)
    point = point + np.where(layer[:, None] > 0, NUDGE * spacing * noise, 0.0)
    tet, lost = _drop(part, point, layer, triangulate(_bulged(point, spacing)), spacing, layers)
    tet, detached, detached_volume = _attached(point, tet)
    return TetShell(point, layer, tet, lost, detached, detached_volume)


def _bulged(point: Array, spacing: float) -> Array:
    """Return points (n, 3) moved a little, so that the flat sides of their hull are convex.

    Thousands of points in one plane of the hull take minutes to triangulate.
    """
    lower, upper = point.min(axis=0), point.max(axis=0)
    unit = (2.0 * point - (lower + upper)) / np.maximum(upper - lower, 1e-300)
    moved: Array = point + BULGE * spacing * unit * (3.0 - (unit**2).sum(axis=1, keepdims=True))
    return moved


def _drop(
    part: Part, point: Array, layer: Array, tet: Array, spacing: float, layers: int
) -> tuple[Array, float]:
    """Drop tetrahedra that are not of the tet-shell; return the others, and the lost volume.

    Lost is solid at sharp edges and in thin walls that the rule for the surface still drops.
    """
    tet = tet[~(layer[tet] == layers - 1).all(axis=1)]
    level = layer[tet]
    outer = (level == 0).all(axis=1)
    center = point[tet].mean(axis=1)
    away = np.linalg.norm(point[tet] - center[:, None], axis=2)
    # The surface is no nearer to a vertex than its layer is deep: within that, all is inside.
    unknown = np.flatnonzero(~(away < level * spacing).any(axis=1))
    inside = np.ones(len(tet), bool)
    inside[unknown] = _is_inside(part.tree, center[unknown])
    deepest = (layers - 0.5) * spacing
    unknown = np.flatnonzero((away + level * spacing).min(axis=1) > deepest)
    inside[unknown] &= _distance(part.tree, center[unknown]) <= deepest
    inside[inside] = ~_bridges(part, point, layer, tet[inside], spacing)
    kept = inside & ~outer
    on_surface = np.flatnonzero(inside & outer)
    kept[on_surface] = ((least_dihedral(point, tet[on_surface]) > SOLID_ANGLE)
                        & (volumes(point, tet[on_surface]) > LEAST_VOLUME * spacing**3))
    lost = float(volumes(point, tet[inside & ~kept]).sum())
    return tet[kept], lost


def _bridges(part: Part, point: Array, layer: Array, tet: Array, spacing: float) -> Array:
    """Return which tetrahedra (m,) have an edge from the surface that goes through air."""
    corner = tet[:, EDGES]
    which, side = np.nonzero((layer[corner] == 0).any(axis=2))
    ends = np.sort(corner[which, side], axis=1).astype(np.int64)
    key, edge_of = np.unique(ends[:, 0] * len(point) + ends[:, 1], return_inverse=True)
    from_end, to_end = point[key // len(point)], point[key % len(point)]
    through_air = np.zeros(len(key), bool)
    for share in (0.5, 0.25, 0.75):
        place = from_end + share * (to_end - from_end)
        at = part.tree.device.from_host(place)
        nearest, triangle = part.tree.nearest(at)
        away = np.linalg.norm(part.tree.device.to_host(nearest) - place, axis=1)
        outside = ~part.tree.device.to_host(part.tree.inside(at, nearest, triangle))
        through_air |= outside & (away > LEAST_GAP * spacing)
    bridges = np.zeros(len(tet), bool)
    bridges[which[through_air[edge_of]]] = True
    return bridges


def _is_inside(tree: DistanceTree, point: Array) -> Array:
    """Return whether points (n, 3) are inside the part."""
    at = tree.device.from_host(point)
    return tree.device.to_host(tree.inside(at, *tree.nearest(at)))


def _distance(tree: DistanceTree, point: Array) -> Array:
    """Return how far points (n, 3) are from the surface."""
    nearest, _ = tree.nearest(tree.device.from_host(point))
    return np.asarray(np.linalg.norm(tree.device.to_host(nearest) - point, axis=1))


def _attached(point: Array, tet: Array) -> tuple[Array, int, float]:
    """Keep the largest part connected through faces; count the others, and their volume."""
    if not len(tet):
        return tet, 0, 0.0
    volume = volumes(point, tet)
    part = connected_parts(share_faces(tet, len(point)), len(tet))
    kept = part == np.bincount(part, volume).argmax()
    return tet[kept], int((~kept).sum()), float(volume[~kept].sum())
