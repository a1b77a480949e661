"""The text of an OBJ file, before others read it: backward numbers, and faces of many corners.

A face may name a vertex by how far back it stands, -1 the last one before the face. Readers that
count from the end of the file take other vertices where more follow, so such numbers are made
absolute here. What no vertex has is refused with its line. Faces that readers would cut into
triangles that lie over each other are written as triangles.
"""

from __future__ import annotations

import re

import numpy as np

from vfx.geometry.mesh_files import MeshError
from vfx.geometry.polygons import cut_ears, folded_fans

_PERHAPS = re.compile(rb"[ \t/][-0]")
#: A face with a number that is negative or zero.
_BACKWARD = re.compile(rb"^[ \t]*f[ \t](?:[^\n]*[ \t])?(?:\d*/)*(?:-|0+(?![\d.]))", re.MULTILINE)
_VERTEX = re.compile(rb"^[ \t]*v[ \t]", re.MULTILINE)
_PLACE = re.compile(rb"^[ \t]*v[ \t]+(\S+)[ \t]+(\S+)[ \t]+(\S+)", re.MULTILINE)
#: A face of more than three corners.
_POLYGON = re.compile(rb"^[ \t]*f((?:[ \t]+[\d/]+){4,})[ \t]*$", re.MULTILINE)
#: What the three numbers of a corner count.
_KINDS = (b"v", b"vt", b"vn")


def plain_lines(data: bytes) -> bytes:
    """Return OBJ text without what follows a #, with faces in one line each.

    Readers look for words with nothing before the first and a space behind it.
    """
    if b"\t" in data:
        data = data.replace(b"\t", b" ")
    if b"\\" in data:
        data = re.sub(rb"\\ *\n", b" ", data)
    if data.startswith(b" ") or b"\n " in data:
        data = re.sub(rb"^ +", b"", data, flags=re.MULTILINE)
    return re.sub(rb"#[^\n]*", b"", data) if b"#" in data else data


def without_folds(data: bytes) -> bytes:
    """Return OBJ text in which faces whose fan would lie over itself are triangles.

    What is no face, or names no vertex, stays as it is: others complain of it.
    """
    face = list(_POLYGON.finditer(data))
    if not face:
        return data
    corner = [match.group(1).split() for match in face]
    count = np.array([len(words) for words in corner])
    try:
        index = np.array([int(word.split(b"/", 1)[0]) for words in corner for word in words]) - 1
        vertex = np.array(_PLACE.findall(data), dtype=np.float64).reshape(-1, 3)
    except ValueError:
        return data
    if index.min() < 0 or index.max() >= len(vertex):
        return data
    first = np.cumsum(count) - count
    parts, done = [], 0
    for k in np.flatnonzero(folded_fans(vertex, index, count)).tolist():
        start, end = face[k].span()
        ears = cut_ears(vertex[index[first[k]:first[k] + count[k]]])
        lines = [b"f " + b" ".join(corner[k][i] for i in ear) for ear in ears.tolist()]
        parts += [data[done:start], b"\n".join(lines)]
        done = end
    return b"".join([*parts, data[done:]])


def forward_obj(data: bytes) -> bytes:
    """Return OBJ text with faces that name vertices by numbers from 1 on, or raise MeshError."""
    # Nearly all files list vertices first and have no such number after them.
    first = max(data.find(b"\nf"), 0)
    if not _PERHAPS.search(data, first) or not _BACKWARD.search(data, first):
        return data
    return rewritten(data)


def rewritten(data: bytes) -> bytes:
    """Read OBJ text line by line; return it without backward numbers.

    Raises MeshError for the first line with a vertex or a face that is none.
    """
    total = len(_VERTEX.findall(data))
    seen = dict.fromkeys(_KINDS, 0)
    lines = data.split(b"\n")
    for i, line in enumerate(lines):
        word = line.split()
        if not word:
            continue
        if word[0] in seen:
            seen[word[0]] += 1
        if word[0] == b"v":
            _check_vertex(word, i + 1)
        elif word[0] == b"f":
            corners = [_forward(corner, seen, total, i + 1) for corner in word[1:]]
            lines[i] = b" ".join([b"f", *corners])
    return b"\n".join(lines)


def _check_vertex(word: list[bytes], line: int) -> None:
    try:
        place = [float(text) for text in word[1:4]]
    except ValueError:
        place = []
    if len(place) < 3:
        found = b" ".join(word)[:60].decode(errors="replace")
        raise MeshError(f"has no vertex where line {line} says one, '{found}': it takes three "
                        "numbers; export it again")


def _forward(corner: bytes, seen: dict[bytes, int], total: int, line: int) -> bytes:
    """Return the corner of a face, like 3/-1/2, with numbers from 1 on."""
    try:
        number = [int(text) if text else None for text in corner.split(b"/")]
    except ValueError:
        number = []
    if not number or number[0] is None or len(number) > len(_KINDS):
        found = corner[:40].decode(errors="replace")
        raise MeshError(f"has a face in line {line} with a corner '{found}', which names no "
                        "vertex; export it again")
    at = [n + 1 + seen[kind] if n is not None and n < 0 else n
          for n, kind in zip(number, _KINDS, strict=False)]
    if not 1 <= (at[0] or 0) <= total:
        raise MeshError(f"has a face in line {line} that names vertex {number[0]}, but there are "
                        f"{total}, counted from 1; export it again")
    return b"/".join(b"" if n is None else str(n).encode() for n in at)
