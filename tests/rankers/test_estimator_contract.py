"""What scikit-learn asks of every estimator.

Two things cannot hold everywhere. One check wants one number for each row if y has one entry for
each, but a ranker of labels gives the scores of all labels. Another wants a weight of n to equal n
copies of a row; where it does not, the reason is given here, and that it does elsewhere is tested
in `test_sample_weight.py`, too.
"""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

from rankwise import (
    AutoRanker,
    CalibratedRanker,
    CoRankRLS,
    CoRankRLSCV,
    GroupScaler,
    HingeFeatures,
    LabelRanker,
    LabelRankerCV,
    RankingPursuit,
    RankingPursuitCV,
    RankLogistic,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
    View,
)

ALPHAS = [0.1]  # one candidate takes every path that thirty take, and has no edge to warn of
ESTIMATORS = [  # one for each way through the code
    RankRLS(),  # primal
    RankRLS(cost="sign", beta=0.5, solver="dual"),
    RankRLS(cost="relative", ties="exclude", solver="iterative", tol=1e-12),
    RankRLS(kernel="precomputed"),
    RankRLS(kernel="rbf", n_basis=1),
    RankRLSCV(),
    CoRankRLS(views=[View(), View(kernel="rbf", n_basis=1)]),
    CoRankRLSCV(ALPHAS, nus=[1.0], kernel="rbf", cv=2),
    RankingPursuit(5),
    RankingPursuit(5, beta=0.5, backfit="every", kernel="linear", dictionary="features"),
    RankingPursuit(3, views=2),
    RankingPursuitCV(3),
    RankLogistic(),
    RankLogistic(ties="include", kernel="rbf", n_basis=1, warm_start=True),
    RankSVM(),
    RankSVM(loss="squared_hinge", kernel="rbf", warm_start=True),
    RankSVMCV(ALPHAS, cv=2),
    HingeFeatures(),
    AutoRanker(n_resamples=0),
    CalibratedRanker(RankRLS()),
    CalibratedRanker(RankSVM(), n_folds=2),
    LabelRanker(tol=1e-12),
    LabelRanker(kernel="precomputed"),
    LabelRankerCV(ALPHAS, cv=2, tol=1e-12),
    GroupScaler(with_standard=True),
    GroupScaler(with_log=True, with_mean=False),
]


def _where_copies_differ(estimator):
    """Why a row of weight n is not n copies of it; copies of a row are tied with each other."""
    if isinstance(estimator, CalibratedRanker):
        return _where_copies_differ(estimator.estimator)
    chosen = ("n_basis", "views", "dictionary")
    options = {name: getattr(estimator, name, None) for name in chosen}
    takes_rows = options["dictionary"] != "features" and any(
        value is not None and not isinstance(value, str) for value in options.values()
    )
    rule = (getattr(estimator, "ties", None), getattr(estimator, "cost", "magnitude"))
    has_ties = rule == ("include", "magnitude")
    if isinstance(estimator, RankingPursuitCV):
        return {}
    if isinstance(estimator, AutoRanker):
        reason = "folds of one list and basis items are made of rows, copies among them"
    elif takes_rows:
        reason = "functions or basis items are chosen among the rows, copies among them"
    elif has_ties and not isinstance(estimator, (RankingPursuit, RankRLSCV)):
        reason = "with ties included, pairs of copies count in W, which alpha is relative to"
    else:
        return {}
    name = "check_sample_weight_equivalence_on_"
    return {f"{name}dense_data": reason, f"{name}sparse_data": reason}


def expected_failures(estimator):
    if not isinstance(estimator, (LabelRanker, LabelRankerCV)) or estimator.kernel == "precomputed":
        return _where_copies_differ(estimator)
    why = "the scores of all labels are predicted, not one number for each row"
    return {"check_estimator_sparse_array": why, "check_estimator_sparse_matrix": why}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
