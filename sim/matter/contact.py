"""Contact candidates: who may touch whom, collected only for particles that moved.

Every particle has a noted place, at most ``skin / 2`` from where it is. Its candidates are
all particles noted within ``contact reach + skin`` of that place, so no pair in contact can be
missing until one of the two has moved ``skin / 2`` from its noted place; then the places and
lists of the particles that moved are brought up to date, and only theirs.

A pair stands in the list that was collected last (``stamp``), in that of the lower particle
where both were collected at once; what an older list says of it does not count. Forces are added
up as 64-bit integers, so that neither the order nor the time of a collection changes a bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import Device, Launch
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.matter.ordering import LANES, Layout
from vfx.sim.matter.particles import Particles

#: Extra reach of the candidates, least and most, in lambda. Below 1/2 an intact grid has no
#: candidates; where particles stand closer than that, less skin keeps them few.
SKIN = (0.1, 0.45)
#: Particles this far [skin] from their noted place are brought up to date with the others.
STALE = 0.25
FIRST_CAPACITY = 4
#: Share of the sliding of a pair that friction ends in a step at the most. A dozen pairs may slide
#: on one particle, and all of them together must not turn its motion round.
STOPS = 1.0 / 16.0


class ContactSearch:
    """The candidate lists on the device, and the kernels that keep them.

    ``mean`` is the mean volume [m^3] of the elements of each body, (b,); elements touch below
    ``distance`` of their size, 1/2 as in levine-2014.
    """

    def __init__(
        self, device: Device, solid: Solid, layout: Layout, stiffness: float, mean: Array,
        friction: float = 0.0, distance: float = 0.5,
    ) -> None:
        xp = device.xp
        self.device = device
        self.stiffness = stiffness
        self.friction = friction
        self.n_padded = layout.n_clusters * LANES
        smallest = float(solid.size.min())
        self.skin = min(max(layout.spacing / smallest - 0.55, SKIN[0]), SKIN[1]) * smallest
        self.reach = distance * float(solid.size.max()) + self.skin
        # The largest force of a pair is 2^40 quanta; 2^22 pairs may act on one particle.
        largest = stiffness * (distance * float(solid.size.max())) ** 2
        self.quantum = 2.0 ** (np.ceil(np.log2(max(largest, 1e-250))) - 40)
        self.radius = device.from_host(layout.scatter(
            (0.5 * distance * solid.size).astype(np.float32)))
        # A splinter far below its body's mean volume would be thrown by the force of a whole one.
        # The 1e-6 outweighs rounding, of the volumes and the mean: equal elements all have share 1.
        self.share = device.from_host(layout.scatter(
            np.minimum(1.0, solid.volume / mean[solid.body] + 1e-6).astype(np.float32)))
        self.noted = device.from_host(layout.scatter(solid.position))
        #: Particles that touch here, at rest or where a window found them, push each other only
        #: where they are nearer still.
        self.apart = device.from_host(layout.scatter(solid.position))
        self.stamp = xp.zeros(self.n_padded, np.int32)
        self.head = xp.full(1 << max(4, (self.n_padded - 1).bit_length()), -1, np.int32)
        self.next = xp.full(self.n_padded, -1, np.int32)
        self.count = xp.zeros(self.n_padded, np.int32)
        self.touched = xp.zeros(layout.n_clusters, np.int32)
        self.force = xp.zeros((layout.n_clusters, 3, LANES), np.int64)
        self.set_capacity(FIRST_CAPACITY)

    def set_capacity(self, capacity: int) -> None:
        """Make room for ``capacity`` candidates a particle; all must be collected anew."""
        self.capacity = capacity
        self.candidate = self.device.xp.zeros((capacity, self.n_padded), np.int32)
        self.candidate_bit = self.device.xp.zeros((capacity, self.n_padded), np.int64)

    def collect(self, particles: Particles, steps_ahead: int) -> list[Launch]:
        """Return the launches that bring the candidates up to date where the flag asks so."""
        module = self.device.module("sim/matter/contact.cu")
        table = len(self.head)
        inverse_cell = 1.0 / self.reach
        return [
            module.contact_reset.prepare(table, particles.flag, self.head),
            module.contact_insert.prepare(
                self.n_padded, inverse_cell, STALE * self.skin, table - 1, steps_ahead,
                particles.flag, particles.step, particles.inverse_mass, particles.position,
                self.head, self.noted, self.stamp, self.next),
            module.contact_collect.prepare(
                self.n_padded, self.capacity, self.reach, inverse_cell, table - 1, steps_ahead,
                particles.step, particles.inverse_mass, self.noted, self.stamp, self.head,
                self.next, particles.flag, self.count, self.candidate)]

    def forces(self, particles: Particles, live: Any, timestep: float) -> list[Launch]:
        """Return the launch that sums the contact forces; ``live`` are the bonds' bits."""
        return [self.device.module("sim/matter/contact.cu").contact_forces.prepare(
            self.n_padded, self.stiffness, 1.0 / self.quantum, particles.flag,
            self.count, self.candidate, self.candidate_bit, self.stamp,
            live.reshape(-1).view(np.uint8), self.radius, self.share, self.apart,
            particles.position, self.device.struct(
                "sim/matter/contact.cu", "Sliding", friction=self.friction,
                stops=STOPS / timestep, inverse_mass=particles.inverse_mass,
                velocity=particles.velocity), self.touched, self.force)]


def mean_volume(solid: Solid) -> Array:
    """Return the mean volume of the elements of each body, (b,) float64 [m^3]."""
    n_bodies = len(solid.length_scale)
    count = np.maximum(np.bincount(solid.body, minlength=n_bodies), 1)
    mean: Array = np.bincount(solid.body, solid.volume, minlength=n_bodies) / count
    return mean
