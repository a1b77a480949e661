"""A shot's work folder: where each result lies, what it was made from, and whether it holds.

The fingerprint of a result is a hash of what its stage takes: sections of the shot, hashes of
the upstream files it reads, and the stage's version; not the frame range, the number of
threads or how frames were shared out.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vfx.pipeline.cache import (
    Published,
    file_hash,
    in_use,
    is_intact,
    is_untouched,
    locked,
    look_at,
)
from vfx.pipeline.density import load_density
from vfx.pipeline.errors import DamagedFile, MissingInput, ShotError, shortage
from vfx.pipeline.manifest import Entry, Manifest, State, read_manifest, update_manifest
from vfx.pipeline.shot import Shot, is_plain_word
from vfx.pipeline.stage_render import near_frames, surface_textures
from vfx.pipeline.stages import STAGE, STAGES, Stage, shot_section

if TYPE_CHECKING:
    from vfx.raytrace.camera_path import CameraPath

_GIVER = {stage.gives: stage for stage in STAGES}
_LOCK_FILE = ".work.lock"


class Work:
    """The results of one shot in one folder.

    Listed files are read whole before they are called done; a ``quick`` look takes those for
    done that still have the size and the time with which they were published.
    """

    def __init__(self, shot: Shot, folder: Path, *, quick: bool = False) -> None:
        self.shot = shot
        self.folder = folder
        self._quick = quick
        self._manifests: dict[str, Manifest] = {}
        self._intact: dict[Path, tuple[tuple[int, ...], str]] = {}
        self._carried: dict[Path, tuple[tuple[int, ...], str | None]] = {}
        self._adopted: dict[str, dict[str, Entry]] = {}
        self._listing: dict[str, frozenset[str]] = {}
        self._history: dict[int, str] = {}
        self._environment: npt.NDArray[np.float32] | None = None
        self._camera: CameraPath | None = None
        self._texture: npt.NDArray[np.float32] | None = None
        self._images: dict[str, npt.NDArray[np.float32]] | None = None
        self._densities: dict[str, npt.NDArray[np.float32]] | None = None

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
        return self.folder / stage.name

    def path(self, stage: Stage, frame: int) -> Path:
        """Return the file of a stage (for a frame, if it makes one a frame)."""
        return self.folder_of(stage) / stage.file_name.format(shot=self.shot.name, frame=frame)

    def manifest(self, stage: Stage) -> Manifest:
        """Return the manifest of a stage, as last read or written."""
        if stage.name not in self._manifests:
            self._manifests[stage.name] = read_manifest(
                self.folder_of(stage), stage.name, stage.version)
        return self._manifests[stage.name]

    def listed_hash(self, stage: Stage, name: str) -> str | None:
        """Return the hash of a stage's file as it was published; None if nobody knows."""
        for files in (self._adopted.get(stage.name, {}), self.manifest(stage).files):
            if name in files:
                return files[name].published.hash
        return None

    def fingerprint(self, stage: Stage, frame: int) -> str | None:
        """Return what a result should be made from, or None while its inputs are not there."""
        taken: dict[str, Any] = {"stage": stage.name, "version": stage.version}
        for name in stage.takes:
            taken[name] = self._take(name, frame)
            if taken[name] is None:
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
        if not stage.is_per_frame:
            return {self.shot.first_frame: self.state(stage, self.shot.first_frame)}
        return {frame: self.state(stage, frame) for frame in frames}

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

        self._manifests[stage.name] = update_manifest(
            self.folder_of(stage), stage.name, stage.version, enter)
        self._listing.pop(stage.name, None)
        self._history.clear()

    def forget(self, stage: Stage, names: Iterable[str] | None = None) -> None:
        """Remove files of a stage (all that its manifest lists, or ``names``) and their entries."""
        doomed = set(self.manifest(stage).files) if names is None else set(names)

        def strike(files: dict[str, Entry]) -> None:
            for name in doomed:
                files.pop(name, None)

        self._manifests[stage.name] = update_manifest(
            self.folder_of(stage), stage.name, stage.version, strike)
        for name in doomed:
            if Path(name).name == name:
                (self.folder_of(stage) / name).unlink(missing_ok=True)
        self._listing.pop(stage.name, None)
        self._history.clear()

    def refresh(self) -> None:
        """Look at manifests and folders anew: another process may have added to them."""
        self._manifests.clear()
        self._listing.clear()
        self._history.clear()

    def mend_manifest(self, stage: Stage) -> str | None:
        """List files of a stage that were known only by the fingerprint they carry.

        Returns a sentence if the manifest was lost, or None.
        """
        fault = self.manifest(stage).fault
        if fault:
            self.states(stage, self.shot.frames)
        adopted = self._adopted.pop(stage.name, {})
        if not adopted and fault != "damaged":
            return None
        self._manifests[stage.name] = update_manifest(
            self.folder_of(stage), stage.name, stage.version,
            lambda files: files.update(adopted))
        self._history.clear()
        if not fault:
            return None
        return (f"{stage.name}: its manifest is {fault}; {len(adopted)} file(s) that carry the "
                "right fingerprint are listed again")

    def environment(self) -> npt.NDArray[np.float32]:
        """Return the environment's radiance (h, w, 3); raise ShotError or MissingInput."""
        if self._environment is None:
            from vfx.raytrace.environment import load_environment

            name = self.shot.light.environment
            where = f"{self.shot.path}: light.environment: found {name!r}"
            candidate = self.shot.folder / name
            try:
                if not is_plain_word(name) and candidate.exists() and not candidate.is_file():
                    kind = "a folder" if candidate.is_dir() else "no regular file"
                    raise ShotError(f"{where}, which is {kind}; give the name of a built-in "
                                    "environment or an EXR or HDR file")
                self._environment = load_environment(name, self.shot.folder)
            except FileNotFoundError as error:
                raise MissingInput(f"{where}; {error}") from None
            except (OSError, ValueError) as error:
                if shortage(error) is not None:
                    raise
                raise ShotError(f"{where}; {error}") from None
        return self._environment

    def camera(self) -> CameraPath:
        """Return the way of the camera; raise ShotError or MissingInput."""
        if self._camera is None:
            from vfx.raytrace.camera_path import camera_path, check_path, render_times

            shot = self.shot
            where = str(shot.path)
            if shot.camera.usd:
                where += f": camera.usd: found {shot.camera.usd!r}"
            try:
                path = camera_path(shot.camera, shot.camera_keys, shot.folder)
                check_path(path, render_times(shot.camera, shot.film, shot.first_frame,
                                              shot.last_frame))
            except (FileNotFoundError, ModuleNotFoundError) as error:
                raise MissingInput(f"{where}: {error}") from None
            except (OSError, ValueError) as error:
                if shortage(error) is not None:
                    raise
                raise ShotError(f"{where}: {error}") from None
            # Only now: who asks again after a refusal must be refused again.
            self._camera = path
        return self._camera

    def texture(self) -> npt.NDArray[np.float32] | None:
        """Return the image on the floor (h, w, 3), None without one; raise ShotError."""
        from vfx.raytrace.texture import load_texture

        name = self.shot.floor_look.texture
        if self._texture is None and name:
            try:
                self._texture = load_texture(name, self.shot.folder)
            except (OSError, ValueError) as error:
                if shortage(error) is not None:
                    raise
                raise ShotError(f"{self.shot.path}: floor_look.texture: found {name!r}; "
                                f"{error}") from None
        return self._texture

    def images(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the images (h, w, 3) that surfaces name, by that name; raise ShotError."""
        from vfx.raytrace.picture import MAX_PIXELS_TOGETHER
        from vfx.raytrace.texture import load_image

        if self._images is None:
            found: dict[str, npt.NDArray[np.float32]] = {}
            floor = self.texture()
            n_pixels = 0 if floor is None else floor.shape[0] * floor.shape[1]
            for material, name in surface_textures(self.shot).items():
                if name in found:
                    continue
                try:
                    found[name] = load_image(name, self.shot.folder)
                    n_pixels += found[name].shape[0] * found[name].shape[1]
                    if n_pixels > MAX_PIXELS_TOGETHER:
                        raise ValueError(
                            f"with it all textures have {n_pixels} pixels, but at most "
                            f"{MAX_PIXELS_TOGETHER} are taken together (such as four of 8192 x "
                            "8192); make some smaller")
                except (OSError, ValueError) as error:
                    if shortage(error) is not None:
                        raise
                    raise ShotError(f"{self.shot.path}: materials.{material}.surface.texture: "
                                    f"found {name!r}; {error}") from None
            self._images = found
        return self._images

    def densities(self) -> dict[str, npt.NDArray[np.float32]]:
        """Return the pictures that [[weakening]] names, (h, w) from 0 to 1; raise ShotError."""
        if self._densities is None:
            pictures = {}
            for i, weakening in enumerate(self.shot.weakening):
                if not weakening.image:
                    continue
                where = f"{self.shot.path}: weakening[{i + 1}].image: found {weakening.image!r}"
                try:
                    pictures[weakening.image] = load_density(self.shot.folder / weakening.image)
                except (OSError, ValueError) as error:
                    if shortage(error) is not None:
                        raise
                    raise ShotError(f"{where}; {error}") from None
            self._densities = pictures
        return self._densities

    def _take(self, name: str, frame: int) -> Any:
        if name.startswith("shot."):
            return shot_section(name, self.shot)
        if name == "meshes":
            return self._mesh_hashes
        if name == "environment":
            return self._environment_hash
        if name == "floor texture":
            return self._texture_hash
        if name == "surface textures":
            return self._images_hash
        if name == "camera file":
            return self._camera_hash
        if name == "fragments beside":
            hashes = [self._result_hash(STAGE["align"], near)
                      for near in near_frames(self.shot, frame)]
            return None if None in hashes else hashes
        if name == "density pictures":
            return self._densities_hash
        if name == "motion so far":
            return self._history_hash(frame)
        return self._result_hash(_GIVER[name], frame)

    def _result_hash(self, stage: Stage, frame: int) -> str | None:
        """Return the hash of an upstream result that is listed as made from present inputs."""
        wanted = self.fingerprint(stage, frame)
        if wanted is None:
            return None
        entry = self._entry(stage, self.path(stage, frame), wanted)
        return None if entry is None else entry.published.hash

    def _history_hash(self, frame: int) -> str | None:
        """Return the hash of all motion up to a frame: pieces carry on what their parents did."""
        if not self._history:
            digest = hashlib.blake2b(digest_size=20)
            sim = STAGE["sim"]
            wanted = self.fingerprint(sim, self.shot.first_frame)
            for past in self.shot.frames if wanted is not None else ():
                entry = self._entry(sim, self.path(sim, past), str(wanted))
                if entry is None:
                    break
                digest.update(entry.published.hash.encode())
                self._history[past] = digest.copy().hexdigest()
        return self._history.get(frame)

    def _is_there(self, stage: Stage, path: Path) -> bool:
        """Whether a result exists, reading its folder once rather than asking for each frame."""
        if stage.name not in self._listing:
            try:
                self._listing[stage.name] = frozenset(os.listdir(path.parent))
            except OSError:
                self._listing[stage.name] = frozenset()
        return path.name in self._listing[stage.name]

    def _entry(self, stage: Stage, path: Path, wanted: str) -> Entry | None:
        """Return the entry of a file made from just ``wanted``, listed or carried by itself."""
        files = self.manifest(stage).files
        entry = files.get(path.name)
        if entry is not None and entry.fingerprint == wanted:
            return entry
        if not self._is_there(stage, path) or self._carried_fingerprint(stage, path) != wanted:
            return None
        adopted = self._adopted.setdefault(stage.name, {})
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

    @functools.cached_property
    def _environment_hash(self) -> str | None:
        try:
            pixels = self.environment()
        except (ShotError, MissingInput):
            return None
        return _hash_of_pixels(pixels)

    @functools.cached_property
    def _camera_hash(self) -> str | None:
        if not self.shot.camera.usd:
            return ""
        file = self.shot.folder / self.shot.camera.usd
        try:
            return file_hash(file) if file.is_file() else None
        except OSError:
            return None

    @functools.cached_property
    def _mesh_hashes(self) -> list[str] | None:
        from vfx.geometry.sources import source_hash

        try:
            return [source_hash(body) for body in self.shot.bodies]
        except OSError:
            return None

    @functools.cached_property
    def _texture_hash(self) -> str | None:
        try:
            pixels = self.texture()
        except ShotError:
            return None
        return "" if pixels is None else _hash_of_pixels(pixels)

    @functools.cached_property
    def _images_hash(self) -> list[str] | None:
        try:
            return [_hash_of_pixels(pixels) for pixels in self.images().values()]
        except ShotError:
            return None

    @functools.cached_property
    def _densities_hash(self) -> list[str] | None:
        try:
            pictures = self.densities()
        except ShotError:
            return None
        return [_hash_of_pixels(pictures[weakening.image]) if weakening.image else ""
                for weakening in self.shot.weakening]

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


def _hash_of_pixels(pixels: npt.NDArray[Any]) -> str:
    shape = repr((pixels.shape, pixels.dtype.str)).encode()
    digest = hashlib.blake2b(shape, digest_size=20)
    digest.update(np.ascontiguousarray(pixels).data)      # in place: it may be large
    return digest.hexdigest()


def _stamp(path: Path) -> tuple[int, ...]:
    status = os.stat(path)
    return (status.st_ino, status.st_size, status.st_mtime_ns)
