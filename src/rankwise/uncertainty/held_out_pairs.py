"""Differences of held-out scores, from which probabilities and sets are calibrated."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.groups import indices_by_group
from rankwise.metrics.grades import MAX_DISTINCT_GRADES
from rankwise.model_selection.conformal import held_out_gaps, max_by_list
from rankwise.model_selection.folds import (
    EXACT_FOLDS,
    FEWEST_FOR_PAIRS,
    MOST_FOR_PAIRS,
    fold_of_item,
)
from rankwise.rankers.rank_rls import RankRLSTask
from rankwise.uncertainty.jackknife_errors import Difference, Jackknife, LeftOut, LeftOutExactly


def gaps_of_grades(left_out: LeftOut) -> tuple[Array, list[Array]]:
    """Conformity scores of `CalibratedRanker.best_set`.

    Only groups that were held out as a whole are used; there are none for explicit preferences.

    Returns
    -------
    grades : ndarray
        Relevance levels that can be requested.
    gaps : list of ndarray
        Differences to the best item of each group, and to the items of each grade.
    """
    graph = left_out.graph
    if left_out.units.members_are_edges or not graph.has_relevance:
        return np.empty(0), [np.empty(0)]  # no grades, and no gap to the best item of any group
    y = np.asarray(graph.y).reshape(graph.n_items)

    # Held-out scores; NaN for groups that no unit contains as a whole
    unit_of_item = fold_of_item(left_out.units.members, graph.n_items)  # −1: in no unit
    last_unit_of_group = max_by_list(unit_of_item, graph.groups)
    first_unit_of_group = -max_by_list(-unit_of_item, graph.groups)
    group_is_split = first_unit_of_group != last_unit_of_group
    is_in_split_group = group_is_split[graph.groups]
    is_in_no_unit = unit_of_item < 0
    scores = left_out.scores_without(np.arange(graph.n_items), unit_of_item)
    scores[is_in_split_group | is_in_no_unit] = np.nan

    # Gaps from the top of a list to its best item, and to an item of each grade or higher
    grades = np.unique(y)[1:]  # any item has the lowest grade
    if len(grades) > MAX_DISTINCT_GRADES:
        grades = np.empty(0)
    gaps_to_best = held_out_gaps(y, scores, graph.groups)
    gaps_to_grades = [held_out_gaps(y, scores, graph.groups, grade) for grade in grades.tolist()]
    return grades, [gaps_to_best, *gaps_to_grades]


class HeldOutDifferences(NamedTuple):
    """Held-out pairs of items, and the differences of their scores.

    Attributes
    ----------
    better, worse : ndarray of int, shape (n_pairs,)
        Rows of X.
    difference : Difference
        By models without both items, or without their comparison; with the standard error of a new
        pair, which excludes the changes by the units of the pair itself.
    """

    better: Indices
    worse: Indices
    difference: Difference


class _DrawnPairs(NamedTuple):
    """Rows of the better and the other item of each pair, and the number of the comparison."""

    better: Indices
    worse: Indices
    edge: Indices | None = None


def held_out_pairs(
    left_out: LeftOut, errors: Jackknife, n_pairs: int, rng: np.random.Generator
) -> HeldOutDifferences:
    """Draw at most `n_pairs` pairs with different relevance from those held out together.

    These are the pairs inside both a group and a unit. If the units are the items of one list, each
    pair is held out in turn, or ten folds of the items for long lists.
    """
    graph = left_out.graph
    units = left_out.units
    n_rows = graph.n_items
    if units.members_are_edges:
        n_rows = graph.n_pairs
    # Rows are items, or edges. A pair can be drawn if both rows are in the same fold
    unit_of_row = fold_of_item(units.members, n_rows)
    fold_of_row = unit_of_row
    task_of_one_list = _task_of_single_items(left_out)
    if task_of_one_list is not None:  # a unit of one item contains no pair
        fold_of_row = _folds_of_list(task_of_one_list, graph.n_items, rng)

    if graph.has_relevance:
        pairs = _draw_from_scores(graph, fold_of_row, n_pairs, rng)
    else:
        pairs = _draw_comparisons(left_out, fold_of_row, n_pairs, rng)
    if len(pairs.better) == 0:
        raise ValueError(
            "no pair of items with different scores is held out as a whole, so probabilities "
            f"cannot be fitted; pass other units= than {units.kind}, or "
            "pass more data."
        )

    # Differences of scores by models without the unit of each pair. If units are single items, by
    # models without the first and without the second item: these serve the standard error only
    differences_without_units = []
    for unit in _units_of_pairs(pairs, unit_of_row, has_single_items=task_of_one_list is not None):
        differences_without_units.append(_score_differences(left_out, pairs, unit))
    difference = differences_without_units[0]
    if task_of_one_list is not None:
        difference = _differences_within_list(
            task_of_one_list, pairs.better, pairs.worse, fold_of_row
        )
    error = _standard_error_of_new_pairs(left_out, errors, pairs, differences_without_units)
    return HeldOutDifferences(pairs.better, pairs.worse, Difference(difference, error))


def _units_of_pairs(
    pairs: _DrawnPairs, unit_of_row: Indices, *, has_single_items: bool
) -> list[Indices]:
    """Units that contain the pairs: one unit for each pair, or the units of both items."""
    if pairs.edge is not None:
        return [unit_of_row[pairs.edge]]
    if has_single_items:
        return [unit_of_row[pairs.better], unit_of_row[pairs.worse]]
    return [unit_of_row[pairs.better]]  # the second item is in the same unit


def _task_of_single_items(left_out: LeftOut) -> RankRLSTask | None:
    """The task of a RankRLS whose units are single items; None for other models and units."""
    if not isinstance(left_out, LeftOutExactly) or left_out.units.members_are_edges:
        return None
    largest_unit = max(len(rows) for rows in left_out.units.members)
    if largest_unit > 1:
        return None
    return left_out.task


def _draw_comparisons(
    left_out: LeftOut, fold_of_row: Indices, n_pairs: int, rng: np.random.Generator
) -> _DrawnPairs:
    """Draw from the explicit preferences that lie in one fold."""
    comparisons = left_out.graph.pairs()
    winner = comparisons.winner
    loser = comparisons.loser
    has_edge_folds = left_out.units.members_are_edges
    if has_edge_folds:
        is_held_out = fold_of_row >= 0
    else:
        is_held_out = (fold_of_row[winner] >= 0) & (fold_of_row[winner] == fold_of_row[loser])
    candidates = np.flatnonzero(is_held_out & (comparisons.magnitude > 0))
    edges = candidates[_draw_numbers(len(candidates), n_pairs, rng)]
    if has_edge_folds:
        return _DrawnPairs(winner[edges], loser[edges], edges)
    return _DrawnPairs(winner[edges], loser[edges])


def _draw_from_scores(
    graph: PreferenceGraph, fold_of_item: Indices, n_pairs: int, rng: np.random.Generator
) -> _DrawnPairs:
    """Draw pairs of items of one group and one fold with different relevance."""
    is_candidate = fold_of_item >= 0
    if graph.item_weights is not None:
        is_candidate &= graph.item_weights > 0
    items = np.flatnonzero(is_candidate)
    y = np.asarray(graph.y).reshape(graph.n_items)[items]
    # Pairs inside both a group and a fold
    n_folds = fold_of_item.max() + 1
    group_and_fold = graph.groups[items] * n_folds + fold_of_item[items]
    better, worse = draw_pairs(y, group_and_fold, n_pairs, rng)
    return _DrawnPairs(items[better], items[worse])


def _score_differences(left_out: LeftOut, pairs: _DrawnPairs, unit: Indices) -> Array:
    """Differences of the scores of pairs by the models without these units."""
    scores_of_better = left_out.scores_without(pairs.better, unit)
    scores_of_worse = left_out.scores_without(pairs.worse, unit)
    return scores_of_better - scores_of_worse


def _standard_error_of_new_pairs(
    left_out: LeftOut,
    errors: Jackknife,
    pairs: _DrawnPairs,
    differences_without_units: list[Array],
) -> Array:
    """Standard error of the differences of the pairs, as if they were not training data.

    The changes of a difference by the units of the pair itself are excluded from the jackknife sum.
    """
    # The error of a pair that was not in the training data leaves out the units of the pair itself
    n_units = len(left_out.units.members)
    n_own_units = len(differences_without_units)  # 1, or 2 if units are single items
    n_other_units = max(1, n_units - n_own_units)

    # Squared changes of the difference without each unit of the pair
    model_of_all_data = np.full(len(pairs.better), -1)
    difference = _score_differences(left_out, pairs, model_of_all_data)
    squares_of_own_units = np.zeros(len(pairs.better))
    for difference_without_unit in differences_without_units:
        squares_of_own_units += (difference_without_unit - difference) ** 2

    # The jackknife error of U units is √((U − 1) / U · sum of their squares): subtract the own
    # units from the sum, and use the factor of the other units
    jackknife_error = errors.predict_difference(
        left_out.X, pairs.better, pairs.worse, left_out.groups
    ).error
    squares_of_all_units = n_units / (n_units - 1) * jackknife_error**2
    squares_of_other_units = np.maximum(squares_of_all_units - squares_of_own_units, 0.0)
    variance = (n_other_units - 1) / n_other_units * squares_of_other_units
    return np.asarray(np.sqrt(variance))


def _folds_of_list(task: RankRLSTask, n_items: int, rng: np.random.Generator) -> Indices:
    """Fold of each item: one fold if each pair can be held out in turn, else ten."""
    if n_items < FEWEST_FOR_PAIRS:
        raise ValueError(
            f"one list of {n_items} items has no pair that can be held out: at least "
            f"{FEWEST_FOR_PAIRS} items are needed."
        )
    if task.has_pairs and n_items <= MOST_FOR_PAIRS:
        return np.zeros(n_items, dtype=np.intp)  # one fold: each pair is held out in turn
    n_folds = min(EXACT_FOLDS, n_items // 2)  # at least two items, a pair, in each
    return np.asarray(rng.permutation(n_items) % n_folds, np.intp)


def _differences_within_list(
    task: RankRLSTask, first: Indices, second: Indices, fold_of_item: Indices
) -> Array:
    """Differences of pairs of one list, each by a model without the fold of both items.

    With a single fold, by models without the two items (leave-pair-out).
    """
    candidates = task.candidates()  # only the alpha of the learner
    n_folds = fold_of_item.max() + 1
    if n_folds > 1:  # held-out scores of each fold
        # (n_items, n_outputs, n_candidates): one output and one candidate
        scores = task.held_out(indices_by_group(fold_of_item), candidates)[:, 0, 0]
        return np.asarray(scores[first] - scores[second])
    # Leave-pair-out: the differences of all pairs, in one block
    alpha = float(candidates.axes["alpha"][0])
    n_items = len(fold_of_item)
    (single_block,) = task.pairs().differences(alpha, n_entries=n_items**2)
    _, differences = single_block  # (n_items, n_items, 1)
    return np.asarray(differences[first, second, 0])


def _draw_numbers(n_numbers: int, n_draws: int, rng: np.random.Generator) -> Indices:
    """Some of the numbers 0, …, n_numbers − 1 at random; all of them if that is not more."""
    if n_numbers <= n_draws:  # all of them
        return np.arange(n_numbers)
    return rng.choice(n_numbers, n_draws, replace=False)


def draw_pairs(
    y: Array, codes: Indices, n_pairs: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Draw pairs of one group with different y, the better item first: all, or n_pairs at random.

    Sorted by group and y, the items below an item are the first ones of its group. Pairs are
    numbered by the cumulative sum of their counts, so a pair is found from its number by bisection.

    Parameters
    ----------
    y : ndarray of shape (n_items,)
        Relevance.
    codes : ndarray of int, shape (n_items,)
        Group of each item; any numbers.
    n_pairs : int
        Number of pairs to draw.
    rng : Generator
        Source of randomness.

    Returns
    -------
    better, worse : ndarray of int
        Positions of the items.
    """
    # Items sorted by group, lowest y first; below, an item is known by its position in this order
    items = np.lexsort((y, codes))
    sorted_y = y[items]
    sorted_codes = codes[items]
    positions = np.arange(len(items))

    # Items with lower y: from the start of the group up to the start of the run of equal y
    group_start = np.searchsorted(sorted_codes, sorted_codes)  # first position of each code
    is_run_start = np.ones(len(items), dtype=bool)
    is_run_start[1:] = (np.diff(sorted_y) != 0) | (np.diff(sorted_codes) != 0)
    run_start = np.maximum.accumulate(np.where(is_run_start, positions, 0))
    n_worse_items = run_start - group_start

    # Number all pairs by their better item, the pairs of one item in the order of the worse ones
    n_pairs_up_to_item = np.cumsum(n_worse_items)
    first_pair_of_item = n_pairs_up_to_item - n_worse_items
    n_all_pairs = int(n_worse_items.sum())
    pair_numbers = _draw_numbers(n_all_pairs, n_pairs, rng)
    better = np.searchsorted(n_pairs_up_to_item, pair_numbers, side="right")
    worse = group_start[better] + (pair_numbers - first_pair_of_item[better])
    return items[better], items[worse]
