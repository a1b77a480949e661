"""Residual stress: a parabola over the thickness, in equilibrium, and what it does to a crack."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial import cKDTree

from tests.sim.blocks import SPACING, block
from tests.solids import build_solid
from vfx.bench.setups import bond_setup
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.cluster_bonds import ClusterBonds
from vfx.sim.bonds.plan import make_plan
from vfx.sim.bonds.prestress import layer_stress, stored_energy
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.window import BondWindow
from vfx.sim.control.controls import make_world
from vfx.sim.settings import Floor, Material

SURFACE = 100e6
#: Enough for cracks to go through the compressed surfaces, too.
STRONG = 140e6
HORIZON = 2.0
TOUGH = Material(density=2500.0, bulk_modulus=46.7e9, strain_limit=0.1, strain_scatter=0.0,
                 compression_strengthening=0.0)
TEMPERED = dataclasses.replace(TOUGH, prestress=SURFACE)
GLASS = dataclasses.replace(TOUGH, strain_limit=0.0, strength=80e6, fracture_energy=8.0)
NONE = np.zeros((0, 2), np.int32)


@pytest.fixture(autouse=True)
def layout() -> str:
    """Bodies under residual stress have one layout."""
    return "clusters"


def pane(device: Device, cells: tuple[int, int, int], material: Material = TEMPERED,
         horizon: float = HORIZON, **keys: object) -> Simulation:
    return block(device, cells, material=material, horizon=horizon, contact_stiffness=0.0, **keys)


def tensions(sim: Simulation, position: Array) -> tuple[Array, Array]:
    """Return the bonds (k, 2), and the force [N] (k, 3) that draws the first to the second."""
    place, residual = sim.solid.position, sim.network.residual
    assert residual is not None
    pair = cKDTree(place).query_pairs(HORIZON * SPACING * (1.0 + 1e-6), output_type="ndarray")
    i, j = pair.T
    rest = place - residual.shift
    free = np.linalg.norm(rest[j] - rest[i], axis=1) * (
        1.0 + 0.5 * (residual.free[i] + residual.free[j]))
    way = position[j] - position[i]
    now = np.linalg.norm(way, axis=1)
    weight = sim.solid.volume * (1.0 if sim.network.factor is None else sim.network.factor)
    stiffness = float(sim.network.stiffness[0]) * weight[i] * weight[j]
    return pair, (stiffness * (now - free) / free / now)[:, None] * way


def stresses(sim: Simulation) -> Array:
    """Return the stress [Pa] of each particle, (n, 3, 3): half of what its bonds carry."""
    place = sim.solid.position
    pair, force = tensions(sim, place)
    carried = force[:, :, None] * (place[pair[:, 1]] - place[pair[:, 0]])[:, None, :]
    total = np.zeros((len(place), 3, 3))
    for end in pair.T:
        np.add.at(total, end, 0.5 * carried)
    return total / sim.solid.volume[:, None, None]


def inner(sim: Simulation, margin: int) -> Array:
    """Return which elements are some cells away from the edges, but not from the surfaces."""
    cell = sim.solid.cell[:, :2]
    return np.asarray(((cell >= margin) & (cell <= cell.max(axis=0) - margin)).all(axis=1))


@pytest.mark.warp
def test_forces_are_those_of_bonds_that_would_rest_elsewhere(device: Device) -> None:
    sim = pane(device, (9, 7, 4))
    random = np.random.default_rng(3)
    place = sim.solid.position + 2e-3 * SPACING * random.standard_normal((252, 3))
    pair, force = tensions(sim, place)
    expected = np.zeros((252, 3))
    np.add.at(expected, pair[:, 0], force)
    np.add.at(expected, pair[:, 1], -force)
    sim.place(place)
    found = sim.acceleration * (2500.0 * sim.solid.volume)[:, None]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


def test_no_free_strain_changes_no_bit(device: Device) -> None:
    one, other = (pane(device, (9, 7, 4), GLASS, layout=ClusterBonds) for _ in range(2))
    assert isinstance(other.bonds, ClusterBonds)
    other.bonds.strain(other.solid.position, np.zeros(252))
    other._launches = other._prepare()
    for sim in (one, other):
        sim.place(1.0005 * sim.solid.position, 10.0 * np.tanh(sim.solid.position / SPACING))
        whole = sim.n_bonds
        sim.advance(60)
        assert sim.n_bonds < whole
    for name, value in one.state().items():
        assert np.array_equal(value, other.state()[name]), name


@pytest.mark.parametrize("is_corrected", [False, True])
def test_the_stress_over_the_thickness_is_the_parabola(device: Device, is_corrected: bool) -> None:
    sim = pane(device, (30, 28, 6), surface_correction=is_corrected)
    found, middle = stresses(sim), inner(sim, 11)
    wanted = layer_stress(6, SURFACE)
    assert wanted.sum() == pytest.approx(0.0, abs=1e-6 * SURFACE)
    for layer in range(6):
        own = found[middle & (sim.solid.cell[:, 2] == layer)]
        for axis in (0, 1):
            np.testing.assert_allclose(own[:, axis, axis], wanted[layer], atol=0.01 * SURFACE)
        # Nothing presses on the surfaces, and nothing shears. Bonds reach over several layers, so
        # across the pane it is their sum that vanishes.
        np.testing.assert_allclose(own[:, 2], 0.0, atol=0.03 * SURFACE)
    across = found[middle].mean(axis=0)
    np.testing.assert_allclose(across, 0.0, atol=1e-3 * SURFACE)


def test_it_has_no_resultant_and_no_moment(device: Device) -> None:
    sim = pane(device, (20, 16, 5))
    place = sim.solid.position
    pair, force = tensions(sim, place)
    x = place[:, 0]
    for cut in (0.0, 4.0 * SPACING, 9.0 * SPACING):
        across = (x[pair[:, 0]] < cut) != (x[pair[:, 1]] < cut)
        sign = np.where(x[pair[across, 0]] < cut, 1.0, -1.0)[:, None]
        pulls = sign * force[across]
        at = place[pair[across, 0]]
        size = np.abs(pulls).sum()
        np.testing.assert_allclose(pulls.sum(axis=0), 0.0, atol=1e-3 * size)
        np.testing.assert_allclose(np.cross(at, pulls).sum(axis=0), 0.0,
                                   atol=1e-3 * size * float(np.abs(place).max()))


def test_it_stores_what_the_closed_form_says(device: Device) -> None:
    """s^2 h / (10 K) an area: the integral of sigma^2 / (2 K) over the thickness."""
    sim = pane(device, (28, 28, 8))
    middle = inner(sim, 11)
    area = middle.sum() / 8 * SPACING**2
    stored = sim.bond_sums()["energy"][middle].sum() / area
    assert stored == pytest.approx(stored_energy(TEMPERED, 8 * SPACING), rel=0.05)
    z = np.linspace(-0.5, 0.5, 100_001)
    stress = SURFACE * (0.5 - 6.0 * z**2)
    assert stored_energy(TEMPERED, 2.0) == pytest.approx(2.0 * np.mean(stress**2) / 2 / 46.7e9,
                                                         rel=1e-4)


@pytest.mark.parametrize("is_corrected", [False, True])
def test_a_pane_at_rest_stays_at_rest(device: Device, is_corrected: bool) -> None:
    sim = pane(device, (24, 16, 4), dataclasses.replace(GLASS, prestress=SURFACE),
               surface_correction=is_corrected)
    start, bonds, energy = sim.position, sim.n_bonds, sim.energies()[1]
    sim.advance(400)
    assert sim.network.residual is not None and sim.n_bonds == bonds
    moved = np.abs(sim.position - start).max()
    assert moved < 5e-3 * np.abs(sim.network.residual.shift).max()
    kinetic, stored = sim.energies()
    assert kinetic < 1e-5 * energy and stored == pytest.approx(energy, rel=1e-4)


def test_half_a_pane_bends_by_what_the_other_half_held(device: Device) -> None:
    """The moment s h^2 / 32 bends a plate of h / 2 by 1.5 s / (K h) both ways.

    Four layers of cubes at this horizon have about 0.85 of the stiffness of a plate.
    """
    sim = pane(device, (26, 26, 8), damping=3e5)
    lower = sim.solid.cell[:, 2] < 4
    sim.bonds.clear(sim.particles, lower.astype(np.int32), NONE)
    sim.place(sim.solid.position, np.zeros_like(sim.solid.position))
    sim.advance(3000)
    assert sim.energies()[0] < 1e-4 * sim.energies()[1]
    middle = inner(sim, 6) & (sim.solid.cell[:, 2] == 2)
    x, y, _ = sim.solid.position[middle].T
    moved = (sim.position - sim.solid.position)[middle, 2]
    bent = np.linalg.lstsq(np.column_stack([0.5 * x**2, 0.5 * y**2, np.ones_like(x)]), moved,
                           rcond=None)[0]
    # Its surface expands once nothing stretches it: it bows toward that side.
    expected = 1.5 * SURFACE / (46.7e9 * 8 * SPACING)
    assert bent[0] == pytest.approx(bent[1], rel=0.02)
    assert abs(bent[0]) == pytest.approx(expected / 0.85, rel=0.15)


#: The corner that is torn off, and how fast: as deep as the stress is that of a pane without edges.
TORN, AWAY = 12, np.array([-20.0, -14.0, 0.0])


def dice(device: Device, surface: float) -> tuple[Simulation, Array]:
    """Tear a corner off a pane, and return what comes of it and its pieces' sizes."""
    sim = pane(device, (48, 36, 4), dataclasses.replace(GLASS, prestress=surface), horizon=3.0)
    solid = sim.solid
    corner = (solid.cell[:, :2] < TORN).all(axis=1)
    sim.place(solid.position, np.where(corner[:, None], AWAY, 0.0))
    sim.advance(1000)
    holds = np.ones(len(solid.edge), bool)
    holds[sim.broken_edges(-1)[0]] = False
    return sim, np.bincount(components(solid.n_elements, solid.edge[holds])[1])


