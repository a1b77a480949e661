"""Reads the pictures that say where a body is weak: grey PNG or OpenEXR, from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vfx.geometry.handoff.products import along

Picture = npt.NDArray[np.float32]

#: What red, green and blue weigh in a grey, by Rec. 709.
_WEIGHTS = np.array([0.2126, 0.7152, 0.0722])


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
    # Not a number fails either comparison.
    if not (picture.min() >= 0.0 and picture.max() <= 1.0):
        bad = ~((picture >= 0.0) & (picture <= 1.0))
        row, column = np.argwhere(bad)[0]
        raise ValueError(f"{path}: has values that are not between 0 and 1, the first in column "
                         f"{column}, row {row}: found {picture[row, column]:g}; black is the "
                         "weakest, white leaves the strain limit as it is")
    return picture


def _read_png(path: Path) -> Picture:
    from vfx.raytrace.film.picture import read_picture

    stored = read_picture(path, ("PNG",))
    if stored.ndim == 3 and stored.shape[2] == 4 and stored[..., 3].min() < 255:
        raise ValueError(f"{path}: is transparent in places; flatten it on white")
    white = np.iinfo(stored.dtype).max
    if stored.ndim == 2:
        return _grey(stored.shape, lambda rows: stored[rows] / white)
    return _grey(stored.shape[:2], lambda rows: along(stored[rows, :, :3] / white, _WEIGHTS))


def _read_exr(path: Path) -> Picture:
    from vfx.raytrace.film.picture import read_exr_picture

    channels = read_exr_picture(path, ("Y",), ("R", "G", "B"))
    weights = _WEIGHTS if len(channels) == 3 else np.ones(1)
    with np.errstate(invalid="ignore"):        # what is no grey is refused when it is whole
        return _grey(channels[0].shape, lambda rows: sum(
            weight * channel[rows].astype(np.float64)
            for weight, channel in zip(weights, channels, strict=True)))


def _grey(shape: tuple[int, ...], of_rows: Callable[[slice], Any]) -> Picture:
    """Return a picture that is made strip by strip: a large one is not in memory twice."""
    from vfx.raytrace.film.picture import strips

    picture = np.empty(shape, np.float32)
    for rows in strips(shape[0], shape[1]):
        picture[rows] = of_rows(rows)
    return picture
