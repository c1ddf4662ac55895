"""One contract for every loss on every graph, by sums over explicit edges and by differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import PairGraph, ScoreGraph, SurvivalGraph
from rankwise.losses import (
    ExponentialLoss,
    HingeLoss,
    LogisticLoss,
    PairFunction,
    SquaredHingeLoss,
    SquaredLoss,
)
from tests import oracle
from tests.graphs.data import ChampionGraph

M = 15


def _scores(rng):
    return rng.integers(0, 4, M).astype(float), rng.integers(0, 3, M)


def _scored(rng, **options):
    return ScoreGraph(*_scores(rng), **options)


def _explicit(rng, cost="magnitude"):
    winner = rng.integers(0, M, 40)
    loser = (winner + rng.integers(1, M, 40)) % M
    magnitude, weight = rng.integers(cost == "relative", 3, 40) * 1.0, rng.random(40) + 0.1
    return PairGraph(winner, loser, magnitude, weight, n_items=M, cost=cost)


GRAPHS = {
    "magnitude": _scored,
    "without ties": lambda rng: _scored(rng, ties="exclude"),
    "sign, groups alike": lambda rng: _scored(rng, cost="sign", group_weight="groups"),
    "explicit": _explicit,
    "explicit, relative": lambda rng: _explicit(rng, "relative"),
    "survival": lambda rng: SurvivalGraph(*_scores(rng)[:1], rng.random(M) < 0.6),
    "champions": lambda rng: ChampionGraph(*_scores(rng)),
}


def _squared(graph, beta):
    y = np.random.default_rng(1).normal(size=M)
    edges = oracle.pair_edges(*_edges_of(graph), graph.cost)
    return SquaredLoss(graph, beta, y), lambda f: oracle.objective(edges, f, 0.0, 0.0, beta, y)


def _margin(graph, loss, name):
    edges = oracle.pair_edges(*_edges_of(graph), graph.cost)
    strict = [edge for edge in edges if edge[2] > 0]
    return loss(graph), lambda f: oracle.margin_objective(strict, f, 0, 0, name)


class Exponential(PairFunction):
    """The exponential loss as a custom loss, which visits every pair."""

    def at(self, g):
        return np.exp(-g), -np.exp(-g), np.exp(-g)


def _exponential(graph, loss=ExponentialLoss):
    edges = oracle.pair_edges(*_edges_of(graph), graph.cost)
    strict = [edge for edge in edges if edge[2] > 0]
    return loss(graph), lambda f: oracle.exponential_objective(strict, f, 0, 0)


def _logistic(graph):
    edges = oracle.pair_edges(*_edges_of(graph), graph.cost)
    return LogisticLoss(graph), lambda f: oracle.logistic_objective(edges, f, 0, 0)


def _edges_of(graph):
    pairs = graph.pairs()
    return pairs.winner, pairs.loser, pairs.magnitude, pairs.weight


LOSSES = {
    "squared": lambda graph: _squared(graph, 0.0),
    "mixed": lambda graph: _squared(graph, 0.3),
    "regression": lambda graph: _squared(graph, 1.0),
    "hinge": lambda graph: _margin(graph, HingeLoss, "hinge"),
    "squared hinge": lambda graph: _margin(graph, SquaredHingeLoss, "squared_hinge"),
    "logistic": _logistic,
    "exponential": _exponential,
    "custom exponential": lambda graph: _exponential(graph, Exponential()),
}


@pytest.fixture(params=itertools.product(LOSSES, GRAPHS), ids=" on ".join)
def case(request):
    loss, graph = request.param
    rng = np.random.default_rng(0)
    return *LOSSES[loss](GRAPHS[graph](rng)), rng


def test_value_is_the_sum_over_edges(case):
    loss, value, rng = case
    for f in (rng.normal(size=M), np.zeros(M)):
        assert loss.at(f).value == pytest.approx(value(f), rel=1e-12)


def test_gradient_is_the_whole_finite_difference_of_the_sum_over_edges(case):
    loss, value, rng = case
    f, h = rng.normal(size=M), 1e-6
    numeric = [(value(f + h * e) - value(f - h * e)) / (2 * h) for e in np.eye(M)]
    np.testing.assert_allclose(loss.at(f).gradient, numeric, atol=1e-7)


def test_curvature_is_the_finite_difference_of_the_gradient(case):
    loss, _, rng = case
    f, v, h = rng.normal(size=M), rng.normal(size=M), 1e-6
    numeric = (loss.at(f + h * v).gradient - loss.at(f - h * v).gradient) / (2 * h)
    np.testing.assert_allclose(loss.at(f).hessian_product(v), numeric, atol=1e-7)


def test_tangents_lie_below_the_loss(case):
    loss, value, rng = case
    f = np.round(rng.normal(size=M), 1)  # some margins are exactly one
    at = loss.at(f)
    for size in (1e-6, 0.1, 3.0):
        other = f + size * rng.normal(size=M)
        assert value(other) >= at.value + at.gradient @ (other - f) - 1e-12


def test_what_a_loss_says_of_its_tangent_is_so(case):
    loss, _, rng = case
    f = rng.normal(size=M)
    at = loss.at(f)
    assert at.plane.offset == pytest.approx(at.value - at.gradient @ f, abs=1e-12)
    assert at.plane.offset_terms >= abs(at.plane.offset)
    assert at.plane.gradient_terms >= np.abs(at.gradient).sum() - 1e-12


@pytest.fixture(params=[0.0, 0.3, 1.0])
def quadratic(request):
    rng = np.random.default_rng(0)
    y, groups = _scores(rng)
    return SquaredLoss(ScoreGraph(y, groups, ties="exclude"), request.param, y), rng


def test_A_is_half_the_hessian_of_the_squared_loss(quadratic):
    loss, rng = quadratic
    f, v = rng.normal(size=M), rng.normal(size=M)
    change = loss.at(f + v).gradient - loss.at(f).gradient
    np.testing.assert_allclose(change, 2 * loss.times_A(v), atol=1e-12)
    np.testing.assert_allclose(loss.at(f).gradient, 2 * (loss.times_A(f) - loss.target), atol=1e-12)
    assert loss.at(np.zeros(M)).value == loss.at_zero


def test_system_moment_norms_and_root_belong_to_the_same_quadratic_form(quadratic):
    loss, rng = quadratic
    R = rng.normal(size=(M, 3))
    gram, moment = loss.system(R)
    np.testing.assert_allclose(gram, R.T @ loss.times_A(R), atol=1e-12)
    np.testing.assert_allclose(moment, R.T @ loss.target, atol=1e-12)
    np.testing.assert_allclose(loss.moment(R), R.T @ loss.target, atol=1e-12)
    for norms in (loss.norms(R), loss.norms(sp.csr_matrix(R))):
        np.testing.assert_allclose(norms, np.diag(gram), atol=1e-12)
    F = loss.root().apply(np.eye(M))
    np.testing.assert_allclose(F @ F.T, loss.times_A(np.eye(M)), atol=1e-12)


def test_several_outputs_are_added_up():
    rng = np.random.default_rng(0)
    y, groups = rng.normal(size=(M, 2)), rng.integers(0, 3, M)
    both, F = SquaredLoss(ScoreGraph(y, groups), 0.4, y).at(y[::-1]), y[::-1]
    each = [SquaredLoss(ScoreGraph(c, groups), 0.4, c).at(f) for c, f in zip(y.T, F.T, strict=True)]
    assert both.value == pytest.approx(sum(at.value for at in each))
    np.testing.assert_allclose(both.gradient.T, [at.gradient for at in each], atol=1e-12)


def test_loss_needs_no_scores_for_explicit_preferences():
    loss = SquaredLoss(PairGraph([0, 1], [1, 2]))
    np.testing.assert_allclose(loss.target, [0.5, 0.0, -0.5])
