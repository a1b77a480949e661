"""Surfaces scatter no more and no less than they get, and lights give what closed forms say."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.raytrace.light.lights import drawing_table
from vfx.raytrace.render import render_frame
from vfx.raytrace.settings import AreaLight, Camera, Film, FloorLook, Light, Look
from vfx.raytrace.surface.materials import finish_tables, lobe_albedos

from .conftest import Plane, ball_mesh, box_solid, in_pieces, mesh_solid
from .optics import NO_KEY, finish_pair, preset_pair, traced_light

WHITE = np.ones((16, 32, 3), np.float32)
BLACK = np.zeros((16, 32, 3), np.float32)


def rays_at_a_box(count, seed=4):
    random = np.random.default_rng(seed)
    origin = random.normal(size=(count, 3))
    origin *= 3.0 / np.linalg.norm(origin, axis=1, keepdims=True)
    return origin, random.uniform(-0.35, 0.35, (count, 3)) - origin


@pytest.mark.parametrize("finish", [
    {"kind": "phong", "albedo": (1, 1, 1), "specular": (0, 0, 0)},
    {"kind": "phong", "albedo": (1, 1, 1), "specular": (0.3, 0.3, 0.3), "shininess": 30.0},
    {"kind": "ggx", "albedo": (1, 1, 1), "specular": (0.04, 0.04, 0.04), "roughness": 0.3},
    {"kind": "ggx", "albedo": (1, 1, 1), "specular": (0.5, 0.5, 0.5), "roughness": 0.8},
    {"kind": "ggx", "albedo": (0, 0, 0), "specular": (1, 1, 1), "roughness": 0.6},
    {"kind": "ggx", "albedo": (0, 0, 0), "specular": (1, 1, 1), "roughness": 0.15},
], ids=lambda finish: f"{finish['kind']}-{finish['specular'][0]}")
def test_white_furnace_of_paths_returns_one(device, finish):
    """Every path ends in a white sky: on the mean nothing is lost or won, pieces included."""
    solid = box_solid((4, 4, 4), spacing=0.2)
    origin, direction = rays_at_a_box(400)
    light = traced_light(device, solid, in_pieces(solid, 5, 2, 0.1, 0.4), finish_pair(**finish),
                         origin, direction, WHITE, samples=64, lighting="path", bounces=8)
    assert light.mean() == pytest.approx(1.0, abs=0.012)


def test_lobes_keep_their_light_at_every_angle(device):
    """A rough white metal floor, seen from steep to grazing."""
    solid = box_solid((1, 1, 1), spacing=2.0)
    angle = np.radians([5.0, 30.0, 60.0, 80.0])
    origin = np.column_stack([np.sin(angle), np.cos(angle), 0 * angle]) * 10.0 + [0.0, 1.0, 0.0]
    light = traced_light(
        device, solid, in_pieces(solid, 1, 1, 0.0, 0.0),
        finish_pair(kind="ggx", albedo=(0, 0, 0), specular=(1, 1, 1), roughness=0.7),
        origin, [0.01, 1.0, 0.013] - origin, WHITE, samples=4096, lighting="path")
    assert light.mean(axis=(1, 2)) == pytest.approx(np.ones(4), abs=0.025)


def test_smooth_lobes_reflect_everything():
    table = lobe_albedos()
    assert table.shape == (32, 32, 2) and (table[..., 0] <= 1.0 + 1e-6).all()
    assert table[0, 1:, 0] == pytest.approx(np.ones(31), abs=0.02)
    # Schlick's rise of a mirror at cosine c is (1 - c)^5.
    cosine = np.linspace(0.0, 1.0, 32)
    assert table[0, 1:, 1] == pytest.approx((1.0 - cosine[1:])**5, abs=0.02)


def test_drawing_table_follows_the_light():
    sky = np.zeros((64, 128, 3), np.float32)
    sky[10:12, 40:44] = 100.0
    row_sum, column_sum = drawing_table(sky)
    assert (np.diff(row_sum) > 0.0).all() and (np.diff(column_sum, axis=1) > 0.0).all()
    share = np.diff(row_sum)[:, None] * np.diff(column_sum, axis=1)
    assert share.sum() == pytest.approx(1.0)
    assert share[9:13, 39:45].sum() > 0.9


def test_both_ways_of_lighting_agree_on_a_matt_ball(device):
    """Harmonics of a smooth sky are exact: both must give the same picture of one ball."""
    vertex, triangles, normal = ball_mesh(0.4, 24)
    ball = mesh_solid(vertex, triangles, normal)
    polar = np.pi * (np.arange(32) + 0.5) / 32
    sky = np.broadcast_to((1.0 + 0.8 * np.cos(polar))[:, None, None], (32, 64, 3))
    sky = np.ascontiguousarray(sky, np.float32)
    origin, direction = rays_at_a_box(300)
    look = finish_pair(kind="phong", albedo=(0.8, 0.5, 0.2), specular=(0, 0, 0))
    pictures = [traced_light(device, ball, in_pieces(ball, 1, 1, 0.0, 0.0), look, origin,
                             direction, sky, samples=256, lighting=lighting).mean(axis=1)
                for lighting in ("harmonic", "path")]
    assert np.abs(pictures[0] - pictures[1]).max() < 0.06
    assert pictures[0].mean(axis=0) == pytest.approx(pictures[1].mean(axis=0), rel=0.01)


@pytest.mark.warp
@pytest.mark.parametrize("lighting", ["harmonic", "path"])
def test_panel_lights_a_floor_as_its_solid_angle_says(device, lighting):
    """Below the middle of a disk-like square: E = L times the form factor of a square."""
    solid = box_solid((1, 1, 1), spacing=1e-3, center=(50.0, 1.0, 0.0))
    side, height = 1.0, 0.8
    lamp = AreaLight(position=(0.0, height, 0.0), target=(0.0, 0.0, 0.0), size=(side, side),
                     color=(3.0, 2.0, 1.0))
    light = traced_light(
        device, solid, in_pieces(solid, 1, 1, 0.0, 0.0), Look(), np.array([[0.9, 0.4, 0.02]]),
        np.array([[-0.9, -0.4, -0.02]]), BLACK, samples=4096, lighting=lighting, floor=Plane(),
        floor_look=FloorLook(albedo=(0.5, 0.5, 0.5), specular=0.0), area_lights=(lamp,),
        bounces=1, occlusion=False)
    # Form factor of a rectangle a x b from below one corner; four of them make the square.
    a = b = 0.5 * side / height
    corner = (a / np.hypot(1, a) * np.arctan(b / np.hypot(1, a))
              + b / np.hypot(1, b) * np.arctan(a / np.hypot(1, b))) / (2 * np.pi)
    expected = 0.5 * 4 * corner * np.array([3.0, 2.0, 1.0])
    assert light.mean(axis=(0, 1)) == pytest.approx(expected, rel=0.03)


def pane_over_a_floor(device, glass, **more):
    """Return the mean light of a white matt floor 1 m below a wide pane, seen between them."""
    solid = box_solid((60, 1, 60), spacing=0.5, center=(0.0, 1.25, 0.0))
    origin, direction = np.tile([0.0, 0.5, 0.0], (64, 1)), np.tile([0.02, -1.0, 0.01], (64, 1))
    return traced_light(
        device, solid, in_pieces(solid, 1, 1, 0.0, 0.0), glass, origin, direction,
        more.pop("sky", WHITE), samples=256, lighting="path", floor=Plane(),
        floor_look=FloorLook(albedo=(1.0, 1.0, 1.0), specular=0.0), **more).mean()


def test_what_comes_through_glass_to_a_path_is_counted_once(device):
    """Light drawn straight through a pane and light found by refraction are one and the same."""
    glass = finish_pair(kind="glass", ior=1.5)
    assert pane_over_a_floor(device, glass, bounces=6) == pytest.approx(1.0, abs=0.02)
    lamp = AreaLight(position=(0.0, 12.0, 0.0), target=(0.0, 0.0, 0.0), size=(2.0, 2.0))
    black = 0.0 * WHITE
    lit = pane_over_a_floor(device, glass, sky=black, area_lights=(lamp,), bounces=1)
    clear = pane_over_a_floor(device, finish_pair(kind="glass", ior=1.0), sky=black,
                              area_lights=(lamp,), bounces=1)
    # Two faces of 4 % each, which throw some back to the floor; counted twice it were 1.9.
    assert 0.88 < lit / clear < 1.1


def test_diffuse_paths_find_no_narrow_highlights(device):
    """A polished box under a narrow key light throws no single bright samples on the floor."""
    solid = box_solid((1, 1, 1), spacing=1.0, center=(0.0, 0.5, 0.0))
    look = finish_pair(kind="ggx", albedo=(0.0, 0.0, 0.0), specular=(0.9, 0.9, 0.9), roughness=0.1)
    origin = np.column_stack([np.linspace(0.7, 1.5, 64), np.full(64, 0.5), np.zeros(64)])
    light = traced_light(
        device, solid, in_pieces(solid, 1, 1, 0.0, 0.0), look, origin,
        np.tile([0.0, -1.0, 0.0], (64, 1)), 0.0 * WHITE, samples=256, lighting="path", bounces=1,
        light=Light(key_direction=(1.0, 1.0, 0.0), key_color=(1.0, 1.0, 1.0)), floor=Plane(),
        floor_look=FloorLook(albedo=(0.5, 0.5, 0.5), specular=0.0))
    assert light.mean() > 0.13, "the light that the box throws back is there"
    assert light.max() < 20.0 * light.mean()


@pytest.mark.warp
def test_panels_are_seen_from_the_front_only(device):
    solid = box_solid((1, 1, 1), spacing=1e-3, center=(50.0, 0.0, 0.0))
    lamp = AreaLight(position=(0.0, 2.0, 0.0), target=(0.0, 0.0, 0.0), size=(1.0, 1.0),
                     color=(3.0, 2.0, 1.0))
    origin = np.array([[0.0, 0.0, 0.01], [0.0, 4.0, 0.01], [0.6, 0.0, 0.0]])
    direction = np.array([[0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 1.0, 0.0]])
    light = traced_light(device, solid, in_pieces(solid, 1, 1, 0.0, 0.0), Look(), origin,
                         direction, BLACK, area_lights=(lamp,))[:, 0]
    assert light[0] == pytest.approx((3.0, 2.0, 1.0)) and not light[1:].any()


def test_catcher_holds_the_shadow_and_nothing_else(device, make_solid, make_pieces, floor_plane):
    solid = make_solid((3, 3, 3), spacing=0.1, center=(0.0, 0.15, 0.0))
    light = Light(key_direction=(-0.7, 1.0, 0.4), key_color=(3.0, 3.0, 3.0), key_angle=0.0)
    for samples in (1, 4):
        passes = render_frame(
            device, solid, make_pieces(solid),
            Camera(position=(0.3, 1.6, 0.9), target=(0.0, 0.0, 0.0)), light, {}, floor_plane(),
            FloorLook(shadow_catcher=True), Film(resolution=(160, 120), samples=samples,
                                                 occlusion=False), BLACK)
        # Leave out pixels that the filter gives a part of the piece.
        on_piece = passes["fragment.id"] >= 0
        near = np.lib.stride_tricks.sliding_window_view(np.pad(on_piece, 2), (5, 5)).any((2, 3))
        assert on_piece.any() and not passes["R"][~near].any()
        assert 0.02 < (passes["A"][~near] > 0.95).mean() < 0.3
        assert (passes["A"][~near] == 0.0).mean() > 0.6
        assert (passes["depth.Z"][~on_piece] > 1e9).all()
    # Without anything above it, a catcher catches nothing.
    lifted = make_solid((1, 1, 1), spacing=1e-3, center=(0.0, 9.0, 0.0))
    passes = render_frame(
        device, lifted, make_pieces(lifted), Camera(position=(0.3, 1.6, 0.9)), light, {},
        floor_plane(), FloorLook(shadow_catcher=True), Film(resolution=(64, 48), samples=4), WHITE)
    assert not passes["A"].any() and not passes["R"].any()


@pytest.mark.parametrize("texture", ["wood", "concrete"])
def test_textures_keep_about_the_colour_of_their_floor(device, texture, make_solid, make_pieces,
                                                       floor_plane):
    solid = make_solid((1, 1, 1), spacing=1e-3, center=(0.0, 9.0, 0.0))
    passes = render_frame(
        device, solid, make_pieces(solid), Camera(position=(0.1, 3.0, 0.2)), NO_KEY, {},
        floor_plane(), FloorLook(albedo=(0.4, 0.3, 0.2), texture=texture, texture_size=0.15),
        Film(resolution=(96, 64), samples=1, color_space="linear-rec709"), WHITE)
    albedo = np.stack([passes[f"albedo.{name}"] for name in "RGB"], axis=-1)
    assert albedo.mean(axis=(0, 1)) == pytest.approx((0.4, 0.3, 0.2), rel=0.2)
    assert albedo.std(axis=(0, 1)).min() > 0.01


def test_image_texture_is_anchored_to_the_world(device, make_solid, make_pieces, floor_plane):
    image = np.zeros((2, 2, 3), np.float32)
    image[0, 0], image[0, 1], image[1, 0] = (1, 0, 0), (0, 1, 0), (0, 0, 1)
    image = image.repeat(32, axis=0).repeat(32, axis=1)
    for shift in (0.0, 6.0):
        solid = make_solid((1, 1, 1), spacing=1e-3, center=(shift, 9.0, 1.7 * shift))
        passes = render_frame(
            device, solid, make_pieces(solid), Camera(position=(0.0, 2.0, 0.001),
                                                      target=(0.0, 0.0, 0.0), up=(0.0, 0.0, -1.0)),
            NO_KEY, {}, floor_plane(), FloorLook(albedo=(1, 1, 1), texture="floor.png",
                                                 texture_size=8.0),
            Film(resolution=(32, 32), samples=1, color_space="linear-rec709"), WHITE,
            texture=image)
        # The image begins at x = z = 0, its columns run along x and its rows along z.
        red, green, blue = (passes[f"albedo.{name}"] for name in "RGB")
        assert red[20:, 20:].min() > 0.99 and green[20:, 20:].max() < 0.01
        assert green[20:, :12].min() > 0.99 and blue[:12, 20:].min() > 0.99
        assert max(red[:12, :12].max(), green[:12, :12].max(), blue[:12, :12].max()) < 0.01


def test_broken_faces_keep_their_bumps_when_they_move(device, make_solid, make_pieces,
                                                      floor_plane):
    """Noise is read at rest: a moved piece under a moved camera has the same tilted normals."""
    solid = make_solid((4, 4, 4), spacing=0.05)
    look = finish_pair(kind="phong", albedo=(0.5, 0.5, 0.5), bump=0.6, bump_size=0.06)
    shift = np.array([3.0, -1.0, 2.0])
    normals = []
    for move in (np.zeros(3), shift):
        pieces = make_pieces(solid)
        pieces.translation = pieces.translation + move
        passes = render_frame(
            device, solid, pieces,
            Camera(position=tuple(move + np.array((0.3, 0.25, 0.4))), target=tuple(move)),
            NO_KEY, {"stone": look},
            floor_plane(enabled=False), FloorLook(), Film(resolution=(64, 64), samples=1), WHITE)
        normals.append(np.stack([passes[f"N.{axis}"] for axis in "XYZ"], axis=-1))
        seen = passes["fragment.id"] >= 0
    # Rounding may move the edge of the picture by a pixel.
    difference = np.abs(normals[0] - normals[1]).max(axis=-1)[seen]
    assert seen.mean() > 0.2 and (difference > 0.01).mean() < 0.02
    flat = np.abs(normals[0][seen]).max(axis=-1)
    assert flat.std() > 0.01 and flat.min() < 0.95


@pytest.mark.parametrize(("preset", "least", "most"), [
    ("glass", 0.5, 4.0), ("green-glass", 0.5, 4.0), ("stone", 10.0, 60.0)])
def test_broken_glass_is_smooth_and_broken_stone_is_not(device, make_solid, make_pieces,
                                                        floor_plane, preset, least, most):
    """Broken glass is nearly a mirror: steeper bumps would show as grain, not as glass."""
    solid = make_solid((8, 8, 4), spacing=0.05)
    passes = render_frame(
        device, solid, make_pieces(solid, pieces=8, spread=0.1, turn=0.0),
        Camera(position=(0.9, 0.8, 1.2), target=(0.0, 0.0, 0.0)), NO_KEY,
        {"stone": preset_pair(preset)}, floor_plane(enabled=False), FloorLook(),
        Film(resolution=(96, 96), samples=1), WHITE)
    normal = np.stack([passes[f"N.{axis}"] for axis in "XYZ"], axis=-1)
    broken = (passes["mask.fracture"] == 1.0) & (passes["fragment.id"] >= 0)
    tilt = np.degrees(np.arccos(np.clip(np.abs(normal[broken]).max(axis=-1), 0.0, 1.0)))
    assert broken.sum() > 300 and least < np.sqrt((tilt**2).mean()) < most


def test_presets_are_completed_by_what_the_shot_says():
    surface, fracture = finish_tables({"preset": "ceramic", "roughness": 0.3}, {"bump": 0.1})
    assert surface["kind"] == fracture["kind"] == "ggx"
    assert surface["roughness"] == 0.3 and fracture["roughness"] == 0.75
    assert fracture["bump"] == 0.1
    alike = finish_tables({"albedo": [0.1, 0.2, 0.3]}, {})
    assert alike[0] == alike[1] == {"albedo": [0.1, 0.2, 0.3]}
    assert preset_pair("glass").surface.kind == "glass"
