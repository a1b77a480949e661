"""A shot as dependent jobs: geometry, sim, lineage, align, render, comp, in this order.

geometry, sim, lineage and comp are one task each; align and render have a task a chunk of
frames. A task is a command that can be run again at any time: it makes only what is missing,
and a simulation goes on from its checkpoint. So whatever a farm does to a task (kill it, start
it twice, start it again elsewhere), the files come out the same.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vfx.pipeline.errors import MissingInput, ShotError
from vfx.pipeline.paths import why_not
from vfx.pipeline.shot.frames import format_frames
from vfx.pipeline.stages.stage import Stage, frames_of
from vfx.pipeline.stages.table import STAGES
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State

FOLDER = "farm"
DEFAULT_CHUNK = 4
TRIES = 3                    # of a task that is killed; one that fails by itself is not repeated
FRAMES = "{frames}"          # stands in a command for the frames of a task


@dataclass(frozen=True)
class FarmJob:
    """One stage on a farm.

    ``chunks`` are the frames of each task. The job waits for the job ``after``; if it
    ``is_paired``, its task k for task k of that job alone.
    """

    stage: Stage
    chunks: tuple[tuple[int, ...], ...]
    after: Stage | None
    is_chunked: bool = False
    is_paired: bool = False

    @property
    def name(self) -> str:
        """The name of its stage."""
        return self.stage.name


@dataclass(frozen=True)
class Submission:
    """What is to run: the jobs of a shot, and how their commands are written.

    ``shot`` and ``work`` are absolute, for a farm starts tasks in any folder. All words are text
    without control characters, so that each stays on its line in whatever a farm reads.
    """

    name: str
    shot: Path
    work: Path
    frames: tuple[int, ...]
    chunk: int
    jobs: tuple[FarmJob, ...]
    device: str = "auto"
    threads: int | None = None
    force: bool = False
    at_once: int | None = None
    program: str = "vfx"
    extra: tuple[str, ...] = ()      # words for the farm's own submit command
    warnings: tuple[str, ...] = ()   # what speaks against making it

    def __post_init__(self) -> None:
        for what, word in (("the shot is", self.shot), ("--work", self.work),
                           ("the command vfx is", self.program),
                           *(("--farm-option", word) for word in self.extra)):
            if (reason := why_not(str(word))) is not None:
                raise ShotError(f"{what} {str(word)!a}, but {reason}")

    def command(self, job: FarmJob, frames: str = FRAMES) -> list[str]:
        """Return the words of a task's command, without --threads."""
        words = [self.program, "stage", job.name, str(self.shot), "--work", str(self.work)]
        if job.stage.is_per_frame:
            words += ["--frames", frames]
        if job.stage.uses_device:
            words += ["--device", self.device]
        if job.stage.is_exclusive:
            words.append("--wait")
        if self.force:
            words.append("--force")
        return words

    def folder(self, farm: str) -> Path:
        """Return where the files of a farm go: scripts, chunk lists, logs of tasks."""
        return self.work / FOLDER / farm

    def local_command(self) -> str:
        """Return the command that runs the same on this machine alone."""
        return shlex.join(["vfx", "submit", str(self.shot), "--work", str(self.work), "--frames",
                           format_frames(self.frames), "--farm", "local"])

    def needs_gpu(self, job: FarmJob) -> bool:
        """Whether the tasks of a job run on a GPU."""
        return self.device.startswith("cuda") and job.stage.is_heavy


def build_jobs(work: Work, frames: Sequence[int], chunk: int, *, force: bool) -> tuple[
        FarmJob, ...]:
    """Return the jobs that have something to do for ``frames``; the last always checks them."""
    wanted = frames_of(STAGES, work.shot, frames)
    todo = {stage: [frame for frame, state in work.states(stage, listed).items()
                    if force or state is not State.DONE] for stage, listed in wanted.items()}
    # Where no picture looks at the frames beside it, align takes the frames of render, which hold
    # its own, so that chunks can follow in pairs.
    shared = [stage for stage in STAGES if stage.is_shared_out]
    aside = any(set(take.frames(work.shot, [frame])) - {frame} for stage in shared
                for take in stage.takes if take.stage in shared for frame in frames)
    common = next((todo[stage] for stage in reversed(shared) if todo[stage]), [])
    jobs: list[FarmJob] = []
    for stage in STAGES:
        if not todo[stage] and stage is not STAGES[-1]:
            continue
        chunks = [tuple(wanted[stage][-1:] if stage.is_through else frames)]
        if stage.is_shared_out:
            chunks = split(todo[stage] if aside else common, chunk)
        before = jobs[-1] if jobs else None
        jobs.append(FarmJob(
            stage, tuple(chunks), before.stage if before else None, stage.is_shared_out,
            is_paired=(stage.is_shared_out and before is not None
                       and before.chunks == tuple(chunks) and not aside)))
    return tuple(jobs)


def split(frames: Sequence[int], chunk: int) -> list[tuple[int, ...]]:
    """Return frames in chunks of at most ``chunk``, in order; every frame is in one."""
    return [tuple(frames[i:i + chunk]) for i in range(0, len(frames), chunk)]


def find_frames(job: FarmJob, number: str) -> str:
    """Return the lines of a shell script that set ``frames`` to those of a task.

    ``number`` is what the shell makes the number of the chunk of, from 1. The list stands in the
    script, for another submission of the shot may write another one before this task begins.
    """
    if not job.is_chunked:
        return f"frames={shlex.quote(format_frames(job.chunks[0]))}"
    listed = "".join(f"{format_frames(chunk)}\n" for chunk in job.chunks)
    return f"frames=$(sed -n \"{number}p\" <<'CHUNKS'\n{listed}CHUNKS\n)"


def task_script(submission: Submission, job: FarmJob, find: str) -> str:
    """Return a script that runs a task, once the lines ``find`` have set ``frames``."""
    words = " ".join("\"$frames\"" if word == FRAMES else shlex.quote(word)
                     for word in submission.command(job))
    if submission.threads is not None and job.stage.uses_device:
        words += f" --threads {submission.threads}"
    return f"#!/bin/bash\n{find}\nexec {words}\n"


def script_name(job: FarmJob, script: str) -> str:
    """Return a script's file name: tasks read it late, so one that differs has another name."""
    return f"{job.name}.{hashlib.blake2b(script.encode(), digest_size=4).hexdigest()}.sh"


def describe(submission: Submission) -> list[str]:
    """Return every job with its chunks and commands, for --dry-run."""
    lines = []
    for job in submission.jobs:
        waits = f", after {job.after.name}" if job.after else ""
        waits += ", chunk by chunk" if job.is_paired else ""
        count = f"{len(job.chunks)} task{'s' if len(job.chunks) > 1 else ''}"
        lines.append(f"{job.name}: {count}{waits}")
        threads = ([] if submission.threads is None or not job.stage.uses_device
                   else ["--threads", str(submission.threads)])
        lines += [f"  {shlex.join([*submission.command(job, format_frames(chunk)), *threads])}"
                  for chunk in job.chunks]
    return lines


def find_program() -> str:
    """Return the command of this very installation, for tasks to run the same program."""
    beside = Path(sys.executable).with_name("vfx")
    if beside.is_file():
        return str(beside)
    found = shutil.which("vfx")
    if found is None:
        raise MissingInput("the command vfx is not on PATH, so no task could run it; install "
                           "this package with pip and submit again")
    return found
