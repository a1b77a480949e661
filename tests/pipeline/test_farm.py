"""Shots on farms: every frame once, in the right order, and the same pixels whatever is killed."""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from one_node_slurm import Slurm, one_node_slurm, why_not
from small_plate import plate_shot

from vfx.pipeline.cli.commands import main
from vfx.pipeline.farm import deadline, opencue, openjd, slurm
from vfx.pipeline.farm.graph import FarmJob, Submission, describe, find_program, split
from vfx.pipeline.shot.frames import parse_parts
from vfx.pipeline.stages.table import ALIGN, COMP, GEOMETRY, LINEAGE, RENDER, SIM
from vfx.raytrace.film.exr import read_exr

SHOT = plate_shot("1001-1004", steps=2000, resolution=(48, 27), side=14)
#: A tile that falls, breaks and comes to rest: rigid, in bonds and rigid again.
DROP = """\
[shot]
name = "drop"
frames = "1001-1006"
[time]
time_scale = 1.0
[[bodies]]
name = "tile"
material = "clay"
cells = [20, 3, 20]
spacing = 0.01
rotation = [20.0, 0.0, 10.0]
place = "on-floor"
fall_speed = 6.0
[materials.clay]
density = 2000.0
bulk_modulus = 4e8
strain_limit = 1.5e-3
strain_scatter = 0.1
[sim]
method = "auto"
[camera]
position = [0.0, 0.3, 0.8]
target = [0.0, 0.05, 0.0]
[render]
resolution = [48, 27]
samples = 2
"""
STAGES = ["geometry", "sim", "lineage", "align", "render", "comp"]


@pytest.fixture(scope="module")
def shot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("farm") / "plate.toml"
    path.write_text(SHOT)
    return path


@pytest.fixture(scope="module")
def undisturbed(shot: Path) -> dict[str, bytes]:
    """All results of a run that nothing happened to."""
    return run_undisturbed(shot)


def run_undisturbed(shot: Path) -> dict[str, bytes]:
    folder = shot.parent / "undisturbed"
    result = CliRunner().invoke(main, ["run", str(shot), "--work", str(folder),
                                       "--device", "cpu"])
    assert result.exit_code == 0, result.output
    return results(folder)


def results(folder: Path) -> dict[str, bytes]:
    paths = [path for stage in ("geometry", "sim", "align")
             for path in sorted((folder / stage).glob("*.npz"))
             if not path.name.startswith("checkpoint")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths} | {
        path.name: pixels(path) for path in sorted((folder / "render").glob("*.exr"))}


def pixels(path: Path) -> bytes:
    channels, _ = read_exr(path)
    return b"".join(name.encode() + channels[name].tobytes() for name in sorted(channels))


def submission(folder: Path, **changes: object) -> Submission:
    chunks = ((1001, 1002), (1003, 1004))
    jobs = (
        FarmJob(GEOMETRY, ((1001, 1002, 1003, 1004),), None),
        FarmJob(SIM, ((1004,),), GEOMETRY), FarmJob(LINEAGE, ((1004,),), SIM),
        FarmJob(ALIGN, chunks, LINEAGE, is_chunked=True),
        FarmJob(RENDER, chunks, ALIGN, is_chunked=True, is_paired=True),
        FarmJob(COMP, ((1001, 1002, 1003, 1004),), RENDER))
    values = {"name": "plate", "shot": folder / "a shot's.toml", "work": folder / "work",
              "frames": (1001, 1002, 1003, 1004), "chunk": 2, "jobs": jobs, "device": "cpu"}
    return Submission(**{**values, **changes})


def kill_at_random(folder: Path, count: int, done: threading.Event, seed: int) -> list[str]:
    """Kill tasks that work in ``folder``, so many in all; return which."""
    chance = random.Random(seed)
    killed: list[str] = []
    while len(killed) < count and not done.wait(chance.uniform(0.1, 0.9)):
        tasks = [(pid, words) for pid, words in processes() if "stage" in words
                 and str(folder) in words and words[0].startswith(("python", "vfx"))]
        if tasks:
            pid, words = chance.choice(tasks)
            try:
                os.kill(pid, signal.SIGKILL)
                killed.append(words[words.index("stage") + 1])
            except ProcessLookupError:
                pass
    return killed


def processes() -> Iterator[tuple[int, list[str]]]:
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode().split("\0")
            if entry.name.isdecimal() and words[0]:
                yield int(entry.name), [Path(words[0]).name, *words[1:]]
        except (OSError, UnicodeDecodeError):
            continue


