"""Files that are damaged, lie or are strange end in a sentence at once, and silently otherwise."""

from __future__ import annotations

import dataclasses
import json
import logging
import struct
import warnings
from pathlib import Path

import numpy as np
import pytest

from tests.geometry.meshes import box
from vfx.geometry.handoff.mesh_error import MeshError
from vfx.geometry.inside.crossings import build_tree, find_crossings
from vfx.geometry.mesh.files import placed, read_raw_mesh
from vfx.geometry.mesh.polygons import cut_ears, polygon_corners

BOX = box()


def stl_text(raw) -> str:
    facets = ("facet normal 0 0 0\nouter loop\n"
              + "".join(f"vertex {x!r} {y!r} {z!r}\n" for x, y, z in corner)
              + "endloop\nendfacet\n" for corner in raw.vertex[raw.triangle].tolist())
    return "solid a solid\n" + "".join(facets) + "endsolid a solid\n"


def glb(change=lambda document: None) -> bytes:
    """Return a box as a GLB file, changed."""
    place, index = BOX.vertex.astype("<f4").tobytes(), BOX.triangle.astype("<u4").tobytes()
    document = {
        "asset": {"version": "2.0"}, "scene": 0, "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 8, "type": "VEC3"},
                      {"bufferView": 1, "componentType": 5125, "count": 36, "type": "SCALAR"}],
        "bufferViews": [{"buffer": 0, "byteLength": len(place)},
                        {"buffer": 0, "byteOffset": len(place), "byteLength": len(index)}],
        "buffers": [{"byteLength": len(place) + len(index)}]}
    change(document)
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    data = place + index
    return (struct.pack("<4sII", b"glTF", 2, 28 + len(text) + len(data))
            + struct.pack("<I4s", len(text), b"JSON") + text
            + struct.pack("<I4s", len(data), b"BIN\0") + data)


def read(folder, name: str, content: str | bytes):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_raw_mesh(path)


# ------------------------------------------------------------------ STL

@pytest.mark.parametrize("change", [
    lambda text: text, str.upper, lambda text: text.replace("\n", "\r\n"),
    lambda text: text.replace("\n", "\n\t "), lambda text: text.replace("0 0 0", "-nan x 0"),
    lambda text: text + text.replace("a solid", "facet"),
    lambda text: "solid " + "x" * 10**6 + text[5:]])
def test_text_stl_is_read_as_written(tmp_path, change):
    raw = read(tmp_path, "m.stl", change(stl_text(BOX)))
    corner = raw.vertex[raw.triangle]
    assert np.array_equal(corner[:12], BOX.vertex[BOX.triangle]) and len(corner) in (12, 24)


@pytest.mark.parametrize("spoil", [
    lambda text: text[:-30], lambda text: text[:700], lambda text: text.replace("endsolid", ""),
    lambda text: text.replace("0.5", "0.S", 1),
    lambda text: text.replace("endloop", "end", 1),
    lambda text: text.replace("vertex", "vertex 1", 1),
    lambda text: text.replace("facet normal 0 0 0", "facet normal 0 0", 1),
    lambda text: text.replace("outer loop", "", 1),
    lambda text: text.replace("vertex", "vertex " + "9" * 10**6 + "x", 1),
    lambda text: text + "facet", lambda text: text + text[:200],
    lambda text: "solid\n" + text])
def test_damaged_text_stl_is_refused_in_a_sentence_and_nothing_else(
    tmp_path, capfd, caplog, spoil
):
    caplog.set_level(logging.DEBUG)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MeshError, match="damaged") as caught:
            read(tmp_path, "m.stl", spoil(stl_text(BOX)))
    assert len(str(caught.value)) < 400
    assert not caplog.records and capfd.readouterr() == ("", "")


# ------------------------------------------------------------------ GLB

