"""``vfx export --to obj``: the pieces of a frame where they are, one object each.

A file a frame, with one material library beside them; fracture faces have a material of their
own, and those of cracks within a piece a group, too. OBJ knows no motion: for that there are USD
and Alembic.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from vfx.geometry.handoff.types import Array
from vfx.pipeline.export.pieces import PieceReader, fracture_name
from vfx.pipeline.shot.shot_file import Shot
from vfx.pipeline.work.cache import publish_bytes
from vfx.raytrace.surface.materials import material_look


def write_obj(folder: Path, reader: PieceReader, frame: int) -> Path:
    """Publish the pieces of a frame in world space; return the file."""
    pieces = reader.posed(frame)
    name = reader.work.shot.name
    text = io.StringIO()
    text.write(f"# {name}, frame {frame}: metres, y is up\nmtllib {name}.mtl\n")
    first_point = first_uv = first_normal = 1
    for row, piece in enumerate(reader.pieces(frame)):
        mesh = piece.mesh
        rotation, translation = pieces.rotation[row], pieces.translation[row]
        point = mesh.point @ rotation.T + translation
        uv, uv_index = np.unique(mesh.uv, axis=0, return_inverse=True)
        normal, normal_index = np.unique(mesh.normal, axis=0, return_inverse=True)
        text.write(f"o {piece.name}\n")
        np.savetxt(text, point, "v %.9g %.9g %.9g")
        np.savetxt(text, uv, "vt %.7g %.7g")
        np.savetxt(text, normal @ rotation.T, "vn %.6g %.6g %.6g")
        corner = np.stack([mesh.corner + first_point, uv_index.ravel() + first_uv,
                           normal_index.ravel() + first_normal], axis=1)
        material = str(reader.solid.material_name[piece.body])
        broken = fracture_name(material, reader.work.shot.looks)
        for finish, chosen in ((material, ~mesh.is_fracture),
                               (broken, mesh.is_fracture & ~mesh.is_crack)):
            if chosen.any():
                text.write(f"usemtl {finish}\n")
                _write_faces(text, mesh.count, corner, chosen)
        if mesh.is_crack.any():
            text.write(f"g {piece.name}_cracks\nusemtl {broken}\n")
            _write_faces(text, mesh.count, corner, mesh.is_crack)
            text.write("g default\n")
        first_point += len(point)
        first_uv += len(uv)
        first_normal += len(normal)
    path = folder / f"{name}.{frame:04d}.obj"
    publish_bytes(path, text.getvalue().encode())
    return path


def write_materials(folder: Path, shot: Shot) -> Path:
    """Publish the material library."""
    lines = []
    for name, look in shot.looks.items():
        finishes = material_look(look)
        broken = fracture_name(name, shot.looks)
        for called, finish in ((name, finishes.surface), (broken, finishes.fracture)):
            is_glass = finish.kind == "glass"
            lines += [f"newmtl {called}",
                      f"Kd {_numbers(finish.tint if is_glass else finish.albedo)}",
                      f"Ks {_numbers(finish.specular)}",
                      f"Ns {min(finish.shininess, 1000.0):g}", f"Ni {finish.ior:g}",
                      f"d {0.1 if is_glass else 1.0:g}", ""]
    path = folder / f"{shot.name}.mtl"
    publish_bytes(path, ("\n".join(lines) + "\n").encode())
    return path


def _numbers(value: Iterable[float]) -> str:
    return " ".join(f"{number:g}" for number in value)


def _write_faces(text: io.StringIO, count: Array, corner: Array, chosen: Array) -> None:
    start = np.cumsum(count) - count
    for face in np.flatnonzero(chosen):
        rows = corner[start[face]:start[face] + count[face]]
        text.write("f " + " ".join(f"{v}/{t}/{n}" for v, t, n in rows.tolist()) + "\n")
