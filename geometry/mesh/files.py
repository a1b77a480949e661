"""Mesh files as triangles: their kinds, and what they have in common; a module reads each kind.

A file is read whole, as data: nothing in it is run or unpickled, and no other file that it
names (materials, textures, buffers, layers) is opened. What comes out is what the file says,
triangulated; :mod:`vfx.geometry.mesh.load` makes a surface of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vfx.geometry.handoff.mesh_error import MeshError, no_triangles, unreadable
from vfx.geometry.handoff.products import turned
from vfx.geometry.handoff.types import Array

USD_SUFFIXES = ("usd", "usda", "usdc", "usdz")
#: Files that are text in every case.
TEXT_SUFFIXES = ("obj", "off")
SUFFIXES = ("obj", "ply", "stl", "glb", "off", *USD_SUFFIXES)
_KNOWN = ", ".join(name.upper() for name in SUFFIXES)

#: Bytes of a file, and triangles of a mesh, at most.
LARGEST_FILE = 4_000_000_000
MOST_TRIANGLES = 50_000_000


@dataclass(frozen=True)
class RawMesh:
    """Triangles of a file, in its own axes and unit."""

    vertex: Array                # (v, 3) float64
    triangle: Array              # (t, 3) int64
    normal: Array | None         # (t, 3, 3) float32: at the corners
    uv: Array | None             # (t, 3, 2) float32: at the corners
    unit: float = 1.0            # [m]: what the file says, or a metre
    up: str = "y"                # what the file says, or y
    notes: tuple[str, ...] = ()


@np.errstate(invalid="ignore", over="ignore")      # what is not finite is refused when all is read
def read_raw_mesh(path: Path) -> RawMesh:
    """Read a mesh file; raise MeshError, or FileNotFoundError where there is none."""
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in SUFFIXES:
        hint = " (GLB holds all of a glTF in one file)" if suffix == "gltf" else ""
        raise MeshError(f"is no kind of mesh file that is known ('.{suffix}'); save it as one "
                        f"of {_KNOWN}{hint}")
    if not path.exists():
        raise FileNotFoundError("there is no such file")
    if not path.is_file():
        raise MeshError(f"is {'a folder' if path.is_dir() else 'no regular file'}; give a mesh "
                        f"file: {_KNOWN}")
    size = path.stat().st_size
    if size == 0:
        raise MeshError("is empty (0 bytes); export the mesh again")
    if size > LARGEST_FILE:
        raise MeshError(f"has {size / 1e9:.1f} GB, over the {LARGEST_FILE / 1e9:.0f} GB that are "
                        "read; reduce the mesh")
    try:
        if suffix in USD_SUFFIXES:
            from vfx.geometry.mesh.usd import read_usd

            # Its reader does not say why it could not open a file.
            path.open("rb").close()
            raw = read_usd(path)
        else:
            raw = _read_bytes(path.read_bytes(), suffix)
    except (MeshError, OSError, MemoryError):
        raise
    except Exception as error:
        # Whatever a damaged file makes a reader raise is a damaged file.
        raise MeshError(unreadable(suffix)) from error
    _check_raw(raw, suffix)
    return raw


def join_meshes(meshes: list[RawMesh]) -> RawMesh:
    """Return several meshes as one; normals and uv stay only where all have them."""
    first = np.cumsum([0] + [len(mesh.vertex) for mesh in meshes])
    has_normal = all(mesh.normal is not None for mesh in meshes)
    has_uv = all(mesh.uv is not None for mesh in meshes)
    return RawMesh(
        vertex=np.concatenate([mesh.vertex for mesh in meshes]),
        triangle=np.concatenate([mesh.triangle + base
                                 for mesh, base in zip(meshes, first, strict=False)]),
        normal=np.concatenate([mesh.normal for mesh in meshes]) if has_normal else None,
        uv=np.concatenate([mesh.uv for mesh in meshes]) if has_uv else None,
        unit=meshes[0].unit, up=meshes[0].up,
        notes=tuple(dict.fromkeys(note for mesh in meshes for note in mesh.notes)))


@np.errstate(invalid="ignore", over="ignore")      # likewise
def placed(raw: RawMesh, world_from_mesh: Array) -> RawMesh:
    """Return a mesh moved by an affine (4, 4) matrix; one that mirrors turns its triangles."""
    linear = world_from_mesh[:3, :3]
    if np.array_equal(world_from_mesh, np.eye(4)):
        return raw
    turn = slice(None, None, -1) if np.linalg.det(linear) < 0 else slice(None)
    normal = raw.normal
    if normal is not None:
        # Normals go by the inverse transpose, here up to a factor.
        cofactor = np.stack([np.cross(linear[(i + 1) % 3], linear[(i + 2) % 3])
                             for i in range(3)])
        cofactor *= np.sign(np.linalg.det(linear)) or 1.0
        normal = turned(normal[:, turn], cofactor).astype(np.float32)
    return RawMesh(
        vertex=turned(raw.vertex, linear) + world_from_mesh[:3, 3],
        triangle=raw.triangle[:, turn], normal=normal,
        uv=None if raw.uv is None else raw.uv[:, turn], unit=raw.unit, up=raw.up,
        notes=raw.notes)


def _read_bytes(data: bytes, suffix: str) -> RawMesh:
    from vfx.geometry.mesh.glb import read_glb
    from vfx.geometry.mesh.obj import read_obj
    from vfx.geometry.mesh.ply import read_off, read_ply
    from vfx.geometry.mesh.stl import read_stl

    if suffix in TEXT_SUFFIXES:
        if b"\0" in data:
            raise MeshError(f"is no text, as {suffix.upper()} files are; export it again, or name "
                            "it by its kind")
        # Names of parts and materials may be in any old encoding; they do not matter. Lines end
        # as on any system.
        text = data.decode("utf-8-sig", errors="replace")
        data = text.replace("\r\n", "\n").replace("\r", "\n").encode()
    return {"obj": read_obj, "ply": read_ply, "stl": read_stl, "glb": read_glb,
            "off": read_off}[suffix](data)


def _check_raw(raw: RawMesh, suffix: str) -> None:
    """Refuse what is no mesh at all."""
    n = len(raw.triangle)
    if n == 0:
        raise MeshError(no_triangles(suffix))
    if n > MOST_TRIANGLES:
        raise MeshError(f"has {n:,} triangles, over the {MOST_TRIANGLES:,} that are read; reduce "
                        "the mesh")
    if raw.vertex.shape[1] != 3:
        raise MeshError(f"has vertices of {raw.vertex.shape[1]} numbers each, and not of three; "
                        "export it again")
    if raw.triangle.min() < 0 or raw.triangle.max() >= len(raw.vertex):
        raise MeshError(f"has a face that names vertex {int(raw.triangle.max()) + 1} of "
                        f"{len(raw.vertex)}; export it again")
    used = np.zeros(len(raw.vertex), dtype=bool)
    used[raw.triangle] = True
    wrong = np.flatnonzero(used & ~np.isfinite(raw.vertex).all(axis=1))
    if len(wrong):
        raise MeshError(f"has vertices ({len(wrong):,}) that are not finite, the first is number "
                        f"{int(wrong[0]) + 1}: {raw.vertex[wrong[0]].tolist()}; export it again")
