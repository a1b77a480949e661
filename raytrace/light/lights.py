"""Lights on the device: environment, key light, panels.

The environment is seen as an image, reflected as blurred copies, gathered as harmonics, and
drawn from as a table: rows by their brightness, then a column in its row. Panels are rectangles:
centre, half of either side and radiance, 12 float32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.products import along
from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.color import LUMINANCE
from vfx.raytrace.light.environment import averaged, blurred_levels, pixel_solid_angles
from vfx.raytrace.light.harmonics import harmonic_table, project_environment
from vfx.raytrace.settings import AreaLight

#: Largest table that directions are drawn from, rows and columns.
TABLE_SIZE = (128, 256)
#: Largest image that is gathered and blurred, rows and columns.
COARSE_SIZE = (1024, 2048)


@dataclass(frozen=True)
class Sky:
    """An environment on its device, ready for the kernels."""

    image: Any            # (h, w, 3) float32
    blurred: Any          # levels of environment.py, flat
    harmonic: Any         # table of harmonics.py
    row_sum: Any          # (rows + 1,) float32, from 0 to 1
    column_sum: Any       # (rows, columns + 1) float32, from 0 to 1 each


#: The sky that was prepared last, by its device and by what is in its image.
_kept: dict[tuple[str, str, tuple[int, ...], bytes], Sky] = {}


def sky_on_device(device: Device, environment: Array) -> Sky:
    """Prepare an environment (h, w, 3) for lighting; frames of one shot share it.

    To blur and gather takes as long as the rays of a small picture.
    """
    image = np.ascontiguousarray(environment, np.float32)
    key = device.name, device.description, image.shape, hashlib.blake2b(image.data).digest()
    if key not in _kept:
        _kept.clear()
        _kept[key] = _prepared(device, image)
    return _kept[key]


def _prepared(device: Device, environment: Array) -> Sky:
    # All but what is seen sharp is taken from a copy that is fine enough for it.
    coarse = averaged(environment, *COARSE_SIZE)
    row_sum, column_sum = drawing_table(coarse)
    image, harmonic, rows, columns = (
        device.from_host(np.ascontiguousarray(array, np.float32)) for array in
        (environment, harmonic_table(project_environment(coarse)), row_sum, column_sum))
    return Sky(image, blurred_levels(device, coarse), harmonic, rows, columns)


def drawing_table(environment: Array) -> tuple[Array, Array]:
    """Return the running sums (r + 1,) of rows and (r, c + 1) of the columns of each row.

    A cell counts for itself and its neighbours, since the image is read between pixels; a tenth
    of all draws is spread evenly, so that no direction is left out.
    """
    image = along(averaged(environment, *TABLE_SIZE).astype(float), LUMINANCE)
    rows, columns = image.shape
    tall = np.pad(image, ((1, 1), (0, 0)), "edge")
    image = np.maximum(np.maximum(tall[:-2], tall[2:]), image)
    image = np.maximum(np.maximum(np.roll(image, 1, 1), np.roll(image, -1, 1)), image)
    solid_angle = pixel_solid_angles(rows, columns)[:, None]
    power = image * solid_angle
    total = power.sum()
    even = np.broadcast_to(solid_angle / (4.0 * np.pi), power.shape)
    share = 0.9 * power / total + 0.1 * even if total > 0.0 else even.copy()
    row = share.sum(axis=1)
    row_sum = np.concatenate([[0.0], np.cumsum(row)])
    column_sum = np.concatenate(
        [np.zeros((rows, 1)), np.cumsum(share / row[:, None], axis=1)], axis=1)
    return row_sum / row_sum[-1], column_sum / column_sum[:, -1:]


def panel_rows(lights: Sequence[AreaLight], origin: Array) -> Array:
    """Return (panels, 12) float32: centre relative to ``origin``, half sides, radiance.

    Raises ValueError where a panel faces nowhere.
    """
    rows = []
    for number, light in enumerate(lights):
        toward = np.array(light.target, float) - np.array(light.position, float)
        length = np.linalg.norm(toward)
        if length == 0.0:
            raise ValueError(f"area light {number + 1} has its target at its own position, so it "
                             "faces nowhere; move one of them")
        toward /= length
        up = np.array([0.0, 1.0, 0.0]) if abs(toward[1]) < 0.99 else np.array([0.0, 0.0, 1.0])
        right = np.cross(toward, up)
        right /= np.linalg.norm(right)
        width, height = light.size
        # The cross product of the sides points to where the panel shines.
        rows.append(np.concatenate([
            np.array(light.position) - origin, 0.5 * width * right,
            0.5 * height * np.cross(toward, right), light.color]))
    return np.array(rows, np.float32).reshape(-1, 12)
