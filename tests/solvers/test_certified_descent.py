"""The lower bound of RankSVM is one for any data, and every way a search can end has its name."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from experiments.treersvm11 import certificate as ranksvm_certificate
from rankwise import RankSVM, RankSVMCV, ScoreGraph
from rankwise.losses import HingeLoss, LossValue, Plane
from rankwise.rankers.pairwise_ranker import REASONS
from rankwise.solvers.bundle import Bundle
from rankwise.solvers.certified_descent import (
    MAX_SCORE_UPDATES,
    STALLED_ITERATIONS,
    line_search,
    minimize_pairwise,
)
from rankwise.solvers.pairwise_objective import Objective, make_objective

ALPHA = 1e-3
OFFSET = 1e6


def offset_problem(m=80, offset=OFFSET):
    """float32 features far from zero, and what they are in float64 without the offset."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(m, 5)) + offset).astype("f4")
    exact = X.astype(np.float64) - offset
    return X, exact, np.round(exact @ rng.normal(size=5) + rng.normal(size=m)), np.arange(m) // 20


def value_of(exact, y, groups, w, alpha, loss="hinge"):
    """J from explicit pairs."""
    f = exact @ w
    i, j = np.nonzero((y[:, None] > y) & (groups[:, None] == groups))
    short = np.maximum(0.0, 1 - (f[i] - f[j]))
    return np.mean(short if loss == "hinge" else short**2) + alpha * w @ w


# the bound


def test_no_bound_of_random_problems_is_above_what_an_independent_solver_achieves():
    """A part of ``python -m experiments.treersvm11.certificate``, which does 10,000."""
    judged = [
        ranksvm_certificate.judge(ranksvm_certificate.draw_problem(np.random.default_rng(seed)))
        for seed in range(120)
    ]
    assert max(one.excess for one in judged) <= 0
    assert all(one.gap >= 0 for one in judged)
    found = np.mean([one.distance <= ranksvm_certificate.TIGHT for one in judged])
    assert found > 0.9  # the comparison means something
    assert {one.end for one in judged} >= {"converged", "reached max_iter;"}


def test_the_certificate_run_prints_its_table(capsys):
    ranksvm_certificate.main(["--problems", "12"])
    out = capsys.readouterr().out
    assert "wrong" in out
    assert out.splitlines()[6].split()[:3] == ["all", "12", "0"]


def test_an_offset_of_float32_features_matters_neither_to_a_path_nor_to_a_warm_start():
    X, exact, y, groups = offset_problem()
    path = RankSVM(tol=1e-5).path(X, y, groups, alphas=[ALPHA, 0.1])
    near = RankSVM(tol=1e-5).path(exact, y, groups, alphas=[ALPHA, 0.1])
    warm = RankSVM(0.1, tol=1e-5, warm_start=True).fit(X, y, groups)
    warm.set_params(alpha=ALPHA).fit(X, y, groups)
    for k, alpha in enumerate([ALPHA, 0.1]):
        value = value_of(exact, y, groups, near.model(k).coef_, alpha)
        assert path.model(k).lower_bound_ <= value <= path.model(k).lower_bound_ / (1 - 2.1e-5)
    assert warm.lower_bound_ <= value_of(exact, y, groups, near.model(0).coef_, ALPHA)
    assert warm.objective_ == pytest.approx(path.model(0).objective_, rel=2e-5)


