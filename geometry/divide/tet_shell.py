"""Tetrahedra in a tet-shell below the surface of a mesh (levine-2014 section 4, mesh-based).

Layers of points, the outermost on the surface itself, are spread evenly (layers.py) and joined
to tetrahedra by a Delaunay triangulation. Those are dropped whose vertices are all on the
outermost or all on the innermost layer, that lie outside the mesh, or deeper than the layers.
Where the rule would eat the solid itself, it does not hold: where a wall is thinner than two
layers, or at a sharp edge, all vertices are on the outermost layer though there is solid between
them. Positions are the barycentres, and elements are adjacent where they share a face.

The length scale lambda is the distance between layers: barycentres come far closer than that, but
with delta = 2 lambda a particle then has about as many bonds as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.band import Band, fill_band
from vfx.geometry.divide.layers import Points
from vfx.geometry.divide.skin import dress_faces
from vfx.geometry.divide.tet_shell_part import (
    Part,
    TetShell,
    finish_shell,
    join_points,
    make_part,
    shell_candidates,
    shell_points,
)
from vfx.geometry.divide.tetrahedra import FACES, least_dihedral, share_faces, volumes
from vfx.geometry.divide.thickness import mean_thickness, way_out
from vfx.geometry.handoff.elements import Elements, Progress, Surface
from vfx.geometry.handoff.types import Array, Faces
from vfx.geometry.inside.distance import morton_order
from vfx.geometry.mesh.inspect import PlacedError, counted
from vfx.geometry.mesh.parts import mesh_parts

#: Distance of neighbours on a layer, in layer spacings. The mean over all six of them is 1.09
#: times that: the edge of regular tetrahedra as high as a layer spacing.
ACROSS = 1.12
#: Tetrahedra in the volume of a cubed layer spacing, and how many are left of those after the
#: first steps of spreading when all is done; measured.
BAND_TETRAHEDRA = 4.5
SPREAD_SHARE = 0.981
#: Points that were spread a few steps are counted in at most so many trials, until their count is
#: this near; the final one is made anew where it is off by more than the second share, and up to
#: so many times where that takes only seconds: there by more than the first.
COUNT_TRIALS = 4
COUNT_TOLERANCE = 0.005
COUNT_LIMIT = 0.015
COUNT_REPEATS = 3
SMALL_COUNT = 100_000
#: A first trial's count that is off by more than this asks for another spacing between layers,
#: by less for another spacing on the layers.
COUNT_JUMP = 0.25
#: A count that is off by no more than this needs no further trial when that spacing is changed.
COUNT_STEP = 0.12
#: Points on the surface a tetrahedron asked for, at most: a plate has a third of one.
MOST_POINTS = 2.0
#: In a plate as thick as a third of a layer spacing nearly all tetrahedra are solid; measured are
#: so many in a squared spacing of its surface.
PLATE_SPACING = 3.0
PLATE_TETRAHEDRA = 2.0
#: Shares of the mesh's volume: what tetrahedra may leave out where it is thinner than they are,
#: and what they may fill, for over hollow places they go beyond it.
MOST_LOST = 0.25
MOST_FILLED = 1.05
#: Cells along the longest side in which it is seen how much of a part is in reach of the layers.
SAMPLE_CELLS = 24
#: Tetrahedra with a smaller dihedral angle are called slivers [degrees].
SLIVER_ANGLE = 5.0


@dataclass(frozen=True)
class Frame:
    """How the mesh of size one lies in the axes of its surface."""

    origin: Array            # (3,) [m]: the middle of the mesh
    scale: float             # [m]: its diagonal


def divide_tet_shell(
    device: Device, surface: Surface, *, spacing: float | None, count: int | None, layers: int,
    seed: int, progress: Progress
) -> Elements:
    """Divide a surface into tetrahedra between ``layers`` layers of points.

    Either ``spacing``, the distance between layers [m], or ``count``, about how many tetrahedra,
    is given; the other follows.
    """
    if layers < 2:
        raise ValueError(f"a tet-shell of {counted(layers, 'layer')} has no inside; layers must "
                         "be at least 2")
    if (spacing is None) == (count is None):
        raise ValueError("a tet-shell needs either a spacing or a count, and not both")
    progress("Measuring the mesh", 0.0)
    frame, parts = measure(device, surface)
    if spacing is not None:
        unit = spacing / frame.scale
        progress("Throwing points", 0.05)
        points = _choose(parts, _candidates(parts, unit, layers, seed), unit, ACROSS, seed)
        shells = _finish(parts, points, unit, ACROSS, layers, progress, (0.3, 0.9))
    else:
        assert count is not None
        unit, shells = _shells_of_count(parts, count, layers, seed, progress, frame.scale)
    empty = sum(not len(shell.tet) for shell in shells)
    if empty:
        first = next(part for part, shell in zip(parts, shells, strict=True)
                     if not len(shell.tet))
        place = frame.origin + frame.scale * first.surface.vertex.mean(axis=0)
        fix = _way_out(parts, frame.scale, "use a smaller spacing or more elements, leave such "
                       "parts out of the mesh")
        which = "is" if len(parts) == 1 else f"has {empty:,} of its {len(parts):,} parts"
        raise PlacedError(
            f"{which} too thin for a tetrahedron at a layer spacing of {unit * frame.scale:.4g} m, "
            f"{'' if len(parts) == 1 else 'the first '}near", place, f"; {fix}")
    _refuse_unfit(parts, shells, unit, layers, frame.scale)
    progress("Joining tetrahedra", 0.95)
    elements = _elements(frame, parts, shells, unit, layers)
    progress("Joining tetrahedra", 1.0)
    return elements


def _refuse_unfit(
    parts: Sequence[Part], shells: Sequence[TetShell], unit: float, layers: int, size: float
) -> None:
    """Raise ValueError where tetrahedra leave out much of the mesh, or go far beyond it.

    Left out is what was dropped, or what is missing between flat tetrahedra and round walls
    that are about as thin as they are.
    """
    of_mesh = 1.0 / sum(part.volume for part in parts)
    spacing = unit * size
    dropped = of_mesh * sum(shell.lost_volume + shell.detached_volume for shell in shells)
    filled = of_mesh * sum(float(volumes(shell.point, shell.tet).sum()) for shell in shells)
    cells = max(2, round(SAMPLE_CELLS / len(parts) ** (1.0 / 3.0)))
    wanted = of_mesh * sum(_volume_within(part, (layers - 1) * unit, cells) for part in parts)
    lost = max(dropped, wanted - filled)
    fix = _way_out(parts, size, "use a smaller spacing or more elements")
    if lost > MOST_LOST:
        raise ValueError(f"is too thin for tetrahedra at a layer spacing of {spacing:.4g} m: "
                         f"{lost:.1%} of its volume would be left out; {fix}")
    if filled > MOST_FILLED:
        raise ValueError(f"has gaps or dents too narrow for tetrahedra at a layer spacing of "
                         f"{spacing:.4g} m, which would fill {filled:.1%} of its volume; {fix}")


def _volume_within(part: Part, depth: float, cells: int) -> float:
    """Return the volume of a part that is no deeper than ``depth``, about.

    It is seen at a point in each cell, ``cells`` along the longest side. A part too thin to be
    met by any is in reach as a whole.
    """
    lower, upper = part.bounds
    band = fill_band(part.tree, lower, upper, edge=float((upper - lower).max()) / cells,
                     outside=0.0, inside=math.inf, blur=0.0, seed=0)
    solid = band.depth[band.depth >= 0.0]
    return part.volume * (float((solid <= depth).mean()) if len(solid) else 1.0)


def measure(device: Device, surface: Surface) -> tuple[Frame, list[Part]]:
    """Move and scale a surface to size one; return how, and its parts."""
    lower, upper = surface.vertex.min(axis=0), surface.vertex.max(axis=0)
    frame = Frame(0.5 * (lower + upper), float(np.linalg.norm(upper - lower)))
    unit = replace(surface, vertex=(surface.vertex - frame.origin) / frame.scale)
    return frame, [make_part(device, unit, triangle)
                   for triangle in mesh_parts(unit.vertex, unit.triangle)]


def _candidates(
    parts: Sequence[Part], spacing: float, layers: int, seed: int
) -> list[Points]:
    """Return points on the layers of each part from which to choose."""
    return [shell_candidates(part, spacing, layers, seed) for part in parts]


def _choose(
    parts: Sequence[Part], candidates: Sequence[Points], spacing: float, across: float, seed: int
) -> list[Points]:
    """Choose points on the layers of each part."""
    return [shell_points(part, own, spacing, across, seed)
            for part, own in zip(parts, candidates, strict=True)]


def _finish(
    parts: Sequence[Part], points: Sequence[Points], spacing: float, across: float, layers: int,
    progress: Progress, share: tuple[float, float]
) -> list[TetShell]:
    """Spread the points of each part and join them."""
    step = (share[1] - share[0]) / len(parts)
    return [finish_shell(part, own, spacing, across, layers, progress,
                         (share[0] + step * k, share[0] + step * (k + 1)))
            for k, (part, own) in enumerate(zip(parts, points, strict=True))]


def _count(shells: Sequence[TetShell]) -> int:
    """Return how many tetrahedra there are."""
    return sum(len(shell.tet) for shell in shells)


def _shells_of_count(
    parts: Sequence[Part], count: int, layers: int, seed: int, progress: Progress, size: float
) -> tuple[float, list[TetShell]]:
    """Find the layer spacing that gives about ``count`` tetrahedra, and the shells of it.

    Where walls are about as thin as a few layers, the count jumps when one more layer finds
    room; what is missing then follows from the spacing on the layers, not that between them.
    """
    guess = _first_spacing(parts, count, layers)
    bands = [fill_band(part.tree, *part.bounds, edge=guess, outside=0.0,
                       inside=1.5 * layers * guess, blur=0.0, seed=seed) for part in parts]
    spacing = _spacing_of_count(bands, count, layers, guess)
    across = ACROSS
    _refuse_thin(parts, spacing, count, size, 5.0 * MOST_POINTS)
    candidates = _candidates(parts, spacing, layers, seed)
    for trial in range(COUNT_TRIALS):
        progress("Finding the spacing", 0.1 + 0.3 * trial / COUNT_TRIALS)
        points = _choose(parts, candidates, spacing, across, seed)
        found = SPREAD_SHARE / count * _count(
            [join_points(part, own, spacing, layers)
             for part, own in zip(parts, points, strict=True)])
        if abs(found - 1.0) <= COUNT_TOLERANCE:
            break
        if found == 0.0:
            # Points nearer on the surface would be as many as its walls are thin, not as asked.
            _refuse_thin(parts, spacing, count, size, 0.0)
        if trial == 0 and abs(found - 1.0) > COUNT_JUMP:
            factor = found * count / _predicted(bands, spacing, layers)
            spacing = _spacing_of_count(bands, count / factor, layers, guess)
            _refuse_thin(parts, spacing, count, size, MOST_POINTS)
            candidates = _candidates(parts, spacing, layers, seed)
            continue
        across *= _narrower(found)
        if abs(found - 1.0) <= COUNT_STEP or trial == COUNT_TRIALS - 1:
            points = _choose(parts, candidates, spacing, across, seed)
            break
    shells = _finish(parts, points, spacing, across, layers, progress, (0.4, 0.9))
    is_small = count <= SMALL_COUNT
    best = found = _count(shells) / count
    for _ in range(COUNT_REPEATS if is_small else 1):
        if abs(best - 1.0) <= (COUNT_TOLERANCE if is_small else COUNT_LIMIT) or found == 0.0:
            break
        across *= _narrower(found)
        points = _choose(parts, candidates, spacing, across, seed)
        again = _finish(parts, points, spacing, across, layers, progress, (0.5, 0.9))
        found = _count(again) / count
        if abs(found - 1.0) < abs(best - 1.0):
            best, shells = found, again
    return spacing, shells


def _refuse_thin(
    parts: Sequence[Part], spacing: float, count: int, size: float, most: float
) -> None:
    """Raise ValueError where the surface alone would have far more points than tetrahedra."""
    area, volume = _area_and_volume(parts)
    if area <= most * count * 0.5 * math.sqrt(3.0) * (ACROSS * spacing) ** 2:
        return
    thick = mean_thickness(volume, area)
    wanted = max(PLATE_TETRAHEDRA * area / (PLATE_SPACING * thick) ** 2, 2.0 * count)
    raise ValueError(
        f"is too thin for a tet-shell of {counted(count, 'tetrahedron', 'tetrahedra')}: its walls, "
        f"{thick * size:.3g} m on average, take about {wanted:,.0f} of them; "
        f"{_way_out(parts, size, 'ask for more')}")


def _way_out(parts: Sequence[Part], size: float, finer: str) -> str:
    """Return what to do where parts are too thin; ``size`` [m] is that of the mesh."""
    area, volume = _area_and_volume(parts)
    return way_out(volume * size**3, area * size**2, finer)


def _area_and_volume(parts: Sequence[Part]) -> tuple[float, float]:
    """Return the area and the volume of all parts together."""
    return sum(part.area for part in parts), sum(part.volume for part in parts)


def _narrower(found: float) -> float:
    """Return by what the spacing on layers has to change where ``found`` times too many are.

    Points are as many as the inverse square of it; of the tetrahedra some fewer come and go,
    by a power of 1.6 (thin walls) to 2 (thick ones).
    """
    return float(min(max(found ** (1.0 / 1.75), 0.8), 1.25))


def _first_spacing(parts: Sequence[Part], count: int, layers: int) -> float:
    """Return a layer spacing for ``count`` from area and volume alone."""
    area, volume = _area_and_volume(parts)
    thin = math.sqrt(BAND_TETRAHEDRA * (layers - 1) * area / count)
    thick = (BAND_TETRAHEDRA * volume / count) ** (1.0 / 3.0)
    return float(min(thin, thick))


def _predicted(bands: Sequence[Band], spacing: float, layers: int) -> float:
    """Return how many tetrahedra shells of ``spacing`` have, from the volume they fill."""
    return BAND_TETRAHEDRA * sum(band.volume((layers - 1) * spacing) for band in bands) / spacing**3


def _spacing_of_count(bands: Sequence[Band], count: float, layers: int, guess: float) -> float:
    """Return the layer spacing that should give ``count`` tetrahedra, by bisection."""
    low, high = 0.2 * guess, 5.0 * guess
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _predicted(bands, middle, layers) > count else (low, middle)
    return high


def _elements(
    frame: Frame, parts: Sequence[Part], shells: Sequence[TetShell], spacing: float, layers: int
) -> Elements:
    """Return the tetrahedra of all shells as elements, in the axes of the surface."""
    first = np.cumsum([0] + [len(shell.point) for shell in shells])
    tet = np.concatenate([
        (shell.tet + base)[morton_order(shell.point[shell.tet].mean(axis=1))]
        for shell, base in zip(shells, first, strict=False)])
    owner = np.repeat(np.arange(len(shells)), [len(shell.tet) for shell in shells])
    used, corner = np.unique(tet, return_inverse=True)
    tet = corner.reshape(-1, 4).astype(np.int32)
    unit = np.concatenate([shell.point for shell in shells])[used]
    layer = np.concatenate([shell.layer for shell in shells])[used]
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
    for k, part in enumerate(parts):
        skin = np.flatnonzero(is_skin & (owner[side[len(edge):, 0]] == k))
        normal[skin], uv[skin], own = dress_faces(part.tree, part.surface, unit[outside[skin]])
        triangle[skin] = part.triangle[own]

    length_scale = spacing * frame.scale
    return Elements(
        position=frame.origin + frame.scale * unit[tet].mean(axis=1),
        volume=frame.scale**3 * volumes(unit, tet),
        size=np.full(len(tet), length_scale), length_scale=length_scale, edge=edge,
        faces=Faces(
            vertex=frame.origin + frame.scale * unit,
            start=3 * np.arange(len(face) + 1, dtype=np.int64), corner=face_corner.ravel(),
            side=side, edge=np.arange(len(edge), dtype=np.int32), normal=normal.reshape(-1, 3),
            uv=uv.reshape(-1, 2), triangle=triangle),
        notes=_notes(parts, shells, unit, layer, tet, length_scale, layers))


def _notes(
    parts: Sequence[Part], shells: Sequence[TetShell], unit: Array, layer: Array, tet: Array,
    length_scale: float, layers: int
) -> tuple[str, ...]:
    """Say what the tet-shells are like."""
    of_mesh = 1.0 / sum(part.volume for part in parts)
    angle = least_dihedral(unit, tet)
    slivers = int((angle < SLIVER_ANGLE).sum())
    notes = [
        f"{counted(len(tet), 'tetrahedron', 'tetrahedra')} on {len(unit):,} vertices in {layers} "
        f"layers, {length_scale:.6g} m apart, for {volumes(unit, tet).sum() * of_mesh:.2%} of the "
        "mesh's volume",
        f"smallest dihedral angle {angle.min():.3g} degrees; {counted(slivers, 'sliver')} "
        f"({slivers / len(tet):.2%}) below {SLIVER_ANGLE:g} degrees",
    ]
    if len(parts) > 1:
        notes.append(f"the mesh has {len(parts):,} parts, each with a tet-shell of its own")
    lost = sum(shell.lost_volume for shell in shells) * of_mesh
    if lost > 1e-6:
        notes.append(f"{lost:.3%} of the mesh's volume is thinner than the tet-shell resolves and "
                     "was left out")
    detached = sum(shell.detached for shell in shells)
    if detached:
        share = sum(shell.detached_volume for shell in shells) * of_mesh
        left = counted(detached, "tetrahedron", "tetrahedra")
        notes.append(f"left out {left} ({share:.3%} of the mesh's volume) that hung on no face of "
                     "the rest")
    on_surface = int((layer[tet] == 0).all(axis=1).sum())
    if on_surface:
        kept = counted(on_surface, "tetrahedron", "tetrahedra")
        notes.append(f"kept {kept} with all corners on the surface, at sharp edges and in walls "
                     "thinner than two layers")
    return tuple(notes)
