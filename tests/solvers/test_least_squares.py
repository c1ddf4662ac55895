"""Shifted symmetric systems against dense solves."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import ScoreGraph
from rankwise.losses import SquaredLoss
from rankwise.solvers.least_squares import minimize, solve_shifted, solve_symmetric
from rankwise.solvers.leave_group_out import hold_out_dual, leave_out_dual_coef
from rankwise.solvers.leave_items_out import find_spectrum

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


@pytest.mark.parametrize("shifts", [[0.3], [0.3, 1e-6, 50.0]])
@pytest.mark.parametrize("n", SIZES)
def test_a_matrix_is_overwritten_only_if_the_caller_permits_it(n, shifts):
    A, t = system(n, definite=True)
    for order in "CF":
        given = A.copy(order=order)
        solutions, _ = solve_shifted(given, t, shifts)
        np.testing.assert_array_equal(given, A)
        overwritten, _ = solve_shifted(given, t, shifts, overwrite=True)
        np.testing.assert_array_equal(solutions, overwritten)


def test_kernel_matrices_are_overwritten_only_if_the_caller_permits_it():
    rng = np.random.default_rng(0)
    R = rng.normal(size=(12, 3))
    K = R @ R.T
    given = K.copy()
    loss = SquaredLoss(ScoreGraph(rng.normal(size=12), np.repeat([0, 1, 2], 4)))
    (term,) = loss.terms
    folds = [np.arange(4), np.arange(4, 8)]
    alphas = np.array([0.1, 1.0])
    matrices = (given, term.root, loss.graph.components)
    data = (term.target[:, None], term.amount, folds, alphas)
    out = np.zeros((12, 1, 2))
    hold_out_dual(*matrices, *data, out)
    leave_out_dual_coef(given, term.root, *data)
    find_spectrum(given, is_kernel=True, centered=True)
    minimize("dual", loss, given, alphas)
    np.testing.assert_array_equal(given, K)
