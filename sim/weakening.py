"""Weak paths for cracks to follow: random walks, extruded into walls (levine-2014 section 6)."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff import Array, Solid
from vfx.sim.settings import Weakening

#: Walks with all their branches end here, whatever the branching chance.
MAX_SEGMENTS = 20_000


def plane_axes(normal: Array) -> Array:
    """Return (2, 3) orthonormal axes perpendicular to ``normal``."""
    n = np.asarray(normal, float)
    length = np.linalg.norm(n)
    if length == 0.0:
        raise ValueError("weakening.normal: found [0, 0, 0]; give a direction, e.g. [0, 0, 1]")
    n = n / length
    helper = np.eye(3)[np.argmin(np.abs(n))]
    first = np.cross(helper, n)
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(n, first)])


def random_walks(settings: Weakening) -> Array:
    """Return the walks as (s, 4) float64 segments in the plane, the origin at zero [m].

    Walks leave the origin at even angles with some jitter; a stride turns by a normal angle,
    and now and then starts a branch that turns off and runs for the length that is left.
    """
    rng = np.random.Generator(np.random.Philox(settings.seed))
    turn = np.radians(settings.wander)
    heading = (np.arange(settings.paths) + 0.6 * rng.random(settings.paths)) \
        * (2.0 * np.pi / max(settings.paths, 1))
    ends = [(np.zeros(2), float(angle), settings.length) for angle in heading]
    segments: list[Array] = []
    while ends and len(segments) < MAX_SEGMENTS:
        at, angle, left = ends.pop(0)
        while left > 0.0 and len(segments) < MAX_SEGMENTS:
            angle += turn * rng.normal()
            to = at + min(settings.step, left) * np.array([np.cos(angle), np.sin(angle)])
            segments.append(np.concatenate([at, to]))
            at, left = to, left - settings.step
            if rng.random() < settings.branching:
                side = rng.choice([-1.0, 1.0]) * np.radians(rng.uniform(25.0, 60.0))
                ends.append((at, angle + side, 0.6 * left))
    return np.array(segments).reshape(-1, 4)


def plane_coordinates(solid: Solid, paths: Weakening) -> Array:
    """Return where the particles stand in the plane of the walks, (n, 2) float64 [m]."""
    planar: Array = (solid.position - np.array(paths.origin)) @ plane_axes(
        np.array(paths.normal)).T
    return planar
