"""Steps and times: how long a step is, how long a frame is, and which step a frame is taken at.

A frame is a time [s] since the first frame; this solver meets it at the nearest step, so no
frame is off by more than half a step and none drifts, however many there are. Frames that are a
whole number of steps long are met exactly.
"""

from __future__ import annotations

from typing import Literal

from vfx.sim.solver import Clock

#: A particle that moves further than this in one step [lambda] has run away.
LARGEST_STEP = 0.25


def frame_time(clock: Clock, timestep: float) -> float:
    """Return the time [s] from frame to frame: the shot's, or that of the steps it gives."""
    if clock.frame_time is not None:
        return clock.frame_time
    assert clock.steps_per_frame is not None, "a clock has one of the two"
    return clock.steps_per_frame * timestep


def nearest_step(time: float, timestep: float) -> int:
    """Return the number of steps after which it is nearest to a time [s]."""
    return round(time / timestep)


def exact_step(timestep: float | Literal["auto"]) -> float:
    """Return a time step [s] that is a number; a simulation cannot begin without."""
    if isinstance(timestep, str):
        raise ValueError(f"timestep = \"{timestep}\" has to be planned before anything is "
                         "simulated")
    return timestep
