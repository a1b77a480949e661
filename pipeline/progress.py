"""What a run tells while it runs: bars on a terminal, flushed lines in a log; and its stopping.

Lines read ``sim 1003: 42% done, 312 steps/s, …, 0:03:12 left``; farm managers look for
``42% done``. Under OpenJD a line ``openjd_progress: 42`` goes with each. The same lines go,
with the time, the host and the process, to a log a stage in the work folder.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from tqdm import tqdm

from vfx.pipeline.errors import Stopped, StorageError, printable
from vfx.pipeline.quantities import as_clock
from vfx.pipeline.streams import tell
from vfx.pipeline.work.cache import open_own, storage_errors

_LINE_SECONDS = 10.0                 # between lines while the percentage rises
_LINE_PERCENT = 10                   # or when it rose by this, however soon
_IDLE_SECONDS = 60.0                 # between lines while it does not rise
_PACE_SECONDS = 30.0                 # the pace is that of so long a time

LOG_FOLDER = "logs"
TIMINGS_FILE = "timings.jsonl"
BEGUN = "begun"                      # how a row of timings says that its run has no end yet


class Pace:
    """How fast something gets done, looking back a short while: what was resumed is no pace."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float]] = deque()

    def note(self, done: float) -> None:
        """Note that so much is done now."""
        now = time.monotonic()
        self._seen.append((now, done))
        while len(self._seen) > 2 and now - self._seen[1][0] > _PACE_SECONDS:
            self._seen.popleft()

    @property
    def rate(self) -> float:
        """What gets done a second; 0 while that is unknown."""
        if not self._seen:
            return 0.0
        (first, before), (last, done) = self._seen[0], self._seen[-1]
        return max(0.0, done - before) / (last - first) if last > first else 0.0


class Progress:
    """Tells how far a stage is; ``fraction`` of the whole stage from 0 to 1."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet
        self._openjd = any(name.startswith("OPENJD") for name in os.environ)
        self._is_terminal = _has_room_for_a_bar() and not self._openjd
        self._bar: tqdm[None] | None = None
        self._stage = ""
        self._pace = Pace()
        self._last_time = 0.0
        self._last_percent = -1
        self._logs: Path | None = None
        self._log_name = ""

    def log_to(self, work_folder: Path, name: str) -> None:
        """Keep what is told from now on in the log ``name`` of a work folder."""
        self._logs = work_folder / LOG_FOLDER
        self._log_name = name

    def log(self, text: str) -> None:
        """Add to the present log; a log that cannot be written stops nothing."""
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        head = f"{now} {socket.gethostname()}[{os.getpid()}] "
        self._append(f"{self._log_name}.log",
                     "".join(f"{head}{line}\n" for line in text.splitlines()))

    def note_timing(self, **facts: Any) -> None:
        """Add a line of JSON to the timings of the shot."""
        self._append(TIMINGS_FILE, json.dumps(facts) + "\n")

    def _append(self, name: str, text: str) -> None:
        if self._logs is None:
            return
        path = self._logs / name
        try:
            with storage_errors(path):
                self._logs.mkdir(parents=True, exist_ok=True)
                # One write at the end of the file: lines of several tasks do not mix.
                with open(open_own(path, os.O_WRONLY | os.O_APPEND), "wb", buffering=0) as file:
                    file.write(text.encode(errors="backslashreplace"))
        except StorageError as error:
            self._logs = None
            self.say(f"warning: no more logs are kept; {error}")

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Show progress of a stage while the block runs."""
        self._stage = name
        self._pace = Pace()
        self._last_time, self._last_percent = time.monotonic(), -1
        if self._is_terminal and not self._quiet:
            self._bar = tqdm(total=100.0, desc=name, bar_format=_bar_format(""), leave=False,
                             dynamic_ncols=True)
        try:
            yield
        finally:
            if self._bar is not None:
                self._bar.close()
                self._bar = None

    def update(self, frame: int | None, fraction: float, note: str = "", *,
               is_even: bool = True) -> None:
        """Tell that the stage, now at ``frame``, is done to ``fraction``; ``note`` says more.

        A stage whose one result is of all frames gives None. Where the pace so far tells nothing
        of that to come, because it is not ``is_even``, no time left is told.
        """
        if self._quiet:
            return
        place = self._stage if frame is None else f"{self._stage} {frame}"
        fraction = min(max(fraction, 0.0), 1.0)
        self._pace.note(fraction)
        left = self._time_left(fraction) if is_even else ""
        words = [word for word in (note, left) if word]
        if self._bar is not None:
            self._bar.bar_format = _bar_format(", ".join(words))
            self._bar.set_description_str(place, refresh=False)
            self._bar.update(100.0 * fraction - self._bar.n)
        percent = int(100.0 * fraction)
        now = time.monotonic()
        waited, rose = now - self._last_time, percent - self._last_percent
        if not (rose >= _LINE_PERCENT or (rose > 0 and (waited >= _LINE_SECONDS or percent == 100))
                or (waited >= _IDLE_SECONDS and percent < 100)):
            return
        self._last_time, self._last_percent = now, percent
        line = ", ".join([f"{place}: {percent}% done", *words])
        self.log(line)
        if self._bar is not None:
            return
        tell(line)
        if self._openjd:
            tell(f"openjd_progress: {percent}")

    def _time_left(self, fraction: float) -> str:
        rate = self._pace.rate
        if rate == 0.0 or fraction == 1.0:
            return ""
        return f"{as_clock((1.0 - fraction) / rate)} left"

    def say(self, text: str) -> None:
        """Print a line about the run, above any bar."""
        text = printable(text)
        self.log(text)
        if self._quiet:
            return
        if self._bar is not None:
            with self._bar.external_write_mode():
                tell(text)
        else:
            tell(text)


def _has_room_for_a_bar() -> bool:
    """Whether messages go to a terminal that knows its size: bars do not show on others."""
    if not sys.stderr.isatty():
        return False
    try:
        size = os.get_terminal_size(sys.stderr.fileno())
    except OSError:
        return False
    return size.lines > 1 and size.columns > 0


def _bar_format(text: str) -> str:
    return f"{{desc}} {{percentage:3.0f}}% |{{bar}}| {text}".rstrip()


class StopSignals:
    """Remembers SIGTERM, SIGHUP and SIGINT, so that work ends where nothing is lost.

    A second SIGINT ends at once. A SIGHUP that is ignored, as under nohup, stays ignored.
    """

    def __init__(self) -> None:
        self._caught: int | None = None

    @contextmanager
    def caught(self) -> Iterator[StopSignals]:
        """Catch the signals while the block runs."""
        previous = {number: signal.signal(number, self._catch)
                    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
                    if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN}
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
