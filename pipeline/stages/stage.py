"""What a stage is: a function, what it takes, the files it gives, and what it needs to run.

The stages themselves stand in :mod:`vfx.pipeline.stages.table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vfx.pipeline.work.cache import read_fingerprint

if TYPE_CHECKING:
    from vfx.pipeline.shot.checks import Check
    from vfx.pipeline.shot.inputs import Inputs
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.job import Job
    from vfx.pipeline.work.folder import Work
    from vfx.pipeline.work.manifest import State

#: Which frames of a result are taken to make some frames.
Frames = Callable[["Shot", Sequence[int]], Iterable[int]]


@dataclass(frozen=True, eq=False)
class Take:
    """Something that a stage takes, by the ``name`` it has in fingerprints.

    ``value`` returns what of it counts for a frame, as JSON can hold it, and None while it is
    not there; a take without one changes no result. Where it is the result of a ``stage``,
    ``frames`` returns which frames of that are taken to make some.
    """

    name: str
    value: Callable[[Work, int], Any] | None
    stage: Stage | None = None
    frames: Frames = lambda shot, frames: frames


@dataclass(frozen=True, eq=False)
class Stage:
    """A step of the pipeline.

    ``run`` makes the frames of a job; it may return what to say of it when "done" says too
    little. ``file_name`` has ``{frame}`` if there is one file a frame.
    """

    name: str
    version: int
    run: Callable[[Job], str | None]
    takes: tuple[Take, ...]
    gives: str
    file_name: str

    #: Folder of its files, by default its name.
    folder_name: str = ""
    #: Returns the fingerprint that a file carries in itself, having read it whole.
    recognise: Callable[[Path], str] = read_fingerprint
    #: Names a second file of a frame, without which it is not done.
    beside: Callable[[Shot, int], str | None] | None = None
    #: Returns which frames are done, of a stage that vouches for its files by no fingerprint.
    find_states: Callable[[Work, Stage, Sequence[int]], dict[int, State]] | None = None
    #: Names files of its own that are no results.
    aids: Callable[[Shot], Iterable[str]] = lambda shot: ()
    #: Returns which of these should be made again, and why: missing, damaged or stale.
    unfit_aids: Callable[[Work, Stage], dict[Path, str]] = lambda work, stage: {}

    #: Whether it makes all frames through the last that is asked for.
    is_through: bool = False
    #: Stages that a run of it does first, as parts of it.
    begins_with: tuple[Stage, ...] = ()
    #: Whether it looks at results that are no good itself, and says what is wrong with them.
    judges_inputs: bool = False
    #: Whether kernels run.
    uses_device: bool = True
    #: Whether it fills a machine: all cores, or a GPU.
    is_heavy: bool = False
    #: Whether one process alone can be at it; others wait or give up.
    is_exclusive: bool = False

    #: What is checked before it runs.
    checks: tuple[Check, ...] = ()
    #: Return what of the shot will probably not come out as it was meant.
    warnings: tuple[Callable[[Inputs], list[str]], ...] = ()
    #: Returns about how many bytes it writes for a number of frames.
    room: Callable[[Shot, int], int] = lambda shot, n_frames: 0

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return self.folder_name or self.name

    @property
    def has_file_a_frame(self) -> bool:
        """Whether it makes a file for each frame."""
        return "{frame" in self.file_name

    @property
    def is_per_frame(self) -> bool:
        """Whether a frame can be done while others are not."""
        return self.has_file_a_frame or self.is_through or self.find_states is not None

    @property
    def is_shared_out(self) -> bool:
        """Whether its frames can be made in any order by any number of processes."""
        return self.has_file_a_frame and not self.is_through

    def giver(self, result: str) -> Stage:
        """Return the stage that gives a result this one takes."""
        return next(take.stage for take in self.takes
                    if take.stage is not None and take.stage.gives == result)


def settings(name: str, of_shot: Callable[[Shot], Any]) -> Take:
    """Return a take of settings of the shot."""
    return Take(name, lambda work, frame: of_shot(work.shot))


def files(name: str, hashes: Callable[[Inputs], Any]) -> Take:
    """Return a take of files that the shot names."""
    return Take(name, lambda work, frame: hashes(work.inputs))


def result_of(stage: Stage) -> Take:
    """Return a take of the result of a stage for the same frame."""
    return Take(stage.gives, lambda work, frame: work.result_hash(stage, frame), stage)


def result_so_far(stage: Stage) -> Take:
    """Return a take of all results of a stage up to a frame."""
    return Take(f"{stage.gives} so far", lambda work, frame: work.history_hash(stage, frame),
                stage, through_last)


def result_beside(stage: Stage, near: Callable[[Shot, int], list[int]]) -> Take:
    """Return a take of the results of a stage in the frames beside one."""
    def value(work: Work, frame: int) -> list[str | None] | None:
        hashes = [work.result_hash(stage, each) for each in near(work.shot, frame)]
        return None if None in hashes else hashes

    return Take(f"{stage.gives} beside", value, stage, lambda shot, frames: [
        each for frame in frames for each in near(shot, frame)])


def guide_from(stage: Stage) -> Take:
    """Return a take that follows from what else is taken: it changes no result."""
    return Take(stage.gives, None, stage)


def through_last(shot: Shot, frames: Sequence[int]) -> range:
    """Return all frames of a shot through the last of some."""
    return range(shot.first_frame, max(frames) + 1)


def upstream(stage: Stage, shot: Shot, frames: Sequence[int]) -> dict[Stage, list[int]]:
    """Return the stages on whose results a stage stands, first to last, with the frames of each.

    Of a guide only those stages stand on it that take it themselves.
    """
    found: dict[Stage, set[int]] = {}

    def add(taking: Stage, wanted: Sequence[int]) -> None:
        for take in taking.takes:
            if take.stage is None or (take.value is None and taking is not stage):
                continue
            taken = sorted(set(take.frames(shot, wanted)))
            if taken:
                add(take.stage, taken)
                found.setdefault(take.stage, set()).update(taken)

    add(stage, frames)
    return {each: sorted(taken) for each, taken in found.items()}


def frames_of(stages: Sequence[Stage], shot: Shot, frames: Sequence[int]) -> dict[
        Stage, list[int]]:
    """Return which frames each of some stages has to make, so that the last ones make ``frames``.

    A picture takes the pieces of frames beside it, too.
    """
    wanted = {stage: set(frames) for stage in stages}
    for stage in reversed(stages):
        if stage.is_through:
            wanted[stage].update(through_last(shot, list(wanted[stage])))
        for take in stage.takes:
            if take.stage in wanted:
                wanted[take.stage].update(take.frames(shot, sorted(wanted[stage])))
    return {stage: sorted(listed) for stage, listed in wanted.items()}
