"""Thin walls: what bonds make of bending and stretching, and what the correction makes good."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block, pairwise_force
from tests.sim.test_layout import assert_layouts_agree, turned_pair
from tests.solids import build_solid
from vfx.bench.setups import bond_setup, bond_simulation
from vfx.device import Device, open_device
from vfx.geometry.divide.build import build_solid as build_any
from vfx.geometry.handoff.bodies import Body
from vfx.sim.bonds import surface
from vfx.sim.bonds.bending import PLATE, bending_share, sheet_stiffness, wall_factors
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.bonds.surface import AtRest, box_factors, find_factors
from vfx.sim.bonds.window import BondWindow
from vfx.sim.control.controls import make_world
from vfx.sim.matter.material import lattice_offsets
from vfx.sim.settings import Floor, Region

STRONG = dataclasses.replace(GLASS, strain_limit=1.0)
CORRECTED = {"surface_correction": True, "material": STRONG, "contact_stiffness": 0.0}


# ------------------------------------------------------------------ what the layers come to


def test_plain_walls_are_as_soft_as_their_layers() -> None:
    # Figures of an independent sum over layers, along an axis of the lattice.
    for horizon, layers, share in ((2.0, 4, 0.85), (3.0, 4, 0.61), (3.0, 3, 0.51)):
        bending = sheet_stiffness(np.ones(layers), horizon, "full")[1]
        assert bending.along / (PLATE * layers**3 / 12.0) == pytest.approx(share, abs=0.005)
    assert 0.8 < sheet_stiffness(np.ones(4), 2.0, "full")[1].along / (PLATE * 64 / 12) < 1.0


@pytest.mark.parametrize(("horizon", "layers"), [
    (2.0, 3), (2.0, 4), (2.0, 5), (3.0, 4), (3.0, 5), (3.0, 6), (4.0, 5)])
def test_corrected_walls_bend_and_stretch_as_kirchhoff_has_it(horizon: float, layers: int) -> None:
    within = 0.05 if layers == 4 else 0.07
    stretching, bending = sheet_stiffness(
        wall_factors(layers, horizon, "full"), horizon, "full")
    assert bending.square / (PLATE * layers**3 / 12.0) == pytest.approx(1.0, abs=within)
    assert stretching.square / (PLATE * layers) == pytest.approx(1.0, abs=0.07)
    plain = bending_share(layers, horizon, "full", corrected=False)
    assert plain < 0.9 and abs(1.0 - plain) > 2.0 * within


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize(("horizon", "layers"), [(2.0, 4), (3.0, 3)])
def test_a_rolled_plate_has_the_energy_of_its_layers(
    device: Device, horizon: float, layers: int, corrected: bool
) -> None:
    # Bent to a cylinder and relaxed through the thickness, its middle has D k^2 / 2 an area.
    side = 16 * int(horizon) + 1
    sim = block(device, (side, side, layers), horizon=horizon, material=STRONG,
                contact_stiffness=0.0, surface_correction=corrected)
    factor = wall_factors(layers, horizon, "full") if corrected else np.ones(layers)
    x, _, z = sim.solid.position.T
    curvature = 1e-4 / (layers * SPACING)
    place = sim.solid.position.copy()
    lift = relaxed(factor, horizon) * curvature * SPACING**2
    place[:, 0] -= curvature * x * z
    place[:, 2] += 0.5 * curvature * x**2 + lift[sim.solid.cell[:, 2]]
    sim.place(place)
    middle = (np.abs(sim.solid.position[:, :2]) < 0.1 * SPACING).all(axis=1)
    energy = float(sim.bond_sums()["energy"][middle].sum())
    bending = sheet_stiffness(factor, horizon, "full")[1].along * GLASS.bulk_modulus * SPACING**3
    assert energy == pytest.approx(0.5 * bending * curvature**2 * SPACING**2, rel=5e-3)


def relaxed(factor: np.ndarray, horizon: float) -> np.ndarray:
    """How layers move apart under a curvature of 1, with bonds of unit cubes: the least energy."""
    n = len(factor)
    matrix, push = np.zeros((n, n)), np.zeros(n)
    for i in range(n):
        for offset in lattice_offsets(horizon):
            j = i + offset[2]
            if 0 <= j < n:
                weight = factor[i] * factor[j] / np.linalg.norm(offset) ** 3
                strain = -(0.5 * (i + j) - 0.5 * (n - 1)) * offset[0] ** 2
                for layer, sign in ((j, 1), (i, -1)):
                    matrix[layer, j] += weight * sign * offset[2] ** 2
                    matrix[layer, i] -= weight * sign * offset[2] ** 2
                    push[layer] -= weight * sign * offset[2] * strain
    return np.asarray(np.linalg.lstsq(matrix, push, rcond=1e-9)[0])


# ------------------------------------------------------------------ a plate, a beam


def beam_stiffness(factor: np.ndarray, horizon: float) -> tuple[float, float]:
    """(EA, EI) of an endless bar whose section has factors (a, b), bent along a; K and lambda 1.

    As for sheets, but what may move freely is every place of the section, both ways.
    """
    a, b = factor.shape
    n = a * b
    number = np.arange(n).reshape(a, b)
    rows, strains = [], ([], [])
    weight = []
    for dx, dy, dz in lattice_offsets(horizon):
        for x in range(max(0, -dx), min(a, a - dx)):
            for y in range(max(0, -dy), min(b, b - dy)):
                here, there = number[x, y], number[x + dx, y + dy]
                row = np.zeros(2 * n)
                for place, step in ((here, -1.0), (there, 1.0)):
                    row[place] += step * dx
                    row[n + place] += step * dy
                rows.append(row)
                strains[0].append(dz**2)
                strains[1].append(-(x + 0.5 * dx - 0.5 * (a - 1)) * dz**2)
                weight.append(0.5 * 18.0 / (math.pi * horizon**4) * factor[x, y]
                              * factor[x + dx, y + dy] / math.hypot(dx, dy, dz) ** 3)
    lift, w = np.array(rows), np.array(weight)
    inner = np.linalg.pinv((lift * w[:, None]).T @ lift, rcond=1e-9, hermitian=True)
    found = []
    for strain in map(np.array, strains):
        push = lift.T @ (w * strain)
        found.append(float((w * strain**2).sum() - push @ inner @ push))
    return found[0], found[1]


def held_ends(cells: tuple[int, int, int], axes: tuple[int, ...], grip: int) -> list[Region]:
    """Regions that hold the outermost layers of cells along some axes."""
    regions = []
    for axis in axes:
        for side in (-1.0, 1.0):
            center, size = [0.0] * 3, [1.0] * 3
            center[axis] = side * 0.5 * (cells[axis] - grip) * SPACING
            size[axis] = grip * SPACING
            regions.append(Region(body="block", center=(center[0], center[1], center[2]),
                                  size=(size[0], size[1], size[2]), fixed=True))
    return regions


def swing_and_sag(
    cells: tuple[int, int, int], axes: tuple[int, ...], horizon: float, pull: float, *,
    corrected: bool, rate: float, sag: float,
) -> tuple[float, float]:
    """Found rate [1/s] of the first mode of a block that is held at its ends, and sag [m].

    Along z, under a pull [m/s^2]; ``rate`` and ``sag`` are about those, to begin near them.
    """
    grip, device = 2, open_device("cpu")
    body = Body(name="block", material="glass", cells=cells, spacing=SPACING)
    solid = build_solid([body])
    keys: dict[str, Any] = {
        "bodies": [body], "materials": {"glass": STRONG}, "floor": Floor(enabled=False),
        "horizon": horizon, "contact_stiffness": 0.0, "surface_correction": corrected,
        "regions": held_ends(cells, axes, grip)}
    step = 0.6 * bond_simulation(device, solid, **keys).stable_step
    mode, slope = np.ones(solid.n_elements), np.zeros((solid.n_elements, 3))
    for axis in axes:
        wave = 2.0 * np.pi / ((cells[axis] - 2 * grip + 1) * SPACING)
        angle = wave * solid.position[:, axis]
        mode *= np.where(np.abs(angle) < np.pi, 0.5 + 0.5 * np.cos(angle), 0.0)
        slope[:, axis] = -wave * np.tan(0.5 * np.clip(angle, -3.1, 3.1))
    # Cross-sections stay straight and at right angles.
    bent = solid.position - sag * (slope * (mode * solid.position[:, 2])[:, None])
    bent[:, 2] += sag * mode

    swing = bond_simulation(device, solid, **keys, timestep=step, gravity=(0.0, 0.0, 0.0))
    swing.place(bent, np.zeros_like(bent))
    size = [1.0]
    while size[-1] > 0.0:
        swing.advance(10)
        size.append(float((mode * (swing.position - solid.position)[:, 2]).sum()))
    zero = swing.time - 10 * step * size[-1] / (size[-1] - size[-2])
    rest = bond_simulation(device, solid, **keys, timestep=step, gravity=(0.0, 0.0, pull),
                           damping=2.0 * rate)
    rest.place(bent, np.zeros_like(bent))
    rest.advance(round(5.0 / rate / step))
    middle = mode > 0.99 * mode.max()
    return 0.5 * math.pi / zero, float((rest.position - solid.position)[middle, 2].mean())


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("layout", ["lattice"], indirect=True)
def test_a_clamped_beam_sags_and_swings_as_its_section_says(corrected: bool) -> None:
    # Shear, by Timoshenko: 1 / rate^2 is that of bending plus that of shear.
    horizon, high, free, pull = 2.0, 4, 120, 100.0
    wide = np.indices((high, high, 20 * int(horizon) + 1)).reshape(3, -1).T
    factor = np.ones((high, high)) if not corrected else box_factors(wide, horizon, "full")[
        wide[:, 2] == 10 * int(horizon)].reshape(high, high)
    stretching, bending = (k * GLASS.bulk_modulus for k in beam_stiffness(factor, horizon))
    assert 0.8 < stretching / (1.5 * GLASS.bulk_modulus * high**2) < 1.25
    mass, bending = GLASS.density * (high * SPACING) ** 2, bending * SPACING**4
    # From the centre of the last element held to that of the first.
    length = (free + 1) * SPACING
    shear = 5.0 / 6.0 * 0.6 * GLASS.bulk_modulus * (high * SPACING) ** 2
    sag = mass * pull * (length**4 / (384.0 * bending) + length**2 / (8.0 * shear))
    softer = 1.0 + 22.3733**2 / 12.30 * bending / (shear * length**2)
    rate = 22.3733 / length**2 * math.sqrt(bending / mass / softer)
    found = swing_and_sag((free + 4, high, high), (0,), horizon, pull, corrected=corrected,
                          rate=rate, sag=sag)
    assert found == pytest.approx((rate, sag), rel=0.02)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("layout", ["lattice"], indirect=True)
def test_a_clamped_plate_sags_and_swings_as_its_layers_say(corrected: bool) -> None:
    # Of a square plate w = 0.00126532 q a^4 / D, rate = 35.985 / a^2 sqrt(D / m); of one a tenth as
    # thick as wide the sag is 0.1505 / 0.12653 of that, by Mindlin.
    horizon, layers, free, pull = 2.0, 4, 80, 100.0
    factor = wall_factors(layers, horizon, "full") if corrected else np.ones(layers)
    own = sheet_stiffness(factor, horizon, "full")[1].square * GLASS.bulk_modulus * SPACING**3
    kirchhoff = PLATE * layers**3 / 12.0 * GLASS.bulk_modulus * SPACING**3
    mass, width = GLASS.density * layers * SPACING, (free + 1) * SPACING
    softer = 1.0 + 18.9 * (layers / (free + 1)) ** 2
    sag = 0.00126532 * mass * pull * width**4 * softer
    rate = 35.985 / width**2 / math.sqrt(mass * softer)
    found = swing_and_sag((free + 4, free + 4, layers), (0, 1), horizon, pull,
                          corrected=corrected, rate=rate * math.sqrt(own), sag=sag / own)
    assert found == pytest.approx((rate * math.sqrt(own), sag / own), rel=0.025)
    share = sag / found[1] / kirchhoff
    if corrected:
        assert share == pytest.approx(1.0, abs=0.05)
        assert found[0] == pytest.approx(rate * math.sqrt(kirchhoff), rel=0.025)
    else:
        assert 0.75 < share < 0.85


# ------------------------------------------------------------------ the correction itself


@pytest.mark.warp
@pytest.mark.parametrize("horizon", [1.5, 3.0])
def test_layouts_agree_on_factors_and_forces(device: Device, horizon: float) -> None:
    assert_layouts_agree(device, turned_pair(), horizon, surface_correction=True)


def test_forces_are_those_of_all_pairs_times_their_factors(device: Device) -> None:
    sim = block(device, (7, 6, 5), horizon=2.0, **CORRECTED)
    factor = box_factors(sim.solid.cell, 2.0, "full")
    assert factor.max() / factor.min() > 1.2
    noise = np.random.default_rng(3).normal(size=(210, 3)) * 0.02 * SPACING
    position = sim.solid.position + noise
    sim.place(position)
    expected = pairwise_force(sim, position, factor) / (
        GLASS.density * sim.solid.volume[:, None])
    assert np.abs(sim.acceleration - expected).max() < 1e-5 * np.abs(expected).max()
    assert sim._mass @ sim.acceleration == pytest.approx(0.0, abs=1e-4 * float(
        (sim._mass[:, None] * np.abs(sim.acceleration)).sum()))


def test_momentum_and_energy_are_conserved(device: Device) -> None:
    sim = block(device, (8, 6, 4), timestep=2.0**-24, **CORRECTED)
    velocity = np.random.default_rng(5).normal(size=(192, 3)) * 0.2
    sim.place(sim.solid.position, velocity)
    before, start = sim.diagnostics(), sum(sim.energies())
    sim.advance(1000)
    after = sim.diagnostics()
    scale = GLASS.density * SPACING**3 * np.abs(velocity).sum()
    for axis in "xyz":
        assert abs(after[f"momentum_{axis}"] - before[f"momentum_{axis}"]) < 1e-6 * scale
    assert sum(sim.energies()) == pytest.approx(start, rel=0.01)


@pytest.mark.parametrize("horizon", [2.0, 3.0])
def test_elements_inside_have_the_bulk_modulus(device: Device, horizon: float) -> None:
    side = 6 * int(horizon) + 1
    sim = block(device, (side, side, side), horizon=horizon, **CORRECTED)
    x = sim.solid.position
    sim.place(x * (1 + 1e-4))
    middle = int(np.argmin((x**2).sum(1)))
    energy = sim.bond_sums()["energy"][middle] / SPACING**3
    assert energy == pytest.approx(4.5 * GLASS.bulk_modulus * 1e-8, rel=0.01)


def test_a_large_box_has_the_factors_of_all_its_cells() -> None:
    size, horizon = (40, 9, 4), 1.5
    cell = np.indices(size).reshape(3, -1).T
    n, number = len(cell), np.arange(len(cell)).reshape(size)
    offsets = np.array([o for o in lattice_offsets(horizon) if o > (0, 0, 0)])
    there = cell[:, None] + offsets
    inside = ((there >= 0) & (there < size)).all(axis=2)
    pairs = np.column_stack([np.nonzero(inside)[0], number[tuple(there[inside].T)]])
    every = find_factors(AtRest(cell.astype(float), np.ones(n), np.ones(n)),
                         lambda: [pairs], horizon, "full")
    assert np.abs(box_factors(cell, horizon, "full") - every).max() < 2e-3


@pytest.mark.parametrize(("shape", "horizon", "within"), [
    ({"shape": "voronoi", "box": (0.08, 0.02, 0.02), "elements": 2000}, 3.0, 0.1),
    ({"shape": "voronoi", "box": (0.1, 0.02, 0.006), "elements": 2000}, 3.0, 0.1),
    ({"shape": "tet-shell", "box": (0.1, 0.02, 0.006), "elements": 3000, "layers": 4}, 2.0, 0.05),
    ({"shape": "tet-shell", "box": (0.1, 0.02, 0.006), "elements": 3000, "layers": 4}, 3.0, 0.07),
], ids=["cells", "flat cells", "flat tetrahedra", "flat tetrahedra 3"])
@pytest.mark.parametrize("layout", ["clusters"], indirect=True)
def test_irregular_bars_swing_lengthwise_as_their_material(
    shape: dict[str, Any], horizon: float, within: float
) -> None:
    # A free bar of length L is back at rest length after L / 2 sqrt(rho / E).
    device = open_device("cpu")
    solid = build_any(device, [Body(name="a", material="glass", **shape)]).solid
    length, found = shape["box"][0], []
    mode = np.sin(np.pi * solid.position[:, 0] / length)
    for corrected in (False, True):
        keys: dict[str, Any] = {
            "materials": {"glass": STRONG}, "horizon": horizon, "floor": Floor(enabled=False),
            "gravity": (0.0, 0.0, 0.0), "contact_stiffness": 0.0, "surface_correction": corrected}
        step = 0.4 * bond_simulation(device, solid, **keys).stable_step
        sim = bond_simulation(device, solid, **keys, timestep=step)
        place = solid.position.copy()
        place[:, 0] += 1e-5 * length * mode
        sim.place(place, np.zeros_like(place))
        size = [1.0]
        while size[-1] > 0.0:
            sim.advance(1)
            size.append(float((solid.volume * mode * (sim.position - solid.position)[:, 0]).sum()))
        zero = sim.time - step * size[-1] / (size[-1] - size[-2])
        speed = length / (2.0 * zero)
        found.append(speed**2 * GLASS.density / (1.5 * GLASS.bulk_modulus))
    assert found[1] == pytest.approx(1.0, abs=within), found
    assert found[0] < 0.85, found


def test_what_a_window_takes_is_as_stiff_as_in_the_whole(device: Device) -> None:
    body = Body(name="b", material="glass", cells=(9, 9, 3), spacing=SPACING)
    world = make_world(build_solid([body]), bond_setup(
        bodies=[body], materials={"glass": STRONG}, floor=Floor(enabled=False),
        timestep=2.0**-24, gravity=(0.0, 0.0, 0.0), horizon=2.0, surface_correction=True))
    solid = world.solid
    left = np.flatnonzero(solid.cell[:, 0] < 4)
    none = np.zeros((0, 2), np.int32)
    place = solid.position * 1.0002
    piece = BondWindow(device, world, left, np.zeros(len(left)), none, place[left],
                       np.zeros((len(left), 3)), 0)
    label = (solid.cell[:, 0] >= 4).astype(np.int32)
    whole = BondWindow(device, world, np.arange(243), label, none, place, np.zeros((243, 3)), 0)
    factor = box_factors(solid.cell, 2.0, "full")
    assert np.allclose(piece._simulation.network.factor, factor[left], rtol=1e-5)
    energy = whole._simulation.bond_sums()["energy"][left].sum()
    assert piece.energies()[1] == pytest.approx(float(energy), rel=1e-5)


def test_cuts_and_missing_bonds_change_no_factor(device: Device) -> None:
    from vfx.sim.settings import Crack

    plain, cut = (block(device, (9, 6, 4), horizon=2.0, **CORRECTED),
                  bond_simulation(
                      device, build_solid([Body(name="block", material="glass", cells=(9, 6, 4),
                                                spacing=SPACING)]),
                      materials={"glass": STRONG}, horizon=2.0, surface_correction=True,
                      floor=Floor(enabled=False), cracks=[Crack(
                          origin=(0.0, -1.0, -1.0), u=(0.0, 2.0, 0.0), v=(0.0, 0.0, 2.0))]))
    assert cut.n_bonds < plain.n_bonds
    assert np.array_equal(plain.network.factor, cut.network.factor)


@pytest.mark.parametrize("cells", [(2, 1, 1), (1, 1, 1), (30, 1, 1), (2, 2, 2), (3, 3, 3)])
def test_few_elements_keep_their_factors_within_bounds(cells: tuple[int, int, int]) -> None:
    factor = box_factors(np.indices(cells).reshape(3, -1).T, 3.0, "full")
    assert np.isfinite(factor).all()
    assert factor.max() <= surface.LARGEST and factor.min() >= 1.0 / surface.LARGEST


def test_without_the_correction_nothing_is_weighed(device: Device) -> None:
    sim = block(device, (6, 5, 4))
    assert sim.network.factor is None
    assert isinstance(sim, Simulation)
