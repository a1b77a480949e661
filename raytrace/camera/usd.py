"""A camera from a USD file: what a layout or a match-move department hands over.

USD's focal length and apertures count tenths of the scene's unit; only their ratio and the size
of the lens matter here. The height of the picture follows from the film's resolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.geometry.handoff.usd_files import damage_is_refused, open_usd
from vfx.geometry.handoff.usd_motion import said, transforms, unit_axes, units, upright
from vfx.raytrace.camera.path import COLUMNS, N_COLUMNS, CameraPath
from vfx.raytrace.settings import Camera

#: What USD calls the columns of a path.
NAMES = {"position": "transform", "target": "focusDistance", "up": "transform",
         "focal_length": "focalLength", "film_width": "horizontalAperture",
         "f_stop": "fStop", "focus_distance": "focusDistance"}
_AGAIN = "write the camera again"


def usd_camera_path(camera: Camera, file: Path) -> CameraPath:
    """Return the path of the camera in ``file``; time codes are frames.

    The shutter stays that of ``camera``.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        stage = open_usd(file)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{file}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    from pxr import Tf, Usd, Vt

    with damage_is_refused(file):
        found = _choose(stage, file, camera.usd_camera)
        source = f"{file}: {found.GetPath()}"
        meter, z_up = units(stage, file)
        places = transforms(found.GetPrim(), source, _AGAIN)
        lens = _Lens(found, source)
        samples = [time for attribute in (*places, *found.GetPrim().GetAttributes())
                   for time in attribute.GetTimeSamples()]
        moves = (min(samples), max(samples)) if samples else None
        is_carried = any(attribute.GetNumTimeSamples() for attribute in places)

    def rows(times: Array, stage: Any = stage) -> Array:
        # The stage is kept with the path: without it there is no camera.
        which = times if moves is not None else times[:1]
        codes = [Usd.TimeCode(float(time)) for time in which]
        lens.check_kind(codes)
        try:
            matrix = np.array(Vt.Matrix4dArray([found.ComputeLocalToWorldTransform(code)
                                                for code in (codes if is_carried else codes[:1])]))
        except Tf.ErrorException as error:
            raise ValueError(f"{source}: its transform cannot be worked out ({said(error)}); "
                             f"{_AGAIN}") from None
        matrix = np.broadcast_to(matrix, (len(codes), 4, 4))
        axes = unit_axes(matrix, which, source, "camera", _AGAIN)
        with np.errstate(over="ignore", invalid="ignore"):     # check_path finds what is infinite
            eye = matrix[:, 3, :3] * meter
            if z_up:
                axes, eye = upright(axes), upright(eye)
            focus = lens.numbers("focusDistance", codes) * meter
            # The target only has to lie ahead; where there is a focus it is the sharp point.
            reach = np.where((focus > 0.0) & (focus < np.inf), focus, 1.0)
            tenth = 100.0 * meter       # of the scene's unit, in mm
            values = {
                "position": eye, "target": eye - reach[:, None] * axes[:, 2], "up": axes[:, 1],
                "focal_length": tenth * lens.numbers("focalLength", codes),
                "film_width": tenth * lens.numbers("horizontalAperture", codes),
                "f_stop": lens.numbers("fStop", codes), "focus_distance": focus}
        table = np.empty((len(which), N_COLUMNS))
        for name, columns in COLUMNS.items():
            table[:, columns] = values[name].reshape(len(which), -1)
        return np.broadcast_to(table, (len(times), N_COLUMNS)) if moves is None else table

    return CameraPath(camera, rows, moves, source, NAMES, _AGAIN)


class _Lens:
    """The attributes of a camera; only what moves is read more than once."""

    def __init__(self, found: Any, source: str) -> None:
        self._prim, self._source = found.GetPrim(), source

    def numbers(self, name: str, codes: Sequence[Any]) -> Array:
        """Return an attribute at many times, (n,) float64."""
        return np.array([self._value(name, code, float) for code in self._codes(name, codes)]
                        ) * np.ones(len(codes))

    def check_kind(self, codes: Sequence[Any]) -> None:
        """Refuse a lens that is of another kind than those rendered."""
        for code in self._codes("projection", codes):
            if (found := self._value("projection", code, str)) != "perspective":
                raise ValueError(f"{self._source}: projection at frame {code.GetValue():g}: found "
                                 f"{found}, but only perspective cameras can be used; {_AGAIN}")
        for name in ("horizontalApertureOffset", "verticalApertureOffset"):
            offset = self.numbers(name, codes)
            if not (offset == 0.0).all():
                bad = int(np.argmax(offset != 0.0))
                raise ValueError(f"{self._source}: {name} at frame {codes[bad].GetValue():g}: "
                                 f"found {offset[bad]:g}, but a film back that is shifted is not "
                                 f"supported; set it to 0, and {_AGAIN}")

    def _codes(self, name: str, codes: Sequence[Any]) -> Sequence[Any]:
        """Return the times at which an attribute has to be read."""
        return codes if self._prim.GetAttribute(name).GetNumTimeSamples() else codes[:1]

    def _value(self, name: str, code: Any, kind: type) -> Any:
        attribute = self._prim.GetAttribute(name)
        value = attribute.Get(code)
        if value is None:       # no value is authored at that time: the schema has one
            value = self._prim.GetPrimDefinition().GetAttributeFallbackValue(name)
        if not isinstance(value, kind):
            raise ValueError(f"{self._source}: {name}: found {value!r}, but it must be "
                             f"{'a number' if kind is float else 'a word'}; {_AGAIN}")
        return value


def _choose(stage: Any, file: Path, wanted: str) -> Any:
    """Return the camera at a path, or the only one of the stage."""
    from pxr import Usd, UsdGeom

    cameras = [UsdGeom.Camera(prim) for prim in
               stage.Traverse(Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate))
               if prim.IsA(UsdGeom.Camera)]
    paths = [str(each.GetPath()) for each in cameras]
    if wanted:
        if wanted not in paths:
            raise ValueError(f"{file}: has no camera {wanted!r}; it has "
                             f"{', '.join(paths) or 'none'}")
        return cameras[paths.index(wanted)]
    if len(cameras) != 1:
        raise ValueError(f"{file}: has {len(cameras)} cameras ({', '.join(paths) or 'none'}); say "
                         "which with camera.usd_camera" if cameras else
                         f"{file}: has no camera; export one into it")
    return cameras[0]
