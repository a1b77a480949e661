"""Image files that a shot names: how large they may be, and their pixels as they are stored.

The size is known from the header before any pixel is decoded, so no file takes more memory than
the largest picture that is taken.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.exr import exr_extent, read_exr

if TYPE_CHECKING:
    from PIL import Image

#: Pixels of the largest image taken: 16384 x 8192.
MAX_PIXELS = 1 << 27
#: Pixels of all textures of a shot: 3 GiB of floats, on the device and on the host.
MAX_PIXELS_TOGETHER = 2 * MAX_PIXELS
#: The most that all channels of an EXR may take as floats: four of the largest image.
MAX_BYTES = 16 * MAX_PIXELS
#: Pixels that are converted at once.
STRIP_PIXELS = 1 << 20


def check_size(path: Path, width: int, height: int) -> None:
    """Refuse a picture without pixels, or with too many of them."""
    if not (width > 0 and height > 0 and width * height <= MAX_PIXELS):
        raise ValueError(f"{path}: has {width} x {height} pixels; at least 1 x 1 and at most "
                         f"16384 x 8192 are taken ({MAX_PIXELS} pixels of any shape), so make it "
                         f"{'smaller' if width > 0 and height > 0 else 'again'}")


def read_picture(path: Path, formats: tuple[str, ...]) -> Array:
    """Return the pixels of a PNG or JPEG as they are stored, the first picture of several.

    Grey is (h, w) of uint8 or, with 16 bits, uint16; colour is (h, w, 3) uint8, and (h, w, 4)
    where it may be transparent. Raises ValueError where there is no whole picture.
    """
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    try:
        Image.MAX_IMAGE_PIXELS = None      # the limit is ours, and says what to do
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=formats) as image:
            size = image.size
            if 0 < size[0] * size[1] <= MAX_PIXELS:
                return _stored(image)
    except MemoryError:
        raise
    except Exception as error:  # the library raises many kinds, SyntaxError among them
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: cannot be read whole, it is truncated, damaged or no "
                         f"{' or '.join(formats)} ({reason}); make or copy it again") from None
    finally:
        Image.MAX_IMAGE_PIXELS = limit
    check_size(path, *size)
    raise AssertionError(size)


def _stored(image: Image.Image) -> Array:
    """Return the pixels of an open image in one of four kinds."""
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.uint16, copy=False)
    if "transparency" in image.info or image.mode in ("LA", "La", "PA", "RGBA", "RGBa"):
        wanted = "RGBA"
    else:
        wanted = "L" if image.mode in ("1", "L") else "RGB"
    return np.asarray(image if image.mode == wanted else image.convert(wanted))


def read_exr_picture(path: Path, *kinds: tuple[str, ...]) -> list[Array]:
    """Return the channels (h, w) of the first of ``kinds`` that an EXR has all of.

    Raises ValueError where it has none of them, too many pixels, or cannot be read.
    """
    width, height, n_bytes = exr_extent(path)
    check_size(path, width, height)
    if n_bytes > MAX_BYTES:
        raise ValueError(f"{path}: its channels take {n_bytes >> 20} MiB to read, but at most "
                         f"{MAX_BYTES >> 20} MiB are taken; save it with the channels "
                         f"{', '.join(kinds[0])} alone")
    channels, _ = read_exr(path)
    for kind in kinds:
        if set(kind) <= channels.keys():
            chosen = [channels[name] for name in kind]
            break
    else:
        missing = " and ".join(
            f"no channel {', '.join(sorted(set(kind) - channels.keys()))}" for kind in kinds)
        found = ", ".join(sorted(channels))[:200] or "none"
        raise ValueError(f"{path}: has {missing} (found {found}); save it with "
                         f"{' or '.join(', '.join(kind) for kind in kinds)}")
    if any(channel.shape != (height, width) for channel in chosen):
        raise ValueError(f"{path}: some of its channels have fewer pixels than others; save it "
                         "without subsampling")
    return chosen


def strips(height: int, width: int) -> Iterator[slice]:
    """Yield the rows of a picture, so many at once that little memory is needed on top."""
    rows = max(1, STRIP_PIXELS // width)
    for first in range(0, height, rows):
        yield slice(first, first + rows)
