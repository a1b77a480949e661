"""Balls that push by levine-2014 eq. 7, on the device: where they are and what pushes back.

Those that push by contact are props (:mod:`vfx.sim.control.prop`), made here.

A ball without mass flies at constant velocity: its place is a function of the step. One with a
mass m is integrated by velocity Verlet as the particles are; the force on it is the opposite of
the sum of its forces on particles, added up as 64-bit integers so that the order of the sum
does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vfx.device import Device, Launch, Record
from vfx.geometry.handoff.bodies import Vector
from vfx.geometry.handoff.types import Array
from vfx.sim.matter.particles import Particles
from vfx.sim.settings import Material, Projectile
from vfx.sim.solver import Poses, Prop

#: The largest force of a ball on a particle, in quanta; 2^22 particles may push at once.
LARGEST_FORCE = 2.0**40


class Projectiles:
    """All balls: constants, state, and the launches that move them."""

    def __init__(self, device: Device, projectiles: Sequence[Projectile], volume: float) -> None:
        self._module = device.module("sim/control/projectile.cu")
        self._device = device
        self.count = len(projectiles)
        self.radius = np.array([p.radius for p in projectiles])
        self.mass = np.array([p.mass for p in projectiles])
        self._weight = np.array([p.mass * p.falls for p in projectiles])
        place = np.array([p.position for p in projectiles], np.float64).reshape(-1, 3)
        flight = np.array([p.velocity for p in projectiles], np.float64).reshape(-1, 3)
        self._start, self._flight = place, flight
        self._ball = device.rows("sim/control/projectile.cuh", "Ball", [
            {"start": p.position, "flight": p.velocity, "radius": p.radius,
             "stiffness": p.stiffness, "inverse_mass": 1.0 / p.mass if p.mass > 0.0 else 0.0,
             "falls": float(p.falls), "quantum": quantum(p, volume)} for p in projectiles])
        self.position: Any = device.from_host(place)
        self.velocity: Any = device.from_host(flight)
        self.acceleration: Any = device.xp.zeros(place.shape, np.float64)
        self._force: Any = device.xp.zeros(place.shape, np.int64)
        #: What particles meet: struct Balls of projectile.cuh.
        self.acting = device.struct(
            "sim/control/projectile.cuh", "Balls", count=self.count, ball=self._ball,
            position=self.position, velocity=self.velocity, force=self._force)

    def persistent(self) -> dict[str, Any]:
        """Return the device arrays that a resume needs."""
        return {"ball_position": self.position, "ball_velocity": self.velocity,
                "ball_acceleration": self.acceleration}

    def move(
        self, particles: Particles, timestep: float, floor: Record, colliders: Record
    ) -> list[Launch]:
        """Return the launch that moves the balls by a step, off ``floor`` and ``colliders``."""
        if not self.count:
            return []
        return [self._module.move_projectiles.prepare(
            self.count, timestep, floor, colliders, particles.flag, particles.step, self._ball,
            self.acceleration, self.velocity, self.position)]

    def push(self, particles: Particles, gravity: Vector, half_step: float) -> list[Launch]:
        """Return the launch that gives the balls with a mass what pushed back."""
        if not self.mass.any():
            return []
        return [self._module.push_projectiles.prepare(
            self.count, half_step, gravity, particles.flag, self._ball, self._force,
            self.velocity, self.acceleration)]

    def straight_place(self, time: float) -> Array:
        """Return where balls without a mass are, (p, 3) float64 [m]."""
        place: Array = self._start + self._flight * time
        return place

    @property
    def place(self) -> Array:
        """(p, 3) float64 [m]: the centres, on the host."""
        return self._device.to_host(self.position)

    @property
    def momentum(self) -> Array:
        """(3,) float64 [kg m/s] of the balls with a mass."""
        total: Array = self.mass @ self._device.to_host(self.velocity)
        return total

    @property
    def kinetic_energy(self) -> float:
        """Energy [J] of the balls with a mass."""
        velocity = self._device.to_host(self.velocity)
        return 0.5 * float(self.mass @ (velocity**2).sum(1))

    def potential_energy(self, gravity: Sequence[float]) -> float:
        """Energy [J] of the balls with a mass that fall, in ``gravity`` [m/s^2]."""
        return -float((self._weight @ self.place) @ np.asarray(gravity))


def ball_props(
    projectiles: Sequence[Projectile], materials: Mapping[str, Material]
) -> tuple[list[Prop], Poses]:
    """Return the balls that push by contact as props, and where they are at the first frame."""
    touching = [ball for ball in projectiles if ball.touches]
    props = []
    for ball in touching:
        mass = ball.mass_of(materials) or math.inf
        props.append(Prop(
            mass=mass, inertia=np.diag([0.4 * mass * ball.radius**2] * 3), radius=ball.radius,
            restitution=ball.restitution, friction=ball.friction, falls=ball.falls))
    vectors = [np.array([getattr(ball, name) for ball in touching], np.float64).reshape(-1, 3)
               for name in ("position", "velocity")]
    return props, Poses(
        center=vectors[0], rotation=np.tile(np.eye(3), (len(props), 1, 1)), velocity=vectors[1],
        angular_velocity=np.zeros((len(props), 3)))


def quantum(projectile: Projectile, volume: float) -> float:
    """Return the unit [N] of the sum of forces on the largest particles [m^3]."""
    largest = projectile.stiffness * projectile.radius**2 * volume
    return 2.0 ** math.ceil(math.log2(max(largest, 1e-250))) / LARGEST_FORCE
