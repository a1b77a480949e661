"""The camera through time: at rest, along keys, or as a USD file has it.

A path gives the :class:`Camera` of a frame, also between whole ones: everything else sees cameras
at rest. Many times at once are rows of numbers, so that every time at which a shot is rendered can
be looked at before the first frame is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from vfx.geometry.handoff.schema import rule_of
from vfx.geometry.handoff.types import Array
from vfx.raytrace.camera.motion import shutter_times
from vfx.raytrace.film.sampling import motion_steps
from vfx.raytrace.settings import Camera, CameraKey, Film

#: What of a camera may move, and its columns in a row.
COLUMNS = {"position": slice(0, 3), "target": slice(3, 6), "up": slice(6, 9),
           "focal_length": slice(9, 10), "film_width": slice(10, 11), "f_stop": slice(11, 12),
           "focus_distance": slice(12, 13)}
N_COLUMNS = 13
#: The least that is no longer 0: closer, the kernels' floats run over.
LEAST = {"f_stop": 0.01, "focus_distance": 1e-6}
#: The least way from a camera to its target [m].
NEAREST_TARGET = 1e-6
#: The least sine of the angle between the line of sight and up.
STEEPEST = 1e-6
#: Times that are looked at together.
CHUNK_TIMES = 1 << 16


@dataclass(frozen=True)
class CameraPath:
    """Where a camera is at which frame."""

    camera: Camera                        # what does not move
    rows: Callable[[Array], Array]        # times (n,) [frames] -> (n, 13), as COLUMNS
    moves: tuple[float, float] | None     # first and last frame of its own, None at rest
    source: str                           # who is to blame, in errors
    names: Mapping[str, str] = field(default_factory=dict)    # what the source calls the columns
    fix: str = "change it"

    def __call__(self, frame: float) -> Camera:
        """Return the camera at a frame."""
        row = [float(value) for value in self.rows(np.array([frame], float))[0]]
        values: dict[str, Any] = {
            name: tuple(row[columns]) if columns.stop - columns.start == 3 else row[columns.start]
            for name, columns in COLUMNS.items()}
        return dataclasses.replace(self.camera, **values)


def camera_path(camera: Camera, keys: Sequence[CameraKey] = (), folder: Path | None = None,
                ) -> CameraPath:
    """Return the path of a camera; ``folder`` is where its USD file is named from.

    Raises FileNotFoundError, ValueError and ModuleNotFoundError where a USD file cannot be used.
    """
    if camera.usd:
        from vfx.raytrace.camera.usd import usd_camera_path

        return usd_camera_path(camera, (folder or Path()) / camera.usd)
    return keyed_path(camera, keys) if keys else resting_path(camera)


def resting_path(camera: Camera) -> CameraPath:
    """Return the path of a camera that stays where it is."""
    row = camera_row(camera)
    return CameraPath(camera, lambda times: np.broadcast_to(row, (len(times), N_COLUMNS)), None,
                      "camera")


def camera_row(camera: Camera) -> Array:
    """Return what may move of a camera, as a row (13,)."""
    return np.concatenate([np.atleast_1d(getattr(camera, name)) for name in COLUMNS]).astype(float)


def keyed_path(camera: Camera, keys: Sequence[CameraKey]) -> CameraPath:
    """Return the path through ``keys``: at rest before the first and after the last.

    A smooth way is a cubic without overshoot between its keys (Fritsch and Carlson 1980).
    """
    frame = np.array([key.frame for key in keys], float)
    row = camera_row(camera)
    table = np.empty((len(keys), N_COLUMNS))
    for i, key in enumerate(keys):
        for name in ("position", "target", "focal_length", "focus_distance"):
            if value := getattr(key, name):
                row[COLUMNS[name]] = value
        table[i] = row
    if len(frame) > 1 and camera.interpolation == "smooth":
        smooth = PchipInterpolator(frame, table, axis=0)

        def rows(times: Array) -> Array:
            values: Array = smooth(np.clip(times, frame[0], frame[-1]))
            return values
    else:
        def rows(times: Array) -> Array:
            return np.stack([np.interp(times, frame, column) for column in table.T], axis=1)

    return CameraPath(camera, rows, (float(frame[0]), float(frame[-1])), "camera_keys",
                      fix="change a key")


def render_times(camera: Camera, film: Film, first: int, last: int) -> Array:
    """Return all times (n,), ascending, at which frames ``first`` to ``last`` take the camera.

    These are the frames, their open shutters, and for motion vectors the frame behind the last.
    """
    open_at = shutter_times(camera, motion_steps(camera, film))
    frame = np.arange(first, last + 2, dtype=float)
    return np.unique(frame[:, None] + np.append(open_at, 0.0))


def check_path(path: CameraPath, times: Array) -> None:
    """Refuse a camera that at any of ``times`` is beyond what [camera] allows, or looks nowhere.

    Raises ValueError that says when, what was found, what is allowed and what to do.
    """
    if path.moves is None:
        times = times[:1]
    for begin in range(0, len(times), CHUNK_TIMES):
        some = times[begin:begin + CHUNK_TIMES]
        rows = path.rows(some)
        for name in COLUMNS:
            _check_range(path, name, some, rows[:, COLUMNS[name]])
        _check_views(path, some, rows)


def _check_range(path: CameraPath, name: str, times: Array, values: Array) -> None:
    """Refuse values (n, k) of a column that its setting would not take."""
    rule = rule_of(next(each for each in dataclasses.fields(Camera) if each.name == name))
    least = LEAST.get(name, 0.0)
    assert rule.at_least is not None and rule.at_most is not None
    # What is not a number fails every comparison.
    good = (values >= rule.at_least) & (values <= rule.at_most)
    if least:
        good &= (values == 0.0) | (values >= least)
    if good.all():
        return
    bad = int(np.argmin(good.all(axis=1)))
    unit = f" {rule.unit}" if rule.unit else ""
    problem = (rule.complaint(tuple(values[bad].tolist()))
               or f"must be 0, or at least {least:g}{unit}")
    found = [float(f"{value:.9g}") for value in values[bad]]
    raise ValueError(f"{path.source}: {path.names.get(name, name)}{_when(path, times[bad])}: found "
                     f"{found[0] if len(found) == 1 else found}{unit}, but it {problem}; "
                     f"{path.fix}")


def _check_views(path: CameraPath, times: Array, rows: Array) -> None:
    """Refuse cameras that look nowhere or along their up direction."""
    up = rows[:, COLUMNS["up"]]
    view = rows[:, COLUMNS["target"]] - rows[:, COLUMNS["position"]]
    far = np.linalg.norm(view, axis=1)
    across = np.linalg.norm(np.cross(view, up), axis=1)
    good = (far >= NEAREST_TARGET) & (across > STEEPEST * far * np.linalg.norm(up, axis=1))
    if not good.all():
        bad = int(np.argmin(good))
        raise ValueError(f"{path.source}:{_when(path, times[bad])} the camera stands at its "
                         f"target (closer than {NEAREST_TARGET:g} m), or looks along its up "
                         f"direction {up[bad].tolist()}; {path.fix}")


def _when(path: CameraPath, time: float) -> str:
    """Return the frame of a camera that moves, as a part of a sentence."""
    return "" if path.moves is None else f" at frame {round(float(time), 4):.12g}"
