"""The table of solvers, by the word that `method` in ``[sim]`` says. Only this names the rooms.

To add one: a package ``sim/<room>`` with a :class:`vfx.sim.solver.Room`, and a row here. The
section ``[sim.<room>]`` of shot files, its reference and its fingerprints follow from the row.
"""

from __future__ import annotations

from dataclasses import dataclass

from vfx.geometry.handoff.schema import setting
from vfx.sim.auto.room import ROOM as AUTO
from vfx.sim.bonds.room import ROOM as BONDS
from vfx.sim.rigid.room import ROOM as RIGID
from vfx.sim.settings import Shared
from vfx.sim.solver import AnyRoom

SOLVERS: dict[str, AnyRoom] = {"bonds": BONDS, "rigid": RIGID, "auto": AUTO}


@dataclass(frozen=True)
class Sim(Shared):
    """How bodies move and break: the solver, and what all solvers share.

    What a solver alone takes stands in a section of its own, `[sim.<method>]`.
    """

    method: str = setting("bonds", "The solver, by its name.", choices=SOLVERS)
