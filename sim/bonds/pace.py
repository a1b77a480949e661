"""How fast a device steps, from a small block stepped for a moment: for estimates before a run.

The time of a step is that of its bonds: within a factor of 1.5, a bond costs the same in a
small block as in a large one.
"""

from __future__ import annotations

import dataclasses
import time

import numpy as np

from vfx.device import Device
from vfx.geometry.divide.blue_noise import SITES_A_CUBE
from vfx.geometry.divide.build import build_solid
from vfx.geometry.divide.sources import body_size
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.cluster_bonds import ClusterBonds
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.settings import Floor, Material, Solver

#: Cells of the block along an axis, at most.
LARGEST_SIDE = 40
#: Cells of the block for bodies of other shapes, whose bonds lie in clusters.
IRREGULAR_CELLS = (24, 24, 24)
#: Speed of its particles [m/s]: strains far below those that break.
SWING = 1e-3
WARM_UP_STEPS = 4
SECONDS = 0.4
BATCHES = 5


def seconds_per_bond(device: Device, body: Body, material: Material, solver: Solver) -> float:
    """Return the time [s] that one step takes for each bond of a whole body like ``body``.

    A block of its lambda and, if it is one, of its thickness swings a little, for at rest its
    steps would be jumped over. Of several batches of steps the fastest counts, as whatever else
    runs on the machine only ever slows one down.
    """
    size = body_size(body)
    # As many neighbours as the body's own elements have, however they stand.
    spacing = size.spacing if body.is_block else (size.volume / size.elements) ** (1 / 3)
    # Graded elements reach as far as their own lambda says, not as the finest one does.
    finer = SITES_A_CUBE ** (1 / 3) if body.grading_deviation else size.spacing / spacing
    horizon = solver.horizon * finer
    x, y, z = (min(n, LARGEST_SIDE) for n in (body.cells if body.is_block else IRREGULAR_CELLS))
    block = Body(name=body.name, material=body.material, cells=(x, y, z), spacing=spacing,
                 rotation=body.rotation)
    solid = build_solid(device, [block]).solid
    simulation = Simulation(
        device, solid, {body.material: material},
        dataclasses.replace(solver, gravity=(0.0, 0.0, 0.0), horizon=horizon), Floor(enabled=False),
        layout=None if body.is_block else ClusterBonds)
    simulation.place(solid.position, SWING * np.sin(solid.position / spacing))

    def time_steps(n_steps: int) -> float:
        begun = time.perf_counter()
        simulation.advance(n_steps)
        device.synchronize()
        return (time.perf_counter() - begun) / n_steps

    pace = time_steps(WARM_UP_STEPS)
    n_steps = max(1, int(SECONDS / BATCHES / max(pace, 1e-9)))
    pace = min(time_steps(n_steps) for _ in range(BATCHES))
    return pace / max(1, simulation.n_bonds)
