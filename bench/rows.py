"""The one form of every measurement, as a line of a table and as JSON.

A row says what was measured, on which case, and how many times better that is than its anchor:
a figure of the paper, another program in the same run, or what the machine can do.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vfx.pipeline.work.cache import publish_bytes


@dataclass(frozen=True)
class Row:
    """One measurement; ``ratio`` above 1 is better than the anchor."""

    case: str
    metric: str
    value: float
    unit: str
    anchor: str | None = None
    anchor_value: float | None = None
    ratio: float | None = None


def less_is_better(
    case: str, metric: str, value: float, unit: str, anchor: str, anchor_value: float
) -> Row:
    """Return the row of a cost: the ratio is anchor / value."""
    ratio = anchor_value / value if value else None
    return Row(case, metric, value, unit, anchor, anchor_value, ratio)


def more_is_better(
    case: str, metric: str, value: float, unit: str, anchor: str, anchor_value: float
) -> Row:
    """Return the row of a rate: the ratio is value / anchor."""
    ratio = value / anchor_value if anchor_value else None
    return Row(case, metric, value, unit, anchor, anchor_value, ratio)


def write_json(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows as a list of {case, metric, value, unit, anchor, anchor_value, ratio}."""
    text = json.dumps([dataclasses.asdict(row) for row in rows], indent=1) + "\n"
    publish_bytes(path, text.encode())


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines to read, grouped by their case."""
    lines: list[str] = []
    for case in dict.fromkeys(row.case for row in rows):
        lines.append(case)
        for row in (row for row in rows if row.case == case):
            line = f"  {row.metric:<28s} {figure(row.value):>12s} {row.unit:<22s}"
            if row.anchor is not None and row.anchor_value is not None:
                line += f" {row.anchor}: {figure(row.anchor_value)}"
                line += f" ({row.ratio:.3g} x)" if row.ratio is not None else ""
            lines.append(line.rstrip())
    return lines


def figure(value: float) -> str:
    """Return whole numbers in full and others with four digits."""
    return f"{int(value):,}" if float(value).is_integer() else f"{value:.4g}"
