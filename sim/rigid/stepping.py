"""One step of rigid bodies: what flies goes exactly, what touches as the engine has it.

Before the engine's step, the flight of every body that is awake is worked out, with what air takes
from it. After it, those whose velocity in the engine changed by gravity alone take that flight; the
others take what the engine says.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.sim.rigid import flight
from vfx.sim.rigid.air import slowed
from vfx.sim.rigid.engine import STILL_SPEED, SUBSTEPS, Engine, Frame
from vfx.sim.rigid.rows import Rows

#: What a velocity may be off by that only rounding changed, relative.
_ROUNDING = 3e-6
#: The engine may be off by this share of a unit before it is corrected.
_ASTRAY = 1e-4
#: Contacts slower than this [m/s] for so long [s] are damped at a rate [1/s].
_SLOW, _SLOW_TIME, _CALM = 0.02, 0.25, 8.0
#: When all that is awake has been slow and in contact for so long [s], it is put to sleep: jammed
#: pieces creep apart by contacts that come and go, and each keeps the engine from it.
_TIRED = 1.5
#: Rolling resistance of what has edges, relative to that of balls.
_EDGED = 4.0
#: Changes of the speed of a surface [m/s] below this are not worth telling the engine.
_WOBBLE = 1e-5
#: Further ahead than they go, bodies look for contacts.
_AHEAD = 1.1


class Stepper:
    """Steps rows of bodies and an engine together."""

    def __init__(self, gravity: Array, rolling_resistance: float) -> None:
        self._gravity, self._resistance = gravity, rolling_resistance

    def step(self, rows: Rows, engine: Engine, driven: Array, duration: float) -> None:
        """Go on by a time [s]; ``driven`` rows go straight on and turn evenly."""
        # The engine does not list what was put into it after its last step.
        moves = rows.alive & rows.flying
        moves[engine.awake()] = True
        awake = np.flatnonzero(moves & ~driven)
        before = rows.center[awake]
        ahead = self._fly(rows, awake, duration)
        self._lead(rows, engine, awake, ahead, duration)
        self._foresee(rows, engine, np.flatnonzero(moves | driven), duration)
        engine.step(duration)
        rows.center[driven] += rows.velocity[driven] * duration
        rows.turn[driven] = flight.multiply(
            flight.turn_by(rows.spin[driven] * duration), rows.turn[driven])
        self._hold(rows, engine, driven)
        self._take(rows, engine, awake, ahead, driven, duration)
        self._sleep(rows, engine, awake, rows.center[awake] - before, duration)

    def _fly(self, rows: Rows, awake: Array, duration: float) -> Frame:
        """Return where bodies would be after a step in which gravity and air alone act."""
        fall = rows.falls[awake, None] * self._gravity
        turn, spin = flight.turn_freely(
            rows.turn[awake], rows.spin[awake], rows.moment[awake], rows.axes[awake], duration)
        drag = self._drag(rows, awake)
        velocity = slowed(rows.velocity[awake], drag, 0.5 * duration)
        return Frame(rows.center[awake] + duration * velocity + 0.5 * duration**2 * fall, turn,
                     slowed(velocity + duration * fall, drag, 0.5 * duration), spin)

    def _drag(self, rows: Rows, awake: Array) -> Array:
        """Return the drag of bodies; what touches something has none, or it would never rest."""
        return np.where(rows.flying[awake], rows.drag[awake], 0.0)

    def _lead(
        self, rows: Rows, engine: Engine, awake: Array, ahead: Frame, duration: float
    ) -> None:
        """Give the engine velocities that bring what flies to where it will be."""
        expected = self._expected(rows, awake, duration)
        gap = ahead.center - expected.center
        turn_gap = flight.turn_vector(
            flight.multiply(ahead.orientation, flight.conjugate(expected.orientation)))
        astray = (np.abs(gap).max(axis=1, initial=0.0) > _ASTRAY * engine.unit) | (
            np.abs(turn_gap).max(axis=1, initial=0.0) * rows.size[awake]
            > _ASTRAY * engine.unit)
        which = np.flatnonzero(astray & rows.flying[awake])
        ids = awake[which]
        way = flight.turn_vector(flight.multiply(
            ahead.orientation[which], flight.conjugate(rows.engine_turn[ids])))
        rows.engine_velocity[ids] += gap[which] / duration
        rows.engine_spin[ids] = way / duration
        engine.write_velocity(ids.tolist(), rows.engine_velocity[ids], rows.engine_spin[ids])

    def _expected(self, rows: Rows, ids: Array, duration: float) -> Frame:
        """Return where the engine will have bodies on which nothing but gravity acts."""
        fall = rows.falls[ids, None] * self._gravity
        velocity, spin = rows.engine_velocity[ids], rows.engine_spin[ids]
        # Each substep adds its share of gravity before it moves.
        late = 0.5 * (1.0 + 1.0 / SUBSTEPS) * duration**2
        return Frame(
            rows.engine_center[ids] + duration * velocity + late * fall,
            flight.multiply(flight.turn_by(spin * duration), rows.engine_turn[ids]),
            velocity + duration * fall, spin)

    def _foresee(self, rows: Rows, engine: Engine, ids: Array, duration: float) -> None:
        """Let the engine look for contacts as far ahead as bodies go, in powers of two."""
        unit = engine.unit
        speed = flight.length(rows.velocity[ids]) + rows.size[ids] * flight.length(rows.spin[ids])
        way = _AHEAD * duration * (speed + duration * np.sqrt((self._gravity**2).sum())) / unit
        wanted = unit * np.where(way > 0.02, 2.0 ** np.ceil(np.log2(np.maximum(way, 1e-300))), 0.0)
        new = np.flatnonzero(wanted != rows.foreseen[ids])
        engine.foresee(ids[new].tolist(), wanted[new])
        rows.foreseen[ids[new]] = wanted[new]

    def _hold(self, rows: Rows, engine: Engine, driven: Array) -> None:
        """Put what is held or driven where it has to be, if the engine's rounding added up."""
        ids = np.flatnonzero(driven)
        if not len(ids):
            return
        frame, unit = engine.read(ids.tolist()), engine.unit
        near = 1e-6 * unit + 2e-7 * np.abs(rows.center[ids]).max(axis=1)
        lost = ids[(np.abs(frame.center - rows.center[ids]).max(axis=1) > near)
                   | (np.abs(frame.orientation - rows.turn[ids]).max(axis=1) > 1e-6)]
        engine.write_place(lost.tolist(), rows.center[lost], rows.turn[lost])
        changed = ids[(frame.velocity != rows.engine_velocity[ids]).any(axis=1)
                      | (frame.spin != rows.engine_spin[ids]).any(axis=1)]
        engine.write_velocity(changed.tolist(), rows.velocity[changed], rows.spin[changed])
        rows.note_engine(ids, engine.read(ids.tolist()))

    def _take(
        self, rows: Rows, engine: Engine, awake: Array, ahead: Frame, driven: Array,
        duration: float,
    ) -> None:
        """Take over what the engine did: flights exactly, contacts as it has them."""
        unit = engine.unit
        expected = self._expected(rows, awake, duration)
        is_new = ~driven
        is_new[awake] = False
        after = engine.awake()
        woken = after[is_new[after]]
        found = engine.read(awake.tolist())
        speed = flight.length(expected.velocity)
        free = (
            (flight.length(found.velocity - expected.velocity)
             <= _ROUNDING * (speed + duration * np.sqrt((self._gravity**2).sum())) + 1e-7 * unit)
            & (np.abs(found.spin - expected.spin).max(axis=1, initial=0.0)
               <= _ROUNDING * flight.length(expected.spin) + 1e-7)
            # The engine stops short of what fast bodies would run through.
            & (flight.length(found.center - expected.center)
               <= 1e-3 * duration * speed + 1e-5 * unit
               + 1e-6 * np.abs(expected.center).max(axis=1, initial=0.0))
            & ~rows.calmed[awake])
        start = slowed(rows.velocity[awake], self._drag(rows, awake), duration)
        rows.note_engine(awake, found)
        touch = ~free
        rows.center[awake] = np.where(touch[:, None], found.center, ahead.center)
        rows.turn[awake] = np.where(touch[:, None], found.orientation, ahead.orientation)
        rows.velocity[awake], rows.spin[awake] = ahead.velocity, ahead.spin
        rows.flying[awake] = free
        self._strike(rows, engine, awake[touch], Frame(
            found.center[touch], found.orientation[touch],
            found.velocity[touch] - expected.velocity[touch],
            found.spin[touch] - expected.spin[touch]))
        fall = rows.falls[awake[touch], None] * self._gravity
        felt = flight.length(rows.velocity[awake[touch]] - start[touch] - duration * fall)
        self._brake(rows, engine, awake[touch], felt, duration)
        self._calm(rows, engine, awake, duration)
        if len(woken):
            frame = engine.read(woken.tolist())
            rows.note_engine(woken, frame)
            rows.center[woken], rows.turn[woken] = frame.center, frame.orientation
            rows.velocity[woken], rows.spin[woken] = frame.velocity, frame.spin
            rows.flying[woken] = False

    def _sleep(self, rows: Rows, engine: Engine, awake: Array, way: Array,
               duration: float) -> None:
        """Put all to sleep that is awake once all of it has been at rest for long."""
        if not len(awake) or rows.still[awake].min() < _TIRED:
            return
        speed = (np.sqrt((rows.velocity[awake] ** 2).sum(axis=1))
                 + rows.size[awake] * np.sqrt((rows.spin[awake] ** 2).sum(axis=1)))
        moved = np.sqrt((way**2).sum(axis=1)) / duration
        left = engine.awake()
        if max(speed.max(), moved.max()) < STILL_SPEED and np.isin(left, awake).all():
            engine.sleep(left.tolist())

    def _strike(self, rows: Rows, engine: Engine, ids: Array, change: Frame) -> None:
        """Change the flight of bodies by what contacts changed of the engine's velocities.

        Not by those velocities: they were led to where the flight goes, and the engine knows
        nothing of the free top. A difference within rounding is not worth telling the engine.
        """
        velocity = rows.velocity[ids] + change.velocity
        spin = rows.spin[ids] + change.spin
        told = ((flight.length(velocity - rows.engine_velocity[ids])
                 > _ROUNDING * flight.length(velocity) + 1e-7 * engine.unit)
                | (np.abs(spin - rows.engine_spin[ids]).max(axis=1, initial=0.0)
                   * rows.size[ids] > _WOBBLE))
        new = ids[told]
        rows.velocity[ids] = np.where(told[:, None], velocity, rows.engine_velocity[ids])
        rows.spin[ids] = np.where(told[:, None], spin, rows.engine_spin[ids])
        rows.engine_velocity[new], rows.engine_spin[new] = rows.velocity[new], rows.spin[new]
        engine.write_velocity(new.tolist(), rows.velocity[new], rows.spin[new])

    def _brake(self, rows: Rows, engine: Engine, ids: Array, felt: Array,
               duration: float) -> None:
        """Let rolling resistance slow what is in contact, which ``felt`` (k,) [m/s] of it."""
        if self._resistance == 0.0:
            return
        change = np.zeros((len(ids), 3))
        rolls = (rows.ball[ids] > 0.0) & rows.spin[ids].any(axis=1)
        for place in np.flatnonzero(rolls).tolist():
            change[place] += self._rolling(rows, engine, int(ids[place]))
        edged = np.flatnonzero(rows.ball[ids] == 0.0)
        change[edged] += self._rocking(rows, ids[edged], felt[edged], duration)
        new = ids[change.any(axis=1)]
        rows.spin[ids] += change
        rows.engine_spin[new] = rows.spin[new]
        engine.write_spin(new.tolist(), rows.spin[new])

    def _rolling(self, rows: Rows, engine: Engine, row: int) -> Array:
        """Return what rolling resistance changes of a ball's angular velocity in a step, (3,)."""
        pressed = np.zeros(3)
        for touch in engine.touching(row):
            pressed += touch.impulse * (touch.normal if touch.second == row else -touch.normal)
        press = float(np.sqrt((pressed**2).sum()))
        if press == 0.0:
            return pressed
        # Rolling, and turning on the spot, which would never end.
        spin = rows.spin[row]
        speed = float(np.sqrt((spin**2).sum()))
        slowed = (self._resistance * press * rows.ball[row]
                  / float(rows.moment[row].mean()))
        return np.asarray(-spin * min(1.0, slowed / speed) if speed > 0.0 else np.zeros(3))

    def _rocking(self, rows: Rows, ids: Array, felt: Array, duration: float) -> Array:
        """Return what pieces with edges lose of their angular velocity in a step, (k, 3).

        They rock and tumble on facets, each of which takes a little: as if what carries of their
        weight were rolling at the end of their reach, with a larger resistance. Nothing carries
        a piece that flies with a crumb in one of its cracks.
        """
        most = duration * np.sqrt((self._gravity**2).sum())
        moment = rows.moment[ids].mean(axis=1)
        slowed = _EDGED * self._resistance * rows.mass[ids] * np.minimum(felt, most) * rows.size[
            ids] / np.maximum(moment, 1e-300)
        speed = flight.length(rows.spin[ids])
        # What is slow is calmed, and may fall asleep.
        share = np.where(speed * rows.size[ids] > _SLOW,
                         np.minimum(slowed / np.maximum(speed, 1e-300), 1.0), 0.0)
        return np.asarray(-rows.spin[ids] * share[:, None])

    def _calm(self, rows: Rows, engine: Engine, awake: Array, duration: float) -> None:
        """Damp what has been slow and in contact for a while, and nothing else."""
        speed = (flight.length(rows.velocity[awake])
                 + rows.size[awake] * flight.length(rows.spin[awake]))
        slow = ~rows.flying[awake] & (speed < _SLOW)
        rows.still[awake] = np.where(slow, rows.still[awake] + duration, 0.0)
        calmed = rows.still[awake] > _SLOW_TIME
        changed = awake[calmed != rows.calmed[awake]]
        rows.calmed[awake] = calmed
        for is_calm in (True, False):
            engine.calm(changed[rows.calmed[changed] == is_calm].tolist(),
                              _CALM if is_calm else 0.0)
