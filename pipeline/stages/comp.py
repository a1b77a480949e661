"""Stage comp: nothing leaves for comp before every pixel of it has been read.

Frames that are missing, stale, truncated, unlike the others or not finite are named, and the
stage fails. Of a good sequence it writes what the next desk needs: a manifest, checksums that
``sha256sum -c`` takes, and scripts that load all of it in Nuke and in Blender.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vfx.pipeline.errors import FrameFailed, MissingInput
from vfx.pipeline.shot.frames import format_frames
from vfx.pipeline.stages.comp_scripts import blender_script, nuke_script
from vfx.pipeline.stages.render import matte_name
from vfx.pipeline.stages.stage import Stage, upstream
from vfx.pipeline.work.cache import bytes_hash, is_intact, publish_bytes, remove_file
from vfx.pipeline.work.manifest import FILE_NAME as MANIFEST_FILE
from vfx.pipeline.work.manifest import State
from vfx.pipeline.work.seal import read_regular

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.job import Job
    from vfx.pipeline.work.folder import Work

HANDOFF_FILE = "handoff.json"
CHECKSUM_FILE = "checksums.sha256"
VERSION = 2
_COLOR_NAMES = {"acescg": "ACEScg", "linear-rec709": "linear Rec.709"}
_PASSES = {
    "beauty": "what the camera sees, linear; A is the coverage",
    "depth": "distance along the camera's axis [m], 1e10 where there is nothing",
    "N": "normal in the world",
    "P": "position in the world [m]",
    "albedo": "surface colour, linear",
    "diffuse": "light from the first surface's diffuse part",
    "specular": "light that the first surface reflects",
    "refraction": "light through glass",
    "shadow": "share of the light that does not arrive",
    "fragment": "number of the piece, -1 for all else",
    "forward": "motion to the next frame [pixels]",
    "damage": "broken share of the bonds, 0 to 1",
    "mask": "coverage by the old surface, and by broken faces",
}


@dataclass(frozen=True)
class _Picture:
    """One file, read whole."""

    channels: dict[str, npt.NDArray[Any]]
    header: dict[str, Any]
    checksum: str
    hash: str
    bytes: int


@dataclass
class Footage:
    """One sequence of files: ``<name>.NNNN.exr``, alike but for their pixels."""

    name: str
    channels: dict[str, str] = field(default_factory=dict)       # name -> half, float or uint
    header: dict[str, Any] = field(default_factory=dict)         # of its first frame
    size: tuple[int, int] = (0, 0)                               # width, height of the data
    low: dict[str, float] = field(default_factory=dict)          # least value of a channel
    high: dict[str, float] = field(default_factory=dict)
    checksum: dict[int, str] = field(default_factory=dict)       # sha256 of each frame's file
    hash: dict[int, str] = field(default_factory=dict)           # as manifests have it
    bytes: dict[int, int] = field(default_factory=dict)
    camera: dict[int, tuple[list[float], list[float]]] = field(default_factory=dict)
    #   worldToCamera and worldToNDC of each frame, row by row

    def take(self, picture: _Picture, frame: int) -> str | None:
        """Add the picture of a frame; return what makes it unlike those before, if it is."""
        channels, header = picture.channels, picture.header
        types = {name: _TYPES.get(pixels.dtype.name, pixels.dtype.name)
                 for name, pixels in sorted(channels.items())}
        shape = next(iter(channels.values())).shape
        if not self.channels:
            self.channels, self.header, self.size = types, header, (shape[1], shape[0])
        if types != self.channels:
            odd = sorted(set(types.items()) ^ set(self.channels.items()))
            return f"has other channels than the first frame ({odd[0][0]})"
        if (shape[1], shape[0]) != self.size:
            return (f"is {shape[1]} x {shape[0]}, the first frame {self.size[0]} x "
                    f"{self.size[1]}")
        for name, pixels in channels.items():
            self.low[name] = min(self.low.get(name, np.inf), float(pixels.min()))
            self.high[name] = max(self.high.get(name, -np.inf), float(pixels.max()))
        self.camera[frame] = (_numbers(header.get("worldToCamera", ())),
                              _numbers(header.get("worldToNDC", ())))
        self.checksum[frame], self.hash[frame] = picture.checksum, picture.hash
        self.bytes[frame] = picture.bytes
        return None

    @property
    def layers(self) -> dict[str, list[str]]:
        """Channels by layer, in the order artists read them; bare ones are the beauty."""
        layers: dict[str, list[str]] = {}
        for channel in self.channels:
            layers.setdefault(channel.rpartition(".")[0] or "beauty", []).append(channel)
        return {name: sorted(layers[name], key=_channel_order)
                for name in sorted(layers, key=lambda name: (name != "beauty", name))}

    @property
    def mattes(self) -> dict[str, str]:
        """Names of the Cryptomattes in it, by their key in the header."""
        found = {}
        for key, value in self.header.items():
            if match := re.fullmatch(r"cryptomatte/([^/]+)/name", key):
                found[match[1]] = str(value)
        return found


def verify(work: Work, render: Stage, frames: Sequence[int],
           report: Callable[[int, float], None]) -> tuple[list[Footage], dict[int, str]]:
    """Read every pixel of every file of ``frames``; return the sequences and what is wrong."""
    states = work.states(render, frames)
    faults: dict[int, str] = {}
    sequences = [Footage(name) for name in sequence_names(work.shot)]
    for position, frame in enumerate(frames):
        report(frame, position / len(frames))
        paths = [work.folder_of(render) / f"{sequence.name}.{frame:04d}.exr"
                 for sequence in sequences]
        pictures = []
        for path in paths:
            try:
                pictures.append(_read(path))
            except ValueError as error:
                faults.setdefault(frame, f"{path}: {error}")
        if states[frame] is not State.DONE:
            faults.setdefault(frame, f"{work.unfit_path(render, frame)}: {states[frame].value}")
        # One that is no good is no measure for others.
        if frame not in faults:
            for sequence, path, picture in zip(sequences, paths, pictures, strict=True):
                if (problem := sequence.take(picture, frame)) is not None:
                    faults.setdefault(frame, f"{path}: {problem}")
    return sequences, dict(sorted(faults.items()))


def sequence_names(shot: Shot) -> list[str]:
    """Return the names of the sequences that the shot's settings make, its own first.

    Other files in the folder (of somebody's own, or mattes from when the shot had some) are no
    part of the shot.
    """
    matte = matte_name(shot, shot.first_frame)
    return [shot.name, *([] if matte is None else [matte.partition(".")[0]])]


def pass_text(layer: str) -> str:
    """Return what a pass holds, or nothing for one that is not known."""
    return _PASSES.get(layer, "")


def handoff_files(shot_name: str) -> tuple[str, ...]:
    """Return the names of the files of a hand-off; the last one is its manifest."""
    return (CHECKSUM_FILE, f"{shot_name}.nk", f"{shot_name}_blender.py", HANDOFF_FILE)


def make_handoff(job: Job) -> str:
    """Verify frames and write what goes with them; raise FrameFailed if any is no good."""
    work, render = job.work, job.stage.giver("picture")
    frames = job.frames = _with_earlier(job)
    folder = work.folder_of(job.stage)
    if all(state is State.MISSING for state in work.states(render, frames).values()):
        raise MissingInput(f"{job.stage.name} needs the frames of {render.name}, and there are "
                           f"none of {format_frames(frames)} in {work.folder_of(render)}; run "
                           f"first:\n  {_render_command(job, frames)}")

    def report(frame: int, fraction: float) -> None:
        job.stop.check()
        job.made.update(frames[:round(fraction * len(frames))])
        job.progress.update(frame, fraction)

    sequences, faults = verify(work, render, frames, report)
    names = handoff_files(work.shot.name)
    if faults:
        # Who finds no hand-off cannot take a bad one.
        for file_name in (*names, MANIFEST_FILE):
            remove_file(folder / file_name)
        raise FrameFailed("\n".join([*(f"{job.stage.name} {frame}: {fault}" for frame, fault in
                                       faults.items()), "make them again with:",
                                     f"  {_render_command(job, list(faults))}"]))
    document = handoff_document(work.shot, frames, sequences)
    sums = "".join(f"{sequence.checksum[frame]}  ../render/{sequence.name}.{frame:04d}.exr\n"
                   for sequence in sequences for frame in frames)
    texts = (sums, nuke_script(document), blender_script(document),
             json.dumps(document, indent=1) + "\n")
    for file_name, text in zip(names, texts, strict=True):
        published = publish_bytes(folder / file_name, text.encode())
        work.record(job.stage, folder / file_name, str(VERSION), published, job.place)
    report(frames[-1], 1.0)
    return f"read whole and good; wrote {', '.join(names)} in {folder}"


def _with_earlier(job: Job) -> list[int]:
    """Return the frames of a job and those of the hand-off there is that are still good.

    So a frame that is made again joins its sequence instead of taking its place. Of which frames
    a damaged hand-off spoke nobody knows: all that are good then go into the next.
    """
    handed = [frame for frame, state in job.work.states(job.stage, job.shot.frames).items()
              if state is not State.MISSING]
    good = [frame for frame, state in job.work.states(job.stage.giver("picture"), handed).items()
            if state is State.DONE]
    return sorted({*job.frames, *good})


def _render_command(job: Job, frames: Sequence[int]) -> str:
    """Return the command that makes frames, whatever is wrong with them."""
    work, render = job.work, job.stage.giver("picture")
    words = [str(job.shot.path), "--frames", format_frames(frames), *job.arguments]
    for stage, listed in upstream(render, job.shot, frames).items():
        if any(state is not State.DONE for state in work.states(stage, listed).values()):
            return shlex.join(["vfx", "run", *words])
    # One that is just what its settings made is made again only if told to.
    force = ["--force"] if State.DONE in work.states(render, frames).values() else []
    return shlex.join(["vfx", "stage", render.name, *words, *force])


def handoff_document(shot: Shot, frames: Sequence[int], sequences: Sequence[Footage]) -> dict[
        str, Any]:
    """Return the manifest of a hand-off, as JSON holds it."""
    main = sequences[0]
    window = main.header.get("displayWindow")
    width, height = (tuple(int(b - a) + 1 for a, b in zip(*window, strict=True))
                     if window is not None else shot.film.resolution)
    return {
        "format": "vfx hand-off", "version": VERSION,
        "shot": shot.name,
        "frames": format_frames(frames), "first": frames[0], "last": frames[-1],
        "fps": shot.fps,
        "resolution": [width, height],
        "pixel_aspect": float(main.header.get("pixelAspectRatio", 1.0)),
        "color_space": {
            "name": _COLOR_NAMES.get(shot.film.color_space, shot.film.color_space),
            "interop_id": str(main.header.get("colorInteropID", "")),
            "chromaticities": _numbers(main.header.get("chromaticities", ())),
        },
        "camera": {
            "film_width": shot.camera.film_width,
            "film_height": shot.camera.film_width * height / width,
            "frames": [_camera_entry(frame, *main.camera[frame], shot.camera.film_width)
                       for frame in frames if len(main.camera[frame][1]) == 16],
        },
        "sequences": [_sequence_entry(sequence, frames) for sequence in sequences],
    }


def _camera_entry(frame: int, to_camera: list[float], to_ndc: list[float],
                  film_width: float) -> dict[str, Any]:
    """Return the camera of a frame, as its header has it; lengths of the lens in mm.

    Across the picture, NDC grow by 1 / (half its width at distance 1) a unit of length.
    """
    inverse_half_width = float(np.linalg.norm(np.reshape(to_ndc, (4, 4))[:3, 0]))
    return {"frame": frame, "focal_length": float(f"{0.5 * film_width * inverse_half_width:.6g}"),
            "world_to_camera": to_camera, "world_to_ndc": to_ndc}


def handed_over(work: Work, stage: Stage, frames: Sequence[int]) -> dict[int, State]:
    """Return whether the hand-off there is speaks of each frame as it is now, and is whole."""
    folder, render = work.folder_of(stage), stage.giver("picture")
    names = handoff_files(work.shot.name)
    if not any(os.path.lexists(folder / name) for name in names):
        return dict.fromkeys(frames, State.MISSING)
    written = work.manifest(stage).files
    if not all(name in written and written[name].fingerprint == str(VERSION) for name in names):
        return dict.fromkeys(frames, State.STALE)      # nobody vouches for it
    if not all(is_intact(folder / name, written[name].published) for name in names):
        return dict.fromkeys(frames, State.DAMAGED)
    document = json.loads((folder / HANDOFF_FILE).read_bytes())
    listed = {(entry["name"], file["frame"]): file["hash"]
              for entry in document["sequences"] for file in entry["files"]}
    sequences = sequence_names(work.shot)
    found = {}
    for frame, state in work.states(render, frames).items():
        if (work.shot.name, frame) not in listed:
            found[frame] = State.MISSING
        elif state is State.DONE and all(
                work.listed_hash(render, f"{name}.{frame:04d}.exr") == listed.get((name, frame))
                for name in sequences):
            found[frame] = State.DONE
        else:
            found[frame] = State.STALE
    return found


def _read(path: Path) -> _Picture:
    """Read a file whole; raise ValueError that says what is wrong with it by itself."""
    from vfx.raytrace.film.exr import read_exr

    if not path.is_file():
        raise ValueError("no file; remove it" if path.exists() else "missing")
    try:
        data = read_regular(path)
        channels, header = read_exr(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"damaged: {str(error).removeprefix(f'{path}: ')}") from None
    if not channels:
        raise ValueError("has no channels")
    for name, pixels in channels.items():
        finite = np.isfinite(pixels)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise ValueError(f"{int((~finite).sum())} pixel(s) of {name} are not finite, the "
                             f"first at x {column}, y {row}")
    return _Picture(channels, header, hashlib.sha256(data).hexdigest(), bytes_hash(data), len(data))


_TYPES = {"float16": "half", "float32": "float", "uint32": "uint"}


def _sequence_entry(sequence: Footage, frames: Sequence[int]) -> dict[str, Any]:
    mattes = sequence.mattes
    passes = []
    for layer, channels in sequence.layers.items():
        matte = next((name for name in mattes.values() if re.fullmatch(
            re.escape(name) + r"\d\d", layer)), None)
        what = f"ids and coverages of the Cryptomatte {matte}" if matte else pass_text(layer)
        passes.append({
            "layer": layer, "channels": channels,
            "type": sequence.channels[channels[0]], "what": what,
            "least": [sequence.low[channel] for channel in channels],
            "greatest": [sequence.high[channel] for channel in channels]})
    return {
        "name": sequence.name,
        "pattern": f"../render/{sequence.name}.%04d.exr",
        "compression": str(sequence.header.get("compression", "")).rpartition(".")[2]
        .removesuffix("_COMPRESSION"),
        "passes": passes,
        "cryptomattes": [{"key": key, "name": name} for key, name in mattes.items()],
        "files": [{"frame": frame, "file": f"{sequence.name}.{frame:04d}.exr",
                   "bytes": sequence.bytes[frame], "sha256": sequence.checksum[frame],
                   "hash": sequence.hash[frame]}
                  for frame in frames],
    }


def _channel_order(channel: str) -> tuple[int, str]:
    suffix = channel.rpartition(".")[2]
    place = "RGBAXYZuvw".find(suffix) if len(suffix) == 1 else -1
    return (place if place >= 0 else 99, channel)


def _numbers(value: Any) -> list[float]:
    """Return an attribute's numbers in a flat list."""
    return [float(number) for number in np.asarray(value, np.float64).ravel()]
