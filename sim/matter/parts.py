"""Which elements are of one part of a body: bonds join no others, however near they are.

A mesh may have several parts, and two of them within a horizon of each other would be glued
together by the springs across the air between them.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial import cKDTree

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array, Solid

#: Cubes whose cells are no farther apart meet in a face, an edge or a corner.
_DIAGONAL = 1.75


def solid_parts(solid: Solid) -> Array:
    """Return the number of the part that each particle is of, (n,) int32.

    Elements that share a face are of one part. A wall thinner than a cube may be cubes that meet
    in edges and corners only: those are of one part, too.
    """
    _, part = components(solid.n_elements, solid.edge)
    pairs = [solid.edge]
    for body in np.flatnonzero(solid.kind == "grid"):
        member = np.flatnonzero(solid.body == body)
        if np.ptp(part[member]) > 0:
            near = cKDTree(solid.cell[member]).query_pairs(_DIAGONAL, output_type="ndarray")
            pairs.append(member[near])
    return components(solid.n_elements, np.concatenate(pairs))[1] if len(pairs) > 1 else part
