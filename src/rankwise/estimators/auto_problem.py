"""From what the user gave to the problem that the members of an AutoRanker share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import column_or_1d

from rankwise.estimators.auto_members import Problem
from rankwise.estimators.problem import ranking_losses
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.groups import encode_groups
from rankwise.targets import as_scores, split_target

__all__ = ["check_problem", "default_scoring"]

MOST_GRADES = 32  # 2 ** y is the gain of NDCG


def check_problem(X: Any, y: Any, groups: ArrayLike | None) -> Problem:
    """Check y and groups as `RankRLS.fit` does; several outputs are refused."""
    if isinstance(y, PreferenceGraph):
        ranking_losses(X.shape[0], y, groups, "magnitude", "include", "pairs", 0.0)
        if y.scores is not None and y.scores.ndim == 2:
            raise _several_outputs(y.scores.shape)
        has_groups = bool(getattr(y, "has_groups", y.scores is not None and y.n_groups > 1))
        return Problem(X, y, y.group_labels[y.groups] if has_groups else None, y)
    y, groups = split_target(y, groups)
    if np.ndim(y) == 2 and np.shape(y)[1] > 1:
        raise _several_outputs(np.shape(y))
    scores = as_scores(column_or_1d(y, warn=True) if np.ndim(y) == 2 else y)
    ranking_losses(X.shape[0], scores, groups, "magnitude", "include", "pairs", 0.0)
    labels = None
    if groups is not None:
        codes, names = encode_groups(groups, len(scores))
        labels = names[codes]
    return Problem(X, scores, labels, ScoreGraph(scores, labels))


def default_scoring(problem: Problem) -> str:
    """ndcg@10 for grades in groups, else disagreement."""
    y = problem.graph.scores
    if y is None or problem.groups is None:
        return "disagreement"
    is_graded = (y >= 0).all() and (y < MOST_GRADES).all() and (y % 1 == 0).all()
    return "ndcg@10" if is_graded else "disagreement"


def _several_outputs(shape: tuple[int, ...]) -> ValueError:
    return ValueError(
        f"y has shape {shape}; AutoRanker learns one output, so fit one for each column (RankRLSCV "
        "learns several at once)."
    )
