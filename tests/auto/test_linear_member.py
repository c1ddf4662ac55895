"""Linear members of AutoRanker, against RankRLS."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import RankRLS
from rankwise.auto.linear_member import LinearMember
from rankwise.datasets import make_ranking
from rankwise.graphs import ScoreGraph
from rankwise.groups import indices_by_group
from rankwise.losses import SquaredLoss


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_ranking(n_queries=8, n_documents=7, n_features=5, random_state=0)[:3]
    return X, y, groups


@pytest.mark.parametrize("solver", ["auto", "primal", "iterative"])
@pytest.mark.parametrize("cost", ["magnitude", "sign"])
def test_scores_and_models_are_those_of_rank_rls(data, solver, cost):
    X, y, groups = data
    R = sp.csr_array(X) if solver == "iterative" else X
    loss = SquaredLoss(ScoreGraph(y, groups, cost=cost))
    folds = indices_by_group(loss.graph.groups)
    member = LinearMember(RankRLS(cost=cost, solver=solver, tol=1e-12), R, loss)
    alphas = member.default_alphas()[[20, 30]]
    held_out = member.held_out_scores(folds, alphas)
    for k, alpha in enumerate(alphas):
        ranker = RankRLS(alpha, cost=cost)
        for fold in folds:
            others = np.setdiff1d(np.arange(len(y)), fold)
            ranker.fit(X[others], y[others], groups[others])
            np.testing.assert_allclose(held_out[fold, k], ranker.predict(X[fold]), atol=1e-7)
        fitted = member.fit(float(alpha))
        np.testing.assert_allclose(fitted.coef_, ranker.fit(X, y, groups).coef_, atol=1e-7)
        np.testing.assert_allclose(fitted.predict(X), ranker.predict(X), atol=1e-7)
        assert fitted.n_pairs_ == ranker.n_pairs_
