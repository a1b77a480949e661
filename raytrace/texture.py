"""Images on floor and pieces: read as linear Rec. 709 colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vfx.geometry.handoff import Array
from vfx.raytrace.exr import exr_size, read_exr

#: Textures that the kernels make themselves.
PROCEDURAL = ("", "wood", "concrete")
#: Pixels of the largest image taken: 16384 x 8192.
MAX_PIXELS = 1 << 27
_LARGEST_VALUE = 100.0       # of a colour: more overflows in light that bounces off it


def load_texture(name_or_path: str, shot_folder: Path) -> Array | None:
    """Return the image (h, w, 3) float32 that a floor's texture names, None where it names none.

    Raises ValueError where there is no usable image.
    """
    if name_or_path in PROCEDURAL:
        return None
    return load_image(name_or_path, shot_folder, "wood, concrete, or ")


def load_image(name: str, shot_folder: Path, others: str = "") -> Array:
    """Return an image (h, w, 3) float32; ``others`` says what else could have been named.

    PNG and JPEG are sRGB and become linear; EXR is linear already. Raises ValueError where there
    is no usable image.
    """
    path = Path(shot_folder) / name
    if "\0" in name or not path.is_file():
        raise ValueError(f"{str(path)!r}: there is no such image; give {others}a PNG, JPEG or EXR "
                         "file relative to the shot file")
    suffix = path.suffix.lower()
    if suffix not in (".png", ".jpg", ".jpeg", ".exr"):
        raise ValueError(f"{path}: a texture must be a .png, .jpg or .exr file, not "
                         f"{suffix or 'one without an ending'}; convert it to PNG")
    image = _read_exr(path) if suffix == ".exr" else _read_picture(path)
    if not np.isfinite(image).all() or image.min() < 0.0 or image.max() > _LARGEST_VALUE:
        raise ValueError(f"{path}: the texture has values that are below 0, above "
                         f"{_LARGEST_VALUE:g} or not finite; a colour must be none of these, so "
                         "repair it")
    return np.ascontiguousarray(image, np.float32)


def _read_picture(path: Path) -> Array:
    from PIL import Image

    try:
        with Image.open(path, formats=("PNG", "JPEG")) as image:
            _check_size(path, image.width, image.height)
            coded = np.asarray(image.convert("RGB"), np.float32) / np.float32(255.0)
    except (ValueError, MemoryError):
        raise
    except Exception as error:  # the library raises many kinds, SyntaxError among them
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path}: cannot be read whole, it is truncated, damaged or no picture "
                         f"({reason}); make or copy it again") from None
    return np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)


def _read_exr(path: Path) -> Array:
    _check_size(path, *exr_size(path))
    channels, _ = read_exr(path)
    if not {"R", "G", "B"} <= channels.keys():
        raise ValueError(f"{path}: the texture has no channels R, G and B (found "
                         f"{', '.join(sorted(channels)) or 'none'}); save it as RGB")
    return np.stack([channels[name].astype(np.float32) for name in "RGB"], axis=-1)


def _check_size(path: Path, width: int, height: int) -> None:
    if not 0 < width * height <= MAX_PIXELS:
        raise ValueError(f"{path}: has {width} x {height} pixels; at most 16384 x 8192 are taken, "
                         "so make it smaller")
