"""Pieces pass smoothly from the motion of what they broke off to their own.

levine-2014 section 7 names the artifact: large chunks that hang by a few bonds share one rigid
transform, and when those break each gets its own, at once. In the frame before, b - 1, the
particles of a new piece fit it best by T, and were shown by the transform H of what held them.
Their difference, D = T^-1 H, is a small motion at rest; the piece is shown by

    T(f) D^w(f - b + 1),    w(0) = 1,  w(transition) = 0,

where w falls as a critically damped spring does that is let go at rest. D says nothing of how
the piece moves, so blows stay sudden. A piece of a piece whose transition is not over yet goes on
with it, after its own: the way it is shown has no jump, whatever breaks when.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from vfx.geometry.handoff.types import Array, Lineage

#: How many times the spring's own time a transition lasts.
DECAYS = 6.0


@dataclass
class Transition:
    """D of the k pieces that took their present form in one frame: a turn about a pivot."""

    piece: Array             # (k,) int32, ascending
    turn: Array              # (k, 3) float64: rotation vector [rad], rest axes
    shift: Array             # (k, 3) float64 [m], rest axes
    pivot: Array             # (k, 3) float64 [m]: the piece's centre of mass at rest


def share_left(frames: int, transition: int) -> float:
    """Return w: the part of D that is left after so many frames."""
    x, end = DECAYS * frames / transition, (1.0 + DECAYS) * np.exp(-DECAYS)
    return float(max(0.0, ((1.0 + x) * np.exp(-x) - end) / (1.0 - end)))


def difference(piece: Array, pivot: Array, held: tuple[Array, Array],
               own: tuple[Array, Array]) -> Transition:
    """Return D = T^-1 H of pieces (k,); poses are rotations (k, 3, 3) and images of the pivots."""
    back = np.swapaxes(own[0], 1, 2)
    return Transition(
        piece=piece, pivot=pivot,
        turn=np.asarray(Rotation.from_matrix(back @ held[0]).as_rotvec()),
        shift=np.einsum("kij,kj->ki", back, held[1] - own[1]))


def pending(piece: Array, lineage: Lineage, recent: list[tuple[int, Transition]], frame: int,
            transition: int) -> tuple[Array, Array]:
    """Return what is left of the transitions of pieces (k,): rotation (k, 3, 3), offset (k, 3).

    A rest point X is to be moved to rotation X + offset before the piece's own motion. ``recent``
    has frames and their transitions, the latest first.
    """
    rotation, offset = np.tile(np.eye(3), (len(piece), 1, 1)), np.zeros((len(piece), 3))
    piece = piece.copy()
    for begin, change in recent:
        if len(change.piece):
            place = np.minimum(np.searchsorted(change.piece, piece), len(change.piece) - 1)
            rows = np.flatnonzero(change.piece[place] == piece)
            place = place[rows]
            left = share_left(frame - begin + 1, transition)
            turn = Rotation.from_rotvec(left * change.turn[place]).as_matrix()
            pivot = change.pivot[place]
            moved = pivot - np.einsum("kij,kj->ki", turn, pivot) + left * change.shift[place]
            offset[rows] += np.einsum("kij,kj->ki", rotation[rows], moved)
            rotation[rows] = rotation[rows] @ turn
        # Before this frame it was a part of its parent.
        piece = np.where(lineage.birth_frame[piece] == begin, lineage.parent[piece], piece)
    return rotation, offset
