"""Which elements are still held together, though bonds between them are broken.

Elements that share a face hang together while the bond across it holds; that is levine-2014's rule.
Along a crack it leaves rows of single elements, whose own bonds are broken though a hundred longer
ones hold them. So what faces divide is joined again where enough of all bonds in between hold: a
piece is what its bonds hold.
"""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array

#: Two pieces are one while more than this share of the bonds between them hold.
SHARE = 0.5


def joined(label: Array, live: Array, lost: Array) -> Array:
    """Return the pieces (n,) that pieces ``label`` (n,) make up where bonds hold them together.

    ``live`` (k, 2) and ``lost`` (l, 2) are the bonds between elements of different labels. Each
    piece is joined with the one that holds it best, and so on until none is held.
    """
    while len(live):
        count = int(label.max()) + 1
        pair, n_live = _counted(label, live, count)
        lost_pair, n_lost = _counted(label, lost, count)
        place = np.searchsorted(lost_pair, pair)
        known = np.append(lost_pair, -1)[place] == pair
        share = n_live / (n_live + np.where(known, np.append(n_lost, 0)[place], 0))
        pair, share = pair[share > SHARE], share[share > SHARE]
        if not len(pair):
            break
        first, second = np.divmod(pair, count)
        best = np.zeros(count)
        np.maximum.at(best, first, share)
        np.maximum.at(best, second, share)
        chosen = (share >= best[first]) | (share >= best[second])
        label = components(count, np.column_stack([first, second])[chosen])[1][label]
        live, lost = (each[label[each[:, 0]] != label[each[:, 1]]] for each in (live, lost))
    return label


def _counted(label: Array, bonds: Array, count: int) -> tuple[Array, Array]:
    """Return the pairs of labels that bonds (k, 2) join, as one number each, and how many do."""
    ends = np.sort(label[bonds], axis=1).astype(np.int64)
    return np.unique(ends[:, 0] * count + ends[:, 1], return_counts=True)
