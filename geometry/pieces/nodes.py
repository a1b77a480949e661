"""Which corners of elements stand on one node, once cracks have parted some of them.

Around a vertex the elements fall into groups joined by faces that are not open; each group is a
node (chen-2018 splits its mesh so, for tetrahedra; here elements may be of any kind).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.corner_groups import corner_groups
from vfx.geometry.handoff.types import Array, Faces


@dataclass(frozen=True)
class Nodes:
    """w nodes: first those of the v vertices, then copies, by vertex and lowest element."""

    vertex: Array      # (w,) int32: where it is at rest
    element: Array     # (w,) int32: the lowest element that stands on it; -1 for none
    copy: Array        # (s, 3) int32: node_copy of the Pieces


def split_vertices(faces: Faces, is_open: Array) -> Nodes:
    """Return the nodes where the faces ``is_open`` (f,) part elements.

    Of the groups around a vertex the one with the lowest element keeps the vertex's own node.
    """
    n_vertices = len(faces.vertex)
    groups = corner_groups(faces, is_open)
    element, vertex, group = groups.element, groups.vertex, groups.group

    # Corners stand in order of their elements: the first of a group has its lowest one.
    first = np.zeros(groups.n_groups, np.int64)
    first[group[::-1]] = np.arange(len(element))[::-1]
    first_of_vertex = np.full(n_vertices, -1, np.int64)
    first_of_vertex[vertex[::-1]] = np.arange(len(element))[::-1]
    node_of_group = vertex[first]
    born = np.flatnonzero(first_of_vertex[node_of_group] != first)
    born = born[np.lexsort((first[born], node_of_group[born]))]
    copied = vertex[first[born]]
    node_of_group[born] = n_vertices + np.arange(len(born))
    node = node_of_group[group]
    is_copy = node != vertex
    own = np.where(first_of_vertex < 0, -1, element[first_of_vertex]) if len(element) else (
        np.full(n_vertices, -1))
    return Nodes(
        vertex=np.concatenate([np.arange(n_vertices), copied]).astype(np.int32),
        element=np.concatenate([own, element[first[born]]]).astype(np.int32),
        copy=np.column_stack([element, vertex, node])[is_copy].astype(np.int32))
