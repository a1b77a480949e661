"""Pieces that deform look as their closed forms say, and those that do not as rigid ones."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vfx.device import open_device
from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.open_faces import are_open
from vfx.geometry.pieces.nodes import split_vertices
from vfx.raytrace.boundary.places import corner_places
from vfx.raytrace.camera.camera import camera_view
from vfx.raytrace.camera.motion import Neighbors, moved_pieces
from vfx.raytrace.film.film import data_window
from vfx.raytrace.render import render_picture
from vfx.raytrace.settings import Camera, Film, Finish, FloorLook, Light, MaterialLook

from .conftest import Plane, ball_mesh, boundary_of, box_solid, in_pieces, mesh_solid

SKY = np.linspace(0.2, 1.4, 16 * 32 * 3, dtype=np.float32).reshape(16, 32, 3)
CAMERA = Camera(position=(0.9, 0.8, 1.6), target=(0.0, 0.0, 0.0))
ROUGH = {"stone": MaterialLook(Finish(kind="phong", bump=0.4, bump_size=0.05),
                               Finish(kind="phong", bump=0.4, bump_size=0.05))}
SMOOTH = {"stone": MaterialLook(Finish(kind="phong"), Finish(kind="phong"))}
#: A shear, a stretch and a squash at once.
STRAIN = np.array([[1.3, 0.4, 0.0], [0.0, 0.7, 0.1], [0.0, 0.0, 1.1]])
BLOCK = (0.48, 0.48, 0.32)


@pytest.fixture(scope="module")
def solids():
    device = open_device("cpu")
    box = {"material": "stone", "box": BLOCK, "seed": 3}
    return {
        "grid": box_solid((6, 6, 4), 0.08),
        "tet-shell": build_solid(device, [
            Body(shape="tet-shell", elements=400, layers=3, **box)]).solid,
        "voronoi": build_solid(device, [Body(shape="voronoi", elements=150, **box)]).solid,
        "ball": mesh_solid(*ball_mesh(0.4, 48))}


def deformed(solid, pieces, move, crack_edge=()):
    """Let nodes go to ``move(X, element)`` (w, 3) in the world, whatever the pieces' poses."""
    faces = all_faces(solid)
    crack_edge = np.asarray(crack_edge, np.int32)
    nodes = split_vertices(faces, are_open(faces, pieces.fragment, crack_edge))
    rest, element = faces.vertex[nodes.vertex], np.maximum(nodes.element, 0)
    piece = np.searchsorted(pieces.id, pieces.fragment[element])
    away = move(rest, element) - pieces.translation[piece]
    own = np.einsum("kji,kj->ki", pieces.rotation[piece], away)
    return dataclasses.replace(pieces, node_offset=(own - rest).astype(np.float32),
                               node_copy=nodes.copy, crack_edge=crack_edge)


def strained(point, _element):
    return point @ STRAIN.T


def resolution(device):
    """Pixels of a picture: few where they are slow."""
    return (24, 18) if device.description.startswith("warp") else (96, 72)


def picture(device, solid, pieces, look=SMOOTH, near=None, camera=CAMERA, **settings):
    film = Film(**{"resolution": (96, 72), "samples": 2, "color_space": "linear-rec709"}
                | settings)
    return render_picture(device, solid, pieces, camera, Light(), look, Plane(enabled=False),
                          FloorLook(), film, SKY, near=near).channels


def stacked(channels, layer, names="XYZ"):
    return np.stack([channels[f"{layer}.{name}"] for name in names], axis=-1).astype(float)


def enclosed_volume(triangle):
    a, b, c = np.moveaxis(triangle.astype(float), 1, 0)
    return np.einsum("ni,ni->", a, np.cross(b, c)) / 6.0


def camera_rays(width=96, height=72):
    """Eye and directions (h, w, 3) of the pixels' centres, of unit depth."""
    film = Film(resolution=(width, height))
    view, window = camera_view(CAMERA, film), data_window(film)
    assert (window.x, window.y) == (0, 0)
    x = (np.arange(width) + 0.5) * 2.0 / width - 1.0
    y = 1.0 - (np.arange(height) + 0.5) * 2.0 / height
    return view, (view.forward + x[None, :, None] * view.half_width * view.right
                  + y[:, None, None] * view.half_height * view.up)


