"""How good an AutoRanker is on groups that neither its members nor its weights have seen."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.base import clone

from rankwise.arrays import Array
from rankwise.estimators.auto_members import Member, Problem, asked_members
from rankwise.estimators.auto_menu import Recipe
from rankwise.model_selection.folds import make_folds
from rankwise.model_selection.measures import Measure, mean_defined, score_groups, standard_error

__all__ = ["can_estimate", "held_out_once_more", "interval"]

CONFIDENCE = 0.95


def can_estimate(problem: Problem, n_folds: int) -> bool:
    """Whether there are enough groups, or items of one list, for so many folds."""
    graph = problem.graph
    n_units = graph.n_groups if graph.n_groups > 1 else graph.n_items // 4
    is_joined = graph.scores is None and graph.n_units < 2
    return n_folds >= 2 and n_units >= 2 * n_folds and not is_joined


def held_out_once_more(
    ranker: Any, problem: Problem, metric: Measure, n_folds: int, judged: list[Member]
) -> Array:
    """The metric in each group, by combinations that were made without its fold.

    Members, weights and what takes the place of a stack are chosen anew. Alphas are chosen among
    three near those of all data, and trees are as many, which takes less time.

    Parameters
    ----------
    ranker : AutoRanker
        Left as it is.
    problem : Problem
        Its data.
    metric : Measure
        How it is judged.
    n_folds : int
        Number of folds.
    judged : list of Member
        Its members on all data.
    """
    near = {member.name: member.n_trees or member.alpha for member in judged}
    asked = dict(asked_members(ranker.members, problem))
    members = [_as_given(name, asked[name]) for name in near]
    again = clone(ranker).set_params(members=members, verbose=0, time_limit=None)
    folds = make_folds(n_folds, problem.graph)
    every, scores = np.arange(problem.graph.n_items), np.empty(problem.graph.n_items)
    for rows in folds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the same have been given for all data
            again.fit_problem(problem.part(np.setdiff1d(every, rows)), metric, near=near)
        groups = None if problem.groups is None else problem.groups[rows]
        scores[rows] = again.predict_checked(problem.X[rows], groups)
    return score_groups(problem.graph, scores[:, None, None], folds, metric)[0][:, 0, 0]


def interval(by_unit: Array) -> dict[str, float]:
    """The mean over units, and Student's interval for it."""
    mean, error = float(mean_defined(by_unit)), float(standard_error(by_unit))
    n = int((~np.isnan(by_unit)).sum())
    reach = float(student.ppf((1 + CONFIDENCE) / 2, n - 1)) * error if n > 1 else float("nan")
    return {"score": mean, "low": mean - reach, "high": mean + reach}


def _as_given(name: str, what: Any) -> Any:
    return name if isinstance(what, Recipe) else (name, what)
