"""The files that a shot names: read once, refused with a sentence, known by their hashes.

A picture counts by its pixels, a mesh or a camera by the bytes of its file. Runs note the hashes
that they find, with the size and the time of each file, in the work folder. A quick look takes a
hash from there for a file that still has both, instead of reading it again; no run does.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from vfx.pipeline.errors import MissingInput, ShotError, StorageError, shortage
from vfx.pipeline.shot.density_picture import load_density
from vfx.pipeline.shot.shot_file import Shot, is_plain_word
from vfx.pipeline.work.cache import file_hash, publish_bytes
from vfx.pipeline.work.seal import read_regular

if TYPE_CHECKING:
    from vfx.raytrace.camera.path import CameraPath
    from vfx.sim.solver import Course

Pixels = npt.NDArray[np.float32]
_Note = tuple[int, int, str]             # size [bytes], time of change [ns], hash

FILE_NAME = "inputs.json"


T = TypeVar("T")


def _once(method: Callable[[Inputs], T]) -> Callable[[Inputs], T]:
    """Let a method return what it returned first; where it raised, it is asked again."""
    @functools.wraps(method)
    def wrapped(self: Inputs) -> T:
        if method.__name__ not in self._loaded:
            self._loaded[method.__name__] = method(self)
        return cast("T", self._loaded[method.__name__])

    return wrapped


class Inputs:
    """The files of one shot; each is read and hashed once in this object's life.

    ``notes`` is the file of hashes that were found before; a ``quick`` look trusts it.
    """

    def __init__(self, shot: Shot, notes: Path | None = None, *, quick: bool = False) -> None:
        self.shot = shot
        self._notes = notes
        self._known = read_notes(notes) if quick and notes is not None else {}
        self._found: dict[str, _Note] = {}
        self._loaded: dict[str, Any] = {}

    @_once
    def environment(self) -> Pixels:
        """Return the environment's radiance (h, w, 3); raise ShotError or MissingInput."""
        from vfx.raytrace.light.environment import load_environment

        name = self.shot.light.environment
        where = f"{self.shot.path}: light.environment: found {name!r}"
        candidate = self.shot.folder / name
        try:
            if not is_plain_word(name) and candidate.exists() and not candidate.is_file():
                kind = "a folder" if candidate.is_dir() else "no regular file"
                raise ShotError(f"{where}, which is {kind}; give the name of a built-in "
                                "environment or an EXR or HDR file")
            return load_environment(name, self.shot.folder)
        except FileNotFoundError as error:
            raise MissingInput(f"{where}; {error}") from None
        except (OSError, ValueError) as error:
            if shortage(error) is not None:
                raise
            raise ShotError(f"{where}; {error}") from None

    @_once
    def camera(self) -> CameraPath:
        """Return the way of the camera; raise ShotError or MissingInput."""
        from vfx.raytrace.camera.path import camera_path, check_path, render_times

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
        return path

    @_once
    def texture(self) -> Pixels | None:
        """Return the image on the floor (h, w, 3), None without one; raise ShotError."""
        from vfx.raytrace.surface.texture import load_texture

        name = self.shot.floor_look.texture
        try:
            return load_texture(name, self.shot.folder)
        except (OSError, ValueError) as error:
            if shortage(error) is not None:
                raise
            raise ShotError(f"{self.shot.path}: floor_look.texture: found {name!r}; "
                            f"{error}") from None

    @_once
    def images(self) -> dict[str, Pixels]:
        """Return the images (h, w, 3) that surfaces name, by that name; raise ShotError."""
        from vfx.raytrace.film.picture import MAX_PIXELS_TOGETHER
        from vfx.raytrace.surface.texture import load_image

        found: dict[str, Pixels] = {}
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
        return found

    @_once
    def densities(self) -> dict[str, Pixels]:
        """Return the pictures that [[weakening]] names, (h, w) from 0 to 1; raise ShotError."""
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
        return pictures

    @_once
    def courses(self) -> tuple[Course, ...]:
        """Return the ways of bodies that follow an animation; raise ShotError or MissingInput."""
        from vfx.pipeline.shot.animation import make_course

        made = []
        for number, body in enumerate(self.shot.bodies):
            if not body.animation:
                continue
            where = (f"{self.shot.path}: {self.shot.headings[number]}.animation: found "
                     f"{body.animation!r}")
            try:
                made.append(make_course(self.shot, number))
            except (FileNotFoundError, ModuleNotFoundError) as error:
                raise MissingInput(f"{where}: {error}") from None
            except (OSError, ValueError) as error:
                if shortage(error) is not None:
                    raise
                raise ShotError(f"{where}: {error}") from None
        return tuple(made)

    @_once
    def mesh_hashes(self) -> list[str] | None:
        """Return the hash of each body's mesh, "" for boxes; None where one is not there."""
        from vfx.geometry.divide.sources import source_hash
        from vfx.geometry.handoff.bodies import ASSET

        try:
            return [source_hash(body) if not body.mesh or body.mesh.startswith(ASSET)
                    else self._hash("mesh", Path(body.mesh), functools.partial(source_hash, body))
                    for body in self.shot.bodies]
        except OSError:
            return None

    @_once
    def environment_hash(self) -> str | None:
        """Return the hash of the environment's pixels; None where it is no good."""
        try:
            return self._hash("environment", _environment_file(self.shot),
                              lambda: _hash_of_pixels(self.environment()))
        except (ShotError, MissingInput):
            return None

    @_once
    def camera_hash(self) -> str | None:
        """Return the hash of the camera's file, "" without one; None where it is not there."""
        if not self.shot.camera.usd:
            return ""
        file = self.shot.folder / self.shot.camera.usd
        try:
            return self._hash("camera", file, lambda: file_hash(file)) if file.is_file() else None
        except OSError:
            return None

    @_once
    def texture_hash(self) -> str | None:
        """Return the hash of the image on the floor, "" without one; None where it is no good."""
        from vfx.raytrace.surface.texture import PROCEDURAL

        name = self.shot.floor_look.texture
        if name in PROCEDURAL:
            return ""
        try:
            return self._hash("image", self.shot.folder / name,
                              lambda: _hash_of_pixels(_some(self.texture())))
        except ShotError:
            return None

    @_once
    def image_hashes(self) -> list[str] | None:
        """Return the hashes of the images on surfaces; None where one is no good."""
        names = dict.fromkeys(surface_textures(self.shot).values())
        try:
            return [self._hash("image", self.shot.folder / name, functools.partial(
                lambda name: _hash_of_pixels(self.images()[name]), name)) for name in names]
        except ShotError:
            return None

    @_once
    def density_hashes(self) -> list[str] | None:
        """Return the hash of each [[weakening]]'s picture, "" without; None where one is bad."""
        names = [weakening.image for weakening in self.shot.weakening]
        try:
            return [self._hash("density", self.shot.folder / name, functools.partial(
                lambda name: _hash_of_pixels(self.densities()[name]), name)) if name else ""
                for name in names]
        except ShotError:
            return None

    @_once
    def sim_hashes(self) -> list[str] | None:
        """Return the hashes of pictures and animations; None where one is not there or bad.

        Shots without animations have the list they had before there were any.
        """
        pictures = self.density_hashes()
        files = [self.shot.folder / body.animation for body in self.shot.bodies if body.animation]
        try:
            if pictures is None or not all(file.is_file() for file in files):
                return None
            return pictures + [self._hash("animation", file, functools.partial(file_hash, file))
                               for file in files]
        except OSError:
            return None

    def _hash(self, kind: str, file: Path, read: Callable[[], str]) -> str:
        """Return the hash of an input: as noted while its file is untouched, or by reading it."""
        key = f"{kind} {file.absolute()}"
        try:
            status = os.stat(file)
        except (OSError, ValueError):
            return read()
        stamp = (status.st_size, status.st_mtime_ns)
        if key in self._known and self._known[key][:2] == stamp:
            return self._known[key][2]
        # Its stamp is of before it is read: one that changes meanwhile has another afterwards.
        found = read()
        self._found[key] = (*stamp, found)
        return found

    def note(self) -> None:
        """Note the hashes that were found for quick looks; who cannot write does without."""
        if self._notes is None or not self._found:
            return
        known = read_notes(self._notes)
        if any(known.get(key) != note for key, note in self._found.items()):
            document = {"program": _program(), "files": known | self._found}
            with suppress(StorageError):
                publish_bytes(self._notes, (json.dumps(document, indent=1) + "\n").encode())


