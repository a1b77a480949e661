"""A camera from a USD file: what a layout or a match-move department hands over.

USD's focal length and apertures count tenths of the scene's unit; only their ratio and the size
of the lens matter here. The height of the picture follows from the film's resolution.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from vfx.device.memory import USD_ADDRESSES, require_addresses
from vfx.geometry.bodies import Vector
from vfx.raytrace.camera_path import CameraPath
from vfx.raytrace.settings import Camera


def usd_camera_path(camera: Camera, file: Path) -> CameraPath:
    """Return the path of the camera in ``file``; time codes are frames.

    The shutter stays that of ``camera``.
    """
    require_addresses(USD_ADDRESSES, "USD")
    try:
        from pxr import Usd, UsdGeom
    except ImportError:
        raise ModuleNotFoundError("reading a camera from USD needs usd-core; install it with "
                                  "pip install 'vfx-fracture[usd]'") from None
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        stage = Usd.Stage.Open(str(file))
    except Exception as error:
        # What USD says ends in a sentence between quotes, behind the place in its source.
        said = (str(error).strip().splitlines()[-1:] or ["unreadable"])[0]
        reason = said.rpartition(" : ")[2].strip(" '")
        raise ValueError(f"{file}: cannot be read as USD ({reason}); write it again as .usda, "
                         ".usdc or .usdz") from None
    found = _choose(stage, UsdGeom, file, camera.usd_camera)
    if found.GetProjectionAttr().Get() == UsdGeom.Tokens.orthographic:
        raise ValueError(f"{file}: {found.GetPath()} is orthographic; only perspective cameras can "
                         "be used")
    meter = float(UsdGeom.GetStageMetersPerUnit(stage))
    z_up = UsdGeom.GetStageUpAxis(stage) == UsdGeom.Tokens.z

    def at(frame: float, stage: Any = stage) -> Camera:
        # The stage is kept with the path: without it there is no camera.
        time = Usd.TimeCode(frame)
        lens = found.GetCamera(time)
        if lens.horizontalApertureOffset or lens.verticalApertureOffset:
            raise ValueError(f"{file}: {found.GetPath()} has its film back shifted, which is not "
                             "supported; set the aperture offsets to 0")
        matrix = np.array(lens.transform)
        axes, eye = matrix[:3, :3], matrix[3, :3] * meter
        axes = axes / np.linalg.norm(axes, axis=1, keepdims=True)
        if z_up:
            axes, eye = _upright(axes), _upright(eye)
        focus = float(lens.focusDistance) * meter
        # The target only has to lie ahead; where there is a focus it is the sharp point.
        reach = focus if focus > 0.0 else 1.0
        tenth = 100.0 * meter       # of the scene's unit, in mm
        return dataclasses.replace(
            camera, position=_vector(eye), target=_vector(eye - reach * axes[2]),
            up=_vector(axes[1]),
            focal_length=float(lens.focalLength) * tenth,
            film_width=float(lens.horizontalAperture) * tenth,
            f_stop=float(lens.fStop), focus_distance=focus)

    return at


def _vector(values: Any) -> Vector:
    return float(values[0]), float(values[1]), float(values[2])


def _choose(stage: Any, geom: Any, file: Path, wanted: str) -> Any:
    """Return the camera at a path, or the only one of the stage."""
    cameras = [geom.Camera(prim) for prim in stage.Traverse() if prim.IsA(geom.Camera)]
    paths = [str(each.GetPath()) for each in cameras]
    if wanted:
        if wanted not in paths:
            raise ValueError(f"{file}: has no camera {wanted!r}; it has "
                             f"{', '.join(paths) or 'none'}")
        return cameras[paths.index(wanted)]
    if len(cameras) != 1:
        raise ValueError(f"{file}: has {len(cameras)} cameras ({', '.join(paths) or 'none'}); say "
                         "which with camera.usd_camera" if cameras else
                         f"{file}: has no camera")
    return cameras[0]


def _upright(vector: Any) -> Any:
    """Return (..., 3) vectors with z up in axes with y up."""
    return np.stack([vector[..., 0], vector[..., 2], -vector[..., 1]], axis=-1)
