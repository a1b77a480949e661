"""A bond law stands in one place: its constants are settings, and no layout knows them."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.device import Device
from vfx.device.source import ROOT
from vfx.sim.bonds.settings import BondSettings
from vfx.sim.matter.laws import FILE, bond_laws, constant
from vfx.sim.settings import Material, Shared


def test_constants_of_a_law_are_the_settings_of_their_names(device: Device) -> None:
    materials = [Material(compression_strengthening=0.5), Material(compression_strengthening=2.0)]
    rows = device.to_host(bond_laws(
        device, materials, Shared(weak_factor=0.25), BondSettings(break_rule="smaller")))
    names = device.fields(FILE, "BondLaw")
    assert rows.dtype == np.float32
    found = [dict(zip(names, row.tolist(), strict=True)) for row in rows]
    assert found == [
        {"compression_strengthening": alpha, "weak_factor": 0.25, "break_rule": 1.0}
        for alpha in (0.5, 2.0)]


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
