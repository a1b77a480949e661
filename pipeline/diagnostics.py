"""The numbers of a simulation over time, ``sim/diagnostics.csv``: one row a step it is sampled.

The file is rewritten whole, so that a resumed run has no row twice and none of a run it forgot.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path

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

    def publish(self) -> None:
        """Write the table to its file."""
        names = list(dict.fromkeys(name for row in self._rows.values() for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, [_STEP, *names], lineterminator="\n")
        writer.writeheader()
        for step in sorted(self._rows):
            writer.writerow({_STEP: step, **self._rows[step]})
        publish_bytes(self._path, text.getvalue().encode())
