"""From a mesh file to a closed surface in metres, or to a sentence that says why not.

Vertices that uv seams or file formats keep apart are merged by place; triangles without an
inside and duplicates go. What then is not closed, not facing outward or cutting through itself
is mended where the shot asks for it (:mod:`vfx.geometry.mesh.repair`) and refused otherwise.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from vfx.device import Device
from vfx.geometry.handoff.bodies import FROM_FILE, UNITS, Body
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh
from vfx.geometry.mesh.inspect import LARGEST_OVERLAP, MeshReport, counted, inspect_mesh
from vfx.geometry.mesh.repair import (
    close_holes,
    close_slits,
    face_alike,
    turn_triangles,
    unite_shells,
)
from vfx.geometry.mesh.shading import corner_normals
from vfx.geometry.mesh.topology import find_topology

#: Distance, as a share of the mesh's size, within which vertices on open borders are one.
WELD = 1e-6
#: Volume of a closed shell, as a share of its area to the power 3/2, below which it encloses
#: nothing.
FILM = 1e-9

#: Rows that take the axes of a mesh to ours, in which y is up.
_UPRIGHT = {
    "y": np.eye(3),
    "z": np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]),
    "x": np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
}


def make_surface(
    device: Device, raw: RawMesh, body: Body
) -> tuple[Surface, MeshReport]:
    """Return the surface of ``body`` from what its file holds; raise MeshError if it has none.

    The anchor of the body is the origin of the surface's axes.
    """
    placement = find_placement(raw, body)
    raw, notes = merged(upright(raw, placement))
    if body.repair:
        raw, mended = _repaired(device, raw)
        notes += mended
    report, topology, shells = inspect_mesh(device, raw.vertex, raw.triangle, (*raw.notes, *notes))
    report = report.moved(placement.to_file)
    if problems := list(report.problems(repaired=body.repair)):
        where = " (places are in the coordinates of the file)" if report.names_places else ""
        raise MeshError("; it ".join(problems) + where, report)
    if shells.faces_wrong.any():
        # Only cavities are left: nested shells that face outward.
        raw = turn_triangles(raw, shells.faces_wrong[topology.shell])
        turned = counted(int(shells.faces_wrong.sum()), "shell")
        report = dataclasses.replace(report, notes=(
            *report.notes, f"Took {turned} inside another, facing outward, as hollow."))
    # Elements hang together over faces: parts that touch have nothing in common.
    triangle, place = find_topology(raw.vertex, raw.triangle).parted()
    raw = dataclasses.replace(raw, vertex=raw.vertex[place], triangle=triangle)
    uv = np.zeros((len(raw.triangle), 3, 2), np.float32) if raw.uv is None else raw.uv
    return Surface(
        vertex=np.ascontiguousarray(raw.vertex),
        triangle=np.ascontiguousarray(raw.triangle, dtype=np.int32),
        normal=corner_normals(raw.vertex, raw.triangle, raw.normal),
        uv=np.ascontiguousarray(np.nan_to_num(uv, posinf=0.0, neginf=0.0))), report


def inspect_only(device: Device, raw: RawMesh, body: Body) -> MeshReport:
    """Return what a mesh is like as it stands, whatever is wrong with it."""
    placement = find_placement(raw, body)
    raw, notes = merged(upright(raw, placement))
    report = inspect_mesh(device, raw.vertex, raw.triangle, (*raw.notes, *notes))[0]
    return report.moved(placement.to_file)


@dataclass(frozen=True)
class Placement:
    """How a mesh file lies in the axes of its body: turned, moved, then scaled."""

    axes: Array              # (3, 3) body_from_file
    anchor: Array            # (3,) what becomes the origin, after the turn
    scale: float             # [m]: of a unit of the file

    def to_body(self, place: Array) -> Array:
        """Return places (n, 3) of the file in metres, y up, around the anchor."""
        moved: Array = (place @ self.axes.T - self.anchor) * self.scale
        return moved

    def to_file(self, place: Array) -> Array:
        """Return a place (3,) of the body in the file's own coordinates."""
        back: Array = (place / self.scale + self.anchor) @ self.axes
        return back