@pytest.mark.warp
@pytest.mark.parametrize("kind", ["grid", "tet-shell", "voronoi", "ball"])
def test_without_offsets_a_picture_is_that_of_rigid_pieces_bit_for_bit(device, solids, kind):
    solid = solids[kind]
    rigid = in_pieces(solid, 1 if kind == "ball" else 7, 2, 0.05, 0.4)
    nodes = split_vertices(all_faces(solid), are_open(all_faces(solid), rigid.fragment))
    still = dataclasses.replace(
        rigid, node_offset=np.zeros((len(nodes.vertex), 3), np.float32), node_copy=nodes.copy)
    assert not still.is_rigid and (kind == "ball" or len(nodes.copy))
    expected, made = (picture(device, solid, pieces, ROUGH, resolution=resolution(device))
                      for pieces in (rigid, still))
    assert (expected["A"] > 0.0).mean() > 0.05
    for name, values in expected.items():
        # Motion goes by places in triangles, so that it agrees to rounding.
        close = np.allclose(values, made[name], rtol=0.0, atol=1e-5)
        assert close if name.startswith("forward") else np.array_equal(values, made[name]), name


@pytest.mark.warp
@pytest.mark.parametrize("kind", ["grid", "tet-shell", "voronoi"])
def test_strained_pieces_enclose_what_their_determinant_says(device, solids, kind):
    solid = solids[kind]
    pieces = deformed(solid, in_pieces(solid, 5, 2, 0.3, 0.8), strained)
    boundary = boundary_of(device, solid, pieces)
    for piece in pieces.id:
        inside = enclosed_volume(boundary.triangle[boundary.piece_id == piece])
        rest = solid.volume[pieces.fragment == piece].sum()
        assert inside == pytest.approx(np.linalg.det(STRAIN) * rest, rel=1e-4)


def test_a_bent_shear_keeps_the_volume(device, solids):
    """x + a y^2 is no strain of one matrix, but every layer of cubes keeps its volume."""
    solid = solids["grid"]
    pieces = deformed(solid, in_pieces(solid, 1, 1, 0.0, 0.0), lambda point, _: np.column_stack(
        [point[:, 0] + 3.0 * point[:, 1]**2, point[:, 1:]]))
    inside = enclosed_volume(boundary_of(device, solid, pieces).triangle)
    assert inside == pytest.approx(solid.volume.sum(), rel=1e-5)


@pytest.mark.warp
@pytest.mark.parametrize("kind", ["grid", "voronoi"])
def test_depth_position_and_normal_of_a_strained_block_are_its_planes(device, solids, kind):
    solid = solids[kind]
    size = resolution(device)
    pieces = deformed(solid, in_pieces(solid, 1, 1, 0.0, 0.6), strained)
    made = picture(device, solid, pieces, samples=1, resolution=size,
                   passes=("beauty", "depth", "P", "N"))
    view, ray = camera_rays(*size)
    # In the axes of the block at rest it is a box of planes.
    back = np.linalg.inv(STRAIN)
    eye, along, half = view.eye @ back.T, ray @ back.T, 0.5 * np.array(BLOCK)
    with np.errstate(divide="ignore"):
        planes = np.stack([(-half - eye) / along, (half - eye) / along])
    enters, leaves = planes.min(axis=0), planes.max(axis=0).min(axis=-1)
    depth, axis = enters.max(axis=-1), enters.argmax(axis=-1)
    seen = depth < leaves
    # Beside an edge rounding decides.
    second = np.sort(enters, axis=-1)[..., 1]
    clear = seen & (depth - second > 1e-4) & (leaves - depth > 1e-4)
    assert clear.mean() > 0.1
    assert np.abs(made["depth.Z"][clear] - depth[clear]).max() < 2e-6
    place = view.eye + depth[..., None] * ray
    assert np.abs(stacked(made, "P")[clear] - place[clear]).max() < 2e-6
    normal = back[axis] * -np.sign(np.take_along_axis(along, axis[..., None], axis=-1))
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    assert np.abs(stacked(made, "N")[clear] - normal[clear]).max() < 1e-5
    assert (made["depth.Z"][~seen & (depth - leaves > 1e-4)] > 1e9).all()


def test_a_squashed_ball_is_an_ellipsoid_with_its_normals(device, solids):
    solid = solids["ball"]
    squash = np.diag([1.2, 0.5, 0.9])
    pieces = deformed(solid, in_pieces(solid, 1, 1, 0.0, 0.5), lambda point, _: point @ squash)
    made = picture(device, solid, pieces, samples=1, passes=("beauty", "depth", "P", "N"))
    view, ray = camera_rays()
    eye, along = view.eye @ np.linalg.inv(squash), ray @ np.linalg.inv(squash)
    a, b = (along**2).sum(-1), (along * eye).sum(-1)
    inside = b**2 - a * (eye @ eye - 0.4**2)
    clear = inside > 0.05 * (b**2).max() * 0.4**2
    depth = (-b - np.sqrt(np.maximum(inside, 0.0))) / a
    place = view.eye + depth[..., None] * ray
    normal = place / np.diag(squash)**2
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    assert clear.mean() > 0.05
    assert np.abs(made["depth.Z"][clear] - depth[clear]).max() < 2e-3
    assert np.abs(stacked(made, "P")[clear] - place[clear]).max() < 2e-3
    # Those of the triangles themselves are up to 0.07 away.
    assert np.abs(stacked(made, "N")[clear] - normal[clear]).max() < 6e-3


