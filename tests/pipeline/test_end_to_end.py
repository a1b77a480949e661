"""The real thing: a small plate from the shot file to EXR frames through the command line."""

from __future__ import annotations

import csv
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from PIL import Image

from vfx.pipeline.shot.needs import plan_needs
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.stages import sim as stage_sim

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
    rows = vfx("status", plate).output.splitlines()[2:7]
    assert all(row.split()[2:] == ["-", "-", "-"] for row in rows)
    for frame, is_whole in ((1001, True), (1003, False)):
        assert_plate_is_seen(frame, is_whole)
    again = vfx("run", plate, "--device", "cpu")
    assert again.output.count("up to date") == 6


def assert_plate_is_seen(frame: int, is_whole: bool) -> None:
    """The picture of a frame holds the plate where it is, lit, whole or in pieces."""
    with OpenEXR.File(f"work/plate/render/plate.{frame}.exr", separate_channels=True) as file:
        header = dict(file.header())
        channel = {name: np.asarray(c.pixels, float) for name, c in file.channels().items()}
    assert len(header["vfx/configHash"]) == 40
    assert all(np.isfinite(pixels).all() for pixels in channel.values())
    with np.load(f"work/plate/align/frame.{frame}.npz") as pieces:
        assert (len(pieces["id"]) == 1) == is_whole
    number = channel["fragment.id"]
    shape, plate = number.shape, number >= 0.0
    assert shape == (36, 64)
    assert 0.02 < plate.mean() < 0.9
    assert (len(np.unique(number[plate])) == 1) == is_whole, "as many pieces as there are"
    # Each of its pixels is on the plate, which has hardly moved, or on what left it.
    place = np.stack([channel[f"P.{axis}"][plate] for axis in "XYZ"], axis=-1)
    outside = np.abs(place - [0.0, 0.07, 0.0]) - [24e-3, 24e-3, 3e-3]
    assert (outside.max(axis=1) < (1e-4 if is_whole else 0.02)).all()
    assert np.ptp(place[:, 0]) > 0.04 and np.ptp(place[:, 1]) > 0.03
    # Nothing on it is black; what is behind it is another light.
    light = np.stack([channel[color] for color in "RGB"], axis=-1)
    assert (light[plate].max(axis=-1) > 0.0).mean() > 0.9
    assert light.std() > 0.02
    damaged = channel["damage.Y"][plate]
    assert (damaged.max() == 0.0) == is_whole


