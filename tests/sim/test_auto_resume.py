"""The schedule goes on bit for bit: after a kill, on any number of threads, however it is asked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.auto_worlds import CHALK, auto_solver, auto_world, block, layout, run
from vfx.device import Device, open_device
from vfx.geometry.handoff.types import Array
from vfx.sim.auto.solver import AutoSolver
from vfx.sim.settings import Collider, Floor, Projectile
from vfx.sim.solver import Outcome

__all__ = ["layout"]

#: Two bodies that break one after the other, a ball, and a collider that moves.
BODIES = [block((6, 3, 3), name="one", center=(0.0, 0.08, 0.0), velocity=(0.3, -2.0, 0.1),
                angular_velocity=(3.0, 1.0, 2.0)),
          block((4, 3, 2), name="two", center=(0.08, 0.12, 0.0), velocity=(-0.2, -2.0, 0.0),
                rotation=(10.0, 0.0, 40.0))]
GIVEN = {
    "projectiles": [Projectile(radius=0.015, position=(-0.3, 0.03, 0.0), velocity=(4.0, 0.0, 0.0),
                               mass=0.03, falls=True)],
    "colliders": [Collider(shape="box", size=(0.05, 0.05, 0.2), keys=(
        (0.0, 0.3, 0.025, 0.0), (0.2, 0.2, 0.025, 0.0)))],
    "floor": Floor(), "pause": 2e-3, "rigid": {"air_density": 1.2}}
END = 0.12


def make(device: Device, pieces: str = "held") -> AutoSolver:
    return auto_solver(device, BODIES, **GIVEN, bonds={"pieces": pieces})


def same(first: dict[str, Array], second: dict[str, Array]) -> None:
    """Compare states; what the engine kept may list the same pairs in another order."""
    assert set(first) == set(second)
    for name in first:
        if name == "rigid.engine":
            assert len(first[name]) == len(second[name])
            assert (first[name] != second[name]).mean() < 1e-3
        else:
            assert np.array_equal(first[name], second[name], equal_nan=True), name


def phase(solver: AutoSolver) -> str:
    if solver._trial is not None:
        return "trial in window" if solver._window is not None else "trial"
    return "window" if solver._window is not None else "rigid"


@pytest.mark.parametrize("prestress", [0.0, 1e5])
def test_a_state_goes_on_bit_for_bit_in_every_phase(device: Device, prestress: float) -> None:
    world = auto_world(
        BODIES, **GIVEN, material=dataclasses.replace(CHALK, prestress=prestress))
    straight = AutoSolver(device, world)
    run(straight, END)
    end = straight.state()
    killed, seen = AutoSolver(device, world), []
    while killed.time < killed.moment(END):
        # A pause after every bit of work shows trials, too.
        killed.advance(min(END, killed.time + 4e-3), 0.0)
        killed._steps_a_call = 3
        now = phase(killed)
        if seen.count(now) < 3 or now != seen[-1]:
            state = {name: value.copy() for name, value in killed.state().items()}
            killed = AutoSolver(device, world)
            killed.restore(state)
            same(killed.state(), state)
        seen.append(now)
    assert {"rigid", "window", "trial"} <= set(seen)
    assert len(straight.broken()) > 30 and killed.time == straight.time
    same(killed.state(), end)
    assert killed.tallies() == straight.tallies()
    one, two = killed.frame(3, 0.0), straight.frame(3, 0.0)
    for name in ("position", "velocity", "damage", "broken_edge", "torn_edge", "turned_rotation"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name


def test_pieces_of_time_do_not_count(device: Device) -> None:
    whole, parts = make(device), make(device)
    run(whole, END)
    for time in np.linspace(0.0, END, 173)[1:]:
        assert parts.advance(float(time), 1e9) is Outcome.REACHED
        # Whoever looks changes nothing.
        parts.frame(0, 0.0), parts.tallies(), parts.broken()
    same(parts.state(), whole.state())


@pytest.mark.parametrize("pieces", ["faces", "held"])
def test_frames_tell_every_break(device: Device, pieces: str) -> None:
    solver, told, torn, since = make(device, pieces), [], [], 0.0
    for time in np.linspace(0.0, END, 60)[1:]:
        run(solver, float(time))
        motion = solver.frame(0, since)
        told.append(motion.broken_edge)
        torn.append(motion.torn_edge)
        since = solver.time
        every = np.sort(np.concatenate(told))
        # What parts within a tick may be told by the frame in it and by the next one.
        assert np.array_equal(every if pieces == "faces" else np.unique(every), solver.broken())
    assert sum(map(len, told)) > 30
    # Where cracks gape is told, also after the impact.
    assert len(torn[-1]) > 0 and len(np.unique(torn[-1])) == len(torn[-1])
    assert np.array_equal(torn[-1], np.flatnonzero(solver._torn))


@pytest.mark.parametrize("threads", [2])
def test_threads_do_not_count(threads: int) -> None:
    ends = []
    for count in (1, threads):
        device = open_device("cpu")
        device.threads = count
        assert device.threads == count
        solver = make(device)
        run(solver, END)
        ends.append(solver.state())
    same(*ends)


def test_settling_goes_on_bit_for_bit(device: Device) -> None:
    world = auto_world([block((4, 2, 2), center=(0.0, 0.04, 0.0), velocity=(0.2, -1.8, 0.0),
                              rotation=(0.0, 0.0, 30.0))])
    straight, killed = AutoSolver(device, world), AutoSolver(device, world)
    for time in np.arange(1, 11) * 0.15:
        run(straight, float(time))
        run(killed, float(time))
        state = {name: value.copy() for name, value in killed.state().items()}
        killed = AutoSolver(device, world)
        killed.restore(state)
    same(killed.state(), straight.state())
    assert straight.tallies()["asleep"] == straight.tallies()["rigid_pieces"]


def test_a_state_of_something_else_is_refused_and_changes_nothing(device: Device) -> None:
    solver, other = make(device), auto_solver(device, [block((3, 2, 2))])
    while solver._window is None:
        run(solver, solver.time + 1e-3)
    good = solver.state()
    bad = [other.state(), {}, {k: v for k, v in good.items() if k != "window.count"},
           {k: v for k, v in good.items() if k != "rigid.engine"},
           {k: v for k, v in good.items() if k != "before_center"},
           {**good, "window.matter_position": good["window.matter_position"][:-1]},
           {**good, "rigid.engine": good["rigid.engine"][:100]},
           {**good, "dead": np.zeros(3)}]
    run(solver, solver.time + 0.01)
    before = solver.state()
    for state in bad:
        with pytest.raises(ValueError):
            solver.restore(state)
        same(solver.state(), before)
    with pytest.raises(ValueError, match="takes no matter"):
        solver.place(solver.matter())
