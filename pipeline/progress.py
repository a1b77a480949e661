"""What a run tells while it runs: bars on a terminal, flushed lines in a log; and its stopping.

Lines read ``sim 1003: 42% done``, which farm managers look for; under OpenJD a line
``openjd_progress: 42`` goes with each.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from tqdm import tqdm

from vfx.pipeline.errors import Stopped

_LINE_SECONDS = 10.0
_LINE_PERCENT = 10


class Progress:
    """Tells how far a stage is; ``fraction`` of the whole stage from 0 to 1."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._openjd = any(name.startswith("OPENJD") for name in os.environ)
        self._is_terminal = sys.stderr.isatty() and not self._openjd
        self._bar: tqdm[None] | None = None
        self._stage = ""
        self._last_time = 0.0
        self._last_percent = -1

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show progress of a stage while the block runs."""
        self._stage = name
        self._last_time, self._last_percent = time.monotonic(), -1
        if self._is_terminal and not self._quiet:
            self._bar = tqdm(total=100.0, desc=name, bar_format="{desc:24s} {percentage:3.0f}% "
                             "|{bar}| {elapsed}<{remaining}", leave=False)
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def update(self, frame: int, fraction: float, note: str = "") -> None:
        """Tell that the stage, now at ``frame``, is done to ``fraction``."""
        if self._quiet:
            return
        percent = int(100.0 * min(max(fraction, 0.0), 1.0))
        if self._bar is not None:
            self._bar.set_description_str(f"{self._stage} {frame}{note}", refresh=False)
            self._bar.update(100.0 * fraction - self._bar.n)
            return
        now = time.monotonic()
        due = now - self._last_time >= _LINE_SECONDS and percent > self._last_percent
        if not due and percent < self._last_percent + _LINE_PERCENT and percent < 100:
            return
        if percent == self._last_percent:
            return
        self._last_time, self._last_percent = now, percent
        print(f"{self._stage} {frame}: {percent}% done{note}", flush=True)
        if self._openjd:
            print(f"openjd_progress: {percent}", flush=True)

    def say(self, text: str) -> None:
        """Print a line about the run, above any bar."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.write(text)
        else:
            print(text, flush=True)


class StopSignals:
    """Remembers SIGTERM and SIGINT, so that work ends at a point where nothing is lost.

    A second SIGINT ends at once.
    """

    def __init__(self) -> None:
        self._caught: int | None = None

    @contextmanager
    def caught(self) -> Iterator[StopSignals]:
        """Catch the two signals while the block runs."""
        previous = {number: signal.signal(number, self._catch)
                    for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield self
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @property
    def wanted(self) -> bool:
        """Whether the run was asked to end."""
        return self._caught is not None

    def check(self) -> None:
        """Raise Stopped if the run was asked to end."""
        if self._caught is not None:
            name = signal.Signals(self._caught).name
            raise Stopped(f"stopped by {name}; what is done is kept, run again to go on",
                          128 + self._caught)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        if self._caught == signal.SIGINT == number:
            raise KeyboardInterrupt
        self._caught = number
