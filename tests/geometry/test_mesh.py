"""A mesh becomes the right surface, or is refused with what is wrong, where, and what to do."""

from __future__ import annotations

import dataclasses
import itertools
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.geometry.meshes import box, flipped, joined, sphere, without
from vfx.device import open_device
from vfx.geometry.divide.sources import surface_volume
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.inside.crossings import build_tree, find_crossings, triangles_above
from vfx.geometry.mesh.files import RawMesh, read_raw_mesh
from vfx.geometry.mesh.load import make_surface
from vfx.geometry.mesh.shading import corner_normals
from vfx.geometry.mesh.topology import find_topology


def body(**settings) -> Body:
    return Body(material="clay", mesh="m.obj", elements=1000, **settings)


def surface(device, raw, **settings):
    return make_surface(device, raw, body(**settings))


def test_a_mesh_is_divided_into_cells_and_a_box_into_cubes_unless_the_shot_says_otherwise():
    assert body().shape == "voronoi" and body(shape="grid").shape == "grid"
    assert Body(material="clay", box=(1.0, 1.0, 1.0), elements=10).shape == "grid"
    assert Body(material="clay", cells=(2, 2, 2)).shape == "grid"


# ------------------------------------------------------------------ right solids

def test_a_sound_mesh_keeps_its_volume_and_says_so(device):
    made, report = surface(device, box((1.0, 2.0, 3.0)))
    assert surface_volume(made) == pytest.approx(6.0, rel=1e-12)
    assert report.volume == pytest.approx(6.0, rel=1e-12)
    assert report.area == pytest.approx(22.0, rel=1e-12)
    assert report.is_watertight and not list(report.problems())
    assert report.lines()[0].startswith("12 triangles, 1 x 2 x 3 m, watertight, volume 6 m^3")


