"""Checkpoints of a simulation.

Two files in turn, so that a crash while writing one loses nothing but the time since the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.pipeline.errors import DamagedFile, MissingInput
from vfx.pipeline.work.cache import FINGERPRINT, Arrays, is_whole, read_npz, write_npz

FILES = ("checkpoint.a.npz", "checkpoint.b.npz")
_STEP = "pipeline_step"
_TIME = "pipeline_time"
_HISTORY = "pipeline_history"
_TIMELINE = "pipeline_timeline"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a simulation at a time [s], as it gave it; history and events so far."""

    time: float
    step: int               # done by then
    state: Arrays
    history: str
    timeline: str = ""


def damaged_checkpoints(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder that are there but not whole."""
    return [path for name in FILES if (path := folder / name).exists() and not is_whole(path)]


class CheckpointPair:
    """The two checkpoint files of a folder, for one fingerprint."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self._paths = [folder / name for name in FILES]
        self._fingerprint = fingerprint
        self._next = 0
        self.damaged: list[str] = []

    def save(self, checkpoint: Checkpoint) -> None:
        """Publish a checkpoint over the older of the two."""
        write_npz(self._paths[self._next], {
            **checkpoint.state, FINGERPRINT: np.array(self._fingerprint),
            _TIME: np.array(checkpoint.time), _STEP: np.array(checkpoint.step, np.int64),
            _HISTORY: np.frombuffer(checkpoint.history.encode(), np.uint8),
            _TIMELINE: np.frombuffer(checkpoint.timeline.encode(), np.uint8)})
        self._next = 1 - self._next

    def newest_first(self, until: float) -> Iterator[Checkpoint]:
        """Yield the checkpoints of this fingerprint not beyond ``until`` [s], latest first.

        Damaged ones are named in ``damaged``; the next save goes over the file that is not the
        last one yielded.
        """
        self.damaged = []
        found: list[tuple[float, int]] = []
        for i, path in enumerate(self._paths):
            with self._noting_damage(path):
                if str(read_npz(path, [FINGERPRINT])[FINGERPRINT]) != self._fingerprint:
                    continue
                time = float(read_npz(path, [_TIME])[_TIME])
                if time <= until:
                    found.append((time, i))
        for time, i in sorted(found, reverse=True):
            with self._noting_damage(self._paths[i]):
                state = read_npz(self._paths[i])
                if state.pop(FINGERPRINT, None) is None:
                    raise DamagedFile(f"{self._paths[i]}: damaged: its seal is gone")
                del state[_TIME]
                step = int(state.pop(_STEP))
                history = state.pop(_HISTORY).tobytes().decode()
                # Checkpoints of before there were events have none.
                timeline = state.pop(_TIMELINE, np.zeros(0, np.uint8)).tobytes().decode()
                self._next = 1 - i
                yield Checkpoint(time, step, state, history, timeline)

    @contextmanager
    def _noting_damage(self, path: Path) -> Iterator[None]:
        try:
            yield
        except MissingInput:
            pass
        except DamagedFile:
            self.damaged.append(str(path))
