"""The stage that ``vfx export --to usd`` writes into: its paths, units, times and materials."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from vfx.pipeline.export.pieces import PieceReader, fracture_name
from vfx.raytrace.settings import Finish
from vfx.raytrace.surface.materials import material_look

#: What the floor's material is called, with a sign that no material's name has.
FLOOR_FINISH = "floor look"


class UsdStage:
    """A new stage with the materials of a shot."""

    def __init__(self, path: Path, reader: PieceReader) -> None:
        from pxr import Sdf, Usd, UsdGeom

        self._shot = shot = reader.work.shot
        self.stage = Usd.Stage.CreateNew(str(path))
        UsdGeom.SetStageUpAxis(self.stage, UsdGeom.Tokens.y)
        UsdGeom.SetStageMetersPerUnit(self.stage, 1.0)
        self.stage.SetTimeCodesPerSecond(shot.fps)
        self.stage.SetFramesPerSecond(shot.fps)
        self.stage.SetStartTimeCode(reader.frames[0])
        self.stage.SetEndTimeCode(reader.frames[-1])
        self.root = Sdf.Path("/" + _identifier(shot.name))
        root = UsdGeom.Xform.Define(self.stage, self.root)
        self.stage.SetDefaultPrim(root.GetPrim())
        root.GetPrim().SetCustomDataByKey("vfx:shot", shot.name)
        if shot.clock.time_keys:
            # It is not the same in all frames: say at what time of the world each one is.
            time = root.GetPrim().CreateAttribute("vfx:time", Sdf.ValueTypeNames.Double)
            for frame in reader.frames:
                time.Set(shot.time_of(frame), frame)
        else:
            root.GetPrim().SetCustomDataByKey("vfx:second_per_frame", shot.frame_time)
        self._names: dict[str, str] = {}
        self._write_materials()

    def save(self) -> None:
        """Write the file."""
        self.stage.GetRootLayer().Save()

    def define_scope(self, name: str) -> None:
        """Define a folder under the shot's prim."""
        from pxr import UsdGeom

        UsdGeom.Scope.Define(self.stage, self.root.AppendChild(name))

    def prim_path(self, folder: str, name: str) -> Any:
        """Return a path of its own for a name, which may hold signs that USD's may not."""
        wanted = _identifier(name)
        chosen, number = wanted, 1
        while self._names.setdefault(f"{folder}/{chosen}", name) != name:
            number += 1
            chosen = f"{wanted}_{number}"
        return self.root.AppendChild(folder).AppendChild(chosen)

    def material(self, name: str) -> Any:
        """Return a material that is defined."""
        from pxr import UsdShade

        return UsdShade.Material.Get(self.stage, self.prim_path("materials", name))

    def define_material(self, name: str, finish: Finish) -> None:
        """Define the UsdPreviewSurface that is nearest to a finish."""
        from pxr import Gf, Sdf, UsdShade

        path = self.prim_path("materials", name)
        material = UsdShade.Material.Define(self.stage, path)
        shader = UsdShade.Shader.Define(self.stage, path.AppendChild("surface"))
        shader.CreateIdAttr("UsdPreviewSurface")
        names = Sdf.ValueTypeNames
        color, opacity, roughness = finish.albedo, 1.0, finish.roughness
        if finish.kind == "glass":
            color, opacity, roughness = finish.tint, 0.0, 0.0
        elif finish.kind == "phong":
            roughness = math.sqrt(2.0 / (finish.shininess + 2.0))
        shader.CreateInput("diffuseColor", names.Color3f).Set(Gf.Vec3f(*map(float, color)))
        shader.CreateInput("roughness", names.Float).Set(roughness)
        shader.CreateInput("opacity", names.Float).Set(opacity)
        shader.CreateInput("ior", names.Float).Set(finish.ior)
        if finish.kind == "ggx":
            shader.CreateInput("useSpecularWorkflow", names.Int).Set(1)
            shader.CreateInput("specularColor", names.Color3f).Set(
                Gf.Vec3f(*map(float, finish.specular)))
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")

    def _write_materials(self) -> None:
        self.define_scope("materials")
        for name, look in self._shot.looks.items():
            finishes = material_look(look)
            self.define_material(name, finishes.surface)
            self.define_material(fracture_name(name, self._shot.looks), finishes.fracture)
        floor = self._shot.floor_look
        self.define_material(FLOOR_FINISH, Finish(
            albedo=floor.albedo, specular=(floor.specular,) * 3, shininess=floor.shininess))


def _identifier(name: str) -> str:
    """Return a name as a prim may have it: letters, digits and _, not beginning with a digit."""
    from pxr import Tf

    return str(Tf.MakeValidIdentifier(name))
