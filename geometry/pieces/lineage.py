"""Which piece each particle belongs to, frame by frame, with ids that persist.

Pieces are the connected components over unbroken adjacency edges (levine-2014
section 4, Alignment). One serial pass over the frames looks only at pieces that an edge
broke in. When a piece splits, its part with the most particles keeps the id (the
lowest particle index decides a tie); the other parts of that frame get new ids by
descending size, then lowest particle. Ids are never reused.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array, Lineage, Solid


def build_lineage(
    solid: Solid, broken: Iterable[tuple[int, Array]], first_frame: int
) -> Lineage:
    """Follow the pieces through all frames.

    ``broken`` gives (frame, indices into ``solid.edge`` that broke since the frame before)
    for consecutive frames from ``first_frame`` on; an index may be repeated. A body that is
    in pieces at the first frame has the others born there, with the body's own id as parent.
    """
    edge = solid.edge                          # edges that may still hold
    number = np.arange(len(edge))              # their indices in solid.edge
    label = solid.body.astype(np.int32)
    n_bodies = len(solid.length_scale)
    parent = [np.full(n_bodies, -1, dtype=np.int32)]
    birth = [np.full(n_bodies, first_frame, dtype=np.int32)]
    change_start, changes = [0], []
    n_pieces, frame = n_bodies, first_frame - 1

    for item_frame, indices in broken:
        frame += 1
        if item_frame != frame:
            raise ValueError(f"The lineage needs every frame in order: expected {frame}, "
                             f"got {item_frame}.")
        try:
            gone = _broken_mask(indices, len(solid.edge))
        except ValueError as error:
            raise ValueError(f"Frame {frame}: {error}") from None
        # At the first frame look at every body: one may be in pieces from the start.
        touched = np.zeros(n_pieces, dtype=bool)
        touched[label[solid.edge[gone, 0]]] = True
        touched |= frame == first_frame
        holds = ~gone[number]
        edge, number = edge[holds], number[holds]

        particle, piece, born_from = _split(edge, label, touched, n_pieces)
        label[particle] = piece
        n_pieces += len(born_from)
        parent.append(born_from)
        birth.append(np.full(len(born_from), frame, dtype=np.int32))
        changes.append((particle, piece))
        change_start.append(change_start[-1] + len(particle))
    if frame < first_frame:
        raise ValueError("The lineage needs at least one frame.")

    return Lineage(
        first_frame=first_frame,
        last_frame=frame,
        parent=np.concatenate(parent),
        birth_frame=np.concatenate(birth),
        body=_body_of_piece(np.concatenate(parent), n_bodies),
        change_start=np.array(change_start, dtype=np.int64),
        change_particle=np.concatenate([particle for particle, _ in changes]),
        change_fragment=np.concatenate([piece for _, piece in changes]),
    )


def count_pieces(solid: Solid, broken: Array) -> int:
    """Return how many pieces there are when the edges ``broken`` (e,) do not hold."""
    holds = ~_broken_mask(broken, len(solid.edge))
    return components(solid.n_elements, solid.edge[holds])[0]


def labels_at(lineage: Lineage, solid: Solid, frame: int) -> Array:
    """Return the piece id of every particle at ``frame``, (n,) int32."""
    check_frame(lineage, frame)
    label = solid.body.astype(np.int32)
    end = lineage.change_start[frame - lineage.first_frame + 1]
    # A particle that changes more than once keeps the last change.
    label[lineage.change_particle[:end]] = lineage.change_fragment[:end]
    return label


def piece_name(solid: Solid, lineage: Lineage, piece: int) -> str:
    """Return the name of a piece, the same in every frame: ``plate_00012``."""
    return f"{solid.body_name[lineage.body[piece]]}_{piece:05d}"


def check_frame(lineage: Lineage, frame: int) -> None:
    """Raise ValueError if the lineage does not cover ``frame``."""
    if not lineage.first_frame <= frame <= lineage.last_frame:
        raise ValueError(f"Frame {frame} is outside the frames of the lineage, "
                         f"{lineage.first_frame}-{lineage.last_frame}.")


def _broken_mask(indices: Array, n_edges: int) -> Array:
    """Return the broken edges as a mask, (m,) bool, after checking their range."""
    indices = np.asarray(indices, dtype=np.int64)
    if len(indices) and not (indices.min() >= 0 and indices.max() < n_edges):
        raise ValueError(f"a broken edge is outside 0..{n_edges - 1}.")
    mask = np.zeros(n_edges, dtype=bool)
    mask[indices] = True
    return mask


def _split(
    edge: Array, label: Array, touched: Array, n_pieces: int
) -> tuple[Array, Array, Array]:
    """Split the touched pieces into components over ``edge`` (m', 2).

    Return the particles that change (c,) ascending, their new pieces (c,), and the
    parent of each new piece in order of its id (all int32); new ids count up from
    ``n_pieces``.
    """
    particle = np.flatnonzero(touched[label]).astype(np.int32)
    if not len(particle):
        empty = np.zeros(0, dtype=np.int32)
        return empty, empty, empty
    local = np.zeros(len(label), dtype=np.int32)
    local[particle] = np.arange(len(particle), dtype=np.int32)
    inside = local[edge[touched[label[edge[:, 0]]]]]
    n_parts, part = components(len(particle), inside)

    size = np.bincount(part, minlength=n_parts)
    # Of repeated assignments the last stays: from the end, that is the lowest particle.
    lowest = np.empty(n_parts, dtype=np.int64)
    lowest[part[::-1]] = particle[::-1]
    origin = label[lowest]

    # The largest part of each piece keeps its id, the others are born.
    order = np.lexsort((lowest, -size, origin))
    keeps = np.ones(n_parts, dtype=bool)
    keeps[1:] = origin[order[1:]] != origin[order[:-1]]
    born = order[~keeps]
    born = born[np.lexsort((lowest[born], -size[born]))]
    new_id = origin.copy()
    new_id[born] = np.arange(n_pieces, n_pieces + len(born), dtype=np.int32)

    piece = new_id[part]
    changed = piece != label[particle]
    return particle[changed], piece[changed], origin[born]


def _body_of_piece(parent: Array, n_bodies: int) -> Array:
    """Return the body of each piece (g,) int32; parents come before their children."""
    root = np.where(parent < 0, np.arange(len(parent)), parent)
    while (root >= n_bodies).any():
        root = root[root]
    return root.astype(np.int32)
