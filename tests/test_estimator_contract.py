"""What scikit-learn asks of every estimator, with no expected failure."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from rankwise import (
    CoRankRLS,
    CoRankRLSCV,
    RankingPursuit,
    RankingPursuitCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
)

ESTIMATORS = [
    RankRLS(),
    RankRLS(cost="sign"),
    RankRLS(cost="relative", ties="exclude"),
    RankRLS(beta=0.5),
    RankRLS(kernel="rbf"),
    RankRLS(kernel="precomputed"),
    RankRLS(kernel="rbf", n_basis=1),
    RankRLS(solver="dual"),
    RankRLS(solver="iterative"),
    RankRLSCV(),
    RankRLSCV(kernel="rbf", gamma=[0.1, 1.0]),
    RankRLSCV(kernel="precomputed", cv=3),
    CoRankRLS(kernel="rbf"),
    CoRankRLS(views=1),
    CoRankRLS(views=[View(), View(kernel="rbf", n_basis=1)]),
    CoRankRLS(kernel="precomputed", n_basis=3),
    CoRankRLSCV(kernel="rbf"),
    CoRankRLSCV(nus=[1.0], views=1, cv=2),
    RankingPursuit(),
    RankingPursuit(5, beta=0.5, backfit="every", cost="sign"),
    RankingPursuit(5, kernel="linear", dictionary="features", backfit=None),
    RankingPursuit(5, kernel="precomputed"),
    RankingPursuit(5, dictionary=2, n_iter_no_change=2, validation_fraction=0.5),
    RankingPursuit(3, views=2),
    RankingPursuit(3, views=[View(), View(kernel="rbf"), View(kernel="polynomial")]),
    RankingPursuitCV(5),
    RankSVM(),
    RankSVM(loss="squared_hinge"),
    RankSVM(solver="bmrm", group_weight="groups"),
    RankSVM(kernel="rbf", warm_start=True),
    RankSVM(kernel="precomputed"),
    RankSVM(kernel="rbf", n_basis=1),
    RankSVMCV(cv=2),
    RankSVMCV(kernel="rbf", gamma=[0.1, 1.0], cv=2, loss="squared_hinge"),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
