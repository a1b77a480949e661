"""Laws of the rigid fit: exact recovery, proper rotations, what lines and points leave free."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from vfx.geometry.pieces.kabsch import LINE, POINT, UNIQUE, fit_rigid

seeds = st.integers(0, 2**32 - 1)


def assert_proper(rotation: np.ndarray) -> None:
    identity = np.broadcast_to(np.eye(3), rotation.shape)
    np.testing.assert_allclose(rotation @ np.swapaxes(rotation, 1, 2), identity, atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(rotation), 1.0, atol=1e-12)


def fit_one(rest, position, mass=None, velocity=None):
    n = len(rest)
    return fit_rigid(
        rest, position, np.zeros((n, 3)) if velocity is None else velocity,
        np.ones(n) if mass is None else mass, np.zeros(n, dtype=np.int32), 1)


@settings(max_examples=60, deadline=None)
@given(seeds, st.lists(st.integers(4, 60), min_size=1, max_size=20), st.floats(1e-4, 10))
def test_many_random_rigid_motions_are_recovered(seed, sizes, scale):
    rng = np.random.default_rng(seed)
    k = len(sizes)
    group = rng.permutation(np.repeat(np.arange(k), sizes))
    rest = rng.uniform(-scale, scale, (len(group), 3))
    mass = rng.uniform(0.5, 2.0, len(group))
    turn = Rotation.random(k, random_state=seed).as_matrix()
    shift = rng.uniform(-10, 10, (k, 3)) * scale
    position = np.einsum("nij,nj->ni", turn[group], rest) + shift[group]
    fit = fit_rigid(rest, position, np.zeros_like(rest), mass, group, k)
    assert (fit.free == UNIQUE).all()
    assert_proper(fit.rotation)
    # Four points may lie close to a line, so that their turn is known less well.
    for i in range(k):
        members = rest[group == i]
        spread = np.linalg.svd(members - members.mean(axis=0), compute_uv=False)
        error = np.abs(fit.rotation[i] - turn[i]).max()
        assert error < 1e-12 * max(1.0, (spread[0] / spread[1]) ** 2)
    again = np.einsum("nij,nj->ni", fit.rotation[group], rest - fit.rest_center[group])
    np.testing.assert_allclose(again + fit.center[group], position, atol=1e-11 * scale)
    np.testing.assert_allclose(fit.mass, [mass[group == i].sum() for i in range(k)])


@pytest.mark.parametrize("cells", [(2, 2, 1), (2, 1, 2), (5, 4, 3), (32, 32, 1), (64, 64, 4)])
def test_boxes_of_cubes_are_recovered_also_ten_metres_away(cells):
    rest = 1e-3 * np.indices(cells).reshape(3, -1).T + np.array([10.0, -10.0, 10.0])
    turn = Rotation.from_rotvec([0.3, -1.2, 2.0])
    fit = fit_one(rest, turn.apply(rest) + np.array([4.0, 5.0, 6.0]))
    # Coordinates of 10 m are known to 1e-12 of a cube.
    np.testing.assert_allclose(fit.rotation[0], turn.as_matrix(), atol=5e-12)
    at_origin = rest - rest[0]
    near = fit_one(at_origin, turn.apply(at_origin))
    np.testing.assert_allclose(near.rotation[0], turn.as_matrix(), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(3, 40))
def test_the_fit_agrees_with_scipy_on_noisy_points(seed, n):
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(n, 3))
    position = Rotation.random(random_state=seed).apply(rest) + rng.normal(0, 0.1, (n, 3))
    mass = rng.uniform(0.5, 2.0, n)
    fit = fit_one(rest, position, mass)
    p = rest - np.average(rest, axis=0, weights=mass)
    q = position - np.average(position, axis=0, weights=mass)
    other, _ = Rotation.align_vectors(q, p, weights=mass)
    np.testing.assert_allclose(fit.rotation[0], other.as_matrix(), atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(5, 40))
def test_mirrored_points_give_the_best_proper_rotation(seed, n):
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(n, 3)) * [3.0, 2.0, 1.0]
    rest -= rest.mean(axis=0)
    position = Rotation.random(random_state=seed).apply(rest * [1.0, 1.0, -1.0])
    fit = fit_one(rest, position)
    assert_proper(fit.rotation)
    best = np.square(rest @ fit.rotation[0].T - position).sum()
    for other in Rotation.random(50, random_state=seed).as_matrix():
        assert best <= np.square(rest @ other.T - position).sum() + 1e-9


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(4, 40))
def test_coplanar_points_have_a_unique_proper_rotation(seed, n):
    rng = np.random.default_rng(seed)
    rest = rng.normal(size=(n, 3)) * [1.0, 1.0, 0.0]
    turn = Rotation.random(random_state=seed)
    fit = fit_one(rest, turn.apply(rest))
    assert fit.free[0] == UNIQUE
    assert_proper(fit.rotation)
    np.testing.assert_allclose(fit.rotation[0], turn.as_matrix(), atol=1e-9)


def test_one_particle_is_a_point_and_a_row_is_a_line():
    row = np.arange(5.0)[:, None] * [0.6, 0.0, 0.8] * 1e-3 + [10.0, 10.0, 10.0]
    turn = Rotation.from_rotvec([0.5, 0.7, -0.3])
    for n in (1, 2, 5):
        fit = fit_one(row[:n], turn.apply(row[:n]))
        assert fit.free[0] == (POINT if n == 1 else LINE)
        assert_proper(fit.rotation)
        if n > 1:
            np.testing.assert_allclose(np.abs(fit.rest_axis[0] @ [0.6, 0.0, 0.8]), 1.0)
            np.testing.assert_allclose(turn.apply(fit.rest_axis[0]), fit.axis[0], atol=1e-10)
            np.testing.assert_allclose(fit.rotation[0] @ fit.rest_axis[0], fit.axis[0], atol=1e-12)


def test_a_bent_row_is_still_a_line_and_one_cube_beside_it_is_enough():
    rng = np.random.default_rng(5)
    row = np.zeros((1000, 3))
    row[:, 2] = np.arange(1000) * 1e-3
    assert fit_one(row, row + rng.normal(0, 1e-4, row.shape)).free[0] == LINE
    hook = np.vstack([row, [1e-3, 0.0, 0.0]])
    turn = Rotation.from_rotvec([1.0, 2.0, 0.5])
    fit = fit_one(hook, turn.apply(hook))
    assert fit.free[0] == UNIQUE
    np.testing.assert_allclose(fit.rotation[0], turn.as_matrix(), atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(seeds, st.integers(1, 30), st.sampled_from(["solid", "flat", "row"]))
def test_velocity_and_angular_velocity_of_a_spinning_body_are_recovered(seed, n, kind):
    rng = np.random.default_rng(seed)
    n = n + 3 if kind != "row" else n
    flat = {"solid": [1, 1, 1], "flat": [1, 1, 0], "row": [1, 0, 0]}[kind]
    position = Rotation.random(random_state=seed).apply(rng.normal(size=(n, 3)) * flat)
    mass = rng.uniform(0.5, 2.0, n)
    omega, drift = rng.normal(size=3), rng.normal(size=3)
    center = np.average(position, axis=0, weights=mass)
    velocity = drift + np.cross(omega, position - center)
    fit = fit_one(position, position, mass, velocity)
    np.testing.assert_allclose(fit.velocity[0], drift, atol=1e-12)
    expected = omega
    if kind == "row" and n == 1:
        expected = np.zeros(3)
    elif kind == "row":
        along = (position[1] - position[0]) / np.linalg.norm(position[1] - position[0])
        expected = omega - along * (omega @ along)
    np.testing.assert_allclose(fit.angular_velocity[0], expected, atol=1e-8)


def test_groups_are_fitted_as_if_alone_bit_for_bit():
    rng = np.random.default_rng(2)
    group = rng.integers(0, 50, 2000)
    rest, position, velocity = (rng.normal(size=(2000, 3)) for _ in range(3))
    mass = rng.uniform(0.5, 2.0, 2000)
    together = fit_rigid(rest, position, velocity, mass, group, 50)
    for g in range(50):
        own = group == g
        alone = fit_one(rest[own], position[own], mass[own], velocity[own])
        np.testing.assert_array_equal(alone.rotation[0], together.rotation[g])
        np.testing.assert_array_equal(alone.center[0], together.center[g])
        np.testing.assert_array_equal(alone.angular_velocity[0], together.angular_velocity[g])


def test_an_empty_group_is_refused():
    with pytest.raises(ValueError, match="at least one particle"):
        fit_rigid(np.zeros((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)), np.ones(2),
                  np.array([0, 2]), 3)
