"""Open faces part elements; around a vertex those that hold together share a node."""

from __future__ import annotations

import numpy as np
import pytest

from tests.solids import build_solid
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.faces import all_faces
from vfx.geometry.handoff.open_faces import are_open, faces_of_edges, open_faces
from vfx.geometry.pieces.nodes import split_vertices


def block(cells):
    solid = build_solid([Body(material="stone", cells=cells, spacing=1.0)])
    return solid, all_faces(solid)


def brute_groups(faces, is_open, vertex):
    """Elements around a vertex, joined by the closed faces that have it."""
    around, joined = {}, []
    for face, (low, high) in enumerate(faces.side):
        if vertex in faces.corner[faces.start[face]:faces.start[face + 1]]:
            for element in (low, high):
                if element >= 0:
                    around.setdefault(int(element), {int(element)})
            if high >= 0 and not is_open[face]:
                joined.append((int(low), int(high)))
    for low, high in joined:
        both = around[low] | around[high]
        for element in both:
            around[element] = both
    return {frozenset(group) for group in around.values()}


@pytest.mark.parametrize("seed", range(4))
def test_nodes_are_the_groups_around_each_vertex(seed):
    solid, faces = block((3, 3, 2))
    random = np.random.default_rng(seed)
    crack = np.flatnonzero(random.random(len(solid.edge)) < 0.25 * seed)
    is_open = are_open(faces, solid.body, crack)
    nodes = split_vertices(faces, is_open)
    node = {(int(e), int(v)): int(n) for e, v, n in nodes.copy}
    assert list(node) == sorted(node)
    for vertex in range(len(faces.vertex)):
        found = {}
        for group in brute_groups(faces, is_open, vertex):
            own = {node.get((element, vertex), vertex) for element in group}
            assert len(own) == 1
            number, = own
            assert nodes.vertex[number] == vertex and nodes.element[number] == min(group)
            assert found.setdefault(number, group) == group
        lowest = min(min(group) for group in found.values())
        assert lowest in found[vertex]


def test_whole_bodies_have_a_node_a_vertex_and_loose_elements_one_a_corner():
    solid, faces = block((4, 3, 2))
    whole = split_vertices(faces, are_open(faces, solid.body))
    assert len(whole.vertex) == 5 * 4 * 3 and not len(whole.copy)
    loose = split_vertices(faces, are_open(faces, np.arange(24)))
    assert len(loose.vertex) == 8 * 24
    # A crack that ends inside parts its mouth and not its tip.
    across = np.flatnonzero((solid.cell[solid.edge] == [[1, 0, 0], [2, 0, 0]])[..., 0].all(axis=1)
                            & (solid.cell[solid.edge[:, 0], 1] == 2))
    cracked = split_vertices(faces, are_open(faces, solid.body, across))
    assert np.allclose(np.unique(faces.vertex[cracked.vertex[60:], :2], axis=0), [[0.0, 1.5]])


def test_a_face_within_a_piece_opens_with_its_edge_and_is_seen_from_both_sides():
    solid, faces = block((4, 1, 1))
    closed, opened = (open_faces(faces, solid.body, np.array(edge, int)) for edge in ([], [1]))
    assert len(opened.face) == len(closed.face) + 2 and not closed.is_fracture.any()
    assert set(opened.owner[opened.is_fracture]) == {1, 2}
    between = open_faces(faces, np.array([0, 0, 5, 5]))
    for name in ("face", "owner", "reverse", "is_fracture"):
        assert np.array_equal(getattr(opened, name), getattr(between, name)), name


def test_edges_have_all_their_faces_in_their_order():
    _, faces = block((3, 3, 3))
    faces.edge[:] = np.sort(np.minimum(faces.edge, 40))     # the last edge has several
    wanted = np.array([40, 7, 3])
    expected = np.concatenate([np.flatnonzero(faces.edge == edge) for edge in wanted])
    assert np.array_equal(faces_of_edges(faces, wanted), expected)
    assert len(faces_of_edges(faces, np.zeros(0, np.int32))) == 0
