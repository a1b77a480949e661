"""Laws of the energy that a crack takes, and of the two choices that other codes make."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.sim.blocks import GLASS, SPACING, block, lattice
from vfx.bench.validation.energy_release import TOUGH, lattice_energy, measured_energy
from vfx.device import Device


@pytest.mark.parametrize("horizon", [2.0, 3.0, 6.0])
def test_rigid_separation_releases_the_lattice_energy(device: Device, horizon: float) -> None:
    found = measured_energy(device, horizon)
    assert found == pytest.approx(lattice_energy(horizon), rel=1e-3)


def test_lattice_energy_converges_to_the_fracture_energy() -> None:
    error = [abs(lattice_energy(horizon) / TOUGH.fracture_energy - 1.0)
             for horizon in (3.0, 6.0, 12.0, 24.0)]
    assert error == sorted(error, reverse=True)
    assert error[-1] < 0.01


def test_partial_volumes_weigh_bonds_near_the_horizon(device: Device) -> None:
    e = 1e-4
    sim = block(device, (7, 7, 7), edge_volume="partial")
    x = sim.solid.position
    sim.place(x * (1 + e))
    middle = int(np.argmin((x**2).sum(1)))
    length = np.sqrt((lattice(3.0) ** 2).sum(1))
    share = np.clip(3.5 - length, 0.5, 1.0)
    bulk = 18.0 / (np.pi * 3.0**4) * (share * length).sum() / 18.0
    assert 0.9 < bulk < 1.0
    energy = sim.bond_sums()["energy"][middle] / SPACING**3
    assert energy == pytest.approx(4.5 * bulk * GLASS.bulk_modulus * e * e, rel=1e-3)


def test_partial_volumes_scale_the_force_of_a_bond(device: Device) -> None:
    # Three cubes in a row, bonds of 1 and 2 lambda; at a horizon of 2 the longer counts half.
    pulls = []
    for choice in ("full", "partial"):
        sim = block(device, (3, 1, 1), horizon=2.0, edge_volume=choice,
                    material=dataclasses.replace(GLASS, strain_limit=1.0))
        position = sim.solid.position.copy()
        position[0, 0] -= 1e-4 * SPACING
        sim.place(position)
        pulls.append(sim.acceleration[2, 0])
    assert pulls[1] == pytest.approx(0.5 * pulls[0], rel=1e-5)


@pytest.mark.parametrize(("rule", "survives"), [("larger", True), ("smaller", False)])
def test_break_rule_picks_one_of_the_two_limits(
    device: Device, rule: str, survives: bool
) -> None:
    material = dataclasses.replace(GLASS, strain_scatter=0.1)
    sim = block(device, (2, 1, 1), horizon=1.0, material=material, break_rule=rule)
    low, high = np.sort(sim.threshold)
    assert high > 1.01 * low
    x = sim.solid.position
    sim.place(x * np.array([1.0 + 0.5 * (low + high), 1.0, 1.0]))
    assert (sim.n_bonds == 1) == survives
