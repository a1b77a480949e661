"""The one builder of solids: bodies, divided each in its own way and put together in the world.

The axes of a body are those of its surface: the ``anchor`` of its mesh, or the centre of its
box, is their origin. A body is rotated about that and moved to its ``center``.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.check import check_elements, check_solid
from vfx.geometry.divide.cubes import block_bytes, block_elements, divide_grid
from vfx.geometry.divide.grading import toward_impact
from vfx.geometry.divide.overlap import TOLERANCE, refuse_box_overlap
from vfx.geometry.divide.place import heights
from vfx.geometry.divide.sources import (
    block_edges,
    body_size,
    placement_of,
    surface_area,
    surface_of,
    surface_volume,
)
from vfx.geometry.divide.tet_shell import divide_tet_shell
from vfx.geometry.divide.thickness import (
    MOST_SPACING,
    PLATE_LAYERS,
    UNEVEN_WALLS,
    mean_thickness,
    refuse_film,
    way_out,
)
from vfx.geometry.divide.voronoi import divide_voronoi
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.elements import Elements, Progress, Surface
from vfx.geometry.handoff.faces import empty_faces, join_faces
from vfx.geometry.handoff.orientation import body_orientation
from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array, Faces, Solid
from vfx.geometry.inside.door import points_inside
from vfx.geometry.mesh.inspect import MeshReport, PlacedError, counted

#: Bytes of memory at the peak for an element and for a triangle, by shape: from above what
#: benchmarks of half a million elements took (1000 for a shell, 5700 for clipped cells).
_PEAK_BYTES = {"grid": 600, "tet-shell": 2500, "voronoi": 6000}
_PEAK_BYTES_TRIANGLE = 1500
#: Share by which a number of elements may be off what was asked for before that is said.
MOST_OFF_COUNT = 0.05


@dataclass(frozen=True)
class Built:
    """A solid, and what a person should know of it: lines for each body, by its name."""

    solid: Solid
    notes: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class _Divided:
    """One body divided, in its own axes."""

    body: Body
    surface: Surface
    elements: Elements
    cell: Array              # (n, 3) int32: zeros unless the elements are cubes
    axes: Array              # (3, 3) world_from_body


def build_solid(
    device: Device, bodies: Sequence[Body], folder: Path | None = None,
    progress: Progress | None = None,
) -> Built:
    """Divide ``bodies`` into elements; raise ValueError if they make no sense.

    Meshes are named from ``folder``.
    """
    check_bodies(bodies, folder)
    divided = []
    for number, body in enumerate(bodies):
        def tell(what: str, share: float, number: int = number, body: Body = body) -> None:
            if progress is not None:
                progress(f"{body.name}: {what}", (number + share) / len(bodies))

        try:
            divided.append(_divide(device, body, folder, tell))
        except ValueError as error:
            raise ValueError(f"body '{body.name}' {_told(error, body, folder)}") from None
    refuse_overlap(device, divided)
    solid = _assemble(divided)
    check_solid(solid)
    notes = {}
    for each in divided:
        report = surface_of(each.body, folder)[1]
        notes[each.body.name] = (*(report.lines() if report else ()), *each.elements.notes)
    return Built(solid, notes)


def check_bodies(bodies: Sequence[Body], folder: Path | None = None) -> None:
    """Raise ValueError with a sentence if the bodies cannot be built side by side.

    Meshes are read and looked at; bodies that are no boxes are compared when they are built.
    """
    if not bodies:
        raise ValueError("there is no body; write at least one [[bodies]]")
    for body in bodies:
        for key, message in body.complaints():
            raise ValueError(f"body '{body.name}': {key} {message}" if key else
                             f"body '{body.name}' {message}")
        check_place(body, folder)
        if body.shape == "voronoi":
            try:
                refuse_film(*_volume_and_area(body, folder))
            except ValueError as error:
                raise ValueError(f"body '{body.name}' {error}") from None
    for name, count in Counter(body.name for body in bodies).items():
        if count > 1:
            raise ValueError(f"two bodies are called '{name}', but pieces are named after their "
                             "body; give each its own name")
    n_elements = sum(body_size(body, folder).elements for body in bodies)
    if 3 * n_elements >= 2**31:
        raise ValueError(f"the bodies have {n_elements:,} elements, but only {2**31 // 3:,} or so "
                         "can be numbered; use fewer")
    refuse_box_overlap(bodies)


def check_place(body: Body, folder: Path | None = None) -> None:
    """Refuse a body so far away, or so finely divided, that its elements cannot be told apart."""
    if not all(map(math.isfinite, (*body.center, *body.rotation))):
        raise ValueError(f"body '{body.name}' has a center {list(body.center)} or a rotation "
                         f"{list(body.rotation)} that is not finite; give numbers")
    if body.is_block and (min(body.cells) < 1 or not 0.0 < body.spacing < math.inf):
        raise ValueError(f"body '{body.name}' has cells {list(body.cells)} of a spacing of "
                         f"{body.spacing} m; each must be at least 1, the spacing above 0")
    size = body_size(body, folder)
    if body.mesh:
        reach = float(np.abs(surface_of(body, folder)[0].vertex).max())
    else:
        reach = max(block_edges(body))
    reach += max(map(abs, body.center))
    if math.ulp(reach) > TOLERANCE * size.spacing:
        raise ValueError(f"body '{body.name}' reaches {reach:g} m from the origin, too far for "
                         f"elements of {size.spacing:g} m: double precision cannot tell them "
                         "apart there; move its center toward the origin or raise its spacing")


def lowest_point(body: Body, folder: Path | None = None) -> float:
    """Return the height y [m] of a body's lowest point at rest."""
    return body.center[1] + heights(body, folder)[0]