def test_four_triangles_are_enough(device):
    raw = RawMesh(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
                  np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]), None, None)
    assert surface_volume(surface(device, raw)[0]) == pytest.approx(1 / 6, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_size_does_not_matter(device, scale):
    raw = sphere(scale, center=(3 * scale, 0.0, -scale))
    made, report = surface(device, raw)
    assert report.volume == pytest.approx(scale**3 * surface_volume(
        surface(device, sphere())[0]), rel=1e-9)
    assert np.abs(made.vertex).max() == pytest.approx(scale)


def test_duplicate_vertices_are_merged_and_seams_keep_their_uv(device):
    whole = box()
    soup = RawMesh(whole.vertex[whole.triangle].reshape(-1, 3), np.arange(36).reshape(-1, 3),
                   None, np.arange(72, dtype=np.float32).reshape(12, 3, 2))
    made, _ = surface(device, soup)
    assert len(made.vertex) == 8
    assert np.array_equal(made.uv, soup.uv)


def test_vertices_on_borders_within_rounding_are_welded(device):
    whole = sphere()
    noise = np.random.default_rng(1).normal(0.0, 1e-8, (3 * len(whole.triangle), 3))
    soup = RawMesh(whole.vertex[whole.triangle].reshape(-1, 3) + noise,
                   np.arange(3 * len(whole.triangle)).reshape(-1, 3), None, None)
    made, report = surface(device, soup)
    assert len(made.vertex) == len(whole.vertex)
    assert any("Welded" in note for note in report.notes)


def test_duplicate_triangles_and_slivers_of_two_corners_are_dropped(device):
    raw = box()
    spoiled = dataclasses.replace(raw, triangle=np.concatenate(
        [raw.triangle, raw.triangle[:3], raw.triangle[5:6], [[0, 0, 1]]]))
    made, report = surface(device, spoiled)
    assert len(made.triangle) == 12
    assert "Dropped 1 triangle without an area." in report.notes
    assert "Dropped 4 triangles on top of others." in report.notes


def test_a_flap_of_two_faces_back_to_back_is_dropped(device):
    raw = box()
    vertex = np.concatenate([raw.vertex, [[2.0, 2.0, 2.0]]])
    flap = np.array([[0, 1, 8], [0, 8, 1]])
    made, _ = surface(device, RawMesh(vertex, np.concatenate([raw.triangle, flap]), None, None))
    assert surface_volume(made) == pytest.approx(1.0)
    assert len(made.vertex) == 8


@pytest.mark.parametrize("faces_inward", [True, False])
def test_a_shell_inside_another_is_a_cavity_however_it_faces(device, faces_inward):
    inner = box((0.5, 0.5, 0.5))
    made, report = surface(device, joined(box(), flipped(inner) if faces_inward else inner))
    assert surface_volume(made) == pytest.approx(1.0 - 0.125)
    assert (report.parts, report.cavities) == (1, 1)
    assert any(note == "Took 1 shell inside another, facing outward, as hollow."
               for note in report.notes) != faces_inward


def test_a_body_inside_a_cavity_is_solid_again(device):
    raw = joined(box(), box((0.6, 0.6, 0.6)), box((0.2, 0.2, 0.2)))
    made, report = surface(device, raw)
    assert surface_volume(made) == pytest.approx(1.0 - 0.216 + 0.008)
    assert (report.parts, report.cavities) == (2, 1)


def test_separate_bodies_add_up(device):
    raw = joined(*(box((0.1, 0.1, 0.1), (x, y, 0.0)) for x in range(5) for y in range(5)))
    made, report = surface(device, raw)
    assert surface_volume(made) == pytest.approx(0.025)
    assert (report.parts, report.cavities) == (25, 0)


def test_bodies_that_touch_along_an_edge_are_allowed(device):
    made, report = surface(device, joined(box(), box(center=(1.0, 1.0, 0.0))))
    assert surface_volume(made) == pytest.approx(2.0)
    assert report.crowded == 1 and report.parts == 2


def test_the_tip_of_a_cone_takes_no_more_memory_than_its_faces():
    n = 4000
    angle = 2.0 * np.pi * np.arange(n) / n
    rim = np.column_stack([np.cos(angle), np.zeros(n), np.sin(angle)])
    here, there = np.arange(n), (np.arange(n) + 1) % n
    vertex = np.concatenate([rim, [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]])
    triangle = np.concatenate([np.column_stack([np.full(n, n), there, here]),
                               np.column_stack([np.full(n, n + 1), here, there])])
    tracemalloc.start()
    normal = corner_normals(vertex, triangle, None)
    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    # The disc is flat, and the side as smooth as it is steep.
    assert np.allclose(normal[n:], [0.0, -1.0, 0.0], atol=1e-6)
    assert np.allclose(normal[:n, :, 1], np.sqrt(0.5), atol=1e-3)


def test_a_small_fold_is_a_note_and_no_refusal(device):
    raw = sphere(rings=40)
    vertex = raw.vertex.copy()
    # Pull one vertex through its neighbours.
    vertex[700] += 1.6 * (vertex[701] - vertex[700])
    made, report = surface(device, dataclasses.replace(raw, vertex=vertex))
    assert report.crossings > 0
    assert 0.0 < report.overlap < 1e-3
    assert "self-intersections" in report.lines()[1]
    assert len(made.triangle) == len(raw.triangle)


# ------------------------------------------------------------------ refusals, and repairs

def test_coordinates_whose_differences_overflow_are_refused(device):
    raw = box()
    with pytest.raises(MeshError, match="far from the origin"):
        surface(device, dataclasses.replace(raw, vertex=1.7e308 * np.sign(raw.vertex)))


@pytest.mark.warp
def test_holes_are_named_with_number_and_place(device):
    with pytest.raises(MeshError, match=r"2 holes.* wide at \(.*repair = true") as caught:
        surface(device, without(sphere(rings=24), 5, 600))
    report = caught.value.report
    assert [hole.edges for hole in report.holes] == [3, 3]
    assert not report.is_watertight


@pytest.mark.parametrize("spoil", [
    lambda: flipped(joined(box(), box(center=(3.0, 0.0, 0.0))), slice(12)),
    lambda: joined(box(), box((0.5, 0.5, 0.5))),
    lambda: flipped(sphere(), slice(0, 1)),
    lambda: without(sphere(), 3)])
def test_one_of_a_thing_is_told_as_one(device, spoil):
    _, report = surface(device, spoil(), repair=True)
    text = " ".join(report.lines())
    assert re.search(r"(Turned|Took|Closed) 1 (shell|flipped face|hole)", text)
    assert not re.search(r"\b1 (\w+ )?\w+s\b", text)


@pytest.mark.parametrize("settings", [
    {}, {"mesh_unit": "mm", "mesh_up": "z"}, {"height": 0.3, "mesh_up": "x", "anchor": "base"}])
def test_places_are_where_a_modelling_program_shows_them(device, settings):
    raw = sphere(rings=24, center=(70.0, -8.0, 9.0))
    middle = raw.vertex[raw.triangle[5]]
    with pytest.raises(MeshError, match="coordinates of the file") as caught:
        surface(device, without(raw, 5), **settings)
    place = caught.value.report.holes[0].place
    assert place == pytest.approx(0.5 * (middle.min(axis=0) + middle.max(axis=0)))


def test_small_holes_are_closed_on_request(device):
    raw = sphere(rings=24)
    around = np.flatnonzero((raw.triangle == 300).any(axis=1))
    made, report = surface(device, without(raw, 5, *around.tolist()), repair=True)
    assert find_topology(made.vertex, made.triangle).is_closed
    assert surface_volume(made) == pytest.approx(report.volume)
    assert report.volume == pytest.approx(4 / 3 * np.pi, rel=0.02)
    assert any("Closed 2 holes" in note for note in report.notes)


def _with_slits(raw: RawMesh, *edges: tuple[int, int], n=1) -> RawMesh:
    """Divide one of the two triangles at each edge at n vertices that the other does not have."""
    for a, b in edges:
        t, i = next((t, i) for t, row in enumerate(raw.triangle.tolist()) for i in range(3)
                    if (row[i], row[(i + 1) % 3]) == (a, b))
        c = raw.triangle[t, (i + 2) % 3]
        new = len(raw.vertex) + np.arange(n)
        share = np.arange(1, n + 1)[:, None] / (n + 1)
        vertex = np.concatenate([raw.vertex, (1 - share) * raw.vertex[a] + share * raw.vertex[b]])
        chain = [a, *new, b]
        fan = [(chain[k], chain[k + 1], c) for k in range(n + 1)]
        raw = RawMesh(vertex, np.concatenate([np.delete(raw.triangle, t, axis=0), fan]), None, None)
    uv = raw.vertex[raw.triangle][:, :, :2].astype(np.float32)
    return dataclasses.replace(raw, uv=uv)


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("n_edges", [1, 4])
def test_slits_of_no_width_are_closed_on_request_however_long(device, n, n_edges):
    whole = box((1.0, 2.0, 3.0))
    edges = sorted({tuple(sorted(edge)) for row in whole.triangle.tolist()
                    for edge in itertools.pairwise([*row, row[0]])})[::18 // n_edges][:n_edges]
    raw = _with_slits(whole, *edges, n=n)
    with pytest.raises(MeshError, match=r"is open.*repair = true"):
        surface(device, raw)
    made, report = surface(device, raw, repair=True, anchor="origin")
    assert find_topology(made.vertex, made.triangle).is_closed
    assert report.volume == pytest.approx(6.0) and report.area == pytest.approx(22.0)
    assert len(made.triangle) == 12 + 2 * n * n_edges
    # Texture coordinates go along.
    assert made.uv == pytest.approx(made.vertex[made.triangle][:, :, :2], abs=1e-6)


def test_slits_whose_sides_have_vertices_at_different_places_are_closed(device):
    raw = _with_slits(_with_slits(box(), (0, 4), n=1), (4, 0), n=2)
    made, report = surface(device, raw, repair=True)
    assert len(made.triangle) == 12 + 2 * 3 and report.volume == pytest.approx(1.0)
    assert "Split 3 triangles at vertices on open edges." in report.notes


def test_slits_are_closed_where_their_sides_face_opposite_ways(device):
    raw = _with_slits(joined(box(), box(center=(1.5, 0.0, 0.0))), (0, 4), n=2)
    which = (raw.triangle < 8).all(axis=1) & (np.arange(len(raw.triangle)) < 3)
    made, report = surface(device, flipped(raw, which), repair=True)
    assert surface_volume(made) == pytest.approx(2.0) and report.parts == 2


def test_large_holes_are_refused_even_with_repair(device):
    with pytest.raises(MeshError, match="too large to be closed"):
        surface(device, without(box(), 0, 1), repair=True)


def test_flipped_faces_are_refused_or_turned_on_request(device):
    spoiled = flipped(sphere(), np.arange(7, 20))
    with pytest.raises(MeshError, match=r"flipped.*near \(.*repair = true"):
        surface(device, spoiled)
    made, report = surface(device, spoiled, repair=True)
    assert surface_volume(made) == pytest.approx(surface_volume(surface(device, sphere())[0]))
    assert any("Turned 13 flipped faces" in note for note in report.notes)


def test_a_mesh_inside_out_is_refused_or_turned_on_request(device):
    with pytest.raises(MeshError, match=r"inside out.*repair = true"):
        surface(device, flipped(sphere()))
    made, _ = surface(device, flipped(sphere()), repair=True)
    assert surface_volume(made) > 4.0


def test_a_hollow_body_inside_out_is_turned_as_a_whole(device):
    raw = flipped(joined(box(), flipped(box((0.5, 0.5, 0.5)))))
    with pytest.raises(MeshError, match="inside out"):
        surface(device, raw)
    assert surface_volume(surface(device, raw, repair=True)[0]) == pytest.approx(0.875)


def test_bodies_that_overlap_are_refused_or_united_on_request(device):
    raw = joined(box(), box(center=(0.5, 0.3, 0.2)))
    with pytest.raises(MeshError, match=r"cuts through itself.*near \(.*repair = true"):
        surface(device, raw)
    made, report = surface(device, raw, repair=True)
    assert surface_volume(made) == pytest.approx(2.0 - 0.5 * 0.7 * 0.8)
    assert report.crossings == 0 and report.parts == 1


@pytest.mark.parametrize("other, united", [
    (box(center=(0.5, 0.0, 0.0)), 1.5),
    (box(center=(0.1, 0.0, 0.0)), 1.1),
    (box(edges=(0.5, 1.0, 2.0), center=(0.1, 0.0, 0.0)), 1.5),
])
def test_bodies_that_overlap_with_sides_in_one_plane_are_noticed(device, other, united):
    raw = joined(box(), other)
    with pytest.raises(MeshError, match=r"twice or backward, as at \(.*repair = true"):
        surface(device, raw)
    made, report = surface(device, raw, repair=True)
    assert surface_volume(made) == pytest.approx(united)
    assert report.volume == pytest.approx(united)


def test_where_repair_does_not_help_it_is_not_advised(device):
    raw = box()
    vertex = raw.vertex.copy()
    # The upper half mirrored: one shell whose sides cut through each other.
    vertex[vertex[:, 1] > 0.0, 0] *= -0.6
    for repair, advice in ((False, "; mend it in a modelling"), (True, "repair did not help")):
        with pytest.raises(MeshError, match=r"cuts through itself|inside out") as caught:
            surface(device, RawMesh(vertex, raw.triangle, None, None), repair=repair)
        assert advice in str(caught.value) and "repair = true" not in str(caught.value)


@pytest.mark.warp
def test_an_inner_wall_is_refused(device):
    raw = joined(box(), box(center=(1.0, 0.0, 0.0)))
    # Two boxes side by side whose wall is there once: three faces meet at its edges.
    wall = (raw.vertex[raw.triangle][:, :, 0] == 0.5).all(axis=1)
    keep = np.ones(len(raw.triangle), dtype=bool)
    keep[np.flatnonzero(wall)[:2]] = False
    with pytest.raises(MeshError, match="three or more faces"):
        surface(device, RawMesh(raw.vertex, raw.triangle[keep], None, None))


def test_a_one_sided_band_is_refused(device):
    angle = np.linspace(0.0, 2 * np.pi, 31)[:-1]
    lift = np.stack([np.cos(angle / 2) * np.cos(angle), np.sin(angle / 2),
                     np.cos(angle / 2) * np.sin(angle)], 1)
    middle = np.stack([np.cos(angle), 0 * angle, np.sin(angle)], 1)
    vertex = np.concatenate([middle - 0.1 * lift, middle + 0.1 * lift])
    quads = [(i, (i + 1) % 30, (i + 1) % 30 + 30, i + 30) if i < 29 else (29, 30, 0, 59)
             for i in range(30)]
    triangle = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    for repair in (False, True):
        with pytest.raises(MeshError, match="one side only") as caught:
            surface(device, RawMesh(vertex, triangle, None, None), repair=repair)
        assert "repair = true" not in str(caught.value)


def test_a_flat_sheet_of_two_sides_is_refused(device):
    corner = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])
    with pytest.raises(MeshError, match=r"without an area|no volume"):
        surface(device, RawMesh(corner, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]),
                                None, None))


