"""Checks of a divided body and of a whole solid that always run before anything uses them."""

from __future__ import annotations

import numpy as np

from vfx.geometry.divide.cubes import cell_edges
from vfx.geometry.handoff.elements import Elements
from vfx.geometry.handoff.faces import face_normals
from vfx.geometry.handoff.types import Array, Faces, Solid
from vfx.geometry.mesh.inspect import PlacedError, counted

#: Shares of the whole by which volumes may be off: of Voronoi cells from their mesh's, and of
#: all elements from what their own faces enclose.
VORONOI_VOLUME = 1e-3
FACE_VOLUME = 1e-6
#: Share by which lambda may differ from what was asked for.
SPACING = 1e-2


def check_elements(
    elements: Elements, kind: str, *, volume: float, spacing: float | None
) -> None:
    """Raise ValueError with a sentence if a body is not divided as it should be.

    ``volume`` [m^3] is that of its surface; ``spacing`` the lambda asked for, if one was.
    """
    n = len(elements.position)
    if n == 0:
        raise ValueError("has no elements")
    for name, array in (("position", elements.position), ("volume", elements.volume),
                        ("length scale", elements.size)):
        if not np.isfinite(array).all():
            raise ValueError(f"has an element whose {name} is not finite")
    if not (elements.volume > 0.0).all():
        first = int(np.argmin(elements.volume > 0.0))
        empty = counted(int((elements.volume <= 0.0).sum()), "element")
        raise PlacedError(f"has {empty} empty or inverted, the first is {first} near",
                          elements.position[first])
    if not (elements.size > 0.0).all() or not elements.length_scale > 0.0:
        raise ValueError("has an element whose length scale is not above 0")
    if spacing is not None and abs(elements.length_scale - spacing) > SPACING * spacing:
        raise ValueError(f"has a lambda of {elements.length_scale:g} m where {spacing:g} m was "
                         "asked for")
    check_edges(elements.edge, n)
    if kind == "grid":
        return
    check_faces(elements.faces, elements.edge, elements.position, elements.volume)
    total = float(elements.volume.sum())
    if kind == "voronoi" and abs(total - volume) > VORONOI_VOLUME * volume:
        raise ValueError(f"has cells of {total:.6g} m^3 together, but its mesh has "
                         f"{volume:.6g} m^3")


def check_edges(edge: Array, n: int) -> None:
    """Check that edges (m, 2) name n elements, the lower first, in order and each once."""
    if not len(edge):
        return
    low, high = edge[:, 0], edge[:, 1]
    if edge.min() < 0 or edge.max() >= n:
        raise ValueError(f"has an edge that names an element outside 0..{n - 1}")
    if not (low < high).all():
        raise ValueError("has an edge that does not name its lower element first")
    follows = (low[1:] > low[:-1]) | ((low[1:] == low[:-1]) & (high[1:] > high[:-1]))
    if not follows.all():
        raise ValueError("has edges that are not sorted, or one that stands twice")


def check_faces(faces: Faces, edge: Array, position: Array, volume: Array) -> None:
    """Check that faces close every element, enclose its volume, and are shared by the edges."""
    n = len(position)
    if len(faces.start) != len(faces.side) + 1 or faces.start[-1] != len(faces.corner):
        raise ValueError("has faces whose corners do not add up")
    if (np.diff(faces.start) < 3).any():
        raise ValueError("has a face of fewer than three corners")
    inner = slice(0, faces.n_inner)
    if not np.array_equal(np.unique(faces.edge), np.arange(len(edge))):
        raise ValueError("has neighbours that share no face, or a face between strangers")
    if not np.array_equal(faces.side[inner], edge[faces.edge]):
        raise ValueError("has an inner face that is not between the two elements of its edge")
    if (faces.side[faces.n_inner:, 1] != -1).any() or (faces.side[:, 0] < 0).any():
        raise ValueError("has an outer face with an element on its other side")
    # The area vectors of a closed element cancel, and its faces enclose its volume.
    area = face_normals(faces)
    first = faces.vertex[faces.corner[faces.start[:-1]]]
    lower, upper = faces.side[:, 0], faces.side[inner, 1]
    size = np.cbrt(volume)
    gap = np.zeros((n, 3))
    span = np.zeros(n)
    for axis in range(3):
        gap[:, axis] = (np.bincount(lower, area[:, axis], minlength=n)
                        - np.bincount(upper, area[inner, axis], minlength=n))
    length = np.linalg.norm(area, axis=1)
    span += np.bincount(lower, length, minlength=n)
    span += np.bincount(upper, length[inner], minlength=n)
    open_by = np.linalg.norm(gap, axis=1) / np.maximum(span, 1e-300)
    if (open_by > 1e-6).any():
        worst = int(np.argmax(open_by))
        several = counted(int((open_by > 1e-6).sum()), "element")
        raise PlacedError(f"has {several} whose faces do not close, the worst is {worst} near",
                          position[worst])
    found = np.zeros(n)
    for side, faced, sign in ((lower, slice(None), 1.0), (upper, inner, -1.0)):
        reach = np.einsum("ij,ij->i", first[faced] - position[side], area[faced]) / 3.0
        found += sign * np.bincount(side, reach, minlength=n)
    total = float(volume.sum())
    if abs(float(found.sum()) - total) > FACE_VOLUME * total:
        raise ValueError(f"has faces that enclose {found.sum():.6g} m^3, but its elements have "
                         f"{total:.6g} m^3")
    off = np.abs(found - volume) > 1e-3 * volume + 1e-9 * size.max() ** 3
    if off.any():
        worst = int(np.argmax(off))
        several = counted(int(off.sum()), "element")
        raise PlacedError(f"has {several} of a volume that the faces do not enclose, the first is "
                          f"{worst} near", position[worst])


