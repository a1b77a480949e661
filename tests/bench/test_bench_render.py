"""``vfx bench render``: its form and its agreement with Embree; no time is tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from vfx.pipeline.cli import main

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
    assert found["camera rays"] > 0 and found["glass, depth 10, a sample"] > 0
    assert found["boundary triangles"] > 2 * 2 * 16 * 16
