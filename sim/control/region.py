"""Regions of bodies: particles that are fixed or driven, and places with another strain limit.

A region is a box or a sphere in the world at rest. A held particle is where start + velocity *
time says, exactly, and passes no force on to itself; it is let go when its time has come. Where
held regions overlap the last one counts; strain factors multiply.
"""

from __future__ import annotations

import numpy as np

from vfx.device import Device, Launch
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.control.extent import covers
from vfx.sim.matter.ordering import Layout
from vfx.sim.matter.particles import Particles
from vfx.sim.settings import Region
from vfx.sim.solver import Controls


def members(region: Region, solid: Solid) -> Array:
    """Return which particles are in a region, (n,) bool."""
    inside = covers(region, solid.position)
    if region.body:
        inside &= (solid.body_name == region.body)[solid.body]
    return inside


class HeldParticles:
    """The particles of fixed and driven regions on the device."""

    def __init__(
        self, device: Device, controls: Controls, solid: Solid, layout: Layout
    ) -> None:
        held = np.flatnonzero(controls.held >= 0)
        self._device = device
        self._layout = layout
        self._module = device.module("sim/control/region.cu")
        self.count = len(held)
        self._held = device.from_host(layout.lane_of()[held].astype(np.int32))
        self._region = device.from_host(controls.held[held])
        self._who = held
        self._velocity = controls.drive[controls.held[held], :3]
        self._start = device.from_host(solid.position[held])
        self._drive = device.from_host(controls.drive)

    def start_from(self, position: Array, time: float = 0.0) -> None:
        """Hold or drive so that the particles are at (n, 3) positions at a time [s]."""
        self._start[...] = self._device.from_host(position[self._who] - time * self._velocity)

    @property
    def start(self) -> Array:
        """(h, 3) float64 [m]: where the held particles were, or would have been, at time 0."""
        return self._device.to_host(self._start)

    @start.setter
    def start(self, place: Array) -> None:
        self._start[...] = self._device.from_host(np.asarray(place, np.float64))

    def hold_positions(self, particles: Particles, timestep: float) -> list[Launch]:
        """Return the launch that puts the held particles in place after a drift."""
        if not self.count:
            return []
        layout = self._layout
        return [self._module.hold_positions.prepare(
            self.count, timestep, 1.0 / layout.unit, layout.cluster_stride, layout.axis_stride,
            particles.flag, particles.step, self._held, self._region, self._drive,
            self._start, particles.rest_position, particles.velocity, particles.position,
            particles.displacement)]

    def hold_velocities(
        self, particles: Particles, timestep: float, steps_ahead: int
    ) -> list[Launch]:
        """Return the launch that undoes what forces did to held particles."""
        if not self.count:
            return []
        return [self._module.hold_velocities.prepare(
            self.count, timestep, steps_ahead, particles.flag, particles.step, self._held,
            self._region, self._drive, particles.velocity, particles.acceleration)]
