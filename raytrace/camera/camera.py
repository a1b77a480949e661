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
from vfx.geometry.handoff.products import along
from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.color import COLOR_SPACES
from vfx.raytrace.film.film import TILE, Window, data_window
from vfx.raytrace.scene import Rays
from vfx.raytrace.settings import Camera, Film

#: Near and far plane of worldToNDC [m]; they scale its depth only and clip nothing.
NEAR, FAR = 0.01, 1000.0
#: Frames a second that a time code can count.
FASTEST_TIME_CODE = 30
#: Reach of the filters where the film gives none [pixels].
FILTER_RADIUS = {"blackman-harris": 1.1, "gaussian": 1.5, "box": 0.5}


@dataclass(frozen=True)
class View:
    """Where the camera is and what it sees."""

    eye: Array            # (3,) float64 [m]
    right: Array          # (3,) unit
    up: Array             # (3,) unit
    forward: Array        # (3,) unit
    half_width: float     # of the picture, at distance 1
    half_height: float
    lens_radius: float = 0.0    # [m]
    focus: float = 1.0    # distance of what is sharp, along the axis [m]

    def project(self, point: Array, resolution: tuple[int, int]) -> Array:
        """Return the place (..., 2) in the picture of world points (..., 3) [pixels].

        x runs to the right and y down, from the top left corner; it is infinite or NaN where a
        point is not ahead.
        """
        offset = point - self.eye
        with np.errstate(divide="ignore", invalid="ignore"):
            depth = along(offset, self.forward)
            depth = np.where(depth > 0.0, depth, np.nan)
            x = along(offset, self.right) / (depth * self.half_width)
            y = along(offset, self.up) / (depth * self.half_height)
            return np.stack([0.5 * (1.0 + x) * resolution[0], 0.5 * (1.0 - y) * resolution[1]],
                            axis=-1)


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
    radius = 0.5e-3 * camera.focal_length / camera.f_stop if camera.f_stop > 0.0 else 0.0
    return View(eye, right, np.cross(right, forward), forward, half_width,
                half_width * height / width, radius, camera.focus_distance or float(distance))


class CameraRays:
    """Makes the rays of a view, tile by tile."""

    def __init__(self, device: Device, view: View, film: Film, *, origin: Array,
                 index_mask: int, seed: int = 0) -> None:
        self.device = device
        self.window: Window = data_window(film)
        window = self.window
        width, height = film.resolution
        self._camera = device.struct(
            "raytrace/camera/camera.cu", "Camera", width=width, height=height,
            window_x=window.x, window_y=window.y, window_width=window.width,
            window_height=window.height, eye=view.eye - origin,
            half_right=view.half_width * view.right, half_up=view.half_height * view.up,
            forward=view.forward, right=view.right, up=view.up, lens_radius=view.lens_radius,
            focus=view.focus, index_mask=index_mask, seed=seed,
            filter=device.from_host(
                filter_table(film.filter, film.filter_radius).astype(np.float32)))

    def samples(self, tiles: Array, first_sample: int, n_samples: int) -> Rays:
        """Return ``n_samples`` rays through every pixel of ``tiles`` (t,) int32."""
        return self._rays(tiles, first_sample, n_samples)

    def centers(self, tiles: Array) -> Rays:
        """Return one ray through the centre of every pixel of ``tiles`` (t,) int32."""
        return self._rays(tiles, 0, 0)

    def _rays(self, tiles: Array, first_sample: int, n_samples: int) -> Rays:
        xp = self.device.xp
        n = len(tiles) * max(n_samples, 1) * TILE**2
        rays = Rays(pixel=xp.empty(n, xp.int32), sample=xp.empty(n, xp.int32),
                    index=xp.empty(n, xp.int32), origin=xp.empty((n, 3), xp.float32),
                    direction=xp.empty((n, 3), xp.float32))
        self.device.module("raytrace/camera/camera.cu").camera_rays(
            n, n_samples, first_sample, self._camera, self.device.from_host(tiles),
            rays.pixel, rays.sample, rays.index, rays.origin, rays.direction)
        return rays


def filter_table(name: str = "blackman-harris", radius: float = 0.0) -> Array:
    """Return the inverse cumulative distribution (1025,) of a pixel filter [pixels].

    Samples drawn through it need no weights (filter importance sampling). A Gaussian has a
    standard deviation of a third of its radius, and ends there.
    """
    place = np.linspace(0.0, 1.0, 16385)
    if name == "blackman-harris":
        harmonic = np.cos(2.0 * np.pi * np.outer(np.arange(4), place))
        window = np.array([0.35875, -0.48829, 0.14128, -0.01168]) @ harmonic
    elif name == "gaussian":
        window = np.exp(-0.5 * (3.0 * (2.0 * place - 1.0))**2) - np.exp(-4.5)
    else:
        window = np.ones_like(place)
    total = np.concatenate([[0.0], np.cumsum(0.5 * (window[1:] + window[:-1]))])
    share = np.linspace(0.0, 1.0, 1025)
    reach = radius or FILTER_RADIUS[name]
    return 2.0 * reach * (np.interp(share, total / total[-1], place) - 0.5)


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

    ``timeCode`` counts frames from 0 at midnight, at the nearest whole rate. NDC is that of the
    display window, whatever part of it the data window holds.
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
        **data_window(film).attributes(film.resolution),
        "chromaticities": space.chromaticities,
        "colorInteropID": space.interop_id,
    }


def _time_code(frame: int, rate: int) -> OpenEXR.TimeCode:
    """Return ``frame`` as hours, minutes, seconds and frames.

    SMPTE 12M counts to 30 frames a second: faster rates count pairs of them, or pairs of pairs,
    and the flag of the field says which of a pair it is.
    """
    seconds, rest = divmod(frame, rate)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    in_pair = 0
    while rate > FASTEST_TIME_CODE:
        rest, in_pair = divmod(rest, 2)
        rate = -(-rate // 2)
    flags = (0, 0, in_pair, 0, 0, 0)      # the third is the field's
    binary_groups = (0,) * 8
    return OpenEXR.TimeCode(hour % 24, minute, second, rest, *flags, *binary_groups)
