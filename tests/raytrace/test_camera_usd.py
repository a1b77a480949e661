"""A camera from USD is held to what [camera] allows, at every time that is rendered."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from vfx.raytrace.camera.path import camera_path, check_path, keyed_path, render_times
from vfx.raytrace.settings import Camera, CameraKey, Film

TRANSLATE = 'double3 xformOp:translate{} = {}\nuniform token[] xformOpOrder = ["xformOp:translate"]'
SCALE = 'double3 xformOp:scale = ({}, {}, {})\nuniform token[] xformOpOrder = ["xformOp:scale"]'
MATRIX = ('matrix4d xformOp:transform = ({})\n'
          'uniform token[] xformOpOrder = ["xformOp:transform"]')


def checked(folder: Path, text: str, head: str = "metersPerUnit = 0.01", **settings) -> None:
    """Write a file with ``head`` and prims, and check its camera for frames 1001 to 1004."""
    pytest.importorskip("pxr", reason="usd-core is not installed")
    (folder / "cam.usda").write_text(f"#usda 1.0\n(\n{head}\n)\n{text}\n")
    camera = Camera(usd="cam.usda", **settings)
    check_path(camera_path(camera, (), folder), render_times(camera, Film(), 1001, 1004))


def prim(text: str) -> str:
    return f'def Camera "cam" {{\n{text}\n}}'


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-0.01", "1e300", "1e-300"])
def test_units_that_no_camera_can_be_in_are_refused(tmp_path, value):
    with pytest.raises(ValueError, match=r"cam.usda: .*(metersPerUnit|focalLength).*found .*but it "
                                         "must be .*again"):
        checked(tmp_path, prim(""), f"metersPerUnit = {value}")


@pytest.mark.parametrize("name", ["focalLength", "horizontalAperture", "fStop", "focusDistance"])
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-50", "1e300", "3e38", "0"])
def test_a_lens_that_cannot_be_is_refused(tmp_path, name, value):
    if value == "0" and name in ("fStop", "focusDistance"):
        checked(tmp_path, prim(f"float {name} = 0"))      # all is sharp
        return
    with pytest.raises(ValueError, match=f"cam.usda: /cam: {name}: found .*, but it must be .*; "):
        checked(tmp_path, prim(f"float {name} = {value}"))


@pytest.mark.parametrize(("text", "words"), [
    (TRANSLATE.format("", "(nan, 0, 0)"), "not finite"),
    (TRANSLATE.format("", "(0, inf, 0)"), "not finite"),
    (TRANSLATE.format("", "(0, 0, 1e300)"), "must be at most 1e7 m"),
    (SCALE.format(0, 1, 1), "is flat"), (SCALE.format(0, 0, 0), "is flat"),
    (SCALE.format("nan", 1, 1), "not finite"), (SCALE.format(1, 1, "1e300"), "is flat"),
    (SCALE.format(-1, 1, 1), "mirrors the picture"),
    (MATRIX.format("(1,0,0,0), (0.5,1,0,0), (0,0,1,0), (0,0,0,1)"), "is sheared"),
    (MATRIX.format("(1,0,0,0), (0,1,0,0), (0,0,1,0.5), (0,0,0,1)"), "is a projection"),
    ('string xformOp:translate = "x"\nuniform token[] xformOpOrder = ["xformOp:translate"]',
     "cannot be worked out"),
    ('uniform token[] xformOpOrder = ["xformOp:translate"]', "there is no such transform"),
    ('string focalLength = "long"', "focalLength: found 'long', but it must be a number"),
    ("float verticalApertureOffset = 1", "verticalApertureOffset at frame 1001: found 1"),
    ("float horizontalApertureOffset = nan", "horizontalApertureOffset at frame 1001: found nan"),
    ("float focalLength.timeSamples = {1001: 50, 1003: nan}", "focalLength at frame 1002: found"),
    ("float focalLength.timeSamples = {1001: 50, 1005: -50}", "focalLength at frame 1003: found"),
    (TRANSLATE.format(".timeSamples", "{1001: (0,0,0), 1004: (0,1e300,0)}"), "at frame 1002"),
    ('token projection.timeSamples = {1001: "perspective", 1003: "orthographic"}',
     "projection at frame 1003: found orthographic"),
])
def test_a_transform_or_lens_that_fails_at_any_frame_is_refused(tmp_path, text, words):
    with pytest.raises(ValueError, match=words):
        checked(tmp_path, prim(text))


def test_the_open_shutter_is_looked_into_between_frames(tmp_path):
    dip = prim("float focalLength.timeSamples = {1001: 50, 1002: 50, 1002.2: -50, 1002.4: 50}")
    checked(tmp_path, dip)
    with pytest.raises(ValueError, match=r"focalLength at frame 1002\.\d+: found -"):
        checked(tmp_path, dip, shutter_angle=180.0)


def test_a_camera_in_a_scaled_group_is_the_camera_itself(tmp_path):
    """Groups that change units scale their cameras; neither axes nor lens mind."""
    pytest.importorskip("pxr", reason="usd-core is not installed")
    plain = prim(TRANSLATE.format("", "(1, 2, 3)"))
    checked(tmp_path, plain)
    expected = camera_path(Camera(usd="cam.usda"), (), tmp_path)(1001)
    checked(tmp_path, f'def Xform "group" {{\n{SCALE.format(0.5, 0.5, 0.5)}\n'
                      f'{prim(TRANSLATE.format("", "(2, 4, 6)"))}\n}}')
    assert camera_path(Camera(usd="cam.usda"), (), tmp_path)(1001) == expected


@pytest.mark.parametrize(("text", "head"), [
    ('def Camera "cam" (references = @other.usda@</x>) {\n}', "metersPerUnit = 1"),
    ('def Camera "cam" (payload = @/etc/hostname@</x>) {\n}', "metersPerUnit = 1"),
    (prim(""), "subLayers = [@other.usda@]"),
    ('def Camera "cam" (clips = {dictionary default = {asset[] assetPaths = [@other.usda@]}}) {\n}',
     "metersPerUnit = 1"),
    ('def Xform "a" (prepend variantSets = "v"\nvariants = {string v = "x"}) {\n'
     'variantSet "v" = {\n"x" (clips = {dictionary default = {asset[] assetPaths = [@o.usda@]}}) '
     '{\ndef Camera "c" {\n}\n}\n}\n}', "metersPerUnit = 1"),
    ('def Xform "a" (prepend variantSets = "v"\nvariants = {string v = "x"}) {\n'
     'variantSet "v" = {\n"x" (payload = @other.usda@</x>) {\ndef Camera "c" {\n}\n}\n}\n}',
     "metersPerUnit = 1"),
])
def test_a_camera_put_together_from_other_files_is_refused(tmp_path, text, head):
    """Only the file that the shot names is read, and its hash tells of every change."""
    (tmp_path / "other.usda").write_text('#usda 1.0\ndef Camera "x" {\n}\n')
    with pytest.raises(ValueError, match=r"is put together from other files.*usdcat --flatten"):
        checked(tmp_path, text, head)


@pytest.mark.parametrize("text", [
    'class Camera "x" {\n}\ndef Camera "cam" (references = </x>) {\n}',
    'class Xform "x" {\ndef Camera "c" {\n}\n}\n'
    'def Xform "a" (instanceable = true\nreferences = </x>) {\n}'])
def test_references_inside_of_a_file_are_followed(tmp_path, text):
    checked(tmp_path, text)


def test_a_package_may_be_made_of_layers(tmp_path):
    pytest.importorskip("pxr", reason="usd-core is not installed")
    from pxr import UsdUtils

    lens = tmp_path / "lens.usda"
    lens.write_text('#usda 1.0\ndef Camera "cam" {\nfloat focalLength = 35\n}\n')
    (tmp_path / "shot.usda").write_text("#usda 1.0\n(\nmetersPerUnit = 0.01\n"
                                        "subLayers = [@./lens.usda@]\n)\n")
    assert UsdUtils.CreateNewUsdzPackage(str(tmp_path / "shot.usda"), str(tmp_path / "a.usdz"))
    lens.unlink()
    path = camera_path(Camera(usd="a.usdz"), (), tmp_path)
    assert path(1001).focal_length == pytest.approx(35.0)


@pytest.mark.parametrize(("key", "words"), [
    ({"focal_length": 1e-300}, r"camera_keys: focal_length at frame 1001: found 1e-300 mm, but it "
                               "must be at least 0.01 mm; change a key"),
    ({"focus_distance": 1e-300}, "focus_distance at frame 1001: found 1e-300 m, but it must be 0, "
                                 "or at least 1e-06 m"),
    ({"target": (0.0, 0.12, 0.4 + 1e-12)}, "at frame 1001 the camera stands at its target"),
])
def test_keys_are_held_to_the_same_bounds(key, words):
    path = keyed_path(Camera(), [CameraKey(frame=1001.0, **key), CameraKey(frame=1004.0)])
    with pytest.raises(ValueError, match=words):
        check_path(path, render_times(Camera(), Film(), 1001, 1004))


def test_a_lens_too_wide_for_floats_is_refused():
    with pytest.raises(ValueError, match=r"camera: f_stop: found 1e-300, but it must be 0, or at "
                                         r"least 0\.01; change it"):
        check_path(camera_path(Camera(f_stop=1e-300)), np.array([1001.0]))


def test_many_keys_and_frames_are_looked_at_together(monkeypatch):
    """50,000 keys over 100,000 frames: one interpolator, and a few calls of it."""
    from vfx.raytrace.camera import path as module

    made = []
    build = module.PchipInterpolator
    monkeypatch.setattr(module, "PchipInterpolator",
                        lambda *arguments, **settings: made.append(1) or build(
                            *arguments, **settings))
    keys = [CameraKey(frame=2.0 * i, position=(0.01 * (i % 7), 0.12, 0.4)) for i in range(50_000)]
    path = keyed_path(Camera(), keys)
    calls = []
    rows = path.rows
    counted = dataclasses.replace(path, rows=lambda times: calls.append(1) or rows(times))
    check_path(counted, render_times(Camera(), Film(), 0, 99_999))
    assert (len(made), len(calls)) == (1, 2)
    assert path(3.0).position == pytest.approx((0.015, 0.12, 0.4), abs=1e-2)
