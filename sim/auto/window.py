"""A window of bonds in the schedule: some pieces for the milliseconds of an impact."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.spatial import cKDTree

from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.sim.auto.pieces import fit_poses, parts
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.window import BondWindow
from vfx.sim.rigid.fleet import Fleet
from vfx.sim.rigid.mass import inertia_of, own_moment
from vfx.sim.rigid.poses import carried, groups, moved
from vfx.sim.solver import Poses, World

#: Things beside a window that its particles may run into, at most; the nearest count.
MOST_PROPS = 128
#: A prop whose velocity differs by more than this [m/s] from its flight was pushed.
PUSHED = 1e-7
#: Share of its momentum whose change shows that something is touched.
TOUCHED = 1e-6
#: Share of all bonds that a window broke which it may break while it counts as quiet.
FEW = 0.01


@dataclass(frozen=True)
class Matter:
    """Elements that go into a window: where they are and what they are a part of."""

    element: Array              # (k,) ascending
    position: Array             # (k, 3) [m]
    velocity: Array             # (k, 3) [m/s]
    holder: Array               # (k,) row of ``held``: elements of two do not hold together
    held: Array                 # (h, 3, 3): how each of these pieces is turned
    spin: Array                 # (k, 3) [rad/s]: of each element about itself, which stays

    def joined(self, other: Matter) -> Matter:
        """Return both together."""
        element = np.concatenate([self.element, other.element])
        order = np.argsort(element)
        holder = np.concatenate([self.holder, other.holder + len(self.held)])
        return Matter(
            element[order], np.concatenate([self.position, other.position])[order],
            np.concatenate([self.velocity, other.velocity])[order], holder[order],
            np.concatenate([self.held, other.held]),
            np.concatenate([self.spin, other.spin])[order])


def matter_of(fleet: Fleet, solid_position: Array, ids: Array, poses: Poses) -> Matter:
    """Return the elements of pieces of the engine, in the motion that ``poses`` tell."""
    element = np.flatnonzero(np.isin(fleet.piece, ids))
    holder = np.searchsorted(ids, fleet.piece[element])
    position = moved(poses, solid_position[element], fleet.rigid.rest_center(ids), holder)
    return Matter(element, position, carried(poses, position, holder), holder, poses.rotation,
                  poses.angular_velocity[holder])


@dataclass(frozen=True)
class Entered:
    """How the bodies beside a window came there."""

    step: int
    poses: Poses
    falls: Array                # (p,) bool


class Window:
    """Elements in bonds from a step on, and the bodies of the engine beside them."""

    def __init__(self, device: Device, world: World[BondSettings], mass: Array, matter: Matter,
                 dead: Array, step: int) -> None:
        """``mass`` [kg] of all elements of the world; ``dead`` (d, 2) bonds that broke before."""
        self._world, self._mass = world, mass
        self.matter = matter
        self._moment = own_moment(mass[matter.element], world.solid.volume[matter.element])
        self.start = self.last_break = step
        self.begun = step                   # when the first of the pieces came in
        inside = np.zeros(world.solid.n_elements, bool)
        inside[matter.element] = True
        self._given = dead[inside[dead].all(axis=1)]
        self.bonds = BondWindow(device, world, matter.element, matter.holder, self._given,
                                matter.position, matter.velocity, step)
        self.beside = np.zeros(0, np.int64)     # bodies of the engine, ascending
        self.rewound = np.zeros(0, np.int64)    # those the engine had let bounce off the pieces
        self._entered: Entered | None = None
        self.n_bonds = self.first_bonds = self.bonds.n_bonds
        self._counted = self.n_bonds            # when last_break was noted

    @property
    def step(self) -> int:
        """The step it is at."""
        return self.bonds.step

    def surround(self, fleet: Fleet, ids: Array, poses: Poses, falls: Array | None = None,
                 step: int | None = None) -> None:
        """Put bodies of the engine beside it, with these poses.

        A resume tells which of them fall, and the step at which they came.
        """
        if falls is None:
            falls = np.asarray(fleet.pull(ids, poses).any(axis=1))
        self.beside = ids
        props = [dataclasses.replace(prop, falls=prop.falls and bool(fall)) for prop, fall in zip(
            map(fleet.rigid.prop, ids.tolist()), falls, strict=True)]
        self._entered = Entered(self.step if step is None else step, poses, falls)
        self.bonds.set_props(props, poses)

    def pushed(self, poses: Poses, gravity: Array) -> Array:
        """Return which of the bodies beside it were pushed since they were put there."""
        assert self._entered is not None
        duration = (self.step - self._entered.step) * self.bonds.timestep
        straight = (self._entered.poses.velocity
                    + duration * self._entered.falls[:, None] * gravity)
        return np.asarray(np.linalg.norm(poses.velocity - straight, axis=1) > PUSHED)

    def now(self) -> Matter:
        """Return its elements as they are now; pieces of now do not hold together any more."""
        return dataclasses.replace(
            self.matter, position=self.bonds.position, velocity=self.bonds.velocity)

    def at(self, step: int, gravity: Array) -> tuple[Array, Array]:
        """Return positions and velocities (k, 3) at a step: before its start they fly."""
        early = (step - self.step) * self.bonds.timestep
        position, velocity = self.bonds.position, self.bonds.velocity
        if step >= self.step:
            return position, velocity
        return (position + early * velocity + 0.5 * early**2 * gravity,
                velocity + early * gravity)

    def near(self, fleet: Fleet, poses: Poses, gone: Array, duration: float) -> Array:
        """Return the bodies that its particles may run into: the nearest of those within reach."""
        position, velocity = self.bonds.position, self.bonds.velocity
        reach = fleet.reach()
        speed = (np.linalg.norm(poses.velocity, axis=1)
                 + reach * np.linalg.norm(poses.angular_velocity, axis=1))
        margin = (2.0 * float(self._world.solid.size[self.matter.element].max())
                  + duration * (float(np.linalg.norm(velocity, axis=1).max()) + speed))
        # First those near a box around all, which is soon done.
        beside = np.maximum(np.maximum(position.min(axis=0) - poses.center,
                                       poses.center - position.max(axis=0)), 0.0)
        is_near = np.linalg.norm(beside, axis=1) <= reach + margin
        chosen = np.flatnonzero(is_near & ~np.isin(fleet.id, gone) & fleet.is_large)
        if not len(chosen):
            return fleet.id[chosen]
        gap = cKDTree(position).query(poses.center[chosen])[0] - reach[chosen]
        chosen, gap = chosen[gap <= margin[chosen]], gap[gap <= margin[chosen]]
        return np.sort(fleet.id[chosen[np.argsort(gap, kind="stable")[:MOST_PROPS]]])

    def is_touched(self, gravity: Array) -> bool:
        """Whether a blow has changed its momentum, by more than gravity and what carries it do."""
        own = self._mass[self.matter.element]
        start, velocity = self.matter.velocity, self.bonds.velocity
        fall = (self.step - self.start) * self.bonds.timestep * gravity
        change = own @ (velocity - start - fall)
        most = own @ (TOUCHED * np.linalg.norm(start, axis=1) + 2.0 * np.linalg.norm(fall))
        return bool(np.linalg.norm(change) > most)

    def spin_energy(self) -> float:
        """Return the kinetic energy [J] of elements that turn about themselves."""
        return 0.5 * float(self._moment @ (self.matter.spin**2).sum(axis=1))

    def look(self) -> bool:
        """Whether bonds broke since the last look; a few do not keep it from being quiet."""
        count = self.bonds.n_bonds
        broke, self.n_bonds = count < self.n_bonds, count
        if self._counted - count > FEW * (self.first_bonds - count):
            self.last_break, self._counted = self.step, count
        return broke

    def dead(self, before: Array) -> Array:
        """Return all bonds that do not hold, (d, 2) sorted, with those of before."""
        return np.unique(np.concatenate([before, self.bonds.dead()]), axis=0)

    def pieces(self, broken: Array) -> tuple[list[Array], Poses]:
        """Return the elements of each piece, and its rigid motion now."""
        matter, solid = self.matter, self._world.solid
        element = matter.element
        count, label = parts(solid, broken, element)
        members = groups(element, label, count)
        first = np.searchsorted(element, [each[0] for each in members])
        own = self._mass[element]
        inertia = inertia_of(members, solid.position, solid.volume, self._mass)
        poses = fit_poses(
            solid.position[element], self.bonds.position, self.bonds.velocity, own, label,
            inertia.tensor, matter.held[matter.holder[first]], self._moment[:, None] * matter.spin)
        self._hold(poses, label, inertia.center, matter.held[matter.holder[first]])
        return members, poses

    def _hold(self, poses: Poses, label: Array, rest_center: Array, turned: Array) -> None:
        """Put pieces that regions hold or drive where these elements are, turned as before.

        What is left of the bending of their free ends would turn a fit.
        """
        controls, element = self._world.controls, self.matter.element
        row = controls.held[element]
        inside = np.flatnonzero(row >= 0)
        inside = inside[controls.drive[row[inside], 3] > self.bonds.time]
        for piece in np.unique(label[inside]).tolist():
            own = inside[label[inside] == piece]
            most = np.bincount(row[own]).argmax()
            own = own[row[own] == most]
            arm = self._world.solid.position[element[own]] - rest_center[piece]
            place = self.bonds.position[own] - arm @ turned[piece].T
            poses.center[piece], poses.rotation[piece] = place.mean(axis=0), turned[piece]
            poses.velocity[piece] = controls.drive[most, :3]
            poses.angular_velocity[piece] = 0.0

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        matter = {f"matter_{name}": getattr(self.matter, name)
                  for name in ("element", "position", "velocity", "holder", "held", "spin")}
        assert self._entered is not None
        poses = {f"entered_{name}": value
                 for name, value in dataclasses.asdict(self._entered.poses).items()}
        return {**matter, **poses, "given": self._given, "beside": self.beside,
                "rewound": self.rewound, "falls": self._entered.falls,
                "entered": np.array(self._entered.step),
                "count": np.array([self.start, self.begun, self.last_break, self.n_bonds,
                                   self.first_bonds, self._counted]),
                **{f"bonds.{name}": value for name, value in self.bonds.state().items()}}


def restored(device: Device, world: World[BondSettings], mass: Array, fleet: Fleet,
             state: Mapping[str, Array]) -> Window:
    """Return a window as :meth:`Window.state` told it."""
    matter = Matter(*(state[f"matter_{field.name}"] for field in dataclasses.fields(Matter)))
    start, begun, last_break, n_bonds, first, counted = (int(each) for each in state["count"])
    window = Window(device, world, mass, matter, state["given"], start)
    entered = Poses(*(state[f"entered_{field.name}"] for field in dataclasses.fields(Poses)))
    window.surround(fleet, state["beside"], entered, state["falls"], int(state["entered"]))
    window.bonds.restore({name.removeprefix("bonds."): value for name, value in state.items()
                          if name.startswith("bonds.")})
    window.begun, window.last_break, window.n_bonds = begun, last_break, n_bonds
    window.first_bonds, window._counted = first, counted
    window.rewound = state["rewound"]
    return window
