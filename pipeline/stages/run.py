"""From a request on the command line to stages that ran: check everything first, then work.

Nothing is written, not even the work folder, before the shot, the frames, the device, the
physics, the environment, the disk and the upstream results have all been found good.
"""

from __future__ import annotations

import os
import shlex
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vfx.pipeline.devices import open_device
from vfx.pipeline.errors import (
    FrameFailed,
    MissingInput,
    OutsideShot,
    PipelineError,
    ShotError,
    Stopped,
    shortage,
)
from vfx.pipeline.progress import BEGUN, Progress, StopSignals
from vfx.pipeline.shot.checks import ANY_MACHINE, Check, Machine, this_machine
from vfx.pipeline.shot.frames import format_frames, frames_text, select_frames
from vfx.pipeline.shot.needs import check_folder, check_reachable
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.shot.validate import MOST_TOLD
from vfx.pipeline.stages.job import Job, default_work_folder
from vfx.pipeline.stages.stage import Stage, frames_of
from vfx.pipeline.stages.table import STAGES
from vfx.pipeline.work.cache import remove_leftovers
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State

#: What lines begin with that stand in nobody's way.
WARNING = "warning"


@dataclass(frozen=True)
class Request:
    """What the user asked for, as typed; ``frames`` None means all."""

    shot: Path
    frames: str | None = None
    device: str = "auto"
    work: Path | None = None
    force: bool = False
    threads: int | None = None
    wait: bool = False

    def arguments(self) -> tuple[str, ...]:
        """Return the options that a command shown to the user must repeat."""
        words: list[str] = []
        if self.work is not None:
            words += ["--work", str(self.work)]
        if self.device != "auto":
            words += ["--device", self.device]
        if self.threads is not None:
            words += ["--threads", str(self.threads)]
        return tuple(words)


def open_work(request: Request, *, quick: bool = False) -> Work:
    """Read the shot of a request and look at its work folder, ``quick`` as in :class:`Work`."""
    shot = load_shot(request.shot)
    folder = default_work_folder(shot.name) if request.work is None else request.work
    check_reachable(folder)
    return Work(shot, folder, quick=quick)


def requested_frames(request: Request, shot: Shot) -> list[int]:
    """Return the frames of a request, ascending; raise ShotError if the shot has not all."""
    if request.frames is None:
        return list(shot.frames)
    try:
        return select_frames(request.frames, shot.first_frame, shot.last_frame)
    except ShotError as error:
        raise type(error)(f"{shot.path}: --frames: {error}") from None


def frames_to_take(request: Request, shot: Shot) -> list[int]:
    """Return the frames of a request that takes results; those the shot has not are missing."""
    try:
        return requested_frames(request, shot)
    except OutsideShot as error:
        words = ["vfx", "status", str(shot.path)]
        words += ["--work", str(request.work)] if request.work is not None else []
        raise MissingInput(f"{error}; see those that are made with:\n  {shlex.join(words)}") \
            from None


def checks_of(stages: Iterable[Stage]) -> list[Check]:
    """Return what is to be checked before some stages run, each once."""
    return list(dict.fromkeys(check for stage in stages for check in stage.checks))


def check_request(work: Work) -> None:
    """Refuse a shot that cannot run on any machine, or a work folder that cannot be written."""
    for check in checks_of(STAGES):
        check(work.inputs, ANY_MACHINE)
    check_folder(work.folder, room_to_come(work))


def room_to_come(work: Work) -> int:
    """Return about how many bytes are still to be written for all frames."""
    return sum(stage.room(work.shot, n) for stage in STAGES
               if (n := sum(state is not State.DONE
                            for state in work.states(stage, work.shot.frames).values())))


def shot_warnings(work: Work, stages: Iterable[Stage]) -> list[str]:
    """Return what will probably not come out as it was meant, of stages that are to be made."""
    warnings = dict.fromkeys(warning for stage in stages for warning in stage.warnings)
    lines = [line for warning in warnings for line in warning(work.inputs)]
    more = len(lines) - MOST_TOLD
    return lines if more <= 0 else [*lines[:MOST_TOLD], f"and {more:,} more like these"]


def prepare(request: Request, stages: Sequence[Stage], progress: Progress,
            stop: StopSignals) -> list[Job]:
    """Return the jobs of a request, one a stage, having checked all they need."""
    work = open_work(request)
    only_judged = all(stage.judges_inputs for stage in stages)
    frames = (frames_to_take if only_judged else requested_frames)(request, work.shot)
    device = (open_device(request.device, request.threads)
              if any(stage.uses_device for stage in stages) else None)
    machine: Machine = this_machine(device)
    for check in checks_of(stages):
        check(work.inputs, machine)
    whole = list(dict.fromkeys(part for stage in stages for part in (*stage.begins_with, stage)))
    jobs = [Job(stage, work, device if stage.uses_device else None, listed,
                request.force and stage in stages, progress, stop, request.arguments(),
                request.wait)
            for stage, listed in frames_of(whole, work.shot, frames).items()]
    check_folder(work.folder, sum(
        job.stage.room(work.shot, n) for job in jobs if (n := _count_missing(job))))
    if (sentence := jobs[0].missing_inputs()) is not None:
        raise MissingInput(sentence)
    return jobs


