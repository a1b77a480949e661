"""Shot files: every mistake is named, and no text makes the reader fail in any other way."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from chaotic_plate import SHOT
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vfx.geometry.handoff.bodies import Body
from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.needs import check_physics, plan_needs
from vfx.pipeline.shot.shot_file import LISTS, SECTIONS, Shot, load_shot, tables
from vfx.pipeline.shot.validate import Complaints, read_section
from vfx.pipeline.stages.table import physics_section, picture_section
from vfx.sim.settings import Projectile

any_file = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None,
                    max_examples=60)
plain_values = st.one_of(
    st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just({}),
    st.lists(st.one_of(st.integers(), st.floats(), st.text(max_size=3)), max_size=4))


def write(folder: Path, text: str) -> Path:
    path = folder / "a.toml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ShotError) as caught:
        load_shot(write(folder, text))
    return str(caught.value)


def test_a_shot_becomes_its_sections(shot_file: Path) -> None:
    shot = load_shot(shot_file)
    assert (shot.name, shot.first_frame, shot.last_frame) == ("plate", 1001, 1006)
    assert shot.bodies[0].cells == (4, 2, 1)
    assert shot.looks["glass"].specular == 0.1
    assert shot.time_of(1003) == 50 * 2.0**-23
    assert isinstance(shot.film.resolution, tuple)


def test_every_default_satisfies_its_own_rule() -> None:
    for name, cls in {**SECTIONS, **LISTS}.items():
        required = {"material": "glass", "cells": [1, 1, 1], "position": [0, 0, 0],
                    "velocity": [0, 0, 0], "origin": [0, 0, 0], "u": [1, 0, 0], "v": [0, 1, 0],
                    "frame": 1001}
        names = {field.name for field in dataclasses.fields(cls)
                 if field.default is dataclasses.MISSING}
        complaints = Complaints()
        section = read_section(cls, {key: required[key] for key in names}, name, complaints)
        assert section is not None, complaints.lines
        for field in dataclasses.fields(cls):
            rule = field.metadata["rule"]
            value = getattr(section, field.name)
            # Zeros stand for keys of a body, or of what is thrown as one, that are not given.
            if cls not in (Body, Projectile) or np.any(value):
                assert rule.complaint(value) is None, f"{name}.{field.name}"


@any_file
@given(data=st.data())
def test_a_misspelt_key_is_always_named_with_the_right_one(data: st.DataObject) -> None:
    section = data.draw(st.sampled_from(sorted(SECTIONS)))
    known = [field.name for field in dataclasses.fields(SECTIONS[section])]
    key = data.draw(st.sampled_from([name for name in known if len(name) > 3]))
    at = data.draw(st.integers(1, len(key) - 1))
    misspelt = key[:at] + key[at + 1:]
    complaints = Complaints()
    assert read_section(SECTIONS[section], {misspelt: 1}, section, complaints) is None
    assert complaints.lines[0].startswith(f"{section}.{misspelt}: unknown key; did you mean '")


@any_file
@given(section=st.sampled_from(sorted(SECTIONS)), value=plain_values, data=st.data())
def test_any_value_is_taken_or_refused_by_name(
    section: str, value: object, data: st.DataObject
) -> None:
    field = data.draw(st.sampled_from(dataclasses.fields(SECTIONS[section])))
    complaints = Complaints()
    read = read_section(SECTIONS[section], {field.name: value}, section, complaints)
    if read is None:
        assert complaints.lines[0].startswith(f"{section}.{field.name}: found ")
    else:
        assert field.metadata["rule"].complaint(getattr(read, field.name)) is None


@any_file
@given(text=st.text(max_size=200))
def test_any_text_is_refused_with_sentences(tmp_path: Path, text: str) -> None:
    message = refusal(tmp_path, text.encode("utf-8", "replace").decode())
    assert all(line.startswith(str(tmp_path)) for line in message.split("\n") if line)


@pytest.mark.parametrize("change, complaint", [
    ("[sim]\nhorizn = 3.0", "sim.horizn: unknown key; did you mean 'horizon'?"),
    ("[sim]\nfps = 24", "sim.fps: unknown key; it belongs in [time]"),
    ("[smi]\nseed = 1", "smi: unknown key; did you mean 'sim'?"),
    ("[sim]\nhorizon = '3'", "sim.horizon: found '3', but it must be a number"),
    ("[sim]\nhorizon = true", "sim.horizon: found true, but it must be a number"),
    ("[sim]\nseed = 1.5", "sim.seed: found 1.5, but it must be a whole number"),
    ("[sim]\nhorizon = 0.5", "sim.horizon: found 0.5, but it must be at least 1"),
    ("[sim]\nhorizon = nan", "sim.horizon: found nan, but it must be a finite number"),
    ("[sim]\ngravity = [0, inf, 0]", "sim.gravity: found [0, inf, 0]"),
    ("[sim]\ngravity = [0, 1]", "must be a list of 3 numbers"),
    ("[sim]\ntimestep = -1e-7", "sim.timestep: found -1e-07, but it must be at least 1e-21 s"),
    ("[sim]\ntimestep = 'atuo'",
     "sim.timestep: found 'atuo', but it must be a number or \"auto\"; did you mean 'auto'?"),
    ("[sim]\nseed = 3000000000", "must be at most 2147483647"),
    ("[time]\nfps = 0", "must be at least 0.1 frames/s"),
    ("[render]\nresolution = [0, 5]", "must be at least 1 pixel "),
    ("[shot]\nname = ''", "shot.name: found '', but it must be a plain word"),
    ("[[weakening]]\nnormal = [0, 0, 0]", "weakening[1].normal: found [0.0, 0.0, 0.0]"),
    ("[[weakening]]\npaths = 9\nstep = 1e-8", "weakening[1].step: found 1e-08 m"),
    ("[light]\nkey_direction = [1e-300, 0, 0]", "zero or too short"),
    ("[[area_lights]]\nposition = [0, 0, 0]\ntarget = [5e-324, 0, 0]",
     "area_lights[1].target: found [5e-324, 0.0, 0.0], which is the light's own position"),
    ("[camera]\nposition = [0, 0, 0]\ntarget = [1e-200, 0, 0]",
     "which is the camera's own position"),
    ("[render]\ncolor_space = 'aces'", "did you mean 'acescg'?"),
    ("[time]\nsteps_per_frame = 5\ntime_scale = 1.0", "keep one of them"),
    ("[light]\nkey_direction = [0, 0, 0]",
     "light.key_direction: found [0.0, 0.0, 0.0], which is zero"),
    ("[camera]\nup = [0, 0, 0]", "camera.up"),
    ("sim = 3", "sim: found 3, but this is a section"),
    ("bodies = 3", "bodies: is a list"),
    ("bodies = {cells = [1, 1, 1]}", "write [[bodies]] in two brackets"),
    ("[floor]\nenabled = 1", "floor.enabled: found 1, but it must be true or false"),
    ("[shot]\nframes = '1001:1010'", "shot.frames"),
    ("[shot]\nname = '../../evil'", "must be a plain word"),
    ("[shot]\nname = '/etc/passwd'", "must be a plain word"),
    ("[shot]\nname = 'a b'", "must be a plain word"),
])
def test_a_mistake_is_named_with_its_place_and_the_way_out(
    tmp_path: Path, change: str, complaint: str
) -> None:
    if change.startswith("bodies"):
        text = change
    else:
        text = change + "\n[[bodies]]\nmaterial = 'glass'\ncells = [1, 1, 1]\n[materials.glass]\n"
    message = refusal(tmp_path, text)
    assert complaint in message
    assert message.startswith(f"{tmp_path / 'a.toml'}: ")


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = SHOT.replace("seed = 1", "sede = 1\nhorizon = -1").replace("8, 6", "0, 6")
    lines = refusal(tmp_path, text).split("\n")
    assert len(lines) == 3


@pytest.mark.parametrize("change", [
    "", "[[bodies]]\nmaterial = 'glas'\ncells = [1, 1, 1]\n[materials.glass]",
    "bodies = []", "[[bodies]]\nmaterial = 'glass'\ncells = [0, 1, 1]\n[materials.glass]",
    "[[bodies]]\ncells = [1, 1, 1]", "[materials]\nglass = 3",
    2 * "[[bodies]]\nname = 'a'\nmaterial = 'g'\ncells = [1, 1, 1]\n" + "[materials.g]",
])
def test_bodies_that_cannot_be_are_refused(tmp_path: Path, change: str) -> None:
    assert "bodies" in refusal(tmp_path, change)


def test_invalid_toml_names_the_line(tmp_path: Path) -> None:
    assert f"{tmp_path / 'a.toml'}:2: not valid TOML" in refusal(tmp_path, "[shot]\nframes = \n")
    assert "UTF-8" in refusal_bytes(tmp_path, b"\xff\xfe")
    assert "nested" in refusal(tmp_path, "a = " + "[" * 100_000)


def refusal_bytes(folder: Path, data: bytes) -> str:
    path = folder / "b.toml"
    path.write_bytes(data)
    with pytest.raises(ShotError) as caught:
        load_shot(path)
    return str(caught.value)


def test_frames_are_met_at_the_nearest_step_and_do_not_drift(shot_file: Path) -> None:
    text = SHOT.replace("steps_per_frame = 25", "time_scale = 1.0").replace("1006", "9999")
    shot = load_shot(write(shot_file.parent, text))
    assert shot.time_of(1025) == pytest.approx(1.0, rel=1e-15)
    # A frame has 349,525 1/3 steps.
    assert steps_of(shot, (1001, 1002, 1003, 1004)) == [0, 349525, 699051, 1048576]
    for frame, step in zip((1002, 5000, 9999), steps_of(shot, (1002, 5000, 9999)), strict=True):
        assert abs(step * 2.0**-23 - shot.time_of(frame)) <= 2.0**-24


def steps_of(shot: Shot, frames: Iterable[int]) -> list[int]:
    return [shot.plan.n_steps(shot.time_of(frame)) for frame in frames]


@pytest.mark.parametrize("timestep", [2.0**-23, 1e-7, 1.2345e-8])
def test_frames_of_so_many_steps_are_met_exactly(shot_file: Path, timestep: float) -> None:
    text = SHOT.replace("seed = 1", f"timestep = {timestep}").replace("1006", "9999")
    shot = load_shot(write(shot_file.parent, text))
    assert shot.frame_time == 25 * timestep
    assert steps_of(shot, shot.frames) == list(range(0, 25 * 8999, 25))


def test_a_time_scale_of_less_than_a_step_a_frame_is_refused(shot_file: Path) -> None:
    text = SHOT.replace("steps_per_frame = 25", "time_scale = 1e-9")
    assert "time.time_scale: found 1e-09, which makes 0.00035 steps a frame" in physics_refusal(
        shot_file.parent, text)


def physics_refusal(folder: Path, text: str) -> str:
    shot = load_shot(write(folder, text))
    with pytest.raises(ShotError) as caught:
        check_physics(shot, 2**40)
    return str(caught.value)


def test_where_the_step_is_too_long_the_time_scale_is_not_blamed(shot_file: Path) -> None:
    text = SHOT.replace("steps_per_frame = 25", "time_scale = 1.0")
    message = physics_refusal(shot_file.parent, text.replace("seed = 1", "timestep = 1.0"))
    assert "sim.timestep: 1 s is above the stable step" in message
    assert "time_scale" not in message


def test_auto_takes_the_largest_safe_power_of_two(shot_file: Path) -> None:
    text = SHOT.replace("seed = 1", "timestep = 'auto'")
    assert load_shot(write(shot_file.parent, text)).plan.settings.timestep == 2.0**-23


@pytest.mark.parametrize("time_scale", [1.0, 0.37, 1e-3, 1e-6])
def test_auto_takes_the_fewest_stable_steps_that_make_a_frame(
    shot_file: Path, time_scale: float
) -> None:
    text = SHOT.replace("steps_per_frame = 25", f"time_scale = {time_scale}")
    shot = load_shot(write(shot_file.parent, text.replace("seed = 1", "timestep = 'auto'")))
    limit = plan_needs(shot, 2**40).stable_step
    step, n_steps = shot.plan.settings.timestep, steps_of(shot, [1002])[0]
    assert step * n_steps == pytest.approx(time_scale / shot.fps, rel=1e-15)
    assert step <= limit and (n_steps == 1 or time_scale / shot.fps / (n_steps - 1) > limit)
    assert steps_of(shot, [1001 + 10**6]) == [10**6 * n_steps]


def test_advice_on_a_step_is_the_step_that_auto_takes(shot_file: Path) -> None:
    text = SHOT.replace("steps_per_frame = 25", "time_scale = 0.37")
    message = physics_refusal(shot_file.parent, text.replace("seed = 1", "timestep = 1.0"))
    shot = load_shot(write(shot_file.parent, text.replace("seed = 1", "timestep = 'auto'")))
    assert f"use timestep = {shot.plan.settings.timestep!r} or timestep = \"auto\"" in message


EVERY_SECTION = """
[sim.rigid]
[sim.auto]
[[projectiles]]
position = [0, 0, 1]
velocity = [0, 0, -3]
[[colliders]]
[[regions]]
fixed = true
[[weakening]]
[[cracks]]
origin = [0, 0, 0]
u = [1, 0, 0]
v = [0, 0, 1]
[[area_lights]]
position = [0, 1, 0]
[[camera_keys]]
frame = 1001
[materials.stone.surface]
preset = "stone"
"""
PLACES = {"[materials.<name>]": "materials.glass",
          "[materials.<name>.look]": "materials.glass.look",
          "[materials.<name>.surface]": "materials.stone.surface"}


@pytest.mark.parametrize("heading", tables())
def test_every_section_is_asked_whether_its_keys_go_together(
    tmp_path: Path, heading: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of settings has ``complaints``, and needs nothing else to be heard."""
    write(tmp_path, SHOT + EVERY_SECTION)
    monkeypatch.setattr(tables()[heading], "complaints", lambda section: iter(
        [("odd", "is beside even"), ("", "does nothing")]), raising=False)
    place = PLACES.get(heading) or (heading[2:-2] + "[1]" if heading[1] == "[" else heading[1:-1])
    message = refusal(tmp_path, SHOT + EVERY_SECTION)
    assert f"{place}.odd: is beside even" in message and f"{place}: does nothing" in message


