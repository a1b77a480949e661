"""Laws of the two bond layouts: the same bonds, the same forces, nobody lost."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, lattice
from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Solid
from vfx.sim.bonds.cluster_bonds import ClusterBonds
from vfx.sim.bonds.clusters import count_rows, distinct, near_boxes, transposed
from vfx.sim.bonds.lattice import LatticeBonds, is_lattice
from vfx.sim.settings import Floor


def turned_pair() -> list[Body]:
    """Two boxes with rows of odd lengths, other spacings and orientations."""
    return [
        Body(name="a", material="glass", cells=(5, 11, 3), spacing=SPACING,
             rotation=(20.0, 40.0, 10.0)),
        Body(name="b", material="glass", cells=(17, 2, 4), spacing=2 * SPACING,
             center=(0.1, 0.0, 0.0), rotation=(0.0, 0.0, 77.0))]


def assert_layouts_agree(
    device: Device, bodies: list[Body], horizon: float, **keys: object
) -> None:
    """The same bonds, forces, stable step and energy of noise, lattice or not."""
    solid = build_solid(bodies)
    sims = [bond_simulation(device, solid, kind, bodies=bodies, materials={"glass": GLASS},
                            horizon=horizon, floor=Floor(enabled=False), **keys)
            for kind in (LatticeBonds, ClusterBonds)]
    noise = np.random.default_rng(2).normal(size=(solid.n_elements, 3)) * 1e-4 * SPACING
    for sim in sims:
        sim.place(solid.position + noise)
    one, other = sims
    assert np.array_equal(one.initial_bonds, other.initial_bonds)
    assert one.n_bonds == other.n_bonds
    scale = np.abs(other.acceleration).max()
    assert np.abs(one.acceleration - other.acceleration).max() < 1e-5 * scale
    assert one.stable_step == pytest.approx(other.stable_step, rel=1e-5)
    assert one.energies()[1] == pytest.approx(other.energies()[1], rel=1e-5)


@pytest.mark.warp
@pytest.mark.parametrize("horizon", [1.0, 1.5, 3.0, 4.2])
def test_layouts_agree_on_bonds_and_forces(device: Device, horizon: float) -> None:
    assert_layouts_agree(device, turned_pair(), horizon)


@pytest.mark.parametrize("horizon", [2.0, 3.0])
def test_long_rows_are_swept_in_segments(
    device: Device, horizon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vfx.sim.bonds.lattice.SWEEP_BYTES", 0)
    long = Body(name="long", material="glass", cells=(103, 7, 9), spacing=SPACING)
    box = LatticeBonds(device, build_solid([long]), horizon).boxes[0]
    assert box.blocks > 2 * box.segment(int(horizon))
    assert_layouts_agree(device, [long], horizon)


@pytest.mark.parametrize("horizon", [1.0, 2.0, 3.0])
def test_interior_particle_has_the_bonds_of_the_lattice(device: Device, horizon: float) -> None:
    side = 2 * int(horizon) + 1
    solid = build_solid([Body(name="a", material="glass", cells=(side, side, side))])
    sim = bond_simulation(device, solid, materials={"glass": GLASS}, horizon=horizon,
                          floor=Floor(enabled=False))
    middle = int(np.argmin((solid.position**2).sum(1)))
    assert sim.initial_bonds[middle] == len(lattice(horizon)) == sim.initial_bonds.max()


@pytest.mark.warp
def test_adjacent_elements_are_joined_however_far_apart(device: Device) -> None:
    solid = build_solid([Body(name="a", material="glass", cells=(3, 1, 1), spacing=SPACING)])
    solid.edge = np.array([[0, 1], [0, 2], [1, 2]], np.int32)
    sim = bond_simulation(device, solid, ClusterBonds, materials={"glass": GLASS}, horizon=1.0,
                          floor=Floor(enabled=False))
    assert sim.n_bonds == 3


def test_every_particle_has_one_lane(device: Device, layout: str) -> None:
    solid = build_solid(turned_pair())
    kind = LatticeBonds if layout == "lattice" else ClusterBonds
    particle = kind(device, solid, 2.0).layout.particle
    assert np.array_equal(np.sort(particle[particle >= 0]), np.arange(solid.n_elements))
    assert is_lattice(solid)


def test_box_with_a_missing_cube_is_no_lattice() -> None:
    solid = build_solid([Body(name="a", material="glass", cells=(3, 3, 3))])
    solid.cell, solid.body = solid.cell[1:], solid.body[1:]
    assert not is_lattice(solid)


def test_boxes_within_reach_are_found_however_wide_they_are() -> None:
    random = np.random.default_rng(5)
    low = random.random((300, 3))
    high = low + 0.05 * random.random((300, 3))
    high[::40] += 0.4           # a few span what many others stand in
    reach = 0.1
    gap = np.maximum(0.0, np.maximum(low[:, None] - high[None], low[None] - high[:, None]))
    near = np.argwhere(np.triu(np.sqrt((gap**2).sum(2)) <= reach, 1))
    pairs = near_boxes(low, high, np.full(len(low), 0.5 * reach))
    found = np.unique(np.sort(pairs, axis=1), axis=0)
    assert np.array_equal(found, near)


def test_transposed_masks_exchange_rows_and_columns() -> None:
    bits = np.random.default_rng(3).random((50, 8, 8)) < 0.3
    mask, turned = (
        np.packbits(each.reshape(50, 64), axis=1, bitorder="little").view(np.uint64)[:, 0]
        for each in (bits, np.swapaxes(bits, 1, 2)))
    assert np.array_equal(transposed(mask), turned)
    assert np.array_equal(count_rows(mask), bits.any(axis=2).sum(axis=1))


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_distinct_values_are_those_of_a_set(n: int) -> None:
    key = np.random.default_rng(6).integers(0, 300, n)
    assert distinct(key).tolist() == sorted(set(key.tolist()))


def graded_cloud() -> Solid:
    """A cube of random points whose length scale triples from one side to the other."""
    position = np.random.default_rng(4).random((400, 3)) * 20e-3
    solid = build_solid([Body(name="a", material="glass", cells=(400, 1, 1), spacing=SPACING)])
    solid.position, solid.kind = position, np.array(["voronoi"])
    solid.size = SPACING * (1.0 + 2.0 * position[:, 0] / 20e-3)
    return solid


def test_graded_bodies_bond_within_the_mean_horizon_and_stiffen_with_it(device: Device) -> None:
    solid = graded_cloud()
    tough = dataclasses.replace(GLASS, strain_limit=0.5)
    sim = bond_simulation(device, solid, materials={"glass": tough}, horizon=3.0,
                          contact_stiffness=0.0, gravity=(0.0, 0.0, 0.0),
                          floor=Floor(enabled=False))
    noise = np.random.default_rng(2).normal(size=(solid.n_elements, 3)) * 1e-2 * SPACING
    sim.place(solid.position + noise)

    # The same forces by a plain sum over all pairs.
    delta = 3.0 * solid.size
    stiffness = 18.0 * GLASS.bulk_modulus / (np.pi * delta**4)
    xi = solid.position[:, None] - solid.position[None]
    length = np.sqrt((xi**2).sum(2))
    bonded = (length > 0) & (length <= 0.5 * (delta[:, None] + delta[None]) * (1 + 1e-6))
    bonded[tuple(solid.edge.T)] = bonded[tuple(solid.edge[:, ::-1].T)] = True
    assert np.array_equal(sim.initial_bonds, bonded.sum(1))
    y = xi + noise[:, None] - noise[None]
    now = np.sqrt((y**2).sum(2))
    np.fill_diagonal(length, 1.0)
    np.fill_diagonal(now, 1.0)
    weight = np.sqrt(stiffness[:, None] * stiffness[None]) * solid.volume[None]
    pull = np.where(bonded, weight * (now - length) / length / now, 0.0)
    acceleration = -(pull[..., None] * y).sum(1) / GLASS.density
    assert np.abs(sim.acceleration - acceleration).max() < 1e-4 * np.abs(acceleration).max()
    stiffest = np.where(bonded, weight / length, 0.0).sum(1).max()
    assert sim.stable_step == pytest.approx(np.sqrt(2.0 * GLASS.density / stiffest), rel=1e-4)


def test_step_beyond_the_built_network_is_refused(device: Device) -> None:
    solid = graded_cloud()
    tough = dataclasses.replace(GLASS, strain_limit=0.5)
    for timestep, refused in ((2.0**-14, True), (2.0**-40, False)):
        sim = bond_simulation(device, solid, materials={"glass": tough}, timestep=timestep,
                              floor=Floor(enabled=False))
        assert (timestep > sim.stable_step) == refused
        if refused:
            with pytest.raises(ValueError, match=r"swing up from .* use timestep = "):
                sim.refuse_step()
        else:
            sim.refuse_step()