def check_solid(solid: Solid) -> None:
    """Raise ValueError with a sentence if a solid of any kinds breaks an invariant."""
    n_bodies, n = len(solid.length_scale), solid.n_elements
    if n == 0:
        raise ValueError("The solid has no elements.")
    if not np.isfinite(solid.position).all():
        raise ValueError("The solid has a rest position that is not finite.")
    if np.abs(np.swapaxes(solid.orientation, 1, 2) @ solid.orientation - np.eye(3)).max() > 1e-9:
        raise ValueError("A body's orientation is not orthonormal.")
    if (np.linalg.det(solid.orientation) < 0).any():
        raise ValueError("A body's orientation is a reflection.")
    if not (solid.length_scale > 0).all():
        raise ValueError(f"A body's lambda is {solid.length_scale.min()} m; it must be above 0.")
    step = np.diff(solid.body, prepend=0)
    if solid.body[0] != 0 or solid.body[-1] != n_bodies - 1 or ((step != 0) & (step != 1)).any():
        raise ValueError(f"The elements of the solid's {n_bodies} bodies are not in body order.")
    try:
        check_edges(solid.edge, n)
    except ValueError as error:
        raise ValueError(f"The solid {error}.") from None
    if (solid.body[solid.edge[:, 0]] != solid.body[solid.edge[:, 1]]).any():
        raise ValueError("An edge joins two bodies.")
    first = np.searchsorted(solid.body, np.arange(n_bodies + 1))
    for b in np.flatnonzero(solid.kind == "grid"):
        _check_cubes(solid, int(b), slice(int(first[b]), int(first[b + 1])))


def _check_cubes(solid: Solid, b: int, inside: slice) -> None:
    """Check that cubes stand on one lattice and that edges are all pairs that share a face."""
    name, scale = solid.body_name[b], float(solid.length_scale[b])
    cell = solid.cell[inside].astype(np.int64)
    if (cell < 0).any():
        raise ValueError(f"Body '{name}' has a negative cell index.")
    size = cell.max(axis=0) + 1
    key = (cell[:, 0] * size[1] + cell[:, 1]) * size[2] + cell[:, 2]
    if not (np.diff(key) > 0).all():
        raise ValueError(f"Body '{name}' has cubes that are not in the order of their cells, or "
                         "two in one.")
    if np.abs(solid.volume[inside] - scale**3).max() > 1e-9 * scale**3:
        raise ValueError(f"Body '{name}' has cubes whose volume is not lambda^3 = {scale**3:g} "
                         "m^3.")
    expected = (solid.position[inside.start]
                + ((cell - cell[0]) * scale) @ solid.orientation[b].T)
    error = np.abs(solid.position[inside] - expected).max()
    if error > 1e-6 * scale:
        raise ValueError(f"Body '{name}' has a cube {error:g} m off its lattice.")
    low, high = np.searchsorted(solid.edge[:, 0], [inside.start, inside.stop])
    if not np.array_equal(solid.edge[low:high] - inside.start, cell_edges(cell)):
        raise ValueError(f"Body '{name}' has edges that are not the pairs of cubes that share a "
                         "face.")
