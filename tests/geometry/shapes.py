"""Closed surfaces for the tests of geometry."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array


def surface(vertex: Array, triangle: Array) -> Surface:
    """Return a surface with flat normals, and uv that follow x and y."""
    vertex = np.asarray(vertex, np.float64)
    triangle = np.asarray(triangle, np.int32)
    a, b, c = (vertex[triangle[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = np.where(length > 0, normal / np.where(length > 0, length, 1), [0, 0, 1])
    return Surface(
        vertex=vertex, triangle=triangle,
        normal=np.repeat(normal[:, None, :], 3, axis=1).astype(np.float32),
        uv=vertex[triangle][:, :, :2].astype(np.float32))


def volume(shape: Surface) -> float:
    """Return the volume inside a surface [m^3]."""
    a, b, c = (shape.vertex[shape.triangle[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def box(lower: object = (0, 0, 0), upper: object = (1, 1, 1)) -> Surface:
    """Return a box of 12 triangles."""
    corner = np.array([[x, y, z] for z in (0, 1) for y in (0, 1) for x in (0, 1)], float)
    quad = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]]
    triangle = [[q[0], q[k], q[k + 1]] for q in quad for k in (1, 2)]
    lower = np.asarray(lower, float)
    return surface(lower + corner * (np.asarray(upper, float) - lower), np.array(triangle))


def sphere(n: int = 24, radius: float = 1.0) -> Surface:
    """Return a ball of 4 n (n - 1) triangles: 2n meridians, n - 1 parallels and two poles."""
    polar, turn = np.meshgrid(np.pi * np.arange(1, n) / n, np.pi * np.arange(2 * n) / n,
                              indexing="ij")
    ring = np.stack([np.sin(polar) * np.cos(turn), np.sin(polar) * np.sin(turn), np.cos(polar)], -1)
    vertex = np.concatenate([ring.reshape(-1, 3), [[0, 0, 1], [0, 0, -1]]])
    north, south, k = len(vertex) - 2, len(vertex) - 1, np.arange(2 * n)
    triangle = [np.stack([np.full(2 * n, north), k, (k + 1) % (2 * n)], 1)]
    for row in range(n - 2):
        a, b = row * 2 * n + k, row * 2 * n + (k + 1) % (2 * n)
        triangle += [np.stack([a, a + 2 * n, b], 1), np.stack([b, a + 2 * n, b + 2 * n], 1)]
    last = (n - 2) * 2 * n
    triangle += [np.stack([last + k, np.full(2 * n, south), last + (k + 1) % (2 * n)], 1)]
    return surface(radius * vertex, np.concatenate(triangle))


def torus(n: int = 24, ring: float = 1.0, tube: float = 0.3) -> Surface:
    """Return a torus around z of 4 n^2 triangles."""
    turn, around = np.meshgrid(np.pi * np.arange(2 * n) / n, 2 * np.pi * np.arange(n) / n,
                               indexing="ij")
    out = ring + tube * np.cos(around)
    vertex = np.stack([out * np.cos(turn), out * np.sin(turn), tube * np.sin(around)], -1)
    i, j = (index.ravel() for index in np.meshgrid(np.arange(2 * n), np.arange(n), indexing="ij"))
    a, b = i * n + j, ((i + 1) % (2 * n)) * n + j
    c, d = ((i + 1) % (2 * n)) * n + (j + 1) % n, i * n + (j + 1) % n
    return surface(vertex.reshape(-1, 3), np.concatenate(
        [np.stack([a, b, c], 1), np.stack([a, c, d], 1)]))


def turned_in(shape: Surface) -> Surface:
    """Return the surface inside out."""
    return surface(shape.vertex, shape.triangle[:, ::-1])


def moved(shape: Surface, shift: object = (0, 0, 0), scale: float = 1.0) -> Surface:
    """Return the surface scaled about the origin and then moved."""
    return surface(shape.vertex * scale + np.asarray(shift, float), shape.triangle)


def joined(*shapes: Surface) -> Surface:
    """Return several surfaces as one."""
    first = np.cumsum([0] + [len(shape.vertex) for shape in shapes])
    return surface(
        np.concatenate([shape.vertex for shape in shapes]),
        np.concatenate([shape.triangle + base
                        for shape, base in zip(shapes, first, strict=False)]))
