"""Stage align: which particles move together, and how: rigid pieces with lasting names."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vfx.pipeline.errors import DamagedFile, MissingInput, PipelineError, shortage
from vfx.pipeline.work.cache import FINGERPRINT, locked, read_npz, write_result
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.geometry.handoff.types import Lineage, Solid
    from vfx.pipeline.stages.job import Job
    from vfx.pipeline.stages.table import Stage
    from vfx.pipeline.work.folder import Work

LINEAGE_FILE = "lineage.npz"
LOCK_FILE = ".lineage.lock"
_MOTION_FRAMES_KEPT = 8


def align_fragments(job: Job) -> None:
    """Align the particles of each frame to pieces and publish them."""
    from vfx.geometry.handoff.types import Motion, Solid
    from vfx.geometry.pieces.align import Aligner

    frames = job.todo()
    if not frames:
        if find_lineage(job.work, job.stage).fault:
            follow_lineage(job)
        return
    solid = Solid.from_arrays(job.read("geometry", job.shot.first_frame))
    density = np.array([job.shot.materials[body.material].density for body in job.shot.bodies])

    lineage = _lineage_through(job, solid, job.frames[-1])

    @functools.lru_cache(maxsize=_MOTION_FRAMES_KEPT)
    def read_motion(frame: int) -> Motion:
        return Motion.from_arrays(job.read("sim", frame))

    aligner = Aligner(solid, density, lineage, read_motion,
                      transition_frames=job.shot.align.transition_frames)
    failures: dict[int, str] = {}
    for frame in job.each_frame(frames):
        try:
            job.publish(frame, aligner.align(frame).to_arrays())
        except (PipelineError, MemoryError):
            raise
        except Exception as error:
            if shortage(error) is not None:
                raise
            failures[frame] = f"{type(error).__name__}: {error}"
    job.finish(failures)


def follow_lineage(job: Job) -> None:
    """Publish the lineage through the job's last frame, and no frame.

    A farm runs this once before it shares the frames of align out.
    """
    from vfx.geometry.handoff.types import Solid

    job.progress.update(None, 0.0)
    solid = Solid.from_arrays(job.read("geometry", job.shot.first_frame))
    _lineage_through(job, solid, job.frames[-1])
    job.progress.update(None, 1.0)


@dataclass(frozen=True)
class FoundLineage:
    """The lineage of a work folder, or the ``fault`` of the one that should be there."""

    path: Path
    lineage: Lineage | None = None
    fault: str = ""              # missing, damaged or stale


def find_lineage(work: Work, stage: Stage) -> FoundLineage:
    """Return the lineage of the motion as it is now; frames that are aligned must have one."""
    from vfx.geometry.handoff.types import Lineage

    path = work.folder_of(stage) / LINEAGE_FILE
    last = max(_aligned(work, stage), default=None)
    try:
        arrays = read_npz(path)
        lineage = Lineage.from_arrays(arrays)
    except MissingInput:
        return FoundLineage(path, fault="" if last is None else "missing")
    except (DamagedFile, KeyError):
        return FoundLineage(path, fault="damaged")
    fingerprint = work.fingerprint(stage, lineage.last_frame)
    if fingerprint is None or str(arrays.get(FINGERPRINT, "")) != fingerprint:
        return FoundLineage(path, fault="" if last is None else "stale")
    if last is not None and lineage.last_frame < last:
        return FoundLineage(path, lineage, fault="stale")
    return FoundLineage(path, lineage)


def _aligned(work: Work, stage: Stage) -> list[int]:
    """Return the frames whose pieces are known."""
    return [frame for frame, state in work.states(stage, work.shot.frames).items()
            if state is State.DONE]


def _lineage_through(job: Job, solid: Solid, last: int) -> Lineage:
    """Return the lineage of all frames up to ``last``, published so that others find it.

    Who breaks off whom decides the names of pieces, so it is followed from the first frame;
    a lineage that goes on beyond ``last`` says the same of the frames before.
    """
    from vfx.geometry.pieces.lineage import build_lineage

    path = job.work.folder_of(job.stage) / LINEAGE_FILE
    with locked(path.with_name(LOCK_FILE)):
        job.work.refresh()
        found = find_lineage(job.work, job.stage)
        if found.lineage is not None and found.lineage.last_frame >= last:
            return found.lineage
        if found.fault:
            job.progress.say(f"{job.stage.name}: {path} is {found.fault} and will be made again")
        broken = ((frame, job.read("sim", frame, ["broken_edge"])["broken_edge"])
                  for frame in range(job.shot.first_frame, last + 1))
        lineage = build_lineage(solid, broken, job.shot.first_frame)
        fingerprint = str(job.work.fingerprint(job.stage, last))
        published = write_result(path, lineage.to_arrays(), fingerprint)
        job.work.record(job.stage, path, fingerprint, published, job.device.description)
    return lineage
