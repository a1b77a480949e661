"""GLB files (binary glTF 2.0) as triangles: every mesh, wherever nodes of the scene place it.

Meshes are taken at rest: skins, morph targets and animations are passed over. Counts and offsets
are held against the bytes that there are before anything of their size is made. A file that
keeps its data elsewhere, or packs it in a way that an extension describes, is refused.
"""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError, no_triangles
from vfx.geometry.handoff.types import Array
from vfx.geometry.mesh.files import MOST_TRIANGLES, RawMesh, join_meshes, placed

#: Nodes, and parts of meshes, of a file at most.
MOST_NODES = 100_000

_COMPONENTS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
_TRIANGLES, _STRIP, _FAN = 4, 5, 6
#: Extensions that do not change where triangles are.
_HARMLESS = ("KHR_materials_", "KHR_texture_", "EXT_texture_", "KHR_lights_",
             "KHR_mesh_quantization", "KHR_xmp", "KHR_animation_pointer")
_INSTANCES = "EXT_mesh_gpu_instancing"


def read_glb(data: bytes) -> RawMesh:
    """Return the meshes of a GLB file as one."""
    document, buffers = _chunks(data)
    for name in document.get("extensionsRequired", []):
        if not str(name).startswith(_HARMLESS):
            raise MeshError(f"needs the glTF extension {str(name)[:60]!r}, which is not read; "
                            "export it without compression and extensions")
    meshes, nodes = document.get("meshes", []), document.get("nodes", [])
    n_parts = sum(len(mesh["primitives"]) for mesh in meshes)
    for what, n in (("nodes", len(nodes)), ("parts of meshes", n_parts)):
        if n > MOST_NODES:
            raise MeshError(f"has {n:,} {what}, over the {MOST_NODES:,} that are read; join them")
    places = _places(document)
    n_triangles, parts = 0, []
    for number, matrices in places.items():
        for primitive in meshes[number]["primitives"]:
            part = _part(document, buffers, primitive)
            if part is None:
                continue
            n_triangles += len(part.triangle) * len(matrices)
            if n_triangles > MOST_TRIANGLES:
                raise MeshError(f"has more than the {MOST_TRIANGLES:,} triangles that are read, "
                                "with all copies of its meshes; reduce it")
            parts += [placed(part, matrix) for matrix in matrices]
    if not parts:
        raise MeshError(no_triangles("glb"))
    return join_meshes(parts)


