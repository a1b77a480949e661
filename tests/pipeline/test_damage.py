"""What was damaged, swapped or removed is never called done, and the next run makes it good."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
from chaotic_plate import SHOT, made

from vfx.pipeline.errors import DamagedFile
from vfx.pipeline.stages import sim as stage_sim
from vfx.pipeline.work.cache import FINGERPRINT, in_use, read_npz, write_npz

WORK = Path("work/plate")
HANDOFF = ("checksums.sha256", "plate.nk", "plate_blender.py", "handoff.json")


def results(folder: Path = WORK) -> dict[str, bytes]:
    """The bytes of all results and of what is handed over."""
    names = ("geometry/solid.npz", "sim/frame.*", "sim/diagnostics.*", "align/*.npz",
             "render/*.exr", "comp/*")
    found = [path for name in names for path in sorted(folder.glob(name)) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found
            if path.name != "manifest.json"}


def change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data and len(old) == len(new)
    path.write_bytes(data.replace(old, new, 1))


def row_of(stage: str, output: str) -> list[str]:
    """The frames of a stage that status calls done, stale, damaged and missing."""
    return next(line.split()[1:] for line in output.splitlines() if line.startswith(stage))


@pytest.mark.parametrize("old, new", [(b"'shape': (8,)", b"'shape': (6,)"), (b"<f8", b"<f4")])
def test_a_changed_header_in_the_newest_checkpoint_falls_back_on_the_older(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch, old: bytes, new: bytes
) -> None:
    monkeypatch.setattr(stage_sim, "_CHECKPOINT_SECONDS", (-1.0, -1.0))
    vfx("run", shot_file, "--work", "whole")
    vfx("run", shot_file, "--frames", "1001-1003")
    steps = {path: int(read_npz(path)["pipeline_step"]) for path in WORK.glob("sim/checkpoint.*")}
    newest = max(steps, key=lambda path: steps[path])
    change(newest, old, new)
    assert f"{newest}: damaged" in vfx("status", shot_file).output
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert f"{newest} is damaged; going on without it" in result.output
    assert f"going on from a checkpoint at step {min(steps.values())}" in result.output
    assert results() == results(Path("whole"))


def test_a_checkpoint_that_does_not_fit_falls_back_on_the_older(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that vouches for itself, but was made by a program that kept other arrays."""
    monkeypatch.setattr(stage_sim, "_CHECKPOINT_SECONDS", (-1.0, -1.0))
    vfx("run", shot_file, "--work", "whole")
    vfx("run", shot_file, "--frames", "1001-1003")
    for path in WORK.glob("sim/checkpoint.*"):
        arrays = read_npz(path)
        if int(arrays["pipeline_step"]) == 50:
            write_npz(path, {**arrays, "x": arrays["x"][:-1]})
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert "a checkpoint at step 50 does not fit (its array x" in result.output
    assert results() == results(Path("whole"))


@pytest.mark.parametrize("name", ["geometry/solid.npz", "sim/frame.1004.npz",
                                  "align/frame.1004.npz", "align/lineage.npz"])
def test_a_changed_header_of_a_result_is_noticed_without_its_manifest(
    shot_file: Path, vfx, name: str
) -> None:
    """An array whose header says it is shorter is read to its end all the same."""
    vfx("run", shot_file)
    before = results()
    path = WORK / name
    (path.parent / "manifest.json").unlink()
    change(path, b"'descr': '<i", b"'descr': '>i")
    with pytest.raises(DamagedFile):
        read_npz(path)
    assert f"{name}: damaged" in (output := vfx("status", shot_file).output) or (
        row_of("lineage" if "lineage" in name else path.parent.name, output)[2] != "-")
    assert vfx("run", shot_file).exit_code == 0
    assert results() == before


@pytest.mark.parametrize("first, second", [
    ("sim/frame.1002.npz", "sim/frame.1005.npz"), ("align/frame.1002.npz", "align/frame.1005.npz"),
    ("render/plate.1002.exr", "render/plate.1005.exr")])
