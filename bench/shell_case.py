"""What a shell of tetrahedra is like: their shapes, and how many bonds a particle has."""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from vfx.bench.rows import Row
from vfx.geometry.divide.tet_shell import SLIVER_ANGLE
from vfx.geometry.divide.tetrahedra import least_dihedral
from vfx.geometry.handoff.elements import Elements
from vfx.geometry.handoff.faces import Faces
from vfx.geometry.handoff.types import Array

#: Reach of the bonds of the paper's vase in lambda, and the most that one of its particles has.
HORIZON, PAPER, PAPER_MOST_BONDS = 2.0, "levine-2014", 185
_SAMPLE = 50_000             # particles whose bonds are counted


def shell_rows(name: str, elements: Elements) -> list[Row]:
    """Return rows about the tetrahedra of ``elements``."""
    angle = least_dihedral(elements.faces.vertex, tetrahedra(elements.faces))
    tree = cKDTree(elements.position)
    sample = elements.position[::max(1, len(elements.position) // _SAMPLE)]
    reach = HORIZON * elements.length_scale
    bonds = tree.query_ball_point(sample, reach, return_length=True, workers=-1) - 1
    apart = tree.query(sample, 2, workers=-1)[0][:, 1] / elements.length_scale
    return [
        Row(name, "smallest dihedral angle", float(angle.min()), "degrees"),
        Row(name, "median smallest angle", float(np.median(angle)), "degrees"),
        Row(name, f"below {SLIVER_ANGLE:g} degrees", int((angle < SLIVER_ANGLE).sum()), ""),
        Row(name, "nearest particles apart", float(apart.min()), "lambda"),
        Row(name, "bonds a particle, mean", float(bonds.mean()), f"at {HORIZON:g} lambda"),
        Row(name, "bonds a particle, most", int(bonds.max()), f"at {HORIZON:g} lambda",
            PAPER, PAPER_MOST_BONDS),
    ]


def tetrahedra(faces: Faces) -> Array:
    """Return the vertices (n, 4) of elements that all have four triangles as faces."""
    triple = faces.corner.reshape(-1, 3)
    owner = np.concatenate([faces.side[:, 0], faces.side[:faces.n_inner, 1]])
    face = np.concatenate([np.arange(len(triple)), np.arange(faces.n_inner)])
    order = np.argsort(owner, kind="stable")
    # Each vertex is on three of the four faces.
    vertex: Array = np.sort(triple[face[order]].reshape(-1, 12), axis=1)[:, ::3]
    return vertex
