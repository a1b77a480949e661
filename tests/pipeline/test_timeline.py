"""The timeline of a shot: every event once, whatever ended a run, and as the history has it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.show.plots import _BONDS, Marks, diagnostics_panels, draw_panels
from vfx.pipeline.show.review_page import write_page
from vfx.pipeline.work.diagnostics import DiagnosticsTable
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.timeline import Impact, Timeline, impacts
from vfx.sim.solver import IN_BONDS, RIGID_AGAIN, WITHSTOOD, Event

DROP = """\
[shot]
frames = "1001-1008"
[time]
time_scale = 1.0
[[bodies]]
name = "tile"
material = "clay"
cells = [6, 2, 6]
spacing = 0.01
rotation = [20.0, 0.0, 10.0]
place = "on-floor"
fall_speed = 6.0
[materials.clay]
density = 2000.0
bulk_modulus = 4e7
strain_limit = 1.5e-3
[sim]
method = "auto"
[camera]
position = [0.0, 0.2, 0.6]
target = [0.0, 0.0, 0.0]
[render]
resolution = [16, 9]
samples = 1
passes = ["beauty"]
"""
texts = st.text(st.characters(codec="utf-8", exclude_characters="\r\0"), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)
events = st.builds(Event, time=numbers, what=texts, who=texts, why=texts,
                   pieces=st.integers(0, 10**9), elements=st.integers(0, 10**9),
                   energy_lost=numbers)


def event(time: float, what: str, elements: int = 10) -> Event:
    return Event(time, what, "vase", "", 1, elements)


@given(st.lists(events, max_size=5))
def test_events_come_back_as_they_were(told: list[Event]) -> None:
    timeline = Timeline(Path("nowhere"))
    timeline.add(told)
    again = Timeline(Path("nowhere"))
    again.take(timeline.text())
    assert again.events == told and again.text() == timeline.text()


@pytest.mark.parametrize("text", [
    "", "time,what\n1,in bonds\n", "\0", "time,what,who,why,pieces,elements,energy_lost\n1,a\n",
    "time,what,who,why,pieces,elements,energy_lost\nnan,a,b,c,1,1,0\n",
    "time,what,who,why,pieces,elements,energy_lost\n1,a,b,c,many,1,0\n"])
def test_what_is_no_event_is_none(text: str) -> None:
    timeline = Timeline(Path("nowhere"))
    timeline.take(text)
    assert timeline.events == []


def test_pieces_that_join_an_impact_are_a_part_of_it() -> None:
    told = [event(0.5, IN_BONDS, 100), event(0.502, IN_BONDS, 30), event(0.503, WITHSTOOD),
            event(0.505, RIGID_AGAIN, 130), event(0.7, IN_BONDS, 7)]
    assert impacts(told, 0.9) == [Impact(0.5, 0.505, 130), Impact(0.7, 0.9, 7)]
    assert impacts(told[:-1], 0.9) == [Impact(0.5, 0.505, 130)]
    assert impacts(told[3:4], 0.9) == []


def test_a_killed_run_tells_every_event_again_and_none_twice(shot_file: Path, vfx) -> None:
    """test_resume compares the bytes; here is what stands in them."""
    vfx("stage", "geometry", shot_file)
    for last in (1002, 1004, 1006):
        assert vfx("stage", "sim", shot_file, "--frames", f"1001-{last}").exit_code == 0
    timeline = Timeline(Path("work/plate/sim"))
    timeline.read()
    count = [each.elements for each in timeline.events]
    assert len(count) > 3 and count == list(range(1, len(count) + 1))


def test_a_lost_timeline_is_made_again(shot_file: Path, vfx) -> None:
    vfx("stage", "geometry", shot_file)
    vfx("stage", "sim", shot_file)
    path = Path("work/plate/sim/timeline.csv")
    whole = path.read_bytes()
    path.unlink()
    assert "timeline.csv" in vfx("status", shot_file).output
    assert f"{path} is missing and will be made again" in vfx("stage", "sim", shot_file).output
    assert path.read_bytes() == whole
    assert "timeline.csv" not in vfx("status", shot_file).output


@pytest.fixture(scope="module")
def drop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tile that falls and breaks, simulated in three parts."""
    from click.testing import CliRunner

    from vfx.pipeline.cli.commands import main

    folder = tmp_path_factory.mktemp("drop")
    (folder / "drop.toml").write_text(DROP)
    for words in (["stage", "geometry"], ["stage", "sim", "--frames", "1001-1002"],
                  ["stage", "sim", "--frames", "1001-1003"], ["run"]):
        result = CliRunner().invoke(main, [
            *words[:2 if words[0] == "stage" else 1], str(folder / "drop.toml"), "--work",
            str(folder / "work"), "--device", "cpu", *words[2:]])
        assert result.exit_code == 0, result.output
    return folder


