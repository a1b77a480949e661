"""Laws of Voronoi cells: against scipy, in boxes and on lattices, many neighbours, threads."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay, Voronoi

from vfx.device import Device, open_device
from vfx.geometry.divide.cells import FIRST_REACH_WALL, Cells, TiedSitesError, voronoi_cells


def cells_of(device: Device, site: np.ndarray, reach: float = 9.0) -> Cells:
    return voronoi_cells(device, device.from_host(site), np.zeros(3), np.ones(3),
                         device.from_host(np.full(len(site), reach)))


class HostCells:
    """The same on the host, by the order of the sites given."""

    def __init__(self, device: Device, cells: Cells) -> None:
        host = device.to_host
        self.order = host(cells.grid.order)
        self.place = np.argsort(self.order)
        self.plane_start, self.plane = host(cells.plane_start), host(cells.plane)
        self.vertex_start, self.vertex = host(cells.vertex_start), host(cells.vertex)
        self.vertex_plane = host(cells.vertex_plane)
        self.position = host(cells.position)

    def neighbors(self, site: int) -> set[int]:
        place = self.place[site]
        planes = self.plane[self.plane_start[place]:self.plane_start[place + 1]]
        return {int(self.order[p]) if p >= 0 else int(p) for p in planes}

    def corners(self, site: int) -> np.ndarray:
        place = self.place[site]
        return self.position[self.vertex[self.vertex_start[place]:self.vertex_start[place + 1]]]


@pytest.mark.warp
def test_neighbors_and_vertices_are_those_of_scipy(device: Device) -> None:
    site = np.random.default_rng(1).random((400, 3))
    found = HostCells(device, cells_of(device, site))
    reference = Voronoi(site)
    start, neighbor = Delaunay(site).vertex_neighbor_vertices
    compared = 0
    for i in range(len(site)):
        if min(found.neighbors(i)) < 0:
            continue
        compared += 1
        assert found.neighbors(i) == set(neighbor[start[i]:start[i + 1]].tolist())
        region = reference.vertices[reference.regions[reference.point_region[i]]]
        corner = found.corners(i)
        assert len(corner) == len(region)
        assert np.linalg.norm(corner[:, None] - region[None], axis=2).min(axis=1).max() < 1e-12
    assert compared > 50


@pytest.mark.parametrize("n", [1, 2, 3, 50, 1000])
def test_cells_fill_their_box(device: Device, n: int) -> None:
    site = np.random.default_rng(n).random((n, 3))
    found = HostCells(device, cells_of(device, site))
    assert sum(ConvexHull(found.corners(i)).volume for i in range(n)) == pytest.approx(1.0, 1e-12)
    # Euler: every vertex has three planes.
    planes, vertices = np.diff(found.plane_start), np.diff(found.vertex_start)
    assert (vertices == 2 * planes - 4).all()


@pytest.mark.warp
def test_every_vertex_is_found_in_all_cells_that_share_it(device: Device) -> None:
    site = np.random.default_rng(3).random((2000, 3))
    found = HostCells(device, cells_of(device, site))
    count = np.bincount(found.vertex)
    owner = np.repeat(np.arange(len(site)), np.diff(found.vertex_start))
    plane = found.plane[found.plane_start[owner][:, None] + found.vertex_plane]
    walls = np.zeros(len(count), np.int64)
    np.maximum.at(walls, found.vertex, (plane < 0).sum(axis=1))
    assert (count + walls == 4).all()


@pytest.mark.warp
def test_faces_turn_anticlockwise_seen_from_outside(device: Device) -> None:
    site = np.random.default_rng(4).random((30, 3))
    found = HostCells(device, cells_of(device, site))
    for i in range(30):
        place = found.place[i]
        triple = found.vertex_plane[found.vertex_start[place]:found.vertex_start[place + 1]]
        corner = found.corners(i)
        following = {(int(t[k]), int(t[(k + 1) % 3])): v
                     for v, t in enumerate(triple) for k in range(3)}
        for v, t in enumerate(triple):
            for k in range(3):
                a, c = int(t[k]), int(t[(k + 2) % 3])
                w = following[a, c]
                # The site is to the left, and below, of the edge from a vertex to the next.
                d = following[a, int(triple[w][(list(triple[w]).index(a) + 2) % 3])]
                normal = np.cross(corner[w] - corner[v], corner[d] - corner[w])
                assert normal @ (corner[v] - site[i]) > 0


@pytest.mark.warp
def test_a_site_with_a_thousand_neighbors_has_them(device: Device) -> None:
    random = np.random.default_rng(5)
    direction = random.standard_normal((1000, 3))
    shell = 0.5 + 0.4 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    site = np.concatenate([[[0.5, 0.5, 0.5]], shell + random.uniform(-1e-4, 1e-4, shell.shape)])
    found = HostCells(device, cells_of(device, site))
    start, neighbor = Delaunay(site).vertex_neighbor_vertices
    assert found.neighbors(0) == set(neighbor[:start[1]].tolist())
    assert len(found.neighbors(0)) > 900


def test_sites_that_rounding_cannot_tell_apart_are_named(device: Device) -> None:
    direction = np.random.default_rng(5).standard_normal((1000, 3))
    shell = 0.5 + 0.4 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    with pytest.raises(TiedSitesError, match="move the sites a little"):
        cells_of(device, shell)


@pytest.mark.warp
def test_cells_of_a_lattice_have_its_corners_however_rounding_decides(device: Device) -> None:
    # Eight cubes meet at a corner, and each may say otherwise which four of them do.
    place = (np.stack(np.meshgrid(*[np.arange(8)] * 3), axis=-1).reshape(-1, 3) + 0.5) / 8
    found = HostCells(device, cells_of(device, place))
    assert found.vertex.min() == 0
    assert set(found.vertex.tolist()) == set(range(len(found.position)))
    for i, site in enumerate(place):
        corner = (found.corners(i) - site) * 16
        assert np.abs(np.abs(corner) - 1.0).max() < 1e-12
        assert len(np.unique(np.sign(corner), axis=0)) == 8


@pytest.mark.warp
def test_a_short_reach_is_a_wall_of_its_own(device: Device) -> None:
    site = np.array([[0.2, 0.5, 0.5], [0.8, 0.5, 0.5]])
    found = HostCells(device, cells_of(device, site, reach=0.31))
    assert found.neighbors(0) == {1, -1, *range(FIRST_REACH_WALL - 5, FIRST_REACH_WALL - 1)}
    assert np.ptp(found.corners(0), axis=0) == pytest.approx([0.5, 0.62, 0.62])
    far = HostCells(device, cells_of(device, site, reach=0.29))
    assert far.neighbors(0) == set(range(FIRST_REACH_WALL - 5, FIRST_REACH_WALL - 1)) | {
        -1 if 0.2 < 0.29 else FIRST_REACH_WALL, FIRST_REACH_WALL - 1}


def test_clusters_far_apart_are_told_from_each_other(device: Device) -> None:
    random = np.random.default_rng(6)
    site = np.concatenate([1e-3 * random.random((500, 3)), 1 - 1e-3 * random.random((500, 3))])
    found = HostCells(device, cells_of(device, site))
    assert sum(ConvexHull(found.corners(i)).volume for i in range(1000)) == pytest.approx(1.0, 1e-9)


def test_the_number_of_threads_changes_nothing() -> None:
    device = open_device("cpu")
    site, found = np.random.default_rng(7).random((3000, 3)), []
    for threads in (1, 3):
        device.threads = threads
        found.append(cells_of(device, site))
    assert np.array_equal(found[0].position, found[1].position)
    assert np.array_equal(found[0].plane, found[1].plane)
