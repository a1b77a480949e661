"""Laws of props: what rigid things give to elements they take from themselves, at their surface."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block
from tests.sim.test_window import NONE, make
from tests.solids import build_solid
from vfx.bench.setups import bond_setup
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.plan import make_plan
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.window import BondWindow
from vfx.sim.control.controls import make_world
from vfx.sim.control.prop import hull_planes
from vfx.sim.settings import Floor, Material, Projectile, Region
from vfx.sim.solver import Poses, Prop

STEP = 2.0**-23
CUBE = GLASS.density * SPACING**3
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
#: Breaks at a touch: the elements of a body are then loose.
SAND = dataclasses.replace(GLASS, bulk_modulus=1e3)


def hammer(mass: float, half: tuple[float, float, float] = (2e-3, 1e-3, 1e-3),
           **keys: float) -> Prop:
    """A box of even density."""
    squares = 4.0 * np.array(half) ** 2
    inertia = np.diag(mass / 12.0 * (squares.sum() - squares))
    return Prop(mass=mass, inertia=inertia, hulls=(CORNERS * half,), falls=False, **keys)


def at(center: tuple[float, float, float], velocity: tuple[float, float, float],
       spin: tuple[float, float, float] = (0.0, 0.0, 0.0),
       rotation: np.ndarray | None = None) -> Poses:
    return Poses(np.array([center]), np.eye(3)[None] if rotation is None else rotation[None],
                 np.array([velocity]), np.array([spin]))


def strike(device: Device, prop: Prop, poses: Poses, cells: tuple[int, int, int] = (4, 4, 1),
           **keys: object) -> BondWindow:
    """A prop before a block of glass at rest, in the way of its +z side."""
    world = make([Body(name="b", material="glass", cells=cells, spacing=SPACING)], **keys)
    n = world.solid.n_elements
    return BondWindow(device, world, np.arange(n), np.zeros(n), NONE, world.solid.position,
                      np.zeros((n, 3)), 0, [prop], poses)


def balance(window: BondWindow, prop: Prop) -> tuple[np.ndarray, np.ndarray, float]:
    """Momentum, angular momentum about the origin and kinetic energy of all."""
    pose, v, x = window.prop_poses(), window.velocity, window.position
    turned = pose.rotation[0] @ prop.inertia @ pose.rotation[0].T @ pose.angular_velocity[0]
    momentum = CUBE * v.sum(0) + prop.mass * pose.velocity[0]
    turning = CUBE * np.cross(x, v).sum(0) + turned + prop.mass * np.cross(
        pose.center[0], pose.velocity[0])
    energy = 0.5 * (CUBE * (v**2).sum() + prop.mass * (pose.velocity[0] ** 2).sum()
                    + pose.angular_velocity[0] @ turned)
    return momentum, turning, energy


@pytest.mark.warp
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
def test_a_head_on_hit_is_that_of_two_bodies(device: Device, restitution: float) -> None:
    ball = Prop(mass=3e-6, inertia=np.eye(3) * 1e-12, radius=1e-3, restitution=restitution,
                falls=False)
    window = strike(device, ball, at((0.0, 0.0, -1.6e-3), (0.0, 0.0, 10.0)), (1, 1, 1))
    before = balance(window, ball)[0]
    window.advance(200)
    speed = window.prop_poses().velocity[0, 2]
    closing = window.velocity[0, 2] - speed
    assert closing == pytest.approx(10.0 * restitution, abs=1e-7)
    np.testing.assert_allclose(balance(window, ball)[0], before, rtol=0, atol=1e-9 * before[2])
    expected = (ball.mass - restitution * CUBE) / (ball.mass + CUBE) * 10.0
    assert speed == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("mass", [1e-7, 1e-5, 1e-3])
@pytest.mark.parametrize("kind", ["ball", "hull"])
def test_momenta_are_kept_and_energy_never_grows(
    device: Device, mass: float, kind: str
) -> None:
    # Sand: what the bonds do in single precision is far below what the prop does.
    prop = hammer(mass, restitution=0.8, friction=0.5) if kind == "hull" else Prop(
        mass=mass, inertia=0.4 * mass * 4e-6 * np.eye(3), radius=2e-3, restitution=0.8,
        friction=0.5, falls=False)
    turn = np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]])
    window = strike(device, prop, at((0.4e-3, 0.2e-3, -2.6e-3), (3.0, -1.0, 20.0),
                                     (500.0, 300.0, -2000.0), turn),
                    materials={"glass": SAND}, contact_stiffness=0.0)
    momentum, turning, energy = balance(window, prop)
    moved = False
    for _ in range(12):
        window.advance(100)
        now = balance(window, prop)
        scale = np.linalg.norm(momentum)
        np.testing.assert_allclose(now[0], momentum, rtol=0, atol=1e-9 * scale)
        np.testing.assert_allclose(now[1], turning, rtol=0, atol=1e-9 * max(
            np.linalg.norm(turning), scale * 2e-3))
        assert now[2] + window.energies()[1] <= energy * (1.0 + 1e-9)
        energy = min(energy, now[2] + window.energies()[1])
        moved = moved or bool((np.abs(window.velocity) > 0.1).any())
    assert moved


def test_a_light_plate_on_many_elements_bounces_as_off_a_wall(device: Device) -> None:
    # A blow on all elements at once: did each meet the whole mass, it would come back 40 times
    # as fast. Shared out it comes back slower than one blow would have it, but never sticks in.
    prop = hammer(CUBE, (5e-3, 5e-3, 1e-3), restitution=0.5)
    window = strike(device, prop, at((0.0, 0.0, -2e-3), (0.0, 0.0, 10.0)), (8, 8, 1),
                    materials={"glass": SAND}, contact_stiffness=0.0)
    window.advance(600)
    share = CUBE / (CUBE + 64 * CUBE)
    speed = window.prop_poses().velocity[0, 2]
    assert share * 10.0 - (1.0 - share) * 5.0 <= speed <= share * 10.0
    assert CUBE * window.velocity[:, 2].sum() == pytest.approx(CUBE * (10.0 - speed), rel=1e-9)
    assert np.linalg.norm(window.prop_poses().angular_velocity) < 1e-3


@pytest.mark.parametrize("kind", ["ball", "hull"])
def test_the_first_touch_is_where_surfaces_meet(device: Device, kind: str) -> None:
    prop = Prop(mass=math.inf, inertia=np.eye(3), radius=4e-3, falls=False) \
        if kind == "ball" else hammer(math.inf, (4e-3, 4e-3, 4e-3))
    gap = 0.2e-3
    window = strike(device, prop, at((0.0, 0.0, -4.5e-3 - gap), (0.0, 0.0, 20.0)), (1, 1, 1))
    steps = math.floor(gap / (20.0 * STEP))
    window.advance(steps - 1)
    assert not window.velocity.any()
    window.advance(3)
    assert window.velocity[0, 2] == pytest.approx(20.0, rel=1e-6)
    assert window.prop_poses().velocity[0, 2] == 20.0


def test_a_grazing_ball_gains_spin(device: Device) -> None:
    # The plate below it drags on its lower side: it begins to roll along its flight.
    mass, radius = 1e-5, 2e-3
    ball = Prop(mass=mass, inertia=0.4 * mass * radius**2 * np.eye(3), radius=radius,
                friction=0.4, falls=False)
    world = make([Body(name="b", material="glass", cells=(8, 2, 8), spacing=SPACING)])
    n = world.solid.n_elements
    window = BondWindow(
        device, world, np.arange(n), np.zeros(n), NONE, world.solid.position, np.zeros((n, 3)), 0,
        [ball], at((-1e-3, 3.0e-3 + 1e-6, 0.0), (2.0, -0.5, 0.0)))
    before = balance(window, ball)
    window.advance(300)
    after, pose = balance(window, ball), window.prop_poses()
    # Rolling along +x on what is below turns about -z.
    assert pose.angular_velocity[0, 2] < -10.0
    assert pose.velocity[0, 0] < 2.0 and CUBE * window.velocity[:, 0].sum() > 0.0
    np.testing.assert_allclose(after[0], before[0], rtol=0, atol=1e-6 * np.abs(before[0]).max())
    np.testing.assert_allclose(after[1], before[1], rtol=0, atol=1e-6 * np.abs(before[1]).max())
    assert after[2] < before[2]


@pytest.mark.parametrize(("bulk_modulus", "most"), [(1e8, 1.0), (GLASS.bulk_modulus, 2.0)])
def test_a_fast_heavy_ball_goes_through_and_flings_nothing_off(
    device: Device, bulk_modulus: float, most: float
) -> None:
    # A wave through a stiff plate leaves its far side twice as fast as it ran.
    speed, restitution = 100.0, 0.2
    ball = Projectile(radius=2e-3, position=(0.0, 0.0, -3.2e-3), velocity=(0.0, 0.0, speed),
                      mass=1e-3, restitution=restitution)
    weak = dataclasses.replace(GLASS, strain_limit=2e-4, bulk_modulus=bulk_modulus)
    sim = block(device, (12, 12, 2), material=weak, projectiles=(ball,), timestep=STEP)
    fastest = 0.0
    for _ in range(20):
        sim.advance(40)
        fastest = max(fastest, float(np.linalg.norm(sim.velocity, axis=1).max()))
    assert sim.ball_places[0, 2] > 4e-3 and sim.n_bonds < 0.95 * sim.initial_bonds.sum() / 2
    assert speed < fastest < most * (1.0 + restitution) * speed
    away = np.linalg.norm(sim.position - sim.ball_places[0], axis=1)
    assert away.min() > ball.radius, "no centre of an element is in the ball"


def test_an_asymmetric_prop_keeps_its_angular_momentum_in_flight(device: Device) -> None:
    prop = hammer(1e-4, (3e-3, 2e-3, 0.5e-3))
    window = strike(device, prop, at((0.0, 0.0, -1.0), (1.0, 2.0, 3.0), (4e3, 9e3, 1e3)))
    before = balance(window, prop)
    window.advance(8000)
    after = balance(window, prop)
    np.testing.assert_allclose(after[1], before[1], rtol=1e-9)
    assert after[2] == pytest.approx(before[2], rel=1e-6)
    rotation = window.prop_poses().rotation[0]
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-10)
    assert np.linalg.norm(rotation - np.eye(3)) > 0.5


def test_held_elements_stop_a_ball(device: Device) -> None:
    ball = Projectile(radius=1e-3, position=(0.0, 0.0, -1.6e-3), velocity=(0.0, 0.0, 5.0),
                      mass=1.0, restitution=0.5)
    world = make([Body(name="b", material="glass", cells=(3, 3, 1), spacing=SPACING)],
                 regions=[Region(size=(0.1, 0.1, 0.1), fixed=True)], projectiles=[ball])
    sim = Simulation(device, world)
    sim.advance(400)
    assert sim.props.poses.velocity[0, 2] == pytest.approx(-2.5, rel=1e-6)


def test_balls_fall_and_bounce_off_the_floor(device: Device) -> None:
    ball = Projectile(radius=5e-3, position=(1.0, 0.02, 0.0), velocity=(0.0, 0.0, 0.0), mass=1.0,
                      falls=True)
    sim = block(device, (2, 2, 2), projectiles=(ball,), gravity=(0.0, -5e3, 0.0),
                floor=Floor(height=0.0, restitution=0.5), center=(0.0, 5.0, 0.0), timestep=2**-20)
    start = sim.diagnostics()["potential_energy"]
    heights = []
    for _ in range(70):
        sim.advance(60)
        heights.append(sim.ball_places[0, 1])
    assert min(heights) > 4.9e-3 and sim.diagnostics()["ball_energy"] > 0.0
    # It falls for 2.45 ms and comes back to a quarter of its height.
    assert max(heights[45:]) == pytest.approx(5e-3 + 0.25 * 15e-3, rel=0.02)
    assert sim.diagnostics()["potential_energy"] < start


def test_a_material_gives_the_mass(device: Device) -> None:
    steel = Material(density=7800.0)
    ball = Projectile(radius=5e-3, position=(0.0, 0.0, 1.0), velocity=(0.0, 0.0, 0.0),
                      material="steel")
    world = make([Body(name="b", material="glass", cells=(2, 2, 2), spacing=SPACING)],
                 projectiles=[ball], materials={"glass": GLASS, "steel": steel})
    sim = Simulation(device, world)
    assert sim.props.mass[0] == pytest.approx(7800.0 * 4.0 / 3.0 * math.pi * 1.25e-7)
    assert not sim.balls.count


def test_contact_limits_the_step_by_flight_alone() -> None:
    bodies = [Body(name="b", material="glass", cells=(4, 4, 4), spacing=SPACING)]
    ball = Projectile(radius=1e-2, position=(0.0, 0.0, 1.0), velocity=(0.0, 0.0, 1000.0),
                      mass=1.0, stiffness=1e24)
    limits = make_plan(bond_setup(
        bodies=bodies, materials={"glass": GLASS}, projectiles=[ball])).step_limits
    named = {name: step for name, step in limits.items() if "projectiles[1]" in name}
    assert list(named.values()) == [0.25 * SPACING / 1000.0]


def test_planes_around_a_hull_touch_it(device: Device) -> None:
    corner = CORNERS * [3.0, 2.0, 1.0] + 7.0
    plane = hull_planes(corner)
    assert len(plane) == 6 + 12 + 8
    np.testing.assert_allclose((corner @ plane[:, :3].T).max(0), plane[:, 3], rtol=1e-12)
    # Grown by 1 along all normals, a corner is cut off near the ball around it.
    out = np.array([1.0, 1.0, 1.0]) / math.sqrt(3.0)
    above = ((corner.max(0) + out * 1.2) @ plane[:, :3].T - plane[:, 3]).max()
    assert above > 1.1


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_and_resumes_change_no_bit(device: Device, threads: int) -> None:
    device.threads = threads
    prop = hammer(1e-4, restitution=0.3, friction=0.5)

    def begin() -> BondWindow:
        return strike(device, prop, at((0.4e-3, 0.2e-3, -1.8e-3), (1.0, 0.0, 40.0)), (8, 8, 2))

    one, two = begin(), begin()
    one.advance(300)
    two.advance(120)
    again = begin()
    again.restore(two.state())
    again.advance(180)
    there, here = one.state(), again.state()
    assert len(one.dead()) > 10
    assert all(np.array_equal(there[name], here[name]) for name in there)


def test_poses_of_others_are_refused(device: Device) -> None:
    world = make_world(build_solid([Body(name="b", material="glass", cells=(2, 2, 2),
                                         spacing=SPACING)]),
                       bond_setup(materials={"glass": GLASS}, timestep=STEP))
    with pytest.raises(ValueError, match="1 props, but poses of 0"):
        BondWindow(device, world, np.arange(8), np.zeros(8), NONE, world.solid.position,
                   np.zeros((8, 3)), 0, [hammer(1.0)])
