"""How fast a device steps, from a small block stepped for a moment: for estimates before a run.

The time of a step is that of its bonds: within a factor of 1.5, a bond costs the same in a
small block as in a large one.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from vfx.device import Device
from vfx.geometry.bodies import Body
from vfx.geometry.grid import build_solid
from vfx.sim.settings import Floor, Material, Solver
from vfx.sim.simulate import Simulation

#: Cells of the block along an axis, at most.
LARGEST_SIDE = 40
#: Speed of its particles [m/s]: strains far below those that break.
SWING = 1e-3
WARM_UP_STEPS = 4
SECONDS = 0.4
BATCHES = 5


def seconds_per_bond(device: Device, body: Body, material: Material, solver: Solver) -> float:
    """Return the time [s] that one step takes for each bond of a whole body like ``body``.

    A block of the body's thickness swings a little, for at rest its steps would be jumped over.
    Of several batches of steps the fastest counts, as whatever else runs on the machine only
    ever slows one down.
    """
    x, y, z = (min(n, LARGEST_SIDE) for n in body.cells)
    solid = build_solid([dataclasses.replace(
        body, cells=(x, y, z), velocity=(0.0, 0.0, 0.0), angular_velocity=(0.0, 0.0, 0.0))])
    simulation = Simulation(
        device, solid, {body.material: material},
        dataclasses.replace(solver, gravity=(0.0, 0.0, 0.0)), Floor(enabled=False))
    simulation.place(solid.position, SWING * np.sin(solid.position / body.spacing))

    def time_steps(n_steps: int) -> float:
        begun = time.perf_counter()
        simulation.advance(n_steps)
        device.synchronize()
        return (time.perf_counter() - begun) / n_steps

    pace = time_steps(WARM_UP_STEPS)
    n_steps = max(1, int(SECONDS / BATCHES / max(pace, 1e-9)))
    pace = min(time_steps(n_steps) for _ in range(BATCHES))
    return pace / max(1, simulation.n_bonds)
