"""The camera through time: at rest, along keys, or as a USD file has it.

A path is a function from a frame, also between whole ones, to the :class:`Camera` of that time:
everything else sees cameras at rest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.interpolate import PchipInterpolator

from vfx.geometry.handoff import Array
from vfx.raytrace.settings import Camera, CameraKey

CameraPath = Callable[[float], Camera]


def camera_path(camera: Camera, keys: Sequence[CameraKey] = (), folder: Path | None = None,
                ) -> CameraPath:
    """Return the path of a camera; ``folder`` is where its USD file is named from.

    Raises FileNotFoundError, ValueError and ModuleNotFoundError where a USD file cannot be used.
    """
    if camera.usd:
        from vfx.raytrace.camera_usd import usd_camera_path

        return usd_camera_path(camera, (folder or Path()) / camera.usd)
    if not keys:
        return lambda frame: camera
    return keyed_path(camera, keys)


def keyed_path(camera: Camera, keys: Sequence[CameraKey]) -> CameraPath:
    """Return the path through ``keys``: at rest before the first and after the last.

    A smooth way is a cubic without overshoot between its keys (Fritsch and Carlson 1980).
    """
    frame = np.array([key.frame for key in keys], float)
    row = [*camera.position, *camera.target, camera.focal_length, camera.focus_distance]
    rows = []
    for key in keys:
        if key.position:
            row[0:3] = key.position
        if key.target:
            row[3:6] = key.target
        row[6] = key.focal_length or row[6]
        row[7] = key.focus_distance or row[7]
        rows.append(list(row))
    table = np.array(rows)

    def values_at(at: float) -> Array:
        at = min(max(at, frame[0]), frame[-1])
        if len(frame) > 1 and camera.interpolation == "smooth":
            values: Array = PchipInterpolator(frame, table, axis=0)(at)
            return values
        return np.array([np.interp(at, frame, column) for column in table.T])

    def at(frame: float) -> Camera:
        values = [float(value) for value in values_at(frame)]
        return dataclasses.replace(
            camera, position=(values[0], values[1], values[2]),
            target=(values[3], values[4], values[5]), focal_length=values[6],
            focus_distance=values[7])

    return at
