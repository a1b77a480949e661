"""Which corners of elements stand on one node, once cracks have parted some of them.

Around a vertex the elements fall into groups joined by faces that are not open; each group is a
node (chen-2018 splits its mesh so, for tetrahedra; here elements may be of any kind).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.nodes import element_corners
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
    element, vertex = element_corners(faces)
    corner, place = np.unique(element * np.int64(n_vertices) + vertex, return_inverse=True)
    element, vertex = np.divmod(corner, max(n_vertices, 1))

    # Join the two sides of a face that holds, corner by corner.
    count = np.diff(faces.start)[:faces.n_inner]
    n_first = len(faces.corner)
    holds = np.flatnonzero(np.repeat(~is_open[:faces.n_inner], count))
    n_groups, group = components(
        len(corner), np.column_stack([place[holds], place[n_first + holds]]))

    # Corners stand in order of their elements: the first of a group has its lowest one.
    first = np.zeros(n_groups, np.int64)
    first[group[::-1]] = np.arange(len(corner))[::-1]
    first_of_vertex = np.full(n_vertices, -1, np.int64)
    first_of_vertex[vertex[::-1]] = np.arange(len(corner))[::-1]
    node_of_group = vertex[first]
    born = np.flatnonzero(first_of_vertex[node_of_group] != first)
    born = born[np.lexsort((first[born], node_of_group[born]))]
    copied = vertex[first[born]]
    node_of_group[born] = n_vertices + np.arange(len(born))
    node = node_of_group[group]
    is_copy = node != vertex
    own = np.where(first_of_vertex < 0, -1, element[first_of_vertex]) if len(corner) else (
        np.full(n_vertices, -1))
    return Nodes(
        vertex=np.concatenate([np.arange(n_vertices), copied]).astype(np.int32),
        element=np.concatenate([own, element[first[born]]]).astype(np.int32),
        copy=np.column_stack([element, vertex, node])[is_copy].astype(np.int32))
