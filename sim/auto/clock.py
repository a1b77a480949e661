"""Ticks and steps: the two clocks of a schedule, which meet at every tick.

The rigid engine goes in ticks; while something breaks it takes fine ticks, an eighth as long. A
fine tick is a whole number of steps of bonds. Time is counted in these steps from the first frame,
so no moment depends on which frames are asked for, on how often, or on a resume.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

#: Fine ticks in a tick.
FINE = 8


@dataclass(frozen=True)
class Ticks:
    """How long a tick is, and how many steps of bonds are in a fine one."""

    tick: float             # [s]
    steps_a_fine: int

    @property
    def steps_a_tick(self) -> int:
        """Steps of bonds in a tick."""
        return FINE * self.steps_a_fine

    @property
    def timestep(self) -> float:
        """A step of bonds [s]."""
        return self.tick / self.steps_a_tick

    def time(self, step: int) -> float:
        """Return the time [s] of a step."""
        return step * self.timestep

    def duration(self, n_steps: int) -> float:
        """Return how long [s] so many steps take; a tick takes exactly a tick."""
        return self.tick if n_steps == self.steps_a_tick else n_steps * self.timestep

    def nearest(self, time: float) -> int:
        """Return the step nearest to a time [s]."""
        return round(time / self.timestep)

    def next_tick(self, step: int, fine: bool) -> int:
        """Return the step at which the engine's next tick ends, from one at which one ended."""
        if fine or step % self.steps_a_tick:
            return step + self.steps_a_fine
        return step + self.steps_a_tick


def make_ticks(tick: float, stable_step: float) -> Ticks:
    """Return ticks whose steps of bonds are the longest stable ones that divide a fine tick."""
    n_steps = max(1, math.ceil(tick / FINE / stable_step))
    # The division may round to the far side of the limit.
    return Ticks(tick, n_steps + (tick / FINE / n_steps > stable_step))
