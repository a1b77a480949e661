"""Lens, shutter and filter blur as the closed forms say; cameras follow keys and USD files."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.faces import all_faces
from vfx.raytrace.camera.camera import camera_view, filter_table
from vfx.raytrace.camera.motion import Neighbors, coasted, moved_pieces, rest_centers
from vfx.raytrace.camera.path import camera_path, check_path
from vfx.raytrace.render import render_picture
from vfx.raytrace.settings import Camera, CameraKey, Film, FloorLook, Light, Look

WHITE = np.ones((16, 32, 3), np.float32)
BLACK = np.zeros((16, 32, 3), np.float32)
LOOK = {"stone": Look(albedo=(0.8, 0.8, 0.8), fracture_albedo=(0.8, 0.8, 0.8), specular=0.0)}
NO_KEY = Light(key_color=(0.0, 0.0, 0.0))


def film(width, height, samples, **settings):
    return Film(**{"resolution": (width, height), "samples": samples, "filter": "box",
                   "color_space": "linear-rec709", "passes": ("beauty", "mask")} | settings)


def test_blur_circle_of_a_thin_lens(device, make_solid, make_pieces, floor_plane):
    """A point at distance d spreads over a disk of radius (f / 2N) |d - s| / s, seen at d."""
    solid = make_solid((16, 16, 1), spacing=5e-4)
    distance, focus, stop, focal = 2.0, 1.2, 1.4, 0.05
    camera = Camera(position=(0.0, 0.0, distance + 2.5e-4), target=(0.0, 0.0, 0.0), f_stop=stop,
                    focus_distance=focus, focal_length=1e3 * focal, film_width=5.0)
    made = render_picture(device, solid, make_pieces(solid), camera, NO_KEY, LOOK,
                          floor_plane(enabled=False), FloorLook(), film(128, 128, 256), WHITE)
    alpha = made.channels["A"].astype(float)
    # On the film at distance 1, with its size in pixels.
    pixels = 128 / (5.0 / (1e3 * focal))
    radius = 0.5 * focal / stop * abs(distance - focus) / (focus * distance) * pixels
    side = 8e-3 / distance * pixels
    row, column = np.indices(alpha.shape)
    x, y = column + 0.5 - 64.0, row + 0.5 - 64.0
    total = alpha.sum()
    # The blurred cube covers as much as the sharp one, and its second moment is disk plus square.
    assert total == pytest.approx(side**2, rel=0.02)
    moment = (alpha * (x**2 + y**2)).sum() / total
    assert moment == pytest.approx(0.5 * radius**2 + side**2 / 6.0, rel=0.02)
    assert 5.0 < radius < 40.0 and (alpha[np.hypot(x, y) > radius + side] == 0.0).all()
    # What lies in the focus is sharp.
    sharp = dataclasses.replace(camera, focus_distance=distance)
    crisp = render_picture(device, solid, make_pieces(solid), sharp, NO_KEY, LOOK,
                           floor_plane(enabled=False), FloorLook(), film(128, 128, 16), WHITE)
    assert (crisp.channels["A"] > 0.0).sum() == pytest.approx(side**2, abs=4 * side)


def spinning(solid, make_pieces, angle):
    """A bar that turns about the camera's axis by ``angle`` from frame to frame."""
    now = make_pieces(solid)
    now.center = np.zeros((1, 3))
    then = dataclasses.replace(
        now, frame=1002, rotation=Rotation.from_rotvec([[0.0, 0.0, angle]]).as_matrix())
    return now, then


@pytest.mark.parametrize("shutter", ["centred", "forward"])
def test_blur_of_a_rotation_is_the_mean_of_its_positions(device, make_solid, make_pieces,
                                                         floor_plane, shutter):
    """Against 256 sharp pictures, supersampled, turned by hand."""
    solid = make_solid((9, 1, 1), spacing=0.05)
    now, then = spinning(solid, make_pieces, 1.2)
    before = dataclasses.replace(then, frame=1000,
                                 rotation=np.swapaxes(then.rotation, 1, 2).copy())
    camera = Camera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0), focal_length=60.0,
                    shutter_angle=180.0, shutter=shutter)
    settings = film(48, 48, 64, motion_steps=64)

    def picture(pieces, lens, size, **more):
        return render_picture(device, solid, pieces, lens, NO_KEY, LOOK,
                              floor_plane(enabled=False), FloorLook(), size, WHITE,
                              **more).channels["A"].astype(float)

    blurred = picture(now, camera, settings, near=Neighbors(before, then, 1.0))
    # The bar's front face covers what a rectangle does that is drawn at many angles.
    width = 1e3 * 36.0 / 60.0 * 1e-3
    fine = 4
    y, x = np.indices((48 * fine, 48 * fine)) + 0.5
    near_z = 1.0 - 0.025
    u = (x / (48 * fine) - 0.5) * width * near_z
    v = (0.5 - y / (48 * fine)) * width * near_z
    start = -0.3 if shutter == "centred" else 0.0
    reference = np.zeros((48, 48))
    for angle in start + 0.6 * (np.arange(256) + 0.5) / 256:
        a = np.cos(angle) * u + np.sin(angle) * v
        b = np.cos(angle) * v - np.sin(angle) * u
        inside = (np.abs(a) < 0.225) & (np.abs(b) < 0.025)
        reference += inside.reshape(48, fine, 48, fine).mean(axis=(1, 3)) / 256
    assert np.abs(blurred - reference).max() < 0.08
    assert np.sqrt(np.mean((blurred - reference)**2)) < 0.015
    # It is blurred: the sharp picture is another.
    sharp = picture(now, dataclasses.replace(camera, shutter_angle=0.0), settings)
    assert np.abs(sharp - reference).max() > 0.5


