"""Evaluation of candidates on held-out data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.frames import take_rows
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import Relevance, read_y, take_rows_of_target
from rankwise.groups import Groups, encode_groups
from rankwise.metrics import Metric
from rankwise.metrics.by_group import (
    check_defined,
    check_scoring,
    from_disagreement,
    metric_by_group,
    nanmean,
)
from rankwise.metrics.registry import MetricName, get_metrics
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
from rankwise.model_selection.protocol import HoldOutTask, hold_out_task
from rankwise.model_selection.time_blocks import time_series_blocks
from rankwise.runtime.progress import track
from rankwise.runtime.threads import single_threaded


def score_groups(
    graph: PreferenceGraph, held: Array, folds: Folds, metric: Metric
) -> tuple[Array, NDArray[Any]]:
    """The metric in each group, or in each part of a group that one fold holds.

    Shape (n_groups, n_candidates, n_outputs), and the labels of the groups.
    """
    fold = fold_of_item(folds, graph.n_items)
    if graph.scores is None:
        wrong = graph.disagreement(held[:, 0], fold)
        return from_disagreement(metric, wrong)[:, :, None], graph.group_labels
    labels, codes = np.unique(graph.groups * len(folds) + fold, return_inverse=True)
    groups, Y = Groups(codes, labels), graph.scores.reshape(graph.n_items, -1)
    if not np.isfinite(held).all():
        raise ValueError("held-out scores overflow; scale the features, or use larger alphas.")
    scores = metric_by_group(metric, Y, groups, graph.item_weights, held)
    return scores, graph.group_labels[labels // len(folds)]


@dataclass(frozen=True, eq=False)
class CrossValidationResult:
    """What `cross_validate_candidates` found: metrics of every candidate in every held-out group.

    Attributes
    ----------
    candidates : Candidates
        What was judged.
    by_group : dict from metric name to ndarray of shape (n_groups, n_candidates, n_outputs)
        Metrics in each group, or in each part of a group that one fold holds; nan where a metric
        is undefined. One row if all pairs are held out in turn.
    groups : ndarray
        Labels of these rows: groups, or folds if edges are held out.
    way : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items" or "folds of
        edges".
    n_folds : int
        Number of folds; 0 for leave-pair-out.
    refits : bool
        Whether every fold was trained again.
    predictions : ndarray of shape (n_rows, n_outputs, n_candidates) or None
        Held-out scores of the rows of X, nan where y is; None if pairs or edges were held out.
    """

    candidates: CandidateGrid
    by_group: dict[str, Array]
    groups: NDArray[Any]
    way: str
    n_folds: int
    refits: bool
    predictions: Array | None = None

    def overall(self, metric: Metric) -> Array:
        """Mean over the groups where the metric is defined, and over outputs, (n_candidates,)."""
        return np.asarray(nanmean(self.by_group[metric.name]).mean(axis=1))

    def best(self, metric: Metric) -> int:
        """The best candidate for all outputs; of equal ones the simplest."""
        gain = self.overall(metric) if metric.greater_is_better else -self.overall(metric)
        check_defined(metric, gain)
        return self.candidates.best(gain)

    def describe(self) -> str:
        """The way in words, such as "exact leave-group-out"."""
        way = f"{self.n_folds} {self.way}" if self.way.startswith("folds") else self.way
        return f"{way}, trained again for each" if self.refits else f"exact {way}"

    def line(self, metric: Metric) -> tuple[CrossValidationResult, dict[str, Any]]:
        """The curve of the first parameter through the best candidate, and its other values."""
        at, name = self.best(metric), next(iter(self.candidates.axes))
        line = self.candidates.line(at, name)
        candidates = CandidateGrid({name: self.candidates.axes[name]})
        held = None if self.predictions is None else self.predictions[:, :, line]
        by_group = {key: scores[:, line] for key, scores in self.by_group.items()}
        fixed = {other: v for other, v in self.candidates[at].items() if other != name}
        return replace(self, candidates=candidates, by_group=by_group, predictions=held), fixed


@single_threaded
def cross_validate_candidates(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    scoring: MetricName | Sequence[MetricName] = "disagreement",
    cv: Any = "auto",
    candidates: Mapping[str, ArrayLike | None] | None = None,
    sample_weight: ArrayLike | None = None,
    time: ArrayLike | None = None,
) -> CrossValidationResult:
    """Metrics of held-out data for every candidate, exact where the learner has a shortcut.

    What the searches choose by, and what ``rankwise cv`` prints.

    Parameters
    ----------
    estimator : RankRLS, RankSVM, CoRankRLS or RankingPursuit
        Any learner that has ``hold_out_task``; it is left as it is.
    X, y, groups
        As in its ``fit``.
    scoring : str, Metric, function, or sequence of them
        Names of `rankwise.metrics`, or functions of y and scores of one group.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable
        As in `RankRLSCV`. "auto" holds out one group at a time, or makes five folds if each has to
        be trained again.
    candidates : mapping from str to array-like or None, optional
        Values of "alpha", of "nu" (CoRankRLS) or of "n_basis" (RankingPursuit); None stands for
        default values, and a parameter that is not named keeps the value of the estimator. By
        default all have default values.
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items, in training and where held-out items are judged.
    time : array-like of shape (n_items,), optional
        Dates or numbers: groups are judged by models of earlier groups only, in five blocks.

    Returns
    -------
    CrossValidationResult
        Candidates, metrics by group, way and predictions.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.metrics import get_metric
    >>> from rankwise.model_selection import cross_validate_candidates
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> curves = cross_validate_candidates(RankRLS(), X, y, groups, scoring=["ndcg@10", "map"])
    >>> curves.way, curves.by_group["map"].shape
    ('leave-group-out', (30, 40, 1))
    >>> curves.candidates[curves.best(get_metric("ndcg@10"))]["alpha"] > 0
    True
    """
    metrics = [check_scoring(metric) for metric in get_metrics(scoring)]
    task = hold_out_task(estimator, X, y, groups, sample_weight)
    values = dict.fromkeys(task.parameters) if candidates is None else candidates
    if time is not None:
        target = read_y(y, groups, sample_weight, X=X, allow_nan=task.rows is not None)
        return forward_validation(estimator, X, target, time, values, metrics)
    return evaluate_task(task, values, cv, metrics)


def evaluate_task(
    task: Any,
    values: Mapping[str, ArrayLike | None],
    cv: Any,
    metrics: Sequence[Metric],
) -> CrossValidationResult:
    """The curves of one task; a table holds out rows or columns in its own way."""
    candidates = task.candidates(**values)
    if hasattr(task, "judge"):
        curves: CrossValidationResult = task.judge(candidates, cv, metrics)
        return curves
    return evaluate_candidates(task, candidates, resolve_cv(task, cv, metrics), metrics)


def evaluate_candidates(
    task: HoldOutTask,
    candidates: CandidateGrid,
    plan: CrossValidationPlan,
    metrics: Sequence[Metric],
) -> CrossValidationResult:
    """Hold out, and score each group."""
    graph, folds = task.graph, plan.folds
    if plan.name in (PAIR, EDGES):
        if plan.name == PAIR:
            wrong, labels = _leave_pair_out(task, candidates, metrics), graph.group_labels
        else:
            wrong = _leave_edges_out(task, candidates, folds)
            labels = np.arange(len(folds))
        by_group = {metric.name: from_disagreement(metric, wrong) for metric in metrics}
        refits = task.refits or plan.name == EDGES
        return CrossValidationResult(candidates, by_group, labels, plan.name, len(folds), refits)
    held, by_group = task.held_out(folds, candidates), {}
    for metric in metrics:
        by_group[metric.name], labels = score_groups(graph, held, folds, metric)
    way = plan.name, len(folds), task.refits
    held = held if task.rows is None else by_row(task, held)
    return CrossValidationResult(candidates, by_group, labels, *way, held)


def by_row(task: HoldOutTask, held: Array) -> Array:
    """Held-out scores of the items as those of the rows of X, nan for rows without a score."""
    out = np.full((task.n_rows, *held.shape[1:]), np.nan)
    out[task.rows] = held
    return out


def _leave_pair_out(
    task: HoldOutTask, candidates: CandidateGrid, metrics: Sequence[Metric]
) -> Array:
    """Share of the pairs that are ordered wrongly, (1, n_candidates, n_outputs)."""
    pairs = task.pairs()
    for metric in metrics:
        if metric.name not in PAIRWISE:
            raise ValueError(
                f"leave-pair-out holds out two items, of which {metric.name} has no value; use "
                f"{', '.join(PAIRWISE)}, or a number of folds."
            )
        if metric.name == "auc":
            metric(pairs.scores, pairs.scores)  # refuses scores of more than two levels
    return pairs.disagreement(candidates.axes["alpha"]).T[None]


def _leave_edges_out(task: HoldOutTask, candidates: CandidateGrid, folds: Folds) -> Array:
    """Share of the edges of each fold that models of the others order wrongly."""
    edges = task.graph.pairs()
    wrong = np.empty((len(folds), len(candidates), 1))
    for k, held in enumerate(track(folds, "training again without edges")):
        kept = np.delete(np.arange(edges.n_pairs), held)
        scores = task.from_edges(edges.with_edges(kept), candidates)
        wrong[k, :, 0] = edges.with_edges(held).disagreement(scores, pooled=True)[0]
    return wrong


def forward_validation(
    model: Any,
    X: Any,
    target: Relevance,
    time: Any,
    values: Mapping[str, ArrayLike | None],
    metrics: Sequence[Metric],
) -> CrossValidationResult:
    """Metrics of later groups for every candidate; the model is trained again for each block.

    Parameters
    ----------
    model : estimator
        Any learner that has ``hold_out_task``.
    X, target
        The items, and what is known about them.
    time : array-like of shape (n_items,)
        When each item was seen; see `time_series_blocks`.
    values : mapping from str to array-like or None
        As in `cross_validate_candidates`.
    metrics : sequence of Metric
        How held-out groups are judged.
    """
    if target.groups is None:
        raise ValueError(
            "time says when items were seen, but y is a preference graph; pass scores and groups."
        )
    blocks = time_series_blocks(time, target.groups)
    candidates = model.hold_out_task(X, target).candidates(**values)
    n_outputs = np.reshape(target.y, (len(target.y), -1)).shape[1]
    held = np.full((len(target.y), n_outputs, len(candidates)), np.nan)
    for k in track(range(1, len(blocks)), "training on what came before"):
        rows = np.sort(np.concatenate(blocks[: k + 1]))
        task = model.hold_out_task(take_rows(X, rows), take_rows_of_target(target, rows))
        items = rows if task.rows is None else rows[task.rows]
        U = np.flatnonzero(np.isin(items, blocks[k]))
        held[items[U]] = task.held_out([U], candidates)[U]
    judged = np.flatnonzero(~np.isnan(held).any(axis=(1, 2)))
    known = take_rows_of_target(target, judged)
    Y, groups = known.y.reshape(len(judged), -1), known.groups or encode_groups(None, 0)
    by_group = {
        metric.name: metric_by_group(metric, Y, groups, known.weight, held[judged])
        for metric in metrics
    }
    n_folds = len(blocks) - 1
    return CrossValidationResult(candidates, by_group, groups.labels, LATER, n_folds, True, held)
