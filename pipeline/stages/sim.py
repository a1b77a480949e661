"""Stage sim: runs the simulation from frame to frame, stoppable and resumable at any moment.

The first frame is the initial state, each other one the state at the step nearest to its time. A
frame is published before any checkpoint that lies beyond it, so a checkpoint never skips one.
Neither the chunks in which steps are done nor a resume changes a bit of the result.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vfx.pipeline.errors import FrameFailed, ShotError
from vfx.pipeline.progress import Pace
from vfx.pipeline.quantities import as_count, as_time
from vfx.pipeline.shot.frames import frames_text
from vfx.pipeline.show.plots import write_diagnostics_plot
from vfx.pipeline.work.cache import is_intact, locked, remove_file
from vfx.pipeline.work.checkpoint import Checkpoint, CheckpointPair, damaged_checkpoints
from vfx.pipeline.work.diagnostics import FILE_NAME as TABLE_FILE
from vfx.pipeline.work.diagnostics import DiagnosticsTable
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.pipeline.stages.job import Job
    from vfx.pipeline.stages.table import Stage
    from vfx.pipeline.work.folder import Work

LOCK_FILE = ".sim.lock"
PLOT_FILE = "diagnostics.png"
_CHUNK_SECONDS = 0.5
_CHECKPOINT_SHARE = 0.02                 # of the time may go into writing checkpoints
_CHECKPOINT_SECONDS = (2.0, 60.0)        # shortest and longest time between two of them
_SAMPLES_PER_FRAME = 10


def simulate(job: Job) -> None:
    """Simulate through the last of the job's frames, from a checkpoint if there is one."""
    folder = job.work.folder_of(job.stage)
    busy = f"{folder}: another process is simulating this shot there; wait until it has ended"
    with locked(folder / LOCK_FILE, busy, job.stop.check if job.wait else None):
        job.work.refresh()
        _tell_of_stale(job)
        job.frames = [frame for frame in job.shot.frames if frame <= job.frames[-1]]
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


def unfit_history(work: Work, stage: Stage) -> dict[Path, str]:
    """Return the files of the history that are missing or not as they were written."""
    found = {}
    for name in (TABLE_FILE, PLOT_FILE):
        path = work.folder_of(stage) / name
        entry = work.manifest(stage).files.get(name)
        if not os.path.lexists(path):
            found[path] = "missing"
        elif entry is None or entry.fingerprint != work.fingerprint(stage, work.shot.first_frame):
            found[path] = "stale"
        elif not is_intact(path, entry.published):
            found[path] = "damaged"
    return found


