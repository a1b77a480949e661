"""Rigid things in the picture that nothing breaks: balls and colliders.

A row (16 float32) of the table that the kernels read holds a rotation by rows and a centre, as
the pose of a piece does; half the edges of a box, or a radius and two zeros; and the row of its
material.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.bodies import Vector
from vfx.geometry.handoff.types import Array, Pieces
from vfx.raytrace.settings import Finish
from vfx.raytrace.surface import materials

#: How a collider looks where the shot does not say: matt and grey, so that pieces stand out.
COLLIDER_LOOK = {"kind": "ggx", "albedo": [0.2, 0.2, 0.2], "roughness": 0.5,
                 "specular": [0.04, 0.04, 0.04]}
PROP_FLOATS = 16


@dataclass(frozen=True)
class Prop:
    """A sphere or a box that stands, or goes along its keys; ``name`` is that of its matte."""

    name: str
    finish: Finish
    key: Array               # (keys, 4) float64: time [s] and centre [m]; times rise
    radius: float = 0.0      # [m]; of a sphere
    size: Vector = (0.0, 0.0, 0.0)   # [m]: edges of a box
    rotation: Array | None = None    # (3, 3): the box's axes are its columns

    def place(self, time: float) -> Array:
        """Return the centre (3,) at a time [s]: even between keys, at rest outside of them."""
        return np.array([np.interp(time, self.key[:, 0], axis) for axis in self.key[:, 1:].T])


def prop_rows(pieces: Pieces, props: Sequence[Prop], first_material: int,
              origin: Array) -> Array:
    """Return the table (n, 16) float32 of a frame's balls, then of ``props`` at its time.

    ``first_material`` is the row of the first prop's finish; places are relative to ``origin``.
    """
    upright = np.eye(3).ravel()
    rows = [[*upright, *(place - origin), radius, 0.0, 0.0, materials.BALL] for place, radius
            in zip(pieces.projectile_position, pieces.projectile_radius, strict=True)]
    for number, prop in enumerate(props):
        turn = upright if prop.rotation is None else prop.rotation.ravel()
        half = (prop.radius, 0.0, 0.0) if prop.radius > 0.0 else 0.5 * np.array(prop.size)
        rows.append([*turn, *(prop.place(pieces.time) - origin), *half,
                     first_material + number])
    return np.array(rows, np.float32).reshape(-1, PROP_FLOATS)
