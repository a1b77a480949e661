"""Products of short vectors: right, and the same bits whatever stands around them."""

import numpy as np
import pytest

from vfx.geometry.handoff.products import along, turned


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_product_of_a_vector_does_not_depend_on_its_neighbours(dtype):
    rng = np.random.default_rng(3)
    vector = rng.normal(size=(67, 129, 3)).astype(dtype)
    matrix = rng.normal(size=(3, 3)).astype(dtype)
    whole, axis = turned(vector, matrix), along(vector, matrix[0])
    for rows, columns in ((slice(5, 22), slice(30, 63)), (slice(0, 1), slice(7, 8))):
        assert np.array_equal(turned(vector[rows, columns], matrix), whole[rows, columns])
        assert np.array_equal(along(vector[rows, columns], matrix[0]), axis[rows, columns])


def test_products_are_those_of_linear_algebra():
    rng = np.random.default_rng(4)
    vector, matrix = rng.normal(size=(50, 4)), rng.normal(size=(2, 4))
    np.testing.assert_allclose(turned(vector, matrix), vector @ matrix.T, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(along(vector, matrix[1]), vector @ matrix[1], rtol=1e-13, atol=1e-13)
