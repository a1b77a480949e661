"""The faces that can be seen: the boundary of the union of elements, piece by piece.

A face between two elements of one fragment lies inside the union and is dropped. A face
between two fragments is seen from both, so it is kept twice, each copy facing out of the
element that owns it. What is left is moved by the fragments' transforms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff import Array, Faces, FragmentsFrame, Solid

#: Corners of the two triangles of a quadrilateral, in its own order and turned around.
FORWARD = np.array([[0, 1, 2], [0, 2, 3]])
BACKWARD = np.array([[0, 2, 1], [0, 3, 2]])


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
    """Triangles of the moved boundary, two a face, relative to ``origin``."""

    origin: Array         # (3,) float64 [m]: the world position of the triangles' zero
    triangle: Array       # (2f, 3, 3) float32 [m]: anticlockwise seen from outside
    fragment: Array       # (2f,) int32: id of the fragment
    body: Array           # (2f,) int32
    is_fracture: Array    # (2f,) bool


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


def moved_boundary(solid: Solid, faces: Faces, fragments: FragmentsFrame) -> Boundary:
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
    piece = np.searchsorted(fragments.id, fragments.fragment[chosen.owner])

    # Move the corners in double precision, then make them small numbers around one origin.
    corner = moved_corners(faces.corner[chosen.face], fragments.rotation[piece],
                           fragments.translation[piece])
    origin = np.zeros(3)
    if len(corner):
        origin = 0.5 * (corner.min(axis=(0, 1)) + corner.max(axis=(0, 1)))
    corner32 = (corner - origin).astype(np.float32)
    n_front = len(corner) - int(chosen.reverse.sum())
    triangle = np.concatenate([corner32[:n_front, FORWARD], corner32[n_front:, BACKWARD]])
    return Boundary(
        origin=origin,
        triangle=np.ascontiguousarray(triangle.reshape(-1, 3, 3)),
        fragment=np.repeat(fragments.fragment[chosen.owner], 2),
        body=np.repeat(solid.body[chosen.owner], 2),
        is_fracture=np.repeat(chosen.is_fracture, 2))


def moved_corners(corner: Array, rotation: Array, translation: Array) -> Array:
    """Return rotation (f, 3, 3) @ corner (f, 4, 3) + translation (f, 3).

    Written out: a matrix product may round the same corner differently in two faces, and
    faces must meet exactly.
    """
    moved = np.empty_like(corner)
    for axis in range(3):
        row = rotation[:, axis, :, None]
        moved[..., axis] = (row[:, 0] * corner[..., 0] + row[:, 1] * corner[..., 1]
                            + row[:, 2] * corner[..., 2] + translation[:, axis, None])
    return moved
