"""Length scales that change with place: finer toward an impact, or by a field.

As in yan-2023 III-A.1, more and smaller pieces come near the impact point, their number
falling off by a normal distribution of the distance from it. Sizes are kept on a lattice over
the body's box and interpolated, so that kernels and hosts see one and the same field.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import RegularGridInterpolator

from vfx.device import Device, Record
from vfx.geometry.handoff.types import Array

#: Nodes of the lattice along the longest axis.
NODES = 65


@dataclass(frozen=True)
class Grading:
    """Sizes relative to the smallest: ``relative`` maps points (n, 3) [m] to (n,), 1 or more."""

    relative: Callable[[Array], Array]


def toward_impact(point: Array, deviation: float, ratio: float) -> Grading:
    """Return sizes that are smallest at ``point`` (3,) [m] and ``ratio`` times that far away.

    Beyond its value far away the number density is a normal distribution of the distance from
    the point, with the given standard deviation [m].
    """
    point = np.asarray(point, np.float64)

    def relative(place: Array) -> Array:
        square = ((place - point) ** 2).sum(axis=1) / (2.0 * deviation**2)
        far = ratio**-3.0
        size: Array = (far + (1.0 - far) * np.exp(-square)) ** (-1.0 / 3.0)
        return size

    return Grading(relative)


@dataclass(frozen=True)
class SizeField:
    """Relative sizes on a lattice, 1 where they are smallest."""

    lower: Array             # (3,) [m]
    step: Array              # (3,) [m]
    value: Array             # (a, b, c)

    @classmethod
    def of(cls, grading: Grading | None, lower: Array, upper: Array) -> SizeField:
        """Sample a grading over a box; without one, the same size everywhere."""
        extent = np.maximum(upper - lower, 1e-300)
        if grading is None:
            return cls(lower, extent, np.ones((1, 1, 1)))
        nodes = np.maximum(np.ceil(NODES * extent / extent.max()).astype(int), 2)
        axes = [np.linspace(lower[k], upper[k], nodes[k]) for k in range(3)]
        place = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 3)
        value = np.asarray(grading.relative(place), np.float64).reshape(nodes)
        if not np.isfinite(value).all() or value.min() <= 0:
            raise ValueError("a graded length scale must be a finite number above 0 everywhere")
        return cls(lower, extent / (nodes - 1), value / value.min())

    def struct(self, device: Device, spacing: float) -> Record:
        """Return the sizes times ``spacing``, as kernels take them."""
        nx, ny, nz = self.value.shape
        (x, y, z), (sx, sy, sz) = self.lower, 1.0 / self.step
        return device.struct(
            "geometry/divide/blue_noise.cu", "SizeField", nx=nx, ny=ny, nz=nz, x=x, y=y, z=z, sx=sx,
            sy=sy, sz=sz, value=device.from_host(spacing * self.value))

    @property
    def typical(self) -> float:
        """A relative size between the least and the largest."""
        return float(np.exp(np.log(self.value).mean()) ** 0.5)

    @property
    def mean_crowding(self) -> float:
        """Mean number of points a volume, relative to sizes of 1."""
        return float((self.value**-3.0).mean())

    @property
    def steepest(self) -> float:
        """A bound of the slope of relative sizes [1/m]."""
        slopes = [np.abs(np.diff(self.value, axis=k)).max(initial=0.0) / self.step[k]
                  for k in range(3)]
        return float(np.linalg.norm(slopes))


def sizes_of(field: SizeField, spacing: float, point: Array) -> Array:
    """Return the size (n,) [m] at points (n, 3)."""
    if field.value.size == 1:
        return np.full(len(point), spacing)
    axes = [field.lower[k] + field.step[k] * np.arange(field.value.shape[k]) for k in range(3)]
    inside = np.clip(point, field.lower, [axis[-1] for axis in axes])
    size: Array = spacing * RegularGridInterpolator(axes, field.value)(inside)
    return size
