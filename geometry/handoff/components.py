"""Connected components: which of many things hang together over pairs of them.

Pieces, parts of a body, shells and holes of a mesh and vertices to weld are all found by this.
It takes scipy, which nothing else that is handed over needs: import it where it is used.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from vfx.geometry.handoff.types import Array


def components(n: int, pair: Array) -> tuple[int, Array]:
    """Return how many components n things have over pairs (p, 2), and that of each, (n,) int32.

    Components are numbered in the order of the first of their things. Pairs may repeat.
    """
    graph = coo_array((np.ones(len(pair), np.int8), (pair[:, 0], pair[:, 1])), shape=(n, n))
    count, label = connected_components(graph.tocsr(), directed=False)
    return int(count), np.asarray(label)
