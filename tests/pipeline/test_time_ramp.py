"""Time ramps: a speed that goes from key to key, whose integral is exact wherever it is read."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.pipeline.chaotic_plate import SHOT
from tests.sim.toy_solver import TOY
from vfx.geometry.handoff.types import Faces, Pieces
from vfx.pipeline.errors import ShotError
from vfx.pipeline.export.vdb import flight_time
from vfx.pipeline.shot.needs import check_physics
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.stages.render import neighbors
from vfx.pipeline.stages.table import physics_section, picture_section
from vfx.pipeline.work.cache import read_npz
from vfx.raytrace.camera.motion import Neighbors, coasted, moved_pieces
from vfx.sim.schedule import SOLVERS
from vfx.sim.solver import Clock

KEYS = ((1001.0, 1.0), (1010.0, 1.0), (1012.0, 0.05), (1030.0, 0.05), (1034.0, 1.0))
ramps = st.lists(st.tuples(st.floats(-50, 50), st.floats(1e-3, 10)), min_size=1, max_size=6,
                 unique_by=lambda key: key[0]).map(lambda keys: tuple(sorted(keys)))


def ramp_shot(folder: Path, keys: object = KEYS, *, frames: str = "1001-1040",
              step: str = '"auto"') -> Shot:
    listed = keys if isinstance(keys, str) else str([list(key) for key in keys])
    path = folder / "ramp.toml"
    path.write_text(SHOT.replace("steps_per_frame = 25", f"time_keys = {listed}")
                    .replace("1001-1006", frames).replace("seed = 1", f"timestep = {step}"))
    return load_shot(path)


def test_time_is_the_closed_integral_of_the_speed(tmp_path: Path) -> None:
    shot = ramp_shot(tmp_path)
    passed = {1000: -1.0, 1001: 0.0, 1005.5: 4.5, 1010: 9.0, 1011: 9.0 + 0.5 * (1.0 + 0.525),
              1012: 10.05, 1030: 10.95, 1034: 13.05, 1040: 19.05, 1100.25: 79.3}
    for frame, frames in passed.items():
        assert shot.time_of(frame) == pytest.approx(frames / 24.0, abs=1e-15), frame
    assert shot.time_of(1001) == 0.0
    assert shot.speed_at(1020) == pytest.approx(0.05) and shot.speed_at(1011) == 0.525


@settings(max_examples=100, deadline=None)
@given(ramps, st.lists(st.floats(-80, 80), min_size=2, max_size=8))
def test_time_rises_and_is_the_sum_of_fine_steps(keys, frames) -> None:
    clock = Clock(24.0, None, None, keys)
    times = [clock.key_time(frame) for frame in sorted(frames)]
    assert all(b >= a for a, b in itertools.pairwise(times))
    for frame in frames:
        middle = (np.arange(4000) + 0.5) / 4000 * frame
        mean = np.mean([clock.key_speed(each) for each in middle[::20]])
        assert clock.key_time(frame) == pytest.approx(mean * frame / 24.0, rel=0.05, abs=0.05)
        # Its slope is the speed.
        slope = (clock.key_time(frame + 1e-4) - clock.key_time(frame - 1e-4)) / 2e-4
        nearest = min((abs(frame - key) for key, _ in keys), default=1.0)
        if nearest > 1e-3:
            assert slope * 24.0 == pytest.approx(clock.key_speed(frame), rel=1e-6)
    assert clock.frame_time is not None and clock.longest_frame is not None
    assert all(clock.frame_time * (1 - 1e-9) <= clock.key_time(x + 1) - clock.key_time(x)
               <= clock.longest_frame * (1 + 1e-9) for x in (-3.0, 0.0, 0.5, 7.0))


def test_one_key_is_a_time_scale(tmp_path: Path) -> None:
    ramp = ramp_shot(tmp_path, ((1001.0, 0.25),))
    path = tmp_path / "even.toml"
    path.write_text(SHOT.replace("steps_per_frame = 25", "time_scale = 0.25")
                    .replace("seed = 1", "timestep = 'auto'"))
    even = load_shot(path)
    for frame in (990, 1001, 1001.5, 1040):
        assert ramp.time_of(frame) == pytest.approx(even.time_of(frame), rel=1e-15)
    assert ramp.plan.settings.timestep == even.plan.settings.timestep


@pytest.mark.parametrize(("keys", "complaint"), [
    ("[]", "time.time_keys: found no key; give one or more"),
    ("[[1010, 1.0], [1010, 0.5]]", "time.time_keys: frame 1010 stands after 1010; frames must"),
    ("[[1010, 1.0], [1005, 0.5]]", "time.time_keys: frame 1005 stands after 1010"),
    ("[[1010, 0.0]]", "time.time_keys: found a speed of 0 at frame 1010, but it must be"),
    ("[[1010, -1.0]]", "time.time_keys: found a speed of -1 at frame 1010"),
    ("[[1010]]", "time.time_keys: found [[1010]], but it must be a list of lists of 2 numbers"),
    ("[[1010, nan]]", "must be a finite number"),
    ("[[1001, 1.0]]\ntime_scale = 1.0", "time: gives both time_scale and time_keys; keep one"),
    ("[[1001, 1.0]]\nsteps_per_frame = 5", "gives both steps_per_frame and time_keys"),
])
def test_mistakes_in_ramps_are_named(tmp_path: Path, keys: str, complaint: str) -> None:
    with pytest.raises(ShotError) as caught:
        ramp_shot(tmp_path, keys)
    assert complaint in str(caught.value)


def test_an_automatic_step_is_stable_and_short_enough_for_every_frame(tmp_path: Path) -> None:
    shot = ramp_shot(tmp_path, ((1001.0, 1e-3), (1004.0, 2e-5), (1009.0, 2e-3)))
    plan = check_physics(shot, 2**40)
    steps = [plan.n_steps(shot.time_of(frame)) for frame in shot.frames]
    assert plan.settings.timestep <= plan.stable_step
    assert (np.diff(steps) >= 1).all()
    assert " to " in plan.time_text() and "steps of" in plan.time_text()
    too_slow = ramp_shot(tmp_path, ((1001.0, 1.0), (1004.0, 1e-9)), step="1e-7")
    with pytest.raises(ShotError, match=r"time.time_keys: found 1e-09, which makes 0.000417 steps"):
        check_physics(too_slow, 2**40)


def test_fingerprints_know_the_ramp_and_are_as_before_without(tmp_path: Path) -> None:
    one, other = ramp_shot(tmp_path), ramp_shot(tmp_path, (*KEYS[:-1], (1034.0, 0.9)))
    assert physics_section(one) != physics_section(other)
    assert picture_section(one) != picture_section(other)
    even = load_shot(_even(tmp_path))
    assert physics_section(even)["time"] == [1001, 25, None]
    assert "time_keys" not in picture_section(even)


def _even(folder: Path) -> Path:
    path = folder / "even.toml"
    path.write_text(SHOT)
    return path


def flying(frame: int, time: float) -> Pieces:
    """Return a piece and a ball that fly evenly in simulated time, the piece spinning."""
    return Pieces(
        frame=frame, time=time, fragment=np.zeros(1, np.int32), id=np.zeros(1, np.int32),
        rotation=np.array([[[np.cos(9 * time), 0, np.sin(9 * time)], [0, 1, 0],
                            [-np.sin(9 * time), 0, np.cos(9 * time)]]]),
        translation=np.array([[3.0 * time, 0.0, 0.0]]), center=np.array([[3.0 * time, 0.0, 0.0]]),
        velocity=np.array([[3.0, 0.0, 0.0]]), angular_velocity=np.array([[0.0, 9.0, 0.0]]),
        mass=np.ones(1), damage=np.zeros(1, np.float32),
        projectile_position=np.array([[0.0, 7.0 * time, 0.0]]), projectile_radius=np.ones(1))


NO_FACES = Faces(np.zeros((0, 3)), np.zeros(1, np.int64), np.zeros(0, np.int32),
                 np.zeros((0, 2), np.int32), np.zeros(0, np.int32), np.zeros((0, 3), np.float32),
                 np.zeros((0, 2), np.float32), np.zeros(0, np.int32))


@pytest.mark.parametrize("frame", [1010, 1011, 1012, 1040])
@pytest.mark.parametrize("beside", ["both", "none"])
def test_while_the_shutter_is_open_things_go_as_fast_as_time_does(
    tmp_path: Path, frame: int, beside: str
) -> None:
    shot = ramp_shot(tmp_path)
    now, before, after = (flying(each, shot.time_of(each))
                          for each in (frame, frame - 1, frame + 1))
    near = neighbors(shot, frame, *((before, after) if beside == "both" else (None, None)))
    for part in (-0.5, -0.2, 0.25, 0.5):
        moved = moved_pieces(now, near, part, NO_FACES)
        there = flying(frame, shot.time_of(frame + part))
        assert moved.time == pytest.approx(there.time, rel=1e-12)
        np.testing.assert_allclose(moved.center, there.center, rtol=1e-9)
        np.testing.assert_allclose(moved.rotation, there.rotation, atol=1e-9)
        if beside == "both":
            np.testing.assert_allclose(moved.projectile_position, there.projectile_position,
                                       rtol=1e-9)
    # Behind the last frame a ball goes on as fast as it came.
    alone = dataclasses.replace(near, previous=before, following=None)
    np.testing.assert_allclose(coasted(now, alone, forward=True).projectile_position,
                               after.projectile_position, rtol=1e-9)


def test_without_a_ramp_the_way_between_frames_has_the_same_bits(tmp_path: Path) -> None:
    shot = load_shot(_even(tmp_path))
    near = neighbors(shot, 1002, None, None)
    assert near == Neighbors(None, None, shot.frame_time)
    assert (near.part(-0.3), near.seconds(-1.0)) == (0.3, -shot.frame_time)


def test_dust_flies_as_far_as_time_takes_it(tmp_path: Path) -> None:
    """Against the integral of exp(-age / 6 frames) over simulated time, with the same speed."""
    age = np.array([0.0, 1.0, 4.0, 12.0])
    ramp = ramp_shot(tmp_path)
    flight = flight_time(ramp, 1014, age)
    for years, seconds in zip(age, flight, strict=True):
        x = 1014 - years + (np.arange(20_000) + 0.5) / 20_000 * years
        speed = np.interp(x, *np.array(KEYS).T)
        expected = (speed * np.exp(-(x - 1014 + years) / 6.0)).mean() * years / 24.0
        assert seconds == pytest.approx(expected, rel=0.02, abs=1e-12)
    same = ramp_shot(tmp_path, ((1001.0, 0.2), (1011.0, 0.2)))
    path = tmp_path / "even.toml"
    path.write_text(SHOT.replace("steps_per_frame = 25", "time_scale = 0.2"))
    np.testing.assert_allclose(flight_time(same, 1014, age),
                               flight_time(load_shot(path), 1014, age), rtol=1e-12)


TOY_SHOT = """\
[shot]
frames = "1001-1005"
[time]
time_keys = [[1001, 1.0], [1002, 1.0], [1003, 0.1], [1004, 0.1]]
[[bodies]]
name = "bar"
material = "clay"
cells = [4, 1, 1]
spacing = 0.02
center = [0.0, 0.3, 0.0]
[materials.clay]
[sim]
method = "toy"
[floor]
enabled = false
[camera]
position = [0.0, 0.3, 0.6]
target = [0.0, 0.28, 0.0]
shutter_angle = 180.0
[render]
resolution = [32, 18]
samples = 1
passes = ["beauty", "forward"]
"""


def test_a_shot_with_a_ramp_goes_through_all_stages(
    tmp_path: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SOLVERS, "toy", TOY)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "bar.toml"
    path.write_text(TOY_SHOT)
    said = vfx("check", path)
    assert said.exit_code == 0, said.output
    assert "speed 1 at 1001, 1 at 1002, 0.1 at 1003, 0.1 at 1004" in said.output
    assert "72.9 ms in 5 frames" in said.output
    assert vfx("run", path, "--device", "cpu").exit_code == 0
    passed = [0.0, 1.0, 1.55, 1.65, 1.75]
    for frame, frames in zip(range(1001, 1006), passed, strict=True):
        motion = read_npz(Path(f"work/bar/sim/frame.{frame}.npz"))
        assert float(motion["time"]) == pytest.approx(frames / 24)
    assert vfx("review", path).exit_code == 0
    status = vfx("status", path)
    assert "make the rest" not in status.output, status.output
    pytest.importorskip("pxr", reason="usd-core is not installed")
    written = vfx("export", path, "--to", "usd", "--instancer-above", 0)
    assert written.exit_code == 0, written.output
    from pxr import Usd

    stage = Usd.Stage.Open(str(next(Path("work/bar").rglob("*.usd*"))))
    root = stage.GetDefaultPrim()
    assert root.GetAttribute("vfx:time").Get(1004) == pytest.approx(1.65 / 24)
    assert not root.GetCustomDataByKey("vfx:second_per_frame")
    # A velocity per second of the picture: what moves pieces from frame to frame.
    pieces = next(prim for prim in stage.Traverse() if prim.GetAttribute("velocities"))
    fall = 9.81 * 1.65 / 24 * 0.1
    assert pieces.GetAttribute("velocities").Get(1004)[0][1] == pytest.approx(-fall)
