"""The exponential loss and custom losses in RankSVM: certificates, extreme scores, files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from rankwise import PairGraph, RankSVM, RankSVMCV, ScoreGraph, SurvivalGraph, make_target
from rankwise.losses import ExponentialLoss, PairFunction, PairwiseLoss
from rankwise.persistence import load, save
from tests import oracle

ALPHA = 0.02
M, P = 50, 3


class SmoothHinge(PairFunction):
    """0 for g ≥ 1, a parabola down to 1 − width, then a line."""

    def __init__(self, width=0.5):
        self.width = width

    def at(self, g):
        slack = 1 - g
        bend = np.clip(slack / self.width, 0, 1)
        value = np.where(
            slack > self.width, slack - self.width / 2, bend * np.maximum(slack, 0) / 2
        )
        is_bent = (slack > 0) & (slack < self.width)
        return value, -bend, is_bent / self.width


class HingeAsFunction(PairFunction):
    """The hinge loss, which has no second derivative."""

    is_smooth = False

    def at(self, g):
        return np.maximum(1 - g, 0), -1.0 * (g < 1), np.zeros_like(g)


def problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, P))
    y = np.round(X[:, 0] + 0.7 * rng.normal(size=M), 0)
    groups = rng.integers(0, 4, M)
    winner = rng.integers(0, M, 80)
    loser = (winner + rng.integers(1, M, 80)) % M  # contradictions, too
    weights = rng.uniform(0.5, 2, M)
    return X, {
        "scores": ScoreGraph(y, groups),
        "groups": ScoreGraph(y, groups, cost="sign", group_weight="groups"),
        "weights": ScoreGraph(y, groups, sample_weight=weights),
        "comparisons": PairGraph(winner, loser, weight=rng.uniform(0.5, 2, 80), n_items=M),
        "survival": SurvivalGraph(np.exp(y), rng.random(M) < 0.6, groups, weights),
    }


X, GRAPHS = problems()


def strict_edges(graph):
    pairs = graph.pairs()
    arrays = pairs.winner, pairs.loser, pairs.magnitude, pairs.weight
    return [edge for edge in oracle.pair_edges(*arrays) if edge[2] > 0]


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("solver", ["newton-cg", "lbfgs", "bmrm"])
def test_rank_svm_finds_the_certified_minimum_over_explicit_pairs(name, solver):
    graph = GRAPHS[name]
    model = RankSVM(ALPHA, loss="exponential", solver=solver, tol=1e-6)
    model.set_params(group_weight=graph.group_weight).fit(X, graph)
    edges = strict_edges(graph)

    def objective(w):
        return oracle.exponential_objective(edges, X @ w, w @ w, ALPHA)

    reference = minimize(objective, np.zeros(P), tol=1e-10)
    assert model.gap_ <= 1e-6
    assert model.objective_ == pytest.approx(objective(model.coef_), rel=1e-10)
    assert model.lower_bound_ <= reference.fun * (1 + 1e-9)
    assert model.objective_ <= reference.fun * (1 + 2e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_scores_far_apart_do_not_overflow(name):
    loss = ExponentialLoss(GRAPHS[name])
    f = 1e5 * np.random.default_rng(1).normal(size=M)
    at = loss.at(f)
    assert np.isfinite(at.value)
    assert np.isfinite(at.gradient).all()
    assert np.isfinite(at.hessian_product(f)).all()
    step = 1e-3 * np.random.default_rng(2).normal(size=M)
    change = loss.at(f + step).value - loss.at(f - step).value
    assert change == pytest.approx(2 * at.gradient @ step, rel=1e-4)
    other = 0.1 * f
    tangent = at.value + at.gradient @ (other - f)
    assert loss.at(other).value >= tangent - 1e-9 * at.value


@pytest.mark.parametrize("scale", [1e-8, 1e-3, 1e4, 1e8])
def test_features_of_any_scale_reach_the_certificate(scale):
    model = RankSVM(ALPHA * scale**2, loss="exponential", tol=1e-6)
    expected = RankSVM(ALPHA, loss="exponential", tol=1e-6).fit(X, GRAPHS["scores"])
    model.fit(scale * X, GRAPHS["scores"])
    assert model.gap_ <= 1e-6
    np.testing.assert_allclose(model.coef_ * scale, expected.coef_, rtol=1e-2)


def test_a_long_list_is_trained_without_visiting_its_pairs():
    rng = np.random.default_rng(0)
    m = 100_000  # 5 · 10⁹ pairs
    features = rng.normal(size=(m, 3))
    y = features[:, 0] + rng.normal(size=m)
    model = RankSVM(0.01, loss="exponential").fit(features, y)
    assert model.gap_ <= 1e-3
    assert model.coef_[0] > 10 * np.abs(model.coef_[1:]).max()


def test_path_search_and_model_file(tmp_path):
    graph = GRAPHS["scores"]
    path = RankSVM(loss="exponential", tol=1e-6).path(X, graph, alphas=[1.0, ALPHA])
    model = RankSVM(ALPHA, loss="exponential", tol=1e-6).fit(X, graph)
    np.testing.assert_allclose(path.model(1).coef_, model.coef_, rtol=1e-2)
    search = RankSVMCV(loss="exponential").fit(X, graph)
    assert search.best_estimator_.loss == "exponential"
    save(search, tmp_path / "model.zip")
    np.testing.assert_array_equal(load(tmp_path / "model.zip").predict(X), search.predict(X))
    kernel = RankSVM(ALPHA, loss="exponential", kernel="rbf", n_basis=10, random_state=0)
    assert kernel.fit(X, graph).gap_ <= 1e-3


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "loss", [SmoothHinge(), SmoothHinge(0.1), HingeAsFunction()], ids=["wide", "narrow", "hinge"]
)
def test_a_custom_loss_finds_the_certified_minimum(name, loss):
    graph = GRAPHS[name]
    model = RankSVM(ALPHA, loss=loss, tol=1e-4).set_params(group_weight=graph.group_weight)
    model.fit(X, graph)
    edges = strict_edges(graph)
    total = sum(w for *_, w in edges)
    winner, loser, _, omega = (np.array(column) for column in zip(*edges, strict=True))

    def objective(w):
        f = X @ w
        return omega @ loss.at(f[winner] - f[loser])[0] / total + ALPHA * w @ w

    assert model.gap_ <= 1e-4
    assert model.objective_ == pytest.approx(objective(model.coef_), rel=1e-9)
    for size in (1e-3, 1e-1, 1.0):
        others = model.coef_ + size * np.random.default_rng(0).normal(size=(20, P))
        assert min(map(objective, others)) >= model.lower_bound_


def test_custom_losses_equal_those_of_the_package():
    graph = GRAPHS["scores"]
    by_function = RankSVM(ALPHA, loss=HingeAsFunction(), tol=1e-5).fit(X, graph)
    by_name = RankSVM(ALPHA, tol=1e-5).fit(X, graph)
    assert by_function.objective_ == pytest.approx(by_name.objective_, rel=2e-5)
    assert by_function.solver_ == "lbfgs"
    by_class = RankSVM(ALPHA, loss=ExponentialLoss).fit(X, graph)
    again = RankSVM(ALPHA, loss="exponential").fit(X, graph)
    np.testing.assert_array_equal(by_class.coef_, again.coef_)


def test_custom_losses_are_cloned_searched_and_pickled_but_not_saved(tmp_path):
    model = RankSVM(ALPHA, loss=SmoothHinge(0.3)).fit(X, GRAPHS["scores"])
    assert clone(model).loss.width == 0.3
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"loss.*by name"):
        save(model, tmp_path / "model.zip")
    y, groups = GRAPHS["scores"].y, GRAPHS["scores"].groups
    losses = ["hinge", SmoothHinge(0.1), SmoothHinge(1.0)]
    search = GridSearchCV(RankSVM(ALPHA), {"loss": losses}, cv=3).fit(X, make_target(y, groups))
    assert search.best_score_ > 0.5
    chosen = RankSVMCV(loss=SmoothHinge()).fit(X, GRAPHS["scores"])
    assert isinstance(chosen.best_estimator_.loss, SmoothHinge)


@pytest.mark.parametrize("loss", ["exp", 3, None, SmoothHinge, PairGraph])
def test_other_objects_are_refused(loss):
    with pytest.raises(ValueError, match="loss="):
        RankSVM(loss=loss).fit(X, GRAPHS["scores"])


def test_newton_steps_need_a_smooth_loss():
    with pytest.raises(ValueError, match="smooth"):
        RankSVM(loss=HingeAsFunction(), solver="newton-cg").fit(X, GRAPHS["scores"])
    assert issubclass(ExponentialLoss, PairwiseLoss)
