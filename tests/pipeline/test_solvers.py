"""A solver is a room: a second one in the table goes all the way with nothing else changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.sim.toy_solver import TOY, ToySolver
from vfx.pipeline.errors import ShotError
from vfx.pipeline.shot.reference import reference
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.stages import sim as stage_sim
from vfx.pipeline.stages.table import physics_section
from vfx.pipeline.work.cache import read_npz
from vfx.sim.schedule import SOLVERS

SHOT = """\
[shot]
frames = "1001-1004"
[time]
time_scale = 1.0
[[bodies]]
name = "bar"
material = "clay"
cells = [4, 1, 1]
spacing = 0.02
center = [0.0, 0.3, 0.0]
[materials.clay]
[sim]
method = "toy"
[sim.toy]
split_at = 0.06
[floor]
enabled = false
[camera]
position = [0.0, 0.3, 0.6]
target = [0.0, 0.28, 0.0]
[render]
resolution = [32, 18]
samples = 1
passes = ["beauty"]
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shot of the toy solver, which is in the table."""
    monkeypatch.setitem(SOLVERS, "toy", TOY)
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, SHOT)


def write(folder: Path, text: str) -> Path:
    path = folder / "bar.toml"
    path.write_text(text)
    return path


def test_a_second_solver_goes_through_sim_align_and_render(toy: Path, vfx) -> None:
    said = vfx("check", toy).output
    assert "bodies split after 0.06 s" in said and "two halves" in said
    result = vfx("run", toy, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert "sim: halves part" in result.output
    for frame, n_pieces in ((1001, 1), (1002, 1), (1003, 2), (1004, 2)):
        motion = read_npz(Path(f"work/bar/sim/frame.{frame}.npz"))
        assert float(motion["time"]) == (frame - 1001) / 24
        assert len(motion["broken_edge"]) == (frame == 1003)
        pieces = read_npz(Path(f"work/bar/align/frame.{frame}.npz"))
        assert len(pieces["id"]) == n_pieces
        assert Path(f"work/bar/render/bar.{frame}.exr").is_file()
    apart = np.ptp(pieces["center"][:, 0])
    assert apart == pytest.approx(0.04 + 2 * (3 / 24 - 0.06))


def test_a_second_solver_resumes_from_its_checkpoint(
    toy: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frames(work: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in Path(work, "sim").glob("frame.*.npz")}

    assert vfx("run", toy, "--work", "whole", "--device", "cpu").exit_code == 0
    assert vfx("run", toy, "--work", "parts", "--device", "cpu", "--frames",
               "1001-1002").exit_code == 0
    asked: list[float] = []
    monkeypatch.setattr(ToySolver, "advance", lambda self, until, seconds, advance=(
        ToySolver.advance): (asked.append(until), advance(self, until, seconds))[1])
    again = vfx("stage", "sim", toy, "--work", "parts", "--device", "cpu")
    assert "going on from a checkpoint at step 10, which is frame 1002" in again.output
    assert min(asked) > 1 / 24
    assert frames("whole") == frames("parts")


def test_a_solver_that_comes_back_early_is_told_to_go_on(
    toy: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = list(stage_sim.Outcome)

    def advance(self: ToySolver, until: float, seconds: float) -> object:
        self.step += 1
        if self.step % 4:
            return outcomes[1 + self.step % 3]
        self.time = until
        return stage_sim.Outcome.REACHED

    assert set(outcomes[1:]) == set(outcomes) - {stage_sim.Outcome.REACHED}
    monkeypatch.setattr(ToySolver, "advance", advance)
    vfx("stage", "geometry", toy)
    assert vfx("stage", "sim", toy, "--device", "cpu").exit_code == 0
    assert float(read_npz(Path("work/bar/sim/frame.1004.npz"))["time"]) == 3 / 24


def test_schema_fingerprint_and_reference_follow_from_the_table(toy: Path) -> None:
    shot = load_shot(toy)
    assert physics_section(shot)["solver"] == {"split_at": 0.06, "speed": 1.0}
    assert physics_section(shot)["sim"]["method"] == "toy"
    text = reference()
    assert "## `[sim.toy]`" in text and '`"auto"`, `"toy"`' in text
    assert '"toy"' not in text.split("## `[sim.toy]`")[1]


@pytest.mark.parametrize("old, new, complaint", [
    ('method = "toy"', 'method = "tyo"',
     "sim.method: found 'tyo', but it must be one of bonds, rigid, auto, toy; did you mean 'toy'?"),
    ('method = "toy"', "method = 3", "sim.method: found 3, but it must be a text in quotes"),
    ("split_at = 0.06", "split_at = -1", "sim.toy.split_at: found -1, but it must be at least 0 s"),
    ("split_at = 0.06", "splt_at = 1", "sim.toy.splt_at: unknown key; did you mean 'split_at'?"),
    ("split_at = 0.06", "horizon = 1", "sim.toy.horizon: unknown key; it belongs in [sim.bonds]"),
    ('method = "toy"', 'method = "toy"\nhorizon = 2.0',
     "sim.horizon: unknown key; it belongs in [sim.bonds]"),
    ('method = "toy"', 'method = "toy"\nsplit_at = 0.1',
     "sim.split_at: stands in [sim] and in [sim.toy]; keep the one in [sim.toy]"),
    ('method = "toy"', 'method = "toy"\nsped = 0.1',
     "sim.sped: unknown key; did you mean 'speed'?"),
    ('method = "toy"', 'method = "toy"\nspeed = -1', "sim.speed: found -1, but it must be"),
    ('[sim.toy]\nsplit_at = 0.06', 'toy = 3', "sim.toy: found 3, but this is a section"),
    ('[sim.toy]', '[sim.bonds]\nhorizon = 0\n[sim.toy]', "sim.bonds.horizon: found 0, but it must"),
    ('[sim.toy]', '[sim.fluid]\n[sim.toy]', "sim.fluid: unknown key; the keys here are"),
])
def test_mistakes_in_sections_of_solvers_are_named_where_they_stand(
    toy: Path, old: str, new: str, complaint: str
) -> None:
    assert old in SHOT
    with pytest.raises(ShotError) as caught:
        load_shot(write(toy.parent, SHOT.replace(old, new)))
    assert f"{toy}: {complaint}" in str(caught.value)


BONDS = SHOT.replace('method = "toy"\n[sim.toy]\nsplit_at = 0.06\n', "{}")


def test_keys_of_a_solver_count_in_sim_as_in_its_own_section(tmp_path: Path) -> None:
    def read(keys: str) -> Shot:
        return load_shot(write(tmp_path, BONDS.replace("{}", keys)))

    old = read("gravity = [0, -1, 0]\nhorizon = 2.0\ntimestep = 1e-3\n")
    new = read("gravity = [0, -1, 0]\n[sim.bonds]\nhorizon = 2.0\ntimestep = 1e-3\n")
    both = read("gravity = [0, -1, 0]\nhorizon = 2.0\n[sim.bonds]\ntimestep = 1e-3\n")
    for shot in (new, both):
        assert shot.sim == old.sim and shot.solver_settings == old.solver_settings
        assert physics_section(shot) == physics_section(old)
    # A complaint names the place where the key stands.
    for shot, place in ((old, "sim.timestep"), (new, "sim.bonds.timestep")):
        with pytest.raises(ShotError, match=rf": {place}: 0.001 s is above the stable step"):
            stage_check(shot)


def stage_check(shot: Shot) -> None:
    from vfx.pipeline.shot.needs import check_physics

    check_physics(shot, 2**40)


def test_settings_of_solvers_that_are_not_used_change_no_fingerprint(toy: Path) -> None:
    before = physics_section(load_shot(toy))
    write(toy.parent, SHOT + "[sim.bonds]\nhorizon = 2.0\n")
    assert physics_section(load_shot(toy)) == before
