"""The numbers of a simulation over time, ``sim/diagnostics.csv``: one row a step it is sampled.

The file is rewritten whole, so that a resumed run has no row twice and none of a run it forgot.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vfx.pipeline.cache import publish_bytes

FILE_NAME = "diagnostics.csv"
_STEP = "step"


class DiagnosticsTable:
    """Rows of named numbers by step."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME
        self._rows: dict[int, dict[str, str]] = {}

    def keep_until(self, step: int) -> None:
        """Take over the rows up to ``step`` of the file there is; unreadable ones are dropped."""
        self._rows.clear()
        try:
            text = self._path.read_text(encoding="utf-8")
            rows = list(csv.DictReader(io.StringIO(text)))
        except (OSError, UnicodeDecodeError, csv.Error):
            return
        for row in rows:
            number = row.get(_STEP) or ""
            whole = None not in row and None not in row.values()
            if whole and number.isdecimal() and int(number) <= step:
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

    def publish(self) -> None:
        """Write the table to its file."""
        text = io.StringIO()
        writer = csv.DictWriter(text, [_STEP, *self._names()], lineterminator="\n")
        writer.writeheader()
        for step in sorted(self._rows):
            writer.writerow({_STEP: step, **self._rows[step]})
        publish_bytes(self._path, text.getvalue().encode())

    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self._rows.values() for name in row))


def _as_number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return float("nan")