def _publish_history(job: Job, table: DiagnosticsTable) -> None:
    """Publish and list the table and its plot."""
    shot, columns = job.shot, table.columns()
    steps = int(columns["step"].max(initial=0.0))
    last = max(frame for frame in shot.frames if shot.step_of(frame) <= steps)
    plot = job.work.folder_of(job.stage) / PLOT_FILE
    fingerprint = str(job.work.fingerprint(job.stage, shot.first_frame))
    for path, published in (
            (table.path, table.publish()),
            (plot, write_diagnostics_plot(
                plot, columns, f"{shot.name}: frames {shot.first_frame}-{last}, {steps:,} steps"))):
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
    """One pass of the simulation over the frames."""

    def __init__(self, job: Job, missing: list[int], last: int) -> None:
        folder = job.work.folder_of(job.stage)
        self._job = job
        self._missing = set(missing)
        self._last = last
        self._checkpoints = _checkpoints(job)
        self._diagnostics = DiagnosticsTable(folder)
        self._simulation: Any = None
        self._solid: Any = None
        self._pace = Pace()
        self._saved = time.monotonic()
        self._pause = _CHECKPOINT_SECONDS[0]
        self._steps_per_chunk = 1
        self._frame_steps = {job.shot.step_of(frame) for frame in job.shot.frames}

    def go(self) -> None:
        """Step from the last checkpoint to the last frame, then plot the diagnostics."""
        from vfx.sim.bonds.simulate import Unstable

        shot = self._job.shot
        frame = shot.first_frame
        try:
            frame = self._start()
            self._report(self._simulation.step)
            while frame <= self._last:
                self._advance_to(shot.step_of(frame))
                self._take_frame(frame)
                frame += 1
        except Unstable as error:
            # The checkpoints stay as they are: the newest is of before it blew up.
            self._publish_history()
            raise FrameFailed(
                f"sim {frame}: {error}\n{self._kept(frame)}; see {self._plot_path} for how it "
                f"came about; after changing the shot, run again with:\n"
                f"  {self._job.command(None, [self._last])}") from None
        self._publish_history()

    def _start(self) -> int:
        """Build the simulation, restore a checkpoint, and return the frame to go to."""
        from vfx.geometry.handoff.types import Solid
        from vfx.sim.bonds.simulate import Simulation
        from vfx.sim.control.extent import nothing_there

        shot = self._job.shot
        self._solid = Solid.from_arrays(self._job.read("geometry", shot.first_frame))
        try:
            self._simulation = Simulation(
                self._job.device, self._solid, shot.materials,
                dataclasses.replace(shot.solver, timestep=shot.timestep), shot.floor,
                shot.projectiles, shot.weakening, shot.bodies, colliders=shot.colliders,
                regions=shot.regions, cracks=shot.cracks, images=self._job.work.densities())
            self._simulation.refuse_step()
            for number in self._simulation.idle_regions:
                self._job.progress.say(f"warning: sim: regions[{number}]: "
                                       f"{nothing_there(shot.regions[number - 1])}")
            for number in self._simulation.idle_weakening:
                self._job.progress.say(f"sim: weakening[{number}] meets no body and does nothing; "
                                       "see its origin, length and points")
        except ValueError as error:
            raise ShotError(f"{shot.path}: {error}") from None
        wanted = min(self._missing, default=self._last)
        step = self._restore(until=-1 if self._job.force else shot.step_of(wanted))
        for path in self._checkpoints.damaged:
            self._job.progress.say(f"sim: {path} is damaged; going on without it")
        if step is None:
            if self._checkpoints.damaged or wanted > shot.first_frame:
                self._job.progress.say(f"sim: there is no checkpoint to go on from; starting "
                                       f"again at step 0, frame {shot.first_frame}")
            self._sample()
            return shot.first_frame
        frame = next(frame for frame in shot.frames if shot.step_of(frame) >= step)
        is_frame = shot.step_of(frame) == step
        place = f"which is frame {frame}" if is_frame else f"before frame {frame}"
        self._job.progress.say(f"sim: going on from a checkpoint at step {step}, {place}")
        return frame

    def _restore(self, until: int) -> int | None:
        """Go back to the latest checkpoint that fits; return its step, None where none does."""
        for checkpoint in self._checkpoints.newest_first(until):
            try:
                self._simulation.restore(checkpoint.state)
            except ValueError as error:
                self._job.progress.say(f"sim: a checkpoint at step {checkpoint.step} does not fit "
                                       f"({error}); going on without it")
            else:
                self._diagnostics.take(checkpoint.history)
                return checkpoint.step
        return None

    def _advance_to(self, step: int) -> None:
        """Do the steps up to ``step`` in chunks short enough to be stopped between."""
        while (now := self._simulation.step) < step:
            if self._job.stop.wanted:
                self._save()
            self._job.stop.check()
            sample = self._next_sample(now)
            goal = min(step, sample, now + self._steps_per_chunk)
            begun = time.monotonic()
            self._simulation.advance(goal - now)
            pace = (time.monotonic() - begun) / (goal - now)
            self._steps_per_chunk = max(1, min(2 * self._steps_per_chunk,
                                               int(_CHUNK_SECONDS / max(pace, 1e-9))))
            if goal == sample:
                self._sample()
            if goal < step and time.monotonic() - self._saved > self._pause:
                self._save()
            self._report(goal)

    def _take_frame(self, frame: int) -> None:
        if frame in self._missing:
            shot = self._job.shot
            since = shot.step_of(frame - 1) if frame > shot.first_frame else -1
            self._job.publish(frame, self._simulation.frame(frame, since).to_arrays())
        due = time.monotonic() - self._saved > self._pause
        if due or frame == self._last or self._job.stop.wanted:
            self._save()
        self._job.stop.check()
        self._report(self._simulation.step)

    def _save(self) -> None:
        begun = time.monotonic()
        self._diagnostics.publish()
        self._checkpoints.save(Checkpoint(
            self._simulation.step, self._simulation.state(), self._diagnostics.text()))
        self._saved = time.monotonic()
        shortest, longest = _CHECKPOINT_SECONDS
        self._pause = min(max((self._saved - begun) / _CHECKPOINT_SHARE, shortest), longest)

    def _next_sample(self, step: int) -> int:
        """Return the first step after ``step`` at which diagnostics are taken."""
        shot = self._job.shot
        span = shot.frame_time / _SAMPLES_PER_FRAME
        number = int(step * shot.timestep / span)
        samples = (shot.step_of(shot.first_frame + k / _SAMPLES_PER_FRAME)
                   for k in itertools.count(number))
        return next(sample for sample in samples if sample > step)

    def _sample(self) -> None:
        """Take a row of diagnostics, at frames with the number of fragments."""
        from vfx.geometry.pieces.lineage import count_fragments

        step = self._simulation.step
        numbers = self._simulation.diagnostics()
        if step in self._frame_steps:
            broken, _ = self._simulation.broken_edges(-1)
            numbers["fragments"] = count_fragments(self._solid, broken)
        self._diagnostics.add(step, numbers)

    def _report(self, step: int) -> None:
        """Tell how far it is: the bonds as last sampled, for to count them takes time."""
        shot = self._job.shot
        total = max(1, shot.step_of(self._last))
        frame = next(frame for frame in shot.frames if shot.step_of(frame) >= step)
        self._pace.note(step)
        words = [f"{self._pace.rate:.3g} steps/s"] if self._pace.rate else []
        words.append(f"t = {as_time(step * shot.timestep)}")
        if (bonds := self._diagnostics.latest("bonds")) is not None:
            words.append(f"{as_count(bonds)} bonds")
        self._job.progress.update(frame, step / total, ", ".join(words))

    def _publish_history(self) -> None:
        """Write table and plot; by then the simulation gives its memory back."""
        self._simulation = None
        _publish_history(self._job, self._diagnostics)

    @property
    def _plot_path(self) -> Path:
        return self._job.work.folder_of(self._job.stage) / PLOT_FILE

    def _kept(self, frame: int) -> str:
        """Say what there is of a run that ended before ``frame``."""
        if frame == self._job.shot.first_frame:
            return "no frame was made"
        kept = range(self._job.shot.first_frame, frame)
        return f"{frames_text(kept)} {'is' if len(kept) == 1 else 'are'} kept"
