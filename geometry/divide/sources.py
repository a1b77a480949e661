"""Where the surface of a body comes from, and how many elements it will have.

A surface is read or made once in a process and kept, for the checks, the estimates and the
construction all ask for it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.blue_noise import SITES_A_CUBE, SITES_A_SQUARE
from vfx.geometry.divide.filling import PLACES, Filling, even_places
from vfx.geometry.divide.grading import toward_impact
from vfx.geometry.handoff.bodies import ASSET, Body
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.orientation import body_orientation
from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh, read_raw_mesh
from vfx.geometry.mesh.inspect import MeshReport
from vfx.geometry.mesh.load import Placement, find_placement, make_surface

#: Tetrahedra between layers lambda apart in a cube of lambda.
TETRAHEDRA_A_CUBE = 4.6
#: How deep below the surface Voronoi sites crowd [lambda].
CROWDED = 0.3


@dataclass(frozen=True)
class BodySize:
    """How large a body is and how fine, before it is built: exact for boxes of cubes."""

    elements: int
    spacing: float           # lambda [m]
    volume: float            # [m^3] of the elements together
    area: float              # [m^2]


def surface_of(body: Body, folder: Path | None = None) -> tuple[Surface, MeshReport | None]:
    """Return the surface of a body in its own axes, and the report on its mesh if it has one.

    Its origin is what the body's ``center`` places. Raises MeshError, or FileNotFoundError.
    """
    if not body.mesh:
        return box_surface(block_edges(body)), None
    return _mesh_surface(
        body.mesh, str(_path(body, folder)), _stamp(body, folder), _placement(body))


def placement_of(body: Body, folder: Path | None = None) -> Placement:
    """Return how the mesh file of a body lies in the body's axes; reads it once more."""
    return find_placement(_raw_mesh(body.mesh, str(_path(body, folder))), body)


def source_hash(body: Body, folder: Path | None = None) -> str:
    """Return a hash of what a body's mesh is made from, or "" for boxes; FileNotFoundError."""
    if not body.mesh:
        return ""
    if body.mesh.startswith(ASSET):
        from vfx.geometry.assets.catalog import VERSION

        return f"{body.mesh} {VERSION}"
    return _file_hash(str(_path(body, folder)), _stamp(body, folder))


def body_size(body: Body, folder: Path | None = None) -> BodySize:
    """Return how many elements a body will have, and lambda; raises as ``surface_of``."""
    return _body_size(body, folder, _stamp(body, folder) if body.mesh else ())


@functools.cache
def _body_size(body: Body, folder: Path | None, stamp: tuple[int, ...]) -> BodySize:
    if body.is_block:
        edges = block_edges(body)
        return BodySize(math.prod(body.cells), body.spacing,
                        math.prod(body.cells) * body.spacing**3, _box_area(edges))
    if body.mesh:
        report = surface_of(body, folder)[1]
        assert report is not None
        volume, area = report.volume, report.area
    else:
        volume, area = math.prod(body.box), _box_area(body.box)
    graded = _graded_crowding(body, folder) if body.grading_deviation else 1.0
    if body.spacing:
        n, filled = _count(body, body.spacing, volume, area, graded)
        return BodySize(max(1, round(n)), body.spacing, filled, area)
    # More spacing, fewer elements: halve the interval.
    low, high = 0.0, 4.0 * volume ** (1 / 3) + 1e-300
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _count(body, middle, volume, area, graded)[0] > body.elements:
            low = middle
        else:
            high = middle
    return BodySize(body.elements, high, _count(body, high, volume, area, graded)[1], area)


def block_edges(body: Body) -> tuple[float, float, float]:
    """Return the edges [m] of a box, of cubes or plain."""
    if body.is_block:
        x, y, z = body.cells
        return x * body.spacing, y * body.spacing, z * body.spacing
    return body.box


