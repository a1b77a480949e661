"""The boundary faces give the hits of the paper's constructive geometry, and of exact unions."""

from __future__ import annotations

import manifold3d
import numpy as np
import pytest
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene

from vfx.raytrace.boundary.trimtope import Trimtopes, trimtope_hits, voronoi_trimtopes
from vfx.raytrace.tree.bvh import build_bvh


def mesh_triangles(manifold):
    mesh = manifold.to_mesh64()
    return np.array(mesh.vert_properties)[:, :3][np.array(mesh.tri_verts)]


def blob():
    """A ring with a thin fin: curved, with a hole, and thinner than a cell in places."""
    ring = manifold3d.CrossSection.circle(0.35, 20).translate((0.9, 0.0)).revolve(40)
    fin = manifold3d.Manifold.cube((2.2, 0.05, 0.9), True).translate((0.0, 0.0, 0.2))
    return ring + fin


def inner_sites(solid, count, seed):
    """Return points inside, spread by chance."""
    random = np.random.default_rng(seed)
    sites = []
    while len(sites) < count:
        point = random.uniform(-1.25, 1.25, 3) * [1.0, 1.0, 0.5]
        probe = manifold3d.Manifold.cube((1e-4,) * 3, True).translate(tuple(point))
        if (solid ^ probe).volume() > 0.9e-12:
            sites.append(point)
    return np.array(sites)


def clipped_cells(solid, site):
    """Return the part of the solid nearest to each site, cut by another program."""
    cells = []
    for own in range(len(site)):
        part = solid
        for other in range(len(site)):
            if other == own:
                continue
            normal = site[own] - site[other]
            normal /= np.linalg.norm(normal)
            part = part.trim_by_plane(tuple(normal),
                                      float(normal @ (0.5 * (site[own] + site[other]))))
        cells.append(part)
    return cells


def random_rays(count, seed):
    random = np.random.default_rng(seed)
    origin = random.normal(size=(count, 3))
    origin *= 4.0 / np.linalg.norm(origin, axis=1, keepdims=True)
    direction = random.uniform(-1.2, 1.2, (count, 3)) * [1.0, 1.0, 0.5] - origin
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    # What both programs get must be the same ray.
    return origin.astype(np.float32), direction.astype(np.float32)


@pytest.fixture(scope="module")
def scene():
    solid = blob()
    site = inner_sites(solid, 60, 7)
    return solid, site, clipped_cells(solid, site)


def test_boundary_gives_the_hits_of_constructive_geometry(device, scene):
    solid, site, cells = scene
    kept = np.arange(0, 60, 2)
    trimtopes = voronoi_trimtopes(site, kept, mesh_triangles(solid), 5.0)
    origin, direction = random_rays(3000, 1)
    expected, cell, on_mesh = trimtope_hits(device, trimtopes, origin, direction)

    # Faces of the cells that another program cut; inside a union none of them is met first.
    triangle = np.concatenate([mesh_triangles(cells[k]) for k in kept]).astype(np.float32)
    owner = np.repeat(np.arange(len(kept)), [len(mesh_triangles(cells[k])) for k in kept])
    tree = build_bvh(device, device.from_host(triangle),
                     piece=device.from_host(owner.astype(np.int32)))
    t, hit = tree.closest_hits(*map(device.from_host, (
        origin, direction, np.full(len(origin), np.inf, np.float32))))
    t, hit = device.to_host(t), device.to_host(hit)
    finite = np.isfinite(t) & np.isfinite(expected)
    assert 0.2 < finite.mean() < 0.9 and on_mesh.mean() > 0.1
    assert (np.isfinite(expected) & ~on_mesh).mean() > 0.1
    # Rays within rounding of an edge may go either way.
    assert (np.isfinite(t) != np.isfinite(expected)).sum() <= 3
    wrong = np.abs(t[finite] - expected[finite]) > 2e-5
    assert wrong.sum() <= 3
    # At a face between two kept cells both are right; elsewhere the cell must be the same.
    same = owner[hit[finite]] == cell[finite]
    assert same.mean() > 0.97


