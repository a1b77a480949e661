"""Reads the pictures that say where a body is weak: grey PNG or OpenEXR, from 0 to 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Picture = npt.NDArray[np.float32]

#: Pixels of the largest picture taken: 16384 x 8192.
MAX_PIXELS = 1 << 27


def load_density(path: Path) -> Picture:
    """Return a picture as (h, w) float32 from 0 (black) to 1 (white), the first row on top.

    Values are taken as they are stored. Raises FileNotFoundError where there is no file and
    ValueError where it holds no such picture; both say what to do.
    """
    if not path.is_file():
        state = "is no file" if path.exists() else "does not exist"
        raise FileNotFoundError(f"{path}: {state}; give a PNG or EXR file relative to the shot "
                                "file")
    suffix = path.suffix.lower()
    if suffix not in (".png", ".exr"):
        raise ValueError(f"{path}: must be a .png or .exr file, not "
                         f"{suffix or 'one without an ending'}; convert it to PNG")
    picture = _read_png(path) if suffix == ".png" else _read_exr(path)
    if not np.isfinite(picture).all() or picture.min() < 0.0 or picture.max() > 1.0:
        raise ValueError(f"{path}: has values that are not between 0 and 1; black is the weakest, "
                         "white leaves the strain limit as it is")
    return np.ascontiguousarray(picture, np.float32)


def _read_png(path: Path) -> npt.NDArray[Any]:
    from PIL import Image

    try:
        with Image.open(path, formats=("PNG",)) as image:
            _check_size(path, image.width, image.height)
            if image.mode.startswith("I"):
                return np.asarray(image, np.float64) / 65535.0
            if image.mode not in ("1", "L"):
                pixels = np.asarray(image.convert("RGBA"), np.float64) / 255.0
                if pixels[..., 3].min() < 1.0:
                    raise ValueError(f"{path}: is transparent in places; flatten it on white")
                return _grey(*np.moveaxis(pixels[..., :3], 2, 0))
            return np.asarray(image.convert("L"), np.float64) / 255.0
    except (ValueError, MemoryError):
        raise
    except Exception as error:  # the library raises many kinds, SyntaxError among them
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: cannot be read whole, it is truncated, damaged or no PNG "
                         f"({reason}); make or copy it again") from None


def _read_exr(path: Path) -> npt.NDArray[Any]:
    from vfx.raytrace.exr import read_exr

    channels, _ = read_exr(path)
    if "Y" in channels:
        grey: npt.NDArray[Any] = channels["Y"].astype(np.float64)
    elif {"R", "G", "B"} <= channels.keys():
        grey = _grey(*(channels[name].astype(np.float64) for name in "RGB"))
    else:
        found = ", ".join(sorted(channels)) or "none"
        raise ValueError(f"{path}: has neither a channel Y nor R, G and B (found {found}); save "
                         "it as grey or RGB")
    _check_size(path, grey.shape[1], grey.shape[0])
    return grey


def _grey(
    red: npt.NDArray[Any], green: npt.NDArray[Any], blue: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Return the grey of a coloured picture, by the weights of Rec. 709."""
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _check_size(path: Path, width: int, height: int) -> None:
    if not 0 < width * height <= MAX_PIXELS:
        raise ValueError(f"{path}: has {width} x {height} pixels; at most 16384 x 8192 are taken, "
                         "so make it smaller")
