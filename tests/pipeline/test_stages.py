"""The table of stages is the one place that knows their names, and what each of them needs."""

from __future__ import annotations

import ast
import json
import os
from pathlib import Path

import pytest
from chaotic_plate import SHOT, write_sky
from PIL import Image

import vfx.pipeline
from vfx.pipeline.shot import inputs as shot_inputs
from vfx.pipeline.shot.inputs import read_notes
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.stages.stage import frames_of, upstream
from vfx.pipeline.stages.table import ALIGN, COMP, GEOMETRY, LINEAGE, RENDER, SIM, STAGE, STAGES
from vfx.pipeline.work.folder import Work

PIPELINE = Path(vfx.pipeline.__file__).parent
NOTES = Path("work/plate/inputs.json")
#: Where such a word is the heading of a table of shot files.
HEADINGS = {"shot/shot_file.py"}


def test_no_module_but_the_table_spells_the_name_of_a_stage() -> None:
    found = []
    for path in sorted(PIPELINE.rglob("*.py")):
        place = path.relative_to(PIPELINE).as_posix()
        if place == "stages/table.py" or place in HEADINGS:
            continue
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        # job.read("lineage", …) names a result, which may be called as its stage is.
        results = {id(node.args[0]) for node in nodes if isinstance(node, ast.Call)
                   and isinstance(node.func, ast.Attribute) and node.func.attr == "read"
                   and node.args}
        found += [f"{place}:{node.lineno}: {node.value!r}" for node in nodes
                  if isinstance(node, ast.Constant) and node.value in STAGE
                  and id(node) not in results]
    assert not found, "\n".join(found)


def test_a_stage_takes_results_of_stages_before_it_alone() -> None:
    for stage in STAGES:
        givers = [take.stage for take in stage.takes if take.stage is not None]
        assert all(STAGES.index(giver) < STAGES.index(stage) for giver in givers), stage.name
        assert len({take.name for take in stage.takes}) == len(stage.takes)
    assert len({(stage.folder, stage.file_name) for stage in STAGES}) == len(STAGES)


def test_frames_follow_from_what_stages_take(tmp_path: Path) -> None:
    path = tmp_path / "plate.toml"
    path.write_text(SHOT.replace("[camera]", "[camera]\nshutter_angle = 180.0\n"))
    shot = load_shot(path)
    wanted = frames_of(STAGES, shot, [1003])
    assert wanted[RENDER] == wanted[COMP] == [1003]
    assert wanted[ALIGN] == [1002, 1003, 1004], "blur takes the frames beside"
    assert wanted[SIM] == wanted[LINEAGE] == [1001, 1002, 1003, 1004]
    assert list(upstream(RENDER, shot, [1003])) == [GEOMETRY, SIM, ALIGN], \
        "pieces that are there need no lineage"
    assert list(upstream(ALIGN, shot, [1003])) == [GEOMETRY, SIM, LINEAGE]


@pytest.fixture
def lit_shot(shot_file: Path) -> Path:
    """A shot with an environment of its own, and a picture on the floor."""
    write_sky(shot_file.parent / "sky.exr", 0.5)
    Image.new("RGB", (4, 4), "gray").save(shot_file.parent / "floor.png")
    text = SHOT.replace("[light]", '[light]\nenvironment = "sky.exr"')
    assert "sky.exr" in text
    shot_file.write_text(text + '\n[floor_look]\ntexture = "floor.png"\n')
    return shot_file


def forbid_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        pytest.fail("an input was read")

    for name in ("environment", "texture", "images", "camera", "densities"):
        monkeypatch.setattr(shot_inputs.Inputs, name, refuse)


def test_status_reads_no_input_that_a_run_has_noted(
    lit_shot: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vfx("run", lit_shot).exit_code == 0
    before = vfx("status", lit_shot, "--verify").output
    with monkeypatch.context() as context:
        forbid_reading(context)
        assert vfx("status", lit_shot).output == before
    for harm in ("{", "[]", '{"program": "", "files": {}}', None):
        NOTES.unlink() if harm is None else NOTES.write_text(harm)
        assert vfx("status", lit_shot).output == before
    assert not NOTES.exists(), "a look writes nothing"


@pytest.mark.parametrize("keep_time", [False, True])
def test_notes_are_for_quick_looks_alone(lit_shot: Path, vfx, keep_time: bool) -> None:
    assert vfx("run", lit_shot).exit_code == 0
    sky = lit_shot.parent / "sky.exr"
    stamp = sky.stat()
    write_sky(sky, 0.25)
    assert sky.stat().st_size == stamp.st_size
    if keep_time:
        os.utime(sky, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    row = next(line for line in vfx("status", lit_shot).output.splitlines()
               if line.startswith("render"))
    assert (row.split()[1] == "1001-1006") == keep_time
    row = next(line for line in vfx("status", lit_shot, "--verify").output.splitlines()
               if line.startswith("render"))
    assert row.split()[2] == "1001-1006", "who verifies reads it"
    assert "render: would make frames 1001-1006 (stale" in vfx(
        "run", lit_shot, "--dry-run").output, "and so does a run"


@pytest.mark.parametrize("harm", [
    b"", b"{", b"[]", b'{"files": 1}', b"\xff", b'{"program": "x", "files": {"a": [1, 2, "h"]}}',
    b"[" * 100_000])
def test_notes_that_are_no_good_are_none(tmp_path: Path, harm: bytes) -> None:
    path = tmp_path / "inputs.json"
    path.write_bytes(harm)
    assert read_notes(path) == {}


@pytest.mark.parametrize("note", [[1, 2], [1, 2, 3], ["1", 2, "h"], [1.0, 2, "h"], None, "abc"])
def test_a_note_of_another_form_is_none(lit_shot: Path, vfx, note: object) -> None:
    assert vfx("stage", "geometry", lit_shot).exit_code == 0
    work = Work(load_shot(lit_shot), Path("work/plate"))
    assert work.inputs.environment_hash() is not None
    work.inputs.note()
    document = json.loads(NOTES.read_text())
    (key,) = (key for key in document["files"] if key.startswith("environment "))
    document["files"][key] = note
    NOTES.write_text(json.dumps(document))
    assert read_notes(NOTES) == {}
