"""Parts of a mesh that only touch, at an edge or a vertex, are told apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import label
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from tests.geometry.meshes import box, flipped, joined, sphere, write_obj
from vfx.geometry.divide.build import build_solid
from vfx.geometry.divide.sources import surface_volume
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.mesh.files import RawMesh
from vfx.geometry.mesh.load import make_surface
from vfx.geometry.mesh.topology import find_topology


def surface(device, raw, **settings):
    return make_surface(device, raw, Body(material="clay", mesh="m.obj", elements=9, **settings))


def voxels(solid) -> RawMesh:
    """The sides of unit cubes between solid and air, all of which share their vertices."""
    cube = box()
    padded = np.pad(solid, 1)
    parts = []
    for place in np.argwhere(solid):
        side = []
        for k, axis in enumerate((0, 0, 1, 1, 2, 2)):
            beside = place + 1
            beside[axis] += 2 * (k % 2) - 1
            if not padded[tuple(beside)]:
                side += [2 * k, 2 * k + 1]
        parts.append(RawMesh(cube.vertex + place, cube.triangle[side], None, None))
    return joined(*parts)


def components(edge, n) -> int:
    graph = coo_array((np.ones(len(edge)), (edge[:, 0], edge[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[0]


@pytest.mark.parametrize("seed", range(6))
def test_bodies_of_random_cubes_are_those_connected_over_faces(device, seed):
    solid = np.random.default_rng(seed).random((5, 5, 5)) < 0.4
    made, report = surface(device, voxels(solid))
    # Air within a body that touches the air outside along an edge is no cavity of its own.
    assert report.parts == label(solid)[1]
    assert report.volume == pytest.approx(solid.sum())
    assert surface_volume(made) == pytest.approx(solid.sum())
    # No vertex is in two of them.
    shell = find_topology(made.vertex, made.triangle).shell
    owner = np.full(len(made.vertex), -1)
    owner[made.triangle] = shell[:, None]
    assert (owner[made.triangle] == shell[:, None]).all()


def test_every_cube_of_a_chequered_block_is_a_body(device):
    solid = np.indices((4, 4, 4)).sum(axis=0) % 2 == 0
    made, report = surface(device, voxels(solid))
    assert (report.parts, report.cavities) == (32, 0)
    assert len(made.vertex) == 32 * 8


@pytest.mark.parametrize("raw", [sphere(), box(), joined(box(), flipped(box((0.5, 0.5, 0.5))))])
def test_a_mesh_whose_parts_do_not_touch_stays_as_it_is(raw):
    triangle, place = find_topology(raw.vertex, raw.triangle).parted()
    assert np.array_equal(triangle, raw.triangle)
    assert np.array_equal(place, np.arange(len(raw.vertex)))


@pytest.mark.parametrize("shape", ["voronoi", "tet-shell"])
@pytest.mark.parametrize("center", [(1.0, 1.0, 0.0), (1.0, 1.0, 1.0)])
def test_elements_do_not_hang_together_where_bodies_only_touch(device, tmp_path, shape, center):
    path = write_obj(tmp_path / "m.obj", joined(box(), box(center=center)))
    solid = build_solid(device, [Body(name="b", material="clay", mesh=str(path), shape=shape,
                                      elements=300)]).solid
    assert components(solid.edge, solid.n_elements) == 2
    assert solid.volume.sum() == pytest.approx(2.0, rel=1e-6)


def test_a_cavity_that_touches_the_outside_along_an_edge_belongs_to_its_body(device):
    solid = np.ones((4, 4, 4), bool)
    solid[1:3, 1:3, 1:3] = False
    solid[0, 0, 1] = False
    made, report = surface(device, voxels(solid))
    assert report.parts == 1
    assert surface_volume(made) == pytest.approx(solid.sum())


def test_parts_that_touch_themselves_are_united_with_what_they_overlap(device):
    ring = np.ones((2, 2, 1), bool)
    ring = np.pad(ring, ((0, 2), (0, 2), (0, 0)))
    ring[2:, 2:] = True
    # Two squares with a corner in common, and a box over that corner.
    raw = joined(voxels(ring), box((0.5, 0.5, 0.5), (1.5, 1.5, 0.0)))
    made, report = surface(device, raw, repair=True)
    assert surface_volume(made) == pytest.approx(8.0 + 0.5 * 0.125)
    assert report.parts == 1