# ------------------------------------------------------------------ files

FILES = {
    "empty.obj": (b"", "0 bytes"),
    "empty.stl": (b"", "0 bytes"),
    "text.obj": (b"Dear diary,\ntoday I modelled a vase.\n", "no triangles"),
    "text.ply": (b"Dear diary,\n", "cannot be read as PLY"),
    "text.stl": (b"Dear diary, today I modelled a vase.\n" * 4, "STL"),
    "text.glb": (b"Dear diary, today I modelled a vase.\n" * 4, "cannot be read as GLB"),
    "text.off": (b"Dear diary,\n", "cannot be read as OFF"),
    "points.obj": (b"v 0 0 0\nv 1 0 0\n", "no triangles"),
    "nan.obj": (b"v 0 0 0\nv 1 0 0\nv 0 nan 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n",
                "not finite, the first is number 3"),
    "inf.obj": (b"v 0 0 0\nv 1 0 0\nv 0 inf 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n",
                "not finite"),
    "outside.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 9\n",
                    "a face in line 4 that names vertex 9, but there are 3, counted from 1"),
    "backward.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -1 -2 -4\n", "line 4 that names vertex -4"),
    "zero.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\n\nf 0 1 2\n", "line 5 that names vertex 0"),
    "endless.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999999999999999\n", "line 4"),
    "word.obj": (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 a/1\n", "line 4 with a corner 'a/1'"),
    "vertex.obj": (b"v 0 0 0\nv 1 x 0\nv 0 1 0\nf 1 2 3\n", "line 2 says one, 'v 1 x 0'"),
    "plane.obj": (b"v 0 0\nv 1 0\nv 0 1\nf 1 2 3\n", "line 1 says one, 'v 0 0': it takes"),
    "short.ply": (b"ply\nformat binary_little_endian 1.0\nelement vertex 99999999999\n"
                  b"property float x\nproperty float y\nproperty float z\nelement face 1\n"
                  b"property list uchar int vertex_indices\nend_header\n\0\0", "cannot be read"),
    "huge.off": (b"OFF\n1000000000 3 0\n0 0 0\n", "cannot be read"),
    "scene.gltf": (b"{}", "GLB"),
    "mesh.fbx": (b"Kaydara", "no kind of mesh file"),
    "noise.usda": (b"#usda 1.0\n(((", "cannot be read as USD|usd-core"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_no_mesh_is_refused_with_a_sentence(tmp_path, name):
    content, says = FILES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(MeshError, match=says) as caught:
        read_raw_mesh(tmp_path / name)
    assert "Error" not in str(caught.value)


def test_vertices_counted_backward_are_those_before_the_face(device, tmp_path):
    raw = sphere()
    lines = []
    for a, b, c in raw.vertex[raw.triangle].tolist():
        lines += [f"v {x!r} {y!r} {z!r}" for x, y, z in (a, b, c)]
        lines += ["vt 0.5 0.25", "f -3/-1 -2/-1 -1/-1"]
    (tmp_path / "backward.obj").write_text("\n".join(lines) + "\n")
    made, report = surface(device, read_raw_mesh(tmp_path / "backward.obj"))
    assert np.array_equal(made.vertex[made.triangle],
                          (whole := surface(device, raw)[0]).vertex[whole.triangle])
    assert report.is_watertight and (made.uv == [0.5, 0.25]).all()


def test_a_folder_or_nothing_is_refused(tmp_path):
    (tmp_path / "folder.obj").mkdir()
    with pytest.raises(MeshError, match="folder"):
        read_raw_mesh(tmp_path / "folder.obj")
    with pytest.raises(FileNotFoundError):
        read_raw_mesh(tmp_path / "nothing.obj")


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=400), suffix=st.sampled_from(["obj", "ply", "stl", "glb", "off"]))
def test_any_bytes_end_in_a_mesh_or_a_sentence(tmp_path_factory, data, suffix):
    head = {"ply": b"ply\nformat ascii 1.0\n", "off": b"OFF\n", "glb": b"glTF\2\0\0\0",
            "stl": b"solid\n", "obj": b"v "}[suffix]
    path = tmp_path_factory.mktemp("any") / f"m.{suffix}"
    path.write_bytes(head + data)
    try:
        read_raw_mesh(path)
    except MeshError as error:
        assert len(str(error)) > 20


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl", "glb", "off"])
def test_every_format_gives_the_same_sphere(device, tmp_path, suffix):
    import trimesh

    raw = sphere()
    trimesh.Trimesh(raw.vertex, raw.triangle, process=False).export(tmp_path / f"s.{suffix}")
    made, report = surface(device, read_raw_mesh(tmp_path / f"s.{suffix}"))
    assert len(made.vertex) == len(raw.vertex)
    assert report.volume == pytest.approx(surface(device, raw)[1].volume, rel=1e-6)


