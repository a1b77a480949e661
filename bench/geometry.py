"""``vfx bench geometry``: meshes into elements at the paper's size, and Voronoi against voro++.

The serpent is the project's own mesh of half a million triangles, in as many Voronoi cells as
the dragon of levine-2014 has; the vase is as many tetrahedra as its vase. Times start with the
surface and end with elements, faces and adjacency; the sampling of points is part of them. Each
case runs in a process of its own, so that its peak memory is its own.
"""

from __future__ import annotations

import multiprocessing
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.bench.cases import irregular_body
from vfx.bench.rows import Row, less_is_better
from vfx.bench.shell_case import shell_rows
from vfx.bench.timing import load_warning, peak_memory
from vfx.device import Device
from vfx.geometry.divide.cells import voronoi_cells
from vfx.geometry.divide.sources import surface_of
from vfx.geometry.divide.tet_shell import divide_tet_shell
from vfx.geometry.divide.voronoi import divide_voronoi
from vfx.geometry.handoff.bodies import Body
from vfx.geometry.handoff.elements import Elements, Progress, Surface
from vfx.geometry.handoff.types import Array, Solid
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import FrameFailed, MissingInput

CASES = ("serpent", "vase", "points")
#: The paper's numbers of elements; the points in a box are as many as the dragon's.
ELEMENTS = {"serpent": 473_380, "vase": 637_027, "points": 473_380}
#: Sizes of --scaling.
SIZES = (10_000, 100_000, 1_000_000)
#: What is to be reached: seconds and GB of a division, seconds of its bonds.
AIM, AIM_SECONDS, AIM_MEMORY, AIM_BONDS = "aim", 60.0, 4.0, 20.0
PEER = "voro++"


@dataclass(frozen=True)
class Request:
    """What is to be measured, as the command line says it."""

    cases: tuple[str, ...] = CASES
    elements: int | None = None
    scaling: bool = False
    peer: str | None = None
    device: str = "cpu"
    threads: int | None = None


def measure(request: Request, say: Callable[[str], None]) -> list[Row]:
    """Measure the cases one after the other."""
    if request.peer and shutil.which(PEER) is None:
        raise MissingInput(f"--peer {request.peer}: no program of that name is on the path; "
                           "install it (Debian: apt install voro++)")
    warning = load_warning()
    if warning:
        say(warning)
    work = [(case, request.elements or ELEMENTS[case]) for case in request.cases]
    if request.scaling:
        work = [(case, size) for case in request.cases for size in SIZES
                if size <= (request.elements or size)]
    rows: list[Row] = []
    for case, count in work:
        say(f"{case}, {count:,} ...")
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                rows += pool.submit(measure_case, case, count, request).result()
            except BrokenProcessPool:
                raise FrameFailed(f"{case}, {count:,}: the process that measured it was ended, "
                                  "most likely for want of memory; measure less with "
                                  "--elements") from None
    return rows


def measure_case(case: str, count: int, request: Request) -> list[Row]:
    """Measure one case at one size."""
    device = open_device(request.device, request.threads)
    if case == "points":
        return measure_points(device, count, request.peer)
    return measure_division(device, case, count, bonds=not request.scaling)


