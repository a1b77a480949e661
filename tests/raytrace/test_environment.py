"""An environment that cannot light a scene is refused with a sentence that says why."""

from __future__ import annotations

import numpy as np
import OpenEXR
import OpenImageIO
import pytest

from vfx.raytrace.film.exr import write_exr
from vfx.raytrace.light.environment import builtin_environments, load_environment
from vfx.raytrace.light.lights import sky_on_device

GRAY = np.full((16, 32), 0.5, np.float32)


def rgb(value=None, where=(3, 5)):
    channels = {name: GRAY.copy() for name in "RGB"}
    if value is not None:
        channels["G"][where] = value
    return channels


def write_nothing(path):
    path.write_bytes(b"")


def write_text(path):
    path.write_text("this is no image")


def write_truncated(path):
    random = np.random.default_rng(0).random((64, 128)).astype(np.float32)
    write_exr(path, dict.fromkeys("RGB", random), {})
    path.write_bytes(path.read_bytes()[:-2000])


def writes(channels):
    return lambda path: write_exr(path, channels, {})


BAD_FILES = {
    "empty file": (write_nothing, "cannot be read whole"),
    "text": (write_text, "cannot be read whole"),
    "truncated": (write_truncated, "cannot be read whole"),
    "nan": (writes(rgb(np.nan)), "not a number in 1 pixel.*column 5, row 3"),
    "negative": (writes(rgb(-0.25)), "a negative value in 1 pixel.*column 5, row 3"),
    "no blue": (writes({"R": GRAY, "G": GRAY}), "no channel B"),
    "one pixel": (writes({name: np.ones((1, 1)) for name in "RGB"}), "1 x 1 pixels"),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_unusable_image_is_refused(fault, tmp_path):
    write, message = BAD_FILES[fault]
    write(tmp_path / "light.exr")
    with pytest.raises(ValueError, match=message) as caught:
        load_environment("light.exr", tmp_path)
    assert str(tmp_path / "light.exr") in str(caught.value)


def test_infinite_light_is_refused(tmp_path):
    channels = {name: np.full((4, 8), np.inf, np.float32) for name in "RGB"}
    OpenEXR.File({"type": OpenEXR.scanlineimage}, channels).write(str(tmp_path / "sun.exr"))
    with pytest.raises(ValueError, match="an infinite value in 32 pixel"):
        load_environment("sun.exr", tmp_path)


def test_other_formats_are_refused(tmp_path):
    (tmp_path / "light.png").write_bytes(b"\x89PNG")
    with pytest.raises(ValueError, match=r"must be an \.exr or \.hdr file, not \.png"):
        load_environment("light.png", tmp_path)


def test_missing_environment_names_what_there_is(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"studoi.*clear_sky, studio"):
        load_environment("studoi", tmp_path)
    with pytest.raises(FileNotFoundError, match=r"gone\.exr: the environment file does not exist"):
        load_environment("gone.exr", tmp_path)


def test_builtin_environments_load(tmp_path):
    assert {"clear_sky", "studio"} <= set(builtin_environments())
    for name in builtin_environments():
        image = load_environment(name, tmp_path)
        assert image.shape == (256, 512, 3) and image.dtype == np.float32
        assert image.max() > 1.0


@pytest.mark.parametrize("size", [(16, 64), (5, 7)])
def test_radiance_hdr_reads_as_an_independent_writer_wrote_it(tmp_path, size):
    height, width = size
    image = np.random.default_rng(1).lognormal(size=(height, width, 3)).astype(np.float32)
    image[:, : width // 2] = image[0, 0]
    path = tmp_path / "light.hdr"
    out = OpenImageIO.ImageOutput.create(str(path))
    out.open(str(path), OpenImageIO.ImageSpec(width, height, 3, "float"))
    out.write_image(image)
    out.close()
    found = load_environment("light.hdr", tmp_path)
    assert np.allclose(found, image, atol=image.max(axis=-1, keepdims=True) / 120)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="ends before its last scanline"):
        load_environment("light.hdr", tmp_path)


def test_frames_share_a_sky_until_its_light_changes(device):
    image = np.random.default_rng(0).random((4, 8, 3)).astype(np.float32)
    first = sky_on_device(device, image)
    assert sky_on_device(device, image.copy()) is first
    image[0, 0] += 1.0
    second = sky_on_device(device, image)
    assert second is not first
    assert np.array_equal(device.to_host(second.image), image)
