"""What a solver is given and what it gives: types alone.

A solver is a room of its own (``sim/bonds``, …) behind one :class:`Room` in the table of
:mod:`vfx.sim.schedule`. A :class:`Setup` is what a shot says, before anything is built: enough to
plan. A :class:`World` is what a solver gets: the solid, and what a shot does to it as arrays.

Time [s] counts from the first frame. How a solver divides it is its own affair: it stops at
moments of its own, the one nearest to the time asked for.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np

from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array, Motion, Solid
from vfx.sim.settings import (
    Collider,
    Complaint,
    Crack,
    Floor,
    Material,
    Projectile,
    Region,
    Shared,
    Weakening,
)

if TYPE_CHECKING:
    from vfx.device import Device

#: The settings of a room, ``[sim.<room>]``.
S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class Unstable(Exception):  # noqa: N818 (it reads as what happened)
    """The run blew up; the message says where, when and what to change."""


@dataclass(frozen=True)
class Clock:
    """How a shot says when its frames are: by the speed of the shot, or by steps of a solver.

    The speed is one number or goes evenly from key to key, as it is before the first and after
    the last; time is then a parabola between two keys.
    """

    fps: float = 24.0
    steps_per_frame: int | None = 500       # None where a speed is given
    time_scale: float | None = None
    #: Frames after the first of the shot, and the speed there; none where it is the same in all.
    time_keys: tuple[tuple[float, float], ...] = ()

    @property
    def frame_time(self) -> float | None:
        """Simulated time [s] from frame to frame, None where its steps are given.

        Where the speed changes no frame is shorter.
        """
        if self.time_keys:
            return min(speed for _, speed in self.time_keys) / self.fps
        return None if self.time_scale is None else self.time_scale / self.fps

    @property
    def longest_frame(self) -> float | None:
        """Simulated time [s] that no frame exceeds, None where the steps are given."""
        if self.time_keys:
            return max(speed for _, speed in self.time_keys) / self.fps
        return self.frame_time

    def key_speed(self, frame: float) -> float:
        """Return the speed that the keys say some frames after the first."""
        keys = np.array(self.time_keys)
        return float(np.interp(frame, keys[:, 0], keys[:, 1]))

    def key_time(self, frame: float) -> float:
        """Return the simulated time [s] from the first frame, as the keys say."""
        low, high = min(0.0, frame), max(0.0, frame)
        ends = [low, *(key for key, _ in self.time_keys if low < key < high), high]
        passed = sum(0.5 * (self.key_speed(a) + self.key_speed(b)) * (b - a)
                     for a, b in itertools.pairwise(ends))
        return (passed if frame > 0.0 else -passed) / self.fps


@dataclass(frozen=True, kw_only=True)
class Given(Generic[S]):
    """What a shot says that a plan and a solver both need."""

    settings: S                                     # the room's own
    materials: Mapping[str, Material]
    shared: Shared = Shared()
    bodies: tuple[Body, ...] = ()
    floor: Floor = Floor()
    projectiles: tuple[Projectile, ...] = ()
    colliders: tuple[Collider, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Setup(Given[S]):
    """All that a shot says about its simulation; nothing is built yet."""

    clock: Clock = Clock()
    #: Settings of the rooms that the solver stands on, by their names.
    rooms: Mapping[str, Any] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    weakening: tuple[Weakening, ...] = ()
    cracks: tuple[Crack, ...] = ()


@dataclass(frozen=True)
class Wall:
    """Lines in a plane, extruded along its normal: bonds that cross one are weak."""

    number: int         # of the [[weakening]] it is of, counted from 1
    origin: Array       # (3,) float64 [m]: of the plane
    axes: Array         # (2, 3) float64: of the plane
    segment: Array      # (s, 4) float64 [m]: ends of the lines in the plane

    def place(self, position: Array) -> Array:
        """Return where (n, 3) positions are in the plane, (n, 2) float64 [m]."""
        return turned(position - self.origin, self.axes)


@dataclass(frozen=True)
class Controls:
    """What a shot does to the n elements of a solid, made by :mod:`vfx.sim.control.controls`."""

    strength: tuple[Array, ...] # (n,) float64 each: factors of the limit, multiplied in this order
    held: Array                 # (n,) int32: row of ``drive`` that holds an element, or -1
    drive: Array                # (k, 4) float64: velocity [m/s], and when it is let go [s]
    walls: tuple[Wall, ...]
    cuts: Array                 # (c, 3, 3) float64 [m]: a corner of a rectangle and two sides
    idle_regions: tuple[int, ...]       # [[regions]] that cover no element, counted from 1
    unmet: tuple[int, ...]              # [[weakening]] that does nothing but by a wall


@dataclass(frozen=True)
class Course:
    """An animation that a body follows: X at rest is at place + rotation @ X.

    The last moment is the one at which the body is let go. Its velocity there is that of a
    curve through five moments, so it is told for any of its points.
    """

    body: int                   # counted from 0
    time: Array                 # (n,) float64 [s], ascending from 0
    place: Array                # (n, 3) float64 [m]
    rotation: Array             # (n, 3, 3) float64
    near_place: Array           # (5, 3) and (5, 3, 3): the same at moments about the last
    near_rotation: Array
    rate: Array                 # (5,) [1/s]: sum(rate * values there) is the change of a value

    @property
    def until(self) -> float:
        """When [s] the body is let go."""
        return float(self.time[-1])


@dataclass(frozen=True, kw_only=True)
class World(Given[S]):
    """What a solver moves: all bodies as one solid, and what acts on them."""

    solid: Solid
    controls: Controls
    courses: tuple[Course, ...] = ()    # of bodies that follow an animation


@dataclass(frozen=True)
class Matter:
    """What one solver hands to the next: n elements, in the solid's order."""

    time: float                 # [s]
    position: Array             # (n, 3) float64 [m]
    velocity: Array             # (n, 3) float64 [m/s]
    damage: Array               # (n,) float32: 0..1
    broken: Array = field(      # (e,) int32: adjacency edges that do not hold any more, ascending
        default_factory=lambda: np.zeros(0, np.int32))


