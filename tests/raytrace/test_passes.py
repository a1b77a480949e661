"""Every pass holds what its name says, and the parts of the light add up to the whole."""

from __future__ import annotations

import dataclasses

import numpy as np
import OpenEXR
import pytest
from scipy.spatial.transform import Rotation

from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.raytrace.camera.camera import camera_view, frame_header
from vfx.raytrace.camera.motion import Neighbors
from vfx.raytrace.camera.path import camera_path
from vfx.raytrace.film import film as film_module
from vfx.raytrace.film.exr import write_exr
from vfx.raytrace.film.passes import channel_names, pass_names
from vfx.raytrace.render import render_picture
from vfx.raytrace.settings import (
    PASSES,
    Camera,
    CameraKey,
    Film,
    Finish,
    FloorLook,
    Light,
    Look,
    MaterialLook,
)

SKY = np.linspace(0.2, 1.4, 16 * 32 * 3, dtype=np.float32).reshape(16, 32, 3)
LOOK = {"stone": Look(albedo=(0.6, 0.4, 0.3), fracture_albedo=(0.1, 0.2, 0.7), specular=0.2)}
CAMERA = Camera(position=(0.9, 0.8, 1.4), target=(0.0, 0.1, 0.0))


def film(**settings):
    return Film(**{"resolution": (96, 64), "samples": 4, "color_space": "linear-rec709"}
                | settings)


