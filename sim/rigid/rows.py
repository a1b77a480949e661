"""What is known of each rigid body, a row each; rows are never reused."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid.engine import Frame


def _column(*shape: int, dtype: Any = np.float64, default: float = 0.0) -> Any:
    """Declare a column without rows; new rows have the default."""
    return field(default_factory=lambda: np.zeros((0, *shape), dtype),
                 metadata={"default": default})


@dataclass
class Rows:
    """Columns of all bodies that ever were; double precision."""

    # Constant.
    mass: Array = _column()                 # [kg]
    tensor: Array = _column(3, 3)           # [kg m^2] at rest, about the centre
    moment: Array = _column(3)              # [kg m^2]: principal moments
    axes: Array = _column(4)                # quaternion: rest from principal axes
    rest_center: Array = _column(3)         # [m]
    size: Array = _column()                 # [m]: reach from the centre
    ball: Array = _column()                 # [m]: radius of what is a ball to the engine, or 0
    falls: Array = _column(dtype=bool)
    crumb: Array = _column(dtype=bool)      # a piece of few elements that broke off something
    drag: Array = _column()                 # [1/m]: share of its speed that air takes on its way
    # Where it is; exact in flight.
    center: Array = _column(3)              # [m]
    turn: Array = _column(4)                # quaternion xyzw: world from rest
    velocity: Array = _column(3)            # [m/s]
    spin: Array = _column(3)                # [rad/s]
    # Where the engine has it.
    engine_center: Array = _column(3)
    engine_turn: Array = _column(4)
    engine_velocity: Array = _column(3)
    engine_spin: Array = _column(3)
    # What happens to it.
    alive: Array = _column(dtype=bool, default=1.0)
    flying: Array = _column(dtype=bool)                 # nothing but gravity acts on it
    until: Array = _column(default=-math.inf)           # [s]: held or driven until then
    course: Array = _column(dtype=np.int64, default=-1) # the animation that moves it until then
    still: Array = _column()                            # [s]: so long slow and in contact
    calmed: Array = _column(dtype=bool)                 # the engine damps it
    foreseen: Array = _column()                         # [m]: how far ahead contacts are sought
    least_hit: Array = _column(default=math.inf)        # [m/s]: slower hits are not told

    def __len__(self) -> int:
        return len(self.mass)

    def append(self, count: int, **given: Array) -> Array:
        """Add rows, by what is given and defaults, and return their numbers, (count,)."""
        first = len(self)
        for each in dataclasses.fields(self):
            column = getattr(self, each.name)
            new = np.full((count, *column.shape[1:]), each.metadata["default"], column.dtype)
            if each.name in given:
                new[...] = given[each.name]
            setattr(self, each.name, np.concatenate([column, new]))
        return np.arange(first, first + count)

    def frame(self, which: Any) -> Frame:
        """Return where some rows are, for the engine."""
        return Frame(self.center[which], self.turn[which], self.velocity[which], self.spin[which])

    def note_engine(self, which: Array, frame: Frame) -> None:
        """Keep what the engine has of some rows."""
        self.engine_center[which], self.engine_turn[which] = frame.center, frame.orientation
        self.engine_velocity[which], self.engine_spin[which] = frame.velocity, frame.spin

    def arrays(self) -> dict[str, Array]:
        """Return all columns by name; copies."""
        return {each.name: getattr(self, each.name).copy() for each in dataclasses.fields(self)}

    @classmethod
    def of(cls, arrays: Mapping[str, Array]) -> Rows:
        """Return rows from their columns; raises ValueError where they do not fit."""
        made = cls()
        count = None
        for each in dataclasses.fields(cls):
            blank = getattr(made, each.name)
            column = arrays.get(each.name)
            if column is None or column.dtype != blank.dtype or column.shape[1:] != blank.shape[1:]:
                raise ValueError(f"the column {each.name} of the bodies is missing or no such one")
            count = len(column) if count is None else count
            if len(column) != count:
                raise ValueError(f"the column {each.name} has {len(column)} rows, not {count}")
            setattr(made, each.name, np.array(column))
        return made
