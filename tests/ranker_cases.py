"""One ranker of every kind, for claims that hold for all of them; X has three columns or more."""

from __future__ import annotations

import pytest

from rankwise import (
    CoRankRLS,
    CoRankRLSCV,
    RankingPursuit,
    RankingPursuitCV,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
)

VIEWS = [View([0, 1]), View([1, 2])]
CLOSED = {
    "RankRLS": RankRLS(0.01),
    "RankRLS, sign": RankRLS(0.01, cost="sign", group_weight="groups"),
    "RankRLS, relative": RankRLS(0.01, cost="relative"),
    "RankRLS, rbf": RankRLS(0.01, kernel="rbf", beta=0.3),
    "RankRLSCV": RankRLSCV([0.01]),
    "CoRankRLS": CoRankRLS(0.01, views=VIEWS),
    "CoRankRLSCV": CoRankRLSCV([0.01], nus=[1.0], views=VIEWS, cv=None),
    "RankingPursuit": RankingPursuit(3, kernel="linear", dictionary="features"),
    "RankingPursuitCV": RankingPursuitCV(3, kernel="linear", dictionary="features", cv=None),
}
CERTIFIED = {
    "RankSVM": RankSVM(0.1, tol=1e-9),
    "RankSVM, squared hinge": RankSVM(0.1, loss="squared_hinge", tol=1e-9),
    "RankSVMCV": RankSVMCV([0.1], loss="squared_hinge", tol=1e-9, cv=None),
    "RankLogistic": RankLogistic(0.1, tol=1e-9),
}
RANKERS = CLOSED | CERTIFIED
every_ranker = pytest.mark.parametrize(
    "ranker, atol",
    [(ranker, 1e-8 if name in CLOSED else 1e-3) for name, ranker in RANKERS.items()],
    ids=RANKERS,
)


def kernel_rankers(views, **kernel):
    """One of every kind with this kernel, by its name."""
    rankers = [
        RankRLS(**kernel),
        RankRLS(**kernel, n_basis=10, random_state=0),
        RankRLSCV(**kernel),
        RankSVM(**kernel),
        RankLogistic(**kernel),
        RankingPursuit(n_basis=8, **kernel),
        RankingPursuit(n_basis=8, views=views),
        CoRankRLS(views=views),
    ]
    names = [f"{type(ranker).__name__}{k}" for k, ranker in enumerate(rankers)]
    return pytest.mark.parametrize("model", rankers, ids=names)
