"""Laws of what a shot controls: balls with a mass, colliders, regions, damping, cuts, weakening."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING
from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device, open_device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.control.extent import Held, find_held
from vfx.sim.control.region import members
from vfx.sim.settings import Collider, Crack, Floor, Projectile, Region, Weakening

STEP = 2.0**-23


def setup(
    device: Device, cells: tuple[int, int, int], *, center: tuple[float, float, float] = (0, 0, 0),
    rotation: tuple[float, float, float] = (0, 0, 0), solver: dict[str, object] | None = None,
    projectiles: tuple[Projectile, ...] = (), weakening: tuple[Weakening, ...] = (),
    floor: Floor | None = None, material: object = GLASS, **controls: object,
) -> Simulation:
    """One glass block of 1 mm cubes without gravity or floor, and what controls it."""
    bodies = [Body(name="block", material="glass", cells=cells, spacing=SPACING, center=center,
                   rotation=rotation)]
    settings = {"gravity": (0.0, 0.0, 0.0), **(solver or {})}
    return bond_simulation(
        device, build_solid(bodies), bodies=bodies, materials={"glass": material},
        floor=floor or Floor(enabled=False), projectiles=projectiles, weakening=weakening,
        **settings, **controls)


# ------------------------------------------------------------------ projectiles


def test_ball_and_cube_part_as_elastic_bodies_do(device: Device) -> None:
    mass, speed = 5e-6, 10.0
    ball = Projectile(radius=5e-3, position=(0.0, 0.0, -9e-3), velocity=(0.0, 0.0, speed),
                      stiffness=4e15, mass=mass, push="levine")
    sim = setup(device, (1, 1, 1), projectiles=(ball,))
    sim.advance(6000)
    cube = GLASS.density * SPACING**3
    assert np.linalg.norm(sim.position[0] - sim.balls.place[0]) > 1.5 * ball.radius
    assert sim.velocity[0] == pytest.approx([0, 0, 2 * mass / (mass + cube) * speed], rel=1e-4)
    final = device.to_host(sim.balls.velocity)[0]
    assert final == pytest.approx([0, 0, (mass - cube) / (mass + cube) * speed], rel=1e-4)


def test_ball_and_body_keep_their_momentum(device: Device) -> None:
    ball = Projectile(radius=5e-3, position=(1e-3, 0.5e-3, -9e-3), velocity=(3.0, 0.0, 40.0),
                      stiffness=1e15, mass=2e-3, push="levine")
    brittle = dataclasses.replace(GLASS, strain_limit=5e-5)
    sim = setup(device, (8, 8, 4), projectiles=(ball,), material=brittle)
    before = sim.balls.momentum
    sim.advance(1500)
    given = sim._mass @ sim.velocity
    assert np.abs(given).max() > 1e-2 * np.abs(before).max()
    assert sim.n_bonds < sim.initial_bonds.sum() / 2
    assert np.abs(given + sim.balls.momentum - before).max() < 1e-6 * np.abs(given).max()


def test_history_shows_that_ball_and_body_keep_momentum_and_energy(device: Device) -> None:
    ball = Projectile(radius=5e-3, position=(1e-3, 0.5e-3, -9e-3), velocity=(3.0, 0.0, 20.0),
                      stiffness=1e13, mass=2e-3, falls=True, push="levine")
    tough = dataclasses.replace(GLASS, strain_limit=0.5)
    sim = setup(device, (6, 6, 4), projectiles=(ball,), material=tough,
                solver={"gravity": (0.0, -9.81, 0.0), "timestep": 2.0**-24})
    before = sim.diagnostics()
    sim.advance(20000)
    after = sim.diagnostics()
    fall = -9.81 * sim.time * (sim._mass.sum() + ball.mass)
    for axis, gained in zip("xyz", (0.0, fall, 0.0), strict=True):
        own, of_ball = f"momentum_{axis}", f"ball_momentum_{axis}"
        assert after[own] + after[of_ball] == pytest.approx(
            before[own] + before[of_ball] + gained, abs=1e-9)
    assert abs(after["momentum_z"]) > 1e-3
    energy = [sum(row[name] for name in row if name.endswith("_energy")) for row in (before, after)]
    assert energy[1] == pytest.approx(energy[0], rel=1e-4)
    assert after["ball_energy"] < 0.9 * before["ball_energy"]


@pytest.mark.warp
def test_free_ball_with_a_mass_falls_and_bounces(device: Device) -> None:
    ball = Projectile(radius=5e-3, position=(0.1, 5e-3 + 1e-6, 0.0), velocity=(1.0, 0.0, 0.0),
                      mass=1.0, falls=True, push="levine")
    sim = setup(device, (1, 1, 1), projectiles=(ball,), floor=Floor(height=-1.0),
                solver={"gravity": (0.0, -9.81, 0.0)})
    sim.advance(1000)
    time = 1000 * STEP
    expected = [0.1 + time, 5e-3 + 1e-6 - 0.5 * 9.81 * time**2, 0.0]
    assert sim.balls.place[0] == pytest.approx(expected, rel=1e-12)
    assert sim.frame(1001, -1).projectile_position[0] == pytest.approx(expected, rel=1e-12)
    plane = Collider(position=(0.0, 0.0, 0.0), restitution=0.5)
    down = dataclasses.replace(ball, velocity=(0.0, -10.0, 0.0), falls=False)
    for controls in ({"floor": Floor(restitution=0.5)}, {"colliders": (plane,)}):
        sim = setup(device, (1, 1, 1), center=(0, 0.1, 0), projectiles=(down,), **controls)
        sim.advance(10)
        assert device.to_host(sim.balls.velocity)[0] == pytest.approx([0.0, 5.0, 0.0], abs=1e-9)


@pytest.mark.warp
def test_ball_without_a_mass_flies_on(device: Device) -> None:
    ball = Projectile(radius=5e-3, position=(0.0, 0.0, -8e-3), velocity=(0.0, 0.0, 40.0))
    sim = setup(device, (6, 6, 2), projectiles=(ball,))
    sim.advance(200)
    assert np.abs(sim.velocity).max() > 1.0
    assert np.array_equal(sim.balls.place[0], [0.0, 0.0, -8e-3 + 40.0 * (200 * STEP)])


def test_ball_without_a_mass_is_where_it_flew_after_a_jump(device: Device) -> None:
    ball = Projectile(radius=1e-3, position=(1.0, 0.0, 0.0), velocity=(-10.0, 3.0, 0.0))
    sim = setup(device, (2, 2, 2), projectiles=(ball,))
    assert sim.flight is not None
    sim.advance(5000)
    time = 5000 * STEP
    assert np.array_equal(sim.frame(1002, 0).projectile_position,
                          [[1.0 - 10.0 * time, 3.0 * time, 0.0]])


@pytest.mark.parametrize("controls", [
    {"solver": {"damping": 1.0}}, {"colliders": (Collider(),)},
    {"regions": (Region(fixed=True),)},
    {"projectiles": (Projectile(position=(1, 0, 0), velocity=(0, 0, 0), mass=1.0),)}])
def test_flight_is_stepped_where_more_than_gravity_acts(
    device: Device, controls: dict[str, object]
) -> None:
    assert setup(device, (2, 2, 2)).flight is not None
    assert setup(device, (2, 2, 2), **controls).flight is None


# ------------------------------------------------------------------ colliders


def support(normal: np.ndarray, axes: np.ndarray) -> float:
    """Reach of a cube with the axes in the columns along a direction."""
    return float(0.5 * SPACING * np.abs(axes.T @ normal).sum())


@pytest.mark.warp
@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0), (20.0, -50.0, 70.0)])
@pytest.mark.parametrize("shape", ["plane", "sphere", "box face", "box corner"])
def test_support_touches_the_collider(
    device: Device, shape: str, rotation: tuple[float, float, float]
) -> None:
    turned = build_solid([Body(name="b", material="g", cells=(1, 1, 1), spacing=SPACING,
                               rotation=rotation)]).orientation[0]
    normal = np.array({"plane": [0.36, 0.48, -0.8], "sphere": [0.6, 0.0, 0.8],
                       "box face": [0.0, 0.0, 1.0], "box corner": [1.0, 1.0, 1.0]}[shape])
    normal /= np.linalg.norm(normal)
    surface = {"plane": np.zeros(3), "sphere": 0.02 * normal,
               "box face": np.array([0.001, -0.004, 0.03]),
               "box corner": np.array([0.01, 0.02, 0.03])}[shape]
    common = {"restitution": 0.5, "friction": 0.1}
    collider = {
        "plane": Collider(normal=(0.9, 1.2, -2.0), **common),
        "sphere": Collider(shape="sphere", radius=0.02, **common)}.get(
        shape, Collider(shape="box", size=(0.02, 0.04, 0.06), **common))
    for gap, touches in ((1e-7, False), (-1e-7, True)):
        place = surface + normal * (support(normal, turned) + gap)
        sim = setup(device, (1, 1, 1), center=tuple(place), rotation=rotation,
                    colliders=(collider,))
        side = np.cross(normal, [0.3, 0.5, 0.7])
        side /= np.linalg.norm(side)
        sim.place(sim.solid.position, (2e-3 * side - 1e-3 * normal)[None])
        sim.advance(1)
        kept = 2e-3 - 0.1 * 1.5 * 1e-3
        expected = 0.5e-3 * normal + kept * side if touches else 2e-3 * side - 1e-3 * normal
        # Off a curved surface the normal turns by 1e-7 while the cube slides.
        assert sim.velocity[0] == pytest.approx(expected, abs=1e-8)


def test_turned_box_collides_as_its_turned_faces(device: Device) -> None:
    box = Collider(shape="box", size=(0.02, 0.04, 0.06), rotation=(0.0, 0.0, 45.0),
                   restitution=1.0, position=(0.1, 0.0, 0.0))
    normal = np.array([np.sqrt(0.5), np.sqrt(0.5), 0.0])
    for gap, sign in ((1e-7, -1.0), (-1e-7, 1.0)):
        place = np.array([0.1, 0, 0]) + normal * (0.01 + np.sqrt(0.5) * SPACING + gap)
        sim = setup(device, (1, 1, 1), center=tuple(place), colliders=(box,))
        sim.place(sim.solid.position, -1e-3 * normal[None])
        sim.advance(1)
        assert sim.velocity[0] == pytest.approx(sign * 1e-3 * normal, abs=1e-12)


def test_keyed_collider_strikes_with_its_own_speed(device: Device) -> None:
    # Still until 10 steps, then 5 m/s up for 40 steps, then still: it meets the cube in between.
    start, end = 10 * STEP, 50 * STEP
    rise = 5.0 * (end - start)
    plane = Collider(restitution=0.8, keys=((start, 0.0, 0.0, 0.0), (end, 0.0, rise, 0.0)))
    sim = setup(device, (1, 1, 1), center=(0.0, 0.5 * SPACING + 0.25 * rise, 0.0),
                colliders=(plane,))
    sim.advance(19)
    assert np.array_equal(sim.velocity, np.zeros((1, 3)))
    sim.advance(5)
    assert sim.velocity[0] == pytest.approx([0.0, 1.8 * 5.0, 0.0], rel=1e-12)
    assert device.to_host(sim._colliders.at)[0] == pytest.approx(
        [0.0, 5.0 * (14 * STEP), 0.0, 0.0, 5.0, 0.0], rel=1e-12)
    sim.advance(100)
    assert device.to_host(sim._colliders.at)[0] == pytest.approx([0, rise, 0, 0, 0, 0], rel=1e-12)


# ------------------------------------------------------------------ regions


@pytest.mark.warp
def test_fixed_and_driven_regions_hold_exactly(device: Device) -> None:
    end = {"size": (2.1e-3, 1.0, 1.0)}
    until = 150.5 * STEP
    fixed = Region(center=(-6e-3, 0.0, 0.0), fixed=True, **end)
    driven = Region(center=(6e-3, 0.0, 0.0), velocity=(0.7, 0.0, -0.3), until=until, **end)
    # The tough material carries the pull from one end to the other without breaking.
    tough = dataclasses.replace(GLASS, strain_limit=1.0)
    sim = setup(device, (12, 3, 3), regions=(fixed, driven), material=tough,
                solver={"gravity": (0.0, -9.81, 0.0), "damping": 3.0})
    rest = sim.solid.position
    left, right = rest[:, 0] < -4.9e-3, rest[:, 0] > 4.9e-3
    assert left.sum() == right.sum() == 9
    sim.advance(150)
    time = 150 * STEP
    assert np.array_equal(sim.position[left], rest[left])
    assert np.array_equal(sim.velocity[left], np.zeros((9, 3)))
    velocity = np.array([0.7, 0.0, -0.3])
    assert np.array_equal(sim.position[right], rest[right] + velocity * time)
    assert np.array_equal(sim.velocity[right], np.tile(velocity, (9, 1)))
    assert np.abs(sim.velocity[~left & ~right, 0]).max() > 1e-3
    assert sim.n_bonds == sim.initial_bonds.sum() // 2
    # Let go, the driven end is pulled back; the fixed one stays.
    sim.advance(50)
    assert sim.velocity[right, 0].max() < 0.7
    assert np.array_equal(sim.position[left], rest[left])


def test_held_particles_strain_their_bonds_as_if_placed(device: Device) -> None:
    driven = Region(center=(1.5e-3, 0.0, 0.0), size=(1.1e-3, 1.0, 1.0), velocity=(0.5, 0.0, 0.0))
    fixed = Region(shape="sphere", center=(-0.5e-3, 0.0, 0.0), radius=1.1e-3, fixed=True)
    sim = setup(device, (4, 1, 1), regions=(fixed, driven), solver={"horizon": 1.0})
    sim.advance(7)
    other = setup(device, (4, 1, 1), solver={"horizon": 1.0})
    other.place(sim.position)
    assert sim.energies()[1] == pytest.approx(other.energies()[1], rel=1e-6)
    assert sim.energies()[1] > 0.0


def test_region_scales_the_strain_limit_of_its_body_alone(device: Device) -> None:
    bodies = [Body(name=name, material="glass", cells=(4, 1, 1), spacing=SPACING,
                   center=(0.0, y, 0.0)) for name, y in (("a", 0.0), ("b", 5e-3))]
    region = Region(body="b", center=(1e-3, 0.0, 0.0), size=(2e-3, 1.0, 1.0), strain_factor=3.0)
    sim = bond_simulation(device, build_solid(bodies), bodies=bodies, materials={"glass": GLASS},
                          regions=(region, region))
    factor = sim.threshold / GLASS.strain_limit
    assert factor == pytest.approx([1, 1, 1, 1, 1, 1, 9, 9], rel=1e-6)


def test_regions_without_elements_are_named_and_do_nothing(device: Device) -> None:
    beside = Region(body="block", center=(1, 1, 1), fixed=True)
    around = Region(body="block", size=(1, 1, 1), fixed=True)
    assert setup(device, (2, 2, 2), regions=(beside, around)).world.controls.idle_regions == (1,)


def test_empty_regions_are_known_before_anything_is_built() -> None:
    rng = np.random.default_rng(3)
    body = Body(name="b", material="g", cells=(7, 4, 5), spacing=SPACING, center=(0.1, 0.0, -0.2),
                rotation=(30.0, -20.0, 50.0))
    solid = build_solid([body])
    found = []
    for _ in range(200):
        center = solid.position[rng.integers(140)] + rng.normal(size=3) * 3e-3
        region = Region(shape=str(rng.choice(["box", "sphere"])), center=tuple(center), fixed=True,
                        radius=float(rng.uniform(1e-4, 1e-3)),
                        rotation=tuple(rng.normal(size=3) * 90),
                        size=tuple(rng.uniform(1e-4, 2e-3, 3)))
        held, = find_held([region], [body])
        found.append(held is Held.NONE)
        assert found[-1] == (not members(region, solid).any())
    assert 5 < sum(found) < 195
    vast = Region(size=(1e30, 1e30, 1e30), fixed=True)
    regions = [Region(center=(1e30, -1e30, 0.0), fixed=True), vast,
               dataclasses.replace(vast, body="a")]
    assert list(find_held(regions, [body])) == [Held.NONE, Held.SOME, Held.NONE]
    huge = dataclasses.replace(body, cells=(1000, 1000, 1000))
    assert list(find_held([vast] * 300, [huge])) == [Held.SOME] * 300


# ------------------------------------------------------------------ damping


def test_damped_free_particle_decays_exponentially(device: Device) -> None:
    rate, speed, n = 4000.0, np.array([3.0, -2.0, 1.0]), 2000
    sim = setup(device, (1, 1, 1), solver={"damping": rate})
    sim.place(sim.solid.position, speed[None])
    sim.advance(n)
    left = np.exp(-rate * n * STEP)
    assert left < 0.5
    assert sim.velocity[0] == pytest.approx(speed * left, rel=1e-12)
    assert sim.position[0] == pytest.approx(speed / rate * (1.0 - left), rel=1e-7)


def test_no_damping_changes_no_bit(device: Device) -> None:
    velocity = np.random.default_rng(5).normal(size=(60, 3)) * 0.2
    result = []
    for damping in (0.0, 1e-12):
        sim = setup(device, (5, 4, 3), solver={"damping": damping})
        sim.place(sim.solid.position, velocity)
        sim.advance(50)
        result.append(sim.position)
    assert np.array_equal(result[0], result[1])


# ------------------------------------------------------------------ cracks


def bonds_across(solid: object, horizon: float, crack: Crack) -> tuple[int, int]:
    """Bonds in all, and those that cross a crack, by a plain test of all pairs."""
    x = solid.position
    i, j = np.triu_indices(len(x), 1)
    near = ((x[i] - x[j]) ** 2).sum(1) <= (horizon * SPACING * (1 + 1e-6)) ** 2
    a, b = x[i[near]], x[j[near]]
    # origin + s u + t v = a + w (b - a)
    u, v = (np.broadcast_to(np.array(side), a.shape) for side in (crack.u, crack.v))
    matrix = np.stack([u, v, a - b], axis=2)
    skew = np.abs(np.linalg.det(matrix)) > 1e-18
    at = np.linalg.solve(matrix[skew], (a[skew] - np.array(crack.origin))[..., None])[..., 0]
    return len(a), int(((at >= 0.0) & (at <= 1.0)).all(1).sum())


@pytest.mark.warp
def test_crack_removes_just_the_bonds_that_cross_it(device: Device) -> None:
    crack = Crack(origin=(-5.13e-3, 0.31e-3, -3e-3), u=(5.0e-3, 0.9e-3, 0.2e-3),
                  v=(0.0, 0.4e-3, 6e-3))
    sim = setup(device, (10, 8, 3), rotation=(0.0, 0.0, 10.0), cracks=(crack,))
    every, cut = bonds_across(sim.solid, 3.0, crack)
    assert cut > 100
    assert sim.n_bonds == every - cut == sim.initial_bonds.sum() // 2
    frame, (_, step) = sim.frame(1001, -1), sim.broken_edges(-1)
    assert np.array_equal(frame.damage, np.zeros(240, np.float32))
    assert sim.diagnostics()["broken_edges"] == 0
    # Elements on either side are no longer neighbours, from the first frame on.
    assert len(frame.broken_edge) > 10 and not step.any()
    assert np.array_equal(sim.acceleration, np.zeros((240, 3), np.float32))


@pytest.mark.warp
def test_halves_of_a_cut_body_do_not_pull_each_other(device: Device) -> None:
    crack = Crack(origin=(0.0, -1.0, -1.0), u=(0.0, 2.0, 0.0), v=(0.0, 0.0, 2.0))
    sim = setup(device, (6, 3, 3), cracks=(crack,))
    right = sim.solid.position[:, 0] > 0.0
    sim.place(sim.solid.position + np.where(right[:, None], [3e-3, 0.0, 0.0], 0.0))
    # All that is left is the rounding of the fixed-point displacement: none for whole halves.
    assert np.abs(sim.acceleration).max() == 0.0
    edge, _ = sim.broken_edges(-1)
    pair = sim.solid.edge[edge]
    assert len(edge) == 9 and (right[pair[:, 0]] != right[pair[:, 1]]).all()


# ------------------------------------------------------------------ weakening


def test_polyline_weakens_as_a_straight_walk_does(device: Device) -> None:
    from vfx.sim.control.weakening import plane_axes, random_walks

    walk = Weakening(paths=1, length=6e-3, step=6e-3, wander=0.0, branching=0.0,
                     origin=(0.12347e-3, 0.21713e-3, 0.0), normal=(0.1, 0.2, 1.0))
    axes = plane_axes(np.array(walk.normal))
    (ax, ay, bx, by), = random_walks(walk)
    start, end = np.array(walk.origin) + np.array([[ax, ay], [bx, by]]) @ axes
    # Anywhere along the normal, and in two pieces.
    start, end = start + 3e-3 * np.array(walk.normal), end - 1e-3 * np.array(walk.normal)
    line = tuple(tuple(p) for p in (start, 0.4 * start + 0.6 * end, end))
    mine = Weakening(polylines=(line,), normal=walk.normal)
    counts = [setup(device, (16, 16, 2), weakening=(weak,)).bonds.count_weak()
              for weak in (walk, mine)]
    assert counts[0] > 50
    assert abs(counts[1] - counts[0]) <= 2  # a bond may pass through the joint


def test_weakening_that_meets_nothing_is_named(device: Device) -> None:
    far = (1.0, 1.0, 0.0)
    paths = (Weakening(paths=2), Weakening(paths=2, origin=far), Weakening(points=(far,)),
             Weakening(points=((0.0, 0.0, 0.0),)))
    assert setup(device, (9, 5, 1), weakening=paths).idle_weakening == [2, 3]


def test_points_lower_the_strain_limit_around_them(device: Device) -> None:
    weak = Weakening(points=((0.0, 0.0, 0.0), (4e-3, 0.0, 0.0)), radius=2e-3)
    sim = setup(device, (9, 5, 1), weakening=(weak,), solver={"weak_factor": 0.2})
    distance = np.linalg.norm(
        sim.solid.position[:, None] - np.array(weak.points)[None], axis=2).min(1)
    density = np.maximum(0.0, 1.0 - (distance / 2e-3) ** 2)
    assert sim.threshold / GLASS.strain_limit == pytest.approx(1.0 - 0.8 * density, rel=1e-6)
    assert density.max() == 1.0 and (density == 0.0).any()


def test_picture_lowers_the_strain_limit_by_its_darkness(device: Device) -> None:
    image = np.array([[0.0, 0.5, 1.0, 1.0], [0.25, 1.0, 0.75, 0.0]])
    # One pixel a cube: the picture covers four of the six columns of a plate of two rows.
    weak = Weakening(image="a.png", image_origin=(-2e-3, -1e-3, 7.0), image_u=(4e-3, 0.0, 0.0),
                     image_v=(0.0, 2e-3, 0.0))
    sim = setup(device, (6, 2, 2), weakening=(weak,), solver={"weak_factor": 0.4},
                images={"a.png": image})
    factor = (sim.threshold / GLASS.strain_limit).reshape(6, 2, 2)
    expected = np.ones((6, 2))
    expected[1:5] = 1.0 - 0.6 * (1.0 - image[::-1].T)
    for layer in range(2):
        assert factor[:, :, layer] == pytest.approx(expected, rel=1e-5)


# ------------------------------------------------------------------ determinism


def everything(device: Device, threads: int = 2) -> Simulation:
    """A plate with all controls at once."""
    device.threads = threads
    ball = Projectile(radius=5e-3, position=(0.0, 0.0, -8e-3), velocity=(0.0, 5.0, 80.0),
                      mass=2e-3, falls=True)
    return setup(
        device, (16, 16, 4), material=dataclasses.replace(GLASS, strain_scatter=0.02),
        solver={"gravity": (0.0, -9.81, 0.0), "damping": 10.0}, floor=Floor(height=-12e-3),
        projectiles=(ball, dataclasses.replace(ball, position=(5e-3, 0.0, 8.5e-3), mass=0.0,
                                               velocity=(0.0, 0.0, -30.0), falls=False)),
        colliders=(Collider(shape="box", size=(0.05, 0.05, 1e-3), friction=0.3,
                            keys=((0.0, 0.0, 0.0, 5e-3), (1e-4, 0.0, 0.0, 4e-3))),),
        regions=(Region(center=(-8e-3, 0.0, 0.0), size=(2.5e-3, 1.0, 1.0), fixed=True,
                        until=3e-5),
                 Region(center=(8e-3, 0.0, 0.0), size=(2.5e-3, 1.0, 1.0),
                        velocity=(1.0, 0.0, 0.0))),
        cracks=(Crack(origin=(0.0, 0.0, -1.0), u=(0.0, 1.0, 0.0), v=(0.0, 0.0, 2.0)),),
        weakening=(Weakening(paths=3, length=0.02, points=((5e-3, -5e-3, 0.0),)),))


def test_controls_give_the_same_bits_for_any_number_of_threads() -> None:
    states = []
    for threads in (1, 3):
        sim = everything(open_device("cpu"), threads)
        sim.advance(400)
        states.append(sim.state())
    assert sim.n_bonds < 0.9 * sim.initial_bonds.sum() / 2
    assert np.abs(sim.balls.momentum - [0.0, 2e-3 * 5.0, 2e-3 * 80.0]).max() > 1e-3
    assert all(np.array_equal(states[0][name], states[1][name]) for name in states[0])


def test_controls_resume_bit_for_bit(device: Device) -> None:
    straight, first, second = (everything(device) for _ in range(3))
    straight.advance(400)
    first.advance(230)
    second.restore(first.state())
    second.advance(170)
    there, here = straight.state(), second.state()
    assert all(np.array_equal(there[name], here[name]) for name in there)


# ------------------------------------------------------------------ bodies that never break


@pytest.mark.filterwarnings("error")
def test_a_body_that_is_whole_stays_so_under_a_blow_that_shatters_its_twin(
    device: Device
) -> None:
    """Even where it is weakened to nothing, or in a region that is."""
    bodies = [Body(name=name, material="glass", cells=(12, 12, 2), spacing=SPACING,
                   center=(x, 0.0, 0.0), whole=name == "whole")
              for name, x in (("whole", -0.05), ("twin", 0.05))]
    balls = tuple(Projectile(radius=5e-3, position=(x, 0.0, -9e-3), velocity=(0.0, 0.0, 60.0),
                             stiffness=1e15) for x in (-0.05, 0.05))
    walls = Weakening(polylines=(((-1.0, 0.0, 0.0), (1.0, 0.0, 0.0)),),
                      points=((-0.05, 0.0, 0.0),), radius=5e-3)
    sim = bond_simulation(
        device, build_solid(bodies), bodies=bodies,
        materials={"glass": dataclasses.replace(GLASS, strain_limit=2e-4)},
        floor=Floor(enabled=False), projectiles=balls, weakening=(walls,), weak_factor=0.0,
        regions=(Region(body="whole", shape="sphere", center=(-0.05, 0.0, 0.0), radius=2e-3,
                        strain_factor=0.0),), gravity=(0.0, 0.0, 0.0))
    sim.advance(400)
    solid = build_solid(bodies)
    of_broken = solid.body[solid.edge[sim.broken_edges(-1)[0], 0]]
    assert np.isfinite(sim.position).all() and np.isfinite(sim.velocity).all()
    assert (of_broken == 1).sum() > 20 and not (of_broken == 0).any()
    # It was hit as hard.
    speed = np.linalg.norm(sim.velocity, axis=1)
    assert speed[solid.body == 0].max() > 5.0
