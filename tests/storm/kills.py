"""Kills: a run is killed again and again, and ends as if it never had been.

A kill comes at a call that changes a file, when a file reaches a number of bytes (so that it is
torn, whoever writes it), at a system call, or by the clock. After each one the status must be
true. What gets finished in between is thrown away from a stage of chance on.
"""

from __future__ import annotations

from pathlib import Path

from .case import QUICK, Case
from .child import CALLS, Kill, can_trace
from .plate import Reference, make_reference, write_shot

PER_CASE = 10
_STAGES = ("geometry", "sim", "align", "render", "comp")
#: Sizes of files [bytes] at which one is torn: up to each of these, by chance.
_SIZES = (1, 100, 1000, 10_000, 70_000)


def prepare(ground: Path) -> Reference:
    """Make the run that all are compared with."""
    return make_reference(ground)


def play(case: Case, reference: Reference) -> None:
    """Kill one run ``PER_CASE`` times, then let it end."""
    write_shot(case.shot.parent)
    modes = ["event", "event", "byte", "clock", *(["call"] if can_trace() else [])]
    kills = tries = 0
    while kills < PER_CASE and tries < 8 * PER_CASE and not case.faults:
        tries += 1
        kill = _kill(case, reference, case.random.choice(modes))
        case.tell(f"kill at {kill.mode} {kill.at:g}")
        words = case.random.choice([("run",), ("run",), ("stage", case.random.choice(_STAGES))])
        outcome = case.vfx(*words, case.shot.name, "--work", case.work, *QUICK, kill=kill,
                           allowed={0, 3, -9, -25})
        if outcome.code >= 0:
            if outcome.code == 0 and case.random.random() < 0.5:
                case.vfx("clean", case.shot.name, "--stage", case.random.choice(_STAGES),
                         "--work", case.work, allowed={0})
            continue
        kills += 1
        case.tally["at system calls" if kill.mode in CALLS else f"by {kill.mode}"] += 1
        if case.work.exists():
            case.status(reference.sums)
    case.tally["kills"] += kills
    case.finish(reference.sums)


def _kill(case: Case, reference: Reference, mode: str) -> Kill:
    if mode == "byte":
        return Kill(mode, int(case.random.choice(_SIZES) * case.random.random()))
    share = case.random.random() ** case.random.choice([1, 1, 2, 3])
    if mode == "clock":
        return Kill(mode, 1.2 * share * reference.seconds)
    if mode == "call":
        mode = case.random.choice(sorted(CALLS))
    return Kill(mode, 1 + int(share * CALLS.get(mode, reference.events)))
