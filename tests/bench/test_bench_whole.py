"""``vfx bench sim``: whole shots, pile, handover and shared at tiny sizes; no time is tested."""

from __future__ import annotations

import importlib.util
import json
import math
import tomllib
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from vfx.bench.handover import broken_edges
from vfx.bench.pile import STEP, make_pile, run_pile
from vfx.bench.stages import CASES, finer_pane
from vfx.device import Device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.pipeline.cli.commands import main
from vfx.pipeline.shot.templates import FOLDER
from vfx.sim.auto.pieces import parts


def bench(*words: object) -> Result:
    return CliRunner().invoke(main, ["bench", "sim", "--case", *map(str, words)])


def rows_of(tmp_path: Path, *words: object) -> dict[str, float]:
    file = tmp_path / "rows.json"
    result = bench(*words, "--json", file)
    assert result.exit_code == 0, result.output
    rows = json.loads(file.read_text())
    assert all(row["metric"] in result.output for row in rows)
    return {row["metric"]: row["value"] for row in rows}


@pytest.mark.parametrize("case, elements", [("drop", 2000), ("window", 3000)])
def test_a_shot_tells_time_and_memory_of_each_stage(
    tmp_path: Path, case: str, elements: int
) -> None:
    found = rows_of(tmp_path, case, "--elements", elements, "--frames", "1001-1002")
    for stage in ("geometry", "sim", "align"):
        assert found[f"{stage}, CPU"] > 0.0 and found[f"{stage}, peak memory"] > 0.01
    walls = [found[f"{stage}, wall"] for stage in ("geometry", "sim", "align")]
    assert found["all, wall"] == pytest.approx(sum(walls) / 60.0)


def test_a_shot_has_the_elements_that_were_asked_for() -> None:
    drop = tomllib.loads(CASES["drop"].text(1234))
    assert [body["elements"] for body in drop["bodies"]] == [1234]
    (pane,) = tomllib.loads(CASES["window"].text(90_000))["bodies"]
    assert math.prod(pane["cells"]) == pytest.approx(90_000, rel=0.01)
    edges = [n * pane["spacing"] for n in pane["cells"]]
    assert edges[:2] == pytest.approx([1.2, 0.8], rel=0.01)
    assert edges[2] == pytest.approx(6e-3, rel=0.6)


def test_the_window_of_the_bench_is_the_one_that_comes_along() -> None:
    (pane,) = tomllib.loads((FOLDER / "window.toml").read_text())["bodies"]
    asked = finer_pane(CASES["window"].elements)
    assert asked["cells"] == str(pane["cells"])
    assert float(asked["spacing"]) == pane["spacing"]


def test_pile_gives_seconds_and_how_it_lies(tmp_path: Path) -> None:
    found = rows_of(tmp_path, "pile", "--elements", 64, "--seconds", 0.05)
    assert found["wall a simulated second"] > 0.0 and found["CPU a simulated second"] > 0.0
    assert found["corners of a hull, mean"] > 4.0


@pytest.mark.skipif(importlib.util.find_spec("pybullet") is None, reason="pybullet is missing")
def test_peer_gets_the_same_hulls_in_the_same_places() -> None:
    from vfx.bench.peer_pybullet import run_peer
    from vfx.device import open_device

    pile = make_pile(open_device("cpu"), 64, 1)
    ours, theirs = run_pile(pile, 12 * STEP, 2), run_peer(pile, 12 * STEP, 2)
    # All are in free flight yet; Bullet's steps are Euler's.
    assert theirs.height == pytest.approx(ours.height, abs=1e-3)
    assert theirs.speed == pytest.approx(ours.speed, rel=1e-2)


def test_handover_keeps_the_pieces(device: Device) -> None:
    solid = build_solid(device, [Body(name="block", material="stone", cells=(8, 8, 8))]).solid
    broken = broken_edges(solid, 40)
    count, label = parts(solid, broken, np.arange(solid.n_elements))
    assert 20 <= count <= 60 and len(label) == 512


def test_handover_tells_both_ways(tmp_path: Path) -> None:
    found = rows_of(tmp_path, "handover", "--elements", 600, "--pieces", 40)
    assert found["both ways, wall"] >= max(found["to bonds, wall"], found["to the engine, wall"])


def test_shared_runs_two_sims_apart_and_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vfx.bench.whole.REPEATS", 1)
    found = rows_of(tmp_path, "shared", "--frames", 1001)
    assert found["both at once, relative"] == pytest.approx(
        found["both at once, wall"] / found["one after the other, wall"])
    assert found["one of them alone, wall"] < found["one after the other, wall"]


@pytest.mark.parametrize("words, message", [
    (["pile", "--peer", "lammps"], "--case pile"),
    (["glass", "--peer", "pybullet"], "goes with --case pile only"),
    (["glass", "--elements", "100"], "--elements: it goes with"),
    (["drop", "--seconds", "1"], "--seconds: it goes with --case pile only"),
    (["window", "--pieces", "9"], "--pieces: it goes with --case handover only"),
    (["shared", "--steps", "5"], "--case shared: of the options"),
    (["handover", "--scaling"], "--case handover: of the options"),
])
def test_what_does_not_go_together_is_refused(words: list[str], message: str) -> None:
    result = bench(*words)
    assert result.exit_code == 2 and message in result.output
    assert "Traceback" not in result.output


def test_a_missing_peer_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vfx.bench.peer_pybullet.importlib.util.find_spec", lambda name: None)
    result = bench("pile", "--peer", "pybullet")
    assert result.exit_code == 3 and "pip install 'vfx-fracture[bench]'" in result.output
