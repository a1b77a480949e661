"""One run of one stage: what to make, on what, and how to tell of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from vfx.pipeline.errors import DamagedFile, FrameFailed, MissingInput
from vfx.pipeline.progress import Progress, StopSignals
from vfx.pipeline.shot.frames import format_frames
from vfx.pipeline.stages.stage import Stage, upstream
from vfx.pipeline.work.cache import Arrays, Published, read_npz, write_result
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.device import Device
    from vfx.pipeline.shot.shot_file import Shot


@dataclass
class Job:
    """A stage to run for some frames; ``arguments`` are repeated in commands shown to the user."""

    stage: Stage
    work: Work
    opened: Device | None            # None where no kernels run
    frames: list[int]
    force: bool
    progress: Progress
    stop: StopSignals
    arguments: tuple[str, ...] = ()
    wait: bool = False               # for another process that makes the same, or refuse
    made: set[int] = field(default_factory=set)      # frames published so far

    @property
    def shot(self) -> Shot:
        """The shot that is made."""
        return self.work.shot

    @property
    def device(self) -> Device:
        """The device on which the stage's kernels run."""
        assert self.opened is not None, "a stage that runs kernels was given a device"
        return self.opened

    @property
    def place(self) -> str:
        """What the stage runs on, in a word or two."""
        return "host" if self.opened is None else self.opened.description

    def todo(self) -> list[int]:
        """Return the frames of this job that must be made; say what is damaged."""
        states = self.work.states(self.stage, self.frames)
        damaged = [frame for frame, state in states.items() if state is State.DAMAGED]
        for frame in damaged:
            self.progress.say(f"{self.stage.name}: {self.work.unfit_path(self.stage, frame)} is "
                              "damaged and will be made again")
        return [frame for frame, state in states.items()
                if self.force or state is not State.DONE]

    def read(self, result: str, frame: int, names: Iterable[str] | None = None,
             optional: Iterable[str] = ()) -> Arrays:
        """Read a result that the stage takes; raise with the command that remakes a bad one."""
        stage = self.stage.giver(result)
        path = self.work.path(stage, frame)
        try:
            return read_npz(path, names, optional)
        except (DamagedFile, MissingInput) as error:
            raise MissingInput(f"{error}; make it again with:\n"
                               f"  {self.command(stage, [frame])}") from None

    def publish(self, frame: int, arrays: Arrays) -> Published:
        """Publish a result of this stage as npz and enter it into the manifest."""
        path = self.work.path(self.stage, frame)
        fingerprint = str(self.work.fingerprint(self.stage, frame))
        published = write_result(path, arrays, fingerprint)
        self.record(frame, published)
        return published

    def record(self, frame: int, published: Published, path: Path | None = None) -> None:
        """Enter the file of a frame, or another ``path`` that belongs to it, into the manifest."""
        fingerprint = self.work.fingerprint(self.stage, frame)
        assert fingerprint is not None, "the inputs were checked before the stage began"
        self.work.record(self.stage, path or self.work.path(self.stage, frame), fingerprint,
                         published, self.place)
        if path is None:
            self.made.add(frame)

    def command(self, stage: Stage | None = None, frames: Iterable[int] = ()) -> str:
        """Return the command that runs a stage (by default this one) for some frames."""
        stage = stage or self.stage
        words = ["vfx", "stage", stage.name, str(self.shot.path)]
        if stage.is_per_frame and (listed := format_frames(frames)):
            words += ["--frames", listed]
        return " ".join(shlex.quote(word) for word in (*words, *self.arguments))

    def missing_inputs(self) -> str | None:
        """Return the sentence that says which upstream stage has to run first, or None."""
        if self.stage.judges_inputs and self.work.folder.exists():
            return None
        for stage, frames in upstream(self.stage, self.shot, self.frames).items():
            bad: dict[State, list[int]] = {}
            for frame, state in self.work.states(stage, frames).items():
                if state is not State.DONE:
                    bad.setdefault(state, []).append(frame)
            if bad:
                what = "; ".join(
                    f"{state.value}: {format_frames(listed)}" if stage.is_per_frame
                    else state.value for state, listed in bad.items())
                wanted = sorted(frame for listed in bad.values() for frame in listed)
                return (f"{self.stage.name} needs the result of {stage.name}, which is not done "
                        f"({what}); run first:\n  {self.command(stage, wanted)}")
        return None

    def each_frame(self, frames: list[int]) -> Iterable[int]:
        """Yield frames one by one with progress, between which the run can be stopped."""
        for position, frame in enumerate(frames):
            self.stop.check()
            self.progress.update(frame, position / len(frames))
            yield frame
        if frames:
            self.progress.update(frames[-1], 1.0)

    def finish(self, failures: dict[int, str]) -> None:
        """Raise FrameFailed unless every frame of the job is there and whole."""
        self.work.refresh()
        states = self.work.states(self.stage, self.frames)
        bad = [frame for frame, state in states.items()
               if state is not State.DONE and frame not in failures]
        lines = [f"{self.stage.name} {frame}: {reason}" for frame, reason in failures.items()]
        lines += [f"{self.stage.name} {frame}: {states[frame].value} after the run"
                  for frame in bad]
        if lines:
            frames = sorted([*failures, *bad])
            raise FrameFailed("\n".join(lines) + f"\nrun again with:\n  "
                              f"{self.command(self.stage, frames)}")


def default_work_folder(shot_name: str) -> Path:
    """Where a shot's results go unless --work says otherwise."""
    return Path("work") / shot_name
