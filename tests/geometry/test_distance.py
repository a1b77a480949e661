"""Nearest points and sides, against the formulas of simple bodies and against brute force."""

from __future__ import annotations

import numpy as np
import pytest

from vfx.device import Device, open_device
from vfx.geometry.handoff.types import Array
from vfx.geometry.inside.distance import build_distance

RANDOM = np.random.default_rng(3)


def box_corners(size: float = 1.0) -> Array:
    """Triangles of a cube about the origin, (12, 3, 3)."""
    vertex = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * size / 2
    quads = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
    return vertex[[t for a, b, c, d in quads for t in ([a, b, c], [a, c, d])]]


def test_nearest_point_of_a_box_is_the_clamped_point(device: Device) -> None:
    tree = build_distance(device, box_corners())
    point = RANDOM.uniform(-2.0, 2.0, (4000, 3))
    point = point[(np.abs(point) > 0.5).any(axis=1)]
    nearest, triangle = tree.nearest(device.from_host(point))
    np.testing.assert_allclose(device.to_host(nearest), np.clip(point, -0.5, 0.5), atol=1e-14)
    assert (device.to_host(triangle) >= 0).all()


def test_depth_inside_a_box_is_that_to_its_next_side(device: Device) -> None:
    tree = build_distance(device, box_corners())
    point = RANDOM.uniform(-0.5, 0.5, (2000, 3))
    nearest, _ = tree.nearest(device.from_host(point))
    distance = np.linalg.norm(device.to_host(nearest) - point, axis=1)
    np.testing.assert_allclose(distance, 0.5 - np.abs(point).max(axis=1), atol=1e-14)


@pytest.mark.warp
def test_nearest_is_that_of_all_triangles(device: Device) -> None:
    corner = RANDOM.uniform(-0.5, 0.5, (100, 1, 3)) + RANDOM.normal(0.0, 0.03, (100, 3, 3))
    corner[::17, 2] = corner[::17, 1]           # some have no area
    tree = build_distance(device, corner)
    point = RANDOM.uniform(-0.7, 0.7, (100, 3))
    nearest, triangle = tree.nearest(device.from_host(point))
    distance = np.linalg.norm(device.to_host(nearest) - point, axis=1)

    # Each triangle as a fine set of points: never nearer, and nearly as near.
    weight = np.array([[i, j, 40 - i - j] for i in range(41) for j in range(41 - i)]) / 40.0
    sample = np.einsum("wc,tck->twk", weight, corner)
    brute = np.array([np.sqrt(((sample - p) ** 2).sum(axis=2).min()) for p in point])
    assert (distance <= brute + 1e-12).all()
    np.testing.assert_allclose(distance, brute, atol=3e-3)

    # The point found lies on the triangle that is named: its own distance to it is nought.
    again, _ = build_distance(device, corner[device.to_host(triangle)[:1]]).nearest(nearest[:1])
    np.testing.assert_allclose(device.to_host(again), device.to_host(nearest[:1]), atol=1e-12)


def test_nothing_is_found_beyond_the_reach(device: Device) -> None:
    tree = build_distance(device, box_corners())
    point = device.from_host(np.array([[2.0, 0.0, 0.0], [2.0, 0.0, 0.0]]))
    nearest, triangle = tree.nearest(point, device.from_host(np.array([1.4999, 1.5001])))
    assert device.to_host(triangle)[0] == -1
    assert device.to_host(triangle)[1] >= 0
    np.testing.assert_allclose(device.to_host(nearest), [[2.0, 0.0, 0.0], [0.5, 0.0, 0.0]])


@pytest.mark.warp
@pytest.mark.parametrize("n_boxes", [1, 2, 9])
def test_winding_number_counts_the_bodies_around_a_point(device: Device, n_boxes: int) -> None:
    corner = np.concatenate([box_corners(1.0 - 0.07 * k) for k in range(n_boxes)])
    tree = build_distance(device, corner)
    point = RANDOM.uniform(-0.8, 0.8, (3000, 3))
    winding = device.to_host(tree.winding(device.from_host(point)))
    out = np.abs(point).max(axis=1)
    expected = sum((out < (1.0 - 0.07 * k) / 2).astype(float) for k in range(n_boxes))
    assert np.abs(winding - expected).max() < 0.05 * n_boxes


def test_nearest_points_do_not_depend_on_threads() -> None:
    corner = RANDOM.uniform(-0.5, 0.5, (3000, 1, 3)) + RANDOM.normal(0.0, 0.01, (3000, 3, 3))
    point = RANDOM.uniform(-0.7, 0.7, (2000, 3))
    found = []
    for threads in (1, 3):
        device = open_device("cpu")
        device.threads = threads
        found.append(build_distance(device, corner).nearest(point))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
