"""Cracks within pieces: which faces are open, how far they gape, that neither is ever undone."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tests.geometry.test_align import DENSITY, FIRST, motion_at
from tests.geometry.test_nodes import block, brute_groups
from vfx.geometry.handoff.crack_opening import open_cracks
from vfx.geometry.handoff.open_faces import are_open, crack_edges
from vfx.geometry.handoff.types import Lineage, Motion, Pieces
from vfx.geometry.pieces.align import Aligner
from vfx.geometry.pieces.cracks import torn_edges, with_cracks
from vfx.geometry.pieces.lineage import build_lineage, labels_at


def across(solid, axis, cell, deep=0):
    """Edges across the plane above ``cell`` along an axis, from ``deep`` on along the next."""
    low, high = (solid.cell[solid.edge[:, k]] for k in (0, 1))
    return np.flatnonzero((low[:, axis] == cell) & (high[:, axis] == cell + 1)
                          & (low[:, (axis + 1) % 3] >= deep))


@pytest.mark.parametrize("seed", range(6))
def test_a_face_is_open_where_it_parts_the_elements_around_a_corner(seed):
    solid, faces = block((4, 3, 3))
    random = np.random.default_rng(seed)
    piece = (solid.cell[:, 0] >= 2).astype(np.int32) * (seed % 2)
    torn = np.flatnonzero(random.random(len(solid.edge)) < 0.12 * (seed + 1))
    is_open = are_open(faces, piece, torn)
    expected = []
    for edge in torn:
        low, high = solid.edge[edge]
        corners = faces.corner[faces.start[edge]:faces.start[edge + 1]]
        parts = any(low in group and high not in group
                    for vertex in corners for group in brute_groups(faces, is_open, vertex))
        if piece[low] != piece[high] or parts:
            expected.append(edge)
    assert crack_edges(faces, piece, random.permutation(torn)).tolist() == expected
    assert 0 < len(expected) <= len(torn)


def test_one_broken_face_among_others_stays_closed_and_a_sheet_opens():
    solid, faces = block((6, 5, 5))
    whole = solid.body.astype(np.int32)
    sheet = across(solid, 0, 2)
    middle = sheet[np.isin(solid.cell[solid.edge[sheet, 0], 1:], (1, 2)).all(axis=1)]
    assert len(middle) == 4
    for count in range(1, 4):
        assert not len(crack_edges(faces, whole, middle[:count]))
    assert crack_edges(faces, whole, middle).tolist() == middle.tolist()
    assert crack_edges(faces, whole, sheet).tolist() == sheet.tolist()
    # In a plate of one layer the second face in a row opens both.
    plate, faces = block((6, 6, 1))
    row = across(plate, 0, 2)[2:4]
    assert not len(crack_edges(faces, plate.body, row[:1]))
    assert crack_edges(faces, plate.body, row).tolist() == row.tolist()


def test_what_broke_and_parted_in_one_frame_was_no_crack():
    solid, _ = block((4, 1, 1))
    torn = [np.array([1]), np.zeros(0, int), np.array([0, 1])]
    lineage = with_cracks(build_lineage(
        solid, [(FIRST + f, edge) for f, edge in enumerate(torn)], FIRST), solid, torn)
    assert not len(lineage.torn_edge), "a row parts where an edge breaks"
    solid, _ = block((4, 2, 1))
    cut = across(solid, 0, 1)
    assert len(cut) == 2
    torn = [cut[:0], cut[:1], cut[:1], cut]
    lineage = with_cracks(build_lineage(
        solid, [(FIRST + f, edge) for f, edge in enumerate(torn)], FIRST), solid, torn)
    assert len(np.unique(labels_at(lineage, solid, FIRST + 2))) == 1
    assert len(np.unique(labels_at(lineage, solid, FIRST + 3))) == 2
    assert [torn_edges(lineage, FIRST + f).tolist() for f in range(4)] == [
        [], [cut[0]], [cut[0]], [cut[0]]]
    assert Lineage.from_arrays(lineage.to_arrays()).torn_edge.tolist() == [cut[0]]


def test_lineages_and_pieces_of_before_have_no_cracks():
    solid, _ = block((2, 2, 1))
    nothing = np.zeros(0, np.int32)
    lineage = build_lineage(solid, [(FIRST, nothing), (FIRST + 1, nothing)], FIRST)
    arrays = {name: value for name, value in lineage.to_arrays().items() if "torn" not in name}
    assert not len(torn_edges(Lineage.from_arrays(arrays), FIRST + 1))
    motion = motion_at(FIRST, solid.position, np.zeros_like(solid.position))
    arrays = motion.to_arrays()
    del arrays["torn_edge"]
    assert not len(Motion.from_arrays(arrays).torn_edge)


def test_cracks_grow_and_are_the_same_however_frames_are_shared_out():
    solid, _ = block((6, 5, 3))
    plane = across(solid, 0, 2)
    order = plane[np.argsort(solid.position[solid.edge[plane, 0]] @ [0.0, -1.0, -0.1])]
    told = [order[3 * f:3 * f + 3] for f in range(6)]
    # Some solvers say what parted pieces apart from what tore; here the last parts the block.
    lineage = with_cracks(build_lineage(
        solid, [(FIRST + f, np.concatenate(told[:f + 1]) if f == 4 else order[:0])
                for f in range(6)], FIRST), solid, told)

    def read(frame):
        return motion_at(frame, solid.position, np.zeros_like(solid.position))

    aligner = Aligner(solid, DENSITY[:1], lineage, read)
    every = [aligner.align(FIRST + f) for f in range(6)]
    assert [len(pieces.id) for pieces in every] == [1, 1, 1, 1, 2, 2]
    for f in (3, 5, 0, 2):
        alone = Aligner(solid, DENSITY[:1], lineage, read).align(FIRST + f)
        assert np.array_equal(alone.crack_edge, every[f].crack_edge)
    short = with_cracks(build_lineage(
        solid, [(FIRST + f, order[:0]) for f in range(3)], FIRST), solid, told[:3])
    assert np.array_equal(
        Aligner(solid, DENSITY[:1], short, read).align(FIRST + 2).crack_edge, every[2].crack_edge)
    # Once open, always open: what parted the pieces was a crack before, but for the last row.
    for before, after in pairwise(every):
        assert np.isin(before.crack_edge, after.crack_edge).all()
    assert every[5].crack_edge.tolist() == sorted(order[:12].tolist())
    assert every[3].crack_edge.dtype == np.int32
    assert Pieces.from_arrays(every[3].to_arrays()).crack_edge.tolist() == (
        every[3].crack_edge.tolist())


def gaps(faces, solid, crack, width):
    """How far both sides of crack faces part at their corners, along the normal: (e, 4)."""
    piece = np.zeros(solid.n_elements, np.int32)
    opening = open_cracks(faces, piece, crack, np.full(solid.n_elements, width))
    place = np.concatenate([faces.vertex, opening.place])
    corner = faces.corner[faces.start[crack][:, None] + np.arange(4)]
    low, high = (place[opening.corners(
        len(faces.vertex), np.repeat(faces.side[crack, side], 4), corner.ravel())].reshape(-1, 4, 3)
        for side in (0, 1))
    rest = faces.vertex[corner]
    normal = np.cross(rest[:, 1] - rest[:, 0], rest[:, 2] - rest[:, 0])
    # Both sides draw back alike.
    np.testing.assert_allclose(high - rest, -(low - rest), atol=1e-12)
    return np.einsum("eci,ei->ec", high - low, normal)


def test_a_plane_crack_is_a_wedge_of_its_width_that_is_closed_at_the_tip():
    solid, faces = block((6, 5, 3))
    crack = crack_edges(faces, solid.body, across(solid, 0, 2, deep=2))
    gap = gaps(faces, solid, crack, 0.08)
    height = faces.vertex[faces.corner[faces.start[crack][:, None] + np.arange(4)]][..., 1]
    np.testing.assert_allclose(gap, np.where(height < -0.4, 0.0, 0.08), atol=1e-12)
    assert (height < -0.4).any()


@pytest.mark.parametrize("seed", range(4))
def test_sides_of_cracks_never_cross(seed):
    solid, faces = block((5, 5, 4))
    random = np.random.default_rng(seed)
    piece = (random.random(solid.n_elements) < 0.3 * (seed % 2)).astype(np.int32)
    torn = np.flatnonzero(random.random(len(solid.edge)) < 0.15 * (seed + 1))
    crack = crack_edges(faces, piece, torn)
    opening = open_cracks(faces, piece, crack, np.full(solid.n_elements, 0.1))
    place = np.concatenate([faces.vertex, opening.place])
    corner = faces.corner[faces.start[crack][:, None] + np.arange(4)]
    rest = faces.vertex[corner]
    normal = np.cross(rest[:, 1] - rest[:, 0], rest[:, 2] - rest[:, 0])
    gap = np.zeros(corner.shape)
    for side, sign in ((0, -1.0), (1, 1.0)):
        own = place[opening.corners(len(faces.vertex), np.repeat(faces.side[crack, side], 4),
                                    corner.ravel())].reshape(-1, 4, 3)
        drawn_back = sign * np.einsum("eci,ei->ec", own - rest, normal)
        assert drawn_back.min() > -1e-9 and drawn_back.max() < 0.1 + 1e-9
        gap += drawn_back
    assert (gap.max(axis=1) > 0.05).mean() > 0.95


def test_graded_elements_take_the_narrower_width_and_no_width_leaves_all_in_place():
    solid, faces = block((4, 4, 1))
    crack = crack_edges(faces, solid.body, across(solid, 0, 1, deep=1))
    width = np.where(solid.cell[:, 0] >= 2, 0.02, 0.1)
    opening = open_cracks(faces, solid.body, crack, width)
    rest = open_cracks(faces, solid.body, crack, np.zeros_like(width))
    assert np.abs(opening.place - rest.place).max() == pytest.approx(0.01)
    assert np.array_equal(np.unique(rest.place, axis=0), np.unique(
        faces.vertex[faces.corner[faces.start[crack][:, None] + np.arange(4)]].reshape(-1, 3),
        axis=0))
    assert len(rest.place) > len(np.unique(rest.place, axis=0)), "each side has its own"
