"""A bond law stands in one place: its constants are settings, and no layout knows them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.blocks import SPACING, block
from vfx.device import Device
from vfx.device.source import ROOT
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.matter.laws import FILE, bond_laws, constant, steepest_slope
from vfx.sim.matter.material import bond_stiffness
from vfx.sim.settings import Material, Shared


def test_constants_of_a_law_are_the_settings_of_their_names(device: Device) -> None:
    materials = [Material(compression_strengthening=0.5),
                 Material(compression_strengthening=2.0, strength=1e9, fracture_energy=2.0)]
    rows = device.to_host(bond_laws(device, materials, [0.003, 0.006], Shared(weak_factor=0.25),
                                    BondSettings(break_rule="smaller")))
    names = device.fields(FILE, "BondLaw")
    assert rows.dtype == np.float32
    found = [dict(zip(names, row.tolist(), strict=True)) for row in rows]
    bulk = Material().bulk_modulus
    share = np.sqrt(5.0 * 2.0 / (9.0 * bulk * 0.006)) / (1e9 / (1.5 * bulk))
    assert found == [
        {"compression_strengthening": alpha, "weak_factor": 0.25, "break_rule": 1.0,
         "growth_share": pytest.approx(growth)} for alpha, growth in ((0.5, 1.0), (2.0, share))]


@pytest.mark.parametrize("material", [Material(strain_limit=10.0, compression_strengthening=0.0)])
def test_no_bond_gets_steeper_than_the_stable_step_takes_it_for(
    device: Device, material: Material
) -> None:
    sim = block(device, (2, 1, 1), material=material, horizon=2.0, calibrate=False,
                contact_stiffness=0.0)
    assert sim.n_bonds == 1
    stretch = np.linspace(-0.4, 0.6, 21)
    force = []
    for s in stretch:
        position = sim.solid.position.copy()
        position[1, 0] = position[0, 0] + (1.0 + s) * SPACING
        sim.place(position, np.zeros_like(position))
        force.append(sim.acceleration[0, 0] * material.density)
    volume = sim.solid.volume[1]
    slope = np.diff(force) / np.diff(stretch) / (bond_stiffness(material, 2 * SPACING) * volume)
    assert slope.max() == pytest.approx(steepest_slope(material), rel=1e-4)


def test_a_constant_without_a_setting_says_what_to_write() -> None:
    with pytest.raises(KeyError, match=r"struct BondLaw has a constant hardening, .*settings.py"):
        constant("hardening", Material(), Shared(), BondSettings())


def test_no_kernel_and_no_layout_names_a_constant_of_the_law(device: Device) -> None:
    sources = [*(ROOT / "sim").rglob("*.cu"), ROOT / "sim/bonds/cluster_bonds.py",
               ROOT / "sim/bonds/lattice.py"]
    assert len(sources) > 7
    for source in sources:
        text = source.read_text(encoding="utf-8")
        for name in device.fields(FILE, "BondLaw"):
            assert name not in text, f"{source.name} names {name}"