@pytest.mark.parametrize(("padding", "says"), [
    (b"\n", "Ignored 1 byte behind"), (b"made by hand", "Ignored 12 bytes"),
    (bytes(4096), "Ignored 4,096 bytes"), (b"", "")])
def test_padding_behind_a_binary_stl_is_noted_and_left(device, tmp_path, padding, says):
    import trimesh

    raw, path = sphere(), tmp_path / "s.stl"
    whole = trimesh.Trimesh(raw.vertex, raw.triangle, process=False).export(file_type="stl")
    path.write_bytes(whole + padding)
    made, report = surface(device, read_raw_mesh(path))
    assert len(made.triangle) == len(raw.triangle)
    assert [note[:len(says)] for note in report.notes] == [says] * bool(says)
    # A file cut short, or with more triangles than it counts, is still damaged.
    for damaged in (whole[:-1], whole[:-50], whole + whole[84:284]):
        path.write_bytes(damaged)
        with pytest.raises(MeshError, match="cannot be read as STL"):
            read_raw_mesh(path)


_NAN_PLY = (b"ply\nformat ascii 1.0\nelement vertex 4\nproperty float x\nproperty float y\n"
            b"property float z\nelement face 4\nproperty list uchar int vertex_indices\n"
            b"end_header\n0 0 0\n1 0 0\n0 NaN 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n")
