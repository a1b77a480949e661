"""Files that are whole or not there: atomic publish, checked reading, locks, leftovers.

A file is written under a temporary name in its own folder, flushed to the disk, and renamed;
a crash at any moment leaves the old file or the new one, never a part. Temporary names carry
host and process, so that two processes never write into one, and so that what a killed one
left can be recognised and removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import itertools
import math
import os
import re
import secrets
import shutil
import socket
import stat
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from vfx.pipeline.errors import DamagedFile, MissingInput, StorageError
from vfx.pipeline.work.seal import BLANK_SEAL, has_good_seal, open_regular, place_of, set_seal

Arrays = dict[str, npt.NDArray[Any]]

#: The array of an npz that says what the file was made from, so that it tells it by itself.
FINGERPRINT = "pipeline_fingerprint"
#: The one that says which result it is.
PLACE = "pipeline_place"

_PREFIX = ".tmp-"
_TEMPORARY = re.compile(re.escape(_PREFIX) + r"([A-Za-z0-9_]+)-(\d+)-[0-9a-f]{8}-.+")
_FRESH_SECONDS = 24 * 3600.0
_CHUNK = 1 << 20
_POLL_SECONDS = 0.2
_NO_FILE = "is a pipe, a socket or a device where a file belongs; remove it"


@dataclass(frozen=True)
class Published:
    """A file as it was published: hash of its bytes, its size [bytes] and when [ns]."""

    hash: str
    size: int
    time: int = field(default=0, compare=False)


def publish(path: Path, write: Callable[[Path], None]) -> Published:
    """Make ``path`` by calling ``write`` with a temporary path, atomically and durably."""
    temporary = path.with_name(f"{_PREFIX}{_host()}-{os.getpid()}-{secrets.token_hex(4)}-"
                               f"{path.name}")
    with storage_errors(path):
        _refuse_special(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            write(temporary)
            with open(temporary, "rb") as file:
                os.fsync(file.fileno())
            published = look_at(temporary)
            clear_place(path)
            os.replace(temporary, path)
            _sync_folder(path.parent)
        except BaseException as error:
            temporary.unlink(missing_ok=True)
            if not isinstance(error, OSError) and _is_full(path.parent):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None
            raise
    return published


def publish_bytes(path: Path, data: bytes) -> Published:
    """Publish a file with the given content."""
    return publish(path, lambda temporary: _write_bytes(temporary, data))


def write_result(path: Path, arrays: Arrays, fingerprint: str) -> Published:
    """Publish arrays as the result of a stage: a sealed npz that says what it is."""
    return write_npz(path, {**arrays, FINGERPRINT: np.array(fingerprint),
                            PLACE: np.array(place_of(path))})


def write_npz(path: Path, arrays: Arrays) -> Published:
    """Publish arrays as an uncompressed, sealed npz; equal arrays make equal bytes."""
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{path.name}: the array '{name}' holds Python objects")
    return publish(path, lambda temporary: _save_npz(temporary, arrays))


def read_npz(path: Path, names: Iterable[str] | None = None,
             optional: Iterable[str] = ()) -> Arrays:
    """Read arrays of an npz, every byte of them checked; never unpickles.

    Reads all members, and then the seal must hold; or only ``names``, and those of ``optional``
    that are there, each to its end, so that its checksum is compared. A file without a seal, of a
    version before, vouches for nothing: it has no fingerprint. Raises DamagedFile if anything is
    amiss.
    """
    try:
        sealed = has_good_seal(path) if names is None else None
        if sealed is False:
            raise ValueError("its bytes are not those that were written")
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            if names is None and sealed is None and archive.comment:
                raise ValueError("its seal is broken")
            members = {name.removesuffix(".npy"): name for name in archive.namelist()}
            wanted = members if names is None else [
                *names, *(name for name in optional if name in members)]
            arrays = {name: _read_member(archive, members[name]) for name in wanted}
    except FileNotFoundError:
        raise MissingInput(f"{path}: there is no such file") from None
    except _UNREADABLE as error:
        raise DamagedFile(f"{path}: damaged: {error}") from None
    if names is None and not sealed:
        arrays.pop(FINGERPRINT, None)
    place = str(arrays.pop(PLACE, "")) or place_of(path)
    if place != place_of(path):
        raise DamagedFile(f"{path}: damaged: it is the file {place} in the place of another")
    return arrays


#: What zipfile and numpy raise on files that are not as they were written.
_UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error,
               NotImplementedError, RuntimeError, SyntaxError, TypeError, struct.error,
               OverflowError)


def _read_member(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Read an array to the end of its member, where the checksum is compared.

    How much there is to read is known before room is made for it, whatever its header says.
    """
    with archive.open(name) as member:
        read_header = {(1, 0): np.lib.format.read_array_header_1_0,
                       (2, 0): np.lib.format.read_array_header_2_0}
        version = np.lib.format.read_magic(member)
        shape, is_fortran, dtype = read_header[version](member)
        size = archive.getinfo(name).file_size - member.tell()
        if dtype.hasobject or size != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name} is no array, or of another size than it says")
        data = memoryview(bytearray(size))
        place = 0
        while chunk := member.read(_CHUNK):
            data[place:place + len(chunk)] = chunk
            place += len(chunk)
    order: Literal["F", "C"] = "F" if is_fortran else "C"
    return np.ndarray(shape, dtype, data, order=order)


