"""The schedule: the engine moves what is whole, bonds what breaks.

Time goes in ticks of the engine. When a tick brings a hit that may break something
(:mod:`vfx.sim.auto.impact`), the pieces concerned are put back to the beginning of the tick, fly
on by themselves until just before they touch, and are tried out with bonds from there. If a bond
breaks, the engine loses them and a *window* of bonds goes on with them in their present motion;
else the tick stays as the engine made it. What is near a window is in it as props, rigid things
that its particles run into and that take the reaction. A window ends when nothing has broken for
a while; its pieces then are bodies of the engine.

Everything is counted in steps of bonds (:mod:`vfx.sim.auto.clock`); between two ticks the rigid
pieces are interpolated.
"""

from __future__ import annotations

import dataclasses
import time as computer
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array, Motion
from vfx.sim.auto.clock import Ticks, make_ticks
from vfx.sim.auto.impact import BreakingSpeed, Budget, sound_speed
from vfx.sim.auto.pieces import parts
from vfx.sim.auto.settings import AutoSettings, PlannedAuto
from vfx.sim.auto.touch import (
    MOMENTS,
    Outline,
    collider_gap,
    first_touch,
    floor_gap,
    outline,
    pair_gap,
)
from vfx.sim.auto.window import Window, matter_of, restored
from vfx.sim.bonds.clock import exact_step
from vfx.sim.bonds.room import ROOM as BONDS
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.surfaces import coefficients
from vfx.sim.rigid.fleet import Fleet
from vfx.sim.rigid.mass import element_mass
from vfx.sim.rigid.world import FEW_ELEMENTS, FLOOR, Hits
from vfx.sim.settings import Collider, Floor, Material
from vfx.sim.solver import (
    IN_BONDS,
    LEFT_OUT,
    LET_GO,
    RIGID_AGAIN,
    WITHSTOOD,
    Event,
    Matter,
    Outcome,
    Poses,
    World,
)

#: What pieces fall on.
Ground = TypeVar("Ground", Floor, Collider)
#: Lengths that sound goes in a piece until a trial says that nothing breaks.
TRIAL_TRANSITS = 6.0
#: And from its last break until a window is quiet, at least.
QUIET_TRANSITS = 2.0
#: So often in a fine tick a trial is looked at.
LOOKS = 4
#: Bodies that an event names.
MOST_NAMED = 4
#: Steps of bonds between two looks at the computer's clock, at first.
FIRST_STEPS = 16


@dataclasses.dataclass
class Trial:
    """Pieces that were hit hard, in bonds, until one of these breaks or none does."""

    ids: Array                  # (t,) the pieces
    speed: Array                # (t,) [m/s] of their hits
    lasting: Array              # (t,) [m/s] that they have survived if nothing breaks
    partner: Array              # bodies that hit them
    by: int                     # what hit the fastest: a body, the floor or a collider
    window: Window
    end: int                    # the step at which nothing will have broken
    patience: int               # so many steps after the first touch; -1 where that does not count


