"""What other programs get: the same points as in the caches, names that last, nothing lost."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.types import Lineage, Pieces, Solid
from vfx.geometry.pieces.lineage import piece_name
from vfx.pipeline.cli.commands import main
from vfx.pipeline.export import vdb as export_vdb
from vfx.pipeline.export.pieces import PieceMesh, PieceReader, piece_meshes
from vfx.pipeline.shot.shot_file import load_shot
from vfx.pipeline.work.folder import Work

SHOT = """\
[shot]
name = "plate"
frames = "1001-1005"
[time]
steps_per_frame = 150
[[bodies]]
name = "plate-a"
material = "glass"
cells = [16, 16, 2]
spacing = 2e-3
center = [0.0, 0.07, 0.0]
[[bodies]]
name = "block"
material = "glass"
cells = [3, 3, 3]
spacing = 2e-3
center = [0.05, 0.07, 0.0]
[materials.glass]
strain_limit = 2e-3
[[projectiles]]
position = [0.0, 0.07, 0.0122]
velocity = [0.0, 0.0, -80.0]
stiffness = 1e14
[[colliders]]
shape = "box"
size = [0.1, 0.2, 0.3]
rotation = [0.0, 0.0, 90.0]
keys = [[0.0, 1.0, 0.0, 0.0], [1.0, 2.0, 0.0, 0.0]]
[[colliders]]
position = [0.0, -1.0, 0.0]
[[colliders]]
shape = "sphere"
position = [0.0, 1.0, 0.0]
[sim]
timestep = "auto"
"""


def vfx(*words: object) -> Result:
    result = CliRunner().invoke(main, [str(word) for word in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture(scope="module")
def shot(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shot that is simulated and aligned, with pieces of one element and of more."""
    folder = tmp_path_factory.mktemp("export")
    path = folder / "plate.toml"
    path.write_text(SHOT)
    for stage in ("geometry", "sim", "align"):
        result = vfx("stage", stage, path, "--work", folder / "work", "--device", "cpu")
        assert result.exit_code == 0, result.output
    return path


def cached(shot: Path) -> tuple[Solid, Lineage, dict[int, Pieces]]:
    work = shot.parent / "work"

    def load(name: str) -> dict[str, np.ndarray]:
        with np.load(work / name) as archive:
            return {key: archive[key] for key in archive.files}

    return (Solid.from_arrays(load("geometry/solid.npz")),
            Lineage.from_arrays(load("align/lineage.npz")),
            {frame: Pieces.from_arrays(load(f"align/frame.{frame}.npz"))
             for frame in range(1001, 1006)})


def export(shot: Path, *words: object) -> Path:
    result = vfx("export", shot, "--work", shot.parent / "work", *words)
    assert result.exit_code == 0, result.output
    return shot.parent / "work/export"


def volume(mesh: PieceMesh) -> float:
    """The volume within a closed mesh, by the divergence theorem."""
    total, start = 0.0, 0
    for count in mesh.count:
        corners = mesh.point[mesh.corner[start:start + count]]
        for a, b in pairwise(corners[1:]):
            total += np.dot(corners[0], np.cross(a, b)) / 6.0
        start += count
    return total


def test_piece_meshes_are_closed_and_fill_the_body(shot: Path) -> None:
    solid, _, frames = cached(shot)
    label = frames[1005].fragment
    meshes = piece_meshes(all_faces(solid), label)
    assert sorted(meshes) == np.unique(label).tolist()
    for piece, mesh in meshes.items():
        expected = solid.volume[label == piece].sum()
        assert volume(mesh) == pytest.approx(expected, rel=1e-9), "closed, and outward"
        assert np.abs(np.linalg.norm(mesh.normal, axis=1) - 1.0).max() < 1e-5
    broken = sum(int(mesh.is_fracture.sum()) for mesh in meshes.values())
    parted = (label[solid.edge[:, 0]] != label[solid.edge[:, 1]]).sum()
    assert broken == 2 * parted, "each broken face is on both sides"


