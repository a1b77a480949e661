"""From pieces to triangles: makers for rigid pieces, whole or with cracks, and for what deforms."""

from __future__ import annotations

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.open_faces import open_faces
from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid
from vfx.raytrace.boundary.cracked import cracked_boundary, drawn_cracks
from vfx.raytrace.boundary.deforming import deforming_boundary
from vfx.raytrace.boundary.visible import Boundary, Corners, fan_boundary


def make_boundary(device: Device, solid: Solid, faces: Faces, pieces: Pieces,
                  crack_width: Array | None = None) -> Boundary:
    """Return the boundary of every piece at its place, as triangles.

    Cracks in rigid pieces are ``crack_width`` (n,) [m] wide, by default not seen. Raises ValueError
    where the pieces do not belong to the solid or are nowhere.
    """
    if len(pieces.fragment) != solid.n_elements:
        raise ValueError(f"frame {pieces.frame}: pieces of {len(pieces.fragment)} "
                         f"particles, but the solid has {solid.n_elements}; align them again")
    if not (np.isfinite(pieces.rotation).all() and np.isfinite(pieces.translation).all()):
        raise ValueError(f"frame {pieces.frame}: a piece's transform is not finite; "
                         "simulate and align that frame again")
    if not pieces.is_rigid:
        return deforming_boundary(device, solid, faces, pieces)
    if crack_width is not None and len(drawn_cracks(solid, pieces, crack_width)):
        return cracked_boundary(device, solid, faces, pieces, crack_width)
    return rigid_boundary(device, solid, faces, pieces)


def rigid_boundary(device: Device, solid: Solid, faces: Faces, pieces: Pieces) -> Boundary:
    """Return the boundary of pieces that take the corners of their faces with them."""
    chosen = open_faces(faces, pieces.fragment)
    corners = Corners(faces.start[chosen.face], np.diff(faces.start)[chosen.face], faces.corner,
                      faces.vertex)
    return fan_boundary(device, solid, faces, pieces, chosen, corners, faces.normal)
