"""Glass obeys Snell, Fresnel and Beer; pieces unite where they overlap, not where they touch."""

from __future__ import annotations

import manifold3d
import numpy as np
import pytest

from vfx.raytrace.render import render_frame
from vfx.raytrace.settings import Camera, Film, FloorLook, Light
from vfx.raytrace.surface.materials import refractive_indices

from .conftest import (
    Plane,
    ball_mesh,
    boundary_of,
    box_polygons,
    box_solid,
    in_pieces,
    mesh_solid,
)
from .optics import (
    NO_KEY,
    direction_sky,
    end_directions,
    finish_pair,
    half_sky,
    preset_pair,
    traced_light,
)

INDEX = 1.5
CLEAR = finish_pair(kind="glass", ior=INDEX)


def fresnel(sine, index):
    """Unpolarised reflectance from air into glass at the sine of the angle of incidence."""
    cos_i, cos_t = np.sqrt(1 - sine**2), np.sqrt(1 - (sine / index)**2)
    across = (cos_i - index * cos_t) / (cos_i + index * cos_t)
    along = (index * cos_i - cos_t) / (index * cos_i + cos_t)
    return 0.5 * (across**2 + along**2)


def layered(n_layers, size=8):
    """Return a flat plate of cubes whose layers are pieces, at rest."""
    solid = box_solid((size, n_layers, size), spacing=1.0)
    pieces = in_pieces(solid, n_layers, 1, 0.0, 0.0)
    pieces.fragment = solid.cell[:, 1].astype(np.int32)
    pieces.rotation[:] = np.eye(3)
    pieces.translation[:] = 0.0
    return solid, pieces


@pytest.mark.parametrize("degrees", [0.0, 30.0, 56.31, 75.0])
@pytest.mark.parametrize("n_layers", [1, 2, 3])
def test_plates_reflect_as_fresnel_says(device, degrees, n_layers):
    """m interfaces reflect m R / (1 + (m - 1) R): touching pieces have two between them."""
    size = 8 if degrees < 60.0 else 40
    solid, pieces = layered(n_layers, size)
    sine, samples = np.sin(np.radians(degrees)), 4096
    direction = np.array([[sine, -np.sqrt(1 - sine**2), 0.001]])
    light = traced_light(device, solid, pieces, CLEAR, np.array([[0.1, 0.0, 0.07]])
                         - 20.0 * direction, direction, half_sky(), samples=samples, depth=60)
    r = fresnel(sine, INDEX)
    expected = 2 * n_layers * r / (1 + (2 * n_layers - 1) * r)
    assert light.mean() == pytest.approx(expected, abs=4 * 0.5 / np.sqrt(samples))


@pytest.mark.warp
def test_absorption_follows_beer(device):
    """Light through a plate: (1 - R)^2 T / (1 - R^2 T^2), T = exp(-a d / cos)."""
    solid, pieces = layered(1)
    tint = (0.9, 0.5, 0.1)
    look = finish_pair(kind="glass", ior=INDEX, tint=tint, tint_depth=2.0)
    sine, samples = np.sin(np.radians(40.0)), 4096
    direction = np.array([[sine, np.sqrt(1 - sine**2), 0.001]])
    light = traced_light(device, solid, pieces, look, -20.0 * direction, direction, half_sky(),
                         samples=samples, depth=60).mean(axis=(0, 1))
    way = 1.0 / np.sqrt(1 - (sine / INDEX)**2)
    r, t = fresnel(sine, INDEX), np.array(tint)**(way / 2.0)
    assert light == pytest.approx((1 - r)**2 * t / (1 - (r * t)**2), abs=0.015)


