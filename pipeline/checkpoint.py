"""Checkpoints of a simulation.

Two files in turn, so that a crash while writing one loses nothing but the time since the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.pipeline.cache import FINGERPRINT, Arrays, is_whole, read_npz, write_npz
from vfx.pipeline.errors import DamagedFile, MissingInput

FILES = ("checkpoint.a.npz", "checkpoint.b.npz")
_STEP = "pipeline_step"


@dataclass(frozen=True)
class Checkpoint:
    """The state of a simulation after ``step`` steps, as it gave it."""

    step: int
    state: Arrays


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

    def save(self, step: int, state: Arrays) -> None:
        """Publish a checkpoint over the older of the two."""
        arrays = dict(state)
        arrays[FINGERPRINT] = np.array(self._fingerprint)
        arrays[_STEP] = np.array(step, np.int64)
        write_npz(self._paths[self._next], arrays)
        self._next = 1 - self._next

    def newest(self, until: int) -> Checkpoint | None:
        """Return the latest whole checkpoint of this fingerprint that is not beyond ``until``.

        Damaged ones are named in ``damaged``; the next save goes over the other file.
        """
        best: Checkpoint | None = None
        self.damaged = []
        for i, path in enumerate(self._paths):
            try:
                arrays = read_npz(path)
                fingerprint, step = str(arrays.pop(FINGERPRINT)), int(arrays.pop(_STEP))
            except MissingInput:
                continue
            except (DamagedFile, KeyError, TypeError, ValueError):
                self.damaged.append(str(path))
                continue
            if fingerprint != self._fingerprint or step > until:
                continue
            if best is None or step > best.step:
                best = Checkpoint(step, arrays)
                self._next = 1 - i
        return best

    def remove(self) -> None:
        """Remove both files."""
        for path in self._paths:
            path.unlink(missing_ok=True)