@pytest.mark.parametrize("kind", ["grid", "voronoi", "ball"])
def test_a_turn_by_offsets_looks_as_one_by_pose(device, solids, kind):
    """Bumps and shading normals are read at rest, and turn with the matter."""
    solid = solids[kind]
    pieces = in_pieces(solid, 1 if kind == "ball" else 5, 2, 0.05, 0.4)
    turn = Rotation.from_rotvec([0.3, -0.5, 0.2]).as_matrix()
    by_pose = dataclasses.replace(pieces, rotation=turn @ pieces.rotation,
                                  translation=pieces.translation @ turn.T)
    piece = pieces.fragment

    def turned(point, element):
        own = np.einsum("kij,kj->ki", pieces.rotation[piece[element]], point)
        return (own + pieces.translation[piece[element]]) @ turn.T

    expected, made = (picture(device, solid, each, ROUGH) for each in (
        by_pose, deformed(solid, pieces, turned)))
    apart = np.abs(stacked(expected, "N") - stacked(made, "N")).max(axis=-1)
    flat = picture(device, solid, by_pose, SMOOTH)
    on = expected["A"] == 1.0
    assert np.abs(stacked(expected, "N") - stacked(flat, "N"))[on].max() > 0.1
    # At a few edges rounding puts the ray on the other side.
    assert (apart[on] < 2e-3).mean() > 0.995


def test_bumps_of_shrunk_matter_are_as_much_steeper(device, solids):
    """Half as wide and as high as ever: seen from half as far, twice the slope."""
    def seen(pieces, scale, bump):
        rough = Finish(kind="phong", bump=bump, bump_size=0.4)
        camera = dataclasses.replace(CAMERA, position=tuple(scale * np.array(CAMERA.position)))
        return stacked(picture(
            device, solids["grid"], pieces, {"stone": MaterialLook(rough, rough)}, samples=1,
            resolution=(192, 144), passes=("beauty", "N"), camera=camera), "N")

    rigid = in_pieces(solids["grid"], 1, 1, 0.0, 0.6)
    small = deformed(solids["grid"], rigid, lambda point, _: 0.5 * (
        point @ rigid.rotation[0].T + rigid.translation[0]))
    expected, made, flat = seen(rigid, 1.0, 0.4), seen(small, 0.5, 0.2), seen(rigid, 1.0, 0.0)
    on = flat.any(axis=-1)
    assert np.abs(expected - flat)[on].max() > 0.2
    assert (np.abs(expected - made).max(axis=-1)[on] < 1e-3).mean() > 0.995


def halves(solid):
    """Edges across the middle plane of x, in the upper half."""
    middle = 0.5 * solid.position[solid.edge].sum(axis=1)
    side = solid.position[solid.edge, 0] > 0.0
    return np.flatnonzero((side[:, 0] != side[:, 1]) & (middle[:, 1] > 0.0))


@pytest.mark.warp
def test_both_sides_of_a_crack_within_a_piece_fit_until_it_opens(device, solids):
    solid = solids["grid"]
    crack, whole = halves(solid), in_pieces(solid, 1, 1, 0.0, 0.7)
    closed = boundary_of(device, solid, deformed(solid, whole, strained, crack))
    front = np.flatnonzero(closed.is_fracture)
    assert len(front) == 2 * 2 * len(crack) == 2 * 2 * 3 * 4
    twin = closed.triangle[closed.partner[front]]
    assert np.array_equal(closed.triangle[front], twin[:, [0, 2, 1]])

    # Opened as a wedge, its mouth gapes and its tip does not, and no volume is lost.
    def wedge(point, element):
        away = np.where(solid.position[element, 0] > 0.0, 0.25, -0.25)
        opens = away * np.maximum(point[:, 1], 0.0) * (np.abs(point[:, 0]) < 1e-9)
        return strained(point + opens[:, None] * [1.0, 0.0, 0.0], element)

    opened = boundary_of(device, solid, deformed(solid, whole, wedge, crack))
    triangle, twin = opened.triangle[front], opened.triangle[opened.partner[front]][:, [0, 2, 1]]
    gap = (triangle - twin).astype(float) @ np.linalg.inv(STRAIN).T
    height = ((triangle + opened.origin).astype(float) @ np.linalg.inv(STRAIN).T)[..., 1]
    assert np.abs(np.abs(gap[..., 0]) - 0.5 * height).max() < 1e-6 and height.max() > 0.2
    lost = 0.5 * 0.5 * 0.24**2 * BLOCK[2]
    assert enclosed_volume(opened.triangle) == pytest.approx(
        np.linalg.det(STRAIN) * (solid.volume.sum() - lost), rel=1e-5)
    start, end = (np.roll(opened.triangle, shift, axis=1).reshape(-1, 3) for shift in (0, -1))
    forward = {(*a, *b) for a, b in zip(start.tolist(), end.tolist(), strict=True)}
    assert all((*edge[3:], *edge[:3]) in forward for edge in forward)