def test_swapped_files_are_no_results_though_the_manifest_is_gone(
    shot_file: Path, vfx, first: str, second: str
) -> None:
    vfx("run", shot_file)
    before = results()
    a, b = WORK / first, WORK / second
    one, other = a.read_bytes(), b.read_bytes()
    a.write_bytes(other)
    b.write_bytes(one)
    (a.parent / "manifest.json").unlink()
    assert row_of(a.parent.name, vfx("status", shot_file).output)[2] == "1002,1005"
    assert vfx("run", shot_file).exit_code == 0
    assert results() == before


def test_a_member_of_another_file_does_not_pass(tmp_path: Path) -> None:
    """Every checksum in it holds, but it was not written so."""
    for name, value in (("a", 1.0), ("b", 2.0)):
        write_npz(tmp_path / f"{name}.npz", {"x": np.full(4, value), FINGERPRINT: np.array("f")})
    with zipfile.ZipFile(tmp_path / "b.npz") as source:
        foreign = source.read("x.npy")
    with zipfile.ZipFile(tmp_path / "a.npz") as source:
        kept, comment = source.read(f"{FINGERPRINT}.npy"), source.comment
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as target:
        target.writestr("x.npy", foreign)
        target.writestr(f"{FINGERPRINT}.npy", kept)
        target.comment = comment
    with pytest.raises(DamagedFile):
        read_npz(tmp_path / "a.npz")


def test_a_file_without_a_seal_vouches_for_nothing(shot_file: Path, vfx) -> None:
    """Those of a version before are stale, never an error."""
    vfx("run", shot_file)
    before = results()
    path = WORK / "sim/frame.1003.npz"
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b""
    (WORK / "sim/manifest.json").unlink()
    assert row_of("sim", vfx("status", shot_file).output)[1] == "1003"
    assert vfx("run", shot_file).exit_code == 0
    assert results() == before


@pytest.mark.parametrize("harm", ["empty", "junk", "remove", "folder", "other"])
@pytest.mark.parametrize("name", HANDOFF)
def test_a_harmed_hand_off_is_shown_and_made_again(
    shot_file: Path, vfx, name: str, harm: str
) -> None:
    vfx("run", shot_file)
    before = results()
    path = WORK / "comp" / name
    if harm == "empty":
        path.write_bytes(b"")
    elif harm == "junk":
        path.write_bytes(path.read_bytes() + b"junk\n")
    elif harm == "other":
        path.write_bytes((path.parent / HANDOFF[HANDOFF.index(name) - 1]).read_bytes())
    else:
        path.unlink()
        if harm == "folder":
            path.mkdir()
    status = vfx("status", shot_file).output
    assert row_of("comp", status) == ["-", "-", "1001-1006", "-"]
    assert "vfx stage comp" in status
    assert vfx("run", shot_file).exit_code == 0
    assert row_of("comp", vfx("status", shot_file).output)[0] == "1001-1006"
    assert {key: data for key, data in results().items() if ".aside-" not in key} == before


