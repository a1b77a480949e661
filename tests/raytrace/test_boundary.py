"""The boundary is that of the union: it closes, and encloses what an exact union encloses."""

from __future__ import annotations

import manifold3d
import numpy as np
import pytest

from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.open_faces import open_faces

from .conftest import boundary_of


def enclosed_volume(triangle):
    """Volume inside closed triangles (n, 3, 3), by the divergence theorem."""
    a, b, c = np.moveaxis(triangle.astype(float), 1, 0)
    return np.einsum("ni,ni->", a, np.cross(b, c)) / 6.0


@pytest.mark.warp
def test_boundary_encloses_the_volume_of_an_exact_union(
        device, make_solid, keep_elements, make_pieces):
    solid = make_solid((6, 5, 4))
    keep = np.random.default_rng(3).random(solid.n_elements) < 0.6
    solid = keep_elements(solid, keep)
    cubes = [manifold3d.Manifold.cube((1.0, 1.0, 1.0), True).translate(tuple(center))
             for center in solid.position]
    union = manifold3d.Manifold.batch_boolean(cubes, manifold3d.OpType.Add)
    boundary = boundary_of(device, solid, make_pieces(solid))
    assert enclosed_volume(boundary.triangle) == pytest.approx(union.volume(), rel=1e-5)
    area = 0.5 * np.linalg.norm(np.cross(boundary.triangle[:, 1] - boundary.triangle[:, 0],
                                         boundary.triangle[:, 2] - boundary.triangle[:, 0]), axis=1)
    assert area.sum() == pytest.approx(union.surface_area(), rel=1e-5)


def test_moved_pieces_keep_their_volume(device, make_solid, make_pieces):
    solid = make_solid((8, 8, 4), spacing=0.01)
    pieces = make_pieces(solid, pieces=12, spread=0.05, turn=0.8)
    boundary = boundary_of(device, solid, pieces)
    for piece in pieces.id:
        inside = enclosed_volume(boundary.triangle[boundary.piece_id == piece])
        assert inside == pytest.approx(solid.volume[pieces.fragment == piece].sum(), rel=1e-4)


@pytest.mark.warp
def test_every_edge_of_a_piece_is_shared_bit_for_bit(device, make_solid, make_pieces):
    solid = make_solid((6, 6, 3), spacing=1e-3, center=(0.1, 0.2, 0.3))
    pieces = make_pieces(solid, pieces=5, spread=3.0, turn=1.0)
    boundary = boundary_of(device, solid, pieces)
    for piece in pieces.id:
        triangle = boundary.triangle[boundary.piece_id == piece]
        start, end = triangle.reshape(-1, 3), np.roll(triangle, -1, axis=1).reshape(-1, 3)
        forward = {(*a, *b) for a, b in zip(start.tolist(), end.tolist(), strict=True)}
        assert all((*edge[3:], *edge[:3]) in forward for edge in forward)


def test_only_faces_between_pieces_are_fracture(make_solid, make_pieces):
    solid = make_solid((4, 4, 1))
    pieces = make_pieces(solid)
    whole = open_faces(all_faces(solid), pieces.fragment)
    assert not whole.is_fracture.any() and len(whole.face) == 2 * 16 + 4 * 4
    halves = (solid.cell[:, 0] >= 2).astype(np.int32)
    split = open_faces(all_faces(solid), halves)
    assert split.is_fracture.sum() == 2 * 4
    assert set(split.owner[split.is_fracture & ~split.reverse]).isdisjoint(
        split.owner[split.is_fracture & split.reverse])


def test_transforms_that_are_not_finite_are_refused(device, make_solid, make_pieces):
    solid = make_solid((2, 2, 2))
    pieces = make_pieces(solid)
    pieces.translation[0, 1] = np.nan
    with pytest.raises(ValueError, match="frame 1001: a piece's transform is not finite"):
        boundary_of(device, solid, pieces)
