"""Laws of free flight: parabola, angular momentum, energy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.rigid_worlds import (
    GRAVITY,
    STEP,
    add_at_rest,
    angular_momentum,
    block,
    layout,
    place_bodies,
    run,
    world_of,
)
from vfx.sim.rigid import flight
from vfx.sim.rigid.world import RigidWorld
from vfx.sim.settings import Projectile

__all__ = ["layout"]


def spinning() -> tuple[RigidWorld, np.ndarray]:
    body = block((2, 3, 6), center=(0.3, 20.0, -0.1), velocity=(1.0, 2.0, -3.0),
                 angular_velocity=(3.0, 30.0, 5.0))
    return place_bodies(world_of([body]))


def test_thrown_block_flies_a_parabola() -> None:
    rigid, ids = spinning()
    start = rigid.poses(ids)
    run(rigid, 1.0)
    now, t = rigid.poses(ids), rigid.time
    fall = np.array([0.0, -GRAVITY, 0.0])
    np.testing.assert_allclose(
        now.center, start.center + t * start.velocity + 0.5 * t**2 * fall, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(now.velocity, start.velocity + t * fall, rtol=0.0, atol=1e-12)


def test_spinning_asymmetric_block_keeps_its_angular_momentum_and_energy() -> None:
    rigid, ids = spinning()
    before, energy = angular_momentum(rigid, ids), sum(rigid.energies())
    largest = 0.0
    for _ in range(480):
        rigid.step(STEP)
        largest = max(largest, abs(sum(rigid.energies()) - energy))
    scale = np.linalg.norm(before)
    assert np.abs(angular_momentum(rigid, ids) - before).max() < 1e-12 * scale
    assert largest < 1e-4 * rigid.energies()[0]


def test_engine_is_led_along_the_exact_flight() -> None:
    rigid, ids = spinning()
    run(rigid, 1.0)
    now = rigid.poses(ids)
    state = rigid.state()
    size = 0.06
    assert np.abs(state["engine_center"][ids] - now.center).max() < 1e-3 * size
    gap = flight.multiply(state["engine_turn"][ids], flight.conjugate(rigid.turns(ids)))
    assert np.abs(flight.turn_vector(gap)).max() < 5e-3


def test_free_top_turns_as_a_fine_integration_does() -> None:
    moment = np.array([[1.0, 2.0, 3.0]])
    axes = np.array([[0.0, 0.0, 0.0, 1.0]])
    turn, spin = axes.copy(), np.array([[1.0, 4.0, 0.5]])
    coarse = flight.turn_freely(turn, spin, moment, axes, 0.1)
    for _ in range(1000):
        turn, spin = flight.turn_freely(turn, spin, moment, axes, 1e-4)
    np.testing.assert_allclose(coarse[0], turn, atol=2e-5)
    np.testing.assert_allclose(coarse[1], spin, atol=2e-4)


def test_symmetric_body_turns_evenly() -> None:
    body = block((3, 3, 3), angular_velocity=(1.0, 2.0, 3.0))
    rigid, ids = place_bodies(world_of([body], gravity=(0.0, 0.0, 0.0)))
    run(rigid, 0.5)
    np.testing.assert_allclose(rigid.poses(ids).angular_velocity, [[1.0, 2.0, 3.0]], atol=1e-12)
    expected = flight.turn_by(rigid.time * np.array([[1.0, 2.0, 3.0]]))
    np.testing.assert_allclose(np.abs((rigid.turns(ids) * expected).sum()), 1.0, atol=1e-12)


def test_quaternions_and_matrices_are_the_same_turns() -> None:
    random = np.random.default_rng(1)
    quaternion = random.normal(size=(50, 4))
    quaternion /= np.linalg.norm(quaternion, axis=1)[:, None]
    matrix = flight.matrix_of(quaternion)
    np.testing.assert_allclose(np.linalg.det(matrix), 1.0)
    back = flight.quaternion_of(matrix)
    np.testing.assert_allclose(np.abs((back * quaternion).sum(axis=1)), 1.0)
    vector = random.normal(size=(50, 3))
    np.testing.assert_allclose(
        flight.rotate(quaternion, vector), np.einsum("kij,kj->ki", matrix, vector), atol=1e-12)
    way = flight.turn_vector(quaternion)
    np.testing.assert_allclose(np.abs((flight.turn_by(way) * quaternion).sum(axis=1)), 1.0)


def test_push_changes_momentum_and_spin_by_what_is_given() -> None:
    rigid, ids = spinning()
    before, moving = angular_momentum(rigid, ids), rigid.poses(ids).velocity
    impulse, twist = np.array([[0.1, -0.2, 0.3]]), np.array([[1e-4, 2e-4, -3e-4]])
    rigid.push(ids, impulse, twist)
    np.testing.assert_allclose(angular_momentum(rigid, ids) - before, twist, atol=1e-15)
    np.testing.assert_allclose(rigid.poses(ids).velocity - moving,
                               impulse / rigid.mass(ids)[:, None])


def test_heavy_ball_falls_and_one_without_mass_flies_straight() -> None:
    balls = [Projectile(radius=0.01, position=(0.0, 1.0, 0.0), velocity=(1.0, 0.0, 0.0), mass=0.1,
                        falls=True),
             Projectile(radius=0.01, position=(0.0, 2.0, 0.0), velocity=(2.0, 1.0, 0.0))]
    rigid = RigidWorld(world := world_of([block(center=(0.0, -5.0, 0.0))], projectiles=balls),
                       world.settings, 1)
    run(rigid, 0.25)
    t = rigid.time
    np.testing.assert_allclose(
        rigid.poses(np.arange(2)).center,
        [[t, 1.0 - 0.5 * GRAVITY * t**2, 0.0], [2.0 * t, 2.0 + t, 0.0]], atol=1e-12)
    assert rigid.n_props == 2 and np.isinf(rigid.mass(np.arange(2))[1])


@pytest.mark.parametrize(("cells", "gone"), [((5, 5, 5), 1e-3), ((3, 5, 9), 1e-2)])
def test_crumb_in_the_middle_of_a_flying_block_takes_none_of_its_momentum(
        cells: tuple[int, int, int], gone: float) -> None:
    world = world_of([block(cells, center=(0.3, 20.0, -0.1), velocity=(1.0, 2.0, -3.0),
                            angular_velocity=(3.0, 30.0, 5.0))])
    rigid, position = RigidWorld(world, world.settings, 1), world.solid.position
    crumb = np.array([np.argmin(((position - position.mean(axis=0)) ** 2).sum(axis=1))])
    ids = add_at_rest(rigid, [np.setdiff1d(np.arange(len(position)), crumb), crumb])

    def momenta() -> tuple[np.ndarray, np.ndarray]:
        poses, mass = rigid.poses(ids), rigid.mass(ids)[:, None]
        center, velocity = ((mass * each).sum(axis=0) / mass.sum()
                            for each in (poses.center, poses.velocity))
        arm = np.cross(poses.center - center, poses.velocity - velocity)
        return velocity, angular_momentum(rigid, ids).sum(axis=0) + (mass * arm).sum(axis=0)

    (velocity, turning), touched = momenta(), False
    for _ in range(round(0.3 / STEP)):
        rigid.step(STEP)
        touched |= not rigid.state()["flying"][ids].all()
    now = momenta()
    assert touched
    fall = np.array([0.0, -GRAVITY * rigid.time, 0.0])
    np.testing.assert_allclose(now[0], velocity + fall, atol=1e-4)
    assert np.linalg.norm(now[1] - turning) < gone * np.linalg.norm(turning)


def test_pieces_that_part_in_flight_keep_the_momentum_of_the_whole() -> None:
    rigid, ids = spinning()
    run(rigid, 0.2)
    now, mass = rigid.poses(ids), rigid.mass(ids)[0]
    members = rigid.members(int(ids[0]))
    halves = [members[: len(members) // 2], members[len(members) // 2:]]
    rigid.remove(ids)
    parts = add_at_rest(rigid, halves)
    rest = rigid.rest_center(parts) - rigid.rest_center(ids)
    arm = np.einsum("ij,kj->ki", now.rotation[0], rest)
    rigid.set_poses(parts, type(now)(
        now.center + arm, np.repeat(now.rotation, 2, axis=0),
        now.velocity + np.cross(now.angular_velocity, arm),
        np.repeat(now.angular_velocity, 2, axis=0)))
    np.testing.assert_allclose(rigid.momentum(), mass * now.velocity[0], rtol=1e-12)
    assert parts.tolist() == [1, 2]
