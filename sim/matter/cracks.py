"""Where cracks are, so that bonds across them are weaker than those of whole matter.

Whole matter breaks at its strength, a crack grows by less: by the energy of its faces. A particle
at a crack has lost bonds toward it. Their directions are summed, and a bond of two particles that
have lost others toward each other is one that the crack has to break next; it alone is weaker.
Bonds along the crack and behind it are not: what was a band of crumbs becomes a face.

The same sums tell, whatever the law, which of the broken faces belong to a crack that gapes. Its
two sides have lost bonds toward each other, and few behind. Where matter is damaged all over, as
in the skin of a plate that was bent, an element has lost as many on either side: its faces are
broken, but nothing has moved apart there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import Device, Launch
from vfx.geometry.handoff.types import Array
from vfx.sim.matter.ordering import Layout
from vfx.sim.matter.particles import Particles

FILE = "sim/matter/cracks.cu"
#: Steps between two looks at what was lost. Sound takes some of them through a horizon.
EVERY = 16
#: Of the sums of directions, as ``particles.cuh`` has it.
GAP_UNIT = 1048576.0
#: A crack gapes where its two sides' gaps toward each other are, in the mean, above this. Beside a
#: plane crack through all they are about 0.2, whatever the horizon.
GAPES = 0.08


def lost_ways(rest: Array, pairs: Array) -> Array:
    """Return the sums (n, 3) of the directions of lost bonds ``pairs`` (k, 2) [1 / GAP_UNIT].

    ``rest`` (n, 3) [m] are the places of the elements.
    """
    way = rest[pairs[:, 1]] - rest[pairs[:, 0]]
    part = np.rint(GAP_UNIT * way / np.sqrt((way**2).sum(axis=1))[:, None])
    return np.stack([np.bincount(pairs[:, 0], along, len(rest))
                     - np.bincount(pairs[:, 1], along, len(rest)) for along in part.T], axis=1)


def gapes(rest: Array, lost: Array, n_bonds: Array, edge: Array) -> Array:
    """Return whether a crack gapes between elements (e, 2) that have lost their own bond, (e,).

    ``lost`` (n, 3) are the sums of the directions that were lost [1 / GAP_UNIT], of ``n_bonds``
    (n,) that each element had.
    """
    way = rest[edge[:, 1]] - rest[edge[:, 0]]
    way /= np.sqrt((way**2).sum(axis=1))[:, None]
    gap = lost[edge] / (GAP_UNIT * np.maximum(n_bonds[edge], 1)[..., None])
    found: Array = 0.5 * np.einsum("ek,ek->e", gap[:, 0] - gap[:, 1], way) > GAPES
    return found


class Cracks:
    """Lets the gaps of particles follow from the bonds they lose."""

    def __init__(self, device: Device, layout: Layout, particles: Particles,
                 n_bonds: Array) -> None:
        """``n_bonds`` (n,) are those of each particle at first."""
        self._device, self._layout, self._particles = device, layout, particles
        self._per_bond = device.from_host(layout.scatter(
            (1.0 / np.maximum(n_bonds, 1)).astype(np.float32)))

    def open(self, every: int = EVERY) -> list[Launch]:
        """Return the launch that brings the gaps up to date, every so many steps."""
        particles = self._particles
        return [self._device.module(FILE).open_gaps.prepare(
            self._layout.n_clusters, every, particles.gap.shape[1], particles.flag,
            particles.step, particles.lost, self._per_bond, particles.gap)]

    def begin(self, rest: Array, pairs: Array) -> None:
        """Start from bonds (k, 2) of elements that do not hold any more; ``rest`` (n, 3) [m]."""
        self._particles.lost[...] = self._device.from_host(
            self._layout.scatter(lost_ways(rest, pairs).astype(np.int64)))
        self._device.run(self.open(every=1))

    def persistent(self) -> dict[str, Any]:
        """Return the device arrays that a resume needs."""
        return {name: getattr(self._particles, name) for name in ("lost", "gap")}
