"""The table of stages is the one place that knows their names, and what each of them needs."""

from __future__ import annotations

import ast
from pathlib import Path

from stand_ins import SHOT

import vfx.pipeline
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.stages.stage import frames_of, upstream
from vfx.pipeline.stages.table import ALIGN, COMP, GEOMETRY, LINEAGE, RENDER, SIM, STAGE, STAGES

PIPELINE = Path(vfx.pipeline.__file__).parent
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
