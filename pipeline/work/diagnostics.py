"""The numbers of a simulation over time, ``sim/diagnostics.csv``: one row a step it is sampled.

The file is rewritten whole from rows that checkpoints carry, so that a resumed run has no row
twice and none of a run it forgot, whatever became of the file.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vfx.pipeline.work.cache import Published, publish_bytes
from vfx.pipeline.work.seal import read_regular

FILE_NAME = "diagnostics.csv"
_STEP = "step"


class DiagnosticsTable:
    """Rows of named numbers by step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self._rows: dict[int, dict[str, str]] = {}

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
                self._rows[int(number)] = {key: row[key] for key in row if key != _STEP}

    def add(self, step: int, numbers: Mapping[str, float]) -> None:
        """Set the row of a step."""
        self._rows[step] = {
            key: str(value) if isinstance(value, int) else repr(float(value))
            for key, value in numbers.items() if key != _STEP}

    def latest(self, name: str) -> float | None:
        """Return the newest value of a column, or None if it has none."""
        for step in sorted(self._rows, reverse=True):
            if value := self._rows[step].get(name):
                return _as_number(value)
        return None

    def columns(self) -> dict[str, npt.NDArray[np.float64]]:
        """Return the columns by name, in order of the steps, NaN where a row has no value."""
        steps = sorted(self._rows)
        columns = {_STEP: np.array(steps, np.float64)}
        for name in self._names():
            columns[name] = np.array([_as_number(self._rows[step].get(name)) for step in steps])
        return columns

    def publish(self) -> Published:
        """Write the table to its file."""
        return publish_bytes(self.path, self.text().encode())

    def text(self) -> str:
        """Return the table as the file has it."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [_STEP, *self._names()], lineterminator="\n")
        writer.writeheader()
        for step in sorted(self._rows):
            writer.writerow({_STEP: step, **self._rows[step]})
        return text.getvalue()

    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self._rows.values() for name in row))


def _as_number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
