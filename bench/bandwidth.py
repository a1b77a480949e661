"""What memory gives and what a step takes of it.

The machine is measured by the triad of McCalpin's STREAM: 24 bytes an item, what the cache
fetches before it writes not counted. A step is charged with its arrays once each: what it must
move if nothing stays in the cache from kernel to kernel, and nothing is read twice in one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from vfx.device import Device, Launch, Record
from vfx.device.source import Parameter
from vfx.sim.bonds.simulate import Simulation

TRIAD_ITEMS = 1 << 24        # 128 MiB an array, far more than any cache
#: Arguments of bond kernels that are only read where a bond breaks or was weakened.
_RARELY_READ = {"edge", "edge_offset", "pair_edge", "pair_edge_start", "edge_step", "weak"}


def triad_bandwidth(device: Device, n_items: int = TRIAD_ITEMS, repeats: int = 5) -> float:
    """Return the best of some triads [bytes/s]."""
    a, b, c = (device.xp.full(n_items, value, np.float64) for value in (0.0, 1.0, 2.0))
    triad = device.module("bench/bandwidth.cu").bandwidth_triad.prepare(n_items, 3.0, b, c, a)
    best = float("inf")
    for _ in range(repeats):
        begun = time.perf_counter()
        device.run([triad])
        device.synchronize()
        best = min(best, time.perf_counter() - begun)
    return 24.0 * n_items / best


def bond_bytes(simulation: Simulation) -> int:
    """Return the bytes that belong to bonds and that every step reads: masks and indices."""
    own = {id(array) for array in vars(simulation.particles).values()}
    n_clusters = simulation.layout.n_clusters
    launches = simulation.bonds.forces(simulation.particles)
    found = {}
    for launch in launches:
        for name, array, _ in arrays_of(launch):
            # What has an entry a cluster and component describes particles, not bonds.
            of_particles = id(array) in own or array.size in (
                n_clusters * 3, n_clusters * 8, n_clusters * 24)
            if not of_particles and name not in _RARELY_READ:
                found[id(array)] = int(array.nbytes)
    return sum(found.values())


def moved_bytes(simulation: Simulation) -> int:
    """Return the least bytes that a step moves, contact left out."""
    total = 0
    for launch in simulation.step_launches:
        if "contact" in launch.kernel.signature.name:
            continue
        total += sum(array.nbytes * (2 if role == "inout" else 1)
                     for name, array, role in arrays_of(launch) if name not in _RARELY_READ)
    return total


def arrays_of(launch: Launch) -> Iterable[tuple[str, Any, str]]:
    """Yield (parameter, array, role) of the arrays that a launch is bound to."""
    yield from bound_arrays(launch.kernel.signature.parameters, launch.arguments)


def bound_arrays(
    parameters: Iterable[Parameter], arguments: Iterable[Any]
) -> Iterable[tuple[str, Any, str]]:
    """Yield (parameter, array, role) of the arrays among arguments, and of those in structs."""
    for parameter, argument in zip(parameters, arguments, strict=True):
        if isinstance(argument, Record):
            yield from bound_arrays(argument.struct.fields, argument.fields.values())
        elif parameter.role != "value":
            yield parameter.name, argument, parameter.role
