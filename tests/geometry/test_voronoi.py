"""Laws of clipped Voronoi cells: closed, exact, split where cut; against other programs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.geometry.shapes import box, joined, moved, sphere, surface, torus, turned_in, volume
from vfx.device import Device, open_device
from vfx.geometry.divide.check import check_elements
from vfx.geometry.divide.grading import toward_impact
from vfx.geometry.divide.voronoi import clip_voronoi, divide_voronoi
from vfx.geometry.handoff.elements import Elements, Surface
from vfx.geometry.handoff.faces import face_normals


def divide(device: Device, shape: Surface, **options: object) -> Elements:
    given = {"spacing": None, "count": None, "seed": 1, **options}
    return divide_voronoi(device, shape, progress=lambda what, share: None, **given)


def clip(device: Device, shape: Surface, site: object, reach: float = 0.1) -> Elements:
    site = np.asarray(site, float)
    size = np.full(len(site), 0.1)
    return clip_voronoi(device, shape, site, size, 0.1, reach=np.full(len(site), reach),
                        progress=lambda what, share: None)


def directed_edges(elements: Elements) -> np.ndarray:
    """Return (element, from, to) of every edge of every element's polygons."""
    faces = elements.faces
    count = np.diff(faces.start)
    following = np.arange(len(faces.corner)) + 1
    following[faces.start[1:] - 1] = faces.start[:-1]
    side = np.repeat(faces.side, count, axis=0)
    edge = np.stack([side[:, 0], faces.corner, faces.corner[following]], axis=1)
    back = np.stack([side[:, 1], faces.corner[following], faces.corner], axis=1)
    return np.concatenate([edge, back[side[:, 1] >= 0]])


def check(elements: Elements, shape: Surface) -> None:
    """Check all that must hold of any divided surface."""
    check_elements(elements, "voronoi", volume=volume(shape), spacing=None)
    assert elements.volume.sum() == pytest.approx(volume(shape), 1e-9)
    # Closed: each edge of an element's polygons is there as often in the other direction.
    edge = directed_edges(elements)
    forward, n_forward = np.unique(edge, axis=0, return_counts=True)
    backward, n_backward = np.unique(edge[:, [0, 2, 1]], axis=0, return_counts=True)
    assert np.array_equal(forward, backward) and np.array_equal(n_forward, n_backward)
    # The areas of an element's faces add up to zero.
    faces = elements.faces
    area = face_normals(faces)
    total = np.zeros((len(elements.volume), 3))
    np.add.at(total, faces.side[:, 0], area)
    inner = slice(0, faces.n_inner)
    np.subtract.at(total, faces.side[inner, 1], area[inner])
    assert np.abs(total).max() <= 1e-12 * np.abs(area).sum()
    # The surface faces cover the surface.
    a, b, c = (shape.vertex[shape.triangle[:, k]] for k in range(3))
    whole = 0.5 * np.linalg.norm(np.cross(b - a, c - a), axis=1)
    covered = np.bincount(faces.triangle, np.linalg.norm(area[faces.n_inner:], axis=1), len(whole))
    assert np.abs(covered - whole).max() <= 1e-12 * whole.sum()


SHAPES = {
    "box": box(), "tetrahedron": surface([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]],
                                         [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]),
    "ball": sphere(16), "torus": torus(24), "thin torus": torus(24, tube=0.02),
    "hollow": joined(sphere(12), turned_in(sphere(12, 0.6)), moved(box(), (2, 0, 0))),
    "plate": box(upper=(1, 1, 1e-3)), "millimetres": moved(torus(16), (5, 0, 0), 1e-3),
    "kilometres": moved(torus(16), scale=1e3),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("count", [2, 300])
def test_cells_are_closed_and_add_up(device: Device, name: str, count: int) -> None:
    elements = divide(device, SHAPES[name], count=count)
    check(elements, SHAPES[name])
    assert len(elements.volume) >= count


def test_many_triangles_in_a_cell_and_many_cells_on_a_triangle(device: Device) -> None:
    fine = torus(100)
    elements = divide(device, fine, count=5)
    check(elements, fine)
    check(divide(device, box(), count=3000), box())


