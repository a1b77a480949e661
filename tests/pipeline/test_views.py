"""Previews come from any state of a shot, and show what they say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from tests.solids import build_solid
from vfx.pipeline.cli.commands import main
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.show.preview import display_pixels
from vfx.pipeline.show.views import (
    EXPLOSION,
    GROUND,
    Legend,
    _at_rest,
    _cut,
    _exploded,
    _with_legend,
)
from vfx.raytrace.film.exr import read_exr

SHOT = """\
[shot]
frames = "1001-1003"
[time]
steps_per_frame = 4
[[bodies]]
name = "left"
material = "clay"
cells = [4, 4, 4]
spacing = 0.02
center = [-0.06, 0.05, 0.0]
[[bodies]]
name = "right"
material = "clay"
cells = [2, 2, 2]
spacing = 0.04
center = [0.06, 0.05, 0.0]
[materials.clay]
density = 1800.0
bulk_modulus = 1e9
[sim]
timestep = "auto"
[render]
resolution = [96, 64]
samples = 1
"""


@pytest.fixture
def shot(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "jars.toml"
    path.write_text(SHOT)
    return path


def vfx(*words):
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def picture(*words):
    result = vfx("preview", *words, "--device", "cpu")
    assert result.exit_code == 0, result.output
    path = Path(result.output.split("wrote ")[1].strip())
    return np.asarray(Image.open(path)).astype(float)


def test_the_solid_is_seen_before_anything_ran(shot):
    whole = picture(shot)
    assert whole.shape == (64, 96, 3) and whole.std() > 10.0
    assert not (shot.parent / "work" / "jars" / "geometry").exists()
    strength = picture(shot, "--show", "cut", "--color", "strength")
    assert np.abs(strength[:64] - picture(shot, "--show", "cut")[:64]).mean() > 1.0


def test_views_show_whole_bodies_single_elements_and_a_cut(shot):
    """Told apart by the pieces that are seen, and by faces from the inside of the bodies."""
    pieces, inside = {}, {}
    for show in ("surface", "exploded", "cut"):
        piece = picture(shot, "--show", show, "--pass", "fragment")
        pieces[show] = len(np.unique(piece.reshape(-1, 3), axis=0)) - 1     # without the ground
        mask = picture(shot, "--show", show, "--pass", "mask")
        inside[show] = (mask[..., 0] > 127).mean()
        seen = (mask > 127).any(axis=2)
        assert (seen != (piece > 0).any(axis=2)).mean() < 0.05
        # It fills the picture without touching its rim.
        assert seen.any(axis=0).mean() > 0.6 or seen.any(axis=1).mean() > 0.6
        assert not (seen[0].any() or seen[-1].any() or seen[:, 0].any() or seen[:, -1].any())
    assert pieces["surface"] == pieces["cut"] == 2
    assert pieces["exploded"] > 30
    assert inside["surface"] == 0.0
    assert inside["exploded"] > 0.05 and inside["cut"] > 0.05


def test_elements_fly_straight_away_and_the_half_before_the_camera_is_cut(shot):
    settings = load_shot(shot)
    solid = build_solid(settings.bodies)
    whole = _at_rest(SimpleNamespace(shot=settings), solid)
    flown = solid.position + _exploded(solid, whole).translation
    for body in (0, 1):
        inside = solid.body == body
        middle = solid.position[inside].mean(axis=0)
        assert np.allclose(flown[inside] - middle,
                           (1.0 + EXPLOSION) * (solid.position[inside] - middle))
    camera = dataclasses.replace(settings.camera, position=(0.3, 0.2, 1.0), target=(0, 0.05, 0))
    cut = _cut(solid, whole, camera)
    is_gone = cut.fragment == cut.id.max()
    assert np.array_equal(is_gone, solid.position[:, 2] > 0.0)
    assert np.array_equal(cut.fragment[~is_gone], whole.fragment[~is_gone])
    assert np.array_equal(cut.rotation, [*whole.rotation, np.zeros((3, 3))]), "gone is a point"


def test_colors_tell_volumes_apart(shot):
    """The right body's elements have eight times the volume: hot, the left's cold."""
    view = picture(shot, "--show", "surface", "--color", "volume", "--samples", "4")
    view = view[:64]                                # without the legend below
    red, blue = view[..., 0] - view[..., 2] > 60, view[..., 2] - view[..., 0] > 40
    assert red.sum() > 50 and blue.sum() > 50
    assert np.nonzero(red)[1].mean() > np.nonzero(blue)[1].mean() + 15


@pytest.mark.parametrize("width", [16, 48, 96, 640])
@pytest.mark.parametrize("legend", [
    Legend("volume [mm^3]", 1.0, 8.0), Legend("volume [mm^3]", 8.0, 8.0),
    Legend("piece", 0.0, 9.0, is_scale=False)])
def test_a_legend_covers_nothing(width, legend):
    pixels = np.random.default_rng(1).integers(0, 255, (40, width, 3), np.uint8)
    sheet = _with_legend(pixels, legend)
    assert np.array_equal(sheet[:40], pixels) and sheet.shape[1] == width
    # What is drawn keeps to its margins: no letter is cut off.
    below = sheet[40:] != np.array(GROUND, np.uint8)
    assert not below[:, -1].any() and not below[-1].any()


def test_a_preview_tells_how_far_it_is(shot):
    result = vfx("preview", shot, "--show", "exploded", "--device", "cpu")
    told = [int(part) for part in re.findall(r"preview: (\d+)% done", result.output)]
    assert told == sorted(told) and told[-1] == 100 and len(told) > 2, result.output
    assert "colours: volume [mm^3]: 8000 to 6.4e+04" in result.output
    layer = vfx("preview", shot, "--show", "exploded", "--pass", "depth", "--device", "cpu")
    assert "colours" not in layer.output


def test_frames_and_passes_need_their_pieces(shot):
    result = vfx("preview", shot, "--frame", "1002", "--device", "cpu")
    assert result.exit_code == 3 and "vfx stage align" in result.output
    result = vfx("preview", shot, "--frame", "1099", "--device", "cpu")
    assert result.exit_code == 2 and "1001 to 1003" in result.output
    assert vfx("run", shot, "--frames", "1002", "--device", "cpu").exit_code == 0
    chosen = picture(shot, "--frame", "1002", "-o", "here.png", "--width", "48")
    assert chosen.shape == (32, 48, 3) and Path("here.png").is_file()
    assert picture(shot, "--frame", "1002", "--width", "192").shape == (128, 192, 3)
    assert vfx("preview", shot, "--frame", "1002", "-o", "here.jpg", "--device",
               "cpu").exit_code == 0
    assert vfx("preview", shot, "-o", "here.exr").exit_code == 2 and not Path("here.exr").exists()
    with Image.open("here.jpg") as image:
        assert image.format == "JPEG" and image.size == (96, 64)


def test_a_pass_shows_the_channels_of_the_frame(shot):
    assert vfx("run", shot, "--frames", "1002", "--device", "cpu").exit_code == 0
    channel = {}
    for path in Path("work/jars/render").glob("*.1002.exr"):
        channel |= {name: pixels.astype(float) for name, pixels in read_exr(path)[0].items()}
    piece, seen = channel["fragment.id"] >= 0.0, channel["depth.Z"] < 1e9
    view = {layer: picture(shot, "--frame", 1002, "--samples", 1, "--pass", layer) for layer in (
        "beauty", "depth", "N", "P", "forward", "albedo", "fragment", "damage", "mask", "shadow",
        "diffuse", "specular", "refraction", "cryptomatte")}
    assert 0.05 < piece.mean() < seen.mean() < 1.0

    # Numbers as they are.
    nothing = np.zeros_like(piece, float)
    normal = np.stack([channel[f"N.{axis}"] for axis in "XYZ"], axis=-1)
    for layer, wanted in (
            ("N", np.where(seen[..., None], 0.5 + 0.5 * normal, 0.0)),
            ("shadow", np.stack(3 * [channel["shadow.Y"]], axis=-1)),
            ("mask", np.stack([channel["mask.fracture"], channel["mask.surface"], nothing], -1))):
        assert np.abs(view[layer] / 255.0 - np.clip(wanted, 0.0, 1.0)).max() < 0.01, layer
    # Light as a display shows it.
    for layer in ("beauty", "albedo", "diffuse", "specular", "refraction"):
        names = "RGB" if layer == "beauty" else [f"{layer}.{color}" for color in "RGB"]
        light = np.stack([channel[name] for name in names], axis=-1)
        assert np.abs(view[layer] - display_pixels(light, "acescg")).max() <= 1.0, layer
    # The nearer, the brighter; the farther along an axis, the more of its colour.
    assert (np.diff(view["depth"][seen][np.argsort(-channel["depth.Z"][seen])], axis=0) >= 0).all()
    assert np.ptp(view["depth"][piece]) > 30.0 and not view["depth"][~seen].any()
    for axis, name in enumerate("XYZ"):
        order = np.argsort(channel[f"P.{name}"][piece])
        assert (np.diff(view["P"][piece][order, axis]) >= 0).all()
        assert np.ptp(view["P"][piece][:, axis]) > 250.0
    # One colour a piece; nothing is damaged.
    for layer in ("fragment", "cryptomatte"):
        color = [np.median(view[layer][channel["fragment.id"] == number], axis=0)
                 for number in (0.0, 1.0)]
        assert np.abs(color[0] - color[1]).max() > 50.0, layer
        wanted = np.stack(color)[channel["fragment.id"][piece].astype(int)]
        assert (view[layer][piece] == wanted).all(axis=1).mean() > 0.98, layer
    assert len(np.unique(view["damage"][piece], axis=0)) == 1
    for layer in ("fragment", "damage", "forward"):
        assert view[layer][piece].any(axis=1).all() and not view[layer][~piece].any(), layer
    speed = np.hypot(channel["forward.u"], channel["forward.v"])[piece]
    assert np.corrcoef(speed, view["forward"][piece].max(axis=1))[0, 1] > 0.99


def test_frames_beside_the_wanted_one_are_aligned_for_its_vectors(shot):
    assert vfx("run", shot, "--frames", "1001", "--device", "cpu").exit_code == 0
    made = {path.name for path in Path("work/jars").rglob("*.????.*")}
    assert {"jars.1001.exr", "jars_crypto.1001.exr", "frame.1002.npz"} <= made
    assert "jars.1002.exr" not in made and "frame.1003.npz" not in made
    # Without vectors the frame stands alone.
    shot.write_text(SHOT + 'passes = ["beauty"]\n')
    assert vfx("run", shot, "--frames", "1001", "--device", "cpu", "--work", "w").exit_code == 0
    made = {path.name for path in Path("w").rglob("*.????.*")}
    assert "jars.1001.exr" in made and "frame.1002.npz" not in made
    assert "jars_crypto.1001.exr" not in made


@pytest.mark.parametrize(("text", "code", "message"), [
    ('passes = ["beauty", "deph"]', 2, "did you mean 'depth'?"),
    ('passes = ["depth"]', 2, "lacks 'beauty'"),
    ("crop = [0, 0, 0, 5]", 2, "at least 1 pixel"),
    ("crop = [90, 0, 10, 10]", 2, "beyond the picture"),
    ("resolution = [0, 64]", 2, "at least 1 pixel"),
    ('filter = "blackmann"', 2, "did you mean 'blackman-harris'?"),
    ('[camera]\nusd = "none.usda"', 3, "there is no such file"),
    ("[[camera_keys]]\nframe = 1\n[[camera_keys]]\nframe = 1", 2, "must rise"),
    ("[[camera_keys]]\nframe = 1\nposition = [0, 1]", 2, "3 numbers"),
    ("[[camera_keys]]\nframe = 1001\nposition = [0, 0.06, 0]", 2, "stands at its target"),
])
def test_bad_pictures_are_refused_before_anything_is_written(shot, text, code, message):
    body = SHOT.replace("resolution = [96, 64]\n", "") if "resolution" in text else SHOT
    shot.write_text(body + text + "\n")
    result = vfx("run", shot, "--device", "cpu")
    assert result.exit_code == code, result.output
    assert message in result.output and not Path("work").exists()
