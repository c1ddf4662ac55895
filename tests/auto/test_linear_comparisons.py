"""Linear models of comparisons against their explicit design."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise.auto.linear_comparisons import ComparisonDesign


@pytest.mark.parametrize("is_sparse", [False, True])
def test_products_equal_those_of_the_explicit_design(is_sparse):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(12, 3))
    first = rng.integers(12, size=60)
    second = (first + rng.integers(1, 12, size=60)) % 12
    columns = rng.normal(size=(60, 2))
    indicators = sp.csr_array(rng.integers(-1, 2, size=(60, 4)).astype(float))
    explicit = np.hstack([features[first] - features[second], columns, indicators.toarray()])
    shown = sp.csr_array(features) if is_sparse else features
    design = ComparisonDesign(shown, first, second, columns, indicators)
    coefficients = rng.normal(size=9)
    residuals = rng.normal(size=60)
    weight = rng.random(60)
    np.testing.assert_allclose(design.differences(coefficients), explicit @ coefficients)
    np.testing.assert_allclose(design.gradient(residuals), explicit.T @ residuals)
    np.testing.assert_allclose(design.gram(weight), explicit.T @ (weight[:, None] * explicit))
    rows = np.array([5, 3, 40])
    np.testing.assert_allclose(
        design.take(rows).differences(coefficients), explicit[rows] @ coefficients
    )
