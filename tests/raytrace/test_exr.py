"""Frames read back as written, by us and by an independent reader; damage is noticed."""

from __future__ import annotations

import os
import resource
import signal
from fractions import Fraction

import numpy as np
import OpenImageIO
import pytest

from vfx.raytrace.camera.camera import frame_header
from vfx.raytrace.film.exr import read_exr, write_exr
from vfx.raytrace.settings import Camera, Film


@pytest.fixture
def frame():
    random = np.random.default_rng(2)
    names = ["R", "G", "B", "A", "depth.Z", "N.X", "N.Y", "N.Z", "P.X", "P.Y", "P.Z",
             "fragment.id", "albedo.R", "albedo.G", "albedo.B"]
    return {name: random.normal(size=(45, 80)).astype(np.float32) for name in names}


HEADER = frame_header(Camera(), Film(resolution=(80, 45)), Fraction(24000, 1001), 1010)


def stored(name, values):
    return values.astype(np.float16 if name[-1] in "RGBA" else np.float32)


def test_openimageio_reads_the_same_pixels(tmp_path, frame):
    path = tmp_path / "shot.1010.exr"
    write_exr(path, frame, HEADER | {"vfx/seed": "1234"})
    image = OpenImageIO.ImageInput.open(str(path))
    spec = image.spec()
    pixels = image.read_image("float")
    for index, name in enumerate(spec.channelnames):
        assert np.array_equal(pixels[..., index], stored(name, frame[name]).astype(np.float32))
    assert set(spec.channelnames) == set(frame)
    assert str(spec.channelformats[spec.channelnames.index("R")]) == "half"
    assert str(spec.channelformats[spec.channelnames.index("P.Y")]) == "float"
    assert spec.getattribute("compression") == "zips"
    assert spec.getattribute("vfx/seed") == "1234"
    assert np.allclose(spec.getattribute("chromaticities")[:2], (0.713, 0.293))
    image.close()


def test_read_back_is_exact(tmp_path, frame):
    path = tmp_path / "a.exr"
    write_exr(path, frame, HEADER)
    channels, header = read_exr(path)
    assert set(channels) == set(frame)
    for name, values in frame.items():
        assert channels[name].dtype == stored(name, values).dtype
        assert np.array_equal(channels[name], stored(name, values))
    assert header["framesPerSecond"] == Fraction(24000, 1001)
    assert header["colorInteropID"] == "lin_ap1_scene"
    assert np.array_equal(np.asarray(header["worldToNDC"]), HEADER["worldToNDC"])
    assert (header["timeCode"].seconds, header["timeCode"].frame) == (42, 2)


def test_light_too_bright_for_half_stays_finite(tmp_path):
    write_exr(tmp_path / "a.exr", {name: np.full((2, 2), 1e6) for name in "RGB"}, {})
    channels, _ = read_exr(tmp_path / "a.exr")
    assert (channels["R"] == np.float16(65504.0)).all()


@pytest.mark.parametrize("cut", [1, 200, 4000, 20000])
def test_truncated_frame_is_noticed(tmp_path, frame, cut):
    path = tmp_path / "a.exr"
    write_exr(path, frame, HEADER)
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ValueError, match=r"a\.exr: the image cannot be read whole"):
        read_exr(path)


def test_a_damaged_frame_is_told_by_one_sentence_of_ours(tmp_path, frame, capfd):
    path = tmp_path / "a.exr"
    write_exr(path, frame, HEADER)
    whole = path.read_bytes()
    for data in (whole[:-4000], whole[:100], b"", b"x" * 1000, whole[:2000] + bytes(3000)):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"a\.exr: the image cannot be read whole"):
            read_exr(path)
    assert capfd.readouterr() == ("", "")
    os.write(2, b"heard")
    assert capfd.readouterr().err == "heard"


def test_missing_frame_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_exr(tmp_path / "no.exr")


def test_a_disk_that_gets_full_is_told(tmp_path):
    """The library itself does not look whether its last bytes were written."""
    pixels = {"R": np.random.default_rng(1).random((64, 64)).astype(np.float32)}
    write_exr(tmp_path / "whole.exr", pixels, {})
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        size = (tmp_path / "whole.exr").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 100, limit[1]))
        with pytest.raises(OSError, match="too large"):
            write_exr(tmp_path / "cut.exr", pixels, {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, before)
