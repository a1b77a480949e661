"""Bad input: one clear message, exit code 2 or 3, no traceback, and nothing written."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from chaotic_plate import SHOT

from vfx.device.cpu import CpuDevice
from vfx.pipeline.shot import needs as physics

TABLE = [
    # what the shot says instead, exit code, words of the message
    ("seed = 1", "horizn = 3.0", 2, "sim.horizn: unknown key; did you mean 'horizon'?"),
    ("seed = 1", "seed = 'one'", 2, "sim.seed: found 'one', but it must be a whole number"),
    ("density = 2200.0", "density = -1.0", 2, "materials.glass.density: found -1.0"),
    ("density = 2200.0", "density = nan", 2, "must be a finite number"),
    ("seed = 1", "timestep = 1e-3", 2, "sim.timestep: 0.001 s is above the stable step"),
    ("seed = 1", "horizon = 0.9", 2, "must be at least 1"),
    ("cells = [4, 2, 1]", "cells = [4, 2, 1]\nspacing = 1e-200", 2, "at least 1e-9 m"),
    ("cells = [4, 2, 1]", "cells = [0, 2, 1]", 2, "bodies[1].cells: found [0, 2, 1]"),
    ("cells = [4, 2, 1]", "cells = [100000, 100000, 100000]", 3, "4.5e+05 TB of memory, but"),
    ("cells = [4, 2, 1]", "cells = [1000, 1000, 40]", 3, "GB of memory, but 10.0 GB"),
    ("[light]", "[light]\nenvironment = 'none.exr'", 3, "light.environment: found 'none.exr'"),
    ("[light]", "[light]\nenvironment = 'short.exr'", 2, "truncated"),
    ("[light]", "[light]\nenvironment = '/dev'", 2, "is a folder"),
    ("[light]", "[light]\nenvironment = '/dev/null'", 2, "is no regular file"),
    ("cells = [4, 2, 1]", "cells = [4, 2, 1]\ncenter = [0, -1, 0]", 2,
     "body 'plate' has its lowest point at y = -1.001 m, below the floor at -1 m; raise it to "
     "center = [0, -0.999, 0]"),
    ("density = 2200.0", "density = 1e-300", 2, "must be at least 0.001 kg/m^3"),
    ("density = 2200.0", "density = 1e300", 2, "must be at most 1e6 kg/m^3"),
    ("1001-1006", "1001-9999999", 2, "that is 9998999 frames; a shot has at most 100000"),
    ("[light]", "[light]\nenvironment = \"a\\u0000b\"", 2, "control character"),
    ("[light]", f"[light]\nenvironment = '{300 * 'a'}'", 2, "too long"),
    ("resolution = [8, 6]", "resolution = [30000, 30000]", 3, "render.resolution"),
    ('name = "plate"\nframes', 'name = "../plate"\nframes', 2, "plain word"),
    ('frames = "1001-1006"', 'frames = "1001:1006"', 2, "shot.frames"),
    ("[shot]", "[shot", 2, "plate.toml:1: not valid TOML"),
]


@pytest.mark.parametrize("old, new, code, words", TABLE)
@pytest.mark.parametrize("command", [["run"], ["stage", "sim"], ["check"]])
def test_bad_shots_are_refused_before_anything_is_written(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch, command: list[str],
    old: str, new: str, code: int, words: str,
) -> None:
    monkeypatch.setattr(physics, "host_memory", lambda: 10**10)
    monkeypatch.setattr("vfx.pipeline.show.report.host_memory", lambda: 10**10)
    monkeypatch.setattr(CpuDevice, "memory", lambda device: (10**10, 10**10))
    (shot_file.parent / "short.exr").write_bytes(b"x")
    assert old in SHOT
    shot_file.write_text(SHOT.replace(old, new, 1))
    about_picture = "[light]" in old or "resolution" in old
    if command == ["stage", "sim"] and about_picture:
        command = ["stage", "render"]
    result = vfx(*command, shot_file)
    assert result.exit_code == code
    assert words in result.stderr
    assert sorted(path.name for path in shot_file.parent.iterdir()) == ["plate.toml", "short.exr"]


@pytest.mark.parametrize("words, code, message", [
    (["run", "plate.toml", "--frames", "900-1003"], 2, "outside the shot"),
    (["run", "plate.toml", "--frames", "1001:3"], 2, "':' means"),
    (["run", "plate.toml", "--frames", ""], 2, "cannot read"),
    (["run", "plate.toml", "--frames", "900-1003"], 2, "plate.toml: --frames: frames '900-1003': "
     "900-1000 lie outside the shot, which has 1001-1006; ask for those"),
    (["run", "absent.toml"], 3, "no such file"),
    (["check", "absent.toml"], 3, "no such file"),
    (["run", "."], 2, ".: is a folder; give a shot file"),
    (["run", "/dev/null"], 2, "is no regular file"),
    (["run", "plate.toml", "--device", "cuda:999"], 3, "use --device cpu"),
    (["run", "plate.toml", "--device", "gpu"], 2, "auto, cpu, guard or cuda:N"),
    (["run", "plate.toml", "--threads", "0"], 2, "whole number from 1 to 9999"),
    (["run", "plate.toml", "--threads", "x"], 2, "'x'; give a whole number"),
    (["run", "plate.toml", "--work", "plate.toml"], 3, "is a file"),
    (["status", "plate.toml", "--work", "plate.toml/a"], 3, "is a file"),
    (["status", "plate.toml", "--work", ""], 2, "a variable that is not set?"),
    (["run", "plate.toml", "--work", "w" * 300], 3, "cannot be reached (File name too long)"),
    (["run", "plate.toml", "--work", "plate.toml/a/b"], 3, "is a file"),
    (["run", "plate.toml", "--work", "/proc/none"], 3, "/proc/none"),
    (["stage", "smi", "plate.toml"], 2, "smi"),
    (["new", "plate"], 2, "exists already"),
    (["new", "plate.toml/other"], 3, "cannot be written"),
    (["asset", "vase", "plate.toml/vase.obj"], 3, "cannot be written"),
    (["new", "../a b"], 2, "plain word"),
    (["new", "other", "--from", "glas"], 2, "did you mean 'glass'?"),
])
def test_bad_arguments_are_refused_before_anything_is_written(
    shot_file: Path, vfx, words: list[str], code: int, message: str
) -> None:
    result = vfx(*words)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output
    assert [path.name for path in shot_file.parent.iterdir()] == ["plate.toml"]


@pytest.mark.parametrize("words", [
    ["run"], ["submit", "--farm", "local"], ["export", "--to", "usd"], ["status"], ["review"],
    ["clean", "--stage", "render"], ["preview"], ["check"], ["stage", "comp"]])
def test_a_work_folder_that_is_not_mounted_is_told_from_one_that_is_not_made(
    shot_file: Path, vfx, words: list[str]
) -> None:
    disk = shot_file.parent / "disk"
    disk.symlink_to("/nowhere/show")
    result = vfx(*words, shot_file, "--work", "disk/plate")
    assert result.exit_code == 3
    assert f"{disk} is a link to /nowhere/show, which is not there" in result.stderr
    assert len(result.stderr.splitlines()) == 1 and "--work" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("command", ["run", "status"])
def test_a_disk_that_does_not_answer_is_no_empty_folder(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    look = os.stat

    def silent(path, *args, **kwargs):
        if "share" in str(path):
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))
        return look(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", silent)
    result = vfx(command, shot_file, "--work", "share/plate")
    assert result.exit_code == 3
    assert "share/plate: cannot be reached (Stale file handle); bring its disk" in result.stderr


def test_a_disk_without_room_is_refused_before_anything_is_written(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100))
    result = vfx("run", shot_file)
    assert result.exit_code == 3
    assert "but 100 B is free" in result.stderr
    assert not Path("work").exists()
    result = vfx("check", shot_file)
    assert result.exit_code == 3
    assert "but 100 B is free" in result.stderr
    assert "all well" not in result.output


@pytest.mark.parametrize("words", [["new", "other"], ["asset", "bowl", "bowl.obj"]])
def test_a_disk_that_cannot_be_written_is_no_fault_of_the_values(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    def refused(*args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("vfx.pipeline.shot.templates.open", refused, raising=False)
    monkeypatch.setattr("vfx.geometry.assets.catalog.write_obj", refused)
    result = vfx(*words)
    assert result.exit_code == 3
    assert "Read-only file system); choose another folder" in result.stderr
    assert [path.name for path in shot_file.parent.iterdir()] == ["plate.toml"]


def test_check_asks_for_room_only_for_what_is_still_to_come(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    vfx("run", shot_file)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100))
    assert vfx("check", shot_file).exit_code == 0


def test_a_body_may_touch_the_floor(shot_file: Path, vfx) -> None:
    shot_file.write_text(SHOT.replace("cells = [4, 2, 1]",
                                      "cells = [4, 2, 1]\ncenter = [0, -0.999, 0]"))
    assert vfx("check", shot_file).exit_code == 0


def test_a_disk_that_fills_up_ends_in_a_sentence(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    vfx("stage", "geometry", shot_file)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = vfx("stage", "sim", shot_file)
    assert result.exit_code == 3
    assert "no space left on the disk" in result.stderr
    assert not list(Path("work/plate/sim").glob("frame*"))
    assert not list(Path("work/plate/sim").glob(".tmp*"))


def test_new_writes_a_shot_that_checks(shot_file: Path, vfx) -> None:
    result = vfx("new", "fresh", "--from", "glass")
    assert (result.exit_code, result.output) == (
        0, "wrote fresh.toml; next: vfx check fresh.toml\n")
    report = vfx("check", "fresh.toml")
    assert report.exit_code == 0
    assert "131072 particles" in report.output
    assert "all well" in report.output


def test_help_teaches_with_examples(vfx) -> None:
    assert "vfx new plate --from glass" in vfx("--help").output
    assert "--frames 1001-1010" in vfx("stage", "--help").output


def test_thousands_of_bodies_and_controls_are_checked_in_seconds(shot_file: Path, vfx) -> None:
    body = ("[[bodies]]\nname = 'b{0}'\nmaterial = 'glass'\ncells = [2, 2, 2]\n"
            "center = [{1}, 0.1, {2}]\n")
    bodies = "".join(body.format(k, 0.01 * (k % 40), 0.01 * (k // 40)) for k in range(2_000))
    controls = "".join(
        f"[[projectiles]]\nposition = [0, {k}, 0]\nvelocity = [0, 0, 0]\n"
        f"[[colliders]]\nposition = [0, -{k}, 0]\n"
        "[[regions]]\nfixed = true\nsize = [1, 1, 1]\n" for k in range(1, 300))
    shot_file.write_text(SHOT + bodies + controls)
    begun = time.process_time()
    result = vfx("check", shot_file)
    assert result.exit_code == 0, result.output
    assert time.process_time() - begun < 30.0
    assert len(result.output) < 20_000 and "and 1,981 more" in result.output


def test_check_asks_for_the_denoiser_as_run_does(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyoidn", None)
    shot_file.write_text(SHOT.replace("samples = 1", "samples = 1\ndenoise = true"))
    for command in ("check", "run"):
        result = vfx(command, shot_file)
        assert result.exit_code == 3 and "pip install" in result.output
