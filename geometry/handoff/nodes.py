"""The nodes that corners of elements stand on, where pieces deform.

Around a vertex of the faces, elements that hold together share one node; a crack parts them into
several. Node v is the vertex v itself; ``node_copy`` of the Pieces names the elements that stand on
another one there.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.types import Array, Faces, Pieces


def corner_nodes(pieces: Pieces, n_vertices: int, element: Array, vertex: Array) -> Array:
    """Return the nodes (q,) int64 of corners: ``vertex`` (q,) of ``element`` (q,)."""
    node: Array = vertex.astype(np.int64)
    if len(pieces.node_copy):
        copy = pieces.node_copy.astype(np.int64)
        key, wanted = copy[:, 0] * n_vertices + copy[:, 1], element * np.int64(n_vertices) + vertex
        row = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        node = np.where(key[row] == wanted, copy[row, 2], node)
    return node


def node_vertices(pieces: Pieces, n_vertices: int) -> Array:
    """Return the vertex (w,) int32 of each node."""
    vertex: Array = np.arange(len(pieces.node_offset), dtype=np.int32)
    vertex[n_vertices:] = 0
    vertex[pieces.node_copy[:, 2]] = pieces.node_copy[:, 1]
    return vertex


def element_corners(faces: Faces) -> tuple[Array, Array]:
    """Return elements (q,) and vertices (q,) of all corners, as either side of each face has them.

    Those of the first sides come first, then those of the inner faces' other sides.
    """
    count = np.diff(faces.start)
    inner = slice(0, faces.n_inner)
    element = np.concatenate([np.repeat(faces.side[:, 0], count),
                              np.repeat(faces.side[inner, 1], count[inner])])
    vertex = np.concatenate([faces.corner, faces.corner[:faces.start[faces.n_inner]]])
    return element, vertex


def node_elements(faces: Faces, pieces: Pieces) -> Array:
    """Return an element (w,) int32 that stands on each node; 0 where there is none."""
    element, vertex = element_corners(faces)
    of_node = np.zeros(len(pieces.node_offset), np.int32)
    of_node[corner_nodes(pieces, len(faces.vertex), element, vertex)] = element
    return of_node


def check_nodes(faces: Faces, pieces: Pieces) -> None:
    """Raise ValueError with a sentence where the nodes do not belong to the faces."""
    n_vertices, n_nodes, copy = len(faces.vertex), len(pieces.node_offset), pieces.node_copy
    if n_nodes < n_vertices:
        raise ValueError(f"frame {pieces.frame}: {n_nodes} nodes, but the faces have {n_vertices} "
                         "vertices; align that frame again")
    if not np.isfinite(pieces.node_offset).all():
        raise ValueError(f"frame {pieces.frame}: an offset of a node is not finite; simulate and "
                         "align that frame again")
    limit = (len(pieces.fragment), n_vertices, n_nodes)
    if len(copy) and ((copy < 0) | (copy >= limit)).any():
        raise ValueError(f"frame {pieces.frame}: copies of nodes are not of this solid; align that "
                         "frame again")