def test_prism_deviates_by_its_angle_and_index(device):
    """At the symmetric passage the deviation is 2 asin(n sin(A/2)) - A, for each colour."""
    apex = np.radians(50.0)
    half = np.tan(apex / 2)
    vertex = np.array([[x * half, y, z] for z in (-2.0, 2.0) for x, y in
                       ((-1.0, 0.0), (1.0, 0.0), (0.0, 1.0))])
    prism = mesh_solid(vertex, [[0, 2, 1], [3, 4, 5], [0, 1, 4, 3], [1, 2, 5, 4], [2, 0, 3, 5]])
    abbe = 25.0
    look = finish_pair(kind="glass", ior=1.6, abbe=abbe)
    index = refractive_indices(1.6, abbe)
    deviation = 2 * np.arcsin(np.array(index) * np.sin(apex / 2)) - apex
    pieces = in_pieces(prism, 1, 1, 0.0, 0.0)
    # Aim at the left face so that green runs level through the prism.
    angle = deviation[1] / 2
    direction = np.array([[np.cos(angle), np.sin(angle), 0.0]])
    left = np.array([[-0.5 * half, 0.5, 0.0]])
    end = end_directions(device, prism, pieces, look, left - 5.0 * direction, direction,
                         samples=512)[0]
    for channel in range(3):
        own = end[np.isfinite(end[:, channel]), channel]
        assert 100 < len(own) < 250
        # Colour c of the sky tells component c of the direction: x, y, z.
        n = index[channel]
        inside = np.arcsin(np.sin(angle + apex / 2) / n)
        out = np.arcsin(n * np.sin(apex - inside))
        down = out - apex / 2
        expected = (np.cos(down), -np.sin(down), 0.0)[channel]
        assert np.median(own) == pytest.approx(expected, abs=4e-3)
    # The deviation of green is the least for its index.
    assert angle + apex / 2 + np.arcsin(index[1] * np.sin(apex / 2)) - apex == pytest.approx(
        deviation[1])


def test_ball_lens_focuses_where_it_should(device):
    """A ray at height h turns by 2 (asin h - asin h/n): near the axis h / f, f = n/2(n-1)."""
    vertex, triangles, normal = ball_mesh(1.0, 90)
    ball = mesh_solid(vertex, triangles, normal)
    height = np.array([0.1, 0.2, 0.4, 0.6, 0.8])
    origin = np.column_stack([np.full(5, -4.0), height, np.full(5, 0.003)])
    end = np.median(end_directions(device, ball, in_pieces(ball, 1, 1, 0.0, 0.0), CLEAR, origin,
                                   np.tile([1.0, 0.0, 0.0], (5, 1)), samples=129), axis=1)
    turned = np.arctan2(-end[:, 1], end[:, 0])
    expected = 2 * (np.arcsin(height) - np.arcsin(height / INDEX))
    assert turned == pytest.approx(expected, abs=6e-3)
    focal_length = INDEX / (2 * (INDEX - 1))
    assert height[0] / np.tan(turned[0]) == pytest.approx(focal_length, rel=0.05)


@pytest.mark.warp
def test_beyond_the_critical_angle_all_light_is_reflected(device):
    """A right-angled prism sends light back: only its first face reflects some away."""
    vertex = np.array([[x, y, z] for z in (-2.0, 2.0) for x, y in ((0, 0), (1, 0), (0, 1))], float)
    prism = mesh_solid(vertex, [[0, 2, 1], [3, 4, 5], [0, 1, 4, 3], [1, 2, 5, 4], [2, 0, 3, 5]])
    end = end_directions(device, prism, in_pieces(prism, 1, 1, 0.0, 0.0), CLEAR,
                         np.array([[0.5, -3.0, 0.01]]), np.array([[0.0, 1.0, 0.0]]),
                         samples=1024)[0]
    # Up into the prism, mirrored at 45 degrees to -x; nothing gets out through the long face.
    assert np.median(end, axis=0) == pytest.approx((-1.0, 0.0, 0.0), abs=4e-3)
    assert not (end @ [0.0, 1.0, 0.0] > 0.1).any()
    assert ((end[:, 0] < -0.99) | (end[:, 1] < -0.99)).all()