class AutoSolver:
    """Rigid pieces and windows of bonds behind the :class:`vfx.sim.solver.Solver` protocol."""

    def __init__(self, device: Device, world: World[AutoSettings]) -> None:
        settings = world.settings
        assert isinstance(settings, PlannedAuto), "the schedule has to be planned first"
        self._device, self._world, self._settings = device, world, settings
        self._ticks: Ticks = make_ticks(
            settings.rigid.timestep, exact_step(settings.bonds.timestep))
        self._bonds_world = _bonds_world(world, settings, self._ticks.timestep)
        solid = world.solid
        self._mass = element_mass(world)
        limit = BONDS.strain_limits(self._bonds_world)
        self._gravity = np.array(world.shared.gravity)
        self._sound = sound_speed(world)
        length = max(float(np.ptp(solid.position[solid.body == body], axis=0).max())
                     for body in range(len(solid.length_scale)))
        #: How long [s] nothing may break until a window is over.
        self._quiet = max(settings.quiet_time, QUIET_TRANSITS * length / self._sound)
        self._fleet = Fleet(world, settings.rigid, device.threads, BreakingSpeed(world, limit))
        self._outlines: dict[int, Outline] = {}
        self._window: Window | None = None
        self._trial: Trial | None = None
        self._budget = Budget(settings.most_steps)
        self._now = 0                                   # the step it is at
        self._end = 0                                   # that the engine is at
        self._dead = np.zeros((0, 2), np.int32)         # bonds that broke in windows of before
        self._broke_at = np.full(len(solid.edge), np.inf)       # [s]: when an edge broke
        self._torn = np.zeros(len(solid.edge), bool)            # whether a crack gapes there
        self._damage = np.zeros(solid.n_elements, np.float32)
        self._lost = 0.0                                # [J]: strain and vibration given up
        self._said: list[Event] = []
        self._steps_a_call = FIRST_STEPS
        self._begin()

    def _begin(self) -> None:
        """Give all bodies to the engine, in the parts that cracks cut them into."""
        solid = self._world.solid
        if len(self._world.controls.cuts):
            parted, cut = _cut_edges(self._device, self._bonds_world)
            self._broke_at[parted], self._torn[cut] = 0.0, True
        everything = np.arange(solid.n_elements)
        count, label = parts(solid, self.broken(), everything)
        self._fleet.begin(everything, label, count)

    # ------------------------------------------------------------------ time

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self._ticks.time(self._now)

    @property
    def step(self) -> int:
        """Steps of bonds that fit into the time so far."""
        return self._now

    def moment(self, time: float) -> float:
        """Return the time [s] of the step of bonds nearest to a time."""
        return self._ticks.time(self._ticks.nearest(time))

    def advance(self, until: float, seconds: float) -> Outcome:
        """Go on to the step nearest to ``until`` [s], for about ``seconds``."""
        goal, deadline = self._ticks.nearest(until), computer.monotonic() + seconds
        while self._now < goal:
            self._go_on(goal, deadline)
            if self._now < goal and computer.monotonic() > deadline:
                return Outcome.PAUSED
        return Outcome.REACHED

    def _go_on(self, goal: int, deadline: float) -> None:
        """Do the next thing on the way to a step."""
        ahead = min(goal, self._end)
        if self._trial is not None:
            self._go_on_trying(deadline)
        elif self._window is not None and self._window.step < ahead:
            self._go_on_breaking(ahead, deadline)
        elif self._now < ahead:
            self._now = ahead
        else:
            self._end_tick()
            self._begin_tick()

    def _run(self, window: Window, goal: int, deadline: float) -> None:
        """Let a window do some of the steps to a goal."""
        n_steps = max(1, min(goal - window.step, self._steps_a_call))
        begun = computer.monotonic()
        window.bonds.advance(n_steps)
        pace = (computer.monotonic() - begun) / n_steps
        left = max(deadline - computer.monotonic(), 0.05)
        self._steps_a_call = max(1, min(2 * self._steps_a_call, int(left / max(pace, 1e-9))))
        self._budget.steps += n_steps

    def _go_on_breaking(self, ahead: int, deadline: float) -> None:
        """Let the window go on; at every fine tick look whether something broke."""
        window, fine = self._window, self._ticks.steps_a_fine
        assert window is not None
        self._run(window, min(ahead, (window.step // fine + 1) * fine), deadline)
        self._now = max(self._now, window.step)
        if window.step % fine == 0 and window.look():
            self._note_broken(window)

    # ------------------------------------------------------------------ ticks

    def _begin_tick(self) -> None:
        """Let the engine go on by a tick, and look at what it hit."""
        window, start = self._window, self._now
        self._end = self._ticks.next_tick(start, fine=window is not None)
        duration = self._ticks.duration(self._end - start)
        if window is not None:
            near = window.near(self._fleet, self._fleet.after, np.zeros(0, np.int64), duration)
            window.surround(self._fleet, near, self._fleet.after.rows(self._fleet.row(near)))
        hits = self._fleet.tick(duration, self._ticks.time(self._end))
        if len(free := self._fleet.rigid.released):
            element = np.flatnonzero(np.isin(self._fleet.piece, free))
            self._tell(start, LET_GO, element, len(free), "its animation or its hold is over")
        ids, speed, lasting, by = self._struck(hits)
        age = self._fleet.end - self._fleet.born[self._fleet.row(ids)]
        due = (age >= self._settings.pause) & (not self._budget.is_spent)
        self._budget.skipped += int((~due).sum()) + self._fleet.n_spared()
        ids, speed, lasting, by = ids[due], speed[due], lasting[due], by[due]
        if not len(ids):
            return
        is_hit = np.isin(hits.first, ids) | np.isin(hits.second, ids)
        other = np.concatenate([hits.first[is_hit], hits.second[is_hit]])
        partner = np.setdiff1d(other[other >= 0], ids)
        touch = 0.0 if window is not None else self._touch(hits, is_hit, ids, duration)
        first = start + int(touch / self._ticks.timestep)
        # Elements touch by half a cell before or after the hulls do.
        late = min(float(self._world.solid.size.max()) / float(speed.min()), self._ticks.tick)
        last = self._end + round(0.5 * late / self._ticks.timestep)
        is_one = int(is_hit.sum()) == 1
        if is_one:
            last = min(last, first + round((late + duration / MOMENTS) / self._ticks.timestep))
        self._try(ids, (speed, lasting), partner, int(by[speed.argmax()]), first, last)
        assert self._trial is not None
        if not is_one or self._settings.bonds.damping > 0.0 or (
                self._world.controls.held[self._trial.window.matter.element] >= 0).any():
            self._trial.patience = -1

    def _struck(self, hits: Hits) -> tuple[Array, Array, Array, Array]:
        """Return the pieces that a hit may break, ascending, and two speeds (k,) of their hits.

        They are the fastest, and the one above which others will be worth a look if nothing
        breaks: a light partner proves little. Debris breaks nothing. Last is what hit fastest.
        """
        fleet = self._fleet
        number = np.concatenate([hits.first, hits.second])
        other = np.concatenate([hits.second, hits.first])
        speed = np.concatenate([hits.speed, hits.speed])
        debris = fleet.id[~fleet.is_large]
        which = (number >= fleet.n_props) & ~np.isin(other, debris)
        number, other, speed = number[which], other[which], speed[which]
        which = speed >= fleet.breaking[fleet.row(number)]
        number, other, speed = number[which], other[which], speed[which]
        share = np.ones(len(number))
        light = other >= 0
        share[light] = np.minimum(
            1.0, fleet.rigid.mass(other[light]) / fleet.rigid.mass(number[light]))
        # A light thing that hit as hard before proves this much: it would not break it now.
        proved = fleet.proved[fleet.row(number)]
        which = (speed > proved[:, 0]) | (share * speed > proved[:, 1])
        number, other, speed, share = number[which], other[which], speed[which], share[which]
        ids = np.unique(number)
        fastest, lasting = np.zeros((2, len(ids)))
        row = np.searchsorted(ids, number)
        np.maximum.at(fastest, row, speed)
        np.maximum.at(lasting, row, share * speed)
        by = np.zeros(len(ids), np.int64)
        order = np.argsort(speed, kind="stable")
        by[row[order]] = other[order]
        return ids, fastest, lasting, by

    def _touch(self, hits: Hits, rows: Array, ids: Array, duration: float) -> float:
        """Return a time [s] of the tick just before the first of the hits."""
        fleet, world = self._fleet, self._world
        poses, size = fleet.before, float(world.solid.size.max())
        gaps = []

        def of(number: int) -> tuple[Poses, Array]:
            ids = np.array([number])
            pose = poses.rows(fleet.row(ids))
            return pose, fleet.pull(ids, pose)[0]

        for first, second in zip(hits.first[rows].tolist(), hits.second[rows].tolist(),
                                 strict=True):
            outline, (pose, pull) = self._outline(first), of(first)
            if second == FLOOR:
                gap = floor_gap(outline, pose, world.floor.height, pull)
            elif second < 0:
                gap = collider_gap(outline, pose, world.colliders[-2 - second],
                                   fleet.start, pull)
            else:
                other, other_pull = of(second)
                gap = pair_gap(outline, pose, self._outline(second), other, pull, other_pull)
            gaps.append((gap, 0.5 * size))
        return first_touch(gaps, duration)

    def _outline(self, number: int) -> Outline:
        """Return the outline of a body; no number is given twice."""
        if number not in self._outlines:
            self._outlines[number] = outline(self._fleet.rigid.prop(number))
        return self._outlines[number]

    def _flown(self, ids: Array, step: int) -> Poses:
        """Return where bodies are at a step of the tick if nothing touches them."""
        return self._fleet.flown(ids, self._ticks.time(step) - self._fleet.start)

    # ------------------------------------------------------------------ trials

    def _try(self, ids: Array, speeds: tuple[Array, Array], partner: Array, by: int, step: int,
             touched: int) -> None:
        """Begin to try out with bonds whether hits break what they hit.

        It begins at a step before the first touch; ``touched`` is one after the last.
        """
        fleet, solid = self._fleet, self._world.solid
        matter = matter_of(fleet, solid.position, ids, self._flown(ids, step))
        window = Window(self._device, self._bonds_world, self._mass, matter, self._dead, step)
        near = window.near(fleet, fleet.before, ids, self._ticks.time(self._end - step))
        beside = np.union1d(near, partner)
        window.surround(fleet, beside, self._flown(beside, step))
        reach = max(self._outline(number).reach for number in ids.tolist())
        trial = TRIAL_TRANSITS * 2.0 * reach / self._sound
        n_steps = max(1, round(trial / self._ticks.timestep))
        self._trial = Trial(ids, *speeds, partner, by, window, touched + n_steps, n_steps)

    def _go_on_trying(self, deadline: float) -> None:
        """Let the trial go on; if a bond broke, begin again with it as the window."""
        trial, fine = self._trial, self._ticks.steps_a_fine
        assert trial is not None
        window, every = trial.window, max(1, fine // LOOKS)
        # Looks at the same steps, however time is asked for.
        goal = window.start + ((window.step - window.start) // every + 1) * every
        self._run(window, goal := min(trial.end, goal), deadline)
        if window.step < goal:
            return
        if window.look():
            self._trial = None
            self._commit(trial)
            return
        if trial.patience >= 0 and window.is_touched(self._gravity):
            trial.end = min(trial.end, window.step + trial.patience)
            trial.patience = -1
        if window.step >= trial.end or self._budget.is_spent:
            hit = self._hit_text(trial)
            if window.step >= trial.end:
                self._tell(window.start, WITHSTOOD, window.matter.element, len(trial.ids),
                           f"{hit}, but nothing breaks")
            else:
                self._budget.skipped += len(trial.ids)
                self._tell(window.start, LEFT_OUT, window.matter.element, len(trial.ids),
                           f"{hit}, but the steps of most_steps are used up: from here on nothing "
                           "breaks")
            self._fleet.survived(trial.ids, trial.speed, trial.lasting)
            self._trial = None

    def _hit_text(self, trial: Trial) -> str:
        """Return what hit the pieces of a trial, and how fast."""
        by, fleet = trial.by, self._fleet
        if by == FLOOR:
            name = "the floor"
        elif by < 0:
            name = f"collider {-1 - by}"
        elif by < fleet.n_props:
            name = f"projectile {by + 1}"
        else:
            name = self._world.bodies[int(self._world.solid.body[fleet.rigid.members(by)[0]])].name
        return f"hit by {name} at {trial.speed.max():.3g} m/s"

    def _commit(self, trial: Trial) -> None:
        """Take pieces from the engine that are about to break."""
        fleet, first = self._fleet, trial.window.start
        matter = trial.window.matter
        beside = trial.window.beside
        begun = trial.window.step
        if self._window is not None:
            begun = self._window.begun
            matter = matter.joined(self._window.now())
            beside = np.setdiff1d(np.union1d(beside, self._window.beside), trial.ids)
        poses = self._flown(beside, first)
        self._window = Window(self._device, self._bonds_world, self._mass, matter,
                              self._all_dead(), first)
        # It is as quiet as can be until what the trial has seen comes.
        self._window.begun, self._window.last_break = begun, trial.window.step
        self._window.rewound = trial.partner
        self._window.surround(fleet, beside, poses)
        least = fleet.breaking[fleet.row(trial.ids)].min()
        self._tell(first, IN_BONDS, trial.window.matter.element, len(trial.ids),
                   f"{self._hit_text(trial)} and breaking; such hits are tried out from "
                   f"{least:.3g} m/s on")
        fleet.leave(trial.ids)
        for number in trial.ids.tolist():
            self._outlines.pop(number, None)

    # ------------------------------------------------------------------ windows

    def _all_dead(self) -> Array:
        return self._dead if self._window is None else self._window.dead(self._dead)

    def _note_broken(self, window: Window) -> None:
        """Note when edges broke, and where cracks gape."""
        edge, step = window.bonds.broke()
        self._broke_at[edge] = np.minimum(self._broke_at[edge], step * self._ticks.timestep)
        self._torn[window.bonds.gaping()] = True

    def _end_tick(self) -> None:
        """Give bodies beside the window what it did to them, and close it if it is quiet."""
        window = self._window
        if window is None:
            return
        self._push(window)
        settings, step = self._settings, self._ticks.timestep
        quiet = (window.step - window.last_break) * step
        age = (window.step - window.begun) * step
        if quiet >= self._quiet:
            self._close(f"nothing broke for {1e3 * quiet:.3g} ms")
        elif age >= settings.longest_impact:
            self._close(f"it took {1e3 * age:.3g} ms, as long as longest_impact allows")
        elif self._budget.is_spent:
            self._close("the steps of most_steps are used up")

    def _push(self, window: Window) -> None:
        """Let the engine go on with bodies as the window's particles pushed them."""
        poses = window.bonds.prop_poses()
        pushed = self._pushed(window, poses)
        window.rewound = window.rewound[:0]
        self._fleet.correct(window.beside[pushed], poses.rows(pushed))

    def _pushed(self, window: Window, poses: Poses) -> Array:
        """Return for which of the bodies beside a window its poses count, (p,) bool."""
        pushed = window.pushed(poses, self._gravity) & np.isfinite(
            self._fleet.rigid.mass(window.beside))
        return np.asarray(pushed | np.isin(window.beside, window.rewound))

    def _close(self, why: str) -> None:
        """Give the pieces of the window to the engine."""
        window = self._window
        assert window is not None
        self._note_broken(window)
        inside = sum(window.bonds.energies()) + window.spin_energy()
        members, poses = window.pieces(self.broken())
        self._damage[window.matter.element] = window.bonds.damage()
        self._dead = window.dead(self._dead)
        self._window = None
        fleet = self._fleet
        before = fleet.energies(fleet.after)[0].sum()
        fleet.join(members, poses)
        lost = inside - float(fleet.energies(fleet.after)[0].sum() - before)
        self._lost += lost
        self._tell(self._now, RIGID_AGAIN, window.matter.element, len(members), why, lost)

    # ------------------------------------------------------------------ results

    def broken(self) -> Array:
        """Return the adjacency edges that do not hold any more, (e,) int32, ascending."""
        noted = np.flatnonzero(np.isfinite(self._broke_at)).astype(np.int32)
        return np.union1d(noted, self._breaking()[0])

    def _breaking(self) -> tuple[Array, Array]:
        """Return the edges that broke in the window up to now, and when [s]."""
        if self._window is None or self._window.step > self._now:
            return np.zeros(0, np.int32), np.zeros(0)
        edge, step = self._window.bonds.broke()
        return edge, step * self._ticks.timestep

    def _gaping(self) -> Array:
        """Return the edges at which a crack gapes now or did when its window closed, ascending."""
        torn = np.flatnonzero(self._torn).astype(np.int32)
        if self._window is None or self._window.step > self._now:
            return torn
        return np.union1d(torn, self._window.bonds.gaping())

    def matter(self) -> Matter:
        """Return where all elements are, how fast, and what of them is broken."""
        solid = self._world.solid
        position, velocity = np.empty((2, solid.n_elements, 3))
        damage = self._damage.copy()
        element, place, speed = self._fleet.elements(self._seen()[0])
        position[element], velocity[element] = place, speed
        if self._window is not None:
            element = self._window.matter.element
            position[element], velocity[element] = self._window.at(self._now, self._gravity)
            damage[element] = self._window.bonds.damage()
        return Matter(self.time, position, velocity, damage, self.broken())

    def place(self, matter: Matter) -> None:
        """Refuse: the schedule hands matter over by itself."""
        raise ValueError("a schedule takes no matter from other solvers; it has them all")

    def frame(self, number: int, since: float) -> Motion:
        """Return the state as a frame, with the edges that broke after the moment ``since`` [s]."""
        now, fleet = self.matter(), self._fleet
        edge, when = self._breaking()
        lately = np.union1d(np.flatnonzero(np.isfinite(self._broke_at) & (self._broke_at > since)),
                            edge[(when > since) & ~np.isfinite(self._broke_at[edge])])
        turned, rotation, spin = self._turned()
        props, _ = self._seen()
        return Motion(
            frame=number, time=now.time, position=now.position, velocity=now.velocity,
            damage=now.damage, broken_edge=lately.astype(np.int32),
            projectile_position=props.center[:fleet.n_props],
            projectile_radius=np.array([ball.radius for ball in self._world.projectiles]),
            turned_element=turned, turned_rotation=rotation, turned_velocity=spin,
            torn_edge=self._gaping())

    def _turned(self) -> tuple[Array, Array, Array]:
        """Return how the elements of small pieces are turned, and how they spin."""
        element, rotation, spin = self._fleet.turned(self._fleet.seen(self.time))
        if (window := self._window) is not None:
            inside = window.matter
            count, label = parts(self._world.solid, self.broken(), inside.element)
            few = np.bincount(label, minlength=count)[label] < FEW_ELEMENTS
            element = np.concatenate([element, inside.element[few]])
            rotation = np.concatenate([rotation, inside.held[inside.holder[few]]])
            spin = np.concatenate([spin, np.zeros((int(few.sum()), 3))])
        order = np.argsort(element)
        return element[order].astype(np.int32), rotation[order], spin[order]

    def _seen(self) -> tuple[Poses, Array]:
        """Return where all bodies of the engine are, and the rows of those a window pushed."""
        poses, window = self._fleet.seen(self.time), self._window
        if window is None or window.step > self._now or not len(window.beside):
            return poses, np.zeros(0, np.int64)
        there = window.bonds.prop_poses()
        pushed = self._pushed(window, there)
        row = self._fleet.row(window.beside[pushed])
        value = {field.name: getattr(poses, field.name).copy()
                 for field in dataclasses.fields(Poses)}
        for name, array in value.items():
            array[row] = getattr(there, name)[pushed]
        return Poses(**value), row

    def tallies(self) -> dict[str, float]:
        """Return one row of the history: energies [J], momentum [kg m/s], who has what."""
        poses, pushed = self._seen()
        row = self._fleet.tallies(self.time, pushed, poses)
        bond, n_inside = 0.0, 0
        if (window := self._window) is not None:
            own = self._mass[window.matter.element]
            position, velocity = window.at(self._now, self._gravity)
            bond = window.bonds.energies()[1]
            row["kinetic_energy"] += (0.5 * float(own @ (velocity**2).sum(axis=1))
                                      + window.spin_energy())
            row["potential_energy"] -= float((own @ position) @ self._gravity)
            for axis, part in zip("xyz", own @ velocity, strict=True):
                row[f"momentum_{axis}"] += float(part)
            n_inside = len(window.matter.element)
        return {
            "step": self.step, "time": self.time, **row, "bond_energy": bond,
            "energy_lost": self._lost, "elements_in_bonds": n_inside,
            "hits_skipped": self._budget.skipped}

    def doing(self) -> str:
        """Return whether it tries out a hit, is in an impact, or rigid."""
        settings, window, trial = self._settings, self._window, self._trial
        if trial is not None:
            return (f"trying a hit at {trial.speed.max():.3g} m/s on "
                    f"{len(trial.window.matter.element):,} elements")
        if window is not None:
            age = (window.step - window.begun) * self._ticks.timestep
            return (f"{len(window.matter.element):,} elements in bonds, impact at "
                    f"{1e3 * age:.2f} ms of at most {1e3 * settings.longest_impact:.3g} ms")
        return "rigid"

    def notes(self) -> list[str]:
        """Return how time is divided."""
        ticks = self._ticks
        return [f"rigid in ticks of {1e3 * ticks.tick:.3g} ms, bonds in steps of "
                f"{ticks.timestep:.4g} s"]

    def news(self) -> list[Event]:
        """Return what happened since this was last asked."""
        said, self._said = self._said, []
        return said

    def _tell(self, step: int, what: str, element: Array, pieces: int, why: str,
              lost: float = 0.0) -> None:
        """Note what happened to the pieces of some elements."""
        bodies = np.unique(self._world.solid.body[element])
        names = [self._world.bodies[body].name for body in bodies[:MOST_NAMED].tolist()]
        more = len(bodies) - len(names)
        who = ", ".join(names) + (f" and {more:,} more" if more else "")
        self._said.append(Event(
            self._ticks.time(step), what, who, why, pieces, len(element), lost))

    # ------------------------------------------------------------------ resume

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        state = {
            "clock": np.array([self._now, self._end]), "dead": self._dead,
            "broke_at": self._broke_at, "torn": self._torn, "damage": self._damage,
            "spent": np.array([self._budget.steps, self._budget.skipped]),
            "lost": np.array(self._lost), **self._fleet.state()}
        if self._window is not None:
            state |= {f"window.{name}": value for name, value in self._window.state().items()}
        if (trial := self._trial) is not None:
            state |= {"trial_ids": trial.ids, "trial_speed": trial.speed,
                      "trial_lasting": trial.lasting,
                      "trial_partner": trial.partner,
                      "trial_end": np.array([trial.by, trial.end, trial.patience])}
            state |= {f"trial.{name}": value for name, value in trial.window.state().items()}
        return state

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; raises ValueError, having changed nothing, if it is none."""
        shapes = {"broke_at": self._broke_at.shape, "damage": self._damage.shape,
                  "clock": (2,), "spent": (2,), "lost": ()}
        for name, shape in shapes.items():
            if name not in state or state[name].shape != shape:
                raise ValueError(f"it has no array {name} of shape {shape}")
        if "dead" not in state or state["dead"].shape[1:] != (2,):
            raise ValueError("it has no array dead of shape (d, 2)")
        # What windows hang on is known only when the bodies are back, so remember how it was.
        before = self.state()
        try:
            self._take(state)
        except (KeyError, IndexError, TypeError, AssertionError, ValueError) as error:
            self._take(before)
            raise ValueError(f"it does not fit: {error}") from None

    def _take(self, state: Mapping[str, Array]) -> None:
        """Go back to a state whose arrays are there."""
        self._fleet.restore(state)
        self._outlines.clear()
        self._now, self._end = (int(each) for each in state["clock"])
        self._dead, self._broke_at = state["dead"].copy(), state["broke_at"].copy()
        # States of before do not say it: their cracks within pieces are not seen.
        self._torn = state.get("torn", np.zeros(len(self._broke_at), bool)).copy()
        self._damage, self._lost = state["damage"].copy(), float(state["lost"])
        self._budget.steps, self._budget.skipped = (int(each) for each in state["spent"])
        self._window = self._restored_window("window.", state)
        window = self._restored_window("trial.", state)
        self._trial = None
        if window is not None:
            by, end, patience = (int(each) for each in state["trial_end"])
            self._trial = Trial(state["trial_ids"], state["trial_speed"], state["trial_lasting"],
                                state["trial_partner"], by, window, end, patience)

    def _restored_window(self, prefix: str, state: Mapping[str, Array]) -> Window | None:
        """Return the window of a state, or None where it has none."""
        own = {name.removeprefix(prefix): value for name, value in state.items()
               if name.startswith(prefix)}
        return restored(self._device, self._bonds_world, self._mass, self._fleet,
                        own) if own else None


def _bonds_world(
    world: World[AutoSettings], settings: PlannedAuto, timestep: float
) -> World[BondSettings]:
    """Return the world as windows have it.

    Projectiles are props there, and what a shot leaves open of floor and colliders is not as in
    levine-2014 but as for rigid pieces: the mean of the bodies' materials.
    """
    given = {field.name: getattr(world, field.name) for field in dataclasses.fields(world)}
    materials = [world.materials[str(name)] for name in world.solid.material_name]
    mean = Material(restitution=float(np.mean([each.restitution for each in materials])),
                    friction=float(np.mean([each.friction for each in materials])))

    def settled(thing: Ground) -> Ground:
        restitution, friction = coefficients(thing, mean)
        return dataclasses.replace(thing, restitution=restitution, friction=friction)

    return World(**{**given, "settings": dataclasses.replace(settings.bonds, timestep=timestep),
                    "projectiles": (), "floor": settled(world.floor),
                    "colliders": tuple(map(settled, world.colliders))})


def _cut_edges(device: Device, world: World[BondSettings]) -> tuple[Array, Array]:
    """Return the edges that cracks from the start part, and all at which they gape."""
    simulation = Simulation(device, world)
    return simulation.open_edges(), simulation.gaping_edges()
