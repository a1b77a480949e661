"""The laws of the cache: what a change touches is remade, exactly that, and nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

import pytest
from chaotic_plate import SHOT, made, write_sky

from vfx.device import open_device
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.stages.table import RENDER
from vfx.pipeline.work.folder import Work
from vfx.raytrace.render import render_picture

FRAMES = range(1001, 1007)


def everything_from(stage: str) -> dict[str, list[int]]:
    order = ["geometry", "sim", "align", "render"]
    whole = {name: [0] if name == "geometry" else list(FRAMES) for name in order}
    return {name: whole[name] for name in order[order.index(stage):]}


def contents(folder: Path) -> dict[str, bytes]:
    """What is in the files of a folder, but for logs, and for the times that manifests note."""
    return {str(path.relative_to(folder)): re.sub(rb'"time": \d+', b"", path.read_bytes())
            if path.name == "manifest.json" else path.read_bytes()
            for path in sorted(folder.rglob("*")) if path.is_file() and "logs" not in path.parts}


def test_a_second_run_makes_nothing(shot_file: Path, vfx) -> None:
    assert vfx("run", shot_file).exit_code == 0
    assert made() == everything_from("geometry")
    before = contents(Path("work"))
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert "up to date" in result.output
    assert made() == {}
    assert contents(Path("work")) == before


@pytest.mark.parametrize("old, new, first", [
    ("cells = [4, 2, 1]", "cells = [4, 2, 2]", "geometry"),
    ("cells = [4, 2, 1]", "cells = [4, 2, 1]\ncenter = [1, 0, 0]", "geometry"),
    ("cells = [4, 2, 1]", "cells = [4, 2, 1]\nvelocity = [1, 0, 0]", "sim"),
    ("density = 2200.0", "density = 2300.0", "sim"),
    ("steps_per_frame = 25", "steps_per_frame = 30", "sim"),
    ("[sim]", "[sim]\ngravity = [0, -1.0, 0]", "sim"),
    ("[sim]", "[[projectiles]]\nposition = [0, 0, 1]\nvelocity = [0, 0, -1]\n[sim]", "sim"),
    ("[sim]", "[align]\ntransition_frames = 7\n[sim]", "align"),
    ("focal_length = 50.0", "focal_length = 35.0", "render"),
    ("exposure = 0.0", "exposure = 1.0", "render"),
    ("specular = 0.1", "specular = 0.2", "render"),
    ("samples = 1", "samples = 2", "render"),
])
def test_a_change_remakes_exactly_what_follows_from_it(
    shot_file: Path, vfx, old: str, new: str, first: str
) -> None:
    vfx("run", shot_file)
    made()
    assert old in SHOT
    shot_file.write_text(SHOT.replace(old, new))
    rows = vfx("status", shot_file).output.splitlines()[2:7]
    order = ["geometry", "sim", "lineage", "align", "render"]
    for name, row in zip(order, rows, strict=True):
        is_stale = row.split()[2] != "-"
        assert is_stale == (name in order[order.index(first):])
    assert vfx("run", shot_file).exit_code == 0
    # Motion may come out the same from other inputs; then what follows from it stays.
    found, allowed = made(), everything_from(first)
    assert found[first] == allowed[first]
    assert found.keys() <= allowed.keys()
    assert vfx("run", shot_file).exit_code == 0
    assert made() == {}


@pytest.mark.parametrize("old, new", [
    ("[sim]", "# a comment\n[sim]"),
    ("[materials.glass]", "[materials.unused]\ndensity = 1.0\n[materials.glass]"),
    ("seed = 1", "seed = 1\nhorizon = 3.0"),
    ("[floor]", "[floor]"),
])
def test_a_change_without_meaning_remakes_nothing(
    shot_file: Path, vfx, old: str, new: str
) -> None:
    vfx("run", shot_file)
    made()
    shot_file.write_text(SHOT.replace(old, new))
    assert vfx("run", shot_file, "--threads", 1).exit_code == 0
    assert made() == {}


COLLIDER = """
[[colliders]]
shape = "box"
position = [0, -1, 0]
[colliders.surface]
preset = "stone"
"""


@pytest.mark.parametrize("old, new, first", [
    ("position = [0, -1, 0]", "keys = [[0, 0, -1, 0], [1, 0, -2, 0]]", "sim"),
    ('preset = "stone"', 'albedo = [0.3, 0, 0]', "render"),
    ("position = [0, -1, 0]", "position = [0, -1, 0]\nvisible = false", "render"),
])
def test_a_changed_collider_remakes_the_frames_and_its_look_only_them(
    shot_file: Path, vfx, old: str, new: str, first: str
) -> None:
    shot_file.write_text(SHOT + COLLIDER)
    assert vfx("run", shot_file).exit_code == 0
    made()
    shot_file.write_text(SHOT + COLLIDER.replace(old, new))
    assert vfx("run", shot_file).exit_code == 0
    # The pieces may come out the same; the pictures show the collider at its new place.
    found = made()
    assert found[first] == everything_from(first)[first]
    assert found["render"] == list(FRAMES) and "geometry" not in found


def picture_settings(shot_file: Path) -> object:
    """What of the shot counts for its pictures."""
    take, = (take for take in RENDER.takes if take.name == "shot.picture")
    return take.value(Work(load_shot(shot_file), Path("work")), 1001)


@pytest.mark.parametrize("hidden", ["shape = 'plane'", "shape = 'sphere'\nvisible = false"])
def test_a_collider_that_no_picture_shows_does_not_count_for_it(
    shot_file: Path, hidden: str
) -> None:
    before = picture_settings(shot_file)
    shot_file.write_text(SHOT + f"[[colliders]]\n{hidden}\n")
    assert picture_settings(shot_file) == before


def test_a_longer_shot_keeps_the_frames_it_has(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    shot_file.write_text(SHOT.replace("1001-1006", "1001-1008"))
    assert vfx("run", shot_file).exit_code == 0
    assert made() == {name: [1007, 1008] for name in ("sim", "align", "render")}


def test_a_changed_environment_file_remakes_the_frames(shot_file: Path, vfx) -> None:
    environment = shot_file.parent / "sky.exr"
    write_sky(environment, 0.5)
    shot_file.write_text(SHOT.replace("[light]", "[light]\nenvironment = 'sky.exr'"))
    vfx("run", shot_file)
    made()
    write_sky(environment, 1.0)
    assert vfx("run", shot_file).exit_code == 0
    assert made() == everything_from("render")


def test_frames_are_made_as_asked_and_sim_through_the_last(shot_file: Path, vfx) -> None:
    assert vfx("run", shot_file, "--frames", "1002-1004x2").exit_code == 0
    assert made() == {"geometry": [0], "sim": [1001, 1002, 1003, 1004],
                      "align": [1002, 1004], "render": [1002, 1004]}
    table = vfx("status", shot_file).output
    assert "1002,1004" in table
    assert "1005-1006" in table


def test_force_makes_again_what_is_done(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    before = contents(Path("work/plate/sim"))
    assert vfx("stage", "render", shot_file, "--frames", 1003, "--force").exit_code == 0
    assert made() == {"render": [1003]}
    assert vfx("stage", "sim", shot_file, "--force").exit_code == 0
    assert made() == {"sim": list(FRAMES)}
    assert contents(Path("work/plate/sim")) == before


def test_dry_run_writes_nothing_and_shows_the_commands(shot_file: Path, vfx) -> None:
    result = vfx("run", shot_file, "--dry-run", "--frames", "1001-1003")
    assert result.exit_code == 0
    commands = [line.strip() for line in result.output.splitlines() if line.startswith("  ")]
    assert commands == [
        f"vfx stage geometry {shot_file}",
        *(f"vfx stage {name} {shot_file} --frames 1001-1003" for name in (
            "sim", "lineage", "align", "render", "comp"))]
    assert not Path("work").exists()
    assert made() == {}
    for command in commands:
        assert vfx(*command.split()[1:]).exit_code == 0, command
    result = vfx("run", shot_file, "--dry-run", "--frames", "1001-1003")
    assert [line.split(":")[0] for line in result.output.splitlines()
            if line.endswith("up to date, nothing to do")] == [
        "geometry", "sim", "lineage", "align", "render", "comp"]


def test_a_changed_shot_removes_nothing(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    shot_file.write_text(SHOT.replace("2200.0", "2300.0"))
    before = contents(Path("work"))
    result = vfx("stage", "sim", shot_file, "--dry-run", "--frames", "1001-1002")
    assert "sim: would make frames 1001-1002 (stale 1001-1002)" in result.output
    assert contents(Path("work")) == before
    vfx("stage", "sim", shot_file, "--frames", "1001-1002")
    assert set(contents(Path("work"))) >= set(before)


@pytest.mark.parametrize("name, stage", [
    ("geometry/solid.npz", "geometry"), ("sim/frame.1004.npz", "sim"),
    ("align/frame.1004.npz", "align"), ("render/plate.1004.exr", "render")])
@pytest.mark.parametrize("harm", ["truncate", "flip", "remove"])
def test_a_damaged_file_is_noticed_said_and_remade(
    shot_file: Path, vfx, name: str, stage: str, harm: str
) -> None:
    vfx("run", shot_file)
    made()
    before = contents(Path("work"))
    path = Path("work/plate") / name
    data = bytearray(path.read_bytes())
    if harm == "remove":
        path.unlink()
    else:
        data[len(data) // 2] ^= 255
        path.write_bytes(data if harm == "flip" else data[: len(data) // 2])
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert list(made()) == [stage], "its result is the same, so nothing follows from it"
    if harm != "remove":
        assert f"{name} is damaged" in result.output
    after = contents(Path("work"))
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("stage", ["geometry", "sim", "align", "render"])
@pytest.mark.parametrize("frames", [(), ("--frames", "1002")])
def test_a_damaged_manifest_is_said_and_listed_again_from_the_files(
    shot_file: Path, vfx, stage: str, frames: tuple[str, ...]
) -> None:
    vfx("run", shot_file)
    made()
    path = Path("work/plate") / stage / "manifest.json"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    before = vfx("status", shot_file).output
    assert f"{path}: damaged" in before
    assert [row.split()[2:] for row in before.splitlines()[2:7]] == 5 * [["-", "-", "-"]]
    result = vfx("run", shot_file, *frames)
    assert result.exit_code == 0
    assert f"{stage}: its manifest is damaged" in result.output
    assert made() == {}
    listed = json.loads(path.read_text())["files"]
    results = {name: entry["hash"] for name, entry in json.loads(whole)["files"].items()}
    assert {name: entry["hash"] for name, entry in listed.items()} == results
    assert "damaged;" not in vfx("status", shot_file).output


def test_without_its_manifest_a_damaged_frame_is_still_noticed(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    for stage, name in (("sim", "frame.1004.npz"), ("render", "plate.1002.exr")):
        folder = Path("work/plate") / stage
        (folder / "manifest.json").write_text("{")
        (folder / name).write_bytes((folder / name).read_bytes()[:-60])
    rows = [row.split() for row in vfx("status", shot_file).output.splitlines()[2:6]]
    assert rows[1][1:] == ["1001-1003,1005-1006", "-", "1004", "-"]
    result = vfx("run", shot_file)
    assert result.exit_code == 0
    assert "sim/frame.1004.npz is damaged" in result.output
    assert "other settings" not in result.output
    assert made() == {"sim": [1004], "render": [1002]}


def test_a_damaged_lineage_is_shown_said_and_made_again(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    path = Path("work/plate/align/lineage.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    row = vfx("status", shot_file).output.splitlines()[4].split()
    assert row == ["lineage", "-", "-", "1001-1006", "-"]
    result = vfx("run", shot_file)
    assert f"lineage: {path} is damaged and will be made again" in result.output
    assert path.read_bytes() == whole
    assert made() == {}
    assert vfx("status", shot_file).output.splitlines()[4].split()[1] == "1001-1006"


def test_a_frame_that_was_never_listed_is_known_by_what_it_carries(shot_file: Path, vfx) -> None:
    """A run may be killed between the publishing of a file and its listing."""
    vfx("run", shot_file)
    made()
    path = Path("work/plate/sim/manifest.json")
    document = json.loads(path.read_text())
    del document["files"]["frame.1005.npz"]
    path.write_text(json.dumps(document))
    assert vfx("run", shot_file).exit_code == 0
    assert made() == {}
    assert "frame.1005.npz" in json.loads(path.read_text())["files"]


def test_a_frame_tells_by_its_own_header_that_it_is_done(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    Path("work/plate/render/manifest.json").unlink()
    assert vfx("run", shot_file).exit_code == 0
    assert made() == {}


def test_manifests_say_what_was_made_from_what_and_where(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    manifest = json.loads(Path("work/plate/sim/manifest.json").read_text())
    assert manifest["stage"] == "sim"
    entry = manifest["files"]["frame.1001.npz"]
    assert entry["device"] == open_device("cpu").description
    assert entry["size"] == Path("work/plate/sim/frame.1001.npz").stat().st_size


def test_missing_upstream_gives_the_command_to_run(shot_file: Path, vfx) -> None:
    result = vfx("stage", "sim", shot_file)
    assert result.exit_code == 3
    assert f"vfx stage geometry {shot_file}" in result.output
    assert not Path("work").exists()
    vfx("run", shot_file, "--frames", "1001-1003")
    result = vfx("stage", "render", shot_file, "--frames", "1005")
    assert result.exit_code == 3
    assert f"vfx stage sim {shot_file} --frames 1004-1005" in result.output


def test_a_frame_that_fails_names_the_command_and_the_others_are_made(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_once(device, solid, pieces, *rest, **more):
        if pieces.frame == 1003:
            raise RuntimeError("the tree has a hole")
        return render_picture(device, solid, pieces, *rest, **more)

    monkeypatch.setattr("vfx.raytrace.render.render_picture", fail_once)
    result = vfx("run", shot_file, "--device", "cpu")
    assert result.exit_code == 1
    assert "render 1003: RuntimeError: the tree has a hole" in result.output
    assert f"vfx stage render {shot_file} --frames 1003 --device cpu" in result.output
    assert made()["render"] == [1001, 1002, 1004, 1005, 1006]


def test_clean_removes_a_stage_and_what_follows_but_nothing_else(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    made()
    note = Path("work/plate/render/notes.txt")
    note.write_text("mine")
    assert vfx("clean", shot_file, "--stage", "align").exit_code == 0
    assert note.exists()
    left = set(contents(Path("work/plate")))
    assert "sim/frame.1001.npz" in left
    assert not any(name.startswith(("align", "review")) for name in left)
    assert {name for name in left if name.startswith("render")} == {"render/notes.txt"}
    assert vfx("run", shot_file).exit_code == 0
    assert made() == everything_from("align")


def test_clean_leaves_pictures_of_other_names(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    mine = [Path(f"work/plate/render/{name}.1001.exr") for name in ("precomp", "plate_graded")]
    for path in mine:
        path.write_bytes(b"mine")
    assert vfx("clean", shot_file, "--stage", "render").exit_code == 0
    assert sorted(Path("work/plate/render").iterdir()) == sorted(mine)


def test_clean_of_a_disk_that_cannot_be_written_ends_in_a_sentence(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    vfx("run", shot_file)

    def refused(path: Path, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr(Path, "unlink", refused)
    result = vfx("clean", shot_file, "--stage", "render")
    assert result.exit_code == 3
    assert "cannot be written (Read-only file system)" in result.stderr


def test_status_shows_stages_by_frames(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    Path("work/plate/render/plate.1002.exr").unlink()
    path = Path("work/plate/render/plate.1005.exr")
    path.write_bytes(path.read_bytes()[:-9])
    shot_file.write_text(SHOT.replace("1001-1006", "1001-1008"))
    lines = vfx("status", shot_file).output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("frames "))
    assert [line.split()[1] for line in lines[start:start + 6]] == [
        "1001", "######..", "######..", "######..", "#.##!#..", "#~##~#.."]
    assert lines[7].split() == ["comp", "1001,1003-1004,1006", "1002,1005", "-", "1007-1008"]
    shot_file.write_text(SHOT.replace("1001-1006", "1001-1450"))
    lines = vfx("status", shot_file).output.splitlines()
    assert len(lines[start]) <= 110 and "the worst of 5 frames" in lines[start + 6]


def test_status_ends_with_the_command_that_does_the_rest(shot_file: Path, vfx) -> None:
    here = ("--work", "elsewhere")
    vfx("run", shot_file, "--frames", "1001-1003", *here)
    lines = vfx("status", shot_file, *here).output.splitlines()
    assert lines[7].split() == ["comp", "1001-1003", "-", "-", "1004-1006"]
    assert lines[-1] == f"  vfx run {shot_file} --work elsewhere"
    vfx(*lines[-1].split()[1:])
    assert "with:" not in vfx("status", shot_file, *here).output
    Path("elsewhere/comp/handoff.json").unlink()
    lines = vfx("status", shot_file, *here).output.splitlines()
    assert lines[-1] == f"  vfx stage comp {shot_file} --work elsewhere"
    vfx(*lines[-1].split()[1:])
    assert "with:" not in vfx("status", shot_file, *here).output


def test_clean_of_comp_leaves_the_frames(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    assert vfx("clean", shot_file, "--stage", "comp").exit_code == 0
    assert not Path("work/plate/comp").exists() and not Path("work/plate/review").exists()
    assert len(list(Path("work/plate/render").glob("*.exr"))) == 6


@pytest.mark.parametrize("words", [["review"], ["stage", "comp"], ["export", "--to", "obj"],
                                   ["stage", "lineage"], ["status"]])
def test_what_takes_results_makes_no_work_folder(shot_file: Path, vfx, words: list[str]) -> None:
    result = vfx(*words, shot_file, "--work", "not/there")
    assert result.exit_code == (0 if words == ["status"] else 3)
    assert not Path("not").exists()
