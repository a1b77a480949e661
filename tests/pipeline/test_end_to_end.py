"""The real thing: a small plate from the shot file to EXR frames through the command line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import OpenEXR
import pytest

SHOT = """\
[shot]
frames = "1001-1003"
[time]
steps_per_frame = 200
[[bodies]]
name = "plate"
material = "glass"
cells = [24, 24, 3]
spacing = 2e-3
center = [0.0, 0.07, 0.0]
[materials.glass]
[[projectiles]]
position = [0.0, 0.07, 0.0135]
velocity = [0.0, 0.0, -60.0]
[[weakening]]
paths = 6
origin = [0.0, 0.07, 0.0]
[sim]
timestep = "auto"
[render]
resolution = [64, 36]
samples = 2
"""


@pytest.fixture
def plate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small shot in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plate.toml"
    path.write_text(SHOT)
    return path


def sim_files(folder: str) -> dict[str, bytes]:
    paths = [*sorted(Path(folder, "sim").glob("frame.*.npz")),
             Path(folder, "sim/diagnostics.csv")]
    return {path.name: path.read_bytes() for path in paths}


def test_a_plate_breaks_from_shot_file_to_frames(plate: Path, vfx) -> None:
    assert vfx("check", plate).exit_code == 0
    result = vfx("run", plate, "--device", "cpu")
    assert result.exit_code == 0, result.output
    rows = vfx("status", plate).output.splitlines()[2:]
    assert all(row.split()[2:] == ["-", "-", "-"] for row in rows)
    with OpenEXR.File("work/plate/render/plate.1003.exr") as file:
        header, channels = dict(file.header()), list(file.channels())
    assert len(header["vfx/configHash"]) == 40
    assert any(name in channels for name in ("RGBA", "R"))
    with np.load("work/plate/align/frame.1003.npz") as fragments:
        assert len(fragments["id"]) > 1, "the plate is in pieces"
    again = vfx("run", plate, "--device", "cpu")
    assert again.output.count("up to date") == 4


def test_threads_and_kill_in_mid_frame_do_not_change_a_bit(plate: Path, vfx) -> None:
    for folder in ("whole", "parts"):
        assert vfx("stage", "geometry", plate, "--work", folder).exit_code == 0
    assert vfx("stage", "sim", plate, "--device", "cpu", "--work", "whole",
               "--threads", 2).exit_code == 0
    script = ("from vfx.pipeline import stage_sim; stage_sim._CHECKPOINT_SECONDS = (-1, -1); "
              "stage_sim._CHUNK_SECONDS = 0; from vfx.pipeline.cli import main; main()")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "stage", "sim", str(plate), "--device", "cpu",
         "--work", "parts", "--threads", "1"], env=os.environ, stdout=subprocess.DEVNULL)
    while not Path("parts/sim/frame.1002.npz").exists():
        assert process.poll() is None
        time.sleep(0.005)
    time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not Path("parts/sim/frame.1003.npz").exists()
    result = vfx("stage", "sim", plate, "--device", "cpu", "--work", "parts", "--threads", 1)
    assert "going on from a checkpoint" in result.output
    assert sim_files("parts") == sim_files("whole")


@pytest.mark.parametrize("harm", [lambda data: data[: len(data) // 2], lambda data: b"no image"])
def test_a_damaged_exr_is_noticed_said_and_remade(plate: Path, vfx, harm) -> None:
    assert vfx("run", plate, "--device", "cpu", "--frames", 1001).exit_code == 0
    path = Path("work/plate/render/plate.1001.exr")
    good = path.read_bytes()
    path.write_bytes(harm(good))
    result = vfx("run", plate, "--device", "cpu", "--frames", 1001)
    assert result.exit_code == 0
    assert f"{path} is damaged" in result.output
    assert path.read_bytes() == good


@pytest.mark.parametrize("text, code, words", [
    ("environment = 'none.exr'", 3, "does not exist"),
    ("environment = 'broken.exr'", 2, "broken.exr"),
    ("environment = 'plate.toml'", 2, "plate.toml"),
    ("environment = 'studoi'", 3, "studio"),
])
def test_an_unusable_environment_is_refused_before_anything_is_written(
    plate: Path, vfx, text: str, code: int, words: str
) -> None:
    Path("broken.exr").write_bytes(b"\x76\x2f\x31\x01" + bytes(100))
    plate.write_text(SHOT + f"[light]\n{text}\n")
    result = vfx("run", plate, "--device", "cpu")
    assert result.exit_code == code
    assert words in result.stderr
    assert not Path("work").exists()


@pytest.mark.parametrize("text, words", [
    ("timestep = 1e-3", "sim.timestep: 0.001 s is above the stable step"),
    ("horizon = 0.5", "sim.horizon: found 0.5"),
])
def test_unstable_physics_is_refused_before_anything_is_written(
    plate: Path, vfx, text: str, words: str
) -> None:
    plate.write_text(SHOT.replace('timestep = "auto"', text))
    result = vfx("run", plate, "--device", "cpu")
    assert result.exit_code == 2
    assert words in result.stderr
    assert not Path("work").exists()


def test_an_enormous_grid_says_what_it_needs_and_what_there_is(plate: Path, vfx) -> None:
    plate.write_text(SHOT.replace("[24, 24, 3]", "[100000, 100000, 100]"))
    result = vfx("run", plate, "--device", "cpu")
    assert result.exit_code == 2
    assert "1000000000000 particles" in result.stderr
    assert "available" in result.stderr
