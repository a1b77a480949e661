"""Light obeys its laws, data passes belong to their pixels, threads leave no trace."""

from __future__ import annotations

import contextlib
import dataclasses

import numpy as np
import pytest

from vfx.device import KernelError, open_device
from vfx.raytrace.camera.camera import frame_header
from vfx.raytrace.render import render_frame
from vfx.raytrace.settings import (
    Camera,
    Film,
    Finish,
    FloorLook,
    Light,
    Look,
    MaterialLook,
)

WHITE = np.ones((16, 32, 3), np.float32)
BLACK = np.zeros((16, 32, 3), np.float32)
NO_KEY = Light(key_color=(0.0, 0.0, 0.0))
MATT = Look(albedo=(1.0, 1.0, 1.0), fracture_albedo=(1.0, 1.0, 1.0), specular=0.0)
CAMERA = Camera(position=(0.9, 0.8, 1.4), target=(0.0, 0.0, 0.0))


def film(width, height, samples, **settings):
    return Film(resolution=(width, height), samples=samples, color_space="linear-rec709",
                **settings)


def color(passes):
    return np.stack([passes[name] for name in "RGB"], axis=-1)


@pytest.mark.parametrize("occlusion", [False, True])
@pytest.mark.parametrize("specular", [0.0, 0.3])
@pytest.mark.parametrize("count", [1, 9])
def test_white_furnace_returns_one(device, make_solid, make_pieces, floor_plane, occlusion,
                                   specular, count):
    solid = make_solid((6, 6, 6), spacing=0.08)
    pieces = make_pieces(solid, pieces=count, spread=0.05, turn=0.3)
    look = Look(albedo=(1.0, 1.0, 1.0), fracture_albedo=(1.0, 1.0, 1.0), specular=specular)
    passes = render_frame(device, solid, pieces, CAMERA, NO_KEY, {"stone": look},
                          floor_plane(enabled=False), FloorLook(),
                          film(64, 48, 4, occlusion=occlusion), WHITE)
    assert 0.1 < passes["A"].mean() < 0.9
    assert np.allclose(color(passes), 1.0, atol=1e-3)


