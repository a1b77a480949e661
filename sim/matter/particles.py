"""The particles on the device: constants, state and control words that kernels share.

Arrays are in the order of a layout (clusters of eight lanes); C clusters. Vectors are
(C, 3, 8), except the fixed-point displacement, whose place a layout chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device, Record
from vfx.geometry.handoff.types import Array
from vfx.sim.matter.ordering import LANES, Layout

FLAG_HALT, FLAG_REBUILD, FLAG_FAULT = 0, 1, 2
HALT_FAULT, HALT_CAPACITY = 1, 2
REBUILD_ALL = 2
FILE = "sim/matter/particles.cuh"


@dataclass
class Particles:
    """Device arrays; lengths in metres, masses in kilograms."""

    rest_position: Any      # (C, 3, 8) float64
    inverse_mass: Any       # (C, 8) float32, 0 for padding
    inverse_density: Any    # (C, 8) float32, 0 for padding
    base_threshold: Any     # (C, 8) float32: tau
    body: Any               # (C,) int32: body of a cluster
    law: Any                # (bodies, words) float32: rows of BondLaw, see laws.cuh
    support: Any            # (C, 8) float32: reach of an element downward
    largest_support: Any    # (C,) float32: the largest of a cluster
    position: Any           # (C, 3, 8) float64
    velocity: Any           # (C, 3, 8) float64
    acceleration: Any       # (C, 3, 8) float32
    displacement: Any       # (24 C,) int32 [unit], modulo 2^32
    threshold: Any          # (C, 8) float32: tau'
    gap: Any                # (3, 8 C + 8) float32: mean direction of lost bonds, see cracks.py
    lost: Any               # (C, 3, 8) int64: sum of the directions of lost bonds [1 / GAP_UNIT]
    edge_step: Any          # (edges,) int64: step at which an adjacency edge broke, or -1
    slot: Any               # float32: force and smallest stretch, where the layout says
    slot_unit: Any          # (C,) float32 [N]: unit of the force in the slots
    travel: Any             # (C,) float64: at least the way from where contact was sought
    flag: Any               # (4,) int32: control words, see layout.cuh
    step: Any               # (1,) int64: steps done
    least_threshold: float  # the smallest tau; tau' is never below it
    moved: Record           # struct Displacement of particles.cuh: rest and displacement
    limits: Record          # struct Limits: what breaks bonds


def make_particles(
    device: Device, layout: Layout, *, position: Array, volume: Array, density: Array,
    threshold: Array, support: Array, body: Array, law: Any, n_edges: int, has_cracks: bool,
) -> Particles:
    """Bring (n,) host values into the order of a layout; at rest, without stiffness yet.

    ``law`` are the bond laws of the bodies, on the device; ``has_cracks`` whether one of them
    asks where cracks are.
    """
    xp = device.xp
    n_cracks = layout.n_clusters if has_cracks else 0
    # Lanes beside the last row are read, but never count.
    gap = xp.zeros((3, LANES * n_cracks + LANES), np.float32)
    lost = xp.zeros((n_cracks, 3, LANES), np.int64)

    def put(value: Array, fill: float = 0.0) -> Any:
        return device.from_host(layout.scatter(value.astype(np.float32), fill))

    vectors = (layout.n_clusters, 3, LANES)
    rest = layout.scatter(position)
    lane = np.maximum(layout.particle[:, 0], 0)
    rest_position, limit = device.from_host(rest), put(threshold, fill=1.0)
    displacement = xp.zeros(3 * LANES * layout.n_clusters, np.int32)
    body_of, least = device.from_host(body[lane].astype(np.int32)), float(
        threshold.astype(np.float32).min())
    return Particles(
        rest_position=rest_position, inverse_mass=put(1.0 / (density * volume)),
        inverse_density=put(1.0 / density),
        base_threshold=put(threshold, fill=1.0), body=body_of, law=law, support=put(support),
        largest_support=device.from_host(layout.scatter(support.astype(np.float32)).max(1)),
        position=device.from_host(rest), velocity=xp.zeros(vectors, np.float64),
        acceleration=xp.zeros(vectors, np.float32), displacement=displacement, threshold=limit,
        gap=gap, lost=lost,
        edge_step=xp.full(max(n_edges, 1), -1, np.int64),
        slot=xp.zeros(layout.n_slot_floats, np.float32),
        slot_unit=xp.ones(layout.n_clusters, np.float32),
        travel=xp.zeros(layout.n_clusters, np.float64),
        flag=xp.zeros(4, np.int32), step=xp.zeros(1, np.int64), least_threshold=least,
        moved=device.struct(
            FILE, "Displacement", inverse_unit=1.0 / layout.unit, rest=rest_position,
            cluster_stride=layout.cluster_stride, axis_stride=layout.axis_stride,
            displacement=displacement),
        limits=device.struct(
            FILE, "Limits", least_threshold=least, law=law, body=body_of, threshold=limit,
            gap_stride=gap.shape[1], gap=gap, lost=lost))
