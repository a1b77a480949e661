"""What a run tells in a log: how far, how fast, how long yet; each line findable."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from vfx.pipeline import progress
from vfx.pipeline.progress import Pace, Progress
from vfx.pipeline.quantities import as_clock, as_count, as_pace, as_size, as_time, si_prefix


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    for name in ("OPENJD_SESSION", "OPENJD"):
        monkeypatch.delenv(name, raising=False)
    return Clock(monkeypatch)


def test_a_line_tells_percent_note_and_time_left(clock: Clock, capsys) -> None:
    told = Progress()
    with told.stage("sim"):
        told.update(1001, 0.0, "t = 0 s")
        clock.now += 42.0
        told.update(1003, 0.42, "312 steps/s, t = 0.121 ms, 5.4 M bonds")
    assert capsys.readouterr().out.splitlines() == [
        "sim 1003: 42% done, 312 steps/s, t = 0.121 ms, 5.4 M bonds, 0:00:58 left"]


def test_work_that_was_resumed_does_not_shorten_the_time_left(clock: Clock, capsys) -> None:
    told = Progress()
    with told.stage("sim"):
        told.update(1050, 0.5)
        clock.now += 10.0
        told.update(1060, 0.6)
    assert capsys.readouterr().out.splitlines()[-1] == "sim 1060: 60% done, 0:00:40 left"


def test_lines_are_few_but_never_cease(clock: Clock, capsys) -> None:
    told = Progress()
    with told.stage("sim"):
        for step in range(10_001):
            told.update(1001, step / 1e6)
            clock.now += 0.1
    lines = capsys.readouterr().out.splitlines()
    assert 10 <= len(lines) <= 30
    assert all(re.match(r"sim 1001: [01]% done", line) for line in lines)


def test_every_stage_ends_with_one_line_of_100_percent(clock: Clock, capsys) -> None:
    told = Progress()
    with told.stage("align"):
        for frame in (1001, 1002, 1003):
            told.update(frame, (frame - 1000) / 3)
        told.update(1003, 1.0)
    assert capsys.readouterr().out.count("100% done") == 1


def test_the_pace_is_that_of_lately(clock: Clock) -> None:
    pace = Pace()
    assert pace.rate == 0.0
    done = 0.0
    for rate in (1.0, 5.0):
        for _ in range(100):
            pace.note(done)
            clock.now += 1.0
            done += rate
    assert pace.rate == pytest.approx(5.0)


@pytest.mark.parametrize("text, wanted", [
    (as_count(5.4e6), "5.4 M"), (as_count(812_345), "812 k"), (as_count(99), "99"),
    (as_pace(0.02), "50 times slower than real time"), (as_pace(1.0), "at real time"),
    (as_pace(2.0), "2 times faster than real time"),
    (as_time(1.21e-4), "0.121 ms"), (as_time(0.0), "0 s"), (as_time(2.0**-23), "0.119 us"),
    (as_time(3e-9), "3 ns"), (as_clock(192.0), "0:03:12"), (as_clock(90_061), "25:01:01"),
    (as_size(1.9e9), "1.9 GB"), (as_size(2.5e15), "2.5e+03 TB"), (as_size(3e12), "3.0 TB"),
    (si_prefix(2500.0), (1e3, "k")), (si_prefix(1e-5), (1e-6, "µ")), (si_prefix(0.0), (1.0, "")),
])
def test_quantities_read_as_people_write_them(text: object, wanted: object) -> None:
    assert text == wanted


SCRIPT = """
from vfx.pipeline.progress import Progress
told = Progress()
with told.stage("sim"):
    told.update(1001, 0.0, "5.4 M bonds")
    told.update(1003, 0.42, "312 steps/s, 5.4 M bonds")
    told._bar and told._bar.refresh()
"""


@pytest.mark.parametrize("rows, columns, wanted", [
    (40, 100, r"sim 1003  42% \|.*\| 312 steps/s, 5.4 M bonds, \d+:\d\d:\d\d left"),
    (0, 0, r"sim 1003: 42% done, 312 steps/s, 5.4 M bonds")])
def test_a_terminal_shows_a_bar_and_one_without_size_lines(
    rows: int, columns: int, wanted: str
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if "OPENJD" not in name}
    subprocess.run([sys.executable, "-c", SCRIPT], check=True, stdout=theirs, stderr=theirs,
                   env=environment)
    os.close(theirs)
    assert re.search(wanted, os.read(ours, 65536).decode())
    os.close(ours)


def test_every_stage_keeps_a_log_with_times_and_a_row_of_timings(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    vfx("run", shot_file)
    logs = Path("work/plate/logs")
    for stage in ("geometry", "sim", "lineage", "align", "render", "comp"):
        lines = (logs / f"{stage}.log").read_text().splitlines()
        assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} \S+\[\d+\] ", line)
                   for line in lines)
        assert f"begins: vfx stage {stage}" in lines[0]
        assert "up to date" in lines[-1]
    rows = [json.loads(line) for line in (logs / "timings.jsonl").read_text().splitlines()]
    ended = [row for row in rows if row["outcome"] != "begun"]
    assert [(row["stage"], row["made"], row["outcome"]) for row in ended] == [
        ("geometry", 1, "done"), ("sim", 6, "done"), ("lineage", 6, "done"), ("align", 6, "done"),
        ("render", 6, "done"), ("comp", 6, "done")]
    assert len(rows) == 2 * len(ended), "each has a beginning, too"


def test_frames_that_are_no_good_are_in_the_log_of_comp(shot_file: Path, vfx) -> None:
    vfx("run", shot_file)
    Path("work/plate/render/plate.1002.exr").unlink()
    assert vfx("stage", "comp", shot_file).exit_code == 1
    assert "plate.1002.exr: missing" in Path("work/plate/logs/comp.log").read_text()


def test_a_failure_is_in_the_log(shot_file: Path, vfx, monkeypatch) -> None:
    from vfx.raytrace.render import render_picture

    asked: list[None] = []

    def fail_at_the_third(*given, **named):
        asked.append(None)
        if len(asked) == 3:
            raise RuntimeError("the tree has a hole")
        return render_picture(*given, **named)

    monkeypatch.setattr("vfx.raytrace.render.render_picture", fail_at_the_third)
    assert vfx("run", shot_file).exit_code == 1
    assert "render 1003: RuntimeError" in Path("work/plate/logs/render.log").read_text()
    row = json.loads(Path("work/plate/logs/timings.jsonl").read_text().splitlines()[-1])
    assert row["outcome"] == "failed"
    made = list(Path("work/plate/render").glob("plate.1*.exr"))
    assert row["made"] == len(made) < 6, "what was made, not what was asked for"


def test_a_command_stopped_while_it_loads_says_so_without_a_traceback() -> None:
    script = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)    # whatever the tests inherited
class Stop:
    def find_spec(self, name, path=None, target=None):
        if name == "vfx.pipeline.shot.needs":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Stop())
from vfx.pipeline.cli.start import main
main()
"""
    result = subprocess.run([sys.executable, "-c", script, "doctor"], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 130
    assert result.stderr == "stopped before anything was done\n"
    assert not result.stdout


def test_the_installed_command_starts_there() -> None:
    (entry,) = entry_points(group="console_scripts", name="vfx")
    assert entry.value == "vfx.pipeline.cli.start:main"
