"""Scenes for the renderer's tests: boxes of cubes, whole, holed or in pieces."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.types import Array, Pieces, Solid
from vfx.raytrace.boundary.make import make_boundary


@dataclass(frozen=True)
class Plane:
    """A floor as the sim's settings describe it."""

    enabled: bool = True
    height: float = 0.0


def box_solid(cells: tuple[int, int, int], spacing: float = 1.0,
              center: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Solid:
    return build_solid([Body(material="stone", cells=cells, spacing=spacing, center=center)])


def kept(solid: Solid, keep: Array) -> Solid:
    """Return the solid of the elements where ``keep`` (n,) is true."""
    number = np.cumsum(keep) - 1
    edge = solid.edge[keep[solid.edge].all(axis=1)]
    return dataclasses.replace(
        solid, position=solid.position[keep], volume=solid.volume[keep], size=solid.size[keep],
        body=solid.body[keep], cell=solid.cell[keep], edge=number[edge].astype(np.int32))


def in_pieces(solid: Solid, pieces: int, seed: int, spread: float, turn: float) -> Pieces:
    """Cut a solid into Voronoi pieces, each moved and turned at random."""
    random = np.random.default_rng(seed)
    site = random.choice(solid.position, pieces, replace=False)
    _, label = cKDTree(site).query(solid.position)
    rotation = Rotation.from_rotvec(turn * random.normal(size=(pieces, 3))).as_matrix()
    move = spread * random.normal(size=(pieces, 3))
    translation = site + move - np.einsum("kij,kj->ki", rotation, site)
    count = np.bincount(label, minlength=pieces)
    still = np.zeros((pieces, 3))
    return Pieces(
        frame=1001, time=0.0, fragment=label.astype(np.int32),
        id=np.arange(pieces, dtype=np.int32), rotation=rotation, translation=translation,
        center=site + move, velocity=still, angular_velocity=still, mass=count.astype(float),
        damage=np.zeros(solid.n_elements, np.float32),
        projectile_position=np.zeros((0, 3)), projectile_radius=np.zeros(0))


@dataclass(frozen=True)
class HostBoundary:
    """A boundary on the host, with all its numbers for each triangle."""

    origin: Array
    triangle: Array
    piece: Array
    piece_id: Array
    is_fracture: Array
    partner: Array


def boundary_of(device: Any, solid: Solid, pieces: Pieces) -> HostBoundary:
    """Return the boundary of a solid in pieces."""
    boundary = make_boundary(device, solid, all_faces(solid), pieces)
    triangle, piece, face, first, twin = (device.to_host(array) for array in (
        boundary.triangle, boundary.piece, boundary.face, boundary.first, boundary.twin))
    other = twin[face]
    number = np.arange(len(face)) - first[face]
    return HostBoundary(
        boundary.origin, triangle, piece, pieces.id[piece], other >= 0,
        np.where(other >= 0, first[other] + number, -1))


def mesh_solid(vertex: Array, polygons: list[list[int]], normal: Array | None = None) -> Solid:
    """Return one element whose faces are ``polygons`` over ``vertex`` (v, 3), outward.

    ``normal`` (v, 3) are shading normals of the vertices.
    """
    corner = np.concatenate(polygons).astype(np.int32)
    start = np.concatenate([[0], np.cumsum([len(polygon) for polygon in polygons])])
    shading = np.zeros((len(corner), 3)) if normal is None else normal[corner]
    return Solid(
        position=vertex.mean(axis=0)[None], volume=np.ones(1), size=np.ones(1),
        body=np.zeros(1, np.int32), cell=np.zeros((1, 3), np.int32),
        edge=np.zeros((0, 2), np.int32), length_scale=np.ones(1),
        orientation=np.eye(3)[None], kind=np.array(["voronoi"]), body_name=np.array(["body"]),
        material_name=np.array(["stone"]), face_vertex=np.asarray(vertex, float),
        face_start=start.astype(np.int64), face_corner=corner,
        face_side=np.column_stack([np.zeros(len(polygons)), -np.ones(len(polygons))])
        .astype(np.int32), surface_normal=shading.astype(np.float32),
        surface_uv=np.zeros((len(corner), 2), np.float32),
        surface_triangle=np.full(len(polygons), -1, np.int32))


def box_polygons(low: Any, high: Any) -> tuple[Array, list[list[int]]]:
    """Return corners and outward faces of a box."""
    vertex = np.array([[(low, high)[i][0], (low, high)[j][1], (low, high)[k][2]]
                       for i in (0, 1) for j in (0, 1) for k in (0, 1)], float)
    return vertex, [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4],
                    [1, 5, 7, 3]]


def ball_mesh(radius: float, rows: int) -> tuple[Array, list[list[int]], Array]:
    """Return vertices, outward triangles and normals of a ball around 0."""
    polar = np.pi * np.arange(1, rows) / rows
    turn = np.pi * np.arange(2 * rows) / rows
    ring = np.stack([np.outer(np.sin(polar), np.cos(turn)),
                     np.broadcast_to(np.cos(polar)[:, None], (rows - 1, 2 * rows)),
                     np.outer(np.sin(polar), np.sin(turn))], axis=-1).reshape(-1, 3)
    normal = np.concatenate([ring, [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]])
    top, bottom, around = len(ring), len(ring) + 1, 2 * rows
    triangles = []
    for c in range(around):
        d = (c + 1) % around
        triangles += [[top, d, c], [bottom, len(ring) - around + c, len(ring) - around + d]]
        for r in range(rows - 2):
            a, b = r * around, (r + 1) * around
            triangles += [[a + c, a + d, b + d], [a + c, b + d, b + c]]
    return radius * normal, triangles, normal


@pytest.fixture
def floor_plane() -> type[Plane]:
    return Plane


@pytest.fixture
def make_solid() -> Callable[..., Solid]:
    return box_solid


@pytest.fixture
def keep_elements() -> Callable[[Solid, Array], Solid]:
    return kept


@pytest.fixture
def make_pieces() -> Callable[..., Pieces]:
    """One whole piece at rest, unless asked for more."""

    def make(solid: Solid, pieces: int = 1, seed: int = 1, spread: float = 0.0,
             turn: float = 0.0) -> Pieces:
        return in_pieces(solid, pieces, seed, spread, turn)

    return make
