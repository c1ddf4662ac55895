"""Problems of uncertainty: jackknife, calibrated probabilities and intervals, conformal sets."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.baseline.draws import (
    chance,
    draw_edges,
    draw_kernel,
    draw_least_squares,
    draw_ranking,
    pick,
    row_pairs,
)
from tests.baseline.names import call, find, get
from tests.baseline.rankers import log_alpha
from tests.baseline.record import Record


def jackknife(rng: np.random.Generator, record: Record) -> None:
    """Standard errors without refits: groups, items, or comparisons left out."""
    data = draw_ranking(rng)
    record.describe(data.summary)
    learner: Any = find("RankRLS")(log_alpha(rng), **draw_least_squares(rng), **draw_kernel(rng))
    target = data.y
    groups = data.groups
    kind = pick(rng, ("scores", "scores", "edges", "refits"))
    if kind == "edges":
        learner = find("RankRLS")(log_alpha(rng), **draw_kernel(rng))
        target = draw_edges(rng, data.X.shape[0])
        groups = None
    if kind == "refits":
        learner = find("RankLogistic")(0.1, tol=1e-9)
    record.describe(learner, target if kind == "edges" else "")
    result = find("jackknife")(learner, data.X, target, groups, n_folds=4)
    record.add("n_units", result.n_units)
    record.add("degrees_of_freedom", get(result, "degrees_of_freedom"))
    if get(result, "covariance_root") is not None:
        record.add("coefficient_errors", result.coefficient_errors)
    record.add("predict", result.predict(data.X_new))
    record.add("difference", result.predict_difference(data.X_new, *row_pairs(rng, 12)))


def calibrated_ranker(rng: np.random.Generator, record: Record) -> None:
    """CalibratedRanker: probabilities, errors, rank intervals and best sets."""
    data = draw_ranking(rng, n_items=(60, 90), grouped=True, weighted=False, sparse=False)
    record.describe(data.summary)
    data.groups = np.sort(np.arange(len(data.groups)) % 15)
    data.y = data.X @ np.ones(data.X.shape[1]) + rng.normal(size=len(data.groups))
    if chance(rng, 0.5):
        data.y = np.round(data.y)
    learner = find("RankRLS")(log_alpha(rng), **draw_kernel(rng, 0.4))
    if chance(rng, 0.2):
        learner = find("RankRLSCV")([0.1, 1.0])
    record.describe(learner)
    model = find("CalibratedRanker")(learner, random_state=0).fit(data.X, data.y, data.groups)
    new = (data.X_new, data.groups_new)
    i = np.array([0, 4, 8, 9])
    j = np.array([1, 6, 11, 10])
    record.add("predict", model.predict(*new))
    record.add("predict_above", model.predict_above(data.X_new, i, j, data.groups_new))
    record.add("predict_difference", model.predict_difference(data.X_new, i, j, data.groups_new))
    record.add("predict_error", model.predict_error(*new))
    record.add("rank_interval", call(model.rank_interval, *new, confidence=0.9))
    record.add("best_set", call(model.best_set, *new, confidence=0.8))
    record.add("reliability", model.reliability())
    if chance(rng, 0.2):
        found = find("next_pairs")(model, data.X_new, k=3, random_state=0)
        record_suggestions(record, found)


def record_suggestions(record: Record, found: Any) -> None:
    """Store the suggested pairs of items."""
    record.add("next.is_settled", bool(found.settled))
    record.add("next.n_open", found.n_open)
    for position, pair in enumerate(found):
        record.add(f"next.{position}.items", [str(pair.first), str(pair.second)])
        record.add(f"next.{position}.values", [pair.probability, pair.error])


def next_pairs(rng: np.random.Generator, record: Record) -> None:
    """Suggested comparisons of a graph."""
    graph = draw_edges(rng, int(rng.integers(5, 15)), cost="magnitude", grouped=False)
    goal = pick(rng, ("order", "top"))
    record.describe(graph, goal)
    record_suggestions(
        record,
        call(find("next_pairs"), graph, k=4, goal=goal, top=3, confidence=0.9, random_state=0),
    )


AREAS = {
    "jackknife": (jackknife, 100),
    "calibrated_ranker": (calibrated_ranker, 50),
    "next_pairs": (next_pairs, 40),
}
