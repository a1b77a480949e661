"""Which faces are open: one answer for pieces, nodes, what is seen, and exports.

A face is open on the outside of a body, between two pieces, and where a crack within a piece has
parted its two elements. One inside of the matter belongs to two elements: open, it is seen from
both, so it counts twice, each copy facing out of the element that owns it.

Solvers tell at which faces a crack gapes (``torn_edge`` of a Motion). Within a piece one among
others that hold cannot: around a vertex, elements fall into groups joined by the faces that are not
torn (:mod:`vfx.geometry.handoff.corner_groups`), and a torn face is open if at one of its corners,
at least, its two elements are of different groups. It is then part of a sheet that reaches around
that corner. A crack so begins with its second face in a plate of one layer of elements, and with
the fourth around a point inside; what is scattered beside it stays closed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.corner_groups import corner_groups
from vfx.geometry.handoff.faces import spans
from vfx.geometry.handoff.types import Array, Faces

_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class OpenFaces:
    """Faces that are open, f of them; one between two elements comes twice.

    Those in their stored direction come first, the reversed copies after them, each in order.
    """

    face: Array           # (f,) int64: index into the faces
    owner: Array          # (f,) int32: element that the face bounds
    reverse: Array        # (f,) bool: whether the stored corners must be turned around
    is_fracture: Array    # (f,) bool: between two elements, not on the original surface


def are_open(faces: Faces, piece: Array, crack_edge: Array = _NONE) -> Array:
    """Return (f,) bool: which of all the faces are open.

    ``piece`` (n,) is the piece of each element, ``crack_edge`` (e,) the edges within pieces
    that are open, as :func:`crack_edges` says.
    """
    first, second = faces.side[:, 0], faces.side[:, 1]
    is_open: Array = (second < 0) | (piece[first] != piece[second])
    if len(crack_edge):
        is_open[faces_of_edges(faces, crack_edge)] = True
    return is_open


def open_faces(faces: Faces, piece: Array, crack_edge: Array = _NONE) -> OpenFaces:
    """Select the faces that are open, as :func:`are_open` says."""
    first, second = faces.side[:, 0], faces.side[:, 1]
    is_open, inner = are_open(faces, piece, crack_edge), second >= 0
    front = np.flatnonzero(is_open)
    back = np.flatnonzero(is_open & inner)
    return OpenFaces(
        face=np.concatenate([front, back]),
        owner=np.concatenate([first[front], second[back]]),
        reverse=np.repeat([False, True], [len(front), len(back)]),
        is_fracture=np.concatenate([inner[front], inner[back]]))


def crack_edges(faces: Faces, piece: Array, torn: Array) -> Array:
    """Return which of the edges ``torn`` (t,) are open, (e,) int32, ascending.

    ``torn`` gaped while their elements were of one piece. If these are of different pieces by now,
    the edge is open; within a piece it is if one of its faces parts anything, as above.
    """
    torn = np.unique(torn)
    face = faces_of_edges(faces, torn)
    first, second = faces.side[face, 0], faces.side[face, 1]
    within = face[piece[first] == piece[second]]
    if not len(within):
        return torn.astype(np.int32)
    around = np.zeros(len(faces.vertex), bool)
    around[faces.corner[spans(faces.start[within], np.diff(faces.start)[within])]] = True
    groups = corner_groups(faces, are_open(faces, piece, torn), around)
    inner = groups.other >= 0
    parts = groups.group[groups.own[inner]] != groups.group[groups.other[inner]]
    opens = piece[faces.side[:faces.n_inner, 0]] != piece[faces.side[:faces.n_inner, 1]]
    opens[groups.face[inner][parts]] = True
    return np.unique(faces.edge[face[opens[face]]]).astype(np.int32)


def faces_of_edges(faces: Faces, edge: Array) -> Array:
    """Return the faces (f,) int64 of adjacency edges (e,), edge by edge: some have several."""
    first = np.searchsorted(faces.edge, edge)
    return spans(first, np.searchsorted(faces.edge, edge, side="right") - first)
