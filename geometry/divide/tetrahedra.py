"""Tetrahedra over points: their triangulation, shapes, shared faces and connected parts.

A tetrahedron is four vertices of which the fourth sees the first three turn clockwise, so that
det(b - a, c - a, d - a) is positive. Its face k lies opposite to its vertex k.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.spatial import Delaunay, QhullError

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array

#: Vertices of each face, anticlockwise seen from outside.
FACES = np.array([[1, 2, 3], [0, 3, 2], [0, 1, 3], [0, 2, 1]])
EDGES = np.array(list(combinations(range(4), 2)))
_KEY_BITS = 21


@dataclass(frozen=True)
class SharedFaces:
    """Which faces of tetrahedra lie on each other; a face has the number 4 * tetrahedron + k."""

    inner: Array             # (e, 2) int64: two faces at one place, of the lower one first
    outer: Array             # (o,) int64: faces that nothing lies on, ascending


def triangulate(point: Array) -> Array:
    """Return the Delaunay tetrahedra (m, 4) int32 of points (n, 3); none if they are flat."""
    if len(point) < 4:
        return np.zeros((0, 4), np.int32)
    lower = point.min(axis=0)
    size = float((point.max(axis=0) - lower).max()) or 1.0
    for options in ("Qbb Qc Qz Q12", "Qbb Qc Qz Q12 QJ"):
        try:
            tet: Array = Delaunay((point - lower) / size, qhull_options=options).simplices
            break
        except QhullError as error:
            # Where rounding is at a loss, points joggled by as little as that help.
            if "QH6154" in str(error):
                return np.zeros((0, 4), np.int32)
    else:
        return np.zeros((0, 4), np.int32)
    tet = tet.astype(np.int32)
    flipped = volumes(point, tet) < 0.0
    tet[flipped] = tet[flipped][:, [0, 1, 3, 2]]
    return tet


def volumes(point: Array, tet: Array) -> Array:
    """Return the volumes (m,), negative for inverted tetrahedra."""
    a, b, c, d = (point[tet[:, k]] for k in range(4))
    volume: Array = np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a) / 6.0
    return volume


def least_dihedral(point: Array, tet: Array) -> Array:
    """Return the smallest dihedral angle (m,) of each tetrahedron [degrees]."""
    normal = [np.cross(point[tet[:, j]] - point[tet[:, i]], point[tet[:, k]] - point[tet[:, i]])
              for i, j, k in FACES]
    normal = [n / (np.linalg.norm(n, axis=1, keepdims=True) + 1e-300) for n in normal]
    cosine = np.max([-np.einsum("ij,ij->i", normal[i], normal[j])
                     for i, j in combinations(range(4), 2)], axis=0)
    angle: Array = np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return angle


def share_faces(tet: Array, n_points: int) -> SharedFaces:
    """Find the faces that two tetrahedra share; ValueError where three meet at one."""
    triple = np.sort(tet[:, FACES].reshape(-1, 3), axis=1).astype(np.int64)
    if n_points < 1 << _KEY_BITS:
        key = (triple[:, 0] << 2 * _KEY_BITS) | (triple[:, 1] << _KEY_BITS) | triple[:, 2]
        order = np.argsort(key, kind="stable")
        same = key[order][1:] == key[order][:-1]
    else:
        order = np.lexsort(triple.T)
        same = (triple[order][1:] == triple[order][:-1]).all(axis=1)
    if (same[1:] & same[:-1]).any():
        raise ValueError("Three tetrahedra share one face.")
    first = np.flatnonzero(same)
    inner = np.stack([order[first], order[first + 1]], axis=1)
    alone = np.ones(len(order), bool)
    alone[first] = alone[first + 1] = False
    return SharedFaces(inner, np.sort(order[alone]))


def connected_parts(shared: SharedFaces, n_tets: int) -> Array:
    """Return the part (m,) of each tetrahedron; parts are connected through faces."""
    return components(n_tets, shared.inner // 4)[1]
