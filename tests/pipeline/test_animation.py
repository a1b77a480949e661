"""A body that follows an animation: exactly there before it is let go, in free flight after."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.solids import build_solid
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.inputs import Inputs
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.stages.table import GEOMETRY, SIM, physics_section
from vfx.pipeline.work.folder import Work
from vfx.sim.control.controls import make_world
from vfx.sim.solver import IN_BONDS, LET_GO, Solver, World

pytest.importorskip("pxr")

SHOT = """\
[shot]
frames = "1001-1030"
[time]
fps = {fps}
time_scale = {scale}
[[bodies]]
name = "brick"
material = "clay"
cells = [4, 2, 3]
spacing = 0.02
center = [0.3, 1.0, -0.2]
animation = "move.usda"
animation_until = {until}
[materials.clay]
[sim]
method = "{method}"
"""
CENTER = np.array([0.3, 1.0, -0.2])
GRAVITY = np.array([0.0, -9.81, 0.0])
#: Where the animated thing begins and how it moves, by frames from the first.
START, WAY = np.array([0.3, 1.0, -0.2]), np.array([0.03, 0.05, -0.01])
BEND = np.array([0.0, -0.0011, 0.0004])
#: Degrees a frame about y, an axis of the brick.
TURN = 7.0


def place(frame: float) -> np.ndarray:
    return START + WAY * frame + BEND * frame**2


def animated(frame: float) -> np.ndarray:
    """Where the file has it: straight from sample to sample."""
    share = frame - math.floor(frame)
    return (1.0 - share) * place(math.floor(frame)) + share * place(math.floor(frame) + 1)


def usda(last: int = 60, *, meter: float = 1.0, up: str = "Y", first: int = 1001,
         name: str = "mover", spin: float = TURN, extra: str = "") -> str:
    """A file with a thing that moves along a parabola and turns about what is up in the world."""
    def local(vector: np.ndarray) -> str:
        x, y, z = vector / meter
        return str(tuple(map(float, (x, y, z) if up == "Y" else (x, -z, y))))

    frames = range(-3, last)
    moves = ", ".join(f"{first + k}: {local(place(k))}" for k in frames)
    turns = ", ".join(f"{first + k}: {spin * k}" for k in frames)
    return f"""#usda 1.0
(
    metersPerUnit = {meter}
    upAxis = "{up}"
)
def Xform "{name}"
{{
    double3 xformOp:translate.timeSamples = {{ {moves} }}
    double xformOp:rotate{up}.timeSamples = {{ {turns} }}
    double3 xformOp:scale = (2, 2, 2)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotate{up}", "xformOp:scale"]
}}
{extra}
"""


def make_shot(folder: Path, *, fps: float = 24.0, scale: float = 1.0, until: float = 1012,
              method: str = "rigid", text: str | None = None) -> Shot:
    (folder / "move.usda").write_text(usda() if text is None else text)
    path = folder / "throw.toml"
    path.write_text(SHOT.format(fps=fps, scale=scale, until=until, method=method))
    return load_shot(path)


def make_solver(shot: Shot) -> tuple[Solver, World[Any]]:
    import dataclasses

    setup = dataclasses.replace(shot.setup, settings=shot.plan.settings)
    world = make_world(build_solid(shot.placed_bodies), setup, {}, Inputs(shot).courses())
    return shot.solver.build(open_device("cpu", 1), world), world


def advance(solver: Solver, time: float) -> None:
    from vfx.sim.solver import Outcome

    while solver.advance(time, 10.0) is not Outcome.REACHED:
        pass


@pytest.mark.parametrize("file", [
    {}, {"meter": 0.01, "up": "Z"}, {"last": 12}], ids=["plain", "z up, cm", "ends there"])
@pytest.mark.parametrize("shot", [
    {}, {"method": "auto"}, {"fps": 25.0}, {"scale": 0.37, "method": "auto"},
    {"until": 1010.3, "fps": 30.0}], ids=str)
def test_a_thrown_body_flies_the_parabola_and_keeps_its_spin(
    tmp_path: Path, file: dict[str, Any], shot: dict[str, Any]
) -> None:
    if file.get("last") and "until" in shot:
        pytest.skip("the file has to go on to the frame after")
    made = make_shot(tmp_path, text=usda(**file), **shot)
    solver, world = make_solver(made)
    rest = world.solid.position - CENTER
    # Frames are the animation's clock; how long one is in the world is the shot's affair.
    length = made.frame_time
    last = shot.get("until", 1012) - 1001
    speed = (WAY + 2.0 * BEND * last) / length
    spin = math.radians(TURN) / length
    for frame in range(1001, 1025):
        advance(solver, made.time_of(frame))
        k = solver.time / length
        since = solver.time - last * length
        center = (animated(k) if k <= last else
                  animated(last) + since * speed + 0.5 * since**2 * GRAVITY)
        turned = Rotation.from_rotvec([0.0, math.radians(TURN) * k, 0.0]).apply(rest)
        now = solver.matter()
        assert np.abs(now.position - center - turned).max() < 1e-6, frame
        if k > last:
            middle = np.average(now.velocity, axis=0)
            np.testing.assert_allclose(middle, speed + since * GRAVITY, rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(
                now.velocity - middle, np.cross([0.0, spin, 0.0], turned), atol=1e-5 * spin)


@pytest.mark.parametrize("method", ["rigid", "auto"])
def test_it_resumes_to_the_same_bits(tmp_path: Path, method: str) -> None:
    shot = make_shot(tmp_path, method=method, fps=25.0)
    whole, _ = make_solver(shot)
    states = {}
    for frame in range(1002, 1022):
        advance(whole, shot.time_of(frame))
        states[frame] = whole.state()
    for begun in (1005, 1012, 1013, 1015):
        again, _ = make_solver(shot)
        again.restore(states[begun])
        advance(again, shot.time_of(1021))
        for name, value in again.state().items():
            assert np.array_equal(value, states[1021][name]), (begun, name)
        assert np.array_equal(again.matter().position, whole.matter().position)


def test_what_stands_in_its_way_is_pushed_aside(tmp_path: Path) -> None:
    make_shot(tmp_path)
    path = tmp_path / "throw.toml"
    path.write_text(path.read_text() + """\
