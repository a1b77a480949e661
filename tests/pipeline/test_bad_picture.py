"""Odd environments, cameras and films through the real commands: refused, or a finite picture."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from PIL import Image
from small_plate import plate_shot

SHOT = plate_shot("1001-1001", 5, (32, 24), 6)
INSIDE = "\n[camera]\nposition = [0.001, 0.071, 0.0]\ntarget = [0.0, 0.07, -1.0]\n"


def write_environment(path: Path, pixels: np.ndarray) -> None:
    OpenEXR.File({"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage},
                 {"RGB": np.ascontiguousarray(pixels)}).write(str(path))


@pytest.fixture
def shot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    sky = np.ones((8, 16, 3), np.float32)
    for name, value in (("nan", np.nan), ("inf", np.inf), ("negative", -1.0), ("over", 3e38)):
        odd = sky.copy()
        odd[3, 4, 1] = value
        write_environment(tmp_path / f"{name}.exr", odd)
    write_environment(tmp_path / "one.exr", sky[:1, :1])
    write_environment(tmp_path / "black.exr", 0.0 * sky)
    write_environment(tmp_path / "blinding.exr", 1e12 * sky)
    write_environment(tmp_path / "brighter.exr", 3e38 * sky)
    Image.fromarray((255 * sky).astype(np.uint8)).save(tmp_path / "eight.png")
    path = tmp_path / "plate.toml"
    path.write_text(SHOT)
    return path


@pytest.mark.parametrize(("more", "words"), [
    ('[light]\nenvironment = "nan.exr"', "not a number in 1 pixel(s), the first at column 4, row"),
    ('[light]\nenvironment = "inf.exr"', "an infinite value in 1 pixel(s)"),
    ('[light]\nenvironment = "negative.exr"', "a negative value in 1 pixel(s)"),
    ('[light]\nenvironment = "brighter.exr"', "a radiance above 1e+12 in 128 pixel(s)"),
    ('[light]\nenvironment = "one.exr"', "has 1 x 1 pixels; at least 2 x 2 are needed"),
    ('[light]\nenvironment = "eight.png"', "must be an .exr or .hdr file, not .png"),
    ('[floor_look]\ntexture = "gone.png"', "floor_look.texture: found 'gone.png'"),
    ('passes = ["beauty", "normals"]', "render.passes: found ['beauty', 'normals']"),
    ("crop = [30, 20, 10, 10]", "which reaches beyond the picture of 32 x 24 pixels"),
    ("crop = [0, 0, 0, 5]", "with a width and height of at least 1 pixel"),
    ("[camera]\nfocal_length = -50.0", "camera.focal_length: found -50.0"),
    ("[camera]\nfilm_width = 0.0", "camera.film_width: found 0.0"),
    ('[camera]\nusd_camera = "/cam"', "camera.usd_camera: found '/cam', but no file to find it in"),
    (INSIDE, "inside body 'plate'"),
    ("[camera]\nposition = [0.0, -0.1, 0.3]", "which is below the floor at 0 m"),
    ("[[camera_keys]]\nframe = 1001\nposition = [0.0, 1.0, 1.0]\ntarget = [0.0, 1.0, 1.0]",
     "at frame 1001 the camera stands at its target"),
])
@pytest.mark.parametrize("command", ["run", "check"])
def test_odd_pictures_are_refused_before_anything_is_written(
        shot: Path, vfx, command: str, more: str, words: str) -> None:
    shot.write_text(SHOT + more + "\n")
    before = sorted(path.name for path in shot.parent.iterdir())
    result = vfx(command, shot)
    assert result.exit_code == 2, result.output
    assert words in result.stderr
    assert sorted(path.name for path in shot.parent.iterdir()) == before


@pytest.mark.parametrize(("more", "words"), [
    ("overscan = 8192", "render.overscan: found 32 x 24 with an overscan of 8192, together 16416"),
    ("overscan = 8192\ncrop = [-8192, -8192, 16400, 16400]", "render.crop: found [-8192, -8192, "),
])
def test_a_picture_beyond_the_memory_names_what_makes_it_large(
        shot: Path, vfx, monkeypatch: pytest.MonkeyPatch, more: str, words: str) -> None:
    monkeypatch.setattr("vfx.pipeline.show.report.host_memory", lambda: 1 << 34)
    shot.write_text(SHOT + more + "\n")
    result = vfx("check", shot)
    assert result.exit_code == 3 and words in result.stderr


@pytest.mark.parametrize("command", ["run", "check"])
def test_a_camera_that_dives_below_the_floor_is_refused_at_the_start(
        shot: Path, vfx, command: str) -> None:
    text = SHOT.replace("1001-1001", "1001-1003")
    shot.write_text(text + "[[camera_keys]]\nframe = 1001\n"
                    "[[camera_keys]]\nframe = 1003\nposition = [0.0, -0.1, 0.4]\n")
    result = vfx(command, shot)
    assert result.exit_code == 2 and "at frame 1003, which is below the floor" in result.stderr
    assert not Path("work").exists()


def test_a_camera_below_a_floor_that_is_not_seen_is_taken(shot: Path, vfx) -> None:
    shot.write_text(SHOT + "[camera]\nposition = [0, -0.1, 0.3]\n[floor_look]\nvisible = false\n")
    assert vfx("check", shot).exit_code == 0


@pytest.mark.parametrize(("target", "is_seen"), [
    ("[0.0, 0.07, 0.0]", True), ("[0.0, 0.3, 0.0]", False), ("[0.0, 0.12, 0.8]", False)])
def test_a_body_beside_the_picture_gets_a_warning(shot: Path, vfx, target: str,
                                                  is_seen: bool) -> None:
    shot.write_text(SHOT + f"[camera]\nposition = [0.0, 0.12, 0.4]\ntarget = {target}\n")
    result = vfx("check", shot)
    words = "the middle of body 'plate', at (0, 0.07, 0), is not in the picture of frame 1001"
    assert result.exit_code == 0 and (words in result.output) != is_seen


def test_who_does_not_check_is_warned_too(shot: Path, vfx) -> None:
    """By what makes frames, before they are made, and by the page that shows them after."""
    shot.write_text(SHOT + "[camera]\nposition = [0.0, 0.12, 0.4]\ntarget = [0.0, 0.3, 0.0]\n")
    words = "the middle of body 'plate', at (0, 0.07, 0), is not in the picture of frame 1001"
    for command in (["submit", shot, "--farm", "local", "--dry-run"], ["run", shot, "--dry-run"],
                    ["run", shot, "--device", "cpu"]):
        result = vfx(*command)
        assert result.exit_code == 0 and f"warning: {words}" in result.output
    assert "warning" not in vfx("run", shot, "--device", "cpu").output, "nothing is made"
    assert vfx("review", shot).exit_code == 0
    page, = Path("work").glob("*/review/*.html")
    assert words in page.read_text()


def test_a_film_without_pixels_is_refused(shot: Path, vfx) -> None:
    shot.write_text(SHOT.replace("resolution = [32, 24]", "resolution = [0, 24]"))
    result = vfx("run", shot)
    assert (result.exit_code, "render.resolution: found [0, 24]" in result.stderr) == (2, True)


@pytest.mark.parametrize("more", [
    '[light]\nenvironment = "black.exr"', '[light]\nenvironment = "blinding.exr"',
    INSIDE + '[materials.glass.surface]\npreset = "glass"'])
def test_odd_but_sound_pictures_are_finite(shot: Path, vfx, more: str) -> None:
    shot.write_text(SHOT + more + "\n")
    result = vfx("run", shot, "--device", "cpu")
    assert result.exit_code == 0, result.output
    with OpenEXR.File("work/plate/render/plate.1001.exr", separate_channels=True) as file:
        for name, channel in file.channels().items():
            assert np.isfinite(channel.pixels).all(), name


def test_too_large_an_environment_is_refused_by_its_header(shot: Path) -> None:
    """32768 x 8192 pixels take gigabytes: they are not even read."""
    path = shot.with_name("vast.exr")
    write_environment(path, np.zeros((8, 16, 3), np.float16))
    low_corner, high_corner = (0, 0), (32767, 8191)
    data = path.read_bytes()
    window = np.array([0, 0, 15, 7], "<i4").tobytes()
    vast = np.array([*low_corner, *high_corner], "<i4").tobytes()
    path.write_bytes(data.replace(window, vast))
    shot.write_text(SHOT + '[light]\nenvironment = "vast.exr"\n')
    result = subprocess.run(
        [sys.executable, "-c", "from vfx.pipeline.cli.commands import main; main()", "check",
         str(shot)],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30)))
    assert result.returncode == 2, result.stderr
    assert "at most 16384 x 8192 are taken" in result.stderr


USD_CAMERA = '#usda 1.0\n(\nmetersPerUnit = {unit}\n)\ndef Camera "cam" {{\n{lens}\n' \
    'double3 xformOp:translate = ({x}, 12, 40)\n' \
    'uniform token[] xformOpOrder = ["xformOp:translate"]\n}}\n'


def usd_shot(shot: Path, unit: str = "0.01", lens: str = "", x: str = "0") -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    shot.with_name("cam.usda").write_text(USD_CAMERA.format(unit=unit, lens=lens, x=x))
    shot.write_text(SHOT + '[camera]\nusd = "cam.usda"\n')


@pytest.mark.parametrize(("settings", "words"), [
    ({"unit": "nan"}, "cam.usda: metersPerUnit: found nan, but it must be a finite number above 0"),
    ({"unit": "0"}, "cam.usda: metersPerUnit: found 0, but"),
    ({"x": "nan"}, "cam.usda: /cam: its transform at frame 1001 has values that are not finite"),
    ({"x": "1e300"}, "cam.usda: /cam: transform: found [1e+298, "),
    ({"lens": "float focalLength = 0"}, "/cam: focalLength: found 0.0 mm, but it must be at least"),
    ({"lens": "float focalLength.timeSamples = {1001: 50, 1002: -50}"},
     "/cam: focalLength at frame 1002: found -50.0 mm"),
    ({"lens": "float horizontalAperture = nan"}, "/cam: horizontalAperture: found nan mm"),
    ({"lens": "float fStop = nan"}, "/cam: fStop: found nan, but it must be a finite number"),
])
@pytest.mark.parametrize("command", [
    ["check"], ["run"], ["submit", "--farm", "local", "--dry-run"]], ids=lambda words: words[0])
def test_a_usd_camera_that_cannot_be_is_refused_before_anything_is_made(
        shot: Path, vfx, command: list[str], settings: dict[str, str], words: str) -> None:
    usd_shot(shot, **settings)
    result = vfx(command[0], shot, *command[1:])
    assert result.exit_code == 2, result.output
    assert f"{shot}: camera.usd: found 'cam.usda': " in result.stderr and words in result.stderr
    assert not Path("work").exists()


def test_a_camera_that_moves_in_other_frames_gets_a_warning(shot: Path, vfx) -> None:
    usd_shot(shot, lens="float focalLength.timeSamples = {1: 50, 48: 60}")
    result = vfx("check", shot)
    assert result.exit_code == 0, result.output
    assert "the camera stands still: " in result.output
    assert "cam.usda: /cam moves in frames 1 to 48 only" in result.output
    usd_shot(shot, lens="float focalLength.timeSamples = {1001: 50, 1048: 60}")
    assert "stands still" not in vfx("check", shot).output


@pytest.mark.parametrize(("more", "words"), [
    ("[camera]\nf_stop = 1e-300", "camera: f_stop: found 1e-300, but it must be 0, or at least"),
    ("[camera]\nfocus_distance = 1e-300", "camera: focus_distance: found 1e-300 m, but it must be"),
    ("[[camera_keys]]\nframe = 1001\nfocal_length = 1e-300",
     "camera_keys: focal_length at frame 1001: found 1e-300 mm"),
    ("[[camera_keys]]\nframe = 1\n[[camera_keys]]\nframe = 1.0000001\nfocal_length = 9",
     "camera_keys[2].frame: found 1, which stands after 1; frames must rise from key to key, by "),
])
def test_a_camera_too_extreme_for_floats_is_refused(shot: Path, vfx, more: str,
                                                    words: str) -> None:
    shot.write_text(SHOT + more + "\n")
    result = vfx("check", shot)
    assert result.exit_code == 2 and words in result.stderr
