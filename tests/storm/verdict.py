"""What counts as a failure: the same words and the same measure for every kind of storm."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import stat
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from .child import Outcome

#: Kinds of fault, as the summary names them.
FAULTS = ("tracebacks", "hangs", "untruthful", "outside", "differing", "unreadable")
#: How a command may end that was not stopped: well, a frame failed, bad settings, no room.
ENDS = frozenset({0, 1, 2, 3})

_TRACES = re.compile(
    r"Traceback \(most recent call last\)|fault of the program|this is a bug"
    r"|\b[A-Z]\w*(?:Error|Exception|Warning)\b(?!')"
    r"|object has no attribute|object is not |NoneType|index out of range|not subscriptable"
    r"|terminate called|Segmentation fault|core dumped|libgomp:|Fatal Python error"
    r"|pure virtual|corrupted|double free")
_LONGEST = 20_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

#: Files of a work folder that need not be the same after two runs, and why.
FREE = re.compile(
    r"logs/.*"                           # tell of times, hosts and processes
    r"|(.*/)?\.[a-z]+\.lock"             # empty
    r"|.*/manifest\.json"                # names the device, which is unknown of what was adopted
    r"|sim/checkpoint\.[ab]\.npz"        # where a run was when it was last saved
    r"|inputs\.json"                     # tells of times of files; for quick looks alone
    r"|align/lineage\.npz"               # an aid, good or not: what is made with it is compared
    r"|review/[^/]*\.html")              # shows the times


@dataclass(frozen=True)
class Fault:
    """One failure: its kind, and a sentence."""

    kind: str
    sentence: str


def judge(outcome: Outcome, allowed: Collection[int] = ENDS) -> Iterator[Fault]:
    """Yield what is wrong with the way a command ended, whatever it was asked to do."""
    if outcome.hung:
        yield Fault("hangs", f"still runs after {outcome.seconds:.0f} s")
        return
    if outcome.code < 0 and outcome.code not in allowed:
        yield Fault("tracebacks", f"was ended by {signal.Signals(-outcome.code).name}")
    elif outcome.code not in allowed:
        yield Fault("untruthful", f"ended with {outcome.code}, allowed are "
                                  f"{', '.join(map(str, sorted(allowed)))}")
    if match := _TRACES.search(outcome.output):
        line = next(line for line in outcome.output.splitlines() if match[0] in line)
        yield Fault("tracebacks", f"says {match[0]!r}: {line[:200]}")
    if outcome.code > 0 and not outcome.output.strip():
        yield Fault("unreadable", f"ended with {outcome.code} without a word")
    if outcome.code > 0 and len(outcome.output) > _LONGEST:
        yield Fault("unreadable", f"said {len(outcome.output)} characters")
    if strange := set(_CONTROL.findall(outcome.output)) - set("".join(outcome.words)):
        yield Fault("unreadable", f"printed control characters, {sorted(strange)}")
    for path in outcome.outside:
        yield Fault("outside", f"changed {path}")


def results(work: Path) -> dict[str, str]:
    """Return the hash of every file of a work folder that two runs must make alike."""
    found = {}
    for path in files_below(work):
        name = path.relative_to(work).as_posix()
        if not FREE.fullmatch(name):
            found[name] = file_sum(path)
    return found


def files_below(folder: Path) -> list[Path]:
    """Return all that is in a folder and is no folder, in order."""
    return sorted(Path(base) / name for base, _, names in os.walk(folder) for name in names)


def file_sum(path: Path) -> str:
    """Return the SHA-256 of a file, also behind a link, and a word for anything else."""
    try:
        status = path.stat()
    except OSError:
        status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode):
        return f"no regular file ({stat.filemode(status.st_mode)})"
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except PermissionError:
        return "may not be read"


def differences(work: Path, reference: Mapping[str, str]) -> Iterator[Fault]:
    """Yield where the results of a finished run are not those of an undisturbed one."""
    found = results(work)
    for name in sorted(found.keys() | reference.keys()):
        if name not in found:
            yield Fault("differing", f"{name} is missing")
        elif name not in reference:
            if "/.tmp-" in name and not name.startswith("export/"):
                yield Fault("differing", f"{name} was left behind")
        elif found[name] != reference[name]:
            yield Fault("differing", f"{name} has other bytes")


def snapshot(root: Path, left_out: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return size and time of all below a folder but what is in the ``left_out`` at its top."""
    found = {}
    for path in files_below(root):
        name = path.relative_to(root)
        if name.parts[0] not in left_out:
            status = os.lstat(path)
            found[str(name)] = (status.st_size, status.st_mtime_ns)
    return found