def say_warnings(jobs: Sequence[Job]) -> None:
    """Tell what speaks against making what jobs have to make."""
    todo = [job for job in jobs if _count_missing(job)]
    for line in shot_warnings(jobs[0].work, (job.stage for job in todo)):
        jobs[0].progress.say(f"{WARNING}: {line}")


def run_job(job: Job) -> None:
    """Run one stage; every failure ends in a sentence with the command that tries again."""
    name = job.stage.name
    job.progress.log_to(job.work.folder, name)
    removed = remove_leftovers(job.work.folder_of(job.stage))
    if removed:
        job.progress.say(f"{name}: removed {len(removed)} unfinished file(s) of a killed run")
    job.work.refresh()
    if (sentence := job.missing_inputs()) is not None:
        raise MissingInput(sentence)
    n_missing = _count_missing(job)
    job.work.inputs.note()
    for sharing in _folders_through(job.stage):
        if (sentence := job.work.mend_manifest(sharing)) is not None:
            job.progress.say(sentence)
    if not n_missing and not job.force and not job.stage.unfit_aids(job.work, job.stage):
        job.progress.say(f"{name}: {_frames_text(job, job.frames)} up to date")
        return
    with job.progress.stage(name), _timed(job):
        try:
            outcome = job.stage.run(job)
        except PipelineError:
            raise
        except Exception as error:
            if (lack := shortage(error)) is not None:
                raise MissingInput(f"{name}: {lack}, then run again with:\n"
                                   f"  {_again(job)}") from None
            raise FrameFailed(f"{name}: {type(error).__name__}: {error}\n"
                              f"run again with:\n  {_again(job)}") from error
    job.progress.say(f"{name}: {_frames_text(job, job.frames)} "
                     + (outcome or f"done, in {job.work.folder_of(job.stage)}"))


def _folders_through(last: Stage) -> list[list[Stage]]:
    """Return the stages that share a folder, of all folders up to that of ``last``."""
    names = dict.fromkeys(stage.folder for stage in STAGES[:STAGES.index(last) + 1]
                          if stage.find_states is None)
    return [[stage for stage in STAGES if stage.folder == name] for name in names]


@contextmanager
def _timed(job: Job) -> Iterator[None]:
    """Note in the logs how the block began and ended, how long it took and what it made.

    A row of timings that has a beginning and no end is of a run that was killed.
    """
    begun, clock = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.monotonic()
    progress, threads = job.progress, 1 if job.opened is None else job.opened.threads
    facts: dict[str, Any] = {
        "stage": job.stage.name, "begun": begun, "host": socket.gethostname(),
        "process": os.getpid(), "frames": format_frames(job.frames), "device": job.place,
        "threads": threads}
    progress.log(f"begins: {_again(job)} on {job.place}, {threads} "
                 f"thread{'s' if threads > 1 else ''}")
    progress.note_timing(**facts, outcome=BEGUN)
    outcome = "failed"
    try:
        yield
        outcome = "done"
    except PipelineError as error:
        outcome = "stopped" if isinstance(error, Stopped) else "failed"
        progress.log(str(error))
        raise
    finally:
        progress.note_timing(**facts, outcome=outcome, made=len(job.made),
                             seconds=round(time.monotonic() - clock, 3))


def describe(job: Job) -> list[str]:
    """Return what running a job would do, for --dry-run."""
    states = job.work.states(job.stage, job.frames)
    todo = [frame for frame, state in states.items() if job.force or state is not State.DONE]
    if not todo:
        return [f"{job.stage.name}: {_frames_text(job, job.frames)} up to date, nothing to do"]
    reasons = ", ".join(
        state.value + (f" {format_frames(which)}" if job.stage.is_per_frame else "")
        for state in State
        if (which := [frame for frame in todo if states[frame] is state]))
    force = " --force" if job.force else ""
    return [f"{job.stage.name}: would make {_frames_text(job, todo)} ({reasons})",
            f"  {_again(job)}{force}"]


def _count_missing(job: Job) -> int:
    states = job.work.states(job.stage, job.frames)
    return sum(job.force or state is not State.DONE for state in states.values())


def _frames_text(job: Job, frames: Sequence[int]) -> str:
    return frames_text(frames) if job.stage.is_per_frame else job.stage.gives


def _again(job: Job) -> str:
    return job.command(None, job.frames)
