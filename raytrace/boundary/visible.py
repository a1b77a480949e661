"""The faces that can be seen, as triangles: the boundary of the union of elements, piece by piece.

Open faces (:mod:`vfx.geometry.handoff.open_faces`) are moved to where their pieces are. What comes
out is all that rays know of pieces, whether these keep their shape or deform
(:mod:`vfx.raytrace.boundary.make`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.open_faces import OpenFaces
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid

#: The tree numbers slots and floats of triangles by 32 bits.
MAX_TRIANGLES = 1 << 27


@dataclass
class Boundary:
    """Triangles of the moved boundary, relative to ``origin``; a face is a fan of them.

    On the device: t triangles, the f faces they belong to, what the cs corners on the surface
    wear, and the k pieces. A pose (12 float32) holds rows of a matrix M and a place p: what is at
    rest in X is in the scene in x where X = M^T (x - p), and M turns normals and slopes at rest
    into those of the scene. For a rigid piece M is its rotation.
    """

    origin: Array         # (3,) float64 [m]: the world position of the triangles' zero
    triangle: Any         # (t, 3, 3) float32 [m]: anticlockwise seen from outside
    piece: Any            # (t,) int32: index of the piece within its frame
    face: Any             # (t,) int32
    group: int            # so many triangles in a row belong together, all through
    first: Any            # (f,) int32: its first triangle
    owner: Any            # (f,) int32: the element it bounds
    twin: Any             # (f,) int32: the face seen from the other side; -1 on the surface
    dress: Any            # (f,) int32: its first corner in normals and uv of the surface, or -1
    normal: Any           # (cs, 3) float32: shading normals in the axes of the piece, or zeros
    uv: Any               # (cs, 2) float32
    piece_id: Any         # (k,) int32: ids
    body: Array           # (k,) int32, on the host: the body that a piece is of
    pose: Any             # (k, 12) float32: of each piece
    rest_pose: Any        # (k or t, 12) float32: of each piece, or of each triangle if it deforms
    is_rigid: bool        # whether there is one for each piece

    def drop_triangles(self) -> None:
        """Let go of the triangles, once a tree holds them: the largest fill the memory."""
        self.triangle = self.triangle[:0].copy()

    def rows(self) -> tuple[Any, ...]:
        """Return what slot_tags of scene.cu takes."""
        return (self.face, self.piece, self.first, self.owner, self.twin, self.dress, self.normal,
                self.uv, self.piece_id)


@dataclass(frozen=True)
class Corners:
    """Where the corners of open faces are in their pieces' own frames, before these are moved."""

    start: Array          # (f,) int64: first corner of each open face
    count: Array          # (f,) its corners
    corner: Array         # (c,) int32: index of each corner's place
    place: Array          # (v, 3) float64 [m]


def fan_boundary(device: Device, solid: Solid, faces: Faces, pieces: Pieces, chosen: OpenFaces,
                 corners: Corners, normal: Array) -> Boundary:
    """Return the triangles of open faces whose corners are given, moved with their pieces.

    normal (cs, 3) float32: shading normals in the axes of the pieces.
    """
    piece = np.searchsorted(pieces.id, pieces.fragment).astype(np.int32)[chosen.owner]
    count = corners.count.astype(np.int32)
    first = np.cumsum(count - 2, dtype=np.int64) - (count - 2)
    n_triangles = int(first[-1] + count[-1] - 2) if len(first) else 0
    if n_triangles > MAX_TRIANGLES:
        raise ValueError(f"frame {pieces.frame}: {n_triangles} triangles are to be seen, but "
                         f"at most {MAX_TRIANGLES} are traced; take fewer elements")
    dress = np.where(chosen.is_fracture, -1,
                     faces.start[chosen.face] - faces.start[faces.n_inner])

    xp = device.xp
    origin = _about_the_middle(corners, pieces, piece)
    on_device = [device.from_host(np.ascontiguousarray(array)) for array in (
        corners.start, count, first.astype(np.int32), piece, chosen.reverse.astype(np.int32))]
    triangle = xp.empty((n_triangles, 3, 3), xp.float32)
    triangle_piece = xp.empty(n_triangles, xp.int32)
    triangle_face = xp.empty(n_triangles, xp.int32)
    if n_triangles:
        device.module("raytrace/boundary/visible.cu").fan_faces(
            len(count), device.from_host(origin), *on_device, device.from_host(corners.corner),
            device.from_host(corners.place), device.from_host(pieces.rotation),
            device.from_host(pieces.translation), triangle, triangle_piece, triangle_face)
    pose = device.from_host(np.column_stack([
        pieces.rotation.reshape(-1, 9), pieces.translation - origin]).astype(np.float32))
    return Boundary(
        origin=origin, triangle=triangle, piece=triangle_piece, face=triangle_face,
        first=on_device[2], owner=device.from_host(chosen.owner),
        twin=device.from_host(_twins(chosen)), dress=device.from_host(dress.astype(np.int32)),
        normal=device.from_host(normal), uv=device.from_host(faces.uv),
        piece_id=device.from_host(pieces.id), body=_bodies(solid, pieces), pose=pose,
        rest_pose=pose, is_rigid=True, group=_triangle_group(faces, count))


def _about_the_middle(corners: Corners, pieces: Pieces, piece: Array) -> Array:
    """Return a point (3,) float64 [m] around which all corners have small numbers.

    The middle of a few of them is good enough.
    """
    if not len(corners.start):
        return np.zeros(3)
    some = slice(None, None, 64)
    corner = corners.place[corners.corner[corners.start[some]]]
    world = (np.einsum("kij,kj->ki", pieces.rotation[piece[some]], corner)
             + pieces.translation[piece[some]])
    return np.asarray(0.5 * (world.min(axis=0) + world.max(axis=0)))


def _twins(chosen: OpenFaces) -> Array:
    """Return for each face its copy on the other side (f,) int32, or -1.

    Copies follow in the order of their originals.
    """
    back = np.flatnonzero(chosen.reverse)
    front = np.flatnonzero(chosen.is_fracture & ~chosen.reverse)
    twin = np.full(len(chosen.face), -1, np.int32)
    twin[front] = back
    twin[back] = front
    return twin


def _bodies(solid: Solid, pieces: Pieces) -> Array:
    """Return the body of each piece, (k,) int32."""
    body = np.zeros(len(pieces.id), np.int32)
    body[np.searchsorted(pieces.id, pieces.fragment)] = solid.body
    return body


def _triangle_group(faces: Faces, count: Array) -> int:
    """Return how many triangles in a row belong together: two where all faces are squares."""
    corners = np.concatenate([np.diff(faces.start), count])
    return 2 if len(corners) and int(corners.min()) == int(corners.max()) == 4 else 1
