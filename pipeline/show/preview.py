"""Pictures for people: frames as sRGB, a contact sheet, and a movie, in ``<work>/review/``.

Linear scene colour goes to the display by exposure-free tone: straight up to mid grey, then a
shoulder that bends highlights softly to white, then the sRGB curve.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from vfx.pipeline.work.cache import publish, publish_bytes

Pixels = npt.NDArray[Any]

# Rec.709 from ACEScg (AP1 primaries, ACES white), Bradford-adapted to D65.
REC709_FROM_ACESCG = np.array([
    [1.70505, -0.62179, -0.08326],
    [-0.13026, 1.14080, -0.01055],
    [-0.02400, -0.12897, 1.15297],
])
_SHOULDER_START = 0.5
_SHEET_WIDTH = 1920
_GAP = 6
_LABEL = 18
_BACKGROUND = (22, 22, 24)


def display_pixels(radiance: Pixels, color_space: str) -> Pixels:
    """Return linear colour (h, w, 3) as 8-bit sRGB (h, w, 3); NaN and negatives become black."""
    linear = np.clip(np.nan_to_num(np.asarray(radiance, np.float32), nan=0.0), -1e6, 1e6)
    if color_space == "acescg":
        linear = linear @ REC709_FROM_ACESCG.T.astype(np.float32)
    linear = shoulder(np.clip(linear, 0.0, 1e6))
    encoded = np.where(linear <= 0.0031308, 12.92 * linear,
                       1.055 * np.maximum(linear, 0.0031308) ** (1.0 / 2.4) - 0.055)
    return np.round(255.0 * np.clip(encoded, 0.0, 1.0)).astype(np.uint8)


def shoulder(linear: Pixels) -> Pixels:
    """Return ``linear`` with values above the start of the shoulder bent to below 1.

    Value and slope are continuous there: y = a + (1 - a) (1 - exp(-(x - a) / (1 - a))).
    """
    a = _SHOULDER_START
    bent = a + (1.0 - a) * -np.expm1(-(linear - a) / (1.0 - a))
    return np.where(linear <= a, linear, bent)


def read_display(path: Path, color_space: str) -> Pixels:
    """Read a frame as 8-bit sRGB (h, w, 3)."""
    from vfx.raytrace.film.exr import read_exr

    channels, _ = read_exr(path)
    return display_pixels(np.stack([channels[name] for name in "RGB"], axis=-1), color_space)


def write_picture(path: Path, pixels: Pixels) -> None:
    """Publish 8-bit pixels (h, w, 3) as JPEG where the file is called so, else as PNG."""
    data = io.BytesIO()
    if path.suffix.lower() in (".jpg", ".jpeg"):
        Image.fromarray(pixels).save(data, "JPEG", quality=85)
    else:
        Image.fromarray(pixels).save(data, "PNG")
    publish_bytes(path, data.getvalue())


def thumbnail(pixels: Pixels, n_frames: int) -> Pixels:
    """Return 8-bit pixels (h, w, 3) made small enough for a contact sheet of ``n_frames``."""
    image = Image.fromarray(pixels)
    scale = min(1.0, max(16, _SHEET_WIDTH // _columns(n_frames) - _GAP) / image.width)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return np.asarray(image.resize(size, Image.Resampling.BOX))


def write_contact_sheet(path: Path, thumbnails: Sequence[tuple[int, Pixels]]) -> None:
    """Publish one picture of all frames, each with its number, in reading order."""
    thumb_h, thumb_w = thumbnails[0][1].shape[:2]
    columns = _columns(len(thumbnails))
    rows = math.ceil(len(thumbnails) / columns)
    sheet = Image.new("RGB", (columns * (thumb_w + _GAP) + _GAP,
                              rows * (thumb_h + _LABEL + _GAP) + _GAP), _BACKGROUND)
    draw = ImageDraw.Draw(sheet)
    font = ImageFont.load_default()
    for i, (number, pixels) in enumerate(thumbnails):
        x = _GAP + (i % columns) * (thumb_w + _GAP)
        y = _GAP + (i // columns) * (thumb_h + _LABEL + _GAP)
        sheet.paste(Image.fromarray(pixels), (x, y))
        draw.text((x + 2, y + thumb_h + 3), str(number), fill=(200, 200, 200), font=font)
    write_picture(path, np.asarray(sheet))


def write_movie(path: Path, pictures: Iterable[Pixels], fps: float) -> str | None:
    """Publish an H.264 movie of 8-bit pictures; return why not if it cannot be made."""
    try:
        import imageio_ffmpeg

        imageio_ffmpeg.get_ffmpeg_exe()
    except (ImportError, RuntimeError):
        return "no movie: ffmpeg is missing; 'pip install imageio-ffmpeg' brings one"
    try:
        publish(path, lambda temporary: _encode(temporary, pictures, fps))
    except (OSError, RuntimeError) as error:
        return f"no movie: ffmpeg failed: {' '.join(str(error).split())}"
    return None


def _encode(path: Path, pictures: Iterable[Pixels], fps: float) -> None:
    import imageio_ffmpeg

    writer = None
    try:
        for picture in pictures:
            pixels = _even(picture)
            if writer is None:
                size = (pixels.shape[1], pixels.shape[0])
                writer = imageio_ffmpeg.write_frames(
                    str(path), size, fps=fps, codec="libx264", macro_block_size=2, quality=8,
                    pix_fmt_out="yuv420p", ffmpeg_log_level="error",
                    output_params=["-movflags", "+faststart"])
                writer.send(None)
            writer.send(np.ascontiguousarray(pixels))
    finally:
        if writer is not None:
            writer.close()


def _even(pixels: Pixels) -> Pixels:
    """Repeat the last row or column of odd sizes, which the movie format cannot hold."""
    return np.pad(pixels, ((0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)), "edge")


def _columns(count: int) -> int:
    """Return the columns of a sheet: about square, with the fewest holes in its last row.

    24 frames stand in 6 columns, 48 in 8; a wider sheet is better than a hole.
    """
    least = max(1, math.ceil(math.sqrt(count)))
    return min(range(least, least + 1 + least // 2), key=lambda n: (-count % n, n))


if __name__ == "__main__":
    import sys

    source, picture = sys.argv[1:]
    write_picture(Path(picture), read_display(Path(source), "acescg"))
