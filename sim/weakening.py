"""Weak paths for cracks to follow: random walks, extruded into walls (levine-2014 section 6)."""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff import Array, Solid
from vfx.sim.network import Network
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


def weaken(device: Device, solid: Solid, network: Network, paths: Weakening, weak: Any) -> None:
    """Mark the bonds that cross the walks in ``weak``, a (n_pairs,) uint64 device array."""
    axes = plane_axes(np.array(paths.normal))
    planar = (solid.position - np.array(paths.origin)) @ axes.T
    segments = random_walks(paths)
    if not len(segments):
        return
    device.module("sim/bonds.cu").weaken_bonds(
        len(network.pair_first), len(segments),
        device.from_host(network.pair_first), device.from_host(network.pair_second),
        device.from_host(network.pair_live),
        device.from_host(network.scatter(planar.astype(np.float32))),
        device.from_host(segments.astype(np.float32)), weak)