def test_cracks_are_slits_in_closed_meshes(shot: Path) -> None:
    solid, _, frames = cached(shot)
    pieces = frames[1005]
    label = pieces.fragment
    meshes = piece_meshes(all_faces(solid), label, pieces.crack_edge)
    inside = (label[solid.edge[pieces.crack_edge]] == label[
        solid.edge[pieces.crack_edge, 0]][:, None]).all(axis=1)
    cracks = sum(int(mesh.is_crack.sum()) for mesh in meshes.values())
    assert cracks == 2 * inside.sum() > 0, "each of them is on both sides"
    for piece, mesh in meshes.items():
        assert (mesh.is_crack <= mesh.is_fracture).all()
        assert volume(mesh) == pytest.approx(solid.volume[label == piece].sum(), rel=1e-9)
        # Every side of a face is met by another the other way round, and at one place there are
        # several points.
        start = np.cumsum(mesh.count) - mesh.count
        sides = Counter()
        for first, count in zip(start, mesh.count, strict=True):
            corner = mesh.corner[first:first + count].tolist()
            sides.update(pairwise([*corner, corner[0]]))
        assert all(sides[b, a] == number for (a, b), number in sides.items())
    assert any(len(np.unique(mesh.point, axis=0)) < len(mesh.point) for mesh in meshes.values())


@pytest.mark.parametrize("words", [[], ["--instancer-above", 0]])
def test_usd_has_the_points_of_the_align_cache(shot: Path, words: list[object]) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    export(shot, "--to", "usd", *words)
    solid, lineage, frames = cached(shot)
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    assert (UsdGeom.GetStageUpAxis(stage), UsdGeom.GetStageMetersPerUnit(stage)) == ("Y", 1.0)
    assert (stage.GetStartTimeCode(), stage.GetEndTimeCode()) == (1001, 1005)
    assert stage.GetTimeCodesPerSecond() == 24.0
    root = stage.GetDefaultPrim()
    rest = piece_meshes(all_faces(solid), frames[1005].fragment, frames[1005].crack_edge)
    debris = UsdGeom.Points(stage.GetPrimAtPath("/plate/debris"))
    small = list(debris.GetIdsAttr().Get()) if debris else []
    seen = set(small)
    for frame, pieces in frames.items():
        row_of = {int(number): row for row, number in enumerate(pieces.id)}
        for name, number, world in _world_points(stage, frame, bool(words)):
            assert name == piece_name(solid, lineage, number)
            seen.add(number)
            particle = int(np.flatnonzero(frames[1005].fragment == number)[0])
            row = row_of[int(pieces.fragment[particle])]
            expected = rest[number].point @ pieces.rotation[row].T + pieces.translation[row]
            np.testing.assert_allclose(world, expected, atol=2e-8)
        if small:
            width = np.array(debris.GetWidthsAttr().Get(frame))
            assert ((width > 0.0) == (lineage.birth_frame[small] <= frame)).all()
    assert seen == set(frames[1005].id.tolist()), "every piece is there"
    assert root.GetName() == "plate"


def _world_points(stage, frame: int, is_instanced: bool):
    """Yield name, id and world points of every piece of a frame."""
    from pxr import UsdGeom

    if is_instanced:
        instancer = UsdGeom.PointInstancer(stage.GetPrimAtPath("/plate/pieces"))
        matrices = instancer.ComputeInstanceTransformsAtTime(frame, frame)
        names = UsdGeom.PrimvarsAPI(instancer).GetPrimvar("vfx:name").Get()
        targets = instancer.GetPrototypesRel().GetTargets()
        for name, number, matrix, target in zip(
                names, instancer.GetIdsAttr().Get(), matrices, targets, strict=True):
            points = np.array(UsdGeom.Mesh(stage.GetPrimAtPath(target)).GetPointsAttr().Get())
            yield name, number, _moved(points, matrix)
        return
    cache = UsdGeom.XformCache(frame)
    for prim in stage.GetPrimAtPath("/plate/pieces").GetChildren():
        name = UsdGeom.PrimvarsAPI(prim).GetPrimvar("vfx:name").Get()
        points = np.array(UsdGeom.Mesh(prim).GetPointsAttr().Get())
        yield name, int(name.rpartition("_")[2]), _moved(
            points, cache.GetLocalToWorldTransform(prim))


def _moved(points: np.ndarray, matrix) -> np.ndarray:
    matrix = np.array(matrix)
    return points.astype(float) @ matrix[:3, :3] + matrix[3, :3]