@pytest.mark.warp
def test_key_light_on_matt_floor_is_lambert(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((1, 1, 1), spacing=1e-3, center=(0.0, 5.0, 0.0))
    light = Light(key_direction=(0.3, 1.0, -0.2), key_color=(2.0, 1.0, 0.5), key_angle=0.0)
    passes = render_frame(
        device, solid, make_pieces(solid), Camera(position=(0.0, 1.0, 0.5), target=(0.0, 0.0, 0.0)),
        light, {}, floor_plane(), FloorLook(albedo=(0.5, 0.5, 0.5), specular=0.0),
        film(16, 16, 2), BLACK)
    cosine = 1.0 / np.linalg.norm(light.key_direction)
    expected = 0.5 / np.pi * cosine * np.array(light.key_color)
    assert np.allclose(color(passes), expected, rtol=2e-3)


def test_shadow_of_a_cube_is_where_geometry_says(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((3, 3, 3), spacing=0.1, center=(0.0, 0.15, 0.0))
    light = Light(key_direction=(-0.7, 1.0, 0.4), key_color=(3.0, 3.0, 3.0), key_angle=0.0)
    passes = render_frame(
        device, solid, make_pieces(solid), Camera(position=(0.3, 1.6, 0.9), target=(0.0, 0.0, 0.0)),
        light, {"stone": MATT}, floor_plane(), FloorLook(albedo=(1.0, 1.0, 1.0), specular=0.0),
        film(160, 120, 4, occlusion=False), BLACK)
    position = np.stack([passes[f"P.{axis}"] for axis in "XYZ"], axis=-1).astype(float)
    on_floor = (passes["fragment.id"] < 0) & (passes["A"] == 1.0)

    # Clip the ray toward the light against the box |x|, |z| <= 0.15, 0 <= y <= 0.3.
    toward = np.array(light.key_direction)
    near = (np.array([-0.15, 0.0, -0.15]) - position) / toward
    far = (np.array([0.15, 0.3, 0.15]) - position) / toward
    enter, leave = np.minimum(near, far).max(axis=-1), np.maximum(near, far).min(axis=-1)
    dark = (enter < leave) & (leave > 0.0)

    # Judge pixels whose neighbours are of the same kind: others are filtered.
    kind = np.where(on_floor, np.where(dark, 1, 2), 0)
    windows = np.lib.stride_tricks.sliding_window_view(kind, (5, 5))
    pure = np.zeros_like(on_floor)
    pure[2:-2, 2:-2] = windows.min(axis=(2, 3)) == windows.max(axis=(2, 3))
    shadowed, lit = pure & (kind == 1), pure & (kind == 2)
    assert shadowed.sum() > 300 and lit.sum() > 3000
    assert (passes["R"][shadowed] == 0.0).all()
    expected = 3.0 / np.pi / np.linalg.norm(toward)
    assert np.allclose(passes["R"][lit], expected, rtol=5e-3)


def test_position_projects_onto_its_pixel(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((8, 8, 4), spacing=0.05, center=(3.0, 0.3, -2.0))
    pieces = make_pieces(solid, pieces=6, spread=0.1, turn=0.4)
    camera = Camera(position=(4.0, 0.9, -0.9), target=(3.0, 0.25, -2.0))
    picture = film(96, 64, 1)
    passes = render_frame(device, solid, pieces, camera, NO_KEY, {}, floor_plane(), FloorLook(),
                          picture, WHITE)
    header = frame_header(camera, picture, 24, 1001)
    position = np.stack([passes[f"P.{axis}"] for axis in "XYZ"] + [np.ones((64, 96))], axis=-1)
    ndc = position @ header["worldToNDC"].astype(float)
    depth = -(position @ header["worldToCamera"].astype(float))[..., 2]
    seen = passes["depth.Z"] < 1e9
    row, column = np.indices(seen.shape)
    x = (ndc[..., 0] / ndc[..., 3] + 1.0) * 0.5 * 96 - 0.5
    y = (1.0 - ndc[..., 1] / ndc[..., 3]) * 0.5 * 64 - 0.5
    near = seen & (depth < 10.0)
    assert (passes["fragment.id"][seen] >= 0).sum() > 500
    assert np.abs(x - column)[near].max() < 0.01 and np.abs(y - row)[near].max() < 0.01
    assert np.allclose(depth[seen], passes["depth.Z"][seen], rtol=1e-5)
    normal = np.stack([passes[f"N.{axis}"] for axis in "XYZ"], axis=-1)
    assert np.allclose(np.linalg.norm(normal[seen], axis=-1), 1.0, atol=1e-5)


def test_background_is_the_environment(device, make_solid, make_pieces, floor_plane):
    """The camera looks along -z, at the middle of the image; its right edge is toward +x."""
    solid = make_solid((1, 1, 1), spacing=1e-3, center=(0.0, 0.0, 50.0))
    sky = np.zeros((90, 180, 3), np.float32)
    sky[:, 91:] = 1.0
    camera = Camera(position=(0.0, 0.0, 0.0), target=(0.0, 0.0, -1.0))
    passes = render_frame(device, solid, make_pieces(solid), camera, NO_KEY, {},
                          floor_plane(enabled=False), FloorLook(), film(32, 16, 4), sky)
    assert (passes["R"][:, :14] == 0.0).all() and (passes["R"][:, 20:] == 1.0).all()
    assert (passes["A"] == 0.0).all() and (passes["fragment.id"] == -1.0).all()
    turned = render_frame(device, solid, make_pieces(solid), camera,
                          Light(key_color=(0.0, 0.0, 0.0), environment_rotation=180.0), {},
                          floor_plane(enabled=False), FloorLook(), film(32, 16, 4), sky)
    assert (turned["R"][:, :14] == 1.0).all() and (turned["R"][:, 20:] == 0.0).all()


def test_ball_is_drawn_where_it_is(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((1, 1, 1), spacing=1e-3, center=(0.0, 0.0, 50.0))
    pieces = make_pieces(solid)
    pieces.projectile_position = np.array([[0.0, 0.0, -2.0]])
    pieces.projectile_radius = np.array([0.3])
    camera = Camera(position=(0.0, 0.0, 0.0), target=(0.0, 0.0, -1.0), focal_length=36.0)
    passes = render_frame(device, solid, pieces, camera, NO_KEY, {},
                          floor_plane(enabled=False), FloorLook(), film(128, 128, 8), WHITE)
    # The ball covers a disk of tan(asin(0.3 / 2)) at distance 1; the film is 1 x 1 there.
    expected = np.pi * np.tan(np.arcsin(0.15))**2
    assert passes["A"].mean() == pytest.approx(expected, rel=0.01)
    assert passes["depth.Z"][64, 64] == pytest.approx(1.7, abs=1e-3)


@pytest.mark.parametrize("lighting", ["harmonic", "path"])
@pytest.mark.parametrize("look", [
    Look(), MaterialLook(Finish(kind="glass"), Finish(kind="glass", bump=0.3, abbe=30.0))],
    ids=["opaque", "glass"])
def test_same_picture_from_any_number_of_threads(make_solid, make_pieces, floor_plane, look,
                                                 lighting):
    device = open_device("cpu")
    solid = make_solid((12, 12, 3), spacing=0.05, center=(0.0, 0.3, 0.0))
    pieces = make_pieces(solid, pieces=15, spread=0.05, turn=0.4)
    before = device.threads
    pictures = []
    for threads in (1, 2):
        device.threads = threads
        pictures.append(render_frame(
            device, solid, pieces, CAMERA, Light(), {"stone": look}, floor_plane(),
            FloorLook(texture="wood"), film(70, 50, 4, lighting=lighting), WHITE))
    device.threads = before
    for name, values in pictures[0].items():
        assert np.array_equal(values, pictures[1][name]), name


def test_exposure_and_color_space_scale_the_picture(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((2, 2, 2), spacing=0.2)

    def picture(light, settings):
        return color(render_frame(device, solid, make_pieces(solid), CAMERA, light, {},
                                  floor_plane(enabled=False), FloorLook(), settings, WHITE))

    plain = picture(NO_KEY, film(24, 16, 1))
    brighter = picture(Light(key_color=(0.0, 0.0, 0.0), exposure=1.0), film(24, 16, 1))
    assert np.allclose(brighter, 2.0 * plain, rtol=1e-6)
    aces = picture(NO_KEY, Film(resolution=(24, 16), samples=1))
    background = plain.min(axis=-1) == 1.0
    assert np.allclose(aces[background], 1.0, atol=1e-5)


@pytest.mark.parametrize("lighting", ["harmonic", "path"])
@pytest.mark.parametrize("broken", [
    {"position": (np.nan, 1.0, 1.0)}, {"position": (1e38, 1e38, -1e38)},
    {"target": (np.inf, 0.0, 0.0)}, {"focal_length": np.nan}, {"focal_length": 1e-38},
    {"f_stop": 1e-38, "focus_distance": np.nan}])
def test_no_camera_drives_a_kernel_out_of_its_arrays(device, make_solid, make_pieces, floor_plane,
                                                     lighting, broken):
    """None of these passes a check; a kernel has to live with them all the same.

    Numbers that are no floats do not get that far.
    """
    solid = make_solid((4, 4, 4), spacing=0.08)
    look = MaterialLook(Finish(kind="ggx"), Finish(kind="glass"))
    too_large = broken.get("focal_length") == 1e-38 or broken.get("position", (0,))[0] == 1e38
    refusal = pytest.raises(KernelError, match="does not fit float")
    with np.errstate(all="ignore"), refusal if too_large else contextlib.nullcontext():
        passes = render_frame(
            device, solid, make_pieces(solid, pieces=3, spread=0.05, turn=0.3),
            dataclasses.replace(CAMERA, **broken), Light(), {"stone": look}, floor_plane(),
            FloorLook(texture="image.png"), film(16, 8, 2, lighting=lighting), WHITE,
            texture=np.ones((3, 5, 3), np.float32))
    assert too_large or np.isfinite(color(passes)).all()


@pytest.mark.parametrize("lighting", ["harmonic", "path"])
@pytest.mark.parametrize("brightness", [1e12, 3e38])
def test_a_blinding_sky_leaves_finite_pixels(device, make_solid, make_pieces, floor_plane,
                                             lighting, brightness):
    """A film takes no more from a sample than it can sum, and nothing that is no number."""
    solid = make_solid((4, 4, 4), spacing=0.08)
    look = MaterialLook(Finish(kind="ggx", roughness=0.05, specular=(1.0, 1.0, 1.0)),
                        Finish(kind="glass"))
    sky = BLACK.copy()
    sky[2, 3] = sky[12, 20:24] = brightness
    with np.errstate(over="ignore", invalid="ignore"):
        passes = render_frame(
            device, solid, make_pieces(solid, pieces=3, spread=0.05, turn=0.3), CAMERA,
            Light(exposure=40.0), {"stone": look}, floor_plane(), FloorLook(),
            Film(resolution=(16, 8), samples=16, lighting=lighting, noise_target=0.01), sky)
    for name, channel in passes.items():
        assert np.isfinite(channel).all(), name
