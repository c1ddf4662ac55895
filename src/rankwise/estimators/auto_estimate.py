"""How good an AutoRanker is on groups that neither its members nor its weights have seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from rankwise.arrays import Array
from rankwise.estimators.auto_combine import combine_members
from rankwise.estimators.auto_hold_out import HeldOutItems, Units, choose
from rankwise.estimators.auto_members import Member, Problem
from rankwise.features import scale_in_groups
from rankwise.graphs import PreferenceGraph
from rankwise.model_selection.measures import mean_defined, score_groups, standard_error
from rankwise.model_selection.nested_hold_out import NestedFolds, make_nested_folds

CONFIDENCE = 0.95
N_INNER = 3


def estimate_folds(graph: PreferenceGraph, n_folds: int) -> NestedFolds | None:
    """Folds in folds, if there are enough groups, or items of one list, for so many folds."""
    n_units = graph.n_groups if graph.n_groups > 1 else graph.n_items // 4
    if n_folds < 2 or n_units < 2 * n_folds:
        return None
    return make_nested_folds(graph, n_folds, min(N_INNER, n_units // n_folds))


def held_out_once_more(
    problem: Problem, units: Units, nested: NestedFolds, judged: list[Member], how: str
) -> Array:
    """The metric in each group, by combinations that were made without its fold.

    Alphas, weights and what takes the place of a stack are chosen anew, on folds of the rest.
    Alphas are among three near those of all data, and trees are as many. Features are those of all
    items, without scores: means, knots and basis items.

    Parameters
    ----------
    problem : Problem
        The data.
    units : HeldOutItems or HeldOutEdges
        What was held out of all data, and how it was judged.
    nested : NestedFolds
        What is held out here.
    judged : list of Member
        The members on all data, with their scores by models without the nested folds.
    how : {"stack", "mean", "best"}
        How they are combined.
    """
    graph, models = problem.graph, nested.models()
    is_compared = isinstance(units, HeldOutItems) and units.is_compared
    scores, folds = np.empty(graph.n_items), []
    for k in range(nested.n_folds):
        first = k * (nested.n_inner + 1)
        test = nested.rows(models[first][1])
        inner = [nested.rows(new) for _, new in models[first + 1 : first + 1 + nested.n_inner]]
        rest = np.sort(np.concatenate(inner))
        places = [np.searchsorted(rest, rows) for rows in inner]
        level = HeldOutItems(graph.subset(rest), units.metric, places, is_compared)
        chosen, new = [], []
        for member in judged:
            assert member.again is not None
            candidates, parts = member.again
            held = np.empty((len(rest), len(candidates)))
            for at, found in zip(places, parts[first + 1 :], strict=False):
                held[at] = found
            choice = choose(level, candidates, held, level.judge(held))
            chosen.append(replace(member, held=choice.held, by_unit=choice.by_unit))
            new.append(parts[first][:, choice.at])
        weights = combine_members(chosen, level, how).weights
        codes = graph.groups[test] if is_compared else np.zeros(len(test), dtype=np.intp)
        codes = np.unique(codes, return_inverse=True)[1]
        scores[test] = scale_in_groups(np.stack(new, axis=1), codes) @ weights
        folds.append(test)
    return score_groups(graph, scores[:, None, None], folds, units.metric)[0][:, 0, 0]


def interval(by_unit: Array) -> dict[str, float]:
    """The mean over units, and Student's interval for it."""
    mean, error = float(mean_defined(by_unit)), float(standard_error(by_unit))
    n = int((~np.isnan(by_unit)).sum())
    reach = float(student.ppf((1 + CONFIDENCE) / 2, n - 1)) * error if n > 1 else float("nan")
    return {"score": mean, "low": mean - reach, "high": mean + reach}
