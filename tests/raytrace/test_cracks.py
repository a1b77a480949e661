"""Cracks within a piece are thin wedges of air: they glint in glass, elsewhere are dark lines."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.open_faces import crack_edges
from vfx.raytrace.boundary.cracked import crack_widths
from vfx.raytrace.boundary.make import make_boundary
from vfx.raytrace.boundary.places import carried_points
from vfx.raytrace.render import render_picture
from vfx.raytrace.settings import Camera, Film, FloorLook, Light, Look

from .conftest import Plane, box_solid, in_pieces
from .optics import end_directions, finish_pair, half_sky, traced_light
from .test_boundary import enclosed_volume
from .test_glass import INDEX, fresnel

WIDTH = 0.1
CLEAR = finish_pair(kind="glass", ior=INDEX, crack_width=WIDTH)
SKY = np.linspace(0.5, 1.4, 16 * 32 * 3, dtype=np.float32).reshape(16, 32, 3)


def cracked(solid, torn, count=1):
    """A solid in pieces at rest, and which of the edges ``torn`` are open in it."""
    pieces = in_pieces(solid, count, 1, 0.0, 0.0)
    pieces.rotation[:], pieces.translation[:] = np.eye(3), 0.0
    return dataclasses.replace(
        pieces, crack_edge=crack_edges(all_faces(solid), pieces.fragment, torn))


def half_cut(solid, axis, cell, deep, along=1):
    """Edges across the plane above ``cell`` along an axis, from the cell ``deep`` on."""
    low, high = (solid.cell[solid.edge[:, k]] for k in (0, 1))
    return np.flatnonzero((low[:, axis] == cell) & (high[:, axis] == cell + 1)
                          & (low[:, along] >= deep))


def triangles_of(device, solid, pieces, width=WIDTH):
    boundary = make_boundary(device, solid, all_faces(solid), pieces,
                             np.full(solid.n_elements, width))
    return (device.to_host(boundary.triangle), device.to_host(boundary.piece),
            boundary.origin)


def area_of(triangle):
    return 0.5 * np.linalg.norm(np.cross(
        triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0]), axis=1).sum()


def is_closed(triangle):
    """Whether every edge is there as often in one direction as in the other."""
    start, end = triangle.reshape(-1, 3), np.roll(triangle, -1, axis=1).reshape(-1, 3)
    there, back = (np.unique(np.concatenate(pair, axis=1), axis=0, return_counts=True)
                   for pair in ((start, end), (end, start)))
    return np.array_equal(there[0], back[0]) and np.array_equal(there[1], back[1])


@pytest.mark.warp
def test_a_half_way_cut_takes_a_wedge_out_of_a_block(device):
    """Two cells deep, three long: w (2 - 1/2) 3 less, and two faces, the last row inclined."""
    solid = box_solid((6, 4, 3))
    pieces = cracked(solid, half_cut(solid, 0, 2, 2))
    triangle, _, _ = triangles_of(device, solid, pieces)
    air = WIDTH * (2 - 0.5)
    assert enclosed_volume(triangle) == pytest.approx(6 * 4 * 3 - 3 * air, rel=1e-6)
    faces = 2 * 3 * (1 + np.sqrt(1 + 0.25 * WIDTH**2))
    outside = 2 * (6 * 4 + 4 * 3 + 3 * 6) - 3 * WIDTH - 2 * air
    assert area_of(triangle) == pytest.approx(outside + faces, rel=1e-6)
    assert is_closed(triangle)
    # Without a width nothing of it is there.
    whole, _, _ = triangles_of(device, solid, pieces, 0.0)
    plain = make_boundary(device, solid, all_faces(solid), pieces)
    assert np.array_equal(whole, device.to_host(plain.triangle))


def winding(device, triangle, point):
    """How often closed triangles go around each point, (q,)."""
    count = np.zeros(len(point), int)
    for number, each in enumerate(point):
        sign = device.xp.empty(len(triangle), device.xp.int32)
        device.module("raytrace/tree/bvh.cu").crossing_signs(
            len(triangle), each, np.array([0.5163, 0.6271, 0.5834]),
            device.from_host(triangle), sign)
        count[number] = device.to_host(sign).sum()
    return count


@pytest.mark.parametrize("shape", ["grid", "voronoi"])
@pytest.mark.parametrize(("share", "count"), [(0.1, 1), (0.3, 1), (0.5, 3), (0.9, 2)])
def test_pieces_stay_closed_and_never_overlap_whatever_broke(device, shape, share, count):
    solid = box_solid((6, 6, 6)) if shape == "grid" else build_solid([Body(
        material="stone", mesh="asset:sphere", height=6.0, shape="voronoi", elements=180)])
    random = np.random.default_rng(int(10 * share))
    pieces = cracked(solid, np.flatnonzero(random.random(len(solid.edge)) < share), count)
    width = WIDTH * float(solid.size.mean())
    triangle, piece, origin = triangles_of(device, solid, pieces, width)
    assert len(pieces.crack_edge) > 10
    for each in range(count):
        assert is_closed(triangle[piece == each])
    # Points about the cracks are inside once, or in the air of a crack.
    near = solid.position[solid.edge[pieces.crack_edge]].mean(axis=1)
    point = near[random.integers(len(near), size=100)] + random.normal(
        0.0, 0.5 * width, (100, 3))
    around = winding(device, triangle, point - origin)
    assert np.isin(around, (0, 1)).all() and (around == 0).mean() > 0.1
    assert (winding(device, triangle, solid.position[::5] - origin) == 1).all()


def test_moved_pieces_take_their_cracks_along(device):
    solid = box_solid((6, 4, 3))
    pieces = cracked(solid, half_cut(solid, 0, 2, 2))
    turned = in_pieces(solid, 1, 3, 5.0, 1.0)
    moved = dataclasses.replace(pieces, rotation=turned.rotation, translation=turned.translation)
    rest, _, middle = triangles_of(device, solid, pieces)
    there, _, origin = triangles_of(device, solid, moved)
    expected = (rest + middle) @ turned.rotation[0].T + turned.translation[0]
    np.testing.assert_allclose(there + origin, expected, atol=1e-5)


@pytest.mark.warp
@pytest.mark.parametrize("x, faces", [(-3.0, 2), (3.0, 4)])
def test_a_ray_through_a_crack_in_glass_meets_two_faces_more(device, x, faces):
    """m interfaces reflect m R / (1 + (m - 1) R)."""
    solid = box_solid((16, 2, 16))
    pieces = cracked(solid, half_cut(solid, 1, 0, 8, along=0))
    sine, samples = np.sin(np.radians(40.0)), 4096
    direction = np.array([[0.001, -np.sqrt(1 - sine**2), sine]])
    light = traced_light(device, solid, pieces, CLEAR, np.array([[x, 0.0, 0.1]])
                         - 20.0 * direction, direction, half_sky(), samples=samples, depth=60)
    r = fresnel(sine, INDEX)
    assert light.mean() == pytest.approx(faces * r / (1 + (faces - 1) * r),
                                         abs=4 * 0.5 / np.sqrt(samples))


def test_a_crack_reflects_all_beyond_the_critical_angle(device):
    """From within: up to the crack, mirrored down, and out through the side."""
    solid = box_solid((16, 8, 16), spacing=0.25)
    torn = half_cut(solid, 1, 3, 0)
    part = torn[solid.cell[solid.edge[torn, 0], 0] >= 2]
    direction = np.array([[np.cos(np.radians(35.0)), np.sin(np.radians(35.0)), 0.0]])
    start = np.array([[1.2, -0.2, 0.03]])
    ends = [end_directions(device, solid, each, CLEAR, start, direction, samples=257,
                           eye=tuple(start[0]))[0]
            for each in (cracked(solid, part), cracked(solid, part[:0]))]
    rise = [float(np.median(end[:, 1])) for end in ends]
    assert rise == pytest.approx([-INDEX * direction[0, 1], INDEX * direction[0, 1]], abs=5e-3)
    assert (np.abs(ends[0][:, 1] - rise[0]) < 5e-3).mean() > 0.9


def slab_picture(device, solid, pieces, look, **settings):
    """A slab from straight above, so that all the picture shows of it is its upper side."""
    return render_picture(
        device, solid, pieces, Camera(position=(0.0, 400.0, 0.0), target=(0.0, 0.0, 0.0),
                                      up=(0.0, 0.0, 1.0), focal_length=2000.0),
        Light(), {"stone": look}, Plane(enabled=False), FloorLook(),
        Film(resolution=(36, 24), samples=64, filter="box", **settings), SKY)


@pytest.mark.parametrize(("lighting", "darkest"), [("harmonic", 0.6), ("path", 0.25)])
def test_a_crack_in_stone_is_a_dark_line_as_wide_as_it_is(device, lighting, darkest):
    solid = box_solid((10, 4, 10))
    pieces = cracked(solid, half_cut(solid, 0, 4, 2))
    look = finish_pair(kind="phong", albedo=(0.5, 0.5, 0.5), crack_width=0.2)
    seen, whole = (slab_picture(device, solid, each, look, lighting=lighting) for each in (
        pieces, dataclasses.replace(pieces, crack_edge=pieces.crack_edge[:0])))
    # The picture is 7.2 m wide; the line runs through all of it, in the middle.
    broken = seen.channels["mask.fracture"]
    assert broken.mean() == pytest.approx(0.2 / 7.2, rel=0.1)
    assert np.array_equal(np.flatnonzero(broken.mean(axis=0) > 0.02), [17, 18])
    assert (seen.channels["A"] == 1.0).all() and not whole.channels["mask.fracture"].any()
    line, beside = seen.channels["G"][:, 17:19].mean(), seen.channels["G"][:, :10].mean()
    # Half of the two pixels' width is the gap. Harmonic lighting knows one bounce, whose light is
    # that of the open sky.
    assert 0.5 * beside < line < 0.5 * (1.0 + darkest) * beside
    assert whole.channels["G"][:, 17:19].mean() == pytest.approx(beside, rel=0.02)
    # It is still one piece, and so it is to comp.
    for name, values in whole.matte_channels.items():
        if name.startswith("CryptoFragment"):
            assert np.array_equal(seen.matte_channels[name], values), name


def test_a_shot_without_cracks_or_without_their_width_keeps_its_bits(device):
    solid = box_solid((10, 4, 10))
    pieces = cracked(solid, half_cut(solid, 0, 4, 2), 3)
    assert len(pieces.crack_edge)
    none = dataclasses.replace(pieces, crack_edge=pieces.crack_edge[:0])
    off, auto = Look(crack_width=0.0), Look()
    pictures = [slab_picture(device, solid, each, look).channels for each, look in (
        (none, off), (none, auto), (pieces, off), (pieces, auto))]
    for name, values in pictures[0].items():
        assert np.array_equal(pictures[1][name], values), name
        assert np.array_equal(pictures[2][name], values), name
    assert not np.array_equal(pictures[3]["G"], pictures[0]["G"])


def test_widths_follow_elements_and_keep_between_round_off_and_half_an_element():
    solid = box_solid((100, 2, 2), spacing=0.01)
    widths = [crack_widths(solid, {"stone": Look(crack_width=width)})
              for width in ("auto", 0.0, 1e-4, 1e-9, 1.0)]
    assert [float(width.min()) for width in widths] == pytest.approx(
        [4e-4, 0.0, 1e-4, 4e-6 * 0.99, 5e-3])
    for width in widths:
        assert (width == width[0]).all() and width.shape == (solid.n_elements,)


def test_points_of_cracked_pieces_find_their_way_to_a_frame_that_deforms(device):
    solid = box_solid((6, 4, 3))
    pieces = cracked(solid, half_cut(solid, 0, 2, 2))
    faces = all_faces(solid)
    following = dataclasses.replace(
        pieces, translation=pieces.translation + np.array([0.0, 2.0, 0.0]),
        crack_edge=pieces.crack_edge[:0], node_offset=np.zeros((len(faces.vertex), 3), np.float32))
    triangle, _, origin = triangles_of(device, solid, pieces)
    point = triangle.mean(axis=1) + origin
    last = np.array([len(triangle) - 1, 0, len(triangle) // 2])
    there = carried_points(faces, pieces, following, element=np.zeros(3, int), triangle=last,
                           point=point[last])
    np.testing.assert_allclose(there - point[last], np.tile([0.0, 2.0, 0.0], (3, 1)), atol=1e-9)