@dataclass(frozen=True)
class Poses:
    """Where k rigid things are and how they move; double precision, world axes.

    A point X of a thing at rest is at ``center + rotation @ (X - rest centre)``, where the rest
    centre is its centre of mass at rest.
    """

    center: Array               # (k, 3) [m]: centres of mass
    rotation: Array             # (k, 3, 3): world from rest
    velocity: Array             # (k, 3) [m/s] of the centres
    angular_velocity: Array     # (k, 3) [rad/s]

    def __len__(self) -> int:
        return len(self.center)

    def rows(self, which: Array) -> Poses:
        """Return some of them, by index or mask."""
        return Poses(self.center[which], self.rotation[which], self.velocity[which],
                     self.angular_velocity[which])


@dataclass(frozen=True)
class Prop:
    """A rigid thing that particles run into; what has a finite mass is pushed back.

    It is a ball, or the union of convex hulls given about its centre of mass, as at rest.
    """

    mass: float                             # [kg]; infinite where nothing moves it
    inertia: Array                          # (3, 3) [kg m^2] about the centre, as at rest
    radius: float = 0.0                     # [m]; above 0 for a ball
    hulls: tuple[Array, ...] = ()           # (v, 3) [m] each: corners about the centre
    restitution: float = 0.0
    friction: float = 0.0
    falls: bool = True                      # whether gravity acts on it


class Outcome(enum.Enum):
    """Why a solver came back from :meth:`Solver.advance`."""

    REACHED = "it is at the moment that was asked for"
    PAUSED = "the seconds it was given are over"
    QUIET = "nothing breaks any more: another solver may take the matter"
    IMPACT = "something hits hard: another solver may take the matter"


#: What an event may be: bonds take pieces over, or give them back; a hit was tried out and broke
#: nothing; one that might have broken something was not tried out; what was driven flies.
IN_BONDS, RIGID_AGAIN, WITHSTOOD, LEFT_OUT = "in bonds", "rigid again", "withstood", "left out"
LET_GO = "let go"


@dataclass(frozen=True)
class Event:
    """Something that happened to bodies or pieces: a line of the log, a row of the timeline."""

    time: float                 # [s]
    what: str                   # one of the words above
    who: str                    # the bodies, by their names
    why: str
    pieces: int = 0             # that it happened to
    elements: int = 0           # in them
    energy_lost: float = 0.0    # [J] that no motion has any more

    def line(self) -> str:
        """Return it as a sentence for the log."""
        pieces = "1 piece" if self.pieces == 1 else f"{self.pieces:,} pieces"
        lost = (f"; {self.energy_lost:.3g} J of strain and vibration are given up"
                if self.what == RIGID_AGAIN else "")
        return (f"t = {self.time:.6g} s: {self.who} {self.what} ({pieces}, {self.elements:,} "
                f"elements): {self.why}{lost}")


