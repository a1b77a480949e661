"""Time repeated work on a machine that is not ours alone."""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

#: Below this load average the machine counts as quiet.
QUIET_LOAD = 0.5


@dataclass
class Timing:
    """Seconds a step of each chunk: by the clock, and of all threads together.

    Others' work on the machine can only add to either, so the minimum is the best estimate of
    what the work costs; the median says how noisy the machine was.
    """

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The least wall time a step [s]."""
        return min(self.wall)

    @property
    def median(self) -> float:
        """The median wall time a step [s]."""
        return statistics.median(self.wall)

    @property
    def best_cpu(self) -> float:
        """The least CPU time a step [s]."""
        return min(self.cpu)

    @property
    def median_cpu(self) -> float:
        """The median CPU time a step [s]."""
        return statistics.median(self.cpu)


def time_steps(advance: Callable[[int], None], n_steps: int, n_chunks: int) -> Timing:
    """Call ``advance`` for about ``n_steps`` in equal chunks, after one step to warm up."""
    timing = Timing()
    chunk = max(1, n_steps // n_chunks)
    advance(1)
    for _ in range(min(n_chunks, n_steps)):
        wall, cpu = time.perf_counter(), time.process_time()
        advance(chunk)
        timing.wall.append((time.perf_counter() - wall) / chunk)
        timing.cpu.append((time.process_time() - cpu) / chunk)
    return timing


def load_warning() -> str | None:
    """Return a sentence if others keep the machine busy."""
    load = os.getloadavg()[0]
    if load <= QUIET_LOAD:
        return None
    return (f"warning: the load average is {load:.1f}; wall times are too long where others "
            "take the cores, the least CPU time suffers less")


def peak_memory() -> int:
    """Return the largest resident memory of this process so far [bytes]."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
