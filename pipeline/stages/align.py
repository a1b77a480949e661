"""Stage align: which particles move together, and how: rigid pieces with lasting names."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import numpy as np

from vfx.pipeline.errors import PipelineError, shortage

if TYPE_CHECKING:
    from vfx.geometry.handoff.types import Motion
    from vfx.pipeline.stages.job import Job

_MOTION_FRAMES_KEPT = 8


def align_pieces(job: Job) -> None:
    """Align the particles of each frame to pieces and publish them."""
    from vfx.geometry.handoff.types import Lineage, Motion, Solid
    from vfx.geometry.pieces.align import Aligner

    frames = job.todo()
    if not frames:
        return
    solid = Solid.from_arrays(job.read("solid", job.shot.first_frame))
    lineage = Lineage.from_arrays(job.read("lineage", frames[-1]))
    density = np.array([job.shot.materials[body.material].density for body in job.shot.bodies])

    @functools.lru_cache(maxsize=_MOTION_FRAMES_KEPT)
    def read_motion(frame: int) -> Motion:
        return Motion.from_arrays(job.read("motion", frame))

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