def test_glb_is_placed_by_its_nodes(tmp_path):
    def change(document):
        document["nodes"] = [
            {"children": [1, 2], "translation": [0, 0, 5]},
            {"mesh": 0, "scale": [-2, 1, 1]},
            {"mesh": 0, "matrix": [0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 10, 0, 0, 1]}]

    raw = read(tmp_path, "m.glb", glb(change))
    corner = raw.vertex[raw.triangle]
    volume = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6
    assert volume[:12].sum() == pytest.approx(2.0) and volume[12:].sum() == pytest.approx(1.0)
    assert raw.vertex[:8, 2].mean() == pytest.approx(BOX.vertex[:, 2].mean() + 5.0)
    assert raw.vertex[8:, 0].mean() == pytest.approx(10.0 - BOX.vertex[:, 1].mean())


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38])
def test_places_that_are_no_numbers_are_moved_silently(value):
    """They are refused when all of the file is read; until then nothing is said of them."""
    vertex = BOX.vertex.copy()
    vertex[2, 1] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        moved = placed(dataclasses.replace(BOX, vertex=vertex), np.diag([1e300, 0.0, 2.0, 1.0]))
    assert len(moved.vertex) == len(vertex)


def test_sparse_places_replace_those_they_name(tmp_path):
    def change(document):
        # The first index of the mesh's own is that of the place that is replaced, by the last.
        document["accessors"][0]["sparse"] = {
            "count": 1, "indices": {"bufferView": 1, "componentType": 5125},
            "values": {"bufferView": 0, "byteOffset": 84}}

    raw = read(tmp_path, "m.glb", glb(change))
    expected = BOX.vertex.copy()
    expected[BOX.triangle[0, 0]] = BOX.vertex[7]
    assert np.array_equal(raw.vertex, expected)


def _nested(document):
    n = 20_000
    document["nodes"] = [{"children": [k + 1], "mesh": 0, "translation": [2, 0, 0]}
                         for k in range(n - 1)] + [{"mesh": 0}]


def test_nodes_may_be_nested_deeply(tmp_path):
    assert len(read(tmp_path, "m.glb", glb(_nested)).triangle) == 20_000 * 12


@pytest.mark.parametrize(("change", "says"), [
    (lambda d: d.update(nodes=[{"mesh": 0, "children": [0]}]), "part of itself"),
    (lambda d: d.update(nodes=[{"mesh": 0, "children": [1]}, {"children": [0]}]), "part of itself"),
    (lambda d: d.update(nodes=[{}] * 100_001), "100,001 nodes, over the 100,000"),
    (lambda d: d["nodes"][0].update(mesh=-1), "cannot be read"),
    (lambda d: d["nodes"][0].update(matrix=[1]), "cannot be read"),
    (lambda d: d["accessors"][0].update(count=10**9), "cannot be read"),
    (lambda d: d["accessors"][0].update(count=9), "cannot be read"),
    (lambda d: d["accessors"][0].update(count=8.0), "cannot be read"),
    (lambda d: d["accessors"][0].pop("bufferView") or d["accessors"][0].update(count=10**12),
     "cannot be read"),
    (lambda d: d["accessors"][1].update(count=35), "cannot be read"),
    (lambda d: d["accessors"][1].update(bufferView=0, count=24), "names vertex"),
    (lambda d: d["bufferViews"][0].update(byteLength=10**12), "cannot be read"),
    (lambda d: d["bufferViews"][0].update(byteOffset=-4), "cannot be read"),
    (lambda d: d["bufferViews"][0].update(byteStride=0), "cannot be read"),
    (lambda d: d["buffers"][0].update(byteLength=10**12), "cannot be read"),
    (lambda d: d["buffers"][0].update(uri="/etc/passwd"), "another file, '/etc/passwd'"),
    (lambda d: d.update(extensionsRequired=["KHR_draco_mesh_compression"]), "without compression"),
    (lambda d: d["meshes"][0]["primitives"][0].update(mode=1), "no triangles"),
    (lambda d: d["meshes"].append({"primitives": [{}] * 100_001}), "100,002 parts"),
])
def test_glb_that_lies_is_refused_at_once(tmp_path, change, says):
    with pytest.raises(MeshError, match=says):
        read(tmp_path, "m.glb", glb(change))


