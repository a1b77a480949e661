"""Laws of pieces over time, against a plain breadth-first search."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.types import Lineage, Solid
from vfx.geometry.pieces.lineage import build_lineage, count_pieces, labels_at, piece_name

FIRST = 1001


def make_solid(*shapes: tuple[int, int, int]) -> Solid:
    return build_solid([
        Body(name=f"part{i}", material="glass", cells=shape, spacing=0.1, center=(10.0 * i, 0, 0))
        for i, shape in enumerate(shapes)])


def search_components(n: int, edges: list[tuple[int, int]]) -> list[frozenset[int]]:
    """Return the connected components of a graph by breadth-first search."""
    neighbors: dict[int, list[int]] = {i: [] for i in range(n)}
    for a, b in edges:
        neighbors[a].append(b)
        neighbors[b].append(a)
    seen: set[int] = set()
    found = []
    for start in range(n):
        if start in seen:
            continue
        queue, part = [start], {start}
        while queue:
            for other in neighbors[queue.pop(0)]:
                if other not in part:
                    part.add(other)
                    queue.append(other)
        seen |= part
        found.append(frozenset(part))
    return found


@st.composite
def breaking_solids(draw):
    """Draw a solid and what breaks in each frame: random edges, sometimes nothing or again."""
    shapes = draw(st.lists(st.tuples(*[st.integers(1, 4)] * 3), min_size=1, max_size=3))
    solid = make_solid(*shapes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.floats(0, 0.5))
    n_frames = draw(st.integers(1, 8))
    broken = [(FIRST + f, np.flatnonzero(rng.random(len(solid.edge)) < share * rng.random()))
              for f in range(n_frames)]
    return solid, broken


def pieces_at(lineage: Lineage, solid: Solid, frame: int) -> dict[int, frozenset[int]]:
    label = labels_at(lineage, solid, frame)
    return {int(i): frozenset(np.flatnonzero(label == i).tolist()) for i in np.unique(label)}


@settings(max_examples=80, deadline=None)
@given(breaking_solids())
def test_pieces_are_the_components_a_search_finds(case):
    solid, broken = case
    lineage = build_lineage(solid, broken, FIRST)
    alive = set(range(len(solid.edge)))
    for frame, indices in broken:
        alive -= set(indices.tolist())
        expected = search_components(
            solid.n_elements, [tuple(solid.edge[e].tolist()) for e in sorted(alive)])
        assert set(pieces_at(lineage, solid, frame).values()) == set(expected)
        gone = np.array(sorted(set(range(len(solid.edge))) - alive), np.int64)
        assert count_pieces(solid, gone) == len(expected)


@settings(max_examples=80, deadline=None)
@given(breaking_solids())
def test_the_largest_part_keeps_the_id_and_the_rest_are_born_in_order(case):
    solid, broken = case
    lineage = build_lineage(solid, broken, FIRST)
    before = {b: frozenset(np.flatnonzero(solid.body == b).tolist())
              for b in range(len(solid.length_scale))}
    next_id = len(before)
    for frame, _ in broken:
        now = pieces_at(lineage, solid, frame)
        newborn = []
        for old, members in before.items():
            parts = sorted((p for p in now.values() if p <= members),
                           key=lambda part: (-len(part), min(part)))
            assert now[old] == parts[0]
            newborn += [(part, old) for part in parts[1:]]
        newborn.sort(key=lambda item: (-len(item[0]), min(item[0])))
        for part, old in newborn:
            assert now[next_id] == part
            assert lineage.parent[next_id] == old
            assert lineage.birth_frame[next_id] == frame
            assert lineage.body[next_id] == solid.body[min(part)]
            next_id += 1
        before = now
    assert len(lineage.parent) == len(lineage.birth_frame) == len(lineage.body) == next_id
    assert (np.diff(lineage.birth_frame) >= 0).all()


@settings(max_examples=30, deadline=None)
@given(breaking_solids())
def test_a_longer_sequence_only_adds_to_a_shorter_one(case):
    solid, broken = case
    whole = build_lineage(solid, broken, FIRST)
    part = build_lineage(solid, broken[:1], FIRST)
    np.testing.assert_array_equal(whole.parent[:len(part.parent)], part.parent)
    np.testing.assert_array_equal(labels_at(whole, solid, FIRST), labels_at(part, solid, FIRST))
    again = Lineage.from_arrays(whole.to_arrays())
    assert (again.first_frame, again.last_frame) == (FIRST, FIRST + len(broken) - 1)


def test_whole_bodies_are_the_first_pieces():
    solid = make_solid((2, 2, 1), (3, 1, 1))
    lineage = build_lineage(solid, [(FIRST, np.zeros(0, dtype=np.int32))], FIRST)
    np.testing.assert_array_equal(labels_at(lineage, solid, FIRST), solid.body)
    assert lineage.parent.tolist() == [-1, -1]
    assert lineage.change_particle.dtype == lineage.change_fragment.dtype == np.int32
    assert labels_at(lineage, solid, FIRST).dtype == np.int32


def test_a_body_in_pieces_from_the_start_has_them_born_at_the_first_frame():
    solid = dataclasses.replace(make_solid((4, 1, 1)), edge=np.array([[1, 2], [2, 3]], np.int32))
    lineage = build_lineage(solid, [(FIRST, np.zeros(0, dtype=np.int32))], FIRST)
    assert labels_at(lineage, solid, FIRST).tolist() == [1, 0, 0, 0]
    assert (lineage.parent.tolist(), lineage.birth_frame.tolist()) == ([-1, 0], [FIRST, FIRST])


def test_a_tie_is_decided_by_the_lowest_particle():
    solid = make_solid((4, 1, 1))
    lineage = build_lineage(solid, [(FIRST, np.array([1]))], FIRST)
    assert labels_at(lineage, solid, FIRST).tolist() == [0, 0, 1, 1]


def test_names_tell_body_and_id():
    solid = make_solid((1, 1, 2), (1, 1, 2))
    lineage = build_lineage(solid, [(FIRST, np.array([1]))], FIRST)
    assert [piece_name(solid, lineage, i) for i in range(3)] == [
        "part0_00000", "part1_00001", "part1_00002"]


def test_frames_out_of_order_or_unknown_edges_are_refused():
    solid = make_solid((2, 1, 1))
    nothing = np.zeros(0, dtype=np.int32)
    with pytest.raises(ValueError, match="expected 1002, got 1003"):
        build_lineage(solid, [(1001, nothing), (1003, nothing)], FIRST)
    with pytest.raises(ValueError, match=r"outside 0\.\.0"):
        build_lineage(solid, [(1001, np.array([1]))], FIRST)
    with pytest.raises(ValueError, match="at least one frame"):
        build_lineage(solid, [], FIRST)
    lineage = build_lineage(solid, [(1001, nothing)], FIRST)
    with pytest.raises(ValueError, match="1001-1001"):
        labels_at(lineage, solid, 1002)