@pytest.mark.parametrize("number, code", [
    (signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_threads_and_a_stop_in_mid_frame_do_not_change_a_bit(
    plate: Path, vfx, number: signal.Signals, code: int
) -> None:
    for folder in ("whole", "parts"):
        assert vfx("stage", "geometry", plate, "--work", folder).exit_code == 0
    assert vfx("stage", "sim", plate, "--device", "cpu", "--work", "whole",
               "--threads", 2).exit_code == 0
    # A kill finds checkpoints after every chunk; who is asked to stop writes one himself.
    often = "stage_sim._CHECKPOINT_SECONDS = (-1, -1); " if number == signal.SIGKILL else ""
    script = ("from vfx.pipeline.stages import sim as stage_sim; " + often +
              "stage_sim._CHUNK_SECONDS = 0; from vfx.pipeline.cli.commands import main; main()")
    process = subprocess.Popen(
        [sys.executable, "-c", script, "stage", "sim", str(plate), "--device", "cpu",
         "--work", "parts", "--threads", "1"], env=os.environ, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    while not Path("parts/sim/frame.1002.npz").exists():
        assert process.poll() is None
        time.sleep(0.001)
    time.sleep(0.05)
    process.send_signal(number)
    errors = process.communicate()[1].decode()
    assert process.returncode == code, errors
    assert "Traceback" not in errors
    if number != signal.SIGKILL:
        assert f"stopped by {number.name}; what is done is kept" in errors
    assert not Path("parts/sim/frame.1003.npz").exists()
    result = vfx("stage", "sim", plate, "--device", "cpu", "--work", "parts", "--threads", 1)
    assert "going on from a checkpoint" in result.output
    assert sim_files("parts") == sim_files("whole")


def test_the_history_of_a_run_is_told_kept_and_plotted(plate: Path, vfx) -> None:
    plate.write_text(SHOT.replace("[[weakening]]", "mass = 0.05\n[[weakening]]"))
    result = vfx("run", plate, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert re.search(r"sim 100\d: \d+% done, [\d.e+]+ steps/s, t = [\d.]+ [mu]s, "
                     r"[\d.]+ k bonds, \d+:\d\d:\d\d left", result.output)
    with open("work/plate/sim/diagnostics.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    page = Path(__file__).parents[2] / "docs/how-it-works.md"
    table = page.read_text().partition("## The history of a simulation")[2].partition("\n## ")[0]
    named = [re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines()
             if line.startswith("| `") and not re.search("of `(rigid|auto)`", line)]
    assert sorted(rows[0]) == sorted(itertools.chain(*named)), "every column is explained"
    gaps = {name: [int(row["step"]) for row in rows if not row[name]] for name in rows[0]}
    assert {name for name in gaps if gaps[name]} == {"fragments"}
    assert all(step % 200 for step in gaps["fragments"]), "and its gaps are where that says"
    at_frames = [int(row["fragments"]) for row in rows if row["fragments"]]
    counts = []
    for frame in (1001, 1002, 1003):
        with np.load(f"work/plate/align/frame.{frame}.npz") as pieces:
            counts.append(len(pieces["id"]))
    assert at_frames == counts
    with Image.open("work/plate/sim/diagnostics.png") as plot:
        plot.load()


def test_check_tells_sizes_step_memory_time_and_disk(plate: Path, vfx) -> None:
    output = vfx("check", plate).output
    for words in ("lambda 0.002 m", "delta 0.006 m", "bonds", "steps are stable up to",
                  "memory      about", "an estimate: 0:0", "steps/s", "disk        about"):
        assert words in output


def test_a_plate_that_blows_up_says_where_when_and_what_to_change(
    plate: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage_sim, "_CHECKPOINT_SECONDS", (-1.0, -1.0))
    # A ball that is far too fast and hard arrives on the way to the third frame.
    plate.write_text(SHOT.replace("0.0135]", "0.15]").replace("-60.0]", "-2e3]\nstiffness = 1e18"))
    assert vfx("stage", "geometry", plate).exit_code == 0
    result = vfx("stage", "sim", plate, "--device", "cpu")
    assert result.exit_code == 1
    failure = re.search(r"sim 1003: step (\d+) \(t = .* s\): particle \d+ of body 'plate' "
                        r"\(at rest at \[.*\] m\) reached .* m/s", result.output)
    assert failure, result.output
    for words in ("use a smaller sim.bonds.timestep",
                  "frames 1001-1002 are kept", "diagnostics.png",
                  f"vfx stage sim {plate}"):
        assert words in result.output
    assert Path("work/plate/sim/diagnostics.png").exists()
    # The newest checkpoint is of before: going on from it ends the same way.
    again = vfx("stage", "sim", plate, "--device", "cpu")
    start = re.search(r"going on from a checkpoint at step (\d+)", again.output)
    assert start and 200 <= int(start[1]) < int(failure[1])
    assert failure[0] in again.output
    # Put right, it runs.
    plate.write_text(SHOT)
    assert vfx("stage", "sim", plate, "--device", "cpu").exit_code == 0


def test_the_memory_foretold_covers_what_is_used(plate: Path, vfx) -> None:
    plate.write_text(SHOT.replace("[24, 24, 3]", "[128, 128, 8]").replace("= 2e-3", "= 5e-4")
                     .replace("frame = 200", "frame = 20"))
    assert vfx("stage", "geometry", plate).exit_code == 0
    # Not ru_maxrss: a child begins with that of the process which forked it.
    script = ("import re; from vfx.pipeline.cli.commands import main; main(standalone_mode=False); "
              "print('peak', re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])")
    output = subprocess.run(
        [sys.executable, "-c", script, "stage", "sim", str(plate), "--device", "cpu"],
        check=True, stdout=subprocess.PIPE).stdout.decode()
    peak = 1024 * int(re.search(r"peak (\d+)", output)[1])
    foretold = plan_needs(load_shot(plate), 10**12).memory
    assert peak <= foretold <= 1.5 * peak


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
    assert result.exit_code == 3
    assert "1000000000000 particles" in result.stderr
    assert "available" in result.stderr