MESH_SHOT = """\
[shot]
frames = "1001-1002"
[[bodies]]
name = "pot"
material = "clay"
mesh = "pot.obj"
elements = 100
[materials.clay]
[sim]
timestep = "auto"
"""


@pytest.mark.parametrize("content", [None, b"", b"no mesh", b"v nan nan nan\n" * 3])
def test_a_shot_is_loaded_without_reading_its_meshes(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "pot.obj").write_bytes(content)
    shot = load_shot(write(tmp_path, MESH_SHOT))
    assert shot.solver_settings.timestep == "auto"
    with pytest.raises((ShotError, MissingInput), match=r"bodies\[1\].mesh: "):
        shot.time_of(1001)


def test_a_fingerprint_says_auto_and_reads_no_mesh(tmp_path: Path) -> None:
    shot = load_shot(write(tmp_path, MESH_SHOT))
    assert physics_section(shot)["solver"]["timestep"] == "auto"
    assert picture_section(shot)
    with pytest.raises(MissingInput, match=r"bodies\[1\].mesh: .*pot.obj"):
        _ = shot.frame_time
    number = load_shot(write(tmp_path, MESH_SHOT.replace('"auto"', "2e-7")))
    assert number.frame_time == 500 * 2e-7


def test_the_examples_are_valid_and_commented() -> None:
    from vfx.pipeline.shot.templates import FOLDER, list_templates

    assert {"glass", "glass_small", "vase_drop", "wall", "ramp", "marbles"} <= set(list_templates())
    for name in list_templates():
        path = FOLDER / f"{name}.toml"
        shot = load_shot(path)
        assert shot.name == name
        assert "name" not in tomllib.loads(path.read_text())["shot"]
        assert path.read_text().count("#") > 10


