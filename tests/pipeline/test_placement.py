"""Bodies that stand on the floor, fall on it or stand on one another: exactly there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.geometry.divide.build import lowest_point
from vfx.geometry.divide.place import CLEARANCE, placed_bodies
from vfx.geometry.divide.sources import surface_of
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.orientation import body_orientation
from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.needs import check_camera, check_floor, check_physics
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.stages.table import GEOMETRY, SIM, physics_section
from vfx.pipeline.work.folder import Work
from vfx.raytrace.camera.path import camera_path

SHAPES = {
    "cells": {"cells": (3, 5, 2), "spacing": 0.02},
    "box": {"box": (0.1, 0.3, 0.2), "elements": 200, "shape": "voronoi"},
    "mesh": {"mesh": "asset:vase", "height": 0.3, "elements": 300},
    "base": {"mesh": "asset:mug", "mesh_scale": 0.7, "anchor": "base", "elements": 300},
}
SHOT = """\
[shot]
frames = "1001-1002"
[floor]
height = 0.25
[materials.clay]
[sim]
timestep = 1e-7
[[bodies]]
name = "pot"
material = "clay"
"""


def shot_of(folder: Path, text: str, head: str = SHOT) -> Shot:
    path = folder / "a.toml"
    path.write_text(head + text)
    return load_shot(path)


def lowest_vertex(body: Body) -> float:
    vertex = surface_of(body)[0].vertex @ body_orientation(body).T + np.array(body.center)
    return float(vertex[:, 1].min())


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("rotation", [(0.0, 0.0, 0.0), (35.0, 20.0, -70.0)])
def test_the_lowest_point_is_where_the_shot_says(shape, rotation) -> None:
    body = Body(material="clay", rotation=rotation, center=(0.1, 0.0, -0.2), place="on-floor",
                drop=1.2, **shape)
    placed, = placed_bodies([body], 0.25)
    assert lowest_vertex(placed) == pytest.approx(1.45, abs=1e-12)
    assert lowest_point(placed) == pytest.approx(1.45, abs=1e-12)
    assert (placed.center[0], placed.center[2]) == (0.1, -0.2)
    assert placed.place == "free" and not list(placed.complaints())


def test_a_speed_of_fall_begins_just_above_the_floor() -> None:
    body = Body(material="clay", cells=(2, 4, 2), spacing=0.1, place="on-floor", fall_speed=5.0,
                velocity=(1.0, 0.0, 2.0))
    placed, = placed_bodies([body], 0.0)
    assert placed.velocity == (1.0, -5.0, 2.0)
    assert lowest_vertex(placed) == pytest.approx(CLEARANCE * 0.4)
    high, = placed_bodies([dataclasses.replace(body, drop=0.5)], 0.0)
    assert lowest_vertex(high) == pytest.approx(0.5) and high.velocity == placed.velocity


def test_a_stack_is_built_from_below_in_any_order() -> None:
    def brick(k: int, **more: object) -> Body:
        return Body(name=f"b{k}", material="clay", box=(0.2, 0.1, 0.1), elements=1,
                    rotation=(0.0, 0.0, 90.0 * (k % 2)), **more)

    bricks = [brick(0, place="on-floor"), *(brick(k, place=f"on:b{k - 1}") for k in range(1, 2000))]
    tall = placed_bodies(bricks[::-1], 1.0)[::-1]
    top = 1.0
    for k, body in enumerate(tall):
        edge = 0.2 if k % 2 else 0.1
        assert body.center[1] == pytest.approx(top + 0.5 * edge, rel=1e-12)
        top += edge


def test_a_body_that_is_placed_is_built_there_and_nowhere_in_the_floor(tmp_path: Path) -> None:
    shot = shot_of(tmp_path, """\
