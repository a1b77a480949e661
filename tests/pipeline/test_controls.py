"""Controls in the shot file: read, refused with a way out, and part of what a run is made from."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from chaotic_plate import SHOT, made
from PIL import Image

from vfx.pipeline.errors import ShotError
from vfx.pipeline.shot.density_picture import load_density
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.sim.matter.material import projectile_step
from vfx.sim.settings import Projectile

CONTROLS = """
[[projectiles]]
position = [0, 0, 1]
velocity = [0, 0, -3]
mass = 0.03
falls = true
[[colliders]]
shape = "sphere"
keys = [[0, 0, 1, 0], [0.5, 0, 0, 0]]
[[colliders]]
normal = [0, 1, 1]
friction = 0.4
[[regions]]
body = "plate"
size = [1, 1, 1]
fixed = true
until = 0.01
[[weakening]]
polylines = [[[0, 0, 0], [1, 0, 0], [1, 1, 0]], [[0, 1, 0], [1, 0, 0]]]
points = [[0, 0, 0]]
radius = 2e-3
[[cracks]]
origin = [0, 0, 0]
u = [1, 0, 0]
v = [0, 0, 1]
"""


def read(path: Path, text: str) -> Shot:
    path.write_text(SHOT + text)
    return load_shot(path)


def test_controls_become_their_sections(shot_file: Path, vfx) -> None:
    shot = read(shot_file, CONTROLS)
    assert shot.projectiles[-1].mass == 0.03 and shot.projectiles[-1].falls
    assert shot.colliders[0].keys == ((0.0, 0.0, 1.0, 0.0), (0.5, 0.0, 0.0, 0.0))
    assert shot.colliders[1].normal == (0.0, 1.0, 1.0)
    assert shot.regions[0].until == 0.01
    assert shot.weakening[-1].polylines[1] == ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    assert shot.cracks[0].v == (0.0, 0.0, 1.0)
    report = vfx("check", shot_file).output
    assert "(1 with a mass), 2 colliders, 1 region" in report and "1 crack" in report


@pytest.mark.parametrize("text, complaint", [
    ("[[projectiles]]\nposition = [0, 0, 0]\nvelocity = [0, 0, 0]\nfalls = true",
     "falls: is true, but the ball has no mass"),
    ("[[projectiles]]\nposition = [0, 0, 0]\nvelocity = [0, 0, 0]\nmass = -1",
     "mass: found -1, but it must be at least 0 kg"),
    ("[[colliders]]\nshape = 'cube'", "colliders[1].shape: found 'cube', but it must be one of"),
    ("[[colliders]]\nnormal = [0, 0, 0]", "colliders[1].normal: found [0.0, 0.0, 0.0]"),
    ("[[colliders]]\nkeys = [0, 1]", "keys: found [0, 1], but it must be a list of lists of 4"),
    ("[[colliders]]\nkeys = [[0, 1, 2]]", "must be a list of lists of 4 numbers"),
    ("[[colliders]]\nkeys = [[0, 0, 0, nan]]", "must be a finite number"),
    ("[[colliders]]\nkeys = [[1, 0, 0, 0], [1, 0, 0, 0]]", "times must rise"),
    ("[[colliders]]\nshape = 'box'\n[colliders.surface]\npreset = 'glass'",
     "colliders[1].surface: is of glass, but only bodies can be"),
    ("[[colliders]]\nshape = 'box'\n[colliders.surface]\ntexture = 'a.png'",
     "colliders[1].surface.texture: found 'a.png', but colliders have no uv"),
    ("[[colliders]]\n[colliders.surface]\nalbdo = [1, 1, 1]",
     "colliders[1].surface.albdo: unknown key; did you mean 'albedo'?"),
    ("[[colliders]]\nsurface = 3", "colliders[1].surface"),
    ("[[regions]]\nbody = 'plat'\nfixed = true", "found 'plat', which is no body; did you mean"),
    ("[[regions]]\ncenter = [0, 0, 0]", "regions[1]: does nothing; give fixed = true"),
    ("[[regions]]\nfixed = true\nvelocity = [1, 0, 0]", "keep one of them"),
    ("[[weakening]]\nnormal = [0, 0, 0]", "normal: found [0.0, 0.0, 0.0]"),
    ("[[weakening]]\npolylines = [[0, 0, 0]]", "must be a list of lists of lists of 3 numbers"),
    ("[[weakening]]\npolylines = [[[0, 0, 0]]]", "has 1 point(s); a path needs two"),
    ("[[weakening]]\nimage = 'a.png'\nimage_u = [0, 2, 0]", "which is along image_u"),
    ("[[cracks]]\norigin = [0, 0, 0]\nu = [1, 0, 0]\nv = [2, 0, 0]",
     "cracks[1].v: found [2.0, 0.0, 0.0], which"),
    ("[[cracks]]\norigin = [0, 0, 0]\nu = [1e-200, 0, 0]\nv = [0, 1, 0]",
     "one of them is shorter than 1e-09 m"),
    ("[[projectiles]]\nposition = [0, 0, 1]\nvelocity = [0, 0, -3]\nmass = 1e-310",
     ".mass: found 1e-310 kg, but it must be 1e-24 kg or more"),
    ("[[projectiles]]\nposition = [0, 0, 1]\nvelocity = [0, 0, -3]\nmaterial = 'steal'",
     ".material: found 'steal', which is no material"),
    ("[[projectiles]]\nposition = [0, 0, 1]\nvelocity = [0, 0, -3]\nmaterial = 'glass'\n"
     "push = 'levine'", ".material: does nothing with push = \"levine\""),
    ("[[projectiles]]\nposition = [0, 0, 1]\nvelocity = [0, 0, -3]\nfalls = true",
     "give its mass in kg, or its material"),
    ("[[cracks]]\nu = [1, 0, 0]", "cracks[1].origin: missing"),
    ("[[cracks]]\nstrain_factor = 2", "it belongs in [[regions]]"),
])
def test_a_control_that_cannot_be_is_refused(
    shot_file: Path, text: str, complaint: str
) -> None:
    with pytest.raises(ShotError) as caught:
        read(shot_file, text)
    assert complaint in str(caught.value)


@pytest.mark.parametrize("control", ["mass = 0.5", "damping = 1.0", "[[cracks]]", "[[regions]]",
                                     "[[colliders]]", "radius = 3e-3"])
def test_every_control_is_part_of_what_a_run_is_made_from(
    shot_file: Path, vfx, control: str
) -> None:
    change = {"mass = 0.5": ("mass = 0.03", "mass = 0.5"),
              "radius = 3e-3": ("radius = 2e-3", "radius = 3e-3")}
    shot_file.write_text(SHOT + CONTROLS)
    vfx("stage", "geometry", shot_file)
    vfx("stage", "sim", shot_file)
    if control in change:
        text = (SHOT + CONTROLS).replace(*change[control])
    elif control.startswith("[["):
        text = SHOT + CONTROLS.replace(CONTROLS[CONTROLS.index(control):].split("\n[[")[0], "")
    else:
        text = (SHOT + CONTROLS).replace("[sim]\n", f"[sim]\n{control}\n")
    assert text != SHOT + CONTROLS
    shot_file.write_text(text)
    made()
    assert vfx("stage", "sim", shot_file).exit_code == 0
    assert list(made()) == ["sim"]


def test_a_region_beside_the_bodies_loses_no_frame(shot_file: Path, vfx) -> None:
    shot_file.write_text(SHOT + "[[regions]]\nfixed = true\n")
    assert vfx("run", shot_file).exit_code == 0
    before = sorted(Path("work").rglob("*"))
    shot_file.write_text(SHOT + "[[regions]]\nfixed = true\ncenter = [1, 0, 0]\n")
    for command in ("run", "check"):
        result = vfx(command, shot_file)
        assert result.exit_code == 2
        assert "regions[1]: holds no element of any body" in result.output + result.stderr
    assert sorted(Path("work").rglob("*")) == before


# ------------------------------------------------------------------ pictures


def with_picture(shot_file: Path, name: str) -> None:
    shot_file.write_text(SHOT + f'[[weakening]]\nimage = "{name}"\n')


def draw(path: Path, value: int = 128, mode: str = "L") -> None:
    Image.new(mode, (4, 3), value if mode == "L" else (value,) * len(mode)).save(path)


def test_a_picture_counts_by_what_it_shows(shot_file: Path, vfx) -> None:
    draw(shot_file.parent / "weak.png")
    with_picture(shot_file, "weak.png")
    assert vfx("run", shot_file, "--frames", "1001").exit_code == 0
    draw(shot_file.parent / "same.png")
    with_picture(shot_file, "same.png")
    made()
    assert vfx("stage", "sim", shot_file, "--frames", "1001").exit_code == 0
    assert made() == {}
    draw(shot_file.parent / "same.png", 129)
    assert vfx("stage", "sim", shot_file, "--frames", "1001").exit_code == 0
    assert made() == {"sim": [1001]}


def test_a_picture_that_cannot_be_used_is_refused_before_anything_is_written(
    shot_file: Path, vfx
) -> None:
    folder = shot_file.parent
    draw(folder / "glass.png", 100, "RGBA")
    (folder / "text.png").write_text("no picture")
    draw(folder / "cut.png")
    (folder / "cut.png").write_bytes((folder / "cut.png").read_bytes()[:50])
    draw(folder / "a.bmp")
    (folder / "folder.png").mkdir()
    for name, reason in (
            ("none.png", "does not exist"), ("glass.png", "is transparent in places"),
            ("text.png", "no PNG"), ("cut.png", "cannot be read whole"),
            ("a.bmp", "must be a .png or .exr file, not .bmp"), ("folder.png", "is no file")):
        with_picture(shot_file, name)
        for command in (("run",), ("stage", "sim"), ("check",)):
            result = vfx(*command, shot_file)
            assert result.exit_code == 2, (name, command)
            assert f"weakening[1].image: found '{name}'" in result.output + result.stderr
            assert reason in result.output + result.stderr
    assert not (folder / "work").exists()


def test_pictures_read_from_black_to_white(tmp_path: Path) -> None:
    from vfx.raytrace.film.exr import write_exr

    ramp = np.array([[0, 51, 255], [102, 153, 204]])
    expected = ramp / 255.0
    Image.fromarray(ramp.astype(np.uint8)).save(tmp_path / "grey.png")
    Image.fromarray((ramp * 257).astype(np.uint16)).save(tmp_path / "deep.png")
    Image.fromarray(np.repeat(ramp[..., None], 3, 2).astype(np.uint8)).save(tmp_path / "color.png")
    write_exr(tmp_path / "y.exr", {"Y": expected.astype(np.float32)}, {})
    write_exr(tmp_path / "rgb.exr", {name: expected.astype(np.float32) for name in "RGB"}, {})
    for name, error in (("grey.png", 1e-7), ("deep.png", 1e-7), ("color.png", 1e-7),
                        ("y.exr", 1e-7), ("rgb.exr", 1e-3)):
        assert load_density(tmp_path / name) == pytest.approx(expected, abs=error), name
    for channels, reason in (({"Y": 2 * expected}, "not between 0 and 1"),
                             ({"Y": expected * np.nan}, "not between 0 and 1"),
                             ({"Z": expected}, "no channel Y and no channel B, G, R")):
        write_exr(tmp_path / "odd.exr", {k: v.astype(np.float32) for k, v in channels.items()}, {})
        with pytest.raises(ValueError, match=reason):
            load_density(tmp_path / "odd.exr")


# ------------------------------------------------------------------ the time step


def test_a_light_ball_needs_a_smaller_step() -> None:
    ball = Projectile(position=(0, 0, 0), velocity=(0, 0, 0), radius=0.01, stiffness=1e15)
    plain = projectile_step(2200.0, ball, 1e-4)
    steps = [projectile_step(2200.0, dataclasses.replace(ball, mass=mass), 1e-4)
             for mass in (1e9, 0.1, 1e-3)]
    assert steps[0] == pytest.approx(plain, rel=1e-6)
    assert steps[0] > steps[1] > steps[2]
    # A ball and a body of equal masses, all of it in reach: half the reduced mass.
    one = dataclasses.replace(ball, mass=2200.0 * 1e-9)
    assert projectile_step(2200.0, one, 1e-9) == pytest.approx(plain / np.sqrt(2), rel=1e-9)
