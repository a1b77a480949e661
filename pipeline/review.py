"""The pictures that end a run: a contact sheet and a movie of the frames that are done."""

from __future__ import annotations

import hashlib
from pathlib import Path

from vfx.pipeline.cache import Published, file_hash, is_intact, remove_leftovers
from vfx.pipeline.manifest import Entry, State, read_manifest, update_manifest
from vfx.pipeline.preview import write_contact_sheet, write_movie
from vfx.pipeline.stages import STAGE
from vfx.pipeline.work import Work

FOLDER = "review"
_VERSION = 1


def make_review(work: Work) -> list[str]:
    """Make the contact sheet and the movie of a shot, unless they are up to date.

    Returns lines that say where they are, or why one is not there.
    """
    render = STAGE["render"]
    states = work.states(render, work.shot.frames)
    frames = [(frame, work.path(render, frame)) for frame, state in states.items()
              if state is State.DONE]
    if not frames:
        return ["review: no frame is rendered yet"]
    folder = work.folder / FOLDER
    remove_leftovers(folder)
    sheet, movie = (folder / f"{work.shot.name}{suffix}" for suffix in (".png", ".mp4"))
    fingerprint = _fingerprint(work, [path for _, path in frames])
    listed = read_manifest(folder, FOLDER, _VERSION).files
    color_space = work.shot.film.color_space

    lines = []
    if not _is_current(listed.get(sheet.name), sheet, fingerprint):
        write_contact_sheet(sheet, frames, color_space)
        _record(folder, sheet, fingerprint)
    lines.append(f"contact sheet: {sheet}")
    if not _is_current(listed.get(movie.name), movie, fingerprint):
        problem = write_movie(movie, [path for _, path in frames], work.shot.fps, color_space)
        if problem is not None:
            return [*lines, problem]
        _record(folder, movie, fingerprint)
    return [*lines, f"movie: {movie}"]


def _fingerprint(work: Work, paths: list[Path]) -> str:
    files = work.manifest(STAGE["render"]).files
    hashes = [files[path.name].published.hash if path.name in files else file_hash(path)
              for path in paths]
    text = "\n".join([str(_VERSION), work.shot.film.color_space, repr(work.shot.fps), *hashes])
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


def _is_current(entry: Entry | None, path: Path, fingerprint: str) -> bool:
    return (entry is not None and entry.fingerprint == fingerprint
            and is_intact(path, entry.published))


def _record(folder: Path, path: Path, fingerprint: str) -> None:
    entry = Entry(fingerprint, Published(file_hash(path), path.stat().st_size), "host")
    update_manifest(folder, FOLDER, _VERSION, lambda files: files.__setitem__(path.name, entry))