def test_a_cell_alone_is_the_whole_surface(device: Device) -> None:
    elements = clip(device, torus(16), [[1.0, 0.0, 0.0]])
    check(elements, torus(16))
    assert len(elements.volume) == 1 and len(elements.edge) == 0
    assert len(elements.faces.side) == len(torus(16).triangle)


@pytest.mark.warp
def test_two_halves_of_a_box_share_its_middle(device: Device) -> None:
    elements = clip(device, box(), [[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])
    check(elements, box())
    assert elements.volume == pytest.approx([0.5, 0.5], 1e-12)
    assert elements.edge.tolist() == [[0, 1]]
    assert np.linalg.norm(face_normals(elements.faces)[0]) == pytest.approx(1.0, 1e-12)
    assert elements.position[:, 0] == pytest.approx([0.25, 0.75])


@pytest.mark.warp
def test_a_triangle_within_a_ring_of_sites_has_as_many_corners(device: Device) -> None:
    """The middle cell meets each half of the top with some thirty of its sides."""
    random = np.random.default_rng(4)
    angle = 2.0 * np.pi * (np.arange(60) + random.uniform(-0.1, 0.1, 60)) / 60
    radius = 0.3 * random.uniform(0.999, 1.001, 60)
    ring = np.stack([radius * np.cos(angle), radius * np.sin(angle), np.zeros(60)], axis=1)
    site = np.concatenate([np.zeros((1, 3)), ring]) + np.array([0.5, 0.5, 0.9])
    elements = clip(device, box(), site, reach=2.0)
    check(elements, box())
    assert len(elements.volume) == 61
    assert np.diff(elements.faces.start).max() > 24
    area = 60 * 0.15**2 * np.tan(np.pi / 60)      # of a polygon, as wide as halfway to the ring
    middle = np.argmin(np.linalg.norm(elements.position[:, :2] - 0.5, axis=1))
    assert elements.volume[middle] == pytest.approx(area, rel=0.01)


def test_a_lattice_of_sites_makes_cubes(device: Device) -> None:
    axis = (np.arange(5) + 0.5) / 5
    site = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    elements = clip(device, box(), site)
    check(elements, box())
    assert elements.volume == pytest.approx(np.full(125, 1 / 125), 1e-4)


@pytest.mark.parametrize("shape", [sphere(10), torus(12), joined(
    sphere(8), turned_in(sphere(8, 0.5)))], ids=["ball", "torus", "hollow"])
def test_volumes_are_those_of_manifold(shape: Surface) -> None:
    manifold3d = pytest.importorskip("manifold3d")
    elements = divide(open_device("cpu"), shape, count=24)
    solid = manifold3d.Manifold(manifold3d.Mesh64(
        shape.vertex, shape.triangle.astype(np.uint64)))
    site = elements.position
    assert len(site) == 24
    for i in range(len(site)):
        cell = solid
        for j in range(len(site)):
            if i != j:
                normal = site[i] - site[j]
                length = np.linalg.norm(normal)
                middle = 0.5 * (site[i] + site[j])
                cell = cell.trim_by_plane(normal / length, normal @ middle / length)
        # It merges what is near: so it is right to its own tolerance.
        assert elements.volume[i] == pytest.approx(cell.volume(), 1e-6)


@pytest.mark.warp
def test_a_cell_in_two_lumps_is_two_elements(device: Device) -> None:
    # The cell of the third site holds the ends of both bars.
    bar = box((0, 0, 0), (1, 0.2, 0.2))
    legs = joined(bar, moved(bar, (0, 0, 0.5)))
    elements = clip(device, legs, [[0.1, 0.1, 0.1], [0.1, 0.1, 0.6], [0.9, 0.1, 0.1]])
    check(elements, legs)
    assert len(elements.volume) == 4
    assert any("lumps" in note for note in elements.notes)
    # The end of the second bar has its own centroid for its place; at height z it begins at x.
    lone = np.flatnonzero((elements.position > [0.5, 0.0, 0.4]).all(axis=1))
    z = np.linspace(0.5, 0.7, 2001)
    x = (0.45 + z) / 1.6
    centroid = [np.average(0.5 * (x + 1), weights=1 - x), 0.1, np.average(z, weights=1 - x)]
    assert elements.position[lone] == pytest.approx(np.array([centroid]), abs=1e-5)
    assert len(elements.edge) == 2


@pytest.mark.warp
def test_pieces_of_no_size_go_to_their_neighbors(device: Device) -> None:
    # A thorn so thin that the cell of its far side cuts a chip off it.
    shape = box((0, 0, 0), (1, 0.01, 0.01))
    far = box((0, 0, 1), (1, 1, 2))
    both = joined(shape, far)
    elements = clip(device, both, [[0.2, 0.005, 0.005], [0.999, 0.5, 1.01], [0.3, 0.5, 1.8]], 3.0)
    check(elements, both)
    assert len(elements.volume) == 3 or elements.volume.min() > 0.01 * 0.1**3


@pytest.mark.warp
def test_a_bubble_within_a_cell_is_not_filled(device: Device) -> None:
    shape = joined(box(), turned_in(moved(sphere(6, 0.03), (0.2, 0.2, 0.2))))
    elements = clip(device, shape, [[0.25, 0.5, 0.5], [0.75, 0.5, 0.5]])
    check(elements, shape)
    assert len(elements.volume) == 2
    assert elements.volume[0] == pytest.approx(0.5 - volume(sphere(6, 0.03)), 1e-9)
    assert any("bubble" in note for note in elements.notes)


def test_a_short_reach_is_made_longer_where_needed(device: Device) -> None:
    shape = sphere(12)
    site = 0.3 * np.random.default_rng(3).standard_normal((20, 3)).clip(-1.5, 1.5)
    short, far = clip(device, shape, site, 0.05), clip(device, shape, site, 5.0)
    check(short, shape)
    assert short.volume == pytest.approx(far.volume, 1e-9)
    assert np.array_equal(short.edge, far.edge)


def test_a_surface_that_crosses_itself_still_adds_up(device: Device) -> None:
    shape = joined(sphere(10), moved(sphere(10), (0.6, 0.1, 0.2)))
    elements = divide(device, shape, count=60)
    assert elements.volume.sum() == pytest.approx(volume(shape), 1e-9)


@pytest.mark.warp
def test_corners_carry_the_normals_and_uv_of_their_triangle(device: Device) -> None:
    ball = sphere(12)
    smooth = Surface(ball.vertex, ball.triangle,
                     (ball.vertex[ball.triangle]).astype(np.float32), ball.uv)
    faces = divide(device, smooth, count=40).faces
    corner = faces.vertex[faces.corner[faces.start[faces.n_inner]:]]
    direction = corner / np.linalg.norm(corner, axis=1, keepdims=True)
    assert np.abs(np.linalg.norm(faces.normal, axis=1) - 1.0).max() < 1e-5
    assert np.einsum("ij,ij->i", faces.normal, direction).min() > 0.999
    assert np.abs(faces.uv - corner[:, :2]).max() < 1e-6


def test_polygons_are_convex_and_plane(device: Device) -> None:
    faces = divide(device, torus(24), count=200).faces
    area = face_normals(faces)
    for f in range(len(faces.side)):
        corner = faces.vertex[faces.corner[faces.start[f]:faces.start[f + 1]]]
        normal = area[f] / max(np.linalg.norm(area[f]), 1e-300)
        step = np.roll(corner, -1, axis=0) - corner
        turn = np.cross(step, np.roll(step, -1, axis=0)) @ normal
        assert turn.min() > -1e-9
        assert np.abs((corner - corner[0]) @ normal).max() < 1e-9


def test_graded_cells_are_smaller_toward_the_impact(device: Device) -> None:
    elements = divide(device, box(), count=600, grading=toward_impact(np.zeros(3), 0.3, 3.0))
    check(elements, box())
    near = np.linalg.norm(elements.position, axis=1)
    assert elements.volume[near < 0.3].mean() < 0.2 * elements.volume[near > 1.0].mean()
    assert elements.size.max() > 2.0 * elements.size.min()


def test_the_number_of_threads_changes_nothing() -> None:
    device, found = open_device("cpu"), []
    for threads in (1, 3):
        device.threads = threads
        found.append(divide(device, torus(24), count=500))
    for name in ("position", "volume", "edge"):
        assert np.array_equal(getattr(found[0], name), getattr(found[1], name))
    assert np.array_equal(found[0].faces.vertex, found[1].faces.vertex)
    assert np.array_equal(found[0].faces.corner, found[1].faces.corner)
