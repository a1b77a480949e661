"""Laws of breaking, contact, floor and determinism."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block
from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device, open_device
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds import simulate
from vfx.sim.bonds.simulate import Simulation, Unstable
from vfx.sim.settings import Floor, Projectile, Weakening


def stretched(sim: Simulation, stretch: float) -> np.ndarray:
    """Positions of a body stretched uniformly along x."""
    return sim.solid.position * np.array([1.0 + stretch, 1.0, 1.0])


@pytest.mark.warp
def test_bond_breaks_at_its_threshold_and_not_before(device: Device) -> None:
    sim = block(device, (2, 1, 1), horizon=1.0)
    assert sim.n_bonds == 1
    sim.place(stretched(sim, GLASS.strain_limit * (1 - 1e-4)))
    assert sim.n_bonds == 1
    assert np.abs(sim.acceleration[:, 0]).min() > 0
    sim.place(stretched(sim, GLASS.strain_limit * (1 + 1e-4)))
    assert sim.n_bonds == 0
    assert np.array_equal(sim.acceleration, np.zeros((2, 3), np.float32))


def test_broken_bonds_never_heal(device: Device) -> None:
    sim = block(device, (3, 1, 1), horizon=1.0)
    sim.place(stretched(sim, 2 * GLASS.strain_limit))
    assert sim.n_bonds == 0
    sim.place(stretched(sim, -GLASS.strain_limit))
    sim.advance(10)
    assert sim.n_bonds == 0
    assert np.array_equal(sim.acceleration, np.zeros((3, 3), np.float32))


def test_both_ends_lose_a_bond_in_the_same_step(device: Device) -> None:
    # With a bond gone for both ends, what is left of the forces still cancels.
    sim = block(device, (6, 5, 4), horizon=2.0)
    rng = np.random.default_rng(7)
    sim.place(sim.solid.position + rng.normal(size=(120, 3)) * 1.5e-3 * SPACING)
    assert 0 < sim.n_bonds < sim.initial_bonds.sum() // 2
    total = sim.acceleration.astype(float).sum(0)
    assert np.abs(total).max() < 1e-5 * np.abs(sim.acceleration).sum()
    count = sim.bond_sums()["count"].sum()
    assert count == 2 * sim.n_bonds


def test_edges_are_recorded_with_their_step(device: Device) -> None:
    sim = block(device, (4, 1, 1), horizon=1.0)
    position = sim.solid.position.copy()
    velocity = np.zeros_like(position)
    velocity[2:, 0] = 8.0
    sim.place(position, velocity)
    sim.advance(40)
    edge, step = sim.broken_edges(0)
    pair = sim.solid.edge[edge[0]]
    assert len(edge) == 1 and set(pair.tolist()) == {1, 2}
    # The gap opens at 8 m/s: the limit of 5e-4 mm is passed in the first step.
    assert 1 <= step[0] <= 2
    assert len(sim.broken_edges(int(step[0]))[0]) == 0


@pytest.mark.warp
def test_compression_raises_the_limit_of_the_next_step(device: Device) -> None:
    alpha, squeeze = 0.25, 3e-4
    material = dataclasses.replace(GLASS, compression_strengthening=alpha)
    sim = block(device, (3, 1, 1), horizon=1.0, material=material)
    position = sim.solid.position.copy()
    position[0, 0] += squeeze * SPACING
    sim.place(position)
    limit = GLASS.strain_limit
    expected = [limit + alpha * squeeze, limit + alpha * squeeze, limit]
    assert sim.threshold == pytest.approx(expected, rel=1e-4)


def test_thresholds_scatter_as_asked_and_by_particle(device: Device) -> None:
    material = dataclasses.replace(GLASS, strain_scatter=0.02)
    threshold = block(device, (20, 20, 20), material=material, horizon=1.0).threshold
    relative = threshold / GLASS.strain_limit
    assert relative.mean() == pytest.approx(1.0, abs=1e-3)
    assert relative.std() == pytest.approx(0.02, rel=0.05)
    assert np.abs(np.corrcoef(threshold[:-1], threshold[1:])[0, 1]) < 0.05


def two_cubes(device: Device, gap: float, stiffness: float = 1e8) -> Simulation:
    """Two bodies of one cube each, their centres `gap` apart along x."""
    bodies = [Body(name=name, material="glass", cells=(1, 1, 1), spacing=SPACING,
                   center=(x, 0.0, 0.0)) for name, x in (("a", 0.0), ("b", 5e-3))]
    sim = bond_simulation(device, build_solid(bodies), bodies=bodies, materials={"glass": GLASS},
                          gravity=(0.0, 0.0, 0.0), contact_stiffness=stiffness,
                          floor=Floor(enabled=False))
    sim.place(np.array([[0.0, 0.0, 0.0], [gap, 0.0, 0.0]]))
    return sim


@pytest.mark.warp
@pytest.mark.parametrize("gap", [0.1, 0.3, 0.49, 0.51])
def test_contact_repels_both_alike_by_equation_6(device: Device, gap: float) -> None:
    sim = two_cubes(device, gap * SPACING)
    expected = 1e8 * (max(0.0, 0.5 - gap) * SPACING) ** 2 / (GLASS.density * SPACING**3)
    assert sim.acceleration[:, 0] == pytest.approx([-expected, expected], rel=1e-4, abs=1e-6)
    assert sim.acceleration[0, 0] == -sim.acceleration[1, 0]


def test_contact_does_nothing_to_an_intact_body(device: Device) -> None:
    rng = np.random.default_rng(11)
    moved = rng.normal(size=(125, 3)) * 1e-4 * SPACING
    result = []
    for stiffness in (0.0, 1e8):
        sim = block(device, (5, 5, 5), contact_stiffness=stiffness)
        sim.place(sim.solid.position + moved)
        sim.advance(50)
        result.append(sim.position)
    assert np.array_equal(result[0], result[1])


def test_free_fall_matches_the_closed_form(device: Device) -> None:
    gravity = (0.0, -9.81, 0.0)
    sim = block(device, (3, 3, 3), center=(0.0, 1.0, 0.0), gravity=gravity)
    sim.advance(4096)
    time = 4096 * 2.0**-23
    fallen = sim.position - sim.solid.position
    # The fixed-point unit of the bonds is 7e-12 m: that much the particles may quiver.
    quiver = 20 * sim.layout.unit
    assert fallen[:, 1] == pytest.approx(np.full(27, -0.5 * 9.81 * time**2), abs=quiver)
    assert np.abs(fallen[:, [0, 2]]).max() < quiver < 1e-3 * np.abs(fallen[:, 1]).min()
    assert fallen[:, 1].mean() == pytest.approx(-0.5 * 9.81 * time**2, rel=1e-6)


def test_free_particle_bounces_with_its_restitution(device: Device) -> None:
    drop = 5e-6
    sim = block(device, (1, 1, 1), center=(0.0, 0.5 * SPACING + drop, 0.0),
                gravity=(0.0, -9.81, 0.0), floor=Floor(restitution=0.99))
    lowest, after = 1.0, 0.0
    for _ in range(40):
        sim.advance(500)
        lowest = min(lowest, float(sim.position[0, 1]))
        after = max(after, float(sim.velocity[0, 1]))
    # Its support, not its centre, touches the floor; it leaves at 0.99 of the speed.
    assert lowest == pytest.approx(0.5 * SPACING, abs=2e-7)
    assert after == pytest.approx(0.99 * np.sqrt(2 * 9.81 * drop), rel=0.02)


def test_floor_friction_takes_at_most_the_slide(device: Device) -> None:
    for friction, expected in ((0.0, 1.0), (0.1, 1.0 - 0.1 * 1.5 * 2.0), (5.0, 0.0)):
        sim = block(device, (1, 1, 1), center=(0.0, 0.5 * SPACING + 1e-8, 0.0),
                    floor=Floor(restitution=0.5, friction=friction))
        sim.place(sim.solid.position, np.array([[1.0, -2.0, 0.0]]))
        sim.advance(1)
        assert sim.velocity[0] == pytest.approx([expected, 1.0, 0.0], abs=1e-12)


@pytest.mark.warp
def test_projectile_force_peaks_at_its_radius(device: Device) -> None:
    radius, stiffness = 0.01, 1e13
    ball = Projectile(radius=radius, position=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 1.0),
                      stiffness=stiffness)
    pushes = []
    for distance in (0.7, 0.75, 0.9, 1.0, 1.2, 1.49, 1.6):
        sim = block(device, (1, 1, 1), center=(0.0, 0.0, distance * radius), projectiles=(ball,))
        pushes.append(float(sim.acceleration[0, 2]) * GLASS.density)
    assert pushes[0] == pushes[1] == pushes[-1] == 0.0
    assert pushes[3] == pytest.approx(stiffness * radius**2, rel=1e-5)
    assert max(pushes) == pushes[3]
    # Beside the ball the push is halfway between its flight and straight away.
    sim = block(device, (1, 1, 1), center=(radius, 0.0, 0.0), projectiles=(ball,))
    assert sim.acceleration[0, 0] == pytest.approx(sim.acceleration[0, 2], rel=1e-5)


def shattering(device: Device, threads: int = 2) -> Simulation:
    """A small plate that a ball is about to break: bonds break, splinters collide."""
    device.threads = threads
    bodies = [Body(name="plate", material="glass", cells=(24, 24, 4), spacing=SPACING)]
    ball = Projectile(radius=5e-3, position=(0.0, 0.0, -8e-3), velocity=(0.0, 0.0, 80.0),
                      stiffness=1e15)
    return bond_simulation(
        device, build_solid(bodies), bodies=bodies, projectiles=(ball,),
        materials={"glass": dataclasses.replace(GLASS, strain_scatter=0.02)},
        gravity=(0.0, -9.81, 0.0), floor=Floor(height=-12e-3),
        weakening=(Weakening(paths=6, length=0.02, step=2e-3),))


def contact_work(sim: Simulation) -> bool:
    """Whether some pair is within contact reach without a live bond."""
    other = dataclasses.replace(sim.settings, contact_stiffness=0.0)
    twin = Simulation(sim.device, dataclasses.replace(sim.world, settings=other))
    twin.restore(sim.state())
    sim.advance(1)
    twin.advance(1)
    return not np.array_equal(sim.acceleration, twin.acceleration)


def test_same_bits_for_any_number_of_threads() -> None:
    states = []
    for threads in (1, 2, 3):
        sim = shattering(open_device("cpu"), threads)
        sim.advance(700)
        states.append(sim.state())
    assert sim.n_bonds < 0.9 * sim.initial_bonds.sum() / 2
    assert contact_work(sim)
    for other in states[1:]:
        assert all(np.array_equal(states[0][name], other[name]) for name in states[0])


def test_resume_goes_on_bit_for_bit(device: Device) -> None:
    straight = shattering(device)
    straight.advance(600)
    first = shattering(device)
    first.advance(350)
    second = shattering(device)
    second.restore(first.state())
    second.advance(250)
    there, here = straight.state(), second.state()
    assert all(np.array_equal(there[name], here[name]) for name in there)


def test_steps_one_by_one_are_the_steps_in_one_go() -> None:
    """Kick and drift in one pass, as the steps in between do them, change no bit."""
    device = open_device("cpu")
    together, single = shattering(device), shattering(device)
    together.advance(600)
    for _ in range(600):
        single.advance(1)
    there, here = together.state(), single.state()
    assert all(np.array_equal(there[name], here[name]) for name in there)
    assert contact_work(together)


def test_collecting_contacts_only_when_needed_changes_no_bit() -> None:
    device = open_device("cpu")
    lazy, plain = shattering(device), shattering(device)
    lazy.advance(700)
    for _ in range(700):
        plain._raise_flag(simulate.FLAG_REBUILD, simulate.REBUILD_ALL)
        plain.advance(1)
    there, here = lazy.state(), plain.state()
    assert contact_work(lazy)
    assert all(np.array_equal(there[name], here[name]) for name in there)


@pytest.mark.warp
def test_weakened_bonds_are_those_that_cross_the_path(device: Device) -> None:
    bodies = [Body(name="plate", material="glass", cells=(16, 16, 2), spacing=SPACING)]
    solid = build_solid(bodies)
    # One straight walk from the middle of the plate outward, along some direction.
    walk = Weakening(paths=1, length=6e-3, step=6e-3, wander=0.0, branching=0.0,
                     origin=(0.12347e-3, 0.21713e-3, 0.0))
    sim = bond_simulation(device, solid, bodies=bodies, materials={"glass": GLASS},
                          weak_factor=0.1, floor=Floor(enabled=False), weakening=(walk,))
    from vfx.sim.control.weakening import plane_axes, random_walks

    axes = plane_axes(np.array(walk.normal))
    (ax, ay, bx, by), = random_walks(walk)
    flat = (solid.position - np.array(walk.origin)) @ axes.T

    def cross(o: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
        return (p[..., 0] - o[..., 0]) * (q[..., 1] - o[..., 1]) \
            - (p[..., 1] - o[..., 1]) * (q[..., 0] - o[..., 0])

    i, j = np.triu_indices(solid.n_elements, 1)
    near = ((solid.position[i] - solid.position[j]) ** 2).sum(1) <= (3e-3 * (1 + 1e-6)) ** 2
    i, j = i[near], j[near]
    a, b = np.array([ax, ay]), np.array([bx, by])
    crossing = ((cross(a, b, flat[i]) > 0) != (cross(a, b, flat[j]) > 0)) \
        & ((cross(flat[i], flat[j], a) > 0) != (cross(flat[i], flat[j], b) > 0))
    assert sim.bonds.count_weak() == int(crossing.sum()) > 50


def test_runaway_particle_stops_the_run_and_is_named(device: Device) -> None:
    unbreakable = dataclasses.replace(GLASS, strain_limit=1e6)
    sim = block(device, (3, 3, 3), timestep=2e-6, material=unbreakable)
    noise = np.random.default_rng(1).normal(size=(27, 3)) * 1e-5 * SPACING
    sim.place(sim.solid.position + noise)
    with pytest.raises(Unstable, match=r"step \d+ .* particle \d+ of body 'block'.*timestep"):
        sim.advance(20_000)
    assert sim.step < 20_000
