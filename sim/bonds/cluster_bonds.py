"""Bonds of any body on the device: pairs of clusters, each pair once.

Rest lengths are not stored but computed from rest positions, which are float32 relative to
the centre of their cluster. A tile of clusters adds up forces in slots that nobody else writes
and each cluster adds its slots in tile order: the tiling does not depend on the number of
threads, and so neither does a single bit of a sum.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from vfx.device import Device, Launch, Record
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.bonds.clusters import find_network
from vfx.sim.matter.contact import ContactSearch
from vfx.sim.matter.ordering import LANES, Layout
from vfx.sim.matter.particles import Particles

FILE = "sim/bonds/cluster_bonds.cu"
_BITS_OF_BYTE = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(1, np.uint8)


class Bonds(Protocol):
    """What the simulation asks of a bond layout."""

    layout: Layout
    live: object            # device array of live bits, part of the checkpoint
    edge_number: Array      # the solid's edge behind each recorded one

    def set_stiffness(self, particles: Particles, stiffness: Array) -> None:
        """Take the bond stiffness c [N/m^6] of each body."""

    def set_factors(self, factor: Array) -> None:
        """Let bonds be stiffer by the factors (n,) of their ends; before their stiffness is set."""

    def forces(self, particles: Particles) -> list[Launch]:
        """Return the launches that break bonds and sum forces into the slots."""

    def sums(self, particles: Particles) -> list[Launch]:
        """Return the launches that sum lengths, counts and energies into the slots."""

    def contact_bonds(
        self, particles: Particles, contact: ContactSearch, steps_ahead: int
    ) -> list[Launch]:
        """Return the launches that look up the bonds of new contact candidates."""

    def weaken(self, planar: Array, segments: Array) -> None:
        """Mark the bonds that cross the segments; ``planar`` is (n, 2) in their plane."""

    def cut(self, particles: Particles, rectangles: Any, n_rectangles: int) -> None:
        """Cut the bonds that cross rows of ``struct Rectangle``, and note edge step 0."""

    def clear(self, particles: Particles, label: Array, pairs: Array) -> None:
        """Cut the bonds between elements of different labels (n,), and those of pairs (d, 2).

        Pairs without a bond are passed over; edges are noted to have broken at step 0.
        """

    def across(self, label: Array, bits: Array) -> Array:
        """Return those of some bits of ``live`` whose elements have different labels (n,)."""

    def places(self, pairs: Array) -> Array:
        """Return where among the bits of ``live`` the bonds of pairs (k, 2) are, or -1."""

    def pairs(self, bits: Array, start: int = 0) -> Array:
        """Return the elements (k, 2) whose bonds have a bit among some of ``live``.

        ``bits`` are those of its words from ``start`` on.
        """

    def count(self) -> int:
        """Return the number of live bonds."""

    def count_weak(self) -> int:
        """Return the number of weakened bonds."""


class ClusterBonds:
    """Bonds of irregular bodies (and of any other)."""

    def __init__(
        self, device: Device, solid: Solid, horizon: float, edge_volume: str = "full",
        part: Array | None = None,
    ) -> None:
        self._device = device
        self._solid = solid
        network = find_network(device, solid, horizon, part)
        self.layout = network.layout
        self.edge_number = network.edge_number
        put = device.from_host
        self.n_tiles = len(network.tile_start) - 1
        self.n_pairs = len(network.pair_live)
        self.live = put(network.pair_live)
        self._weak = device.xp.zeros(self.n_pairs, np.uint64)
        self._weakened = False
        self._weight = device.xp.zeros(self.layout.particle.shape, np.float32)
        self._pair_start, self._pair_first = put(network.pair_start), put(network.pair_first)
        self._pair_second = put(network.pair_second)
        self._pair_edge = put(network.pair_edge)
        self._pair_edge_start = put(network.pair_edge_start)
        self._pairs = device.struct(
            FILE, "Pairs", tile_start=put(network.tile_start), tile_slot=put(network.tile_slot),
            own_slot=put(network.own_slot), pair_start=self._pair_start,
            pair_second=self._pair_second, pair_slot=put(network.pair_slot))
        # Where volumes near the horizon count in full, the kernels are told so by a zero.
        self._edge = horizon + 0.5 if edge_volume == "partial" else 0.0
        self._shape, self._is_strained = self._shape_at(solid.position), False
        self._sum_volume = device.xp.zeros(self.layout.particle.shape, np.float32)
        self.set_factors(np.ones(solid.n_elements))
        self._module = device.module(FILE)

    def _shape_at(self, rest: Array, free: Array | None = None) -> Record:
        """Return the bodies as their bonds are at rest: (n, 3) [m], with free strains (n,)."""
        put, layout = self._device.from_host, self.layout
        inside = (layout.particle >= 0)[:, None, :]
        lanes = layout.scatter(rest)
        center = np.where(inside, lanes, 0.0).sum(2) / inside.sum(2)
        local = np.where(inside, lanes - center[:, :, None], 0.0) / layout.unit
        scale = self._solid.size[np.maximum(layout.particle[:, 0], 0)]
        strain = np.zeros((1, LANES)) if free is None else layout.scatter(free)
        return self._device.struct(
            FILE, "RestShape", edge=self._edge, origin=put(center / layout.unit),
            rest=put(local.astype(np.float32)), weight=self._weight,
            per_scale=put((layout.unit / scale).astype(np.float32)),
            is_strained=free is not None, free=put(strain.astype(np.float32)))

    def strain(self, rest: Array, free: Array) -> None:
        """Put the bonds under residual stress (prestress.py), for launches to come.

        They are at rest where particles stand at ``rest`` (n, 3) [m], if these were larger by
        ``free`` (n,).
        """
        self._shape, self._is_strained = self._shape_at(rest, free), True

    def set_stiffness(self, particles: Particles, stiffness: Array) -> None:
        """Keep V sqrt(c) for each particle: the product of two is c V_i V_j.

        c falls with the fourth power of the horizon; in a graded body that of a bond is the
        geometric mean of its ends'.
        """
        solid = self._solid
        weight = solid.volume * np.sqrt(stiffness[solid.body]) * self._factor
        self._weight[...] = self._device.from_host(self.layout.scatter(weight.astype(np.float32)))

    def set_factors(self, factor: Array) -> None:
        """Let bonds be stiffer by the factors (n,) of their ends."""
        self._factor = self._solid.grade * factor
        self._sum_volume[...] = self._device.from_host(self.layout.scatter(
            (self._factor * self._solid.volume).astype(np.float32)))

    def forces(self, particles: Particles) -> list[Launch]:
        """Return the launch that breaks bonds and sums forces into the slots."""
        kernel = (self._module.strained_bond_forces if self._is_strained
                  else self._module.bond_forces)
        return [kernel.prepare(
            self.n_tiles, self._weakened, self._pairs, self._shape, particles.limits,
            particles.flag, particles.step, self._weak, self._pair_edge, self._pair_edge_start,
            particles.displacement, self.live, particles.edge_step, particles.slot)]

    def sums(self, particles: Particles) -> list[Launch]:
        """Return the launch that sums lengths, counts and energies into the slots."""
        return [self._module.bond_sums.prepare(
            self.n_tiles, self.layout.unit, self._pairs, self._shape, particles.law,
            particles.body, self.live, particles.displacement, self._sum_volume,
            particles.slot)]

    def contact_bonds(
        self, particles: Particles, contact: ContactSearch, steps_ahead: int
    ) -> list[Launch]:
        """Return the launch that looks up the bonds of new contact candidates."""
        return [self._module.contact_bonds.prepare(
            contact.n_padded, steps_ahead, particles.flag, particles.step,
            contact.stamp, contact.count, contact.candidate, self._pair_start,
            self._pair_second, contact.candidate_bit)]

    def weaken(self, planar: Array, segments: Array) -> None:
        """Mark the bonds that cross the segments."""
        self._weakened = True
        lanes = self.layout.scatter(planar.astype(np.float32))
        self._module.weaken_bonds(
            self.n_pairs, len(segments), self._pair_first, self._pair_second, self.live,
            self._device.from_host(lanes), self._device.from_host(segments.astype(np.float32)),
            self._weak)

    def cut(self, particles: Particles, rectangles: Any, n_rectangles: int) -> None:
        """Cut the bonds that cross rectangles."""
        self._module.cut_bonds(
            self.n_pairs, n_rectangles, self._pair_first, self._pair_second,
            rectangles, particles.rest_position, self._pair_edge,
            self._pair_edge_start, self.live, particles.edge_step)

    def clear(self, particles: Particles, label: Array, pairs: Array) -> None:
        """Cut the bonds between elements of different labels, and those of pairs."""
        gone = bits_at(self.places(pairs), 8 * self.n_pairs).view(np.uint64)
        put = self._device.from_host
        self._module.clear_bonds(
            self.n_pairs, self._pair_first, self._pair_second,
            put(self.layout.scatter(label.astype(np.int32))), put(gone), self._pair_edge,
            self._pair_edge_start, self.live, particles.edge_step)

    def across(self, label: Array, bits: Array) -> Array:
        """Return those of some bits of ``live`` whose elements have different labels (n,)."""
        put, found = self._device.from_host, self._device.xp.zeros_like(self.live)
        self._module.bonds_across(
            self.n_pairs, self._pair_first, self._pair_second,
            put(self.layout.scatter(label.astype(np.int32))), put(bits), found)
        return self._device.to_host(found)

    def places(self, pairs: Array) -> Array:
        """Return where among the bits of ``live`` the bonds of pairs (k, 2) are, or -1."""
        lane = self.layout.lane_of()[pairs.reshape(-1, 2)]
        first, second = (self._device.to_host(array).astype(np.int64)
                         for array in (self._pair_first, self._pair_second))
        key = first * self.layout.n_clusters + second
        place = np.full(len(lane), -1, np.int64)
        # A pair of clusters stands once, with either of the two first.
        for a, b in ((lane[:, 0], lane[:, 1]), (lane[:, 1], lane[:, 0])):
            wanted = a // LANES * self.layout.n_clusters + b // LANES
            at = np.minimum(np.searchsorted(key, wanted), self.n_pairs - 1)
            found = key[at] == wanted
            # Within a cluster the lower lane is the row.
            found &= (a // LANES != b // LANES) | (a < b)
            bit = LANES * (a % LANES) + b % LANES
            place[found] = (LANES * LANES * at + bit)[found]
        return place

    def pairs(self, bits: Array, start: int = 0) -> Array:
        """Return the elements (k, 2) whose bonds have a bit among some of ``live``."""
        word = np.flatnonzero(bits)
        row, bit = np.nonzero(np.unpackbits(
            bits[word].view(np.uint8).reshape(-1, LANES), axis=1, bitorder="little"))
        stretch = slice(start, start + len(bits))
        first, second = (self._device.to_host(array[stretch])[word[row]]
                         for array in (self._pair_first, self._pair_second))
        particle = self.layout.particle
        return np.column_stack([particle[first, bit // LANES], particle[second, bit % LANES]])

    def count(self) -> int:
        """Return the number of live bonds."""
        return count_bits(self._device, self.live)

    def count_weak(self) -> int:
        """Return the number of weakened bonds."""
        return count_bits(self._device, self._weak)


def bits_at(place: Array, n_bytes: int) -> Array:
    """Return bytes (n_bytes,) uint8 in which the bits at some places are set; -1 is none."""
    place = place[place >= 0]
    bits = np.zeros(n_bytes, np.uint8)
    np.bitwise_or.at(bits, place // 8, np.left_shift(1, place % 8).astype(np.uint8))
    return bits


def count_bits(device: Device, bits: object) -> int:
    """Return the number of set bits of a device array."""
    return int(_BITS_OF_BYTE[device.to_host(bits).view(np.uint8)].sum(dtype=np.int64))
