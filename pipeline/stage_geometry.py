"""Stage geometry: the bodies of the shot, divided into elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vfx.pipeline.errors import ShotError

if TYPE_CHECKING:
    from vfx.pipeline.job import Job


def build_geometry(job: Job) -> None:
    """Build the Solid of the shot and publish it."""
    from vfx.geometry.grid import build_solid

    frame = job.shot.first_frame
    if not job.todo():
        return
    job.progress.update(None, 0.0)
    try:
        solid = build_solid(job.shot.bodies)
    except ValueError as error:
        raise ShotError(f"{job.shot.path}: {error}") from None
    job.publish(frame, solid.to_arrays())
    job.progress.update(None, 1.0)
    job.finish({})
