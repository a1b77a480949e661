"""One body on its way from a mesh to a solid: its surface, and its elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vfx.geometry.handoff.types import Array, Faces

#: Told what is being done and the share of it that is done, 0 to 1.
Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Surface:
    """A closed triangle mesh in the axes of its body; triangles turn anticlockwise outside.

    Several closed shells are allowed, one inside the other (hollow) or apart.
    """

    vertex: Array            # (v, 3) float64 [m]: no two at one place
    triangle: Array          # (t, 3) int32
    normal: Array            # (t, 3, 3) float32: shading normals at the corners
    uv: Array                # (t, 3, 2) float32: texture coordinates at the corners, or zeros


@dataclass(frozen=True)
class Elements:
    """A body divided into elements, in the axes of its surface."""

    position: Array          # (n, 3) float64 [m]
    volume: Array            # (n,) float64 [m^3]
    size: Array              # (n,) float64 [m]: lambda of each element
    length_scale: float      # [m]: lambda of the body
    edge: Array              # (m, 2) int32: adjacent elements, the lower first, sorted
    faces: Faces
    notes: tuple[str, ...]   # what a person should know of the construction, in sentences
