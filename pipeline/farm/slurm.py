"""Slurm: a batch script a job, arrays over a list of chunks in it, dependencies by job id.

An array counts 0, 1, 2, ... and looks its frames up in a list: ``--array=1-10:4`` would lose
frame 10. A task whose process is killed (by a full memory, say) is tried again in its place; a
task whose node dies is requeued by Slurm; one that reaches its time limit is told a minute
before, saves, and requeues itself.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from vfx.pipeline.errors import FrameFailed, MissingInput, ShotError
from vfx.pipeline.farm.graph import FRAMES, TRIES, FarmJob, Submission, find_frames
from vfx.pipeline.work.cache import publish_bytes

NAME = "slurm"
STATE_FILE = "jobs.json"
_SECONDS_BEFORE_LIMIT = 60


def write_files(submission: Submission) -> list[Path]:
    """Write the batch script of each job."""
    folder = submission.folder(NAME)
    written = []
    for job in submission.jobs:
        publish_bytes(script := folder / f"{job.name}.sh", batch_script(submission, job).encode())
        written.append(script)
    return written


def require(submission: Submission) -> None:
    """Raise if there is no Slurm, or if a job has more tasks than it takes."""
    if missing := [name for name in ("sbatch", "scontrol") if shutil.which(name) is None]:
        raise MissingInput(
            f"{missing[0]}: not on PATH, so there is no Slurm to submit to; log in to a machine "
            "that has it, write the files for it with --no-start, or run the shot on this "
            "machine:\n"
            f"  {submission.local_command()}")
    done = subprocess.run(["scontrol", "show", "config"], capture_output=True, encoding="utf-8",
                          errors="backslashreplace", check=False)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise MissingInput(f"Slurm does not answer ({reason}); see what 'sinfo' says, or run the "
                           f"shot on this machine:\n  {submission.local_command()}")
    match = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.MULTILINE)
    most = int(match[1]) if match else 1001
    n_tasks = max(len(job.chunks) for job in submission.jobs)
    if n_tasks > most:
        n_frames = max(sum(map(len, job.chunks)) for job in submission.jobs)
        raise ShotError(f"--chunk {submission.chunk}: makes {n_tasks} tasks of a job, but this "
                        f"Slurm takes at most {most} (MaxArraySize); use --chunk "
                        f"{-(-n_frames // most)} or more")


def check(submission: Submission) -> None:
    """Refuse a work folder that Slurm cannot write logs in."""
    if "\\" in str(submission.work):
        raise ShotError(f"--work {submission.work}: has a backslash, which Slurm drops from the "
                        "paths of logs; rename it, or choose another folder")


def start(submission: Submission, say: Callable[[str], None]) -> None:
    """Submit every job, each after the one before; say what was started."""
    folder = submission.folder(NAME)
    ids: dict[str, str] = {}
    for job in submission.jobs:
        words = ["sbatch", "--parsable", *submit_options(submission, job, ids),
                 *submission.extra, str(folder / f"{job.name}.sh")]
        try:
            ids[job.name] = _run(words).strip().partition(";")[0]
        except FrameFailed:
            if ids:
                subprocess.run(["scancel", *ids.values()], check=False)
            raise
    publish_bytes(folder / STATE_FILE, (json.dumps(ids, indent=1) + "\n").encode())
    for stage, number in ids.items():
        say(f"{stage}: job {number}")
    say(f"watch them with: squeue --jobs={','.join(ids.values())}")
    say(f"end them with: scancel {' '.join(ids.values())}")
    say(f"logs of tasks: {folder}")


def submit_options(submission: Submission, job: FarmJob, ids: dict[str, str]) -> list[str]:
    """Return the options of sbatch that are not in the script: array and dependency."""
    words = []
    if job.is_chunked:
        throttle = f"%{submission.at_once}" if submission.at_once else ""
        words.append(f"--array=0-{len(job.chunks) - 1}{throttle}")
    if job.after is not None:
        kind = "aftercorr" if job.is_paired else "afterok"
        words += [f"--dependency={kind}:{ids.get(job.after.name, f'<{job.after.name}>')}",
                  "--kill-on-invalid-dep=yes"]
    return words


def commands(submission: Submission) -> list[str]:
    """Return the sbatch commands, with <stage> where the id of a job will stand."""
    folder = submission.folder(NAME)
    return [shlex.join(["sbatch", *submit_options(submission, job, {}), *submission.extra,
                        str(folder / f"{job.name}.sh")]) for job in submission.jobs]


def batch_script(submission: Submission, job: FarmJob) -> str:
    """Return the script of a job."""
    folder = str(submission.folder(NAME)).replace("%", "%%")
    log = f"{folder}/{'%x.%A_%a.log' if job.is_chunked else '%x.%j.log'}"
    options = [
        f"--job-name={_quoted(f'{submission.name}.{job.name}')}", f"--output={_quoted(log)}",
        "--open-mode=append", "--requeue", "--ntasks=1", f"--signal=B:USR1@{_SECONDS_BEFORE_LIMIT}",
        f"--chdir={_quoted(str(submission.work))}"]
    if submission.threads is not None:
        options.append(f"--cpus-per-task={submission.threads}")
    elif job.stage.is_heavy:
        options.append("--exclusive")           # all cores, as the stage itself would take
    if submission.needs_gpu(job):
        options.append("--gres=gpu:1")
    words = " ".join("\"$frames\"" if word == FRAMES else shlex.quote(word)
                     for word in submission.command(job))
    if job.stage.uses_device:
        words += ' --threads "${SLURM_CPUS_ON_NODE:-1}"'
    find = find_frames(job, "$((SLURM_ARRAY_TASK_ID + 1))")
    return "\n".join([
        "#!/bin/bash", *(f"#SBATCH {option}" for option in options), "", find, "",
        _WATCH.replace("@COUNT@", str(TRIES)).replace(
            "@TRIES@", " ".join(str(number + 1) for number in range(TRIES))).replace(
            "@COMMAND@", words)])


_WATCH = """\
# Pass a stop on, and remember whether Slurm gave it since the time is nearly up.
child= again=
trap 'kill -TERM "$child" 2>/dev/null' TERM
trap 'again=yes; kill -TERM "$child" 2>/dev/null' USR1
for try in @TRIES@; do
    @COMMAND@ &
    child=$!
    wait "$child"; code=$?
    # A trapped signal ends the first wait before the child has ended.
    while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
    # One that was killed made whole files or none: go on with what is missing.
    case $code in
        134|135|137|139) echo "killed (exit code $code) on try $try of @COUNT@" ;;
        *) break ;;
    esac
    [ "$try" -lt @COUNT@ ] || echo "given up; submit the shot again to go on from here"
done
if [ "$again" ] && [ "$code" -ne 0 ]; then
    echo "the time is nearly up: requeued to go on from here"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
"""


def _quoted(text: str) -> str:
    """Return a value as a directive of a batch script takes it.

    A backslash takes what follows as it is; the words packjob and hetjob, which end a directive
    wherever they stand in it, are broken by one.
    """
    return '"' + re.sub(r'(?i)(?=["\\])|(?<=p)(?=ackjob)|(?<=h)(?=etjob)', r"\\", text) + '"'


def _run(words: list[str]) -> str:
    done = subprocess.run(words, capture_output=True, encoding="utf-8",
                          errors="backslashreplace", check=False)
    if done.returncode != 0:
        reason = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise FrameFailed(f"{shlex.join(words)}: {reason}")
    return done.stdout
