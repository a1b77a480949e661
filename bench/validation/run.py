"""Run validations by name: ``vfx bench validate NAME``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path

from vfx.bench.rows import Row
from vfx.bench.validation.findings import Report

#: Name, module, and what it compares with.
VALIDATIONS = {
    "lammps": ("peri_pmb", "the same plate in LAMMPS peri/pmb"),
    "notched-plate": ("notched_plate", "crack speed and branching in pre-notched glass"),
    "kalthoff-winkler": ("kalthoff_winkler", "the angle of a crack under impact shear"),
    "energy-release": ("energy_release", "the energy of a crack, in closed form"),
    "parameters": ("parameters", "the parameter studies of levine-2014 section 6"),
}


def run_validations(names: Sequence[str], plots: Path | None = None) -> tuple[list[Row], bool]:
    """Run the named validations; return the rows and whether all came out as expected.

    ``plots`` is a folder for a picture of each (needs matplotlib).
    """
    rows: list[Row] = []
    passed = True
    for name in names:
        module, about = VALIDATIONS[name]
        print(f"{name}: {about}", flush=True)
        report = Report(name)
        importlib.import_module(f"vfx.bench.validation.{module}").validate(report)
        rows += report.rows()
        passed = passed and report.passed
        if plots is not None and report.data:
            from vfx.bench.validation.plots import draw

            plots.mkdir(parents=True, exist_ok=True)
            print(f"      drawn: {draw(report, plots)}", flush=True)
    return rows, passed
