"""Ways to spoil bytes, for files of any kind; each follows from the random generator alone."""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable
from random import Random

import numpy as np

#: Integers that sizes, counts and offsets in headers are replaced by.
_COUNTS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
#: Numbers that stand in text files in the place of plain ones.
_NUMBERS = ("0", "-0.0", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "-1", "1e39",
            "99999999999999999999", "2147483648", "-2147483649", "1e", "0x10", "1_0", "١", "",
            "1.5", "1e9", "1,5", "--1", "1/2")


def flip_bit(random: Random, data: bytes) -> bytes:
    """Turn one bit."""
    place = random.randrange(len(data))
    return data[:place] + bytes([data[place] ^ (1 << random.randrange(8))]) + data[place + 1:]


def change_byte_in_head(random: Random, data: bytes) -> bytes:
    """Set one of the first bytes."""
    place = random.randrange(min(len(data), 128))
    return data[:place] + bytes([random.randrange(256)]) + data[place + 1:]


def change_count(random: Random, data: bytes) -> bytes:
    """Write another count over four bytes, as headers have them, mostly near the start."""
    if len(data) < 8:
        return data + b"\0"
    place = int((len(data) - 4) * random.random() ** random.choice([1, 3, 6]))
    order = random.choice("<>")
    return data[:place] + struct.pack(f"{order}I", random.choice(_COUNTS)) + data[place + 4:]


def cut_short(random: Random, data: bytes) -> bytes:
    """Leave out the end."""
    return data[:random.randrange(len(data))]


def lengthen(random: Random, data: bytes) -> bytes:
    """Add to the end: noise, zeros, or itself."""
    return data + random.choice([random.randbytes(random.randrange(1, 2000)),
                                 b"\0" * random.randrange(1, 5000), data])


def empty(random: Random, data: bytes) -> bytes:
    """Leave nothing."""
    return b""


def zero_block(random: Random, data: bytes) -> bytes:
    """Write zeros over a block, as a disk does that lost one."""
    size = min(len(data), random.choice([16, 512, 4096]))
    place = random.randrange(len(data) - size + 1)
    return data[:place] + b"\0" * size + data[place + size:]


def shuffle_blocks(random: Random, data: bytes) -> bytes:
    """Take a piece out and put it elsewhere."""
    a, b, c = sorted(random.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def noise(random: Random, data: bytes) -> bytes:
    """Replace all of it."""
    return random.randbytes(random.choice([1, 100, len(data)]))


SPOILERS: tuple[Callable[[Random, bytes], bytes], ...] = (
    flip_bit, flip_bit, change_byte_in_head, change_byte_in_head, change_count, change_count,
    cut_short, lengthen, empty, zero_block, shuffle_blocks, noise)


def change_number(random: Random, text: bytes) -> bytes:
    """Replace one number of a text, or a few."""
    return _replace(random, text, rb"[-+]?\d[\d.]*(?:e[-+]?\d+)?",
                    lambda: random.choice(_NUMBERS).encode())


def change_word(random: Random, text: bytes) -> bytes:
    """Replace one word of a text."""
    words = re.findall(rb"[A-Za-z_]{2,}", text) or [b"word"]
    return _replace(random, text, rb"[A-Za-z_]+", lambda: random.choice(
        [random.choice(words), b"", b"x" * 5000, "ÄÖ\u202e".encode(), b"\xff\xfe", b"\x1b[31m"]))


def change_lines(random: Random, text: bytes) -> bytes:
    """Remove, double, move, join or end lines otherwise."""
    lines = text.split(b"\n")
    place = random.randrange(len(lines))
    other = random.randrange(len(lines))
    way = random.randrange(7)
    if way == 0:
        del lines[place:place + random.choice([1, 1, 3, 10])]
    elif way == 1:
        lines[place:place] = [lines[other]] * random.choice([1, 2, 50])
    elif way == 2:
        lines[place], lines[other] = lines[other], lines[place]
    elif way == 3:
        lines[place] += b" " + lines[other]
    elif way == 4:
        return b"\r".join(lines)
    elif way == 5:
        return b"\xef\xbb\xbf" + b"\r\n".join(lines)
    else:
        lines.insert(place, random.choice([b"#", b"\0", b" " * 10_000, b"\\", b"f", b"v 1", b"]"]))
    return b"\n".join(lines)


TEXT_SPOILERS: tuple[Callable[[Random, bytes], bytes], ...] = (
    change_number, change_number, change_word, change_lines, change_lines)


def change_json(random: Random, text: bytes) -> bytes:
    """Change one value somewhere in a JSON document, so that it stays one."""
    try:
        document = node = json.loads(text)
    except ValueError:
        return flip_bit(random, text)
    while isinstance(node, (dict, list)) and node:
        key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if isinstance(node[key], (dict, list)) and node[key] and random.random() < 0.8:
            node = node[key]
            continue
        node[key] = random.choice([None, -1, 0, 2**31, 10**400, 1e300, float("nan"), "", "../../x",
                                   [], {}, True, [0], "x" * 10_000, 5126, 99])
        break
    return json.dumps(document).encode()


def change_npz(random: Random, data: bytes) -> bytes:
    """Take an array of an npz away, or give it another type or length; all its sums are right."""
    try:
        with np.load(io.BytesIO(data)) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, KeyError, zipfile.BadZipFile):
        return flip_bit(random, data)
    name = random.choice([name for name in arrays if not name.startswith("pipeline_")])
    way = random.randrange(4)
    if way == 0:
        del arrays[name]
    elif way == 1:
        kinds = ["S3"] if arrays[name].dtype.kind in "SU" else ["S3", np.complex64, np.int8]
        arrays[name] = arrays[name].astype(random.choice(kinds))
    elif way == 2:
        arrays[name] = np.concatenate([np.atleast_1d(arrays[name])] * 2)
    else:
        arrays[name] = np.zeros((0, 2))
    spoilt = io.BytesIO()
    np.savez(spoilt, **arrays)
    return spoilt.getvalue()


def spoil(random: Random, data: bytes, *, is_text: bool = False) -> bytes:
    """Spoil data in one to three ways; text mostly so that it stays text."""
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        ways = TEXT_SPOILERS if is_text and random.random() < 0.75 else SPOILERS
        if data:
            data = random.choice(ways)(random, data)
    return data


def _replace(random: Random, text: bytes, pattern: bytes, value: Callable[[], bytes]) -> bytes:
    places = [match.span() for match in re.finditer(pattern, text)]
    for start, end in sorted(random.sample(places, min(len(places), random.choice([1, 1, 2, 9]))),
                             reverse=True):
        text = text[:start] + value() + text[end:]
    return text
