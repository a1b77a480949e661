"""What a shot says about the schedule, ``[sim.auto]``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from vfx.geometry.handoff.schema import setting
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.rigid.settings import RigidSettings


@dataclass(frozen=True)
class AutoSettings:
    """Fall, break, scatter, settle: what `method = "auto"` takes.

    Bodies are rigid until something hits them hard enough to break them; for the milliseconds
    of such an impact they are made of bonds, and their pieces are rigid again. What these two take
    stands in `[sim.rigid]` and `[sim.bonds]`.
    """

    impact_speed: float | Literal["auto"] = setting(
        "auto", "Speed of a hit from which bonds take over; \"auto\" works it out from stiffness, "
        "density and strain limit of what is hit.", unit="m/s", above=0.0, at_most=1e6)
    caution: float = setting(
        4.0, "How far below the speed that breaks a bar end-on, c times the strain limit, hits "
        "are tried out with bonds where impact_speed is \"auto\".", at_least=0.1, at_most=1e3)
    least_mass: float = setting(
        0.02, "Pieces with a smaller share of their body's mass do not break again.",
        at_least=0.0, at_most=1.0)
    quiet_time: float = setting(
        4e-4, "An impact is over when for so long, and for as long as sound takes through a body "
        "twice, less than a hundredth of what it has broken in all has broken.", unit="s",
        at_least=1e-7, at_most=10.0)
    pause: float = setting(
        0.01, "Pieces of an impact do not break again for so long: what they still do to one "
        "another is a part of it.", unit="s", at_least=0.0, at_most=1e3)
    longest_impact: float = setting(
        5e-3, "An impact is over after this time, whatever happens.", unit="s",
        at_least=1e-6, at_most=100.0)
    most_steps: int = setting(
        40_000, "Steps of bonds that a shot may take; hits after that break nothing, and are "
        "said.", at_least=0, at_most=10**9)


@dataclass(frozen=True)
class PlannedAuto(AutoSettings):
    """The same, with the settings of both rooms, and numbers where the shot says "auto"."""

    bonds: BondSettings = field(default_factory=BondSettings, kw_only=True)
    rigid: RigidSettings = field(default_factory=RigidSettings, kw_only=True)
