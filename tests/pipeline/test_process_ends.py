"""How the process meets its surroundings: streams, signals, memory, and what lies in folders."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import chaotic_plate
import numpy as np
import pytest
from click.testing import CliRunner

from vfx.pipeline.cli import commands as cli
from vfx.pipeline.cli import handoff as cli_handoff
from vfx.pipeline.cli import preview as cli_preview
from vfx.pipeline.errors import Stopped, lacks_memory, shortage
from vfx.pipeline.progress import StopSignals

# The command with the chaotic solver, as it is started from a shell.
START = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import chaotic_plate
chaotic_plate.install()
from vfx.pipeline.cli.start import main
main()
"""


@pytest.fixture(autouse=True)
def hangups_end_a_process() -> Iterator[None]:
    """Have SIGHUP as a terminal has it, though the tests may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def start(arguments: str, *, shell: str = "", **environment: str) -> subprocess.CompletedProcess:
    """Run vfx with arguments and redirections; ``shell`` goes before it."""
    return subprocess.run(
        ["bash", "-c", f'{shell} "$0" -c "$1" {arguments}', sys.executable, START],
        capture_output=True, timeout=60, check=False, env={**os.environ, **environment})


def frames_made(folder: Path = Path("work/plate")) -> int:
    return len(list((folder / "render").glob("plate.1*.exr")))


@pytest.fixture
def shot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shot for commands in processes of their own."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "plate.toml"
    path.write_text(chaotic_plate.SHOT)
    return path


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&-", ">/dev/full 2>/dev/full",
                                    "2>&1 | true"])
def test_a_run_that_nobody_hears_does_its_work(shot: Path, closed: str) -> None:
    result = start(f"run plate.toml {closed}", shell="set -o pipefail;")
    assert result.returncode == 0, result.stderr
    assert not result.stderr
    assert frames_made() == 6
    assert b"\0" not in Path("work/plate/logs/sim.log").read_bytes()


@pytest.mark.parametrize("command", ["status plate.toml", "--help"])
def test_output_that_is_the_result_ends_with_its_reader(shot: Path, command: str) -> None:
    result = start(f"{command} | true; exit ${{PIPESTATUS[0]}}")
    assert (result.returncode, result.stderr) == (141, b"")
    result = start(f"{command} > /dev/full")
    assert result.returncode == 3
    assert result.stderr.startswith(b"standard output: cannot be written (No space left on dev")
    assert result.stderr.count(b"\n") == 1


def test_a_stream_that_does_not_block_is_waited_for(shot: Path) -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    process = subprocess.Popen([sys.executable, "-c", START, "reference"], stdout=theirs)
    os.close(theirs)
    time.sleep(0.5)
    text = b""
    while block := os.read(ours, 4096):
        text += block
    os.close(ours)
    assert process.wait(30) == 0
    assert text == CliRunner().invoke(cli.main, ["reference"]).stdout_bytes


def test_any_encoding_of_the_output_will_do(shot: Path) -> None:
    folder = Path("été 雪")
    folder.mkdir()
    result = start(f"run plate.toml --work '{folder}'", PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert frames_made(folder) == 6
    result = start(f"run plate.toml --work '{folder}/other'", PYTHONUTF8="0", LC_ALL="C",
                   PYTHONCOERCECLOCALE="0")
    assert result.returncode == 2
    assert b"LC_ALL=C.UTF-8" in result.stderr and result.stderr.isascii()


@pytest.mark.parametrize("locale", [{"LC_ALL": "C"}, {"PYTHONUTF8": "0"}])
def test_bytes_that_are_no_text_are_refused_in_any_locale(shot: Path, locale) -> None:
    os.mkdir(b"\xff")
    result = start("run plate.toml --work $'\\xff'", **locale)
    assert result.returncode == 2 and b"no UTF-8 text" in result.stderr, result.stderr
    assert not os.listdir(b"\xff")


def test_lack_of_memory_ends_with_3_wherever_it_shows(
    shot_file: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        np.empty(1 << 62, np.uint8)

    places = [(cli, "check_report", ["check"]), (cli, "status_table", ["status"]),
              (cli, "open_work", ["clean", "--stage", "sim"]), (cli, "prepare", ["run"]),
              (cli_handoff, "export", ["export", "--to", "usd"]),
              (cli_handoff, "write_page", ["review"]),
              (cli_handoff, "plan_submission", ["submit", "--farm", "local"]),
              (cli_preview, "make_view", ["preview"])]
    for module, name, words in places:
        with monkeypatch.context() as context:
            context.setattr(module, name, fail)
            result = vfx(*words, shot_file)
        assert result.exit_code == 3, result.output
        assert "out of memory, " in result.stderr and " is available; " in result.stderr
        assert "fault of the program" not in result.stderr


def test_lack_of_memory_is_known_by_what_libraries_say() -> None:
    for error in (MemoryError(), OSError(12, "Cannot allocate memory"),
                  RuntimeError("can't start new thread"),
                  ImportError("x.so: failed to map segment from shared object")):
        assert lacks_memory(error)
    for other in (OSError(2, "No such file"), ImportError("no module"), ValueError()):
        assert not lacks_memory(other)


def test_too_many_open_files_are_a_shortage_and_no_fault() -> None:
    assert "ulimit -n" in str(shortage(OSError(errno.EMFILE, "Too many open files")))
    assert "out of memory" in str(shortage(MemoryError()))
    assert shortage(OSError(errno.ENOENT, "No such file")) is None


@pytest.mark.parametrize("kilobytes", [100_000, 250_000])
def test_a_limit_that_the_program_does_not_fit_in_is_said(shot: Path, kilobytes: int) -> None:
    script = "from vfx.pipeline.cli.start import main; main()"
    result = subprocess.run(
        ["bash", "-c", f'ulimit -v {kilobytes}; "$0" -c "$1" check plate.toml', sys.executable,
         script], capture_output=True, timeout=60, check=False)
    assert result.returncode == 3, result.stderr
    assert b"memory" in result.stderr and b"Traceback" not in result.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_loads_ends_with_a_sentence(number: signal.Signals) -> None:
    script = f"""