_NAN_STL = b"solid s\n" + b"".join(
    b"facet normal 0 0 0\nouter loop\nvertex " + b"\nvertex ".join(corners)
    + b"\nendloop\nendfacet\n" for corners in itertools.combinations(
        (b"0 0 0", b"1 0 0", b"0 nan 0", b"0 0 1"), 3)) + b"endsolid s\n"
_NAN_OFF = b"OFF\n4 4 0\n0 0 0\n1 0 0\n0 nan 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"


@pytest.mark.parametrize(("suffix", "content"), [
    ("ply", _NAN_PLY), ("stl", _NAN_STL), ("off", _NAN_OFF),
    ("stl", bytes(80) + (1).to_bytes(4, "little")
     + np.array([0, 0, 1, 0, 0, 0, 1, 0, 0, 0, np.nan, 0], "<f4").tobytes() + b"\0\0")])
def test_vertices_that_are_no_numbers_are_refused_in_every_format(tmp_path, suffix, content):
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(content)
    with pytest.raises(MeshError, match="not finite, the first is number"):
        read_raw_mesh(path)


def test_uv_and_normals_of_a_file_are_kept_at_the_corners(device, tmp_path):
    path = tmp_path / "m.obj"
    path.write_text("""mtllib ../../../etc/secret.mtl
v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1
vt 0 0\nvt 1 0\nvt 0 1\nvt 0.5 0.5
vn 0 0 -1\nvn 0 -1 0\nvn 1 1 1\nvn -1 0 0
f 1/1/1 3/3/1 2/2/1\nf 1/1/2 2/2/2 4/4/2\nf 2/4/3 3/3/3 4/1/3\nf 1/2/4 4/3/4 3/1/4
""")
    made, _ = surface(device, read_raw_mesh(path), anchor="origin")
    corner = made.vertex[made.triangle]
    face = np.flatnonzero((corner.sum(axis=2) > 0.9).all(axis=1))[0]
    assert made.normal[face] == pytest.approx(np.full((3, 3), 3**-0.5), abs=1e-6)
    at = {tuple(np.round(c, 6)): tuple(uv) for c, uv in zip(corner[face], made.uv[face],
                                                            strict=True)}
    assert at == {(1, 0, 0): (0.5, 0.5), (0, 1, 0): (0, 1), (0, 0, 1): (0, 0)}


