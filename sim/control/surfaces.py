"""How things bounce and slide off floor and colliders, where a shot leaves that open.

A number of a floor or collider counts as it stands. "auto" is what levine-2014 has for particles,
which hardly lose anything, and for rigid pieces that of the material they are of.
"""

from __future__ import annotations

from vfx.sim.settings import Collider, Floor, Material

#: Restitution and friction of a bounce of particles, as in levine-2014.
PARTICLES = (0.99, 0.0)


def coefficients(thing: Floor | Collider, material: Material | None = None) -> tuple[float, float]:
    """Return restitution and friction of a floor or collider for particles, or for a material."""
    auto = PARTICLES if material is None else (material.restitution, material.friction)
    restitution, friction = (
        own if isinstance(given, str) else given
        for given, own in zip((thing.restitution, thing.friction), auto, strict=True))
    return restitution, friction