mesh = "asset:mug"
height = 0.1
elements = 200
place = "on-floor"
drop = 0.05
rotation = [0.0, 0.0, 30.0]
[[bodies]]
name = "lid"
material = "clay"
cells = [2, 1, 2]
spacing = 0.02
place = "on:pot"
""")
    check_floor(shot)
    solid = build_solid(shot.placed_bodies)
    pot = solid.face_vertex
    assert pot[:, 1].min() == pytest.approx(0.30, abs=1e-9)
    lid = solid.position[solid.body == 1]
    top = surface_of(shot.bodies[0])[0].vertex @ body_orientation(shot.bodies[0]).T
    assert lid[:, 1].min() - 0.01 == pytest.approx(0.30 + np.ptp(top[:, 1]), abs=1e-9)
    assert shot.setup.bodies == shot.placed_bodies != shot.bodies
    assert check_physics(dataclasses.replace(
        shot, solver_settings=dataclasses.replace(shot.solver_settings, timestep="auto")), 2**40)


@pytest.mark.parametrize(("text", "complaint"), [
    ('place = "floor"', "bodies[1].place: found 'floor', but it must be \"free\", \"on-floor\" or"),
    ('place = "on:"', "bodies[1].place: found 'on:', but it must be"),
    ('drop = 1.0', "bodies[1].drop: found 1, but the body is placed by its center; give center"),
    ('fall_speed = 1.0', "bodies[1].fall_speed: found 1, but the body is placed by its center"),
    ('place = "on-floor"\ncenter = [0, 1, 0]',
     "bodies[1].center: found a height of 1 m, but place = \"on-floor\" gives the height"),
    ('place = "on-floor"\nfall_speed = 2\nvelocity = [0, 1, 0]',
     "bodies[1].fall_speed: found 2 together with a velocity of 1 m/s upward"),
    ('place = "on:post"', "bodies[1].place: found 'on:post', which is no body; did you mean"),
    ('place = "on:pot"', "found 'on:pot', but what is below stands on this body"),
    ('place = "on-floor"\ndrop = -1', "bodies[1].drop: found -1, but it must be at least 0 m"),
])
def test_mistakes_in_places_are_named(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ShotError) as caught:
        shot_of(tmp_path, f"cells = [2, 2, 2]\n{text}\n")
    assert complaint in str(caught.value)


def test_rings_are_named_and_no_floor_is_no_place(tmp_path: Path) -> None:
    bodies = "".join(f'[[bodies]]\nname = "{a}"\nmaterial = "clay"\ncells = [1, 1, 1]\n'
                     f'place = "on:{b}"\n' for a, b in (("x", "y"), ("y", "z"), ("z", "x"),
                                                         ("w", "x")))
    with pytest.raises(ShotError) as caught:
        shot_of(tmp_path, f"cells = [1, 1, 1]\n{bodies}")
    assert str(caught.value).count("stands on this body") == 3
    with pytest.raises(ShotError, match=r"place: found 'on-floor', but floor.enabled is false"):
        shot_of(tmp_path, 'cells = [1, 1, 1]\nplace = "on-floor"\n',
                SHOT.replace("height = 0.25", "enabled = false"))


def test_reading_a_shot_and_its_fingerprints_opens_no_mesh(tmp_path: Path) -> None:
    text = 'mesh = "pot.obj"\nelements = 100\nplace = "on-floor"\ndrop = 1.0\n'
    shot = shot_of(tmp_path, text)
    assert physics_section(shot) and shot.time_of(1002) == 500 * 1e-7
    work = Work(shot, tmp_path / "work")
    assert work.states(SIM, shot.frames)
    with pytest.raises(MissingInput, match=r"bodies\[1\].mesh: .*pot.obj"):
        _ = shot.placed_bodies
    # Who only looks at pictures does without it.
    above = dataclasses.replace(shot.camera, position=(0.0, 0.5, 0.4))
    check_camera(shot, camera_path(above, (), tmp_path))


def test_fingerprints_follow_places_and_stay_where_nothing_is_placed(tmp_path: Path) -> None:
    def prints(text: str, head: str = SHOT) -> tuple[object, object]:
        shot = shot_of(tmp_path, f"cells = [2, 2, 2]\n{text}\n", head)
        work = Work(shot, tmp_path / "work")
        return work.fingerprint(GEOMETRY, 1001), str(physics_section(shot))

    plain = prints("")
    assert prints('place = "free"\ndrop = 0.0\nfall_speed = 0.0\nwhole = false') == plain
    floor, high = prints('place = "on-floor"'), prints('place = "on-floor"\ndrop = 1.0')
    lower = prints('place = "on-floor"', SHOT.replace("0.25", "0.2"))
    assert len({plain[0], floor[0], high[0], lower[0]}) == 4
    whole = prints("whole = true")
    assert whole[0] == plain[0] and whole[1] != plain[1]
    fast, faster = (prints(f'place = "on-floor"\ndrop = 1.0\nfall_speed = {v}') for v in (1, 2))
    assert fast[1] != faster[1]
