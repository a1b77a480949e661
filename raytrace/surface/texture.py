"""Images on floor and pieces: read as linear Rec. 709 colour."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.picture import read_exr_picture, read_picture, strips

#: Textures that the kernels make themselves.
PROCEDURAL = ("", "wood", "concrete")
#: The largest value of a colour: what is a little above 1 is the ringing of a filter.
BRIGHTEST = 10.0


def load_texture(name_or_path: str, shot_folder: Path) -> Array | None:
    """Return the image (h, w, 3) float32 that a floor's texture names, None where it names none.

    Raises ValueError where there is no usable image.
    """
    if name_or_path in PROCEDURAL:
        return None
    return load_image(name_or_path, shot_folder, "wood, concrete, or ")


def load_image(name: str, shot_folder: Path, others: str = "") -> Array:
    """Return an image (h, w, 3) float32; ``others`` says what else could have been named.

    PNG and JPEG are sRGB and become linear; EXR is linear already. Transparency is not looked at.
    Raises ValueError where there
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
    # Not a number fails either comparison.
    if not (image.min() >= 0.0 and image.max() <= BRIGHTEST):
        bad = ~((image >= 0.0) & (image <= BRIGHTEST)).all(axis=-1)
        row, column = np.argwhere(bad)[0]
        raise ValueError(f"{path}: found {image[row, column].tolist()} in column {column}, row "
                         f"{row}, the first of {int(bad.sum())} pixel(s) that are no colour; one "
                         f"must be finite, from 0 to {BRIGHTEST:g}, so repair it")
    return image


def _read_picture(path: Path) -> Array:
    stored = read_picture(path, ("PNG", "JPEG"))
    levels = 1 << 8 * stored.dtype.itemsize
    coded = np.arange(levels, dtype=np.float32) / np.float32(levels - 1)
    linear = np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)
    image = np.empty((*stored.shape[:2], 3), np.float32)
    for rows in strips(*stored.shape[:2]):
        level = stored[rows, :, :3] if stored.ndim == 3 else stored[rows, :, None]
        image[rows] = linear.take(level)
    return image


def _read_exr(path: Path) -> Array:
    channels = read_exr_picture(path, ("R", "G", "B"))
    image = np.empty((*channels[0].shape, 3), np.float32)
    for k in range(3):
        image[..., k] = channels[k]
    return image
