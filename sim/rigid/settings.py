"""What a shot says about rigid bodies, ``[sim.rigid]``."""

from __future__ import annotations

from dataclasses import dataclass

from vfx.geometry.handoff.schema import setting


@dataclass(frozen=True)
class RigidSettings:
    """Rigid bodies that collide, slide and settle: what `method = "rigid"` takes.

    Nothing breaks. Friction and restitution stand with the materials, `[materials.<name>]`.
    """

    timestep: float = setting(
        1.0 / 480.0, "Time step of the engine; frames between two steps are interpolated.",
        unit="s", at_least=1e-6, at_most=0.05)
    rolling_resistance: float = setting(
        0.01, "Rolling resistance of round bodies: braking force by weight; 0 for none.",
        at_least=0.0, at_most=1.0)
    air_density: float = setting(
        0.0, "Density of the air; it slows crumbs, pieces of fewer than eight elements that broke "
        "off something. 0 for none; with method = \"auto\" it is 1.2.", unit="kg/m^3",
        at_least=0.0, at_most=1e5)
    hulls: int = setting(
        64, "The most convex hulls that stand for a piece that is not convex.",
        at_least=1, at_most=1024)
    convexity: float = setting(
        0.05, "A hull may be larger than the elements in it by this share of their volume.",
        at_least=0.0, at_most=10.0)
    debris_elements: int = setting(
        4, "Pieces of at most so many elements are debris: one hull each, convex or not.",
        at_least=0, at_most=1_000_000)
    debris_contacts: int = setting(
        3000, "So many pieces of debris collide with one another; those that come later collide "
        "with everything but debris.", at_least=0, at_most=10_000_000)
