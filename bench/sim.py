"""``vfx bench sim``: what a step of the solver costs, against the paper, a peer, the machine."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vfx.bench import cases, peer_lammps
from vfx.bench.bandwidth import bond_bytes, moved_bytes, triad_bandwidth
from vfx.bench.glass_state import bring_to
from vfx.bench.rows import Row, less_is_better, more_is_better
from vfx.bench.timing import Timing, load_warning, time_steps
from vfx.device import Device
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import ShotError
from vfx.pipeline.progress import Progress
from vfx.sim.bonds.simulate import Simulation

CHUNKS = 10
#: Steps to time by default: some seconds of work.
STEPS = {"glass": 400, "vase": 60, "dragon": 30}


@dataclass(frozen=True)
class Request:
    """What is to be measured, as the command line says it."""

    cases: tuple[str, ...] = cases.CASES
    at: int = 0
    steps: int | None = None
    peer: str | None = None
    device: str = "cpu"
    threads: int | None = None
    contact: bool = True
    particles: int | None = None
    cache: Path = Path("work/bench")


def check_request(request: Request) -> None:
    """Refuse what cannot be combined."""
    if request.at and request.cases != ("glass",):
        raise ShotError("--at: only --case glass is a shot with later steps; leave --at out, or "
                        "measure that case alone")
    if request.at and not request.contact:
        raise ShotError("--at: after an impact the plate needs contact; leave out --no-contact")
    if request.peer and (request.cases != ("glass",) or request.at):
        raise ShotError("--peer: the peer runs the plate before impact; use it with "
                        "--case glass and without --at")


def measure(request: Request, say: Callable[[str], None], progress: Progress) -> list[Row]:
    """Measure the cases one after the other; ``say`` gets what is worth knowing beside rows."""
    check_request(request)
    version = peer_lammps.lammps_version() if request.peer else ""
    device = open_device(request.device, request.threads)
    say(f"device: {device.description}, {device.threads} threads")
    warning = load_warning()
    if warning:
        say(warning)
    triad = triad_bandwidth(device)
    rows = [Row("machine", "triad", triad / 1e9, "GB/s")]
    for name in request.cases:
        case, timing = measure_case(request, name, device, triad, progress)
        rows += case
        if request.peer:
            rows += _with_peer(request, version, device, timing, triad, say, progress)
    return rows


def measure_case(
    request: Request, name: str, device: Device, triad: float, progress: Progress
) -> tuple[list[Row], Timing]:
    """Build a case, bring it to its step, and time it."""
    points = time.perf_counter()
    build = _builder(request, name, device)
    points = time.perf_counter() - points
    setup = time.perf_counter()
    simulation = build()
    setup = time.perf_counter() - setup
    if request.at:
        bring_to(simulation, cases.glass_shot(request.particles), request.at, request.cache,
                 progress)
    directed = 2 * simulation.n_bonds
    timing = time_steps(simulation.advance, request.steps or STEPS[name], CHUNKS)
    case = name + (f" at step {request.at:,}" if request.at else "")
    case += "" if request.contact else ", no contact"
    rows = [
        Row(case, "particles", simulation.solid.n_elements, ""),
        Row(case, "bonds", directed, "directed"),
        Row(case, "bonds of a particle, mean", directed / simulation.solid.n_elements, ""),
        Row(case, "bonds of a particle, most", int(simulation.initial_bonds.max()), "at the start"),
        Row(case, "bonds broken while timed", directed // 2 - simulation.n_bonds, ""),
        Row(case, "points", points, "s"),
        Row(case, "set-up", setup, "s"),
        *_cost_rows(case, simulation, timing, directed, triad),
    ]
    paper = cases.PAPER_SECONDS.get((name, request.at))
    if paper is not None and request.particles is None:
        rows = [_against_paper(row, paper) for row in rows]
    return rows, timing


def _builder(request: Request, name: str, device: Device) -> Callable[[], Simulation]:
    """Make the points of a case, and return what sets up its simulation."""
    if name == "glass":
        shot = cases.glass_shot(request.particles)
        shot = dataclasses.replace(shot, solver_settings=cases.with_contact(
            shot.solver_settings, request.contact))
        make = cases.flying_glass if request.at else cases.swinging_glass
        return lambda: make(device, shot)
    solid = cases.irregular_points(name, request.particles, request.cache)
    return lambda: cases.irregular_body(device, name, solid, request.contact)


def _cost_rows(
    case: str, simulation: Simulation, timing: Timing, directed: int, triad: float
) -> list[Row]:
    """Return what a step costs in time and memory."""
    size = bond_bytes(simulation)
    per_bond = 1e9 / max(directed, 1)
    return [
        Row(case, "bond data", size / 1e6, "MB"),
        less_is_better(case, "bond data a bond", size / max(directed, 1), "B/directed bond",
                       "levine-2014", cases.PAPER_BOND_BYTES),
        Row(case, "wall, least", 1e3 * timing.best, "s/1000 steps"),
        Row(case, "wall, median", 1e3 * timing.median, "s/1000 steps"),
        Row(case, "CPU, least", 1e3 * timing.best_cpu, "s/1000 steps"),
        Row(case, "CPU, median", 1e3 * timing.median_cpu, "s/1000 steps"),
        Row(case, "wall a bond", per_bond * timing.best, "ns/directed bond"),
        Row(case, "CPU a bond", per_bond * timing.best_cpu, "ns/directed bond"),
        more_is_better(case, "moved", moved_bytes(simulation) / timing.best / 1e9, "GB/s",
                       "triad", triad / 1e9),
    ]


def _against_paper(row: Row, paper: float) -> Row:
    """Anchor the seconds of 1000 steps to the paper's."""
    if not row.metric.startswith("wall") or row.unit != "s/1000 steps":
        return row
    return less_is_better(row.case, row.metric, row.value, row.unit, cases.PAPER, paper)


def _with_peer(
    request: Request, version: str, device: Device, timing: Timing, triad: float,
    say: Callable[[str], None], progress: Progress,
) -> list[Row]:
    """Run the peer on the same plate, then the plate without contact, and compare."""
    for line in peer_lammps.FAIRNESS:
        say(line)
    shot = cases.glass_shot(request.particles)
    chunks = 5
    peer = peer_lammps.time_plate(
        shot, max(chunks, (request.steps or STEPS["glass"]) // 20), chunks, device.threads,
        request.cache)
    anchor = f"LAMMPS {version} peri/pmb, {device.threads} processes"
    rows = [
        Row(anchor, "wall, least", 1e3 * peer.best, "s/1000 steps"),
        Row(anchor, "wall, median", 1e3 * peer.median, "s/1000 steps"),
        Row(anchor, "CPU, least", 1e3 * peer.best_cpu, "s/1000 steps"),
    ]
    bare = timing
    if request.contact:
        without = dataclasses.replace(request, contact=False)
        more, bare = measure_case(without, "glass", device, triad, progress)
        rows += more
    for label, ours in (("glass", timing), ("glass, no contact", bare)):
        if label == "glass" and not request.contact:
            continue
        for metric, mine, theirs in (
                ("wall, least", ours.best, peer.best), ("wall, median", ours.median, peer.median),
                ("CPU, least", ours.best_cpu, peer.best_cpu)):
            rows.append(less_is_better(f"{label} against LAMMPS", metric, 1e3 * mine,
                                       "s/1000 steps", "peri/pmb", 1e3 * theirs))
    return rows
