"""Held-out curves: how well each candidate ranks data that it was not trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.frames import take_rows
from rankwise.graphs import PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.inputs import Nuisance, Target, read_target
from rankwise.machine import calm, track
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.metrics.registry import MetricName, get_metrics
from rankwise.model_selection.task import (
    EDGES,
    LATER,
    PAIR,
    PAIRWISE,
    Candidates,
    Folds,
    HoldOutPlan,
    HoldOutTask,
    choose_plan,
    fold_numbers,
    hold_out_task,
    later_blocks,
)


def score_groups(
    graph: PreferenceGraph, held: Array, folds: Folds, metric: Metric
) -> tuple[Array, NDArray[Any]]:
    """The metric in each group, or in each part of a group that one fold holds.

    Shape (n_groups, n_candidates, n_outputs), and the labels of the groups.
    """
    fold = fold_numbers(folds, graph.n_items)
    if graph.scores is None:
        wrong = graph.disagreement(held[:, 0], fold)
        return from_disagreement(metric, wrong)[:, :, None], graph.group_labels
    labels, codes = np.unique(graph.groups * len(folds) + fold, return_inverse=True)
    groups, Y = Groups(codes, labels), graph.scores.reshape(graph.n_items, -1)
    if not np.isfinite(held).all():
        raise ValueError("held-out scores overflow; scale the features, or use larger alphas.")
    scores = metric_by_group(metric, Y, groups, graph.item_weights, held)
    return scores, graph.group_labels[labels // len(folds)]


def metric_by_group(
    metric: Metric, Y: Array, groups: Groups, weight: Array | None, held: Array
) -> Array:
    """The metric of held-out scores, shape (n_groups, n_candidates, n_outputs)."""
    scores = np.empty((len(groups.labels), held.shape[2], Y.shape[1]))
    for j in range(Y.shape[1]):
        targets = Targets(np.ascontiguousarray(Y[:, j]), groups, weight)
        for k in range(held.shape[2]):
            ranking = Ranking(targets, np.ascontiguousarray(held[:, j, k]))
            scores[:, k, j] = metric.by_group(ranking).values
    return scores


def from_disagreement(metric: Metric, disagreement: Array) -> Array:
    """A metric of pairs from the share that is ordered wrongly."""
    return 1.0 - disagreement if metric.greater_is_better else disagreement


def check_scoring(scoring: MetricName) -> Metric:
    """The metric of a search, which takes the mean over groups (or parts of them) of any metric."""
    metric = get_metric(scoring)
    is_pooled = dict(metric.options).get("average", "groups") != "groups"
    if is_pooled or metric.name.startswith("pooled_auc"):
        raise ValueError(
            f"scoring={metric.name!r}: held-out scores are judged in each group, and the groups "
            "count alike; leave out average, or use 'auc' for 'pooled_auc'."
        )
    return metric


def check_defined(metric: Metric, values: Array) -> None:
    """Raise an UndefinedMetricError if there is no value of the metric to choose by."""
    if np.isnan(values).all():
        advice = "It is NaN there; use larger groups or folds, or another metric."
        raise metric.undefined_error("in every held-out fold", advice)


def mean_defined(scores: Array) -> Array:
    """Mean over the first axis, leaving out nan; nan if nothing is left."""
    defined = ~np.isnan(scores)
    count = defined.sum(axis=0)
    total = np.where(defined, scores, 0.0).sum(axis=0)
    mean = np.full(total.shape, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def standard_error(scores: Array) -> Array:
    """Standard error of that mean; nan where there are fewer than two values."""
    count = (~np.isnan(scores)).sum(axis=0)
    squares = np.nansum((scores - mean_defined(scores)) ** 2, axis=0)
    error = np.full(squares.shape, np.nan)
    np.divide(squares, count * (count - 1.0), out=error, where=count > 1)
    return np.sqrt(error)


@dataclass(frozen=True, eq=False)
class HeldOutCurves:
    """What `held_out_curves` found: metrics of every candidate in every held-out group.

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

    candidates: Candidates
    by_group: dict[str, Array]
    groups: NDArray[Any]
    way: str
    n_folds: int
    refits: bool
    predictions: Array | None = None

    def overall(self, metric: Metric) -> Array:
        """Mean over the groups where the metric is defined, and over outputs, (n_candidates,)."""
        return np.asarray(mean_defined(self.by_group[metric.name]).mean(axis=1))

    def best(self, metric: Metric) -> int:
        """The best candidate for all outputs; of equal ones the simplest."""
        gain = self.overall(metric) if metric.greater_is_better else -self.overall(metric)
        check_defined(metric, gain)
        return self.candidates.best(gain)

    def describe(self) -> str:
        """The way in words, such as "exact leave-group-out"."""
        way = f"{self.n_folds} {self.way}" if self.way.startswith("folds") else self.way
        return f"{way}, trained again for each" if self.refits else f"exact {way}"

    def line(self, metric: Metric) -> tuple[HeldOutCurves, dict[str, Any]]:
        """The curve of the first parameter through the best candidate, and its other values."""
        at, name = self.best(metric), next(iter(self.candidates.axes))
        line = self.candidates.line(at, name)
        candidates = Candidates({name: self.candidates.axes[name]})
        held = None if self.predictions is None else self.predictions[:, :, line]
        by_group = {key: scores[:, line] for key, scores in self.by_group.items()}
        fixed = {other: v for other, v in self.candidates[at].items() if other != name}
        return replace(self, candidates=candidates, by_group=by_group, predictions=held), fixed


