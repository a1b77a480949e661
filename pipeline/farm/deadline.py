"""Thinkbox Deadline: a job-info and a plugin-info file a job, and a script that submits them.

A task runs a script in the work folder: what Deadline makes of a command line (its own ``<...>``
words, and quotes that each of its versions splits in another way) then meets no name of ours.
The program is not to be had without a licence, so these are generated, but not run here.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from vfx.pipeline.errors import FrameFailed, MissingInput, ShotError
from vfx.pipeline.farm.graph import (
    FOLDER,
    FarmJob,
    Submission,
    find_frames,
    script_name,
    task_script,
)
from vfx.pipeline.shot.frames import format_frames
from vfx.pipeline.work.cache import publish_bytes

NAME = "deadline"
SCRIPT = "submit.sh"


def job_info(submission: Submission, job: FarmJob) -> str:
    """Return the job-info file; the submit script adds what a job depends on."""
    lines = [
        "Plugin=CommandLine",
        f"Name={submission.name} {job.name}",
        f"BatchName={submission.name}",
        f"Comment=vfx stage {job.name}",
        f"Frames={_frames(job)}",
        f"ChunkSize={_chunk_size(submission, job)}",
        f"OutputDirectory0={submission.work / job.stage.folder}",
    ]
    if submission.at_once and job.is_chunked:
        lines.append(f"MachineLimit={submission.at_once}")
    if job.is_paired:
        lines.append("IsFrameDependent=true")
    return "\n".join([*lines, *submission.extra]) + "\n"


def plugin_info(submission: Submission, job: FarmJob) -> str:
    """Return the plugin-info file of the CommandLine plugin."""
    script = f"{FOLDER}/{NAME}/{script_name(job, _script(submission, job))}"
    frames = " <STARTFRAME>-<ENDFRAME>" if job.is_chunked else ""
    return (f"Executable=/bin/bash\nArguments={script}{frames}\nShell=default\n"
            "ShellExecute=false\nSingleFramesOnly=false\n"
            f"StartupDirectory={submission.work}\n")


def check(submission: Submission) -> None:
    """Refuse a work folder that a line of Deadline's files cannot name."""
    if (work := str(submission.work)) != work.rstrip():
        raise ShotError(f"--work {work!r}: ends in a space, which Deadline does not keep; rename "
                        "it, or choose another folder")


def submit_script(submission: Submission) -> str:
    """Return the script that submits all jobs, each after the one before."""
    lines = ["#!/bin/bash", "# Submits the jobs of a shot; needs deadlinecommand on PATH.",
             "set -euo pipefail", 'cd -- "$(dirname -- "$0")"', ""]
    for job in submission.jobs:
        info = f"{job.name}.job"
        lines += [f"rm -f {info}.ready", f"cp {info} {info}.ready"]
        if job.after is not None:
            lines.append(f'echo "JobDependencies=${job.after.name}" >> {info}.ready')
        lines += [f"{job.name}=$(deadlinecommand {info}.ready {job.name}.plugin | "
                  "sed -n 's/^JobID=//p' | tr -d '\\r')",
                  f': "${{{job.name}:?{job.name} was not taken by Deadline}}"',
                  f'echo "{job.name}: job ${job.name}"']
    return "\n".join(lines) + "\n"


def write_files(submission: Submission) -> list[Path]:
    """Write the three files of each job and the script that submits them."""
    folder = submission.folder(NAME)
    for job in submission.jobs:
        publish_bytes(folder / f"{job.name}.job", job_info(submission, job).encode())
        publish_bytes(folder / f"{job.name}.plugin", plugin_info(submission, job).encode())
        script = _script(submission, job)
        publish_bytes(folder / script_name(job, script), script.encode())
    publish_bytes(folder / SCRIPT, submit_script(submission).encode())
    return [folder / SCRIPT]


def commands(submission: Submission) -> list[str]:
    """Return the command that submits."""
    return [shlex.join(["bash", str(submission.folder(NAME) / SCRIPT)])]


def require(submission: Submission) -> None:
    """Raise if the client is not there."""
    if shutil.which("deadlinecommand") is None:
        raise MissingInput("deadlinecommand: not on PATH, so there is no Deadline to submit to; "
                           "install its client, write the files for it with --no-start, or run "
                           f"the shot on this machine:\n  {submission.local_command()}")


def start(submission: Submission, say: Callable[[str], None]) -> None:
    """Submit through deadlinecommand."""
    done = subprocess.run(["bash", str(submission.folder(NAME) / SCRIPT)], capture_output=True,
                          encoding="utf-8", errors="backslashreplace", check=False)
    if done.returncode != 0:
        raise FrameFailed("Deadline did not take the jobs: "
                          f"{' '.join(done.stderr.split()) or 'no reason given'}")
    say(done.stdout.rstrip())


def _frames(job: FarmJob) -> str:
    if not job.is_chunked:
        return "0"
    return format_frames(frame for chunk in job.chunks for frame in chunk)


def _chunk_size(submission: Submission, job: FarmJob) -> int:
    """Return frames a task; one where frames have gaps, which first and last cannot tell."""
    if not job.is_chunked:
        return 1
    has_gaps = any(chunk[-1] - chunk[0] + 1 != len(chunk) for chunk in job.chunks)
    return 1 if has_gaps else submission.chunk


def _script(submission: Submission, job: FarmJob) -> str:
    """Return the script of a task; one of a chunk takes its frames."""
    return task_script(submission, job,
                       "frames=${1:?}" if job.is_chunked else find_frames(job, ""))
