"""Products of many short vectors, each rounded alike however many there are.

NumPy's ``@`` leaves them to BLAS, which goes different ways for different shapes, threads and
processors: a pixel then depends on the size of the picture around it. These sum from the first
component to the last, without fused operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def along(vector: Array, axis: npt.ArrayLike) -> Array:
    """Return the dot products (...,) of vectors (..., k) with one vector (k,)."""
    axis = np.asarray(axis)
    total = vector[..., 0] * axis[0]
    for k in range(1, len(axis)):
        total = total + vector[..., k] * axis[k]
    return np.asarray(total)


def turned(vector: Array, matrix: npt.ArrayLike) -> Array:
    """Return the products (..., m) of a matrix (m, k) with vectors (..., k)."""
    return np.stack([along(vector, row) for row in np.asarray(matrix)], axis=-1)
