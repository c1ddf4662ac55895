"""Problems of model selection: held-out scores of every scheme, and what searches choose."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.baseline.draws import (
    RankingDraw,
    chance,
    draw_alphas,
    draw_basis,
    draw_edges,
    draw_kernel,
    draw_least_squares,
    draw_nuisance,
    draw_ranking,
    pick,
)
from tests.baseline.names import find, get
from tests.baseline.rankers import draw_views, log_alpha, record_model
from tests.baseline.record import Record


def draw_scoring(rng: np.random.Generator, data: RankingDraw) -> str:
    """Return the name of a metric that is defined for the target and its weights."""
    names = ["disagreement", "disagreement", "tau", "mse"]
    if np.nanmin(data.y) >= 0:
        names += ["ndcg", "ndcg@3"]
    if len(np.unique(data.y)) == 2 and data.sample_weight is None:
        names += ["auc", "map"]
    return str(pick(rng, names))


def folds_of_items(rng: np.random.Generator, n_items: int) -> list[tuple[Any, Any]]:
    """Return three folds of items, as a list of training and test rows."""
    fold = rng.permutation(np.arange(n_items) % 3)
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]


def folds_of_groups(groups: np.ndarray) -> list[tuple[Any, Any]]:
    """Return three folds of whole groups, as a list of training and test rows."""
    fold = np.unique(groups, return_inverse=True)[1] % 3
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]


def record_search(record: Record, search: Any, data: RankingDraw) -> None:
    """Store the chosen parameters, the results of the candidates and predictions."""
    record.describe(search)
    record.add("best_params", search.best_params_)
    record.add("best_score", search.best_score_)
    for key, value in search.cv_results_.items():
        is_array = isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
        if is_array:
            record.add(f"cv_results.{key}", value)
    record_model(record, search.best_estimator_)
    record.add("predict", search.predict(data.X_new))


def leave_group_out(rng: np.random.Generator, record: Record) -> None:
    """Scores of every group by the RankRLS model without it."""
    data = draw_ranking(rng, grouped=True)
    record.describe(data.summary)
    options = draw_least_squares(rng) | draw_kernel(rng)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    if chance(rng, 0.2):
        options["beta"] = 0.4
    learner = find("RankRLS")(log_alpha(rng), **options)
    record.describe(learner)
    held_out = find("leave_group_out_predict")(
        learner, data.X, **data.target, alphas=draw_alphas(rng)
    )
    record.add("scores", held_out)


def leave_items_out(rng: np.random.Generator, record: Record) -> None:
    """Scores of folds of items, or of folds of groups, by RankRLS models without them."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    options = draw_least_squares(rng) | draw_kernel(rng)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    cv: Any = folds_of_items(rng, data.X.shape[0])
    if data.groups is not None and chance(rng, 0.4):
        cv = folds_of_groups(data.groups)
    learner = find("RankRLS")(log_alpha(rng), **options)
    record.describe(learner)
    alphas = draw_alphas(rng)
    held_out = find("cross_val_predict_groups")(
        learner, data.X, **data.target, cv=cv, alphas=alphas
    )
    record.add("scores", held_out)


def leave_pair_out(rng: np.random.Generator, record: Record) -> None:
    """Differences of every pair of one list by the model without both."""
    data = draw_ranking(rng, n_items=(12, 40), grouped=False, weighted=False)
    record.describe(data.summary)
    learner = find("RankRLS")(log_alpha(rng), **draw_kernel(rng))
    record.describe(learner)
    alphas = draw_alphas(rng)
    result = find("leave_pair_out")(learner, data.X, data.y, alphas=alphas)
    record.add("disagreement", result.disagreement)
    record.add("n_pairs", result.n_pairs)
    one = find("leave_pair_out")(learner, data.X, data.y)
    record.add("differences", one.differences)


def leave_edges_out(rng: np.random.Generator, record: Record) -> None:
    """RankRLSCV on comparisons: groups of a graph, components, or folds of edges."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    grouped = chance(rng, 0.5)
    graph = draw_edges(rng, data.X.shape[0], grouped=grouped)
    options = draw_kernel(rng, 0.3)
    cv = "auto" if grouped or chance(rng, 0.5) else 4
    search = find("RankRLSCV")(draw_alphas(rng), cv=cv, store_predictions=grouped, **options)
    search.fit(data.X, graph)
    record_search(record, search, data)


def rank_rls_cv(rng: np.random.Generator, record: Record) -> None:
    """RankRLSCV: schemes, metrics, costs, kernels, bases, nuisance, default alphas."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    options = draw_least_squares(rng) | draw_kernel(rng, 0.4)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    if chance(rng, 0.2):
        options["beta"] = 0.5
    options["scoring"] = draw_scoring(rng, data)
    options["store_predictions"] = chance(rng, 0.5)
    if data.groups is None:
        is_plain = data.sample_weight is None and options["cost"] == "magnitude"
        scheme = pick(rng, ("auto", "folds"))
        if scheme == "folds" or not is_plain:
            options["cv"] = folds_of_items(rng, data.X.shape[0])
    elif chance(rng, 0.3):
        options["cv"] = folds_of_groups(data.groups)
    alphas = None if chance(rng, 0.3) else draw_alphas(rng)
    fit_options = {}
    if chance(rng, 0.15) and data.groups is not None and not options.get("kernel"):
        options.pop("beta", None)
        fit_options["nuisance"] = draw_nuisance(rng, data.X.shape[0])
    search = find("RankRLSCV")(alphas, **options).fit(data.X, **data.target, **fit_options)
    record_search(record, search, data)


