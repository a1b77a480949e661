"""Write and read frames as OpenEXR files.

Colour (R, G, B, A and layers whose channels end so) is half, everything else float; ZIPS, one
part, as comp programs read fastest. Writing goes exactly to the path given: making it atomic
is the caller's business.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import OpenEXR

from vfx.geometry.handoff.types import Array

COLOR_SUFFIXES = frozenset("RGBA")
#: The largest finite half: brighter pixels are clamped to it, for an infinity spreads in comp.
HALF_MAX = 65504.0
_SILENCE = threading.Lock()


def write_exr(path: Path, channels: Mapping[str, Array], header: Mapping[str, Any], *,
              exact: bool = False) -> None:
    """Write ``channels`` (name -> (h, w) array) and ``header`` attributes to ``path``.

    ``exact`` stores colours as floats, too: those of a Cryptomatte are ids.
    """
    attributes: dict[str, Any] = {
        "compression": OpenEXR.ZIPS_COMPRESSION, "type": OpenEXR.scanlineimage}
    attributes.update(header)
    pixels = {name: np.ascontiguousarray(channel, np.float32) if exact else _stored(name, channel)
              for name, channel in channels.items()}
    # The library replaces what is in the dictionaries it gets: these are our own copies. It does
    # not say when a disk gets full behind its back, so the bytes are written here.
    data = io.BytesIO()
    OpenEXR.File(attributes, pixels).write(data)
    Path(path).write_bytes(data.getbuffer())


def _stored(name: str, channel: Array) -> Array:
    if name.rpartition(".")[2] in COLOR_SUFFIXES:
        return np.ascontiguousarray(np.clip(channel, -HALF_MAX, HALF_MAX), np.float16)
    return np.ascontiguousarray(channel, np.float32)


def exr_extent(path: Path) -> tuple[int, int, int]:
    """Return width and height of what a file's header speaks of, and the bytes to read all of it.

    No pixels are read; the bytes are those of all parts, as floats. Raises ValueError where there
    is no such header, or it speaks of deep pixels, of which there is no telling how many.
    """
    sizes, is_deep = [], False
    _try_open(path)
    try:
        with _silent(), OpenEXR.File(str(path), header_only=True) as file:
            for part in file.parts:
                low, high = (np.asarray(corner, np.int64) for corner in part.header["dataWindow"])
                sizes.append((*(int(size) for size in high - low + 1),
                              len(part.header["channels"])))
                is_deep |= part.header.get("type") in (OpenEXR.deepscanline, OpenEXR.deeptile)
    except (MemoryError, OSError):
        raise
    except Exception as error:  # as in read_exr
        raise _unreadable(path, error) from None
    if is_deep:
        raise ValueError(f"{path}: has deep pixels; save it flat, with a value a pixel")
    width, height, _ = sizes[0]
    return width, height, sum(4 * abs(w * h) * n_channels for w, h, n_channels in sizes)


def read_exr(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read every pixel of a single-part file: (name -> (h, w) array, header).

    Raises ValueError where the file is damaged or no EXR; a header alone proves nothing,
    since truncated files still open.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"{path}: the image does not exist")
    _try_open(path)
    try:
        with _silent(), OpenEXR.File(str(path), separate_channels=True) as file:
            # The arrays are their own: they outlive the file.
            channels = {name: channel.pixels for name, channel in file.channels().items()}
            header = dict(file.header())
    except (MemoryError, OSError):         # of the system, which has opened it a moment before
        raise
    except Exception as error:  # the library raises many kinds, RuntimeError above all
        raise _unreadable(path, error) from None
    return channels, header


def _try_open(path: Path) -> None:
    """Raise what the system says of a file; the library calls all of it damage."""
    with open(path, "rb"):
        pass


def _unreadable(path: Path, error: Exception) -> ValueError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(f"{path}: the image cannot be read whole, it is truncated, damaged or "
                      f"no OpenEXR file ({reason}); make or copy it again")


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what the library itself prints about damaged files off both outputs.

    It prints in Python and in C; both outputs belong to the whole process, so one thread at a
    time turns them away.
    """
    with _SILENCE, contextlib.redirect_stdout(io.StringIO()):
        sys.stderr.flush()
        try:
            kept = os.dup(2)
        except OSError as error:
            if error.errno != errno.EBADF:
                raise
            yield                  # there is none to turn away
            return
        try:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)

