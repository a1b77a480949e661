"""A pool of tasks on this machine: the same graph as on a farm, with nothing to install.

A task that is killed is started again, up to a few times; one that fails by itself is not, and
what waits for it is left out. Ctrl-C and SIGTERM are passed on, so that tasks end at a point
where nothing is lost.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from vfx.pipeline.errors import FrameFailed, PipelineError, Stopped
from vfx.pipeline.farm.graph import TRIES, FarmJob, Submission
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.shot.frames import format_frames
from vfx.pipeline.work.cache import open_own

NAME = "local"
_POLL_SECONDS = 0.05
_STOP_SECONDS = 60.0             # a simulation writes its checkpoint in this time


@dataclass
class _Task:
    job: FarmJob
    number: int
    log: Path
    words: list[str]
    tries: int = 0
    process: subprocess.Popen[bytes] | None = None
    code: int | None = None

    @property
    def label(self) -> str:
        if not self.job.is_chunked:
            return self.job.name
        return f"{self.job.name} {format_frames(self.job.chunks[self.number])}"


@dataclass
class Pool:
    """Runs the tasks of a submission, so many at once."""

    submission: Submission
    progress: Progress
    stop: StopSignals
    tasks: list[_Task] = field(default_factory=list)

    def run(self) -> None:
        """Run all tasks; raise FrameFailed if one failed, naming its log and its command."""
        folder = self.submission.folder(NAME)
        folder.mkdir(parents=True, exist_ok=True)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (
            os.cpu_count() or 1)
        threads = self.submission.threads
        at_once = self.submission.at_once or max(1, cores // (threads or 1))
        for job in self.submission.jobs:
            share = threads or max(1, cores // min(at_once, len(job.chunks)))
            for number, chunk in enumerate(job.chunks):
                words = self.submission.command(job, format_frames(chunk))
                words += ["--threads", str(share)] if job.stage.uses_device else []
                suffix = f".{number}" if job.is_chunked else ""
                self.tasks.append(_Task(job, number, folder / f"{job.name}{suffix}.log", words))
        try:
            while any(task.code is None for task in self.tasks):
                self.stop.check()
                self._start_ready(at_once)
                self._gather()
                if not self._running() and not any(map(self._is_ready, self.tasks)):
                    break
                time.sleep(_POLL_SECONDS)
        except (Stopped, KeyboardInterrupt):
            self._end_all()
            raise
        self._finish()

    def _running(self) -> list[_Task]:
        return [task for task in self.tasks if task.process is not None]

    def _is_ready(self, task: _Task) -> bool:
        if task.code is not None or task.process is not None:
            return False
        before = [other for other in self.tasks if other.job.stage is task.job.after]
        if task.job.is_paired:
            before = [before[task.number]]
        return all(other.code == 0 for other in before)

    def _start_ready(self, at_once: int) -> None:
        for task in self.tasks:
            if len(self._running()) >= at_once:
                return
            if self._is_ready(task):
                task.tries += 1
                with open(open_own(task.log, os.O_WRONLY | os.O_APPEND), "wb") as log:
                    # In a group of its own: Ctrl-C reaches it through us, once.
                    task.process = subprocess.Popen(
                        task.words, stdout=log, stderr=subprocess.STDOUT,
                        stdin=subprocess.DEVNULL, start_new_session=True)

    def _gather(self) -> None:
        for task in self._running():
            assert task.process is not None
            code = task.process.poll()
            if code is None:
                continue
            task.process = None
            if code < 0 and task.tries < TRIES:
                self.progress.say(f"{task.label}: killed by signal {-code}; starting it again")
                continue
            task.code = code
            done = sum(other.code == 0 for other in self.tasks)
            if code == 0:
                self.progress.say(f"{task.label}: done ({done} of {len(self.tasks)} tasks, "
                                  f"{100 * done // len(self.tasks)}% done)")
            else:
                self.progress.say(f"{task.label}: failed with {code}")

    def _end_all(self) -> None:
        for task in self._running():
            assert task.process is not None
            task.process.terminate()
        deadline = time.monotonic() + _STOP_SECONDS
        for task in self._running():
            assert task.process is not None
            try:
                task.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                task.process.kill()

    def _finish(self) -> None:
        failed = [task for task in self.tasks if task.code]
        if not failed:
            return
        lines = []
        for task in failed:
            lines += [f"{task.label}: failed with {task.code}; {_last_line(task.log)}",
                      f"  log: {task.log}", f"  again: {shlex.join(task.words)}"]
        left = sum(task.code is None for task in self.tasks)
        if left:
            lines.append(f"{left} task(s) that wait for these were not started; submit again to "
                         "do what is missing")
        error = PipelineError("\n".join(lines)) if failed[0].code != 1 else FrameFailed(
            "\n".join(lines))
        error.exit_code = failed[0].code if failed[0].code in (1, 2, 3) else 1
        raise error


def _last_line(log: Path) -> str:
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
        lines = [line for line in text.splitlines() if line.strip()]
    except OSError:
        return "no log"
    return lines[-1] if lines else "no output"