def thin_bodies(bodies: Sequence[Body], folder: Path | None = None) -> list[str]:
    """Return a sentence for each body that is probably too thin for its elements."""
    lines = []
    for body in bodies:
        # A box of cubes takes as many as fit.
        if body.shape not in MOST_SPACING or not (body.mesh or body.shape == "tet-shell"):
            continue
        volume, area = _volume_and_area(body, folder)
        thick, spacing = mean_thickness(volume, area), body_size(body, folder).spacing
        if body.shape == "tet-shell" and body.elements:
            spacing *= PLATE_LAYERS
        most = MOST_SPACING[body.shape] * thick
        if body.shape == "tet-shell" and body.mesh:
            most *= UNEVEN_WALLS
        if spacing > most:
            what = "cubes" if body.shape == "grid" else "layers of tetrahedra"
            fix = way_out(volume, area, "lower the spacing, ask for more elements")
            lines.append(f"body '{body.name}' is {thick:.3g} m thick on average, probably too thin "
                         f"for {what} {spacing:.3g} m apart, which geometry then refuses; {fix}")
    return lines


def _volume_and_area(body: Body, folder: Path | None) -> tuple[float, float]:
    """Return the volume [m^3] and the area [m^2] of a body's surface."""
    surface, report = surface_of(body, folder)
    if report is not None:
        return report.volume, report.area
    return surface_volume(surface), surface_area(surface)


def solid_bytes(bodies: Sequence[Body], folder: Path | None = None) -> int:
    """Return about how much memory building the solid of ``bodies`` takes [bytes]."""
    needed = 0
    for body in bodies:
        if body.is_block:
            needed += block_bytes(body.cells)
            continue
        n_triangles = len(surface_of(body, folder)[0].triangle)
        needed += _PEAK_BYTES[body.shape] * body_size(body, folder).elements
        needed += _PEAK_BYTES_TRIANGLE * n_triangles
    return needed


def mesh_reports(bodies: Sequence[Body], folder: Path | None = None) -> dict[str, MeshReport]:
    """Return the reports on the meshes of bodies, by the bodies' names."""
    reports = {body.name: surface_of(body, folder)[1] for body in bodies}
    return {name: report for name, report in reports.items() if report is not None}


def _divide(device: Device, body: Body, folder: Path | None, progress: Progress) -> _Divided:
    """Divide one body by its shape."""
    surface = surface_of(body, folder)[0]
    axes = body_orientation(body)
    spacing = body.spacing or None
    count = body.elements or None
    if body.is_block:
        return _Divided(body, surface, *block_elements(body.cells, body.spacing), axes)
    if body.shape == "grid" and not body.mesh:
        # A plain box takes the whole cubes nearest to its edges.
        edge = body_size(body).spacing
        cells = tuple(max(1, round(length / edge)) for length in body.box)
        elements, cell = block_elements((cells[0], cells[1], cells[2]), edge)
    elif body.shape == "grid":
        elements, cell = divide_grid(device, surface, spacing=spacing, count=count,
                                     progress=progress)
    else:
        elements = _divide_irregular(device, body, surface, axes, progress)
        cell = np.zeros((len(elements.position), 3), np.int32)
    try:
        check_elements(elements, body.shape, volume=surface_volume(surface), spacing=spacing)
    except ValueError as error:
        if not body.mesh:
            raise
        told = _told(error, body, folder)
        raise ValueError(f"{told}: faces of its mesh lie on each other there, or nearly so; part "
                         "or unite them in a modelling program, or use another shape") from None
    if count is not None and abs(len(elements.position) - count) > MOST_OFF_COUNT * count:
        elements = dataclasses.replace(elements, notes=(*elements.notes, (
            f"Asked for {counted(count, 'element')}; parts as small or thin as these take another "
            "number.")))
    return _Divided(body, surface, elements, cell, axes)


