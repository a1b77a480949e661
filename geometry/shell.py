"""Tetrahedra in a shell below the surface of a mesh (levine-2014 section 4, mesh-based geometry).

Layers of points, the outermost on the surface itself, are spread evenly (layers.py) and joined
to tetrahedra by a Delaunay triangulation. Those are dropped whose vertices are all on the
outermost or all on the innermost layer, that lie outside the body, or deeper than the shell.
Where the rule would eat the body itself, it does not hold: where a part is thinner than two
layers, or at a sharp edge, all vertices are on the outermost layer though there is solid between
them. The particles are the barycentres, and elements are adjacent where they share a face.

The length scale lambda is the distance between layers: barycentres come far closer than that, but
with delta = 2 lambda a particle then has about as many bonds as in the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from vfx.device import Device
from vfx.geometry.band import Band, fill_band
from vfx.geometry.distance import DistanceTree, build_distance, morton_order
from vfx.geometry.elements import Elements, Progress, Surface
from vfx.geometry.features import Features, find_features
from vfx.geometry.handoff import Array, Faces
from vfx.geometry.layers import (
    SPREAD_STEPS,
    Points,
    candidate_points,
    first_points,
    spread,
)
from vfx.geometry.parts import Parts, find_parts
from vfx.geometry.skin import dress_faces
from vfx.geometry.slivers import remove_slivers
from vfx.geometry.tetrahedra import (
    FACES,
    connected_parts,
    least_dihedral,
    share_faces,
    triangulate,
    volumes,
)

#: Distance of neighbours on a layer, in layer spacings. The mean over all six of them is 1.09
#: times that: the edge of regular tetrahedra as high as a layer spacing.
ACROSS = 1.12
#: Edge of the cells into which candidates for points are thrown, in layer spacings.
CANDIDATE_CELL = 0.6
#: Tetrahedra in the volume of a cubed layer spacing, and how many are left of those after the
#: first steps of spreading when all is done; measured.
DENSITY = 4.5
SPREAD_SHARE = 0.981
#: Where all vertices are on the surface, one with a smaller dihedral angle is the flat space
#: between neighbours on a curved surface, and not solid [degrees].
SOLID_ANGLE = 10.0
#: The count is met to this share, in so many trials with points that were spread a few steps.
COUNT_TOLERANCE = 0.01
COUNT_TRIALS = 4
TRIAL_STEPS = 6
#: A trial's count that is off by more than this follows from layers that die out in thin parts,
#: not from their spacing alone.
COUNT_JUMP = 0.05
#: Tetrahedra with a smaller dihedral angle are called slivers [degrees].
SLIVER_ANGLE = 5.0


@dataclass(frozen=True)
class Body:
    """A surface moved to the origin and scaled to size one, and what is known of it."""

    surface: Surface
    origin: Array            # (3,) [m]: where the body's middle was
    scale: float             # [m]: its diagonal
    vertex: Array            # (v, 3): of size one
    tree: DistanceTree
    features: Features
    parts: Parts
    area: float              # of size one
    volume: float

    @property
    def bounds(self) -> tuple[Array, Array]:
        """Lower and upper corner."""
        return self.vertex.min(axis=0), self.vertex.max(axis=0)


@dataclass(frozen=True)
class Shell:
    """The tetrahedra of a shell in a body of size one, and what was left out."""

    spacing: float
    point: Array             # (p, 3)
    layer: Array             # (p,)
    tet: Array               # (n, 4)
    lost_volume: float       # of solid that no element fills though it is no deeper than the shell
    detached: int            # tetrahedra dropped since no face joins them to the rest
    detached_volume: float
    kept_outer: int          # tetrahedra kept though all their vertices are on the surface


def divide_shell(
    device: Device, surface: Surface, *, spacing: float | None, count: int | None, layers: int,
    seed: int, progress: Progress
) -> Elements:
    """Divide a body into tetrahedra between ``layers`` layers of points.

    Either ``spacing``, the distance between layers [m], or ``count``, about how many tetrahedra,
    is given; the other follows.
    """
    if layers < 2:
        raise ValueError(f"a shell of {layers} layers has no inside; layers must be at least 2")
    if (spacing is None) == (count is None):
        raise ValueError("a shell needs either a spacing or a count, and not both")
    progress("Measuring the mesh", 0.0)
    body = normalized(device, surface)
    if spacing is not None:
        unit = spacing / body.scale
        progress("Throwing points", 0.05)
        candidates = _candidates(body, unit, layers, seed)
        points = _first_points(body, candidates, unit, ACROSS, seed)
        shell = _spread_shell(body, points, unit, ACROSS, layers, progress, (0.3, 0.9))
    else:
        assert count is not None
        shell = _shell_of_count(body, count, layers, seed, progress)
    progress("Joining tetrahedra", 0.95)
    elements = _elements(body, shell, layers)
    progress("Joining tetrahedra", 1.0)
    return elements


def normalized(device: Device, surface: Surface) -> Body:
    """Move and scale a surface to size one, and measure it."""
    lower, upper = surface.vertex.min(axis=0), surface.vertex.max(axis=0)
    origin, scale = 0.5 * (lower + upper), float(np.linalg.norm(upper - lower))
    vertex = (surface.vertex - origin) / scale
    corner = vertex[surface.triangle]
    product = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    return Body(
        surface, origin, scale, vertex, build_distance(device, corner),
        find_features(vertex, surface.triangle), find_parts(vertex, surface.triangle),
        area=0.5 * float(np.linalg.norm(product, axis=1).sum()),
        volume=float((product * corner[:, 0]).sum()) / 6.0)


def _shell_of_count(
    body: Body, count: int, layers: int, seed: int, progress: Progress
) -> Shell:
    """Find the layer spacing that gives about ``count`` tetrahedra, and the shell of it.

    Where walls are about as thin as a few layers, the count jumps when one more layer finds
    room; then the spacing on the layers follows, not that between them.
    """
    guess = _first_spacing(body, count, layers)
    lower, upper = body.bounds
    band = fill_band(body.tree, lower, upper, edge=guess, outside=0.0,
                     inside=1.5 * layers * guess, blur=0.0, seed=seed)
    spacing = _spacing_of_count(band, count, layers, guess)
    across = ACROSS
    candidates = _candidates(body, spacing, layers, seed)
    for trial in range(COUNT_TRIALS):
        progress("Finding the spacing", 0.1 + 0.3 * trial / COUNT_TRIALS)
        points = _first_points(body, candidates, spacing, across, seed)
        found = SPREAD_SHARE * len(_join(body, points, spacing, layers).tet) / count
        if abs(found - 1.0) <= COUNT_TOLERANCE / 2 or trial == COUNT_TRIALS - 1:
            break
        if trial == 0 and abs(found - 1.0) > COUNT_JUMP:
            factor = found * count / _predicted(band, spacing, layers)
            spacing = _spacing_of_count(band, count / factor, layers, guess)
            candidates = _candidates(body, spacing, layers, seed)
        else:
            across *= _narrower(found)
    shell = _spread_shell(body, points, spacing, across, layers, progress, (0.4, 0.9))
    off = len(shell.tet) / count
    if abs(off - 1.0) > COUNT_TOLERANCE:
        across *= _narrower(off)
        points = _first_points(body, candidates, spacing, across, seed)
        again = _spread_shell(body, points, spacing, across, layers, progress, (0.5, 0.9))
        if abs(len(again.tet) / count - 1.0) < abs(off - 1.0):
            shell = again
    return shell


def _narrower(found: float) -> float:
    """Return by what the spacing on layers has to change where ``found`` times too many are."""
    return min(max(math.sqrt(found), 0.8), 1.25)


def _first_spacing(body: Body, count: int, layers: int) -> float:
    """Return a layer spacing for ``count`` from area and volume alone."""
    thin = math.sqrt(DENSITY * (layers - 1) * body.area / count)
    thick = (DENSITY * body.volume / count) ** (1.0 / 3.0)
    return float(min(thin, thick))


def _predicted(band: Band, spacing: float, layers: int) -> float:
    """Return how many tetrahedra a shell of ``spacing`` has, from the volume it fills."""
    return DENSITY * band.volume((layers - 1) * spacing) / spacing**3


def _spacing_of_count(band: Band, count: float, layers: int, guess: float) -> float:
    """Return the layer spacing that should give ``count`` tetrahedra, by bisection."""
    low, high = 0.2 * guess, 5.0 * guess
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _predicted(band, middle, layers) > count else (low, middle)
    return high


def _candidates(body: Body, spacing: float, layers: int, seed: int) -> Points:
    """Return points on the layers from which to choose."""
    lower, upper = body.bounds
    band = fill_band(body.tree, lower, upper, edge=CANDIDATE_CELL * spacing,
                     outside=0.5 * spacing, inside=(layers - 0.5) * spacing, blur=0.5 * spacing,
                     seed=seed)
    return candidate_points(body.tree, band, body.features, spacing=spacing, layers=layers)


def _first_points(
    body: Body, candidates: Points, spacing: float, across: float, seed: int
) -> Points:
    """Choose points on the layers, and spread them a few steps."""
    points = first_points(body.tree.device, candidates, across=across * spacing, seed=seed)
    return spread(body.tree, body.features, points, spacing=spacing, across=across * spacing,
                  steps=TRIAL_STEPS)


def _spread_shell(
    body: Body, points: Points, spacing: float, across: float, layers: int, progress: Progress,
    share: tuple[float, float]
) -> Shell:
    """Spread the points over their layers and join them to tetrahedra."""
    middle = share[0] + 0.6 * (share[1] - share[0])
    points = spread(body.tree, body.features, points, spacing=spacing, across=across * spacing,
                    steps=SPREAD_STEPS - TRIAL_STEPS, progress=progress,
                    share=(share[0], middle))
    progress("Joining points to tetrahedra", middle)
    shell = _join(body, points, spacing, layers)
    return replace(shell, tet=remove_slivers(shell.point, shell.tet))


def _join(body: Body, points: Points, spacing: float, layers: int) -> Shell:
    """Join points to the tetrahedra of a shell."""
    device = body.tree.device
    point, layer = device.to_host(points.point), device.to_host(points.layer)
    order = morton_order(point)
    point, layer = point[order], layer[order]
    solid = np.zeros(len(point), np.int32)
    if body.parts.n_solids > 1:
        _nearest, triangle = body.tree.nearest(device.from_host(point))
        solid = body.parts.solid[device.to_host(triangle)]
    tet = triangulate(point)
    tet, lost, kept_outer = _drop(body, point, layer, solid, tet, spacing, layers)
    tet, detached, detached_volume = _attached(body, point, solid, tet)
    return Shell(spacing, point, layer, tet, lost, detached, detached_volume, kept_outer)


def _drop(
    body: Body, point: Array, layer: Array, solid: Array, tet: Array, spacing: float, layers: int
) -> tuple[Array, float, int]:
    """Drop tetrahedra that are not of the shell; return the others, lost volume, kept outer ones.

    Lost is solid at sharp edges and in thin parts that the rule for the surface still drops.
    """
    level = layer[tet]
    one_solid = (solid[tet] == solid[tet[:, :1]]).all(axis=1)
    inner = (level == layers - 1).all(axis=1)
    tet = tet[one_solid & ~inner]
    level = layer[tet]
    outer = (level == 0).all(axis=1)
    center = point[tet].mean(axis=1)
    away = np.linalg.norm(point[tet] - center[:, None], axis=2)
    # The surface is no nearer to a vertex than its layer is deep: within that, all is inside.
    unknown = np.flatnonzero(~(away < level * spacing).any(axis=1))
    inside = np.ones(len(tet), bool)
    inside[unknown] = _is_inside(body.tree, center[unknown])
    deepest = (layers - 0.5) * spacing
    unknown = np.flatnonzero((away + level * spacing).min(axis=1) > deepest)
    inside[unknown] &= _distance(body.tree, center[unknown]) <= deepest
    kept = inside & ~outer
    on_surface = np.flatnonzero(inside & outer)
    kept[on_surface] = least_dihedral(point, tet[on_surface]) > SOLID_ANGLE
    lost = float(volumes(point, tet[inside & ~kept]).sum())
    return tet[kept], lost, int((kept & outer).sum())


def _is_inside(tree: DistanceTree, point: Array) -> Array:
    """Return whether points (n, 3) are inside the body."""
    winding = tree.device.to_host(tree.winding(tree.device.from_host(point)))
    return np.asarray(winding > 0.5)


def _distance(tree: DistanceTree, point: Array) -> Array:
    """Return how far points (n, 3) are from the surface."""
    nearest, _ = tree.nearest(tree.device.from_host(point))
    return np.asarray(np.linalg.norm(tree.device.to_host(nearest) - point, axis=1))


def _attached(
    body: Body, point: Array, solid: Array, tet: Array
) -> tuple[Array, int, float]:
    """Keep of each solid the largest part connected through faces; say what is left out."""
    volume = volumes(point, tet)
    part = connected_parts(share_faces(tet, len(point)), len(tet))
    part_volume = np.bincount(part, volume)
    owner = np.zeros(len(part_volume), np.int64)
    owner[part] = solid[tet[:, 0]]
    largest = np.full(body.parts.n_solids, -1)
    for p in np.argsort(part_volume, kind="stable"):
        largest[owner[p]] = p
    missing = np.flatnonzero(largest < 0)
    if len(missing):
        raise ValueError(
            f"{len(missing)} of the {body.parts.n_solids} bodies of the mesh are thinner than a "
            "layer and have no tetrahedra; use a smaller spacing, a larger count, or fewer layers")
    kept = np.isin(part, largest)
    return tet[kept], int((~kept).sum()), float(volume[~kept].sum())


def _elements(body: Body, shell: Shell, layers: int) -> Elements:
    """Return the tetrahedra of a shell as elements, in the axes of the surface."""
    tet = shell.tet[morton_order(shell.point[shell.tet].mean(axis=1))]
    used, corner = np.unique(tet, return_inverse=True)
    tet = corner.reshape(-1, 4).astype(np.int32)
    unit, layer = shell.point[used], shell.layer[used]
    shared = share_faces(tet, len(unit))

    # Inner faces in the order of their elements, each seen from the lower one.
    pair = shared.inner // 4
    order = np.lexsort((pair[:, 1], pair[:, 0]))
    edge = pair[order].astype(np.int32)
    face = np.concatenate([shared.inner[order, 0], shared.outer])
    side = np.full((len(face), 2), -1, np.int32)
    side[:len(edge)] = edge
    side[len(edge):, 0] = shared.outer // 4
    face_corner = tet[face // 4, :][np.arange(len(face))[:, None], FACES[face % 4]]

    outside = face_corner[len(edge):]
    is_skin = ~(layer[outside] == layers - 1).all(axis=1)
    normal = np.zeros((len(outside), 3, 3), np.float32)
    uv = np.zeros((len(outside), 3, 2), np.float32)
    triangle = np.full(len(outside), -1, np.int32)
    normal[is_skin], uv[is_skin], triangle[is_skin] = dress_faces(
        body.tree, body.surface, unit[outside[is_skin]])

    spacing = shell.spacing * body.scale
    return Elements(
        position=body.origin + body.scale * unit[tet].mean(axis=1),
        volume=body.scale**3 * volumes(unit, tet),
        size=np.full(len(tet), spacing), length_scale=spacing, edge=edge,
        faces=Faces(
            vertex=body.origin + body.scale * unit,
            start=3 * np.arange(len(face) + 1, dtype=np.int64), corner=face_corner.ravel(),
            side=side, edge=np.arange(len(edge), dtype=np.int32), normal=normal.reshape(-1, 3),
            uv=uv.reshape(-1, 2), triangle=triangle),
        notes=_notes(body, shell, unit, tet, layers))


def _notes(body: Body, shell: Shell, unit: Array, tet: Array, layers: int) -> tuple[str, ...]:
    """Say what the shell is like."""
    volume = float(volumes(unit, tet).sum())
    angle = least_dihedral(unit, tet)
    slivers = int((angle < SLIVER_ANGLE).sum())
    notes = [
        f"{len(tet):,} tetrahedra on {len(unit):,} vertices in {layers} layers, "
        f"{shell.spacing * body.scale:.6g} m apart; they fill {volume / body.volume:.2%} of the "
        "mesh's volume",
        f"smallest dihedral angle {angle.min():.3g} degrees; {slivers:,} slivers "
        f"({slivers / len(tet):.2%}) below {SLIVER_ANGLE:g} degrees",
    ]
    if shell.lost_volume > 0.0:
        notes.append(f"{shell.lost_volume / body.volume:.3%} of the mesh's volume is thinner than "
                     "the shell resolves and was left out")
    if shell.detached:
        notes.append(f"{shell.detached:,} tetrahedra ({shell.detached_volume / body.volume:.3%} of "
                     "the mesh's volume) hung on no face of the rest and were left out")
    if shell.kept_outer:
        notes.append(f"{shell.kept_outer:,} tetrahedra have all corners on the surface, at sharp "
                     "edges and in parts thinner than two layers, and were kept")
    return tuple(notes)
