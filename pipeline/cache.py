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
import os
import re
import secrets
import shutil
import socket
import stat
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vfx.pipeline.errors import DamagedFile, MissingInput, StorageError

Arrays = dict[str, npt.NDArray[Any]]

#: The array of an npz that says what the file was made from, so that it tells it by itself.
FINGERPRINT = "pipeline_fingerprint"

_PREFIX = ".tmp-"
_TEMPORARY = re.compile(re.escape(_PREFIX) + r"([A-Za-z0-9_]+)-(\d+)-[0-9a-f]{8}-.+")
_FRESH_SECONDS = 24 * 3600.0
_CHUNK = 1 << 20
_POLL_SECONDS = 0.2
_NO_FILE = "is a pipe, a socket or a device where a file belongs; remove it"


@dataclass(frozen=True)
class Published:
    """A file as it was published: hash of its bytes and its size [bytes]."""

    hash: str
    size: int


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
            published = Published(file_hash(temporary), temporary.stat().st_size)
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


def write_npz(path: Path, arrays: Arrays) -> Published:
    """Publish arrays as an uncompressed npz; equal arrays make equal bytes."""
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise TypeError(f"{path.name}: the array '{name}' holds Python objects")
    return publish(path, lambda temporary: _save_npz(temporary, arrays))


def read_npz(path: Path, names: Iterable[str] | None = None) -> Arrays:
    """Read arrays of an npz, whole and CRC-checked; never unpickles.

    Reads all members, or only ``names``. Raises DamagedFile if anything is amiss.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            wanted = archive.files if names is None else names
            return {name: archive[name] for name in wanted}
    except FileNotFoundError:
        raise MissingInput(f"{path}: there is no such file") from None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error,
            AttributeError, NotImplementedError, RuntimeError, MemoryError) as error:
        raise DamagedFile(f"{path}: damaged: {error}") from None


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
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError(errno.EINVAL, "no regular file")
    digest = hashlib.blake2b(digest_size=20)
    with open(path, "rb", buffering=0) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


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


def refuse_special_files(folder: Path) -> None:
    """Raise StorageError if pipes, sockets or devices lie in the folders of a work folder.

    They would be opened as results, and who reads a pipe waits for ever.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for inner in [folder, *(Path(entry) for entry in entries if entry.is_dir())]:
            with contextlib.suppress(OSError), os.scandir(inner) as files:
                for file in files:
                    if not file.is_dir(follow_symlinks=False) and not (
                            file.is_file(follow_symlinks=False)):
                        _refuse_special(Path(file))


def _refuse_special(path: Path) -> None:
    """Raise StorageError if something is there that is no file, no folder and no link to one."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return
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
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = open_own(path, os.O_RDWR)
    try:
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


def _save_npz(path: Path, arrays: Arrays) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


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
