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
from vfx.pipeline.stages.render import near_frames, with_near_frames
from vfx.pipeline.stages.table import STAGE
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

    stage: str
    chunks: tuple[tuple[int, ...], ...]
    after: str | None
    is_chunked: bool = False
    is_paired: bool = False


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
        words = [self.program, "stage", job.stage, str(self.shot), "--work", str(self.work)]
        if job.stage != "geometry":
            words += ["--frames", frames]
        if job.stage != "comp":
            words += ["--device", self.device]
        if job.stage == "sim":
            words.append("--wait")
        if self.force and job.stage in ("geometry", "sim", "align", "render"):
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
        return self.device.startswith("cuda") and job.stage in ("sim", "render")


def build_jobs(work: Work, frames: Sequence[int], chunk: int, *, force: bool) -> tuple[
        FarmJob, ...]:
    """Return the jobs that have something to do for ``frames``; comp always checks them."""
    # A picture takes the pieces of the frames beside it, too.
    wide = with_near_frames(work.shot, list(frames))
    last = wide[-1]
    through = [frame for frame in work.shot.frames if frame <= last]
    wanted = {
        stage: [frame for frame, state in work.states(STAGE[stage], listed).items()
                if force or state is not State.DONE]
        for stage, listed in (("geometry", frames), ("sim", through), ("align", wide),
                              ("render", frames))}
    jobs: list[FarmJob] = []
    # Where no picture looks at the frames beside it, align takes the frames of render, which hold
    # its own, so that chunks can follow in pairs.
    aside = any(near_frames(work.shot, frame) for frame in frames)

    def add(stage: str, chunks: Sequence[Sequence[int]], *, is_chunked: bool = False) -> None:
        before = jobs[-1] if jobs else None
        listed = tuple(tuple(part) for part in chunks)
        jobs.append(FarmJob(
            stage, listed, before.stage if before else None, is_chunked,
            is_paired=(is_chunked and before is not None and before.chunks == listed
                       and not aside)))

    chunks = split(wanted["render"] or wanted["align"], chunk)
    if wanted["geometry"]:
        add("geometry", [frames])
    if wanted["sim"]:
        add("sim", [[last]])
    if wanted["align"]:
        add("lineage", [[last]])
        add("align", split(wanted["align"], chunk) if aside else chunks, is_chunked=True)
    if wanted["render"]:
        add("render", chunks, is_chunked=True)
    add("comp", [frames])
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
    if submission.threads is not None and job.stage != "comp":
        words += f" --threads {submission.threads}"
    return f"#!/bin/bash\n{find}\nexec {words}\n"


def script_name(job: FarmJob, script: str) -> str:
    """Return a script's file name: tasks read it late, so one that differs has another name."""
    return f"{job.stage}.{hashlib.blake2b(script.encode(), digest_size=4).hexdigest()}.sh"


def describe(submission: Submission) -> list[str]:
    """Return every job with its chunks and commands, for --dry-run."""
    lines = []
    for job in submission.jobs:
        waits = f", after {job.after}" if job.after else ""
        waits += ", chunk by chunk" if job.is_paired else ""
        count = f"{len(job.chunks)} task{'s' if len(job.chunks) > 1 else ''}"
        lines.append(f"{job.stage}: {count}{waits}")
        threads = ([] if submission.threads is None or job.stage == "comp"
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
