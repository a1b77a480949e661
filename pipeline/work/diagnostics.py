"""The numbers of a simulation over time, ``sim/diagnostics.csv``: one row a step it is sampled.

The file is rewritten whole from rows that checkpoints carry, so that a resumed run has no row
twice and none of a run it forgot, whatever became of the file.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vfx.pipeline.work.cache import Published, publish_bytes
from vfx.pipeline.work.seal import read_regular

FILE_NAME = "diagnostics.csv"
_STEP, _TIME = "step", "time"


class DiagnosticsTable:
    """Rows of named numbers by step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        #: By step and time [s]: a solver may have several samples between two of its steps.
        self._rows: dict[tuple[int, float], dict[str, str]] = {}

    def read(self) -> None:
        """Take the rows of the file there is; what cannot be read is no row."""
        try:
            self.take(read_regular(self.path).decode("utf-8"))
        except (OSError, UnicodeDecodeError):
            self._rows.clear()

    def take(self, text: str) -> None:
        """Take the rows of a table as :meth:`text` gave it."""
        self._rows.clear()
        try:
            rows = list(csv.DictReader(io.StringIO(text)))
        except csv.Error:
            return
        for row in rows:
            number = row.get(_STEP) or ""
            if None not in row and None not in row.values() and number.isdecimal():
                self._rows[_key(int(number), _as_number(row.get(_TIME)))] = {
                    key: row[key] for key in row if key != _STEP}

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Set the row of a step and its time."""
        self._rows[_key(step, numbers.get(_TIME, math.nan))] = {
            key: str(value) if isinstance(value, int) else repr(float(value))
            for key, value in numbers.items() if key != _STEP}

    def latest(self, name: str) -> float | None:
        """Return the newest value of a column, or None if it has none."""
        for key in sorted(self._rows, reverse=True):
            if value := self._rows[key].get(name):
                return _as_number(value)
        return None

    def columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the columns by name, in order of the steps, NaN where a row has no value."""
        keys = sorted(self._rows)
        columns = {_STEP: np.array([step for step, _ in keys], np.float64)}
        for name in self._names():
            columns[name] = np.array([_as_number(self._rows[key].get(name)) for key in keys])
        return columns

    def publish(self) -> Published:
        """Write the table to its file."""
        return publish_bytes(self.path, self.text().encode())

    def text(self) -> str:
        """Return the table as the file has it."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [_STEP, *self._names()], lineterminator="\n")
        writer.writeheader()
        for key in sorted(self._rows):
            writer.writerow({_STEP: key[0], **self._rows[key]})
        return text.getvalue()

    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self._rows.values() for name in row))


def _key(step: int, time: float) -> tuple[int, float]:
    """Return what a row is known by; without a time, its step alone."""
    return step, time if math.isfinite(time) else 0.0


def _as_number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