gravity = [0, 0, 0]
[[bodies]]
name = "other"
material = "clay"
cells = [2, 2, 2]
spacing = 0.02
center = [0.5, 1.29, -0.26]
[floor]
enabled = false
""")
    shot = load_shot(path)
    solver, world = make_solver(shot)
    advance(solver, shot.time_of(1010))
    other = world.solid.body == 1
    speed = np.linalg.norm(solver.matter().velocity[other].mean(axis=0))
    assert speed > 0.3, "it was hit"
    brick = solver.matter().position[~other].mean(axis=0)
    assert np.abs(brick - place(9)).max() < 1e-6, "and nothing stops what follows its animation"


@pytest.mark.parametrize("until, breaks", [(1004, True), (1020, False)])
def test_it_breaks_when_it_was_let_go_and_not_before(
    tmp_path: Path, until: int, breaks: bool
) -> None:
    """A brick that an animation throws down on the floor, or pushes through it."""
    make_shot(tmp_path, method="auto", until=until)
    path = tmp_path / "move.usda"
    path.write_text(re.sub(r"translate\.timeSamples = \{[^}]*\}", "translate.timeSamples = {"
                           "1001: (0, 1, 0), 1021: (0, -3, 0)}", path.read_text()))
    shot_file = tmp_path / "throw.toml"
    shot_file.write_text(shot_file.read_text().replace(
        "[materials.clay]", "[materials.clay]\nbulk_modulus = 4e7\nstrain_limit = 1e-3\n"
        "density = 2000.0"))
    shot = load_shot(shot_file)
    solver, _ = make_solver(shot)
    advance(solver, shot.time_of(1012))
    news = solver.news()
    told = [event.what for event in news]
    assert not breaks or news[0].time == pytest.approx(shot.time_of(until), abs=1e-9)
    assert told[:2] == ([LET_GO, IN_BONDS] if breaks else [])
    assert (len(solver.broken()) > 0) == breaks


def test_the_simulation_alone_depends_on_what_is_in_the_file(tmp_path: Path) -> None:
    def prints(shot: Shot) -> tuple[str | None, str | None]:
        work = Work(shot, tmp_path / "work")
        return work.fingerprint(GEOMETRY, 1001), str(Inputs(shot).sim_hashes()) + str(
            physics_section(shot))

    shape, motion = prints(make_shot(tmp_path))
    other_file = prints(make_shot(tmp_path, text=usda(spin=8.0)))
    later = prints(make_shot(tmp_path, until=1013))
    assert shape == other_file[0] == later[0]
    assert len({motion, other_file[1], later[1]}) == 3
    assert prints(make_shot(tmp_path)) == (shape, motion)
    make_shot(tmp_path)
    (tmp_path / "move.usda").unlink()
    assert Inputs(load_shot(tmp_path / "throw.toml")).sim_hashes() is None
    assert any(take.name == "density pictures" for take in SIM.takes)
    plain = tmp_path / "throw.toml"
    plain.write_text("".join(line for line in plain.read_text().splitlines(True)
                             if not line.startswith("animation")))
    assert "animation" not in str(physics_section(load_shot(plain)))
    assert Inputs(load_shot(plain)).sim_hashes() == []


STILL = '#usda 1.0\ndef Xform "still"\n{\n}\n'


@pytest.mark.parametrize("text, complaint", [
    (usda(extra=usda(name="second").split(")\n", 1)[1]), "has 2 prims that move .*animation_prim"),
    (STILL, "has nothing that moves"),
    (usda().replace("(2, 2, 2)", "(2, -2, 2)"), "mirrors it"),
    (usda().replace("double3 xformOp:scale = (2, 2, 2)",
                    "double3 xformOp:scale.timeSamples = {1001: (1, 1, 1), 1012: (2, 2, 2)}"),
     "its scale goes from .* a rigid body keeps its size"),
    (re.sub(r"1005: \([^,]+", "1005: (nan", usda()), "not finite: found .*nan"),
    (re.sub(r"1005: \([^,]+", "1005: (1e300", usda()),
     r"found the place .*e\+\d+.* within 1e\+07 m"),
    (usda(meter=1.0).replace("metersPerUnit = 1.0", "metersPerUnit = 0"), "metersPerUnit: found 0"),
    (usda().replace('upAxis = "Y"', 'upAxis = "X"'), "upAxis: found 'X'"),
    (usda(extra='def "a" (references = @other.usda@)\n{\n}\n'), "put together from other files"),
    ("no usd", "cannot be read|damaged"),
])
def test_a_file_that_no_body_can_follow_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    shot = make_shot(tmp_path, text=text)
    with pytest.raises(ShotError, match=rf"throw\.toml: bodies\[1\]\.animation: found "
                                        rf"'move\.usda': .*move\.usda.*({complaint})"):
        Inputs(shot).courses()


@pytest.mark.parametrize("old, new, complaint", [
    ('"rigid"', '"bonds"', r"bodies\[1\]\.animation: found 'move\.usda', but with method = "
                           r"\"bonds\" no body follows an animation; write method = \"auto\" or"),
    ("_until = 1012", "_until = 1001", r"animation_until: found 1001, but the shot begins at frame "
                                       "1001; give a later frame"),
    ("animation_until = 1012", "", "animation_until: missing"),
    ('animation = "move.usda"', "", r"animation_until: found 1012\.0, but there is no animation"),
    ('animation = "move.usda"', 'animation = "move.usda"\nvelocity = [1, 0, 0]',
     "velocity: stands beside animation"),
])
def test_keys_that_do_not_go_together_are_refused(
    tmp_path: Path, old: str, new: str, complaint: str
) -> None:
    make_shot(tmp_path)
    path = tmp_path / "throw.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(ShotError, match=complaint):
        load_shot(path)


def test_a_missing_file_is_missing_input(tmp_path: Path, vfx, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shot = make_shot(tmp_path)
    (tmp_path / "move.usda").unlink()
    with pytest.raises(MissingInput, match=r"animation: found 'move\.usda': .*no such file"):
        Inputs(shot).courses()
    for command in ("check", "run"):
        assert vfx(command, "throw.toml").exit_code == 3
    assert not Path("work").exists()


def test_one_of_several_is_named(tmp_path: Path) -> None:
    two = usda(extra=usda(name="second", spin=0.0).split(")\n", 1)[1])
    make_shot(tmp_path, text=two)
    path = tmp_path / "throw.toml"
    text = path.read_text()
    for prim, angle in (("/mover", math.radians(11 * TURN)), ("/second", 0.0)):
        path.write_text(text.replace("[materials", f'animation_prim = "{prim}"\n[materials'))
        course, = Inputs(load_shot(path)).courses()
        turned = Rotation.from_matrix(course.rotation[-1]).magnitude()
        assert turned == pytest.approx(angle, abs=1e-9)
    path.write_text(text.replace("[materials", 'animation_prim = "/third"\n[materials'))
    with pytest.raises(ShotError, match=r"nothing with a transform at '/third'; it has /mover"):
        Inputs(load_shot(path)).courses()
