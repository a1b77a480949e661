"""Stage sim: runs a solver from frame to frame, stoppable and resumable at any moment.

The first frame is the initial state, each other one the state at the solver's moment nearest to
its time. Of solvers it knows the protocol alone (:mod:`vfx.sim.solver`). A frame is published
before any checkpoint that lies beyond it, so a checkpoint never skips one.
Neither the chunks in which time passes nor a resume changes a bit of the result.
"""

from __future__ import annotations

import bisect
import dataclasses
import itertools
import math
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vfx.geometry.handoff.types import Solid
from vfx.pipeline.errors import FrameFailed, ShotError
from vfx.pipeline.progress import Pace
from vfx.pipeline.quantities import as_count, as_time
from vfx.pipeline.shot.frames import frames_text
from vfx.pipeline.show.plots import write_diagnostics_plot
from vfx.pipeline.work.cache import is_intact, locked, remove_file
from vfx.pipeline.work.checkpoint import FILES as CHECKPOINT_FILES
from vfx.pipeline.work.checkpoint import Checkpoint, CheckpointPair, damaged_checkpoints
from vfx.pipeline.work.diagnostics import FILE_NAME as TABLE_FILE
from vfx.pipeline.work.diagnostics import DiagnosticsTable
from vfx.pipeline.work.manifest import State
from vfx.pipeline.work.timeline import FILE_NAME as TIMELINE_FILE
from vfx.pipeline.work.timeline import Timeline
from vfx.sim.solver import Outcome, Solver, Unstable

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.job import Job
    from vfx.pipeline.stages.stage import Stage
    from vfx.pipeline.work.folder import Work

LOCK_FILE = ".sim.lock"
PLOT_FILE = "diagnostics.png"
_CHUNK_SECONDS = 0.5
_CHECKPOINT_SHARE = 0.02                 # of the time may go into writing checkpoints
_CHECKPOINT_SECONDS = (2.0, 60.0)        # shortest and longest time between two of them
_SAMPLES_PER_FRAME = 10
_PIECES = "fragments"                    # column of the history that rows of frames have


def simulate(job: Job) -> None:
    """Simulate through the last of the job's frames, from a checkpoint if there is one."""
    folder = job.work.folder_of(job.stage)
    busy = f"{folder}: another process is simulating this shot there; wait until it has ended"
    with locked(folder / LOCK_FILE, busy, job.stop.check if job.wait else None):
        job.work.refresh()
        _tell_of_stale(job)
        missing = job.todo()
        if missing:
            _Run(job, missing, job.frames[-1]).go()
            job.finish({})
            return
        for path in damaged_checkpoints(folder):
            remove_file(path)
            job.progress.say(f"sim: {path} is damaged and removed; all frames asked for are done, "
                             "more would start from the other checkpoint or the first frame")
        for path, fault in unfit_history(job.work, job.stage).items():
            job.progress.say(f"sim: {path} is {fault} and will be made again")
        if unfit_history(job.work, job.stage):
            # From a checkpoint on: its history ends there.
            _Run(job, [], _last_done(job)).go()


def _last_done(job: Job) -> int:
    """Return the last frame through which all are done."""
    states = job.work.states(job.stage, job.shot.frames)
    return list(itertools.takewhile(lambda frame: states[frame] is State.DONE, states))[-1]


def aids(shot: Shot) -> Iterable[str]:
    """Return the files of this stage that are no results."""
    return LOCK_FILE, PLOT_FILE, TABLE_FILE, TIMELINE_FILE, *CHECKPOINT_FILES


def unfit_aids(work: Work, stage: Stage) -> dict[Path, str]:
    """Return checkpoints that are damaged, and a history that is no good once all is done."""
    done = all(state is State.DONE for state in work.states(stage, work.shot.frames).values())
    return (dict.fromkeys(damaged_checkpoints(work.folder_of(stage)), "damaged")
            | (unfit_history(work, stage) if done else {}))


def unfit_history(work: Work, stage: Stage) -> dict[Path, str]:
    """Return the files of the history that are missing or not as they were written."""
    found = {}
    names = (TABLE_FILE, PLOT_FILE, *((TIMELINE_FILE,) if work.shot.solver.has_timeline else ()))
    for name in names:
        path = work.folder_of(stage) / name
        entry = work.manifest(stage).files.get(name)
        if not os.path.lexists(path):
            found[path] = "missing"
        elif entry is None or entry.fingerprint != work.fingerprint(stage, work.shot.first_frame):
            found[path] = "stale"
        elif not is_intact(path, entry.published):
            found[path] = "damaged"
    return found


