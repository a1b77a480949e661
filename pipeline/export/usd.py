"""``vfx export --to usd``: pieces, debris, balls, colliders, floor and camera as one USD stage.

    /<shot>/pieces/<body>_<id>      a Mesh a piece, moved by translate and orient; or
    /<shot>/pieces                  a PointInstancer whose prototypes are the pieces, if many
    /<shot>/debris                  Points: pieces too small for a mesh, wide from birth on; or
    /<shot>/debris/<material>       Points a material, if there are several
    /<shot>/unbroken/...            the same before they break off, of no size from then on
    /<shot>/materials, /balls, /colliders, /floor, /camera

Points of a mesh are relative to the piece's centre of mass at rest, which so is its pivot.
Times are frame numbers; lengths are metres, y is up. ``primvars:vfx:...`` say what secondary
effects start from.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.device.memory import USD_ADDRESSES, require_addresses
from vfx.geometry.handoff.types import Array
from vfx.pipeline.errors import MissingInput
from vfx.pipeline.export.pieces import Piece, PieceReader, Tracks, fracture_name, piece_meshes
from vfx.pipeline.export.usd_props import write_balls, write_camera, write_colliders, write_floor
from vfx.pipeline.export.usd_stage import UsdStage
from vfx.pipeline.work.cache import publish

INSTANCER_ABOVE = 10_000
_WRITE_SHARE = 0.7
# What comes or goes with a frame does so between these two times before it [frames]: USD
# interpolates, so nothing is seen growing, and a program whose times round meets the frame's side.
_STILL, _FROM = 2.0**-9, 2.0**-10
_NOTHING = 1e-6                  # size of what is gone: not 0, which no program could invert


@dataclass(frozen=True)
class UsdOptions:
    """How pieces are written: debris below a size [m] (None: single elements) are points."""

    debris: float | None = None
    instancer_above: int = INSTANCER_ABOVE


def require_usd() -> Any:
    """Return the USD library, or raise how to get it."""
    try:
        require_addresses(USD_ADDRESSES, "USD")
        import pxr
    except ImportError:
        raise MissingInput("the USD library is not installed; 'pip install usd-core' brings it") \
            from None
    return pxr


def write_usd(path: Path, reader: PieceReader, options: UsdOptions,
              report: Callable[[float], None]) -> list[str]:
    """Publish the stage; return lines that say what is in it."""
    require_usd()
    every = reader.pieces(reader.frames[-1])
    debris = [piece for piece in every if _is_debris(piece, reader, options)]
    pieces = [piece for piece in every if not _is_debris(piece, reader, options)]
    hosts = list(_hosts(reader, every, debris))
    motion = reader.motion([*pieces, *debris, *hosts])
    report(1.0 - _WRITE_SHARE)

    def write(temporary: Path) -> None:
        from pxr import Tf

        try:
            _Writer(temporary, reader, options).write(pieces, debris, hosts, motion, report)
        except Tf.ErrorException as error:
            raise OSError(errno.EIO, " ".join(str(error).split())[:200]) from None

    publish(path, write)
    kind = "instances of a PointInstancer" if len(pieces) > options.instancer_above else "meshes"
    return [f"{len(pieces)} pieces as {kind}, {len(debris)} as points of debris, "
            f"{len(reader.frames)} frames"]


def _is_debris(piece: Piece, reader: PieceReader, options: UsdOptions) -> bool:
    if piece.parent < 0:
        return False
    if options.debris is None:
        return len(piece.particle) == 1
    return piece.size < options.debris


def _hosts(reader: PieceReader, every: Sequence[Piece],
           debris: Sequence[Piece]) -> Iterator[Piece]:
    """Yield what debris is part of until it breaks off, as pieces named after their parents.

    What is born of one parent in one frame was together until then, and moves with the parent up
    to that frame.
    """
    rest = {piece.id: piece.particle for piece in every}
    groups: dict[tuple[int, int], list[Piece]] = {}
    for piece in debris:
        if piece.birth_frame > reader.frames[0]:
            groups.setdefault((piece.parent, piece.birth_frame), []).append(piece)
    label = np.full(reader.solid.n_elements, -1, np.int64)
    for number, members in enumerate(groups.values()):
        label[np.concatenate([piece.particle for piece in members])] = number
    meshes = piece_meshes(reader.faces, label)
    for number, ((parent, birth), members) in enumerate(groups.items()):
        mass = np.array([piece.mass for piece in members])
        center = mass @ np.array([piece.center for piece in members]) / mass.sum()
        yield Piece(
            name=f"{reader.name_of(parent)}_until_{birth}", id=parent,
            body=members[0].body, parent=parent, birth_frame=birth,
            particle=rest[parent], center=center, mass=float(mass.sum()), size=0.0,
            mesh=meshes[number])


class _Writer:
    """Writes one stage."""

    def __init__(self, path: Path, reader: PieceReader, options: UsdOptions) -> None:
        self._reader = reader
        self._options = options
        self._shot = reader.work.shot
        self._target = UsdStage(path, reader)

    def write(self, pieces: Sequence[Piece], debris: Sequence[Piece], hosts: Sequence[Piece],
              motion: Tracks, report: Callable[[float], None]) -> None:
        """Write everything and save."""
        n, m = len(pieces), len(debris)
        if n > self._options.instancer_above:
            self._write_instancer(pieces, motion)
        else:
            self._target.define_scope("pieces")
            for number, piece in enumerate(pieces):
                self._write_piece("pieces", piece, motion, number)
                report(1.0 - _WRITE_SHARE * (1.0 - number / n))
        if debris:
            self._write_debris(debris, motion, n)
        if hosts:
            self._target.define_scope("unbroken")
            for number, host in enumerate(hosts):
                self._write_host(host, motion, n + m + number)
        for write in (write_balls, write_colliders, write_floor, write_camera):
            write(self._target, self._reader)
        self._target.save()
        report(1.0)

    def _define_mesh(self, path: Any, piece: Piece) -> Any:
        """Define the mesh of a piece with its materials, relative to the piece's centre."""
        from pxr import Gf, Sdf, UsdGeom, UsdShade, Vt

        shape = piece.mesh
        mesh = UsdGeom.Mesh.Define(self._target.stage, path)
        local = (shape.point - piece.center).astype(np.float32)
        mesh.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(local))
        mesh.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(shape.count))
        mesh.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(shape.corner))
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.CreateExtentAttr([Gf.Vec3f(*map(float, local.min(axis=0))),
                               Gf.Vec3f(*map(float, local.max(axis=0)))])
        mesh.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(shape.normal)))
        mesh.SetNormalsInterpolation(UsdGeom.Tokens.faceVarying)
        primvars = UsdGeom.PrimvarsAPI(mesh)
        primvars.CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray,
                               UsdGeom.Tokens.faceVarying).Set(
            Vt.Vec2fArray.FromNumpy(np.ascontiguousarray(shape.uv)))
        material = str(self._reader.solid.material_name[piece.body])
        binding = UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim())
        binding.Bind(self._target.material(material))
        # All parts as subsets: some programs take no face of a mesh that has any to be bound
        # by the mesh itself.
        broken = fracture_name(material, self._shot.looks)
        parts = [("exterior", ~shape.is_fracture, material),
                 ("interior", shape.is_fracture & ~shape.is_crack, broken)]
        if shape.is_crack.any():
            parts.append(("cracks", shape.is_crack, broken))
        for name, chosen, finish in parts:
            subset = UsdGeom.Subset.CreateGeomSubset(
                mesh, name, UsdGeom.Tokens.face,
                Vt.IntArray.FromNumpy(np.flatnonzero(chosen).astype(np.int32)),
                UsdShade.Tokens.materialBind, UsdGeom.Tokens.partition)
            UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(
                self._target.material(finish))
        return mesh

    def _write_piece(self, folder: str, piece: Piece, motion: Tracks, number: int) -> None:
        from pxr import Gf, Sdf, UsdGeom

        mesh = self._define_mesh(self._target.prim_path(folder, piece.name), piece)
        mesh.GetPrim().SetDisplayName(piece.name)
        self._animate(mesh, piece, motion, number)
        primvars = UsdGeom.PrimvarsAPI(mesh)
        names = Sdf.ValueTypeNames
        parent = self._reader.name_of(piece.parent) if piece.parent >= 0 else ""
        for name, kind, value in (
                ("name", names.String, piece.name), ("birth_frame", names.Int, piece.birth_frame),
                ("parent", names.String, parent), ("mass", names.Double, piece.mass),
                ("size", names.Double, piece.size)):
            primvars.CreatePrimvar(f"vfx:{name}", kind, UsdGeom.Tokens.constant).Set(value)
        velocity = primvars.CreatePrimvar("vfx:velocity", names.Float3, UsdGeom.Tokens.constant)
        spin = primvars.CreatePrimvar("vfx:angular_velocity", names.Float3,
                                      UsdGeom.Tokens.constant)
        damage = primvars.CreatePrimvar("vfx:damage", names.Float, UsdGeom.Tokens.constant)
        for row, frame in enumerate(self._reader.frames):
            velocity.Set(Gf.Vec3f(*map(float, motion.velocity[row, number])), frame)
            spin.Set(Gf.Vec3f(*map(float, motion.angular_velocity[row, number])), frame)
            damage.Set(float(motion.damage[row, number]), frame)

    def _write_host(self, host: Piece, motion: Tracks, number: int) -> None:
        from pxr import Gf, UsdGeom

        mesh = self._define_mesh(self._target.prim_path("unbroken", host.name), host)
        self._animate(mesh, host, motion, number)
        # Both ways to say that it is gone: Blender takes no visibility that changes.
        scale, visibility = mesh.AddScaleOp(), mesh.CreateVisibilityAttr()
        for time, size, seen in (
                (host.birth_frame - _STILL, 1.0, UsdGeom.Tokens.inherited),
                (host.birth_frame - _FROM, _NOTHING, UsdGeom.Tokens.invisible)):
            scale.Set(Gf.Vec3f(size), time)
            visibility.Set(seen, time)

    def _animate(self, prim: Any, piece: Piece, motion: Tracks, number: int) -> None:
        from pxr import Gf, UsdGeom

        translate = prim.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble)
        orient = prim.AddOrientOp(UsdGeom.XformOp.PrecisionDouble)
        place, turn = world_motion(piece.center, motion, number)
        for row, frame in enumerate(self._reader.frames):
            translate.Set(Gf.Vec3d(*map(float, place[row])), frame)
            x, y, z, w = map(float, turn[row])
            orient.Set(Gf.Quatd(w, x, y, z), frame)

    def _write_instancer(self, pieces: Sequence[Piece], motion: Tracks) -> None:
        from pxr import Gf, UsdGeom, Vt

        path = self._target.root.AppendChild("pieces")
        instancer = UsdGeom.PointInstancer.Define(self._target.stage, path)
        UsdGeom.Scope.Define(self._target.stage, path.AppendChild("prototypes"))
        targets = []
        for piece in pieces:
            target = path.AppendChild("prototypes").AppendChild(
                self._target.prim_path("prototypes", piece.name).name)
            self._define_mesh(target, piece)
            targets.append(target)
        instancer.CreatePrototypesRel().SetTargets(targets)
        instancer.CreateProtoIndicesAttr(Vt.IntArray(list(range(len(pieces)))))
        instancer.CreateIdsAttr(Vt.Int64Array([piece.id for piece in pieces]))
        n = len(pieces)
        self._write_arrays(instancer, pieces, motion, np.arange(n))
        paths = [world_motion(piece.center, motion, number) for number, piece in enumerate(pieces)]
        place = np.array([each[0] for each in paths], np.float32)
        turn = np.array([each[1] for each in paths], np.float64)
        positions = instancer.CreatePositionsAttr()
        # Of half precision, too: Blender knows no others, and would turn nothing.
        orientations, coarse = (instancer.CreateOrientationsfAttr(),
                                instancer.CreateOrientationsAttr())
        velocities = instancer.CreateVelocitiesAttr()
        spins = instancer.CreateAngularVelocitiesAttr()
        for row, frame in enumerate(self._reader.frames):
            positions.Set(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(place[:, row])), frame)
            quaternion = [Gf.Quatf(*map(float, (q[3], q[0], q[1], q[2]))) for q in turn[:, row]]
            orientations.Set(Vt.QuatfArray(quaternion), frame)
            coarse.Set(Vt.QuathArray(list(map(Gf.Quath, quaternion))), frame)
            velocities.Set(_vectors(self._per_second(motion.velocity[row, :n], frame)), frame)
            spins.Set(_vectors(np.degrees(self._per_second(
                motion.angular_velocity[row, :n], frame))),
                      frame)

    def _write_debris(self, debris: Sequence[Piece], motion: Tracks, first: int) -> None:
        """Write debris as points: one prim, or one a material where there are several."""
        groups: dict[str, list[int]] = {}
        for number, piece in enumerate(debris):
            groups.setdefault(str(self._reader.solid.material_name[piece.body]), []).append(number)
        if len(groups) > 1:
            self._target.define_scope("debris")
        for material, members in groups.items():
            path = (self._target.root.AppendChild("debris") if len(groups) == 1
                    else self._target.prim_path("debris", material))
            self._write_points(path, material, [debris[number] for number in members], motion,
                               first + np.array(members))

    def _write_points(self, path: Any, material: str, debris: Sequence[Piece], motion: Tracks,
                      columns: Array) -> None:
        from pxr import UsdGeom, UsdShade, Vt

        points = UsdGeom.Points.Define(self._target.stage, path)
        points.CreateIdsAttr(Vt.Int64Array([piece.id for piece in debris]))
        self._write_arrays(points, debris, motion, columns)
        UsdShade.MaterialBindingAPI.Apply(points.GetPrim()).Bind(
            self._target.material(fracture_name(material, self._shot.looks)))
        center = np.array([piece.center for piece in debris])
        size = np.array([piece.size for piece in debris], np.float32)
        birth = np.array([piece.birth_frame for piece in debris])
        for row, frame in enumerate(self._reader.frames):
            world = np.einsum("kij,kj->ki", motion.rotation[row, columns], center) + (
                motion.translation[row, columns])
            points.GetPointsAttr().Set(_vectors(world), frame)
            points.GetVelocitiesAttr().Set(
                _vectors(self._per_second(motion.velocity[row, columns], frame)), frame)
        first = self._reader.frames[0]
        changes = [(first, birth <= first)]
        for frame in np.unique(birth[birth > first]).tolist():
            changes += [(frame - _STILL, birth < frame), (frame - _FROM, birth <= frame)]
        for time, is_there in changes:
            points.GetWidthsAttr().Set(
                Vt.FloatArray.FromNumpy(np.where(is_there, size, np.float32(0.0))), time)
        points.SetWidthsInterpolation(UsdGeom.Tokens.vertex)

    def _per_second(self, velocity: Array, frame: int) -> Array:
        """Return a velocity of the simulation [1/s] as USD wants it, by the shot's own seconds.

        A shot of 500 steps of 0.12 us a frame passes 0.06 ms of the world's time in 1/24 s of
        the picture's; where its speed changes, that of the frame counts.
        """
        return velocity * self._shot.speed_at(frame)

    def _write_arrays(self, prim: Any, pieces: Sequence[Piece], motion: Tracks,
                      columns: Array) -> None:
        """Write the primvars of pieces that share a prim, one value a piece.

        columns (k,): where the pieces stand in the motion.
        """
        from pxr import Sdf, UsdGeom, Vt

        names = Sdf.ValueTypeNames

        def define(name: str, kind: Any) -> Any:
            return UsdGeom.PrimvarsAPI(prim).CreatePrimvar(
                f"vfx:{name}", kind, UsdGeom.Tokens.varying)

        parents = [self._reader.name_of(piece.parent) if piece.parent >= 0 else ""
                   for piece in pieces]
        for name, kind, value in (
                ("name", names.StringArray, Vt.StringArray([piece.name for piece in pieces])),
                ("birth_frame", names.IntArray, Vt.IntArray(
                    [piece.birth_frame for piece in pieces])),
                ("parent", names.StringArray, Vt.StringArray(parents)),
                # Blender leaves out what is of double precision.
                ("mass", names.FloatArray, Vt.FloatArray([piece.mass for piece in pieces])),
                ("size", names.FloatArray, Vt.FloatArray([piece.size for piece in pieces]))):
            define(name, kind).Set(value)
        velocity = define("velocity", names.Float3Array)
        spin = define("angular_velocity", names.Float3Array)
        damage = define("damage", names.FloatArray)
        for row, frame in enumerate(self._reader.frames):
            velocity.Set(_vectors(motion.velocity[row, columns]), frame)
            spin.Set(_vectors(motion.angular_velocity[row, columns]), frame)
            damage.Set(Vt.FloatArray.FromNumpy(np.ascontiguousarray(
                motion.damage[row, columns])), frame)

def world_motion(center: Array, motion: Tracks, number: int) -> tuple[Array, Array]:
    """Return where a piece's centre is (t, 3) [m], and its turn (t, 4) as quaternions xyzw.

    Signs are chosen so that neighbours are near each other, for programs that interpolate.
    """
    rotation = motion.rotation[:, number]
    place = rotation @ center + motion.translation[:, number]
    turn = np.asarray(Rotation.from_matrix(rotation).as_quat())
    for row in range(1, len(turn)):
        if turn[row] @ turn[row - 1] < 0.0:
            turn[row] = -turn[row]
    return place, turn


def _vectors(value: Array) -> Any:
    from pxr import Vt

    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(value, np.float32))