def test_a_crack_runs_by_the_stored_energy_alone(device: Device) -> None:
    sim, size = dice(device, STRONG)
    plain_size = dice(device, 0.0)[1]
    crumbs, plain_crumbs = (int((each >= 4).sum()) for each in (size, plain_size))
    assert crumbs > 30 and crumbs > 5 * plain_crumbs, (crumbs, plain_crumbs)
    assert size.max() < 0.75 * plain_size.max()
    # Momentum stays, and nothing but what was stored and the blow is spent.
    mass = 2500.0 * SPACING**3
    torn = TORN**2 * 4 * mass
    np.testing.assert_allclose(mass * sim.velocity.sum(axis=0), torn * AWAY, atol=1e-4 * torn * 20)
    stored = pane(device, (48, 36, 4), dataclasses.replace(GLASS, prestress=STRONG),
                  horizon=3.0).energies()[1]
    blow = 0.5 * torn * float(AWAY @ AWAY)
    kinetic, left = sim.energies()
    assert kinetic + left < stored + blow
    assert left < 0.4 * stored


def test_windows_know_it_but_crumbs_have_lost_it(device: Device) -> None:
    bodies = [Body(name="one", material="glass", cells=(8, 6, 4), spacing=SPACING),
              Body(name="two", material="glass", cells=(7, 8, 3), spacing=SPACING,
                   center=(0.02, 0.0, 0.0))]
    world = make_world(build_solid(bodies), bond_setup(
        bodies=bodies, materials={"glass": TEMPERED}, floor=Floor(enabled=False), timestep=1e-8,
        gravity=(0.0, 0.0, 0.0), horizon=HORIZON))
    solid = world.solid
    two = np.flatnonzero(solid.body == 1)

    def window(element: Array, label: Array | None = None) -> BondWindow:
        place = solid.position[element]
        return BondWindow(device, world, element, solid.body[element] if label is None else label,
                          NONE, place, np.zeros_like(place), 0)

    alone, both = window(two), window(np.arange(solid.n_elements))
    whole = Simulation(device, world).bond_sums()["energy"]
    assert alone.energies()[1] == pytest.approx(whole[two].sum(), rel=1e-5)
    assert both.energies()[1] == pytest.approx(whole.sum(), rel=1e-5)
    both.advance(50)
    assert both.energies()[0] < 1e-5 * both.energies()[1]
    # Crumbs have given up their strain when they were rigid: it does not come back. What is nearly
    # all of its body still has it.
    third = np.where(solid.body == 0, solid.cell[:, 0] // 3, 7)
    left = window(np.arange(solid.n_elements), third)
    assert left.energies()[1] == pytest.approx(whole[two].sum(), rel=1e-5)
    most = window(two, (solid.cell[two, 1] == 0).astype(np.int32))
    assert 0.5 * whole[two].sum() < most.energies()[1] < whole[two].sum()


@pytest.mark.parametrize("keys, material, says", [
    ({"box": (0.02, 0.02, 0.004), "elements": 200}, TEMPERED, "cells = [x, y, z]"),
    ({"cells": (20, 20, 2), "spacing": SPACING}, TEMPERED, "is 2 cells thin"),
    ({"cells": (20, 20, 4), "spacing": SPACING},
     dataclasses.replace(GLASS, prestress=500e6), "give less than"),
])
def test_what_cannot_be_stressed_is_refused(
    keys: dict[str, object], material: Material, says: str
) -> None:
    body = Body(name="pane", material="glass", **keys)  # type: ignore[arg-type]
    given = {"bodies": [body], "horizon": HORIZON, "timestep": 1e-10}
    complaint = make_plan(bond_setup(**given, materials={"glass": material})).complaint()
    assert complaint is not None
    assert complaint[0] == "materials.glass.prestress" and says in complaint[1]
    plain = dataclasses.replace(material, prestress=0.0)
    assert make_plan(bond_setup(**given, materials={"glass": plain})).complaint() is None
