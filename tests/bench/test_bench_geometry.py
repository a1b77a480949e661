"""``vfx bench geometry``: its form, its cases and its refusals; no time is tested."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial import Delaunay

from vfx.bench.geometry import Phases, box_cells
from vfx.device import Device
from vfx.pipeline.cli.commands import main

KEYS = {"case", "metric", "value", "unit", "anchor", "anchor_value", "ratio"}


def test_points_in_a_box_give_rows_of_one_form(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = CliRunner().invoke(main, [
        "bench", "geometry", "--case", "points", "--elements", "500", "--json", str(file)])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    assert all(set(row) == KEYS for row in rows)
    found = {row["metric"]: row["value"] for row in rows}
    assert found["faces between cells"] > 2500 and found["cells, wall"] > 0


def test_cells_in_a_box_have_the_faces_of_all_neighbors(device: Device) -> None:
    site = np.random.default_rng(1).random((300, 3))
    # Mirrored in its walls, the box has just the neighbours that its cells have.
    mirror = [site]
    for axis in range(3):
        for wall in (0.0, 1.0):
            image = site.copy()
            image[:, axis] = 2.0 * wall - image[:, axis]
            mirror.append(image)
    start, neighbor = Delaunay(np.concatenate(mirror)).vertex_neighbor_vertices
    inside = neighbor[:start[300]] < 300
    assert box_cells(device, site) == int(inside.sum()) // 2


def test_a_shell_tells_of_its_tetrahedra(tmp_path: Path) -> None:
    file = tmp_path / "rows.json"
    result = CliRunner().invoke(main, [
        "bench", "geometry", "--case", "vase", "--elements", "4000", "--json", str(file)])
    assert result.exit_code == 0, result.output
    found = {row["metric"]: row["value"] for row in json.loads(file.read_text())}
    # No tetrahedron has all its dihedral angles above those of the regular one.
    assert 0.0 < found["smallest dihedral angle"] <= found["median smallest angle"] < 70.53
    assert found["below 5 degrees"] == 0
    assert found["bonds a particle, mean"] <= found["bonds a particle, most"]


def test_phases_add_up() -> None:
    phases = Phases()
    for what in ("one", "two", "one", ""):
        phases(what, 0.5)
    assert set(phases.seconds) == {"one", "two"}
    assert all(seconds >= 0.0 for seconds in phases.seconds.values())


@pytest.mark.parametrize("words, code, message", [
    (["--case", "teapot"], 2, "'teapot' is not one of"),
    (["--case", "vase", "--peer", "voro++"], 2, "--peer goes with --case points only"),
    (["--elements", "1"], 2, "1 is not in the range"),
    (["--case", "points", "--elements", "100", "--device", "cuda:99"], 3, "--device cuda:99"),
])
def test_what_makes_no_sense_is_refused(words: list[str], code: int, message: str) -> None:
    result = CliRunner().invoke(main, ["bench", "geometry", *words])
    assert result.exit_code == code, result.output
    assert message in result.output
    assert "Traceback" not in result.output


def test_a_missing_peer_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfx.bench.geometry.shutil.which", lambda name: None)
    result = CliRunner().invoke(main, ["bench", "geometry", "--case", "points", "--peer", "voro++"])
    assert result.exit_code == 3
    assert "apt install voro++" in result.output
