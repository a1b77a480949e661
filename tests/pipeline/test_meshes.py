"""Meshes in a shot: reported by check, refused with exit code 2, and part of the fingerprint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.geometry.meshes import box, flipped, joined, sphere, without, write_obj

SHOT = """
[shot]
frames = "1001-1001"
[[bodies]]
name = "thing"
material = "clay"
mesh = "thing.obj"
shape = "grid"
height = 0.2
elements = 500
center = [0.0, 0.5, 0.0]
[materials.clay]
strain_limit = 1e-2
[sim]
timestep = "auto"
[render]
resolution = [32, 32]
samples = 1
"""


@pytest.fixture
def shot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shots").mkdir()
    path = tmp_path / "shots" / "thing.toml"
    path.write_text(SHOT)
    write_obj(path.with_name("thing.obj"), sphere(3.0))
    return path


def test_check_and_geometry_print_the_report_on_a_mesh(vfx, shot):
    checked = vfx("check", shot)
    assert checked.exit_code == 0, checked.output
    assert "528 triangles, 0.2 x 0.2 x 0.2 m, watertight" in checked.output
    built = vfx("stage", "geometry", shot, "--device", "cpu")
    assert built.exit_code == 0, built.output
    assert "geometry: thing: 528 triangles" in built.output
    assert "cubes of" in built.output


BAD = {
    "open": (lambda: without(sphere(), 3), "is open: a hole"),
    "inside out": (lambda: flipped(sphere()), "inside out"),
    "flipped": (lambda: flipped(sphere(), slice(3, 9)), "flipped"),
    "self-intersecting": (lambda: joined(box(), box(center=(0.4, 0.4, 0.4))), "cuts through"),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", [("check",), ("run", "--dry-run"), ("stage", "geometry")])
def test_bad_meshes_end_in_a_sentence_and_exit_code_2(vfx, shot, name, command):
    make, says = BAD[name]
    write_obj(shot.with_name("thing.obj"), make())
    result = vfx(*command, shot)
    assert result.exit_code == 2
    assert says in result.output and "bodies[1].mesh" in result.output
    assert "repair = true" in result.output
    assert not Path("work").exists()


@pytest.mark.parametrize(("content", "says"), [
    (b"", "0 bytes"), (b"no mesh at all\n", "no triangles"),
    (b"v 0 0 0\nv 1 0 0\nv 0 nan 0\nf 1 2 3\n", "not finite"),
    (b"\x93\0\xff\xfe" * 500, "is no text, as OBJ files are"),
])
def test_files_that_are_no_meshes_end_in_exit_code_2(vfx, shot, content, says):
    shot.with_name("thing.obj").write_bytes(content)
    result = vfx("check", shot)
    assert result.exit_code == 2 and says in result.output


def test_a_folder_with_the_name_of_a_mesh_ends_in_exit_code_2(vfx, shot):
    shot.with_name("thing.obj").unlink()
    shot.with_name("thing.obj").mkdir()
    result = vfx("check", shot)
    assert result.exit_code == 2 and "is a folder; give a mesh file" in result.output


def test_a_mesh_that_may_not_be_read_ends_in_exit_code_3(vfx, shot, monkeypatch):
    def refused(path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", lambda path, real=Path.read_bytes: (
        refused(path) if path.suffix == ".obj" else real(path)))
    result = vfx("check", shot)
    assert result.exit_code == 3
    assert "thing.obj: cannot be read (Permission denied); give yourself" in result.output


def test_too_few_tetrahedra_are_refused_with_the_least_number(vfx, shot):
    shot.write_text(SHOT.replace("elements = 500", "elements = 2").replace("grid", "tet-shell"))
    result = vfx("check", shot)
    assert result.exit_code == 2
    assert "bodies[1].elements: found 2, but layers of tetrahedra take at least 50" in result.output


TWIN = """
[[bodies]]
name = "twin"
material = "clay"
mesh = "thing.obj"
height = 0.2
elements = 500
center = [{x}, 0.5, 0.0]
"""
BALL = """
[[projectiles]]
radius = 0.02
position = [0.0, {y}, 0.0]
velocity = [0.0, -1.0, 0.0]
stiffness = 1e9
"""


@pytest.mark.parametrize(("more", "says"), [
    (TWIN.format(x=0.19), "bodies 'thing' and 'twin' overlap at rest"),
    (TWIN.format(x=0.21), ""),
    (BALL.format(y=0.5), "m deep in body 'thing' and bursts it"),
    (BALL.format(y=0.6), "projectiles[1] begins 0.02 m deep in body 'thing'"),
    (BALL.format(y=0.622), ""),
    (BALL.format(y=0.612).replace("1e9", "1e15"), "within the 1.5 radii in which it pushes, and"),
    (BALL.format(y=0.622).replace("1e9", "1e15"), ""),
    ("[[regions]]\nfixed = true\nshape = 'sphere'\ncenter = [0, 0.5, 0]\nradius = 1e-3\n",
     "regions[1] may hold no element, and then does nothing"),
    ("[[regions]]\nfixed = true\nsize = [0.1, 0.1, 0.1]\ncenter = [0, 0.5, 0]\n", ""),
    ("[[colliders]]\nshape = 'sphere'\nposition = [0, 0.5, 0]\n",
     "m deep in colliders[1], which tears at what is there; move one of them"),
    ("[[colliders]]\nshape = 'box'\nkeys = [[-1, 9, 9, 9], [1, -9, -8, -9]]\n",
     "body 'thing' begins"),
    ("[[colliders]]\nshape = 'box'\nposition = [0, 0.35, 0]\nsize = [0.1, 0.1, 0.1]\n", ""),
    ("[[colliders]]\nnormal = [0, -3, 0]\n", "m deep behind colliders[1], which tears at what is "
     "there; turn its normal round, or move one of them"),
    ("[[colliders]]\nposition = [0, 0.4, 0]\n", ""),
    (BALL.format(y=-0.1) + "mass = 0.1\n", "projectiles[1] begins with its centre below the floor"),
    (BALL.format(y=-0.1), ""),
    (BALL.format(y=0.8) + "mass = 1\n[[colliders]]\nshape = 'sphere'\nposition = [0, 0.8, 0]\n",
     "projectiles[1] begins in colliders[1]"),
])
def test_check_warns_of_what_begins_inside_of_something(vfx, shot, more, says):
    camera = "[camera]\nposition = [0.0, 0.5, 2.0]\ntarget = [0.0, 0.5, 0.0]\n"
    shot.write_text(SHOT + more + camera)
    result = vfx("check", shot)
    # Few elements are divided for real, and what geometry would refuse is refused.
    assert result.exit_code == (2 if "bodies 'thing' and" in says else 0), result.output
    assert says in result.output
    assert ("warning" in result.output) == bool(says)
    assert ("all well" in result.output) != bool(says)


def test_names_in_an_old_encoding_do_not_matter(vfx, shot):
    mesh = shot.with_name("thing.obj")
    mesh.write_bytes("o K\u00f6rper\n".encode("latin-1") + mesh.read_bytes())
    result = vfx("check", shot)
    assert result.exit_code == 0, result.output
    assert "528 triangles" in result.output


@pytest.mark.parametrize("count", [500, 5000])
def test_a_sheet_is_refused_as_a_shell(vfx, shot, count):
    write_obj(shot.with_name("thing.obj"), box((1.0, 1e-3, 1.0)))
    shot.write_text(SHOT.replace("height = 0.2\n", "").replace("grid", "tet-shell")
                    .replace("elements = 500", f"elements = {count}"))
    result = vfx("stage", "geometry", shot, "--device", "cpu")
    assert result.exit_code == 2
    assert "is too thin for" in result.output and 'shape = "voronoi"' in result.output


@pytest.mark.parametrize(("shape", "thick", "says"), [
    ("grid", 1e-2, "probably too thin for cubes"),
    ("tet-shell", 6e-3, "probably too thin for layers of tetrahedra"),
    ("voronoi", 1e-7, "body 'thing' is too thin to be divided: 1e-07 m on average; make it"),
    ("voronoi", 1e-3, "which is thinner than an element"),
    ("voronoi", 0.1, ""), ("grid", 0.2, ""), ("tet-shell", 0.1, "")])
def test_check_tells_of_a_plate_what_geometry_would(vfx, shot, shape, thick, says):
    write_obj(shot.with_name("thing.obj"), box((1.0, thick, 1.0)))
    camera = "[camera]\nposition = [0.0, 5.0, 5.0]\ntarget = [0.0, 5.0, 0.0]\n"
    shot.write_text(SHOT.replace("height = 0.2\n", "").replace("grid", shape)
                    .replace("center = [0.0, 0.5, 0.0]", "center = [0.0, 5.0, 0.0]") + camera)
    result = vfx("check", shot)
    assert says in result.output
    assert ("all well" in result.output) != bool(says)
    built = vfx("stage", "geometry", shot, "--device", "cpu")
    is_refused = says and "thinner than an element" not in says
    assert built.exit_code == result.exit_code == (2 if is_refused else 0), result.output
    assert built.stderr == result.stderr


def test_a_missing_mesh_ends_in_exit_code_3(vfx, shot):
    shot.with_name("thing.obj").unlink()
    for command in (("check",), ("stage", "geometry")):
        result = vfx(*command, shot)
        assert result.exit_code == 3 and "no such file" in result.output
    assert vfx("status", shot).exit_code == 0, "which reads no mesh"


def test_the_report_on_a_refused_mesh_is_printed(vfx, shot):
    write_obj(shot.with_name("thing.obj"), without(sphere(), 3, 200))
    output = vfx("check", shot).output
    assert "mesh        526 triangles" in output and "not watertight" in output
    assert output.count("hole of 3 edges") == 2


def test_repair_makes_a_solid_of_an_open_mesh(vfx, shot):
    write_obj(shot.with_name("thing.obj"), without(sphere(), 3))
    shot.write_text(SHOT.replace("height = 0.2", "height = 0.2\nrepair = true"))
    result = vfx("stage", "geometry", shot, "--device", "cpu")
    assert result.exit_code == 0 and "Closed 1 hole" in result.output


def test_what_is_in_the_mesh_decides_whether_a_solid_is_stale(vfx, shot):
    assert vfx("stage", "geometry", shot, "--device", "cpu").exit_code == 0
    assert "up to date" in vfx("stage", "geometry", shot, "--device", "cpu").output
    # Elsewhere, but the same: nothing to do.
    moved = shot.with_name("elsewhere.obj")
    shot.with_name("thing.obj").rename(moved)
    shot.write_text(SHOT.replace("thing.obj", "elsewhere.obj"))
    assert "up to date" in vfx("stage", "geometry", shot, "--device", "cpu").output
    write_obj(moved, sphere(3.0, rings=14))
    assert "stale" in vfx("status", shot).output
    assert "cubes of" in vfx("stage", "geometry", shot, "--device", "cpu").output


def test_a_shot_says_all_that_does_not_go_together(vfx, shot):
    shot.write_text(SHOT.replace("elements = 500", "elements = 500\nspacing = 0.01\n"
                                 "mesh_scale = 2.0\ngrading_deviation = 0.1"))
    output = vfx("check", shot).output
    for says in ("bodies[1].elements", "bodies[1].height", "bodies[1].grading_deviation"):
        assert says in output
    shot.write_text(SHOT.replace("thing.obj", "asset:vace"))
    result = vfx("check", shot)
    assert result.exit_code == 2 and "did you mean 'asset:vase'?" in result.output


def test_an_asset_is_written_as_a_mesh_that_can_be_read(vfx, tmp_path, monkeypatch):
    from vfx.geometry.assets.catalog import make_asset
    from vfx.geometry.mesh.files import read_raw_mesh

    monkeypatch.chdir(tmp_path)
    assert vfx("asset", "bowl", "bowl.obj").exit_code == 0
    raw, made = read_raw_mesh(tmp_path / "bowl.obj"), make_asset("bowl")
    assert len(raw.triangle) == len(made.triangle) and raw.uv is not None
    assert np.abs(raw.vertex.max(axis=0) - made.vertex.max(axis=0)).max() < 1e-8
    for words, code in ((("bowl", "bowl.obj"), 2), (("bowll", "b.obj"), 2), (("mug", "m.stl"), 2)):
        assert vfx("asset", *words).exit_code == code


def test_a_mesh_goes_through_all_stages(vfx, shot):
    result = vfx("run", shot, "--device", "cpu")
    assert result.exit_code == 0, result.output
    assert (Path("work") / "thing" / "render" / "thing.1001.exr").is_file()


@pytest.mark.parametrize("place", ["center = [0.0, 0.5, 0.0]\nradius = 1e-9",
                                   "center = [0.11, 0.5, 0.11]\nradius = 0.06"])
def test_a_region_that_check_lets_pass_stops_no_run(vfx, shot, place):
    shot.write_text(SHOT + f"[[regions]]\nfixed = true\nshape = 'sphere'\n{place}\n")
    assert vfx("check", shot).exit_code == 0
    for stage in ("geometry", "sim"):
        result = vfx("stage", stage, shot, "--device", "cpu", "--frames", "1001")
        assert result.exit_code == 0, result.output
    assert "warning: sim: regions[1]: holds no element of any body" in result.output


def test_a_region_surely_beside_a_mesh_is_refused(vfx, shot):
    shot.write_text(SHOT + "[[regions]]\nfixed = true\nshape = 'sphere'\nradius = 0.01\n"
                    "center = [0.095, 0.595, 0.095]\n")
    result = vfx("check", shot)
    assert result.exit_code == 2 and "regions[1]: holds no element of any body" in result.output


@pytest.mark.parametrize("body", [
    "box = [0.1, 0.2, 0.01]\nspacing = 0.1", "box = [1.0, 1e-3, 1.0]\nelements = 300",
    "mesh = 'asset:vase'\nheight = 0.3\nelements = 300"])
def test_layers_too_wide_for_any_body_are_foretold(vfx, shot, body):
    head, tail = SHOT.split('mesh = "thing.obj"')
    shot.write_text(head + f'shape = "tet-shell"\n{body}\n' + tail[tail.index("center"):])
    result = vfx("check", shot)
    assert result.exit_code == 2 and "probably too thin for layers" in result.output
    assert vfx("stage", "geometry", shot, "--device", "cpu").exit_code == 2


def test_check_refuses_what_geometry_would_find_too_thin(vfx, shot):
    """Of few elements it shows only when they are made, so check makes them."""
    shot.write_text(SHOT.replace('"thing.obj"', '"asset:vase"').replace('"grid"', '"tet-shell"')
                    .replace("elements = 500", "elements = 200"))
    checked, built = vfx("check", shot), vfx("stage", "geometry", shot, "--device", "cpu")
    assert checked.exit_code == built.exit_code == 2
    sentence = "body 'thing' is too thin for tetrahedra"
    assert sentence in checked.output and sentence in built.output


@pytest.mark.parametrize("suffix, text", [
    ("obj", "v 0 0 0\nf 1 2 4\x1b[31mf\n"), ("obj", "v 0 0 \x07\n"),
    ("off", "OFF\n1 1 0\n\x1b[2J\n"),
    ("ply", "ply\nformat ascii 1.0\nelement \x1b[2J 3\nend_header\n"),
    ("stl", "solid a\nfacet \x1b[2J\nendsolid\n")])
def test_words_of_a_mesh_cannot_move_the_cursor(vfx, shot, suffix, text):
    shot.write_text(SHOT.replace("thing.obj", f"odd.{suffix}"))
    shot.with_name(f"odd.{suffix}").write_text(text)
    result = vfx("check", shot)
    assert result.exit_code == 2
    assert result.output and all(
        letter.isprintable() or letter == "\n" for letter in result.output)