def test_timeline_and_history_tell_the_same(drop: Path) -> None:
    timeline, table = Timeline(drop / "work/sim"), DiagnosticsTable(drop / "work/sim")
    timeline.read()
    table.read()
    columns, told = table.columns(), timeline.events
    assert [each.what for each in told][:2] == [IN_BONDS, RIGID_AGAIN]
    assert told[0].elements == 72 and told[1].pieces > 1 and told[0].who == "tile"
    everything = columns["rigid_elements"] + columns["elements_in_bonds"]
    assert (everything == 72).all()
    assert sum(each.energy_lost for each in told) == pytest.approx(columns["energy_lost"][-1])
    in_bonds = np.zeros(len(columns["time"]), bool)
    for impact in impacts(told, columns["time"][-1]):
        # At its first moment nobody has been asked yet, at its last it is not yet closed.
        in_bonds |= (columns["time"] > impact.first) & (columns["time"] <= impact.last)
    assert (in_bonds == (columns["elements_in_bonds"] > 0)).all()
    assert (np.diff([each.time for each in told]) >= 0.0).all()


def test_the_log_tells_what_the_timeline_tells(drop: Path) -> None:
    timeline = Timeline(drop / "work/sim")
    timeline.read()
    logs = "".join(path.read_text() for path in (drop / "work/logs").glob("sim*.log"))
    assert all(logs.count(f"sim: {each.line()}") == 1 for each in timeline.events)


def test_the_page_has_events_areas_and_marks(drop: Path) -> None:
    shot = load_shot(drop / "drop.toml")
    page = write_page(Work(shot, drop / "work"), shot.frames, lambda share: None).read_text()
    found = re.search(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    timeline = Timeline(drop / "work/sim")
    timeline.read()
    assert len(data["events"]) == 1 + len(timeline.events)
    for row, each in zip(data["events"][1:], timeline.events, strict=True):
        assert float(row[0]) == pytest.approx(1001 + 24 * each.time, abs=0.006)
        assert row[2:4] == [each.who, each.what]
    assert data["impacts"][0] == pytest.approx(
        [1001 + 24 * each.time for each in timeline.events[:2]])
    areas, = (plot for plot in data["plots"] if plot.get("stacked"))
    total = np.sum([[y for _, y in curve["points"]] for curve in areas["curves"]], axis=0)
    assert (total == 72).all() and len(data["outcome"]) >= 2


def rigid_history(n: int = 101) -> dict[str, np.ndarray]:
    time = np.linspace(0.0, 2.0, n)
    return {
        "step": np.arange(n, dtype=float), "time": time, "kinetic_energy": 5.0 * time,
        "potential_energy": 40.0 - 10.0 * time, "bond_energy": np.zeros(n),
        "energy_lost": np.zeros(n), "momentum_x": -time, "momentum_y": time, "momentum_z": time,
        "rigid_pieces": np.ones(n), "asleep": np.zeros(n), "rigid_elements": np.full(n, 900.0),
        "elements_asleep": np.zeros(n), "elements_in_bonds": np.full(n, 100.0),
        "fragments": np.ones(n)}


def test_areas_add_up_to_all_elements_and_energy_to_what_can_be_lost() -> None:
    energy, elements, *_ = diagnostics_panels(rigid_history())
    assert elements.is_stacked and (elements.value == 1000.0).all()
    assert energy.curves[-1].dashed and energy.curves[-1].value[0] == pytest.approx(20.0)
    assert energy.curves[1].value.min() == 0.0


@pytest.mark.parametrize("n", [0, 1, 2, 101])
def test_impacts_are_drawn_however_short(n: int) -> None:
    columns = rigid_history(n)
    panels = diagnostics_panels({**columns, "elements_in_bonds": np.zeros(n)})

    def orange(marks: Marks) -> int:
        picture = np.asarray(draw_panels(columns["time"], panels, "vase", marks)).astype(int)
        bonds = [int(_BONDS[i:i + 2], 16) for i in (1, 3, 5)]
        return int((np.abs(picture - bonds).max(axis=2) < 12).sum())

    plain = orange(Marks())
    if n > 1:
        assert orange(Marks((Impact(1.0, 1.0 + 1e-6, 1000),))) > plain + 300
    else:
        assert orange(Marks((Impact(0.0, 0.0, 1000),), (0.0,))) >= plain