@calm
def held_out_curves(
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
) -> HeldOutCurves:
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
    HeldOutCurves
        Candidates, metrics by group, way and predictions.

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.metrics import get_metric
    >>> from rankwise.model_selection import held_out_curves
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> curves = held_out_curves(RankRLS(), X, y, groups, scoring=["ndcg@10", "map"])
    >>> curves.way, curves.by_group["map"].shape
    ('leave-group-out', (30, 40, 1))
    >>> curves.candidates[curves.best(get_metric("ndcg@10"))]["alpha"] > 0
    True
    """
    metrics = [check_scoring(metric) for metric in get_metrics(scoring)]
    task = hold_out_task(estimator, X, y, groups, sample_weight)
    values = dict.fromkeys(task.parameters) if candidates is None else candidates
    if time is not None:
        target = read_target(y, groups, sample_weight, X=X, allow_nan=task.rows is not None)
        return later_curves(estimator, X, target, time, values, metrics)
    return score_candidates(task, values, cv, metrics)


def score_candidates(
    task: Any,
    values: Mapping[str, ArrayLike | None],
    cv: Any,
    metrics: Sequence[Metric],
) -> HeldOutCurves:
    """The curves of one task; a table holds out rows or columns in its own way."""
    candidates = task.candidates(**values)
    if hasattr(task, "judge"):
        curves: HeldOutCurves = task.judge(candidates, cv, metrics)
        return curves
    return judge(task, candidates, choose_plan(task, cv, metrics), metrics)


def judge(
    task: HoldOutTask,
    candidates: Candidates,
    plan: HoldOutPlan,
    metrics: Sequence[Metric],
) -> HeldOutCurves:
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
        return HeldOutCurves(candidates, by_group, labels, plan.name, len(folds), refits)
    held, by_group = task.held_out(folds, candidates), {}
    for metric in metrics:
        by_group[metric.name], labels = score_groups(graph, held, folds, metric)
    way = plan.name, len(folds), task.refits
    held = held if task.rows is None else by_row(task, held)
    return HeldOutCurves(candidates, by_group, labels, *way, held)


def by_row(task: HoldOutTask, held: Array) -> Array:
    """Held-out scores of the items as those of the rows of X, nan for rows without a score."""
    out = np.full((task.n_rows, *held.shape[1:]), np.nan)
    out[task.rows] = held
    return out


def _leave_pair_out(task: HoldOutTask, candidates: Candidates, metrics: Sequence[Metric]) -> Array:
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


def _leave_edges_out(task: HoldOutTask, candidates: Candidates, folds: Folds) -> Array:
    """Share of the edges of each fold that models of the others order wrongly."""
    edges = task.graph.pairs()
    wrong = np.empty((len(folds), len(candidates), 1))
    for k, held in enumerate(track(folds, "training again without edges")):
        kept = np.delete(np.arange(edges.n_pairs), held)
        scores = task.from_edges(edges.with_edges(kept), candidates)
        wrong[k, :, 0] = edges.with_edges(held).disagreement(scores, pooled=True)[0]
    return wrong


def later_curves(
    model: Any,
    X: Any,
    target: Target,
    time: Any,
    values: Mapping[str, ArrayLike | None],
    metrics: Sequence[Metric],
) -> HeldOutCurves:
    """Metrics of later groups for every candidate; the model is trained again for each block.

    Parameters
    ----------
    model : estimator
        Any learner that has ``hold_out_task``.
    X, target
        The items, and what is known about them.
    time : array-like of shape (n_items,)
        When each item was seen; see `later_blocks`.
    values : mapping from str to array-like or None
        As in `held_out_curves`.
    metrics : sequence of Metric
        How held-out groups are judged.
    """
    if target.groups is None:
        raise ValueError(
            "time says when items were seen, but y is a preference graph; pass scores and groups."
        )
    blocks = later_blocks(time, target.groups)
    candidates = model.hold_out_task(X, target).candidates(**values)
    n_outputs = np.reshape(target.y, (len(target.y), -1)).shape[1]
    held = np.full((len(target.y), n_outputs, len(candidates)), np.nan)
    for k in track(range(1, len(blocks)), "training on what came before"):
        rows = np.sort(np.concatenate(blocks[: k + 1]))
        task = model.hold_out_task(take_rows(X, rows), take_target(target, rows))
        items = rows if task.rows is None else rows[task.rows]
        U = np.flatnonzero(np.isin(items, blocks[k]))
        held[items[U]] = task.held_out([U], candidates)[U]
    judged = np.flatnonzero(~np.isnan(held).any(axis=(1, 2)))
    known = take_target(target, judged)
    Y, groups = known.y.reshape(len(judged), -1), known.groups or encode_groups(None, 0)
    by_group = {
        metric.name: metric_by_group(metric, Y, groups, known.weight, held[judged])
        for metric in metrics
    }
    n_folds = len(blocks) - 1
    return HeldOutCurves(candidates, by_group, groups.labels, LATER, n_folds, True, held)


def take_target(target: Target, rows: Indices) -> Target:
    """What is known about some rows."""
    codes, labels = target.groups or encode_groups(None, len(target.y))
    weight = None if target.weight is None else target.weight[rows]
    taken = Target(target.y[rows], encode_groups(labels[codes[rows]], len(rows)), weight)
    if target.nuisance is None:
        return taken
    values, names = target.nuisance
    return taken._replace(nuisance=Nuisance(values[rows], names))


def label_rows(target: Target) -> NDArray[Any] | None:
    """The label of the group of each row."""
    return None if target.groups is None else target.groups.labels[target.groups.codes]


class SearchCurve(NamedTuple):
    """Held-out scores over alpha or the number of steps, all else fixed.

    Attributes
    ----------
    params : dict
        The values of the other parameters that were searched.
    parameter : str
        "alpha" or "n_basis".
    x : ndarray of shape (n_candidates,)
        Its values.
    by_group : ndarray of shape (n_groups, n_candidates) or (n_groups, n_candidates, n_outputs)
        Scores.
    is_chosen : bool
        Whether the chosen parameters lie on this curve.
    """

    params: dict[str, Any]
    parameter: str
    x: Array
    by_group: Array
    is_chosen: bool

    def place(self, value: float) -> int:
        """Where the parameter has a value."""
        return int(np.flatnonzero(self.x == value)[0])


def curves_of_search(search: Any) -> list[SearchCurve]:
    """One curve for each row of ``cv_results_["mean_score"]``."""
    results, best = search.cv_results_, search.best_params_
    parameter = "alpha" if "alphas" in results else "n_basis"
    curves: list[SearchCurve] = []
    for k, params in enumerate(results["params"]):
        shown = {name: value for name, value in params.items() if name in best}
        is_chosen = shown.items() <= best.items() and not any(one.is_chosen for one in curves)
        x = results["alphas"][k] if parameter == "alpha" else results["n_basis"]
        curves.append(SearchCurve(shown, parameter, x, results["group_score"][k], is_chosen))
    return curves