def run_while_killing(folder: Path, run: Callable[[], bool], count: int, seed: int) -> list[str]:
    """Run until it succeeds, while tasks are killed; return which were."""
    done = threading.Event()
    killed: list[str] = []
    killer = threading.Thread(
        target=lambda: killed.extend(kill_at_random(folder, count, done, seed)))
    killer.start()
    try:
        for _ in range(count + 1):
            if run():
                break
        else:
            pytest.fail(f"did not end well, killed were {killed}")
    finally:
        done.set()
        killer.join()
    return killed


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=40, unique=True).map(sorted),
       st.integers(1, 50))
def test_every_frame_is_in_just_one_chunk(frames: list[int], chunk: int) -> None:
    chunks = split(frames, chunk)
    assert [frame for part in chunks for frame in part] == frames
    assert max(map(len, chunks)) <= chunk


def test_a_dry_run_shows_every_command_and_writes_nothing(shot: Path, vfx) -> None:
    folder = shot.parent / "dry"
    for farm in ("slurm", "openjd", "opencue", "deadline", "local"):
        result = vfx("submit", shot, "--farm", farm, "--chunk", 2, "--work", folder, "--dry-run")
        assert result.exit_code == 0, result.output
        assert [line.split(":")[0] for line in result.output.splitlines()
                if line[0:1].isalpha() and "task" in line] == STAGES
        assert f"stage render {shot} --work {folder} --frames 1003-1004" in result.output
        assert "align: 2 tasks, after lineage\n" in result.output
        assert "render: 2 tasks, after align\n" in result.output
    assert not folder.exists()


def test_the_commands_of_a_dry_run_can_be_pasted(tmp_path: Path) -> None:
    plan = submission(tmp_path, work=tmp_path / "a folder's", threads=8)
    for line in describe(plan):
        if line.startswith("  "):
            words = shlex.split(line)
            assert words[words.index("--work") + 1] == str(plan.work)
            assert words[3] == str(plan.shot)
            assert (words[-2:] == ["--threads", "8"]) == (words[2] != "comp")


def test_chunks_follow_each_other_where_frames_need_no_others(shot: Path, vfx, tmp_path) -> None:
    """Motion vectors and blur take the pieces of the next frame, which another chunk aligns."""
    alone = tmp_path / "plate.toml"
    alone.write_text(SHOT + 'passes = ["beauty", "depth"]\n')
    words = ("--farm", "slurm", "--chunk", 2, "--work", tmp_path / "work", "--dry-run")
    output = vfx("submit", alone, *words).output
    assert "render: 2 tasks, after align, chunk by chunk" in output
    assert "--dependency=aftercorr:<align>" in output
    output = vfx("submit", shot, *words, "--frames", "1001-1002").output
    assert "stage align" in output and "--frames 1001-1002 " in output
    assert "--frames 1003 " in output, "the frame after the last is aligned, too"
    assert "aftercorr" not in output


def test_what_is_done_is_left_out(shot: Path, undisturbed, vfx) -> None:
    folder = shot.parent / "left out"
    shutil.copytree(shot.parent / "undisturbed", folder)
    for name in ("plate.1001.exr", "plate.1004.exr"):
        (folder / "render" / name).unlink()
    output = vfx("submit", shot, "--farm", "local", "--chunk", 1, "--work", folder,
                 "--dry-run").output
    assert "geometry" not in output and "align" not in output
    assert [line.split()[-3] for line in output.splitlines() if "stage render" in line] == [
        "1001", "1004"]
    (folder / "align/frame.1004.npz").unlink()
    output = vfx("submit", shot, "--farm", "local", "--chunk", 1, "--work", folder,
                 "--dry-run").output
    assert "lineage" not in output and "align: 1 task\n" in output


def test_a_local_pool_survives_kills(shot: Path, undisturbed: dict[str, bytes]) -> None:
    folder = shot.parent / "pool"

    def run() -> bool:
        return CliRunner().invoke(main, [
            "submit", str(shot), "--farm", "local", "--chunk", "2", "--device", "cpu",
            "--threads", "1", "--at-once", "2", "--work", str(folder)]).exit_code == 0

    killed = run_while_killing(folder, run, 4, seed=3)
    assert len(killed) >= 2
    assert results(folder) == undisturbed
    assert json.loads((folder / "comp/handoff.json").read_text())["frames"] == "1001-1004"