def read_notes(path: Path) -> dict[str, _Note]:
    """Return what was noted by this version of the program; nothing where that is no good."""
    try:
        document = json.loads(read_regular(path))
        notes = {key: (size, time, found) for key, (size, time, found)
                 in document["files"].items()}
        is_ours = document["program"] == _program()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    is_sound = all(type(size) is int and type(time) is int and isinstance(found, str)
                   for size, time, found in notes.values())
    return notes if is_ours and is_sound else {}


def surface_textures(shot: Shot) -> dict[str, str]:
    """Return the images that the bodies' materials lay on their surfaces, by material."""
    from vfx.raytrace.surface.materials import material_look

    used = dict.fromkeys(body.material for body in shot.bodies)
    textures = {name: material_look(shot.looks[name]).surface.texture for name in used}
    return {name: texture for name, texture in textures.items() if texture}


def no_uv(shot: Shot, i: int) -> ShotError:
    """Return what is to be said of a textured body without uv."""
    body = shot.bodies[i]
    reason = f"its mesh {body.mesh} has none; unwrap it in the program that made it"
    if body.shape == "grid":
        reason = "it is made of cubes; take the shape voronoi or tet-shell"
    return ShotError(
        f"{shot.path}: materials.{body.material}.surface.texture: found "
        f"{surface_textures(shot)[body.material]!r}, but body '{body.name}' has no uv to lay it "
        f"by: {reason}, or remove the texture")


def _environment_file(shot: Shot) -> Path:
    name = shot.light.environment
    if is_plain_word(name):
        return Path(str(importlib.resources.files("vfx.envmaps") / f"{name}.exr"))
    return shot.folder / name


def _program() -> str:
    """Return which program reads: another may decode a picture otherwise."""
    try:
        return importlib.metadata.version("vfx-fracture")
    except importlib.metadata.PackageNotFoundError:
        return ""


def _some(pixels: Pixels | None) -> Pixels:
    assert pixels is not None, "the name is that of a file"
    return pixels


def _hash_of_pixels(pixels: npt.NDArray[Any]) -> str:
    shape = repr((pixels.shape, pixels.dtype.str)).encode()
    digest = hashlib.blake2b(shape, digest_size=20)
    digest.update(np.ascontiguousarray(pixels).data)      # in place: it may be large
    return digest.hexdigest()
