"""Where the surface of a body comes from, and how many elements it will have.

A surface is read, made or cut out as a box once in a process and kept, for the checks, the
estimates and the construction all ask for it.
"""

from __future__ import annotations

import functools
import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.device import Device
from vfx.geometry.bodies import ASSET, Body
from vfx.geometry.elements import Surface
from vfx.geometry.handoff import Array
from vfx.geometry.inspect import MeshReport
from vfx.geometry.mesh import Placement, find_placement, make_surface
from vfx.geometry.mesh_files import RawMesh, read_raw_mesh

#: Elements in a cube of lambda: of blue-noise sites at their least distance, and of
#: tetrahedra between layers lambda apart.
SITES_A_CUBE = 0.79
TETRAHEDRA_A_CUBE = 4.6


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
    placement = (body.mesh_unit, body.mesh_up, body.mesh_scale, body.height, body.anchor,
                 body.repair)
    return _mesh_surface(body.mesh, str(_path(body, folder)), _stamp(body, folder), placement)


def placement_of(body: Body, folder: Path | None = None) -> Placement:
    """Return how the mesh file of a body lies in the body's axes; reads it once more."""
    return find_placement(_raw_mesh(body.mesh, str(_path(body, folder))), body)


def encloses(surface: Surface, point: Array) -> bool:
    """Whether a closed surface has a point (3,) inside: by the solid angle that it fills there."""
    if (point < surface.vertex.min(axis=0)).any() or (point > surface.vertex.max(axis=0)).any():
        return False
    toward = surface.vertex - point
    distance = np.linalg.norm(toward, axis=1)
    a, b, c = (toward[surface.triangle[:, k]] for k in range(3))
    la, lb, lc = (distance[surface.triangle[:, k]] for k in range(3))
    # Van Oosterom and Strackee 1983: the solid angle of a triangle.
    volume = np.einsum("ti,ti->t", a, np.cross(b, c))
    along = (la * lb * lc + np.einsum("ti,ti->t", a, b) * lc + np.einsum("ti,ti->t", b, c) * la
             + np.einsum("ti,ti->t", c, a) * lb)
    return bool(np.arctan2(volume, along).sum() > np.pi)


def source_hash(body: Body, folder: Path | None = None) -> str:
    """Return a hash of what a body's mesh is made from, or "" for boxes; FileNotFoundError."""
    if not body.mesh:
        return ""
    if body.mesh.startswith(ASSET):
        from vfx.geometry.assets import VERSION

        return f"{body.mesh} {VERSION}"
    return _file_hash(str(_path(body, folder)), _stamp(body, folder))


def body_size(body: Body, folder: Path | None = None) -> BodySize:
    """Return how many elements a body will have, and lambda; raises as ``surface_of``."""
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
    if body.spacing:
        n, filled = _count(body, body.spacing, volume, area)
        return BodySize(max(1, round(n)), body.spacing, filled, area)
    # More spacing, fewer elements: halve the interval.
    low, high = 0.0, 4.0 * volume ** (1 / 3) + 1e-300
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _count(body, middle, volume, area)[0] > body.elements:
            low = middle
        else:
            high = middle
    return BodySize(body.elements, high, _count(body, high, volume, area)[1], area)


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


def _count(body: Body, spacing: float, volume: float, area: float) -> tuple[float, float]:
    """Return about how many elements there are at a spacing, and the volume they fill."""
    cube = spacing**3
    if body.shape == "grid":
        return volume / cube, volume
    if body.shape == "voronoi":
        n = SITES_A_CUBE * volume / cube
        return n * (_graded_density(body, volume) if body.grading_deviation else 1.0), volume
    filled = min(volume, area * body.layers * spacing)
    return TETRAHEDRA_A_CUBE * filled / cube, filled


def _graded_density(body: Body, volume: float) -> float:
    """Return about how many sites a graded body has of those it had if all were the finest."""
    far = body.grading_finest**3
    near = (2.0 * math.pi) ** 1.5 * body.grading_deviation**3
    return float(far + (1.0 - far) * min(near / volume, 1.0))


def _box_area(edges: tuple[float, float, float]) -> float:
    x, y, z = edges
    return 2.0 * (x * y + y * z + z * x)


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


@functools.lru_cache(maxsize=8)
def _mesh_surface(
    mesh: str, path: str, stamp: tuple[int, ...], placement: tuple[object, ...]
) -> tuple[Surface, MeshReport]:
    unit, up, scale, height, anchor, repair = placement
    body = Body(material="", mesh=mesh, mesh_unit=str(unit), mesh_up=str(up),
                mesh_scale=float(str(scale)), height=float(str(height)), anchor=str(anchor),
                repair=bool(repair))
    return make_surface(_device(), _raw_mesh(mesh, path), body)


def _raw_mesh(mesh: str, path: str) -> RawMesh:
    if mesh.startswith(ASSET):
        from vfx.geometry.assets import make_asset

        return make_asset(mesh.removeprefix(ASSET))
    return read_raw_mesh(Path(path))


@functools.lru_cache(maxsize=8)
def _file_hash(path: str, stamp: tuple[int, ...]) -> str:
    digest = hashlib.blake2b(digest_size=20)
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@functools.cache
def _device() -> Device:
    from vfx.device import open_device

    return open_device("cpu")
