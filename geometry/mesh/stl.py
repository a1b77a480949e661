"""STL files as triangles, text or binary. Their normals are those of the faces, and not read."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError, no_triangles, unreadable
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh

#: Bytes of a binary file before its triangles, with their number at the end, and of each.
_HEAD, _TRIANGLE = 84, 50
#: The words of a triangle in a text; "" is a number.
_WORDS = [b"facet", b"normal", b"", b"", b"", b"outer", b"loop",
          *[b"vertex", b"", b"", b""] * 3, b"endloop", b"endfacet"]
_PLACES = [k for k in range(7, 19) if not _WORDS[k]]
_SOLID = re.compile(rb"^[ \t]*(end[ \t]*)?solid\b[^\n]*$", re.MULTILINE)


def read_stl(data: bytes) -> RawMesh:
    """Return the mesh of an STL file."""
    data, notes = without_padding(data)
    if len(data) > _HEAD and len(data) == _end(data):
        row = np.dtype([("normal", "<f4", 3), ("place", "<f4", (3, 3)), ("attribute", "<u2")])
        raw = _triangles(np.frombuffer(data, row, offset=_HEAD)["place"].astype(np.float64))
        return dataclasses.replace(raw, notes=notes)
    if not data[:256].lstrip().lower().startswith(b"solid"):
        raise MeshError(unreadable("stl"))
    return _read_text(data)


def without_padding(data: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return a binary STL without what stands behind its last triangle, and a note on that.

    Its count says where that is. What may hold further triangles stays, and is refused: only
    bytes too few for one, or all alike, are padding. Text has no count that is short enough.
    """
    if len(data) < _HEAD:
        return data, ()
    end = _end(data)
    extra = data[end:]
    if end == _HEAD or not extra or (len(extra) >= _TRIANGLE and len(set(extra)) > 1):
        return data, ()
    count = "1 byte" if len(extra) == 1 else f"{len(extra):,} bytes"
    return data[:end], (f"Ignored {count} behind the last triangle of the file.",)


def _end(data: bytes) -> int:
    """Return where the triangles of a binary file end, as it says."""
    return _HEAD + _TRIANGLE * int.from_bytes(data[_HEAD - 4:_HEAD], "little")


def _read_text(data: bytes) -> RawMesh:
    """Return the triangles of all solids of a text; anything that is none is refused."""
    text = data.lower().replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    ends = [bool(match[1]) for match in _SOLID.finditer(text)]
    # Solids begin and end by turns; a file cut short does not end one.
    if not ends or ends != [k % 2 == 1 for k in range(len(ends))] or not ends[-1]:
        raise MeshError(unreadable("stl"))
    words = _SOLID.sub(b"", text).split()
    if not words:
        raise MeshError(no_triangles("stl"))
    n = len(_WORDS)
    columns = [words[k::n] for k in range(n)]
    n_facets = len(words) // n
    if len(words) % n or any(column.count(word) != n_facets
                             for column, word in zip(columns, _WORDS, strict=True) if word):
        raise MeshError(_no_facet(words))
    try:
        place = np.column_stack([np.array(columns[k], dtype=np.float64) for k in _PLACES])
    except ValueError:
        raise MeshError(_no_facet(words)) from None
    return _triangles(place.reshape(-1, 3, 3))


def _triangles(place: Array) -> RawMesh:
    """Return triangles (t, 3, 3) as a mesh in which none share a vertex."""
    if not len(place):
        raise MeshError(no_triangles("stl"))
    return RawMesh(place.reshape(-1, 3), np.arange(3 * len(place)).reshape(-1, 3), None, None)


def _no_facet(words: list[bytes]) -> str:
    """Return the sentence on the first word that does not belong where it stands."""
    n = len(_WORDS)
    for k, word in enumerate(words):
        wanted = _WORDS[k % n]
        if word != wanted if wanted else k % n in _PLACES and not _is_number(word):
            break
    else:
        k, word = len(words), b"the end of the file"
    found = word[:60].decode(errors="replace")
    return (f"is damaged: facet number {k // n + 1} is none, because of '{found}' (a facet has a "
            "normal and an outer loop of three times vertex and three numbers); export it again")


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
