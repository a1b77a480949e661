"""The bonds as a solver: times in, steps done.

:class:`Simulation` counts steps; this is the one place that turns the times of frames into them.
"""

from __future__ import annotations

import time as clock
from collections.abc import Mapping

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array, Motion
from vfx.sim.bonds.clock import nearest_step
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.solver import Event, Matter, Outcome, World


class BondSolver:
    """Peridynamic bonds behind the :class:`vfx.sim.solver.Solver` protocol."""

    def __init__(self, device: Device, world: World[BondSettings]) -> None:
        self.simulation = Simulation(device, world)
        self.simulation.refuse_step()
        self._steps_a_call = 1

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.simulation.time

    @property
    def step(self) -> int:
        """Steps done."""
        return self.simulation.step

    def moment(self, time: float) -> float:
        """Return the time [s] of the step nearest to a time."""
        return self._step_at(time) * self.simulation.timestep

    def advance(self, until: float, seconds: float) -> Outcome:
        """Do steps up to the one nearest to ``until`` [s], as many as ``seconds`` allow."""
        goal, step = self._step_at(until), self.step
        n_steps = min(goal - step, self._steps_a_call)
        if n_steps > 0:
            begun = clock.monotonic()
            self.simulation.advance(n_steps)
            pace = (clock.monotonic() - begun) / n_steps
            self._steps_a_call = max(1, min(2 * self._steps_a_call,
                                            int(seconds / max(pace, 1e-9))))
        return Outcome.REACHED if step + n_steps >= goal else Outcome.PAUSED

    def frame(self, number: int, since: float) -> Motion:
        """Return the state as a frame, with the edges that broke after the moment ``since`` [s]."""
        return self.simulation.frame(number, self._step_at(since) if since >= 0.0 else -1)

    def broken(self) -> Array:
        """Return the adjacency edges that do not hold any more, (e,) int32, ascending."""
        return self.simulation.broken_edges(-1)[0]

    def matter(self) -> Matter:
        """Return where all particles are, how fast, and what of them is broken."""
        simulation = self.simulation
        return Matter(
            time=self.time, position=simulation.position, velocity=simulation.velocity,
            damage=simulation.damage(simulation.bond_sums()["count"]), broken=self.broken())

    def place(self, matter: Matter) -> None:
        """Put the particles where another solver brought them; the bonds are as they were left."""
        parted = np.setdiff1d(matter.broken, self.broken())
        if len(parted):
            raise ValueError(f"{len(parted)} edges broke elsewhere, whose bonds hold here")
        self.simulation.place(matter.position, matter.velocity, self._step_at(matter.time))

    def tallies(self) -> dict[str, float]:
        """Return one row of the history: time, energies [J], momentum [kg m/s], bonds."""
        return self.simulation.diagnostics()

    def doing(self) -> str:
        """Return nothing: it steps."""
        return ""

    def notes(self) -> list[str]:
        """Return which weakenings do nothing."""
        return [f"weakening[{number}] meets no body and does nothing; see its origin, length and "
                "points" for number in self.simulation.idle_weakening]

    def news(self) -> list[Event]:
        """Return nothing: bonds break all the time."""
        return []

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        return self.simulation.state()

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`."""
        self.simulation.restore(state)

    def _step_at(self, time: float) -> int:
        return nearest_step(time, self.simulation.timestep)