def test_glb_cut_short_anywhere_is_refused(tmp_path):
    whole = glb()
    for n in (4, 12, 19, 40, len(whole) - 100, len(whole) - 1):
        with pytest.raises(MeshError):
            read(tmp_path, "m.glb", whole[:n])


# ------------------------------------------------------------------ OBJ

@pytest.mark.parametrize("word", ["g", "o", "usemtl", "s"])
def test_groups_and_materials_part_nothing(tmp_path, word):
    lines = []
    for k in range(2_000):
        lines += [f"{word} {k}", *(f"v {x + 2 * k!r} {y!r} {z!r}"
                                   for x, y, z in BOX.vertex.tolist())]
        lines += ["f " + " ".join(str(i - 8) for i in face) for face in BOX.triangle.tolist()]
    raw = read(tmp_path, "m.obj", "\n".join(lines))
    assert raw.triangle.shape == (24_000, 3) and raw.vertex.shape == (16_000, 3)
    assert np.array_equal(raw.triangle[12:24], BOX.triangle + 8)


def test_corners_may_name_some_or_all_of_place_uv_and_normal(tmp_path):
    places = "".join(f"v {x} {y} {z} 0.5 0.5 0.5\n" for x, y, z in BOX.vertex.tolist())
    more = "vt 0.25 0.5 0\nvn 0 1 0\n"
    for corner, has_uv, has_normal in (
            ("{}", False, False), ("{}/1", True, False), ("{}//1", False, True),
            ("{}/1/1", True, True), ("{}/-1/-1", True, True), ("{}/", False, False),
            ("{}/9/9", False, False)):
        faces = "".join("f " + " ".join(corner.format(i + 1) for i in face) + "\n"
                        for face in BOX.triangle.tolist())
        raw = read(tmp_path, "m.obj", places + more + faces)
        assert np.array_equal(raw.vertex[raw.triangle], BOX.vertex[BOX.triangle])
        assert (raw.uv is not None, raw.normal is not None) == (has_uv, has_normal)
        assert raw.uv is None or (raw.uv == [0.25, 0.5]).all()


@pytest.mark.parametrize(("line", "says"), [
    ("v 1 2", "line 9 says one, 'v 1 2'"), ("v 1 2 3,5", "'v 1 2 3,5'"),
    ("f 1 2 3.0", "line 9 with a corner '3.0'"), ("f 1 2 1/2/3/4", "corner '1/2/3/4'"),
    ("f 1 2 " + "9" * 10**6, "line 9"), ("f 1 2 9", "line 9 that names vertex 9"),
    ("f -9 2 3", "line 9 that names vertex -9"), ("v " + "x" * 10**6, "line 9")])
def test_a_wrong_line_of_obj_is_named(tmp_path, line, says):
    places = "".join(f"v {x} {y} {z}\n" for x, y, z in BOX.vertex.tolist())
    with pytest.raises(MeshError, match=says) as caught:
        read(tmp_path, "m.obj", f"{places}{line}\nf 1 2 3\n")
    assert len(str(caught.value)) < 300


# ------------------------------------------------------------------ faces of many corners

def _star(n: int) -> np.ndarray:
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    radius = np.where(np.arange(n) % 2, 1.0, 0.7)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle), 0.0 * angle])


def _area(point, triangle):
    at = point[triangle]
    return 0.5 * np.cross(at[:, 1] - at[:, 0], at[:, 2] - at[:, 0])[:, 2]


@pytest.mark.parametrize("n", [8, 40, 2_000])
def test_ears_cover_a_star_once(n):
    point = _star(n)
    area = _area(point, cut_ears(point))
    x, y = point[:, 0], point[:, 1]
    whole = 0.5 * float((x * np.roll(y, -1) - y * np.roll(x, -1)).sum())
    assert (area > -1e-12).all() and area.sum() == pytest.approx(whole)