@pytest.mark.parametrize("options", [{}, {"n_basis": 20, "random_state": 0}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_kernel_models_of_float32_features_are_certified_in_float64(options, loss):
    X, _, y, groups = offset_problem(offset=100.0)
    model = RankSVM(ALPHA, kernel="rbf", gamma=0.1, loss=loss, tol=1e-5, **options)
    model.fit(X, y, groups)
    exact = X.astype(np.float64)
    same = RankSVM(**model.get_params()).fit(exact, y, groups)
    K, b = np.exp(-0.1 * ((exact[:, None] - exact) ** 2).sum(-1)), slice(None)
    if options:
        b = model.basis_indices_
    for each in (model, same):
        f, a = K[:, b] @ each.dual_coef_, each.dual_coef_
        J = value_of(np.c_[f], y, groups, np.ones(1), 0.0, loss) + ALPHA * a @ K[b][:, b] @ a
        assert model.lower_bound_ <= J * (1 + 1e-6)  # float32 kernel values are that far away
        assert pytest.approx(J, rel=1e-5) == each.objective_


def test_held_out_scores_of_float32_features_are_those_of_the_same_features_in_float64():
    X, _, y, groups = offset_problem()
    options = {"cv": 2, "store_predictions": True, "tol": 1e-6, "alphas": [0.1]}
    ours = RankSVMCV(**options).fit(X, y, groups)
    same = RankSVMCV(**options).fit(X.astype(np.float64), y, groups)
    a, b = (np.asarray(cv.cv_results_["predictions"][0]) for cv in (ours, same))
    np.testing.assert_allclose(a - a.mean(), b - b.mean(), atol=1e-6)


def test_dask_shares_the_certificate():
    da = pytest.importorskip("dask.array")
    from rankwise.distributed import RankSVM as LazyRankSVM

    X, exact, y, groups = offset_problem()
    lazy = [da.from_array(values, chunks=40) for values in (X, y, groups)]
    near = RankSVM(ALPHA, tol=1e-5).fit(exact, y, groups)
    model = LazyRankSVM(ALPHA, tol=1e-5).fit(*lazy)
    value = value_of(exact, y, groups, near.coef_, ALPHA)
    assert model.lower_bound_ <= value <= model.lower_bound_ / (1 - 2.1e-5)


def test_slopes_that_rounding_hides_are_allowed_for():
    """The digits that differ are the last ones, a sparse matrix is not shifted, alpha is tiny."""
    X = np.full((12, 1), 21050009609.24094)
    X[[4, 8, 11]] += [[-4e-6], [4e-6], [4e-6]]
    y = np.arange(12) % 3
    with pytest.warns(ConvergenceWarning, match="rounding"):
        model = RankSVM(5e-12, loss="squared_hinge").fit(sp.csr_matrix(X), y)
    dense = RankSVM(5e-12, loss="squared_hinge").fit(X, y)
    assert dense.gap_ <= 1e-3
    assert model.lower_bound_ <= dense.objective_ < 0.999


@given(seed=st.integers(0, 10**6))
def test_the_bound_is_lower_by_the_stated_rounding(seed):
    rng = np.random.default_rng(seed)
    R = rng.normal(size=(6, 3)) * 10.0 ** rng.integers(-3, 4, 3)
    objective = make_objective(R, HingeLoss(ScoreGraph(np.arange(6))), 0.1)
    plain, careful = (
        Bundle(objective.largest_feature_values, 0),
        Bundle(objective.largest_feature_values, 6),
    )
    point = objective.at(rng.normal(size=3))
    for bundle in (plain, careful):
        bundle.add(point.loss_gradient, point.loss.plane)
    (bound, w), (lower, _) = plain.solve(0.1), careful.solve(0.1)
    share = 1 - plain._mixture_weights[0]
    magnitude = np.abs(R).max(axis=0)
    offset = point.loss.plane.offset
    pull = max(np.abs(point.loss.gradient).sum(), 2 * offset)
    eps = 2.0**-52
    eta = eps * (4 + math.sqrt(6 + 3)) * share
    stated = eta * (offset + pull * magnitude @ np.abs(w)) + 4 * eps * 0.1 * w @ w
    stated += np.sum((eta * pull * magnitude) ** 2) / (4 * 0.1)
    assert bound - lower == pytest.approx(stated, rel=1e-2, abs=4 * eps * (1 + abs(bound)))


# how a search ends


@pytest.mark.parametrize(
    "options", [{"solver": "lbfgs"}, {"solver": "bmrm"}, {"loss": "squared_hinge"}]
)
def test_a_search_that_rounding_stops_has_stalled(options):
    X, y = [[-1.4, -0.9], [0.4, -0.5], [0.5, 0.8]], [0, 1, 2]
    with pytest.warns(ConvergenceWarning, match="cannot go on within rounding errors.*gap is"):
        model = RankSVM(1e-3, tol=1e-17, max_iter=900, **options).fit(X, y)
    assert model.n_iter_ < 900
    assert 1e-17 < model.gap_ < 1e-9
    state = np.array([model.history_["objective"], model.history_["lower_bound"]])
    unchanged = (state[:, -STALLED_ITERATIONS - 1 :] == state[:, -1:]).all()
    assert unchanged  # that long it was tried again
    assert not (state[:, -STALLED_ITERATIONS - 2] == state[:, -1]).all()  # and no longer


def raised(at):
    """The loss with a plane that is above it."""
    return at._replace(plane=at.plane._replace(offset=at.plane.offset + 0.1))


class Mistaken(HingeLoss):
    """Its planes are above it."""

    def at(self, f):
        return raised(super().at(f))


def problem_with(loss):
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 4
    return make_objective(X, loss(ScoreGraph(y)), 0.01)


def interrupt(_):
    raise KeyboardInterrupt


def test_a_bound_above_the_objective_is_said_and_not_cut_off():
    found = minimize_pairwise(problem_with(Mistaken), "bmrm", tol=1e-9, max_iter=500)
    assert found.end == "contradicted"
    assert found.bound > found.objective
    assert found.gap < 0


def test_the_estimator_warns_of_a_contradiction(monkeypatch):
    right = HingeLoss.at
    monkeypatch.setattr(HingeLoss, "at", lambda self, f: raised(right(self, f)))
    X, y = np.random.default_rng(0).normal(size=(12, 2)), np.arange(12) % 4
    with pytest.warns(ConvergenceWarning, match="lower bound above an objective.*do not rely"):
        model = RankSVM(0.01, tol=1e-6).fit(X, y)
    assert model.lower_bound_ > model.objective_
    with pytest.warns(ConvergenceWarning, match="lower bound above an objective"):
        RankSVM(tol=1e-6).path(X, y, alphas=[0.01, 1e4])  # the other one converges


@pytest.mark.parametrize(
    "options, end",
    [
        ({"tol": 1e-3, "max_iter": 500}, "converged"),
        ({"tol": 1e-9, "max_iter": 2}, "max_iter"),
        ({"tol": 1e-17, "max_iter": 900}, "stalled"),
        (
            {"tol": 1e-9, "max_iter": 500, "watch": interrupt, "keep_interrupted": True},
            "interrupted",
        ),
    ],
)
def test_every_ending_has_its_name_and_all_but_success_a_message(options, end):
    assert (end in REASONS) == (end != "converged")
    assert minimize_pairwise(problem_with(HingeLoss), "lbfgs", **options).end == end


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e160, 1e200, 1e300])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("solver", ["auto", "lbfgs", "bmrm"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_no_ending_raises_where_squares_leave_the_range_of_float64(scale, loss, solver):
    X = np.array([[-1.4, -0.9], [0.4, -0.5], [0.5, 0.8]]) * scale
    model = RankSVM(1e-3, loss=loss, solver=solver, max_iter=60).fit(X, [0, 1, 2])
    assert np.isfinite(model.coef_).all()
    assert 0 <= model.lower_bound_ <= model.objective_ <= 1


class AnyFunction:
    """Any function of t, as a loss of one score."""

    def __init__(self, value, slope):
        self._value, self._slope, self.asked = value, slope, []

    def at(self, f):
        self.asked.append(f[0])
        value = self._value(f[0])
        gradient = np.array([self._slope(f[0])])
        return LossValue(value, gradient, None, Plane.from_difference(value, gradient, f))


def searched(value, slope):
    """Step from 0 along the function; the point, and at which t the function was looked at."""
    loss = AnyFunction(value, slope)
    objective = Objective(np.eye(1), loss, 0.0, np.ones(1), 1)
    return line_search(objective, objective.at(np.zeros(1)), np.ones(1)), loss.asked[1:]


@pytest.mark.parametrize("slope", [0.0, 1.0, math.inf, -math.inf, math.nan])
def test_a_line_that_does_not_lead_down_is_not_searched(slope):
    with np.errstate(invalid="ignore"):
        assert searched(lambda t: slope * t, lambda t: slope) == (None, [])


def test_a_line_that_leads_down_only_by_its_slope_ends_with_none():
    point, asked = searched(lambda t: float(t > 0), lambda t: 1.0 if t > 0 else -1e-20)
    assert point is None
    assert len(asked) > 5


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_values_out_of_range_are_too_far(value):
    def of(t):
        return (t - 1e-3) ** 2 if t < 0.1 else value

    point, _ = searched(of, lambda t: 2 * (t - 1e-3) if t < 0.1 else value)
    assert point.value < 1e-6


@pytest.mark.parametrize("lowest", [1e-3, 1.0, 50.0])
def test_a_parabola_gets_lower(lowest):
    point, _ = searched(lambda t: (t - lowest) ** 2, lambda t: 2 * (t - lowest))
    assert point.value < lowest**2


def test_a_line_without_an_end_is_left():
    point, asked = searched(lambda t: -t, lambda t: -1.0)
    assert point.w[0] > 100
    assert len(asked) <= 30


# products


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("offset", [0.0, 1e5])
@pytest.mark.parametrize("make", [np.array, np.asfortranarray, sp.csr_matrix])
def test_products_are_exact_up_to_a_constant(dtype, offset, make):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(50, 4)) + offset).astype(dtype)
    X[:, 2] = 0.1  # constant
    objective = make_objective(make(X), HingeLoss(ScoreGraph(np.arange(50))), 0.1)
    exact = X.astype(np.longdouble)
    w, u = rng.normal(size=4), rng.normal(size=50)
    u -= u.mean()
    f, truth = objective.scores(w), exact @ w
    rounding = 2.0**-52 * (4 + math.sqrt(50 + 4))
    allowed = rounding * (objective.largest_feature_values @ np.abs(w))
    assert np.abs((f - f[0]) - (truth - truth[0])).max() <= 2 * allowed
    allowed = rounding * objective.largest_feature_values * np.abs(u).sum()
    slope = (exact - exact[0]).T @ u
    assert (np.abs(objective.derivative_in_weights(u) - slope) <= 2 * allowed + 1e-30).all()
    assert objective.derivative_in_weights(u)[2] == 0


def test_float64_features_near_zero_are_not_copied():
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert make_objective(X, HingeLoss(ScoreGraph(np.arange(50))), 0.1).R is X


def test_columns_far_from_zero_lose_no_digits():
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(40, 3)), 3) + 2.0**40
    objective = make_objective(X, HingeLoss(ScoreGraph(np.arange(40))), 0.1)
    w = rng.normal(size=3)
    truth = (X - X[0]) @ w
    f = objective.scores(w)
    np.testing.assert_allclose(f - f[0], truth, atol=1e-14)
    assert (objective.largest_feature_values < 5).all()


def test_scores_do_not_drift_along_many_lines():
    objective = problem_with(HingeLoss)
    point, ages = objective.at(np.ones(2)), []
    for _ in range(3 * MAX_SCORE_UPDATES):
        point = line_search(objective, point, -1e-3 * point.gradient)
        ages.append(point.n_score_updates)
    assert max(ages) == MAX_SCORE_UPDATES
    assert ages.count(0) >= 2
    np.testing.assert_allclose(point.scores, objective.scores(point.w), atol=1e-14)
