"""Damping of vibration that brakes no flight and no spin.

Neighbours whose bond holds give each other impulses along the line between them, against their
relative speed along it: momentum and angular momentum are kept exactly, and what moves as a rigid
body is left alone. Impulses are added up as 64-bit integers, every few steps. Neighbours share a
face or, of cubes, an edge: on faces alone a lattice of cubes would shear undamped.

An impulse is a share of what would end the relative motion of a pair. Below one over the most
pairs of an element the impulses of all pairs together take energy, whatever the motion.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.spatial import cKDTree

from vfx.device import Device, Launch
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.matter.ordering import LANES, Layout
from vfx.sim.matter.particles import Particles

FILE = "sim/matter/damping.cu"
#: Steps from one damping to the next.
EVERY = 8
#: The largest impulse of an edge, in quanta.
LARGEST_IMPULSE = 2.0**48


class PairDamping:
    """Pairs (k, 2) of neighbours on the device, and where the bits of their bonds are.

    ``live`` are the bits of all bonds, ``mass`` [kg] are those of the n elements, ``fastest``
    [m/s] is as fast as one may be.
    """

    def __init__(
        self, device: Device, pairs: Array, bit: Array, live: Any, layout: Layout, mass: Array,
        fastest: float,
    ) -> None:
        self._module = device.module(FILE)
        self._n_clusters = layout.n_clusters
        pairs, bit = pairs[bit >= 0], bit[bit >= 0]
        self._n_pairs = len(pairs)
        self._most = int(np.bincount(pairs.ravel(), minlength=1).max())
        self._pair = device.from_host(layout.lane_of()[pairs].astype(np.int32))
        self._bit = device.from_host(bit)
        self._live = live.reshape(-1).view(np.uint8)
        self._inverse_mass = device.from_host(layout.scatter(1.0 / mass))
        largest = 4.0 * fastest * float(mass.max())
        self._quantum = 2.0 ** math.ceil(math.log2(max(largest, 1e-250))) / LARGEST_IMPULSE
        self._impulse = device.xp.zeros((layout.n_clusters, 3, LANES), np.int64)

    def calm(self, particles: Particles, strength: float) -> list[Launch]:
        """Return the launches that damp; ``strength`` goes up to 1, the most that is safe."""
        if not self._n_pairs:
            return []
        share = strength / (2.0 * self._most)
        return [
            self._module.pair_impulses.prepare(
                self._n_pairs, EVERY, share, 1.0 / self._quantum, particles.flag, particles.step,
                self._pair, self._bit, self._live, self._inverse_mass, particles.position,
                particles.velocity, self._impulse),
            self._module.give_impulses.prepare(
                self._n_clusters, EVERY, self._quantum, particles.flag, particles.step,
                self._inverse_mass, self._impulse, particles.velocity)]


def neighbors(solid: Solid) -> Array:
    """Return the pairs (k, 2) of elements that share a face or, of cubes, an edge."""
    pairs = [solid.edge.reshape(-1, 2).astype(np.int64)]
    for body in np.flatnonzero(solid.kind == "grid"):
        member = np.flatnonzero(solid.body == body)
        near = member[cKDTree(solid.cell[member]).query_pairs(1.5, output_type="ndarray")]
        apart = np.abs(solid.cell[near[:, 0]] - solid.cell[near[:, 1]]).sum(1)
        diagonal = np.sort(near[apart == 2], axis=1)
        pairs.append(diagonal[np.lexsort(diagonal.T)])
    return np.concatenate(pairs)
