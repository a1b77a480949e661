"""The faces that can be seen: the boundary of the union of elements, piece by piece.

A face between two elements of one fragment lies inside the union and is dropped. A face
between two fragments is seen from both, so it is kept twice, each copy facing out of the
element that owns it. What is left is moved by the fragments' transforms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff import Array, Faces, FragmentsFrame, Solid


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
    """Triangles of the moved boundary, relative to ``origin``; a face is a fan of them."""

    origin: Array         # (3,) float64 [m]: the world position of the triangles' zero
    triangle: Array       # (t, 3, 3) float32 [m]: anticlockwise seen from outside
    fragment: Array       # (t,) int32: id of the fragment
    piece: Array          # (t,) int32: index of the fragment within its frame
    element: Array        # (t,) int32: element that the triangle bounds
    body: Array           # (t,) int32
    is_fracture: Array    # (t,) bool
    partner: Array        # (t,) int32: the same triangle seen from the other fragment, or -1
    shading: Array        # (t,) int32: row of the corner values of the surface, or -1 where flat
    corner_normal: Array  # (s, 3, 3) float32: shading normals at rest
    corner_uv: Array      # (s, 3, 2) float32


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

    fan, index = fans(faces, chosen)

    # Move the corners in double precision, then make them small numbers around one origin: about
    # the middle is good enough, so a few corners tell it.
    world = moved_corners(faces.vertex[faces.corner[index]], fragments.rotation[piece[fan]],
                          fragments.translation[piece[fan]])
    origin = np.zeros(3)
    if len(world):
        some = world[::64, 0]
        origin = 0.5 * (some.min(axis=0) + some.max(axis=0))
    owner = chosen.owner[fan]
    shading, corner_normal, corner_uv = _corner_values(faces, chosen, fan, index)
    return Boundary(
        origin=origin,
        triangle=(world - origin).astype(np.float32),
        fragment=fragments.fragment[owner],
        piece=piece[fan].astype(np.int32),
        element=owner,
        body=solid.body[owner],
        is_fracture=chosen.is_fracture[fan],
        partner=_partners(chosen, fan),
        shading=shading, corner_normal=corner_normal, corner_uv=corner_uv)


def fans(faces: Faces, chosen: Selection) -> tuple[Array, Array]:
    """Return for each triangle its chosen face (t,), and its corners (t, 3) in ``faces.corner``."""
    start = faces.start[chosen.face]
    n_triangles = faces.start[chosen.face + 1] - start - 2
    fan = np.repeat(np.arange(len(start)), n_triangles)
    number = np.arange(len(fan)) - (np.cumsum(n_triangles) - n_triangles)[fan]
    second, third = start[fan] + number + 1, start[fan] + number + 2
    turned = chosen.reverse[fan]
    index = np.stack([start[fan], np.where(turned, third, second),
                      np.where(turned, second, third)], axis=1)
    return fan, index


def _partners(chosen: Selection, fan: Array) -> Array:
    """Return for each triangle its copy on the other fragment (t,) int32, or -1.

    Copies follow in the order of their originals, with the same number of triangles each.
    """
    back = np.flatnonzero(chosen.reverse[fan])
    front = np.flatnonzero((chosen.is_fracture & ~chosen.reverse)[fan])
    partner = np.full(len(fan), -1, np.int32)
    partner[front] = back
    partner[back] = front
    return partner


def _corner_values(faces: Faces, chosen: Selection, fan: Array,
                   index: Array) -> tuple[Array, Array, Array]:
    """Return row (t,), normals (s, 3, 3) and uv (s, 3, 2) of triangles on the mesh's surface.

    The row is -1 on fracture faces and where the mesh gave neither normals nor uv.
    """
    shading = np.full(len(fan), -1, np.int32)
    first = faces.start[faces.n_inner]
    if not (faces.normal.any() or faces.uv.any()):
        return shading, np.zeros((0, 3, 3), np.float32), np.zeros((0, 3, 2), np.float32)
    outside = np.flatnonzero(~chosen.is_fracture[fan])
    corner = index[outside] - first
    normal, uv = faces.normal[corner], faces.uv[corner]
    curved = (normal != 0.0).any(axis=(1, 2)) | (uv != 0.0).any(axis=(1, 2))
    shading[outside[curved]] = np.arange(int(curved.sum()), dtype=np.int32)
    return shading, np.ascontiguousarray(normal[curved]), np.ascontiguousarray(uv[curved])


def moved_corners(corner: Array, rotation: Array, translation: Array) -> Array:
    """Return rotation (t, 3, 3) @ corner (t, 3, 3) + translation (t, 3).

    Written out: a matrix product may round the same corner differently in two faces, and
    faces must meet exactly.
    """
    moved = np.empty_like(corner)
    for axis in range(3):
        row = rotation[:, axis, :, None]
        moved[..., axis] = (row[:, 0] * corner[..., 0] + row[:, 1] * corner[..., 1]
                            + row[:, 2] * corner[..., 2] + translation[:, axis, None])
    return moved