@pytest.fixture
def shoot(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((6, 6, 6), spacing=0.08, center=(0.0, 0.3, 0.0))
    pieces = make_pieces(solid, pieces=9, spread=0.05, turn=0.3)
    pieces.damage = np.linspace(0.0, 1.0, solid.n_elements, dtype=np.float32)

    def picture(settings=None, camera=CAMERA, pieces=pieces, **more):
        return render_picture(
            device, solid, pieces, camera, Light(), LOOK, floor_plane(), FloorLook(),
            settings or film(), SKY, **more)

    return picture, solid, pieces


def stacked(channels, layer, names):
    return np.stack([channels[f"{layer}.{name}" if layer else name] for name in names], axis=-1)


def test_a_frame_holds_the_passes_asked_for_and_no_others(shoot):
    picture, _, _ = shoot
    settings = film(passes=("fragment", "beauty", "mask"))
    made = picture(settings)
    assert pass_names(settings) == ("beauty", "fragment", "mask")
    assert tuple(made.channels) == channel_names(settings)
    assert not made.matte_channels
    whole = picture()
    assert pass_names(film()) == PASSES and tuple(whole.channels) == channel_names(film())
    for name, values in made.channels.items():
        assert np.array_equal(values, whole.channels[name]), name


@pytest.mark.parametrize("lighting", ["harmonic", "path"])
def test_light_parts_and_background_add_up_to_the_beauty(shoot, lighting):
    picture, _, _ = shoot
    settings = film(lighting=lighting, background=False)
    made = picture(settings).channels
    parts = sum(stacked(made, layer, "RGB") for layer in ("diffuse", "specular", "refraction"))
    # The floor's horizon is the environment's light, not its own.
    body = made["mask.surface"] + made["mask.fracture"] == 1.0
    assert body.sum() > 500
    assert np.allclose(parts[body], stacked(made, "", "RGB")[body], rtol=1e-4, atol=1e-5)


def test_without_background_the_beauty_is_premultiplied(shoot):
    picture, _, _ = shoot
    camera = dataclasses.replace(CAMERA, position=(0.9, 0.1, 1.4), target=(0.0, 0.5, 0.0))
    bare = picture(film(background=False), camera).channels
    full = picture(film(), camera).channels
    assert np.array_equal(bare["A"], full["A"]) and (bare["A"] == 0.0).any()
    assert (bare["R"][bare["A"] == 0.0] == 0.0).all()
    assert np.array_equal(bare["R"][bare["A"] == 1.0], full["R"][bare["A"] == 1.0])


def test_masks_and_damage_belong_to_the_elements_seen(shoot):
    picture, solid, pieces = shoot
    made = picture(film(samples=16)).channels
    seen = made["mask.surface"] + made["mask.fracture"]
    assert (seen <= 1.0 + 1e-6).all()
    assert 0.02 < made["mask.fracture"].mean() < made["A"].mean()
    # The albedo of a pixel is the mean of its faces'.
    expected = (made["mask.surface"] * 0.6 + made["mask.fracture"] * 0.1)
    whole = seen == 1.0
    assert np.allclose(made["albedo.R"][whole], expected[whole], atol=1e-5)
    # Damage: find the element by the position at rest.
    piece = made["fragment.id"].astype(int)
    on = piece >= 0
    row = np.searchsorted(pieces.id, piece[on])
    offset = stacked(made, "P", "XYZ")[on] - pieces.translation[row]
    rest = np.einsum("kji,kj->ki", pieces.rotation[row], offset)
    inside = rest - 1e-4 * np.einsum("kji,kj->ki", pieces.rotation[row],
                                     stacked(made, "N", "XYZ")[on])
    distance = np.abs(inside[:, None] - solid.position[None]).max(axis=2)
    element = distance.argmin(axis=1)
    clear = distance.min(axis=1) < 0.0401
    assert clear.mean() > 0.99
    assert np.array_equal(made["damage.Y"][on][clear], pieces.damage[element][clear])
    assert (made["damage.Y"][~on] == 0.0).all()


def next_frame(solid, pieces, random):
    """Move every piece on, and break one in two."""
    turn = Rotation.from_rotvec(0.05 * random.normal(size=(len(pieces.id), 3))).as_matrix()
    following = dataclasses.replace(
        pieces, frame=1002, rotation=turn @ pieces.rotation,
        translation=pieces.translation + 0.01 * random.normal(size=pieces.translation.shape),
        fragment=pieces.fragment.copy(), id=np.append(pieces.id, 9).astype(np.int32))
    split = (pieces.fragment == 5) & (solid.position[:, 1] > 0.35)
    following.fragment[split] = 9
    for name in ("rotation", "translation", "center", "velocity", "angular_velocity", "mass"):
        values = getattr(following, name)
        setattr(following, name, np.concatenate([values, values[5:6]]))
    following.translation[9] += (0.0, 0.02, 0.0)
    return following


def test_motion_vectors_lead_to_the_next_frame(shoot):
    """The point of a pixel is found again, in the next frame's P, where its vector leads."""
    picture, solid, pieces = shoot
    following = next_frame(solid, pieces, np.random.default_rng(3))
    path = camera_path(CAMERA, [CameraKey(frame=1001.0),
                                CameraKey(frame=1002.0, position=(0.95, 0.78, 1.42))])
    settings = film(resolution=(192, 128), samples=1)
    here = picture(settings, path, near=Neighbors(None, following)).channels
    there = picture(settings, path, following).channels
    row, column = np.indices(here["A"].shape)
    u, v = here["forward.u"], here["forward.v"]
    assert np.hypot(u, v)[here["fragment.id"] >= 0].mean() > 1.0

    # Move the points ourselves, and project them by the next frame's header.
    world = stacked(here, "P", "XYZ").astype(float)
    element_seen = here["fragment.id"] >= 0
    to_x, to_y = column + 0.5 + u, row + 0.5 - v
    inside = ((to_x > 1) & (to_x < 190) & (to_y > 1) & (to_y < 126) & element_seen)
    near_column, near_row = to_x[inside].astype(int), to_y[inside].astype(int)
    # Where the next frame shows a plane of the same piece, its P at the reprojected place is met.
    then = stacked(there, "P", "XYZ")[near_row, near_column].astype(float)
    normal = stacked(there, "N", "XYZ")[near_row, near_column].astype(float)
    view = camera_view(path(1002.0), settings)
    ray = (view.forward
           + ((2.0 * to_x[inside] / 192 - 1.0)[:, None] * view.half_width) * view.right
           + ((1.0 - 2.0 * to_y[inside] / 128)[:, None] * view.half_height) * view.up)
    along = ((then - view.eye) * normal).sum(axis=1) / (ray * normal).sum(axis=1)
    met = view.eye + along[:, None] * ray
    piece = here["fragment.id"][inside]
    piece_then = there["fragment.id"][near_row, near_column]
    same = (piece == piece_then) | ((piece == 5) & (piece_then == 9))
    # Compare in rest space: both pictures then speak of the same point of the object.
    a = at_rest(pieces, piece[same], world[inside][same])
    b = at_rest(following, piece_then[same], met[same])
    agree = np.linalg.norm(a - b, axis=1) < 2e-4
    # Where another face hides the point or the grid's edge is crossed, they differ.
    assert same.sum() > 2000 and (piece_then[same] == 9).sum() > 20
    assert agree.mean() > 0.93
    # Floor: only the camera moves.
    assert np.hypot(u, v)[(here["fragment.id"] < 0)].max() < 40.0


def at_rest(pieces, piece, point):
    row = np.searchsorted(pieces.id, piece.astype(int))
    return np.einsum("kji,kj->ki", pieces.rotation[row], point - pieces.translation[row])


def test_still_pieces_before_a_still_camera_have_no_motion(shoot):
    made = shoot[0](film(samples=1)).channels
    assert max(np.abs(made["forward.u"]).max(), np.abs(made["forward.v"]).max()) < 1e-6


def test_beyond_the_last_frame_pieces_coast(shoot):
    """Velocity times the frame's time, seen at its depth."""
    picture, _, pieces = shoot
    moving = dataclasses.replace(pieces, velocity=np.tile([0.0, 0.5, 0.0],
                                                          (len(pieces.id), 1)))
    camera = Camera(position=(0.0, 0.3, 2.0), target=(0.0, 0.3, 0.0))
    made = picture(film(samples=1), camera, moving, near=Neighbors(step=0.02)).channels
    on = made["fragment.id"] >= 0
    expected = 0.01 / made["depth.Z"][on] / (0.5 * 36.0 / 50.0) * 96 / 2
    assert np.allclose(made["forward.v"][on], expected, rtol=1e-3)
    assert np.abs(made["forward.u"][on]).max() < 1e-4


def test_beyond_the_last_frame_a_ball_goes_on_as_it_came(shoot):
    picture, _, pieces = shoot
    last = dataclasses.replace(pieces, projectile_position=np.array([[0.0, 0.3, 1.0]]),
                               projectile_radius=np.array([0.1]))
    before = dataclasses.replace(last, frame=1000,
                                 projectile_position=np.array([[0.0, 0.28, 1.0]]))
    camera = Camera(position=(0.0, 0.3, 2.0), target=(0.0, 0.3, 0.0))
    made = picture(film(samples=1), camera, last, near=Neighbors(before, step=0.02)).channels
    on = np.abs(made["P.Z"] - 1.05) < 0.05
    expected = 0.02 / made["depth.Z"][on] / (0.5 * 36.0 / 50.0) * 96 / 2
    assert on.sum() > 20 and np.allclose(made["forward.v"][on], expected, rtol=1e-3)


def test_overscan_adds_a_border_to_the_same_picture(shoot, tmp_path):
    picture, _, _ = shoot
    plain = picture(film())
    wide_film = film(overscan=10)
    wide = picture(wide_film)
    for name, values in plain.channels.items():
        assert wide.channels[name].shape == (84, 116)
        assert np.array_equal(wide.channels[name][10:-10, 10:-10], values), name
    header = frame_header(CAMERA, wide_film, 24, 1001)
    plain_header = frame_header(CAMERA, film(), 24, 1001)
    assert np.array_equal(header["worldToNDC"], plain_header["worldToNDC"])
    write_exr(tmp_path / "wide.exr", wide.channels, header)
    with OpenEXR.File(str(tmp_path / "wide.exr")) as file:
        low, high = file.header()["dataWindow"]
        assert (*low, *high) == (-10, -10, 105, 73)
        low, high = file.header()["displayWindow"]
        assert (*low, *high) == (0, 0, 95, 63)


def test_crop_is_a_part_of_the_same_picture(shoot):
    picture, _, _ = shoot
    plain = picture(film())
    part = picture(film(crop=(30, 20, 33, 17)))
    for name, values in plain.channels.items():
        assert np.array_equal(part.channels[name], values[20:37, 30:63]), name
    for name, values in plain.matte_channels.items():
        assert np.array_equal(part.matte_channels[name], values[20:37, 30:63]), name


def test_chunks_of_rays_and_order_of_tiles_leave_no_trace(shoot, monkeypatch):
    picture, _, _ = shoot
    settings = film(samples=24, noise_target=0.03, min_samples=4, passes=PASSES)
    first = picture(settings)
    chunks = film_module.tile_chunks

    def other_order(tiles, begin, count):
        return list(chunks(tiles[::-1].copy(), begin, count))

    monkeypatch.setattr(film_module, "CHUNK_RAYS", 1 << 10)
    monkeypatch.setattr("vfx.raytrace.render.tile_chunks", other_order)
    second = picture(settings)
    for name, values in {**first.channels, **first.matte_channels}.items():
        assert np.array_equal(values, {**second.channels, **second.matte_channels}[name]), name


@pytest.mark.warp
def test_camera_inside_the_object_sees_its_inside(shoot, make_solid, make_pieces, device,
                                                   floor_plane):
    solid = make_solid((4, 4, 4), spacing=0.5)
    made = render_picture(device, solid, make_pieces(solid), Camera(
        position=(0.1, 0.05, 0.2), target=(0.0, 0.1, -3.0)), Light(), LOOK,
        floor_plane(enabled=False), FloorLook(), film(samples=1), SKY).channels
    assert (made["A"] == 1.0).all() and (made["fragment.id"] == 0.0).all()
    assert made["depth.Z"].max() < 1.23 and np.isfinite(made["R"]).all()


@pytest.mark.warp
@pytest.mark.parametrize("shape", ["voronoi", "tet-shell"])
def test_a_texture_colours_the_surface_and_not_the_broken_faces(device, make_pieces, floor_plane,
                                                                shape):
    body = Body(material="stone", shape=shape, box=(0.5, 0.5, 0.5), elements=200,
                center=(0.0, 0.3, 0.0))
    solid = build_solid(device, [body]).solid
    pieces = make_pieces(solid, pieces=9, spread=0.08, turn=0.3)
    painted = MaterialLook(
        Finish(albedo=(1.0, 0.5, 1.0), texture="paint"), Finish(albedo=(0.1, 0.2, 0.7)))
    paint = np.broadcast_to(np.float32([0.25, 0.8, 0.5]), (3, 5, 3))
    made = render_picture(device, solid, pieces, CAMERA, Light(), {"stone": painted},
                          floor_plane(), FloorLook(), film(), SKY, images={"paint": paint})
    albedo = stacked(made.channels, "albedo", "RGB")
    broken, whole = made.channels["mask.fracture"] == 1.0, made.channels["mask.surface"] == 1.0
    assert min(broken.sum(), whole.sum()) > 50
    assert np.allclose(albedo[broken], [0.1, 0.2, 0.7], atol=1e-4)
    assert np.allclose(albedo[whole], [0.25, 0.4, 0.5], atol=1e-4)