def test_usd_pieces_say_what_they_are(shot: Path) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom, UsdShade

    export(shot, "--to", "usd", "--debris", 0)
    solid, lineage, frames = cached(shot)
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    last = frames[1005]
    rest = piece_meshes(all_faces(solid), last.fragment, last.crack_edge)
    assert any(mesh.is_crack.any() for mesh in rest.values())
    prims = stage.GetPrimAtPath("/plate/pieces").GetChildren()
    assert len(prims) == len(last.id) and not stage.GetPrimAtPath("/plate/debris")
    for prim in prims:
        primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar
        name = primvar("vfx:name").Get()
        assert prim.GetName() == name.replace("-", "_") and prim.GetDisplayName() == name
        number = int(name.rpartition("_")[2])
        row = int(np.searchsorted(last.id, number))
        assert primvar("vfx:birth_frame").Get() == lineage.birth_frame[number]
        parent = int(lineage.parent[number])
        assert primvar("vfx:parent").Get() == (
            piece_name(solid, lineage, parent) if parent >= 0 else "")
        assert primvar("vfx:mass").Get() == pytest.approx(float(last.mass[row]), rel=1e-12)
        np.testing.assert_allclose(primvar("vfx:velocity").Get(1005), last.velocity[row],
                                   rtol=1e-5, atol=1e-6)
        damage = last.damage[last.fragment == number].mean()
        assert primvar("vfx:damage").Get(1005) == pytest.approx(float(damage), abs=1e-6)
        mesh = UsdGeom.Mesh(prim)
        assert mesh.GetSubdivisionSchemeAttr().Get() == "none"
        corners = len(mesh.GetFaceVertexIndicesAttr().Get())
        assert len(primvar("st").Get()) == len(mesh.GetNormalsAttr().Get()) == corners
        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
        assert material.GetPath() == "/plate/materials/glass"
        subsets = UsdGeom.Subset.GetAllGeomSubsets(mesh)
        bound = {}
        for subset in subsets:
            material, _ = UsdShade.MaterialBindingAPI(subset.GetPrim()).ComputeBoundMaterial()
            bound[subset.GetPrim().GetName()] = material.GetPath()
        expected = {"exterior": "/plate/materials/glass",
                    "interior": "/plate/materials/glass_fracture"}
        if rest[number].is_crack.any():
            expected["cracks"] = "/plate/materials/glass_fracture"
            face = UsdGeom.Subset(prim.GetChild("cracks")).GetIndicesAttr().Get()
            assert list(face) == np.flatnonzero(rest[number].is_crack).tolist()
        assert bound == expected
        whole, why = UsdGeom.Subset.ValidateSubsets(
            subsets, len(mesh.GetFaceVertexCountsAttr().Get()), "partition")
        assert whole, why
    balls = UsdGeom.XformCache(1004).GetLocalToWorldTransform(
        stage.GetPrimAtPath("/plate/balls/ball_0")).ExtractTranslation()
    np.testing.assert_allclose(balls, frames[1004].projectile_position[0], atol=1e-12)
    assert stage.GetPrimAtPath("/plate/floor").IsA(UsdGeom.Mesh)
    # Quarter of a turn about z: the box's x points up; the plane is not there.
    box = UsdGeom.XformCache(1004).GetLocalToWorldTransform(
        stage.GetPrimAtPath("/plate/colliders/collider_1"))
    corner = [1.0 + frames[1004].time - 0.1, 0.05, 0.15]
    np.testing.assert_allclose(box.Transform((0.5, 0.5, 0.5)), corner, atol=1e-12)
    assert [prim.GetName() for prim in stage.GetPrimAtPath("/plate/colliders").GetChildren()] == [
        "collider_1", "collider_3"]
    assert stage.GetPrimAtPath("/plate/colliders/collider_3").IsA(UsdGeom.Sphere)


@pytest.mark.parametrize(("words", "place"), [
    ([], "/plate/debris"), (["--debris", 0, "--instancer-above", 0], "/plate/pieces")])
def test_pieces_that_share_a_prim_say_as_much_as_those_that_have_one(
    shot: Path, words: list[object], place: str
) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    export(shot, "--to", "usd", *words)
    solid, lineage, frames = cached(shot)
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    prim = stage.GetPrimAtPath(place)

    def values(name: str) -> np.ndarray:
        primvar = UsdGeom.PrimvarsAPI(prim).GetPrimvar(f"vfx:{name}")
        assert primvar.GetInterpolation() == "varying"
        return np.array(primvar.Get(1005))

    last = frames[1005]
    number = np.array(prim.GetAttribute("ids").Get())
    assert len(number) > 1
    row = np.searchsorted(last.id, number)
    np.testing.assert_array_equal(values("birth_frame"), lineage.birth_frame[number])
    np.testing.assert_allclose(values("mass"), last.mass[row], rtol=1e-6)
    np.testing.assert_allclose(values("velocity"), last.velocity[row], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values("angular_velocity"), last.angular_velocity[row], rtol=1e-5)
    share = np.array([last.damage[last.fragment == each].mean() for each in number])
    np.testing.assert_allclose(values("damage"), share, atol=1e-6)
    volume_of = np.array([solid.volume[last.fragment == each].sum() for each in number])
    np.testing.assert_allclose(np.pi / 6.0 * values("size") ** 3, volume_of, rtol=1e-6)
    assert values("name").tolist() == [piece_name(solid, lineage, each) for each in number]


