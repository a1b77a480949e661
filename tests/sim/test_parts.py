"""Bonds hold solids together, and nothing else."""

from __future__ import annotations

import dataclasses

import numpy as np

from tests.sim.blocks import GLASS, SPACING
from tests.solids import build_solid
from vfx.bench.setups import bond_simulation
from vfx.device import Device
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Solid
from vfx.sim.bonds.simulate import Simulation
from vfx.sim.matter.parts import solid_parts
from vfx.sim.settings import Floor


def without(solid: Solid, gone: np.ndarray) -> Solid:
    """Return the solid without the elements that are gone (n,)."""
    number = np.cumsum(~gone) - 1
    edge = solid.edge[~gone[solid.edge].any(axis=1)]
    kept = {name: getattr(solid, name)[~gone]
            for name in ("position", "volume", "size", "body", "cell")}
    return dataclasses.replace(solid, edge=number[edge].astype(np.int32), **kept)


def split_block(device: Device) -> tuple[Simulation, np.ndarray]:
    """A block of 9 x 3 x 3 cubes without its layer x = 4, and which cubes are right of that."""
    block = build_solid([Body(name="a", material="glass", cells=(9, 3, 3), spacing=SPACING)])
    solid = without(block, block.cell[:, 0] == 4)
    sim = bond_simulation(device, solid, materials={"glass": GLASS}, horizon=3.0,
                          gravity=(0.0, 0.0, 0.0), floor=Floor(enabled=False))
    return sim, solid.cell[:, 0] > 4


def test_two_solids_of_one_body_do_not_hold_each_other(device: Device) -> None:
    sim, right = split_block(device)
    alone = build_solid([Body(name="a", material="glass", cells=(4, 3, 3), spacing=SPACING)])
    assert sim.n_bonds == 2 * bond_simulation(
        device, alone, materials={"glass": GLASS}, horizon=3.0,
        floor=Floor(enabled=False)).n_bonds
    sim.place(sim.solid.position + np.where(right, 1e-4 * SPACING, 0.0)[:, None])
    assert np.abs(sim.acceleration).max() == 0.0


def test_two_solids_of_one_body_still_collide(device: Device) -> None:
    sim, right = split_block(device)
    sim.place(sim.solid.position, np.where(right, -5.0, 5.0)[:, None] * [1.0, 0.0, 0.0])
    sim.advance(4000)
    mass = GLASS.density * sim.solid.volume
    momentum = mass @ sim.velocity
    assert np.abs(momentum).max() < 1e-6 * 5.0 * mass.sum()
    # Thrown back, not through each other.
    assert sim.velocity[right, 0].mean() > 1.0 and sim.velocity[~right, 0].mean() < -1.0
    assert sim.position[right, 0].mean() > sim.position[~right, 0].mean() + 3.0 * SPACING


def test_cubes_that_meet_in_edges_and_corners_are_one_part() -> None:
    block = build_solid([Body(name="a", material="glass", cells=(6, 6, 6), spacing=SPACING)])
    i, j, k = block.cell.T
    stairs = without(block, ~((i == j) & (j == k)))
    assert len(stairs.edge) == 0
    assert len(np.unique(solid_parts(stairs))) == 1
    far = without(block, ~((i == j) & (j == k) & (i % 2 == 0)))
    assert len(np.unique(solid_parts(far))) == 3


def test_parts_keep_to_their_bodies() -> None:
    bodies = [Body(name=name, material="glass", cells=(3, 3, 3), spacing=SPACING,
                   center=(0.0, place * SPACING, 0.0)) for name, place in (("a", 0.0), ("b", 3.0))]
    solid = build_solid(bodies)
    solid = without(solid, (solid.cell == 1).all(axis=1) | (solid.cell[:, 0] == 1))
    part = solid_parts(solid)
    assert sorted(np.bincount(part).tolist()) == [9, 9, 9, 9]
    for number in range(4):
        assert np.ptp(solid.body[part == number]) == 0
