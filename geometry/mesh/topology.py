"""How the triangles of a mesh hang together: its edges, holes, windings and shells.

Every edge has as many triangles that run along it one way as the other in a closed mesh whose
triangles all face alike. One triangle alone is the border of a hole; two that run the same way
face opposite sides; more than two that do not balance leave open what is inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from vfx.geometry.handoff.components import components
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.touching import part_vertices, wedge_pairs


@dataclass(frozen=True)
class Hole:
    """One border that is open."""

    edges: int
    place: Array             # (3,) its middle
    size: float              # the longest side of its box


@dataclass(frozen=True)
class Topology:
    """The edges of a mesh, e of them, each once; its halves are the 3t sides of triangles."""

    vertex: Array            # (v, 3)
    triangle: Array          # (t, 3)
    edge: Array              # (e, 2) int64: the lower vertex first
    forward: Array           # (e,) int64: triangles that run from the lower vertex to the higher
    backward: Array          # (e,) int64: triangles that run the other way
    half_edge: Array         # (3t,) int64: the edge of side 3t + i, from corner i to i + 1

    @property
    def is_open(self) -> Array:
        """Which edges have one triangle only, (e,) bool."""
        return np.asarray(self.forward + self.backward == 1)

    @property
    def is_flipped(self) -> Array:
        """Which edges lie between two triangles that face opposite sides, (e,) bool."""
        return np.asarray((self.forward + self.backward == 2) & (self.forward != self.backward))

    @property
    def is_crowded(self) -> Array:
        """Which edges have more than two triangles, (e,) bool."""
        return np.asarray(self.forward + self.backward > 2)

    @property
    def is_tangled(self) -> Array:
        """Which crowded edges do not balance, so that no inside is there, (e,) bool."""
        return np.asarray(self.is_crowded & (self.forward != self.backward))

    @property
    def is_closed(self) -> bool:
        """Whether every edge balances."""
        return bool((self.forward == self.backward).all())

    def place(self, which: Array) -> Array:
        """Return the middle of the first edge of ``which`` (e,) bool."""
        return np.asarray(self.vertex[self.edge[np.argmax(which)]].mean(axis=0))

    def holes(self) -> list[Hole]:
        """Return the open borders, the largest first; those that share a vertex are one."""
        border = self.edge[self.is_open]
        if not len(border):
            return []
        used, local = np.unique(border, return_inverse=True)
        n_holes, label = components(len(used), local.reshape(-1, 2))
        low = np.full((n_holes, 3), np.inf)
        high = -low
        np.minimum.at(low, label, self.vertex[used])
        np.maximum.at(high, label, self.vertex[used])
        count = np.bincount(label[local.reshape(-1, 2)[:, 0]], minlength=n_holes)
        size = (high - low).max(axis=1)
        return [Hole(int(count[k]), 0.5 * (low[k] + high[k]), float(size[k]))
                for k in np.argsort(-size, kind="stable")]

    @cached_property
    def shell(self) -> Array:
        """The shell of each triangle, (t,) int64: connected over edges of two triangles.

        At a crowded edge, shells are connected around the solid there, so that those that only
        touch stay apart; where it does not balance, unless one is open without the other.
        """
        of_half = np.repeat(np.arange(len(self.triangle)), 3)
        pair = np.concatenate([self.pairs(), self._wedges // 3])
        n, label = components(len(self.triangle), pair)
        crowded = np.flatnonzero(self.is_tangled[self.half_edge])
        if len(crowded):
            run = np.where(self._runs_forward[crowded], 1, -1)
            key = self.half_edge[crowded] * n + label[of_half[crowded]]
            group, member = np.unique(key, return_inverse=True)
            net = np.bincount(member, weights=run, minlength=len(group))
            open_edge, open_shell = np.divmod(group[net != 0], n)
            first = np.ones(len(open_edge), dtype=bool)
            first[1:] = open_edge[1:] != open_edge[:-1]
            root = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
            _, merged = components(n, np.column_stack([open_shell, open_shell[root]]))
            label = merged[label]
        return label.astype(np.int64)

    def pairs(self) -> Array:
        """Return the pairs of triangles that alone share an edge, (p, 2)."""
        return self._pairs[0]

    def parted(self) -> tuple[Array, Array]:
        """Return the triangles of a closed mesh whose parts share no vertex where they touch.

        Also which vertex each of theirs was, (w,).
        """
        half, _ = self._pair_sides
        return part_vertices(self.triangle, np.concatenate([half, self._wedges]))

    def consistent_turns(self) -> Array | None:
        """Return which triangles to turn so that all of a shell face alike, (t,) bool.

        The fewer triangles of a shell are turned. None if a shell has no two sides.
        """
        pair, alike = self._pairs
        t = len(self.triangle)
        # Each triangle stands twice, as it is and turned; joined are those that go together.
        upright, turned = pair, pair + t
        crossed = np.column_stack([pair[:, 0], pair[:, 1] + t])
        crossed_back = np.column_stack([pair[:, 0] + t, pair[:, 1]])
        joined = np.concatenate([upright[alike], turned[alike],
                                 crossed[~alike], crossed_back[~alike]])
        n, label = components(2 * t, joined)
        as_is, as_turned = label[:t], label[t:]
        if (as_is == as_turned).any():
            return None
        # Of the two ways of a shell, keep the one with more triangles as they are.
        votes = np.bincount(as_is, minlength=n)
        return np.asarray((votes[as_is] < votes[as_turned])
                          | ((votes[as_is] == votes[as_turned]) & (as_is > as_turned)))

    @cached_property
    def _runs_forward(self) -> Array:
        following = np.roll(self.triangle, -1, axis=1)
        return np.asarray((self.triangle < following).ravel())

    @cached_property
    def _pair_sides(self) -> tuple[Array, Array]:
        """Pairs of sides (p, 2) of edges of two triangles, and whether they run opposite ways."""
        half = np.flatnonzero((self.forward + self.backward == 2)[self.half_edge])
        pair = half[np.argsort(self.half_edge[half], kind="stable")].reshape(-1, 2)
        alike = self._runs_forward[pair[:, 0]] != self._runs_forward[pair[:, 1]]
        return pair, alike

    @property
    def _pairs(self) -> tuple[Array, Array]:
        """Pairs of triangles (p, 2) over edges of two, and whether they run opposite ways."""
        side, alike = self._pair_sides
        return side // 3, alike

    @cached_property
    def _wedges(self) -> Array:
        """Pairs of sides (p, 2) around the solid at crowded edges that balance."""
        half = np.flatnonzero((self.is_crowded & ~self.is_tangled)[self.half_edge])
        if not len(half):
            return np.zeros((0, 2), np.int64)
        return wedge_pairs(self.vertex, self.triangle, half, self.half_edge[half])


def find_topology(vertex: Array, triangle: Array) -> Topology:
    """Find the edges of a mesh: vertex (v, 3), triangle (t, 3) of three different vertices each."""
    start = triangle.astype(np.int64).ravel()
    end = np.roll(triangle, -1, axis=1).astype(np.int64).ravel()
    n = len(vertex)
    key, half_edge = np.unique(np.minimum(start, end) * n + np.maximum(start, end),
                               return_inverse=True)
    is_forward = start < end
    forward = np.bincount(half_edge[is_forward], minlength=len(key))
    backward = np.bincount(half_edge[~is_forward], minlength=len(key))
    return Topology(vertex, triangle, np.column_stack(np.divmod(key, n)), forward, backward,
                    half_edge)
