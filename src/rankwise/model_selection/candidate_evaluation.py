"""Evaluation of candidate parameters on held-out data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, CrossValidation, Indices, Labels, MatrixLike
from rankwise.frames import take_rows
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.graphs.supervision import (
    Preferences,
    Relevance,
    TargetLike,
    TrainingTarget,
    read_y,
)
from rankwise.groups import Groups
from rankwise.metrics import Metric
from rankwise.metrics.by_group import (
    check_defined,
    from_disagreement,
    is_pooled,
    metric_by_group,
    nanmean_over_units,
    pooled_metric,
)
from rankwise.metrics.registry import MetricName, get_metrics
from rankwise.metrics.shared_items import ComparedItems, errors_of_means
from rankwise.model_selection.candidate_grid import CandidateGrid
from rankwise.model_selection.folds import (
    EDGES,
    LATER,
    PAIR,
    PAIRWISE,
    CrossValidationPlan,
    Folds,
    fold_of_item,
    resolve_cv,
)
from rankwise.model_selection.protocol import CandidateTask, HoldOutTask, hold_out_task
from rankwise.model_selection.time_blocks import time_series_blocks
from rankwise.runtime.progress import track
from rankwise.runtime.threads import single_threaded


def evaluate_held_out_scores(
    graph: PreferenceGraph, held_out: Array, folds: Folds, metric: Metric
) -> tuple[Array, Labels]:
    """Evaluate a metric in each group, or in each part of a group that lies in one fold.

    A pooled metric has one value for the held-out scores of all folds, as [RankRLS09] section 4.1
    describes (and advises against, since the folds have different models).

    Parameters
    ----------
    graph : PreferenceGraph
        True preferences.
    held_out : ndarray of shape (n_items, n_outputs, n_candidates)
        Held-out scores.
    folds : list of ndarray of int
        Items of each fold.
    metric : Metric
        The metric.

    Returns
    -------
    values : ndarray of shape (n_groups, n_candidates, n_outputs)
        Values of the metric; nan where it is undefined.
    labels : ndarray of shape (n_groups,)
        Labels of the groups.
    """
    fold_of_items = fold_of_item(folds, graph.n_items)
    if not graph.has_relevance:  # explicit preferences
        error = graph.disagreement(held_out[:, 0], fold_of_items)
        # (n_groups, n_candidates, 1), since preferences have one output
        return from_disagreement(metric, error)[:, :, None], graph.group_labels
    if not np.isfinite(held_out).all():
        raise ValueError("held-out scores overflow; scale the features, or use larger alphas.")
    y = graph.y.reshape(graph.n_items, -1)
    if is_pooled(metric):  # one value for all groups and folds
        groups = Groups(graph.groups, graph.group_labels)
        return pooled_metric(metric, y, groups, graph.item_weights, held_out), ALL_ITEMS

    # Scores of different folds come from different models, so a group is evaluated by fold. Part:
    # the items of a group in one fold
    n_folds = len(folds)
    key_of_item = graph.groups * n_folds + fold_of_items
    part_keys, part_of_item = np.unique(key_of_item, return_inverse=True)
    parts_of_groups = Groups(part_of_item, part_keys)
    values = metric_by_group(metric, y, parts_of_groups, graph.item_weights, held_out)
    group_of_part = part_keys // n_folds
    return values, graph.group_labels[group_of_part]


ALL_ITEMS: Labels = np.array(["all items"])  # label of the value of a pooled metric


@dataclass(frozen=True, eq=False)
class CrossValidationResult:
    """Metrics of every candidate in every held-out group.

    Attributes
    ----------
    candidates : CandidateGrid
        The evaluated candidates.
    by_group : dict from metric name to ndarray of shape (n_groups, n_candidates, n_outputs)
        Values in each group, or in each part of a group that lies in one fold; nan where a metric
        is undefined. One row for leave-pair-out and for a metric of all items, such as
        "pooled_auc".
    groups : ndarray
        Labels of these rows: groups, or folds if edges are held out.
    scheme : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items", "folds of edges"
        or "later groups".
    n_folds : int
        Number of folds; 0 for leave-pair-out.
    refits : bool
        Whether every fold was refitted.
    predictions : ndarray of shape (n_rows, n_outputs, n_candidates) or None
        Held-out scores of the rows of X, nan where y is; None if pairs or edges were held out.
    standard_error : ndarray of shape (n_candidates,) or None
        If edges were held out: standard errors of the means, which allow for edges that share
        items.
    """

    candidates: CandidateGrid
    by_group: dict[str, Array]
    groups: Labels
    scheme: str
    n_folds: int
    refits: bool
    predictions: Array | None = None
    standard_error: Array | None = None

    def overall(self, metric: Metric) -> Array:
        """Mean over outputs and over the groups where the metric is defined.

        Parameters
        ----------
        metric : Metric
            The metric.

        Returns
        -------
        ndarray of shape (n_candidates,)
            Means.
        """
        return np.asarray(nanmean_over_units(self.by_group[metric.name]).mean(axis=1))

    def best(self, metric: Metric) -> int:
        """Index of the best candidate; among equal ones that of the simplest model.

        Parameters
        ----------
        metric : Metric
            The metric that selects.

        Returns
        -------
        int
            Position in `candidates`.
        """
        gain = self.overall(metric)  # one for each candidate
        if not metric.greater_is_better:
            gain = -gain
        check_defined(metric, gain)
        return self.candidates.best(gain)

    def best_per_output(self, metric: Metric) -> Indices:
        """Index of the best candidate of each output, by the rule of `best`.

        Parameters
        ----------
        metric : Metric
            The metric that selects.

        Returns
        -------
        ndarray of int, shape (n_outputs,)
            Positions in `candidates`.
        """
        gain = nanmean_over_units(self.by_group[metric.name])  # (n_candidates, n_outputs)
        if not metric.greater_is_better:
            gain = -gain
        check_defined(metric, gain)
        return np.array([self.candidates.best(column) for column in gain.T])

    def describe(self) -> str:
        """Scheme in words, such as "exact leave-group-out".

        Returns
        -------
        str
            The scheme.
        """
        scheme = self.scheme
        if scheme.startswith("folds"):  # such as "10 folds of groups"
            scheme = f"{self.n_folds} {scheme}"
        if self.refits:
            return f"{scheme}, refitted for each"
        return f"exact {scheme}"

    def line(self, metric: Metric) -> tuple[CrossValidationResult, dict[str, float]]:
        """Candidates that differ from the best one in the first parameter only.

        Parameters
        ----------
        metric : Metric
            The metric that selects.

        Returns
        -------
        result : CrossValidationResult
            Result for these candidates.
        fixed : dict
            Values of the other parameters.
        """
        # Select the candidates that differ from the best one in the first parameter only
        best = self.best(metric)
        first_parameter = next(iter(self.candidates.axes))
        line = self.candidates.line_through(best, first_parameter)
        fixed_parameters = self.candidates[best]
        del fixed_parameters[first_parameter]
        predictions = self.predictions
        if predictions is not None:
            predictions = predictions[:, :, line]
        standard_error = self.standard_error
        if standard_error is not None:
            standard_error = standard_error[line]
        result = replace(
            self,
            candidates=CandidateGrid({first_parameter: self.candidates.axes[first_parameter]}),
            by_group={key: values[:, line] for key, values in self.by_group.items()},
            predictions=predictions,
            standard_error=standard_error,
        )
        return result, fixed_parameters


@single_threaded
def cross_validate_candidates(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None = None,
    *,
    scoring: MetricName | Sequence[MetricName] = "disagreement",
    cv: CrossValidation = "auto",
    candidates: Mapping[str, ArrayLike | None] | None = None,
    sample_weight: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> CrossValidationResult:
    """Evaluate every candidate on held-out data, exactly where the learner has a shortcut.

    Use it to evaluate several metrics or parameters at once without fitting a search estimator.

    The search estimators select their parameters with this function, and ``rankwise cv`` prints its
    result.

    Parameters
    ----------
    estimator : RankRLS, RankSVM, CoRankRLS or RankingPursuit
        Any learner with a method ``hold_out_task``; it is not modified.
    X, y, groups
        As in its ``fit``.
    scoring : str, Metric, function, or sequence of them, default="disagreement"
        Names of `rankwise.metrics`, or functions of y and scores of one group.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable, default="auto"
        As in `RankRLSCV`. "auto" holds out one group at a time, or uses five folds if each needs a
        refit.
    candidates : mapping from str to array-like or None, default=None
        Values of "alpha", of "nu" (CoRankRLS) or of "n_basis" (RankingPursuit). None selects
        default values; a parameter that is not in the mapping keeps the value of the estimator.
        Without a mapping all parameters have default values.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items, in training and evaluation.
    time : array-like of shape (n_items,), default=None
        Dates or numbers: groups are evaluated by models of earlier groups only, in five blocks.

    Returns
    -------
    CrossValidationResult
        Candidates, metrics by group, scheme and predictions.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.metrics import get_metric
    >>> from rankwise.model_selection import cross_validate_candidates
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> result = cross_validate_candidates(RankRLS(), X, y, groups, scoring=["ndcg@10", "map"])
    >>> result.scheme, result.by_group["map"].shape
    ('leave-group-out', (30, 40, 1))
    >>> result.candidates[result.best(get_metric("ndcg@10"))]["alpha"] > 0
    True
    """
    metrics = get_metrics(scoring)
    task = hold_out_task(estimator, X, y, groups, sample_weight)
    # By name of the parameter; None: default values
    candidate_values: Mapping[str, ArrayLike | None] = dict.fromkeys(task.parameters)
    if candidates is not None:
        candidate_values = candidates
    if time is not None:  # train on earlier groups, evaluate on later ones
        target = read_y(y, groups, sample_weight, X=X, allow_nan=task.rows is not None)
        grid = task.candidates(**candidate_values)
        return forward_validation(estimator, X, target, time, grid, metrics)
    return evaluate_task(task, candidate_values, cv, metrics)


class TableTask(CandidateTask):
    """A learner of tables with its data: holds out rows or columns, and evaluates them itself."""

    @abstractmethod
    def evaluate(
        self, candidates: CandidateGrid, cv: CrossValidation, metrics: Sequence[Metric]
    ) -> CrossValidationResult:
        """Metrics of held-out rows or columns for every candidate."""


def evaluate_task(
    task: HoldOutTask | TableTask,
    values: Mapping[str, ArrayLike | None],
    cv: CrossValidation,
    metrics: Sequence[Metric],
) -> CrossValidationResult:
    """Evaluate the candidates of a task; a task of tables holds out rows or columns itself."""
    candidates = task.candidates(**values)
    if isinstance(task, TableTask):
        return task.evaluate(candidates, cv, metrics)
    return evaluate_candidates(task, candidates, resolve_cv(task, cv, metrics), metrics)


def evaluate_candidates(
    task: HoldOutTask,
    candidates: CandidateGrid,
    plan: CrossValidationPlan,
    metrics: Sequence[Metric],
) -> CrossValidationResult:
    """Hold out the folds of a plan, and evaluate the metrics in each group."""
    if plan.scheme == PAIR:  # leave-pair-out
        error = _leave_pair_out_error(task, candidates, metrics)
        by_group = {metric.name: from_disagreement(metric, error) for metric in metrics}
        labels = task.graph.group_labels
        return CrossValidationResult(
            candidates, by_group, labels, PAIR, n_folds=0, refits=task.refits
        )
    n_folds = len(plan.folds)
    if plan.scheme == EDGES:
        held_out = _hold_out_edges(task, candidates, plan.folds)
        by_group = {
            metric.name: from_disagreement(metric, held_out.error_of_folds) for metric in metrics
        }
        fold_numbers = np.arange(n_folds)
        return CrossValidationResult(
            candidates,
            by_group,
            fold_numbers,
            EDGES,
            n_folds,
            refits=True,
            standard_error=held_out.standard_error,
        )
    scores = task.held_out(plan.folds, candidates)
    by_group = {}
    labels = ALL_ITEMS  # unless a metric has a value for each group
    for metric in metrics:
        by_group[metric.name], labels_of_values = evaluate_held_out_scores(
            task.graph, scores, plan.folds, metric
        )
        if not is_pooled(metric):
            labels = labels_of_values
    refits = task.refits_folds(n_folds)
    predictions = by_row(task, scores)
    return CrossValidationResult(
        candidates, by_group, labels, plan.scheme, n_folds, refits, predictions
    )


def by_row(task: HoldOutTask, scores: Array) -> Array:
    """Arrange held-out scores of items by the rows of X, nan for rows without a score."""
    if task.rows is None:  # all rows of X are items
        return scores
    # Rows without y are no items and have no score
    scores_of_rows = np.full((task.n_rows, *scores.shape[1:]), np.nan)
    scores_of_rows[task.rows] = scores
    return scores_of_rows


def _leave_pair_out_error(
    task: HoldOutTask, candidates: CandidateGrid, metrics: Sequence[Metric]
) -> Array:
    """Share of misordered pairs by leave-pair-out, (1, n_candidates, n_outputs)."""
    pairs = task.pairs()
    for metric in metrics:
        if metric.name not in PAIRWISE:
            raise ValueError(
                f"leave-pair-out holds out two items, for which {metric.name} is undefined; use "
                f"{', '.join(PAIRWISE)}, or a number of folds."
            )
        if metric.name == "auc":
            metric(pairs.y, pairs.y)  # refuses y of more than two levels
    error = pairs.disagreement(candidates.axes["alpha"])  # (n_outputs, n_candidates)
    return error.T[None]  # of one "group"


class _HeldOutEdges(NamedTuple):
    """Disagreement of candidates on held-out edges.

    Attributes
    ----------
    error_of_folds : ndarray of shape (n_folds, n_candidates, 1)
        Share of misordered edges of each fold.
    standard_error : ndarray of shape (n_candidates,)
        Of the share over all folds; it allows for edges that share items.
    """

    error_of_folds: Array
    standard_error: Array


def _hold_out_edges(task: HoldOutTask, candidates: CandidateGrid, folds: Folds) -> _HeldOutEdges:
    """Evaluate the candidates on each fold of edges."""
    edges = task.graph.pairs()
    error = np.empty((len(folds), len(candidates), 1))
    wrong_shares = np.full((edges.n_pairs, len(candidates)), np.nan, dtype=np.float32)
    for k, test_edges in enumerate(track(folds, "refitting without a fold of edges")):
        train_edges = np.delete(np.arange(edges.n_pairs), test_edges)
        # Scores of all items by models that were trained on these edges
        scores = task.from_edges(edges.with_edges(train_edges), candidates)
        error[k, :, 0] = edges.with_edges(test_edges).disagreement(scores, pooled=True)[0]
        wrong_shares[test_edges] = _wrong_shares(edges, test_edges, scores)
    # Standard errors allow for edges that share items
    items = ComparedItems(edges.winner, edges.loser)
    standard_error = errors_of_means(wrong_shares, edges.preference_weight, items)
    return _HeldOutEdges(error, standard_error)


def _wrong_shares(edges: PairGraph, rows: Indices, scores: Array) -> Array:
    """1 for each misordered edge, 1/2 for equal scores, and NaN for a tie, by candidate."""
    difference = scores[edges.winner[rows]] - scores[edges.loser[rows]]
    # 1 for each misordered edge, 1/2 for equal scores
    wrong_share = 0.5 - 0.5 * np.sign(difference)
    is_tie = edges.magnitude[rows] == 0  # no order of a tie is correct
    wrong_share[is_tie] = np.nan
    return np.asarray(wrong_share)


def _predict_later_blocks(
    learner: BaseEstimator,
    X: MatrixLike,
    target: Relevance,
    blocks: Folds,
    candidates: CandidateGrid,
) -> Array:
    """Scores of each block by models of the earlier ones; NaN for the first block.

    Shape (n_rows, n_outputs, n_candidates).
    """
    predictions = np.full((len(target.y), target.y[0].size, len(candidates)), np.nan)
    for k in track(range(1, len(blocks)), "training on earlier blocks"):
        # Among the blocks up to block k, hold out block k
        rows = np.sort(np.concatenate(blocks[: k + 1]))
        task = learner.hold_out_task(take_rows(X, rows), target.take(rows))
        row_of_item = rows
        if task.rows is not None:  # rows without y are no items
            row_of_item = rows[task.rows]
        test_items = np.flatnonzero(np.isin(row_of_item, blocks[k]))
        predictions[row_of_item[test_items]] = task.held_out([test_items], candidates)[test_items]
    return predictions


def forward_validation(
    learner: BaseEstimator,
    X: MatrixLike,
    target: TrainingTarget,
    time: ArrayLike,
    candidates: CandidateGrid,
    metrics: Sequence[Metric],
) -> CrossValidationResult:
    """Evaluate every candidate on later groups; the learner is refitted for each block of time.

    Parameters
    ----------
    learner : estimator
        Any learner with a method ``hold_out_task``.
    X, target
        Items and training target.
    time : array-like of shape (n_items,)
        Time of each item; see `time_series_blocks`.
    candidates : CandidateGrid
        Candidates.
    metrics : sequence of Metric
        Metrics of the later groups.
    """
    if isinstance(target, Preferences):
        raise ValueError(
            "time needs scores and groups, but y is a preference graph; pass scores and groups."
        )
    blocks = time_series_blocks(time, target.groups)
    predictions = _predict_later_blocks(learner, X, target, blocks, candidates)
    # Evaluate the rows of all blocks but the first one, which no model predicts
    is_predicted = ~np.isnan(predictions).any(axis=(1, 2))
    rows = np.flatnonzero(is_predicted)
    later = target.take(rows)
    y = later.y.reshape(len(rows), -1)
    by_group = {}
    labels = ALL_ITEMS  # unless a metric has a value for each group
    for metric in metrics:
        if is_pooled(metric):
            evaluate = pooled_metric
        else:
            evaluate = metric_by_group
            labels = later.groups.labels
        by_group[metric.name] = evaluate(metric, y, later.groups, later.weight, predictions[rows])
    n_folds = len(blocks) - 1
    return CrossValidationResult(
        candidates, by_group, labels, LATER, n_folds, refits=True, predictions=predictions
    )
