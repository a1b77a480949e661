"""A simulation goes on where it was, bit for bit, whatever ended it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import chaotic_plate
import numpy as np
import pytest
from chaotic_plate import SHOT, made

from vfx.pipeline.stages import sim as stage_sim
from vfx.pipeline.work.checkpoint import Checkpoint, CheckpointPair

SCRIPT = str(Path(chaotic_plate.__file__))


def frames_of(folder: Path) -> dict[str, bytes]:
    names = [*sorted(folder.glob("sim/frame.*.npz")), folder / "sim/diagnostics.csv",
             folder / "sim/timeline.csv"]
    return {path.name: path.read_bytes() for path in names}


def start(shot: Path, *words: str, pause: str = "0.01") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, SCRIPT, "stage", "sim", str(shot), *words],
        env={**os.environ, "CHAOTIC_PAUSE": pause},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    while not path.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.01)


@pytest.mark.parametrize("number, code", [
    (signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_run_resumes_to_the_same_bits(
    shot_file: Path, vfx, number: signal.Signals, code: int
) -> None:
    assert vfx("stage", "geometry", shot_file, "--work", "whole").exit_code == 0
    assert vfx("stage", "sim", shot_file, "--work", "whole").exit_code == 0
    vfx("stage", "geometry", shot_file, "--work", "parts")
    process = start(shot_file, "--work", "parts")
    wait_for(Path("parts/sim/frame.1003.npz"), process)
    time.sleep(0.1)
    process.send_signal(number)
    output = process.communicate()[0].decode()
    assert process.returncode == code, output
    assert "Traceback" not in output
    made()
    result = vfx("stage", "sim", shot_file, "--work", "parts")
    assert result.exit_code == 0
    assert "going on from a checkpoint" in result.output
    assert 1002 not in made()["sim"]
    assert frames_of(Path("parts")) == frames_of(Path("whole"))


def test_two_processes_do_not_simulate_in_one_folder(shot_file: Path, vfx) -> None:
    vfx("stage", "geometry", shot_file)
    process = start(shot_file)
    wait_for(Path("work/plate/sim/frame.1001.npz"), process)
    result = vfx("stage", "sim", shot_file)
    assert result.exit_code == 3
    assert "another process" in result.output
    process.terminate()
    process.communicate()
    assert process.returncode == 143


@pytest.mark.parametrize("n_damaged", [1, 2])
def test_a_damaged_checkpoint_is_said_and_done_without(
    shot_file: Path, vfx, n_damaged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_sim, "_CHECKPOINT_SECONDS", (-1.0, -1.0))
    vfx("run", shot_file, "--work", "whole")
    vfx("run", shot_file, "--work", "parts", "--frames", "1001-1003")
    for name in ("checkpoint.a.npz", "checkpoint.b.npz")[:n_damaged]:
        path = Path("parts/sim") / name
        path.write_bytes(path.read_bytes()[:-50])
        assert f"{path}: damaged" in vfx("status", shot_file, "--work", "parts").output
    made()
    result = vfx("stage", "sim", shot_file, "--work", "parts")
    assert result.exit_code == 0
    assert "is damaged; going on without it" in result.output
    assert ("starting again at step 0, frame 1001" in result.output) == (n_damaged == 2)
    assert ("going on from a checkpoint" in result.output) == (n_damaged == 1)
    assert frames_of(Path("parts")) == frames_of(Path("whole"))


def test_more_frames_go_on_from_the_end(shot_file: Path, vfx) -> None:
    vfx("stage", "geometry", shot_file, "--work", "whole")
    vfx("stage", "sim", shot_file, "--work", "whole")
    vfx("stage", "geometry", shot_file, "--work", "parts")
    for last in ("1002", "1003", "1006"):
        made()
        assert vfx("stage", "sim", shot_file, "--work", "parts", "--frames", last).exit_code == 0
        frames = made()["sim"]
        assert frames[-1] == int(last) and int(last) - 4 not in frames
    assert frames_of(Path("parts")) == frames_of(Path("whole"))


def test_frames_of_other_settings_are_kept_until_made_anew(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    before = frames_of(Path("work/plate"))
    changed = SHOT.replace("[sim]", "[sim]\ngravity = [0, 5.0, 0]")
    shot_file.write_text(changed)
    result = vfx("stage", "sim", shot_file, "--frames", "1001-1002")
    assert result.exit_code == 0
    assert "frames 1001-1006, made from other settings, are kept until made anew" in result.output
    after = frames_of(Path("work/plate"))
    assert {name for name in before if name.endswith("npz") and before[name] == after[name]} == {
        f"frame.{frame}.npz" for frame in range(1003, 1007)}
    assert vfx("status", shot_file).output.splitlines()[3].split() == [
        "sim", "1001-1002", "1003-1006", "-", "-"]
    vfx("run", shot_file, "--work", "fresh")
    vfx("run", shot_file)
    assert frames_of(Path("work/plate")) == frames_of(Path("fresh"))


def test_settings_put_back_find_their_frames_again(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    before = frames_of(Path("work/plate"))
    shot_file.write_text(SHOT.replace("[sim]", "[sim]\ngravity = [0, 5.0, 0]"))
    vfx("stage", "sim", shot_file, "--frames", "1001-1002")
    shot_file.write_text(SHOT)
    made()
    vfx("stage", "sim", shot_file)
    assert made() == {"sim": [1001, 1002]}
    assert {name: data for name, data in frames_of(Path("work/plate")).items()
            if name.endswith("npz")} == {
        name: data for name, data in before.items() if name.endswith("npz")}


def test_force_begins_again_at_the_first_step(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    result = vfx("stage", "sim", shot_file, "--force", "--frames", "1003")
    assert result.exit_code == 0 and "going on from" not in result.output
    assert made() == {"sim": [1001, 1002, 1003]}


def test_a_run_that_blows_up_says_where_and_how_to_go_on(shot_file: Path, vfx) -> None:
    shot_file.write_text(SHOT.replace("[sim]", "[sim]\ngravity = [0, -400.0, 0]"))
    vfx("stage", "geometry", shot_file)
    result = vfx("stage", "sim", shot_file)
    assert result.exit_code == 1
    assert "the energy runs away" in result.output
    assert f"vfx stage sim {shot_file}" in result.output


def test_diagnostics_have_each_step_once_in_order(shot_file: Path, vfx) -> None:
    vfx("stage", "geometry", shot_file)
    for frames in ("1002", "1006"):
        vfx("stage", "sim", shot_file, "--frames", frames)
    rows = Path("work/plate/sim/diagnostics.csv").read_text().splitlines()
    assert rows[0] == "step,time,kinetic_energy,fragments"
    steps = [int(row.split(",")[0]) for row in rows[1:]]
    assert steps == sorted(set(steps))
    assert {0, 25, 50, 75, 100, 125} <= set(steps)


def test_a_damaged_checkpoint_of_a_whole_run_is_said_and_removed(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    path = next(Path("work/plate/sim").glob("checkpoint.?.npz"))
    path.write_bytes(b"PK")
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert f"{path} is damaged and removed" in result.output
    assert "damaged" not in vfx("run", shot_file).output


@pytest.mark.parametrize("frames, place", [
    ("1003", "at step 50, which is frame 1003"), ("1001", "at step 0, which is frame 1001")])
def test_a_checkpoint_is_named_by_its_frame(shot_file: Path, vfx, frames: str, place: str) -> None:
    vfx("run", shot_file, "--frames", frames)
    assert f"checkpoint {place}" in vfx("run", shot_file).output


def test_the_older_checkpoint_is_replaced(tmp_path: Path) -> None:
    pair = CheckpointPair(tmp_path, "f")
    for step in (10, 20, 30):
        pair.save(Checkpoint(0.5 * step, step, {"x": np.array([step])}, "step\n"))
    found = list(CheckpointPair(tmp_path, "f").newest_first(until=15.0))
    assert [(each.step, each.state["x"][0]) for each in found] == [(30, 30), (20, 20)]
    assert [each.step for each in CheckpointPair(tmp_path, "f").newest_first(until=14.9)] == [20]
    assert not list(CheckpointPair(tmp_path, "other").newest_first(until=100))
