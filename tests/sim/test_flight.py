"""Laws of free flight: a jump is equal to stepping, and ends before the first touch."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.sim.blocks import GLASS, SPACING
from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.settings import Projectile

GRAVITY = (0.0, -9.81, 0.0)


def falling(device: Device, height: float, speed: float = 0.0, spin: float = 0.0) -> Simulation:
    """A small block above the floor, thrown down."""
    bodies = [Body(name="block", material="glass", cells=(4, 3, 3), spacing=SPACING,
                   center=(0.0, height, 0.0), velocity=(0.3, -speed, 0.0),
                   angular_velocity=(0.0, spin, 0.0))]
    return flying(device, bodies)


def flying(device: Device, bodies: list[Body], *projectiles: Projectile) -> Simulation:
    return bond_simulation(device, build_solid(bodies), bodies=bodies,
                           materials={"glass": GLASS}, gravity=GRAVITY, projectiles=projectiles)


def test_jump_is_equal_to_stepping(device: Device) -> None:
    jumping, stepping = (falling(device, 0.02, speed=2.0) for _ in range(2))
    stepping.flight = None
    for sim in (jumping, stepping):
        sim.advance(3000)
    assert jumping.flight is not None and jumping.flight.searched >= 3000
    apart = np.abs(jumping.position - stepping.position).max()
    assert apart < 20 * jumping.layout.unit
    assert np.abs(jumping.velocity - stepping.velocity).max() < 1e-4
    assert jumping.n_bonds == stepping.n_bonds == jumping.initial_bonds.sum() // 2


def test_flight_ends_before_the_floor_and_the_bounce_is_the_same(device: Device) -> None:
    jumping, stepping = (falling(device, 4e-3, speed=2.0) for _ in range(2))
    stepping.flight = None
    for sim in (jumping, stepping):
        sim.advance(14000)
    assert jumping.flight is not None and jumping.flight.ended
    fallen = 2.0 * jumping.flight.searched * 2.0**-23
    assert 0.5e-3 < fallen < 4e-3 - 1.5 * SPACING
    assert jumping.velocity[:, 1].mean() > 0.5
    # Both bounced, within the noise of the fixed-point unit on their way down.
    gap = np.abs(jumping.position.mean(0) - stepping.position.mean(0)).max()
    assert gap < 1e-3 * fallen


def test_chunks_and_resume_change_no_bit(device: Device) -> None:
    whole, parts, resumed = (falling(device, 5e-3, speed=1.0) for _ in range(3))
    whole.advance(20000)
    for steps in (1, 777, 9222, 10000):
        parts.advance(steps)
    first = falling(device, 5e-3, speed=1.0)
    first.advance(4321)
    resumed.restore(first.state())
    resumed.advance(20000 - 4321)
    for other in (parts, resumed):
        there, here = whole.state(), other.state()
        assert all(np.array_equal(there[name], here[name]) for name in there)


def test_spinning_or_pushed_bodies_do_not_fly(device: Device) -> None:
    assert falling(device, 0.02, spin=5.0).flight is None
    ball = Projectile(radius=2e-3, position=(0.0, 0.02, 3e-3), velocity=(0.0, 0.0, -1.0))
    bodies = [Body(name="block", material="glass", cells=(3, 3, 3), spacing=SPACING,
                   center=(0.0, 0.02, 0.0))]
    assert flying(device, bodies, ball).flight is None


def test_flight_ends_before_bodies_and_balls_meet(device: Device) -> None:
    bodies = [Body(name=name, material="glass", cells=(2, 2, 2), spacing=SPACING,
                   center=(x, 0.5, 0.0), velocity=(v, 0.0, 0.0))
              for name, x, v in (("a", 0.0, 10.0), ("b", 0.02, -10.0))]
    sim = flying(device, bodies)
    assert sim.flight is not None
    last = sim.flight.free_until(10**6)
    gap = 0.02 - 2 * SPACING - 20.0 * last * 2.0**-23
    assert 0.0 < gap - SPACING < 3 * SPACING
    ball = Projectile(radius=4e-3, position=(0.0, 0.5, 0.05), velocity=(0.0, 0.0, -20.0))
    still = [dataclasses.replace(bodies[0], velocity=(0.0, 0.0, 0.0))]
    sim = flying(device, still, ball)
    assert sim.flight is not None
    reach = 0.05 - 20.0 * sim.flight.free_until(10**6) * 2.0**-23
    assert 6e-3 < reach < 6e-3 + 4 * SPACING