def test_all_cells_together_are_the_object(device, scene):
    solid, site, cells = scene
    assert sum(cell.volume() for cell in cells) == pytest.approx(solid.volume(), rel=1e-9)
    trimtopes = voronoi_trimtopes(site, np.arange(60), mesh_triangles(solid), 5.0)
    origin, direction = random_rays(2000, 2)
    t, _, on_mesh = trimtope_hits(device, trimtopes, origin, direction)
    embree = EmbreeScene()
    TriangleMesh(embree, mesh_triangles(solid).astype(np.float32))
    expected = embree.run(origin, direction, query="DISTANCE")
    met = expected < 1e30
    assert (met != np.isfinite(t)).sum() <= 2
    both = met & np.isfinite(t)
    assert (np.abs(t[both] - expected[both]) > 2e-5).sum() <= 2
    assert on_mesh[both].all()


@pytest.mark.warp
@pytest.mark.parametrize(("ray", "expected"), [
    ((-2.0, 0.5), None),            # A: through the part above the mesh
    ((-2.0, -0.5), (1.0, False)),   # B: through the part below it
], ids=["A", "B"])
def test_rays_that_miss_the_mesh(device, ray, expected):
    """A cube about the site with a level mesh above it, as in the paper's figure 4."""
    check_figure(device, np.array([*ray, 0.1]), np.array([1.0, 0.0, 0.0]), expected)


@pytest.mark.warp
def test_a_ray_that_meets_the_mesh_from_outside(device):
    """C: down through the mesh, which is the hit."""
    check_figure(device, np.array([0.2, 3.0, 0.1]), np.array([0.0, -1.0, 0.0]), (2.75, True))


@pytest.mark.warp
def test_a_ray_that_meets_the_mesh_from_inside(device):
    """D: up from below: it enters through the plane and leaves through the mesh."""
    check_figure(device, np.array([0.2, -3.0, 0.1]), np.array([0.0, 1.0, 0.0]), (2.0, False))


def check_figure(device, origin, direction, expected):
    plane = np.concatenate([np.column_stack([sign * np.eye(3), np.ones(3)]) for sign in (1, -1)])
    level = np.array([[[-3, 0.25, -3], [0, 0.25, 9], [3, 0.25, -3]]], float)
    cells = Trimtopes(np.zeros((1, 3)), np.array([0, 6], np.int32), plane,
                      np.array([0, 1], np.int32), level)
    t, cell, on_mesh = trimtope_hits(device, cells, origin[None], direction[None])
    if expected is None:
        assert np.isinf(t[0]) and cell[0] == -1
    else:
        assert (t[0], bool(on_mesh[0])) == (pytest.approx(expected[0]), expected[1])


def test_a_cell_may_hold_several_sheets(device):
    """Two plates in one cell: the gap between them is outside, seen from either."""
    plane = np.concatenate([np.column_stack([sign * np.eye(3), np.ones(3)]) for sign in (1, -1)])
    up = np.array([[-3, 0, -3], [0, 0, 9], [3, 0, -3]], float)
    down = up[::-1]
    triangle = np.stack([up, down, up])
    triangle[:, :, 1] = np.array([0.2, 0.5, 0.7])[:, None]
    cells = Trimtopes(np.zeros((1, 3)), np.array([0, 6], np.int32), plane,
                      np.array([0, 3], np.int32), triangle)
    height = np.array([-0.5, 0.3, 0.6, 0.9])
    origin = np.column_stack([np.full(4, -2.0), height, np.full(4, 0.1)])
    t, _, _ = trimtope_hits(device, cells, origin, np.tile([1.0, 0.0, 0.0], (4, 1)))
    assert (np.isfinite(t) == [True, False, True, False]).all()
