"""Faces of several kinds of elements stand together as one list."""

from __future__ import annotations

import numpy as np

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.cube_faces import grid_faces
from vfx.geometry.handoff.faces import all_faces, face_normals, join_faces, lowest_corners
from vfx.geometry.handoff.types import Faces

PLACES = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0))


def two_boxes():
    return build_solid([
        Body(name=name, material="stone", cells=(3, 2, 2), spacing=1e-2, center=center)
        for name, center in zip("ab", PLACES, strict=True)])


def of_body(faces: Faces, solid, body: int) -> Faces:
    """Return the faces of one body, as if it had been stored alone."""
    keep = solid.body[faces.side[:, 0]] == body
    n_inner = int(keep[:faces.n_inner].sum())
    n_outer = int(keep.sum()) - n_inner
    return Faces(
        vertex=faces.vertex, start=4 * np.arange(keep.sum() + 1),
        corner=faces.corner.reshape(-1, 4)[keep].ravel(), side=faces.side[keep],
        edge=faces.edge[keep[:faces.n_inner]], normal=np.zeros((4 * n_outer, 3), np.float32),
        uv=np.zeros((4 * n_outer, 2), np.float32), triangle=np.full(n_outer, -1, np.int32))


def test_joined_faces_are_in_the_order_of_the_edges_and_lose_nothing():
    solid = two_boxes()
    whole = grid_faces(solid)
    joined = join_faces([of_body(whole, solid, 1), of_body(whole, solid, 0)])
    assert (joined.edge == np.arange(len(solid.edge))).all()
    assert (joined.side[:joined.n_inner] == solid.edge).all()
    inner = face_normals(whole)[:whole.n_inner]
    np.testing.assert_array_equal(face_normals(joined)[:joined.n_inner], inner)
    assert sorted(map(tuple, joined.side)) == sorted(map(tuple, whole.side))


def test_faces_stored_with_the_solid_are_those_of_its_cubes():
    solid = two_boxes()
    faces = grid_faces(solid)
    stored = of_body(faces, solid, 1)
    solid.kind = np.array(["grid", "voronoi"])
    solid.face_vertex, solid.face_start = stored.vertex, stored.start
    solid.face_corner, solid.face_side = stored.corner, stored.side
    solid.face_edge, solid.surface_triangle = stored.edge, stored.triangle
    solid.surface_normal, solid.surface_uv = stored.normal, stored.uv
    both = all_faces(solid)
    assert sorted(map(tuple, both.side)) == sorted(map(tuple, faces.side))
    outside = face_normals(both)[both.n_inner:].sum(axis=0)
    np.testing.assert_allclose(outside, 0.0, atol=1e-12)


def test_a_cube_reaches_half_its_edge_down():
    solid = two_boxes()
    lowest = lowest_corners(all_faces(solid), solid.n_elements)
    np.testing.assert_allclose(solid.position[:, 1] - lowest, 5e-3, rtol=1e-12)
