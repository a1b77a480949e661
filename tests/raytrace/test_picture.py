"""Image files: their colours, however they are stored, and a bound on what reading them takes."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import OpenEXR
import pytest
from PIL import Image

from vfx.pipeline.shot.density_picture import load_density
from vfx.raytrace.light.environment import BRIGHTEST, load_environment
from vfx.raytrace.surface.texture import load_image

GREY = 188      # of 255 in sRGB: 0.503 in linear light
LINEAR = ((GREY / 255 + 0.055) / 1.055) ** 2.4


def write_exr(path: Path, channels: dict[str, np.ndarray], **header) -> None:
    OpenEXR.File({"compression": OpenEXR.ZIP_COMPRESSION, "type": OpenEXR.scanlineimage, **header},
                 channels).write(str(path))


def png_of(width: int, height: int, data: bytes = b"") -> bytes:
    """Return a PNG whose header says so, whatever its data are."""
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(
            ">I", zlib.crc32(kind + body))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0,
                                                             0, 0))
            + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b""))


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16", "CMYK", "palette",
                                  "animated"])
def test_a_grey_is_the_same_however_it_is_stored(tmp_path, mode):
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    grey = Image.new("L", (5, 3), GREY)
    if mode == "I;16":
        Image.fromarray(np.full((3, 5), GREY * 257, np.uint16)).save(path)
    elif mode == "palette":
        image = Image.new("P", (5, 3), 1)
        image.putpalette([9, 9, 9, GREY, GREY, GREY])
        image.save(path, transparency=0)
    elif mode == "animated":
        grey.save(path, save_all=True, append_images=[Image.new("L", (5, 3), 3)])
    else:
        stored = grey.convert(mode, dither=Image.Dither.NONE)
        stored.save(path, **({"quality": 100} if mode == "CMYK" else {}))
    expected = 1.0 if mode == "1" else LINEAR
    texture = load_image(path.name, tmp_path)
    assert texture.shape == (3, 5, 3) and texture.dtype == np.float32
    assert np.allclose(texture, expected, atol=0.02 if mode == "CMYK" else 2e-3)
    if path.suffix == ".png":
        density = load_density(path)
        assert density.shape == (3, 5) and density.dtype == np.float32
        assert np.allclose(density, 1.0 if mode == "1" else GREY / 255, atol=1e-3)


def test_all_bits_of_a_fine_grey_are_kept(tmp_path):
    fine = np.arange(65536, dtype=np.uint16).reshape(256, 256)
    Image.fromarray(fine).save(tmp_path / "a.png")
    assert np.array_equal(load_density(tmp_path / "a.png"), (fine / 65535.0).astype(np.float32))
    texture = load_image("a.png", tmp_path)
    assert (np.diff(texture[..., 0].ravel()) > 0.0).all() and texture.max() == 1.0


def test_a_single_pixel_is_a_picture(tmp_path):
    Image.new("RGB", (1, 1), (255, 0, 0)).save(tmp_path / "a.png")
    assert load_image("a.png", tmp_path).tolist() == [[[1.0, 0.0, 0.0]]]


@pytest.mark.parametrize(("width", "height"), [(16385, 8192), (100_000, 100_000), (1, 1 << 28)])
def test_a_picture_too_large_is_refused_by_its_header(tmp_path, width, height):
    (tmp_path / "a.png").write_bytes(png_of(width, height))
    for read in (lambda: load_image("a.png", tmp_path), lambda: load_density(tmp_path / "a.png")):
        with pytest.raises(ValueError, match=f"a.png: has {width} x {height} pixels; .* at most "
                                             "16384 x 8192 are taken"):
            read()


@pytest.mark.parametrize("data", [
    b"", b"\x89PNG\r\n\x1a\n", png_of(0, 5), png_of(4, 4), png_of(4, 4, b"\0" * 20),
    png_of(4, 4, bytes(range(52)))[:-40], b"\xff\xd8\xff\xe0" + b"\0" * 50], ids=range(7))
def test_a_picture_that_is_not_whole_is_refused_by_name(tmp_path, data):
    (tmp_path / "a.png").write_bytes(data)
    for read in (lambda: load_image("a.png", tmp_path), lambda: load_density(tmp_path / "a.png")):
        with pytest.raises(ValueError, match=r"a\.png: "):
            read()


@pytest.mark.parametrize("kind", ["RGB", "RGBA", "L", "P", "density", "grey density"])
def test_reading_takes_little_more_than_the_result(tmp_path, kind):
    image = Image.effect_noise((2048, 2048), 80.0)
    if kind != "grey density":
        image = image.convert("RGB" if kind == "density" else kind)
    image.save(tmp_path / "a.png", compress_level=1)
    is_density = "density" in kind
    tracemalloc.start()
    picture = load_density(tmp_path / "a.png") if is_density else load_image("a.png", tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    decoded = 4 * 2048 * 2048
    assert peak < picture.nbytes + 2 * decoded + (60 << 20)


def test_an_exr_with_more_than_its_colours_is_bounded(tmp_path):
    """The header tells how many channels and parts there are, before any is read."""
    path = tmp_path / "a.exr"
    write_exr(path, {f"c{k:02d}": np.zeros((8, 16), np.float16) for k in range(40)}
              | {name: np.zeros((8, 16), np.float16) for name in "RGB"})
    window = np.array([0, 0, 15, 7], "<i4").tobytes()
    large = np.array([0, 0, 8191, 8191], "<i4").tobytes()
    path.write_bytes(path.read_bytes().replace(window, large))
    with pytest.raises(ValueError, match=r"a\.exr: its channels take 11008 MiB to read, but at "
                                         "most 2048 MiB are taken; save it with the channels R,"):
        load_image("a.exr", tmp_path)


@pytest.mark.parametrize(("value", "words"), [
    (np.nan, "not a number"), (np.inf, "an infinite value"), (-1.0, "a negative value"),
    (3.4e38, r"a radiance above 1e\+12 .* found \[3.4e\+38, 1.0, 1.0\]; .* light.exposure")])
def test_light_that_no_film_can_hold_is_refused_with_its_place(tmp_path, value, words):
    sky = np.ones((4, 8, 3), np.float32)
    sky[2, 5, 0] = value
    write_exr(tmp_path / "a.exr", {"RGB": sky})
    with pytest.raises(ValueError, match=f"{words}|column 5, row 2"):
        load_environment("a.exr", tmp_path)
    sky[2, 5, 0] = BRIGHTEST
    write_exr(tmp_path / "a.exr", {"RGB": sky})
    assert load_environment("a.exr", tmp_path).max() == np.float32(BRIGHTEST)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.5, 11.0, 3e38])
def test_a_texture_that_is_no_colour_is_refused_with_its_place(tmp_path, value):
    image = np.ones((4, 8, 3), np.float32)
    image[2, 5, 1] = value
    write_exr(tmp_path / "a.exr", {"RGB": image})
    with pytest.raises(ValueError, match=r"a\.exr: found \[1.0, .*, 1.0\] in column 5, row 2"):
        load_image("a.exr", tmp_path)


def test_a_radiance_file_is_read_no_further_than_its_picture(tmp_path):
    head = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 3\n"
    pixels = bytes([128, 64, 32, 129]) * 6
    (tmp_path / "a.hdr").write_bytes(head + pixels + b"\xff" * 1000)
    sky = load_environment("a.hdr", tmp_path)
    assert sky.shape == (2, 3, 3) and np.allclose(sky, [1.0, 0.5, 0.25])
    (tmp_path / "a.hdr").write_bytes(head.replace(b"-Y 2 +X 3", b"-Y 99999 +X 99999") + pixels)
    with pytest.raises(ValueError, match="at most 16384 x 8192"):
        load_environment("a.hdr", tmp_path)
    (tmp_path / "a.hdr").write_bytes(head + pixels[:-1])
    with pytest.raises(ValueError, match="ends before its last scanline"):
        load_environment("a.hdr", tmp_path)