def later_groups(rng: np.random.Generator, record: Record) -> None:
    """Searches that are evaluated on later groups."""
    data = draw_ranking(rng, n_items=(60, 90), grouped=True)
    record.describe(data.summary)
    data.groups = np.sort(np.arange(len(data.groups)) % 15)
    day_of_group = rng.permutation(15)
    time = day_of_group[data.groups]
    name = pick(rng, ("RankRLSCV", "RankRLSCV", "RankLogisticCV"))
    options = draw_least_squares(rng) if name == "RankRLSCV" else {"tol": 1e-8}
    search = find(name)(draw_alphas(rng), **options).fit(data.X, **data.target, time=time)
    record_search(record, search, data)


def margin_searches(rng: np.random.Generator, record: Record) -> None:
    """RankSVMCV and RankLogisticCV."""
    data = draw_ranking(rng, grouped=True)
    record.describe(data.summary)
    name = pick(rng, ("RankSVMCV", "RankLogisticCV"))
    options: dict[str, Any] = {"tol": 1e-7, "cv": 3, "scoring": draw_scoring(rng, data)}
    if name == "RankSVMCV":
        options |= {"loss": "squared_hinge"}
    options |= draw_kernel(rng, 0.2)
    if "kernel" in options:
        options |= draw_basis(rng, data.X.shape[0])
    search = find(name)([0.01, 0.1, 1.0], **options).fit(data.X, **data.target)
    record_search(record, search, data)


def view_searches(rng: np.random.Generator, record: Record) -> None:
    """CoRankRLSCV and RankingPursuitCV."""
    data = draw_ranking(rng, grouped=True, sparse=False)
    record.describe(data.summary)
    options: dict[str, Any] = draw_least_squares(rng) | {"scoring": draw_scoring(rng, data)}
    if chance(rng, 0.5):
        options["cv"] = 3
    if chance(rng, 0.5):
        options["views"] = draw_views(rng, data.X.shape[1])
        learner = find("CoRankRLSCV")([0.01, 0.1, 1.0], nus=[0.0, 0.5, 2.0], **options)
        data.y = data.y.astype(float)
        data.y[rng.random(len(data.y)) < 0.2] = np.nan
    else:
        learner = find("RankingPursuitCV")(5, kernel="rbf", gamma=0.3, **options)
    search = learner.fit(data.X, **data.target)
    record_search(record, search, data)


def cross_validate_candidates(rng: np.random.Generator, record: Record) -> None:
    """Several metrics of every candidate on held-out data."""
    data = draw_ranking(rng, grouped=True)
    record.describe(data.summary)
    learner = find("RankRLS")(**draw_least_squares(rng), **draw_kernel(rng, 0.4))
    record.describe(learner)
    scoring = ["mse", "tau", "disagreement"]
    candidates = {"alpha": draw_alphas(rng)}
    result = find("cross_validate_candidates")(
        learner, data.X, **data.target, scoring=scoring, candidates=candidates
    )
    for metric in scoring:
        record.add(f"by_group.{metric}", result.by_group[metric])
    record.add("predictions", result.predictions)
    record.add("scheme", str(get(result, "scheme")))


def permutation_test(rng: np.random.Generator, record: Record) -> None:
    """Permutation tests of RankRLS."""
    data = draw_ranking(rng, n_items=(20, 40), grouped=True, weighted=False)
    record.describe(data.summary)
    test = find("permutation_test")(
        find("RankRLS")(log_alpha(rng), **draw_kernel(rng, 0.3)),
        data.X,
        data.y,
        data.groups,
        n_permutations=30,
        scoring=pick(rng, ("disagreement", "tau")),
        random_state=int(rng.integers(1000)),
    )
    record.add("pvalue", test.pvalue)
    record.add("score", test.score)
    record.add("null_scores", test.null_scores)


AREAS = {
    "leave_group_out": (leave_group_out, 160),
    "leave_items_out": (leave_items_out, 160),
    "leave_pair_out": (leave_pair_out, 60),
    "leave_edges_out": (leave_edges_out, 60),
    "rank_rls_cv": (rank_rls_cv, 250),
    "later_groups": (later_groups, 50),
    "margin_searches": (margin_searches, 40),
    "view_searches": (view_searches, 50),
    "cross_validate_candidates": (cross_validate_candidates, 60),
    "permutation_test": (permutation_test, 25),
}