def test_usd_is_read_with_its_unit_axis_and_uv(device, tmp_path):
    pytest.importorskip("pxr")
    (tmp_path / "m.usda").write_text('''#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
)
def Xform "top" {
    double3 xformOp:translate = (5, 0, 0)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    def Mesh "box" {
        uniform token subdivisionScheme = "none"
        int[] faceVertexCounts = [4, 4, 4, 4, 4, 4]
        int[] faceVertexIndices = [0,1,3,2, 4,6,7,5, 0,4,5,1, 2,3,7,6, 0,2,6,4, 1,5,7,3]
        point3f[] points = [(0,0,0),(0,0,3),(0,2,0),(0,2,3),(1,0,0),(1,0,3),(1,2,0),(1,2,3)]
        texCoord2f[] primvars:st = [(0,0),(0,1),(1,0),(1,1),(0,0),(0,1),(1,0),(1,1)] (
            interpolation = "vertex")
    }
}
''')
    made, report = surface(device, read_raw_mesh(tmp_path / "m.usda"))
    assert report.size == pytest.approx([0.01, 0.03, 0.02])
    assert report.volume == pytest.approx(6e-6)
    assert made.uv.max() == 1.0


def test_usd_that_scatters_copies_of_a_mesh_is_refused_and_not_read_as_one(tmp_path):
    pytest.importorskip("pxr")
    place, faces = _prism(_U)
    _write_polygons(tmp_path / "m.usda", place, faces)
    mesh = (tmp_path / "m.usda").read_text().split("def Mesh", 1)[1]
    (tmp_path / "n.usda").write_text(
        '#usda 1.0\ndef PointInstancer "Many" {\nrel prototypes = [</Many/m>]\n'
        "int[] protoIndices = [0, 0]\npoint3f[] positions = [(0, 0, 0), (5, 0, 0)]\n"
        f"def Mesh{mesh}}}\n")
    with pytest.raises(MeshError, match=r"point instancer, /Many, .* of their own"):
        read_raw_mesh(tmp_path / "n.usda")


def test_usd_that_needs_other_files_is_refused(tmp_path):
    pytest.importorskip("pxr")
    (tmp_path / "m.usda").write_text('#usda 1.0\ndef "a" (references = @/etc/other.usda@) {}\n')
    with pytest.raises(MeshError, match="other files"):
        read_raw_mesh(tmp_path / "m.usda")


@pytest.mark.parametrize(("settings", "size"), [
    ({"mesh_unit": "cm"}, (0.01, 0.02, 0.03)),
    ({"mesh_unit": "mm", "mesh_up": "z"}, (0.001, 0.003, 0.002)),
    ({"mesh_up": "x"}, (2.0, 1.0, 3.0)),
    ({"mesh_scale": 10.0}, (10.0, 20.0, 30.0)),
    ({"height": 0.3}, (0.15, 0.3, 0.45)),
])
def test_units_axes_and_height(settings, size):
    made, report = surface(open_device("cpu"), box((1.0, 2.0, 3.0)), **settings)
    assert report.size == pytest.approx(size)
    assert surface_volume(made) == pytest.approx(np.prod(size))


def test_the_anchor_is_the_origin():
    cpu = open_device("cpu")
    raw = box((1.0, 2.0, 3.0), center=(5.0, 6.0, 7.0))
    for anchor, low in (("center", (-0.5, -1.0, -1.5)), ("base", (-0.5, 0.0, -1.5)),
                        ("origin", (4.5, 5.0, 5.5))):
        made, _ = surface(cpu, raw, anchor=anchor)
        assert made.vertex.min(axis=0) == pytest.approx(low)


