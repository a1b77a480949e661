"""Read Radiance HDR images (``.hdr``), the other format that environments come in.

Ward 1991, "Real pixels": four bytes a pixel, three mantissas and a shared exponent, each
scanline run-length encoded component by component. Only images stored top row first and left
to right (``-Y height +X width``), which is what all common programs write.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from vfx.geometry.handoff import Array

_SIZE = re.compile(rb"-Y (\d{1,6}) \+X (\d{1,6})")


def read_radiance_hdr(path: Path) -> Array:
    """Return the image (h, w, 3) float32; raises ValueError where it is damaged."""
    data = Path(path).read_bytes()
    head, _, rest = data.partition(b"\n\n")
    size_line, _, body = rest.partition(b"\n")
    size = _SIZE.fullmatch(size_line.strip())
    if not head.startswith(b"#?") or b"32-bit_rle_rgbe" not in head or size is None:
        raise ValueError(f"{path}: this is not a Radiance HDR image (RGBE, top row first); "
                         "save it again as .hdr or .exr")
    height, width = int(size.group(1)), int(size.group(2))
    if height * width > 1 << 27:
        raise ValueError(f"{path}: the image has {width} x {height} pixels; at most "
                         "16384 x 8192 are taken, so make it smaller")
    try:
        rgbe = _decode(memoryview(body), height, width)
    except IndexError:
        raise ValueError(f"{path}: the image ends before its last scanline or is damaged; "
                         "copy or save it again") from None
    image = np.empty((height, width, 3), np.float32)
    for row in range(height):
        exponent = rgbe[row, :, 3:]
        scale = np.where(exponent > 0, np.ldexp(1.0, exponent.astype(int) - 136), 0.0)
        image[row] = rgbe[row, :, :3] * scale
    return image


def _decode(body: memoryview, height: int, width: int) -> Array:
    """Expand the scanlines to (h, w, 4) uint8; raises IndexError where bytes are missing."""
    rgbe = np.zeros((height, width, 4), np.uint8)
    place = 0
    for row in range(height):
        is_packed = (8 <= width < 32768 and body[place] == 2 and body[place + 1] == 2
                     and body[place + 2] << 8 | body[place + 3] == width)
        if not is_packed:
            flat = body[place:place + 4 * width]
            if len(flat) < 4 * width:
                raise IndexError(row)
            rgbe[row] = np.frombuffer(flat, np.uint8).reshape(width, 4)
            place += 4 * width
            continue
        place += 4
        for component in range(4):
            column = 0
            while column < width:
                count = body[place]
                run = count > 128
                count = count - 128 if run else count
                values = body[place + 1:place + 1 + (1 if run else count)]
                if count == 0 or len(values) == 0 or column + count > width:
                    raise IndexError(row)
                if not run and len(values) < count:
                    raise IndexError(row)
                rgbe[row, column:column + count, component] = np.frombuffer(values, np.uint8)
                place += 1 + len(values)
                column += count
    return rgbe
