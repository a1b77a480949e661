"""Rigid pieces of a frame, from the particles' motion and the lineage.

levine-2014 section 4, Alignment: one rigid transform a connected component, by
:mod:`vfx.geometry.pieces.kabsch`. Lone particles and collinear rows leave rotation free; there it
is carried on from what they broke off. A piece takes its present form in frame f: it is
born, or loses a part. With R_b, omega_b the rotation and angular velocity of what held its
particles in the frame before, at time t_b,

    point   R(t) = exp(omega_b (t - t_b)) R_b
    line    the same up to t_f; from there it turns with its own angular velocity across
            its axis, as found at t_f, and spins about the axis as omega_b did. At every
            frame the shortest turn then puts the axis where the particles are, so that
            only the spin is carried on.

A solver that knows how elements are turned says so (``turned_element`` of a Motion). Pieces with
such a row turn as the row of their first element does, and nothing is carried on; a line is put by
the shortest turn where its particles are.

What held the particles may have been a line or a point itself, so forms are followed from
the first frame on. They depend on the lineage and the motion alone: a result never depends
on which frames are aligned together, or in which order.

Pieces may also pass to their own motion over some frames (:mod:`vfx.geometry.pieces.transition`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.open_faces import crack_edges
from vfx.geometry.handoff.types import Array, Faces, Lineage, Motion, Pieces, Solid
from vfx.geometry.pieces.cracks import torn_edges
from vfx.geometry.pieces.kabsch import LINE, POINT, UNIQUE, RigidFit, fit_rigid
from vfx.geometry.pieces.lineage import check_frame, labels_at
from vfx.geometry.pieces.transition import Transition, difference, pending


def align_frame(
    solid: Solid, density_of_body: Array, lineage: Lineage, frame: int,
    read_motion: Callable[[int], Motion], *, transition_frames: int = 0,
) -> Pieces:
    """Return the pieces of one frame; for several frames one :class:`Aligner` reads less.

    density_of_body (b,) [kg/m^3].
    """
    return Aligner(solid, density_of_body, lineage, read_motion,
                   transition_frames=transition_frames).align(frame)


@dataclass
class Form:
    """What to carry on: R(t) = exp(turn (t - time)) rotation exp(spin (t - time))."""

    piece: Array             # (k,) int32
    time: Array              # (k,) float64 [s]
    rotation: Array          # (k, 3, 3) float64
    turn: Array              # (k, 3) float64 [rad/s], world axes
    spin: Array              # (k, 3) float64 [rad/s], rest axes


class Aligner:
    """Aligns frames of one sequence.

    ``read_motion`` is asked for earlier frames only where a line or a point must be carried
    on, and then once for each frame in which something broke and the one before. Two frames
    are kept in memory, so that frames asked for in order are read little more than once.
    """

    def __init__(
        self, solid: Solid, density_of_body: Array, lineage: Lineage,
        read_motion: Callable[[int], Motion], *, transition_frames: int = 0,
    ) -> None:
        """density_of_body (b,) [kg/m^3]."""
        self._solid, self._lineage = solid, lineage
        self._mass = np.asarray(density_of_body, dtype=np.float64)[solid.body] * solid.volume
        if not (np.isfinite(self._mass) & (self._mass > 0)).all():
            raise ValueError("Every body needs a finite density above 0.")
        self._read_motion = read_motion
        self._recent: dict[int, Motion] = {}
        self._forms: list[Form] = []           # one for each frame from the first on
        self._transition_frames = transition_frames
        self._transitions: dict[int, Transition] = {}

    def align(self, frame: int) -> Pieces:
        """Return the pieces of ``frame`` with their rigid motions."""
        check_frame(self._lineage, frame)
        label = labels_at(self._lineage, self._solid, frame)
        piece = np.unique(label)
        fit = self._fit_settled(frame, piece)
        motion = self._motion(frame)
        rotation, center = fit.rotation, fit.center
        if self._transition_frames:
            turn, offset = self._pending(frame, piece)
            center = center + _apply(rotation, _apply(turn, fit.rest_center) + offset
                                     - fit.rest_center)
            rotation = rotation @ turn
        return Pieces(
            frame=frame,
            time=motion.time,
            fragment=label,
            id=piece,
            rotation=rotation,
            translation=center - _apply(rotation, fit.rest_center),
            center=center,
            velocity=fit.velocity,
            angular_velocity=fit.angular_velocity,
            mass=fit.mass,
            damage=motion.damage,
            projectile_position=motion.projectile_position,
            projectile_radius=motion.projectile_radius,
            crack_edge=self._cracks(frame, label),
        )

    def _cracks(self, frame: int, label: Array) -> Array:
        """Return the edges (e,) int32 that cracks within pieces have opened by ``frame``."""
        torn = torn_edges(self._lineage, frame)
        return crack_edges(self._faces, label, torn) if len(torn) else torn

    @cached_property
    def _faces(self) -> Faces:
        return all_faces(self._solid)

    def _motion(self, frame: int) -> Motion:
        """Return the motion of ``frame``, checked; the last two read are kept."""
        if frame not in self._recent:
            motion = self._read_motion(frame)
            _check_motion(motion, frame, self._solid.n_elements)
            while len(self._recent) > 1:
                del self._recent[next(iter(self._recent))]
            self._recent[frame] = motion
        return self._recent[frame]

    def _fit(self, frame: int, piece: Array, formed: int | None = None) -> RigidFit:
        """Fit the pieces (k,), ascending, at ``frame``, whatever that leaves free.

        They have the particles of the frame ``formed``, by default the same.
        """
        group = self._group(piece, frame if formed is None else formed)
        chosen = np.flatnonzero(group >= 0)
        motion = self._motion(frame)
        return fit_rigid(self._solid.position[chosen], motion.position[chosen],
                         motion.velocity[chosen], self._mass[chosen], group[chosen],
                         len(piece))

    def _group(self, piece: Array, formed: int) -> Array:
        """Return which of the pieces (k,) each element is of in a frame, or -1: (n,) int32."""
        group_of = np.full(len(self._lineage.parent), -1, dtype=np.int32)
        group_of[piece] = np.arange(len(piece), dtype=np.int32)
        return np.asarray(group_of[labels_at(self._lineage, self._solid, formed)])

    def _settle_turned(self, frame: int, piece: Array, fit: RigidFit,
                       formed: int | None = None) -> Array:
        """Settle what is free in a fit of pieces (k,) where the motion says how they are turned.

        Returns the rows of the fit that still are to be settled.
        """
        free, motion = np.flatnonzero(fit.free != UNIQUE), self._motion(frame)
        if not len(free) or not len(motion.turned_element):
            return free
        group = self._group(piece, frame if formed is None else formed)[motion.turned_element]
        row = np.full(len(piece), -1, dtype=np.int64)
        # The last one written stays: that of the first element.
        backward = np.flatnonzero(group >= 0)[::-1]
        row[group[backward]] = backward
        known = free[row[free] >= 0]
        rotation, omega = (value[row[known]] for value in (
            motion.turned_rotation, motion.turned_velocity))
        fit.rotation[known], _ = _settle(fit, known, rotation, omega.copy())
        fit.angular_velocity[known] = omega
        return free[row[free] < 0]

    def _fit_settled(self, frame: int, piece: Array) -> RigidFit:
        """Fit the pieces (k,) at ``frame`` and settle what is free: as told, or carried on."""
        fit = self._fit(frame, piece)
        free = self._settle_turned(frame, piece, fit)
        if len(free):
            form = self._forms_at(frame, piece[free])
            rotation, omega = _carry_on(form, self._motion(frame).time)
            fit.rotation[free], fit.angular_velocity[free] = _settle(fit, free, rotation, omega)
        return fit

    def _forms_at(self, frame: int, piece: Array) -> Form:
        """Return the forms that ``piece`` (k,) has at ``frame``."""
        n_frames = frame - self._lineage.first_frame + 1
        while len(self._forms) < n_frames:
            self._forms.append(self._take_form(self._lineage.first_frame + len(self._forms)))
        # The last form taken up to this frame is the present one.
        known = self._forms[:n_frames]
        row = np.full(len(self._lineage.parent), -1, dtype=np.int64)
        taken = np.concatenate([form.piece for form in known])
        row[taken] = np.arange(len(taken))
        chosen = row[piece]
        return Form(piece, *(
            np.concatenate([getattr(form, name) for form in known])[chosen]
            for name in ("time", "rotation", "turn", "spin")))

    def _changed(self, frame: int) -> Array:
        """Return the pieces (k,) int32, ascending, whose particles changed at ``frame``."""
        born = np.flatnonzero(self._lineage.birth_frame == frame)
        split = self._lineage.parent[born]
        return np.unique(np.concatenate([born, split[split >= 0]])).astype(np.int32)

    def _held_before(self, frame: int, piece: Array) -> tuple[RigidFit, Array]:
        """Return the poses, a frame earlier, of what held ``piece`` (k,), and which of them.

        The fits are those of the frame before; the rows (k,) say which one held each.
        """
        lineage = self._lineage
        is_born = lineage.birth_frame[piece] == frame
        holder, which = np.unique(
            np.where(is_born, lineage.parent[piece], piece), return_inverse=True)
        return self._fit_settled(frame - 1, holder), which

    def _pending(self, frame: int, piece: Array) -> tuple[Array, Array]:
        """Return what is left of the transitions of pieces (k,), as ``pending`` does."""
        earliest = max(self._lineage.first_frame, frame - self._transition_frames)
        recent = [(begin, self._transition(begin)) for begin in range(frame, earliest, -1)]
        for begin in [each for each in self._transitions if each < earliest]:
            del self._transitions[begin]
        return pending(piece, self._lineage, recent, frame, self._transition_frames)

    def _transition(self, frame: int) -> Transition:
        """Return how the pieces that changed at ``frame`` differ from what held them."""
        if frame not in self._transitions:
            piece = self._changed(frame)
            if not len(piece):
                nothing = np.zeros((0, 3))
                self._transitions[frame] = Transition(piece, nothing, nothing, nothing)
                return self._transitions[frame]
            held, which = self._held_before(frame, piece)
            rotation = held.rotation[which]
            own = self._fit(frame - 1, piece, formed=frame)
            free = self._settle_turned(frame - 1, piece, own, formed=frame)
            if len(free):
                own.rotation[free], _ = _settle(own, free, rotation[free].copy(),
                                                np.zeros((len(free), 3)))
            image = held.center[which] + _apply(
                rotation, own.rest_center - held.rest_center[which])
            self._transitions[frame] = difference(
                piece, own.rest_center, (rotation, image), (own.rotation, own.center))
        return self._transitions[frame]

    def _take_form(self, frame: int) -> Form:
        """Return the forms of all pieces whose particles changed at ``frame``."""
        piece = self._changed(frame)
        k = len(piece)
        if k == 0:
            return Form(piece, np.zeros(0), np.zeros((0, 3, 3)), np.zeros((0, 3)),
                        np.zeros((0, 3)))

        # Find the pose, in the frame before, of what held the particles. At the first frame
        # all is as at rest.
        before = Form(piece, np.full(k, np.nan), np.tile(np.eye(3), (k, 1, 1)),
                      np.zeros((k, 3)), np.zeros((k, 3)))
        if frame > self._lineage.first_frame:
            held, which = self._held_before(frame, piece)
            before.time[:] = self._motion(frame - 1).time
            before.rotation[:] = held.rotation[which]
            before.turn[:] = held.angular_velocity[which]
        else:
            before.time[:] = self._motion(frame).time

        # Lines start from this frame, where their axis is known; so do fits that are unique
        # now but may be crushed onto a line later.
        fit = self._fit(frame, piece)
        free = self._settle_turned(frame, piece, fit)
        now = self._motion(frame).time
        form = Form(piece, before.time.copy(), before.rotation.copy(), before.turn.copy(),
                    before.spin.copy())
        known = np.setdiff1d(np.arange(k), free[fit.free[free] == POINT])
        form.time[known] = now
        form.rotation[known] = fit.rotation[known]
        form.turn[known] = fit.angular_velocity[known]
        line = free[fit.free[free] == LINE]
        if len(line):
            rotation, omega = _carry_on(_rows(before, line), now)
            form.rotation[line], settled = _settle(fit, line, rotation, omega)
            rate = _dot(settled, fit.axis[line])
            form.spin[line] = rate[:, None] * fit.rest_axis[line]
        return form


def _carry_on(form: Form, time: float) -> tuple[Array, Array]:
    """Return rotations (k, 3, 3) and angular velocities (k, 3) of ``form`` at ``time``."""
    elapsed = (time - form.time)[:, None]
    turned = _rotation(form.turn * elapsed) @ form.rotation
    omega = form.turn + _apply(turned, form.spin)
    return turned @ _rotation(form.spin * elapsed), omega


def _settle(fit: RigidFit, rows: Array, rotation: Array, omega: Array) -> tuple[Array, Array]:
    """Return rotation and angular velocity of the fits ``rows`` (k,), none of them UNIQUE.

    rotation (k, 3, 3), omega (k, 3): as carried on. A LINE keeps of them its spin only.
    """
    line = np.flatnonzero(fit.free[rows] == LINE)
    if len(line):
        rest_axis, axis = fit.rest_axis[rows[line]], fit.axis[rows[line]]
        expected = _apply(rotation[line], rest_axis)
        spin = _dot(omega[line], expected)
        rotation[line] = _shortest_turn(expected, axis) @ rotation[line]
        omega[line] = fit.angular_velocity[rows[line]] + spin[:, None] * axis
    return rotation, omega


def _shortest_turn(start: Array, end: Array) -> Array:
    """Return the rotations by the least angle that take unit vectors to others: (k, 3, 3)."""
    cross = np.cross(start, end)
    sine = np.linalg.norm(cross, axis=1)
    angle = np.arctan2(sine, _dot(start, end))
    # Opposite vectors leave the axis open: take one across, from the least coordinate.
    least = np.eye(3)[np.argmin(np.abs(start), axis=1)]
    open_axis = np.cross(start, least)
    axis = np.where((sine > 1e-12)[:, None], cross, open_axis)
    return _rotation(axis * (angle / np.linalg.norm(axis, axis=1))[:, None])


def _rotation(vector: Array) -> Array:
    """Return the rotation matrices (k, 3, 3) of rotation vectors (k, 3) [rad]."""
    return np.asarray(Rotation.from_rotvec(vector).as_matrix())


def _apply(rotation: Array, vector: Array) -> Array:
    """Return the products of (k, 3, 3) and (k, 3): (k, 3)."""
    return np.asarray(np.einsum("kij,kj->ki", rotation, vector))


def _dot(a: Array, b: Array) -> Array:
    """Return the dot products of (k, 3) and (k, 3): (k,)."""
    return np.asarray(np.einsum("ki,ki->k", a, b))


def _rows(form: Form, rows: Array) -> Form:
    """Return the given rows of ``form``."""
    return Form(form.piece[rows], form.time[rows], form.rotation[rows], form.turn[rows],
                form.spin[rows])


def _check_motion(motion: Motion, frame: int, n_particles: int) -> None:
    """Raise ValueError with a sentence if ``motion`` cannot be that of ``frame``."""
    if motion.frame != frame:
        raise ValueError(f"The motion read for frame {frame} is that of frame {motion.frame}.")
    for name, value in (("position", motion.position), ("velocity", motion.velocity)):
        if value.shape != (n_particles, 3):
            raise ValueError(f"Frame {frame}: the {name} has shape {value.shape}, but the solid "
                             f"has {n_particles} particles.")
        finite = np.isfinite(value).all(axis=1)
        if not finite.all():
            raise ValueError(f"Frame {frame}: the {name} of particle {int(np.argmin(finite))} is "
                             "not finite.")
    element, n_rows = motion.turned_element, len(motion.turned_element)
    if (motion.turned_rotation.shape != (n_rows, 3, 3)
            or motion.turned_velocity.shape != (n_rows, 3)
            or not all(np.isfinite(value).all() for value in (
                motion.turned_rotation, motion.turned_velocity))):
        raise ValueError(f"Frame {frame}: the {n_rows} elements whose turn is told need a finite "
                         "rotation and angular velocity each.")
    if n_rows and (element[0] < 0 or element[-1] >= n_particles or (np.diff(element) <= 0).any()):
        raise ValueError(f"Frame {frame}: the elements whose turn is told are not those of the "
                         f"solid, which has {n_particles}, in ascending order.")