def read_fingerprint(path: Path) -> str:
    """Return the fingerprint an npz carries ("" if none), having read all of the file."""
    return str(read_npz(path).get(FINGERPRINT, ""))


def is_whole(path: Path) -> bool:
    """Whether every array of an npz can be read."""
    try:
        read_npz(path)
    except (DamagedFile, MissingInput):
        return False
    return True


def file_hash(path: Path) -> str:
    """Return the hash of a file's bytes, reading it whole; raise OSError if it is no file."""
    digest = hashlib.blake2b(digest_size=20)
    with open_regular(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def bytes_hash(data: bytes) -> str:
    """Return the hash that a file of these bytes has."""
    return hashlib.blake2b(data, digest_size=20).hexdigest()


def look_at(path: Path) -> Published:
    """Return what a file is now, reading it whole."""
    status = path.stat()
    return Published(file_hash(path), status.st_size, status.st_mtime_ns)


def is_untouched(path: Path, published: Published) -> bool:
    """Whether a file has the size and the time with which it was published, reading nothing."""
    try:
        status = path.stat()
    except OSError:
        return False
    return (status.st_size, status.st_mtime_ns) == (published.size, published.time)


def is_intact(path: Path, published: Published) -> bool:
    """Whether a file still holds exactly what was published."""
    try:
        return path.stat().st_size == published.size and file_hash(path) == published.hash
    except OSError:
        return False


def open_own(path: Path, flags: int) -> int:
    """Open a file of ours to write into, making it if it is not there; return its descriptor.

    A link is not followed: in a folder from somebody else it may lead to any file of the user.
    Nor is anything but a regular file opened, which might block.
    """
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK,
                         0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise StorageError(f"{path}: is a link to another file, which is not written into; "
                               "remove it") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise StorageError(f"{path}: {_NO_FILE}")
    return handle


def _refuse_special(path: Path) -> None:
    """Raise StorageError if something is there that is no file, no folder and no link to one."""
    with contextlib.suppress(OSError):
        mode = os.stat(path).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise StorageError(f"{path}: {_NO_FILE}")


@contextlib.contextmanager
def locked(path: Path, busy: str | None = None,
           poll: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on the file ``path``.

    Waits for the lock, or, if ``busy`` is given, raises MissingInput with that sentence when
    another process has it. While it waits it calls ``poll``, if given, which may raise. The
    system drops the lock of a process that dies.
    """
    with _lock_file(path) as handle:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | (fcntl.LOCK_NB if busy or poll else 0))
                break
            except BlockingIOError:
                if poll is None:
                    raise MissingInput(busy or "locked") from None
                poll()
                time.sleep(_POLL_SECONDS)
        yield


@contextlib.contextmanager
def in_use(path: Path) -> Iterator[None]:
    """Hold a lock on the file ``path`` together with others, but not while one has it alone."""
    with _lock_file(path) as handle:
        fcntl.flock(handle, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def _lock_file(path: Path) -> Iterator[int]:
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open_own(path, os.O_RDWR)
    try:
        yield handle
    finally:
        os.close(handle)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove temporary files that killed processes left in ``folder``; return them.

    One of a living process is kept while it is fresh, and so is a fresh one of another host.
    """
    removed = []
    for path in sorted(folder.glob(f"{_PREFIX}*")):
        match = _TEMPORARY.fullmatch(path.name)
        if match is None:
            continue
        try:
            fresh = time.time() - path.stat().st_mtime < _FRESH_SECONDS
            if fresh and (match[1] != _host() or _is_alive(int(match[2]))):
                continue
            path.unlink()
            removed.append(path)
        except OSError:
            continue
    return removed


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn what a disk refuses into a sentence that names the file and the way out."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(f"{path}: no space left on the disk; free some or choose another "
                               "folder (--work for the files of a shot)") from None
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise StorageError(f"{path}: cannot be written ({error.strerror}); choose another "
                               "folder (--work for the files of a shot)") from None
        if error.errno in (errno.ENOTDIR, errno.EEXIST, errno.EISDIR):
            raise StorageError(f"{path}: cannot be written, a file stands where a folder is "
                               "needed or the other way round; choose another folder "
                               "(--work for the files of a shot)") from None
        raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from None


def _is_full(folder: Path) -> bool:
    """Whether a folder's disk is full: some libraries fail on that without saying so."""
    return shutil.disk_usage(folder).free < _CHUNK


def clear_place(path: Path) -> None:
    """Make way for a file: a folder in its place is set aside under another name, not removed."""
    if not path.is_dir() or path.is_symlink():
        return
    aside = next(name for number in itertools.count(1)
                 if not os.path.lexists(name := path.with_name(f"{path.name}.aside-{number}")))
    path.rename(aside)


def remove_file(path: Path) -> None:
    """Remove a file if it is there; a folder in its place is set aside."""
    with storage_errors(path):
        clear_place(path)
        path.unlink(missing_ok=True)


def _save_npz(path: Path, arrays: Arrays) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = BLANK_SEAL.encode()
    set_seal(path)


def _write_bytes(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", socket.gethostname()) or "host"


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
