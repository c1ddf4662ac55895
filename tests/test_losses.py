"""The squared loss against the sum over explicit edges, and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import PairGraph, ScoreGraph
from rankwise.losses import SquaredLoss
from tests import oracle

M = 15


@pytest.fixture(params=[0.0, 0.3, 1.0])
def case(request):
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 4, M).astype(float), rng.integers(0, 3, M)
    loss = SquaredLoss(ScoreGraph(y, groups, ties="exclude"), request.param, y)
    edges = oracle.score_edges(y, groups, ties="exclude")
    return loss, lambda f: oracle.objective(edges, f, 0.0, 0.0, request.param, y), rng


def test_gradient_is_half_the_finite_difference_of_the_sum_over_edges(case):
    loss, value, rng = case
    f, h = rng.normal(size=M), 1e-6
    numeric = [(value(f + h * e) - value(f - h * e)) / (2 * h) for e in np.eye(M)]
    np.testing.assert_allclose(2 * loss.gradient(f), numeric, atol=1e-7)


def test_value_is_the_sum_over_edges(case):
    loss, value, rng = case
    f = rng.normal(size=M)
    assert loss.value(f) == pytest.approx(value(f))
    assert loss.at_zero == pytest.approx(value(np.zeros(M)))


def test_product_is_half_the_hessian(case):
    loss, _, rng = case
    f, v = rng.normal(size=M), rng.normal(size=M)
    np.testing.assert_allclose(loss.gradient(f + v) - loss.gradient(f), loss.product(v), atol=1e-12)


def test_gram_moment_and_root_belong_to_the_same_quadratic_form(case):
    loss, _, rng = case
    R = rng.normal(size=(M, 3))
    np.testing.assert_allclose(loss.gram(R), R.T @ loss.product(R), atol=1e-12)
    np.testing.assert_allclose(loss.moment(R), R.T @ loss.target, atol=1e-12)
    norms = loss.sparse_norms(sp.csr_matrix(R))
    np.testing.assert_allclose(norms, np.diag(loss.gram(R)), atol=1e-12)
    F = loss.root().apply(np.eye(M))
    np.testing.assert_allclose(F @ F.T, loss.product(np.eye(M)), atol=1e-12)


def test_loss_needs_no_scores_for_explicit_preferences():
    loss = SquaredLoss(PairGraph([0, 1], [1, 2]))
    np.testing.assert_allclose(loss.target, [0.5, 0.0, -0.5])
