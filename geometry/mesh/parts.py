"""The parts of a mesh: its closed shells, each wall of a cavity with the part around it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.door import winding_about
from vfx.geometry.mesh.topology import find_topology


def mesh_parts(vertex: Array, triangle: Array) -> list[Array]:
    """Return the triangles of each part of a mesh, ``vertex`` (v, 3) and ``triangle`` (t, 3).

    A closed shell with a negative volume is the wall of a cavity: it belongs to the smallest part
    that it is inside of. Parts that reach into one another are one.
    """
    # Parts that only touch, at a vertex or along an edge, stay apart.
    shell = find_topology(vertex, triangle).shell
    n_shells = int(shell.max()) + 1
    if n_shells == 1:
        return [np.arange(len(triangle))]

    corner = vertex[triangle]
    product = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2]))
    volume = np.bincount(shell, product) / 6.0
    order = np.argsort(shell, kind="stable")
    first = np.searchsorted(shell[order], np.arange(n_shells + 1))
    corners = [corner[order[a:b]] for a, b in pairwise(first)]
    lower = np.array([c.min(axis=(0, 1)) for c in corners])
    upper = np.array([c.max(axis=(0, 1)) for c in corners])

    link = []
    for s in range(n_shells):
        probe = corners[s][0, 0]
        around = np.flatnonzero((lower < probe).all(axis=1) & (probe < upper).all(axis=1)
                                & (volume > 0.0))
        inside = [a for a in around if a != s and winding_about(probe, corners[a]) > 0.5]
        cavities = [a for a in np.flatnonzero(volume < 0.0) if volume[s] > 0.0 and a != s
                    and (lower[a] < probe).all() and (probe < upper[a]).all()
                    and winding_about(probe, corners[a]) < -0.5]
        if inside and len(cavities) < len(inside):
            link.append((s, min(inside, key=lambda a: volume[a])))
    n_parts, of_shell = components(n_shells, np.array(link, np.int64).reshape(-1, 2))
    return [np.flatnonzero(of_shell[shell] == s) for s in range(n_parts)]
