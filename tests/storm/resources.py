"""Resources: too little disk, memory, time, descriptors, rights, or nowhere to print.

A command that gets too little ends with a sentence and the code for it, never with a traceback;
given what it lacked, the run goes on to the bits of an undisturbed one.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .case import QUICK, Case
from .child import MEMORY
from .plate import Reference, make_reference, write_shot

_PAGE = 4096
_STAGES = ("geometry", "sim", "align", "render", "comp")


def prepare(ground: Path) -> Reference:
    """Make the run that all are compared with."""
    return make_reference(ground)


def play(case: Case, reference: Reference) -> None:
    """Take one thing away from one command, then give it back."""
    write_shot(case.shot.parent)
    ways = [_disk, _disk, _memory, _descriptors, _file_size, _time, _streams, _rights]
    ways[case.number % len(ways)](case, reference)


def _disk(case: Case, reference: Reference) -> None:
    """A disk that gets full in the middle of some stage, page by page."""
    with _mounted(case.work, "size=64m") as is_mounted:
        if not is_mounted:
            case.tally["disks skipped (no right to mount)"] += 1
            return
        stage = case.random.choice([*_STAGES, "render"])
        _copy_until(reference.work, case.work, stage)
        pages = case.random.randrange(2, 2 + sum(
            1 + path.stat().st_size // _PAGE for path in (reference.work / stage).iterdir()))
        used = shutil.disk_usage(case.work).used
        subprocess.run(["mount", "-o", f"remount,size={used + pages * _PAGE}", case.work],
                       check=True)
        words = case.random.choice([["run"], ["stage", stage]])
        _ration(case, f"{pages} pages of disk for {stage}", *words, *QUICK, case.shot.name,
                "--work", case.work, allowed={0, 3})
        case.status(reference.sums)
        subprocess.run(["mount", "-o", "remount,size=64m", case.work], check=True)
        case.finish(reference.sums)


def _memory(case: Case, reference: Reference) -> None:
    """A limit of the address space, from hardly any more than there is to plenty."""
    more = int(2 ** case.random.uniform(16, 31))
    _copy_until(reference.work, case.work, case.random.choice(_STAGES))
    words = _command(case)
    # The library that writes USD dies of it; nothing that runs in its process can help that.
    also = {-signal.SIGSEGV, -signal.SIGABRT} if "usd" in words else set()
    _ration(case, f"{more >> 10} kB of memory", *words, allowed={0, 1, 3, *also},
            prepare=lambda: _limit_memory(more))
    case.finish(reference.sums)


def _descriptors(case: Case, reference: Reference) -> None:
    """A small number of files that may be open."""
    n = case.random.randrange(3, 24)
    _copy_until(reference.work, case.work, case.random.choice(_STAGES))
    _ration(case, f"{n} descriptors", *_command(case), allowed={0, 1, 3},
            prepare=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
    case.finish(reference.sums)


def _file_size(case: Case, reference: Reference) -> None:
    """A limit of the size of files, which is told as an error."""
    size = int(2 ** case.random.uniform(0, 17))
    _copy_until(reference.work, case.work, case.random.choice(_STAGES))
    _ration(case, f"files of {size} bytes", *_command(case), allowed={0, 1, 3},
            prepare=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)))
    case.status(reference.sums)
    case.finish(reference.sums)


def _time(case: Case, reference: Reference) -> None:
    """A limit of CPU time: a signal ends the process in the middle of what it does."""
    seconds = case.random.uniform(0.01, 0.6)
    _ration(case, f"{seconds:.3f} s of CPU", *_command(case),
            allowed={0, 1, 3, -signal.SIGPROF},
            prepare=lambda: signal.setitimer(signal.ITIMER_PROF, seconds))
    if case.work.exists():
        case.status(reference.sums)
    case.finish(reference.sums)


def _streams(case: Case, reference: Reference) -> None:
    """Standard streams that are closed, full, or read by nobody: a process of its own."""
    shutil.copytree(reference.work, case.work)
    stage = case.random.choice(_STAGES)
    case.vfx("clean", case.shot.name, "--stage", stage, "--work", case.work, allowed={0})
    closed = [number for number in (0, 1, 2) if case.random.random() < 0.4]
    full = [number for number in (1, 2) if number not in closed and case.random.random() < 0.4]
    case.tell(f"streams: {closed} closed, {full} full")
    words = [str(word) for word in _command(case)]
    ended = subprocess.run(
        [sys.executable, "-c", "from vfx.pipeline.cli.start import main; main()", *words],
        cwd=case.shot.parent, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
        timeout=60, check=False, preexec_fn=lambda: _spoil_streams(closed, full))
    output = (ended.stdout + ended.stderr).decode(errors="replace")
    case.tell(f"$ vfx {' '.join(words)}\n{output}[{ended.returncode}]")
    if "Traceback" in output or "Error" in output or "Exception" in output:
        case.blame("tracebacks", f"with streams {closed} closed and {full} full: {output[:200]}")
    if ended.returncode not in (0, 1, 2, 3):
        case.blame("untruthful", f"with streams {closed} closed and {full} full, {words[0]} ended "
                                 f"with {ended.returncode}")
    case.finish(reference.sums)


def _rights(case: Case, reference: Reference) -> None:
    """A work folder that may only be read: a disk, or where none can be mounted its rights."""
    with _mounted(case.work, "size=64m") as is_mounted:
        _copy_until(reference.work, case.work, case.random.choice(_STAGES))
        _let_write(case.work, is_mounted, False)
        _ration(case, "a read-only folder", *_command(case), allowed={0, 1, 3})
        case.status(reference.sums)
        _let_write(case.work, is_mounted, True)
        case.finish(reference.sums)


def _ration(case: Case, what: str, *words: object, allowed: set[int],
            prepare: Callable[[], object] | None = None) -> None:
    """Run a command that has too little of something."""
    case.tell(f"with {what}:")
    outcome = case.vfx(*words, allowed=allowed, prepare=prepare)
    case.tally["enough" if outcome.code == 0 else "too little"] += 1


def _command(case: Case) -> list[object]:
    words = case.random.choice([
        ["run", *QUICK], ["run", *QUICK], ["run", *QUICK],
        ["stage", case.random.choice(_STAGES), *QUICK], ["review"], ["export", "--to", "usd"],
        ["export", "--to", "obj"], ["check"], ["status"],
        ["preview", "--width", "16", "--samples", "1", *QUICK]])
    return [*words, case.shot.name, "--work", case.work]


def _copy_until(source: Path, target: Path, stage: str) -> None:
    """Copy the results of the stages before one, as far as there is room."""
    for name in _STAGES[:_STAGES.index(stage)]:
        try:
            shutil.copytree(source / name, target / name)
        except (OSError, shutil.Error):
            return


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[bool]:
    """Mount a disk in memory on a folder, where that is allowed."""
    folder.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "storm", folder],
                             capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", "-l", folder], check=False)


def _let_write(folder: Path, is_mounted: bool, is_allowed: bool) -> None:
    """Allow or forbid to write in a folder."""
    if is_mounted:
        subprocess.run(["mount", "-o", f"remount,{'rw' if is_allowed else 'ro'}", folder],
                       check=True)
    else:
        for each in (folder, *(path for path in folder.iterdir() if path.is_dir())):
            each.chmod(0o755 if is_allowed else 0o555)


def _limit_memory(more: int) -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = min(used + more, MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _spoil_streams(closed: list[int], full: list[int]) -> None:
    for number in full:
        os.dup2(os.open("/dev/full", os.O_WRONLY), number)
    for number in closed:
        os.close(number)
