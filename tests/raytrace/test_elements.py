"""Every kind of element: the boundary is that of an exact union, and rays meet it as in Embree."""

from __future__ import annotations

import manifold3d
import numpy as np
import pytest
from embreex.mesh_construction import TriangleMesh
from embreex.rtcore_scene import EmbreeScene

from vfx.geometry.divide.build import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import all_faces
from vfx.raytrace.scene import MAX_INSIDE
from vfx.raytrace.tree.bvh import build_bvh

from .conftest import boundary_of, in_pieces, kept

KINDS = ("grid", "tet-shell", "voronoi")
N_RAYS = 60_000


@pytest.fixture(scope="module")
def solids():
    from vfx.device import open_device

    device = open_device("cpu")
    box = {"material": "stone", "box": (0.3, 0.2, 0.25), "seed": 3}
    bodies = {
        "grid": Body(material="stone", cells=(6, 4, 5), spacing=0.05),
        "tet-shell": Body(shape="tet-shell", elements=500, layers=3, **box),
        "voronoi": Body(shape="voronoi", elements=150, **box)}
    return {kind: build_solid(device, [body]).solid for kind, body in bodies.items()}


def enclosed_volume(triangle):
    a, b, c = np.moveaxis(triangle.astype(float), 1, 0)
    return np.einsum("ni,ni->", a, np.cross(b, c)) / 6.0


def element_corners(solid):
    """Return the corners of each element."""
    faces = all_faces(solid)
    count = np.diff(faces.start)
    corners = [[] for _ in range(solid.n_elements)]
    for column in range(2):
        for face, element in enumerate(faces.side[:, column]):
            if element >= 0:
                first = faces.start[face]
                corners[element].append(faces.vertex[faces.corner[first:first + count[face]]])
    return [np.concatenate(parts) for parts in corners]


def random_rays(triangle, count, seed):
    random = np.random.default_rng(seed)
    low, high = triangle.min(axis=(0, 1)), triangle.max(axis=(0, 1))
    outward = random.normal(size=(count, 3))
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    origin = 0.5 * (low + high) + np.linalg.norm(high - low) * outward
    direction = low + (high - low) * random.random((count, 3)) - origin
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return origin.astype(np.float32), direction.astype(np.float32)


def embree_hits(triangle, origin, direction):
    """Return distance and unit normal of what Embree meets."""
    scene = EmbreeScene()
    TriangleMesh(scene, np.ascontiguousarray(triangle, np.float32))
    found = scene.run(origin, direction, output=1)
    t = np.where(found["primID"] >= 0, found["tfar"], np.inf)
    return t, found["primID"]


def normals(triangle):
    normal = np.cross(triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0])
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def our_hits(device, boundary, origin, direction):
    tree = build_bvh(device, device.from_host(boundary.triangle),
                     piece=device.from_host(boundary.piece))
    t, slot = tree.first_hits(device.from_host(origin), device.from_host(direction),
                              device.from_host(np.zeros(1 + MAX_INSIDE, np.int32)))
    slot = device.to_host(slot)
    triangle = device.to_host(tree.slot_triangle).reshape(-1)[slot]
    return device.to_host(t), np.where(slot >= 0, triangle, -1)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_meet_rays_as_in_embree(device, solids, kind):
    solid = solids[kind]
    boundary = boundary_of(device, solid, in_pieces(solid, 12, 2, 0.03, 0.4))
    origin, direction = random_rays(boundary.triangle, N_RAYS, 5)
    t, triangle = our_hits(device, boundary, origin, direction)
    expected, other = embree_hits(boundary.triangle, origin, direction)
    both = np.isfinite(t) & np.isfinite(expected)
    assert 0.2 < both.mean() < 0.95
    # A ray that just touches an edge may go either way: Embree's own test is not watertight.
    assert (np.isfinite(t) != np.isfinite(expected)).sum() <= 3
    assert (np.abs(t[both] - expected[both]) > 2e-6).sum() <= 3
    ours, theirs = (normals(boundary.triangle.astype(float))[index[both]]
                    for index in (triangle, other))
    assert (np.einsum("ni,ni->n", ours, theirs) < 0.9999).sum() <= 5


@pytest.mark.warp
@pytest.mark.parametrize("kind", KINDS)
def test_boundary_is_the_union_of_all_elements(device, solids, kind):
    """Unite the elements one by one in another program; then compare volume and hits."""
    solid = solids[kind]
    if kind == "grid":
        solid = kept(solid, np.random.default_rng(3).random(solid.n_elements) < 0.7)
    hulls = [manifold3d.Manifold.hull_points(corner) for corner in element_corners(solid)]
    assert sum(hull.volume() for hull in hulls) == pytest.approx(solid.volume.sum(), rel=1e-6)
    # One after the other: united all at once, tetrahedra lose a part of their volume there.
    union = hulls[0]
    for hull in hulls[1:]:
        union = union + hull
    boundary = boundary_of(device, solid, in_pieces(solid, 1, 1, 0.0, 0.0))
    assert enclosed_volume(boundary.triangle) == pytest.approx(union.volume(), rel=1e-4)
    mesh = union.to_mesh()
    outer = np.array(mesh.vert_properties)[:, :3][np.array(mesh.tri_verts)] - boundary.origin
    origin, direction = random_rays(boundary.triangle, N_RAYS // 4, 6)
    t, _ = our_hits(device, boundary, origin, direction)
    expected, _ = embree_hits(outer, origin, direction)
    assert (np.isfinite(t) != np.isfinite(expected)).sum() <= 3
    both = np.isfinite(t) & np.isfinite(expected)
    assert (np.abs(t[both] - expected[both]) > 2e-5).sum() <= 3