# ------------------------------------------------------------------ crossings and nesting

@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_crossings_are_those_of_every_pair_tested_by_itself(seed):
    rng = np.random.default_rng(seed)
    vertex = rng.random((60, 3))
    triangle = rng.permutation(60).reshape(-1, 3)
    _, number = find_crossings(open_device("cpu"), build_tree(vertex, triangle))
    expected = 0
    for i in range(len(triangle)):
        for j in range(i):
            expected += _cut(vertex[triangle[i]], vertex[triangle[j]])
    assert number == expected


def _cut(s, t):
    """Whether an edge of one triangle passes through the other, by solving for the point."""
    for one, other in ((s, t), (t, s)):
        for k in range(3):
            p, q = one[k], one[(k + 1) % 3]
            try:
                share, u, v = np.linalg.solve(
                    np.column_stack([p - q, other[1] - other[0], other[2] - other[0]]),
                    p - other[0])
            except np.linalg.LinAlgError:
                continue
            if 0 < share < 1 and u > 0 and v > 0 and u + v < 1:
                return True
    return False


@pytest.mark.warp
def test_winding_from_triangles_above_is_that_of_solid_angles(device):
    raw = joined(sphere(rings=8), flipped(box((0.5, 0.5, 0.5))))
    point = np.random.default_rng(3).uniform(-1.1, 1.1, (300, 3))
    which, _, turns = triangles_above(device, build_tree(raw.vertex, raw.triangle), point)
    winding = np.bincount(which, weights=turns, minlength=len(point))
    a, b, c = (raw.vertex[raw.triangle[:, k]] - point[:, None] for k in range(3))
    la, lb, lc = (np.linalg.norm(x, axis=2) for x in (a, b, c))
    solid = 2 * np.arctan2(
        np.einsum("pti,pti->pt", a, np.cross(b, c)),
        la * lb * lc + np.einsum("pti,pti->pt", a, b) * lc
        + np.einsum("pti,pti->pt", b, c) * la + np.einsum("pti,pti->pt", c, a) * lb)
    assert winding == pytest.approx(solid.sum(axis=1) / (4 * np.pi), abs=1e-6)


def test_films_that_enclose_nothing_are_dropped(device):
    # Two pairs of triangles back to back over one square, with other diagonals.
    corner = np.array([[3.0, 0.0, 0.0], [4.0, 0.0, 0.0], [4.0, 1.0, 0.0], [3.0, 1.0, 0.0]])
    film = RawMesh(corner, np.array([[0, 1, 2], [0, 2, 3], [0, 3, 1], [1, 3, 2]]), None, None)
    thread = dataclasses.replace(film, vertex=np.linspace([0.1, 3.0, 0.7], [0.9, 3.3, 0.2], 4))
    for part, turn in itertools.product((film, thread), (slice(None), slice(None, None, -1))):
        turned = dataclasses.replace(part, triangle=part.triangle[:, turn])
        made, report = surface(device, joined(box(), turned))
        assert len(made.triangle) == 12 and report.volume == pytest.approx(1.0)
        assert "Dropped 4 triangles of 1 shell with nothing inside." in report.notes


# ------------------------------------------------------------------ faces of many corners

#: The outline of a U from which corner to begin, so that a fan from there would fold.
_U = [(0, 0), (3, 0), (3, 3), (2, 3), (2, 1), (1, 1), (1, 3), (0, 3)]


def _prism(outline) -> tuple[list, list]:
    n = len(outline)
    place = [(x, 0.0, y) for x, y in outline] + [(x, 0.5, y) for x, y in outline]
    sides = [[i, n + i, n + (i + 1) % n, (i + 1) % n] for i in range(n)]
    return place, [list(range(n)), list(range(2 * n - 1, n - 1, -1)), *sides]


def _write_polygons(path, place, faces):
    rows = [" ".join(map(repr, map(float, p))) for p in place]
    lists = [" ".join(map(str, [len(face), *face])) for face in faces]
    head = (f"element vertex {len(place)}\nproperty float x\nproperty float y\nproperty float z\n"
            f"element face {len(faces)}\nproperty list uchar int vertex_indices\nend_header\n")
    match path.name:
        case "m.obj":
            path.write_text("".join(f"v {row}\n" for row in rows) + "".join(
                "f " + " ".join(str(i + 1) for i in face) + " # a side\n" for face in faces))
        case "m.off":
            path.write_text("\n".join([f"OFF {len(place)} {len(faces)} 0", *rows, *lists]))
        case "text.ply":
            path.write_text("\n".join([f"ply\nformat ascii 1.0\n{head.rstrip()}", *rows, *lists]))
        case "big.ply" | "little.ply":
            order = ">" if path.name == "big.ply" else "<"
            path.write_bytes(
                f"ply\nformat binary_{path.stem}_endian 1.0\n{head}".encode()
                + np.array(place, order + "f4").tobytes()
                + b"".join(bytes([len(face)]) + np.array(face, order + "i4").tobytes()
                           for face in faces))
        case "m.usda":
            path.write_text(
                '#usda 1.0\n(metersPerUnit = 1\nupAxis = "Y")\ndef Mesh "m" {\n'
                f"int[] faceVertexCounts = {[len(face) for face in faces]}\n"
                f"int[] faceVertexIndices = {[i for face in faces for i in face]}\n"
                f"point3f[] points = {[tuple(map(float, p)) for p in place]}\n}}\n")