def _chunks(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Return the JSON of a file and its buffers."""
    magic, version, length = struct.unpack_from("<4sII", data)
    if magic != b"glTF" or version != 2 or length > len(data):
        raise ValueError("no GLB, or cut short")
    chunks: dict[bytes, bytes] = {}
    at = 12
    while at + 8 <= length:
        size, kind = struct.unpack_from("<I4s", data, at)
        if at + 8 + size > length:
            raise ValueError("cut short")
        chunks.setdefault(kind, data[at + 8:at + 8 + size])
        at += 8 + size
    document = json.loads(chunks[b"JSON"])
    buffers = []
    for buffer in document.get("buffers", []):
        uri = buffer.get("uri")
        if uri is None:
            content = chunks.get(b"BIN\0", b"")
        elif uri.startswith("data:"):
            content = base64.b64decode(uri.partition(",")[2])
        else:
            raise MeshError(f"keeps its data in another file, {uri[:60]!r}, which is not opened; "
                            "export it as one GLB")
        if buffer["byteLength"] > len(content):
            raise ValueError("a buffer cut short")
        buffers.append(content)
    return document, buffers


def _places(document: dict[str, Any]) -> dict[int, list[Array]]:
    """Return by the number of a mesh the matrices (4, 4) that place it in the scene."""
    nodes, scenes = document.get("nodes", []), document.get("scenes", [])
    if scenes:
        roots = scenes[_whole(document.get("scene", 0))].get("nodes", [])
    else:
        children = {child for node in nodes for child in node.get("children", [])}
        roots = [k for k in range(len(nodes)) if k not in children]
    places: dict[int, list[Array]] = {}
    seen = set()
    waiting = [(_whole(root), np.eye(4)) for root in reversed(roots)]
    while waiting:
        number, above = waiting.pop()
        if number in seen:
            raise MeshError(f"has a node, number {number}, that stands in the scene twice or is "
                            "part of itself; export it again")
        seen.add(number)
        node = nodes[number]
        if _INSTANCES in node.get("extensions", {}):
            raise MeshError(f"scatters copies of a mesh by {_INSTANCES}, which are not made here; "
                            "make them meshes of their own, or leave them out")
        matrix = above @ _matrix(node)
        if "mesh" in node:
            places.setdefault(_whole(node["mesh"]), []).append(matrix)
        waiting += [(_whole(child), matrix) for child in reversed(node.get("children", []))]
    return places


def _matrix(node: dict[str, Any]) -> Array:
    """Return parent_from_node (4, 4) of a node."""
    if "matrix" in node:
        return np.array(node["matrix"], dtype=np.float64).reshape(4, 4).T
    matrix = np.eye(4)
    if "rotation" in node:
        x, y, z, w = np.array(node["rotation"], dtype=np.float64) / np.linalg.norm(node["rotation"])
        matrix[:3, :3] = [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    if "scale" in node:
        matrix[:3, :3] *= np.array(node["scale"], dtype=np.float64).reshape(3)
    if "translation" in node:
        matrix[:3, 3] = node["translation"]
    return matrix


def _part(
    document: dict[str, Any], buffers: list[bytes], primitive: dict[str, Any]
) -> RawMesh | None:
    """Return the triangles of a primitive, or None if it is of points or lines."""
    attributes = primitive["attributes"]
    mode = primitive.get("mode", _TRIANGLES)
    if mode not in (_TRIANGLES, _STRIP, _FAN) or "POSITION" not in attributes:
        return None
    place = _values(document, buffers, attributes["POSITION"], 3)
    index = (np.arange(len(place)) if "indices" not in primitive else
             _values(document, buffers, primitive["indices"], 1).astype(np.int64).ravel())
    triangle = _cut(index, mode)
    if not len(triangle):
        return None
    if triangle.max() >= len(place):
        raise MeshError(f"has a face that names vertex {int(triangle.max())} of {len(place)}, "
                        "counted from 0; export it again")
    normal = uv = None
    if "NORMAL" in attributes:
        normal = _values(document, buffers, attributes["NORMAL"], 3)
    if "TEXCOORD_0" in attributes:
        uv = _values(document, buffers, attributes["TEXCOORD_0"], 2)
        # Here v runs up the picture, there down.
        uv = np.column_stack([uv[:, 0], 1.0 - uv[:, 1]])
    if any(values is not None and len(values) != len(place) for values in (normal, uv)):
        raise ValueError("normals or uv that are not one a vertex")
    return RawMesh(
        place, triangle, None if normal is None else normal[triangle].astype(np.float32),
        None if uv is None else uv[triangle].astype(np.float32))


def _cut(index: Array, mode: int) -> Array:
    """Return triangles (t, 3) of a list, a strip or a fan of vertices."""
    if mode == _TRIANGLES:
        if len(index) % 3:
            raise ValueError("vertices that are no whole triangles")
        return index.reshape(-1, 3)
    if mode == _FAN:
        return np.column_stack([np.full(max(len(index) - 2, 0), index[0] if len(index) else 0),
                                index[1:-1], index[2:]])
    strip = np.column_stack([index[:-2], index[1:-1], index[2:]])
    strip[1::2, :2] = strip[1::2, 1::-1]
    return strip


def _values(document: dict[str, Any], buffers: list[bytes], number: Any, width: int) -> Array:
    """Return an accessor as (n, width) float64, or as whole numbers where they are indices."""
    accessor = document["accessors"][_whole(number)]
    n = _whole(accessor["count"])
    kind = np.dtype(_COMPONENTS[accessor["componentType"]])
    if _WIDTHS[accessor["type"]] != width or n > 3 * MOST_TRIANGLES:
        raise ValueError("vertices of another kind, or too many")
    if "bufferView" in accessor:
        values = _view(document, buffers, accessor, kind, n, width)
    else:
        values = np.zeros((n, width), kind)
    if (sparse := accessor.get("sparse")) is not None:
        n_changed = _whole(sparse["count"])
        indices = sparse["indices"]
        which = _view(document, buffers, indices, np.dtype(_COMPONENTS[indices["componentType"]]),
                      n_changed, 1)
        values = values.copy()
        values[which.ravel().astype(np.int64)] = _view(
            document, buffers, sparse["values"], kind, n_changed, width)
    if kind.kind == "f" or not accessor.get("normalized"):
        return values.astype(np.float64) if width > 1 else values
    return np.maximum(values / np.iinfo(kind).max, -1.0)


def _view(
    document: dict[str, Any], buffers: list[bytes], source: dict[str, Any], kind: np.dtype[Any],
    n: int, width: int,
) -> Array:
    """Return n rows (n, width) of a buffer view, all of which the file has."""
    view = document["bufferViews"][_whole(source["bufferView"])]
    buffer = buffers[_whole(view["buffer"])]
    row = width * kind.itemsize
    first, length = _whole(view.get("byteOffset", 0)), _whole(view["byteLength"])
    skip, stride = _whole(source.get("byteOffset", 0)), _whole(view.get("byteStride", row))
    if first + length > len(buffer) or stride < row or (
            n and skip + (n - 1) * stride + row > length):
        raise ValueError("cut short")
    if not n:
        return np.zeros((0, width), kind)
    return np.ndarray((n, width), kind, buffer, first + skip, (stride, kind.itemsize))


def _whole(number: Any) -> int:
    """Return a number of something, counted from 0."""
    if type(number) is not int or number < 0:
        raise ValueError("no whole number")
    return number
