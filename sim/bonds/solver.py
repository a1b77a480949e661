"""The bonds as a solver: times in, steps done.

:class:`Simulation` counts steps; this is the one place that turns the times of frames into them.
"""

from __future__ import annotations

import dataclasses
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
        #: The step of the frame in which an edge was first seen between two pieces, or -1.
        self._opened = (np.full(len(world.solid.edge), -1, np.int64)
                        if world.settings.pieces == "held" else None)

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
        since_step = self._step_at(since) if since >= 0.0 else -1
        motion = self.simulation.frame(number, since_step)
        if self._opened is None:
            return motion
        edge = self.simulation.open_edges()
        self._opened[edge] = np.where(self._opened[edge] < 0, self.step, self._opened[edge])
        return dataclasses.replace(
            motion, broken_edge=np.flatnonzero(self._opened > since_step).astype(np.int32))

    def broken(self) -> Array:
        """Return the adjacency edges that do not hold any more, (e,) int32, ascending."""
        edge = self.simulation.open_edges()
        return edge if self._opened is None else np.union1d(
            edge, np.flatnonzero(self._opened >= 0).astype(np.int32))

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
        return self.simulation.state() | (
            {} if self._opened is None else {"opened": self._opened.copy()})

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`."""
        if self._opened is not None:
            if "opened" not in state or state["opened"].shape != self._opened.shape:
                raise ValueError(f"it has no array opened of shape {self._opened.shape}")
            opened = state["opened"].astype(np.int64)
        self.simulation.restore(state)
        if self._opened is not None:
            self._opened = opened

    def _step_at(self, time: float) -> int:
        return nearest_step(time, self.simulation.timestep)
