"""Colliders in the picture: where geometry says, as pieces of the same shape would be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vfx.raytrace.camera.camera import camera_view
from vfx.raytrace.camera.motion import Neighbors
from vfx.raytrace.props import Prop
from vfx.raytrace.render import render_frame
from vfx.raytrace.settings import Camera, Film, Finish, FloorLook, Light, MaterialLook

SKY = np.random.default_rng(5).uniform(0.2, 2.0, (16, 32, 3)).astype(np.float32)
WHITE = np.ones((16, 32, 3), np.float32)
GREY = Finish(kind="phong", albedo=(0.5, 0.4, 0.3))
CAMERA = Camera(position=(0.9, 0.8, 1.4), target=(0.0, 0.2, 0.0))
TURN = Rotation.from_euler("xyz", (20.0, 35.0, -15.0), degrees=True).as_matrix()
#: From 0.1 s to 0.5 s on the way.
KEYS = np.array([[0.1, -0.2, 0.2, 0.1], [0.5, 0.2, 0.3, -0.1]])
STEP = 0.2
SIZE = (0.3, 0.2, 0.4)
SPHERE = Prop("collider_1", GREY, KEYS, radius=0.2)
BOX = Prop("collider_2", GREY, KEYS, size=SIZE, rotation=TURN)


def film(width, height, samples, **settings):
    return Film(resolution=(width, height), samples=samples, color_space="linear-rec709",
                **settings)


@pytest.fixture
def far_piece(make_solid, make_pieces):
    """A solid that no camera here sees."""
    solid = make_solid((1, 1, 1), spacing=1e-3, center=(0.0, 0.0, 5.0))
    return solid, make_pieces(solid)


def xyz(passes, name):
    return np.stack([passes[f"{name}.{axis}"] for axis in "XYZ"], axis=-1).astype(float)


def picture(device, far_piece, floor, prop, time, camera=CAMERA, near=None, settings=None):
    solid, pieces = far_piece
    return render_frame(
        device, solid, dataclasses.replace(pieces, time=time), camera, Light(), {}, floor,
        FloorLook(), settings or film(96, 64, 1), WHITE, props=(prop,), near=near)


def center_rays(camera, width, height):
    view = camera_view(camera, film(width, height, 1))
    x = (np.arange(width) + 0.5) * 2.0 / width - 1.0
    y = 1.0 - (np.arange(height) + 0.5) * 2.0 / height
    ray = (view.forward + x[None, :, None] * view.half_width * view.right
           + y[:, None, None] * view.half_height * view.up)
    return view, ray / np.linalg.norm(ray, axis=-1, keepdims=True)


def sphere_hits(center, eye, ray):
    """Distance (h, w), or inf, and normal, from the quadratic equation."""
    b = ((eye - center) * ray).sum(axis=-1)
    root = b**2 - ((eye - center)**2).sum() + SPHERE.radius**2
    distance = np.where(root > 0.0, -b - np.sqrt(np.maximum(root, 0.0)), np.inf)
    with np.errstate(invalid="ignore"):
        normal = (eye + distance[..., None] * ray - center) / SPHERE.radius
    return distance, normal


def box_hits(center, eye, ray):
    """Distance (h, w), or inf, and normal: of all six faces, the nearest that is met."""
    eye, ray = TURN.T @ (eye - center), ray @ TURN
    distance, normal = np.full(ray.shape[:2], np.inf), np.zeros(ray.shape)
    half = np.array(SIZE) / 2.0
    for axis in range(3):
        for side in (-1.0, 1.0):
            t = (side * half[axis] - eye[axis]) / ray[..., axis]
            point = eye + t[..., None] * ray
            others = [k for k in range(3) if k != axis]
            met = (np.abs(point[..., others]) <= half[others]).all(axis=-1) & (t < distance)
            distance[met] = t[met]
            normal[met] = side * TURN[:, axis]
    return distance, normal


@pytest.mark.parametrize("prop, hits", [(SPHERE, sphere_hits), (BOX, box_hits)],
                         ids=["sphere", "box"])
@pytest.mark.parametrize("time, center", [
    (0.0, (-0.2, 0.2, 0.1)), (0.2, (-0.1, 0.225, 0.05)), (0.4, (0.1, 0.275, -0.05)),
    (9.0, (0.2, 0.3, -0.1))])
def test_a_keyed_collider_is_where_its_keys_say(device, far_piece, floor_plane, prop, hits, time,
                                                center):
    passes = picture(device, far_piece, floor_plane(enabled=False), prop, time)
    view, ray = center_rays(CAMERA, 96, 64)
    distance, normal = hits(np.array(center), view.eye, ray)
    seen, expected = passes["depth.Z"] < 1e9, np.isfinite(distance)
    assert expected.sum() > 300 and (seen != expected).sum() <= 2
    both = seen & expected
    point = view.eye + distance[..., None] * ray
    assert np.abs(xyz(passes, "P") - point)[both].max() < 2e-5
    # At an edge of a box either face may be met.
    apart = np.linalg.norm(xyz(passes, "N") - normal, axis=-1)[both]
    assert (apart > 1e-3).sum() <= 3
    assert (passes["fragment.id"][both] == -1.0).all()
    assert np.allclose(passes["albedo.R"][64 // 2 - 1, both[64 // 2 - 1]].max(), 0.5, atol=1e-3)


@pytest.mark.parametrize("prop", [SPHERE, BOX], ids=["sphere", "box"])
def test_forward_motion_of_a_collider_leads_to_its_next_place(device, far_piece, floor_plane,
                                                              prop):
    _, pieces = far_piece
    following = dataclasses.replace(pieces, frame=1002, time=0.2 + STEP)
    moves = np.array([0.2, 0.05, -0.1])
    for near in (Neighbors(None, following, STEP), Neighbors(None, None, STEP)):
        passes = picture(device, far_piece, floor_plane(enabled=False), prop, 0.2, near=near)
        seen = passes["depth.Z"] < 1e9
        view = camera_view(CAMERA, film(96, 64, 1))
        point = xyz(passes, "P")[seen]
        expected = view.project(point + moves, (96, 64)) - view.project(point, (96, 64))
        assert seen.sum() > 300 and np.abs(expected).max() > 3.0
        assert np.allclose(passes["forward.u"][seen], expected[:, 0], atol=1e-2)
        assert np.allclose(passes["forward.v"][seen], -expected[:, 1], atol=1e-2)


def test_an_open_shutter_blurs_a_collider_along_its_way(device, far_piece, floor_plane):
    """A sphere as far as the camera's middle is seen for the part of the time it is there."""
    keys = np.array([[0.0, -1.0, 0.0, -2.0], [1.0, 1.0, 0.0, -2.0]])
    prop = Prop("collider_1", GREY, keys, radius=0.1)
    camera = Camera(position=(0.0, 0.0, 0.0), target=(0.0, 0.0, -1.0), focal_length=36.0,
                    shutter_angle=180.0)
    passes = picture(device, far_piece, floor_plane(enabled=False), prop, 0.5, camera,
                     Neighbors(None, None, 0.4), film(128, 128, 64, motion_steps=64))
    row = passes["A"][64]
    # The way is 0.4 m long at distance 2: 0.2 of the film's width and a diameter of 0.1 more.
    assert (row > 0.0).sum() / 128 == pytest.approx(0.3, abs=0.03)
    assert row[64] == pytest.approx(0.5, abs=0.05)
    assert row.mean() == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("lighting", ["harmonic", "path"])