import os, signal, sys
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "vfx.pipeline.shot.needs":
            os.kill(os.getpid(), {int(number)})
sys.meta_path.insert(0, Stop())
from vfx.pipeline.cli.start import main
main()
"""
    result = subprocess.run([sys.executable, "-c", script, "doctor"], capture_output=True,
                            text=True, check=False)
    assert (result.returncode, result.stderr) == (
        128 + number, "stopped before anything was done\n")


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_dropped_line_stops_a_run_where_nothing_is_lost(shot: Path, is_ignored: bool) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", START, "run", "plate.toml"], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, env={**os.environ, "CHAOTIC_PAUSE": "0.01"},
        preexec_fn=lambda: signal.signal(
            signal.SIGHUP, signal.SIG_IGN if is_ignored else signal.SIG_DFL))
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("sim 100"):
            process.send_signal(signal.SIGHUP)
            break
    _, errors = process.communicate(timeout=60)
    if is_ignored:                                        # as under nohup
        assert (process.returncode, errors, frames_made()) == (0, "", 6)
    else:
        assert process.returncode == 129
        assert "stopped by SIGHUP; what is done is kept" in errors


def test_a_stop_while_a_picture_is_written_comes_after_it() -> None:
    before = signal.getsignal(signal.SIGHUP)
    with StopSignals().caught() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.wanted
        with pytest.raises(Stopped, match="SIGHUP"):
            stop.check()
    assert signal.getsignal(signal.SIGHUP) is before


@pytest.mark.parametrize("name", ["sim/.sim.lock", "sim/.manifest.lock", "logs/sim.log",
                                  "logs/timings.jsonl", "farm/local/sim.log"])
def test_nothing_is_written_through_a_link(shot_file: Path, vfx, name: str) -> None:
    victim = shot_file.parent / "victim"
    victim.write_text("mine\n")
    absent = shot_file.parent / "absent"
    for target in (victim, absent):
        link = Path("work/plate") / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        words = ["submit", "--farm", "local"] if "farm" in name else ["run", "--force"]
        result = vfx(*words, shot_file)
        assert f"{link}: is a link to another file, which is not written into" in result.output
        assert result.exit_code == (0 if "logs" in name else 3), result.output
    assert victim.read_text() == "mine\n" and not absent.exists()


def test_folders_that_are_links_are_followed(shot_file: Path, vfx) -> None:
    """Who puts a work folder, or the frames, on another disk means it."""
    disk = shot_file.parent / "disk"
    (disk / "frames").mkdir(parents=True)
    (disk / "plate").mkdir()
    Path("work").symlink_to(disk)
    (disk / "plate/render").symlink_to(disk / "frames")
    assert vfx("run", shot_file).exit_code == 0
    assert len(list((disk / "frames").glob("plate.1*.exr"))) == 6


FILES = ["geometry/solid.npz", "sim/manifest.json", "sim/frame.1002.npz", "sim/checkpoint.a.npz",
         "sim/.sim.lock", "sim/diagnostics.csv", "align/lineage.npz", "render/plate.1003.exr",
         "comp/handoff.json", "comp/plate.nk", "logs/sim.log", "logs/timings.jsonl",
         "review/plate.png", "review/plate.mp4"]


@pytest.mark.parametrize("name", FILES)
def test_a_folder_where_a_file_belongs_ends_in_a_sentence(shot_file: Path, vfx, name: str) -> None:
    for made_before in (False, True):
        if made_before:
            shutil.rmtree("work/plate")
            assert vfx("run", shot_file).exit_code == 0
        path = Path("work/plate") / name
        path.unlink(missing_ok=True)
        path.mkdir(parents=True)
        for words in (["status"], ["run"], ["run", "--force"], ["stage", "comp"]):
            result = vfx(*words, shot_file)
            assert "fault of the program" not in result.output
            assert result.exit_code in (0, 1, 3), result.output
            if result.exit_code and words[0] == "run":
                assert str(path) in result.output, result.output


def make_socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
    os.close(folder)


@pytest.mark.parametrize("make", [os.mkfifo, make_socket])
@pytest.mark.parametrize("name", FILES)
def test_a_pipe_or_socket_where_a_file_belongs_is_not_waited_for(
    shot_file: Path, vfx, name: str, make
) -> None:
    path = Path("work/plate") / name
    path.parent.mkdir(parents=True)
    make(path)
    for words in (["status"], ["check"], ["stage", "comp"], ["preview"],
                  ["export", "--to", "obj"], ["run"], ["review"], ["clean", "--stage", "sim"]):
        result = vfx(*words, shot_file)
        assert "fault of the program" not in result.output
        assert result.exit_code in (0, 1, 3), result.output
    if path.exists():
        path.unlink()
    assert vfx("run", shot_file).exit_code == 0


def test_a_file_to_write_is_never_a_device(shot_file: Path, vfx) -> None:
    os.mkfifo("out.png")
    result = vfx("preview", shot_file, "-o", "out.png")
    assert result.exit_code in (1, 3) and "fault" not in result.output
    assert Path("out.png").is_fifo()


@pytest.mark.parametrize("old, new", [
    ('material = "glass"', 'material = "glass"\nmesh = "pipe.obj"'),
    ("[camera]", '[camera]\nusd = "pipe.usd"'),
    ("[floor]", '[floor_look]\ntexture = "pipe.png"\n[floor]'),
    ("[floor]", '[[weakening]]\nimage = "pipe.png"\n[floor]'),
    ("[light]", '[light]\nenvironment = "pipe.exr"')])
def test_an_input_that_is_a_pipe_is_refused_and_not_waited_for(
    shot_file: Path, vfx, old: str, new: str
) -> None:
    for suffix in ("obj", "usd", "png", "exr"):
        os.mkfifo(f"pipe.{suffix}")
    shot_file.write_text(chaotic_plate.SHOT.replace(old, new, 1))
    vfx("status", shot_file)
    for words in (["run"], ["check"]):
        result = vfx(*words, shot_file)
        assert result.exit_code in (2, 3), result.output
        assert "fault of the program" not in result.output
