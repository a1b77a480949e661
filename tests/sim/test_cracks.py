"""Whole matter breaks at its strength; a crack grows by its energy, and by that alone."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tests.sim.blocks import SPACING, block
from tests.solids import build_solid
from vfx.bench.setups import bond_setup, bond_simulation
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Array
from vfx.sim.bonds.plan import make_plan
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.window import BondWindow
from vfx.sim.control.controls import make_world
from vfx.sim.matter.cracks import EVERY, GAP_UNIT
from vfx.sim.matter.material import critical_stretch, growth_share, growth_stretch
from vfx.sim.settings import Crack, Floor, Material, Region

HORIZON = 3.0
STONE = Material(density=2000.0, bulk_modulus=10e9, fracture_energy=50.0, strain_scatter=0.0,
                 compression_strengthening=0.0)


def tough(share: float, spacing: float = SPACING) -> Material:
    """Stone whose cracks grow at that share of the stretch at which whole stone breaks."""
    limit = growth_stretch(STONE, HORIZON * spacing) / share
    return dataclasses.replace(STONE, strength=limit * 1.5 * STONE.bulk_modulus)


def test_the_limits_follow_from_strength_and_energy() -> None:
    delta, material = 0.003, tough(0.25)
    assert critical_stretch(material, delta) == pytest.approx(material.strength / 15e9)
    assert growth_share(material, delta) == pytest.approx(0.25)
    assert growth_share(STONE, delta) == 1.0
    # Cells so small that a crack needs more than the strength to grow: the energy is kept.
    weak = dataclasses.replace(STONE, strength=1e4)
    assert critical_stretch(weak, delta) == growth_stretch(STONE, delta)
    assert growth_share(weak, delta) == 1.0


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_whole_matter_breaks_at_its_strength(device: Device, share: float) -> None:
    material = tough(share)
    limit = material.strength / (1.5 * material.bulk_modulus)
    for over, breaks in ((0.98, False), (1.02, True)):
        sim = block(device, (6, 5, 4), material=material, horizon=HORIZON, contact_stiffness=0.0)
        whole = sim.n_bonds
        sim.place(sim.solid.position * np.array([1.0 + over * limit, 1.0, 1.0]))
        assert (sim.n_bonds < whole) == breaks


def strip(device: Device, share: float, cells: tuple[int, int, int], spacing: float,
          *, is_notched: bool = True, material: Material | None = None,
          is_corrected: bool = False) -> Simulation:
    """A strip whose long edges are held, with a cut from one end."""
    body = Body(name="strip", material="stone", cells=cells, spacing=spacing)
    length, height, depth = (count * spacing for count in cells)
    grip = HORIZON * spacing
    keys = {
        "bodies": [body], "materials": {"stone": material or tough(share, spacing)},
        "floor": Floor(enabled=False), "horizon": HORIZON, "gravity": (0.0, 0.0, 0.0),
        "contact_stiffness": 0.0, "surface_correction": is_corrected,
        "damping": 2.0 * math.sqrt(1.5 * 10e9 / 2000.0) / height,
        "regions": [Region(body="strip", center=(0.0, side * (height - grip) / 2.0, 0.0), size=(
            2.0 * length, grip, 2.0 * depth), fixed=True) for side in (-1.0, 1.0)],
        "cracks": [Crack(origin=(-length, 0.0, -5.0 * depth), u=(0.85 * length, 0.0, 0.0),
                         v=(0.0, 0.0, 10.0 * depth))] if is_notched else []}
    step = make_plan(bond_setup(**keys, timestep="auto")).auto_step
    return bond_simulation(device, build_solid([body]), **keys, timestep=step)


def pull(sim: Simulation, strain: float) -> None:
    """Strain it evenly between its held edges."""
    place = sim.solid.position.copy()
    free = float(np.abs(place[:, 1]).max()) + 0.5 * SPACING - HORIZON * SPACING
    place[:, 1] += strain * np.clip(place[:, 1], -free, free)
    sim.place(place, np.zeros_like(place))


def energy_ahead(device: Device, cells: tuple[int, int, int], *, is_corrected: bool) -> float:
    """Energy [J/m^2] that a crack sets free as it goes on, at a strain of 1."""
    sim = strip(device, 1.0, cells, SPACING, is_notched=False, is_corrected=is_corrected,
                material=dataclasses.replace(STONE, strain_limit=1.0))
    strain = 1e-4
    pull(sim, strain)
    sim.advance(400)
    x = sim.solid.position[:, 0]
    middle = np.abs(x) < 0.25 * cells[0] * SPACING
    area = len(np.unique(x[middle])) * SPACING * cells[2] * SPACING
    return float(sim.bond_sums()["energy"][middle].sum()) / area / strain**2


@pytest.mark.parametrize(("share", "is_corrected"), [(0.25, False), (0.5, False), (0.5, True)])
def test_a_crack_grows_by_its_energy_however_strong_the_matter_is(
        device: Device, share: float, is_corrected: bool) -> None:
    """Rivlin & Thomas (1953): a strip under even strain sets free what is stored ahead."""
    cells = (60, 40, 3)
    stored = energy_ahead(device, cells, is_corrected=is_corrected)
    for over, grows in ((0.75, False), (1.3, True)):
        sim = strip(device, share, cells, SPACING, is_corrected=is_corrected)
        strain = math.sqrt(over * STONE.fracture_energy / stored)
        # Far below what breaks whole matter.
        assert strain < 0.8 * critical_stretch(tough(share), HORIZON * SPACING)
        pull(sim, strain)
        sim.advance(2500)
        edge = sim.broken_edges(0)[0]
        tip = sim.solid.position[sim.solid.edge[edge]].mean(axis=1)[:, 0].max(initial=-1.0)
        assert (tip > 0.0) == grows, (over, tip)


def test_bonds_along_a_crack_are_not_weaker(device: Device) -> None:
    material = tough(0.25)
    limit = critical_stretch(material, HORIZON * SPACING)
    sim = block(device, (10, 8, 6), material=material, horizon=HORIZON, contact_stiffness=0.0,
                cracks=(Crack(origin=(-1.0, 0.0, -1.0), u=(2.0, 0.0, 0.0), v=(0.0, 0.0, 2.0)),))
    held = sim.n_bonds
    # Nearly four times the growth stretch is borne along its faces and away from them; but for some
    # bonds at the block's rims, whose gaps are askew.
    for axis in range(3):
        stretch = np.ones(3)
        stretch[axis] += 0.95 * limit
        sim.place(sim.solid.position * stretch)
        assert sim.n_bonds > 0.995 * held


def torn(sim: Simulation) -> None:
    """Stretch a block, unevenly and far, so that much of it breaks."""
    x, y, _ = sim.solid.position.T
    place = sim.solid.position.copy()
    place[:, 0] += 3e-3 * x + 0.4 * x * y
    sim.place(place, np.zeros_like(place))


@pytest.mark.warp
def test_what_was_lost_is_known_and_outlives_a_state(device: Device) -> None:
    sim, other = (block(device, (9, 7, 5), material=tough(0.5), horizon=HORIZON,
                        contact_stiffness=1e10) for _ in range(2))
    torn(sim)
    sim.advance(2 * EVERY + 3)
    assert 0.2 * sim.initial_bonds.sum() < 2 * sim.n_bonds < 0.98 * sim.initial_bonds.sum()
    # The sums of directions are those of all bonds that are gone.
    live, born = device.to_host(sim.bonds.live), sim._born
    pairs = sim.bonds.pairs(born & ~live)
    way = sim.solid.position[pairs[:, 1]] - sim.solid.position[pairs[:, 0]]
    way /= np.linalg.norm(way, axis=1)[:, None]
    expected = np.zeros((sim.solid.n_elements, 3))
    np.add.at(expected, pairs[:, 0], way)
    np.add.at(expected, pairs[:, 1], -way)
    found: Array = sim.layout.gather(device.to_host(sim.particles.lost)) / GAP_UNIT
    np.testing.assert_allclose(found, expected, atol=1e-3)

    state = {name: value.copy() for name, value in sim.state().items()}
    sim.advance(3 * EVERY)
    other.restore(state)
    other.advance(3 * EVERY)
    for name, value in sim.state().items():
        assert np.array_equal(value, other.state()[name]), name


def test_a_window_begins_with_the_cracks_of_before(device: Device) -> None:
    body = Body(name="block", material="stone", cells=(8, 6, 4), spacing=SPACING)
    solid = build_solid([body])
    world = make_world(solid, bond_setup(
        bodies=[body], materials={"stone": tough(0.5)}, floor=Floor(enabled=False),
        horizon=HORIZON, gravity=(0.0, 0.0, 0.0), timestep=1e-8))
    sim = Simulation(device, world)
    torn(sim)
    sim.advance(EVERY)
    everything = np.arange(solid.n_elements)
    gone = np.sort(sim.bonds.pairs(sim._born & ~device.to_host(sim.bonds.live)), axis=1)
    assert len(gone) > 100
    window = BondWindow(device, world, everything, np.zeros(len(everything), np.int64),
                        gone, solid.position, np.zeros_like(solid.position), 0)
    one, two = (each.layout.gather(device.to_host(each.particles.lost)) / GAP_UNIT
                for each in (sim, window._simulation))
    np.testing.assert_allclose(one, two, atol=1e-3)
    assert device.to_host(window._simulation.particles.gap).any()
