"""What air takes from crumbs in flight: quadratic drag, in closed form.

A piece of mass m that shows the air an area A is slowed by m dv/dt = -1/2 rho C A |v| v (Newton's
law of drag; C is about 1 for bluff, tumbling things at Reynolds numbers of 10^3 to 10^5, Clift,
Grace & Weber 1978). Of all directions a convex body shows a quarter of its surface in the mean
(Cauchy), a cube of volume V so 3/2 V^(2/3). With k = rho C A / (2 m) alone the speed falls as
v / (1 + k v t) in a time t. A step is half of that, the parabola of gravity, and the other half
(Strang), off by (k v dt)^2 of what air takes.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid.flight import length

#: Coefficient of drag of tumbling splinters.
DRAG_COEFFICIENT = 1.0


def drag_of(air_density: float, volume: Array, mass: Array) -> Array:
    """Return k, the share of their speed that pieces lose on their way, (k,) [1/m].

    ``air_density`` [kg/m^3]; ``volume`` [m^3] and ``mass`` [kg] of each.
    """
    area = 1.5 * np.cbrt(volume) ** 2
    return np.asarray(air_density * DRAG_COEFFICIENT * area / (2.0 * mass))


def slowed(velocity: Array, drag: Array, time: float) -> Array:
    """Return velocities (k, 3) [m/s] after a time [s] in which air alone acts."""
    return np.asarray(velocity / (1.0 + drag * length(velocity) * time)[:, None])