def test_arrows_and_other_faces_seen_from_one_corner_are_cut_from_there():
    arrow = np.array([[0.0, 0, 0], [1, -1, 0], [0, 2, 0], [-1, -1, 0]])
    for turn in range(4):
        point = np.roll(arrow, turn, axis=0)
        corner = polygon_corners(point, np.arange(4), np.array([4]))
        assert (_area(point, corner) > 0.0).all()


def test_a_concave_face_of_too_many_corners_is_refused():
    point = _star(20_002)
    with pytest.raises(MeshError, match=r"face of 20,002 corners .* triangulate"):
        polygon_corners(point, np.arange(len(point)), np.array([len(point)]))


# ------------------------------------------------------------------ much over each other

def test_fans_of_very_many_triangles_are_refused_before_they_are_compared(device):
    n = 60_000
    angle = np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    vertex = np.concatenate([[[0.0, 0.0, 0.0]], np.column_stack(
        [np.cos(angle), np.sin(angle), 0.0 * angle])])
    rim = np.arange(n)
    fan = np.column_stack([np.zeros(n, int), 1 + rim, 1 + (rim + 1) % n])
    with pytest.raises(MeshError, match="60,000 triangles so long and thin"):
        find_crossings(device, build_tree(vertex, fan))


def test_ply_and_off_with_counts_that_lie_are_refused_at_once(tmp_path):
    for content in ("OFF\n1000000000000 1000000000000 0\n0 0 0\n",
                    "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n1000000000000 0 1 2\n",
                    "OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n-3 0 1 2\n"):
        with pytest.raises(MeshError):
            read(tmp_path, "m.off", content)


@pytest.mark.parametrize(("extra", "n_notes"), [("", 0), ('def "l" (inherits = </l/l>) {}\n', 1)])
def test_what_the_usd_library_would_print_is_a_note(tmp_path, capfd, extra, n_notes):
    pytest.importorskip("pxr")
    raw = read(tmp_path, "m.usda", '#usda 1.0\ndef Mesh "m" {\nint[] faceVertexCounts = [3]\n'
               "int[] faceVertexIndices = [0, 1, 2]\nuniform token subdivisionScheme = \"none\"\n"
               f"point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0)]\n}}\n{extra}")
    assert len(raw.triangle) == 1 and len(raw.notes) == n_notes
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("number", ["nan", "inf", "1e308", "-1e300"])
def test_vertices_of_ply_faces_that_are_no_numbers_are_refused(tmp_path, number):
    path = tmp_path / "a.ply"
    path.write_text("ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\n"
                    "property float z\nelement face 1\nproperty list uchar double vertex_indices\n"
                    f"end_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 {number}\n")
    with pytest.raises(MeshError):
        read_raw_mesh(path)


def test_a_crate_that_kills_its_reader_is_refused_by_the_one_that_lives(tmp_path, monkeypatch):
    """Of some damage the library ends the process; another one tries the file first."""
    usd_files = pytest.importorskip("vfx.geometry.handoff.usd_files")
    pytest.importorskip("pxr")
    path = tmp_path / "mesh.usda"
    path.write_text("#usda 1.0\n")
    monkeypatch.setattr(usd_files, "_READ_ALL", "import os; os.abort()")
    with pytest.raises(MeshError, match="cannot be read as USD"):
        read_raw_mesh(path)


def test_a_signalling_nan_is_read_without_a_warning(tmp_path: Path) -> None:
    """To turn one into a double is an invalid operation."""
    place = np.zeros((3, 3), "<f4")
    place.view("<u4")[1, 1] = 0x7FA00000
    path = tmp_path / "mesh.stl"
    path.write_bytes(bytes(80) + struct.pack("<I", 1) + bytes(12) + place.tobytes() + bytes(2))
    with pytest.raises(MeshError, match="not finite"):
        read_raw_mesh(path)
