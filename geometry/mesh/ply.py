"""PLY and OFF files as polygons, of any numbers of corners, also mixed.

PLY: text or binary of either byte order; of vertices the place, normal and uv are read, of faces
their vertices and the uv of their corners. OFF: text; colours and normals are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError, no_triangles
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import RawMesh
from vfx.geometry.mesh.polygons import polygon_corners

_TYPES = {"char": "i1", "int8": "i1", "uchar": "u1", "uint8": "u1", "short": "i2", "int16": "i2",
          "ushort": "u2", "uint16": "u2", "int": "i4", "int32": "i4", "uint": "u4",
          "uint32": "u4", "float": "f4", "float32": "f4", "double": "f8", "float64": "f8"}
_ORDERS = {"ascii": "", "binary_little_endian": "<", "binary_big_endian": ">"}
#: Names that programs give to uv, and to the vertices and uv of faces.
_UV = (("s", "t"), ("u", "v"), ("texture_u", "texture_v"))
_INDEX, _CORNER_UV = ("vertex_indices", "vertex_index"), "texcoord"


@dataclass
class _Element:
    """A table of the file; a property is (type of a count or "", type of a value)."""

    name: str
    length: int
    properties: dict[str, tuple[str, str]] = field(default_factory=dict)


def read_ply(data: bytes) -> RawMesh:
    """Return the mesh of a PLY file."""
    end = data.index(b"end_header")
    body = data.index(b"\n", end) + 1
    order, elements = _header(data[:end].decode("ascii", errors="replace"))
    vertex: dict[str, Array] = {}
    face: dict[str, tuple[Array, Array]] = {}
    words = data[body:].split() if order == "" else []
    at = 0 if order == "" else body
    for element in elements:
        if element.length < 0:
            raise ValueError("a negative length")
        if not element.properties:
            continue
        table, at = (_text_table(words, at, element) if order == ""
                     else _binary_table(data, at, element, order))
        if element.name == "vertex":
            vertex = {key: value for key, (_, value) in table.items()}
        elif element.name == "face":
            face = table
    which = next((name for name in _INDEX if name in face), None)
    if which is None or not {"x", "y", "z"} <= vertex.keys():
        raise MeshError(no_triangles("ply"))
    count, index = face[which]
    if not (np.abs(index) < 2**53).all():
        raise ValueError("vertices of faces that are no numbers")
    place = np.column_stack([vertex[axis] for axis in "xyz"]).astype(np.float64)
    normal = uv = None
    if {"nx", "ny", "nz"} <= vertex.keys():
        normal = np.column_stack([vertex[axis] for axis in ("nx", "ny", "nz")])
    for names in _UV:
        if set(names) <= vertex.keys():
            uv = np.column_stack([vertex[name] for name in names])
    corner_uv = None
    if _CORNER_UV in face and np.array_equal(face[_CORNER_UV][0], 2 * count):
        corner_uv = face[_CORNER_UV][1].reshape(-1, 2)
    return _from_polygons(place, index.astype(np.int64), count, normal, uv, corner_uv)


def read_off(data: bytes) -> RawMesh:
    """Return the mesh of an OFF file."""
    lines = [words for line in data.split(b"\n") if (words := line.split(b"#")[0].split())]
    if not lines[0][0].endswith(b"OFF"):
        raise ValueError("no OFF")
    # The numbers may stand in the line of the name.
    lines[0] = lines[0][1:]
    lines = lines if lines[0] else lines[1:]
    n_vertices, n_faces = int(lines[0][0]), int(lines[0][1])
    rows = lines[1 + n_vertices:1 + n_vertices + n_faces]
    if n_vertices < 0 or len(rows) < n_faces:
        raise ValueError("cut short")
    place = np.array([words[:3] for words in lines[1:1 + n_vertices]], dtype=np.float64)
    count = np.array([int(words[0]) for words in rows], dtype=np.int64)
    index = np.array([int(word) for words, n in zip(rows, count.tolist(), strict=True)
                      for word in words[1:1 + n]], dtype=np.int64)
    return _from_polygons(place.reshape(n_vertices, -1), index, count, None, None, None)


def _from_polygons(
    place: Array, index: Array, count: Array, normal: Array | None, uv: Array | None,
    corner_uv: Array | None,
) -> RawMesh:
    """Return triangles; normal and uv are of vertices, corner_uv goes with ``index``."""
    if count.sum() != len(index):
        raise ValueError("faces whose corners do not add up")
    if len(index) and not 0 <= index.min() <= index.max() < len(place):
        wrong = int(index.min() if index.min() < 0 else index.max())
        raise MeshError(f"has a face that names vertex {wrong} of {len(place)}, counted from 0; "
                        "export it again")
    finite = np.where(np.isfinite(place), place, 0.0)
    corner = polygon_corners(finite, index, count)
    triangle = index[corner]
    if corner_uv is None and uv is not None:
        corner_uv = uv[index]
    return RawMesh(
        place, triangle, None if normal is None else normal[triangle].astype(np.float32),
        None if corner_uv is None else corner_uv[corner].astype(np.float32))


def _header(text: str) -> tuple[str, list[_Element]]:
    """Return the byte order, "" for text, and the tables of a file."""
    order, elements = "", list[_Element]()
    lines = text.replace("\r", "\n").split("\n")
    if lines[0].strip() != "ply":
        raise ValueError("no PLY")
    for line in lines[1:]:
        match line.split():
            case ["format", name, *_]:
                order = _ORDERS[name]
            case ["element", name, length]:
                elements.append(_Element(name, int(length)))
            case ["property", "list", counts, values, name]:
                elements[-1].properties[name] = (_TYPES[counts], _TYPES[values])
            case ["property", values, name]:
                elements[-1].properties[name] = ("", _TYPES[values])
    return order, elements


def _text_table(
    words: list[bytes], at: int, element: _Element
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """Return each property's counts and values, those of lists one after the other."""
    kinds = list(element.properties.items())
    if not any(counts for _, (counts, _) in kinds):
        end = at + element.length * len(kinds)
        if end > len(words):
            raise ValueError("cut short")
        rows = np.array(words[at:end], dtype=np.float64).reshape(element.length, len(kinds))
        one = np.ones(element.length, np.int64)
        return {name: (one, rows[:, k]) for k, (name, _) in enumerate(kinds)}, end
    found: dict[str, tuple[list[int], list[bytes]]] = {name: ([], []) for name, _ in kinds}
    for _ in range(element.length):
        for name, (counts, _) in kinds:
            n = int(words[at]) if counts else 1
            at += 1 if counts else 0
            if n < 0 or at + n > len(words):
                raise ValueError("cut short")
            found[name][0].append(n)
            found[name][1].extend(words[at:at + n])
            at += n
    return {name: (np.array(n, np.int64), np.array(value, dtype=np.float64))
            for name, (n, value) in found.items()}, at


