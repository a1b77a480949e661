"""Kills: a run is killed again and again, and ends as if it never had been.

A kill comes at a call that changes a file, when a file reaches a number of bytes (so that it is
torn, whoever writes it), at a system call, or by the clock; some are signals that ask to stop, and
must be heeded. After each one the status must be true. What gets finished in between is thrown
away from a stage of chance on.
"""

from __future__ import annotations

import signal
from pathlib import Path

from .case import QUICK, Case
from .child import CALLS, Kill, can_trace
from .plate import Reference, make_reference, write_shot

PER_CASE = 5
#: How a run ends that is killed, and what the summary calls it.
_ENDS = {"event": (-9,), "stop": (130, 143), "byte": (-25,), "clock": (-9,), "call": (-9,)}
_ALSO = {"comp": (1,)}                     # names the frames that are not there yet
_MODES = {"event": "at changes of files", "stop": "stopped", "byte": "in the middle of files",
          "clock": "by the clock", "call": "at system calls"}
_STAGES = ("geometry", "sim", "align", "render", "comp")
#: Sizes of files [bytes] at which one is torn: up to each of these, by chance.
_SIZES = (1, 100, 1000, 10_000, 70_000)


def prepare(ground: Path) -> Reference:
    """Make the run that all are compared with."""
    return make_reference(ground)


def play(case: Case, reference: Reference) -> None:
    """Kill one run ``PER_CASE`` times, then let it end."""
    write_shot(case.shot.parent)
    modes = ["event", "event", "stop", "byte", "clock"]
    if can_trace():
        modes.append("call")
    else:
        case.tally["cases without system calls (no strace)"] += 1
    kills = tries = 0
    while kills < PER_CASE and tries < 8 * PER_CASE and not case.faults:
        tries += 1
        mode = case.random.choice(modes)
        kill = _kill(case, reference, mode)
        case.tell(f"{mode}: {kill}")
        words = case.random.choice([("run",), ("run",), ("stage", case.random.choice(_STAGES))])
        outcome = case.vfx(*words, case.shot.name, "--work", case.work, *QUICK, kill=kill,
                           allowed={0, 3, *_ENDS[mode], *_ALSO.get(words[-1], ())})
        if outcome.code not in _ENDS[mode]:
            if outcome.code == 0 and case.random.random() < 0.5:
                case.vfx("clean", case.shot.name, "--stage", case.random.choice(_STAGES),
                         "--work", case.work, allowed={0})
            continue
        kills += 1
        case.tally[_MODES[mode]] += 1
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
        name = case.random.choice(sorted(CALLS))
        return Kill(name, 1 + int(share * CALLS[name]))
    number = case.random.choice([signal.SIGINT, signal.SIGTERM]) if mode == "stop" \
        else signal.SIGKILL
    return Kill("event", 1 + int(share * reference.events), number)
