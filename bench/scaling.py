"""``vfx bench sim --scaling``: the cost of a bond from ten thousand to ten million particles.

Every size runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from vfx.bench.cases import block
from vfx.bench.rows import Row
from vfx.bench.timing import load_warning, peak_memory, time_steps
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import FrameFailed
from vfx.sim.bonds.cluster_bonds import ClusterBonds

HORIZON = 2.0
CHUNKS = 10
#: Blocks with rows of a whole number of clusters, as the plate has.
BLOCKS = ((16, 25, 25), (40, 50, 50), (80, 125, 100), (200, 200, 250))
#: Pairs of clusters are searched on the host, which takes long beyond this size.
LARGEST_CLUSTERED = 1_000_000
#: Enough that a stretch of the largest block has several steps: between them, not at the ends of
#: a stretch, two passes over the particles are one.
_DIRECTED_BONDS_TIMED = 15e9


@dataclass(frozen=True)
class Size:
    """A block to measure; ``clustered`` as if it were irregular."""

    cells: tuple[int, int, int]
    clustered: bool = False

    @property
    def n_particles(self) -> int:
        """Cubes of the block."""
        a, b, c = self.cells
        return a * b * c

    @property
    def case(self) -> str:
        """Name of the case in a table."""
        layout = "clusters" if self.clustered else "lattice"
        return f"{self.n_particles:,} cubes, {HORIZON:g} lambda, {layout}"


def sizes(largest: int | None = None) -> list[Size]:
    """Return the blocks of both layouts, no larger than asked."""
    blocks = [Size(cells) for cells in BLOCKS]
    blocks += [Size(size.cells, clustered=True) for size in blocks
               if size.n_particles <= LARGEST_CLUSTERED]
    return [size for size in blocks if largest is None or size.n_particles <= largest]


def measure_scaling(
    device: str, threads: int | None, steps: int | None, largest: int | None,
    say: Callable[[str], None],
) -> list[Row]:
    """Measure all sizes, one after the other."""
    warning = load_warning()
    if warning:
        say(warning)
    rows: list[Row] = []
    for size in sizes(largest):
        say(f"{size.case} ...")
        # A new process each: peak memory is that of one size.
        context = multiprocessing.get_context("spawn")
        try:
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                rows += pool.submit(measure_size, size, device, threads, steps).result()
        except BrokenProcessPool:
            raise FrameFailed(f"{size.case}: the process that measured it was ended, most likely "
                              "for want of memory; measure less with --particles") from None
    return rows


def measure_size(
    size: Size, device_name: str, threads: int | None, steps: int | None
) -> list[Row]:
    """Build a block and time it, by default for some seconds."""
    device = open_device(device_name, threads)
    setup = time.perf_counter()
    simulation = block(device, size.cells, HORIZON, ClusterBonds if size.clustered else None)
    setup = time.perf_counter() - setup
    directed = 2 * simulation.n_bonds
    steps = steps or max(CHUNKS, min(4000, int(_DIRECTED_BONDS_TIMED / directed)))
    timing = time_steps(simulation.advance, steps, CHUNKS)
    per_bond, case = 1e9 / directed, size.case
    return [
        Row(case, "bonds", directed, "directed"),
        Row(case, "set-up", setup, "s"),
        Row(case, "wall, least", 1e3 * timing.best, "s/1000 steps"),
        Row(case, "wall a bond", per_bond * timing.best, "ns/directed bond"),
        Row(case, "wall a bond, median", per_bond * timing.median, "ns/directed bond"),
        Row(case, "CPU a bond", per_bond * timing.best_cpu, "ns/directed bond"),
        Row(case, "peak memory", peak_memory() / 1e9, "GB"),
        Row(case, "peak memory a particle", peak_memory() / size.n_particles, "B"),
    ]
