"""What goes to comp was read whole; and another program reads the same from it."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR
import OpenImageIO
import pytest
from click.testing import CliRunner
from small_plate import plate_shot

from vfx.pipeline.cli.commands import main
from vfx.pipeline.stages.render import SEAL
from vfx.pipeline.work.seal import BLANK_SEAL, set_seal
from vfx.raytrace.film.exr import read_exr

SHOT = plate_shot("1001-1003", steps=200, resolution=(40, 24), side=12)


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("comp")
    (folder / "plate.toml").write_text(SHOT)
    result = CliRunner().invoke(main, ["run", str(folder / "plate.toml"), "--work",
                                       str(folder / "work"), "--device", "cpu"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def shot(rendered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rendered shot of one's own, to do harm to."""
    shutil.copytree(rendered / "work", tmp_path / "work/plate")
    shutil.copy(rendered / "plate.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "plate.toml"


def handoff() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(Path("work/plate/comp/handoff.json").read_text())
    return document


def rewrite(path: Path, channels: dict[str, Any], header: dict[str, Any]) -> None:
    """Write a picture anew that vouches for itself."""
    OpenEXR.File({**header, SEAL: BLANK_SEAL}, channels).write(str(path))
    set_seal(path)


def test_an_independent_reader_finds_what_the_manifest_says(shot: Path, vfx) -> None:
    assert vfx("stage", "comp", shot).exit_code == 0
    document = handoff()
    assert (document["frames"], document["resolution"]) == ("1001-1003", [40, 24])
    assert [sequence["name"] for sequence in document["sequences"]] == ["plate", "plate_crypto"]
    for sequence in document["sequences"]:
        listed = {channel: layer for layer in sequence["passes"] for channel in layer["channels"]}
        low = dict.fromkeys(listed, math.inf)
        high = dict.fromkeys(listed, -math.inf)
        for file in sequence["files"]:
            path = Path("work/plate/render") / file["file"]
            picture = OpenImageIO.ImageInput.open(str(path))
            spec = picture.spec()
            assert [spec.full_width, spec.full_height] == document["resolution"]
            assert set(spec.channelnames) == set(listed)
            pixels = picture.read_image(OpenImageIO.FLOAT)
            for number, name in enumerate(spec.channelnames):
                assert str(spec.channelformat(number)) == listed[name]["type"]
                low[name] = min(low[name], float(pixels[..., number].min()))
                high[name] = max(high[name], float(pixels[..., number].max()))
            assert spec.getattribute("compression").upper() == sequence["compression"]
            if sequence["name"] == "plate":
                about, = (entry for entry in document["camera"]["frames"]
                          if entry["frame"] == file["frame"])
                color = document["color_space"]
                assert about["focal_length"] == pytest.approx(50.0, rel=1e-6)
                matrix = spec.getattribute("worldToCamera")
                np.testing.assert_allclose(matrix, about["world_to_camera"], rtol=1e-6)
                np.testing.assert_allclose(spec.getattribute("worldToNDC"),
                                           about["world_to_ndc"], rtol=1e-6)
                np.testing.assert_allclose(spec.getattribute("chromaticities"),
                                           color["chromaticities"], rtol=1e-6)
                assert spec.getattribute("colorInteropID") == color["interop_id"]
                assert spec.getattribute("pixelAspectRatio", OpenImageIO.FLOAT) == document[
                    "pixel_aspect"]
                rate = spec.getattribute("FramesPerSecond")
                assert rate[0] / rate[1] == document["fps"]
            picture.close()
        for layer in sequence["passes"]:
            assert layer["least"] == [low[name] for name in layer["channels"]]
            assert layer["greatest"] == [high[name] for name in layer["channels"]]
    assert document["sequences"][1]["cryptomattes"] == [
        {"key": "a2435aa", "name": "CryptoFragment"},
        {"key": "be359d6", "name": "CryptoMaterial"}]
    checked = subprocess.run(["sha256sum", "--check", "--quiet", "checksums.sha256"],
                             cwd="work/plate/comp", check=False)
    assert checked.returncode == 0


def test_bad_frames_are_named_and_nothing_is_handed_over(shot: Path, vfx) -> None:
    assert vfx("stage", "comp", shot).exit_code == 0
    render = Path("work/plate/render")
    (render / "plate.1001.exr").unlink()
    whole = (render / "plate.1002.exr").read_bytes()
    (render / "plate.1002.exr").write_bytes(whole[: len(whole) // 2])
    channels, header = read_exr(render / "plate.1003.exr")
    channels["N.X"][3, 5] = np.nan
    (render / "manifest.json").unlink()      # the frame is known by the fingerprint it carries
    rewrite(render / "plate.1003.exr", channels, header)
    result = vfx("stage", "comp", shot)
    assert result.exit_code == 1
    assert "comp 1001: work/plate/render/plate.1001.exr: missing" in result.output
    assert "comp 1002: work/plate/render/plate.1002.exr: damaged" in result.output
    assert "comp 1003:" in result.output and "1 pixel(s) of N.X are not finite, the first at " \
        "x 5, y 3" in result.output
    assert f"vfx stage render {shot} --frames 1001-1003" in result.output
    assert [path.name for path in Path("work/plate/comp").iterdir()] == [".manifest.lock"], \
        "nor a script that loads bad frames"


def test_stale_frames_are_named(shot: Path, vfx) -> None:
    shot.write_text(SHOT + "[light]\nexposure = 1.0\n")
    result = vfx("stage", "comp", shot, "--frames", "1002")
    assert result.exit_code == 1 and "plate.1002.exr: stale" in result.output


def test_only_frames_that_are_no_good_are_named(shot: Path, vfx) -> None:
    """Frames at another size before those as the shot wants them now, and two that were swapped."""
    small = SHOT.replace("resolution = [40, 24]", "resolution = [20, 12]")
    assert small != SHOT
    shot.write_text(small)
    assert vfx("stage", "render", shot, "--frames", "1001", "--device", "cpu").exit_code == 0
    shot.write_text(SHOT)
    result = vfx("stage", "comp", shot)
    assert result.exit_code == 1
    assert "comp 1001: work/plate/render/plate.1001.exr: stale" in result.output
    assert "plate.1002.exr" not in result.output and "plate.1003.exr" not in result.output
    assert result.output.splitlines()[-1].split()[-2:] == ["--frames", "1001"]

    assert vfx("stage", "render", shot, "--device", "cpu").exit_code == 0
    one, other = (Path(f"work/plate/render/plate.{frame}.exr") for frame in (1002, 1003))
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    result = vfx("stage", "comp", shot)
    assert result.exit_code == 1
    assert f"comp 1002: {one}: damaged" in result.output
    assert f"comp 1003: {other}: damaged" in result.output
    assert "plate.1001.exr" not in result.output and "_crypto" not in result.output


def test_frames_that_do_not_exist_are_missing(shot: Path, vfx) -> None:
    result = vfx("stage", "comp", shot, "--frames", "1002,1099")
    assert result.exit_code == 3 and "1099 lies outside the shot" in result.output
    assert vfx(*result.output.splitlines()[-1].split()[1:]).exit_code == 0, "what helps works"


def test_a_cryptomatte_must_go_with_its_beauty(shot: Path, vfx) -> None:
    Path("work/plate/render/plate_crypto.1002.exr").unlink()
    result = vfx("stage", "comp", shot)
    assert result.exit_code == 1
    assert "comp 1002: work/plate/render/plate_crypto.1002.exr: missing" in result.output


@pytest.mark.parametrize("gone", ["render", "align", "sim"])
def test_comp_before_render_says_what_to_run(shot: Path, vfx, gone: str) -> None:
    for stage in {gone, "render"}:
        shutil.rmtree(f"work/plate/{stage}")
    result = vfx("stage", "comp", shot)
    assert result.exit_code == 3
    command = result.output.splitlines()[-1].split()
    assert command == ["vfx", *(["stage", "render"] if gone == "render" else ["run"]), str(shot),
                       "--frames", "1001-1003"]
    assert vfx(*command[1:]).exit_code == 0, "one command does it, whatever else is missing"
    assert vfx("stage", "comp", shot).exit_code == 0


def test_the_command_for_a_bad_frame_makes_a_good_one(shot: Path, vfx) -> None:
    """A frame with a bad pixel may carry the right fingerprint, and still has to be made again."""
    path = Path("work/plate/render/plate.1003.exr")
    channels, header = read_exr(path)
    channels["B"][3, 5] = np.inf
    OpenEXR.File(dict(header), channels).write(str(path))
    Path("work/plate/render/manifest.json").unlink()
    result = vfx("stage", "comp", shot)
    assert result.exit_code == 1 and "1 pixel(s) of B are not finite" in result.output
    assert vfx(*result.output.splitlines()[-1].split()[1:]).exit_code == 0
    assert vfx("stage", "comp", shot).exit_code == 0


def test_a_frame_made_again_joins_its_sequence(shot: Path, vfx) -> None:
    assert vfx("stage", "comp", shot).exit_code == 0
    Path("work/plate/render/plate.1002.exr").unlink()
    assert vfx("run", shot, "--frames", "1002").exit_code == 0
    assert handoff()["frames"] == "1001-1003"
    # What the settings no longer make does not stand in the way of a look at some frames.
    shot.write_text(SHOT + "[light]\nexposure = 1.0\n")
    assert vfx("run", shot, "--frames", "1001-1002").exit_code == 0
    assert handoff()["frames"] == "1001-1002"


def test_files_that_the_shot_does_not_make_are_no_part_of_it(shot: Path, vfx) -> None:
    render = Path("work/plate/render")
    shutil.copy(render / "plate.1002.exr", render / "plate_mine.1002.exr")
    assert vfx("stage", "comp", shot).exit_code == 0
    assert [entry["name"] for entry in handoff()["sequences"]] == ["plate", "plate_crypto"]
    # Mattes of an earlier rendering stay behind when the shot makes none any more.
    shot.write_text(SHOT + 'passes = ["beauty", "depth"]\n')
    result = vfx("run", shot)
    assert result.exit_code == 0, result.output
    assert [entry["name"] for entry in handoff()["sequences"]] == ["plate"]


def nuke_nodes() -> tuple[Any, list[tuple[str, dict[str, str]]]]:
    """Evaluate the script with commands that only note what they get, as Nuke evaluates it."""
    tkinter = pytest.importorskip("tkinter", reason="this Python has no tkinter to read Tcl with")
    tcl = tkinter.Tcl()
    nodes: list[tuple[str, dict[str, str]]] = []

    def note(kind: str, body: str) -> str:
        words = tcl.splitlist(body)
        nodes.append((kind, dict(zip(words[::2], words[1::2], strict=True))))
        return ""

    tcl.createcommand("note", note)
    for kind in ("Root", "Read", "Shuffle", "Cryptomatte", "Camera2"):
        tcl.eval(f"proc {kind} {{body}} {{ note {kind} $body }}")
    for quiet in ("version", "push", "add_layer"):
        tcl.eval(f"proc {quiet} {{args}} {{}}")
    tcl.eval("proc stack {number} { return node }")
    tcl.eval(Path("work/plate/comp/plate.nk").read_text())
    return tcl, nodes


def test_the_nuke_script_is_tcl_with_a_node_for_each_pass(shot: Path, vfx) -> None:
    vfx("stage", "comp", shot)
    tcl, nodes = nuke_nodes()
    kinds = [kind for kind, _ in nodes]
    assert kinds.count("Read") == 2 and kinds.count("Cryptomatte") == 2
    by_name = {knobs.get("name", "root"): knobs for _, knobs in nodes}
    assert {"Pass_N", "Pass_P", "Pass_depth", "Pass_albedo", "Pass_fragment"} <= set(by_name)
    assert by_name["Cryptomatte_CryptoFragment"]["cryptoLayer"] == "CryptoFragment"
    place = Path("work/plate/comp/plate.nk").absolute()
    tcl.eval(f"proc value {{knob}} {{ return {place} }}")
    pattern = tcl.eval(f"subst {{{by_name['Read_plate_crypto']['file']}}}")
    assert Path(pattern % 1002).samefile("work/plate/render/plate_crypto.1002.exr")
    # The camera's matrix takes the origin of the camera to where the shot puts it.
    rows = [tcl.splitlist(row) for row in tcl.splitlist(by_name["ShotCamera"]["matrix"])]
    np.testing.assert_allclose([float(row[3]) for row in rows], [0.0, 0.12, 0.4, 1.0], atol=1e-6)


def test_the_blender_script_is_python_and_holds_the_passes(shot: Path, vfx) -> None:
    vfx("stage", "comp", shot)
    text = Path("work/plate/comp/plate_blender.py").read_text()
    compile(text, "plate_blender.py", "exec")
    names: dict[str, Any] = {}
    literal = text[text.index("HANDOFF = "):text.index("\nHERE")]
    exec(literal, names)
    assert [sequence["name"] for sequence in names["HANDOFF"]["sequences"]] == [
        "plate", "plate_crypto"]


def test_a_moving_camera_moves_in_the_scripts(shot: Path, vfx) -> None:
    render = Path("work/plate/render")
    for number, path in enumerate(sorted(render.glob("plate.*.exr"))):
        channels, header = read_exr(path)
        to_camera = np.array(header["worldToCamera"])
        to_camera[3, 0] -= 0.01 * number                 # it goes to its right
        header["worldToCamera"] = to_camera
        rewrite(path, channels, header)
    (render / "manifest.json").unlink()
    assert vfx("stage", "comp", shot).exit_code == 0
    tcl, nodes = nuke_nodes()
    camera = next(knobs for kind, knobs in nodes if kind == "Camera2")
    rows = [tcl.splitlist(row) for row in tcl.splitlist(camera["matrix"])]
    curve = tcl.splitlist(rows[0][3])
    assert (curve[0], *curve[1::2]) == ("curve", "x1001", "x1002", "x1003")
    np.testing.assert_allclose([float(value) for value in curve[2::2]], [0.0, 0.01, 0.02],
                               atol=1e-7)
    assert float(rows[3][3]) == 1.0 and float(camera["focal"]) == 50.0
    assert "'frame': 1003, 'world_to_camera'" in Path(
        "work/plate/comp/plate_blender.py").read_text()
