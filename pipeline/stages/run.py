"""From a request on the command line to stages that ran: check everything first, then work.

Nothing is written, not even the work folder, before the shot, the frames, the device, the
physics, the environment, the disk and the upstream results have all been found good.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from vfx.pipeline.shot.frames import format_frames, frames_text, select_frames
from vfx.pipeline.shot.needs import (
    camera_warnings,
    check_camera,
    check_denoising,
    check_film,
    check_floor,
    check_folder,
    check_geometry,
    check_meshes,
    check_physics,
    check_reachable,
    check_uv,
    disk_needs,
    host_memory,
    start_warnings,
)
from vfx.pipeline.shot.plausible import unit_warnings
from vfx.pipeline.shot.shot_file import Shot, load_shot
from vfx.pipeline.shot.validate import MOST_TOLD
from vfx.pipeline.stages.align import find_lineage, follow_lineage
from vfx.pipeline.stages.comp import FOLDER as COMP_FOLDER
from vfx.pipeline.stages.comp import frames_with_earlier, is_handed_over, make_handoff
from vfx.pipeline.stages.job import Job, default_work_folder
from vfx.pipeline.stages.render import with_near_frames
from vfx.pipeline.stages.sim import unfit_history
from vfx.pipeline.stages.table import STAGE, STAGES, Stage
from vfx.pipeline.work.cache import remove_leftovers
from vfx.pipeline.work.checkpoint import damaged_checkpoints
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.device import Device


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


def check_request(work: Work) -> None:
    """Refuse a shot that cannot run, or a work folder that cannot be written.

    The memory is that of the workers, so any amount will do here.
    """
    shot = work.shot
    check_physics(shot, sys.maxsize)
    check_floor(shot)
    work.densities()
    work.environment()
    work.texture()
    work.images()
    check_camera(shot, work.camera())
    check_folder(work.folder, sum(
        disk_needs(shot, stage.name, n) for stage in STAGES
        if (n := sum(state is not State.DONE
                     for state in work.states(stage, shot.frames).values()))))


def shot_warnings(work: Work, stages: Iterable[str]) -> list[str]:
    """Return what will probably not come out as it was meant, of stages that are to be made."""
    names, lines = set(stages), []
    if names & {"geometry", "sim"}:
        lines += unit_warnings(work.shot) + start_warnings(work.shot)
    if "render" in names:
        with suppress(PipelineError):      # said with what else is wrong
            lines += camera_warnings(work.shot, work.camera())
    more = len(lines) - MOST_TOLD
    return lines if more <= 0 else [*lines[:MOST_TOLD], f"and {more:,} more like these"]


def prepare(request: Request, stages: Sequence[Stage], progress: Progress,
            stop: StopSignals) -> list[Job]:
    """Return the jobs of a request, one a stage, having checked all they need."""
    work = open_work(request)
    shot = work.shot
    frames = requested_frames(request, shot)
    device = open_device(request.device, request.threads)
    _check_inputs(work, stages, device)
    # A picture takes the pieces of the frames beside it, too.
    wide = (with_near_frames(shot, frames)
            if any(stage.name == "render" for stage in stages) else frames)
    jobs = [Job(stage, work, device, list(frames if stage.name == "render" else wide),
                request.force, progress, stop, request.arguments(), request.wait)
            for stage in stages]
    check_folder(work.folder, sum(
        disk_needs(shot, job.stage.name, _count_missing(job)) for job in jobs
        if _count_missing(job)))
    if (sentence := jobs[0].missing_inputs()) is not None:
        raise MissingInput(sentence)
    return jobs


def say_warnings(jobs: Sequence[Job]) -> None:
    """Tell what speaks against making what jobs have to make."""
    todo = [job for job in jobs if _count_missing(job)]
    for line in shot_warnings(jobs[0].work, (job.stage.name for job in todo)):
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
    for stage in STAGES[: STAGES.index(job.stage) + 1]:
        if (sentence := job.work.mend_manifest(stage)) is not None:
            job.progress.say(sentence)
    if not n_missing and not job.force and not unfit_aids(job.work, job.stage):
        job.progress.say(f"{name}: {_frames_text(job, job.frames)} up to date")
        return
    with job.progress.stage(name), _timed(job.progress, name, _again(job), job.frames,
                                          lambda: len(job.made), job.device):
        try:
            job.stage.run(job)
        except PipelineError:
            raise
        except Exception as error:
            if (lack := shortage(error)) is not None:
                raise MissingInput(f"{name}: {lack}, then run again with:\n"
                                   f"  {_again(job)}") from None
            raise FrameFailed(f"{name}: {type(error).__name__}: {error}\n"
                              f"run again with:\n  {_again(job)}") from error
    job.progress.say(f"{name}: {_frames_text(job, job.frames)} done, in "
                     f"{job.work.folder_of(job.stage)}")


@contextmanager
def _timed(progress: Progress, stage: str, command: str, frames: Sequence[int],
           made: Callable[[], int], device: Device | None = None) -> Iterator[None]:
    """Note in the logs how the block began and ended, how long it took and what it made.

    A row of timings that has a beginning and no end is of a run that was killed.
    """
    begun, clock = time.strftime("%Y-%m-%dT%H:%M:%S%z"), time.monotonic()
    where = device.description if device is not None else "host"
    threads = device.threads if device is not None else 1
    facts: dict[str, Any] = {
        "stage": stage, "begun": begun, "host": socket.gethostname(), "process": os.getpid(),
        "frames": format_frames(frames), "device": where, "threads": threads}
    progress.log(f"begins: {command} on {where}, {threads} thread{'s' if threads > 1 else ''}")
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
        progress.note_timing(**facts, outcome=outcome, made=made(),
                             seconds=round(time.monotonic() - clock, 3))


def run_lineage(job: Job) -> None:
    """Follow the pieces through the frames of an align job, without aligning any."""
    job.progress.log_to(job.work.folder, "lineage")
    job.work.refresh()
    if (sentence := job.missing_inputs()) is not None:
        raise MissingInput(sentence)
    words = ["vfx", "stage", "lineage", str(job.shot.path), "--frames", str(job.frames[-1]),
             *job.arguments]
    with job.progress.stage("lineage"), _timed(
            job.progress, "lineage", shlex.join(words), job.frames, lambda: 0, job.device):
        follow_lineage(job)
    job.progress.say(f"lineage: through frame {job.frames[-1]} done, in "
                     f"{job.work.folder_of(job.stage)}")


def run_comp(request: Request, progress: Progress, stop: StopSignals) -> None:
    """Verify the frames of a request and write what goes with them to comp."""
    work = open_work(request)
    frames = frames_to_take(request, work.shot)
    check_folder(work.folder, 0)
    with work.in_use():
        _hand_over(work, frames, request.arguments(), progress, stop)


def finish_run(job: Job, progress: Progress, stop: StopSignals) -> None:
    """Hand the frames of a rendering over to comp, unless that is up to date."""
    remove_leftovers(job.work.folder / COMP_FOLDER)
    if not job.force and is_handed_over(job.work, job.frames):
        progress.log_to(job.work.folder, "comp")
        progress.say(f"comp: {frames_text(job.frames)} checked before and unchanged")
    else:
        _hand_over(job.work, job.frames, job.arguments, progress, stop)


def _hand_over(work: Work, frames: Sequence[int], arguments: tuple[str, ...],
               progress: Progress, stop: StopSignals) -> None:
    n_read = 0

    def report(frame: int, fraction: float) -> None:
        nonlocal n_read
        stop.check()
        n_read = round(fraction * len(frames))
        progress.update(frame, fraction)

    progress.log_to(work.folder, "comp")
    frames = frames_with_earlier(work, frames)
    words = ["vfx", "stage", "comp", str(work.shot.path), "--frames", format_frames(frames),
             *arguments]
    with progress.stage("comp"), _timed(progress, "comp", shlex.join(words), frames,
                                        lambda: n_read):
        written = make_handoff(
            work, frames, lambda some: _render_command(work, some, arguments), report)
    progress.say(f"comp: {frames_text(frames)} read whole and good; wrote "
                 + ", ".join(path.name for path in written) + f" in {written[0].parent}")


def _render_command(work: Work, frames: Sequence[int], arguments: tuple[str, ...]) -> str:
    """Return the command that makes frames, whatever is wrong with them."""
    words = [str(work.shot.path), "--frames", format_frames(frames), *arguments]
    pieces = work.states(STAGE["align"], with_near_frames(work.shot, list(frames)))
    if any(state is not State.DONE for state in pieces.values()):
        return shlex.join(["vfx", "run", *words])
    # One that is just what its settings made is made again only if told to.
    pictures = work.states(STAGE["render"], frames).values()
    force = ["--force"] if State.DONE in pictures else []
    return shlex.join(["vfx", "stage", "render", *words, *force])


def unfit_aids(work: Work, stage: Stage) -> dict[Path, str]:
    """Return the files of a stage that are no results but help to make more, and are no good.

    With each goes what is wrong with it: missing, damaged or stale.
    """
    if stage.name == "sim":
        done = all(state is State.DONE for state in work.states(stage, work.shot.frames).values())
        return (dict.fromkeys(damaged_checkpoints(work.folder_of(stage)), "damaged")
                | (unfit_history(work, stage) if done else {}))
    if stage.name == "align" and (found := find_lineage(work, stage)).fault:
        return {found.path: found.fault}
    return {}


def describe(job: Job) -> list[str]:
    """Return what running a job would do, for --dry-run."""
    states = job.work.states(job.stage, _covered(job))
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


def describe_comp(job: Job) -> list[str]:
    """Return what would follow a rendering, for --dry-run."""
    if not job.force and is_handed_over(job.work, job.frames):
        return [f"comp: {frames_text(job.frames)} up to date, nothing to do"]
    words = ["vfx", "stage", "comp", str(job.shot.path), "--frames", format_frames(job.frames),
             *job.arguments]
    return [f"comp: would read {frames_text(job.frames)} whole and write into "
            f"{job.work.folder / COMP_FOLDER}", f"  {shlex.join(words)}"]


def _check_inputs(work: Work, stages: Sequence[Stage], device: Device) -> None:
    shot: Shot = work.shot
    names = {stage.name for stage in stages}
    if names & {"geometry", "sim", "align"}:
        check_meshes(shot)
        check_uv(shot)
    if "geometry" in names:
        check_geometry(shot, host_memory())
    if "sim" in names:
        check_physics(shot, device.memory()[0])
        work.densities()
    if names & {"geometry", "sim"}:
        check_floor(shot)
    if "render" in names:
        check_film(shot, device.memory()[0])
        work.environment()
        work.texture()
        work.images()
        check_camera(shot, work.camera())
        check_denoising(shot)


def _covered(job: Job) -> list[int]:
    """Return the frames a job touches: a simulation runs through all before the last."""
    if job.stage.name == "sim":
        return [frame for frame in job.shot.frames if frame <= job.frames[-1]]
    return job.frames


def _count_missing(job: Job) -> int:
    states = job.work.states(job.stage, _covered(job))
    return sum(job.force or state is not State.DONE for state in states.values())


def _frames_text(job: Job, frames: Sequence[int]) -> str:
    return frames_text(frames) if job.stage.is_per_frame else job.stage.gives


def _again(job: Job) -> str:
    return job.command(None, job.frames)
