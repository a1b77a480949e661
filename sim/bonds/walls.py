"""What is to be known of bodies with thin walls: elements through them, and how they bend."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

from vfx.geometry.divide.sources import block_edges, body_size, unplaced
from vfx.geometry.divide.walls import is_wall, wall_thickness
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.bending import LARGEST_CORRECTED, bending_share
from vfx.sim.bonds.settings import BondSettings

#: Elements through a wall that bending needs.
ENOUGH = 4
#: With as many there is nothing to be told of.
MANY = 8.5
#: Fewer than this are warned of; irregular elements lie at different depths, so that a little more
#: than one already resists somewhat.
TOO_FEW = 1.25


@dataclass(frozen=True)
class Wall:
    """The thin parts of a body."""

    body: Body
    thickness: float     # [m]
    through: float       # elements

    @property
    def finer(self) -> Body:
        """The body with enough elements through its walls."""
        ratio = ENOUGH / self.through
        if self.body.is_block:
            spacing = self.thickness / ENOUGH
            cells = tuple(max(1, round(edge / spacing)) for edge in block_edges(self.body))
            return dataclasses.replace(
                self.body, cells=(cells[0], cells[1], cells[2]), spacing=spacing)
        if self.body.spacing:
            return dataclasses.replace(self.body, spacing=float(f"{self.body.spacing / ratio:.2g}"))
        return dataclasses.replace(
            self.body, elements=round(float(f"{self.body.elements * ratio**3:.2g}")))


@dataclass(frozen=True)
class Cost:
    """What a finer body would come to."""

    elements: int
    memory: int          # bytes of the whole shot
    slower: float        # times as long for the same time


def find_wall(body: Body) -> Wall | None:
    """Return the walls of a body that may bend; None if it is a chunk, or never breaks."""
    if body.whole or not is_wall(body):
        return None
    thickness, size = wall_thickness(unplaced(body)), body_size(body)
    # As many as have the volume that the elements have on average.
    through = float(min(body.cells)) if body.is_block else (
        thickness * (size.elements / size.volume) ** (1 / 3))
    return Wall(body, thickness, through)


def wall_lines(wall: Wall, settings: BondSettings, cost: Callable[[Body], Cost]) -> list[str]:
    """Return what ``vfx check`` tells of a wall with few elements through it."""
    if wall.through >= MANY:
        return []
    told = f"{_counted(wall)} through walls of {_length(wall.thickness)}{_bends(wall, settings)}"
    few = wall.through < ENOUGH - 0.5
    return [f"{told}; bending needs 3 or {ENOUGH}: {_offer(wall, cost)}" if few else told]


def wall_warnings(wall: Wall, cost: Callable[[Body], Cost]) -> list[str]:
    """Return what is wrong with a wall that is hardly thicker than an element."""
    if wall.through >= TOO_FEW:
        return []
    if wall.through < 0.75:
        wrong = (f"which is thinner than an element ({_length(wall.thickness / wall.through)}): "
                 "elements are as flat as it, bonds join them within its plane alone, and it is "
                 "shaken, torn and bent like a net, without stiffness against bending")
    else:
        resists = "does not resist" if wall.body.is_block else "hardly resists"
        wrong = (f"so it {resists} bending: it tears where it is pushed, and no crack will run "
                 "through it from a blow in its middle")
    return [f"body '{wall.body.name}' has {_counted(wall)} through its walls of "
            f"{_length(wall.thickness)}, {wrong}; use {_offer(wall, cost)}"]


def _counted(wall: Wall) -> str:
    if wall.body.is_block:
        return f"{wall.through:.0f} element{'s' if wall.through != 1.0 else ''}"
    return f"about {wall.through:.2g} elements"


def _bends(wall: Wall, settings: BondSettings) -> str:
    """Return how stiff a wall of some layers is, by that of a lattice as fine."""
    layers = round(wall.through)
    if layers < 2:
        return f", which have {'no' if wall.body.is_block else 'little'} stiffness against bending"
    size = body_size(wall.body)
    # The horizon in elements as large as the mean one.
    horizon = settings.horizon if wall.body.is_block else max(1.0, float(
        f"{settings.horizon * size.spacing * (size.elements / size.volume) ** (1 / 3):.2g}"))
    share = bending_share(layers, horizon, settings.edge_volume,
                          corrected=settings.surface_correction and horizon <= LARGEST_CORRECTED)
    about = "" if wall.body.is_block else "about "
    text = f", which bend at {about}{share:.2f} of their stiffness"
    if settings.surface_correction or horizon > LARGEST_CORRECTED:
        return text
    better = bending_share(layers, horizon, settings.edge_volume, corrected=True)
    return f"{text} ({better:.2f} with surface_correction = true)"


def _offer(wall: Wall, cost: Callable[[Body], Cost]) -> str:
    """Return what to write for enough elements, and what that takes."""
    finer = wall.finer
    if finer.is_block:
        write = f"cells = {list(finer.cells)}, spacing = {finer.spacing:.4g}"
    else:
        write = (f"spacing = {finer.spacing:g}" if finer.spacing else
                 f"elements = {finer.elements}")
    try:
        found = cost(finer)
    except (ArithmeticError, ValueError):
        return write
    return (f"{write} ({ENOUGH} through the wall: {found.elements:,} elements, "
            f"{found.memory / 1e9:.2g} GB, {found.slower:.3g} times as long)")


def _length(length: float) -> str:
    """Return a length in millimetres, or metres where it is long."""
    return f"{1e3 * length:.3g} mm" if length < 0.1 else f"{length:.3g} m"
