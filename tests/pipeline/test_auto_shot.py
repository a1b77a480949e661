"""Shots of rigid and breaking bodies: what ``vfx check`` says of them, what is refused and how."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.pipeline.test_timeline import DROP
from vfx.pipeline.errors import MissingInput
from vfx.pipeline.progress import Progress
from vfx.pipeline.shot import checks
from vfx.pipeline.shot.inputs import Inputs
from vfx.pipeline.shot.shot_file import Shot, load_shot


@pytest.fixture
def drop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shot of a tile that falls and breaks, in an empty current folder."""
    monkeypatch.chdir(tmp_path)
    return written(DROP)


def written(text: str) -> Path:
    path = Path("drop.toml").absolute()
    path.write_text(text)
    return path


def changed(old: str, new: str) -> Shot:
    assert old in DROP
    return load_shot(written(DROP.replace(old, new)))


def test_check_tells_a_frame_once_and_speeds_by_body(drop: Path, vfx) -> None:
    said = vfx("check", drop).output
    assert "time        20 ticks of 2.083 ms a frame: 41.67 ms a frame, at real time" in said
    # c = sqrt(1.5 K / rho), times the strain limit, by the caution of 4.
    speed = np.sqrt(1.5 * 4e7 / 2000.0) * 1.5e-3 / 4.0
    assert f"hits are tried out with bonds from about {speed:.2g} m/s on" in said
    assert "an impact takes at most 5 ms" in said


def test_the_speed_that_is_told_is_that_of_the_solver(drop: Path) -> None:
    from tests.solids import build_solid
    from vfx.sim.auto.impact import breaking_speeds
    from vfx.sim.control.controls import make_world

    for keys in ("", "[sim.auto]\ncaution = 2.5\n", "[sim.auto]\nimpact_speed = 0.7\n"):
        shot = changed("strain_limit = 1.5e-3\n", f"strain_limit = 1.5e-3\n{keys}")
        limit = np.full(shot.n_particles, shot.materials["clay"].strain_limit)
        world = make_world(build_solid(shot.placed_bodies), shot.setup)
        told = re.search(r"from (?:about )?(\S+) m/s on", shot.plan.body_text(0))
        assert told is not None
        assert float(told[1]) == pytest.approx(breaking_speeds(world, limit)[0], rel=0.05)


def test_what_never_breaks_has_no_such_speed(drop: Path) -> None:
    assert "tried out" not in changed('name = "tile"', 'name = "tile"\nwhole = true'
                                      ).plan.body_text(0)


def test_the_effort_is_that_of_impacts_and_of_the_engine(drop: Path) -> None:
    plan = load_shot(drop).plan
    (_, bonds), (_, engine) = plan.effort(4.0, 1e-3)
    steps = 2 * 5e-3 / plan.ticks.timestep
    assert bonds == pytest.approx(1e-3 * steps, rel=1e-2)
    (_, no_more), (_, longer) = plan.effort(8.0, 1e-3)
    assert no_more == bonds and longer == pytest.approx(2.0 * engine)
    # A budget of few steps is never exceeded.
    few = changed('[camera]', '[sim.auto]\nmost_steps = 100\n[camera]').plan
    assert few.effort(4.0, 1e-3)[0][1] == pytest.approx(0.1)


@pytest.mark.parametrize("scale, method, is_warned", [
    (1.0, "bonds", True), (1e-4, "bonds", False), (1.0, "auto", False), (1.0, "rigid", False)])
def test_days_of_bonds_at_real_time_are_warned_of(
    drop: Path, vfx, monkeypatch: pytest.MonkeyPatch, scale: float, method: str, is_warned: bool
) -> None:
    import dataclasses

    from vfx.sim.schedule import SOLVERS

    for name, room in SOLVERS.items():
        monkeypatch.setitem(SOLVERS, name, dataclasses.replace(
            room, pace=lambda device, setup: 100.0))
    written(DROP.replace("time_scale = 1.0", f"time_scale = {scale}")
            .replace('method = "auto"', f'method = "{method}"\n[sim.bonds]\ntimestep = "auto"'))
    result = vfx("check", drop)
    assert result.exit_code == 0, result.output
    found = 'with method = "auto" in [sim] bodies are rigid until' in result.output
    assert found == is_warned and (not is_warned or "valid, but see the warnings" in result.output)


