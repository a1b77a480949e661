"""Stage geometry: the bodies of the shot, divided into elements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vfx.pipeline.errors import ShotError

if TYPE_CHECKING:
    from vfx.pipeline.stages.job import Job


def build_geometry(job: Job) -> None:
    """Build the Solid of the shot and publish it."""
    from vfx.geometry.divide.build import build_solid

    frame = job.shot.first_frame
    if not job.todo():
        return
    job.progress.update(None, 0.0)

    def report(what: str, share: float) -> None:
        job.stop.check()
        job.progress.update(None, 0.98 * share, what)

    try:
        built = build_solid(job.device, job.shot.placed_bodies, progress=report)
    except ValueError as error:
        raise ShotError(f"{job.shot.path}: {error}") from None
    for name, notes in built.notes.items():
        for note in notes:
            job.progress.say(f"geometry: {name}: {note}")
    job.publish(frame, built.solid.to_arrays())
    job.progress.update(None, 1.0)
    job.finish({})
