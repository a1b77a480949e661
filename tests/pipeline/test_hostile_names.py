"""Names with quotes, commands and tokens in them reach every farm's tasks as they are.

Each script that is generated is run, with a program in the place of vfx that notes its words;
whatever else a name makes a shell do would leave a file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from test_farm import submission

from vfx.pipeline.errors import ShotError
from vfx.pipeline.farm import deadline, graph, local, opencue, openjd, slurm
from vfx.pipeline.farm.graph import FarmJob, Submission
from vfx.pipeline.farm.submit import _FARM
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.stages.comp_scripts import blender_script, nuke_script
from vfx.pipeline.stages.table import COMP, GEOMETRY, RENDER, SIM

NAMES = [
    "a b  c", "it's", 'say "so"', "$(touch canary)", "`touch canary`", "; touch canary;",
    "& touch canary &", "a|touch canary", "$HOME ${PATH}", "%x %j %% %A_%a", "{{Param.Work}}",
    "{{ RawParam.Shot }} {frames}", "été 雪 \u00a0", "-rf", "--work", "#IFRAME# # x", "~root",
    "<STARTFRAME><QUOTE>", "@COUNT@ @COMMAND@ @TRIES@", "*?[a-z]", "!! x", "a=b,c", "#SBATCH --x",
    "packjob HETJOB", "CHUNKS", "(x) <y >z", "[$]\\'\"", "a\\", "ends in a space "]
STUB = """#!/bin/bash
printf '%s\\0' "$0" "$@" >> "${0%/*}/words"
printf '\\n' >> "${0%/*}/words"
"""


@pytest.fixture(params=NAMES)
def plan(request: pytest.FixtureRequest, tmp_path: Path,
         monkeypatch: pytest.MonkeyPatch) -> Submission:
    """A submission all of whose paths go through a folder of a hostile name."""
    folder = tmp_path / request.param
    (folder / "cage").mkdir(parents=True)
    monkeypatch.chdir(folder / "cage")
    program = folder / "vfx"
    program.write_text(STUB)
    program.chmod(0o755)
    frames = (1001, 1002, 1003)
    jobs = (FarmJob(GEOMETRY, (frames,), None), FarmJob(SIM, ((1003,),), GEOMETRY),
            FarmJob(RENDER, ((1001, 1002), (1003,)), SIM, is_chunked=True),
            FarmJob(COMP, (frames,), RENDER))
    return submission(folder, shot=folder / f"{request.param}.toml", work=folder / request.param,
                      program=str(program), jobs=jobs, frames=frames, threads=2)


def expected(plan: Submission, chunk_ends: bool = False) -> list[list[str]]:
    """The words of every task that has to run."""
    words = []
    for job in plan.jobs:
        for chunk in job.chunks:
            frames = (f"{chunk[0]}-{chunk[-1]}" if chunk_ends and job.is_chunked
                      else graph.format_frames(chunk))
            words.append([*plan.command(job, frames),
                          *(["--threads", "2"] if job.stage is not COMP else [])])
    return words


def noted(plan: Submission) -> list[list[str]]:
    text = (Path(plan.program).parent / "words").read_text()
    return [line.split("\0")[:-1] for line in text.removesuffix("\n").split("\n")]


def run(words: list[str], **environment: str) -> None:
    done = subprocess.run(words, env={**os.environ, **environment}, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def assert_nothing_else(plan: Submission) -> None:
    """Nothing was written but what the farm and the program write."""
    folder = Path(plan.program).parent
    assert {path.name for path in folder.iterdir()} <= {"cage", "vfx", "words", plan.work.name}
    assert not list((folder / "cage").iterdir())
    assert {path.name for path in plan.work.iterdir()} == {"farm"}
    assert {path.name for path in folder.parent.iterdir()} <= {folder.name, "farm", "sessions"}


def as_sbatch_reads(line: str) -> str:
    """The value of a directive: quotes group, a backslash takes what follows as it is."""
    text = re.sub(r"(?i)(pack|het)job.*", "", line.partition("=")[2])
    value, quote, escaped = "", "", False
    for letter in text:
        if escaped:
            value, escaped = value + letter, False
        elif letter == "\\":
            escaped = True
        elif quote:
            quote, value = ("", value) if letter == quote else (quote, value + letter)
        elif letter in "\"'":
            quote = letter
        else:
            assert letter not in " #", line
            value += letter
    assert not quote and not escaped
    return value


def test_slurm_tasks_get_every_name_as_it_is(plan: Submission) -> None:
    if "\\" in str(plan.work):
        with pytest.raises(ShotError, match="backslash"):
            slurm.check(plan)
        return
    for job, script in zip(plan.jobs, slurm.write_files(plan), strict=True):
        lines = [line for line in script.read_text().splitlines() if line.startswith("#SBATCH")]
        given = {line.split("=")[0].removeprefix("#SBATCH --"): as_sbatch_reads(line)
                 for line in lines if "=" in line}
        assert given["chdir"] == str(plan.work)
        assert given["job-name"] == f"plate.{job.name}"
        log = re.sub("%(.)", lambda match: {"%": "%"}.get(match[1], "7"), given["output"])
        assert Path(log).parent == plan.folder("slurm")
        for task in range(len(job.chunks)):
            run(["bash", str(script)], SLURM_ARRAY_TASK_ID=str(task), SLURM_CPUS_ON_NODE="2")
    assert noted(plan) == expected(plan)
    assert_nothing_else(plan)


def test_opencue_tasks_get_every_name_as_it_is(plan: Submission) -> None:
    opencue.write_files(plan)
    root = ElementTree.parse(plan.folder("opencue") / "job.xml").getroot()
    for job, layer in zip(plan.jobs, root.iter("layer"), strict=True):
        command = layer.findtext("cmd") or ""
        assert re.findall("#[A-Z]+#", command) == ["#IFRAME#"]
        for task in range(len(job.chunks)):
            run(["bash", "-c", command.replace("#IFRAME#", str(task + 1))])
    assert noted(plan) == expected(plan)
    assert_nothing_else(plan)


def test_deadline_tasks_get_every_name_as_it_is(plan: Submission) -> None:
    if str(plan.work) != str(plan.work).rstrip():
        with pytest.raises(ShotError, match="ends in a space"):
            deadline.check(plan)
        return
    deadline.write_files(plan)
    for job in plan.jobs:
        infos = {}
        for kind in ("job", "plugin"):
            lines = re.split("\r\n|\r|\n", (plan.folder("deadline") / f"{job.name}.{kind}")
                             .read_text())
            assert lines.pop() == ""
            infos[kind] = {key: value.strip() for key, _, value in
                           (line.partition("=") for line in lines)}
            assert len(infos[kind]) == len(lines)
        assert infos["job"]["OutputDirectory0"] == str(plan.work / job.name)
        for chunk in job.chunks:
            # Words are split at spaces, and nothing in them is quoted in any way.
            arguments = infos["plugin"]["Arguments"].replace("<STARTFRAME>", str(chunk[0]))
            words = arguments.replace("<ENDFRAME>", str(chunk[-1])).split(" ")
            assert all(re.fullmatch("[A-Za-z0-9./-]+", word) for word in words)
            subprocess.run([infos["plugin"]["Executable"], *words],
                           cwd=infos["plugin"]["StartupDirectory"], check=True)
    assert noted(plan) == expected(plan, chunk_ends=True)
    assert_nothing_else(plan)


def test_the_script_that_submits_to_deadline_writes_through_no_link(tmp_path: Path) -> None:
    plan = submission(tmp_path / "$(touch x) ' \"")
    script, = deadline.write_files(plan)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (script.parent / "sim.job.ready").symlink_to(victim)
    fake = tmp_path / "bin/deadlinecommand"
    fake.parent.mkdir()
    fake.write_text("#!/bin/bash\necho JobID=7\n")
    fake.chmod(0o755)
    run(["bash", str(script)], PATH=f"{fake.parent}:{os.environ['PATH']}")
    assert victim.read_text() == "mine"


def test_a_local_pool_gives_its_tasks_every_name_as_it_is(plan: Submission) -> None:
    with StopSignals().caught() as stop:
        local.Pool(plan, Progress(quiet=True), stop).run()
    assert sorted(noted(plan)) == sorted(expected(plan))
    assert_nothing_else(plan)


def test_commands_that_are_shown_can_be_pasted(plan: Submission) -> None:
    shown = [shlex.split(line) for line in graph.describe(plan) if line.startswith("  ")]
    assert shown == expected(plan)
    for farm in _FARM.values():
        for line in farm.commands(plan):
            assert any(word.startswith(str(plan.work)) for word in shlex.split(line)), line
    assert str(plan.work) in shlex.split(plan.local_command())


@pytest.mark.parametrize("name", [
    "it's \"$(touch canary)` ;&|", "{{Param.Work}} {frames} {{", "été 雪 %s -p \\ "])
def test_openjd_tasks_get_every_name_as_it_is(tmp_path: Path, name: str) -> None:
    program = Path(sys.executable).with_name("openjd")
    if not program.exists():
        pytest.skip("openjd is not installed; pip install openjd-cli")
    folder = tmp_path / name
    folder.mkdir()
    stub = folder / "vfx"
    stub.write_text(STUB)
    stub.chmod(0o755)
    shot = folder / f"{name}.toml"
    shot.write_text("")
    jobs = (FarmJob(SIM, ((1002,),), None),
            FarmJob(RENDER, ((1001, 1002),), SIM, is_chunked=True))
    plan = submission(folder, shot=shot, work=folder / name, program=str(stub), jobs=jobs,
                      frames=(1001, 1002), threads=2)
    openjd.write_files(plan)
    values = json.loads((plan.folder("openjd") / openjd.VALUES).read_text())["parameterValues"]
    assert {entry["name"]: entry["value"] for entry in values} == {
        "Shot": str(shot), "Work": str(plan.work)}
    done = subprocess.run([str(program), *openjd._words(plan)[1:]], cwd=folder, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    sim, render = noted(plan)
    assert sim == [*plan.command(jobs[0], "1001-1002"), "--threads", "2"]
    assert render == [*plan.command(jobs[1], "1001-1002"), "--threads", "2"]
    shutil.rmtree(plan.work)
    assert {path.name for path in folder.iterdir()} == {"vfx", "words", shot.name}


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "a\tb", "a\x1b[2Jb", "a\x7fb", "a\x85b",
                                  "a\u2028b", "a\udcffb"])
def test_a_name_with_control_characters_or_no_text_is_refused(
    shot_file: Path, vfx, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkdir(name)
    (shot_file.parent / name / "plate.toml").write_text(shot_file.read_text())
    before = sorted(shot_file.parent.rglob("*"))
    commands = [["run"], ["stage", "comp"], ["status"], ["check"], ["preview"], ["review"],
                ["clean", "--stage", "sim"], ["export", "--to", "usd"],
                *(["submit", "--farm", farm, "--no-start"] for farm in _FARM)]
    reason = "no UTF-8 text" if "\udcff" in name else "control character"
    for words in commands:
        for paths in ([f"{name}/plate.toml"], ["plate.toml", "--work", name]):
            result = vfx(*words, *paths)
            assert (result.exit_code, reason in result.stderr) == (2, True), result.output
            assert result.stderr.isascii()
    for words in (["new", name], ["asset", "vase", f"{name}.obj"],
                  ["preview", "plate.toml", "-o", f"{name}.png"],
                  ["export", "plate.toml", "--to", "usd", "--output", f"{name}.usd"]):
        assert vfx(*words).exit_code == 2
    monkeypatch.chdir(name)
    for words in commands:
        result = vfx(*words, shot_file, "--work", shot_file.parent / "work")
        assert (result.exit_code, reason in result.stderr) == (2, True), result.output
    assert sorted(shot_file.parent.rglob("*")) == before


def test_a_submission_refuses_words_that_are_more_than_a_line(tmp_path: Path) -> None:
    for change in ({"program": "/a\nb"}, {"shot": tmp_path / "a\nb"}, {"work": tmp_path / "\r"},
                   {"extra": ("Priority=1\nPlugin=Python",)}):
        with pytest.raises(ShotError, match="control character"):
            submission(tmp_path, **change)


def test_a_shot_that_begins_like_an_option_is_shown_so_that_it_can_be_pasted(
    shot_file: Path, vfx
) -> None:
    shot_file.rename("-plate.toml")
    output = vfx("run", "--dry-run", "--", "-plate.toml").output
    commands = [shlex.split(line) for line in output.splitlines() if line.startswith("  ")]
    assert len(commands) == 6
    for words in commands:
        assert vfx(*words[1:], "--dry-run").exit_code in (0, 3)
        assert str(shot_file.parent / "-plate.toml") in words


def test_names_in_files_stay_words_in_scripts_for_others(tmp_path: Path) -> None:
    tkinter = pytest.importorskip("tkinter")
    canary = tmp_path / "canary"
    evil = f'x}} [exec touch {canary}] {{"$a\\\nexec touch {canary}\nRoot {{'
    document = {
        "shot": "plate", "frames": "1001", "first": 1001, "last": 1001, "fps": 24.0,
        "resolution": [4, 3], "pixel_aspect": 1.0, "color_space": {"name": evil},
        "camera": {"frames": [], "film_width": 36.0, "film_height": 24.0},
        "sequences": [{"name": "plate", "pattern": "../render/plate.%04d.exr",
                       "passes": [{"layer": evil, "channels": [f"{evil}.R"], "what": "a pass"}],
                       "cryptomattes": [{"key": "1", "name": f"{evil}2"}]}]}
    nodes: list[str] = []
    tcl = tkinter.Tcl()

    def note(kind: str, body: str) -> str:
        nodes.append(kind)
        for word in tcl.splitlist(body):
            if kind != "Read":                   # whose file is an expression
                tcl.call("subst", word)
        return ""

    for kind in ("Root", "Read", "Shuffle", "Cryptomatte", "add_layer"):
        tcl.createcommand(kind, lambda body, kind=kind: note(kind, body))
    for kind in ("version", "push", "stack"):
        tcl.createcommand(kind, lambda *_: "0")
    tcl.eval(nuke_script(document))
    assert nodes == ["Root", "add_layer", "Read", "Cryptomatte", "Shuffle"]
    compile(blender_script(document), "blender.py", "exec")
    assert not canary.exists()