def test_moving_camera_blurs_what_stands(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((50, 50, 1), spacing=2e-3)
    camera = Camera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0), shutter_angle=360.0,
                    shutter="forward", interpolation="linear", focal_length=36.0)
    path = camera_path(camera, [CameraKey(frame=1001.0), CameraKey(
        frame=1002.0, position=(0.5, 0.0, 1.0), target=(0.5, 0.0, 0.0))])
    made = render_picture(device, solid, make_pieces(solid), path, NO_KEY, LOOK,
                          floor_plane(enabled=False), FloorLook(),
                          film(64, 16, 64, motion_steps=64), BLACK)
    alpha = made.channels["A"][8].astype(float)
    # The front face, 0.1 wide and 0.999 away, passes by 0.5: a trapezoid from 0.05 to -0.55.
    place = (np.arange(64) + 0.5) / 64 - 0.5
    edges = 0.999 * place[:, None] + 0.5 * (np.arange(512) + 0.5) / 512
    assert np.abs(alpha - (np.abs(edges) < 0.05).mean(axis=1)).max() < 0.04


def test_pieces_pass_through_both_frames_and_turn_the_long_way(make_solid, make_pieces):
    solid = make_solid((4, 4, 4), spacing=0.1)
    faces = all_faces(solid)
    now = make_pieces(solid, pieces=5, spread=0.1, turn=0.4)
    random = np.random.default_rng(1)
    now.angular_velocity = random.normal(size=(5, 3)) * [[1.0], [2.0], [4.0], [7.0], [10.0]]
    now.velocity = random.normal(size=(5, 3))
    now.center = np.einsum("kij,kj->ki", now.rotation, random.normal(size=(5, 3))) + now.translation
    then = coasted(now, Neighbors(step=1.0), forward=True)
    near = Neighbors(None, then, 1.0)
    end = moved_pieces(now, near, 1.0, faces)
    assert np.allclose(end.rotation, then.rotation) and np.allclose(
        end.translation, then.translation)
    half = moved_pieces(now, near, 0.5, faces)
    halfway = coasted(now, Neighbors(step=0.5), forward=True)
    assert np.allclose(half.rotation, halfway.rotation)
    assert np.allclose(half.translation, halfway.translation)
    assert np.allclose(rest_centers(half), rest_centers(now))
    back = moved_pieces(then, Neighbors(now, None, 1.0), -1.0, faces)
    assert np.allclose(back.rotation, now.rotation) and np.allclose(
        back.translation, now.translation)


@pytest.mark.parametrize(("name", "radius", "variance"), [
    ("box", 0.5, 1.0 / 12.0), ("box", 1.0, 1.0 / 3.0), ("gaussian", 3.0, 0.9474),
    ("blackman-harris", 1.1, None)])
def test_filters_have_the_spread_of_their_window(name, radius, variance):
    table = filter_table(name, radius)
    assert table[0] == pytest.approx(-radius) and table[-1] == pytest.approx(radius)
    assert np.allclose(table, -table[::-1], atol=1e-9)
    fine = np.interp((np.arange(100_000) + 0.5) / 100_000, np.linspace(0.0, 1.0, 1025), table)
    place = np.linspace(-radius, radius, 20_001)
    if name == "gaussian":
        window = np.exp(-0.5 * (3.0 * place / radius)**2) - np.exp(-4.5)
    elif name == "box":
        window = np.ones_like(place)
    else:
        turn = np.pi * (place / radius + 1.0)
        window = (0.35875 - 0.48829 * np.cos(turn) + 0.14128 * np.cos(2 * turn)
                  - 0.01168 * np.cos(3 * turn))
    expected = (window * place**2).sum() / window.sum()
    assert fine.var() == pytest.approx(expected, rel=0.01)
    assert variance is None or expected == pytest.approx(variance, rel=0.2)


