"""Closed meshes made by formula, for tests of geometry."""

from __future__ import annotations

import numpy as np

from vfx.geometry.handoff.elements import Surface
from vfx.geometry.handoff.types import Array


def mesh(
    vertex: Array, triangle: Array, normal: Array | None = None, uv: Array | None = None
) -> Surface:
    """Return a surface; flat shading and no texture if not given."""
    corner = vertex[triangle]
    flat = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    flat /= np.linalg.norm(flat, axis=1, keepdims=True)
    if normal is None:
        normal = np.repeat(flat[:, None], 3, axis=1)
    if uv is None:
        uv = np.zeros((len(triangle), 3, 2))
    return Surface(np.asarray(vertex, float), triangle.astype(np.int32),
                   normal.astype(np.float32), uv.astype(np.float32))


def sphere(n: int, radius: float) -> Surface:
    """Return a sphere of 2 n meridians, with u around it and v from pole to pole."""
    turns = 2 * n
    row, column = np.meshgrid(np.arange(n), np.arange(turns), indexing="ij")
    row, column = row.ravel(), column.ravel()
    low = np.stack([[row, column], [row + 1, column], [row + 1, column + 1]], axis=0)
    high = np.stack([[row, column], [row + 1, column + 1], [row, column + 1]], axis=0)
    grid = np.concatenate([
        low[:, :, row < n - 1].transpose(2, 0, 1), high[:, :, row > 0].transpose(2, 0, 1)])
    uv = np.stack([grid[:, :, 1] / turns, grid[:, :, 0] / n], axis=2)
    angle, height = 2.0 * np.pi * uv[:, :, 0], np.pi * uv[:, :, 1]
    place = np.stack([np.sin(height) * np.cos(angle), np.cos(height),
                      np.sin(height) * np.sin(angle)], axis=2)
    number = np.where(grid[:, :, 0] == 0, 0, np.where(
        grid[:, :, 0] == n, 1, 2 + (grid[:, :, 0] - 1) * turns + grid[:, :, 1] % turns))
    vertex = np.empty((2 + (n - 1) * turns, 3))
    vertex[number.ravel()] = place.reshape(-1, 3)
    return mesh(radius * vertex, number[:, ::-1], vertex[number[:, ::-1]], uv[:, ::-1])


def box(a: float, b: float | None = None, c: float | None = None,
        center: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Surface:
    """Return a box of twelve triangles."""
    size = np.array([a, a if b is None else b, a if c is None else c])
    unit = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    triangle = np.array([t for i, j, k, m in quads for t in ([i, j, k], [i, k, m])])
    return mesh(unit * size + np.array(center), triangle)


def join(*parts: Surface) -> Surface:
    """Return one surface of several."""
    first = np.cumsum([0] + [len(part.vertex) for part in parts])
    return Surface(
        np.concatenate([part.vertex for part in parts]),
        np.concatenate([part.triangle + np.int32(base)
                        for part, base in zip(parts, first, strict=False)]),
        np.concatenate([part.normal for part in parts]),
        np.concatenate([part.uv for part in parts]))


def hollow_sphere(n: int, outer: float, inner: float) -> Surface:
    """Return a ball with a spherical cavity in its middle."""
    cavity = sphere(n, inner)
    wall = mesh(cavity.vertex, cavity.triangle[:, ::-1], -cavity.normal[:, ::-1])
    return join(sphere(n, outer), wall)


def two_boxes(size: float, gap: float) -> Surface:
    """Return two cubes, left and right of the plane x = 0."""
    away = 0.5 * (size + gap)
    return join(box(size, center=(-away, 0.0, 0.0)), box(size, center=(away, 0.0, 0.0)))


def lathe(n: int, turns: int) -> Surface:
    """Return a cup: a wall and a floor a tenth as thick as the cup is wide."""
    up = np.linspace(0.0, 1.0, n)
    swell = 0.5 + 0.1 * np.sin(4.0 * up)
    outside = np.stack([swell, up], axis=1)
    inside = np.stack([swell - 0.12, up], axis=1)[::-1]
    inside = inside[inside[:, 1] > 0.12]
    radius, height = np.concatenate([outside, inside]).T
    angle = 2.0 * np.pi * np.arange(turns) / turns
    ring = np.stack([radius[:, None] * np.cos(angle), np.repeat(height[:, None], turns, axis=1),
                     radius[:, None] * np.sin(angle)], axis=2)
    vertex = np.concatenate([[[0.0, height[0], 0.0], [0.0, height[-1], 0.0]], ring.reshape(-1, 3)])
    this, following = np.arange(turns), (np.arange(turns) + 1) % turns
    last = 2 + turns * (len(radius) - 1)
    triangle = [np.stack([np.zeros_like(this), 2 + this, 2 + following], axis=1),
                np.stack([last + this, np.ones_like(this), last + following], axis=1)]
    for row in range(len(radius) - 1):
        base = 2 + turns * row
        triangle += [np.stack([base + this, base + turns + this, base + following], axis=1),
                     np.stack([base + following, base + turns + this, base + turns + following],
                              axis=1)]
    return mesh(vertex, np.concatenate(triangle))