def test_thin_glass_reflects_but_does_not_bend(device):
    solid, pieces = layered(1)
    sine, samples = np.sin(np.radians(50.0)), 4096
    direction = np.array([[sine, -np.sqrt(1 - sine**2), 0.001]])
    look = finish_pair(kind="glass", ior=INDEX, thin=True)
    end = end_directions(device, solid, pieces, look, -20.0 * direction, direction,
                         samples=64, depth=60)[0]
    level = np.abs(np.abs(end[:, 1]) - np.sqrt(1 - sine**2))
    assert level.max() < 0.01 and np.abs(end[:, 0] - sine).max() < 0.01
    light = traced_light(device, solid, pieces, look, -20.0 * direction, direction, half_sky(),
                         samples=samples, depth=60)
    r = fresnel(sine, INDEX)
    assert light.mean() == pytest.approx(2 * r / (1 + r), abs=0.03)


@pytest.mark.parametrize("count", [1, 12])
@pytest.mark.parametrize("lighting", ["harmonic", "path"])
def test_clear_glass_is_invisible_in_a_white_world(device, floor_plane, lighting, count):
    solid = box_solid((6, 6, 3), spacing=0.1)
    pieces = in_pieces(solid, count, 3, 0.04, 0.3)
    passes = render_frame(
        device, solid, pieces, Camera(position=(0.9, 0.8, 1.4), target=(0.0, 0.0, 0.0)), NO_KEY,
        {"stone": finish_pair(kind="glass", ior=1.5, bump=0.3)}, floor_plane(enabled=False),
        FloorLook(), Film(resolution=(48, 32), samples=16, color_space="linear-rec709",
                          lighting=lighting), np.ones((8, 16, 3), np.float32))
    assert 0.1 < passes["A"].mean() < 0.9
    # The first interface draws reflections more often than they count: the mean is exact.
    picture = np.stack([passes[name] for name in "RGB"])
    assert picture.mean() == pytest.approx(1.0, abs=0.01)
    assert np.abs(picture - 1.0).max() < 0.5


EYE = (0.07, 0.05, 0.3)


def plate_picture(device, solid, pieces, depth, samples=1):
    passes = render_frame(
        device, solid, pieces, Camera(position=EYE, target=(0.0, 0.0, 0.0)), NO_KEY,
        {"stone": preset_pair("glass")}, Plane(enabled=False), FloorLook(),
        Film(resolution=(320, 180), samples=samples, depth=depth, color_space="linear-rec709"),
        0.5 * direction_sky(64))
    return np.stack([passes[name] for name in "RGB"], axis=-1), passes


def test_a_plate_of_many_elements_is_the_plate_in_one_piece(device):
    cells, spacing = (50, 50, 4), 2e-3
    solid = box_solid(cells, spacing=spacing)
    assert solid.n_elements == 10_000
    half = 0.5 * spacing * np.array(cells)
    whole = mesh_solid(*box_polygons(-half, half))
    many, _ = plate_picture(device, solid, in_pieces(solid, 1, 1, 0.0, 0.0), 16, samples=4)
    one, passes = plate_picture(device, whole, in_pieces(whole, 1, 1, 0.0, 0.0), 16, samples=4)
    assert 0.1 < passes["A"].mean() < 0.9
    difference = np.abs(many - one).max(axis=-1)
    # The same random numbers: but for rays within rounding of an edge, the same picture.
    assert (difference > 2e-3).mean() < 2e-3
    assert difference.mean() < 1e-3


