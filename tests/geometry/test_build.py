"""Bodies of all shapes are divided and put into the world where the shot says."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.geometry.meshes import box, flipped, joined, sphere, write_obj
from vfx.device import open_device
from vfx.geometry.assets.catalog import ASSETS, make_asset
from vfx.geometry.divide import cubes
from vfx.geometry.divide.build import build_solid, check_bodies, lowest_point, solid_bytes
from vfx.geometry.divide.check import check_elements, check_solid
from vfx.geometry.divide.cubes import _fill as fill
from vfx.geometry.divide.cubes import block_elements, cell_edges
from vfx.geometry.divide.sources import body_size, source_hash, surface_of, surface_volume
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.cube_faces import grid_faces
from vfx.geometry.handoff.faces import all_faces, face_normals
from vfx.geometry.inside.columns import cut_columns, wound_volumes
from vfx.geometry.mesh.files import RawMesh
from vfx.geometry.mesh.load import inspect_only


def body(name="b", **settings) -> Body:
    return Body(name=name, material="clay", **{"shape": "grid", **settings})


@pytest.fixture
def ball(tmp_path) -> str:
    return str(write_obj(tmp_path / "ball.obj", sphere(0.1, rings=20)))


# ------------------------------------------------------------------ cubes

def test_cubes_in_a_mesh_are_those_whose_centres_are_inside(device, ball):
    solid = build_solid(device, [body(mesh=ball, spacing=0.007)]).solid
    inside = np.linalg.norm(solid.position, axis=1)
    assert inside.max() < 0.1
    # Every lattice place well inside the ball is taken.
    lattice = np.arange(-15, 16)
    place = np.stack(np.meshgrid(lattice, lattice, lattice, indexing="ij"), -1).reshape(-1, 3)
    offset = solid.position[0] / 0.007 - np.round(solid.position[0] / 0.007)
    wanted = np.linalg.norm((place + offset) * 0.007, axis=1) < 0.097
    taken = {tuple(np.round(row).astype(int)) for row in solid.position / 0.007 - offset}
    assert {tuple(row) for row in place[wanted].tolist()} <= taken
    assert len(taken) == solid.n_elements


def test_a_number_of_cubes_is_met_closely(device, ball):
    solid = build_solid(device, [body(mesh=ball, elements=5000)]).solid
    assert solid.n_elements == pytest.approx(5000, rel=0.02)
    assert solid.volume.sum() == pytest.approx(4 / 3 * np.pi * 1e-3, rel=0.05)


def test_faces_of_cubes_in_a_mesh_enclose_their_volume(device, ball):
    solid = build_solid(device, [body(mesh=ball, elements=2000, rotation=(30.0, 0.0, 0.0))]).solid
    faces = grid_faces(solid)
    outer = np.flatnonzero(faces.side[:, 1] < 0)
    area = face_normals(faces)
    first = faces.vertex[faces.corner[faces.start[:-1]]]
    assert np.einsum("ij,ij->", first[outer], area[outer]) / 3 == pytest.approx(
        solid.volume.sum(), rel=1e-9)
    assert np.abs(area[outer].sum(axis=0)).max() < 1e-12
    assert len(all_faces(solid).side) == len(faces.side)


@pytest.mark.warp
def test_hollows_stay_empty(device, tmp_path):
    raw = joined(box((0.3, 0.3, 0.3)), flipped(box((0.2, 0.2, 0.2))))
    path = str(write_obj(tmp_path / "hollow.obj", raw))
    solid = build_solid(device, [body(mesh=path, spacing=0.01)]).solid
    assert solid.n_elements == 27000 - 8000
    assert np.abs(solid.position).max(axis=1).min() > 0.1


def test_a_plain_box_is_filled_with_whole_cubes(device):
    solid = build_solid(device, [body(box=(0.1, 0.2, 0.05), spacing=0.01)]).solid
    assert solid.n_elements == 10 * 20 * 5


def test_edges_of_cells_join_exactly_those_that_share_a_face():
    rng = np.random.default_rng(0)
    cell = np.argwhere(rng.random((6, 5, 7)) < 0.6).astype(np.int32)
    apart = np.abs(cell[:, None] - cell[None]).sum(axis=2)
    first, second = np.nonzero(np.triu(apart == 1))
    assert np.array_equal(cell_edges(cell), np.column_stack([first, second]))


def test_a_mesh_too_thin_for_a_cube_is_refused(device, tmp_path):
    raw = joined(box((0.3, 0.3, 0.3)), flipped(box((0.2, 0.2, 0.2))))
    path = str(write_obj(tmp_path / "hollow.obj", raw))
    with pytest.raises(ValueError, match="no room for a cube"):
        build_solid(device, [body(mesh=path, spacing=0.5)])


@pytest.mark.warp
def test_columns_of_a_closed_mesh_always_end_outside(device):
    raw = sphere(1.0, rings=9)
    # Columns straight through vertices and along edges: the worst for a ray.
    columns = cut_columns(device, raw.vertex, raw.triangle, origin=(-1.0, -1.0), step=0.25,
                          shape=(9, 9))
    start, turns = device.to_host(columns.start), device.to_host(columns.turns)
    total = np.add.reduceat(np.append(turns, 0), start[:-1]) * (np.diff(start) > 0)
    assert (total == 0).all()


@pytest.mark.warp
def test_wound_volumes_are_those_of_overlapping_boxes(device):
    raw = joined(box(), box(center=(0.5, 0.0, 0.0)))
    once, twice, place = wound_volumes(device, raw.vertex, raw.triangle)
    assert once == pytest.approx(1.0, rel=0.01)
    assert twice == pytest.approx(0.5, rel=0.01)
    assert place is not None and (np.abs(place - [0.25, 0.0, 0.0]) < [0.25, 0.5, 0.5]).all()


# ------------------------------------------------------------------ place

def test_a_mesh_stands_where_the_shot_puts_it(device, tmp_path):
    path = str(write_obj(tmp_path / "m.obj", box((0.1, 0.2, 0.3), center=(9.0, 9.0, 9.0))))
    turn = (20.0, -30.0, 40.0)
    built = build_solid(device, [body(mesh=path, spacing=0.01, anchor="base", rotation=turn,
                                      center=(1.0, 2.0, 3.0))]).solid
    axes = Rotation.from_euler("xyz", turn, degrees=True).as_matrix()
    local = (built.position - [1.0, 2.0, 3.0]) @ axes
    assert local.min(axis=0) == pytest.approx([-0.045, 0.005, -0.145])
    assert local.max(axis=0) == pytest.approx([0.045, 0.195, 0.145])


def test_the_lowest_point_is_that_of_the_turned_mesh(tmp_path):
    path = str(write_obj(tmp_path / "m.obj", box((0.1, 0.2, 0.3))))
    turn = (20.0, -30.0, 40.0)
    mesh = body(mesh=path, spacing=0.01, center=(0.0, 5.0, 0.0), rotation=turn)
    block = body(cells=(10, 20, 30), spacing=0.01, center=(0.0, 5.0, 0.0), rotation=turn)
    assert lowest_point(mesh) == pytest.approx(lowest_point(block))


def test_bodies_that_overlap_are_refused_by_their_shape_and_not_their_box(device, ball):
    beside = body("c", cells=(4, 4, 4), spacing=0.01, center=(0.1, 0.1, 0.0))
    inside = dataclasses.replace(beside, center=(0.05, 0.05, 0.0))
    sphere_body = body(mesh=ball, elements=2000)
    build_solid(device, [sphere_body, beside])
    for bodies in ([sphere_body, inside], [inside, sphere_body]):
        with pytest.raises(ValueError, match="overlap at rest"):
            build_solid(device, bodies)


def test_a_ball_may_lie_in_a_hollow(device, ball, tmp_path):
    raw = joined(box((0.5, 0.5, 0.5)), flipped(box((0.3, 0.3, 0.3))))
    hollow = str(write_obj(tmp_path / "hollow.obj", raw))
    solid = build_solid(device, [body("ball", mesh=ball, elements=1000),
                                 body("box", mesh=hollow, elements=1000)]).solid
    assert len(solid.length_scale) == 2


@pytest.mark.parametrize(("settings", "says"), [
    ({}, "has no shape"),
    ({"cells": (2, 2, 2), "box": (1.0, 1.0, 1.0)}, "together with cells"),
    ({"box": (1.0, 1.0, 1.0)}, "elements missing"),
    ({"box": (1.0, 1.0, 1.0), "spacing": 0.1, "elements": 10}, "keep one"),
    ({"cells": (2, 2, 2), "shape": "voronoi"}, "grid"),
    ({"cells": (2, 2, 2), "height": 0.3}, "no mesh"),
    ({"box": (1.0, 1.0, 1.0), "spacing": 1e-9, "center": (1e7, 0.0, 0.0)}, "too far"),
    ({"box": (1.0, 1.0, 1.0), "spacing": 1e-4}, "elements, but only"),
])
def test_bodies_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(ValueError, match=says):
        check_bodies([body(**settings)])


# ------------------------------------------------------------------ estimates and checks

def test_the_estimate_of_elements_is_near_for_cubes(device, ball):
    by_spacing = body(mesh=ball, spacing=0.006)
    solid = build_solid(device, [by_spacing]).solid
    assert body_size(by_spacing).elements == pytest.approx(solid.n_elements, rel=0.05)
    by_count = body(mesh=ball, elements=20000)
    assert body_size(by_count).spacing == pytest.approx(
        float(build_solid(device, [by_count]).solid.length_scale[0]), rel=0.02)
    assert solid_bytes([by_count]) > 20000 * 100


@pytest.mark.parametrize("shape", ["grid", "tet-shell", "voronoi"])
def test_spacing_and_number_follow_from_each_other(shape):
    by_count = body(box=(0.2, 0.3, 0.1), shape=shape, elements=30000)
    size = body_size(by_count)
    again = body_size(dataclasses.replace(by_count, elements=0, spacing=size.spacing))
    assert again.elements == pytest.approx(30000, rel=1e-3)


def test_the_hash_of_a_source_changes_with_the_file(tmp_path):
    path = write_obj(tmp_path / "m.obj", box())
    one = source_hash(body(mesh=str(path), elements=10))
    write_obj(path, box((1.0, 1.0, 2.0)))
    assert source_hash(body(mesh=str(path), elements=10)) != one
    assert source_hash(body(cells=(1, 1, 1))) == ""
    with pytest.raises(FileNotFoundError):
        source_hash(body(mesh=str(tmp_path / "none.obj"), elements=10))


def test_damaged_elements_are_refused_with_a_sentence():
    elements, _ = block_elements((2, 2, 2), 0.1)

    def spoiled(**changes):
        return dataclasses.replace(elements, **changes)

    for change, says in (
            ({"volume": np.zeros(8)}, "empty or inverted"),
            ({"position": np.full((8, 3), np.nan)}, "not finite"),
            ({"edge": elements.edge[::-1].copy()}, "not sorted"),
            ({"edge": elements.edge[:, ::-1].copy()}, "lower element"),
            ({"length_scale": 0.2}, "lambda")):
        with pytest.raises(ValueError, match=says):
            check_elements(spoiled(**change), "grid", volume=0.008, spacing=0.1)
    with pytest.raises(ValueError, match="share no face"):
        check_elements(elements, "voronoi", volume=0.008, spacing=None)


def test_a_damaged_solid_of_cubes_is_refused(device, ball):
    solid = build_solid(device, [body(mesh=ball, elements=500)]).solid
    moved = solid.position.copy()
    moved[7, 0] += 1e-4
    for changes, says in (({"position": moved}, "off its lattice"),
                          ({"edge": solid.edge[:-1]}, "edges that are not"),
                          ({"volume": solid.volume * 1.01}, "lambda"),
                          ({"cell": solid.cell[::-1].copy()}, "order of their cells")):
        with pytest.raises(ValueError, match=says):
            check_solid(dataclasses.replace(solid, **changes))


# ------------------------------------------------------------------ assets

@pytest.mark.parametrize("name", ASSETS)
def test_assets_are_sound_solids_with_uv_and_no_chance(name):
    raw, again = make_asset(name), make_asset(name)
    assert np.array_equal(raw.vertex, again.vertex)
    assert np.array_equal(raw.triangle, again.triangle)
    report = inspect_only(open_device("cpu"), raw, body(mesh="m", elements=10))
    assert not list(report.problems()), list(report.problems())
    assert (report.crossings, report.parts, report.cavities) == (0, 1, 0)
    assert raw.uv is not None and raw.uv.shape == (*raw.triangle.shape, 2)
    assert raw.vertex[:, 1].min() == pytest.approx(0.0, abs=1e-5)


def test_the_serpent_has_half_a_million_triangles_and_the_vase_a_hollow(device):
    assert 490_000 < len(make_asset("serpent").triangle) < 520_000
    solid = build_solid(device, [body(mesh="asset:vase", elements=8000, anchor="base")]).solid
    belly = np.abs(solid.position[:, 1] - 0.135) < 0.02
    away = np.hypot(solid.position[belly, 0], solid.position[belly, 2])
    assert away.min() > 0.07 and away.max() < 0.0905


def test_the_bowl_of_a_wine_glass_has_a_wall_of_12_tenths_of_a_millimetre():
    raw = make_asset("wineglass")
    assert raw.vertex[:, 1].max() == pytest.approx(0.2, abs=2e-4)
    # Its profile, from the middle of the foot over the lip to the bottom of the bowl.
    profile = raw.vertex[(np.abs(raw.vertex[:, 2]) < 1e-12) & (raw.vertex[:, 0] >= 0.0), :2]
    lip = int(profile[:, 1].argmax())
    outer, inner = profile[:lip], profile[lip:]
    bowl = inner[(inner[:, 1] < 0.195) & (inner[:, 0] > 0.02)]
    start, way = outer[:-1], np.diff(outer, axis=0)
    along = ((bowl[:, None] - start) * way).sum(2) / (way**2).sum(1)
    nearest = start + np.clip(along, 0.0, 1.0)[..., None] * way
    wall = np.linalg.norm(bowl[:, None] - nearest, axis=2).min(axis=1)
    assert len(bowl) > 80 and wall == pytest.approx(1.2e-3, rel=0.05)


def test_a_plate_stands_on_its_ring_and_holds_soup():
    raw = make_asset("plate")
    away, height = np.hypot(raw.vertex[:, 0], raw.vertex[:, 2]), raw.vertex[:, 1]
    assert away.max() == pytest.approx(0.135)
    ring = away[height < 1e-4]
    assert 0.07 < ring.min() < ring.max() < 0.09
    # The foot ring lies under the flat; the rim is higher than both.
    flat = height[(away < 0.06) & (height > 0.006)]
    assert flat == pytest.approx(0.0085) and height[away > 0.13].min() > 0.02


def test_a_sphere_is_as_far_from_its_middle_everywhere():
    raw = make_asset("sphere")
    away = np.linalg.norm(raw.vertex - [0.0, 0.05, 0.0], axis=1)
    assert away == pytest.approx(0.05)
    face = raw.vertex[raw.triangle] - [0.0, 0.05, 0.0]
    assert np.linalg.det(face).sum() / 6.0 == pytest.approx(4.0 / 3.0 * np.pi * 0.05**3, rel=0.01)


# ------------------------------------------------------------------ all shapes

ODD = {
    "four triangles": lambda: RawMesh(
        0.1 * np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]), None, None),
    "millimetres": lambda: sphere(1e-3, rings=6),
    "kilometres": lambda: sphere(1e3, center=(5e3, 0.0, 0.0), rings=6),
    "hollow": lambda: joined(box(), flipped(box((0.5, 0.5, 0.5)))),
    "several bodies": lambda: joined(*(box((0.4, 0.4, 0.4), (x, 0.0, 0.0)) for x in range(3))),
    "touching": lambda: joined(box(), box(center=(1.0, 1.0, 0.0))),
}


@pytest.mark.parametrize("shape", ["grid", "tet-shell", "voronoi"])
@pytest.mark.parametrize("name", ODD)
def test_odd_meshes_become_right_solids_of_every_shape(tmp_path, shape, name):
    raw = ODD[name]()
    path = str(write_obj(tmp_path / "odd.obj", raw))
    built = build_solid(open_device("cpu"), [body(mesh=path, shape=shape, elements=600)])
    volume = surface_volume(surface_of(body(mesh=path, elements=600))[0])
    tolerance = {"grid": 0.5, "tet-shell": 0.4, "voronoi": 1e-3}[shape]
    assert built.solid.volume.sum() == pytest.approx(volume, rel=tolerance)
    assert built.solid.n_elements == pytest.approx(600, rel=0.35)
    assert set(built.solid.kind) == {shape}


@pytest.mark.parametrize("shape", ["tet-shell", "voronoi"])
def test_several_bodies_of_several_shapes_make_one_solid(device, shape):
    turned = body("a", box=(0.1, 0.1, 0.1), shape=shape, elements=300, center=(1.0, 2.0, 3.0),
                  rotation=(30.0, 40.0, 50.0))
    solid = build_solid(device, [
        body("c", cells=(3, 3, 3), spacing=0.01), turned,
        dataclasses.replace(turned, name="d", center=(-1.0, 0.0, 0.0), seed=5)]).solid
    faces = all_faces(solid)
    assert np.array_equal(np.unique(faces.edge), np.arange(len(solid.edge)))
    assert np.array_equal(faces.side[:faces.n_inner], solid.edge[faces.edge])
    inside = solid.body == 1
    axes = Rotation.from_euler("xyz", turned.rotation, degrees=True).as_matrix()
    local = (solid.position[inside] - [1.0, 2.0, 3.0]) @ axes
    assert np.abs(local).max() < 0.05


def test_grading_is_finer_at_the_place_in_the_world(device):
    solid = build_solid(device, [body(
        box=(0.2, 0.2, 0.2), shape="voronoi", elements=800, center=(5.0, 0.0, 0.0),
        rotation=(0.0, 90.0, 0.0), grading_center=(5.1, 0.0, 0.0), grading_deviation=0.05,
        grading_finest=0.4)]).solid
    away = np.linalg.norm(solid.position - [5.1, 0.0, 0.0], axis=1)
    assert solid.volume[away < 0.05].mean() < 0.3 * solid.volume[away > 0.15].mean()
    assert solid.size[away < 0.03].mean() < 0.6 * solid.size[away > 0.15].mean()


# ------------------------------------------------------------------ cubes fill what they can

@pytest.mark.parametrize("edges", [(1.0, 1.0, 1.0), (3.0, 0.5, 3.0), (0.25, 0.5, 0.25)])
@pytest.mark.parametrize("elements", [1000, 2500])
def test_cubes_of_a_box_have_about_its_volume_and_stand_in_its_middle(
    device, tmp_path, edges, elements
):
    path = str(write_obj(tmp_path / "m.obj", box(edges, center=(5.0, 0.0, 0.0))))
    solid = build_solid(device, [body(mesh=path, elements=elements)]).solid
    assert solid.volume.sum() == pytest.approx(np.prod(edges), rel=0.08)
    assert solid.n_elements == pytest.approx(elements, rel=0.08)
    low, high = solid.position.min(axis=0), solid.position.max(axis=0)
    assert 0.5 * (low + high) == pytest.approx(0.0, abs=1e-9)


def test_a_sheet_thinner_than_a_cube_is_refused_after_one_spacing(device, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(cubes, "_fill", lambda *given: calls.append(given) or fill(*given))
    path = str(write_obj(tmp_path / "m.obj", box((1.0, 1.0, 1e-3))))
    with pytest.raises(ValueError, match=r"cubes? of .*ask for more elements, or use"):
        build_solid(device, [body(mesh=path, elements=1000)])
    assert len(calls) == 8


def test_a_film_is_refused_before_cells_as_small_as_it_is_thin_are_made(device, tmp_path):
    path = str(write_obj(tmp_path / "m.obj", box((1.0, 1.0, 1e-7))))
    with pytest.raises(ValueError, match="too thin to be divided: 1e-07 m on average; make it"):
        build_solid(device, [body(mesh=path, shape="voronoi", elements=1000)])


@pytest.mark.parametrize("shape", ["grid", "tet-shell"])
def test_a_film_is_not_sent_to_a_shape_that_refuses_it_too(device, tmp_path, shape):
    path = str(write_obj(tmp_path / "film.obj", box((1.0, 1.0, 1e-7))))
    with pytest.raises(ValueError, match=r"make it .* m thick at least, and use shape") as caught:
        build_solid(device, [body(mesh=path, shape=shape, elements=1000)])
    assert "more" not in str(caught.value) and "lower" not in str(caught.value)
    # What it advises does help.
    thick = 1.02 * float(re.search(r"make it (\S+) m", str(caught.value))[1])
    path = str(write_obj(tmp_path / "sheet.obj", box((1.0, 1.0, thick))))
    sheet = build_solid(device, [body(mesh=path, shape="voronoi", elements=50)]).solid
    assert sheet.volume.sum() == pytest.approx(thick)


def test_a_mesh_that_lies_on_itself_is_refused_with_the_place_and_a_way_out(device, tmp_path):
    # A hollow whose wall is a part of the outer wall.
    raw = joined(box(center=(700.0, 0.0, 0.0)), box((0.5, 0.5, 0.5), center=(700.25, 0.0, 0.0)))
    path = str(write_obj(tmp_path / "m.obj", raw))
    with pytest.raises(ValueError, match=r"near \(700\.\d.*\) in the coordinates of the file: "
                       r".*lie on each other.*modelling program"):
        build_solid(device, [body(mesh=path, shape="voronoi", elements=2500)])


def test_parts_too_thin_for_a_tetrahedron_are_placed_where_the_file_has_them(device, tmp_path):
    raw = joined(box(center=(0.0, 70.0, 0.0)), box((1e-3, 0.1, 1e-3), center=(0.0, 90.0, 0.0)))
    path = str(write_obj(tmp_path / "m.obj", raw))
    with pytest.raises(ValueError, match=r"1 of its 2 parts .* near \(0, 90, 0\) in the coord"):
        build_solid(device, [body(mesh=path, mesh_up="z", mesh_unit="cm", shape="tet-shell",
                                  spacing=2e-3)])


def test_grains_far_apart_are_found_without_looking_at_the_air_between(device, tmp_path):
    grain, size = 8, 1e-3
    place = np.random.default_rng(5).uniform(-1.0, 1.0, (grain, 3))
    raw = joined(*(box((size, size, size), center=tuple(at)) for at in place))
    path = str(write_obj(tmp_path / "m.obj", raw))
    # Ten billion cells fill the box around them.
    solid = build_solid(device, [body(mesh=path, spacing=size)]).solid
    assert solid.n_elements == grain
    nearest = np.linalg.norm(
        solid.position[:, None] - (place - 0.5 * (place.min(0) + place.max(0))), axis=2).min(1)
    assert nearest.max() <= 0.5 * np.sqrt(3.0) * size