_LONG = 400_000


@pytest.mark.parametrize("text", [
    "".join(f"k{k} = 1\n" for k in range(20_000)) + SHOT,
    SHOT + "".join(f"k{k} = 1\n" for k in range(20_000)),
    SHOT + "k" * _LONG + " = 1\n",
    SHOT.replace('"plate"', f'"{"k" * _LONG}"'),
    SHOT.replace('material = "glass"', f'material = "{"k" * _LONG}"'),
    SHOT.replace('passes = ["beauty"]', f'passes = ["{"k" * _LONG}"]'),
    SHOT.replace("exposure = 0.0", f'environment = "{"k" * _LONG}"'),
    SHOT.replace("exposure = 0.0", f"exposure = {'k' * _LONG}"),
    SHOT + "".join(f'[materials."m {k}"]\ndensity = "x"\n' for k in range(5_000)),
    SHOT + "[[colliders]]\nkeys = [" + "[0, 0, 0, 0], " * 20_000 + "]\n",
    SHOT + f"[{'k' * _LONG}]\n" * 2,
    SHOT + "[[regions]]\nfixed = true\nbody = 'x'\n" * 5_000,
], ids=["keys above", "keys", "key", "name", "material", "pass", "text", "value", "materials",
        "times", "twice", "regions"])
