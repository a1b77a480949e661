"""Colliders on the device: planes, spheres and boxes, at rest or moved by keys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.device import Device, Launch, Record
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.control.surfaces import coefficients
from vfx.sim.matter.ordering import Layout
from vfx.sim.matter.particles import Particles
from vfx.sim.settings import Collider

KINDS = ("plane", "sphere", "box")


class Colliders:
    """All colliders of a shot; where they are is a function of the step.

    ``half_edge`` is that of :func:`half_edges`, on the device.
    """

    def __init__(
        self, device: Device, colliders: Sequence[Collider], half_edge: Any, layout: Layout
    ) -> None:
        self._module = device.module("sim/control/collider.cu")
        self._n_clusters = layout.n_clusters
        self.count = len(colliders)
        keys = [collider.keys or ((0.0, *collider.position),) for collider in colliders]
        self._key_start = device.from_host(
            np.cumsum([0, *map(len, keys)], dtype=np.int32))
        self._key = device.from_host(
            np.array([key for each in keys for key in each], np.float64).reshape(-1, 4))
        self.at: Any = device.xp.zeros((self.count, 6), np.float64)
        #: What particles and balls meet: struct Colliders of collider.cuh.
        self.now = device.struct(
            "sim/control/collider.cuh", "Colliders", count=self.count, at=self.at,
            collider=device.rows("sim/control/collider.cuh", "Collider", [
                collider_constants(collider) for collider in colliders]))
        self._half_edge = half_edge

    def move(self, particles: Particles, timestep: float) -> list[Launch]:
        """Return the launch that finds where the colliders are at the end of the step."""
        if not self.count:
            return []
        return [self._module.move_colliders.prepare(
            self.count, timestep, particles.flag, particles.step, self._key_start, self._key,
            self.at)]

    def collide(self, particles: Particles, timestep: float, skin: Record) -> list[Launch]:
        """Return the launch that lets elements bounce; ``skin`` is how far they may go."""
        if not self.count:
            return []
        return [self._module.collide.prepare(
            self._n_clusters, timestep, self.now, skin, particles.moved, particles.body,
            self._half_edge, particles.inverse_mass, particles.acceleration, particles.flag,
            particles.velocity, particles.position)]


def edge_length(solid: Solid) -> Array:
    """Return the edge of the cubes of each body, (b,) [m]; others count as cubes of equal volume.

    These are a body's mean: what a collider meets is a shard, whose turn is not known.
    """
    n_bodies = len(solid.length_scale)
    count = np.maximum(np.bincount(solid.body, minlength=n_bodies), 1)
    mean = np.cbrt(np.bincount(solid.body, solid.volume, minlength=n_bodies) / count)
    return np.where(solid.kind == "grid", solid.length_scale, mean)


def half_edges(edge: Array, orientation: Array) -> Array:
    """Return the ways from an element's centre to three of its faces, (b, 9) [m].

    ``edge`` are the :func:`edge_length` of the bodies, ``orientation`` their axes.
    """
    ways: Array = 0.5 * edge[:, None, None] * np.swapaxes(orientation, 1, 2)
    return ways.reshape(-1, 9)


def collider_constants(collider: Collider) -> dict[str, Any]:
    """Return the constants of a collider, by the names of ``struct Collider``."""
    half = [0.5 * edge for edge in collider.size]
    if collider.shape == "plane":
        normal = np.array(collider.normal) / np.linalg.norm(collider.normal)
        axes: Array = np.stack([normal, np.zeros(3), np.zeros(3)])
    else:
        # The rows are the box's axes in the world.
        axes = Rotation.from_euler("xyz", collider.rotation, degrees=True).as_matrix().T
    bound = {"plane": math.inf, "sphere": collider.radius, "box": math.hypot(*half)}
    restitution, friction = coefficients(collider)
    return {
        "kind": float(KINDS.index(collider.shape)), "restitution": restitution,
        "friction": friction, "radius": collider.radius, "half_size": half,
        **dict(zip(("axis_x", "axis_y", "axis_z"), axes, strict=True)),
        "bound": bound[collider.shape]}
