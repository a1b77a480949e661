"""Some elements of a solid as a solid of their own."""

from __future__ import annotations

import dataclasses

import numpy as np

from vfx.geometry.handoff.types import Array, Solid


def subset(solid: Solid, element: Array) -> tuple[Solid, Array]:
    """Return (k,) elements, ascending, and the numbers (e,) of the edges between them.

    Bodies keep their numbers, and what is told of each: one may have no element left. Faces stay
    behind; what is derived of them is taken of the whole solid.
    """
    place = np.full(solid.n_elements, -1, np.int32)
    place[element] = np.arange(len(element), dtype=np.int32)
    edge = place[solid.edge.reshape(-1, 2)]
    inside = np.flatnonzero((edge >= 0).all(axis=1))
    some = {name: getattr(solid, name)[element]
            for name in ("position", "volume", "size", "body", "cell")}
    whole = {each.name: getattr(solid, each.name) for each in dataclasses.fields(Solid)
             if each.name in ("length_scale", "orientation", "kind", "body_name", "material_name")}
    return Solid(**some, **whole, edge=edge[inside]), inside
