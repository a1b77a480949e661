"""Laws of contact: slopes, bounces, friction by material, what is not convex, what is fast."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from tests.sim.rigid_worlds import (
    GRAVITY,
    STEP,
    add_at_rest,
    block,
    layout,
    place_bodies,
    rigid_setup,
    run,
    slope,
    world_of,
)
from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.control.controls import make_world
from vfx.sim.rigid.corners import four_cornered
from vfx.sim.rigid.world import FLOOR, RigidWorld
from vfx.sim.settings import Collider, Floor, Material, Projectile
from vfx.sim.solver import Poses

__all__ = ["layout"]


def cells_where(keep: Callable[[Array], Array], size: int, spacing: float) -> tuple[Body, Solid]:
    """A body of the cubes of a block, (i, j, k) from its middle, that are to be kept."""
    body = block((size, size, size), spacing, center=(0.0, 0.5 * size * spacing, 0.0))
    solid = build_solid([body])
    chosen = keep(solid.cell - 0.5 * (size - 1))
    number = np.cumsum(chosen) - 1
    both = chosen[solid.edge].all(axis=1)
    for name in ("position", "volume", "size", "body", "cell"):
        setattr(solid, name, getattr(solid, name)[chosen])
    solid.edge = number[solid.edge[both]].astype(np.int32)
    return body, solid


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_block_slides_down_a_slope_as_coulomb_says(friction: float) -> None:
    body = block((4, 2, 4), center=(0.0, 0.01, 0.0))
    rigid, ids = place_bodies(world_of([body], gravity=slope(30.0), floor=Floor(friction=friction)))
    run(rigid, 0.5)
    expected = slope(30.0)[0] + friction * slope(30.0)[1]
    now = rigid.poses(ids)
    assert now.velocity[0, 0] / rigid.time == pytest.approx(expected, rel=5e-3)
    assert now.center[0, 0] == pytest.approx(0.5 * expected * rigid.time**2, rel=1e-2)


def test_block_rests_where_friction_is_steeper_than_the_slope() -> None:
    rigid, ids = place_bodies(world_of(
        [block((4, 2, 4), center=(0.0, 0.01, 0.0))], gravity=slope(25.0), floor=Floor()))
    run(rigid, 1.5)
    assert rigid.asleep(ids).all()
    assert np.abs(rigid.poses(ids).center[0] - [0.0, 0.01, 0.0]).max() < 1e-3


@pytest.mark.parametrize("resistance", [0.0, 0.1])
def test_ball_rolls_down_a_slope_as_the_closed_form_says(resistance: float) -> None:
    ball = Projectile(radius=0.1, position=(0.0, 0.1, 0.0), velocity=(0.0, 0.0, 0.0), mass=3.0,
                      falls=True)
    world = world_of([block(center=(0.0, 5.0, 0.0))], gravity=slope(20.0), floor=Floor(),
                     projectiles=[ball], rolling_resistance=resistance)
    rigid = RigidWorld(world, world.settings, 1)
    run(rigid, 0.5)
    along, across, _ = slope(20.0)
    expected = 5.0 / 7.0 * (along + resistance * across)
    now = rigid.poses(np.arange(1))
    assert now.velocity[0, 0] / rigid.time == pytest.approx(expected, rel=1e-2)
    assert -0.1 * now.angular_velocity[0, 2] == pytest.approx(now.velocity[0, 0], rel=1e-2)


@pytest.mark.parametrize("restitution", [0.0, 0.2, 0.5, 0.9])
def test_bouncing_block_loses_what_restitution_says(restitution: float) -> None:
    body = block((2, 2, 2), 0.05, center=(0.0, 0.1, 0.0), velocity=(0.0, -10.0, 0.0))
    rigid, ids = place_bodies(world_of([body], floor=Floor(restitution=restitution)))
    for _ in range(12):
        rigid.step(STEP)
        if (speed := rigid.poses(ids).velocity[0, 1]) >= 0.0:
            break
    assert speed == pytest.approx(10.0 * restitution, abs=0.15)


def test_floor_without_numbers_bounces_each_material_as_its_own() -> None:
    names = {"rubber": Material(restitution=0.9), "clay": Material(restitution=0.0)}
    bodies = [block((2, 2, 2), 0.05, name=name, material=name, center=(x, 0.1, 0.0),
                    velocity=(0.0, -8.0, 0.0)) for x, name in enumerate(names)]
    setup = dataclasses.replace(rigid_setup(bodies, floor=Floor()), materials=names)
    rigid, ids = place_bodies(make_world(build_solid(bodies), setup))
    fastest = np.full(2, -np.inf)
    for _ in range(12):
        rigid.step(STEP)
        fastest = np.maximum(fastest, rigid.poses(ids).velocity[:, 1])
    assert fastest[0] == pytest.approx(0.9 * 8.0, rel=0.02)
    assert fastest[1] < 0.15


def test_bowl_holds_a_marble() -> None:
    def keep(place: Array) -> Array:
        radius = np.sqrt((place**2).sum(axis=1))
        return (radius <= 8.0) & (radius > 6.0) & (place[:, 1] < 0.6)

    body, solid = cells_where(keep, 17, 0.01)
    ball = Projectile(radius=0.015, position=(0.035, 0.085, 0.0), velocity=(0.0, 0.0, 0.0),
                      mass=0.03, falls=True)
    world = world_of([body], solid, floor=Floor(), projectiles=[ball])
    rigid = RigidWorld(world, world.settings, 1)
    ids = add_at_rest(rigid, [np.arange(solid.n_elements)])
    assert 8 <= len(rigid.prop(int(ids[0])).hulls) <= 64
    run(rigid, 1.5)
    bowl, marble = rigid.poses(ids).center[0], rigid.poses(np.arange(1)).center[0]
    # Its bottom is flat for 33 mm, on which the marble may stop anywhere.
    assert np.hypot(*(marble - bowl)[[0, 2]]) < 0.033 - 0.5 * 0.015
    # It lies on the cubes inside, 30 mm above the floor, not on the rim and not in the wall.
    assert marble[1] == pytest.approx(0.045, abs=5e-4)


def test_two_hooks_hang_on_each_other() -> None:
    def ring(flat: int, middle: tuple[float, float]) -> Callable[[Array], Array]:
        u, v = (1, 2) if flat == 0 else (0, 1)

        def keep(place: Array) -> Array:
            radius = np.hypot(place[:, u] - middle[0], place[:, v] - middle[1])
            return (np.abs(place[:, flat]) <= 0.6) & (radius <= 5.6) & (radius > 3.4)
        return keep

    # Two links of a chain: the upper in the plane x y, held; the lower hangs in it.
    upper = ring(2, (0.0, 4.0))
    lower = ring(0, (-2.0, 0.0))
    body, solid = cells_where(lambda place: upper(place) | lower(place), 21, 0.01)
    is_upper = upper(solid.cell - 10.0)
    assert not (is_upper & lower(solid.cell - 10.0)).any()
    world = world_of([body], solid)
    world.controls.held[is_upper] = 0
    object.__setattr__(world.controls, "drive", np.array([[0.0, 0.0, 0.0, math.inf]]))
    rigid = RigidWorld(world, world.settings, 1)
    ids = add_at_rest(rigid, [np.flatnonzero(is_upper), np.flatnonzero(~is_upper)])
    start = rigid.poses(ids).center
    run(rigid, 1.0)
    end = rigid.poses(ids).center
    np.testing.assert_array_equal(end[0], start[0])
    assert -0.04 < end[1, 1] - start[1, 1] < 0.0


def test_abutting_cells_are_not_driven_apart() -> None:
    body = Body(name="cells", material="stone", box=(1.0, 1.0, 1.0), elements=300, shape="voronoi")
    solid = build_solid([body])
    rigid = RigidWorld(world := world_of([body], solid, gravity=(0.0, 0.0, 0.0)), world.settings, 1)
    ids = add_at_rest(rigid, [np.array([element]) for element in range(solid.n_elements)])
    run(rigid, 0.25)
    cell = np.cbrt(solid.volume.mean())
    moved = np.linalg.norm(rigid.poses(ids).center - solid.position, axis=1)
    assert moved.max() / rigid.time < 0.01 * cell
    assert np.linalg.norm(rigid.poses(ids).velocity, axis=1).max() < 0.02 * cell
    momentum = rigid.mass(ids)[:, None] * rigid.poses(ids).velocity
    assert np.linalg.norm(momentum.sum(axis=0)) <= 1e-6 * np.abs(momentum).sum()


@pytest.mark.parametrize("mass", [0.0, 0.05])
@pytest.mark.parametrize("start", [0.0, 0.37, 0.81])
def test_fast_bullet_hits_what_it_would_pass_in_a_step(mass: float, start: float) -> None:
    speed = 400.0
    ball = Projectile(radius=0.005, position=(-0.5 - start * speed * STEP, 0.0, 0.0),
                      velocity=(speed, 0.0, 0.0), mass=mass)
    world = world_of([block((2, 6, 6))], projectiles=[ball], gravity=(0.0, 0.0, 0.0))
    rigid = RigidWorld(world, world.settings, 1)
    ids = add_at_rest(rigid, [np.arange(world.solid.n_elements)])
    rigid.watch(ids, np.array([1.0]))
    momentum = mass * speed
    told = 0
    for _ in range(8):
        hits = rigid.step(STEP)
        told += len(hits)
        if len(hits):
            assert (hits.first[0], hits.second[0]) == (0, ids[0])
            assert hits.speed[0] == pytest.approx(speed, rel=1e-3)
            assert abs(hits.normal[0, 0]) > 0.99
    assert told == 1
    moved = rigid.poses(ids).velocity[0, 0]
    assert moved > (1.0 if mass else 0.9 * speed)
    if mass:
        assert rigid.momentum()[0] == pytest.approx(momentum, rel=1e-5)


def test_fast_ball_does_not_pass_the_floor() -> None:
    ball = Projectile(radius=0.002, position=(0.0, 0.7, 0.0), velocity=(0.0, -300.0, 0.0),
                      mass=0.01)
    world = world_of([block(center=(1.0, 0.1, 0.0))], projectiles=[ball], floor=Floor())
    rigid = RigidWorld(world, world.settings, 1)
    for _ in range(20):
        rigid.step(STEP)
        assert rigid.poses(np.arange(1)).center[0, 1] > 0.0019


def test_hits_tell_who_where_and_how_fast() -> None:
    body = block((2, 2, 2), 0.01, center=(0.3, 0.05, 0.0), velocity=(0.0, -2.0, 0.0))
    rigid, ids = place_bodies(world_of([body], floor=Floor()))
    rigid.watch(ids, np.array([0.5]))
    found = []
    for _ in range(96):
        speed = rigid.poses(ids).velocity[0, 1]
        hits = rigid.step(STEP)
        if len(hits):
            found.append((hits, speed))
    hits, speed = found[0]
    assert (hits.first[0], hits.second[0]) == (ids[0], FLOOR)
    assert hits.speed[0] == pytest.approx(-speed)
    np.testing.assert_allclose(hits.normal[0], [0.0, -1.0, 0.0], atol=1e-5)
    assert abs(hits.point[0, 1]) < 5e-3 and abs(hits.point[0, 0] - 0.3) <= 0.0101
    assert all((hit.speed > 0.5).all() for hit, _ in found)


def test_offcentre_hit_of_a_rod_is_told() -> None:
    body = block((1, 1, 24), 0.01, center=(0.0, 0.2, 0.0), rotation=(20.0, 0.0, 0.0))
    rigid, ids = place_bodies(world_of([body], floor=Floor()))
    rigid.watch(ids, np.array([0.5]))
    for _ in range(240):
        if len(hits := rigid.step(STEP)):
            break
    assert hits.speed[0] > 0.5 and abs(hits.point[0, 2]) > 0.09


def test_keyed_collider_carries_what_stands_on_it() -> None:
    lift = Collider(shape="box", size=(0.2, 0.02, 0.2), position=(0.0, -0.01, 0.0),
                    keys=((0.8, 0.0, -0.01, 0.0), (1.2, 0.02, 0.01, 0.0)))
    rigid, ids = place_bodies(world_of([block(center=(0.0, 0.0101, 0.0))], colliders=[lift]))
    run(rigid, 0.75)
    assert rigid.asleep(ids).all()
    run(rigid, 1.25)
    np.testing.assert_allclose(rigid.poses(ids).center[0], [0.02, 0.03, 0.0], atol=1.5e-3)
    assert rigid.asleep(ids).all()


def test_sphere_box_and_plane_stop_what_falls() -> None:
    things = [Collider(shape="box", size=(0.1, 0.1, 0.1), position=(0.0, 0.0, 0.0)),
              Collider(shape="sphere", radius=0.05, position=(1.0, 0.0, 0.0)),
              Collider(shape="plane", position=(0.0, -0.3, 0.0), normal=(0.0, 2.0, 0.0))]
    bodies = [block(name=f"b{x}", center=(x, 0.1, 0.0)) for x in (0.0, 2.0)]
    rigid, ids = place_bodies(world_of(bodies, colliders=things))
    run(rigid, 1.0)
    np.testing.assert_allclose(rigid.poses(ids).center[:, 1], [0.06, -0.29], atol=2e-4)


def test_wall_of_bricks_stands() -> None:
    bodies = [block((4, 2, 2), 0.02, name=f"brick{row}{k}",
                    center=(0.08 * k + 0.04 * row, 0.02 + 0.04 * row, 0.0))
              for row in range(4) for k in range(4 - row)]
    rigid, ids = place_bodies(world_of(bodies, floor=Floor()))
    start = rigid.poses(ids).center
    run(rigid, 1.0)
    assert np.abs(rigid.poses(ids).center - start).max() < 1e-3
    assert rigid.asleep(ids).all()


def test_energy_of_a_tumbling_block_never_grows() -> None:
    body = block((2, 3, 8), center=(0.0, 0.3, 0.0), velocity=(1.0, 0.0, 0.0),
                 angular_velocity=(5.0, 3.0, 20.0))
    rigid, ids = place_bodies(world_of([body], floor=Floor()))
    before = most = sum(rigid.energies())
    for _ in range(700):
        rigid.step(STEP)
        now = sum(rigid.energies())
        assert now < before + 1e-3 * most
        before = min(before, now)
    assert GRAVITY * rigid.mass(ids)[0] * 0.03 > before


#: Four cubes whose hulls have faces of six corners.
HEXAGONS = {"S": [(0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 0, 2)],
            "T": [(0, 0, 0), (0, 0, 1), (0, 0, 2), (1, 0, 1)]}


@pytest.mark.parametrize("name", HEXAGONS)
@pytest.mark.parametrize("seed", range(4))
def test_faces_of_six_corners_rest_on_the_floor(name: str, seed: int) -> None:
    world = world_of([block((2, 1, 3), 0.01)], floor=Floor())
    cell = world.solid.cell.tolist()
    members = np.sort([cell.index(list(each)) for each in HEXAGONS[name]])
    rigid = RigidWorld(world, world.settings, 1)
    turn = Rotation.random(random_state=seed).as_matrix()[None]
    ids = rigid.add([members], Poses(np.array([[0.0, 0.05, 0.0]]), turn, np.zeros((1, 3)),
                                     np.zeros((1, 3))))
    run(rigid, 1.0)
    poses = rigid.poses(ids)
    lowest = min(float((corner @ poses.rotation[0].T)[:, 1].min())
                 for corner in rigid.prop(int(ids[0])).hulls) + poses.center[0, 1]
    assert -1e-4 < lowest < 1e-3


def test_hulls_get_faces_of_four_corners_and_stay_as_large() -> None:
    angle = np.arange(7) * 2.0 * np.pi / 7.0
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    prism = np.array([(*each, side) for each in ring for side in (-0.4, 0.4)])
    made = four_cornered(prism)
    hull = ConvexHull(made)
    # Joined as the engine does, by normals that differ by less than 0.026 rad.
    normal = hull.equations[:, :3]
    flat = [np.unique(hull.simplices[normal @ each > np.cos(0.026)]) for each in normal]
    assert max(map(len, flat)) == 4
    assert hull.volume > 0.95 * ConvexHull(prism).volume
    assert np.abs(made - prism[ConvexHull(prism).vertices]).max() < 0.06
