"""Make the built-in environments: ``python -m vfx.envmaps.make_envmaps FOLDER``.

Every pixel is computed here from a few lines of formulas; no photograph is involved. The
layout of the image is that of :mod:`vfx.raytrace.light.environment`. Linear Rec. 709, half, ZIP.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import OpenEXR

from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.exr import write_exr
from vfx.raytrace.light.environment import pixel_directions

WIDTH, HEIGHT = 512, 256
#: Toward the sun of clear_sky; a shot that wants its shadows points the key light there.
SUN = np.array([-0.5, 0.62, 0.6]) / np.linalg.norm([-0.5, 0.62, 0.6])


def smooth(low: float, high: float, value: Array) -> Array:
    """Return 0 below ``low``, 1 above ``high`` and a smooth step between."""
    part = np.clip((value - low) / (high - low), 0.0, 1.0)
    result: Array = part * part * (3.0 - 2.0 * part)
    return result


def directions() -> Array:
    """Return the unit direction (h, w, 3) of every pixel."""
    return np.stack([pixel_directions(HEIGHT, WIDTH, row) for row in range(HEIGHT)])


def clear_sky(direction: Array) -> Array:
    """Return a late-morning sky (h, w, 3).

    Blue that pales and brightens toward the horizon as the air thickens, light scattered
    forward around the sun (Henyey-Greenstein lobes), a soft sun whose direct light is meant
    to come from the key light, and pale, dry ground.
    """
    up = direction[..., 1:2]
    height = np.clip(up, 0.0, 1.0)
    air = 1.0 - np.exp(-0.22 / (height + 0.055))
    zenith, horizon = np.array([0.10, 0.235, 0.55]), np.array([0.72, 0.80, 0.90])
    sky = zenith + (horizon - zenith) * air**1.6

    cosine = direction @ SUN

    def forward(g: float) -> Array:
        lobe: Array = ((1.0 - g * g) / (1.0 + g * g - 2.0 * g * cosine)**1.5)[..., None]
        return lobe

    glow = 0.020 * forward(0.70) * np.array([1.0, 0.93, 0.82])
    halo = 0.0016 * forward(0.95) * np.array([1.0, 0.95, 0.86])
    angle = np.rad2deg(np.arccos(np.clip(cosine, -1.0, 1.0)))[..., None]
    disk = 60.0 * (1.0 - smooth(0.6, 2.2, angle)) * np.array([1.0, 0.94, 0.84])
    ground = np.array([0.235, 0.215, 0.19]) * (1.0 + 0.35 * np.clip(-up, 0.0, 1.0))
    above = sky + glow + halo + disk
    image: Array = ground + (above - ground) * smooth(-0.035, 0.012, up)
    return image


def soft_box(direction: Array, toward: tuple[float, float, float], width: float, height: float,
             edge: float = 0.06) -> Array:
    """Return the light (h, w, 1), 0..1, of a rectangular soft box at distance 1.

    ``toward`` is its centre; it faces the origin, its sides stay level; ``width`` and
    ``height`` are halves, ``edge`` is where it falls off.
    """
    axis = np.array(toward) / np.linalg.norm(toward)
    side = np.cross([0.0, 1.0, 0.0], axis)
    side = side / np.linalg.norm(side) if np.linalg.norm(side) > 1e-6 else np.array([1.0, 0, 0])
    rise = np.cross(axis, side)
    along = direction @ axis
    safe = np.where(along > 1e-3, along, 1e-3)
    x, y = np.abs(direction @ side) / safe, np.abs(direction @ rise) / safe
    inside = (1.0 - smooth(width - edge, width + edge, x))
    inside = inside * (1.0 - smooth(height - edge, height + edge, y)) * (along > 1e-3)
    # The lamp behind the cloth makes the middle a little brighter.
    lamp = 0.75 + 0.25 * np.exp(-(x / width)**2 - (y / height)**2)
    light: Array = (inside * lamp)[..., None]
    return light


def studio(direction: Array) -> Array:
    """Return a dark studio (h, w, 3).

    A charcoal room with a softly lit backdrop all around the horizon, a large warm box at the
    left front, a tall cool box at the right, a box overhead and two rim lights behind. The
    band around the horizon holds no lamp: any camera sees a quiet background.
    """
    up = direction[..., 1:2]
    behind = np.clip(0.5 - 0.62 * direction[..., 2:3] + 0.10 * direction[..., 0:1], 0.0, 1.0)
    lit = (0.035 + 0.21 * behind**2) * np.exp(-((up - 0.02) / 0.24)**2)
    image: Array = (0.012 + lit) * np.array([0.86, 0.97, 1.14])
    image = image * (1.0 - 0.80 * smooth(0.02, 0.6, -up))
    boxes = (
        ((-0.80, 1.00, 0.75), 0.50, 0.34, 2.4, (1.00, 0.92, 0.82)),
        ((1.00, 0.85, 0.30), 0.18, 0.42, 2.6, (0.74, 0.87, 1.00)),
        ((0.00, 1.00, -0.12), 0.50, 0.28, 0.9, (1.00, 0.99, 0.97)),
        ((0.70, 0.75, -0.85), 0.26, 0.20, 3.6, (0.80, 0.91, 1.00)),
        ((-0.75, 0.80, -0.90), 0.16, 0.30, 3.2, (1.00, 0.93, 0.84)),
    )
    for toward, width, height, strength, tint in boxes:
        image = image + strength * soft_box(direction, toward, width, height) * np.array(tint)
    return 1.2 * image


def main(folder: Path) -> None:
    """Write every environment into ``folder``."""
    direction = directions()
    for name, make in (("clear_sky", clear_sky), ("studio", studio)):
        image = np.clip(make(direction), 0.0, None)
        header = {"compression": OpenEXR.ZIP_COMPRESSION, "envmap": OpenEXR.ENVMAP_LATLONG,
                  "comments": "made by make_envmaps.py"}
        write_exr(folder / f"{name}.exr",
                  {channel: image[..., i] for i, channel in enumerate("RGB")}, header)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
