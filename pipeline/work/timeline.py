"""The events of a simulation, ``sim/timeline.csv``: who went over to which solver, when and why.

Like the history (:mod:`vfx.pipeline.work.diagnostics`) the file is rewritten whole from what
checkpoints carry, so that a resumed run has no event twice and none of a run it forgot.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vfx.pipeline.work.cache import Published, publish_bytes
from vfx.pipeline.work.seal import read_regular
from vfx.sim.solver import IN_BONDS, RIGID_AGAIN, Event

FILE_NAME = "timeline.csv"
_FIELDS = [field.name for field in dataclasses.fields(Event)]


class Timeline:
    """Events in the order in which they were told."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE_NAME
        self.events: list[Event] = []

    def read(self) -> None:
        """Take the events of the file there is; what cannot be read is none."""
        try:
            self.take(read_regular(self.path).decode("utf-8"))
        except (OSError, UnicodeDecodeError):
            self.events = []

    def take(self, text: str) -> None:
        """Take the events of a table as :meth:`text` gave it."""
        try:
            rows = list(csv.DictReader(io.StringIO(text)))
        except csv.Error:
            rows = []
        self.events = [event for row in rows if (event := _event(row)) is not None]

    def add(self, events: Iterable[Event]) -> None:
        """Add events."""
        self.events += events

    def publish(self) -> Published:
        """Write the events to their file."""
        return publish_bytes(self.path, self.text().encode())

    def text(self) -> str:
        """Return the events as the file has them."""
        text = io.StringIO()
        writer = csv.DictWriter(text, _FIELDS, lineterminator="\n")
        writer.writeheader()
        for event in self.events:
            writer.writerow({name: repr(value) if isinstance(value, float) else value
                             for name, value in dataclasses.asdict(event).items()})
        return text.getvalue()


@dataclass(frozen=True)
class Impact:
    """From when to when [s] something was in bonds, and how many elements in the end."""

    first: float
    last: float
    elements: int


def impacts(events: Iterable[Event], end: float) -> list[Impact]:
    """Return the impacts of a timeline; one that is not over lasts to the end [s]."""
    found: list[Impact] = []
    entered: list[Event] = []
    for event in events:
        if event.what == IN_BONDS:
            entered.append(event)
        elif event.what == RIGID_AGAIN and entered:
            found.append(_impact(entered, event.time))
            entered = []
    return [*found, _impact(entered, end)] if entered else found


def _impact(entered: list[Event], end: float) -> Impact:
    """Return the impact of pieces that came in one after the other."""
    first = entered[0].time
    return Impact(first, max(first, end), sum(event.elements for event in entered))


def _event(row: dict[str, str]) -> Event | None:
    """Return the event of a row, None where it is none."""
    try:
        event = Event(
            time=float(row["time"]), what=row["what"], who=row["who"], why=row["why"],
            pieces=int(row["pieces"]), elements=int(row["elements"]),
            energy_lost=float(row["energy_lost"]))
    except (KeyError, TypeError, ValueError):
        return None
    is_whole = None not in (event.what, event.who, event.why)
    return event if is_whole and math.isfinite(event.time) else None
