"""A second solver, to prove the seam: bodies fall, and split in halves at a time. No bonds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.schema import setting
from vfx.geometry.handoff.types import Array, Motion
from vfx.sim.solver import Matter, Outcome, Room, Setup, World


@dataclass(frozen=True)
class ToySettings:
    """Halves that part."""

    split_at: float = setting(0.05, "When bodies split.", unit="s", at_least=0.0, at_most=1e3)
    speed: float = setting(1.0, "How fast each half leaves.", unit="m/s", at_least=0.0, at_most=1e3)


@dataclass(frozen=True)
class ToyPlan:
    settings: ToySettings
    frame_time: float
    memory: int = 10**8

    complaint = staticmethod(lambda: None)
    n_steps = staticmethod(lambda time: 10)
    effort = staticmethod(lambda time, step: [("ten leaps", 10 * step)])
    time_text = staticmethod(lambda: "ten leaps")
    body_text = staticmethod(lambda number: "two halves")
    body_lines = staticmethod(lambda number: [])
    warnings = staticmethod(lambda: [])

    def lines(self) -> list[str]:
        return [f"bodies split after {self.settings.split_at:g} s"]


class ToySolver:
    """Meets every time exactly; all it needs to go on is the time."""

    def __init__(self, device: Device, world: World[ToySettings]) -> None:
        self._world, self._solid = world, world.solid
        middle = np.array([body.center for body in world.bodies])[self._solid.body]
        self._side = np.where(self._solid.position[:, 0] < middle[:, 0], -1.0, 1.0)
        self._parted = np.flatnonzero(np.ptp(self._side[self._solid.edge], axis=1)).astype(np.int32)
        self.time, self.step = 0.0, 0

    def moment(self, time: float) -> float:
        return time

    def advance(self, until: float, seconds: float) -> Outcome:
        self.time, self.step = until, self.step + 1
        return Outcome.REACHED

    def broken(self) -> Array:
        return self._parted if self.time >= self._world.settings.split_at else self._parted[:0]

    def matter(self) -> Matter:
        apart = self._world.settings.speed * np.outer(self._side, [1.0, 0.0, 0.0])
        since = max(0.0, self.time - self._world.settings.split_at)
        gravity = np.array(self._world.shared.gravity)
        return Matter(
            self.time, self._solid.position + since * apart + 0.5 * self.time**2 * gravity,
            self.time * gravity + (since > 0.0) * apart,
            np.zeros(self._solid.n_elements, np.float32), self.broken())

    def place(self, matter: Matter) -> None:
        self.time = matter.time

    def frame(self, number: int, since: float) -> Motion:
        now, split = self.matter(), self._world.settings.split_at
        edge = now.broken if since < split else now.broken[:0]
        return Motion(
            frame=number, time=now.time, position=now.position, velocity=now.velocity,
            damage=now.damage, broken_edge=edge, projectile_position=np.zeros((0, 3)),
            projectile_radius=np.zeros(0))

    def tallies(self) -> dict[str, float]:
        return {"time": self.time}

    doing = staticmethod(lambda: "leaping")
    notes = staticmethod(lambda: ["halves part"])
    news = staticmethod(lambda: [])

    def state(self) -> dict[str, Array]:
        return {"time": np.array(self.time), "step": np.array(self.step)}

    def restore(self, state: Mapping[str, Array]) -> None:
        self.time, self.step = float(state["time"]), int(state["step"])


def plan(setup: Setup[ToySettings]) -> ToyPlan:
    return ToyPlan(setup.settings, setup.clock.frame_time or 1.0 / setup.clock.fps)


TOY = Room(settings=ToySettings, frame_time=lambda setup: plan(setup).frame_time, plan=plan,
           pace=lambda device, setup: 1e-6, build=ToySolver,
           strain_limits=lambda world: np.ones(world.solid.n_elements))