def test_debris_of_each_material_is_bound_to_it(tmp_path: Path) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom, UsdShade

    plates = "".join(f"""\
[[bodies]]
name = "{name}"
material = "{name}"
cells = [6, 6, 1]
spacing = 2e-3
center = [{x}, 0.07, 0.0]
[materials.{name}]
strain_limit = 1e-4
[[projectiles]]
position = [{x}, 0.07, 0.0112]
velocity = [0.0, 0.0, -80.0]
stiffness = 1e14
""" for name, x in (("glass", 0.0), ("clay", 0.05)))
    path = tmp_path / "plate.toml"
    path.write_text(f'[shot]\nframes = "1001-1003"\n[time]\nsteps_per_frame = 100\n{plates}')
    for stage in ("geometry", "sim", "align"):
        result = vfx("stage", stage, path, "--work", tmp_path / "work", "--device", "cpu")
        assert result.exit_code == 0, result.output
    export(path, "--to", "usd")
    stage = Usd.Stage.Open(str(tmp_path / "work/export/plate.usd"))
    groups = stage.GetPrimAtPath("/plate/debris").GetChildren()
    assert [prim.GetName() for prim in groups] == ["glass", "clay"]
    for prim in groups:
        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
        assert material.GetPath() == f"/plate/materials/{prim.GetName()}_fracture"
        names = UsdGeom.PrimvarsAPI(prim).GetPrimvar("vfx:name").Get()
        assert names and all(name.startswith(prim.GetName()) for name in names)
        x = np.array(UsdGeom.Points(prim).GetPointsAttr().Get(1001))[:, 0]
        assert np.abs(x - (0.0 if prim.GetName() == "glass" else 0.05)).max() < 0.01


def test_every_material_keeps_its_own_colours(tmp_path: Path) -> None:
    """Also those whose names are what the broken faces or the floor of others are called."""
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdShade

    color = {"stone": 0.1, "stone_fracture": 0.3, "floor_look": 0.5, "a-b": 0.7, "a_b": 0.9}
    bodies = "".join(f"""\
[[bodies]]
name = "body{number}"
material = "{name}"
cells = [3, 3, 3]
spacing = 2e-3
center = [{0.05 * number}, 0.07, 0.0]
[materials.{name}.surface]
albedo = [{value}, {value}, {value}]
[materials.{name}.fracture]
albedo = [{value}, {value}, 0.0]
""" for number, (name, value) in enumerate(color.items()))
    path = tmp_path / "plate.toml"
    path.write_text(f'[shot]\nframes = "1001"\n[time]\nsteps_per_frame = 2\n{bodies}')
    for stage in ("geometry", "sim", "align"):
        result = vfx("stage", stage, path, "--work", tmp_path / "work", "--device", "cpu")
        assert result.exit_code == 0, result.output
    export(path, "--to", "usd")
    stage = Usd.Stage.Open(str(tmp_path / "work/export/plate.usd"))
    for number, value in enumerate(color.values()):
        for part, blue in (("exterior", value), ("interior", 0.0)):
            prim = stage.GetPrimAtPath(f"/plate/pieces/body{number}_{number:05d}/{part}")
            material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
            shader = UsdShade.Shader(stage.GetPrimAtPath(f"{material.GetPath()}/surface"))
            assert shader.GetInput("diffuseColor").Get() == pytest.approx((value, value, blue))
    export(path, "--to", "obj")
    names = [line for line in (tmp_path / "work/export/plate.mtl").read_text().splitlines()
             if line.startswith("newmtl")]
    assert len(set(names)) == len(names) == 2 * len(color)


@pytest.mark.parametrize("words", [
    [], ["--debris", 0], ["--debris", 0.004], ["--instancer-above", 0],
    ["--frames", "1001-1005x2"]])
