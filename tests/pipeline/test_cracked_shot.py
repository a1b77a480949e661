"""A crack that ends within a body goes from the shot file to the picture, whoever simulates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from vfx.pipeline.cli.commands import main
from vfx.raytrace.film.exr import read_exr

SHOT = """\
[shot]
name = "slab"
frames = "1001-1003"
[time]
{time}
[[bodies]]
name = "slab"
material = "ceramic"
cells = [12, 2, 8]
spacing = 5e-3
center = [0.0, 0.0051, 0.0]
[materials.ceramic.surface]
preset = "ceramic"
[materials.ceramic.fracture]
preset = "ceramic"
crack_width = {width}
[[cracks]]
origin = [0.0, -0.1, -0.011]
u = [0.0, 1.0, 0.0]
v = [0.0, 0.0, 1.0]
[sim]
method = "{method}"
gravity = [0.0, 0.0, 0.0]
[camera]
position = [0.08, 0.3, 0.01]
[render]
resolution = [48, 27]
samples = 16
passes = ["beauty", "mask"]
"""
TIME = {"auto": "time_scale = 1.0", "bonds": "steps_per_frame = 4"}


def run(folder: Path, method: str, width: str, *words: object) -> Path:
    path = folder / "slab.toml"
    path.write_text(SHOT.format(time=TIME[method], width=width, method=method))
    result = CliRunner().invoke(main, [
        *map(str, words), str(path), "--work", str(folder / "work"), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    return folder / "work"


@pytest.mark.parametrize("method", ["auto", "bonds"])
def test_a_cut_that_ends_within_a_body_is_seen(tmp_path: Path, method: str) -> None:
    work = run(tmp_path, method, '"auto"', "run", "--frames", "1001-1002")
    with np.load(work / "geometry/solid.npz") as solid:
        place = solid["position"][solid["edge"]]
        cut = np.flatnonzero((place[:, 0, 0] * place[:, 1, 0] < 0.0) & (place[:, 0, 2] > -0.011))
    told = []
    for frame in (1001, 1002):
        with np.load(work / f"align/frame.{frame}.npz") as pieces:
            told.append((work / f"align/frame.{frame}.npz").read_bytes())
            assert len(pieces["id"]) == 1
            assert np.array_equal(pieces["crack_edge"], cut)
    seen, _ = read_exr(work / "render/slab.1001.exr")
    assert (np.asarray(seen["mask.fracture"]) > 0.0).any()

    # A chunk of its own says the same of the same frame.
    alone = tmp_path / "alone"
    alone.mkdir()
    for words in (["geometry"], ["sim", "--frames", "1001-1003"], ["lineage"],
                  ["align", "--frames", "1002"]):
        work = run(alone, method, '"auto"', "stage", *words)
    assert (work / "align/frame.1002.npz").read_bytes() == told[1]

    # Without a width it is not drawn, and nothing before the picture is made anew.
    work = run(tmp_path, method, "0.0", "run", "--frames", "1001")
    assert (work / "align/frame.1001.npz").read_bytes() == told[0]
    whole, _ = read_exr(work / "render/slab.1001.exr")
    assert not np.asarray(whole["mask.fracture"]).any()


def test_a_width_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "slab.toml"
    for width, said in (('"wide"', "auto"), ("-1e-3", "at least 0")):
        path.write_text(SHOT.format(time=TIME["auto"], width=width, method="auto"))
        result = CliRunner().invoke(main, ["check", str(path)])
        assert result.exit_code == 2
        assert "materials.ceramic.fracture.crack_width" in result.output and said in result.output