def _publish_history(job: Job, table: DiagnosticsTable, timeline: Timeline) -> None:
    """Publish and list the table, the events and the plot of both."""
    shot, columns = job.shot, table.columns()
    steps = int(columns["step"].max(initial=0.0))
    # Rows at frames alone have a number of pieces.
    last = shot.first_frame + max(0, int(np.isfinite(columns.get(_PIECES, [])).sum()) - 1)
    plot = job.work.folder_of(job.stage) / PLOT_FILE
    fingerprint = str(job.work.fingerprint(job.stage, shot.first_frame))
    title = f"{shot.name}: frames {shot.first_frame}-{last}"
    if shot.solver.counts_steps:
        title += f", {steps:,} steps"
    written = {table.path: table.publish(),
               plot: write_diagnostics_plot(plot, columns, title, timeline.events)}
    if shot.solver.has_timeline:
        written[timeline.path] = timeline.publish()
    for path, published in written.items():
        job.work.record(job.stage, path, fingerprint, published, job.device.description)


def _checkpoints(job: Job) -> CheckpointPair:
    return CheckpointPair(job.work.folder_of(job.stage),
                          str(job.work.fingerprint(job.stage, job.shot.first_frame)))


def _tell_of_stale(job: Job) -> None:
    """Say what becomes of frames made from other inputs: nothing is removed before it is made."""
    states = job.work.states(job.stage, job.shot.frames)
    stale = [frame for frame, state in states.items() if state is State.STALE]
    if stale:
        verb = "is" if len(stale) == 1 else "are"
        job.progress.say(f"sim: {frames_text(stale)}, made from other settings, {verb} kept until "
                         "made anew")