def test_what_has_a_size_in_usd_is_what_is_there(shot: Path, words: list[object]) -> None:
    """At and between frames, whatever visibility says, and it fills the bodies."""
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    export(shot, "--to", "usd", *words)
    solid, lineage, _ = cached(shot)
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    meshes = [UsdGeom.Mesh(prim) for prim in stage.Traverse() if prim.IsA(UsdGeom.Mesh)
              and prim.GetName() != "floor"]
    rest = {mesh.GetPath(): _volume_at_rest(mesh) for mesh in meshes}
    debris = UsdGeom.Points(stage.GetPrimAtPath("/plate/debris"))
    assert bool(debris) == (words != ["--debris", 0])
    instancer = UsdGeom.PointInstancer(stage.GetPrimAtPath("/plate/pieces"))
    turn = 2.0**-12          # as much as a program's times may round
    for time in np.unique(np.clip([frame + part for frame in range(1001, 1006)
                                   for part in (-0.5, -0.25, -turn, 0.0, turn, 0.25, 0.5)],
                                  1001.0, 1005.0)).tolist():
        frame = int(np.floor(time + turn))
        total = 0.0
        if debris:
            number, width = debris.GetIdsAttr().Get(), np.array(debris.GetWidthsAttr().Get(time))
            np.testing.assert_array_equal(width > 0.0, lineage.birth_frame[number] <= frame)
            total = float((np.pi / 6.0 * width**3).sum())
        matrices = {mesh.GetPath(): mesh.ComputeLocalToWorldTransform(time) for mesh in meshes}
        if instancer:
            matrices.update(zip(instancer.GetPrototypesRel().GetTargets(),
                                instancer.ComputeInstanceTransformsAtTime(time, time),
                                strict=True))
        for path, matrix in matrices.items():
            _, found, until = path.name.partition("_until_")
            is_there = not found or frame < int(until)
            size = np.cbrt(np.linalg.det(np.array(matrix)[:3, :3]))
            assert size == pytest.approx(1.0, abs=1e-6) if is_there else 0.0 < size < 1e-5
            assert found == "" or is_there == (
                UsdGeom.Imageable.Get(stage, path).ComputeVisibility(time) == "inherited")
            total += rest[path] * size**3
        assert total == pytest.approx(solid.volume.sum(), rel=1e-5)


def _volume_at_rest(mesh) -> float:
    count = np.array(mesh.GetFaceVertexCountsAttr().Get())
    return volume(PieceMesh(
        np.array(mesh.GetPointsAttr().Get(), float), count,
        np.array(mesh.GetFaceVertexIndicesAttr().Get()), count, count, count, count))


def test_what_will_be_debris_moves_with_its_parent_until_it_breaks_off(shot: Path) -> None:
    """Up to the frame of its birth: half of the way there is seen when frames are blurred."""
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    export(shot, "--to", "usd")
    solid, lineage, frames = cached(shot)
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    hosts = stage.GetPrimAtPath("/plate/unbroken").GetChildren()
    assert hosts
    label = frames[1005].fragment
    for prim in hosts:
        name, _, birth = prim.GetName().partition("_until_")
        parent = int(name.rpartition("_")[2])
        mine = [number for number in frames[1005].id if lineage.parent[number] == parent
                and lineage.birth_frame[number] == int(birth) and (label == number).sum() == 1]
        inside = np.isin(label, mine)
        rest = np.average(solid.position[inside], axis=0, weights=solid.volume[inside])
        for frame in range(1001, int(birth) + 1):
            pieces = frames[frame]
            piece = parent if lineage.birth_frame[parent] <= frame else int(
                pieces.fragment[label == parent][0])
            row = int(np.searchsorted(pieces.id, piece))
            place = UsdGeom.XformCache(frame).GetLocalToWorldTransform(prim).ExtractTranslation()
            np.testing.assert_allclose(
                place, pieces.rotation[row] @ rest + pieces.translation[row], atol=2e-8)


def test_instances_turn_also_for_programs_that_know_half_precision_alone(shot: Path) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    export(shot, "--to", "usd", "--instancer-above", 0)
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    instancer = UsdGeom.PointInstancer(stage.GetPrimAtPath("/plate/pieces"))
    for frame in (1001, 1005):
        fine, coarse = ([[*q.GetImaginary(), q.GetReal()] for q in attribute.Get(frame)]
                        for attribute in (instancer.GetOrientationsfAttr(),
                                          instancer.GetOrientationsAttr()))
        assert len(fine) > 1
        np.testing.assert_allclose(coarse, fine, atol=5e-4)


def test_the_usd_camera_sees_what_the_shot_camera_sees(shot: Path) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    from vfx.raytrace.camera.camera import camera_view, world_to_ndc

    export(shot, "--to", "usd")
    stage = Usd.Stage.Open(str(shot.parent / "work/export/plate.usd"))
    frustum = UsdGeom.Camera(stage.GetPrimAtPath("/plate/camera")).GetCamera(1001).frustum
    ours = load_shot(shot)
    point = np.array([0.02, 0.075, 0.01, 1.0])
    expected = point @ world_to_ndc(camera_view(ours.camera, ours.film))
    found = np.array(point @ np.array(frustum.ComputeViewMatrix())
                     @ np.array(frustum.ComputeProjectionMatrix()))
    np.testing.assert_allclose(found[:2] / found[3], expected[:2] / expected[3], atol=1e-6)