def test_a_hand_off_speaks_of_the_frames_as_they_are_now(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    shot_file.write_text(SHOT.replace("exposure = 0.0", "exposure = 0.5"))
    vfx("stage", "render", shot_file, "--frames", "1002")
    assert row_of("comp", vfx("status", shot_file).output)[:2] == ["-", "1001-1006"]


@pytest.mark.parametrize("harm", ["remove", "other shot", "shorter", "folder", "unsealed"])
def test_a_lineage_that_is_not_of_these_frames_is_made_again(
    shot_file: Path, vfx, harm: str
) -> None:
    vfx("run", shot_file)
    before = results()
    path = WORK / "align/lineage.npz"
    if harm == "other shot":
        other = shot_file.with_name("other.toml")
        other.write_text(SHOT.replace("seed = 1", "seed = 2\ngravity = [0, -3.0, 0]"))
        vfx("run", other, "--work", "other")
        shutil.copy("other/align/lineage.npz", path)
    elif harm == "shorter":
        vfx("run", shot_file, "--work", "shorter", "--frames", "1001-1003")
        shutil.copy("shorter/align/lineage.npz", path)
    elif harm == "unsealed":
        arrays = dict(np.load(path))
        np.savez(path, **(arrays | {"last_frame": np.arange(3)}))
    else:
        path.unlink()
        if harm == "folder":
            path.mkdir()
    status = vfx("status", shot_file).output
    assert row_of("lineage", status)[0] == "-"
    assert f"make the rest and hand it over to comp with:\n  vfx run {shot_file}" in status
    made()
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert "lineage: frames 1001-1006 done" in result.output
    assert not made(), "no frame is made again"
    assert {key: data for key, data in results().items() if ".aside-" not in key} == before


def test_status_trusts_size_and_time_unless_told_to_verify(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    path = WORK / "sim/frame.1004.npz"
    stamp = path.stat()
    change(path, b"position", b"qosition")
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert row_of("sim", vfx("status", shot_file).output)[0] == "1001-1006"
    assert row_of("sim", vfx("status", shot_file, "--verify").output)[2] == "1004"
    before = path.read_bytes()
    assert "frame.1004.npz is damaged" in vfx("run", shot_file).output, "a run reads all"
    assert path.read_bytes() != before
    os.utime(path)
    assert row_of("sim", vfx("status", shot_file).output)[0] == "1001-1006", "read, and found good"


@pytest.mark.parametrize("name", [
    "sim/checkpoint.a.npz", "sim/checkpoint.b.npz", "sim/frame.1003.npz", "sim/manifest.json",
    "geometry/solid.npz", "align/lineage.npz", "render/plate.1002.exr", "comp/handoff.json",
    "sim/diagnostics.csv", "sim/diagnostics.png"])
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_a_folder_or_a_pipe_in_the_place_of_a_file_stops_nothing(
    shot_file: Path, vfx, name: str, kind: str
) -> None:
    vfx("run", shot_file)
    before = results()
    path = WORK / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
        (path / "mine").touch()
    assert vfx("status", shot_file).exit_code == 0
    result = vfx("run", shot_file)
    if result.exit_code:
        assert kind == "pipe" and f"{path}: is a pipe" in result.output
        path.unlink()
    assert vfx("run", shot_file).exit_code == 0
    shot_file.write_text(SHOT.replace("1001-1006", "1001-1007"))
    assert vfx("run", shot_file).exit_code == 0
    after = results()
    assert all(after[key] == before[key] for key in before if "frame" in key or "render" in key)
    if kind == "folder":
        assert list(WORK.rglob("mine")), "what was in the folder is kept"


@pytest.mark.parametrize("harm", ["remove", "junk", "never made"])
@pytest.mark.parametrize("name", ["diagnostics.csv", "diagnostics.png"])
def test_a_harmed_history_is_shown_and_made_again(
    shot_file: Path, vfx, name: str, harm: str
) -> None:
    """Also one that a run was killed before, when all frames were there but no checkpoint."""
    vfx("run", shot_file)
    before = results()
    path = WORK / "sim" / name
    if harm == "never made":
        for checkpoint in WORK.glob("sim/checkpoint.*"):
            checkpoint.unlink()
    if harm == "junk":
        path.write_bytes(b"junk")
    else:
        path.unlink()
    if harm == "never made":
        manifest = path.with_name("manifest.json")
        document = json.loads(manifest.read_text())
        del document["files"][name]
        manifest.write_text(json.dumps(document))
    fault = "damaged" if harm == "junk" else "missing"
    assert f"{path}: {fault}" in vfx("status", shot_file).output
    made()
    assert f"{path} is {fault} and will be made again" in vfx("run", shot_file).output
    assert not made(), "no frame is made again"
    assert results() == before


def test_nothing_is_cleaned_while_a_run_uses_the_folder(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    before = results()
    with in_use(WORK / ".work.lock"):
        result = vfx("clean", shot_file, "--stage", "geometry")
        assert result.exit_code == 3
        assert "a run is using it" in result.output
        assert results() == before
        assert vfx("run", shot_file).exit_code == 0, "several runs may use it"
    assert vfx("clean", shot_file, "--stage", "geometry").exit_code == 0
    assert not results()


def test_what_a_killed_hand_off_left_goes_though_it_is_up_to_date(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    left = WORK / "comp" / ".tmp-host-999999999-12345678-plate.nk"
    left.touch()
    os.utime(left, (0, 0))
    assert vfx("run", shot_file).exit_code == 0
    assert not left.exists()
