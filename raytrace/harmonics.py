"""Diffuse light of an environment as nine numbers a colour.

Ramamoorthi and Hanrahan 2001, "An efficient representation for irradiance environment maps":
a diffuse surface sees little more of an environment than its nine lowest spherical harmonics.
``L_lm`` are the environment's coefficients in the real basis ``Y_lm``, ``A_l`` those of the
clamped cosine (A_0 = pi, A_1 = 2 pi/3, A_2 = pi/4), and the irradiance is the sum of
A_l L_lm Y_lm(normal). Order of the nine (l, m): (0,0), (1,-1), (1,0), (1,1), (2,-2), (2,-1),
(2,0), (2,1), (2,2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff import Array
from vfx.raytrace.environment import pixel_directions, pixel_solid_angles

#: Rows that the sum over the sphere needs at least for four digits.
INTEGRATION_ROWS = 256
COSINE_FACTOR = np.array([np.pi] + 3 * [2.0 * np.pi / 3.0] + 5 * [np.pi / 4.0])


def harmonic_basis(direction: Array) -> Array:
    """Return the nine basis functions (..., 9) of unit directions (..., 3)."""
    x, y, z = np.moveaxis(np.asarray(direction, float), -1, 0)
    return np.stack([
        np.full_like(x, 0.5 * np.sqrt(1.0 / np.pi)),
        *(0.5 * np.sqrt(3.0 / np.pi) * axis for axis in (y, z, x)),
        0.5 * np.sqrt(15.0 / np.pi) * x * y,
        0.5 * np.sqrt(15.0 / np.pi) * y * z,
        0.25 * np.sqrt(5.0 / np.pi) * (3.0 * z * z - 1.0),
        0.5 * np.sqrt(15.0 / np.pi) * x * z,
        0.25 * np.sqrt(15.0 / np.pi) * (x * x - y * y)], axis=-1)


def project_environment(environment: Array) -> Array:
    """Return the coefficients L_lm (9, 3) of an equirectangular image (h, w, 3)."""
    # A pixel of a small image is a large patch of sky: integrate over parts of it.
    parts = -(-INTEGRATION_ROWS // len(environment))
    environment = environment.repeat(parts, axis=0).repeat(parts, axis=1)
    height, width = environment.shape[:2]
    coefficient = np.zeros((9, 3))
    solid_angle = pixel_solid_angles(height, width)
    for row in range(height):
        basis = harmonic_basis(pixel_directions(height, width, row))
        coefficient += solid_angle[row] * basis.T @ environment[row].astype(float)
    return coefficient


def irradiance(coefficient: Array, normal: Array) -> Array:
    """Return the irradiance (..., 3) on surfaces with unit normals (..., 3), on the host."""
    result: Array = harmonic_basis(normal) @ (COSINE_FACTOR[:, None] * coefficient)
    return result


def device_irradiance(device: Device, coefficient: Any, normal: Any) -> Any:
    """Return the irradiance (n, 3) at device normals (n, 3), both float32 on the device."""
    result = device.xp.empty(normal.shape, device.xp.float32)
    device.module("raytrace/harmonics.cu").irradiance_at(
        len(normal), coefficient, normal, result)
    return result
