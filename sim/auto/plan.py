"""What a schedule will need: the bonds of an impact, and a guess at how many steps it takes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from vfx.geometry.handoff.bodies import Body
from vfx.sim.auto.clock import FINE, Ticks, make_ticks
from vfx.sim.auto.impact import wave_speed
from vfx.sim.auto.settings import AutoSettings, PlannedAuto
from vfx.sim.bonds.clock import exact_step
from vfx.sim.bonds.plan import Plan as BondPlan
from vfx.sim.bonds.plan import make_plan as plan_bonds
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.rigid.plan import rigid_complaint, ticks_text
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.settings import Complaint
from vfx.sim.solver import Clock, Setup

#: Bytes of the engine a piece, hulls and contacts included.
BYTES_A_PIECE = 8_000
#: Elements a piece, as vases and plates leave them; most of the pieces are debris.
ELEMENTS_A_PIECE = 10
#: Seconds of the engine a tick and piece that is awake, on two cores: piles cost more than flight.
SECONDS_A_PIECE = 7e-6
#: Impacts that an estimate takes for granted, each as long as the longest may be, with all that may
#: break in it. The shots that come with the package take 0.8 (wall), 1.3 (vase_drop_small) and 2.1
#: (marbles) of them: most windows are of few elements, and then there are more of them.
EXPECTED_IMPACTS = 2


@dataclass(frozen=True)
class AutoPlan:
    """The whole shot, by what its windows of bonds need."""

    setup: Setup[AutoSettings]
    bonds: BondPlan
    rigid: RigidSettings

    @property
    def settings(self) -> PlannedAuto:
        """The shot's settings, with those of both rooms."""
        own = {field.name: getattr(self.setup.settings, field.name)
               for field in dataclasses.fields(AutoSettings)}
        return PlannedAuto(**own, bonds=self.bonds.settings, rigid=self.rigid)

    @property
    def ticks(self) -> Ticks:
        """The clock of the shot."""
        return make_ticks(self.rigid.timestep, exact_step(self.bonds.settings.timestep))

    @property
    def frame_time(self) -> float:
        """Simulated time [s] from frame to frame."""
        return self.setup.clock.frame_time or 1.0 / self.setup.clock.fps

    @property
    def memory(self) -> int:
        """Bytes of memory of the whole process at the peak, an estimate from above."""
        return self.bonds.memory + BYTES_A_PIECE * self.n_pieces

    @property
    def n_pieces(self) -> int:
        """About how many pieces there will be."""
        breaks = any(not plan.body.whole for plan in self.bonds.bodies)
        return max(len(self.bonds.bodies),
                   self.bonds.n_particles // ELEMENTS_A_PIECE if breaks else 0)

    def complaint(self) -> Complaint | None:
        """Return why it cannot run, or None."""
        return rigid_complaint(self.setup) or self.bonds.complaint()

    def n_steps(self, time: float) -> int:
        """Return about how many steps of bonds there are to a time [s]."""
        settings = self.setup.settings
        guess = EXPECTED_IMPACTS * settings.longest_impact / self.ticks.timestep
        return min(round(guess), settings.most_steps, self.ticks.nearest(time))

    def effort(self, time: float, step: float) -> list[tuple[str, float]]:
        """Return how long the bonds of some impacts take, and the engine for what is left."""
        n_steps, ticks = self.n_steps(time), round(time / self.ticks.tick)
        settings = self.setup.settings
        most = min(settings.most_steps, self.ticks.nearest(time)) / max(n_steps, 1)
        range_text = (f"; from a third of it to {most:.2g} times, which most_steps allows"
                      if most > 1.05 else "")
        return [(f"{n_steps:,} steps of bonds with everything in them, as {EXPECTED_IMPACTS} "
                 f"impacts of {1e3 * settings.longest_impact:.3g} ms take, or more steps with less "
                 f"in them{range_text}", n_steps * step),
                (f"{ticks:,} ticks of the engine with about {self.n_pieces:,} pieces",
                 SECONDS_A_PIECE * self.n_pieces * ticks)]

    def time_text(self) -> str:
        """Return what a frame is made of."""
        return ticks_text(self.setup.clock, self.frame_time, self.ticks.tick)

    def body_text(self, number: int) -> str:
        """Return what a body comes to, and from which speed on hits may break it."""
        text, plan = self.bonds.body_text(number), self.bonds.bodies[number]
        if plan.body.whole:
            return text
        settings, material = self.setup.settings, self.setup.materials[plan.body.material]
        if not isinstance(settings.impact_speed, str):
            return f"{text}; hits are tried out with bonds from {settings.impact_speed:g} m/s on"
        speed = wave_speed(material) * plan.strain_limit / settings.caution
        weak = (", its weakest places from less"
                if material.strain_scatter or self.setup.weakening else "")
        return f"{text}; hits are tried out with bonds from about {speed:.2g} m/s on{weak}"

    def body_lines(self, number: int) -> list[str]:
        """Return what else is to be known of a body."""
        return self.bonds.body_lines(number)

    def warnings(self) -> list[str]:
        """Return what will not come out as a person expects."""
        return self.bonds.warnings()

    def lines(self) -> list[str]:
        """Return what ``vfx check`` tells of the whole."""
        settings = self.setup.settings
        ticks = self.ticks
        return [f"rigid in ticks of {1e3 * ticks.tick:.4g} ms; impacts with bonds, in steps of "
                f"{ticks.timestep:.4g} s",
                f"an impact takes at most {1e3 * settings.longest_impact:.3g} ms, "
                f"{round(settings.longest_impact / ticks.timestep):,} steps; all together "
                f"at most {settings.most_steps:,} steps (most_steps)",
                *self.bonds.lines()]


def make_plan(setup: Setup[AutoSettings]) -> AutoPlan:
    """Work out what impacts need; the step of bonds divides the engine's fine tick."""
    bonds: BondSettings = setup.rooms["bonds"]
    rigid: RigidSettings = setup.rooms["rigid"]
    given = {field.name: getattr(setup, field.name) for field in dataclasses.fields(setup)}
    clock = Clock(fps=FINE / rigid.timestep, steps_per_frame=None, time_scale=1.0)
    return AutoPlan(setup, plan_bonds(Setup(
        **{**given, "settings": bonds, "clock": clock, "projectiles": ()}),
        left_out=[body.name for body in setup.bodies if body not in breakable(setup)]), rigid)


def breakable(setup: Setup[AutoSettings]) -> tuple[Body, ...]:
    """Return the bodies that may come to be stepped with bonds; all where none may."""
    return tuple(body for body in setup.bodies if not body.whole) or setup.bodies
