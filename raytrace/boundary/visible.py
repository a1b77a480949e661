"""The faces that can be seen: the boundary of the union of elements, piece by piece.

A face between two elements of one fragment lies inside the union and is dropped. A face
between two fragments is seen from both, so it is kept twice, each copy facing out of the
element that owns it. What is left is moved by the fragments' transforms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid

#: The tree numbers slots and floats of triangles by 32 bits.
MAX_TRIANGLES = 1 << 27


@dataclass(frozen=True)
class Selection:
    """Faces that can be seen, f of them; a face between two fragments comes twice.

    Those in their stored direction come first, the reversed copies after them.
    """

    face: Array           # (f,) int64: index into the faces
    owner: Array          # (f,) int32: element that the face bounds
    reverse: Array        # (f,) bool: whether the stored corners must be turned around
    is_fracture: Array    # (f,) bool: between two elements, not on the original surface


@dataclass(frozen=True)
class Boundary:
    """Triangles of the moved boundary, relative to ``origin``; a face is a fan of them.

    All but the origin is on the device: first t triangles, then the f faces they belong to.
    """

    origin: Array         # (3,) float64 [m]: the world position of the triangles' zero
    triangle: Any         # (t, 3, 3) float32 [m]: anticlockwise seen from outside
    piece: Any            # (t,) int32: index of the fragment within its frame
    face: Any             # (t,) int32
    first: Any            # (f,) int32: its first triangle
    owner: Any            # (f,) int32: the element it bounds
    twin: Any             # (f,) int32: the face seen from the other fragment; -1 on the surface
    dress: Any            # (f,) int32: its first corner in normals and uv of the surface, or -1

    def rows(self) -> tuple[Any, ...]:
        """Return all but the triangles themselves, as slot_tags of scene.cu takes it."""
        return self.face, self.piece, self.first, self.owner, self.twin, self.dress


def boundary_faces(faces: Faces, fragment: Array) -> Selection:
    """Select the faces between different fragments and on the outside.

    ``fragment`` (n,) is the fragment of each element.
    """
    first, second = faces.side[:, 0], faces.side[:, 1]
    inner = second >= 0
    seen = ~inner | (fragment[first] != fragment[second])
    front = np.flatnonzero(seen)
    back = np.flatnonzero(seen & inner)
    return Selection(
        face=np.concatenate([front, back]),
        owner=np.concatenate([first[front], second[back]]),
        reverse=np.repeat([False, True], [len(front), len(back)]),
        is_fracture=np.concatenate([inner[front], inner[back]]))


def moved_boundary(device: Device, solid: Solid, faces: Faces,
                   fragments: Pieces) -> Boundary:
    """Return the boundary of every fragment at its place, as triangles.

    Raises ValueError where the fragments do not belong to the solid or are nowhere.
    """
    if len(fragments.fragment) != solid.n_particles:
        raise ValueError(f"frame {fragments.frame}: fragments of {len(fragments.fragment)} "
                         f"particles, but the solid has {solid.n_particles}; align them again")
    if not (np.isfinite(fragments.rotation).all() and np.isfinite(fragments.translation).all()):
        raise ValueError(f"frame {fragments.frame}: a fragment's transform is not finite; "
                         "simulate and align that frame again")
    chosen = boundary_faces(faces, fragments.fragment)
    piece = np.searchsorted(fragments.id, fragments.fragment).astype(np.int32)[chosen.owner]
    start = faces.start[chosen.face]
    count = (faces.start[chosen.face + 1] - start).astype(np.int32)
    first = np.cumsum(count - 2, dtype=np.int64) - (count - 2)
    n_triangles = int(first[-1] + count[-1] - 2) if len(first) else 0
    if n_triangles > MAX_TRIANGLES:
        raise ValueError(f"frame {fragments.frame}: {n_triangles} triangles are to be seen, but "
                         f"at most {MAX_TRIANGLES} are traced; take fewer elements")
    dress = np.where(chosen.is_fracture, -1, start - faces.start[faces.n_inner])

    xp = device.xp
    origin = _about_the_middle(faces, fragments, start, piece)
    on_device = [device.from_host(np.ascontiguousarray(array)) for array in (
        start, count, first.astype(np.int32), piece, chosen.reverse.astype(np.int32))]
    triangle = xp.empty((n_triangles, 3, 3), xp.float32)
    triangle_piece = xp.empty(n_triangles, xp.int32)
    triangle_face = xp.empty(n_triangles, xp.int32)
    if n_triangles:
        device.module("raytrace/boundary/visible.cu").fan_faces(
            len(start), device.from_host(origin), *on_device, device.from_host(faces.corner),
            device.from_host(faces.vertex), device.from_host(fragments.rotation),
            device.from_host(fragments.translation), triangle, triangle_piece, triangle_face)
    return Boundary(
        origin=origin, triangle=triangle, piece=triangle_piece, face=triangle_face,
        first=on_device[2], owner=device.from_host(chosen.owner),
        twin=device.from_host(_twins(chosen)), dress=device.from_host(dress.astype(np.int32)))


def _about_the_middle(faces: Faces, fragments: Pieces, start: Array,
                      piece: Array) -> Array:
    """Return a point (3,) float64 [m] around which all corners have small numbers.

    The middle of a few of them is good enough.
    """
    if not len(start):
        return np.zeros(3)
    some = slice(None, None, 64)
    corner = faces.vertex[faces.corner[start[some]]]
    world = (np.einsum("kij,kj->ki", fragments.rotation[piece[some]], corner)
             + fragments.translation[piece[some]])
    return np.asarray(0.5 * (world.min(axis=0) + world.max(axis=0)))


def _twins(chosen: Selection) -> Array:
    """Return for each face its copy on the other fragment (f,) int32, or -1.

    Copies follow in the order of their originals.
    """
    back = np.flatnonzero(chosen.reverse)
    front = np.flatnonzero(chosen.is_fracture & ~chosen.reverse)
    twin = np.full(len(chosen.face), -1, np.int32)
    twin[front] = back
    twin[back] = front
    return twin
