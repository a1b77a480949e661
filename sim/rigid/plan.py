"""What rigid bodies will need: memory, and how many steps of the engine a shot takes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from vfx.geometry.divide.sources import BodySize, body_size
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.settings import Complaint
from vfx.sim.solver import Clock, S, Setup

#: Bytes of a process before it simulates anything, and of an element with its corners and hulls.
BYTES_A_PROCESS, BYTES_AN_ELEMENT = 160_000_000, 2_500


@dataclass(frozen=True)
class RigidPlan:
    """The whole shot, by its bodies."""

    setup: Setup[RigidSettings]
    sizes: tuple[BodySize, ...]

    @property
    def settings(self) -> RigidSettings:
        """The shot's settings: there is nothing to be worked out."""
        return self.setup.settings

    @property
    def frame_time(self) -> float:
        """Simulated time [s] from frame to frame."""
        return self.setup.clock.frame_time or 1.0 / self.setup.clock.fps

    @property
    def memory(self) -> int:
        """Bytes of memory of the whole process at the peak, an estimate from above."""
        return BYTES_A_PROCESS + BYTES_AN_ELEMENT * sum(size.elements for size in self.sizes)

    def complaint(self) -> Complaint | None:
        """Return why it cannot run, or None."""
        if self.setup.cracks:
            return "cracks", ("cut nothing with method = \"rigid\", in which nothing breaks; use "
                              "method = \"auto\", or remove them")
        return rigid_complaint(self.setup)

    def n_steps(self, time: float) -> int:
        """Return how many ticks there are to a time [s]."""
        return max(0, math.ceil(time / self.settings.timestep))

    def effort(self, time: float, step: float) -> list[tuple[str, float]]:
        """Return how many ticks there are, and about how long they take."""
        ticks = self.n_steps(time)
        return [(f"{ticks:,} ticks of the engine with {len(self.sizes):,} "
                 f"{'body' if len(self.sizes) == 1 else 'bodies'}, a rough guess", ticks * step)]

    def time_text(self) -> str:
        """Return what a frame is made of."""
        return ticks_text(self.setup.clock, self.frame_time, self.settings.timestep)

    def body_text(self, number: int) -> str:
        """Return what a body comes to, counted from 0."""
        return f"lambda {self.sizes[number].spacing:.4g} m, rigid"

    def body_lines(self, number: int) -> list[str]:
        """Return what else is to be known of a body: nothing."""
        return []

    def warnings(self) -> list[str]:
        """Return what will not come out as a person expects: nothing."""
        return []

    def lines(self) -> list[str]:
        """Return what ``vfx check`` tells of the whole."""
        return ["rigid bodies: nothing breaks"]


def make_plan(setup: Setup[RigidSettings]) -> RigidPlan:
    """Work out sizes."""
    return RigidPlan(setup, tuple(body_size(body) for body in setup.bodies))


def ticks_text(clock: Clock, frame_time: float, tick: float) -> str:
    """Return how many ticks [s] make a frame, whose time [s] is the shortest there is."""
    fewest, most = frame_time / tick, (clock.longest_frame or frame_time) / tick
    if most > 1.001 * fewest:
        return f"{fewest:.3g} to {most:.3g} ticks of {1e3 * tick:.4g} ms"
    return f"{fewest:.4g} ticks of {1e3 * tick:.4g} ms"


def rigid_complaint(setup: Setup[S]) -> Complaint | None:
    """Return why the engine cannot have bodies and projectiles of a shot, or None."""
    for number, ball in enumerate(setup.projectiles, 1):
        if not ball.touches:
            return f"projectiles[{number}].push", (
                f"found \"{ball.push}\", which for this ball is the push of levine-2014, eq. 7, "
                "that method = \"bonds\" has alone; give the ball a mass or a material, or write "
                "push = \"contact\"")
    return None
