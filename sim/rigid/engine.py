"""The engine of rigid bodies: the one file that knows rapier.

Rapier counts in single precision and has tolerances of its own, so it is given lengths in units of
a typical piece and masses in units of a typical mass; here is the one place that scales. Bodies go
by keys: pieces and balls by their number from 0 on, the floor by -1, collider c by -2 - c. The keys
are stored in the engine, so that a snapshot brings them back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid.corners import four_cornered

FLOOR = -1
#: Added to keys, which the engine stores as whole numbers from 0 on.
_BASE = 1 << 40
#: Contacts begin so far off [units], and rest so deep in one another.
_PREDICTION, _SLOP = 0.02, 1e-3
#: Speeds above are cut off [units/s]; nothing reaches it.
_NO_LIMIT = 1e12
#: How stiff contacts are [Hz], at most so many a substep, and their damping ratio: a pile of ten
#: bodies sinks in by some hundredths of a millimetre.
_STIFFNESS, _MOST_STIFF, _DAMPING = 120.0, 0.0625, 10.0
#: Words before the numbers of what the engine packs as bytes.
_HEAD = 2
#: Substeps of a step; more of them make stacks stiffer.
SUBSTEPS = 4
#: Seconds of stillness after which bodies sleep, and how fast [m/s] is still.
STILL_TIME, STILL_SPEED = 0.5, 0.004
#: Groups of collision: bits of surfaces from 0 on, then those of what a thing is.
LARGE, DEBRIS, STATIC = 1 << 16, 1 << 17, 1 << 18

INSTALL = ("rigid bodies need the package rapier3d, version 0.36, which is not installed or does "
           "not load here; install it with: pip install 'rapier3d>=0.36,<0.37'")


def load() -> Any:
    """Return the engine's module; raises ModuleNotFoundError with a way out."""
    try:
        import rapier3d
    except ImportError as error:
        raise ModuleNotFoundError(f"{INSTALL} ({error})", name="rapier3d") from None
    return rapier3d


def missing() -> str:
    """Return what to install where the engine does not load, "" where it does."""
    try:
        load()
    except ModuleNotFoundError as error:
        return str(error)
    return ""


@dataclass(frozen=True)
class Surface:
    """What a collider is made of, and whom it meets."""

    restitution: float
    friction: float
    member: int                     # bits of groups it is in
    meets: int                      # bits of groups it collides with
    is_least: tuple[bool, bool] | None = None   # of both numbers: whether the other's is larger;
                                                # None for the mean of both things'


@dataclass(frozen=True)
class Form:
    """The shape of one collider about its body's centre [m]: the first that is given counts."""

    normal: Array | None = None             # (3,): of a half-space
    half_size: Array | None = None          # (3,) [m]: of a box
    radius: float = 0.0                     # [m]: of a ball
    offset: Array | None = None             # (3,) [m]: of the ball's middle
    hulls: tuple[Array, ...] = ()           # (v, 3) [m]


@dataclass(frozen=True)
class Frame:
    """Where bodies are in the engine, double precision but as the engine rounded it."""

    center: Array           # (k, 3) [m]
    orientation: Array      # (k, 4) xyzw
    velocity: Array         # (k, 3) [m/s]
    spin: Array             # (k, 3) [rad/s]


@dataclass(frozen=True)
class Contact:
    """Where a body is about to touch something."""

    other: int              # its key
    arm: Array              # (3,) [m] from the body's centre, as at rest
    normal: Array           # (3,) from the body toward the other, in the world


@dataclass(frozen=True)
class Touch:
    """Where two things touch: from the first toward the second."""

    first: int
    second: int
    point: Array            # (3,) [m]
    normal: Array           # (3,)
    impulse: float          # [kg m/s] along the normal, of the whole step