@pytest.mark.parametrize("old, new, complaint", [
    ('"auto"', '"atuo"', r"sim\.method: found 'atuo', but it must be one of bonds, rigid, auto; "
                         "did you mean 'auto'"),
    ("time_scale = 1.0", "steps_per_frame = 50",
     r"time\.steps_per_frame: does not go with method = \"auto\".*time_scale"),
    ("[camera]", "[sim.auto]\ncaution = 0\n[camera]",
     r"sim\.auto\.caution: found 0, but it must be at least 0\.1"),
    ("[camera]", '[sim.auto]\nimpact_speed = "fast"\n[camera]',
     r"sim\.auto\.impact_speed: found 'fast', but it must be a number or \"auto\""),
    ("[camera]", "[sim.auto]\nleast_mass = 2.0\n[camera]",
     r"sim\.auto\.least_mass: found 2\.0, but it must be at most 1"),
    ("[camera]", "[sim.auto]\nquite_time = 2.0\n[camera]",
     r"sim\.auto\.quite_time: unknown key; did you mean 'quiet_time'"),
    ("[camera]", "[sim.rigid]\ntimestep = 1.0\n[camera]",
     r"sim\.rigid\.timestep: found 1\.0, but it must be at most 0\.05 s"),
    ("[camera]", "[[projectiles]]\nposition = [0, 1, 0]\nvelocity = [0, -1, 0]\n[camera]",
     r"projectiles\[1\]\.push: found \"auto\".*levine.*give the ball a mass or a material"),
    ('place = "on-floor"\nfall_speed = 6.0', "center = [0.0, 0.005, 0.0]",
     r"bodies\[1\]\.center: body 'tile' has its lowest point at y = -\S+ m, below the floor at 0 "
     r"m; raise it to center"),
    ('place = "on-floor"\nfall_speed = 6.0', "center = [0.0, -1.0, 0.0]",
     r"bodies\[1\]\.center: .*below the floor"),
])
@pytest.mark.parametrize("method", ["auto", "rigid"])
def test_what_cannot_run_is_refused_before_anything_is_written(
    drop: Path, vfx, method: str, old: str, new: str, complaint: str
) -> None:
    assert old in DROP
    text = DROP.replace(old, new)
    if method == "rigid":
        text = text.replace('method = "auto"', 'method = "rigid"')
        complaint = complaint.replace(r"method = \"auto\"", r"method = \"rigid\"")
    written(text)
    for command in ("check", "run"):
        result = vfx(command, drop)
        assert result.exit_code == 2, result.output
        assert re.search(rf"drop\.toml: {complaint}", result.output), result.output
        assert not Path("work").exists()


@pytest.mark.parametrize("method", ["auto", "rigid"])
def test_a_missing_engine_is_a_missing_package(
    drop: Path, vfx, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    written(DROP.replace('method = "auto"', f'method = "{method}"'))
    monkeypatch.setitem(sys.modules, "rapier3d", None)
    for command in ("check", "run"):
        result = vfx(command, drop)
        assert result.exit_code == 3, result.output
        assert re.search(rf"drop\.toml: sim\.method: found '{method}', but rigid bodies need the "
                         r"package rapier3d.*pip install 'rapier3d", result.output)
        assert not Path("work").exists()
    # Those who only hand the shot over to a farm need no engine.
    inputs = Inputs(load_shot(drop))
    checks.engine(inputs, checks.ANY_MACHINE)
    with pytest.raises(MissingInput):
        checks.engine(inputs, checks.this_machine())
    written(DROP.replace('method = "auto"', 'method = "bonds"\n[sim.bonds]\ntimestep = "auto"'))
    assert vfx("check", drop).exit_code == 0


def test_progress_tells_what_goes_on(drop: Path, vfx, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, bool]] = []

    def update(self: Progress, frame: int | None, fraction: float, note: str = "", *,
               is_even: bool = True) -> None:
        told.append((note, is_even))

    vfx("stage", "geometry", drop)
    monkeypatch.setattr(Progress, "update", update)
    assert vfx("stage", "sim", drop, "--device", "cpu").exit_code == 0
    notes = [note for note, _ in told]
    assert not any(is_even for _, is_even in told)
    assert not any("steps/s" in note for note in notes)
    assert any(re.search(r"t = \S+ m?s, 72 elements in bonds, impact at \S+ ms of at most 5 ms",
                         note) for note in notes)
    assert any(re.search(r"t = \S+ m?s, rigid", note) for note in notes)