def test_pieces_at_rest_show_their_interfaces_only(device):
    cells, spacing = (100, 100, 1), 1e-3
    solid = box_solid(cells, spacing=spacing)
    whole = in_pieces(solid, 1, 1, 0.0, 0.0)
    broken = in_pieces(solid, 400, 5, 0.0, 0.0)
    # Two interfaces: a ray goes in, and out or back.
    one, passes = plate_picture(device, solid, whole, 2)
    many, _ = plate_picture(device, solid, broken, 2)
    difference = np.abs(many - one).max(axis=-1)

    # Follow the refracted ray through the cells from where it enters.
    normal = np.stack([passes[f"N.{axis}"] for axis in "XYZ"], axis=-1).astype(float)
    entry = np.stack([passes[f"P.{axis}"] for axis in "XYZ"], axis=-1).astype(float)
    direction = entry - np.array(EYE)
    direction /= np.linalg.norm(direction, axis=-1, keepdims=True)
    cosine = -(direction * normal).sum(axis=-1, keepdims=True)
    eta = 1.0 / 1.52
    inner = eta * direction + (eta * cosine - np.sqrt(1 - eta**2 * (1 - cosine**2))) * normal
    half = 0.5 * spacing * np.array(cells)
    way = np.where(inner > 0, half - entry, -half - entry) / np.where(inner == 0, 1e-9, inner)
    end = way.min(axis=-1)
    label = []
    for part in np.linspace(0.002, 0.998, 150):
        at = (entry + part * end[..., None] * inner + half) / spacing
        cell = np.clip(at.astype(int), 0, np.array(cells) - 1)
        label.append(broken.fragment[np.ravel_multi_index(tuple(np.moveaxis(cell, -1, 0)), cells)])
    crosses = (np.array(label) != label[0]).any(axis=0)
    # Leave out pixels near an interface: the picture's ray is not the pixel's centre.
    seen = passes["A"] > 0
    piece = np.where(seen & ~crosses, label[0], -1)
    windows = np.lib.stride_tricks.sliding_window_view(piece, (5, 5))
    pure = np.zeros_like(seen)
    pure[2:-2, 2:-2] = windows.min(axis=(2, 3)) == windows.max(axis=(2, 3))
    undisturbed = pure & (piece >= 0)
    disturbed = seen & crosses
    assert undisturbed.sum() > 300 and disturbed.sum() > 100
    assert (difference[undisturbed] > 2e-3).mean() < 5e-3
    assert (difference[disturbed] > 1e-2).mean() > 0.1


def test_pieces_that_overlap_are_one_body(device):
    """Two turned boxes that overlap look as their union made by another program."""
    half = np.array([0.5, 0.3, 0.4])
    turn, shift = np.radians(25.0), np.array([0.35, 0.2, 0.1])
    solid = box_solid((2, 1, 1), spacing=1.0)
    pieces = in_pieces(solid, 2, 1, 0.0, 0.0)
    pieces.fragment = np.array([0, 1], np.int32)
    rotation = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0],
                         [0, 0, 1.0]])
    pieces.rotation[:] = [np.eye(3), rotation]
    pieces.translation[:] = [[0.5, 0.0, 0.0], shift - rotation @ [0.5, 0.0, 0.0]]
    cube = manifold3d.Manifold.cube((1.0, 1.0, 1.0), True)
    other = cube.rotate((0.0, 0.0, 25.0)).translate(tuple(shift))
    mesh = (cube + other).to_mesh()
    vertex = np.array(mesh.vert_properties)[:, :3].astype(float)
    union = mesh_solid(vertex, [list(map(int, t)) for t in np.array(mesh.tri_verts)])
    del half
    random = np.random.default_rng(3)
    target = random.uniform(-0.6, 0.8, (4000, 3))
    origin = 4.0 * random.normal(size=(4000, 3))
    origin *= 4.0 / np.linalg.norm(origin, axis=1, keepdims=True)
    pictures = [traced_light(device, each, moved, CLEAR, origin, target - origin,
                             direction_sky(128), depth=12)
                for each, moved in ((solid, pieces), (union, in_pieces(union, 1, 1, 0.0, 0.0)))]
    difference = np.abs(pictures[0] - pictures[1]).max(axis=(1, 2))
    assert (difference > 1e-2).mean() < 2e-3
    lights = pictures[0].reshape(-1, 3)
    assert lights.std(axis=0).min() > 0.1


