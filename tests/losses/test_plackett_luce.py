"""PlackettLuceLoss and RankLogistic(likelihood="plackett-luce") against slow truths and peers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

from rankwise import PairGraph, RankLogistic, RankLogisticCV, ScoreGraph
from rankwise.losses import PlackettLuceLoss
from tests.oracle_boards import plackett_luce_loss


def problem(seed, ties, levels=4, n=40):
    rng = np.random.default_rng(seed)
    groups, y = rng.integers(0, 8, n), rng.integers(0, levels, n).astype(float)
    graph = ScoreGraph(y, groups, cost="magnitude" if ties == "include" else "sign", ties=ties)
    lowest = np.array([y[groups == g].min() for g in groups])
    placed = (y > lowest) | (ties == "include")
    return rng, graph, y, groups, placed


@pytest.mark.parametrize("ties", ["include", "exclude"])
@pytest.mark.parametrize("levels", [3, 1000])
def test_value_gradient_and_curvature_are_those_of_the_definition(ties, levels):
    rng, graph, y, groups, placed = problem(0, ties, levels)
    loss, f = PlackettLuceLoss(graph), 2 * rng.normal(size=40)

    def slow(v):
        total, n_choices = plackett_luce_loss(v, y, groups, placed)
        return total / n_choices

    at = loss.at(f)
    assert at.value == pytest.approx(slow(f), rel=1e-12)
    np.testing.assert_allclose(at.gradient, approx_fprime(f, slow, 1e-7), atol=1e-6)
    v, h = rng.normal(size=40), 1e-5
    change = (loss.at(f + h * v).gradient - loss.at(f - h * v).gradient) / (2 * h)
    np.testing.assert_allclose(at.hessian_product(v), change, atol=1e-8)


@pytest.mark.parametrize("ties", ["include", "exclude"])
def test_gradient_and_hessian_of_each_ranking_add_up_to_those_of_all(ties):
    rng, graph, _, _, _ = problem(1, ties)
    loss, f = PlackettLuceLoss(graph), rng.normal(size=40)
    slope, bend = np.zeros(40), np.zeros((40, 40))
    for table, slopes, bends in loss.derivatives_by_ranking(f):
        for rows, g, H in zip(table.rows.T, slopes, bends, strict=True):
            slope[rows] += g
            bend[np.ix_(rows, rows)] += H
    at = loss.at(f)
    np.testing.assert_allclose(slope / loss.total_weight, at.gradient, atol=1e-14)
    columns = np.stack([at.hessian_product(e) for e in np.eye(40)])
    np.testing.assert_allclose(bend / loss.total_weight, columns, atol=1e-14)


def test_scores_far_apart_neither_overflow_nor_vanish():
    rng, graph, _, _, _ = problem(2, "include")
    at = PlackettLuceLoss(graph).at(1e4 * rng.normal(size=40))
    assert np.isfinite(at.value)
    assert np.isfinite(at.gradient).all()
    assert np.isfinite(at.hessian_product(np.arange(40.0))).all()


def test_groups_of_two_are_bradley_and_terrys_model():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 3)), rng.permutation(60).astype(float)
    groups = np.repeat(np.arange(30), 2)
    pairs = RankLogistic(0.01, tol=1e-12).fit(X, y, groups)
    lists = RankLogistic(0.01, tol=1e-12, likelihood="plackett-luce").fit(X, y, groups)
    np.testing.assert_allclose(lists.coef_, pairs.coef_, atol=1e-7)
    assert lists.objective_ == pytest.approx(pairs.objective_)


@pytest.mark.parametrize("levels", [3, 1000])
def test_the_gap_is_certified_against_an_independent_minimum(levels):
    rng, _, y, groups, placed = problem(4, "exclude", levels)
    X, alpha = rng.normal(size=(40, 3)), 0.01
    model = RankLogistic(alpha, tol=1e-9, likelihood="plackett-luce").fit(X, y, groups)

    def slow(w):
        total, n_choices = plackett_luce_loss(X @ w, y, groups, placed)
        return total / n_choices + alpha * w @ w

    best = minimize(slow, np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(model.coef_, best.x, atol=1e-5)
    assert model.lower_bound_ <= best.fun + 1e-12
    assert model.objective_ - best.fun <= model.gap_ * model.objective_ + 1e-12


@pytest.mark.parametrize("ties", [False, True])
def test_it_is_the_cox_regression_of_statsmodels_with_efrons_ties(ties):
    phreg = pytest.importorskip("statsmodels.duration.hazard_regression")
    rng = np.random.default_rng(5)
    X, groups = rng.normal(size=(60, 2)), np.repeat(np.arange(12), 5)
    y = rng.integers(0, 3, 60).astype(float) if ties else rng.permutation(60).astype(float)
    model = RankLogistic(1e-9, ties="include", tol=1e-13, likelihood="plackett-luce")
    ours = model.fit(X, y, groups).coef_
    cox = phreg.PHReg(3 - y if ties else 60 - y, X, strata=groups, ties="efron").fit(disp=0)
    np.testing.assert_allclose(ours, cox.params, atol=1e-5)


def test_every_group_counts_alike_if_asked():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(9, 2)), rng.permutation(9).astype(float)
    groups = np.array([0] * 6 + [1] * 3)
    model = RankLogistic(0.1, likelihood="plackett-luce", group_weight="groups", tol=1e-10)
    w = model.fit(X, y, groups).coef_
    placed = np.array([y[i] > y[groups == groups[i]].min() for i in range(9)])

    def slow(w):
        each = [plackett_luce_loss((X @ w)[groups == g], y[groups == g], groups[groups == g],
                                   placed[groups == g]) for g in (0, 1)]  # fmt: skip
        return np.mean([total / n for total, n in each]) + 0.1 * w @ w

    np.testing.assert_allclose(w, minimize(slow, np.zeros(2), tol=1e-10).x, atol=1e-5)


def test_searches_and_graphs():
    rng = np.random.default_rng(7)
    X, groups = rng.normal(size=(80, 2)), np.repeat(np.arange(20), 4)
    y = X[:, 0] + 0.1 * rng.normal(size=80)
    model = RankLogisticCV(likelihood="plackett-luce", scoring="tau").fit(X, y, groups)
    assert model.best_score_ > 0.7
    assert model.best_estimator_.likelihood == "plackett-luce"
    with pytest.raises(ValueError, match="scores in groups"):
        RankLogistic(likelihood="plackett-luce").fit(X, PairGraph([0], [1], n_items=80))
    with pytest.raises(ValueError, match="likelihood"):
        RankLogistic(likelihood="plackett").fit(X, y, groups)
    model = RankLogistic(1e-6, likelihood="plackett-luce").fit(X, X[:, 0], groups)
    assert model.is_separable_
