"""OBJ files as polygons: places, uv and normals, and the faces that name them.

Groups, objects and materials part nothing: all faces are one mesh. A face may name a vertex by
how far back it stands, -1 the last one before the face. What names no vertex is refused with its
line. Words are read by the column, not one by one: files of millions of lines are common.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError, no_triangles
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh
from vfx.geometry.mesh.polygons import polygon_corners

_SPACE, _SLASH, _NEWLINE = (np.uint8(ord(sign)) for sign in " /\n")
#: What the three numbers of a corner count.
_KINDS = ("v", "vt", "vn")
_LONGEST_SHOWN = 60


@dataclass(frozen=True)
class _Lines:
    """The lines of a file that begin with one word, without that word."""

    text: bytes              # ending in a newline each
    number: Array            # (l,) of each line, from 0 on


def read_obj(data: bytes) -> RawMesh:
    """Return the mesh of an OBJ file, whose lines end in a newline each."""
    data = _plain(data)
    lines = {kind: _lines_of(data, kind) for kind in (*_KINDS, "f")}
    if not len(lines["f"].number):
        raise MeshError(no_triangles("obj"))
    place = _rows(lines["v"], 3)
    if place is None:
        raise MeshError(_no_vertex(lines["v"]))
    index, count = _corners(lines, len(place))
    corner = polygon_corners(np.where(np.isfinite(place), place, 0.0), index[:, 0], count)

    def at_corners(kind: int) -> Array | None:
        """Return what all corners name of uv or normals, or None."""
        width = 2 if kind == 1 else 3
        rows = _rows(lines[_KINDS[kind]], width)
        which = index[:, kind]
        if rows is None or not len(rows) or which.min() < 0 or which.max() >= len(rows):
            return None
        return np.asarray(rows.astype(np.float32)[which[corner]])

    return RawMesh(place, index[corner, 0], at_corners(2), at_corners(1))


def _plain(data: bytes) -> bytes:
    """Return text without what follows a #, one line a face, and no space before a word."""
    data = data.replace(b"\t", b" ")
    if b"\\" in data:
        data = re.sub(rb"\\ *\n", b" ", data)
    if b"#" in data:
        data = re.sub(rb"#[^\n]*", b"", data)
    if data.startswith(b" ") or b"\n " in data:
        data = re.sub(rb"^ +", b"", data, flags=re.MULTILINE)
    return data if data.endswith(b"\n") else data + b"\n"


def _lines_of(data: bytes, kind: str) -> _Lines:
    """Return the lines that begin with a word."""
    byte = np.frombuffer(data, np.uint8)
    end = np.flatnonzero(byte == _NEWLINE)
    start = np.concatenate([[0], end[:-1] + 1])
    fits = np.ones(len(start), dtype=bool)
    for k, sign in enumerate(f"{kind} ".encode()):
        # Shorter lines meet their newline, which is no sign of a word.
        fits &= byte[np.minimum(start + k, len(byte) - 1)] == sign
    number = np.flatnonzero(fits)
    if not len(number):
        return _Lines(b"", number)
    # Lines that follow each other are taken at once.
    first = np.flatnonzero(np.diff(number, prepend=-2) != 1)
    last = np.append(first[1:], len(number)) - 1
    text = b"".join(data[a:b] for a, b in zip(
        start[number[first]].tolist(), (end[number[last]] + 1).tolist(), strict=True))
    # The words themselves become spaces.
    blank = np.frombuffer(text, np.uint8).copy()
    begin = np.concatenate([[0], np.flatnonzero(blank == _NEWLINE)[:-1] + 1])
    for k in range(len(kind)):
        blank[begin + k] = _SPACE
    return _Lines(blank.tobytes(), number)


def _words(lines: _Lines) -> tuple[Array, Array]:
    """Return where words begin in the text, (w,), and how many each line has, (l,)."""
    byte = np.frombuffer(lines.text, np.uint8)
    is_gap = (byte == _SPACE) | (byte == _NEWLINE)
    begin = np.flatnonzero(~is_gap & np.concatenate([[True], is_gap[:-1]]))
    end = np.flatnonzero(byte == _NEWLINE)
    return begin, np.diff(np.searchsorted(begin, end), prepend=0)


