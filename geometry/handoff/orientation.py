"""How a body is turned in the world; takes scipy, so import it where it is used."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array


def body_orientation(body: Body) -> Array:
    """Return the (3, 3) world_from_body rotation: about world x, then y, then z."""
    return np.asarray(Rotation.from_euler("xyz", body.rotation, degrees=True).as_matrix())