class Engine:
    """A world of rapier in SI units."""

    def __init__(
        self, gravity: Sequence[float], unit: float, mass_unit: float, threads: int
    ) -> None:
        self._rapier = load()
        self.unit, self.mass_unit, self._threads = unit, mass_unit, threads
        world = self._rapier.PhysicsWorld(gravity=tuple(g / unit for g in gravity))
        parameters = world.integration_parameters
        parameters.length_unit = 1.0
        parameters.normalized_max_linear_velocity = _NO_LIMIT
        parameters.normalized_prediction_distance = _PREDICTION
        parameters.normalized_allowed_linear_error = _SLOP
        parameters.num_solver_iterations = SUBSTEPS
        # With one of them, what does not bounce at all would keep 5 % of its speed.
        parameters.num_internal_stabilization_iterations = 4
        self._take(world)

    def _take(self, world: Any) -> None:
        """Go on with a world, new or restored; what is no part of a snapshot is set again."""
        world.set_num_threads(self._threads)
        self._world = world
        self._handle: dict[int, Any] = {}
        self._key: dict[int, int] = {}      # by the index of the handle, which is looked up fast
        self._body: dict[int, Any] = {}
        self._static: dict[int, list[Any]] = {}
        for handle, body in world.rigid_bodies:
            self._note(int(body.user_data) - _BASE, handle)

    def _note(self, key: int, handle: Any) -> None:
        body = self._world.rigid_bodies[handle]
        self._key[handle.index] = key
        if key >= 0:
            self._handle[key], self._body[key] = handle, body
        else:
            self._static.setdefault(key, []).append(body)

    def snapshot(self) -> Array:
        """Return all of it as bytes, (s,) uint8."""
        return np.frombuffer(self._world.snapshot(), np.uint8)

    def restore(self, snapshot: Array) -> None:
        """Go back to a snapshot; raises ValueError, having changed nothing, if it is none."""
        try:
            world = self._rapier.PhysicsWorld.restore(snapshot.tobytes())
        except Exception as error:
            raise ValueError(f"the engine cannot read its snapshot: {error}") from None
        self._take(world)

    # What is in it

    def add(
        self, key: int, frame: Frame, form: Form, surface: Surface, *, mass: float, moment: Array,
        axes: Array, is_driven: bool, falls: bool, size: float,
    ) -> None:
        """Add a body of one row of frame, principal moments and axes; ``size`` is its reach."""
        rapier, unit = self._rapier, self.unit
        builder = (rapier.RigidBody.kinematic_velocity_based() if is_driven
                   else rapier.RigidBody.dynamic())
        scale = 1.0 / (self.mass_unit * unit**2)
        builder = (
            builder.position((_row(frame.center / unit), _row(frame.orientation)))
            .linvel(_row(frame.velocity / unit)).angvel(_row(frame.spin))
            .gravity_scale(1.0 if falls else 0.0).ccd_enabled(True).gyroscopic_forces(False)
            .allow_fast_rotation(True).user_data(key + _BASE)
            .additional_mass_properties(rapier.MassProperties(
                (0.0, 0.0, 0.0), mass / self.mass_unit,
                tuple((np.asarray(moment, np.float64) * scale).tolist()),
                tuple(np.asarray(axes, np.float64).tolist()))))
        handle = self._world.add_body(builder, [self._collider(key, form, surface)])
        self._note(key, handle)
        activation = self._body[key].activation
        activation.linear_threshold = STILL_SPEED / unit
        activation.angular_threshold = STILL_SPEED / max(size, 1e-300)
        activation.time_until_sleep = STILL_TIME
        self._body[key].activation = activation

    def add_static(
        self, key: int, place: Array, orientation: Array, form: Form, surface: Surface,
        is_moved: bool
    ) -> None:
        """Add a part of the surroundings, at rest or moved from step to step."""
        rapier = self._rapier
        builder = (rapier.RigidBody.kinematic_velocity_based() if is_moved
                   else rapier.RigidBody.fixed())
        handle = self._world.add_body(
            builder.position((_row(place / self.unit), _row(orientation))).user_data(key + _BASE),
            [self._collider(key, form, surface)])
        self._note(key, handle)

    def _collider(self, key: int, form: Form, surface: Surface) -> Any:
        rapier, unit, rule = self._rapier, self.unit, self._rapier.CoefficientCombineRule
        group = rapier.InteractionGroups(
            rapier.Group.from_bits(surface.member), rapier.Group.from_bits(surface.meets))
        builder = (self._form(form, unit).density(0.0).user_data(key + _BASE)
                   .restitution(surface.restitution).friction(surface.friction)
                   .collision_groups(group))
        if surface.is_least is not None:
            bounce, slide = (rule.MIN if least else rule.MAX for least in surface.is_least)
            builder = builder.restitution_combine_rule(bounce).friction_combine_rule(slide)
        return builder

    def _form(self, form: Form, unit: float) -> Any:
        rapier = self._rapier
        if form.normal is not None:
            return rapier.Collider.halfspace(tuple(form.normal.tolist()))
        if form.half_size is not None:
            return rapier.Collider.cuboid(*(form.half_size / unit).tolist())
        if form.radius > 0.0:
            ball = rapier.Collider.ball(form.radius / unit)
            return ball if form.offset is None else ball.translation(_row(form.offset / unit))
        shapes = [self._hull(points / unit) for points in form.hulls]
        if len(shapes) == 1:
            return rapier.Collider.new(shapes[0])
        here = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        return rapier.Collider.compound([(here, shape) for shape in shapes])

    def _hull(self, points: Array) -> Any:
        """Return a hull, or a box around points that are too flat to have one."""
        rapier = self._rapier
        try:
            return rapier.SharedShape.convex_hull(
                np.ascontiguousarray(four_cornered(points), np.float32))
        except rapier.RapierError:
            middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
            half = np.maximum(0.5 * np.ptp(points, axis=0), 1e-4)
            return rapier.SharedShape.compound([
                ((_row(middle), (0.0, 0.0, 0.0, 1.0)), rapier.SharedShape.cuboid(*half.tolist()))])

    def remove(self, key: int) -> None:
        """Take a body out; what rested on it wakes up."""
        handle = self._handle.pop(key)
        self._world.remove_body(handle)
        del self._body[key], self._key[handle.index]

    def release(self, key: int) -> None:
        """Let a driven body go."""
        self._body[key].body_type = self._rapier.RigidBodyType.DYNAMIC
        self._body[key].wake_up()

    # Where it is

    def read(self, keys: Sequence[int]) -> Frame:
        """Return where bodies are."""
        bodies = [self._body[key] for key in keys]
        # As bytes: to make thirteen numbers of Python of each body would take twice as long.
        place = _numbers([body.position.to_bytes() for body in bodies], 7)
        velocity = _numbers([body.linvel.to_bytes() for body in bodies], 3)
        spin = _numbers([body.angvel.to_bytes() for body in bodies], 3)
        turn = place[:, :4]
        turn /= np.sqrt((turn**2).sum(axis=1))[:, None]
        return Frame(place[:, 4:] * self.unit, turn, velocity * self.unit, spin)

    def write_place(self, keys: Sequence[int], center: Array, orientation: Array) -> None:
        """Put bodies somewhere."""
        for key, place, turn in zip(
                keys, (center / self.unit).tolist(), orientation.tolist(), strict=True):
            self._body[key].position = (place, turn)

    def write_velocity(self, keys: Sequence[int], velocity: Array, spin: Array) -> None:
        """Give bodies a velocity."""
        for key, straight, turning in zip(
                keys, (velocity / self.unit).tolist(), spin.tolist(), strict=True):
            body = self._body[key]
            body.linvel = straight
            body.angvel = turning

    def write_spin(self, keys: Sequence[int], spin: Array) -> None:
        """Give bodies an angular velocity."""
        for key, turning in zip(keys, spin.tolist(), strict=True):
            self._body[key].angvel = turning

    def wake(self, keys: Sequence[int]) -> None:
        """Wake bodies up."""
        for key in keys:
            self._body[key].wake_up()

    def sleep(self, keys: Sequence[int]) -> None:
        """Put bodies to sleep."""
        for key in keys:
            self._body[key].sleep()

    def foresee(self, keys: Sequence[int], distance: Array) -> None:
        """Look for contacts as far [m] ahead of bodies as they may go in a step."""
        for key, ahead in zip(keys, (distance / self.unit).tolist(), strict=True):
            self._body[key].soft_ccd_prediction = ahead

    def calm(self, keys: Sequence[int], rate: float) -> None:
        """Damp the motion of bodies at a rate [1/s]."""
        for key in keys:
            body = self._body[key]
            body.linear_damping = body.angular_damping = rate

    def drive_static(self, key: int, place: Array, velocity: Array) -> None:
        """Put all copies of a moved collider in place [m] for a step, and let them go on [m/s]."""
        for body in self._static[key]:
            body.translation = _row(place / self.unit)
            body.linvel = _row(velocity / self.unit)
            body.wake_up()

    def awake(self) -> Array:
        """Return the keys of the bodies that are not asleep, (a,) int64, ascending."""
        known = self._key
        keys = np.array([known[handle.index] for handle in self._world.active_bodies()], np.int64)
        return np.sort(keys[keys >= 0])

    def is_asleep(self, key: int) -> bool:
        """Whether a body sleeps."""
        return bool(self._body[key].is_sleeping)

    # What happens

    def step(self, duration: float) -> None:
        """Go on by a time [s]."""
        parameters = self._world.integration_parameters
        parameters.dt = duration
        stiff = min(_STIFFNESS, _MOST_STIFF * SUBSTEPS / duration)
        for name, share in (("contact_softness", 1.0), ("static_contact_softness", 8.0)):
            setattr(parameters, name, self._rapier.SpringCoefficients(share * stiff, _DAMPING))
        self._world.step()
        if not self._world.quarantine.is_empty():
            raise FloatingPointError("the engine lost a body: its place is no number any more")

    def contacts(self, key: int) -> Iterator[Contact]:
        """Yield where a body was about to touch others when the last step began.

        The impulse that the engine tells is that of its last substep alone, and so 0 of what has
        bounced off in the midst of a step.
        """
        colliders = self._world.colliders
        for handle in self._body[key].colliders:
            to_body = colliders[handle].position_wrt_parent
            for pair in self._world.narrow_phase.contact_pairs_with(handle):
                is_first = int(colliders[pair.collider1].user_data) - _BASE == key
                other = colliders[pair.collider2 if is_first else pair.collider1]
                for manifold in pair.manifolds:
                    points = manifold.points
                    if not len(points):
                        continue
                    normal = np.array(manifold.data.normal.to_tuple())
                    for point in points:
                        own = to_body * (point.local_p1 if is_first else point.local_p2)
                        yield Contact(int(other.user_data) - _BASE,
                                      np.array(own.to_tuple()) * self.unit,
                                      normal if is_first else -normal)

    def touching(self, key: int) -> list[Touch]:
        """Return the contacts of a body that carried something in the last step."""
        return [touch for handle in self._body[key].colliders
                for pair in self._world.narrow_phase.contact_pairs_with(handle)
                for touch in self._touches(pair) if touch.impulse > 0.0]

    def _touches(self, pair: Any) -> Iterator[Touch]:
        colliders = self._world.colliders
        first, second = (int(colliders[handle].user_data) - _BASE
                         for handle in (pair.collider1, pair.collider2))
        for manifold in pair.manifolds:
            points = [contact.point.to_tuple() for contact in manifold.data.solver_contacts]
            if not points:
                continue
            normal = np.array(manifold.data.normal.to_tuple())
            impulse = sum(contact.impulse for contact in manifold.points)
            share = impulse * self.mass_unit * self.unit / len(points)
            for point in points:
                yield Touch(first, second, np.array(point) * self.unit, normal, share)


def _numbers(packed: Sequence[bytes], count: int) -> Array:
    """Return what the engine packed, ``count`` numbers each behind a head, (k, count) float64."""
    whole = np.frombuffer(b"".join(packed), np.float32).reshape(len(packed), _HEAD + count)
    return whole[:, _HEAD:].astype(np.float64)


def _row(values: Array) -> tuple[float, ...]:
    return tuple(np.asarray(values, np.float64).ravel().tolist())
