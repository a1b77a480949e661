"""Laws of air: what crumbs lose in flight, against closed forms; whole bodies lose nothing."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.rigid_worlds import GRAVITY, STEP, add_at_rest, block, layout, place_bodies, world_of
from vfx.geometry.handoff.types import Array
from vfx.sim.rigid.fleet import Fleet
from vfx.sim.rigid.world import RigidWorld
from vfx.sim.settings import Material
from vfx.sim.solver import World

__all__ = ["layout"]

#: A cube of 1 cm of this loses a twentieth of its speed in a metre: k = 3/4 rho_air / (rho s).
SPACING, DENSITY, AIR = 0.01, 1800.0, 1.2
DRAG = 0.75 * AIR / (DENSITY * SPACING)


def world_with(velocity: tuple[float, float, float], **given: object) -> World[object]:
    """A row of nine cubes, far above anything."""
    body = block((9, 1, 1), center=(0.0, 50.0, 0.0), velocity=velocity)
    return world_of([body], material=Material(density=DENSITY), **({"air_density": AIR} | given))


def crumb_and_rest(world: World[object]) -> tuple[RigidWorld, Array]:
    """The first cube, far from the others, which are one piece: ids of both."""
    rigid = RigidWorld(world, world.settings, 1)
    ids = add_at_rest(rigid, [np.arange(1), np.arange(1, 9)])
    poses = rigid.poses(ids)
    poses.center[0] += (0.0, 0.0, 10.0)
    rigid.set_poses(ids, poses)
    return rigid, ids


def test_a_crumb_is_slowed_as_the_closed_form_says() -> None:
    rigid, ids = crumb_and_rest(world_with((60.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0)))
    start = rigid.poses(ids).center
    for _ in range(480):
        rigid.step(STEP)
    t, now = rigid.time, rigid.poses(ids)
    np.testing.assert_allclose(now.velocity[0], [60.0 / (1.0 + DRAG * 60.0 * t), 0.0, 0.0],
                               rtol=1e-12)
    way = np.log1p(DRAG * 60.0 * t) / DRAG
    # It would have gone three times as far without air.
    assert way < 0.5 * 60.0 * t
    np.testing.assert_allclose(now.center[0] - start[0], [way, 0.0, 0.0], rtol=1e-5, atol=1e-9)
    # The other eight are no crumb.
    np.testing.assert_allclose(now.center[1] - start[1], [60.0 * t, 0.0, 0.0], rtol=1e-12)


def test_a_falling_crumb_reaches_its_terminal_speed() -> None:
    rigid, ids = crumb_and_rest(world_with((0.0, 0.0, 0.0)))
    start = rigid.poses(ids).center[0, 1]
    terminal = np.sqrt(GRAVITY / DRAG)
    for number in range(1, 1441):
        rigid.step(STEP)
        if number in (240, 1440):
            t, now = rigid.time, rigid.poses(ids)
            assert -now.velocity[0, 1] == pytest.approx(
                terminal * np.tanh(GRAVITY * t / terminal), rel=1e-5)
            assert start - now.center[0, 1] == pytest.approx(
                terminal**2 / GRAVITY * np.log(np.cosh(GRAVITY * t / terminal)), rel=1e-5)
    assert -now.velocity[0, 1] > 0.9 * terminal


def test_the_engine_is_led_along_the_flight_in_air() -> None:
    rigid, ids = crumb_and_rest(world_with((60.0, 5.0, 0.0)))
    for _ in range(200):
        rigid.step(STEP)
    now, state = rigid.poses(ids), rigid.state()
    assert state["flying"][ids].all()
    assert np.abs(state["engine_center"][ids] - now.center).max() < 1e-3 * SPACING


@pytest.mark.parametrize("given", [{"air_density": 0.0}, {"gravity": (0.0, 0.0, 0.0)}])
def test_without_air_or_speed_nothing_is_lost(given: dict[str, object]) -> None:
    speed = 60.0 if "air_density" in given else 0.0
    rigid, ids = crumb_and_rest(world_with((speed, 0.0, 0.0), **given))
    start = rigid.poses(ids)
    for _ in range(240):
        rigid.step(STEP)
    t, now = rigid.time, rigid.poses(ids)
    fall = np.array(given.get("gravity", (0.0, -GRAVITY, 0.0)))
    np.testing.assert_allclose(now.center, start.center + t * start.velocity + 0.5 * t**2 * fall,
                               rtol=0.0, atol=1e-11)


def test_a_body_of_one_element_is_no_crumb() -> None:
    rigid, ids = place_bodies(world_of([block((1, 1, 1), center=(0.0, 50.0, 0.0),
                                              velocity=(60.0, 0.0, 0.0))], air_density=AIR))
    rigid.step(STEP)
    assert not rigid.is_crumb(ids).any() and rigid.poses(ids).velocity[0, 0] == 60.0


def test_between_two_ticks_a_crumb_moves_as_it_does() -> None:
    world = world_with((60.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0))
    fleet = Fleet(world, world.settings, 1)
    fleet.begin(np.arange(9), np.minimum(np.arange(9), 1), 2)
    # Without the rest beside it.
    fleet.leave(fleet.id[1:])
    fleet.tick(STEP, STEP)
    start = fleet.before.center[0, 0]
    for share in (0.25, 0.5, 0.75):
        now, t = fleet.seen(share * STEP), share * STEP
        assert now.velocity[0, 0] == pytest.approx(60.0 / (1.0 + DRAG * 60.0 * t), rel=1e-4)
        assert now.center[0, 0] - start == pytest.approx(
            np.log1p(DRAG * 60.0 * t) / DRAG, rel=1e-4)