def test_no_shot_however_wrong_takes_more_than_a_page_to_refuse(
    shot_file: Path, text: str
) -> None:
    message = refusal(shot_file.parent, text)
    assert len(message) < 20_000 and max(map(len, message.splitlines())) < 1_000


def test_the_number_of_mistakes_that_are_not_told_is(shot_file: Path) -> None:
    text = SHOT + "".join(f"k{k} = 1\n" for k in range(3_234))
    assert refusal(shot_file.parent, text).endswith(": and 3,214 more like these")


@pytest.mark.parametrize("key", ["a" + ".a" * 200_000, '"a" . ' * 5_000 + "'a'"])
def test_a_key_of_many_parts_is_refused_at_once(shot_file: Path, key: str) -> None:
    for text in (f"{key} = 1\n", f"[{key}]\n", f"[[{key}]]\n"):
        message = refusal(shot_file.parent, SHOT + text)
        assert f":{SHOT.count(chr(10)) + 1}: a key of more than 64 parts" in message


def test_numbers_and_sentences_with_dots_are_no_long_keys(shot_file: Path) -> None:
    points = ", ".join("[0.1, 0.2, 0.3]" for _ in range(200))
    text = SHOT + f"# {'v1.2.3 ' * 100}\n[[weakening]]\npoints = [{points}]\n"
    assert len(load_shot(write(shot_file.parent, text)).weakening[0].points) == 200


@pytest.mark.parametrize("text", ["\\u0000", "a\\nb", "\\u001b[31m", "\\u0085", "\\u2028"])
@pytest.mark.parametrize("line", [
    '[camera]\nusd = "X"', '[light]\nenvironment = "X"', '[shot]\nframes = "X"',
    '[floor_look]\ntexture = "X"', '"X" = 1', '["X"]', '[materials."X"]', '[sim]\n"X" = 2'])
def test_control_characters_are_refused_and_not_printed(
    tmp_path: Path, text: str, line: str
) -> None:
    path = tmp_path / "shot.toml"
    path.write_text(line.replace("X", text))
    with pytest.raises(ShotError) as refusal:
        load_shot(path)
    assert all(letter.isprintable() or letter == "\n" for letter in str(refusal.value))
    told = text.replace("\\u00", "\\x").replace("\\u2028", "u2028")
    assert told.replace("\\\\", "\\") in str(refusal.value)


def test_status_reads_no_mesh(tmp_path: Path, vfx, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pot.obj").write_bytes(b"no mesh")
    result = vfx("status", write(tmp_path, MESH_SHOT))
    assert result.exit_code == 0, result.output
