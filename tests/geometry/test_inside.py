"""Laws of the inside test: closed forms, every scale, points on edges' lines, many threads."""

from __future__ import annotations

import numpy as np
import pytest

from tests.geometry.shapes import box, joined, moved, sphere, surface, torus, turned_in
from vfx.device import Device, open_device
from vfx.geometry.handoff.elements import Surface
from vfx.geometry.inside.door import (
    Interior,
    count_above,
    count_by_columns,
    encloses,
    points_inside,
)
from vfx.geometry.inside.points import WindingNumbers


def points(n: int, extent: float = 1.5, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-extent, extent, (n, 3))


@pytest.mark.warp
def test_a_box_holds_what_is_between_its_sides(device: Device) -> None:
    point = points(20_000)
    found = points_inside(device, box((-1, -0.5, -0.2), (1, 0.5, 0.2)), point)
    assert np.array_equal(found, (np.abs(point) < [1, 0.5, 0.2]).all(axis=1))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_torus_holds_the_points_near_its_circle(device: Device, scale: float) -> None:
    point = points(40_000, 1.4)
    away = np.hypot(np.hypot(point[:, 0], point[:, 1]) - 1.0, point[:, 2])
    clear = np.abs(away - 0.3) > 0.01
    found = points_inside(device, moved(torus(48), scale=scale), point * scale)
    assert np.array_equal(found[clear], away[clear] < 0.3)


def test_half_lines_through_vertices_and_edges_are_not_lost(device: Device) -> None:
    # Every half-line along an axis passes through vertices, edges or in faces of the ball.
    ball = sphere(16)
    lattice = np.stack(np.meshgrid(*3 * [np.linspace(-1.2, 1.2, 25)], indexing="ij"), -1)
    point = np.concatenate([lattice.reshape(-1, 3), 0.5 * ball.vertex, 2.0 * ball.vertex,
                            np.zeros((1, 3))])
    radius = np.linalg.norm(point, axis=1)
    clear = np.abs(radius - 1.0) > 0.03
    wind = WindingNumbers(device, device.from_host(ball.vertex), device.from_host(ball.triangle))
    for axis in range(3):
        found = device.to_host(wind.along(axis, device.from_host(point)))
        assert np.array_equal(found[clear], (radius < 1.0)[clear].astype(np.int32))


@pytest.mark.warp
def test_shells_count_by_their_orientation(device: Device) -> None:
    hollow = joined(sphere(16), turned_in(sphere(16, 0.5)), moved(box(), (2, 0, 0)))
    point = np.array([[0.0, 0.0, 0.0], [0.7, 0.1, 0.0], [2.5, 0.5, 0.5], [1.5, 0.5, 0.5]])
    assert points_inside(device, hollow, point).tolist() == [False, True, True, False]
    double = joined(sphere(16), moved(sphere(16), (0.3, 0, 0)))
    assert points_inside(device, double, point[:1]).all()


def test_a_missing_triangle_misleads_nobody(device: Device) -> None:
    ball = sphere(16)
    torn = surface(ball.vertex, np.delete(ball.triangle, 200, axis=0))
    point = points(20_000, 0.55)
    assert points_inside(device, torn, point[np.linalg.norm(point, axis=1) < 0.9]).all()


def test_long_triangles_and_small_ones_go_together(device: Device) -> None:
    # A fan of needles from one point: each crosses many columns.
    n = 600
    turn = 2 * np.pi * np.arange(n) / n
    rim = np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], 1)
    vertex = np.concatenate([rim, [[0, 0, 0.5], [0, 0, -0.5]]])
    k, m = np.arange(n), (np.arange(n) + 1) % n
    cones = surface(vertex, np.concatenate([
        np.stack([k, m, np.full(n, n)], 1), np.stack([m, k, np.full(n, n + 1)], 1)]))
    point = points(20_000, 1.1)
    depth = 0.5 * (1.0 - np.hypot(point[:, 0], point[:, 1])) - np.abs(point[:, 2])
    clear = np.abs(depth) > 1e-3
    assert np.array_equal(points_inside(device, cones, point)[clear], depth[clear] > 0)


def test_the_number_of_threads_changes_nothing() -> None:
    device = open_device("cpu")
    point, found = points(30_000), []
    for threads in (1, 2, 3):
        device.threads = threads
        found.append(points_inside(device, torus(32), point))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


@pytest.mark.parametrize("shape", [
    torus(24), joined(sphere(16), turned_in(sphere(16, 0.5)), moved(box(), (2, 0, 0))),
    joined(sphere(16), moved(sphere(16), (0.3, 0, 0))), joined(box(), moved(box(), (1, 1, 0)))],
    ids=["torus", "hollow", "overlapping", "touching"])
def test_all_who_count_behind_the_door_say_the_same(device: Device, shape: Surface) -> None:
    point = points(400)
    one_by_one = [encloses(shape, place) for place in point]
    assert any(one_by_one) and not all(one_by_one)
    assert (count_above(device, shape, point) > 0).tolist() == one_by_one
    assert (count_by_columns(device, shape, point) > 0).tolist() == one_by_one
    assert Interior(device, shape).holds(point).tolist() == one_by_one
    # Few points beside the triangles are asked for in another way than many.
    few = np.concatenate([points_inside(device, shape, point[k:k + 1]) for k in range(20)])
    assert few.tolist() == points_inside(device, shape, point)[:20].tolist() == one_by_one[:20]
