"""Stage render: pieces, camera and light to OpenEXR frames.

Each frame carries the fingerprint of what it was made from in its header, under
``vfx/configHash``: a frame tells by itself whether it is up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from vfx.pipeline.cache import publish
from vfx.pipeline.errors import DamagedFile, PipelineError

if TYPE_CHECKING:
    from vfx.geometry.handoff import Faces, Solid
    from vfx.pipeline.cache import Published
    from vfx.pipeline.job import Job

CONFIG_HASH = "vfx/configHash"


def render_frames(job: Job) -> None:
    """Render the frames of a job and publish them."""
    from vfx.geometry.faces import all_faces
    from vfx.geometry.handoff import Solid

    frames = job.todo()
    if not frames:
        return
    solid = Solid.from_arrays(job.read("geometry", job.shot.first_frame))
    faces = all_faces(solid)
    failures: dict[int, str] = {}
    for frame in job.each_frame(frames):
        share = 1.0 / len(frames)
        try:
            published = _render(job, solid, faces, frame, frames.index(frame) * share, share)
            job.record(frame, published)
        except PipelineError:
            raise
        except Exception as error:
            failures[frame] = f"{type(error).__name__}: {error}"
    job.finish(failures)


def read_config_hash(path: Path) -> str:
    """Return the fingerprint in a frame's header, having read all its pixels.

    A truncated EXR still opens and shows its header; only the pixels tell.
    """
    from vfx.raytrace.exr import read_exr

    try:
        _, header = read_exr(path)
    except Exception as error:
        raise DamagedFile(f"{path}: damaged: {error}") from None
    return str(header.get(CONFIG_HASH, ""))


def _render(
    job: Job, solid: Solid, faces: Faces, frame: int, start: float, share: float
) -> Published:
    from vfx.geometry.handoff import FragmentsFrame
    from vfx.raytrace.camera import frame_header
    from vfx.raytrace.exr import write_exr
    from vfx.raytrace.render import render_frame

    def report(fraction: float) -> None:
        job.stop.check()
        job.progress.update(frame, start + share * fraction)

    shot = job.shot
    fragments = FragmentsFrame.from_arrays(job.read("align", frame))
    channels = render_frame(
        job.device, solid, fragments, shot.camera, shot.light, shot.looks, shot.floor,
        shot.floor_look, shot.film, job.work.environment(), progress=report, faces=faces,
        area_lights=shot.area_lights, texture=job.work.texture())
    header = frame_header(shot.camera, shot.film, shot.fps, frame)
    header[CONFIG_HASH] = job.work.fingerprint(job.stage, frame)
    header["vfx/shot"] = shot.name
    header["vfx/device"] = job.device.description
    return publish(job.work.path(job.stage, frame),
                   lambda temporary: write_exr(temporary, channels, header))