def box_surface(edges: tuple[float, float, float]) -> Surface:
    """Return a box around the origin as twelve triangles, each side with the whole of uv."""
    sign = np.array([[(k >> axis & 1) - 0.5 for axis in range(3)] for k in range(8)])
    # Four corners of each side, anticlockwise seen from outside.
    side = np.array([[0, 4, 6, 2], [1, 3, 7, 5], [0, 1, 5, 4], [2, 6, 7, 3], [0, 2, 3, 1],
                     [4, 5, 7, 6]])
    half = np.array([[0, 1, 2], [0, 2, 3]])
    outward = np.array([[-1, 0, 0], [1, 0, 0], [0, -1, 0], [0, 1, 0], [0, 0, -1], [0, 0, 1]])
    corner_uv = np.array([[0, 0], [1, 0], [1, 1], [0, 1]], np.float32)
    return Surface(
        vertex=sign * np.array(edges), triangle=side[:, half].reshape(-1, 3).astype(np.int32),
        normal=np.repeat(outward, 6, axis=0).reshape(-1, 3, 3).astype(np.float32),
        uv=np.tile(corner_uv[half], (6, 1, 1)))


def surface_volume(surface: Surface) -> float:
    """Return the volume that a surface encloses, by the divergence theorem [m^3]."""
    corner: Array = surface.vertex[surface.triangle] - surface.vertex.mean(axis=0)
    return float(np.einsum("ij,ij->", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6.0)


def surface_area(surface: Surface) -> float:
    """Return the area of a surface [m^2]."""
    a, b, c = (surface.vertex[surface.triangle[:, k]] for k in range(3))
    return 0.5 * float(np.linalg.norm(np.cross(b - a, c - a), axis=1).sum())


def unplaced(body: Body) -> Body:
    """Return a body as it is but for its name, place and motion, which many alike differ in."""
    if body.grading_deviation:
        return body
    zero = (0.0, 0.0, 0.0)
    return dataclasses.replace(body, name="", material="", seed=0, center=zero, rotation=zero,
                               velocity=zero, angular_velocity=zero, place="free", drop=0.0,
                               fall_speed=0.0, animation="", animation_prim="",
                               animation_until=0.0, whole=False)


def mean_neighbors(
    body: Body, away: Array, volume: float, folder: Path | None = None
) -> float:
    """Return about how many elements are within reach of one, itself included, as bodies end.

    Of a body that is not built yet. What is in reach are the places ``away`` (k, 3) [lambda],
    spread evenly over a ``volume`` [lambda^3]; in a graded body lambda is each element's own.
    """
    size, surface = body_size(body, folder), surface_of(body, folder)[0]
    filling = filling_of(body, folder)
    place = filling.place
    relative = _relative_sizes(body, surface, place)
    scale = size.spacing * relative
    beside = place + np.resize(away, place.shape) * scale[:, None]
    # How many elements there are where, up to one factor for all of the body.
    here = _crowding(body, filling, place, scale)
    there = _crowding(body, filling, beside, scale) * filling.holds(beside)
    number = relative**-3.0
    cubes = surface_volume(surface) / size.spacing**3
    factor = size.elements / max(cubes * float((here * number).mean()), 1e-300)
    return factor * volume * float((here * number) @ there) / max(
        float((here * number).sum()), 1e-300)


def places_in(body: Body, folder: Path | None = None) -> Array:
    """Return places (n, 3) [m] in the world that are spread evenly over a body at rest."""
    local = filling_of(body, folder).place if body.mesh else (
        (even_places(PLACES) - 0.5) * np.array(block_edges(body)))
    place: Array = np.array(body.center) + turned(local, body_orientation(body))
    return place


def _crowding(body: Body, filling: Filling, place: Array, scale: Array) -> Array:
    """Return how densely elements stand at places (n, 3) in a body where lambda is ``scale``."""
    if body.shape == "grid":
        return np.ones(len(place))
    if body.shape == "tet-shell":
        # Between the outermost and the innermost layer of points.
        inmost = (body.layers - 1) * scale
        return np.where(filling.depth(place, inmost) <= inmost, 1.0, 0.0)
    # Sites crowd where nothing beyond the surface keeps them off.
    edge = CROWDED * scale
    return np.where(filling.depth(place, edge) <= edge, SITES_A_CUBE + SITES_A_SQUARE / CROWDED,
                    SITES_A_CUBE)


def _count(
    body: Body, spacing: float, volume: float, area: float, graded: float
) -> tuple[float, float]:
    """Return about how many elements there are at a spacing, and the volume they fill."""
    cube = spacing**3
    if body.shape == "grid":
        return volume / cube, volume
    if body.shape == "voronoi":
        return graded * (SITES_A_CUBE * volume + SITES_A_SQUARE * area * spacing) / cube, volume
    filled = min(volume, area * body.layers * spacing)
    return TETRAHEDRA_A_CUBE * filled / cube, filled


def _graded_crowding(body: Body, folder: Path | None) -> float:
    """Return about how many sites a graded body has of those it had if all were the finest."""
    relative = _relative_sizes(
        body, surface_of(body, folder)[0], filling_of(body, folder).place)
    return float((relative**-3.0).mean())


def _relative_sizes(body: Body, surface: Surface, place: Array) -> Array:
    """Return lambda at places (n, 3) in a body's axes, relative to where it is finest, (n,)."""
    if not body.grading_deviation:
        return np.ones(len(place))
    center = body_orientation(body).T @ np.subtract(body.grading_center, body.center)
    grading = toward_impact(center, body.grading_deviation, 1.0 / body.grading_finest)
    finest = np.clip(center, surface.vertex.min(axis=0), surface.vertex.max(axis=0))
    relative: Array = grading.relative(place) / grading.relative(finest[None])
    return relative


def filling_of(body: Body, folder: Path | None = None) -> Filling:
    """Return what a body fills, in its axes."""
    if not body.mesh:
        return Filling(_device(), box_surface(block_edges(body)))
    return _mesh_filling(
        body.mesh, str(_path(body, folder)), _stamp(body, folder), _placement(body))


def _box_area(edges: tuple[float, float, float]) -> float:
    x, y, z = edges
    return 2.0 * (x * y + y * z + z * x)


def _placement(body: Body) -> tuple[object, ...]:
    """Return the settings that place a mesh."""
    return (body.mesh_unit, body.mesh_up, body.mesh_scale, body.height, body.anchor, body.repair)


def _path(body: Body, folder: Path | None) -> Path:
    return Path(body.mesh) if folder is None else folder / body.mesh


def _stamp(body: Body, folder: Path | None) -> tuple[int, ...]:
    """Return what changes when a file does."""
    if body.mesh.startswith(ASSET):
        return ()
    try:
        status = os.stat(_path(body, folder))
    except PermissionError:
        raise
    except (OSError, ValueError):
        raise FileNotFoundError("there is no such file") from None
    return status.st_ino, status.st_size, status.st_mtime_ns


@functools.cache
def _mesh_surface(
    mesh: str, path: str, stamp: tuple[int, ...], placement: tuple[object, ...]
) -> tuple[Surface, MeshReport]:
    unit, up, scale, height, anchor, repair = placement
    body = Body(material="", mesh=mesh, mesh_unit=str(unit), mesh_up=str(up),
                mesh_scale=float(str(scale)), height=float(str(height)), anchor=str(anchor),
                repair=bool(repair))
    return make_surface(_device(), _raw_mesh(mesh, path), body)


@functools.cache
def _mesh_filling(
    mesh: str, path: str, stamp: tuple[int, ...], placement: tuple[object, ...]
) -> Filling:
    return Filling(_device(), _mesh_surface(mesh, path, stamp, placement)[0])


def _raw_mesh(mesh: str, path: str) -> RawMesh:
    if mesh.startswith(ASSET):
        from vfx.geometry.assets.catalog import make_asset

        return make_asset(mesh.removeprefix(ASSET))
    return read_raw_mesh(Path(path))


@functools.cache
def _file_hash(path: str, stamp: tuple[int, ...]) -> str:
    if not os.path.isfile(path):
        raise OSError(f"{path}: is no regular file")      # to read a pipe is to wait for ever
    digest = hashlib.blake2b(digest_size=20)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@functools.cache
def _device() -> Device:
    from vfx.device import open_device

    return open_device("cpu")