class Phases:
    """A progress that keeps how long each phase took."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase, self._since = "", time.perf_counter()

    def __call__(self, what: str, share: float) -> None:
        """End the phase so far and begin ``what``."""
        now = time.perf_counter()
        if self._phase:
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
        self._phase, self._since = what, now


def measure_division(device: Device, case: str, count: int, *, bonds: bool) -> list[Row]:
    """Divide the serpent into Voronoi cells, or the vase into tetrahedra, and bond them."""
    body = Body(material="glass", mesh=f"asset:{case}",
                shape="voronoi" if case == "serpent" else "tet-shell")
    surface = surface_of(body)[0]
    phases = Phases()
    start, cpu = time.perf_counter(), time.process_time()
    elements = _divide(device, case, surface, count, phases)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    phases("", 1.0)
    name = f"{case}, {count:,} elements asked for"
    a, b, c = (surface.vertex[surface.triangle[:, k]] for k in range(3))
    volume = float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)
    full = count == ELEMENTS[case]
    rows = [
        Row(name, "triangles", len(surface.triangle), ""),
        Row(name, "elements", len(elements.position), ""),
        Row(name, "adjacencies", len(elements.edge), ""),
        less_is_better(name, "division, wall", seconds, "s", AIM, AIM_SECONDS) if full
        else Row(name, "division, wall", seconds, "s"),
        Row(name, "division, CPU", cpu, "s"),
        *(Row(name, f"  {phase}, wall", spent, "s") for phase, spent in phases.seconds.items()),
        Row(name, "division, CPU an element", 1e6 * cpu / len(elements.position), "us"),
        less_is_better(name, "peak memory", peak_memory() / 1e9, "GB", AIM, AIM_MEMORY) if full
        else Row(name, "peak memory", peak_memory() / 1e9, "GB"),
        Row(name, "volume less the mesh's", elements.volume.sum() / volume - 1.0, "of it"),
        Row(name, "length scale", elements.length_scale, "m"),
        *([] if case == "serpent" else shell_rows(name, elements)),
    ]
    if bonds:
        spent = bond_seconds(device, case, elements)
        rows.append(less_is_better(name, "bonds, wall", spent, "s", AIM, AIM_BONDS) if full
                    else Row(name, "bonds, wall", spent, "s"))
    return rows


def _divide(
    device: Device, case: str, surface: Surface, count: int, progress: Progress
) -> Elements:
    """Divide a surface as the case wants it."""
    if case == "serpent":
        return divide_voronoi(device, surface, spacing=None, count=count, seed=0,
                              progress=progress)
    return divide_tet_shell(device, surface, spacing=None, count=count, layers=6, seed=0,
                        progress=progress)


def bond_seconds(device: Device, case: str, elements: Elements) -> float:
    """Return how long the bonds take [s], laid out and ready for the first step."""
    n = len(elements.position)
    solid = Solid(
        position=elements.position, volume=elements.volume, size=elements.size,
        body=np.zeros(n, np.int32), cell=np.zeros((n, 3), np.int32), edge=elements.edge,
        length_scale=np.array([elements.length_scale]), orientation=np.eye(3)[None],
        kind=np.array(["voronoi" if case == "serpent" else "tet-shell"]),
        body_name=np.array([case]), material_name=np.array(["glass"]))
    like = "dragon" if case == "serpent" else "vase"
    start = time.perf_counter()
    irregular_body(device, like, solid, contact=True)
    return time.perf_counter() - start


def measure_points(device: Device, count: int, peer: str | None) -> list[Row]:
    """Compute the Voronoi cells of random points in a box; with a peer, there as well."""
    site = np.random.Generator(np.random.Philox(1)).random((count, 3))
    start, cpu = time.perf_counter(), time.process_time()
    faces = box_cells(device, site)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    name = f"points, {count:,} in a box"
    rows = [Row(name, "faces between cells", faces, ""),
            Row(name, "cells, CPU a point", 1e6 * cpu / count, "us"),
            Row(name, "peak memory", peak_memory() / 1e9, "GB")]
    if peer is None:
        return [*rows, Row(name, "cells, wall", seconds, "s"), Row(name, "cells, CPU", cpu, "s")]
    theirs = peer_cells(site)
    return [*rows, less_is_better(name, "cells, wall", seconds, "s", PEER, theirs.seconds),
            less_is_better(name, "cells, CPU", cpu, "s", PEER, theirs.cpu),
            Row(name, f"faces between cells, {PEER}", theirs.faces, "")]


def box_cells(device: Device, site: Array) -> int:
    """Return the number of faces between the cells of points (n, 3) in the unit box."""
    cells = voronoi_cells(device, device.from_host(site), np.zeros(3), np.ones(3),
                          device.from_host(np.full(len(site), 2.0)))
    return int((device.to_host(cells.plane) >= 0).sum()) // 2


@dataclass(frozen=True)
class PeerCells:
    """What the voro++ program took [s], and how many faces it found between cells."""

    seconds: float
    cpu: float
    faces: int


def peer_cells(site: Array) -> PeerCells:
    """Run the voro++ program, which has one thread, on points (n, 3) in the unit box."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "points"
        with open(path, "w", encoding="ascii") as file:
            for number, (x, y, z) in enumerate(site.tolist()):
                file.write(f"{number} {x!r} {y!r} {z!r}\n")
        start, cpu = time.perf_counter(), _children_cpu()
        subprocess.run([PEER, "-c", "%i %v %s %n", "0", "1", "0", "1", "0", "1", "points"],
                       cwd=folder, check=True, capture_output=True)
        seconds, cpu = time.perf_counter() - start, _children_cpu() - cpu
        with open(f"{path}.vol", encoding="ascii") as file:
            faces = sum(int(word) >= 0 for line in file for word in line.split()[3:])
    return PeerCells(seconds, cpu, faces // 2)


def _children_cpu() -> float:
    """Return the CPU time of all programs run so far [s]."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
