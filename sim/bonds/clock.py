"""Steps and times: how long a step is, how long a frame is, and which step a frame is taken at.

A frame is a time [s] since the first frame; this solver meets it at the nearest step, so no
frame is off by more than half a step and none drifts, however many there are. Frames that are a
whole number of steps long are met exactly.
"""

from __future__ import annotations

from typing import Literal


def frame_time(steps_per_frame: int, timestep: float) -> float:
    """Return the time [s] of a frame whose number of steps is given."""
    return steps_per_frame * timestep


def nearest_step(time: float, timestep: float) -> int:
    """Return the number of steps after which it is nearest to a time [s]."""
    return round(time / timestep)


def exact_step(timestep: float | Literal["auto"]) -> float:
    """Return a time step [s] that is a number; a simulation cannot begin without."""
    if isinstance(timestep, str):
        raise ValueError("timestep = \"auto\" has to be planned before anything is simulated")
    return timestep
