"""Held-out curves: how well each candidate ranks data that it was not trained on."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.machine import calm, track
from rankwise.metrics import Metric
from rankwise.metrics.averaging import check_has_weights
from rankwise.model_selection.alpha_grid import Edges, flat_note
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.folds import Folds, make_folds, read_splits
from rankwise.model_selection.measures import (
    Measure,
    check_scoring,
    from_disagreement,
    mean_defined,
    score_groups,
    standard_error,
    undefined_everywhere,
)
from rankwise.model_selection.task import HoldOutTask, hold_out_task
from rankwise.model_selection.ways import EDGES, PAIR, PAIRWISE, Way, choose_way


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

    def mean(self, metric: Measure) -> Array:
        """Mean over the groups where the metric is defined, (n_candidates, n_outputs)."""
        return mean_defined(self.by_group[metric.name])

    def overall(self, metric: Measure) -> Array:
        """Mean over the outputs of that, (n_candidates,)."""
        return np.asarray(self.mean(metric).mean(axis=1))

    def best(self, metric: Measure, output: int | None = None) -> int:
        """The best candidate for one output or for all; of equal ones the simplest."""
        mean = self.overall(metric) if output is None else self.mean(metric)[:, output]
        if np.isnan(mean).all():
            raise undefined_everywhere(metric)
        return self.candidates.best(mean if metric.greater_is_better else -mean)

    def n_undefined(self, metric: Measure) -> int:
        """Number of groups where the metric is undefined, for some candidate or output."""
        return int(np.isnan(self.by_group[metric.name]).any(axis=(1, 2)).sum())

    def note(self, metric: Measure, output: int | None = None) -> str:
        """What is to be said of the best: at the edge of its values, one of many, or nothing."""
        at, (name, values) = self.best(metric, output), next(iter(self.candidates.axes.items()))
        scores = self.by_group[metric.name]
        scores = scores.mean(axis=2) if output is None else scores[:, :, output]
        mean = self.overall(metric) if output is None else self.mean(metric)[:, output]
        line, place = self.candidates.line(at, name)
        edges = self.candidates.edges(mean, at, name)
        if name == "n_basis" and edges.upper:
            return f"the best n_basis {values[place]:g} is the largest tried: more may be better"
        if name != "n_basis" and any(edges):
            return f"the best {name} {values[place]:.4g} is at the edge of the grid"
        return flat_note(name, values, mean[line], standard_error(scores)[line], place)

    def describe(self) -> str:
        """The way in words, such as "exact leave-group-out"."""
        way = f"{self.n_folds} {self.way}" if self.way.startswith("folds") else self.way
        return f"{way}, trained again for each" if self.refits else f"exact {way}"

    def line(self, metric: Measure) -> tuple[HeldOutCurves, dict[str, Any]]:
        """The curve of the first parameter through the best candidate, and its other values."""
        at, name = self.best(metric), next(iter(self.candidates.axes))
        line = self.candidates.line(at, name)[0]
        candidates = Candidates({name: self.candidates.axes[name]}, self.candidates.grid)
        held = None if self.predictions is None else self.predictions[:, :, line]
        by_group = {key: scores[:, line] for key, scores in self.by_group.items()}
        fixed = {other: v for other, v in self.candidates[at].items() if other != name}
        return replace(self, candidates=candidates, by_group=by_group, predictions=held), fixed

    def joined(self, more: HeldOutCurves) -> HeldOutCurves:
        """With more candidates, by ascending alpha."""
        candidates, order = self.candidates.joined(more.candidates)

        def join(one: Array, other: Array, axis: int) -> Array:
            return np.take(np.concatenate([one, other], axis=axis), order, axis=axis)

        held = None
        if self.predictions is not None and more.predictions is not None:
            held = join(self.predictions, more.predictions, 2)
        by_group = {name: join(own, more.by_group[name], 1) for name, own in self.by_group.items()}
        return replace(self, candidates=candidates, by_group=by_group, predictions=held)


@calm
def held_out_curves(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    scoring: str | Metric | Sequence[str | Metric] = "disagreement",
    cv: Any = "auto",
    candidates: Mapping[str, ArrayLike | None] | None = None,
    progress: bool | None = None,
    sample_weight: ArrayLike | None = None,
) -> HeldOutCurves:
    """Metrics of held-out data for every candidate, exact where the learner has a shortcut.

    What the searches choose by, and what ``rankwise cv`` prints.

    Parameters
    ----------
    estimator : RankRLS, RankSVM, CoRankRLS or RankingPursuit
        Any learner that has ``hold_out_task``; it is left as it is.
    X, y, groups
        As in its ``fit``.
    scoring : str, Metric or sequence of them
        Names of `rankwise.metrics`. Default alphas are widened while the best one by the first
        metric is at their end.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable
        As in `RankRLSCV`. "auto" holds out one group at a time, or makes five folds if each has to
        be trained again.
    candidates : mapping from str to array-like or None, optional
        Values of "alpha", of "nu" (CoRankRLS) or of "n_basis" (RankingPursuit); None stands for
        default values, and a parameter that is not named keeps the value of the estimator. By
        default all have default values.
    progress : bool, optional
        Whether to draw a bar while folds are trained again; by default only on a terminal.
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items, in training and where held-out items are judged.

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
    >>> found = held_out_curves(RankRLS(), X, y, groups, scoring=["ndcg@10", "map"])
    >>> found.way, found.by_group["map"].shape
    ('leave-group-out', (30, 31, 1))
    >>> found.candidates[found.best(get_metric("ndcg@10"))]["alpha"] > 0
    True
    """
    given = [scoring] if isinstance(scoring, (str, Metric)) else scoring
    metrics = [check_scoring(each) for each in given]
    advice = "For others use cross_validate of scikit-learn."
    task = hold_out_task(estimator, X, y, groups, advice, sample_weight)
    values = dict.fromkeys(task.parameters) if candidates is None else candidates

    def edges(runs: list[HeldOutCurves]) -> Edges:
        at, mean = runs[0].best(metrics[0]), runs[0].overall(metrics[0])
        return runs[0].candidates.edges(mean, at, "alpha")

    return judge_and_widen([task], values, cv, metrics, edges, progress)[0]


def judge_and_widen(
    tasks: Iterable[HoldOutTask],
    values: Mapping[str, ArrayLike | None],
    cv: Any,
    metrics: Sequence[Measure],
    edges_of_choice: Callable[[list[HeldOutCurves]], Edges],
    progress: bool | None = None,
) -> list[HeldOutCurves]:
    """Curves of each task, with default alphas widened while the choice is at their end.

    Parameters
    ----------
    tasks : iterable of HoldOutTask
        Such as one for each kernel; read again if alphas are added.
    values, cv, metrics, progress
        As in `held_out_curves`.
    edges_of_choice : callable
        Which ends of the alphas the choice among all curves is at.
    """
    cv = read_splits(cv)
    runs = [_run(task, task.candidates(**values), cv, metrics, progress) for task in tasks]
    while runs[0].candidates.grid is not None:
        edges = edges_of_choice(runs)
        more = [run.candidates.beyond(edges) for run in runs]
        if not any(more):
            break
        for k, (task, beyond) in enumerate(zip(tasks, more, strict=True)):
            if beyond is not None:
                runs[k] = runs[k].joined(_run(task, beyond, cv, metrics, progress))
    return runs


def _run(
    task: Any,
    candidates: Candidates,
    cv: Any,
    metrics: Sequence[Measure],
    progress: bool | None,
) -> HeldOutCurves:
    """The curves of one task; a table holds out rows or columns in its own way."""
    if hasattr(task, "judge"):
        found: HeldOutCurves = task.judge(candidates, cv, metrics, progress)
        return found
    return judge(task, candidates, choose_way(task, cv, metrics), metrics, progress)


def judge(
    task: HoldOutTask,
    candidates: Candidates,
    way: Way,
    metrics: Sequence[Measure],
    progress: bool | None = None,
) -> HeldOutCurves:
    """Hold out, and score each group."""
    for metric in metrics:
        if isinstance(metric, Metric) and task.graphs[0].item_weights is not None:
            check_has_weights(metric.core)
        if task.graphs[0].scores is None and metric.name not in PAIRWISE[:2]:
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
                "use scoring='disagreement' or 'concordance'."
            )
    if way.name == PAIR:
        return _leave_pair_out(task, candidates, metrics)
    if way.name == EDGES:
        return _folds_of_edges(task, candidates, way.cv, metrics, progress)
    columns = []
    parts: dict[str, list[Array]] = {metric.name: [] for metric in metrics}
    labels: Any = None
    for k, (folds, held) in enumerate(hold_out_folds(task, way.cv, candidates, progress)):
        columns.append(held)
        for metric in reversed(metrics):  # the labels are those of the first
            scores, labels = score_groups(task.graphs[k], held, folds, metric)
            parts[metric.name].append(scores)
    return HeldOutCurves(
        candidates,
        {name: np.concatenate(scores, axis=2) for name, scores in parts.items()},
        labels,
        way.name,
        len(folds),
        task.refits,
        by_row(task, np.concatenate(columns, axis=1)),
    )


def hold_out_folds(
    task: HoldOutTask, cv: Any, candidates: Candidates, progress: bool | None = None
) -> Iterator[tuple[Folds, Array]]:
    """For each graph of the task the folds and the held-out scores."""
    cv = read_splits(cv)
    for k, graph in enumerate(task.graphs):
        folds = make_folds(cv, graph)
        yield folds, task.held_out(k, folds, candidates, progress)


def by_row(task: HoldOutTask, held: Array) -> Array:
    """Held-out scores of the items as those of the rows of X, nan for rows without a score."""
    if task.rows is None:
        return held
    out = np.full((task.n_rows, *held.shape[1:]), np.nan)
    out[task.rows] = held
    return out


def _leave_pair_out(
    task: HoldOutTask, candidates: Candidates, metrics: Sequence[Measure]
) -> HeldOutCurves:
    graph, pairs = task.graphs[0], task.pairs()
    if pairs is None:
        raise ValueError(
            "leave-pair-out is for RankRLS on one list in which all pairs are edges, but there are "
            f"{graph.n_groups} groups, cost={graph.cost!r} and ties={graph.ties!r}; hold out "
            "groups or folds."
        )
    for metric in metrics:
        if metric.name not in PAIRWISE:
            raise ValueError(
                f"leave-pair-out holds out two items, of which {metric.name} has no value; use "
                f"{', '.join(PAIRWISE)}, or a number of folds."
            )
        if isinstance(metric, Metric) and metric.name == "auc":
            metric(pairs.scores, pairs.scores)  # refuses scores of more than two levels
    error = pairs.disagreement(candidates.axes["alpha"]).T
    by_group = {metric.name: from_disagreement(metric, error)[None] for metric in metrics}
    return HeldOutCurves(candidates, by_group, graph.group_labels, PAIR, 0, task.refits)


def _folds_of_edges(
    task: HoldOutTask,
    candidates: Candidates,
    cv: Any,
    metrics: Sequence[Measure],
    progress: bool | None,
) -> HeldOutCurves:
    """One connected component: hold out edges instead of items, and train again for each fold."""
    edges = task.graphs[0].pairs()
    if not isinstance(cv, numbers.Integral) or not 2 <= int(cv) <= edges.n_pairs:
        raise ValueError(
            f"cv={cv!r}: the preferences are all connected, so edges are held out; give a "
            f"number of folds from 2 to the {edges.n_pairs} edges, or build the PairGraph with the "
            "groups of the items to hold these out."
        )
    n_folds = int(cv)
    fold = np.random.default_rng(0).permutation(edges.n_pairs) % n_folds
    wrong = np.empty((n_folds, len(candidates), 1))
    for k in track(range(n_folds), "training again without edges", progress):
        scores = task.from_edges(edges.with_edges(fold != k), candidates)
        wrong[k, :, 0] = edges.with_edges(fold == k).disagreement(scores, pooled=True)[0]
    by_group = {metric.name: from_disagreement(metric, wrong) for metric in metrics}
    return HeldOutCurves(candidates, by_group, np.arange(n_folds), EDGES, n_folds, True)
