"""``vfx submit``: a shot as dependent jobs on a farm, or in a pool on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from vfx.pipeline.errors import ShotError
from vfx.pipeline.farm import deadline, graph, local, opencue, openjd, slurm
from vfx.pipeline.farm.graph import Submission, build_jobs, find_program
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.shot.frames import frames_text
from vfx.pipeline.stages.run import (
    WARNING,
    Request,
    check_request,
    frames_to_take,
    open_work,
    shot_warnings,
)
from vfx.pipeline.work.cache import storage_errors


@dataclass(frozen=True)
class Farm:
    """A farm's doings: raise if it is not there, write files, name commands, start jobs.

    ``check`` raises if a path cannot be told to it.
    """

    require: Callable[[Submission], None]
    write_files: Callable[[Submission], list[Path]]
    commands: Callable[[Submission], list[str]]
    start: Callable[[Submission, Callable[[str], None], StopSignals], None]
    check: Callable[[Submission], None] = lambda submission: None


def _leave_to(start: Callable[[Submission, Callable[[str], None]], None]) -> Callable[
        [Submission, Callable[[str], None], StopSignals], None]:
    """Return the start of a farm that takes jobs and goes on without us: nothing to stop."""
    return lambda submission, say, stop: start(submission, say)


_FARM = {
    slurm.NAME: Farm(slurm.require, slurm.write_files, slurm.commands, _leave_to(slurm.start),
                     slurm.check),
    openjd.NAME: Farm(openjd.require, openjd.write_files, openjd.commands, openjd.start),
    opencue.NAME: Farm(opencue.require, opencue.write_files, opencue.commands,
                       _leave_to(opencue.start)),
    deadline.NAME: Farm(deadline.require, deadline.write_files, deadline.commands,
                        _leave_to(deadline.start), deadline.check),
}
FARMS = (slurm.NAME, openjd.NAME, opencue.NAME, deadline.NAME, local.NAME)


@dataclass(frozen=True)
class FarmRequest:
    """What the user asked for beside the shot: which farm, and how to share the work out."""

    farm: str
    chunk: int = graph.DEFAULT_CHUNK
    at_once: int | None = None
    extra: tuple[str, ...] = ()


def plan_submission(request: Request, farm: FarmRequest) -> Submission:
    """Return what a request makes run, having checked the shot, its frames and its folder.

    The device is that of the workers: it is not opened here.
    """
    work = open_work(request)
    frames = frames_to_take(request, work.shot)
    check_request(work)
    if farm.extra and farm.farm in (openjd.NAME, local.NAME):
        raise ShotError(f"--farm-option {farm.extra[0]}: {farm.farm} takes none; leave it out")
    jobs = build_jobs(work, frames, farm.chunk, force=request.force)
    submission = Submission(
        name=work.shot.name, shot=work.shot.path.absolute(), work=work.folder.absolute(),
        frames=tuple(frames), chunk=farm.chunk,
        jobs=jobs, warnings=tuple(shot_warnings(work, (job.stage for job in jobs))),
        device=request.device, threads=request.threads, force=request.force,
        at_once=farm.at_once, program=find_program(), extra=farm.extra)
    if farm.farm in _FARM:
        _FARM[farm.farm].check(submission)
    return submission


def listing(submission: Submission, farm: str) -> list[str]:
    """Return what would be submitted: every task, and the farm's own commands."""
    lines = [*_warning_lines(submission), *graph.describe(submission)]
    if farm != local.NAME:
        lines += ["", f"{farm}:", *(f"  {line}" for line in _FARM[farm].commands(submission))]
    return lines


def _warning_lines(submission: Submission) -> list[str]:
    return [f"{WARNING}: {line}" for line in submission.warnings]


def submit(submission: Submission, farm: str, progress: Progress, stop: StopSignals, *,
           no_start: bool) -> None:
    """Write the files of a farm and, unless told not to, start the jobs there.

    A farm that is not there is refused before anything is written.
    """
    if farm == local.NAME and no_start:
        raise ShotError("--no-start: a local pool has no files to write; see --dry-run")
    if farm != local.NAME and not no_start:
        _FARM[farm].require(submission)
    for line in _warning_lines(submission):
        progress.say(line)
    progress.say(f"{submission.name}: {frames_text(submission.frames)} on {farm}: " + ", ".join(
        f"{job.name} ({len(job.chunks)})" if job.is_chunked else job.name
        for job in submission.jobs))
    if farm == local.NAME:
        with storage_errors(submission.work):
            local.Pool(submission, progress, stop).run()
        return
    for path in _FARM[farm].write_files(submission):
        progress.say(f"wrote {path}")
    if no_start:
        progress.say("\n  ".join(["start them with:", *_FARM[farm].commands(submission)]))
    else:
        _FARM[farm].start(submission, progress.say, stop)
