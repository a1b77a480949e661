"""The pictures that end a run: a contact sheet and a movie of the frames that are done."""

from __future__ import annotations

import collections
import hashlib
from collections.abc import Iterator
from pathlib import Path

from vfx.pipeline.show.preview import (
    Pixels,
    read_display,
    thumbnail,
    write_contact_sheet,
    write_movie,
)
from vfx.pipeline.stages.table import RENDER
from vfx.pipeline.work.cache import file_hash, is_intact, look_at, remove_leftovers
from vfx.pipeline.work.folder import Work
from vfx.pipeline.work.manifest import Entry, State, read_manifest, update_manifest

FOLDER = "review"
_VERSION = 1


def make_review(work: Work) -> list[str]:
    """Make the contact sheet and the movie of a shot, unless they are up to date.

    Returns lines that say where they are, or why one is not there.
    """
    states = work.states(RENDER, work.shot.frames)
    frames = [(frame, work.path(RENDER, frame)) for frame, state in states.items()
              if state is State.DONE]
    if not frames:
        return ["review: no frame is rendered yet"]
    folder = work.folder / FOLDER
    remove_leftovers(folder)
    sheet, movie = (folder / f"{work.shot.name}{suffix}" for suffix in (".png", ".mp4"))
    fingerprint = _fingerprint(work, [path for _, path in frames])
    listed = read_manifest(folder, FOLDER, _VERSION).files
    lines = [f"contact sheet: {sheet}", f"movie: {movie}"]
    if all(_is_current(listed.get(path.name), path, fingerprint) for path in (sheet, movie)):
        return lines

    # Read each frame once: into the movie, and small into the sheet.
    thumbnails: dict[int, Pixels] = {}

    def pictures() -> Iterator[Pixels]:
        for number, path in frames:
            pixels = read_display(path, work.shot.film.color_space)
            thumbnails[number] = thumbnail(pixels, len(frames))
            yield pixels

    problem = write_movie(movie, pictures(), work.shot.fps)
    if problem is None:
        _record(folder, movie, fingerprint)
    else:
        lines[1] = problem
        collections.deque(pictures(), maxlen=0)
    write_contact_sheet(sheet, sorted(thumbnails.items()))
    _record(folder, sheet, fingerprint)
    return lines


def _fingerprint(work: Work, paths: list[Path]) -> str:
    files = work.manifest(RENDER).files
    hashes = [files[path.name].published.hash if path.name in files else file_hash(path)
              for path in paths]
    text = "\n".join([str(_VERSION), work.shot.film.color_space, repr(work.shot.fps), *hashes])
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _is_current(entry: Entry | None, path: Path, fingerprint: str) -> bool:
    return (entry is not None and entry.fingerprint == fingerprint
            and is_intact(path, entry.published))


def _record(folder: Path, path: Path, fingerprint: str) -> None:
    entry = Entry(fingerprint, look_at(path), "host")
    update_manifest(folder, FOLDER, _VERSION, lambda files: files.__setitem__(path.name, entry))