def test_keys_are_met_and_what_they_leave_out_stays():
    camera = Camera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0), focal_length=40.0)
    path = camera_path(camera, [
        CameraKey(frame=1001.0, position=(1.0, 0.0, 1.0)),
        CameraKey(frame=1011.0, target=(0.0, 1.0, 0.0), focal_length=80.0),
        CameraKey(frame=1021.0, position=(1.0, 2.0, 1.0))])
    assert path(990.0).position == path(1001.0).position == (1.0, 0.0, 1.0)
    assert path(1011.0).position == (1.0, 0.0, 1.0) and path(1011.0).target == (0.0, 1.0, 0.0)
    assert path(1011.0).focal_length == pytest.approx(80.0)
    assert path(1100.0).position == (1.0, 2.0, 1.0)
    between = [path(frame).position[1] for frame in np.linspace(1011, 1021, 21)]
    assert (np.diff(between) >= 0.0).all() and between[0] == 0.0 and between[-1] == 2.0
    straight = camera_path(dataclasses.replace(camera, interpolation="linear"), [
        CameraKey(frame=1.0, position=(0.0, 0.0, 1.0)),
        CameraKey(frame=3.0, position=(4.0, 0.0, 1.0))])
    assert straight(1.5).position == pytest.approx((1.0, 0.0, 1.0))


@pytest.mark.parametrize("up_axis", ["Y", "Z"])
def test_camera_of_a_usd_file_sees_what_usd_says(tmp_path, up_axis):
    pytest.importorskip("pxr")
    from pxr import Gf, Usd, UsdGeom

    stage = Usd.Stage.CreateNew(str(tmp_path / "cam.usda"))
    UsdGeom.SetStageUpAxis(stage, up_axis)
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    made = UsdGeom.Camera.Define(stage, "/world/cam")
    made.CreateFocalLengthAttr(35.0)
    made.CreateHorizontalApertureAttr(24.0)
    made.CreateFStopAttr(4.0)
    made.CreateFocusDistanceAttr(250.0)
    eye = made.AddTranslateOp()
    turn = made.AddRotateXYZOp()
    for frame in (1001, 1003):
        eye.Set(Gf.Vec3d(100.0, 50.0 + frame - 1001, 300.0), frame)
        turn.Set(Gf.Vec3f(-10.0, 20.0, 0.0), frame)
    stage.Save()
    path = camera_path(Camera(usd="cam.usda", shutter_angle=180.0), (), tmp_path)
    camera = path(1002.0)
    assert camera.focal_length == pytest.approx(35.0) and camera.film_width == pytest.approx(24.0)
    assert camera.f_stop == 4.0 and camera.shutter_angle == 180.0
    assert camera.focus_distance == pytest.approx(2.5)

    # Points project as USD's own frustum has it.
    frustum = made.GetCamera(Usd.TimeCode(1002)).frustum
    matrix = np.array(frustum.ComputeViewMatrix())
    point = np.array([[40.0, 30.0, -100.0], [90.0, 80.0, 20.0], [-300.0, 10.0, -900.0]])
    seen = np.column_stack([point, np.ones(3)]) @ matrix
    half = 0.5 * 24.0 / 35.0
    expected = np.column_stack([(1.0 + seen[:, 0] / -seen[:, 2] / half) * 50.0,
                                25.0 - seen[:, 1] / -seen[:, 2] / half * 50.0])
    world = 0.01 * point
    if up_axis == "Z":
        world = np.column_stack([world[:, 0], world[:, 2], -world[:, 1]])
    settings = Film(resolution=(100, 50))
    assert np.allclose(camera_view(camera, settings).project(world, (100, 50)), expected, atol=1e-3)


@pytest.mark.parametrize(("text", "message"), [
    ("no usd at all", "cannot be read as USD"),
    ("#usda 1.0\n", "has no camera"),
    ('#usda 1.0\ndef Camera "a" {}\ndef Camera "b" {}\n', "has 2 cameras"),
    ('#usda 1.0\ndef Camera "a" {\ntoken projection = "orthographic"\n}\n', "orthographic"),
])
def test_usd_files_without_a_usable_camera_are_refused(tmp_path, text, message):
    pytest.importorskip("pxr")
    (tmp_path / "cam.usda").write_text(text)
    with pytest.raises(ValueError, match=message):
        check_path(camera_path(Camera(usd="cam.usda"), (), tmp_path), np.array([1001.0]))
    with pytest.raises(FileNotFoundError):
        camera_path(Camera(usd="none.usda"), (), tmp_path)
