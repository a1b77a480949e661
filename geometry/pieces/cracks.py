"""Which edges gaped while the piece around them held, frame by frame.

What gapes from the frame on in which it parts two pieces was never a crack within a piece. What
gaped before is remembered for good, also when the piece comes apart there later: what was seen as a
gap then goes on as one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from vfx.geometry.handoff.types import Array, Lineage, Solid
from vfx.geometry.pieces.lineage import check_frame


def with_cracks(lineage: Lineage, solid: Solid, torn: Sequence[Array]) -> Lineage:
    """Return the lineage with its cracks.

    ``torn`` has the adjacency edges at which a crack gapes in each of its frames.
    """
    label = solid.body.astype(np.int32)
    is_known = np.zeros(len(solid.edge), bool)
    found = []
    for number, edge in enumerate(torn):
        change = slice(*lineage.change_start[number:number + 2])
        label[lineage.change_particle[change]] = lineage.change_fragment[change]
        fresh = np.unique(np.asarray(edge, np.int64))
        fresh = fresh[~is_known[fresh]]
        is_known[fresh] = True
        first, second = label[solid.edge[fresh]].T
        found.append(fresh[first == second])
    start = np.cumsum([0, *map(len, found)], dtype=np.int64)
    return dataclasses.replace(
        lineage, torn_start=start,
        torn_edge=np.concatenate([np.zeros(0, np.int64), *found]).astype(np.int32))


def torn_edges(lineage: Lineage, frame: int) -> Array:
    """Return the edges (t,) int32 at which cracks gaped within pieces through ``frame``."""
    check_frame(lineage, frame)
    if len(lineage.torn_start) < 2:
        return lineage.torn_edge
    return lineage.torn_edge[:lineage.torn_start[frame - lineage.first_frame + 1]]