class _Run:
    """One pass of a solver over the frames."""

    def __init__(self, job: Job, missing: list[int], last: int) -> None:
        folder = job.work.folder_of(job.stage)
        self._job = job
        self._missing = set(missing)
        self._last = last
        self._checkpoints = _checkpoints(job)
        self._diagnostics = DiagnosticsTable(folder)
        self._timeline = Timeline(folder)
        self._solid = Solid.from_arrays(job.read("solid", job.shot.first_frame))
        self._frame = job.shot.first_frame       # that is next
        self._pace = Pace()
        self._saved = time.monotonic()
        self._pause = _CHECKPOINT_SECONDS[0]

    def go(self) -> None:
        """Go from the last checkpoint to the last frame, then plot the diagnostics."""
        try:
            self._go_through(self._build())
        except Unstable as error:
            # The checkpoints stay as they are: the newest is of before it blew up.
            _publish_history(self._job, self._diagnostics, self._timeline)
            raise FrameFailed(
                f"sim {self._frame}: {error}\n{self._kept()}; see {self._plot_path} for how it "
                f"came about; after changing the shot, run again with:\n"
                f"  {self._job.command(None, [self._last])}") from None
        # By now the solver has given its memory back.
        _publish_history(self._job, self._diagnostics, self._timeline)

    def _build(self) -> Solver:
        """Return the solver at the first frame, having told what it has to say."""
        from vfx.sim.control.controls import make_world
        from vfx.sim.control.extent import nothing_there

        shot, say = self._job.shot, self._job.progress.say
        setup = dataclasses.replace(shot.setup, settings=shot.plan.settings)
        inputs = self._job.work.inputs
        world = make_world(self._solid, setup, inputs.densities(), inputs.courses())
        for number in world.controls.idle_regions:
            say(f"warning: sim: regions[{number}]: {nothing_there(shot.regions[number - 1])}")
        try:
            solver = shot.solver.build(self._job.device, world)
        except ValueError as error:
            raise ShotError(f"{shot.path}: {error}") from None
        for note in solver.notes():
            say(f"sim: {note}")
        return solver

    def _go_through(self, solver: Solver) -> None:
        """Take all frames up to the last."""
        self._frame = self._start(solver)
        self._report(solver)
        while self._frame <= self._last:
            self._advance(solver)
            self._take_frame(solver)
            self._frame += 1

    def _start(self, solver: Solver) -> int:
        """Restore a checkpoint, and return the frame to go to."""
        shot = self._job.shot
        wanted = min(self._missing, default=self._last)
        until = -math.inf if self._job.force else solver.moment(shot.time_of(wanted))
        restored = self._restore(solver, until)
        for path in self._checkpoints.damaged:
            self._job.progress.say(f"sim: {path} is damaged; going on without it")
        if not restored:
            if self._checkpoints.damaged or wanted > shot.first_frame:
                self._job.progress.say(f"sim: there is no checkpoint to go on from; starting "
                                       f"again at step 0, frame {shot.first_frame}")
            self._sample(solver, is_frame=True)
            return shot.first_frame
        frame = shot.first_frame + bisect.bisect_left(
            shot.frames, solver.time, key=lambda frame: solver.moment(shot.time_of(frame)))
        is_frame = solver.moment(shot.time_of(frame)) == solver.time
        place = f"which is frame {frame}" if is_frame else f"before frame {frame}"
        self._job.progress.say(f"sim: going on from a checkpoint at step {solver.step}, {place}")
        return frame

    def _restore(self, solver: Solver, until: float) -> bool:
        """Go back to the latest checkpoint that fits, not beyond a time; False where none does."""
        for checkpoint in self._checkpoints.newest_first(until):
            try:
                solver.restore(checkpoint.state)
            except ValueError as error:
                self._job.progress.say(f"sim: a checkpoint at step {checkpoint.step} does not fit "
                                       f"({error}); going on without it")
            else:
                self._diagnostics.take(checkpoint.history)
                self._timeline.take(checkpoint.timeline)
                return True
        return False

    def _advance(self, solver: Solver) -> None:
        """Go on to the next frame, with samples on the way, in chunks that end soon."""
        shot = self._job.shot
        end = solver.moment(shot.time_of(self._frame))
        for number in range(1, _SAMPLES_PER_FRAME + 1):
            sample = shot.time_of(self._frame - 1 + number / _SAMPLES_PER_FRAME)
            if solver.moment(sample) <= solver.time:
                continue
            outcome = Outcome.PAUSED
            while outcome is not Outcome.REACHED:
                if self._job.stop.wanted:
                    self._save(solver)
                self._job.stop.check()
                try:
                    outcome = solver.advance(sample, _CHUNK_SECONDS)
                finally:
                    # What led to a run that blows up is of use, too.
                    self._take_news(solver)
                if outcome is Outcome.REACHED:
                    self._sample(solver, is_frame=solver.time == end)
                if solver.time < end and time.monotonic() - self._saved > self._pause:
                    self._save(solver)
                self._report(solver)

    def _take_news(self, solver: Solver) -> None:
        """Tell what happened, and keep it: before any checkpoint, which has it then."""
        news = solver.news()
        self._timeline.add(news)
        for event in news:
            self._job.progress.say(f"sim: {event.line()}")

    def _take_frame(self, solver: Solver) -> None:
        frame, shot = self._frame, self._job.shot
        if frame in self._missing:
            since = (solver.moment(shot.time_of(frame - 1)) if frame > shot.first_frame
                     else -math.inf)
            self._job.publish(frame, solver.frame(frame, since).to_arrays())
        due = time.monotonic() - self._saved > self._pause
        if due or frame == self._last or self._job.stop.wanted:
            self._save(solver)
        self._job.stop.check()
        self._report(solver)

    def _save(self, solver: Solver) -> None:
        begun = time.monotonic()
        self._diagnostics.publish()
        if self._job.shot.solver.has_timeline:
            self._timeline.publish()
        self._checkpoints.save(Checkpoint(
            solver.time, solver.step, solver.state(), self._diagnostics.text(),
            self._timeline.text()))
        self._saved = time.monotonic()
        shortest, longest = _CHECKPOINT_SECONDS
        self._pause = min(max((self._saved - begun) / _CHECKPOINT_SHARE, shortest), longest)

    def _sample(self, solver: Solver, is_frame: bool) -> None:
        """Take a row of diagnostics, at frames with the number of pieces."""
        from vfx.geometry.pieces.lineage import count_pieces

        numbers = solver.tallies()
        if is_frame:
            numbers[_PIECES] = count_pieces(self._solid, solver.broken())
        self._diagnostics.add(solver.step, numbers)

    def _report(self, solver: Solver) -> None:
        """Tell how far it is: bonds and pieces as last sampled, for to count them takes time."""
        total = self._job.shot.time_of(self._last)
        self._pace.note(solver.step)
        counts_steps = self._job.shot.solver.counts_steps
        words = [f"{self._pace.rate:.3g} steps/s"] if self._pace.rate and counts_steps else []
        words.append(f"t = {as_time(solver.time)}")
        if (bonds := self._diagnostics.latest("bonds")) is not None:
            words.append(f"{as_count(bonds)} bonds")
        if doing := solver.doing():
            words.append(doing)
        if asleep := self._diagnostics.latest("asleep"):
            pieces = self._diagnostics.latest("rigid_pieces") or 0.0
            words.append(f"{as_count(asleep)} of {as_count(pieces)} pieces at rest")
        self._job.progress.update(
            self._frame, min(1.0, solver.time / total) if total else 0.0, ", ".join(words),
            is_even=not self._job.shot.solver.has_timeline)

    @property
    def _plot_path(self) -> Path:
        return self._job.work.folder_of(self._job.stage) / PLOT_FILE

    def _kept(self) -> str:
        """Say what there is of a run that ended before its next frame."""
        kept = range(self._job.shot.first_frame, self._frame)
        if not kept:
            return "no frame was made"
        return f"{frames_text(kept)} {'is' if len(kept) == 1 else 'are'} kept"
