"""From what the user gave to the problem that the members of an AutoRanker share."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from sklearn.utils import column_or_1d

from rankwise.estimators.auto_members import Problem
from rankwise.estimators.problem import ranking_loss
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.groups import encode_groups
from rankwise.targets import as_scores, as_weights, split_weighted, with_weights

MOST_GRADES = 32  # 2 ** y is the gain of NDCG


def check_problem(
    X: Any, y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None = None
) -> Problem:
    """Check y, groups and weights as `RankRLS.fit` does; several outputs are refused."""
    loss, shape = ranking_loss(
        X.shape[0], *with_weights(y, groups, sample_weight), "magnitude", "include", "pairs", 0.0
    )
    if len(shape) and shape[0] > 1:
        raise ValueError(
            f"y has {shape[0]} outputs; AutoRanker learns one output, so fit one for each column "
            "(RankRLSCV learns several at once)."
        )
    if isinstance(y, PreferenceGraph):
        graph = loss.graph
        has_groups = bool(getattr(y, "has_groups", y.scores is not None and y.n_groups > 1))
        return Problem(X, graph, y.group_labels[y.groups] if has_groups else None, graph)
    y, groups, weights = split_weighted(y, groups, sample_weight)
    scores = column_or_1d(as_scores(y), warn=True)
    weights = None if weights is None else as_weights(weights, len(scores))
    labels = None
    if groups is not None:
        codes, names = encode_groups(groups, len(scores))
        labels = names[codes]
    graph = ScoreGraph(scores, labels, sample_weight=weights)
    if not graph.divergence.any():
        raise ValueError(
            "there is nothing to rank: no two items of one group (of weight more than 0) have "
            "different scores; check y and groups."
        )
    return Problem(X, scores, labels, graph, weights)


def default_scoring(problem: Problem) -> str:
    """ndcg@10 for grades in groups, else disagreement."""
    y = problem.graph.scores
    if y is None or problem.groups is None:
        return "disagreement"
    is_graded = (y >= 0).all() and (y < MOST_GRADES).all() and (y % 1 == 0).all()
    return "ndcg@10" if is_graded else "disagreement"
