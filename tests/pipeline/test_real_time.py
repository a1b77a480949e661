"""Shots at real time: the examples are sound, and a small drop goes through all stages."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import OpenEXR
import pytest

from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.shot.templates import FOLDER, list_templates

REAL_TIME = ("marbles", "plate", "ramp", "tempered", "vase_drop", "vase_drop_small", "wall",
             "window", "window_small", "wineglass")

DROP = """\
[shot]
frames = "1001-1010"
[time]
time_scale = 1.0
[[bodies]]
name = "tile"
material = "clay"
cells = [10, 2, 10]
spacing = 8e-3
place = "on-floor"
drop = 0.05
fall_speed = 4.0
rotation = [20.0, 0.0, 15.0]
[materials.clay]
density = 2000.0
bulk_modulus = 1e9
strain_limit = 1e-3
[sim]
method = "auto"
[sim.bonds]
horizon = 2.0
[camera]
position = [0.0, 0.25, 0.6]
target = [0.0, 0.03, 0.0]
[render]
resolution = [64, 36]
samples = 1
"""


@pytest.mark.parametrize("name", list_templates())
def test_every_example_loads_and_is_planned(name: str) -> None:
    shot = load_shot(FOLDER / f"{name}.toml")
    assert shot.sim.method in ("bonds", "auto")
    assert (shot.sim.method == "auto") == (name in REAL_TIME)


@pytest.mark.parametrize("name", REAL_TIME)
def test_an_example_starts_a_shot_that_check_has_nothing_to_say_against(
    vfx, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert vfx("new", "mine", "--from", name).exit_code == 0
    result = vfx("check", "mine.toml")
    assert result.exit_code == 0, result.output
    assert "all well" in result.output, result.output


def test_a_tile_falls_and_breaks_from_shot_file_to_frames(
    vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tile.toml").write_text(DROP)
    result = vfx("run", "tile.toml", "--device", "cpu")
    assert result.exit_code == 0, result.output
    told = re.search(r"sim: t = [\d.]+ s: tile in bonds \(1 piece, ", result.output)
    assert told, "the impact is told"
    names: list[set[int]] = []
    for frame in range(1001, 1011):
        with np.load(f"work/tile/align/frame.{frame}.npz") as pieces:
            names.append(set(pieces["id"].tolist()))
            assert pieces["mass"].sum() == pytest.approx(2000.0 * 200 * 8e-3**3, rel=1e-5)
    assert len(names[0]) == 1 and len(names[-1]) > 1
    assert all(before <= after for before, after in itertools.pairwise(names)), (
        "a name once given stays")
    for frame in range(1001, 1011):
        with OpenEXR.File(f"work/tile/render/tile.{frame}.exr", separate_channels=True) as file:
            number = np.asarray(file.channels()["fragment.id"].pixels)
        assert set(np.unique(number[number >= 0.0]).astype(int).tolist()) <= names[frame - 1001]
    assert (number >= 0.0).any()
