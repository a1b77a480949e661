"""Images on pieces: a pixel shows the texel that the mesh's uv say, and mistakes are named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from PIL import Image

from vfx.raytrace.film.exr import write_exr

#: A slab, 0.4 x 0.2 x 0.04 m, whose front (+z) takes the image from (0, 0) to (2, 1).
OBJ = "\n".join([
    *(f"v {x} {y} {z}" for x, y, z in [
        (-0.2, 0, -0.02), (0.2, 0, -0.02), (0.2, 0.2, -0.02), (-0.2, 0.2, -0.02),
        (-0.2, 0, 0.02), (0.2, 0, 0.02), (0.2, 0.2, 0.02), (-0.2, 0.2, 0.02)]),
    "vt 0 0", "vt 2 0", "vt 2 1", "vt 0 1",
    "f 5/1 6/2 7/3 8/4", "f 2/1 1/2 4/3 3/4", "f 1/1 5/2 8/3 4/4", "f 6/1 2/2 3/3 7/4",
    "f 8/1 7/2 3/3 4/4", "f 1/1 2/2 6/3 5/4", ""])
SHOT = """
[shot]
frames = "1001-1001"
[[bodies]]
name = "slab"
material = "clay"
mesh = "slab.obj"
shape = "voronoi"
elements = 60
center = [0.0, 0.5, 0.0]
[materials.clay.surface]
kind = "ggx"
albedo = [1.0, 1.0, 1.0]
texture = "checks.png"
[materials.clay.fracture]
albedo = [0.1, 0.2, 0.3]
[sim]
timestep = "auto"
[camera]
position = [0.0, 0.5, 1.0]
target = [0.0, 0.5, 0.0]
[render]
resolution = [160, 90]
samples = 1
filter = "box"
filter_radius = 1e-3
color_space = "linear-rec709"
passes = ["beauty", "albedo", "P", "mask"]
"""


@pytest.fixture
def shot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "slab.toml"
    path.write_text(SHOT)
    path.with_name("slab.obj").write_text(OBJ)
    coded = np.zeros((4, 4, 3), np.uint8)
    coded[(np.indices((4, 4)).sum(axis=0) % 2) == 0] = (255, 188, 0)
    coded[0, 0] = (0, 0, 255)               # the corner at the top left tells the way up
    Image.fromarray(coded).save(path.with_name("checks.png"))
    return path


def linear(coded: np.ndarray) -> np.ndarray:
    """Return sRGB as light, by its definition."""
    value = coded / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def texels(image: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the image, repeated, at uv by linear interpolation between texels' centres."""
    height, width = image.shape[:2]
    x, y = u * width - 0.5, (1.0 - v) * height - 0.5
    column, row = np.floor(x).astype(int), np.floor(y).astype(int)
    color = 0.0
    for i, along in ((0, 1.0 - (x - column)), (1, x - column)):
        for j, down in ((0, 1.0 - (y - row)), (1, y - row)):
            texel = image[(row + j) % height, (column + i) % width]
            color = color + (along * down)[:, None] * texel
    return color


@pytest.mark.parametrize("kind", ["png", "exr"])
def test_a_pixel_shows_the_texel_that_the_uv_say(shot: Path, vfx, kind: str) -> None:
    image = linear(np.asarray(Image.open(shot.with_name("checks.png")), float))
    if kind == "exr":
        write_exr(shot.with_name("checks.exr"),
                  {name: image[..., k].astype(np.float32) for k, name in enumerate("RGB")}, {})
        shot.write_text(SHOT.replace("checks.png", "checks.exr"))
    result = vfx("run", shot, "--device", "cpu")
    assert result.exit_code == 0, result.output
    with OpenEXR.File("work/slab/render/slab.1001.exr", separate_channels=True) as file:
        channel = {name: np.asarray(file.channels()[name].pixels, float) for name in (
            "albedo.R", "albedo.G", "albedo.B", "P.X", "P.Y", "mask.surface")}
    front = channel["mask.surface"] == 1.0
    albedo = np.stack([channel[f"albedo.{name}"][front] for name in "RGB"], axis=-1)
    u = (channel["P.X"][front] + 0.2) / 0.4 * 2.0
    v = (channel["P.Y"][front] - 0.4) / 0.2
    expected = texels(image, u, v)
    assert front.sum() > 2000
    assert np.abs(albedo - expected).max() < 4e-3
    # Well inside of a texel its own colour prevails, and both tiles along u show it.
    for tile in (0.0, 1.0):
        corner = np.hypot(u - tile - 0.125, v - 0.875) < 0.02
        assert corner.any() and np.abs(albedo[corner] - [0.0, 0.0, 1.0]).max() < 0.2


@pytest.mark.parametrize(("old", "new", "words"), [
    ("checks.png", "absent.png", "materials.clay.surface.texture: found 'absent.png'"),
    ("checks.png", "slab.obj", "a texture must be a .png, .jpg or .exr file"),
    ("checks.png", "words.png", "truncated, damaged or no PNG or JPEG"),
    ('mesh = "slab.obj"', 'mesh = "bare.obj"', "body 'slab' has no uv to lay it by: its mesh"),
    ('shape = "voronoi"', 'shape = "grid"', "it is made of cubes"),
    ('kind = "ggx"', 'kind = "glass"', "glass has no albedo to be coloured"),
    ("albedo = [0.1", 'texture = "checks.png"\nalbedo = [0.1', "broken faces have no uv"),
])
@pytest.mark.parametrize("command", ["run", "check"])
def test_textures_that_cannot_be_laid_are_refused(
        shot: Path, vfx, command: str, old: str, new: str, words: str) -> None:
    shot.write_text(SHOT.replace(old, new, 1))
    shot.with_name("words.png").write_text("no picture")
    shot.with_name("bare.obj").write_text("\n".join(
        " ".join(word.split("/")[0] for word in line.split()) for line in OBJ.split("\n")
        if not line.startswith("vt")))
    before = sorted(path.name for path in shot.parent.iterdir())
    result = vfx(command, shot, "--device", "cpu") if command == "run" else vfx(command, shot)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert sorted(path.name for path in shot.parent.iterdir()) == before


def test_a_painted_over_texture_makes_frames_stale(shot: Path, vfx) -> None:
    assert vfx("run", shot, "--device", "cpu").exit_code == 0
    assert "up to date" in vfx("run", shot, "--device", "cpu", "--dry-run").output
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(shot.with_name("checks.png"))
    assert "would make frame 1001 (stale" in vfx(
        "run", shot, "--device", "cpu", "--dry-run").output
