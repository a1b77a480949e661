"""A world of rigid pieces: where they are, what they hit, and what they are to others.

The engine (rapier, single precision) finds contacts and what they do. What flies freely is moved
here, exactly and in double precision (:mod:`vfx.sim.rigid.flight`); the engine is given velocities
that bring it to the same place. What touches something is where the engine says, turned on by the
free top's part that the engine leaves out.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid import flight
from vfx.sim.rigid.air import drag_of
from vfx.sim.rigid.courses import SAME_MOMENT, Courses
from vfx.sim.rigid.engine import FLOOR, Engine, Form, Frame
from vfx.sim.rigid.hits import Hits, find_hits
from vfx.sim.rigid.mass import ball_inertia, element_mass, inertia_of
from vfx.sim.rigid.rows import Rows
from vfx.sim.rigid.settings import RigidSettings
from vfx.sim.rigid.shapes import Corners, Shape, piece_shape
from vfx.sim.rigid.stepping import Stepper
from vfx.sim.rigid.surroundings import Surfaces, Surroundings
from vfx.sim.settings import Material, Projectile
from vfx.sim.solver import Poses, Prop, Unstable, World

__all__ = ["FEW_ELEMENTS", "FLOOR", "Hits", "RigidWorld"]

#: Pieces of fewer elements have no shape to speak of: they are crumbs, unless they are a body.
FEW_ELEMENTS = 8
#: What nothing slows is so much heavier than everything else.
_UNMOVED = 1e6
#: Share of the speed that a hit has to have by which it changes the motion of what is hit.
_BLOW = 0.05


class RigidWorld:
    """Pieces and balls of a shot in motion; ids ascend from 0 and are never reused."""

    def __init__(self, world: World[Any], settings: RigidSettings, threads: int) -> None:
        self.world, self.settings, self.time = world, settings, 0.0
        self._solid = solid = world.solid
        self._element_mass = element_mass(world)
        self._body_count = np.bincount(solid.body)
        self._corners: Corners | None = None
        self._gravity = np.array(world.shared.gravity)
        self._members: list[Array] = []
        self._shape: dict[int, Shape] = {}
        self._rows = Rows()
        self.n_props = len(world.projectiles)
        self._body_material = [world.materials[name] for name in solid.material_name.tolist()]
        self._prop_material = [_prop_material(ball) for ball in world.projectiles]
        self._surfaces = Surfaces([*self._body_material, *self._prop_material])
        self._surroundings = Surroundings(world.floor, world.colliders, self._surfaces)
        unit = _typical_size(world)
        self._engine = Engine(
            world.shared.gravity, unit, float(np.mean([m.density for m in self._body_material]))
            * unit**3, threads)
        self._surroundings.build(self._engine)
        self._courses = Courses(world.courses, self._gravity)
        self._stepper = Stepper(self._gravity, settings.rolling_resistance)
        self._n_debris = 0
        #: By how much [m/s] the last step changed the motion of rows beside gravity, (n,).
        self.blow = np.zeros(0)
        #: Bodies that the last step let go.
        self.released = np.zeros(0, np.int64)
        self._add_props(world.projectiles)

    # What is in it

    def add(
        self, members: Sequence[Array], poses: Poses, drive: Array | None = None,
        least_hit_speed: Array | None = None,
    ) -> Array:
        """Add pieces of the solid's elements and return their ids, (k,) int64, ascending.

        ``drive`` (k,) names the row of ``controls.drive`` that holds each, or -1; without it that
        follows from the elements which regions hold. ``least_hit_speed`` (k,) [m/s]: slower hits
        are not told; without it none is.
        """
        members = [np.asarray(each, np.int64) for each in members]
        held = self._held_by(members) if drive is None else np.asarray(drive, np.int64)
        inertia = inertia_of(members, self._solid.position, self._solid.volume, self._element_mass)
        moment, axes = flight.principal_axes(inertia.tensor)
        turn = flight.quaternion_of(poses.rotation)
        velocity, spin = poses.velocity.copy(), poses.angular_velocity.copy()
        until = np.full(len(members), -np.inf)
        is_held = held >= 0
        table = self.world.controls.drive
        until[is_held] = table[held[is_held], 3]
        driven = until > self.time
        velocity[driven], spin[driven] = table[held[driven], :3], 0.0
        course = np.array([self._courses.of_body(int(self._solid.body[each[0]]))
                           for each in members], np.int64)
        for piece in np.flatnonzero(course >= 0).tolist():
            until[piece] = self._courses.until(int(course[piece]))
            if not until[piece] > self.time:
                continue
            driven[piece] = True
            start = self._courses.at(int(course[piece]), inertia.center[piece], moment[piece],
                                     axes[piece], self.time)
            velocity[piece], spin[piece] = start.velocity[0], start.spin[0]
        crumb = np.array([self._is_crumb(each) for each in members], bool)
        volume = np.array([self._solid.volume[each].sum() for each in members])
        shapes = [self._make_shape(each) for each in members]
        size = np.array([_reach(shape, center) for shape, center
                         in zip(shapes, inertia.center, strict=True)])
        ids = self._rows.append(
            len(members), mass=inertia.mass, tensor=inertia.tensor, moment=moment, axes=axes,
            rest_center=inertia.center, size=size, ball=np.array([s.radius for s in shapes]),
            falls=np.ones(len(members), bool), center=poses.center, turn=turn, velocity=velocity,
            spin=spin, until=np.where(driven, until, -np.inf), flying=~driven,
            course=np.where(driven, course, -1), crumb=crumb, drag=np.where(
                crumb, drag_of(self.settings.air_density, volume, inertia.mass), 0.0))
        self._members += members
        for row, shape, is_driven in zip(ids.tolist(), shapes, driven.tolist(), strict=True):
            self._shape[row] = shape
            self._enter(row, shape, is_driven)
        self._rows.note_engine(ids, self._rows.frame(ids))
        self.watch(ids, np.full(len(ids), np.inf) if least_hit_speed is None else least_hit_speed)
        return ids

    def _enter(self, row: int, shape: Shape, is_driven: bool) -> None:
        """Put a body into the engine."""
        rows = self._rows
        members = self._members[row]
        is_debris = row >= self.n_props and len(members) <= self.settings.debris_elements
        self._n_debris += is_debris
        material = self._material_of(row)
        middle = rows.rest_center[row]
        offset = None if shape.center is None else shape.center - middle
        form = Form(radius=shape.radius, offset=offset,
                    hulls=tuple(points - middle for points in shape.hulls))
        frame = rows.frame([row])
        mass, moment = float(rows.mass[row]), rows.moment[row]
        if math.isinf(mass):
            # Balls that nothing slows are heavy ones to the engine: its driven bodies pass through
            # what they would leave behind in a step.
            mass = _UNMOVED * float(self._element_mass.sum())
            moment = ball_inertia(mass, float(rows.ball[row])).diagonal()
        self._engine.add(
            row, frame, form, self._surfaces.moving(
                material.restitution, material.friction,
                is_debris and self._n_debris > self.settings.debris_contacts),
            mass=mass, moment=moment, axes=rows.axes[row],
            is_driven=is_driven, falls=bool(rows.falls[row]), size=float(rows.size[row]))

    def _add_props(self, balls: Sequence[Projectile]) -> None:
        for ball in balls:
            heavy = ball.has_mass
            mass = ball.mass_of(self.world.materials)
            tensor = ball_inertia(mass, ball.radius)
            moment, axes = flight.principal_axes(tensor[None])
            row = int(self._rows.append(
                1, mass=np.array([mass if heavy else math.inf]), tensor=tensor,
                moment=moment, axes=axes, rest_center=np.zeros(3), size=np.array([ball.radius]),
                ball=np.array([ball.radius]), falls=np.array([heavy and ball.falls]),
                center=np.array(ball.position), turn=np.array([0.0, 0.0, 0.0, 1.0]),
                velocity=np.array(ball.velocity), spin=np.zeros(3), flying=np.array([heavy]),
                until=np.array([-math.inf if heavy else math.inf]))[0])
            self._members.append(np.zeros(0, np.int64))
            self._shape[row] = Shape((), ball.radius, np.zeros(3))
            self._enter(row, self._shape[row], is_driven=False)
            self._rows.note_engine(np.array([row]), self._rows.frame([row]))

    def remove(self, ids: Array) -> None:
        """Take bodies out."""
        for row in np.asarray(ids).tolist():
            self._check(row)
            self._engine.remove(row)
            self._rows.alive[row] = False
            self._shape.pop(row, None)
            self._members[row] = self._members[row][:0]

    def watch(self, ids: Array, speed: Array) -> None:
        """Tell of hits of bodies above a speed (k,) [m/s] each; infinite for none."""
        self._rows.least_hit[ids] = speed

    @property
    def ids(self) -> Array:
        """All bodies that are in it, ascending, (k,) int64."""
        return np.flatnonzero(self._rows.alive)

    def members(self, id: int) -> Array:
        """Return the elements of a piece, (m,) int64; a ball has none."""
        self._check(id)
        return self._members[id]

    def mass(self, ids: Array) -> Array:
        """Return masses, (k,) [kg]; infinite for what nothing slows."""
        return self._rows.mass[ids]

    def inertia(self, ids: Array) -> Array:
        """Return inertia tensors at rest about the centres, (k, 3, 3) [kg m^2]."""
        return self._rows.tensor[ids]

    def rest_center(self, ids: Array) -> Array:
        """Return centres of mass at rest, (k, 3) [m]."""
        return self._rows.rest_center[ids]

    def reach(self, ids: Array) -> Array:
        """Return the distance [m] of bodies' farthest points from their centres, (k,)."""
        return self._rows.size[ids]

    def prop(self, id: int) -> Prop:
        """Return what a body is to particles that run into it."""
        self._check(id)
        rows, material = self._rows, self._material_of(id)
        if id not in self._shape:
            self._shape[id] = self._make_shape(self._members[id])
        shape, middle = self._shape[id], rows.rest_center[id]
        driven = bool(self._driven[id])
        return Prop(
            mass=math.inf if driven else float(rows.mass[id]), inertia=rows.tensor[id],
            radius=shape.radius, hulls=tuple(points - middle for points in shape.hulls),
            restitution=material.restitution, friction=material.friction,
            falls=bool(rows.falls[id]) and not driven)

    def _material_of(self, row: int) -> Material:
        if row < self.n_props:
            return self._prop_material[row]
        return self._body_material[int(self._solid.body[self._members[row][0]])]

    def _make_shape(self, members: Array) -> Shape:
        if self._corners is None:
            self._corners = Corners(self._solid)
        is_debris = len(members) <= self.settings.debris_elements
        return piece_shape(self._corners, self._solid, members,
                           1 if is_debris else self.settings.hulls, self.settings.convexity)

    def _is_crumb(self, members: Array) -> bool:
        """Whether a piece has few elements, and is not all of its body."""
        own = int(self._body_count[self._solid.body[members[0]]])
        return len(members) < min(FEW_ELEMENTS, own)

    def _held_by(self, members: Sequence[Array]) -> Array:
        """Return the row of the drive that holds most of each piece's elements, or -1, (k,)."""
        held, n_rows = self.world.controls.held, len(self.world.controls.drive)
        found = np.full(len(members), -1)
        if (held >= 0).any():
            for piece, each in enumerate(members):
                if len(rows := held[each][held[each] >= 0]):
                    found[piece] = np.bincount(rows, minlength=n_rows).argmax()
        return found

    def _check(self, row: int) -> None:
        if not (0 <= row < len(self._rows) and self._rows.alive[row]):
            raise KeyError(f"there is no body {row}")

    # Where it is

    def poses(self, ids: Array) -> Poses:
        """Return where bodies are and how they move."""
        rows = self._rows
        return Poses(rows.center[ids], flight.matrix_of(rows.turn[ids]), rows.velocity[ids],
                     rows.spin[ids])

    def flown(self, ids: Array, poses: Poses, duration: float, gravity: Array) -> Poses:
        """Return bodies after free flight from these poses; ``gravity`` (k, 3) as each feels it."""
        rows, driven = self._rows, self._driven[ids]
        turn, spin = flight.turn_freely(
            flight.quaternion_of(poses.rotation), poses.angular_velocity, rows.moment[ids],
            rows.axes[ids], duration)
        # What is driven keeps its spin, as the engine has it.
        spin = np.where(driven[:, None], poses.angular_velocity, spin)
        return Poses(
            poses.center + duration * poses.velocity + 0.5 * duration**2 * gravity,
            flight.matrix_of(turn), poses.velocity + duration * gravity, spin)

    def falls(self, ids: Array) -> Array:
        """Return which bodies gravity acts on, (k,) bool: neither those held nor driven."""
        return np.asarray(self._rows.falls[ids] & ~self._driven[ids])

    def is_crumb(self, ids: Array) -> Array:
        """Return which bodies broke off something and have few elements, (k,) bool."""
        return self._rows.crumb[ids]

    def slows(self, ids: Array) -> Array:
        """Return which bodies fly and are slowed by air, (k,) bool."""
        return np.asarray(self._rows.flying[ids] & (self._rows.drag[ids] > 0.0))

    def weighs(self, ids: Array) -> Array:
        """Return which bodies have a weight, held or not, (k,) bool."""
        return self._rows.falls[ids]

    def turns(self, ids: Array) -> Array:
        """Return how bodies are turned, as quaternions (k, 4) xyzw."""
        return self._rows.turn[ids]

    def set_poses(self, ids: Array, poses: Poses) -> None:
        """Put bodies somewhere, awake."""
        rows, keys = self._rows, np.asarray(ids).tolist()
        rows.center[ids], rows.turn[ids] = poses.center, flight.quaternion_of(poses.rotation)
        rows.velocity[ids], rows.spin[ids] = poses.velocity, poses.angular_velocity
        rows.flying[ids], rows.still[ids] = ~self._driven[ids], 0.0
        self._engine.write_place(keys, rows.center[ids], rows.turn[ids])
        self._engine.write_velocity(keys, rows.velocity[ids], rows.spin[ids])
        self._engine.wake(keys)
        rows.note_engine(np.asarray(ids), rows.frame(ids))

    def push(self, ids: Array, impulse: Array, angular_impulse: Array) -> None:
        """Change the momentum of bodies, [kg m/s] and [kg m^2/s] about their centres (k, 3)."""
        rows, which = self._rows, ~self._driven[ids]
        ids, impulse = np.asarray(ids)[which], np.asarray(impulse)[which]
        keys = ids.tolist()
        rows.velocity[ids] += impulse / rows.mass[ids, None]
        own = flight.multiply(rows.turn[ids], rows.axes[ids])
        local = flight.rotate(flight.conjugate(own), np.asarray(angular_impulse)[which])
        rows.spin[ids] += flight.rotate(own, local / rows.moment[ids])
        self._engine.write_velocity(keys, rows.velocity[ids], rows.spin[ids])
        self._engine.wake(keys)
        rows.engine_velocity[ids], rows.engine_spin[ids] = rows.velocity[ids], rows.spin[ids]

    def asleep(self, ids: Array) -> Array:
        """Return which bodies sleep, (k,) bool; what is held still counts."""
        driven = self._driven
        rows = self._rows
        return np.array([
            not (rows.velocity[row].any() or rows.spin[row].any()) if driven[row]
            else self._engine.is_asleep(row) for row in np.asarray(ids).tolist()], bool)

    def energies(self) -> tuple[float, float]:
        """Return kinetic and potential energy [J] of pieces and heavy balls."""
        rows = self._rows
        which = np.flatnonzero(rows.alive & np.isfinite(rows.mass))
        mass, velocity = rows.mass[which], rows.velocity[which]
        own = flight.multiply(rows.turn[which], rows.axes[which])
        local = flight.rotate(flight.conjugate(own), rows.spin[which])
        kinetic = 0.5 * float((mass * (velocity**2).sum(axis=1)).sum()
                              + (rows.moment[which] * local**2).sum())
        height = (rows.center[which] * self._gravity).sum(axis=1)
        return kinetic, -float((mass * rows.falls[which] * height).sum())

    def momentum(self) -> Array:
        """Return the momentum (3,) [kg m/s] of pieces and heavy balls."""
        rows = self._rows
        which = np.flatnonzero(rows.alive & np.isfinite(rows.mass))
        return np.asarray((rows.mass[which, None] * rows.velocity[which]).sum(axis=0))

    @property
    def _driven(self) -> Array:
        """Which rows are held or driven, (n,) bool."""
        return np.asarray(self._rows.alive & (self._rows.until > self.time + SAME_MOMENT))

    # What happens

    def step(self, duration: float) -> Hits:
        """Go on by one step of the engine of that length [s]; raises :class:`Unstable`."""
        rows, began = self._rows, self.time
        self._release()
        driven = self._driven
        self._lead(np.flatnonzero(driven & (rows.course >= 0)), duration)
        before = dataclasses.replace(rows)
        before.velocity, before.spin = rows.velocity.copy(), rows.spin.copy()
        before.center, before.turn = rows.center.copy(), rows.turn.copy()
        self._surroundings.move(self._engine, began, duration)
        try:
            self._stepper.step(rows, self._engine, driven, duration)
        except FloatingPointError as error:
            raise Unstable(f"{error}, at {began:.6g} s; see whether bodies begin in one another, "
                           "or use a smaller sim.rigid.timestep") from None
        self.time += duration
        for row in np.flatnonzero(driven & (rows.course >= 0)).tolist():
            place = self._on_course(row, self.time)
            rows.center[row], rows.turn[row] = place.center[0], place.orientation[0]
        fall = rows.falls[:, None] * self._gravity * duration
        self.blow = (np.sqrt(((rows.velocity - before.velocity - fall) ** 2).sum(axis=1))
                     + rows.size * np.sqrt(((rows.spin - before.spin) ** 2).sum(axis=1)))

        def velocity_at(moving: Rows, key: int, point: Array) -> Array:
            if key < 0:
                return self._surroundings.velocity(key, began, duration)
            return np.asarray(moving.velocity[key]
                              + np.cross(moving.spin[key], point - before.center[key]))

        return find_hits(self._contacts(before, driven), velocity_at, before, rows)

    def _contacts(self, before: Rows, driven: Array) -> Iterator[tuple[int, int, Array, Array]]:
        """Yield contacts of watched bodies whose motion changed: who, with whom, place, normal."""
        rows = self._rows
        hit = (self.blow > _BLOW * rows.least_hit) | driven
        for row in np.flatnonzero(rows.alive & np.isfinite(rows.least_hit) & hit).tolist():
            for contact in self._engine.contacts(row):
                arm = flight.rotate(before.turn[row:row + 1], contact.arm[None])[0]
                yield row, contact.other, before.center[row] + arm, contact.normal

    def _on_course(self, row: int, time: float) -> Frame:
        """Return where a body that follows an animation is at a time [s], one row."""
        rows = self._rows
        return self._courses.at(int(rows.course[row]), rows.rest_center[row], rows.moment[row],
                                rows.axes[row], time)

    def _lead(self, ids: Array, duration: float) -> None:
        """Let bodies that follow an animation go through a step to where it has them then."""
        rows = self._rows
        for row in ids.tolist():
            ahead = self._on_course(row, self.time + duration)
            rows.velocity[row] = (ahead.center[0] - rows.center[row]) / duration
            rows.spin[row] = flight.turn_vector(flight.multiply(
                ahead.orientation, flight.conjugate(rows.turn[row:row + 1])))[0] / duration
        self._engine.write_velocity(ids.tolist(), rows.velocity[ids], rows.spin[ids])
        self._engine.wake(ids.tolist())

    def following(self, ids: Array, since: float, time: float) -> tuple[Array, Poses]:
        """Return which of some bodies followed an animation after ``since`` [s], and where then.

        The first are places in ``ids``; the poses are those of a time [s].
        """
        rows = self._rows
        which = np.array([place for place, row in enumerate(np.asarray(ids).tolist())
                          if rows.course[row] >= 0
                          and self._courses.until(int(rows.course[row])) > since + SAME_MOMENT],
                         np.int64)
        frames = [self._on_course(int(ids[place]), time) for place in which.tolist()]
        if not frames:
            return which, self.poses(ids[:0])
        return which, Poses(
            np.concatenate([each.center for each in frames]),
            flight.matrix_of(np.concatenate([each.orientation for each in frames])),
            np.concatenate([each.velocity for each in frames]),
            np.concatenate([each.spin for each in frames]))

    def _release(self) -> None:
        """Let go what was held long enough; what followed an animation goes on as it does."""
        rows = self._rows
        due = np.flatnonzero(rows.alive & np.isfinite(rows.until)
                             & (rows.until <= self.time + SAME_MOMENT))
        for row in due.tolist():
            self._engine.release(row)
            if rows.course[row] >= 0:
                place = self._on_course(row, self.time)
                rows.velocity[row], rows.spin[row] = place.velocity[0], place.spin[0]
        rows.until[due], rows.flying[due] = -np.inf, True
        self._engine.write_velocity(due.tolist(), rows.velocity[due], rows.spin[due])
        rows.engine_velocity[due], rows.engine_spin[due] = rows.velocity[due], rows.spin[due]
        self.released = due

    # Going on later

    def state(self) -> dict[str, Array]:
        """Return everything that is needed to go on bit for bit."""
        count = [len(each) for each in self._members]
        return self._rows.arrays() | {
            "engine": self._engine.snapshot(), "world_time": np.array(self.time),
            "n_debris": np.array(self._n_debris), "member_count": np.array(count, np.int64),
            "member": np.concatenate([*self._members, np.zeros(0, np.int64)])}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Go back to a :meth:`state`; raises ValueError, having changed nothing, if it is none."""
        rows = Rows.of(state)
        try:
            count, member = state["member_count"], state["member"]
            time, n_debris, engine = state["world_time"], state["n_debris"], state["engine"]
        except KeyError as error:
            raise ValueError(f"{error} is missing") from None
        n_elements = self._solid.n_elements
        if (len(count) != len(rows) or count.sum() != len(member) or len(rows) < self.n_props
                or (len(member) and not 0 <= member.min() <= member.max() < n_elements)):
            raise ValueError("the pieces are not those of this solid")
        self._engine.restore(engine)
        self._rows, self.time, self._n_debris = rows, float(time), int(n_debris)
        self._members = np.split(member, np.cumsum(count)[:-1]) if len(count) else []
        props = {row: self._shape[row] for row in range(self.n_props)}
        self._shape = props


def _prop_material(ball: Projectile) -> Material:
    """Return a material that bounces and slides as a ball does."""
    return Material(restitution=ball.restitution, friction=ball.friction)


def _typical_size(world: World[Any]) -> float:
    """Return the length [m] that is 1 to the engine: between an element and a body."""
    solid = world.solid
    element = float(np.cbrt(solid.volume.mean()))
    extent = [float(np.ptp(solid.position[solid.body == body], axis=0).max()) + element
              for body in range(len(solid.length_scale)) if (solid.body == body).any()]
    return math.sqrt(element * float(np.median(extent)))


def _reach(shape: Shape, center: Array) -> float:
    """Return the distance [m] of a shape's farthest point from a centre."""
    if shape.center is not None:
        return shape.radius + float(np.sqrt(((shape.center - center) ** 2).sum()))
    return max(float(np.sqrt(((points - center) ** 2).sum(axis=1)).max()) for points in shape.hulls)
