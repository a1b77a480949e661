"""Environments: equirectangular HDR images, built in or given by the shot.

The image is a sphere of directions, seen from inside: +y is up and the top row, the middle
column looks along -z, and columns to the right of it turn toward +x. Values are linear
Rec. 709 radiance. Built-in environments live in the package ``vfx.envmaps``.
"""

from __future__ import annotations

import importlib.resources
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.picture import read_exr_picture
from vfx.raytrace.light.radiance_hdr import read_radiance_hdr

#: The largest radiance taken, a thousand times that of the sun in cd/m^2: a film can sum what
#: surfaces make of it.
BRIGHTEST = 1e12
#: Blurred copies for reflections: level k has 16 * 2^k columns and a lobe cos^(2 * 4^k).
BLUR_LEVELS = 5


def load_environment(name_or_path: str, shot_folder: Path) -> Array:
    """Return an environment (h, w, 3) float32.

    ``name_or_path`` is a built-in name (a word without dot or slash) or an EXR or Radiance
    HDR file relative to ``shot_folder``. Raises FileNotFoundError where there is none and
    ValueError where the file is not a usable image.
    """
    builtin = builtin_environments()
    if not any(mark in name_or_path for mark in "./\\"):
        if name_or_path not in builtin:
            raise FileNotFoundError(
                f"there is no built-in environment {name_or_path!r}; use one of "
                f"{', '.join(builtin)}, or the path of an .exr or .hdr file")
        resource = importlib.resources.files("vfx.envmaps") / f"{name_or_path}.exr"
        with importlib.resources.as_file(resource) as path:
            return _checked(path, _read(path))
    path = Path(shot_folder) / name_or_path
    if not path.is_file():
        raise FileNotFoundError(
            f"{path}: the environment file does not exist; give a file relative to the shot "
            f"file, or one of the built-in {', '.join(builtin)}")
    return _checked(path, _read(path))


def builtin_environments() -> list[str]:
    """Return the names of the environments that come with the package."""
    folder = importlib.resources.files("vfx.envmaps")
    return sorted(entry.name.removesuffix(".exr") for entry in folder.iterdir()
                  if entry.name.endswith(".exr"))


def _read(path: Path) -> Array:
    """Read the three colours of an EXR or HDR file as (h, w, 3) float32."""
    suffix = path.suffix.lower()
    if suffix == ".hdr":
        return read_radiance_hdr(path)
    if suffix != ".exr":
        raise ValueError(f"{path}: an environment must be an .exr or .hdr file, not "
                         f"{suffix or 'without an ending'}; convert it to OpenEXR")
    channels = read_exr_picture(path, ("R", "G", "B"))
    image = np.empty((*channels[0].shape, 3), np.float32)
    for k in range(3):
        image[..., k] = channels[k]
    return image


def _checked(path: Path, image: Array) -> Array:
    """Return ``image`` if it can light a scene."""
    height, width, _ = image.shape
    if height < 2 or width < 2:
        raise ValueError(f"{path}: the environment has {width} x {height} pixels; at least "
                         "2 x 2 are needed for an image of all directions")
    # Not a number fails either comparison; only where one fails, look for the place.
    is_light = image.min() >= 0.0 and image.max() <= BRIGHTEST
    for fault, is_fault in (("a value that is not a number", np.isnan),
                            ("an infinite value", np.isinf),
                            ("a negative value", lambda values: values < 0.0),
                            (f"a radiance above {BRIGHTEST:g}", lambda values: values > BRIGHTEST)):
        if not is_light and (where := is_fault(image)).any():
            row, column = np.argwhere(where.any(axis=-1))[0]
            found = [float(f"{value:.6g}") for value in image[row, column]]
            raise ValueError(f"{path}: the environment has {fault} in {int(where.any(-1).sum())} "
                             f"pixel(s), the first at column {column}, row {row}: found {found}; "
                             f"light must be finite, from 0 to {BRIGHTEST:g}, so repair it, or "
                             "scale it down and raise light.exposure")
    return image


def pixel_directions(height: int, width: int, row: int) -> Array:
    """Return the unit directions (width, 3) of the pixel centres of a row."""
    polar = np.pi * (row + 0.5) / height
    azimuth = 2.0 * np.pi * ((np.arange(width) + 0.5) / width - 0.5)
    return np.stack([np.sin(polar) * np.sin(azimuth),
                     np.full(width, np.cos(polar)),
                     -np.sin(polar) * np.cos(azimuth)], axis=-1)


def pixel_solid_angles(height: int, width: int) -> Array:
    """Return the solid angle (height,) [sr] of one pixel of each row; all sum to 4 pi."""
    edge = np.cos(np.pi * np.arange(height + 1) / height)
    result: Array = 2.0 * np.pi / width * (edge[:-1] - edge[1:])
    return result


def blurred_levels(device: Device, environment: Array) -> Any:
    """Return the environment blurred for reflections, all levels in one flat device array.

    Level k is (8 * 2^k, 16 * 2^k, 3) float32, the coarsest first.
    """
    xp = device.xp
    levels = []
    for level in range(BLUR_LEVELS):
        height, width = 8 << level, 16 << level
        source = device.from_host(averaged(environment, height, width))
        blurred = xp.empty((height, width, 3), xp.float32)
        device.module("raytrace/light/environment.cu").blur_level(
            height * width, width, height, 2.0 * 4.0**level, source.shape[1], source.shape[0],
            source, blurred)
        levels.append(blurred.reshape(-1))
    return xp.concatenate(levels)


def blur_level_of(shininess: float) -> float:
    """Return the level, 0 to BLUR_LEVELS, of a Blinn-Phong exponent.

    A lobe cos^s of half vectors is about cos^(s/4) of reflected directions. BLUR_LEVELS
    itself is the sharp image.
    """
    return min(max(0.5 * math.log2(0.5 * 0.25 * shininess), 0.0), float(BLUR_LEVELS))


def averaged(image: Array, height: int, width: int) -> Array:
    """Return ``image`` averaged down to (height, width, 3), or as it is where it is smaller."""
    if len(image) > height:
        edge = np.arange(height + 1) * len(image) // height
        image = np.stack([image[first:last].mean(axis=0)
                          for first, last in itertools.pairwise(edge)])
    if image.shape[1] > width:
        edge = np.arange(width + 1) * image.shape[1] // width
        image = np.add.reduceat(image, edge[:-1], axis=1) / np.diff(edge)[:, None]
    return np.ascontiguousarray(image, np.float32)
