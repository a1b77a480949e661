"""Shells of tetrahedra: what they fill, how they fit together, and what they show."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from scipy.spatial import cKDTree

from tests.geometry.bodies import box, hollow_sphere, lathe, mesh, sphere, two_boxes
from tests.geometry.shapes import torus, volume
from vfx.device import Device, open_device
from vfx.geometry.divide import tet_shell
from vfx.geometry.divide.layers import first_points, spread
from vfx.geometry.divide.tet_shell import ACROSS, divide_tet_shell, measure
from vfx.geometry.divide.tet_shell_part import shell_candidates
from vfx.geometry.divide.tetrahedra import least_dihedral, triangulate, volumes
from vfx.geometry.handoff.elements import Elements, Surface
from vfx.geometry.handoff.faces import face_normals
from vfx.geometry.handoff.types import Array

LAYERS = 4


def divide(device: Device, surface: Surface, **given: float | int | None) -> Elements:
    """Divide with what most tests want."""
    options = {"spacing": None, "count": None, "layers": LAYERS, "seed": 1, **given}
    return divide_tet_shell(device, surface, progress=lambda what, share: None, **options)


@cache
def ball() -> Elements:
    """A ball of radius 2 m, four layers of 0.2 m."""
    return divide(open_device("cpu"), sphere(40, 2.0), spacing=0.2)


@cache
def cube() -> Elements:
    """A cube of 1 m about (5, 0, 0), four layers of 0.1 m."""
    return divide(open_device("cpu"), box(1.0, center=(5.0, 0.0, 0.0)), spacing=0.1)


BODIES = pytest.mark.parametrize("body", [ball, cube])


def tetrahedra(elements: Elements) -> Array:
    """Vertices (n, 4) of the elements, from their faces."""
    faces = elements.faces
    triple = faces.corner.reshape(-1, 3)
    owner = np.concatenate([faces.side[:, 0], faces.side[:faces.n_inner, 1]])
    face = np.concatenate([np.arange(len(triple)), np.arange(faces.n_inner)])
    order = np.argsort(owner, kind="stable")
    assert (np.bincount(owner) == 4).all()
    return np.sort(triple[face[order]].reshape(-1, 12), axis=1)[:, ::3]


@BODIES
def test_elements_fill_what_their_boundary_encloses(body) -> None:
    elements = body()
    faces = elements.faces
    outside = slice(faces.n_inner, None)
    first = faces.vertex[faces.corner[faces.start[:-1]]][outside]
    enclosed = (first * face_normals(faces)[outside]).sum() / 3.0
    assert elements.volume.sum() == pytest.approx(enclosed, rel=1e-11)


@BODIES
def test_every_element_is_a_tetrahedron_with_its_volume_and_barycentre(body) -> None:
    elements = body()
    corner = elements.faces.vertex[tetrahedra(elements)]
    a, b, c, d = corner.swapaxes(0, 1)
    volume = np.abs(np.einsum("ij,ij->i", np.cross(b - a, c - a), d - a)) / 6.0
    np.testing.assert_allclose(elements.volume, volume, rtol=1e-9)
    np.testing.assert_allclose(elements.position, corner.mean(axis=1), atol=1e-12)
    assert elements.volume.min() > 1e-3 * elements.volume.mean()


@BODIES
def test_faces_close_each_element(body) -> None:
    elements = body()
    faces = elements.faces
    area = face_normals(faces)
    total = np.zeros_like(elements.position)
    np.add.at(total, faces.side[:, 0], area)
    np.add.at(total, faces.side[:faces.n_inner, 1], -area[:faces.n_inner])
    assert np.abs(total).max() < 1e-12


@BODIES
def test_normals_point_out_of_the_first_element(body) -> None:
    elements = body()
    faces = elements.faces
    middle = faces.vertex[faces.corner].reshape(-1, 3, 3).mean(axis=1)
    outward = ((middle - elements.position[faces.side[:, 0]]) * face_normals(faces)).sum(axis=1)
    assert outward.min() > 0.0


@BODIES
def test_edges_are_the_inner_faces_sorted(body) -> None:
    elements = body()
    edge = elements.edge
    assert edge.dtype == np.int32
    assert (edge[:, 0] < edge[:, 1]).all()
    key = edge[:, 0].astype(np.int64) * len(elements.position) + edge[:, 1]
    assert (np.diff(key) > 0).all()
    np.testing.assert_array_equal(elements.faces.side[:elements.faces.n_inner], edge)
    np.testing.assert_array_equal(elements.faces.edge, np.arange(len(edge)))


def test_shell_of_a_ball_has_the_volume_between_two_spheres() -> None:
    elements = ball()
    inner = 2.0 - 0.2 * (LAYERS - 1)
    expected = 4.0 / 3.0 * math.pi * (2.0**3 - inner**3)
    assert elements.volume.sum() == pytest.approx(expected, rel=0.02)
    radius = np.linalg.norm(elements.faces.vertex, axis=1)
    layer = (2.0 - radius) / 0.2
    # Layers of a mesh of flat triangles lie a little below those of the sphere.
    assert np.abs(layer - np.rint(layer)).max() < 0.06
    assert set(np.rint(layer)) == set(range(LAYERS))


def test_cube_keeps_its_edges_and_corners() -> None:
    elements = cube()
    inner = 1.0 - 2 * 0.1 * (LAYERS - 1)
    assert elements.volume.sum() == pytest.approx(1.0 - inner**3, rel=0.01)
    corners = np.array([[x, y, z] for x in (4.5, 5.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    assert cKDTree(elements.faces.vertex).query(corners)[0].max() < 1e-12
    # The outside is flat: each face of the cube has all its area.
    faces = elements.faces
    area = face_normals(faces)[faces.n_inner:][faces.triangle >= 0]
    length = np.linalg.norm(area, axis=1)
    aligned = np.abs(area).max(axis=1) > 0.999 * length
    assert length[aligned].sum() == pytest.approx(6.0, rel=0.03)


@pytest.mark.parametrize("make", [lambda: sphere(30, 1.0), lambda: box(1.0)])
def test_points_are_even_on_each_layer(make) -> None:
    device = open_device("cpu")
    _, (body,) = measure(device, make())
    spacing = 0.04
    candidates = shell_candidates(body, spacing, LAYERS, 1)
    points = first_points(device, candidates, across=ACROSS * spacing, seed=1)
    points = spread(body.tree, body.features, points, spacing=spacing, across=ACROSS * spacing,
                    steps=30)
    nearest, _ = body.tree.nearest(points.point)
    depth = np.linalg.norm(points.point - nearest, axis=1)
    np.testing.assert_allclose(depth, spacing * points.layer, atol=0.05 * spacing)
    for layer in range(LAYERS):
        own = points.point[points.layer == layer]
        gap = cKDTree(own).query(own, 2)[0][:, 1]
        assert gap.std() / gap.mean() < 0.08
        assert gap.min() > 0.6 * gap.mean()
        assert gap.mean() == pytest.approx(ACROSS * spacing, rel=0.06)


@BODIES
def test_there_are_no_slivers(body) -> None:
    elements = body()
    tet = tetrahedra(elements)
    assert least_dihedral(elements.faces.vertex, tet).min() > 5.0
    assert any("0 slivers" in note for note in elements.notes)


@BODIES
def test_bonds_are_about_as_many_as_in_the_paper(body) -> None:
    elements = body()
    tree = cKDTree(elements.position)
    bonds = tree.query_ball_point(
        elements.position, 2.0 * elements.length_scale, return_length=True) - 1
    assert 60 < bonds.mean() < 150
    assert bonds.max() < 260


@pytest.mark.parametrize("count", [2000, 9000])
@pytest.mark.parametrize("make", [lambda: sphere(30, 1.0), lambda: box(1.0), lambda: lathe(40, 64)])
def test_count_is_met(make, count: int) -> None:
    elements = divide(open_device("cpu"), make(), count=count, layers=6)
    assert len(elements.position) == pytest.approx(count, rel=0.01)


def test_sphere_shows_its_normals_and_texture() -> None:
    surface = sphere(60, 1.0)
    elements = divide(open_device("cpu"), surface, spacing=0.12)
    faces = elements.faces
    corner = faces.vertex[faces.corner[faces.start[faces.n_inner]:]]
    skin = np.repeat(faces.triangle >= 0, 3)
    expected = corner[skin] / np.linalg.norm(corner[skin], axis=1, keepdims=True)
    assert (faces.normal[skin] * expected).sum(axis=1).min() > 0.999
    height = np.arccos(np.clip(expected[:, 1], -1.0, 1.0)) / np.pi
    away = np.abs(height - 0.5) < 0.4
    assert np.abs(faces.uv[skin, 1] - height)[away].max() < 0.006
    # Across the seam u runs on, so that no face shows the whole texture.
    u = faces.uv[skin, 0].reshape(-1, 3)
    near_pole = np.abs(expected[:, 1]).reshape(-1, 3).max(axis=1) > 0.9
    assert np.ptp(u[~near_pole], axis=1).max() < 0.2
    assert (faces.normal[~skin] == 0.0).all()


def test_cavity_is_lined_like_the_outside() -> None:
    elements = divide(open_device("cpu"), hollow_sphere(30, 1.0, 0.5), spacing=0.1, layers=6)
    assert elements.volume.sum() == pytest.approx(4.0 / 3.0 * np.pi * (1.0 - 0.125), rel=0.03)
    radius = np.linalg.norm(elements.faces.vertex, axis=1)
    assert radius.min() > 0.48
    faces = elements.faces
    inner_wall = faces.triangle[np.linalg.norm(
        faces.vertex[faces.corner].reshape(-1, 3, 3).mean(axis=1)[faces.n_inner:], axis=1) < 0.6]
    assert len(inner_wall) > 50
    assert (inner_wall >= 0).all()


@pytest.mark.parametrize("gap", [0.5, 0.02])
def test_bodies_apart_stay_apart(gap: float) -> None:
    elements = divide(open_device("cpu"), two_boxes(1.0, gap), spacing=0.2)
    left = elements.position[:, 0] < 0.0
    assert not (left[elements.edge[:, 0]] != left[elements.edge[:, 1]]).any()
    for side in (left, ~left):
        assert 0.9 < elements.volume[side].sum() <= 1.0 + 1e-9


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_scale_and_place_change_nothing_but_units(scale: float) -> None:
    device = open_device("cpu")
    shift = np.array([7.0, -3.0, 11.0]) * scale
    plain = sphere(12, 1.0)
    other = mesh(plain.vertex * scale + shift, plain.triangle)
    one = divide(device, plain, spacing=0.25)
    two = divide(device, other, spacing=0.25 * scale)
    assert two.length_scale == pytest.approx(0.25 * scale)
    assert len(two.position) == pytest.approx(len(one.position), rel=0.05)
    assert two.volume.sum() == pytest.approx(one.volume.sum() * scale**3, rel=0.02)


def test_thin_plate_stays_whole() -> None:
    plate = box(1.0, 0.06, 1.0)
    elements = divide(open_device("cpu"), plate, spacing=0.05)
    assert elements.volume.sum() == pytest.approx(0.06, rel=0.02)
    note = next(note for note in elements.notes if "all corners on the surface" in note)
    on_surface = (np.isclose(np.abs(elements.faces.vertex[tetrahedra(elements)]),
                             [0.5, 0.03, 0.5], atol=1e-9).any(axis=2)).all(axis=1)
    assert note.startswith(f"kept {on_surface.sum():,} tetrahedra")


def test_tetrahedra_span_no_gaps() -> None:
    manifold3d = pytest.importorskip("manifold3d")
    # A star of twelve narrow points.
    angle = math.pi / 12 * np.arange(24)
    radius = np.where(np.arange(24) % 2, 1.0, 0.15)
    corner = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    star = manifold3d.Manifold.extrude(manifold3d.CrossSection([corner]), 0.3).to_mesh64()
    surface = mesh(np.asarray(star.vert_properties)[:, :3], np.asarray(star.tri_verts))
    elements = divide(open_device("cpu"), surface, count=5000, layers=6)
    x, y = corner.T
    volume = 0.15 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))
    assert 0.95 * volume < elements.volume.sum() < 1.001 * volume


def test_flat_sides_with_many_points_are_triangulated() -> None:
    # All points lie in the two sides of the plate: their hull has only a few planes.
    plate = box(1.0, 0.02, 1.0)
    elements = divide(open_device("cpu"), plate, spacing=0.02)
    assert elements.volume.sum() == pytest.approx(0.02, rel=0.01)
    assert elements.volume.min() > 1e-3 * elements.volume.mean()


def test_gaps_that_only_finer_tetrahedra_resolve_are_refused(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vfx.geometry.divide.tet_shell.MOST_FILLED", 0.5)
    with pytest.raises(ValueError, match="too narrow for tetrahedra"):
        divide(open_device("cpu"), box(1.0), spacing=0.2)


@pytest.mark.parametrize(("spacing", "fits"), [(0.03, True), (0.06, True), (0.3, False)])
def test_a_round_rod_keeps_most_of_its_volume_or_is_refused(spacing: float, fits: bool) -> None:
    # Tetrahedra from side to side of a rod as thin as they are leave out what is round of it.
    ring = torus(48, 1.0, 0.1)
    try:
        filled = divide(open_device("cpu"), ring, spacing=spacing).volume.sum()
    except ValueError as error:
        assert not fits and "of its volume would be left out" in str(error)
    else:
        assert fits and filled > 0.75 * volume(ring)


def test_result_does_not_depend_on_threads_or_device(device: Device) -> None:
    surface = sphere(16, 1.0)
    found = []
    for threads in (1, 3):
        if device.name.startswith("cpu") or device.name == "guard":
            device.threads = threads
        found.append(divide(device, surface, spacing=0.3))
    np.testing.assert_array_equal(found[0].position, found[1].position)
    np.testing.assert_array_equal(found[0].edge, found[1].edge)
    np.testing.assert_array_equal(found[0].faces.corner, found[1].faces.corner)


def test_body_without_room_for_a_tetrahedron_is_refused() -> None:
    corner = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.3, 1e-7]])
    flat = mesh(corner, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]]))
    with pytest.raises(ValueError, match=r"is too thin for a tetrahedron .* make it"):
        divide(open_device("cpu"), flat, spacing=0.2)


def test_plate_far_too_thin_for_a_number_is_refused_after_one_trial(monkeypatch) -> None:
    joins = []
    join = tet_shell.join_points
    monkeypatch.setattr(tet_shell, "join_points", lambda *given: joins.append(1) or join(*given))
    with pytest.raises(ValueError, match=r"is too thin for a tet-shell of 1,500 .* take about"):
        divide(open_device("cpu"), box(1.0, 5e-4, 1.0), count=1500, layers=6)
    assert len(joins) == 1


def test_layers_and_measures_are_checked() -> None:
    with pytest.raises(ValueError, match="at least 2"):
        divide(open_device("cpu"), box(1.0), spacing=0.1, layers=1)
    with pytest.raises(ValueError, match="either a spacing or a count"):
        divide(open_device("cpu"), box(1.0))


def test_delaunay_of_a_cube_fills_it() -> None:
    point = np.random.default_rng(1).random((200, 3))
    point = np.concatenate([point, [[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)]])
    volume = volumes(point, triangulate(point))
    assert volume.min() >= 0.0
    assert volume.sum() == pytest.approx(1.0)