def _numbers(text: bytes, kind: type[np.generic], expected: int) -> Array | None:
    """Return the numbers of a text, or None if there are not as many as words."""
    with warnings.catch_warnings():
        # It tells of a word that is no number by a warning, and ends there.
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            number = np.fromstring(text.decode("latin-1"), dtype=kind, sep=" ")
        except ValueError:
            return None
    return number if len(number) == expected else None


def _rows(lines: _Lines, width: int) -> Array | None:
    """Return the first numbers of every line, (l, width) float64; None where one has fewer."""
    if not len(lines.number):
        return np.zeros((0, width))
    begin, count = _words(lines)
    number = _numbers(lines.text, np.float64, len(begin))
    if number is None or (count < width).any():
        return None
    if (count == width).all():
        return number.reshape(-1, width)
    rows: Array = number[(np.cumsum(count) - count)[:, None] + np.arange(width)]
    return rows


def _corners(lines: dict[str, _Lines], total: int) -> tuple[Array, Array]:
    """Return (c, 3) places of vertex, uv and normal of corners, -1 for none, and faces' counts."""
    faces = lines["f"]
    text = faces.text
    if b"//" in text:
        text = text.replace(b"//", b"/0/")
    if b"/ " in text or b"/\n" in text:
        text = re.sub(rb"/+(?=[ \n])", b"", text)
    faces = _Lines(text, faces.number)
    begin, count = _words(faces)
    slash = np.flatnonzero(np.frombuffer(text, np.uint8) == _SLASH)
    n_slashes = np.bincount(np.searchsorted(begin, slash, side="right") - 1, minlength=len(begin))
    number = _numbers(text.replace(b"/", b" "), np.int64, len(begin) + len(slash))
    if number is None or n_slashes.max(initial=0) > 2:
        raise MeshError(_no_corner(faces))
    first = np.cumsum(n_slashes + 1) - n_slashes - 1
    index = np.zeros((len(begin), 3), np.int64)
    for k in range(3):
        has = n_slashes >= k
        index[has, k] = number[first[has] + k]
    written = index[:, 0].copy()
    line = np.repeat(faces.number, count)
    for k, kind in enumerate(_KINDS):
        back = index[:, k] < 0
        if back.any():
            index[back, k] += 1 + np.searchsorted(lines[kind].number, line[back])
    wrong = np.flatnonzero((index[:, 0] < 1) | (index[:, 0] > total))
    if len(wrong):
        raise MeshError(
            f"has a face in line {int(line[wrong[0]]) + 1} that names vertex "
            f"{int(written[wrong[0]])}, but there are {total}, counted from 1; export it again")
    return index - 1, count


def _no_vertex(lines: _Lines) -> str:
    """Return the sentence on the first line that says a vertex and has none."""
    for number, line in zip(lines.number.tolist(), lines.text.split(b"\n"), strict=False):
        words = line.split()
        if len(words) < 3 or not all(map(_is_number, words)):
            found = b" ".join([b"v", *words])[:_LONGEST_SHOWN].decode(errors="replace")
            return (f"has no vertex where line {number + 1} says one, '{found}': it takes three "
                    "numbers; export it again")
    raise ValueError("vertices that are no numbers")


def _no_corner(lines: _Lines) -> str:
    """Return the sentence on the first face with a corner that names no vertex."""
    for number, line in zip(lines.number.tolist(), lines.text.split(b"\n"), strict=False):
        for word in line.split():
            if re.fullmatch(rb"[+-]?\d+(/[+-]?\d+){0,2}", word) is None:
                found = word[:_LONGEST_SHOWN].decode(errors="replace")
                return (f"has a face in line {number + 1} with a corner '{found}', which names no "
                        "vertex; export it again")
    raise ValueError("faces that name no vertices")


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return b"_" not in word
