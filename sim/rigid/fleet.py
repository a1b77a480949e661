"""The engine's bodies as a solver knows them: who is where between two ticks.

Bodies are rows in the order of their numbers in the engine, projectiles first, then pieces. A
number is never given twice.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.control.initial import initial_velocity
from vfx.sim.rigid.courses import SAME_MOMENT
from vfx.sim.rigid.mass import element_mass
from vfx.sim.rigid.poses import carried, groups, moved, seen_between
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.rigid.world import FEW_ELEMENTS, Hits, RigidWorld
from vfx.sim.solver import Poses, World

#: How much faster a hit has to be than one that a body survived to be worth a look.
STRONGER = 1.2
#: Bodies slower than this [m/s] are carried by something, and do not fall.
AT_REST = 0.05


class Fleet:
    """All rigid bodies, before and after the engine's last tick."""

    def __init__(self, world: World[Any], settings: RigidSettings, threads: int,
                 breaking: Callable[[Array], tuple[float, float]] | None = None) -> None:
        """Speeds [m/s] of hits from which a piece of elements may break are told by ``breaking``.

        Its second number is that speed for pieces that are spared, infinite for all others.
        """
        self._world, self._breaking = world, breaking
        solid = world.solid
        self._mass = element_mass(world)
        self._gravity = np.array(world.shared.gravity)
        self.rigid = RigidWorld(world, settings, threads)
        self.n_props = self.rigid.n_props
        self.piece = np.full(solid.n_elements, -1, np.int64)    # the body of each element, or -1
        self.id = np.arange(self.n_props, dtype=np.int64)       # (k,)
        #: Speed of a hit from which a body may break, infinite where it cannot; (k,) [m/s].
        self.breaking = np.full(self.n_props, np.inf)
        #: The speed from which it would break if it were not spared, else infinite; (k,) [m/s].
        self.spared = np.full(self.n_props, np.inf)
        #: Speed of the last hit that a body survived and more, and the same times the share of its
        #: mass that hit it: what is below in both is weaker; (k, 2) [m/s].
        self.proved = np.zeros((self.n_props, 2))
        self.born = np.full(self.n_props, -np.inf)              # (k,) [s]
        self.before = self.after = self.rigid.poses(self.id)
        self.start = self.end = 0.0                             # [s] of these poses

    def begin(self, element: Array, label: Array, count: int) -> None:
        """Take in the whole bodies of a shot, with the velocities that it gives them."""
        solid, bodies = self._world.solid, self._world.bodies
        members = groups(element, label, count)
        mass = np.bincount(label, self._mass[element], count)
        center = np.stack([np.bincount(label, self._mass[element] * axis, count)
                           for axis in solid.position[element].T], axis=1) / mass[:, None]
        first = np.array([each[0] for each in members], np.int64)
        spin = np.array([body.angular_velocity for body in bodies]).reshape(-1, 3)
        spin = spin[solid.body[first]]
        arm = center - solid.position[first]
        velocity = initial_velocity(solid, bodies)[first] + np.cross(spin, arm)
        self.join(members, Poses(center, np.tile(np.eye(3), (count, 1, 1)), velocity, spin))

    def join(self, members: Sequence[Array], poses: Poses) -> None:
        """Give pieces to the engine, at its present time."""
        speed, spared = np.array([self._breaking_speed(each) for each in members]).reshape(-1, 2).T
        # What follows an animation breaks when it is let go, and not before.
        follows = np.array([self._follows(each) for each in members], bool)
        speed, spared = (np.where(follows, np.inf, each) for each in (speed, spared))
        # What cannot break needs no report of its hits.
        new = self.rigid.add(members, poses, least_hit_speed=speed)
        for number, each in zip(new.tolist(), members, strict=True):
            self.piece[each] = number
        self.id = np.concatenate([self.id, new])
        self.breaking = np.concatenate([self.breaking, speed])
        self.spared = np.concatenate([self.spared, spared])
        self.proved = np.concatenate([self.proved, np.zeros((len(new), 2))])
        # What is there from the start was always there.
        self.born = np.concatenate([self.born, np.full(
            len(new), self.end if self.end > 0.0 else -np.inf)])
        stored = self.rigid.poses(new)
        self.before, self.after = (_joined(side, stored) for side in (self.before, self.after))

    def _breaking_speed(self, members: Array) -> tuple[float, float]:
        return (np.inf, np.inf) if self._breaking is None else self._breaking(members)

    def _follows(self, members: Array) -> bool:
        """Whether a piece is one of a body that still follows an animation."""
        body = int(self._world.solid.body[members[0]])
        return any(course.body == body and course.until > self.end + SAME_MOMENT
                   for course in self._world.courses)

    def _let_go(self, ids: Array) -> None:
        """Let what followed an animation break from now on."""
        pieces = ids[np.isin(ids, self.id) & (ids >= self.n_props)]
        speed, spared = np.array([self._breaking_speed(self.rigid.members(each))
                                  for each in pieces.tolist()]).reshape(-1, 2).T
        self.breaking[self.row(pieces)], self.spared[self.row(pieces)] = speed, spared
        self.rigid.watch(pieces, speed)

    def leave(self, ids: Array) -> None:
        """Take pieces from the engine."""
        self.rigid.remove(ids)
        stays = ~np.isin(self.id, ids)
        self.piece[np.isin(self.piece, ids)] = -1
        self.id, self.born = self.id[stays], self.born[stays]
        self.breaking, self.spared = self.breaking[stays], self.spared[stays]
        self.proved = self.proved[stays]
        self.before, self.after = self.before.rows(stays), self.after.rows(stays)

    def tick(self, duration: float, end: float) -> Hits:
        """Let the engine go on by a tick that ends at a time [s]; return what hit what."""
        self.before = self.after
        hits = self.rigid.step(duration)
        if self._world.courses and len(self.rigid.released):
            self._let_go(self.rigid.released)
        self.start, self.end = self.end, end
        self.after = self.rigid.poses(self.id)
        return hits

    def correct(self, ids: Array, poses: Poses) -> None:
        """Put bodies elsewhere at the end of the tick: what bonds did to them counts."""
        self.rigid.set_poses(ids, poses)
        row = self.row(ids)
        after = self.after
        for name in ("center", "rotation", "velocity", "angular_velocity"):
            value = getattr(after, name).copy()
            value[row] = getattr(poses, name)
            after = dataclasses.replace(after, **{name: value})
        self.after = after

    def survived(self, ids: Array, speed: Array, lasting: Array) -> None:
        """Note that bodies did not break when they were hit so fast.

        ``lasting`` is the speed times the share of their mass that hit them, up to 1.
        """
        row = self.row(ids)
        self.breaking[row] = np.maximum(self.breaking[row], STRONGER * lasting)
        self.rigid.watch(ids, self.breaking[row])
        new = STRONGER * np.stack([speed, lasting], axis=1)
        is_more = (new > self.proved[row]).any(axis=1)
        self.proved[row[is_more]] = new[is_more]

    def n_spared(self) -> int:
        """Return how many spared pieces the last tick hit so hard that they would break."""
        return int((self.rigid.blow[self.id] >= self.spared).sum())

    def row(self, ids: Array) -> Array:
        """Return the rows of bodies."""
        return np.searchsorted(self.id, ids)

    def seen(self, time: float) -> Poses:
        """Return where all bodies are at a time of the last tick, with velocities that they had."""
        share, duration = self._share(time)
        pull: Array = self._gravity
        if (slows := self.rigid.slows(self.id)).any() and share < 1.0:
            # Air changes velocities too little in a tick to see that it does not do so evenly.
            change = (self.after.velocity - self.before.velocity) / duration
            pull = np.where(slows[:, None], change, self._gravity)
        poses = seen_between(self.before, self.after, share, duration, pull)
        if not self._world.courses:
            return poses
        # An animation is exact at any moment, not at ticks alone.
        which, there = self.rigid.following(self.id, self.start, time)
        return poses if not len(which) else Poses(*(_replaced(
            getattr(poses, field.name), which, getattr(there, field.name))
            for field in dataclasses.fields(Poses)))

    def _share(self, time: float) -> tuple[float, float]:
        """Return the share of the last tick that is over at a time, and its length [s]."""
        duration = self.end - self.start
        share = 1.0 if duration <= 0.0 else (time - self.start) / duration
        return min(share, 1.0), duration

    def flown(self, ids: Array, duration: float) -> Poses:
        """Return bodies so long [s] after the tick began if nothing touches them meanwhile."""
        before = self.before.rows(self.row(ids))
        return self.rigid.flown(ids, before, duration, self.pull(ids, before))

    def pull(self, ids: Array, poses: Poses) -> Array:
        """Return gravity as bodies feel it, (k, 3): not where they are held or carried."""
        moves = np.linalg.norm(poses.velocity, axis=1) > AT_REST
        return np.asarray((self.rigid.falls(ids) & moves)[:, None] * self._gravity)

    def elements(self, poses: Poses) -> tuple[Array, Array, Array]:
        """Return the elements of rigid pieces, (k,), their places and velocities, (k, 3)."""
        element = np.flatnonzero(self.piece >= 0)
        row = self.row(self.piece[element])
        position = moved(poses, self._world.solid.position[element],
                         self.rigid.rest_center(self.id), row)
        return element, position, carried(poses, position, row)

    def reach(self) -> Array:
        """Return the radius [m] of a ball around each body, (k,)."""
        return self.rigid.reach(self.id)

    @property
    def is_large(self) -> Array:
        """Which bodies are no crumbs, (k,) bool: projectiles, bodies, and pieces of several."""
        return ~self.rigid.is_crumb(self.id)

    def turned(self, poses: Poses) -> tuple[Array, Array, Array]:
        """Return the elements of small pieces, ascending, how they are turned and how they spin.

        Where particles are few, their places may not tell.
        """
        rigid = np.flatnonzero(self.piece >= 0)
        row = self.row(self.piece[rigid])
        is_small = np.bincount(row, minlength=len(self.id))[row] < FEW_ELEMENTS
        small, row = rigid[is_small], row[is_small]
        return small, poses.rotation[row], poses.angular_velocity[row]

    def energies(self, poses: Poses) -> tuple[Array, Array, Array]:
        """Return kinetic and potential energy (k,) [J] and momentum (k, 3) [kg m/s] of bodies.

        Those without a finite mass have none.
        """
        mass = self.rigid.mass(self.id)
        heavy = np.isfinite(mass)
        mass = np.where(heavy, mass, 0.0)
        inertia = poses.rotation @ self.rigid.inertia(self.id) @ np.swapaxes(poses.rotation, 1, 2)
        spin = np.einsum("ki,kij,kj->k", poses.angular_velocity, inertia, poses.angular_velocity)
        kinetic = 0.5 * mass * (poses.velocity**2).sum(axis=1) + np.where(heavy, 0.5 * spin, 0.0)
        height = mass * self.rigid.weighs(self.id) * (poses.center @ self._gravity)
        return kinetic, -height, mass[:, None] * poses.velocity

    def tallies(self, time: float, row: Array, poses: Poses) -> dict[str, float]:
        """Return numbers of the history at a time of the last tick.

        Energies change evenly in a tick: from poses between two they would sink and rise again.
        Bodies of some rows are where ``poses`` of all tell.
        """
        share, _ = self._share(time)
        told = [first + share * (second - first) for first, second in zip(
            self.energies(self.before), self.energies(self.after), strict=True)]
        if len(row):
            for each, there in zip(told, self.energies(poses), strict=True):
                each[row] = there[row]
        kinetic, height, momentum = told
        return {"kinetic_energy": float(kinetic.sum()), "potential_energy": float(height.sum()),
                **{f"momentum_{axis}": float(part)
                   for axis, part in zip("xyz", momentum.sum(axis=0), strict=True)},
                **self._at_rest()}

    def _at_rest(self) -> dict[str, float]:
        """Return how many pieces there are, how many are at rest, and elements in each of them."""
        piece = self.id[self.n_props:]
        asleep = piece[self.rigid.asleep(piece)]
        return {"rigid_pieces": len(piece), "asleep": len(asleep),
                "rigid_elements": int((self.piece >= 0).sum()),
                "elements_asleep": int(np.isin(self.piece, asleep).sum())}

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        poses = {f"{side}_{name}": value for side in ("before", "after")
                 for name, value in dataclasses.asdict(getattr(self, side)).items()}
        engine = {f"rigid.{name}": value for name, value in self.rigid.state().items()}
        return {"piece": self.piece, "id": self.id, "breaking": self.breaking,
                "spared": self.spared, "proved": self.proved, "born": self.born, **poses,
                "tick": np.array([self.start, self.end]), **engine}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; raises ValueError, having changed nothing, if it is none."""
        count = state["id"].shape if "id" in state else (0,)
        shapes = {"piece": self.piece.shape, "id": count, "breaking": count, "spared": count,
                  "born": count, "proved": (*count, 2), "tick": (2,)}
        for side in ("before", "after"):
            shapes |= {f"{side}_center": (*count, 3), f"{side}_rotation": (*count, 3, 3),
                       f"{side}_velocity": (*count, 3), f"{side}_angular_velocity": (*count, 3)}
        for name, shape in shapes.items():
            if name not in state or state[name].shape != shape:
                raise ValueError(f"it has no array {name} of shape {shape}")
        self.rigid.restore({name.removeprefix("rigid."): value for name, value in state.items()
                            if name.startswith("rigid.")})
        self.piece, self.id = state["piece"].copy(), state["id"].copy()
        self.breaking, self.born = state["breaking"].copy(), state["born"].copy()
        self.spared, self.proved = state["spared"].copy(), state["proved"].copy()
        self.before, self.after = (Poses(*(state[f"{side}_{field.name}"]
                                           for field in dataclasses.fields(Poses)))
                                   for side in ("before", "after"))
        self.start, self.end = (float(each) for each in state["tick"])


def _replaced(value: Array, which: Array, there: Array) -> Array:
    """Return an array with other values in some rows."""
    value = value.copy()
    value[which] = there
    return value


def _joined(first: Poses, second: Poses) -> Poses:
    return Poses(*(np.concatenate([getattr(first, field.name), getattr(second, field.name)])
                   for field in dataclasses.fields(Poses)))
