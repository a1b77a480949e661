"""USD files as triangles, through usd-core (an optional package: ``pip install '.[usd]'``).

All meshes of the default purpose that are visible, at the first time that has a sample, as
polygons: subdivision is not applied. A file that composes others is refused
(:mod:`vfx.geometry.handoff.usd_files`); so is one that scatters copies of a mesh over points,
which would be read as one.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from vfx.device.memory import USD_ADDRESSES, require_addresses
from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.handoff.types import Array
from vfx.geometry.handoff.usd_files import damage_is_refused, open_usd
from vfx.geometry.mesh.files import RawMesh, join_meshes, placed
from vfx.geometry.mesh.polygons import polygon_corners

#: Characters of what the library says that are told.
_LONGEST_WARNING = 100


def read_usd(path: Path) -> RawMesh:
    """Return the meshes of a USD file as one, with its unit and upright axis."""
    require_addresses(USD_ADDRESSES, "USD")
    try:
        from pxr import UsdUtils
    except ImportError:
        raise MeshError("needs the package usd-core to be read, which is not installed: "
                        "pip install 'vfx-fracture[usd]', or save the mesh as OBJ") from None
    # While it lives, what the library would print is collected.
    delegate = UsdUtils.CoalescingDiagnosticDelegate()
    try:
        with damage_is_refused():
            raw = _read(path)
    except ValueError as error:
        raise MeshError(str(error)) from None
    if warnings := delegate.TakeUncoalescedDiagnostics():
        text = warnings[0].commentary.partition("\n")[0].rstrip(":. ")[:_LONGEST_WARNING]
        more = f", and {len(warnings) - 1} more such" if len(warnings) > 1 else ""
        raw = dataclasses.replace(raw, notes=(*raw.notes, f"USD warns: {text}{more}."))
    return raw


def _read(path: Path) -> RawMesh:
    from pxr import Usd, UsdGeom

    stage = open_usd(path)
    time = Usd.TimeCode.EarliestTime()
    cache = UsdGeom.XformCache(time)
    parts, has_subdivision = [], False
    for prim in stage.Traverse(Usd.TraverseInstanceProxies(Usd.PrimDefaultPredicate)):
        if prim.IsA(UsdGeom.PointInstancer):
            raise MeshError(f"has a point instancer, {prim.GetPath()}, whose copies are not made "
                            "here; make them meshes of their own, or leave it out")
        if not prim.IsA(UsdGeom.Mesh):
            continue
        mesh = UsdGeom.Mesh(prim)
        if mesh.ComputePurpose() not in ("default", "render") or (
                mesh.ComputeVisibility(time) == "invisible"):
            continue
        part = _part(mesh, time)
        if part is not None:
            matrix = np.array(cache.GetLocalToWorldTransform(prim)).T
            parts.append(placed(part, matrix))
            has_subdivision |= mesh.GetSubdivisionSchemeAttr().Get() not in ("none", None)
    if not parts:
        raise MeshError("holds no mesh that is visible; show it, or export one")
    whole = join_meshes(parts)
    notes = ("The file asks for a subdivision surface; its polygons are taken as they are.",)
    return RawMesh(
        whole.vertex, whole.triangle, whole.normal, whole.uv,
        unit=float(UsdGeom.GetStageMetersPerUnit(stage)),
        up=str(UsdGeom.GetStageUpAxis(stage)).lower(), notes=notes if has_subdivision else ())


def _part(mesh: Any, time: Any) -> RawMesh | None:
    """Return one mesh in its own axes, its polygons as triangles, or None if it is empty."""
    from pxr import UsdGeom

    vertex = np.array(mesh.GetPointsAttr().Get(time) or [], dtype=np.float64).reshape(-1, 3)
    count = np.array(mesh.GetFaceVertexCountsAttr().Get(time) or [], dtype=np.int64)
    index = np.array(mesh.GetFaceVertexIndicesAttr().Get(time) or [], dtype=np.int64)
    if count.sum() != len(index) or (count < 0).any():
        raise MeshError(f"has a mesh {mesh.GetPath()} whose faces do not add up; export it again")
    if not (count > 2).any():
        return None
    if index.min() < 0 or index.max() >= len(vertex):
        raise MeshError(f"has a mesh {mesh.GetPath()} with a face that names point "
                        f"{int(index.max())} of {len(vertex)}; export it again")
    corner = polygon_corners(np.where(np.isfinite(vertex), vertex, 0.0), index, count)
    if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
        corner = corner[:, ::-1]
    face_of_corner = np.repeat(np.arange(len(count)), count)
    variables = UsdGeom.PrimvarsAPI(mesh)

    def at_corners(values: Any, interpolation: str, width: int) -> Array | None:
        array = np.array(values if values is not None else [], dtype=np.float32)
        if array.size == 0 or array.shape[-1] != width:
            return None
        which = {"faceVarying": corner, "vertex": index[corner], "varying": index[corner],
                 "uniform": face_of_corner[corner]}.get(interpolation)
        if which is None or which.max() >= len(array):
            return None
        picked: Array = array[which]
        return picked

    uv = None
    for name in ("st", "uv", "UVMap", "map1"):
        variable = variables.GetPrimvar(name)
        if variable and variable.HasValue():
            uv = at_corners(variable.ComputeFlattened(time), variable.GetInterpolation(), 2)
            break
    normals = variables.GetPrimvar("normals")
    if normals and normals.HasValue():
        normal = at_corners(normals.ComputeFlattened(time), normals.GetInterpolation(), 3)
    else:
        normal = at_corners(mesh.GetNormalsAttr().Get(time), mesh.GetNormalsInterpolation(), 3)
    return RawMesh(vertex=vertex, triangle=index[corner], normal=normal, uv=uv)
