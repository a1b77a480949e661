"""Laws of rigid bodies as a solver: the engine alone, on the clock of a shot."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tests.sim.rigid_worlds import GRAVITY, STEP, block, layout, rigid_setup, world_of
from vfx.device import Device
from vfx.sim.rigid.plan import make_plan
from vfx.sim.rigid.poses import between, seen_between
from vfx.sim.rigid.solver import RigidSolver
from vfx.sim.settings import Collider, Crack, Floor, Material, Projectile, Region
from vfx.sim.solver import Outcome, Poses

__all__ = ["layout"]

BOUNCY = Material(restitution=0.5)


def test_frames_fall_anywhere_on_the_parabola(device: Device) -> None:
    solver = RigidSolver(device, world_of([block(center=(0.0, 5.0, 0.0), velocity=(1.0, 0.0, 0.0),
                                                 angular_velocity=(0.0, 3.0, 0.0))]))
    start = solver.matter().position.mean(axis=0)
    for time in (0.3 * STEP, 0.1, 0.1 + 0.77 * STEP, 0.5):
        assert solver.advance(time, 1e9) is Outcome.REACHED
        motion = solver.frame(4, 0.0)
        assert solver.time == motion.time == time == solver.moment(time)
        way = np.array([time, -0.5 * GRAVITY * time**2, 0.0])
        np.testing.assert_allclose(motion.position.mean(axis=0) - start, way, atol=1e-9)
        np.testing.assert_allclose(
            motion.velocity.mean(axis=0), [1.0, -GRAVITY * time, 0.0], atol=1e-9)
        assert not len(motion.broken_edge) and not motion.damage.any()


def test_a_frame_never_shows_a_velocity_between_before_and_after_a_hit(device: Device) -> None:
    solver = RigidSolver(device, world_of([block(center=(0.0, 0.1, 0.0))], floor=Floor(),
                                          material=BOUNCY))
    hit = math.sqrt(2.0 * GRAVITY * 0.09)
    speeds = []
    for number in range(1, 2000):
        solver.advance(number * 1e-4, 1e9)
        speeds.append(float(solver.frame(0, 0.0).velocity[:, 1].mean()))
    turn = next(k for k, speed in enumerate(speeds) if speed > 0.0)
    assert speeds[turn - 1] == pytest.approx(-hit, rel=0.03)
    assert speeds[turn] == pytest.approx(0.5 * hit, rel=0.1)


def test_where_nothing_is_hit_velocities_change_evenly() -> None:
    one = Poses(np.zeros((1, 3)), np.eye(3)[None], np.array([[1.0, 0.0, 0.0]]), np.zeros((1, 3)))
    gravity = np.array([0.0, -10.0, 0.0])
    two = Poses(np.array([[0.1, -0.05, 0.0]]), np.eye(3)[None], np.array([[1.0, -1.0, 0.0]]),
                np.zeros((1, 3)))
    for find in (between, seen_between):
        middle = find(one, two, 0.5, 0.1, gravity)
        np.testing.assert_allclose(middle.velocity, [[1.0, -0.5, 0.0]], atol=1e-12)
        np.testing.assert_allclose(middle.center, [[0.05, -0.0125, 0.0]], atol=1e-12)
        assert find(one, two, 1.0, 0.1, gravity) is two


def test_a_state_goes_on_bit_for_bit_and_asking_changes_nothing(device: Device) -> None:
    bodies = [block((2, 3, 2), name=f"b{k}", center=(0.01 * k, 0.05 + 0.05 * k, 0.0),
                    angular_velocity=(3.0, k, 1.0)) for k in range(4)]
    lift = Collider(shape="box", size=(0.5, 0.02, 0.5), keys=(
        (0.0, 0.0, 0.0, 0.0), (0.3, 0.0, 0.02, 0.0)))
    ball = Projectile(radius=0.01, position=(-0.5, 0.05, 0.0), velocity=(3.0, 0.0, 0.0), mass=0.1)
    world = world_of(bodies, floor=Floor(height=-0.5), colliders=[lift], projectiles=[ball])
    straight, killed = RigidSolver(device, world), RigidSolver(device, world)
    for time in np.linspace(0.0, 0.7, 23)[1:]:
        while killed.advance(float(time), 0.0) is Outcome.PAUSED:
            pass
        killed.frame(0, 0.0), killed.tallies()
        state = {name: value.copy() for name, value in killed.state().items()}
        killed = RigidSolver(device, world)
        killed.restore(state)
    straight.advance(0.7, 1e9)
    one, two = straight.state(), killed.state()
    assert set(one) == set(two) and all(np.array_equal(one[name], two[name]) for name in one)
    assert killed.time == 0.7 and killed.step == straight.step


def test_a_state_of_something_else_is_refused_and_changes_nothing(device: Device) -> None:
    world = world_of([block(center=(0.0, 1.0, 0.0))])
    solver, other = RigidSolver(device, world), RigidSolver(device, world_of([block((3, 2, 2))]))
    solver.advance(0.1, 1e9)
    before = solver.state()
    for bad in ({}, other.state(), {k: v for k, v in before.items() if k != "after_center"},
                {**before, "rigid.engine": before["rigid.engine"][:50]},
                {k: v for k, v in before.items() if k != "rigid.mass"}):
        with pytest.raises(ValueError):
            solver.restore(bad)
        after = solver.state()
        assert all(np.array_equal(before[name], after[name]) for name in before)
    with pytest.raises(ValueError, match="auto"):
        solver.place(solver.matter())


def test_tallies_tell_energy_and_who_sleeps(device: Device) -> None:
    held = Region(center=(0.5, 0.3, 0.0), size=(0.1, 0.1, 0.1), fixed=True)
    bodies = [block(name="falls", center=(0.0, 0.05, 0.0)),
              block(name="held", center=(0.5, 0.3, 0.0))]
    solver = RigidSolver(device, world_of(bodies, floor=Floor(), regions=[held]))
    start, least = solver.tallies(), math.inf
    total = start["kinetic_energy"] + start["potential_energy"]
    for number in range(1, 500):
        solver.advance(number * 4e-3, 1e9)
        now = solver.tallies()
        energy = now["kinetic_energy"] + now["potential_energy"]
        assert energy < least + 1e-3 * total
        least = min(least, energy)
    weight = 2200.0 * 8e-6 * GRAVITY
    assert start["potential_energy"] == pytest.approx(weight * 0.35)
    assert now["potential_energy"] == pytest.approx(weight * 0.31, rel=1e-3)
    assert now["asleep"] == now["rigid_pieces"] == 2 and now["kinetic_energy"] == 0.0


def test_plans_complain_of_what_the_engine_cannot_do() -> None:
    plan = make_plan(rigid_setup([block()]))
    assert plan.complaint() is None and plan.n_steps(1.0) == 480
    levine = Projectile(position=(1.0, 0.0, 0.0), velocity=(1.0, 0.0, 0.0))
    complaint = make_plan(rigid_setup([block()], projectiles=[levine])).complaint()
    assert complaint is not None and complaint[0] == "projectiles[1].push"


def test_cracks_need_a_solver_that_breaks() -> None:
    crack = Crack(origin=(0.0, 0.0, 0.0), u=(1.0, 0.0, 0.0), v=(0.0, 1.0, 0.0))
    complaint = make_plan(dataclasses.replace(rigid_setup([block()]), cracks=(crack,))).complaint()
    assert complaint is not None and complaint[0] == "cracks" and "auto" in complaint[1]
