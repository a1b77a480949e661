"""A shot's work folder: where each result lies, what it was made from, and whether it holds.

The fingerprint of a result is a hash of what its stage takes: sections of the shot, hashes of
the files it reads, and the stage's version; not the frame range, the number of threads or how
frames were shared out.
"""

from __future__ import annotations

import bisect
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vfx.pipeline.errors import DamagedFile, MissingInput
from vfx.pipeline.shot.inputs import FILE_NAME as INPUTS_FILE
from vfx.pipeline.shot.inputs import Inputs
from vfx.pipeline.work.cache import (
    Published,
    in_use,
    is_intact,
    is_untouched,
    locked,
    look_at,
)
from vfx.pipeline.work.manifest import Entry, Manifest, State, read_manifest, update_manifest

if TYPE_CHECKING:
    from vfx.pipeline.shot.shot_file import Shot
    from vfx.pipeline.stages.stage import Stage

_LOCK_FILE = ".work.lock"


class Work:
    """The results of one shot in one folder.

    Listed files are read whole before they are called done; a ``quick`` look takes those for
    done that still have the size and the time with which they were published, and the files that
    the shot names for what they were when a run noted them.
    """

    def __init__(self, shot: Shot, folder: Path, *, quick: bool = False) -> None:
        self.shot = shot
        self.folder = folder
        self.inputs = Inputs(shot, folder / INPUTS_FILE, quick=quick)
        self._quick = quick
        self._manifests: dict[str, Manifest] = {}
        self._intact: dict[Path, tuple[tuple[int, ...], str]] = {}
        self._carried: dict[Path, tuple[tuple[int, ...], str | None]] = {}
        self._adopted: dict[str, dict[str, Entry]] = {}
        self._listing: dict[str, frozenset[str]] = {}
        self._history: dict[str, dict[int, str]] = {}

    def in_use(self, *, begins: bool = False) -> AbstractContextManager[None]:
        """Keep the files where they are while the block runs: nobody may clean meanwhile.

        Where there is no folder yet, only who ``begins`` one makes it.
        """
        if not begins and not self.folder.exists():
            return nullcontext()
        return in_use(self.folder / _LOCK_FILE)

    def alone(self) -> AbstractContextManager[None]:
        """Have the files to oneself while the block runs; raise if they are in use."""
        return locked(self.folder / _LOCK_FILE, f"{self.folder}: a run is using it; wait until it "
                      "has ended, or stop it. Nothing was removed")

    def folder_of(self, stage: Stage) -> Path:
        """Return the folder of a stage's files."""
        return self.folder / stage.folder

    def path(self, stage: Stage, frame: int) -> Path:
        """Return the file of a stage (for a frame, if it makes one a frame)."""
        return self.folder_of(stage) / stage.file_name.format(shot=self.shot.name, frame=frame)

    def manifest(self, stage: Stage) -> Manifest:
        """Return the manifest of a stage, as last read or written."""
        if stage.folder not in self._manifests:
            self._manifests[stage.folder] = read_manifest(
                self.folder_of(stage), stage.folder, stage.version)
        return self._manifests[stage.folder]

    def listed_hash(self, stage: Stage, name: str) -> str | None:
        """Return the hash of a stage's file as it was published; None if nobody knows."""
        for files in (self._adopted.get(stage.folder, {}), self.manifest(stage).files):
            if name in files:
                return files[name].published.hash
        return None

    def fingerprint(self, stage: Stage, frame: int) -> str | None:
        """Return what a result should be made from, or None while its inputs are not there."""
        taken: dict[str, Any] = {"stage": stage.name, "version": stage.version}
        for take in stage.takes:
            if take.value is None:
                continue
            taken[take.name] = take.value(self, frame)
            if taken[take.name] is None:
                return None
        text = json.dumps(taken, sort_keys=True, separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()

    def state(self, stage: Stage, frame: int) -> State:
        """Return the state of one result, with the file beside it if it has to have one.

        Files are read whole once in this object's life.
        """
        own = self._own_state(stage, frame)
        return self._state_beside(stage, frame) if own is State.DONE else own

    def unfit_path(self, stage: Stage, frame: int) -> Path:
        """Return the file that makes a result be as it is: its own or the one beside it."""
        name = stage.beside(self.shot, frame) if stage.beside is not None else None
        if name is None or self._own_state(stage, frame) is not State.DONE:
            return self.path(stage, frame)
        return self.folder_of(stage) / name

    def _own_state(self, stage: Stage, frame: int) -> State:
        path = self.path(stage, frame)
        if not self._is_there(stage, path):
            return State.MISSING
        wanted = self.fingerprint(stage, frame)
        if wanted is None:
            return State.STALE
        entry = self._entry(stage, path, wanted)
        if entry is not None:
            return State.DONE if self._is_intact(path, entry) else State.DAMAGED
        return State.DAMAGED if self._carried_fingerprint(stage, path) is None else State.STALE

    def _state_beside(self, stage: Stage, frame: int) -> State:
        """Return the state of the file beside a good result, DONE where there is none to be."""
        name = stage.beside(self.shot, frame) if stage.beside is not None else None
        if name is None:
            return State.DONE
        path = self.folder_of(stage) / name
        if not self._is_there(stage, path):
            return State.MISSING
        entry = self._entry(stage, path, str(self.fingerprint(stage, frame)))
        if entry is None:
            carried = self._carried_fingerprint(stage, path)
            return State.DAMAGED if carried is None else State.STALE
        return State.DONE if self._is_intact(path, entry) else State.DAMAGED

    def states(self, stage: Stage, frames: Iterable[int]) -> dict[int, State]:
        """Return the states of a stage's results by frame (of its one result: by the first)."""
        if stage.find_states is not None:
            return stage.find_states(self, stage, list(frames))
        if not stage.is_per_frame:
            return {self.shot.first_frame: self.state(stage, self.shot.first_frame)}
        if not stage.has_file_a_frame:
            return self._states_through(stage, frames)
        return {frame: self.state(stage, frame) for frame in frames}

    def _states_through(self, stage: Stage, frames: Iterable[int]) -> dict[int, State]:
        """Return the states of frames of which one file tells, that goes through some frame.

        Its fingerprint is that of the frame it goes through, and says so which that is.
        """
        path = self.path(stage, self.shot.first_frame)
        if not self._is_there(stage, path):
            return dict.fromkeys(frames, State.MISSING)
        n_known = bisect.bisect_left(self.shot.frames, True, key=lambda frame: self.fingerprint(
            stage, frame) is None)
        for last in reversed(self.shot.frames[:n_known]):
            entry = self._entry(stage, path, str(self.fingerprint(stage, last)))
            if entry is not None:
                state = State.DONE if self._is_intact(path, entry) else State.DAMAGED
                return {frame: state if frame <= last else State.MISSING for frame in frames}
        damaged = self._carried_fingerprint(stage, path) is None
        return dict.fromkeys(frames, State.DAMAGED if damaged else State.STALE)

    def record(self, stage: Stage, path: Path, fingerprint: str, published: Published,
               device: str) -> None:
        """Enter a file that was just published into the stage's manifest.

        If another task has published the same result since, on a device whose bytes may differ,
        the file is that task's, and so is the entry.
        """
        entry = Entry(fingerprint, published, device)

        def enter(files: dict[str, Entry]) -> None:
            if is_intact(path, published):
                files[path.name] = entry

        self._manifests[stage.folder] = update_manifest(
            self.folder_of(stage), stage.folder, stage.version, enter)
        self._listing.pop(stage.folder, None)
        self._history.clear()

    def refresh(self) -> None:
        """Look at manifests and folders anew: another process may have added to them."""
        self._manifests.clear()
        self._listing.clear()
        self._history.clear()

    def mend_manifest(self, stages: Sequence[Stage]) -> str | None:
        """List files of the stages of one folder that were known only by what they carry.

        Returns a sentence if the manifest was lost, or None.
        """
        stage = stages[-1]
        fault = self.manifest(stage).fault
        if fault:
            for each in stages:
                self.states(each, self.shot.frames)
        adopted = self._adopted.pop(stage.folder, {})
        if not adopted and fault != "damaged":
            return None
        self._manifests[stage.folder] = update_manifest(
            self.folder_of(stage), stage.folder, stage.version,
            lambda files: files.update(adopted))
        self._history.clear()
        if not fault:
            return None
        return (f"{stage.folder}: its manifest is {fault}; {len(adopted)} file(s) that carry the "
                "right fingerprint are listed again")

    def result_hash(self, stage: Stage, frame: int) -> str | None:
        """Return the hash of an upstream result that is listed as made from present inputs."""
        wanted = self.fingerprint(stage, frame)
        if wanted is None:
            return None
        entry = self._entry(stage, self.path(stage, frame), wanted)
        return None if entry is None else entry.published.hash

    def history_hash(self, stage: Stage, frame: int) -> str | None:
        """Return the hash of all results of a stage up to a frame."""
        if stage.name not in self._history:
            self._history[stage.name] = self._hash_history(stage)
        return self._history[stage.name].get(frame)

    def _hash_history(self, stage: Stage) -> dict[int, str]:
        """Return that hash for each frame through which all are there."""
        digest = hashlib.blake2b(digest_size=20)
        found: dict[int, str] = {}
        wanted = self.fingerprint(stage, self.shot.first_frame)
        for frame in self.shot.frames if wanted is not None else ():
            entry = self._entry(stage, self.path(stage, frame), str(wanted))
            if entry is None:
                break
            digest.update(entry.published.hash.encode())
            found[frame] = digest.copy().hexdigest()
        return found

    def _is_there(self, stage: Stage, path: Path) -> bool:
        """Whether a result exists, reading its folder once rather than asking for each frame."""
        if stage.folder not in self._listing:
            try:
                self._listing[stage.folder] = frozenset(os.listdir(path.parent))
            except OSError:
                self._listing[stage.folder] = frozenset()
        return path.name in self._listing[stage.folder]

    def _entry(self, stage: Stage, path: Path, wanted: str) -> Entry | None:
        """Return the entry of a file made from just ``wanted``, listed or carried by itself."""
        files = self.manifest(stage).files
        entry = files.get(path.name)
        if entry is not None and entry.fingerprint == wanted:
            return entry
        if not self._is_there(stage, path) or self._carried_fingerprint(stage, path) != wanted:
            return None
        adopted = self._adopted.setdefault(stage.folder, {})
        entry = adopted.get(path.name)
        if entry is None or entry.fingerprint != wanted or not self._is_intact(path, entry):
            published = look_at(path)
            entry = adopted[path.name] = Entry(wanted, published, "unknown")
            self._intact[path] = (_stamp(path), published.hash)
        return entry

    def _carried_fingerprint(self, stage: Stage, path: Path) -> str | None:
        """Return the fingerprint in a file, "" if it has none, None if it is damaged."""
        try:
            stamp = _stamp(path)
            if path not in self._carried or self._carried[path][0] != stamp:
                self._carried[path] = (stamp, None)
                self._carried[path] = (stamp, stage.recognise(path))
        except (DamagedFile, MissingInput, OSError):
            return None
        return self._carried[path][1]

    def _is_intact(self, path: Path, entry: Entry) -> bool:
        """Whether a file's bytes are those listed, reading them once while it is untouched."""
        if self._quick and is_untouched(path, entry.published):
            return True
        try:
            known = (_stamp(path), entry.published.hash)
        except OSError:
            return False
        if self._intact.get(path) != known and is_intact(path, entry.published):
            self._intact[path] = known
        return self._intact.get(path) == known


def _stamp(path: Path) -> tuple[int, ...]:
    status = os.stat(path)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
