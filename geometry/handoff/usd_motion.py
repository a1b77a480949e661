"""Transforms over time from USD files: what cameras and animated bodies share, and the bodies'.

Time codes are frames. What a rigid thing can follow are places and turns: scales may be there, as
groups that change units have them, but must stay as they are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vfx.geometry.handoff.bodies import PLACE
from vfx.geometry.handoff.types import Array
from vfx.geometry.handoff.usd_files import damage_is_refused, open_usd

#: The largest cosine between two axes of a camera or body that is not yet called sheared: matrices
#: that are right at their time samples are a little sheared in between.
MOST_SHEAR = 0.02
#: How much the scale of a body may change on its way, relative: what matrices lose in between.
MOST_SCALING = 0.02
_AGAIN = "write the animation again"


@dataclass(frozen=True)
class RigidMotion:
    """Where a thing is at n frames; y is up."""

    place: Array        # (n, 3) [m]: of its own origin
    rotation: Array     # (n, 3, 3): world from its own axes
    last: float         # the last frame that has a time sample


def read_motion(file: Path, wanted: str, frames: Array) -> RigidMotion:
    """Return how a prim of a file moves: the one at a path, or the only one that does.

    Raises FileNotFoundError, ModuleNotFoundError, or ValueError with the name of the file.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: there is no such file")
    try:
        stage = open_usd(file)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{file}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    from pxr import Tf, Usd, UsdGeom

    with damage_is_refused(file):
        prim = _moving(stage, file, wanted)
        source = f"{file}: {prim.GetPath()}"
        meter, z_up = units(stage, file)
        times = [time for attribute in transforms(prim, source, _AGAIN)
                 for time in attribute.GetTimeSamples()]
        if not times:
            raise ValueError(f"{source}: stands still; {_AGAIN}, with time samples of its "
                             "transform, or remove it from the shot")
        found = UsdGeom.Xformable(prim)
        try:
            matrix = np.array([found.ComputeLocalToWorldTransform(Usd.TimeCode(float(frame)))
                               for frame in frames])
        except Tf.ErrorException as error:
            raise ValueError(f"{source}: its transform cannot be worked out ({said(error)}); "
                             f"{_AGAIN}") from None
    axes = unit_axes(matrix, frames, source, "body", _AGAIN)
    _check_scale(matrix, frames, source)
    place = _checked(matrix[:, 3, :3] * meter, frames, source)
    if z_up:
        axes, place = upright(axes), upright(place)
    # The nearest rotation: matrices between two samples are a little sheared.
    left, _, right = np.linalg.svd(np.swapaxes(axes, 1, 2))
    return RigidMotion(place, left @ right, float(max(times)))


def _moving(stage: Any, file: Path, wanted: str) -> Any:
    """Return the prim at a path, or the only one whose own transform has time samples."""
    from pxr import Usd, UsdGeom

    prims = [prim for prim in stage.Traverse(Usd.TraverseInstanceProxies(
        Usd.PrimDefaultPredicate)) if UsdGeom.Xformable(prim)]
    if wanted:
        paths = [str(prim.GetPath()) for prim in prims]
        if wanted not in paths:
            shown = ", ".join(paths[:20]) + (", …" if len(paths) > 20 else "")
            raise ValueError(f"{file}: has nothing with a transform at {wanted!r}; it has "
                             f"{shown or 'none'}")
        return prims[paths.index(wanted)]
    moving = [prim for prim in prims if UsdGeom.Xformable(prim).TransformMightBeTimeVarying()]
    if len(moving) != 1:
        names = ", ".join(str(prim.GetPath()) for prim in moving[:20])
        raise ValueError(f"{file}: has {len(moving)} prims that move ({names}); say which with "
                         "animation_prim" if moving else
                         f"{file}: has nothing that moves; {_AGAIN}, with time samples of a "
                         "transform")
    return moving[0]


def _check_scale(matrix: Array, frames: Array, source: str) -> None:
    scale = np.linalg.norm(matrix[:, :3, :3], axis=2)
    change = np.abs(scale / scale[0] - 1.0).max(axis=1)
    bad = int(change.argmax())
    if change[bad] > MOST_SCALING:
        raise ValueError(f"{source}: its scale goes from {scale[0].round(6).tolist()} at frame "
                         f"{float(frames[0]):g} to {scale[bad].round(6).tolist()} at frame "
                         f"{float(frames[bad]):g}, but a rigid body keeps its size; {_AGAIN} "
                         "without that")