@pytest.mark.parametrize("name", ["m.obj", "m.off", "text.ply", "big.ply", "little.ply", "m.usda"])
@pytest.mark.parametrize("turn", range(0, 8, 2))
def test_concave_faces_become_triangles_that_face_one_side(device, tmp_path, name, turn):
    if name == "m.usda":
        pytest.importorskip("pxr")
    outline = _U[turn:] + _U[:turn]
    _write_polygons(tmp_path / name, *_prism(outline))
    raw = read_raw_mesh(tmp_path / name)
    corner = raw.vertex[raw.triangle]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    top = normal[(corner[:, :, 1] == 0.5).all(axis=1)]
    assert len(top) == 6 and (top[:, 1] > 0.0).all()
    made, report = surface(device, raw)
    assert surface_volume(made) == pytest.approx(3.5) and report.triangles == 28


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_obj_text_of_any_system_is_read(tmp_path, ending, mark):
    place, faces = _prism(_U)
    _write_polygons(tmp_path / "m.obj", place, faces)
    data = (tmp_path / "m.obj").read_bytes()
    (tmp_path / "m.obj").write_bytes(mark + data.replace(b"\n", ending))
    assert len(read_raw_mesh(tmp_path / "m.obj").triangle) == 28


@pytest.mark.parametrize("change", [
    lambda text: text.replace(" ", "\t"), lambda text: text.replace("\n", "\n\t "),
    lambda text: " \t" + text, lambda text: text.replace(" ", " \t ").replace("\n", " \n"),
    lambda text: text.replace(" 3 ", " \\\t\n\t3 ")])
def test_words_of_obj_text_are_parted_by_spaces_or_tabs(tmp_path, change):
    place, faces = _prism(_U)
    _write_polygons(tmp_path / "m.obj", place, faces)
    plain = read_raw_mesh(tmp_path / "m.obj")
    (tmp_path / "n.obj").write_text(change((tmp_path / "m.obj").read_text()))
    changed = read_raw_mesh(tmp_path / "n.obj")
    assert np.array_equal(changed.vertex[changed.triangle], plain.vertex[plain.triangle])


def test_ply_keeps_normals_and_the_uv_of_vertices_or_corners(tmp_path):
    head = ("ply\nformat ascii 1.0\ncomment made by hand\nelement vertex 4\n"
            + "".join(f"property float {axis}\n" for axis in ("x", "y", "z", "nx", "ny", "nz", "s",
                                                               "t")))
    rows = "".join(f"{x} {y} 0 0 0 1 {x} {y}\n" for x, y in ((0, 0), (1, 0), (1, 1), (0, 1)))
    path = tmp_path / "m.ply"
    path.write_text(head + "element face 1\nproperty list uchar int vertex_index\nend_header\n"
                    + rows + "4 0 1 2 3\n")
    raw = read_raw_mesh(path)
    assert np.array_equal(raw.uv, raw.vertex[raw.triangle][:, :, :2])
    assert (raw.normal == [0.0, 0.0, 1.0]).all()
    path.write_text(head + "element face 1\nproperty list uchar int vertex_index\n"
                    "property list uchar float texcoord\nend_header\n" + rows
                    + "4 0 1 2 3 8 5 0 6 0 6 1 5 1\n")
    raw = read_raw_mesh(path)
    assert np.array_equal(raw.uv, raw.vertex[raw.triangle][:, :, :2] + [5.0, 0.0])


def test_ply_with_tables_and_lists_that_lie_is_refused_at_once(tmp_path):
    path = tmp_path / "m.ply"
    head = b"ply\nformat binary_little_endian 1.0\nelement nothing 2000000000\n"
    face = b"element face 2000000000\nproperty list char int vertex_indices\nend_header\n"
    for counts in (b"\xff", b"\x7f", b"\x03"):
        path.write_bytes(head + face + counts + b"abc" * 100)
        with pytest.raises(MeshError, match="cannot be read as PLY"):
            read_raw_mesh(path)


def test_a_mesh_with_both_sides_of_every_face_is_told_so(device):
    raw = joined(sphere(), flipped(sphere()))
    with pytest.raises(MeshError, match="every face twice"):
        surface(device, raw)
