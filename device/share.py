"""How many threads are worth having on a machine that others use as well.

Threads that run a sequence of kernels wait for one another after each of them, so one that has to
wait for a core holds up all: with more threads than cores, most of the time goes into that. Linux
counts for each thread how long it ran and how long it wanted to and could not. From both follows
the number of cores that are really there for us; with idle cores on the machine it grows again.
No result depends on the number of threads, so it may change at any time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: Time [s] between two looks.
INTERVAL = 0.25
#: Rounds until the first look.
FIRST_ROUNDS = 64
#: A share of a core that is missing and does not count: all machines have other things to do.
SMALL = 0.25
#: Where threads run for less than this share of the time, they are too many by far.
CROWDED = 0.6
#: A core counts as idle if so much of it is.
IDLE = 0.75


@dataclass(frozen=True)
class Reading:
    """What the system counted so far [s]."""

    thread: dict[int, tuple[float, float]]      # each of this process: it ran, it waited for a core
    idle: float                                 # all cores that this process may use

    def since(self, before: Reading) -> tuple[float, float, float]:
        """Return what threads ran and waited and cores idled [s]; threads come and go."""
        ran = waited = 0.0
        for number, (running, waiting) in self.thread.items():
            earlier = before.thread.get(number, (0.0, 0.0))
            ran, waited = ran + running - earlier[0], waited + waiting - earlier[1]
        return ran, waited, self.idle - before.idle


class Share:
    """The number of threads for the next kernels, ``most`` at first."""

    def __init__(self, most: int, read: Callable[[], Reading | None] | None = None,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.most = self.threads = most
        self._read, self._clock = read or read_system, clock
        self._looked, self._pace = clock(), INTERVAL / FIRST_ROUNDS
        self._last = self._read() if most > 1 else None

    def run(self, rounds: int, run: Callable[[int, int], int]) -> int:
        """Run rounds of kernels by ``run(threads, rounds)`` and return how many were run.

        They are run some at a time, for a look in between; fewer than asked for end it.
        """
        done = 0
        while done < rounds:
            some = min(rounds - done, max(1, int(INTERVAL / max(self._pace, 1e-9))))
            threads, begun = self.look(), self._clock()
            ran = run(threads, some)
            if ran < some:
                return ran if ran < 0 else done + ran
            self._pace = (self._clock() - begun) / some
            done += some
        return done

    def look(self) -> int:
        """Return how many threads to use, from what happened since the last look."""
        now = self._clock()
        if self._last is None or now - self._looked < INTERVAL:
            return self.threads
        reading = self._read()
        if reading is not None:
            self.threads = self._choose(self._last, reading, now - self._looked)
        self._last, self._looked = reading, now
        return self.threads

    def _choose(self, before: Reading, after: Reading, duration: float) -> int:
        ran, waited, idle = after.since(before)
        if ran + waited < 0.5 * duration:
            return self.threads         # it was busy with other things than kernels
        share = ran / (ran + waited)
        got = self.threads * share
        # Others take what we leave, so that more would be missing at each look: once is enough,
        # unless threads still wait for most of the time.
        if got < self.threads - SMALL and (self.threads == self.most or share < CROWDED):
            return max(1, int(got + SMALL))
        free = int(idle / duration + 1.0 - IDLE)
        return min(self.most, self.threads + free)


def read_system() -> Reading | None:
    """Return what Linux counts, or None where it does not."""
    try:
        thread = {}
        for task in Path("/proc/self/task").iterdir():
            words = (task / "schedstat").read_text(encoding="ascii").split()
            thread[int(task.name)] = 1e-9 * int(words[0]), 1e-9 * int(words[1])
        cores = os.sched_getaffinity(0)
        ticks = 0
        with open("/proc/stat", encoding="ascii") as lines:
            for line in lines:
                name, *counts = line.split()
                if name.startswith("cpu") and name != "cpu" and int(name[3:]) in cores:
                    ticks += int(counts[3]) + int(counts[4])
        return Reading(thread, ticks / os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError, AttributeError):
        return None
