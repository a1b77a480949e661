"""Stage lineage: which piece broke off which, from the first frame through the last asked for.

It decides the names of pieces, so it is followed from the first frame. A farm runs it once
before it shares the frames of align out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from vfx.pipeline.work.cache import locked
from vfx.pipeline.work.manifest import State

if TYPE_CHECKING:
    from vfx.geometry.handoff.types import Array
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.job import Job

LOCK_FILE = ".lineage.lock"


def follow_lineage(job: Job) -> None:
    """Publish the lineage through the job's last frame.

    One that goes on beyond it says the same of the frames before, and is left as it is.
    """
    from vfx.geometry.handoff.types import Solid
    from vfx.geometry.pieces.cracks import with_cracks
    from vfx.geometry.pieces.lineage import build_lineage

    with locked(job.work.folder_of(job.stage) / LOCK_FILE):
        job.work.refresh()
        states = job.work.states(job.stage, job.shot.frames)
        goes_on = any(state is State.DONE and frame > job.frames[-1]
                      for frame, state in states.items())
        if goes_on or not job.todo():
            return
        job.progress.update(None, 0.0)
        solid = Solid.from_arrays(job.read("solid", job.shot.first_frame))
        torn: list[Array] = []

        def broken() -> Iterator[tuple[int, Array]]:
            for frame in job.frames:
                motion = job.read("motion", frame, ("broken_edge",), ("torn_edge",))
                torn.append(motion.get("torn_edge", np.zeros(0, np.int32)))
                yield frame, motion["broken_edge"]

        lineage = build_lineage(solid, broken(), job.shot.first_frame)
        job.publish(job.frames[-1], with_cracks(lineage, solid, torn).to_arrays())
        job.made.update(job.frames)
    job.progress.update(None, 1.0)
    job.finish({})


def aids(shot: Shot) -> Iterable[str]:
    """Return the files of this stage that are no results."""
    return (LOCK_FILE,)