def find_placement(raw: RawMesh, body: Body) -> Placement:
    """Return how the mesh of ``body`` is placed: in metres, y up, its anchor at the origin."""
    up = raw.up if body.mesh_up == FROM_FILE else body.mesh_up
    unit = raw.unit if body.mesh_unit == FROM_FILE else UNITS[body.mesh_unit]
    if up not in _UPRIGHT or not 0.0 < unit < 1e30:
        raise MeshError(f"says that '{up}' is up and a unit has {unit:g} m; give mesh_up and "
                        "mesh_unit in the shot")
    vertex = raw.vertex[np.unique(raw.triangle)] @ _UPRIGHT[up].T
    low, high = vertex.min(axis=0), vertex.max(axis=0)
    farthest = float(np.abs(vertex).max())
    size = float((high - low).max()) if farthest < 1e30 else np.inf
    if not 0.0 < size < 1e30 or size < 1e-12 * farthest:
        raise MeshError(f"has all its vertices at one place ({vertex[0].tolist()}), or so "
                        "far from the origin that they cannot be told apart; export it again")
    scale = unit * body.mesh_scale
    if body.height:
        if not high[1] > low[1]:
            raise MeshError("is flat: it has no height to be scaled; give it a thickness")
        scale = body.height / float(high[1] - low[1])
    anchor = {"center": 0.5 * (low + high),
              "base": np.array([0.5 * (low[0] + high[0]), low[1], 0.5 * (low[2] + high[2])]),
              "origin": np.zeros(3)}[body.anchor]
    return Placement(_UPRIGHT[up], anchor, scale)


def upright(raw: RawMesh, placement: Placement) -> RawMesh:
    """Return a mesh in the axes of its body."""
    normal = raw.normal
    if normal is not None:
        normal = (normal @ placement.axes.T).astype(np.float32)
    return dataclasses.replace(raw, vertex=placement.to_body(raw.vertex), normal=normal, unit=1.0,
                               up="y")


def merged(raw: RawMesh) -> tuple[RawMesh, list[str]]:
    """Return a mesh whose vertices are unique by place and whose triangles enclose something."""
    vertex, index = unique_places(raw.vertex)
    raw, notes = _cleaned(dataclasses.replace(raw, vertex=vertex, triangle=index[raw.triangle]))
    topology = find_topology(raw.vertex, raw.triangle)
    border = np.unique(topology.edge[topology.is_open])
    if len(border):
        extent = float((raw.vertex.max(axis=0) - raw.vertex.min(axis=0)).max())
        pair = cKDTree(raw.vertex[border]).query_pairs(WELD * extent, output_type="ndarray")
        if len(pair):
            n = len(raw.vertex)
            _, label = components(n, border[pair])
            _, first = np.unique(label, return_index=True)
            raw, more = _cleaned(dataclasses.replace(raw, triangle=first[label][raw.triangle]))
            welded = counted(n - len(first), "vertex", "vertices")
            notes += [f"Welded {welded} of open borders, within {WELD:g} of the mesh's size of "
                      "others.", *more]
    return _without_films(raw, notes)


def _without_films(raw: RawMesh, notes: list[str]) -> tuple[RawMesh, list[str]]:
    """Drop closed shells that enclose nothing, as unions leave them where parts just touch.

    They have no inside that could be told from their outside. A mesh of such alone stays.
    """
    topology = find_topology(raw.vertex, raw.triangle)
    if not topology.is_closed:
        return raw, notes
    at = raw.vertex[raw.triangle] - raw.vertex.mean(axis=0)
    side, other = at[:, 1] - at[:, 0], at[:, 2] - at[:, 0]
    volume, area, length = (np.bincount(topology.shell, part) for part in (
        np.einsum("ij,ij->i", at[:, 0], np.cross(at[:, 1], at[:, 2])) / 6.0,
        0.5 * np.linalg.norm(np.cross(side, other), axis=1), np.linalg.norm(side, axis=1)))
    rounding = 1e-15 * float(np.abs(at).max()) ** 2 * length
    is_film = np.abs(volume) <= FILM * area**1.5 + rounding
    if not is_film.any() or is_film.all():
        return raw, notes
    keep = ~is_film[topology.shell]
    used, index = np.unique(raw.triangle[keep], return_inverse=True)
    raw = dataclasses.replace(
        raw, vertex=raw.vertex[used], triangle=index.reshape(-1, 3),
        normal=None if raw.normal is None else raw.normal[keep],
        uv=None if raw.uv is None else raw.uv[keep])
    return raw, [*notes, f"Dropped {counted(int((~keep).sum()), 'triangle')} of "
                         f"{counted(int(is_film.sum()), 'shell')} with nothing inside."]


