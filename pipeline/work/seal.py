"""Files that vouch for themselves: a seal in a file covers every byte of it, and says its place.

A seal is the text ``vfx-seal:`` and 40 hexadecimal digits, the hash of the whole file with these
digits taken as zeros. It stands where a format lets it: in the comment that ends an npz, in an
attribute of the header of an EXR. A file that was damaged, cut short or stitched together has a
seal that is broken; one in the place of another (the file of a neighbouring frame, say) is told
by the place that it carries beside its fingerprint. So a file is known for what it is though its
manifest was lost.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import BinaryIO

_MARK = b"vfx-seal:"
_DIGITS = 40
_CHUNK = 1 << 20

#: A seal that is yet to be set: write it into the file, then call :func:`set_seal`.
BLANK_SEAL = (_MARK + b"0" * _DIGITS).decode()


def place_of(path: Path) -> str:
    """Return the place of a result as it carries it: the name of its folder, and its own."""
    return f"{path.parent.name}/{path.name}"


def set_seal(path: Path) -> None:
    """Seal a file that holds one :data:`BLANK_SEAL`."""
    with open(path, "r+b") as file:
        start = _find(file)
        if start is None:
            raise ValueError(f"{path}: there is no place for a seal in it")
        digest = _digest(file, start)
        file.seek(start)
        file.write(digest)


def has_good_seal(path: Path) -> bool | None:
    """Whether a file is what was sealed; None if it has no seal. Reads it whole."""
    with open_regular(path) as file:
        start = _find(file)
        if start is None:
            return None
        digest = _digest(file, start)
        file.seek(start)
        return file.read(_DIGITS) == digest


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError where a folder, a pipe or a device is in its place.

    To open a pipe would wait for somebody to write into it.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path}: is no regular file")
    return open(handle, "rb", buffering=0)


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file; raise OSError as :func:`open_regular` does."""
    with open_regular(path) as file:
        return file.read()


def _find(file: BinaryIO) -> int | None:
    """Return where the digits of a file's seal begin: at its end, or where they stand first."""
    size = file.seek(0, os.SEEK_END)
    length = len(_MARK) + _DIGITS
    file.seek(max(0, size - length))
    if file.read(length).startswith(_MARK):
        return size - _DIGITS
    file.seek(0)
    before, kept = 0, b""
    while chunk := file.read(_CHUNK):
        kept += chunk
        at = kept.find(_MARK)
        if at >= 0:
            start = before + at + len(_MARK)
            return start if start + _DIGITS <= size else None
        before += len(kept) - min(len(kept), len(_MARK) - 1)
        kept = kept[-(len(_MARK) - 1):]
    return None


def _digest(file: BinaryIO, start: int) -> bytes:
    """Return the digits that a seal at ``start`` should have."""
    digest = hashlib.blake2b(digest_size=_DIGITS // 2)
    file.seek(0)
    left = start
    while left and (chunk := file.read(min(left, _CHUNK))):
        digest.update(chunk)
        left -= len(chunk)
    digest.update(b"0" * _DIGITS)
    file.seek(start + _DIGITS)
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    return digest.hexdigest().encode()
