"""Boxes and meshes that are thrown: bodies that never break, known everywhere as such."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.shot.needs import check_floor, check_meshes
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.shot.thrown_bodies import ELEMENTS
from vfx.pipeline.stages.table import physics_section
from vfx.pipeline.work.cache import read_npz

SHOT = """\
[shot]
name = "hit"
frames = "1001-1003"
[time]
steps_per_frame = 120
[[bodies]]
name = "plate"
material = "glass"
cells = [10, 10, 2]
spacing = 2e-3
center = [0.0, 0.07, 0.0]
[materials.glass]
strain_limit = 3e-4
[materials.steel]
density = 7800
bulk_modulus = 160e9
[sim]
timestep = "auto"
gravity = [0.0, 0.0, 0.0]
[render]
resolution = [24, 16]
samples = 1
[[projectiles]]
position = [0.0, 0.07, 1.0]
velocity = [0.0, 0.0, -1.0]
"""
HAMMER = """\
[[projectiles]]
box = [0.012, 0.012, 0.008]
material = "steel"
position = [0.0, 0.07, 0.0062]
velocity = [0.0, 0.0, -100.0]
rotation = [0.0, 0.0, 30.0]
angular_velocity = [0.0, 0.0, 50.0]
elements = 24
"""


def shot_of(folder: Path, text: str) -> Shot:
    path = folder / "hit.toml"
    path.write_text(SHOT + text)
    return load_shot(path)


def test_a_box_that_is_thrown_becomes_a_body_and_balls_stay_balls(tmp_path: Path) -> None:
    shot = shot_of(tmp_path, HAMMER + HAMMER.replace("0.0062", "0.5").replace("elements = 24", ""))
    assert [body.name for body in shot.bodies] == ["plate", "projectile_2", "projectile_3"]
    assert len(shot.projectiles) == 1 and shot.projectiles[0].radius == 0.01
    thrown = shot.bodies[1]
    assert thrown.whole and thrown.material == "steel" and not shot.bodies[0].whole
    assert (thrown.center, thrown.velocity) == ((0.0, 0.07, 0.0062), (0.0, 0.0, -100.0))
    assert (thrown.rotation, thrown.angular_velocity) == ((0.0, 0.0, 30.0), (0.0, 0.0, 50.0))
    assert (thrown.elements, shot.bodies[2].elements) == (24, ELEMENTS)
    assert shot.headings == ("bodies[1]", "projectiles[2]", "projectiles[3]")
    assert "box" not in physics_section(shot)["projectiles"][0]


@pytest.mark.parametrize(("old", "new", "complaint"), [
    ('material = "steel"\n', "", "projectiles[2].material: missing; a box has the mass and the"),
    ('material = "steel"', 'material = "stel"',
     "projectiles[2].material: found 'stel', which this file does not define; did you mean"),
    ("elements = 24", "radius = 0.1", "projectiles[2].radius: found 0.1, which is for balls"),
    ("elements = 24", "stiffness = 1e10", "projectiles[2].stiffness: found 10000000000.0, which"),
    ("elements = 24", "mass = 1.0", "projectiles[2].mass: found 1.0, which is for balls"),
    ("elements = 24", 'mesh = "asset:mug"', "projectiles[2].mesh: is given together with box"),
    ("elements = 24", "height = 0.1", "projectiles[2].height: found 0.1, but this body has no"),
    ("box = [0.012, 0.012, 0.008]", "height = 0.1",
     "projectiles[2].height: found 0.1, but it is a ball; give a box or a mesh"),
    ("box = [0.012, 0.012, 0.008]", 'mesh = "asset:mugg"',
     "projectiles[2].mesh: found 'asset:mugg', which is no asset; did you mean"),
    ("box = [0.012, 0.012, 0.008]", "box = [1.0, 0.0, 1.0]", "projectiles[2].box: found [1.0, 0.0"),
])
def test_keys_that_do_not_fit_are_named(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises(ShotError) as caught:
        shot_of(tmp_path, HAMMER.replace(old, new))
    assert complaint in str(caught.value)


def test_a_name_that_is_taken_is_refused_where_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "hit.toml"
    path.write_text(SHOT.replace('"plate"', '"projectile_2"') + HAMMER)
    with pytest.raises(ShotError, match=r"projectiles\[2\].name: found 'projectile_2'"):
        load_shot(path)


def test_what_is_wrong_with_its_mesh_or_place_is_said_of_the_projectile(tmp_path: Path) -> None:
    shot = shot_of(tmp_path, HAMMER.replace("box = [0.012, 0.012, 0.008]", 'mesh = "gone.obj"'))
    with pytest.raises(MissingInput, match=r"projectiles\[2\].mesh: .*gone.obj"):
        check_meshes(shot)
    low = shot_of(tmp_path, HAMMER.replace("[0.0, 0.07, 0.0062]", "[0.0, -0.1, 0.1]"))
    with pytest.raises(ShotError, match=r"projectiles\[2\].position: .* raise it to position = "):
        check_floor(low)


def test_a_thrown_box_breaks_what_it_hits_and_goes_through_all_stages(
    tmp_path: Path, vfx, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "hit.toml"
    path.write_text(SHOT + HAMMER)
    told = vfx("check", path)
    assert told.exit_code == 0, told.output
    assert "projectile_2" in told.output and "it never breaks" in told.output
    made = vfx("run", path, "--device", "cpu")
    assert made.exit_code == 0, made.output
    solid = read_npz(Path("work/hit/geometry/solid.npz"))
    assert list(solid["body_name"]) == ["plate", "projectile_2"]
    hammer = solid["body"] == 1
    pieces = read_npz(Path("work/hit/align/frame.1003.npz"))
    motion = read_npz(Path("work/hit/sim/frame.1003.npz"))
    assert len(np.unique(pieces["fragment"][hammer])) == 1
    assert len(np.unique(pieces["fragment"][~hammer])) > 1, "the plate broke"
    # What the plate gained, the hammer lost; both are free.
    mass = np.where(hammer, 7800.0, 2200.0) * solid["volume"]
    start = mass[hammer].sum() * -100.0
    assert mass @ motion["velocity"][:, 2] == pytest.approx(start, rel=1e-4)
    assert (mass * motion["velocity"][:, 2])[~hammer].sum() < 1e-3 * start
