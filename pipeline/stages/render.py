"""Stage render: pieces, camera and light to OpenEXR frames.

Each frame carries the fingerprint of what it was made from in its header, under
``vfx/configHash``, its place, and a seal over all its bytes: it tells by itself whether it is up
to date and as it was written. Its Cryptomattes are a sequence of their own,
``<shot>_crypto.NNNN.exr``, without colour attributes: programs that found some would convert the
ids as if they were colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vfx.pipeline.errors import DamagedFile, PipelineError, shortage
from vfx.pipeline.shot.colliders import collider_props
from vfx.pipeline.shot.inputs import no_uv, surface_textures
from vfx.pipeline.work.cache import publish
from vfx.pipeline.work.seal import BLANK_SEAL, has_good_seal, place_of, set_seal

if TYPE_CHECKING:
    from vfx.geometry.handoff.types import Array, Faces, Pieces, Solid
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.job import Job
    from vfx.pipeline.work.cache import Published
    from vfx.raytrace.camera.motion import Neighbors

CONFIG_HASH = "vfx/configHash"
PLACE = "vfx/place"
SEAL = "vfx/seal"
_COLOR_ATTRIBUTES = ("chromaticities", "colorInteropID")


def render_frames(job: Job) -> None:
    """Render the frames of a job and publish them."""
    from vfx.geometry.handoff.faces import all_faces
    from vfx.geometry.handoff.types import Solid

    frames = job.todo()
    if not frames:
        return
    solid = Solid.from_arrays(job.read("solid", job.shot.first_frame))
    faces = all_faces(solid)
    check_solid_uv(job.shot, solid, faces)
    failures: dict[int, str] = {}
    for frame in job.each_frame(frames):
        share = 1.0 / len(frames)
        try:
            published = _render(job, solid, faces, frame, frames.index(frame) * share, share)
            job.record(frame, published)
        except (PipelineError, MemoryError):
            raise
        except Exception as error:
            if shortage(error) is not None:
                raise
            failures[frame] = f"{type(error).__name__}: {error}"
    job.finish(failures)


def read_config_hash(path: Path) -> str:
    """Return the fingerprint in a frame's header, having read all of the file.

    A truncated EXR still opens and shows its header; only its pixels or its seal tell. One
    without a seal, of a version before, vouches for nothing.
    """
    from vfx.raytrace.film.exr import read_exr

    try:
        sealed = has_good_seal(path)
        if sealed is False:
            raise ValueError("its bytes are not those that were written")
        _, header = read_exr(path)
    except (OSError, ValueError) as error:
        raise DamagedFile(f"{path}: damaged: {error}") from None
    if sealed and header.get(PLACE) != place_of(path):
        raise DamagedFile(f"{path}: damaged: it is the file {header.get(PLACE)} in the place of "
                          "another")
    return str(header.get(CONFIG_HASH, "")) if sealed else ""


def near_frames(shot: Shot, frame: int) -> list[int]:
    """Return the frames beside one whose pieces its picture takes: for vectors and blur."""
    near = []
    is_blurred = shot.camera.shutter_angle > 0.0
    goes_on = is_blurred or "forward" in shot.film.passes
    # Behind the last frame a ball goes on as it came.
    ball_coasts = goes_on and bool(shot.projectiles) and frame == shot.last_frame
    if frame > shot.first_frame and (
            ball_coasts or (is_blurred and shot.camera.shutter == "centred")):
        near.append(frame - 1)
    if goes_on and frame < shot.last_frame:
        near.append(frame + 1)
    return near


def check_solid_uv(shot: Shot, solid: Solid, faces: Faces) -> None:
    """Refuse a texture on a body whose faces know no place in it."""
    import numpy as np

    textures = surface_textures(shot)
    if not textures:
        return
    owner = np.repeat(solid.body[faces.side[faces.n_inner:, 0]],
                      np.diff(faces.start[faces.n_inner:]))
    dressed = np.bincount(owner, faces.uv.any(axis=1), minlength=len(shot.bodies)) > 0
    for i, body in enumerate(shot.bodies):
        if body.material in textures and not dressed[i]:
            raise no_uv(shot, i)


def matte_name(shot: Shot, frame: int) -> str | None:
    """Return the file name of a frame's Cryptomattes, None where it has none."""
    return f"{shot.name}_crypto.{frame:04d}.exr" if "cryptomatte" in shot.film.passes else None


def _render(
    job: Job, solid: Solid, faces: Faces, frame: int, start: float, share: float
) -> Published:
    from vfx.raytrace.camera.camera import frame_header
    from vfx.raytrace.render import render_picture

    def report(fraction: float) -> None:
        job.stop.check()
        job.progress.update(frame, start + share * fraction)

    shot, inputs = job.shot, job.work.inputs
    path = inputs.camera()
    picture = render_picture(
        job.device, solid, _pieces(job, frame), path, shot.light, shot.looks, shot.floor,
        shot.floor_look, shot.film, inputs.environment(), progress=report, faces=faces,
        area_lights=shot.area_lights, texture=inputs.texture(), images=inputs.images(),
        near=_near(job, frame), props=collider_props(shot))
    header: dict[str, Any] = frame_header(path(frame), shot.film, shot.fps, frame)
    header[CONFIG_HASH] = job.work.fingerprint(job.stage, frame)
    header["vfx/shot"] = shot.name
    header["vfx/device"] = job.device.description
    if (name := matte_name(shot, frame)) is not None:
        matte_header = {key: value for key, value in header.items()
                        if key not in _COLOR_ATTRIBUTES} | picture.matte_header
        # First, so that a frame that is there has its mattes.
        beside = job.work.folder_of(job.stage) / name
        mattes = _publish(beside, picture.matte_channels, matte_header, exact=True)
        job.record(frame, mattes, beside)
    header["vfx/samples"] = picture.samples
    return _publish(job.work.path(job.stage, frame), picture.channels, header)


def _publish(path: Path, channels: Mapping[str, Array], header: Mapping[str, Any], *,
             exact: bool = False) -> Published:
    """Publish a picture that says which one it is and vouches for all its bytes."""
    from vfx.raytrace.film.exr import write_exr

    def write(temporary: Path) -> None:
        write_exr(temporary, channels, {**header, PLACE: place_of(path), SEAL: BLANK_SEAL},
                  exact=exact)
        set_seal(temporary)

    return publish(path, write)


def _near(job: Job, frame: int) -> Neighbors:
    """Return the frames beside one, as far as its picture takes them."""
    read = {near: _pieces(job, near) for near in near_frames(job.shot, frame)}
    return neighbors(job.shot, frame, read.get(frame - 1), read.get(frame + 1))


def neighbors(shot: Shot, frame: int, previous: Pieces | None,
              following: Pieces | None) -> Neighbors:
    """Return the frames beside one, and how time passes from it."""
    from vfx.raytrace.camera.motion import Neighbors

    if not shot.clock.time_keys:
        return Neighbors(previous, following, shot.frame_time)
    begin = shot.time_of(frame)
    return Neighbors(previous, following, shot.speed_at(frame) / shot.fps,
                     lambda time: shot.time_of(frame + time) - begin)


def _pieces(job: Job, frame: int) -> Pieces:
    from vfx.geometry.handoff.types import Pieces

    return Pieces.from_arrays(job.read("fragments", frame))