class Solver(Protocol):
    """Bodies in motion.

    Neither the pieces in which time is asked for nor a restored state changes a bit of what
    comes out.
    """

    @property
    def time(self) -> float:
        """Simulated time [s]: a moment of the solver's own."""

    @property
    def step(self) -> int:
        """Steps done, for the history and for how fast it is."""

    def moment(self, time: float) -> float:
        """Return the moment [s] at which :meth:`advance` to a time stops: the nearest."""

    def advance(self, until: float, seconds: float) -> Outcome:
        """Go on to the moment of ``until`` [s], for about ``seconds`` of the computer's time.

        Comes back before, to be told to go on, when they are over or when another solver may
        take the matter. Raises :class:`Unstable`.
        """

    def frame(self, number: int, since: float) -> Motion:
        """Return the state as a frame, with what broke after the moment ``since`` [s]."""

    def broken(self) -> Array:
        """Return the adjacency edges that do not hold any more, (e,) int32, ascending."""

    def matter(self) -> Matter:
        """Return what the next solver needs to take over."""

    def place(self, matter: Matter) -> None:
        """Take over; raises ValueError where the matter is none it can go on with."""

    def tallies(self) -> dict[str, float]:
        """Return one row of the history: ``time`` [s] and other numbers by name."""

    def doing(self) -> str:
        """Return what it is at, for a line of progress; "" where steps tell it."""

    def notes(self) -> list[str]:
        """Return what the artist should know of the world it was built for."""

    def news(self) -> list[Event]:
        """Return what has happened since this was last asked, of rooms with a timeline."""

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; raises ValueError, having changed nothing, if it is none."""


class Plan(Protocol[S_co]):
    """What a simulation will need, worked out from its setup before anything is built."""

    @property
    def settings(self) -> S_co:
        """The room's settings, with numbers where the shot says "auto"."""

    @property
    def frame_time(self) -> float:
        """Simulated time [s] from frame to frame; where it changes, no frame is shorter."""

    @property
    def memory(self) -> int:
        """Bytes of memory of the whole process at the peak, an estimate from above."""

    def complaint(self) -> Complaint | None:
        """Return why it cannot run, or None: the key, as ``sim.<room>.<key>``, and a sentence."""

    def n_steps(self, time: float) -> int:
        """Return how many steps there are to a time [s]."""

    def effort(self, time: float, step: float) -> list[tuple[str, float]]:
        """Return what has to be done to a time [s], and how long [s] it takes.

        ``step`` [s] is how long a step takes, as the room's ``pace`` tells.
        """

    def time_text(self) -> str:
        """Return what a frame is made of: "500 steps of 1.2e-07 s"."""

    def body_text(self, number: int) -> str:
        """Return what a body comes to, counted from 0."""

    def body_lines(self, number: int) -> list[str]:
        """Return what else is to be known of a body."""

    def warnings(self) -> list[str]:
        """Return what will not come out as a person expects."""

    def lines(self) -> list[str]:
        """Return what ``vfx check`` tells of the whole."""


@dataclass(frozen=True)
class Room(Generic[S]):
    """A solver as the table has it. Its settings have defaults for all keys."""

    settings: type[S]
    #: Time of a frame [s] whose steps the setup gives; None where that has to be planned.
    frame_time: Callable[[Setup[S]], float | None]
    #: Raises ValueError or ArithmeticError where no numbers come out.
    plan: Callable[[Setup[S]], Plan[S]]
    #: Seconds that a step takes here, tried out for a moment or guessed.
    pace: Callable[[Device, Setup[S]], float]
    #: Strain limit of each element, (n,).
    strain_limits: Callable[[World[S]], Array]
    #: Raises ValueError with a sentence where the world cannot be simulated as it is.
    build: Callable[[Device, World[S]], Solver]
    #: Whether a frame may be given as a number of its steps; else shots are at real time unless
    #: they say how fast.
    counts_steps: bool = True
    #: Whether bodies may follow an animation.
    follows: bool = False
    #: Whether its pace is tried out.
    tries_pace: bool = True
    #: What it needs that is not here, as a sentence with a way out; "" where nothing is missing.
    missing: Callable[[], str] = lambda: ""
    #: Whether it tells events, of which a timeline is kept beside the history.
    has_timeline: bool = False
    #: The rooms it stands on, each with keys whose defaults are others there.
    uses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


#: A room whose settings are of some class.
AnyRoom = Room[Any]