def _checked(place: Array, frames: Array, source: str) -> Array:
    """Return places, which are numbers within what a shot may say."""
    good = (np.abs(place) <= PLACE["at_most"]).all(axis=1)
    if not good.all():
        bad = int(np.argmin(good))
        raise ValueError(f"{source}: found the place {place[bad].tolist()} m at frame "
                         f"{float(frames[bad]):g}, but it must be within {PLACE['at_most']:g} m; "
                         f"see its units, and {_AGAIN}")
    return place


def units(stage: Any, file: Path) -> tuple[float, bool]:
    """Return the length of a stage's unit [m], and whether z is up."""
    from pxr import UsdGeom

    meter = float(UsdGeom.GetStageMetersPerUnit(stage))
    if not 0.0 < meter < math.inf:
        raise ValueError(f"{file}: metersPerUnit: found {meter:g}, but it must be a finite number "
                         "above 0, such as 0.01 for centimetres; set it, and write the file again")
    up = str(UsdGeom.GetStageUpAxis(stage))
    if up not in ("Y", "Z"):
        raise ValueError(f"{file}: upAxis: found {up!r}, but it must be Y or Z; set it, and write "
                         "the file again")
    return meter, up == "Z"


def transforms(prim: Any, source: str, again: str) -> list[Any]:
    """Return the attributes that put a prim, and all that it stands on, where it is.

    ``again`` says how to mend one that there is not.
    """
    from pxr import UsdGeom

    attributes = []
    while prim and not prim.IsPseudoRoot():
        order = UsdGeom.Xformable(prim).GetXformOpOrderAttr().Get() if UsdGeom.Xformable(
            prim) else None
        for name in order or ():
            if name == "!resetXformStack!":
                continue
            attribute = prim.GetAttribute(name.removeprefix("!invert!"))
            if not attribute or not name.removeprefix("!invert!").startswith("xformOp:"):
                raise ValueError(f"{source}: xformOpOrder of {prim.GetPath()}: found {name!r}, but "
                                 f"there is no such transform; {again}")
            attributes.append(attribute)
        prim = prim.GetParent()
    return attributes


def said(error: Exception) -> str:
    """Return what USD says, a sentence between quotes behind the place in its source."""
    return (str(error).strip().splitlines() or [""])[-1].rpartition(" : ")[2].strip(" '")


def unit_axes(matrix: Array, times: Array, source: str, what: str, again: str) -> Array:
    """Return the unit axes (n, 3, 3) of transforms (n, 4, 4) of a camera or body, as ``what`` says.

    It may be scaled, as all is in a group that changes units, but not mirrored, sheared or
    flat.
    """
    axes: Array
    with np.errstate(all="ignore"):
        # Their own size first: neither very large nor very small numbers run over.
        largest = np.abs(matrix[:, :3, :3]).max(axis=(1, 2))[:, None, None]
        axes = matrix[:, :3, :3] / largest
        axes = axes / np.linalg.norm(axes, axis=2, keepdims=True)
        volume = np.linalg.det(axes)
        shear = np.abs(axes @ axes.swapaxes(1, 2) - np.eye(3)).max(axis=(1, 2))
        is_affine = (matrix[:, :3, 3] == 0.0).all(axis=1) & (matrix[:, 3, 3] == 1.0)
    # What is not a number fails every comparison.
    good = (shear <= MOST_SHEAR) & (volume > 0.0) & is_affine
    if good.all():
        return axes
    bad = int(np.argmin(good))
    if not np.isfinite(matrix[bad]).all():
        fault = "has values that are not finite"
    elif not np.isfinite(shear[bad]):
        fault = "is flat (an axis has no length beside the others)"
    elif not is_affine[bad]:
        fault = "is a projection"
    elif shear[bad] <= MOST_SHEAR:
        fault = "mirrors the picture (its scale is negative)"
        if what != "camera":
            fault = "mirrors it (its scale is negative)"
    else:
        fault = f"is sheared (its axes are {shear[bad]:.3g} from perpendicular)"
    raise ValueError(f"{source}: its transform at frame {float(times[bad]):g} {fault}: found "
                     f"{matrix[bad].tolist()}; a {what} may be moved, turned and scaled alike, so "
                     f"freeze or bake its transform, and {again}")


def upright(vector: Array) -> Array:
    """Return (..., 3) vectors with z up in axes with y up."""
    return np.stack([vector[..., 0], vector[..., 2], -vector[..., 1]], axis=-1)
