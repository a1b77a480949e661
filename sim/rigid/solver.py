"""Bodies that never break: the engine alone, behind the :class:`vfx.sim.solver.Solver` protocol.

Time goes in ticks of the engine; frames between two ticks are interpolated.
"""

from __future__ import annotations

import time as computer
from collections.abc import Mapping

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array, Motion
from vfx.sim.rigid.fleet import Fleet
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.solver import Event, Matter, Outcome, World


class RigidSolver:
    """All bodies of a shot as rigid ones."""

    def __init__(self, device: Device, world: World[RigidSettings]) -> None:
        self._world, self._tick = world, world.settings.timestep
        solid = world.solid
        self._fleet = Fleet(world, world.settings, device.threads)
        count, label = components(solid.n_elements, solid.edge)
        self._fleet.begin(np.arange(solid.n_elements), label, count)
        self.step = 0
        self._time = 0.0

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._time

    def moment(self, time: float) -> float:
        """Return a time [s] as it is: frames between two ticks are interpolated."""
        return time

    def advance(self, until: float, seconds: float) -> Outcome:
        """Go on to a time [s], for about ``seconds``."""
        deadline = computer.monotonic() + seconds
        while self._fleet.end < until:
            self.step += 1
            self._fleet.tick(self._tick, self.step * self._tick)
            if self._fleet.end < until and computer.monotonic() > deadline:
                self._time = self._fleet.end
                return Outcome.PAUSED
        self._time = until
        return Outcome.REACHED

    def broken(self) -> Array:
        """Return the edges that do not hold any more: none."""
        return np.zeros(0, np.int32)

    def matter(self) -> Matter:
        """Return where all elements are and how fast."""
        _, position, velocity = self._fleet.elements(self._fleet.seen(self.time))
        return Matter(self.time, position, velocity, np.zeros(len(position), np.float32))

    def place(self, matter: Matter) -> None:
        """Refuse: pieces that come from elsewhere are the affair of a schedule."""
        raise ValueError("rigid bodies take no matter from other solvers; method = \"auto\" "
                         "hands pieces over")

    def frame(self, number: int, since: float) -> Motion:
        """Return the state as a frame."""
        now, poses = self.matter(), self._fleet.seen(self.time)
        turned, rotation, spin = self._fleet.turned(poses)
        return Motion(
            frame=number, time=now.time, position=now.position, velocity=now.velocity,
            damage=now.damage, broken_edge=now.broken,
            projectile_position=poses.center[:self._fleet.n_props],
            projectile_radius=np.array([ball.radius for ball in self._world.projectiles]),
            turned_element=turned.astype(np.int32), turned_rotation=rotation,
            turned_velocity=spin)

    def tallies(self) -> dict[str, float]:
        """Return one row of the history: energies [J], momentum [kg m/s], who sleeps."""
        return {"step": self.step, "time": self.time,
                **self._fleet.tallies(self.time, np.zeros(0, np.int64), self._fleet.after)}

    def doing(self) -> str:
        """Return what it always does."""
        return "rigid"

    def notes(self) -> list[str]:
        """Return how time is divided."""
        return [f"rigid in ticks of {1e3 * self._tick:.3g} ms; nothing breaks"]

    def news(self) -> list[Event]:
        """Return what happened: nothing goes over to anybody."""
        return []

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        return {"clock": np.array([self.step, self._time]), **self._fleet.state()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; raises ValueError, having changed nothing, if it is none."""
        if "clock" not in state or state["clock"].shape != (2,):
            raise ValueError("it has no array clock of shape (2,)")
        self._fleet.restore(state)
        self.step, self._time = int(state["clock"][0]), float(state["clock"][1])
