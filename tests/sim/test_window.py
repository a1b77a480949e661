"""Laws of windows: some pieces with bonds, from a moment on, break as they do in the whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING
from tests.solids import build_solid
from vfx.bench.setups import bond_setup
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.subset import subset
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.window import BondWindow
from vfx.sim.control.controls import make_world
from vfx.sim.settings import Collider, Crack, Floor, Region
from vfx.sim.solver import World

STEP = 2.0**-23
SCATTERED = dataclasses.replace(GLASS, strain_scatter=0.1)
TWO = [Body(name="left", material="glass", cells=(4, 8, 2), spacing=SPACING),
       Body(name="right", material="glass", cells=(6, 4, 3), spacing=SPACING,
            center=(0.02, 0.0, 0.0))]
NONE = np.zeros((0, 2), np.int32)


def make(bodies: list[Body], **keys: object) -> World[BondSettings]:
    given: dict[str, object] = {
        "materials": {"glass": SCATTERED}, "floor": Floor(enabled=False), "timestep": STEP,
        "gravity": (0.0, 0.0, 0.0)}
    return make_world(build_solid(bodies), bond_setup(bodies=bodies, **(given | keys)))


def whole(device: Device, world: World[BondSettings], velocity: np.ndarray, step: int = 0,
          position: np.ndarray | None = None) -> BondWindow:
    n = world.solid.n_elements
    return BondWindow(device, world, np.arange(n), np.zeros(n, np.int32), NONE,
                      world.solid.position if position is None else position, velocity, step)


def torn(position: np.ndarray, speed: float = 12.0) -> np.ndarray:
    """Velocities that pull a body apart along x, unevenly."""
    return speed * np.tanh(position / SPACING / 2.0) * np.array([1.0, 0.3, 0.1])


@pytest.mark.warp
def test_a_window_on_everything_is_the_simulation(device: Device) -> None:
    world = make(TWO, cracks=[Crack(origin=(-0.1, 1e-3, -0.1), u=(0.2, 0.0, 0.0),
                                    v=(0.0, 0.0, 0.2))])
    velocity = torn(world.solid.position - world.solid.position.mean(0))
    sim = Simulation(device, world)
    sim.place(world.solid.position, velocity, 1000)
    window = whole(device, world, velocity, step=1000)
    for each in (sim, window):
        each.advance(60)
    assert window.step == 1060 and window.time == 1060 * STEP
    assert np.array_equal(window.position, sim.position)
    assert np.array_equal(window.velocity, sim.velocity)
    assert np.array_equal(window.broken(), sim.broken_edges(-1)[0])
    assert len(sim.broken_edges(0)[0]) > 10 and len(sim.broken_edges(-1)[0]) > len(
        sim.broken_edges(0)[0])
    assert np.array_equal(window.damage(), sim.damage(sim.bond_sums()["count"]))
    assert window.n_bonds == sim.n_bonds and window.energies() == sim.energies()


@pytest.mark.parametrize("calibrate", [False, True])
def test_what_breaks_does_not_depend_on_who_else_is_there(
    device: Device, calibrate: bool
) -> None:
    world = make(TWO, calibrate=calibrate)
    solid = world.solid
    velocity = torn(solid.position - np.where(solid.body == 0, 0.0, 0.02)[:, None])
    together = whole(device, world, velocity)
    together.advance(60)
    right = np.flatnonzero(solid.body == 1)
    alone = BondWindow(device, world, right, np.zeros(len(right)), NONE,
                       solid.position[right], velocity[right], 0)
    alone.advance(60)
    edges = np.flatnonzero(solid.body[solid.edge[:, 0]] == 1)
    broken = np.intersect1d(together.broken(), edges)
    assert len(broken) > 5
    assert np.array_equal(alone.broken(), broken)
    np.testing.assert_allclose(alone.position, together.position[right], rtol=0, atol=1e-12)
    assert np.array_equal(alone.damage(), together.damage()[right])
    ours = together.dead()
    assert np.array_equal(alone.dead(), ours[solid.body[ours[:, 0]] == 1])


def test_a_piece_of_a_body_is_as_stiff_as_the_body(device: Device) -> None:
    # Calibrated from its own bonds a corner would come out stiffer: it has no interior.
    world = make([Body(name="b", material="glass", cells=(9, 9, 9), spacing=SPACING)],
                 calibrate=True)
    solid = world.solid
    corner = np.flatnonzero((solid.cell < 3).all(axis=1))
    piece = BondWindow(device, world, corner, np.zeros(27), NONE, solid.position[corner],
                       np.zeros((27, 3)), 0)
    label = (~np.isin(np.arange(729), corner)).astype(np.int32)
    parted = BondWindow(device, world, np.arange(729), label, NONE, solid.position,
                        np.zeros((729, 3)), 0)
    stretched = solid.position * 1.0002
    energy = []
    for window, place in ((piece, stretched[corner]), (parted, np.where(
            label[:, None] == 0, stretched, solid.position))):
        again = BondWindow(device, world, window._element, label[window._element], NONE, place,
                           np.zeros_like(place), 0)
        energy.append(again.energies()[1])
        assert again.n_bonds > 0
    assert energy[0] > 0.0 and energy[0] == pytest.approx(energy[1], rel=1e-6)


@pytest.mark.warp
def test_labels_and_dead_bonds_do_not_hold(device: Device) -> None:
    world = make([Body(name="b", material="glass", cells=(8, 4, 2), spacing=SPACING)])
    solid = world.solid
    label = (solid.cell[:, 0] >= 4).astype(np.int32)
    every = whole(device, world, np.zeros_like(solid.position)).n_bonds
    apart = solid.position[:, None] - solid.position[None]
    near = np.triu((apart**2).sum(2) <= (3.0 * SPACING * (1 + 1e-6)) ** 2, 1)
    pairs = np.argwhere(near).astype(np.int32)
    assert every == len(pairs)
    across = label[pairs[:, 0]] != label[pairs[:, 1]]
    dead = pairs[~across][::7]
    window = BondWindow(device, world, np.arange(64), label, dead, solid.position,
                        np.zeros_like(solid.position), 50)
    assert window.n_bonds == every - across.sum() - len(dead)
    assert np.array_equal(window.dead(), dead)
    lost = np.zeros(64)
    for pair in np.concatenate([pairs[across], dead]):
        lost[pair] += 1
    np.testing.assert_allclose(window.damage(), lost / near.astype(int).__add__(near.T).sum(1),
                               rtol=1e-6)
    gone = {tuple(pair) for pair in np.concatenate([pairs[across], dead]).tolist()}
    edges = [k for k, edge in enumerate(solid.edge.tolist()) if tuple(edge) in gone]
    assert window.broken().tolist() == edges
    # The halves part freely.
    velocity = np.where(label == 1, 1.0, -1.0)[:, None] * np.array([1.0, 0.0, 0.0])
    free = BondWindow(device, world, np.arange(64), label, dead, solid.position, velocity, 0)
    free.advance(50)
    assert np.array_equal(free.dead(), dead) and free.n_bonds == window.n_bonds
    np.testing.assert_allclose(free.velocity, velocity, atol=1e-9)


def test_what_breaks_in_a_window_is_dead_in_the_next(device: Device) -> None:
    world = make(TWO[:1])
    n = world.solid.n_elements
    one = whole(device, world, torn(world.solid.position))
    one.advance(60)
    dead = one.dead()
    assert len(dead) > 20 and (dead[:, 0] < dead[:, 1]).all()
    two = BondWindow(device, world, np.arange(n), np.zeros(n), dead, one.position,
                     one.velocity, one.step)
    assert two.n_bonds == one.n_bonds and np.array_equal(two.dead(), dead)
    assert np.array_equal(two.broken(), one.broken())
    assert np.array_equal(two.damage(), one.damage())


def test_a_turned_piece_far_away_is_not_strained(device: Device) -> None:
    world = make(TWO)
    some = np.flatnonzero(world.solid.body == 0)[5:50]
    angle = np.array([[0.0, -1.0, 0.0], [0.8, 0.0, -0.6], [0.6, 0.0, 0.8]])
    place = world.solid.position[some] @ angle.T + np.array([40.0, -7.0, 3.0])
    window = BondWindow(device, world, some, np.zeros(len(some)), NONE, place,
                        np.zeros_like(place), 12345)
    before = window.n_bonds
    window.advance(100)
    assert window.n_bonds == before
    assert np.abs(window.position - place).max() < 1e-5 * SPACING


def test_a_restored_window_goes_on_bit_for_bit(device: Device) -> None:
    held = Region(center=(-1.5e-3, 0.0, 0.0), size=(1.1e-3, 0.1, 0.1), velocity=(-5.0, 0.0, 0.0))
    world = make(TWO[:1], regions=[held], colliders=[Collider(
        shape="plane", normal=(-1.0, 0.0, 0.0), position=(2.2e-3, 0.0, 0.0))])
    shifted = world.solid.position + np.array([1e-4, 0.0, 0.0])
    velocity = torn(world.solid.position, 6.0)
    one, two = (whole(device, world, velocity, 300, place)
                for place in (shifted, world.solid.position))
    one.advance(40)
    two.restore(one.state())
    for each in (one, two):
        each.advance(40)
    there, here = one.state(), two.state()
    assert len(one.dead()) and one.step == 380
    assert all(np.array_equal(there[name], here[name]) for name in there)
    assert np.array_equal(one.dead(), two.dead())
    with pytest.raises(ValueError, match="held_start"):
        two.restore({})


def test_held_elements_are_held_from_where_they_are(device: Device) -> None:
    region = Region(size=(0.1, 0.1, 0.1), velocity=(3.0, 0.0, 0.0), until=1010.5 * STEP)
    world = make(TWO[:1], regions=[region], gravity=(0.0, -1000.0, 0.0))
    start = world.solid.position + 1.0
    window = whole(device, world, np.zeros_like(start), 1000, start)
    window.advance(10)
    np.testing.assert_allclose(
        window.position, start + 10 * STEP * np.array([3.0, 0.0, 0.0]), rtol=1e-12)
    window.advance(10)
    assert (window.velocity[:, 1] < 0.0).all()


def test_a_subset_keeps_bodies_and_edges(device: Device) -> None:
    solid = build_solid(TWO)
    element = np.flatnonzero(solid.body == 1)[3:40]
    some, edge = subset(solid, element)
    assert np.array_equal(element[some.edge], solid.edge[edge])
    inside = np.isin(solid.edge, element).all(axis=1)
    assert len(edge) == inside.sum() and set(some.body) == {1}
    assert np.array_equal(some.length_scale, solid.length_scale)
    with pytest.raises(ValueError, match="must rise"):
        BondWindow(device, make(TWO), element[::-1], np.zeros(37), NONE,
                   solid.position[element], solid.position[element], 0)


def test_what_tore_in_windows_of_before_is_told_when_it_parts(device: Device) -> None:
    """First the bonds of all faces of a plane but one column go, then those that held it."""
    body = Body(name="block", material="glass", cells=(8, 4, 4), spacing=SPACING)
    world = make([body], pieces="held", horizon=2.0)
    rest, edge = world.solid.position, world.solid.edge
    pairs = np.argwhere(np.triu((rest[:, None, 0] < 0.0) != (rest[None, :, 0] < 0.0)))
    plane = np.flatnonzero((rest[edge[:, 0], 0] < 0.0) != (rest[edge[:, 1], 0] < 0.0))

    def window(dead: np.ndarray) -> BondWindow:
        return BondWindow(device, world, np.arange(len(rest)), np.zeros(len(rest), np.int32),
                          dead.astype(np.int32), rest, np.zeros_like(rest), 0)

    holds = (rest[pairs, 1] > 0.0).any(axis=1)
    torn = window(pairs[~holds])
    assert not len(torn.broke()[0]) and not len(torn.broken())
    assert 0 < len(torn.gaping()) < len(plane) and np.isin(torn.gaping(), plane).all()
    parted = window(pairs)
    assert np.array_equal(parted.gaping(), plane)
    assert np.array_equal(parted.broke()[0], plane) and np.array_equal(parted.broken(), plane)


@pytest.mark.warp
def test_what_a_window_finds_in_touch_has_no_energy_of_it(device: Device) -> None:
    # Voronoi cells on both sides of a joint may be this near.
    pair = [Body(name=name, material="glass", cells=(1, 1, 1), spacing=SPACING,
                 center=(0.0, 3.0 * k * SPACING, 0.0)) for k, name in enumerate("ab")]
    world = make(pair, contact_distance=0.9, contact_stiffness=1e8)
    place = np.array([[0.0, 0.0, 0.0], [0.0, 0.6 * SPACING, 0.0]])
    window = whole(device, world, np.zeros((2, 3)), position=place)
    window.advance(100)
    assert not window.velocity.any() and np.array_equal(window.position, place)
    # They do not pass through each other, and come back no faster.
    window = whole(device, world, np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]), position=place)
    window.advance(1500)
    assert np.ptp(window.position[:, 1]) > 0.4 * SPACING
    np.testing.assert_allclose(window.velocity[:, 1], [-1.0, 1.0], rtol=1e-3)