def test_a_camera_inside_glass_sees_out_through_one_interface(device):
    solid = box_solid((4, 4, 4), spacing=0.25)
    pieces = in_pieces(solid, 1, 1, 0.0, 0.0)
    direction = np.array([[1.0, 0.3, 0.1]])
    direction /= np.linalg.norm(direction)
    end = end_directions(device, solid, pieces, CLEAR, np.zeros((1, 3)), direction,
                         samples=257, eye=(0.0, 0.0, 0.0))[0]
    assert np.median(end, axis=0)[1:] == pytest.approx(INDEX * direction[0, 1:], abs=4e-3)


@pytest.mark.warp
def test_faces_of_all_elements_are_closed_under_partners(device, make_solid, make_pieces):
    solid = make_solid((5, 4, 3), spacing=0.1)
    pieces = make_pieces(solid, pieces=7)
    boundary = boundary_of(device, solid, pieces)
    partner = boundary.partner
    inner = partner >= 0
    assert inner.sum() == boundary.is_fracture.sum() > 0
    assert (partner[partner[inner]] == np.flatnonzero(inner)).all()
    own = np.sort(boundary.triangle[inner].reshape(-1, 9), axis=1)
    assert np.array_equal(own, np.sort(boundary.triangle[partner[inner]].reshape(-1, 9), axis=1))
    assert (boundary.piece_id[inner] != boundary.piece_id[partner[inner]]).all()


@pytest.mark.parametrize("count", [3, 8, 12, 20])
def test_a_stack_of_overlapping_pieces_is_one_body(device, count):
    """Cubes shifted by little: where one ends the ray is inside of all the others."""
    solid = box_solid((count, 1, 1))
    pieces = in_pieces(solid, count, 1, 0.0, 0.0)
    step, order = 0.04, np.argsort(pieces.fragment)
    place = np.column_stack([step * np.arange(count), np.zeros(count), np.zeros(count)])
    pieces.translation[:] = (place - solid.position)[order]
    whole = mesh_solid(*box_polygons((-0.5, -0.5, -0.5),
                                     (0.5 + step * (count - 1), 0.5, 0.5)))
    random = np.random.default_rng(4)
    origin = np.column_stack([np.full(64, -3.0), random.uniform(-0.2, 0.2, (64, 2))])
    direction = np.column_stack([np.ones(64), random.uniform(-0.05, 0.05, (64, 2))])
    # The tint tells how far a ray goes through glass.
    tinted = finish_pair(kind="glass", ior=INDEX, tint=(0.1, 0.3, 0.6), tint_depth=0.3)
    sky = direction_sky()
    stacked, single = (
        traced_light(device, body, parts, tinted, origin, direction, sky, samples=16)
        for body, parts in ((solid, pieces), (whole, in_pieces(whole, 1, 1, 0.0, 0.0))))
    assert np.isfinite(stacked).all()
    assert np.abs(stacked - single).max(axis=2).mean() < 1e-3
    assert (np.abs(stacked - single).max(axis=2) > 1e-2).mean() < 5e-3


@pytest.mark.parametrize("lighting", ["harmonic", "path"])
def test_any_number_of_pieces_in_one_place_gives_a_picture(device, lighting):
    """Forty turned cubes about one point: too many to know them all, but all light is finite."""
    solid = box_solid((40, 1, 1), spacing=0.1)
    pieces = in_pieces(solid, 40, 1, 0.0, 2.0)
    center = np.einsum("kij,kj->ki", pieces.rotation,
                       solid.position[np.argsort(pieces.fragment)])
    pieces.translation[:] = -center
    made = render_frame(
        device, solid, pieces, Camera(position=(0.0, 0.1, 0.5), target=(0.0, 0.0, 0.0)),
        Light(), {"stone": CLEAR}, Plane(height=-0.1), FloorLook(),
        Film(resolution=(48, 32), samples=4, lighting=lighting), np.ones((8, 16, 3), np.float32))
    assert all(np.isfinite(channel).all() for channel in made.values())
    assert 0.0 < made["R"].mean() < 10.0
