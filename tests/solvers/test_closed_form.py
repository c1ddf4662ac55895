"""Shifted symmetric systems against dense solves."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise.solvers.least_squares import solve_shifted, solve_symmetric

SIZES = [1, 2, 3, 4, 7, 40]


def system(n, definite=True):
    rng = np.random.default_rng(n)
    B = rng.normal(size=(n, n))
    A = B @ B.T if definite else B + B.T - 2 * np.eye(n)
    return A, rng.normal(size=(n, 2))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("definite", [True, False])
@pytest.mark.parametrize("n", SIZES)
def test_one_shift_and_many_equal_dense_solves(n, definite, order):
    A, t = system(n, definite)
    x, is_definite = solve_symmetric(A.copy(order=order), t, 0.3)
    np.testing.assert_allclose(x, np.linalg.solve(A + 0.3 * np.eye(n), t), rtol=1e-8)
    assert is_definite == (np.linalg.eigvalsh(A + 0.3 * np.eye(n)).min() > 0)
    shifts = [0.3, 1e-6, 50.0]
    solutions, is_definite = solve_shifted(A.copy(order=order), t, shifts)
    assert solutions.shape == (3, n, 2)
    for x, shift in zip(solutions, shifts, strict=True):
        np.testing.assert_allclose(x, np.linalg.solve(A + shift * np.eye(n), t), rtol=1e-6)
    assert is_definite == (np.linalg.eigvalsh(A).min() > -1e-6)