@dataclass(frozen=True)
class Status:
    """The table that ``vfx status`` prints: frames of each stage by state."""

    rows: Mapping[str, Mapping[str, tuple[int, ...]]]       # the solid's frame is 0

    def done(self, stage: str) -> tuple[int, ...]:
        """Frames of a stage that are said to be done."""
        return self.rows[stage]["done"]

    @property
    def is_done(self) -> bool:
        """Whether all is said to be done."""
        return all(not frames for row in self.rows.values() for state, frames in row.items()
                   if state != "done")


def read_status(output: str) -> Status | None:
    """Read what ``vfx status`` printed; None where there is no table in it."""
    lines = iter(output.splitlines())
    head = next((line.split() for line in lines if line.startswith("stage ")), None)
    if head is None:
        return None
    rows = {}
    for line in lines:
        cells = line.split()
        if len(cells) < len(head):
            break
        rows[cells[0]] = {state: _frames(cell) for state, cell
                          in zip(head[1:], cells[1:], strict=False)}
    return Status(rows)


def untruths(status: Status, work: Path, reference: Mapping[str, str]) -> Iterator[Fault]:
    """Yield what a status calls done though it is not what an undisturbed run makes."""
    for stage, files in _FILES.items():
        for frame in status.done(stage) if stage in status.rows else ():
            for pattern in files:
                name = pattern.format(frame=frame)
                if name in reference and _sum_or_none(work / name) != reference[name]:
                    yield Fault("untruthful", f"status calls {stage} {frame or ''} done, but "
                                              f"{name} is not as it should be")
    if status.rows.get("comp", {}).get("done"):
        yield from _untrue_handoff(status, work, reference)


def _untrue_handoff(status: Status, work: Path, reference: Mapping[str, str]) -> Iterator[Fault]:
    try:
        document = json.loads((work / "comp/handoff.json").read_bytes())
        sums = {f"render/{file['file']}": file["sha256"] for sequence in document["sequences"]
                for file in sequence["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        yield Fault("untruthful", "status calls comp done, but its manifest cannot be read")
        return
    frames = status.done("comp")
    for frame in frames:
        for pattern in _FILES["render"]:
            name = pattern.format(frame=frame)
            if name in reference and sums.get(name) != reference[name]:
                yield Fault("untruthful", f"status calls comp {frame} done, but the hand-off has "
                                          f"another sum of {name}")
    if set(frames) == {int(name.split(".")[-2]) for name in reference
                       if name.startswith("render/")}:
        for name in reference:
            if name.startswith("comp/") and _sum_or_none(work / name) != reference[name]:
                yield Fault("untruthful", f"status calls comp done, but {name} is not as it "
                                          "should be")


_FILES = {
    "geometry": ("geometry/solid.npz",), "sim": ("sim/frame.{frame:04d}.npz",),
    "align": ("align/frame.{frame:04d}.npz",),
    "render": ("render/plate.{frame:04d}.exr", "render/plate_crypto.{frame:04d}.exr"),
}


def _sum_or_none(path: Path) -> str | None:
    try:
        return file_sum(path)
    except OSError:
        return None


def _frames(cell: str) -> tuple[int, ...]:
    if cell == "-":
        return ()
    frames: list[int] = []
    for first, last in re.findall(r"(-?\d+)(?:-(-?\d+))?", cell) or [("0", "")]:
        frames += range(int(first), int(last or first) + 1)
    return tuple(frames)
