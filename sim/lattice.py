"""Bonds of whole boxes of cubes: no lists at all, neighbours stand at fixed offsets.

Rows of cubes along one axis are cut into clusters of eight; the eight particles of a cluster
meet their neighbours at an offset in one vector, and one byte holds the eight live bits. A
bond is evaluated from both of its ends: on a lattice that is cheaper than to scatter, as every
lane is in use and rest lengths are constants of the offset. Displacements lie in planes, one a
component, so that a shifted row is a plain load. An empty cluster at either end of the arrays
lets the loads of the outermost rows run over.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vfx.device import Device, Launch
from vfx.geometry.handoff import Array, Solid
from vfx.sim.bonds import count_bits
from vfx.sim.clusters import displacement_unit
from vfx.sim.contact import ContactSearch
from vfx.sim.material import lattice_offsets
from vfx.sim.ordering import LANES, Layout
from vfx.sim.particles import Particles


@dataclass(frozen=True)
class Box:
    """One body: its rows stand in a grid (a, b), ``axes`` says which body axes these are."""

    first_cluster: int
    n_clusters: int
    axes: tuple[int, int, int]      # body axes of a, b and the row
    shape: tuple[int, int, int]     # cells along a, b and the row

    @property
    def padded_row(self) -> int:
        """Lanes of a row."""
        return -(-self.shape[2] // LANES) * LANES


def is_lattice(solid: Solid) -> bool:
    """Whether every body is a whole box of cubes."""
    return all(
        int(np.prod(solid.cell[inside].max(0) + 1)) == int(inside.sum())
        for inside in (solid.body == body for body in range(len(solid.length_scale))))


class LatticeBonds:
    """Bonds of bodies that are whole boxes of cubes."""

    def __init__(self, device: Device, solid: Solid, horizon: float) -> None:
        self._device = device
        self._solid = solid
        self._module = device.module("sim/lattice.cu")
        self._horizon = horizon
        self._reach = int(horizon + 1e-6)
        offset = np.array(lattice_offsets(horizon), np.int32)
        self._n_offsets = len(offset)
        self.boxes, particle = arrange(solid)
        clusters = len(particle)
        self.layout = Layout(
            particle=particle, source_start=np.arange(clusters + 1, dtype=np.int32),
            source=np.arange(clusters, dtype=np.int32), unit=displacement_unit(solid, horizon),
            cluster_stride=LANES, axis_stride=LANES * clusters)
        self.edge_number = np.arange(len(solid.edge))
        put = device.from_host
        self.live = device.xp.zeros((clusters, self._n_offsets), np.uint8)
        self._weak = device.xp.zeros((clusters, self._n_offsets), np.uint8)
        self._weakened = device.xp.zeros(clusters, np.int32)
        self._stiffness = np.zeros(len(self.boxes))
        self._shift, self._word = [], []
        for body, box in enumerate(self.boxes):
            row = box.padded_row
            shift = (offset[:, 0] * box.shape[1] + offset[:, 1]) * row + offset[:, 2]
            self._shift.append(put(shift.astype(np.int32)))
            self._word.append(put(offset_words(solid, body, box, offset, self.layout.unit)))
            self._module.lattice_find(
                box.n_clusters, box.first_cluster, self._n_offsets, *box.shape, put(offset),
                self.live)
        ahead = {(1, 0, 0): 0, (0, 1, 0): 1, (0, 0, 1): 2}
        self._edge_offset = put(np.array(
            [ahead.get((int(a), int(b), int(r)), -1) for a, b, r in offset], np.int32))
        lane = self.layout.lane_of()
        cell = self._cells()
        self._edge = put(edge_table(solid, lane, cell, len(particle) * LANES))
        padded_cell = np.full((len(particle) * LANES, 4), -1, np.int32)
        padded_cell[lane] = cell
        self._cell = put(padded_cell)
        number = np.full((2 * self._reach + 1,) * 3, -1, np.int32)
        number[tuple((offset + self._reach).T)] = np.arange(len(offset))
        self._offset_number = put(number)

    def _cells(self) -> Array:
        """Return (n, 4) int32: body, then the place along a, b and the row."""
        cell = np.empty((self._solid.n_particles, 4), np.int32)
        cell[:, 0] = self._solid.body
        for body, box in enumerate(self.boxes):
            inside = self._solid.body == body
            cell[inside, 1:] = self._solid.cell[inside][:, list(box.axes)]
        return cell

    def set_stiffness(self, particles: Particles, stiffness: Array) -> None:
        """Keep c V^2 [N] of each body."""
        volume = self._solid.length_scale**3
        self._stiffness = stiffness * volume**2

    def forces(self, particles: Particles, weak_factor: float) -> list[Launch]:
        """Return a launch a body that breaks bonds and sums forces into the slots."""
        return [self._module.lattice_forces.prepare(
            box.n_clusters, box.first_cluster, self._n_offsets, self.layout.axis_stride,
            weak_factor, float(self._stiffness[body]), particles.flag, particles.step,
            self._shift[body], self._word[body], self._edge_offset, self._edge, self._weak,
            self._weakened, particles.displacement, particles.threshold, self.live,
            particles.edge_step, particles.slot) for body, box in enumerate(self.boxes)]

    def sums(self, particles: Particles) -> list[Launch]:
        """Return a launch a body that sums lengths, counts and energies into the slots."""
        return [self._module.lattice_sums.prepare(
            box.n_clusters, box.first_cluster, self._n_offsets, self.layout.axis_stride,
            float(self._solid.length_scale[body] ** 3), float(self._stiffness[body]),
            self._shift[body], self._word[body], self.live, particles.displacement,
            particles.slot) for body, box in enumerate(self.boxes)]

    def contact_bonds(
        self, particles: Particles, contact: ContactSearch, steps_ahead: int
    ) -> list[Launch]:
        """Return the launch that looks up the bonds of new contact candidates."""
        return [self._module.lattice_contact_bonds.prepare(
            contact.n_padded, contact.capacity, steps_ahead, self._reach, self._n_offsets,
            particles.flag, particles.step, contact.stamp, contact.count, contact.candidate,
            self._cell, self._offset_number, contact.candidate_bit)]

    def weaken(self, planar: Array, segments: Array) -> None:
        """Mark the bonds that cross the segments."""
        lanes = np.zeros((self.layout.n_clusters * LANES, 2), np.float32)
        lanes[self.layout.lane_of()] = planar
        put = self._device.from_host
        for body, box in enumerate(self.boxes):
            reach = self._horizon * float(self._solid.length_scale[body])
            self._module.lattice_weaken(
                box.n_clusters, box.first_cluster, self._n_offsets, len(segments), reach,
                self._shift[body], put(lanes), put(segments.astype(np.float32)), self.live,
                self._weak, self._weakened)

    def count(self) -> int:
        """Return the number of live bonds; each has a bit at both ends."""
        return count_bits(self._device, self.live) // 2

    def count_weak(self) -> int:
        """Return the number of weakened bonds."""
        return count_bits(self._device, self._weak) // 2


def arrange(solid: Solid) -> tuple[list[Box], Array]:
    """Cut every body into rows of clusters; return the boxes and the (C, 8) particles."""
    empty = np.full((1, LANES), -1, np.int64)
    rows, boxes, first = [empty], [], 1
    for body in range(len(solid.length_scale)):
        members = np.flatnonzero(solid.body == body)
        cell = solid.cell[members]
        size = cell.max(0) + 1
        # Rows along the axis that wastes the fewest lanes; of equals, the longest.
        waste = [(-(-int(n) // LANES) * LANES / int(n), -int(n)) for n in size]
        row = min(range(3), key=waste.__getitem__)
        axes = (*[axis for axis in range(3) if axis != row], row)
        shape = tuple(int(size[axis]) for axis in axes)
        block = np.full((*shape[:2], -(-shape[2] // LANES) * LANES), -1, np.int64)
        block[tuple(cell[:, list(axes)].T)] = members
        rows.append(block.reshape(-1, LANES))
        boxes.append(Box(first, len(rows[-1]), axes, shape))  # type: ignore[arg-type]
        first += len(rows[-1])
    return boxes, np.concatenate([*rows, empty])


def offset_words(solid: Solid, body: int, box: Box, offset: Array, unit: float) -> Array:
    """Return the constants of each offset, (offsets, 6) float32: see ``lattice.cu``."""
    spacing = float(solid.length_scale[body])
    along = np.zeros((len(offset), 3))
    along[:, list(box.axes)] = offset
    xi = spacing * along @ solid.orientation[body].T / unit
    length = np.sqrt((along**2).sum(1)) * spacing / unit
    words = np.column_stack([xi, length**2, 1.0 / length, length * unit])
    return np.ascontiguousarray(words.astype(np.float32))


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
