"""Laws of the intact body: invariance, balance, stiffness, waves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from tests.sim.blocks import GLASS, SPACING, block, lattice, pairwise_force
from vfx.bench.setups import bond_simulation
from vfx.device import Device, open_device
from vfx.geometry.divide.build import build_solid as build_any
from vfx.geometry.handoff.bodies import Body
from vfx.sim.matter.material import bond_stiffness, lattice_offsets
from vfx.sim.settings import Floor


def limit_acceleration(horizon: float) -> float:
    """Acceleration [m/s^2] of a particle by one bond at the strain limit."""
    stiffness = 18.0 * GLASS.bulk_modulus / (np.pi * (horizon * SPACING) ** 4)
    return stiffness * GLASS.strain_limit * SPACING**3 / GLASS.density


@pytest.mark.parametrize("place", [0.0, 10.0])
@pytest.mark.parametrize("seed", [1, 2])
def test_rigid_motion_raises_no_force(device: Device, place: float, seed: int) -> None:
    sim = block(device, (6, 5, 4), center=(place, place, -place))
    rng = np.random.default_rng(seed)
    turn = Rotation.random(random_state=seed)
    center = sim.solid.position.mean(0)
    for rotation in (np.eye(3), turn.as_matrix()):
        moved = (sim.solid.position - center) @ rotation.T + center + rng.normal(size=3)
        sim.place(moved)
        # Of some 100 bonds a particle, all rounding together weighs 2 % of one at its limit.
        assert np.abs(sim.acceleration).max() < 0.02 * limit_acceleration(3.0)
    assert sim.n_bonds == sim.initial_bonds.sum() // 2


@pytest.mark.warp
def test_undeformed_body_has_exactly_no_force(device: Device) -> None:
    sim = block(device, (5, 4, 3), center=(1.2345, -7.1, 3.3))
    assert np.array_equal(sim.acceleration, np.zeros((60, 3), np.float32))


@pytest.mark.warp
@pytest.mark.parametrize("horizon", [1.0, 2.0, 3.0])
def test_force_is_the_sum_over_all_pairs(device: Device, horizon: float) -> None:
    sim = block(device, (7, 6, 5), horizon=horizon, material=replace(GLASS, strain_limit=1.0))
    noise = np.random.default_rng(3).normal(size=(210, 3)) * 0.02 * SPACING
    position = sim.solid.position * (1 + 1e-4) + noise
    sim.place(position)
    expected = pairwise_force(sim, position) / (GLASS.density * sim.solid.volume[:, None])
    assert np.abs(sim.acceleration - expected).max() < 1e-5 * np.abs(expected).max()


def test_behaves_the_same_far_from_the_origin(device: Device) -> None:
    moved = []
    for place in (0.0, 10.0):
        sim = block(device, (8, 5, 4), center=(place, place, place))
        x = sim.solid.position - sim.solid.position.mean(0)
        velocity = np.stack([0.3 * np.sin(x[:, 0] / 2e-3), 0.1 * x[:, 2] / SPACING, 0 * x[:, 0]], 1)
        sim.place(sim.solid.position, velocity)
        sim.advance(500)
        moved.append(sim.position - sim.solid.position)
    assert np.abs(moved[0] - moved[1]).max() < 1e-3 * np.abs(moved[0]).max()


def test_momentum_is_conserved(device: Device) -> None:
    sim = block(device, (8, 6, 4))
    velocity = np.random.default_rng(5).normal(size=(192, 3)) * 0.2
    sim.place(sim.solid.position, velocity)
    before = sim.diagnostics()
    sim.advance(1000)
    after = sim.diagnostics()
    mass = GLASS.density * SPACING**3
    scale = mass * np.abs(velocity).sum()
    for axis in "xyz":
        assert abs(after[f"momentum_{axis}"] - before[f"momentum_{axis}"]) < 1e-6 * scale


def test_energy_is_conserved_near_half_the_strain_limit(device: Device) -> None:
    sim = block(device, (8, 8, 8))
    x = sim.solid.position
    # The ground mode along x, strain largest in the middle; sharper waves pile up on it.
    wave = np.pi / (8 * SPACING)
    moved = 0.2 * GLASS.strain_limit / wave * np.sin(wave * x[:, 0])
    sim.place(x + moved[:, None] * np.array([1.0, 0.0, 0.0]))
    first, second = sim.solid.edge.T

    def window() -> tuple[float, float]:
        """Mean energy [J] and largest stretch of neighbours over some hundred steps."""
        energy, peak = [], 0.0
        for _ in range(100):
            sim.advance(5)
            energy.append(sum(sim.energies()))
            length = np.linalg.norm(sim.position[first] - sim.position[second], axis=1)
            peak = max(peak, float(length.max() / SPACING - 1.0))
        return float(np.mean(energy)), peak

    # Velocity Verlet's energy swings within a period (1 % at this step) but must not drift.
    start, peak = window()
    assert 0.3 < peak / GLASS.strain_limit < 0.8
    sim.advance(9000)
    end, _ = window()
    assert sim.step == 10_000
    assert sim.n_bonds == sim.initial_bonds.sum() // 2
    assert abs(end / start - 1.0) < 1e-3


def energy_density(device: Device, horizon: float, strain: tuple[float, ...]) -> float:
    """Measured bond energy [J/m^3] of an interior particle under a uniform strain."""
    side = 2 * int(horizon) + 1
    sim = block(device, (side, side, side), horizon=horizon)
    x = sim.solid.position
    sim.place(x + x * np.array(strain))
    middle = int(np.argmin((x**2).sum(1)))
    energy = sim.bond_sums()["energy"][middle]
    return float(energy / SPACING**3)


def lattice_moduli(horizon: float) -> tuple[float, float, float]:
    """Closed-form (K, C11, C12) of the lattice, in units of the continuum K."""
    xi = lattice(horizon)
    length = np.sqrt((xi**2).sum(1))
    c = 18.0 / (np.pi * horizon**4)
    bulk = c * length.sum() / 18.0
    c11 = 0.5 * c * (xi[:, 0] ** 4 / length**3).sum()
    c12 = 0.5 * c * (xi[:, 0] ** 2 * xi[:, 1] ** 2 / length**3).sum()
    return float(bulk), float(c11), float(c12)


@pytest.mark.parametrize("horizon", [2.0, 3.0, 6.0])
def test_moduli_are_those_of_the_lattice(device: Device, horizon: float) -> None:
    bulk, c11, c12 = lattice_moduli(horizon)
    e, k = 1e-4, GLASS.bulk_modulus
    assert energy_density(device, horizon, (e, e, e)) / (4.5 * k * e * e) \
        == pytest.approx(bulk, rel=1e-3)
    measured_c11 = 2.0 * energy_density(device, horizon, (e, 0.0, 0.0)) / (k * e * e)
    measured_sum = energy_density(device, horizon, (e, e, 0.0)) / (k * e * e)
    measured_c12 = measured_sum - measured_c11
    assert measured_c11 == pytest.approx(c11, rel=1e-3)
    poisson = measured_c12 / (measured_c11 + measured_c12)
    assert poisson == pytest.approx(c12 / (c11 + c12), rel=1e-3)


def test_lattice_converges_to_the_continuum() -> None:
    # The solver's own bonds and stiffness; lambda is 1 m, and K 1 Pa.
    error = []
    for horizon in (3.0, 6.0, 12.0, 24.0):
        xi = np.array(lattice_offsets(horizon), float)
        length = np.sqrt((xi**2).sum(1))
        c = bond_stiffness(replace(GLASS, bulk_modulus=1.0), horizon)
        bulk = c * length.sum() / 18.0
        c11 = 0.5 * c * (xi[:, 0] ** 4 / length**3).sum()
        c12 = 0.5 * c * (xi[:, 0] ** 2 * xi[:, 1] ** 2 / length**3).sum()
        error.append(max(abs(bulk - 1.0), abs(c12 / (c11 + c12) - 0.25)))
    assert error == sorted(error, reverse=True)
    assert error[-1] < 5e-3


def test_calibration_gives_the_bulk_modulus(device: Device) -> None:
    sim = block(device, (7, 7, 7), calibrate=True)
    x = sim.solid.position
    sim.place(x * (1 + 1e-4))
    middle = int(np.argmin((x**2).sum(1)))
    energy = sim.bond_sums()["energy"][middle] / SPACING**3
    assert energy == pytest.approx(4.5 * GLASS.bulk_modulus * 1e-8, rel=1e-3)


def test_wave_travels_at_the_discrete_speed(device: Device) -> None:
    # A plane pulse of width 4 lambda, moving along x on the axis of a wide block; the free
    # sides are too far away to be felt before the end.
    dt, steps, horizon = 2.0**-25, 64, 3.0
    sim = block(device, (81, 25, 25), timestep=dt, horizon=horizon)
    x = sim.solid.position[:, 0]
    start, width, height = -15e-3, 4e-3, 1e-7

    # Dispersion of a plane wave: rho w^2 = c V sum xi_x^2 / |xi|^3 (1 - cos k xi_x).
    xi = lattice(horizon) * SPACING
    length = np.sqrt((xi**2).sum(1))
    c = 18.0 * GLASS.bulk_modulus / (np.pi * (horizon * SPACING) ** 4)
    k = np.linspace(0.0, np.pi / SPACING, 2000)
    omega = np.sqrt(c * SPACING**3 / GLASS.density
                    * ((xi[:, 0] ** 2 / length**3) * (1 - np.cos(k[:, None] * xi[:, 0]))).sum(1))
    spectrum = np.exp(-0.5 * (k * width) ** 2)

    def predicted(at: np.ndarray, time: float, rate: bool = False) -> np.ndarray:
        phase = k * (at[:, None] - start) - omega * time
        wave = omega * np.sin(phase) if rate else np.cos(phase)
        return height * (spectrum * wave).sum(1) / spectrum.sum()

    planes = np.unique(x)
    plane_of = np.searchsorted(planes, x)
    position = sim.solid.position.copy()
    position[:, 0] += predicted(planes, 0.0)[plane_of]
    velocity = np.zeros_like(position)
    velocity[:, 0] = predicted(planes, 0.0, rate=True)[plane_of]
    sim.place(position, velocity)
    sim.advance(steps)

    axis = np.flatnonzero((np.abs(sim.solid.position[:, 1:]) < 1e-6).all(1))
    moved = (sim.position - sim.solid.position)[axis, 0]

    def peak(profile: np.ndarray, at: np.ndarray) -> float:
        i = int(np.argmax(profile))
        left, top, right = profile[i - 1: i + 2]
        return float(at[i] + 0.5 * SPACING * (left - right) / (left - 2 * top + right))

    order = np.argsort(x[axis])
    seen = peak(moved[order], x[axis][order]) - start
    expected = peak(predicted(planes, steps * dt), planes) - start
    assert expected > 8 * SPACING
    assert seen == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("shape", [
    {"shape": "voronoi", "box": (0.04, 0.03, 0.03), "elements": 500},
    {"shape": "voronoi", "box": (0.04, 0.04, 0.04), "elements": 500,
     "grading_center": (0.0, 0.0, 0.02), "grading_deviation": 0.01, "grading_finest": 0.5},
    {"shape": "tet-shell", "mesh": "asset:vase", "height": 0.1, "elements": 800, "layers": 2},
], ids=["cells", "graded cells", "tetrahedra"])
@pytest.mark.parametrize("layout", ["clusters"], indirect=True)
def test_moduli_of_irregular_bodies_are_the_sums_over_their_bonds(shape: dict[str, Any]) -> None:
    # Energy of six uniform strains and the force on each element, by plain sums over all pairs.
    device, horizon = open_device("cpu"), 2.5
    bodies = [Body(name="a", material="glass", **shape)]
    solid = build_any(device, bodies).solid
    sim = bond_simulation(
        device, solid, materials={"glass": replace(GLASS, strain_limit=1.0)}, horizon=horizon,
        gravity=(0.0, 0.0, 0.0), floor=Floor(enabled=False))
    x, e = solid.position, 1e-3
    near = {tuple(pair) for pair in np.sort(cKDTree(x).query_pairs(
        horizon * float(solid.size.max()) * (1 + 1e-6), output_type="ndarray")).tolist()
        if np.linalg.norm(x[pair[0]] - x[pair[1]])
        <= 0.5 * horizon * (1 + 1e-6) * (solid.size[pair[0]] + solid.size[pair[1]])}
    first, second = np.array(sorted(near | {tuple(p) for p in np.sort(solid.edge).tolist()})).T
    assert sim.n_bonds == len(first)
    xi = x[second] - x[first]
    rest = np.linalg.norm(xi, axis=1)
    # c is 18 K / (pi delta^4), delta that of each end, and their geometric mean in a graded body.
    delta = horizon * np.sqrt(solid.size[first] * solid.size[second])
    weight = 18.0 * GLASS.bulk_modulus / (np.pi * delta**4) \
        * solid.volume[first] * solid.volume[second]
    moduli = []
    for row, column in ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (2, 0)):
        strain = np.zeros((3, 3))
        strain[row, column] = e
        sim.place(x + x @ strain.T)
        y = xi + xi @ strain.T
        now = np.linalg.norm(y, axis=1)
        stretch = now / rest - 1.0
        energy = 0.5 * float((weight * stretch**2 * rest).sum())
        assert sim.energies()[1] == pytest.approx(energy, rel=2e-4)
        pull = (weight * stretch / now)[:, None] * y
        force = np.zeros_like(x)
        np.add.at(force, first, pull)
        np.add.at(force, second, -pull)
        found = sim.acceleration * sim._mass[:, None]
        assert np.abs(found - force).max() < 5e-4 * np.abs(pull).max()
        moduli.append(2.0 * energy / (e * e * solid.volume.sum() * GLASS.bulk_modulus))
    # Whatever its elements, it is isotropic with Poisson ratio 1/4: 3 mu in tension, mu in shear.
    assert np.mean(moduli[3:]) / np.mean(moduli[:3]) == pytest.approx(1.0 / 3.0, rel=0.05)
