"""Small meshes to try things on: spheres, boxes, and ways to spoil them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vfx.geometry.divide.sources import box_surface
from vfx.geometry.mesh.files import RawMesh


def box(edges=(1.0, 1.0, 1.0), center=(0.0, 0.0, 0.0)) -> RawMesh:
    surface = box_surface(edges)
    return RawMesh(surface.vertex + np.array(center), surface.triangle.astype(np.int64), None, None)


def sphere(radius=1.0, center=(0.0, 0.0, 0.0), rings=12) -> RawMesh:
    """A globe of rings and meridians; its volume is that of a polyhedron, a little less."""
    latitude = np.pi * (np.arange(1, rings) / rings - 0.5)
    angle = 2 * np.pi * np.arange(2 * rings) / (2 * rings)
    ring = np.stack([np.outer(np.cos(latitude), np.cos(angle)),
                     np.repeat(np.sin(latitude)[:, None], len(angle), 1),
                     -np.outer(np.cos(latitude), np.sin(angle))], 2)
    m, k = len(angle), len(latitude)
    vertex = np.concatenate([[[0.0, -1.0, 0.0]], ring.reshape(-1, 3), [[0.0, 1.0, 0.0]]])
    here, there = np.arange(m), (np.arange(m) + 1) % m
    faces = [np.column_stack([np.zeros(m, int), 1 + there, 1 + here]),
             np.column_stack([np.full(m, len(vertex) - 1), 1 + m * (k - 1) + here,
                              1 + m * (k - 1) + there])]
    for row in range(k - 1):
        a, b = 1 + m * row + here, 1 + m * row + there
        faces += [np.column_stack([a, b, b + m]), np.column_stack([a, b + m, a + m])]
    return RawMesh(radius * vertex + np.array(center), np.concatenate(faces), None, None)


def joined(*parts: RawMesh) -> RawMesh:
    first = np.cumsum([0] + [len(part.vertex) for part in parts])
    return RawMesh(np.concatenate([part.vertex for part in parts]),
                   np.concatenate([part.triangle + base
                                   for part, base in zip(parts, first, strict=False)]), None, None)


def flipped(raw: RawMesh, which=slice(None)) -> RawMesh:
    triangle = raw.triangle.copy()
    triangle[which] = triangle[which, ::-1]
    return RawMesh(raw.vertex, triangle, None, None)


def without(raw: RawMesh, *triangles: int) -> RawMesh:
    return RawMesh(raw.vertex, np.delete(raw.triangle, triangles, axis=0), None, None)


def write_obj(path: Path, raw: RawMesh) -> Path:
    lines = [f"v {x!r} {y!r} {z!r}" for x, y, z in raw.vertex.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (raw.triangle + 1).tolist()]
    path.write_text("\n".join(lines) + "\n")
    return path
