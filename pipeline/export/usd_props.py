"""What stands around the pieces in a USD stage: balls, colliders, floor and camera."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.pipeline.export.pieces import PieceReader
from vfx.pipeline.export.usd_stage import FLOOR_FINISH, UsdStage
from vfx.pipeline.shot.colliders import collider_props

_FLOOR_REACH = 20.0              # half the floor's width, in sizes of the scene


def write_balls(target: UsdStage, reader: PieceReader) -> None:
    """Write the balls where they are in every frame."""
    from pxr import Gf, UsdGeom

    frames = [reader.posed(frame) for frame in reader.frames]
    for number in range(len(frames[0].projectile_radius)):
        target.define_scope("balls")
        ball = UsdGeom.Sphere.Define(
            target.stage, target.root.AppendPath(f"balls/ball_{number}"))
        radius = float(frames[0].projectile_radius[number])
        ball.CreateRadiusAttr(radius)
        ball.CreateExtentAttr([Gf.Vec3f(-radius), Gf.Vec3f(radius)])
        translate = ball.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
        for frame in frames:
            translate.Set(Gf.Vec3d(*map(float, frame.projectile_position[number])),
                          frame.frame)


def write_colliders(target: UsdStage, reader: PieceReader) -> None:
    """Write the spheres and boxes that are in the picture."""
    from pxr import Gf, Usd, UsdGeom, UsdShade

    for prop in collider_props(reader.work.shot):
        target.define_scope("colliders")
        path = target.root.AppendPath(f"colliders/{prop.name}")
        if prop.radius > 0.0:
            shape = UsdGeom.Sphere.Define(target.stage, path)
            shape.CreateRadiusAttr(prop.radius)
            shape.CreateExtentAttr([Gf.Vec3f(-prop.radius), Gf.Vec3f(prop.radius)])
        else:
            shape = UsdGeom.Cube.Define(target.stage, path)
            shape.CreateSizeAttr(1.0)
            shape.CreateExtentAttr([Gf.Vec3f(-0.5), Gf.Vec3f(0.5)])
        translate = shape.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
        moves = len(prop.key) > 1
        for frame in reader.frames if moves else reader.frames[:1]:
            place = prop.place(reader.posed(frame).time)
            translate.Set(Gf.Vec3d(*map(float, place)),
                          frame if moves else Usd.TimeCode.Default())
        if prop.rotation is not None:
            x, y, z, w = map(float, Rotation.from_matrix(prop.rotation).as_quat())
            shape.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(w, x, y, z))
            shape.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*prop.size))
        finish = prop.name.replace("_", " ")
        target.define_material(finish, prop.finish)
        UsdShade.MaterialBindingAPI.Apply(shape.GetPrim()).Bind(target.material(finish))


def write_floor(target: UsdStage, reader: PieceReader) -> None:
    """Write the floor as a large square, if it is in the picture."""
    from pxr import Gf, UsdGeom, UsdShade

    shot = reader.work.shot
    if not (shot.floor.enabled and shot.floor_look.visible):
        return
    rest = reader.solid.position
    reach = _FLOOR_REACH * float(np.ptp(rest, axis=0).max())
    middle, height = rest.mean(axis=0), shot.floor.height
    corners = [Gf.Vec3f(float(middle[0] + x * reach), height, float(middle[2] + z * reach))
               for x, z in ((-1, -1), (-1, 1), (1, 1), (1, -1))]
    floor = UsdGeom.Mesh.Define(target.stage, target.root.AppendChild("floor"))
    floor.CreatePointsAttr(corners)
    floor.CreateFaceVertexCountsAttr([4])
    floor.CreateFaceVertexIndicesAttr([0, 1, 2, 3])
    floor.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
    floor.CreateExtentAttr([corners[0], corners[2]])
    UsdShade.MaterialBindingAPI.Apply(floor.GetPrim()).Bind(target.material(FLOOR_FINISH))


def write_camera(target: UsdStage, reader: PieceReader) -> None:
    """Write the camera of the shot."""
    from pxr import Gf, Usd, UsdGeom

    from vfx.raytrace.camera.camera import camera_view, world_to_camera

    shot, path = reader.work.shot, reader.work.inputs.camera()
    camera = UsdGeom.Camera.Define(target.stage, target.root.AppendChild("camera"))
    width, height = shot.film.resolution
    transform = camera.AddTransformOp()
    focal = camera.CreateFocalLengthAttr()
    cameras = {frame: path(frame) for frame in reader.frames}
    moves = len(set(cameras.values())) > 1
    for frame, seen in cameras.items() if moves else list(cameras.items())[:1]:
        at = frame if moves else Usd.TimeCode.Default()
        matrix = np.linalg.inv(world_to_camera(camera_view(seen, shot.film)))
        transform.Set(Gf.Matrix4d(*map(float, matrix.ravel())), at)
        # USD measures lenses in tenths of a scene unit, here of a metre.
        focal.Set(seen.focal_length / 100.0, at)
    film = cameras[reader.frames[0]].film_width
    camera.CreateHorizontalApertureAttr(film / 100.0)
    camera.CreateVerticalApertureAttr(film * height / width / 100.0)
    camera.CreateClippingRangeAttr(Gf.Vec2f(0.001, 1000.0))
