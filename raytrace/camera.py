"""The perspective camera: its axes, its matrices, and what a frame's header says of it.

Camera space is right-handed: +x to the right of the picture, +y up, the camera looks along
-z. NDC runs from -1 at the left and the bottom edge of the display window to +1 at the right
and the top, after division by w. Matrices are in OpenEXR's row-vector layout: a point is
``[x, y, z, 1] @ matrix``, translations stand in the last row.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import OpenEXR

from vfx.device import Device
from vfx.geometry.handoff import Array
from vfx.raytrace.color import COLOR_SPACES
from vfx.raytrace.scene import Rays
from vfx.raytrace.settings import Camera, Film

#: Near and far plane of worldToNDC [m]; they scale its depth only and clip nothing.
NEAR, FAR = 0.01, 1000.0
#: Edge of a tile [pixels], as in camera.cu.
TILE = 8
#: Full width of the pixel filter [pixels].
FILTER_WIDTH = 2.2


@dataclass(frozen=True)
class View:
    """Where the camera is and what it sees."""

    eye: Array            # (3,) float64 [m]
    right: Array          # (3,) unit
    up: Array             # (3,) unit
    forward: Array        # (3,) unit
    half_width: float     # of the picture, at distance 1
    half_height: float


def camera_view(camera: Camera, film: Film) -> View:
    """Return the axes of a camera; raises ValueError where they are not defined."""
    eye = np.array(camera.position, float)
    forward = np.array(camera.target, float) - eye
    distance = np.linalg.norm(forward)
    right = np.cross(forward, np.array(camera.up, float))
    if distance == 0.0:
        raise ValueError("the camera's position and target are the same point, so it looks "
                         "nowhere; move one of them")
    if np.linalg.norm(right) <= 1e-6 * distance * np.linalg.norm(camera.up):
        raise ValueError(f"the camera looks along its up direction {tuple(camera.up)}; choose "
                         "another up")
    forward /= distance
    right /= np.linalg.norm(right)
    width, height = film.resolution
    half_width = 0.5 * camera.film_width / camera.focal_length
    return View(eye, right, np.cross(right, forward), forward,
                half_width, half_width * height / width)


class CameraRays:
    """Makes the rays of a view, tile by tile."""

    def __init__(self, device: Device, view: View, film: Film, *, origin: Array,
                 index_mask: int) -> None:
        self.device = device
        self.resolution = film.resolution
        self.index_mask = index_mask
        axes = np.stack([view.eye - origin, view.half_width * view.right,
                         view.half_height * view.up, view.forward])
        self._view = device.from_host(axes.astype(np.float32))
        self._filter = device.from_host(filter_table().astype(np.float32))

    def samples(self, tiles: Array, first_sample: int, n_samples: int) -> Rays:
        """Return ``n_samples`` rays through every pixel of ``tiles`` (t,) int32."""
        return self._rays(tiles, first_sample, n_samples)

    def centers(self, tiles: Array) -> Rays:
        """Return one ray through the centre of every pixel of ``tiles`` (t,) int32."""
        return self._rays(tiles, 0, 0)

    def _rays(self, tiles: Array, first_sample: int, n_samples: int) -> Rays:
        xp = self.device.xp
        n = len(tiles) * max(n_samples, 1) * TILE**2
        rays = Rays(xp.empty(n, xp.int32), xp.empty(n, xp.int32), xp.empty((n, 3), xp.float32),
                    xp.empty((n, 3), xp.float32))
        width, height = self.resolution
        self.device.module("raytrace/camera.cu").camera_rays(
            n, width, height, n_samples, first_sample, self.index_mask,
            self.device.from_host(tiles), self._view, self._filter,
            rays.pixel, rays.sample, rays.origin, rays.direction)
        return rays


def filter_table() -> Array:
    """Return the inverse cumulative Blackman-Harris window (129,) [pixels].

    Samples drawn through it need no weights (filter importance sampling).
    """
    place = np.linspace(0.0, 1.0, 4097)
    harmonic = np.cos(2.0 * np.pi * np.outer(np.arange(4), place))
    window = np.array([0.35875, -0.48829, 0.14128, -0.01168]) @ harmonic
    total = np.concatenate([[0.0], np.cumsum(0.5 * (window[1:] + window[:-1]))])
    share = np.linspace(0.0, 1.0, 129)
    return FILTER_WIDTH * (np.interp(share, total / total[-1], place) - 0.5)


def world_to_camera(view: View) -> Array:
    """Return the row-vector matrix (4, 4) from the world to camera space."""
    matrix = np.eye(4)
    matrix[:3, :3] = np.stack([view.right, view.up, -view.forward], axis=1)
    matrix[3, :3] = -view.eye @ matrix[:3, :3]
    return matrix


def world_to_ndc(view: View) -> Array:
    """Return the row-vector matrix (4, 4) from the world to NDC, before division by w."""
    projection = np.zeros((4, 4))
    projection[0, 0] = 1.0 / view.half_width
    projection[1, 1] = 1.0 / view.half_height
    projection[2, 2] = -(FAR + NEAR) / (FAR - NEAR)
    projection[3, 2] = -2.0 * FAR * NEAR / (FAR - NEAR)
    projection[2, 3] = -1.0
    matrix: Array = world_to_camera(view) @ projection
    return matrix


def frame_header(camera: Camera, film: Film, fps: Fraction | float, frame: int) -> dict[str, Any]:
    """Return the attributes of a frame's EXR header.

    ``timeCode`` counts frames from 0 at midnight, at the nearest whole rate.
    """
    view = camera_view(camera, film)
    rate = Fraction(fps).limit_denominator(1001)
    space = COLOR_SPACES[film.color_space]
    return {
        "worldToCamera": world_to_camera(view).astype(np.float32),
        "worldToNDC": world_to_ndc(view).astype(np.float32),
        "framesPerSecond": rate,
        "timeCode": _time_code(frame, max(1, round(rate))),
        "pixelAspectRatio": 1.0,
        "chromaticities": space.chromaticities,
        "colorInteropID": space.interop_id,
    }


def _time_code(frame: int, rate: int) -> OpenEXR.TimeCode:
    """Return ``frame`` as hours, minutes, seconds and frames."""
    seconds, rest = divmod(frame, rate)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    # SMPTE 12M has two digits for the frame: faster rates count pairs of them.
    while rate > 60:
        rest, rate = rest // 2, rate // 2
    flags = (0,) * 6
    binary_groups = (0,) * 8
    return OpenEXR.TimeCode(hour % 24, minute, second, rest, *flags, *binary_groups)