def _binary_table(
    data: bytes, at: int, element: _Element, order: str
) -> tuple[dict[str, tuple[Array, Array]], int]:
    """Return each property's counts and values, those of lists one after the other."""
    kinds = [(name, counts and np.dtype(order + counts), np.dtype(order + values))
             for name, (counts, values) in element.properties.items()]
    # Rows that all have as many items as the first are read at once.
    fields, place = [], at
    for name, counts, values in kinds:
        n = 1
        if counts:
            n = int(np.frombuffer(data, counts, 1, place)[0]) if element.length else 0
            fields.append((name + " count", counts, (1,)))
            place += counts.itemsize
        fields.append((name, values, (n,)))
        place += n * values.itemsize
    row = np.dtype(fields)
    end = at + element.length * row.itemsize
    if end <= len(data):
        rows = np.frombuffer(data, row, element.length, at)
        if all((rows[name + " count"] == rows[name].shape[1]).all()
               for name, counts, _ in kinds if counts):
            return {name: (np.full(element.length, rows[name].shape[1], np.int64),
                           rows[name].ravel()) for name, _, _ in kinds}, end
    if not any(counts for _, counts, _ in kinds):
        raise ValueError("cut short")
    found: dict[str, tuple[list[int], list[Array]]] = {name: ([], []) for name, _, _ in kinds}
    for _ in range(element.length):
        for name, counts, values in kinds:
            n = 1
            if counts:
                n = int(np.frombuffer(data, counts, 1, at)[0])
                at += counts.itemsize
            if n < 0:
                raise ValueError("a negative count")
            found[name][0].append(n)
            found[name][1].append(np.frombuffer(data, values, n, at))
            at += n * values.itemsize
    return {name: (np.array(n, np.int64), np.concatenate(value) if value else np.zeros(0))
            for name, (n, value) in found.items()}, at