def unique_places(vertex: Array) -> tuple[Array, Array]:
    """Return the different rows of (v, 3), and which of them each is, (v,)."""
    bits = np.ascontiguousarray(vertex + 0.0).view(np.uint64)
    mixed = mixed_hash(bits)
    _, first, which = np.unique(mixed, return_index=True, return_inverse=True)
    # Keep the order in which places first appear, so that files stay as they are.
    order = np.argsort(first, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    first, which = first[order], rank[which]
    if not np.array_equal(bits[first][which], bits):
        place, which = np.unique(vertex + 0.0, axis=0, return_inverse=True)
        return place, which.ravel()
    return vertex[first], which


def mixed_hash(word: Array) -> Array:
    """Return a hash (n,) of rows of unsigned 64-bit words (n, k)."""
    code = np.zeros(len(word), np.uint64)
    for column in word.T:
        code = (code ^ column) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
        code *= np.uint64(0xBF58476D1CE4E5B9)
        code ^= code >> np.uint64(32)
    return code


def _cleaned(raw: RawMesh) -> tuple[RawMesh, list[str]]:
    """Drop triangles with two equal corners, doubles, and vertices that none uses."""
    notes = []
    a, b, c = raw.triangle.T
    keep = (a != b) & (b != c) & (c != a)
    if not keep.all():
        notes.append(f"Dropped {counted(int((~keep).sum()), 'triangle')} without an area.")
    doubles = _doubles(raw.triangle) & keep
    if doubles.any():
        notes.append(f"Dropped {counted(int(doubles.sum()), 'triangle')} on top of others.")
        keep &= ~doubles
    if not keep.any():
        raise MeshError("has every face twice, once for each side, and so encloses nothing; export "
                        "it with faces of one side" if doubles.any() else
                        "has only triangles without an area; export it again")
    used, index = np.unique(raw.triangle[keep], return_inverse=True)
    return dataclasses.replace(
        raw, vertex=raw.vertex[used], triangle=index.reshape(-1, 3),
        normal=None if raw.normal is None else raw.normal[keep],
        uv=None if raw.uv is None else raw.uv[keep]), notes


def _doubles(triangle: Array) -> Array:
    """Return which triangles to drop, (t,) bool, where several have the same corners.

    Those that face alike leave one of them; each pair that faces opposite sides goes.
    """
    ordered = np.sort(triangle, axis=1)
    _, group, count = np.unique(mixed_hash(ordered.astype(np.uint64)), return_inverse=True,
                                return_counts=True)
    drop = np.zeros(len(triangle), dtype=bool)
    several = np.flatnonzero(count[group] > 1)
    if len(several):
        t = triangle[several]
        lowest = np.argmin(t, axis=1)
        rows = np.arange(len(t))
        is_even = t[rows, (lowest + 1) % 3] < t[rows, (lowest + 2) % 3]
        net = np.bincount(group[several], weights=np.where(is_even, 1.0, -1.0))[group[several]]
        drop[several] = True
        # Of those that face the way most do, the first stays.
        right = several[(net != 0.0) & (is_even == (net > 0.0))]
        _, first = np.unique(group[right], return_index=True)
        drop[right[first]] = False
    return drop


def _repaired(device: Device, raw: RawMesh) -> tuple[RawMesh, list[str]]:
    """Close slits, turn faces, close holes, turn shells and unite those that overlap."""
    # Faces on both sides of a slit are neighbours only once it is closed.
    raw, notes = close_slits(raw)
    for mend in (face_alike, close_holes):
        raw, more = mend(raw, find_topology(raw.vertex, raw.triangle))
        notes += more
    report, topology, shells = inspect_mesh(device, raw.vertex, raw.triangle)
    if not topology.is_closed:
        return raw, notes
    if shells.faces_wrong.any():
        raw = turn_triangles(raw, shells.faces_wrong[topology.shell])
        notes.append(f"Turned {counted(int(shells.faces_wrong.sum()), 'shell')} right side out.")
        report, topology, shells = inspect_mesh(device, raw.vertex, raw.triangle)
    if report.overlap > LARGEST_OVERLAP and len(shells.volume) > 1:
        raw, more = unite_shells(raw)
        raw, cleaned = merged(raw)
        notes += [*more, *cleaned]
    return raw, notes