@pytest.mark.parametrize("kind", ["grid", "voronoi"])
def test_pieces_with_poses_of_their_own_fit_where_the_matter_does(device, solids, kind):
    solid = solids[kind]
    pieces = deformed(solid, in_pieces(solid, 6, 2, 0.3, 0.8), strained)
    boundary = boundary_of(device, solid, pieces)
    front = np.flatnonzero(boundary.is_fracture)
    twin = boundary.triangle[boundary.partner[front]][:, [0, 2, 1]]
    assert len(front) > 100 and np.abs(boundary.triangle[front] - twin).max() < 3e-7


def next_strain(point, element):
    return point @ (np.diag([0.9, 1.1, 1.0]) @ STRAIN).T + [0.03, -0.02, 0.05]


@pytest.mark.parametrize(("now", "then"), [
    (strained, next_strain), (strained, None), (None, next_strain)])
@pytest.mark.parametrize("kind", ["grid", "voronoi"])
def test_motion_vectors_lead_where_the_strain_takes_each_point(device, solids, kind, now, then):
    """Also from rigid pieces to deforming ones and back, into other pieces and past a crack."""
    solid = solids[kind]
    whole = in_pieces(solid, 1, 1, 0.0, 0.0)
    here = whole if now is None else deformed(solid, whole, now)
    parted = dataclasses.replace(in_pieces(solid, 4, 2, 0.0, 0.0), frame=1002)
    if then is not None:
        turned = in_pieces(solid, 4, 2, 0.2, 0.5)
        parted = deformed(solid, dataclasses.replace(turned, frame=1002), then, halves(solid))
    made = picture(device, solid, here, near=Neighbors(None, parted, 0.01), samples=1,
                   passes=("beauty", "P", "fragment", "forward"))
    on = made["fragment.id"] >= 0
    place = stacked(made, "P")[on]
    rest = place if now is None else place @ np.linalg.inv(STRAIN).T
    there = rest if then is None else then(rest, None)
    view, _ = camera_rays()
    expected = view.project(there, (96, 72)) - view.project(place, (96, 72))
    found = np.stack([made["forward.u"], -made["forward.v"]], axis=-1)[on]
    assert on.mean() > 0.05 and np.abs(expected).max() > 1.0
    assert np.abs(found - expected).max() < 1e-3


@pytest.mark.parametrize("kind", ["grid", "voronoi"])
def test_nodes_meet_both_frames_and_go_evenly_between(solids, kind):
    solid = solids[kind]
    faces = all_faces(solid)
    here = deformed(solid, in_pieces(solid, 1, 1, 0.0, 0.0), strained)
    then = deformed(solid, dataclasses.replace(in_pieces(solid, 4, 2, 0.2, 0.5), frame=1002),
                    next_strain, halves(solid))
    vertex, element = faces.corner[faces.start[:-1]], faces.side[:, 0]
    rest = faces.vertex[vertex]
    near = Neighbors(None, then, 0.01)
    end = moved_pieces(here, near, 1.0, faces)
    assert np.abs(corner_places(faces, end, element, vertex) - next_strain(rest, None)).max() < 1e-6
    back = moved_pieces(then, Neighbors(here, None, 0.01), -1.0, faces)
    assert np.abs(corner_places(faces, back, element, vertex) - strained(rest, None)).max() < 1e-6
    still = dataclasses.replace(here, frame=1002)
    still.node_offset = 3.0 * here.node_offset
    half = moved_pieces(here, Neighbors(None, still, 0.01), 0.5, faces)
    assert np.allclose(half.node_offset, 2.0 * here.node_offset, atol=1e-7)
    # Without a frame beside it a piece goes on as it is.
    on = moved_pieces(here, Neighbors(step=0.01), 0.5, faces)
    assert np.array_equal(on.node_offset, here.node_offset)


def test_nodes_of_another_solid_or_nowhere_are_refused(device, solids):
    solid = solids["grid"]
    pieces = deformed(solid, in_pieces(solid, 3, 2, 0.0, 0.0), strained)
    for change, reason in (
            ({"node_offset": pieces.node_offset[:9]}, "9 nodes, but the faces have 245 vertices"),
            ({"node_offset": np.full_like(pieces.node_offset, np.nan)}, "is not finite"),
            ({"node_copy": pieces.node_copy + np.array([0, 0, 10**6])}, "are not of this solid")):
        with pytest.raises(ValueError, match=f"frame 1001: .*{reason}"):
            boundary_of(device, solid, dataclasses.replace(pieces, **change))
