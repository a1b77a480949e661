"""Read Radiance HDR images (``.hdr``), the other format that environments come in.

Ward 1991, "Real pixels": four bytes a pixel, three mantissas and a shared exponent, each
scanline run-length encoded component by component. Only images stored top row first and left
to right (``-Y height +X width``), which is what all common programs write.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.raytrace.film.picture import check_size

_LONGEST_HEAD = 1 << 16
_SIZE = re.compile(rb"-Y (\d{1,6}) \+X (\d{1,6})")


def read_radiance_hdr(path: Path) -> Array:
    """Return the image (h, w, 3) float32; raises ValueError where it is damaged."""
    with Path(path).open("rb") as file:
        head = file.read(_LONGEST_HEAD)
        head, _, rest = head.partition(b"\n\n")
        size_line, _, body = rest.partition(b"\n")
        size = _SIZE.fullmatch(size_line.strip())
        if not head.startswith(b"#?") or b"32-bit_rle_rgbe" not in head or size is None:
            raise ValueError(f"{path}: this is not a Radiance HDR image (RGBE, top row first); "
                             "save it again as .hdr or .exr")
        height, width = int(size.group(1)), int(size.group(2))
        check_size(path, width, height)
        # At most so many bytes can be of use: none is packed, or all but for nothing.
        body += file.read(height * (4 + 8 * width))
    image = np.empty((height, width, 3), np.float32)
    place, scanlines = 0, memoryview(body)
    rgbe = np.empty((width, 4), np.uint8)
    try:
        for row in range(height):
            place = _decode(scanlines, place, rgbe)
            exponent = rgbe[:, 3:]
            scale = np.where(exponent > 0, np.ldexp(1.0, exponent.astype(int) - 136), 0.0)
            image[row] = rgbe[:, :3] * scale
    except IndexError:
        raise ValueError(f"{path}: the image ends before its last scanline or is damaged; "
                         "copy or save it again") from None
    return image


def _decode(body: memoryview, place: int, rgbe: Array) -> int:
    """Expand a scanline into ``rgbe`` (w, 4) uint8, and return where the next one begins.

    Raises IndexError where bytes are missing.
    """
    width = len(rgbe)
    is_packed = (8 <= width < 32768 and body[place] == 2 and body[place + 1] == 2
                 and body[place + 2] << 8 | body[place + 3] == width)
    if not is_packed:
        flat = body[place:place + 4 * width]
        if len(flat) < 4 * width:
            raise IndexError(place)
        rgbe[:] = np.frombuffer(flat, np.uint8).reshape(width, 4)
        return place + 4 * width
    place += 4
    for component in range(4):
        column = 0
        while column < width:
            count = body[place]
            run = count > 128
            count = count - 128 if run else count
            values = body[place + 1:place + 1 + (1 if run else count)]
            if count == 0 or len(values) == 0 or column + count > width:
                raise IndexError(place)
            if not run and len(values) < count:
                raise IndexError(place)
            rgbe[column:column + count, component] = np.frombuffer(values, np.uint8)
            place += 1 + len(values)
            column += count
    return place
