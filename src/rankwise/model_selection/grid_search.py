"""Search for the best parameters on held-out data."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, CrossValidation, MatrixLike, ParameterValue
from rankwise.errors import warn_user
from rankwise.metrics import Metric
from rankwise.metrics.by_group import nanmean_over_units
from rankwise.metrics.registry import MetricName, get_metric
from rankwise.model_selection.candidate_evaluation import (
    CrossValidationResult,
    evaluate_task,
    forward_validation,
)
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.folds import read_splits
from rankwise.model_selection.protocol import HoldOutTask

ParameterValues: TypeAlias = "float | str | Sequence[float] | Sequence[str] | None"
"""A value of a parameter, or a list of values that are searched."""


class SearchResult(NamedTuple):
    """Result of `grid_search`.

    Attributes
    ----------
    best_estimator : estimator
        Model of the best parameters, trained on all data.
    best_candidate : dict
        Best values of the parameters that a learner evaluates together, such as alpha.
    best_params : dict
        `best_candidate` and the best values of the parameters given as lists.
    best_score : float
        Score of the best parameters.
    cv_results : dict
        Table of all results, as in `RankRLSCV`.
    """

    best_estimator: BaseEstimator
    best_candidate: Mapping[str, ParameterValue]
    best_params: dict[str, object]
    best_score: float
    cv_results: dict[str, object]


def grid_search(
    learner: BaseEstimator,
    data: Sequence[MatrixLike],
    *,
    candidates: Mapping[str, ArrayLike | None],
    parameter_lists: Mapping[str, ParameterValues] | None = None,
    cv: CrossValidation = "auto",
    scoring: MetricName = "disagreement",
    time: ArrayLike | None = None,
    store_predictions: bool = False,
    alpha_per_output: bool = False,
) -> SearchResult:
    """Select the parameters of a learner on held-out data, and train it on all data.

    Parameters
    ----------
    learner : estimator
        Any learner with a method ``hold_out_task``; it is not modified.
    data : sequence
        Arguments of its ``hold_out_task``: the items and the training target.
    candidates : mapping from str to array-like or None
        Values of the parameters that one task evaluates together, such as alpha; None selects
        default values. The first one is the axis of the curves in ``cv_results``.
    parameter_lists : mapping from str to value or list, default=None
        Further parameters, such as kernel parameters. A list of values is searched; each
        combination is a task.
    cv, scoring
        As in `RankRLSCV`.
    time : array-like of shape (n_items,), default=None
        Time of each item: later groups are held out instead of `cv`.
    store_predictions : bool, default=False
        Whether to store the held-out scores in ``cv_results["predictions"]``.
    alpha_per_output : bool, default=False
        Whether each output has its own alpha, which must be the only candidate parameter.

    Returns
    -------
    SearchResult
        The best model and the table of all results.
    """
    has_default_cv = cv is None or (isinstance(cv, str) and cv == "auto")
    if time is not None and not has_default_cv:
        raise ValueError(f"cv={cv!r} and time both define what is held out; pass one of them.")
    metric = get_metric(scoring)
    if parameter_lists is None:
        parameter_lists = {}
    settings = _combinations(parameter_lists)

    def make_task(setting: dict[str, object]) -> HoldOutTask:
        task: HoldOutTask = copy.copy(learner).set_params(**setting).hold_out_task(*data)
        return task

    cv = read_splits(cv)
    results: list[CrossValidationResult] = []
    for setting in settings:  # one task at a time, since a task may store a kernel matrix
        task = make_task(setting)
        if time is None:
            results.append(evaluate_task(task, candidates, cv, [metric]))
        else:
            results.append(_evaluate_on_later_groups(task, data, time, candidates, metric))
    _check_same_scheme(results, settings)

    choices = [_choose(result, metric, alpha_per_output) for result in results]
    best = _index_of_best([choice.score for choice in choices], metric)
    best_choice = choices[best]
    for index in best_choice.indices:
        _warn_at_edges(results[best], index, metric, candidates)
    if best < len(settings) - 1:  # only the last task is in memory
        task = make_task(settings[best])
    searched_params = {
        name: settings[best][name] for name, value in parameter_lists.items() if _is_list(value)
    }
    cv_results = _results_table(results, settings, metric, store_predictions=store_predictions)
    cv_results["n_undefined"] = _n_undefined_groups(results[best], metric)
    return SearchResult(
        best_estimator=task.train(**best_choice.candidate),
        best_candidate=best_choice.candidate,
        best_params={**best_choice.candidate, **searched_params},
        best_score=best_choice.score,
        cv_results=cv_results,
    )


def _evaluate_on_later_groups(
    task: HoldOutTask,
    data: Sequence[MatrixLike],
    time: ArrayLike,
    candidates: Mapping[str, ArrayLike | None],
    metric: Metric,
) -> CrossValidationResult:
    """Evaluate each candidate of a task by models of earlier groups."""
    X, target = data
    grid = task.candidates(**candidates)
    return forward_validation(task.learner, X, target, time, grid, [metric])


def _n_undefined_groups(result: CrossValidationResult, metric: Metric) -> int:
    """Number of groups in which the metric is undefined for some candidate."""
    is_undefined = np.isnan(result.by_group[metric.name])
    return int(is_undefined.any(axis=(1, 2)).sum())


def _check_same_scheme(
    results: list[CrossValidationResult], settings: list[dict[str, object]]
) -> None:
    """Raise an error if the settings were evaluated on different held-out data."""
    for result, setting in zip(results, settings, strict=True):
        if result.scheme != results[0].scheme:
            raise ValueError(
                f"cv='auto' is {results[0].scheme} for {settings[0]} and {result.scheme} for "
                f"{setting}, so the scores cannot be compared; pass a number of folds, such as "
                "cv=10."
            )


class _Choice(NamedTuple):
    """Best candidate of a setting, its score, and its indices (one, or one for each output)."""

    candidate: Mapping[str, ParameterValue]
    score: float
    indices: list[int]


def _choose(result: CrossValidationResult, metric: Metric, alpha_per_output: bool) -> _Choice:
    """The best candidate, or the best alpha of each output as an array."""
    means = nanmean_over_units(result.by_group[metric.name])  # (n_candidates, n_outputs)
    n_outputs = means.shape[1]
    if not alpha_per_output or n_outputs == 1:  # one candidate for all outputs
        index = result.best(metric)
        return _Choice(result.candidates[index], float(result.overall(metric)[index]), [index])
    indices = result.best_per_output(metric)
    candidate = {"alpha": result.candidates.axes["alpha"][indices]}
    score = float(means[indices, np.arange(n_outputs)].mean())
    return _Choice(candidate, score, np.unique(indices).tolist())


def _index_of_best(best_scores: list[float], metric: Metric) -> int:
    """Number of the setting with the best score; the first of equal ones."""
    if metric.greater_is_better:
        return int(np.argmax(best_scores))
    return int(np.argmin(best_scores))


def _is_list(value: ParameterValues) -> bool:
    """Whether a parameter is a list of values to be searched."""
    return value is not None and np.ndim(value) > 0


def _combinations(parameter_lists: Mapping[str, ParameterValues]) -> list[dict[str, object]]:
    """Every combination of the values of parameters, each a value or a list of values."""
    value_lists: list[list[float | str | None]] = []
    for name, value in parameter_lists.items():
        values: list[float | str | None] = np.ravel(np.asarray(value, dtype=object)).tolist()
        if not values:
            raise ValueError(f"{name} is an empty list; pass at least one value.")
        value_lists.append(values)
    return [
        dict(zip(parameter_lists, combination, strict=True))
        for combination in itertools.product(*value_lists)
    ]


def _results_table(
    results: list[CrossValidationResult],
    settings: list[dict[str, object]],
    metric: Metric,
    *,
    store_predictions: bool,
) -> dict[str, object]:
    """Table of a search: a row for each setting and each value of the further parameters.

    The columns are the values of the first parameter, such as alpha.
    """
    # The values of the first parameter of the grid are the columns, the others are the rows
    column_parameter = next(iter(results[0].candidates.axes))
    rows = [
        row
        for result, setting in zip(results, settings, strict=True)
        for row in _table_rows(result, setting, metric)
    ]
    table: dict[str, object] = {
        "params": [row.params for row in rows],
        "mean_score": np.stack([row.mean_score for row in rows]),
        "group_score": [row.group_score for row in rows],
        "groups": results[0].groups,
        "cv": results[0].scheme,
    }
    if column_parameter == "alpha":
        table["alphas"] = [row.column_values for row in rows]  # default alphas depend on the kernel
    else:
        table[column_parameter] = rows[0].column_values
    standard_errors = [row.standard_error for row in rows if row.standard_error is not None]
    if standard_errors:
        table["standard_error"] = np.stack(standard_errors)
    if store_predictions:
        table["predictions"] = [row.predictions for row in rows]
    return table


class _TableRow(NamedTuple):
    """Row of the table of a search.

    Attributes
    ----------
    params : dict
        The setting, and the values of the further parameters.
    column_values : ndarray of shape (n_values,)
        Values of the first parameter.
    mean_score : ndarray of shape (n_values,) or (n_values, n_outputs)
        Means over the groups.
    group_score : ndarray of shape (n_groups, n_values) or (n_groups, n_values, n_outputs)
        The metric in each group.
    standard_error : ndarray of shape (n_values,) or None
        Of the means, if comparisons were held out.
    predictions : ndarray or None
        Held-out scores, if there are any.
    """

    params: dict[str, object]
    column_values: Array
    mean_score: Array
    group_score: Array
    standard_error: Array | None
    predictions: Array | None


def _table_rows(
    result: CrossValidationResult, setting: dict[str, object], metric: Metric
) -> Iterator[_TableRow]:
    """One row for each combination of the further parameters of a setting."""
    # A row for each combination of the parameters, without the first one of the grid
    column_parameter, column_values = next(iter(result.candidates.axes.items()))
    by_group = result.by_group[metric.name]
    outputs: int | slice = slice(None)
    if by_group.shape[2] == 1:  # one output has no axis
        outputs = 0
    means = nanmean_over_units(by_group)
    n_values = len(column_values)
    for start in range(0, len(result.candidates), n_values):
        candidates = slice(start, start + n_values)  # the first parameter changes fastest
        further_params = result.candidates[start]
        del further_params[column_parameter]
        standard_error = None
        if result.standard_error is not None:
            standard_error = result.standard_error[candidates]
        predictions = None
        if result.predictions is not None:
            predictions = result.predictions[:, outputs, candidates]
        yield _TableRow(
            params={**setting, **further_params},
            column_values=column_values,
            mean_score=means[candidates, outputs],
            group_score=by_group[:, candidates, outputs],
            standard_error=standard_error,
            predictions=predictions,
        )


def _warn_at_edges(
    result: CrossValidationResult,
    best: int,
    metric: Metric,
    requested: Mapping[str, ArrayLike | None],
) -> None:
    """Warn about chosen values at the end of their grid, if a longer grid can be passed."""
    scores = result.overall(metric)
    for name, value in result.candidates[best].items():
        can_extend = name == "alpha" or requested[name] is not None
        if can_extend and value > 0:  # there is no nu below 0
            warn_at_edge(name, result.candidates, scores, best)


def warn_at_edge(name: str, candidates: CandidateGrid, scores: Array, best: int) -> None:
    """Warn if the best value of a parameter is the end of its grid and no other scores the same."""
    grid = candidates.axes[name]
    value = candidates[best][name]
    if value not in (grid.min(), grid.max()):
        return
    # Candidates that differ from the best one in this parameter alone
    line = candidates.line_through(best, name)
    other_scores = scores[line[line != best]]
    # No warning if another candidate is equally good: a larger grid would not help
    if len(other_scores) and (other_scores != scores[best]).all():
        warn_user(
            f"the best {name} {value:g} is at the edge of the grid from {grid.min():g} to "
            f"{grid.max():g}; extend the grid, or scale the features."
        )
