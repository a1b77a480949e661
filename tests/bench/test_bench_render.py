"""``vfx bench render``: its form and its agreement with Embree; no time is tested."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from vfx.bench.render import Hits, disputes
from vfx.pipeline.cli.commands import main

KEYS = {"case", "metric", "value", "unit", "anchor", "anchor_value", "ratio"}


@pytest.mark.parametrize("case", ["plate"])
def test_rows_have_one_form_and_rays_end_where_embree_says(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.setattr("vfx.bench.render.RESOLUTION", (160, 90))
    monkeypatch.setattr("vfx.bench.render.PIECES", 20)
    file = tmp_path / "rows.json"
    result = CliRunner().invoke(main, [
        "bench", "render", "--case", case, "--elements", "2048", "--json", str(file),
        "--cache", str(tmp_path)])
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    assert all(set(row) == KEYS for row in rows)
    found = {row["metric"]: row["value"] for row in rows}
    assert found["rays that embreex ends elsewhere"] <= 2
    assert found["of these, beyond rounding"] == 0
    assert found["camera rays"] > 0 and found["glass, depth 10, a sample"] > 0
    assert found["boundary triangles"] > 2 * 2 * 16 * 16


def test_disputes_are_measured_across_the_ray() -> None:
    """Rays along -z at (x, 0): past an edge, on a tilted triangle, agreed upon, and past all."""
    triangle = np.array([[[0, -1, 0], [1, 0, 0], [0, 1, 0]],                # an edge along x = 0
                         [[0, -9, 0], [0.3, -9, -3], [0, 9, 0]]], float)    # a slope of 1 in 10
    origin = np.array([[-1e-3, 0, 5], [0.1, 0, 5], [0.5, 0, 5], [9, 9, 5]])
    direction = np.tile([0.0, 0.0, -1.0], (4, 1))
    ours = Hits(np.array([5.0, 6.0, 5.0, np.inf]), np.array([0, 1, 0, -1]))
    theirs = Hits(np.array([np.inf, 6.2, 5.0, np.inf]), np.array([-1, 1, 0, -1]))
    away = disputes(triangle, origin, direction, ours, theirs)
    # The plane of the second is met at 6: the other point is 0.2 along the ray, a tenth aside.
    np.testing.assert_allclose(away, [1e-3, 0.2 / np.sqrt(101.0)], rtol=1e-9)