def _told(error: ValueError, body: Body, folder: Path | None) -> ValueError:
    """Return an error with its place, if it has one, where a modelling program shows it."""
    if body.mesh and isinstance(error, PlacedError):
        return error.moved(placement_of(body, folder).to_file)
    return error


def _divide_irregular(
    device: Device, body: Body, surface: Surface, axes: Array, progress: Progress
) -> Elements:
    """Divide a body into tetrahedra or Voronoi cells."""
    spacing = body.spacing or None
    count = body.elements or None
    if body.shape == "tet-shell":
        return divide_tet_shell(device, surface, spacing=spacing, count=count, layers=body.layers,
                                seed=body.seed, progress=progress)
    grading = None
    if body.grading_deviation:
        place = axes.T @ (np.array(body.grading_center) - np.array(body.center))
        grading = toward_impact(place, body.grading_deviation, 1.0 / body.grading_finest)
    return divide_voronoi(device, surface, spacing=spacing, count=count, grading=grading,
                          seed=body.seed, progress=progress)


def _assemble(divided: Sequence[_Divided]) -> Solid:
    """Put divided bodies into the world."""
    count = np.array([len(each.elements.position) for each in divided])
    first = np.cumsum(count) - count
    first_edge = np.cumsum([0] + [len(each.elements.edge) for each in divided])
    faces = _world_faces(divided, first, first_edge)
    return Solid(
        position=np.concatenate([to_world(each.elements.position, each) for each in divided]),
        volume=np.concatenate([each.elements.volume for each in divided]),
        size=np.concatenate([each.elements.size for each in divided]),
        body=np.repeat(np.arange(len(divided), dtype=np.int32), count),
        cell=np.concatenate([each.cell for each in divided]),
        edge=np.concatenate([each.elements.edge + np.int32(base)
                             for each, base in zip(divided, first, strict=True)]),
        length_scale=np.array([each.elements.length_scale for each in divided]),
        orientation=np.stack([each.axes for each in divided]),
        kind=np.array([each.body.shape for each in divided]),
        body_name=np.array([each.body.name for each in divided]),
        material_name=np.array([each.body.material for each in divided]),
        face_vertex=faces.vertex, face_start=faces.start, face_corner=faces.corner,
        face_side=faces.side, face_edge=faces.edge, surface_normal=faces.normal,
        surface_uv=faces.uv, surface_triangle=faces.triangle)


def _world_faces(divided: Sequence[_Divided], first: Array, first_edge: Array) -> Faces:
    """Return the stored faces of all bodies, with the solid's numbers, in the world."""
    moved = []
    for each, base, base_edge in zip(divided, first, first_edge, strict=False):
        faces = each.elements.faces
        if not len(faces.side):
            continue
        side = np.where(faces.side >= 0, faces.side + np.int32(base), np.int32(-1))
        moved.append(dataclasses.replace(
            faces, vertex=to_world(faces.vertex, each), side=side.astype(np.int32),
            edge=(faces.edge + np.int32(base_edge)).astype(np.int32),
            normal=turned(faces.normal, each.axes).astype(np.float32)))
    return join_faces(moved) if moved else empty_faces()


def to_world(point: Array, each: _Divided) -> Array:
    """Return points (k, 3) of a body's axes in the world, row by row alike."""
    return np.asarray(turned(point, each.axes) + np.array(each.body.center))


def refuse_overlap(device: Device, divided: Sequence[_Divided]) -> None:
    """Raise ValueError if an element of one body has its position inside another.

    Two boxes were compared as such before.
    """
    world = [to_world(each.elements.position, each) for each in divided]
    low = np.array([to_world(each.surface.vertex, each).min(axis=0) for each in divided])
    high = np.array([to_world(each.surface.vertex, each).max(axis=0) for each in divided])
    for a, each in enumerate(divided):
        others = [b for b in range(len(divided)) if b != a
                  and (each.body.mesh or divided[b].body.mesh)
                  and (low[a] < high[b]).all() and (low[b] < high[a]).all()]
        if not others:
            continue
        near = [world[b][((world[b] > low[a]) & (world[b] < high[a])).all(axis=1)] for b in others]
        local = (np.concatenate(near) - np.array(each.body.center)) @ each.axes
        inside = points_inside(device, each.surface, local)
        for b, of_other in zip(others, np.split(inside, np.cumsum([len(x) for x in near])[:-1]),
                               strict=True):
            if of_other.any():
                raise ValueError(
                    f"bodies '{each.body.name}' and '{divided[b].body.name}' overlap at rest "
                    f"({counted(int(of_other.sum()), 'element')} of the second inside the first); "
                    "move or turn one of them")