def test_two_tasks_of_one_frame_do_no_harm(shot: Path, undisturbed: dict[str, bytes]) -> None:
    folder = shot.parent / "twice"
    shutil.copytree(shot.parent / "undisturbed", folder)
    for stage in ("align", "render"):
        tasks = [subprocess.Popen(
            [find_program(), "stage", stage, str(shot), "--work", str(folder), "--device", "cpu",
             "--threads", str(threads), "--force"], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT) for threads in (1, 2)]
        for task in tasks:
            output = task.communicate()[0].decode()
            assert task.returncode == 0, output
    assert results(folder) == undisturbed
    result = CliRunner().invoke(main, ["run", str(shot), "--work", str(folder), "--device", "cpu"])
    assert result.output.count("up to date") == 6


def test_a_second_simulation_waits_if_asked(shot: Path, vfx, tmp_path: Path) -> None:
    vfx("stage", "geometry", shot, "--work", tmp_path)
    words = [find_program(), "stage", "sim", str(shot), "--work", str(tmp_path), "--wait",
             "--frames", "1002"]
    tasks = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
             for _ in range(2)]
    outputs = [task.communicate()[0].decode() for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    made = [line for line in (tmp_path / "logs/sim.log").read_text().splitlines()
            if "100% done" in line]
    assert len(made) == 1, "the second found all done"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    reason = why_not()
    if reason is not None:
        if os.environ.get("VFX_REQUIRE_SLURM") == "1":
            pytest.fail(f"VFX_REQUIRE_SLURM=1, but {reason}")
        pytest.skip(reason)
    with one_node_slurm(tmp_path_factory.mktemp("slurm")) as slurm:
        yield slurm


def submit_to(cluster: Slurm, shot: Path, folder: Path, *words: str) -> dict[str, str]:
    done = subprocess.run(
        [find_program(), "submit", str(shot), "--farm", "slurm", "--chunk", "2", "--device", "cpu",
         "--threads", "1", "--work", str(folder), *words], env=cluster.environment,
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ids: dict[str, str] = json.loads((folder / "farm/slurm/jobs.json").read_text())
    return ids


def wait_until(holds: Callable[[], bool], cluster: Slurm) -> None:
    end = time.monotonic() + 90.0
    while not holds():
        assert time.monotonic() < end, f"{cluster.jobs()}{cluster.logs()}"
        time.sleep(0.02)


def run_on_slurm(cluster: Slurm, shot: Path, seed: int) -> Path:
    """Run a shot while its tasks are killed and taken off their node; return its work folder."""
    folder = shot.parent / "on slurm"
    requeued = []

    def run() -> bool:
        ids = submit_to(cluster, shot, folder)
        # Take a running simulation or rendering off its node, once each, as a dying node would.
        end = time.monotonic() + 120.0
        while True:
            states = cluster.jobs()
            for stage in ("sim", "render"):
                running = [name.split()[0] for name, state in states.items()
                           if name.endswith(f".{stage}") and state == "RUNNING"]
                if stage in ids and running and stage not in requeued:
                    cluster.requeue(running[0])
                    requeued.append(stage)
            if not any(state in ("PENDING", "RUNNING", "COMPLETING") for state in states.values()):
                break
            assert time.monotonic() < end, f"{states}{cluster.logs()}"
            time.sleep(0.1)
        return (folder / "comp/handoff.json").exists()

    killed = run_while_killing(folder, run, 4, seed)
    assert len(killed) >= 2 and requeued
    return folder


def test_slurm_survives_kills_and_requeues(
    cluster: Slurm, shot: Path, undisturbed: dict[str, bytes]
) -> None:
    assert results(run_on_slurm(cluster, shot, seed=5)) == undisturbed


def test_slurm_survives_kills_of_what_falls_and_breaks(
    cluster: Slurm, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shot = tmp_path_factory.mktemp("farm") / "drop.toml"
    shot.write_text(DROP)
    undisturbed = run_undisturbed(shot)
    history = (shot.parent / "undisturbed/sim/timeline.csv").read_text()
    assert "in bonds" in history and "rigid again" in history
    assert results(run_on_slurm(cluster, shot, seed=6)) == undisturbed


def test_slurm_requeues_a_simulation_whose_time_is_up(
    cluster: Slurm, shot: Path, undisturbed: dict[str, bytes]
) -> None:
    folder = shot.parent / "limited"
    ids = submit_to(cluster, shot, folder)
    name = f"{ids['sim']} plate.sim"
    wait_until((folder / "sim/frame.1001.npz").exists, cluster)
    # What Slurm sends a minute before the limit.
    cluster.run("scancel", "--signal=USR1", "--batch", ids["sim"])
    log = folder / f"farm/slurm/plate.sim.{ids['sim']}.log"
    wait_until(lambda: "requeued to go on" in (log.read_text() if log.exists() else ""), cluster)
    wait_until(lambda: cluster.jobs()[name] == "PENDING", cluster)
    cluster.hasten(ids["sim"])
    states = cluster.wait(120.0)
    assert states[name] == "COMPLETED"
    assert "going on from a checkpoint" in log.read_text()
    assert results(folder) == undisturbed


def test_a_failed_task_cancels_what_waits_for_it(cluster: Slurm, shot: Path) -> None:
    folder = shot.parent / "failing"
    ids = submit_to(cluster, shot, folder, "--farm-option=--begin=now+1")
    folder.mkdir(exist_ok=True)
    (folder / "sim").touch()                         # nothing can be written below it
    cluster.wait(60.0)
    states = {stage: cluster.jobs()[f"{number} plate.{stage}"] for stage, number in ids.items()
              if f"{number} plate.{stage}" in cluster.jobs()}
    assert states["geometry"] == "COMPLETED" and states["sim"] == "FAILED"
    assert states["lineage"] == states["comp"] == "CANCELLED"


def test_openjd_runs_the_template(shot: Path, undisturbed: dict[str, bytes], vfx) -> None:
    if shutil.which("openjd", path=_path()) is None:
        pytest.skip("openjd is not installed; pip install openjd-cli")
    folder = shot.parent / "it's openjd"          # no word ends there
    done = subprocess.run(
        [find_program(), "submit", str(shot), "--farm", "openjd", "--chunk", "3", "--device",
         "cpu", "--threads", "1", "--work", str(folder)],
        env={**os.environ, "PATH": _path()}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "openjd_progress: 100" in done.stdout
    assert results(folder) == undisturbed
    steps = openjd.template(submission(shot.parent))["steps"]
    assert [step["name"].lower() for step in steps] == STAGES


def test_openjd_runs_some_frames_of_a_shot(
    shot: Path, undisturbed: dict[str, bytes], vfx
) -> None:
    """The picture of the last one takes the pieces of the frame after it."""
    if shutil.which("openjd", path=_path()) is None:
        pytest.skip("openjd is not installed; pip install openjd-cli")
    folder = shot.parent / "some by openjd"
    done = subprocess.run(
        [find_program(), "submit", str(shot), "--farm", "openjd", "--chunk", "1", "--device",
         "cpu", "--frames", "1001,1003", "--work", str(folder)],
        env={**os.environ, "PATH": _path()}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    made = results(folder)
    assert made == {name: undisturbed[name] for name in made}
    assert sorted(name for name in made if name.startswith("plate.")) == [
        "plate.1001.exr", "plate.1003.exr"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_reaches_the_tasks_of_openjd(shot: Path, number: signal.Signals) -> None:
    if shutil.which("openjd", path=_path()) is None:
        pytest.skip("openjd is not installed; pip install openjd-cli")
    folder = shot.parent / f"stopped by {number.name}"
    with subprocess.Popen(
            [find_program(), "submit", str(shot), "--farm", "openjd", "--device", "cpu", "--work",
             str(folder)], env={**os.environ, "PATH": _path()}, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "done" in line:                    # the first task runs
                process.send_signal(number)
                break
        rest = process.stdout.read()
    assert process.returncode == 128 + number, rest
    assert f"stopped by {number.name}" in rest
    assert not [words for _, words in processes() if str(folder) in words]


@given(st.lists(st.integers(0, 300), min_size=1, unique=True))
def test_openjd_ranges_hold_every_frame_once(frames: list[int]) -> None:
    words = openjd.frame_range(frames).replace(":", "x")
    parts = parse_parts(words)
    assert sorted(frame for part in parts for frame in part) == sorted(frames)


def test_openjd_ranges_are_short(tmp_path: Path) -> None:
    assert openjd.frame_range(range(1001, 3001, 2)) == "1001-2999:2"
    assert openjd.frame_range([1001, 1002, 1003, 1010]) == "1001-1003,1010"
    assert openjd.frame_range([1, 5]) == "1,5"


def _path() -> str:
    return f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def test_slurm_scripts_quote_every_word(tmp_path: Path) -> None:
    plan = submission(tmp_path, device="cuda:0", threads=8, at_once=3)
    for path in slurm.write_files(plan):
        assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
        assert "a shot'\"'\"'s.toml" in path.read_text()
    script = slurm.batch_script(plan, plan.jobs[1])
    assert "#SBATCH --gres=gpu:1" in script and "#SBATCH --cpus-per-task=8" in script
    assert "--gres" not in slurm.batch_script(plan, plan.jobs[3])
    assert slurm.submit_options(plan, plan.jobs[4], {"align": "17"}) == [
        "--array=0-1%3", "--dependency=aftercorr:17", "--kill-on-invalid-dep=yes"]


def test_a_task_keeps_its_frames_when_the_shot_is_submitted_again(tmp_path: Path) -> None:
    """Tasks of the first submission begin after the second, of fewer frames, wrote its files."""
    plan = submission(tmp_path, program="echo")
    later = submission(tmp_path, program="echo", jobs=(
        FarmJob(RENDER, ((1002,),), None, is_chunked=True),
        FarmJob(COMP, ((1002,),), RENDER)))
    script = slurm.batch_script(plan, plan.jobs[4])          # Slurm keeps it as submitted
    opencue.write_files(plan)
    layers = ElementTree.parse(plan.folder("opencue") / "job.xml").getroot().iter("layer")
    layer = next(layer for layer in layers if layer.get("name") == "render")
    slurm.write_files(later)
    opencue.write_files(later)
    for chunk, frames in enumerate(("1001-1002", "1003-1004")):
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True,
                              env={**os.environ, "SLURM_ARRAY_TASK_ID": str(chunk)})
        assert f"--frames {frames} " in done.stdout
        done = subprocess.run(
            ["bash", "-c", layer.findtext("cmd").replace("#IFRAME#", str(chunk + 1))],
            capture_output=True, text=True, check=True)
        assert f"--frames {frames} " in done.stdout


@pytest.mark.parametrize(("kills", "tries"), [(1, 2), (9, 3)])
def test_a_slurm_script_tries_a_killed_task_again_and_says_what_to_do(
    tmp_path: Path, kills: int, tries: int
) -> None:
    program = tmp_path / "vfx"
    program.write_text(f"""#!/bin/bash
echo >> {tmp_path}/tries
[ $(wc -l < {tmp_path}/tries) -gt {kills} ] || kill -9 $$
""")
    program.chmod(0o755)
    made = submission(tmp_path, program=str(program))
    done = subprocess.run(["bash", "-c", slurm.batch_script(made, made.jobs[1])],
                          capture_output=True, text=True, check=False)
    assert len((tmp_path / "tries").read_text()) == tries
    assert (done.returncode, "submit the shot again" in done.stdout) == (
        (0, False) if tries > kills else (137, True))


def test_opencue_gets_layers_that_wait_for_each_other(tmp_path: Path) -> None:
    plan = submission(tmp_path, extra=("show=film",))
    opencue.write_files(plan)
    root = ElementTree.parse(plan.folder("opencue") / "job.xml").getroot()
    assert root.findtext("show") == "film"
    assert [layer.get("name") for layer in root.iter("layer")] == STAGES
    assert {(depend.findtext("deplayer"), depend.findtext("onlayer"), depend.get("type"))
            for depend in root.iter("depend")} == {
        ("sim", "geometry", "LAYER_ON_LAYER"), ("lineage", "sim", "LAYER_ON_LAYER"),
        ("align", "lineage", "LAYER_ON_LAYER"), ("render", "align", "FRAME_BY_FRAME"),
        ("comp", "render", "LAYER_ON_LAYER")}
    render = next(layer for layer in root.iter("layer") if layer.get("name") == "render")
    assert (render.findtext("range"), render.findtext("chunk")) == ("1-2", "1")
    # The script of a layer turns the number of a chunk into its frames.
    script = Path(render.findtext("cmd").split()[1])
    text = script.read_text().replace("exec vfx", "exec echo")
    done = subprocess.run(["bash", "-c", text, "render.sh", "2"], capture_output=True, text=True,
                          check=True)
    assert "--frames 1003-1004" in done.stdout


def test_opencue_writes_what_its_own_library_writes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    outline = pytest.importorskip("outline", reason="opencue-pyoutline is not installed")
    cue = pytest.importorskip("outline.backend.cue")
    from outline.cuerun import OutlineLauncher
    from outline.modules.shell import Shell

    made = outline.Outline("plate", shot="plate", show="film", frame_range="1-2")
    first = Shell("align", command=["a"], range="1-2", chunk=1)
    second = Shell("render", command=["b"], range="1-2", chunk=1)
    second.depend_on(first)
    made.add_layer(first)
    made.add_layer(second)
    theirs = ElementTree.fromstring(cue.serialize_simple(OutlineLauncher(made)).partition(
        ".dtd\">")[2])
    plan = submission(tmp_path)
    ours = ElementTree.fromstring(opencue.specification(plan).partition(".dtd\">")[2])
    known = {element.tag for element in theirs.iter()} | {"cores", "gpus", "gpu_memory",
                                                          "threadable"}
    assert {element.tag for element in ours.iter()} <= known


def test_deadline_gets_files_and_a_script_that_chains_them(tmp_path: Path) -> None:
    plan = submission(tmp_path)
    script, = deadline.write_files(plan)
    fake = tmp_path / "bin/deadlinecommand"
    fake.parent.mkdir()
    fake.write_text("#!/bin/bash\necho Result=Success\nprintf 'JobID=id_%s\\r\\n' "
                    "\"${1%%.*}\"\n")
    fake.chmod(0o755)
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, check=False,
                          env={**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    folder = plan.folder("deadline")
    assert "JobDependencies=id_align" in (folder / "render.job.ready").read_text()
    assert "JobDependencies" not in (folder / "geometry.job.ready").read_text()
    render = (folder / "render.job").read_text().splitlines()
    assert {"Plugin=CommandLine", "Frames=1001-1004", "ChunkSize=2",
            "IsFrameDependent=true"} <= set(render)
    assert ".sh <STARTFRAME>-<ENDFRAME>\n" in (folder / "render.plugin").read_text()
    task, = folder.glob("render.*.sh")
    assert '--frames "$frames"' in task.read_text()


@pytest.mark.parametrize("words, code, sentence", [
    (["--farm", "slurm"], 3, "sbatch: not on PATH"),
    (["--farm", "openjd"], 3, "openjd: not on PATH"),
    (["--farm", "deadline"], 3, "deadlinecommand: not on PATH"),
    (["--farm", "opencue"], 3, "pip install opencue-pycue"),
    (["--farm", "local", "--frames", "900-1001"], 3, "900-1000 lie outside the shot"),
    (["--farm", "local", "--frames", "1001-"], 2, "cannot read '1001-'"),
    (["--farm", "local", "--frames", "1001-1004:2"], 2, "write a step as 'x'"),
    (["--farm", "local", "--work", "/proc/nowhere"], 3, "--work"),
    (["--farm", "local", "--farm-option", "x"], 2, "takes none"),
])
def test_bad_requests_end_in_a_sentence(
    shot: Path, vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int,
    sentence: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "opencue", None)
    work = [] if "--work" in words else ["--work", tmp_path / "work"]
    result = vfx("submit", shot, *words, *work)
    assert result.exit_code == code, result.output
    assert sentence in result.output
    assert not (tmp_path / "work").exists(), "refused before anything is written"
    if "not on PATH" in result.output or "not installed" in result.output:
        # What helps is a command that works here.
        sentence, command = result.output.splitlines()
        assert command.split() == [
            "vfx", "submit", str(shot), "--work", str(tmp_path / "work"), "--frames", "1001-1004",
            "--farm", "local"]
        assert vfx(*command.split()[1:], "--dry-run").exit_code == 0


def test_a_slurm_that_does_not_answer_is_said_in_a_sentence(
    shot: Path, vfx, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sbatch", "scontrol"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\necho 'scontrol: error: one' >&2\n"
                           "echo 'scontrol: fatal: no controller' >&2\nexit 1\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    result = vfx("submit", shot, "--farm", "slurm", "--work", tmp_path / "work")
    assert result.exit_code == 3
    sentence, command = result.output.splitlines()
    assert "does not answer (scontrol: fatal: no controller)" in sentence
    assert command.endswith("--farm local")
    assert not (tmp_path / "work").exists()


def test_the_pixels_compared_are_not_all_one(undisturbed: dict[str, bytes]) -> None:
    frames = [data for name, data in undisturbed.items()
              if name.endswith(".exr") and "_crypto" not in name]
    assert len(set(frames)) == len(frames) == 4
    assert np.frombuffer(frames[-1], np.uint8).std() > 1.0
