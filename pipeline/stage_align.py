"""Stage align: which particles move together, and how: rigid pieces with lasting names."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vfx.pipeline.cache import FINGERPRINT, is_whole, locked, read_npz, write_npz
from vfx.pipeline.errors import DamagedFile, MissingInput, PipelineError

if TYPE_CHECKING:
    from vfx.geometry.handoff import Lineage, Solid
    from vfx.pipeline.job import Job

LINEAGE_FILE = "lineage.npz"
LOCK_FILE = ".lineage.lock"
_MOTION_FRAMES_KEPT = 8


def align_fragments(job: Job) -> None:
    """Align the particles of each frame to pieces and publish them."""
    from vfx.geometry.align import Aligner
    from vfx.geometry.handoff import MotionFrame, Solid

    frames = job.todo()
    if not frames:
        _mend_lineage(job)
        return
    solid = Solid.from_arrays(job.read("geometry", job.shot.first_frame))
    density = np.array([job.shot.materials[body.material].density for body in job.shot.bodies])

    lineage = _lineage_through(job, solid, frames[-1])

    @functools.lru_cache(maxsize=_MOTION_FRAMES_KEPT)
    def read_motion(frame: int) -> MotionFrame:
        return MotionFrame.from_arrays(job.read("sim", frame))

    aligner = Aligner(solid, density, lineage, read_motion,
                      transition_frames=job.shot.align.transition_frames)
    failures: dict[int, str] = {}
    for frame in job.each_frame(frames):
        try:
            job.publish(frame, aligner.align(frame).to_arrays())
        except (PipelineError, MemoryError):
            raise
        except Exception as error:
            failures[frame] = f"{type(error).__name__}: {error}"
    job.finish(failures)


def follow_lineage(job: Job) -> None:
    """Publish the lineage through the job's last frame, and no frame.

    A farm runs this once before it shares the frames of align out.
    """
    from vfx.geometry.handoff import Solid

    job.progress.update(None, 0.0)
    solid = Solid.from_arrays(job.read("geometry", job.shot.first_frame))
    _lineage_through(job, solid, job.frames[-1])
    job.progress.update(None, 1.0)


def _lineage_through(job: Job, solid: Solid, last: int) -> Lineage:
    """Return the lineage of all frames up to ``last``, published so that others find it.

    Who breaks off whom decides the names of pieces, so it is followed from the first frame;
    a lineage that goes on beyond ``last`` says the same of the frames before.
    """
    from vfx.geometry.lineage import build_lineage

    path = job.work.folder_of(job.stage) / LINEAGE_FILE
    with locked(path.with_name(LOCK_FILE)):
        job.work.refresh()
        known = _read_lineage(job)
        if known is not None and known.last_frame >= last:
            return known
        broken = ((frame, job.read("sim", frame, ["broken_edge"])["broken_edge"])
                  for frame in range(job.shot.first_frame, last + 1))
        lineage = build_lineage(solid, broken, job.shot.first_frame)
        fingerprint = str(job.work.fingerprint(job.stage, last))
        published = write_npz(path, {**lineage.to_arrays(), FINGERPRINT: np.array(fingerprint)})
        job.work.record(job.stage, path, fingerprint, published, job.device.description)
    return lineage


def damaged_lineage(folder: Path) -> list[Path]:
    """Return the lineage file of an align folder if it is there but not whole."""
    path = folder / LINEAGE_FILE
    return [path] if path.exists() and not is_whole(path) else []


def _mend_lineage(job: Job) -> None:
    """Make a damaged lineage again though no frame is missing: later frames build on it."""
    from vfx.geometry.handoff import Solid

    if damaged_lineage(job.work.folder_of(job.stage)):
        solid = Solid.from_arrays(job.read("geometry", job.shot.first_frame))
        _lineage_through(job, solid, job.frames[-1])


def _read_lineage(job: Job) -> Lineage | None:
    """Return the published lineage if it belongs to the motion as it is now."""
    from vfx.geometry.handoff import Lineage

    path = job.work.folder_of(job.stage) / LINEAGE_FILE
    try:
        arrays = read_npz(path)
        lineage = Lineage.from_arrays(arrays)
    except MissingInput:
        return None
    except (DamagedFile, KeyError):
        job.progress.say(f"{job.stage.name}: {path} is damaged and will be made again")
        return None
    carried = str(arrays.get(FINGERPRINT, ""))
    if carried != job.work.fingerprint(job.stage, lineage.last_frame):
        return None
    return lineage
