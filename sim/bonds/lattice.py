"""Bonds of whole boxes of cubes: no lists at all, neighbours stand at fixed offsets.

Rows of cubes along one axis are cut into clusters of eight; the eight particles of a cluster
meet their neighbours at an offset in one vector, and one byte holds the eight live bits. Only
the offsets ahead are kept, so that a bond is visited once. Displacements lie in planes, one a
component, so that a shifted row is a plain load. An empty cluster at either end of the arrays
lets the loads of the outermost rows run over.

A body is cut into tiles of whole layers. A tile adds up forces in planes of its own, which
reach ``horizon`` layers beyond its end; a cluster's force is the sum of what its own tile and
the tiles behind it have for it, in that order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vfx.device import Device, Launch, Record
from vfx.geometry.handoff.types import Array, Solid
from vfx.sim.bonds.cluster_bonds import bits_at, count_bits
from vfx.sim.bonds.clusters import displacement_unit, row_starts
from vfx.sim.matter.contact import ContactSearch
from vfx.sim.matter.material import lattice_offsets, volume_share
from vfx.sim.matter.ordering import LANES, Layout
from vfx.sim.matter.particles import Particles

FILE = "sim/bonds/lattice.cu"
#: Layers of rows in a tile, unless the horizon is larger.
TILE_LAYERS = 8
#: Forces and displacements that a sweep comes back to, less than what a core's cache holds.
SWEEP_BYTES = 400_000
_BYTES_A_PARTICLE = 28


@dataclass(frozen=True)
class Box:
    """One body: its rows stand in a grid (a, b), ``axes`` says which body axes these are."""

    first_cluster: int
    axes: tuple[int, int, int]      # body axes of a, b and the row
    shape: tuple[int, int, int]     # cells along a, b and the row
    tile_layers: int                # layers along a in a tile
    plane_start: int                # first float of the first tile's planes
    plane_stride: int               # floats of a plane

    @property
    def blocks(self) -> int:
        """Clusters of a row."""
        return -(-self.shape[2] // LANES)

    @property
    def n_clusters(self) -> int:
        """Clusters of the body."""
        return self.shape[0] * self.shape[1] * self.blocks

    @property
    def n_tiles(self) -> int:
        """Tiles of the body."""
        return -(-self.shape[0] // self.tile_layers)

    def segment(self, reach: int) -> int:
        """Clusters of a row in a segment: the rows within the horizon fit into the cache."""
        rows = (self.tile_layers + reach) * min(2 * reach + 1, self.shape[1])
        return max(4, SWEEP_BYTES // (rows * LANES * _BYTES_A_PARTICLE))


def is_lattice(solid: Solid) -> bool:
    """Whether every body that has elements is a whole box of cubes."""
    present = np.flatnonzero(np.bincount(solid.body, minlength=len(solid.kind)))
    return bool((solid.kind[present] == "grid").all()) and all(
        int(np.prod(solid.cell[inside].max(0) + 1)) == int(inside.sum())
        for inside in (solid.body == body for body in present))


class LatticeBonds:
    """Bonds of bodies that are whole boxes of cubes, each of one part."""

    def __init__(
        self, device: Device, solid: Solid, horizon: float, edge_volume: str = "full",
        part: Array | None = None,
    ) -> None:
        self._device = device
        self._solid = solid
        self._module = device.module(FILE)
        self._horizon = horizon
        self._partial = edge_volume == "partial"
        self._reach = int(horizon + 1e-6)
        offset = offsets_ahead(horizon)
        share = np.array([volume_share(float(length), horizon, edge_volume)
                          for length in np.sqrt((offset**2).sum(1))])
        self._n_offsets = len(offset)
        boxes, particle = arrange(solid, self._reach)
        #: Those of the bodies that have elements.
        self.boxes = {body: box for body, box in enumerate(boxes) if box is not None}
        clusters = len(particle)
        source_start, source, n_floats = slot_sources(
            list(self.boxes.values()), self._reach, clusters)
        self.layout = Layout(
            particle=particle, source_start=source_start, source=source,
            n_slot_floats=n_floats, spacing=float(solid.length_scale.min()),
            unit=displacement_unit(solid, horizon),
            cluster_stride=LANES, axis_stride=LANES * clusters)
        self.edge_number = np.arange(len(solid.edge))
        put = device.from_host
        self.live = device.xp.zeros((clusters, self._n_offsets), np.uint8)
        self._weak = device.xp.zeros((clusters, self._n_offsets), np.uint8)
        self._weakened = device.xp.zeros(clusters, np.int32)
        self._stiffness = np.zeros(len(boxes))
        self._weight = device.xp.ones((clusters, LANES), np.float32)
        self._has_factors = False
        ahead = {(1, 0, 0): 0, (0, 1, 0): 1, (0, 0, 1): 2}
        self._edge_offset = put(np.array(
            [ahead.get((int(a), int(b), int(r)), -1) for a, b, r in offset], np.int32))
        self._shift: dict[int, Any] = {}
        self._offsets: dict[int, Record] = {}
        self._tiling: dict[int, Record] = {}
        for body, box in self.boxes.items():
            rows = offset[:, 0] * box.shape[1] + offset[:, 1]
            shift = rows * LANES * box.blocks + offset[:, 2]
            self._shift[body] = put(shift.astype(np.int32))
            self._offsets[body] = device.struct(
                FILE, "Offsets", count=len(offset), reach=self._reach, shift=self._shift[body],
                edge_offset=self._edge_offset, word=device.rows(FILE, "Offset", offset_constants(
                    solid, body, box, offset, self.layout.unit, share)))
            self._tiling[body] = device.struct(
                FILE, "Tiling", first_cluster=box.first_cluster, tile_layers=box.tile_layers,
                n_layers=box.shape[0], rows_b=box.shape[1], blocks=box.blocks,
                axis_stride=self.layout.axis_stride, plane_start=box.plane_start,
                plane_stride=box.plane_stride)
            self._module.lattice_find(
                box.n_clusters, box.first_cluster, self._n_offsets, *box.shape, put(offset),
                self.live)
        lane = self.layout.lane_of()
        cell = self._cells()
        self._edge = put(edge_table(solid, lane, cell, len(particle) * LANES))
        padded_cell = np.full((len(particle) * LANES, 4), -1, np.int32)
        padded_cell[lane] = cell
        self._cell = put(padded_cell)
        number = np.full((2 * self._reach + 1,) * 3, -1, np.int32)
        number[tuple((offset + self._reach).T)] = np.arange(len(offset))
        self._numbers = number
        self._offset_number = put(number)

    def _cells(self) -> Array:
        """Return (n, 4) int32: body, then the place along a, b and the row."""
        cell = np.empty((self._solid.n_elements, 4), np.int32)
        cell[:, 0] = self._solid.body
        for body, box in self.boxes.items():
            inside = self._solid.body == body
            cell[inside, 1:] = self._solid.cell[inside][:, list(box.axes)]
        return cell

    def set_stiffness(self, particles: Particles, stiffness: Array) -> None:
        """Keep c V^2 [N] of each body; forces are summed in this unit."""
        volume = self._solid.length_scale**3
        self._stiffness = stiffness * volume**2
        for body, box in self.boxes.items():
            own = slice(box.first_cluster, box.first_cluster + box.n_clusters)
            particles.slot_unit[own] = self._stiffness[body]

    def set_factors(self, factor: Array) -> None:
        """Let bonds be stiffer by the factors (n,) of their ends."""
        self._has_factors = True
        self._weight[...] = self._device.from_host(self.layout.scatter(factor.astype(np.float32)))

    def forces(self, particles: Particles) -> list[Launch]:
        """Return a launch a body that breaks bonds and sums forces into the slots."""
        launch, weight = (self._module.lattice_weighted_forces, [self._weight]) \
            if self._has_factors else (self._module.lattice_forces, [])
        return [launch.prepare(
            box.n_tiles, self._tiling[body], self._offsets[body], box.segment(self._reach),
            self._partial, particles.limits, *weight, particles.flag, particles.step, self._edge,
            self._weak, self._weakened, particles.displacement, self.live, particles.edge_step,
            particles.slot) for body, box in self.boxes.items()]

    def sums(self, particles: Particles) -> list[Launch]:
        """Return a launch a body that sums lengths, counts and energies into the slots."""
        return [self._module.lattice_sums.prepare(
            box.n_tiles, self._tiling[body], self._offsets[body],
            float(self._solid.length_scale[body] ** 3), float(self._stiffness[body]),
            particles.law, particles.body, self._weight, self.live, particles.displacement,
            particles.slot) for body, box in self.boxes.items()]

    def contact_bonds(
        self, particles: Particles, contact: ContactSearch, steps_ahead: int
    ) -> list[Launch]:
        """Return the launch that looks up the bonds of new contact candidates."""
        return [self._module.lattice_contact_bonds.prepare(
            contact.n_padded, steps_ahead, self._reach, self._n_offsets,
            particles.flag, particles.step, contact.stamp, contact.count, contact.candidate,
            self._cell, self._offset_number, contact.candidate_bit)]

    def weaken(self, planar: Array, segments: Array) -> None:
        """Mark the bonds that cross the segments."""
        lanes = np.zeros((self.layout.n_clusters * LANES, 2), np.float32)
        lanes[self.layout.lane_of()] = planar
        put = self._device.from_host
        for body, box in self.boxes.items():
            reach = self._horizon * float(self._solid.length_scale[body])
            self._module.lattice_weaken(
                box.n_clusters, box.first_cluster, self._n_offsets, len(segments), reach,
                self._shift[body], put(lanes), put(segments.astype(np.float32)), self.live,
                self._weak, self._weakened)

    def cut(self, particles: Particles, rectangles: Any, n_rectangles: int) -> None:
        """Cut the bonds that cross rectangles."""
        for body, box in self.boxes.items():
            self._module.lattice_cut(
                box.n_clusters, box.first_cluster, self._n_offsets, n_rectangles,
                self._shift[body], rectangles, particles.rest_position, self._edge_offset,
                self._edge, self.live, particles.edge_step)

    def clear(self, particles: Particles, label: Array, pairs: Array) -> None:
        """Cut the bonds between elements of different labels, and those of pairs."""
        shape = (self.layout.n_clusters, self._n_offsets)
        gone = bits_at(self.places(pairs), shape[0] * shape[1]).reshape(shape)
        put = self._device.from_host
        labels = self.layout.scatter(label.astype(np.int32))
        for body, box in self.boxes.items():
            self._module.lattice_clear(
                box.n_clusters, box.first_cluster, self._n_offsets, self._shift[body],
                put(labels), put(gone), self._edge_offset, self._edge, self.live,
                particles.edge_step)

    def across(self, label: Array, bits: Array) -> Array:
        """Return those of some bits of ``live`` whose elements have different labels (n,)."""
        put, found = self._device.from_host, self._device.xp.zeros_like(self.live)
        labels, some = put(self.layout.scatter(label.astype(np.int32))), put(bits)
        for body, box in self.boxes.items():
            self._module.lattice_across(
                box.n_clusters, box.first_cluster, self._n_offsets, self._shift[body], labels,
                some, found)
        return self._device.to_host(found)

    def places(self, pairs: Array) -> Array:
        """Return where among the bits of ``live`` the bonds of pairs (k, 2) are, or -1."""
        cell = self._cells()
        step = cell[pairs[:, 1], 1:] - cell[pairs[:, 0], 1:]
        # The bit stands with the particle from which the other is ahead.
        x, y, z = step.T
        ahead = (x > 0) | (x == 0) & ((y > 0) | (y == 0) & (z > 0))
        behind = np.where(ahead, pairs[:, 0], pairs[:, 1])
        step = np.where(ahead[:, None], step, -step)
        near = (np.abs(step) <= self._reach).all(axis=1) & (
            cell[pairs[:, 0], 0] == cell[pairs[:, 1], 0])
        number = np.full(len(pairs), -1, np.int64)
        number[near] = self._numbers[tuple((step[near] + self._reach).T)]
        lane = self.layout.lane_of()[behind]
        bit = LANES * (self._n_offsets * (lane // LANES) + number) + lane % LANES
        return np.where(number >= 0, bit, -1)

    def pairs(self, bits: Array, start: int = 0) -> Array:
        """Return the elements (k, 2) whose bonds have a bit among some of ``live``."""
        byte = np.flatnonzero(bits)
        row, lane = np.nonzero(np.unpackbits(
            bits.reshape(-1)[byte][:, None], axis=1, bitorder="little"))
        cluster, offset = np.divmod(start + byte[row], self._n_offsets)
        first = LANES * cluster + lane
        flat = self.layout.particle.reshape(-1)
        shift = np.zeros((len(flat) // LANES, self._n_offsets), np.int64)
        for body, box in self.boxes.items():
            shift[box.first_cluster:box.first_cluster + box.n_clusters] = \
                self._device.to_host(self._shift[body])
        return np.column_stack([flat[first], flat[first + shift[cluster, offset]]])

    def count(self) -> int:
        """Return the number of live bonds."""
        return count_bits(self._device, self.live)

    def count_weak(self) -> int:
        """Return the number of weakened bonds."""
        return count_bits(self._device, self._weak)


def offsets_ahead(horizon: float) -> Array:
    """Return one offset of each pair of opposite ones, (k, 3) int32: along a, b and the row.

    They are sorted by the step along the row: what one stores, the next does not load.
    """
    ahead = [offset for offset in lattice_offsets(horizon) if offset > (0, 0, 0)]
    return np.array(sorted(ahead, key=lambda o: (o[2], o[0], o[1])), np.int32).reshape(-1, 3)


def arrange(solid: Solid, reach: int) -> tuple[list[Box | None], Array]:
    """Cut every body into rows of clusters; return the boxes and the (C, 8) particles.

    A body without elements has no box.
    """
    empty = np.full((1, LANES), -1, np.int64)
    rows, first, plane_start = [empty], 1, 0
    boxes: list[Box | None] = []
    for body in range(len(solid.length_scale)):
        members = np.flatnonzero(solid.body == body)
        if not len(members):
            boxes.append(None)
            continue
        cell = solid.cell[members]
        size = cell.max(0) + 1
        # Rows along the axis that wastes the fewest lanes; of equals, the longest. Layers
        # along the longer of the other two, so that there are many tiles.
        waste = [(-(-int(n) // LANES) * LANES / int(n), -int(n)) for n in size]
        row = min(range(3), key=waste.__getitem__)
        b, a = sorted((axis for axis in range(3) if axis != row), key=lambda axis: size[axis])
        shape = (int(size[a]), int(size[b]), int(size[row]))
        block = np.full((*shape[:2], -(-shape[2] // LANES) * LANES), -1, np.int64)
        block[tuple(cell[:, [a, b, row]].T)] = members
        rows.append(block.reshape(-1, LANES))
        layers = max(TILE_LAYERS, reach)
        lanes_a_layer = shape[1] * block.shape[2]
        box = Box(first, (a, b, row), shape, layers, plane_start,
                  (layers + reach) * lanes_a_layer + 2 * LANES)
        boxes.append(box)
        first += len(rows[-1])
        plane_start += 4 * box.plane_stride * box.n_tiles
    return boxes, np.concatenate([*rows, empty])


def slot_sources(boxes: list[Box], reach: int, n_clusters: int) -> tuple[Array, Array, int]:
    """Return (source_start, source, floats): the floats that add up to each cluster's force.

    ``source`` is (s, 2) int64: where the first component begins, and the stride to the next.
    """
    cluster, place = [], []
    for box in boxes:
        layer = np.arange(box.n_clusters) // (box.shape[1] * box.blocks)
        own = layer // box.tile_layers
        lanes_a_layer = box.shape[1] * box.blocks * LANES
        within = np.arange(box.n_clusters) * LANES - layer * lanes_a_layer
        # The tile behind reaches into the first layers of this one; its sum comes first.
        for tile in (own - 1, own):
            local = layer - tile * box.tile_layers
            seen = (tile >= 0) & (local < box.tile_layers + reach)
            start = (box.plane_start + tile * 4 * box.plane_stride + LANES
                     + local * lanes_a_layer + within)
            cluster.append(box.first_cluster + np.flatnonzero(seen))
            place.append(np.column_stack([start, np.full(len(start), box.plane_stride)])[seen])
    number = np.concatenate(cluster)
    order = np.argsort(number, kind="stable")
    floats = max(box.plane_start + 4 * box.plane_stride * box.n_tiles for box in boxes)
    return (row_starts(number[order], n_clusters), np.concatenate(place)[order], floats)


def offset_constants(
    solid: Solid, body: int, box: Box, offset: Array, unit: float, share: Array
) -> list[dict[str, Any]]:
    """Return the constants of each offset, by the names of ``struct Offset``."""
    spacing = float(solid.length_scale[body])
    along = np.zeros((len(offset), 3))
    along[:, list(box.axes)] = offset
    xi = spacing * along @ solid.orientation[body].T / unit
    rest = np.sqrt((along**2).sum(1)) * spacing / unit
    return [{"xi": xi[o], "rest2": rest[o]**2, "rest": rest[o], "length": rest[o] * unit,
             "share": share[o]} for o in range(len(offset))]


def edge_table(solid: Solid, lane: Array, cell: Array, n_padded: int) -> Array:
    """Return (n_padded, 3) int32: the solid's edges ahead along a, b and the row, or -1."""
    table = np.full((n_padded, 3), -1, np.int32)
    if not len(solid.edge):
        return table
    first, second = solid.edge.T
    step = cell[second, 1:] - cell[first, 1:]
    axis = np.abs(step).argmax(1)
    behind = np.where(step[np.arange(len(step)), axis] > 0, first, second)
    table[lane[behind], axis] = np.arange(len(solid.edge))
    return table
