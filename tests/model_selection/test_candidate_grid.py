"""Default alphas for columns on any scale, and what is said of a choice at the end of a grid."""

from __future__ import annotations

import numpy as np
import pytest

from rankwise import CoRankRLSCV, RankRLS, RankRLSCV, RankSVMCV, View
from rankwise.datasets import make_ranking
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.grid_search import warn_at_edge


def raw_columns(seed=1, n_groups=40, size=20, p=136):
    """Columns on scales from 1e-3 to 1e8, of which some tell the order of the items."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_groups * size, p))
    w = np.where(rng.permutation(p) < 30, rng.normal(size=p), 0.0)
    y = Z @ w
    y = y / y.std() + 2 * rng.normal(size=len(y))
    scale = 10 ** rng.uniform(-3, 8, p)
    return scale * (Z + rng.uniform(0, 5, p)), y.round(), np.repeat(np.arange(n_groups), size), Z


@pytest.mark.filterwarnings("ignore:the best alpha .* is at the edge")
@pytest.mark.parametrize("seed", range(4))
def test_the_choice_for_136_raw_columns_is_near_the_best_of_a_wide_grid(seed):
    X, y, groups, _ = raw_columns(seed)
    model = RankRLSCV().fit(X, y, groups)
    trace = 2 * sum(column.var() for column in X.T)
    wide = RankRLSCV(trace * np.logspace(-15.6, 3, 60)).fit(X, y, groups)
    assert model.best_score_ < wide.best_score_ + 0.01  # at the limit of rounding BLAS decides
    again = RankRLS(model.alpha_).fit(X, y, groups)
    np.testing.assert_allclose(model.predict(X), again.predict(X), rtol=1e-6)


def test_default_alphas_are_two_a_decade_from_rounding_up():
    alphas = default_alphas(100.0)
    assert len(alphas) == 40
    np.testing.assert_allclose(np.diff(np.log10(alphas)), 0.5)
    assert alphas[-1] == pytest.approx(1e6)
    assert alphas[0] == pytest.approx(100 * np.finfo(float).eps, rel=0.5)
    np.testing.assert_array_equal(default_alphas(0.0), default_alphas(1.0))


def test_ranksvm_and_co_rank_rls_reach_small_columns():
    rng = np.random.default_rng(4)
    groups = np.repeat(np.arange(12), 8)
    X = rng.normal(size=(96, 4)) * [1e3, 1.0, 1.0, 1.0]
    y = X[:, 1] + X[:, 2] - X[:, 3]
    svm = RankSVMCV(cv=3).fit(X, y, groups)
    assert svm.best_score_ < 0.1
    views = [View([0, 1, 2]), View([1, 2, 3])]
    co = CoRankRLSCV(views=views, nus=[0.0]).fit(X, np.where(groups < 9, y, np.nan), groups)
    assert co.cv_results_["mean_score"].shape == (1, 40)
    assert co.best_score_ == co.cv_results_["mean_score"].min()


def test_a_choice_alone_at_the_edge_warns():
    grid = CandidateGrid({"alpha": np.array([1.0, 0.1, 10.0])})
    for at in (1, 2):
        with pytest.warns(UserWarning, match="the best alpha .* is at the edge of the grid"):
            warn_at_edge("alpha", grid, np.array([0.3, 0.2, 0.1]), at)
    warn_at_edge("alpha", grid, np.array([0.1, 0.2, 0.3]), 0)
    warn_at_edge("alpha", grid, np.array([0.3, 0.2, 0.2]), 2)  # another is as good
    warn_at_edge("alpha", CandidateGrid({"alpha": np.ones(1)}), np.array([0.3]), 0)
    X, y, groups = make_ranking(12, 8, 5, noise=1.0, random_state=1)[:3]
    model = RankRLSCV().fit(X, y, groups)
    with pytest.warns(UserWarning, match="is at the edge of the grid"):
        RankRLSCV([model.alpha_, model.alpha_ * 1e8]).fit(X, y, groups)