def test_alembic_has_the_points_of_the_align_cache(shot: Path) -> None:
    pytest.importorskip("alembic3d", reason="alembic3d is not installed")
    folder = export(shot, "--to", "abc", "--frames", "1002-1005")
    solid, _, frames = cached(shot)
    # Its libraries and those of USD do not mix in one process.
    script = """
import json, sys
from alembic3d.Abc import IArchive, ISampleSelector
from alembic3d.AbcGeom import IPolyMesh, IXform
top = IArchive(sys.argv[1]).getTop().children[0]
found = {}
for child in top.children:
    xform = IXform(top, child.getName())
    schema = xform.getSchema()
    mesh = IPolyMesh(xform, "mesh").getSchema()
    sample = mesh.getValue()
    points = [tuple(p) for p in sample.getPositions()]
    rows = []
    times = schema.getTimeSampling()
    for number in range(schema.getNumSamples()):
        m = schema.getValue(ISampleSelector(times.getSampleTime(number))).getMatrix()
        rows.append([[m[i][j] for j in range(4)] for i in range(4)])
    found[child.getName()] = {
        "points": points, "matrices": rows, "counts": list(sample.getFaceCounts()),
        "sets": list(mesh.getFaceSetNames()),
        "cracks": list(mesh.getFaceSet("cracks").getSchema().getValue().getFaces())
                  if mesh.hasFaceSet("cracks") else [],
        "first": times.getSampleTime(0)}
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", script, str(folder / "plate.abc")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    last = frames[1005]
    assert len(found) == len(last.id)
    rest = piece_meshes(all_faces(solid), last.fragment, last.crack_edge)
    cracked = 0
    for name, data in found.items():
        number = int(name.rpartition("_")[2])
        assert data["first"] == pytest.approx(1002 / 24.0)
        assert data["counts"] == rest[number].count.tolist()
        mesh = rest[number]
        assert sorted(data["sets"]) == (["cracks"] if mesh.is_crack.any() else []) + (
            ["interior"] if (mesh.is_fracture & ~mesh.is_crack).any() else [])
        assert data["cracks"] == np.flatnonzero(mesh.is_crack).tolist()
        cracked += mesh.is_crack.any()
        particle = int(np.flatnonzero(last.fragment == number)[0])
        for matrix, frame in zip(data["matrices"], range(1002, 1006), strict=True):
            pieces = frames[frame]
            row = int(np.searchsorted(pieces.id, pieces.fragment[particle]))
            expected = rest[number].point @ pieces.rotation[row].T + pieces.translation[row]
            np.testing.assert_allclose(_moved(np.array(data["points"]), matrix), expected,
                                       atol=2e-8)
    assert cracked > 0


def test_obj_has_an_object_a_piece_where_it_is(shot: Path) -> None:
    folder = export(shot, "--to", "obj", "--frames", "1001,1004")
    solid, lineage, frames = cached(shot)
    for frame in (1001, 1004):
        lines = (folder / f"plate.{frame}.obj").read_text().splitlines()
        pieces = frames[frame]
        assert [line[2:] for line in lines if line.startswith("o ")] == [
            piece_name(solid, lineage, int(number)) for number in pieces.id]
        points = np.array([line.split()[1:] for line in lines if line.startswith("v ")], float)
        meshes = piece_meshes(all_faces(solid), pieces.fragment, pieces.crack_edge)
        expected = np.concatenate([
            meshes[int(number)].point @ pieces.rotation[row].T + pieces.translation[row]
            for row, number in enumerate(pieces.id)])
        np.testing.assert_allclose(points, expected, rtol=1e-8, atol=1e-11)
        corners = [word.split("/") for line in lines if line.startswith("f ")
                   for word in line.split()[1:]]
        counts = [sum(line.startswith(kind) for line in lines) for kind in ("v ", "vt ", "vn ")]
        assert (np.array(corners, int).max(axis=0) == counts).all()
        group, of_cracks = "default", Counter()
        for line in lines:
            group = line[2:] if line.startswith("g ") else group
            of_cracks[group] += line.startswith("f ")
        del of_cracks["default"]
        assert of_cracks == {
            f"{piece_name(solid, lineage, number)}_cracks": mesh.is_crack.sum()
            for number, mesh in meshes.items() if mesh.is_crack.any()}
        assert bool(of_cracks) == (frame == 1004)
    assert "newmtl glass_fracture" in (folder / "plate.mtl").read_text()


def test_dust_is_as_much_as_faces_broke(shot: Path) -> None:
    reader = PieceReader(Work(load_shot(shot), shot.parent / "work"), range(1001, 1006))
    frames = list(export_vdb.dust_of_frames(reader))
    assert len(frames[0].mass) == 0, "nothing has broken at the first frame"
    broken = 0
    fresh = 0.0
    for frame, dust in zip(range(1001, 1006), frames, strict=True):
        with np.load(shot.parent / f"work/sim/frame.{frame}.npz") as motion:
            count = len(motion["broken_edge"])
        broken += count
        # A face of a cube of 2 mm, and what older faces have left.
        fresh = fresh * np.exp(-1.0 / export_vdb._LIFE_FRAMES) + count * 4e-6
        assert len(dust.mass) == broken
        assert dust.mass.sum() == pytest.approx(fresh, rel=1e-9)
        density, velocity, _ = export_vdb.splat(dust, 1e-3)
        assert density.sum(dtype=float) * 1e-9 == pytest.approx(fresh, rel=1e-5)
        assert np.isfinite(velocity).all()
    assert broken > 0


def test_dust_moves_as_its_velocity_says(shot: Path) -> None:
    """From a frame to the next, however slow the shot is: between the paces at both."""
    loaded = load_shot(shot)
    before, after = export_vdb.dust_of_frames(
        PieceReader(Work(loaded, shot.parent / "work"), range(1004, 1006)))
    n = len(before.mass)
    assert n > 0
    step = np.linalg.norm(after.position[:n] - before.position, axis=1) * loaded.fps
    first, last = (np.linalg.norm(dust.velocity[:n], axis=1) for dust in (before, after))
    assert (step <= first * (1 + 1e-6)).all() and (step >= last * (1 - 1e-6)).all()


@pytest.mark.parametrize("voxel", [3e-4, 1e-3, 7e-3])
def test_dust_lies_on_the_floor_and_on_colliders_not_in_them(shot: Path, voxel: float) -> None:
    """No voxel that is wholly inside has any, one half inside has less, and no mass is lost."""
    loaded = load_shot(shot)
    box = loaded.colliders[0]
    assert box.shape == "box"
    obstacles = dataclasses.replace(
        loaded, floor=dataclasses.replace(loaded.floor, height=0.0137),
        colliders=(dataclasses.replace(box, size=(0.02, 0.02, 0.02), rotation=(0.0, 30.0, 0.0),
                                       keys=((0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.02, 0.0))),))
    depth = export_vdb.depth_at(obstacles, 1.0)
    random = np.random.default_rng(1)
    position = random.uniform((-0.02, -0.01, -0.02), (0.02, 0.04, 0.02), (200, 3))
    position, velocity = export_vdb.held_up(position, np.full((200, 3), -1.0), depth)
    assert depth(position).max() < 1e-9, "on the surface, or outside"
    resting = np.abs(position[:, 1] - 0.0137) < 1e-9
    assert resting.any() and (velocity[resting, 1] > -1e-6).all(), "and goes no deeper"
    assert (velocity[resting][:, [0, 2]].sum(axis=1) < 0.0).any(), "but along it"
    mass = random.uniform(0.5, 1.0, 200)
    dust = export_vdb.Dust(position, velocity, mass, np.full(200, 2e-3), depth)
    density, _, origin = export_vdb.splat(dust, voxel)
    assert density.sum(dtype=float) * voxel**3 == pytest.approx(mass.sum(), rel=1e-5)
    index = np.stack(np.meshgrid(*map(np.arange, density.shape), indexing="ij"), axis=-1) + origin
    corner = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
    shallowest = np.min([depth(((index + each) * voxel).reshape(-1, 3)) for each in corner],
                        axis=0).reshape(density.shape)
    assert density[shallowest > 1e-9].sum() == 0.0
    assert density[(index[..., 1] + 0.5) * voxel < 0.0137 - 1e-9].sum() == 0.0


def test_dust_falls_no_deeper_than_the_floor(shot: Path) -> None:
    loaded = load_shot(shot)
    reader = PieceReader(Work(loaded, shot.parent / "work"), range(1001, 1006))
    free = list(export_vdb.dust_of_frames(reader))[-1]
    height = float(np.median(free.position[:, 1]))
    reader.work.shot = dataclasses.replace(
        loaded, floor=dataclasses.replace(loaded.floor, height=height))
    held = list(export_vdb.dust_of_frames(reader))[-1]
    assert held.position[:, 1].min() >= height - 1e-12
    np.testing.assert_allclose(held.position, np.maximum(
        free.position, [-np.inf, height, -np.inf]), atol=1e-9)
    assert held.mass.sum() == free.mass.sum()


def test_a_vdb_file_holds_the_dust(shot: Path) -> None:
    if export_vdb.find_python() is None:
        if os.environ.get("VFX_REQUIRE_OPENVDB") == "1":
            pytest.fail("VFX_REQUIRE_OPENVDB=1, but no Python here has OpenVDB")
        pytest.skip("no Python here has OpenVDB; as root: apt install python3-openvdb")
    folder = export(shot, "--to", "vdb", "--frames", "1005", "--voxel", "1e-3")
    done = subprocess.run(
        [str(export_vdb.find_python()), str(export_vdb._WRITER), "--sum",
         str(folder / "plate_dust.1005.vdb")], capture_output=True, text=True, check=False,
        env=export_vdb._plain_environment())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["names"] == ["density", "vel"] and found["voxel"] == pytest.approx(1e-3)
    reader = PieceReader(Work(load_shot(shot), shot.parent / "work"), [1005])
    dust, = export_vdb.dust_of_frames(reader)
    assert found["sum"] * 1e-9 == pytest.approx(dust.mass.sum(), rel=1e-5)
    middle = dust.mass @ dust.position / dust.mass.sum() / 1e-3
    assert (np.array(found["low"]) <= middle).all() and (middle <= np.array(found["high"])).all()


def test_an_export_before_its_stages_says_what_to_run(tmp_path: Path) -> None:
    path = tmp_path / "plate.toml"
    path.write_text(SHOT)
    result = vfx("export", path, "--to", "usd", "--work", tmp_path / "work")
    assert result.exit_code == 3
    assert "export needs the result of geometry" in result.output
    commands = [line.split() for line in result.output.splitlines() if line.startswith("  vfx")]
    assert [words[2] for words in commands] == ["geometry", "sim", "align"], "all that is lacking"
    vfx("stage", "geometry", path, "--work", tmp_path / "work")
    result = vfx("export", path, "--to", "obj", "--work", tmp_path / "work")
    assert result.exit_code == 3 and "needs the result of sim" in result.output
    assert f"vfx stage sim {path} --frames 1005 --work {tmp_path / 'work'}" in result.output
    result = vfx("export", path, "--to", "obj", "--frames", "1-3", "--work", tmp_path / "work")
    assert result.exit_code == 3 and "outside the shot" in result.output


def test_a_missing_library_is_named_with_the_way_to_get_it(
    shot: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pxr", "alembic3d"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr(export_vdb, "find_python", lambda: None)
    for to, cure in (("usd", "pip install usd-core"), ("abc", "pip install alembic3d"),
                     ("vdb", "apt install python3-openvdb")):
        result = vfx("export", shot, "--to", to, "--work", shot.parent / "work")
        assert result.exit_code == 3
        assert cure in " ".join(result.output.split())


def test_an_export_replaces_the_file_it_is_told_to_write(shot: Path, tmp_path: Path) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    words = ("export", shot, "--to", "usd", "--frames", "1001", "--work", shot.parent / "work")
    target = tmp_path / "pieces.usda"
    target.write_text("another")
    for _ in range(2):
        assert vfx(*words, "--output", target).exit_code == 0
        assert target.read_text().startswith("#usda")
    for name, what in (("pieces.obj", "ends in .usd or .usda or .usdc"), ("", "is a folder")):
        result = vfx(*words, "--output", tmp_path / name)
        assert result.exit_code == 2 and what in result.output, result.output
    (tmp_path / "file").touch()
    result = vfx(*words, "--output", tmp_path / "file/pieces.usd")
    assert result.exit_code == 3 and "choose another with --output" in result.output


def test_the_usd_camera_moves_as_the_shot_says(shot: Path, tmp_path: Path) -> None:
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import Usd, UsdGeom

    moving = tmp_path / "plate.toml"
    moving.write_text(SHOT + "[[camera_keys]]\nframe = 1001\nposition = [0.0, 0.12, 0.4]\n"
                      "[[camera_keys]]\nframe = 1005\nposition = [0.2, 0.12, 0.4]\n"
                      "focal_length = 70.0\n")
    result = vfx("export", moving, "--to", "usd", "--work", shot.parent / "work",
                 "--output", tmp_path / "moving.usd")
    assert result.exit_code == 0, result.output
    stage = Usd.Stage.Open(str(tmp_path / "moving.usd"))
    camera = UsdGeom.Camera(stage.GetPrimAtPath("/plate/camera"))
    for frame, x, focal in ((1001, 0.0, 0.5), (1005, 0.2, 0.7)):
        place = camera.ComputeLocalToWorldTransform(frame).ExtractTranslation()
        np.testing.assert_allclose(place, [x, 0.12, 0.4], atol=1e-9)
        assert camera.GetFocalLengthAttr().Get(frame) == pytest.approx(focal)
