"""Cases of ``vfx bench sim`` that are more than steps of bonds: shots, pile, handover, shared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vfx.bench.rows import Row
from vfx.bench.timing import load_warning
from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import ShotError

#: The options that each case takes.
OPTIONS = {
    "drop": {"elements", "frames"}, "window": {"elements", "frames"},
    "pile": {"elements", "seconds", "peer"},
    "handover": {"elements", "pieces"}, "shared": {"frames"},
}
#: Runs of which the least counts.
REPEATS = 3


@dataclass(frozen=True)
class Whole:
    """What is to be measured, as the command line says it."""

    case: str
    elements: int | None = None
    pieces: int | None = None
    frames: str | None = None
    seconds: float | None = None
    peer: str | None = None
    device: str = "cpu"
    threads: int | None = None


def check_whole(request: Whole, *, other: bool) -> bool:
    """Return whether a case is one of these; refuse what does not go with it.

    ``other`` says whether options of the other cases are given.
    """
    takes = OPTIONS.get(request.case, {"peer"})
    for name in ("elements", "pieces", "frames", "seconds", "peer"):
        if getattr(request, name) is not None and name not in takes:
            cases = [case for case, options in OPTIONS.items() if name in options]
            raise ShotError(f"--{name}: it goes with --case {' or '.join(cases)} only")
    is_ours = request.case in OPTIONS
    if request.peer == "pybullet" and request.case != "pile":
        raise ShotError("--peer pybullet: it goes with --case pile only")
    if is_ours and (other or request.peer == "lammps"):
        raise ShotError(f"--case {request.case}: of the options of cases it takes only "
                        + ", ".join(f"--{name}" for name in sorted(takes)))
    return is_ours


def measure_whole(request: Whole, say: Callable[[str], None]) -> list[Row]:
    """Measure one case."""
    from vfx.bench.handover import measure_handover
    from vfx.bench.peer_pybullet import pybullet_version
    from vfx.bench.pile import SECONDS, measure_pile
    from vfx.bench.shared import measure_shared
    from vfx.bench.stages import CASES, measure_shot

    version = pybullet_version() if request.peer else ""
    device = open_device(request.device, request.threads)
    say(f"device: {device.description}, {device.threads} threads")
    warning = load_warning()
    if warning:
        say(warning)
    if request.case in CASES:
        return measure_shot(
            CASES[request.case], request.elements, request.frames, request.threads, say)
    if request.case == "pile":
        return measure_pile(device, request.elements, request.seconds or SECONDS, REPEATS, version)
    if request.case == "handover":
        return measure_handover(device, request.pieces, request.elements, REPEATS, say)
    return measure_shared(request.frames, REPEATS, say)
