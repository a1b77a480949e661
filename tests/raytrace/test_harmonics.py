"""A few coefficients carry the irradiance of an environment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vfx.raytrace.light.environment import (
    blurred_levels,
    builtin_environments,
    load_environment,
    pixel_directions,
    pixel_solid_angles,
)
from vfx.raytrace.light.harmonics import (
    N_HARMONICS,
    device_irradiance,
    harmonic_basis,
    harmonic_table,
    irradiance,
    project_environment,
)

HEIGHT, WIDTH = 96, 192
DIRECTION = np.stack([pixel_directions(HEIGHT, WIDTH, row) for row in range(HEIGHT)])


def random_normals(count):
    normal = np.random.default_rng(4).normal(size=(count, 3))
    return normal / np.linalg.norm(normal, axis=1, keepdims=True)


def integrated_irradiance(environment, normal):
    """Sum radiance times clamped cosine over all pixels."""
    height, width = environment.shape[:2]
    total = np.zeros((len(normal), 3))
    for row, solid_angle in enumerate(pixel_solid_angles(height, width)):
        cosine = np.clip(normal @ pixel_directions(height, width, row).T, 0.0, None)
        total += solid_angle * cosine @ environment[row].astype(float)
    return total


def test_basis_is_orthonormal():
    weight = np.repeat(pixel_solid_angles(HEIGHT, WIDTH), WIDTH)
    basis = harmonic_basis(DIRECTION).reshape(-1, N_HARMONICS)
    assert np.allclose(basis.T @ (weight[:, None] * basis), np.eye(N_HARMONICS), atol=3e-3)


@pytest.mark.warp
def test_constant_environment_gives_constant_irradiance(device):
    environment = np.full((HEIGHT, WIDTH, 3), (0.5, 1.0, 2.0), np.float32)
    coefficient = project_environment(environment)
    normal = random_normals(200)
    expected = np.pi * np.array([0.5, 1.0, 2.0])
    assert np.allclose(irradiance(coefficient, normal), expected, rtol=1e-3)
    on_device = device_irradiance(device, device.from_host(harmonic_table(coefficient)),
                                  device.from_host(normal.astype(np.float32)))
    assert np.allclose(device.to_host(on_device), expected, rtol=1e-3)


def test_low_order_environment_is_exact():
    random = np.random.default_rng(7)
    coefficient = random.normal(size=(N_HARMONICS, 3)) * 0.05
    coefficient[0] = 4.0
    environment = harmonic_basis(DIRECTION) @ coefficient
    assert environment.min() > 0.0
    found = irradiance(project_environment(environment), random_normals(100))
    assert np.allclose(found, integrated_irradiance(environment, random_normals(100)), rtol=2e-3)


def test_clamped_lobe_matches_integration():
    axis = np.array([0.48, 0.6, -0.64])
    environment = 0.3 + np.clip(DIRECTION @ axis, 0.0, None)[..., None] * np.array([1.0, 0.7, 0.2])
    normal = random_normals(100)
    expected = integrated_irradiance(environment, normal)
    found = irradiance(project_environment(environment), normal)
    assert np.abs(found - expected).max() < 0.002 * expected.max()


@pytest.mark.parametrize("name", builtin_environments())
def test_builtin_environments_match_integration(name):
    environment = load_environment(name, Path())
    normal = random_normals(60)
    expected = integrated_irradiance(environment, normal)
    found = irradiance(project_environment(environment), normal)
    assert np.abs(found - expected).max() < 0.01 * expected.max()
    assert np.abs(found - expected).mean() < 0.01 * expected.mean()
    assert found.min() > 0.0


@pytest.mark.warp
def test_device_and_host_agree(device):
    environment = load_environment("clear_sky", Path())
    coefficient = project_environment(environment)
    normal = random_normals(300)
    on_device = device_irradiance(device, device.from_host(harmonic_table(coefficient)),
                                  device.from_host(normal.astype(np.float32)))
    assert np.allclose(device.to_host(on_device), irradiance(coefficient, normal), rtol=1e-4)


def test_blur_keeps_a_constant_and_the_mean(device):
    constant = np.full((32, 64, 3), 0.7, np.float32)
    assert np.allclose(device.to_host(blurred_levels(device, constant)), 0.7, rtol=1e-5)
    sky = load_environment("studio", Path())
    finest = device.to_host(blurred_levels(device, sky))[-3 * 128 * 256:].reshape(128, 256, 3)
    mean = np.einsum("r,rcx->x", pixel_solid_angles(128, 256), finest)
    expected = np.einsum("r,rcx->x", pixel_solid_angles(*sky.shape[:2]), sky)
    assert np.allclose(mean, expected, rtol=0.01)