def test_a_box_looks_as_a_cube_of_pieces_does(device, far_piece, make_solid, make_pieces,
                                              floor_plane, lighting):
    """Shadows, reflections and light from the floor included."""
    cube = make_solid((1, 1, 1), spacing=0.3, center=(0.0, 0.2, 0.0))
    look = Finish(kind="ggx", albedo=(0.6, 0.4, 0.3), roughness=0.3)
    settings = film(96, 64, 16, lighting=lighting)
    light, floor = Light(key_angle=0.0), FloorLook(specular=0.3)
    pieces = render_frame(device, cube, make_pieces(cube), CAMERA, light,
                          {"stone": MaterialLook(look, look)}, floor_plane(), floor, settings, SKY)
    box = Prop("collider_1", look, np.array([[0.0, 0.0, 0.2, 0.0]]), size=(0.3, 0.3, 0.3),
               rotation=np.eye(3))
    prop = render_frame(device, *far_piece, CAMERA, light, {}, floor_plane(), floor, settings, SKY,
                        props=(box,))
    for name in ("R", "G", "B", "A", "shadow.Y", "albedo.R", "P.X", "N.Y"):
        apart = np.abs(prop[name] - pieces[name])
        assert np.quantile(apart, 0.99) < 0.01, name
        assert prop[name].mean() == pytest.approx(pieces[name].mean(), abs=3e-3)
    assert (prop["mask.surface"] == 0.0).all() and pieces["mask.surface"].max() == 1.0


def test_glass_shows_a_collider_behind_it(device, make_solid, make_pieces, floor_plane):
    """A bright room, a black wall behind the glass: the picture gets darker by it."""
    solid = make_solid((4, 4, 1), spacing=0.1)
    glass = Finish(kind="glass")
    wall = Prop("collider_1", Finish(albedo=(0.0, 0.0, 0.0), specular=(0.0, 0.0, 0.0)),
                np.array([[0.0, 0.0, 0.0, -1.0]]), size=(4.0, 4.0, 0.1), rotation=np.eye(3))
    camera = Camera(position=(0.0, 0.0, 1.0), target=(0.0, 0.0, 0.0))
    seen = [render_frame(device, solid, make_pieces(solid), camera, Light(key_color=(0, 0, 0)),
                         {"stone": MaterialLook(glass, glass)}, floor_plane(enabled=False),
                         FloorLook(), film(16, 16, 64), WHITE, props=props)["R"][5:11, 5:11].mean()
            for props in ((), (wall,))]
    assert seen[0] == pytest.approx(1.0, abs=0.02)
    # Two interfaces reflect 8 % of the room in front.
    assert seen[1] == pytest.approx(0.08, abs=0.01)
