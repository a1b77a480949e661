"""Diffuse light of an environment as few numbers a colour.

Ramamoorthi and Hanrahan 2001, "An efficient representation for irradiance environment maps":
a diffuse surface sees little more of an environment than its lowest spherical harmonics.
``L_lm`` are the environment's coefficients in the real basis ``Y_lm``, ``A_l`` those of the
clamped cosine (A_0 = pi, A_1 = 2 pi/3, A_2 = pi/4, A_4 = -pi/24, A_6 = pi/64, none of odd degrees
above 1), and the irradiance is the sum of A_l L_lm Y_lm(normal). Degree 2, nine numbers, is off by
2.7 % in the mean for lamps in a dark studio, and dips below zero; degree 6 by less than 1 %.
``(l, m)`` stands at l (l + 1) + m.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from vfx.device import Device
from vfx.geometry.handoff.types import Array
from vfx.raytrace.light.environment import averaged, pixel_directions, pixel_solid_angles

#: Rows that the sum over the sphere needs at least for four digits.
INTEGRATION_ROWS = 256
DEGREE = 6
N_HARMONICS = (DEGREE + 1) ** 2
#: How many of them the smooth radiance takes, which must not ring.
N_SMOOTH = 9


def cosine_factor(degree: int) -> float:
    """Return A_l of the clamped cosine."""
    if degree == 1:
        return 2.0 * math.pi / 3.0
    if degree % 2:
        return 0.0
    half = degree // 2
    return (2.0 * math.pi * (-1.0) ** (half - 1) / ((degree + 2) * (degree - 1))
            * math.factorial(degree) / (2.0**degree * math.factorial(half) ** 2))


def norm_factor(degree: int, order: int) -> float:
    """Return what makes a polynomial of :func:`polynomials` one of an orthonormal basis."""
    m = abs(order)
    twice = 1.0 if m == 0 else 2.0
    return math.sqrt(twice * (2 * degree + 1) / (4.0 * math.pi)
                     / (math.factorial(degree - m) * math.factorial(degree + m)))


DEGREES = [degree for degree in range(DEGREE + 1) for _ in range(2 * degree + 1)]
ORDERS = [order for degree in range(DEGREE + 1) for order in range(-degree, degree + 1)]
COSINE_FACTOR = np.array([cosine_factor(degree) for degree in DEGREES])
NORM_FACTOR = np.array([norm_factor(*each) for each in zip(DEGREES, ORDERS, strict=True)])


def polynomials(direction: Array) -> Array:
    """Return (l - |m|)! P_lm(z) times Re (x + iy)^m, or Im (x + iy)^|m| for m < 0, (..., 49)."""
    x, y, z = np.moveaxis(np.asarray(direction, float), -1, 0)
    result = np.empty((*x.shape, N_HARMONICS))
    power, diagonal = np.ones_like(x) + 0j, 1.0
    for m in range(DEGREE + 1):
        before, now = np.zeros_like(x), np.full_like(x, diagonal)
        for degree in range(m, DEGREE + 1):
            if degree > m:
                before, now = now, ((2 * degree - 1) * z * now
                                    - (degree + m - 1) * (degree - m - 1) * before)
            middle = degree * (degree + 1)
            result[..., middle - m] = now * power.imag
            result[..., middle + m] = now * power.real
        power = power * (x + 1j * y)
        diagonal *= 2 * m + 1
    return result


def harmonic_basis(direction: Array) -> Array:
    """Return the basis functions Y_lm (..., 49) of unit directions (..., 3)."""
    basis: Array = NORM_FACTOR * polynomials(direction)
    return basis


def project_environment(environment: Array) -> Array:
    """Return the coefficients L_lm (49, 3) of an equirectangular image (h, w, 3)."""
    if len(environment) > 2 * INTEGRATION_ROWS:
        # So fine an image says no more here than its means over small squares.
        environment = averaged(environment, INTEGRATION_ROWS, 2 * INTEGRATION_ROWS)
    # A pixel of a small image is a large patch of sky: integrate over parts of it.
    parts = -(-INTEGRATION_ROWS // len(environment))
    if parts > 1:
        environment = environment.repeat(parts, axis=0).repeat(parts, axis=1)
    height, width = environment.shape[:2]
    coefficient = np.zeros((N_HARMONICS, 3))
    solid_angle = pixel_solid_angles(height, width)
    for row in range(height):
        basis = harmonic_basis(pixel_directions(height, width, row))
        coefficient += solid_angle[row] * basis.T @ environment[row].astype(float)
    return coefficient


def irradiance(coefficient: Array, normal: Array) -> Array:
    """Return the irradiance (..., 3) on surfaces with unit normals (..., 3), on the host."""
    result: Array = harmonic_basis(normal) @ (COSINE_FACTOR[:, None] * coefficient)
    return result


def harmonic_table(coefficient: Array) -> Array:
    """Return what the kernels take, (58, 3) float32: factors of the irradiance, then L_lm."""
    factor = (COSINE_FACTOR * NORM_FACTOR)[:, None] * coefficient
    return np.concatenate([factor, coefficient[:N_SMOOTH]]).astype(np.float32)


def device_irradiance(device: Device, table: Any, normal: Any) -> Any:
    """Return the irradiance (n, 3) at device normals (n, 3), both float32 on the device."""
    result = device.xp.empty(normal.shape, device.xp.float32)
    device.module("raytrace/light/harmonics.cu").irradiance_at(len(normal), table, normal, result)
    return result
