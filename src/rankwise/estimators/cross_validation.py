"""Judge a list of alphas by held-out scores and a ranking metric."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from rankwise.estimators.alpha_grid import AlphaGrid
from rankwise.estimators.folds import Folds, fold_numbers, make_folds
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.edges import edge_disagreement
from rankwise.progress import track

__all__ = [
    "CrossValidation",
    "Task",
    "best_of",
    "check_scoring",
    "choose_way",
    "cross_validate_alphas",
    "hold_out_folds",
    "join_alphas",
    "mean_defined",
    "score_groups",
    "standard_error",
]

Array = NDArray[np.float64]
PAIRWISE = ("disagreement", "concordance", "auc")
LEAVE_PAIR_OUT_LIMIT = 1500
ITEM_FOLDS = 10


class CrossValidation(NamedTuple):
    """Scores of all alphas for one setting of everything else.

    Attributes
    ----------
    alphas : ndarray of shape (n_alphas,)
        Candidates.
    mean_score : ndarray of shape (n_alphas, n_outputs)
        Mean of the metric over the groups where it is defined; nan if there is none.
    group_score : ndarray of shape (n_groups, n_alphas) or (n_groups, n_alphas, n_outputs)
        The metric in each group, nan where it is undefined; one row if the pairs are pooled.
    groups : ndarray
        Labels of the rows of group_score.
    n_undefined : int
        Number of groups left out of the mean.
    way : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items" or "folds of
        edges".
    predictions : ndarray or None
        Held-out scores, shape (n_items, n_alphas) or (n_items, n_outputs, n_alphas).
    """

    alphas: Array
    mean_score: Array
    group_score: Array
    groups: NDArray[Any]
    n_undefined: int
    way: str
    predictions: Array | None


class Task(Protocol):
    """A learner with its data: can be trained without some items, for many alphas at once.

    Attributes
    ----------
    graphs : list of PreferenceGraph
        One for all outputs, or one for each.
    output_shape : tuple
        () for one output, (n_outputs,) for y of two dimensions.
    """

    graphs: list[Any]
    output_shape: tuple[int, ...]

    @property
    def leave_pair_out(self) -> Callable[[Array], Array] | None:
        """Disagreement of all pairs, (n_alphas, n_outputs), where it is exact and cheap."""

    def default_grid(self) -> AlphaGrid:
        """Candidates for data of any scale."""

    def held_out(
        self, graph: int, folds: Folds, alphas: Array, progress: bool | None = None
    ) -> Array:
        """Scores of every item by models without its fold, (n_items, n_outputs, n_alphas)."""

    def from_edges(self, edges: PairGraph, alphas: Array) -> Array:
        """Scores of all items, (n_items, n_alphas), from a part of the edges."""


def cross_validate_alphas(task: Task, alphas: Array, cv: Any, metric: Metric) -> CrossValidation:
    """Hold out, score, average."""
    graph = task.graphs[0]
    way, cv = choose_way(task, cv, metric)
    if isinstance(graph, PairGraph) and metric.name not in PAIRWISE[:2]:
        raise ValueError(
            f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; use "
            "scoring='disagreement' or 'concordance'."
        )
    if way == "leave-pair-out":
        return _leave_pair_out(task, alphas, metric)
    if way == "folds of edges":
        return _folds_of_edges(task, alphas, cv, metric)
    parts: list[tuple[Array, NDArray[Any]]] = []
    columns = []
    for folds, held in hold_out_folds(task, cv, alphas):
        columns.append(held)
        parts.append(score_groups(task.graphs[len(parts)], held, folds, metric))
    scores = np.concatenate([part for part, _ in parts], axis=2)
    predictions = np.concatenate(columns, axis=1)
    single = not task.output_shape
    return CrossValidation(
        alphas,
        mean_defined(scores),
        scores[:, :, 0] if single else scores,
        parts[0][1],
        int(np.isnan(scores).any(axis=(1, 2)).sum()),
        way,
        predictions[:, 0] if single else predictions,
    )


def hold_out_folds(
    task: Task, cv: Any, alphas: Array, progress: bool | None = None
) -> Iterator[tuple[Folds, Array]]:
    """For each graph of the task the folds and the held-out scores."""
    for k, graph in enumerate(task.graphs):
        y = graph.y if isinstance(graph, ScoreGraph) else None
        folds = make_folds(cv, graph, np.empty((graph.n_items, 1)), y)
        yield folds, task.held_out(k, folds, alphas, progress)


def join_alphas(one: CrossValidation, other: CrossValidation) -> CrossValidation:
    """The scores of two lists of alphas as those of one, from the smallest alpha to the largest."""
    alphas = np.concatenate([one.alphas, other.alphas])
    order = np.argsort(alphas)

    def joined(first: Array, second: Array, axis: int) -> Array:
        return np.take(np.concatenate([first, second], axis=axis), order, axis=axis)

    held = None
    if one.predictions is not None and other.predictions is not None:
        held = joined(one.predictions, other.predictions, -1)
    return one._replace(
        alphas=alphas[order],
        mean_score=joined(one.mean_score, other.mean_score, 0),
        group_score=joined(one.group_score, other.group_score, 1),
        n_undefined=max(one.n_undefined, other.n_undefined),
        predictions=held,
    )


def choose_way(task: Task, cv: Any, metric: Metric) -> tuple[str, Any]:
    """What is held out, as `CrossValidation.way` names it, and the folds that say how."""
    graph = task.graphs[0]
    several = _n_units(graph) > 1
    if isinstance(cv, str):
        if cv != "auto":
            raise ValueError(f"cv={cv!r} is unknown; use 'auto', a number of folds or a splitter.")
        if several:
            return "leave-group-out", None
        if isinstance(graph, PairGraph):
            return "folds of edges", ITEM_FOLDS
        small = 4 <= graph.n_items <= LEAVE_PAIR_OUT_LIMIT
        if small and task.leave_pair_out and metric.name in PAIRWISE:
            return "leave-pair-out", None
        return "folds of items", min(ITEM_FOLDS, graph.n_items)
    if cv is None:
        return "leave-group-out", None
    if isinstance(graph, PairGraph) and not several:
        return "folds of edges", cv
    return ("folds of groups" if several else "folds of items"), cv


def _n_units(graph: PreferenceGraph) -> int:
    """Number of groups, or of connected components that have an edge."""
    if isinstance(graph, ScoreGraph) or (isinstance(graph, PairGraph) and graph.has_groups):
        return graph.n_groups
    return int((np.bincount(graph.components) > 1).sum())


def score_groups(
    graph: PreferenceGraph, held: Array, folds: Folds, metric: Metric
) -> tuple[Array, NDArray[Any]]:
    """The metric in each group, or in each part of a group that one fold holds.

    Shape (n_groups, n_alphas, n_outputs), and the labels of the groups.
    """
    if isinstance(graph, PairGraph):
        return _score_edges(graph, held, folds, metric)
    assert isinstance(graph, ScoreGraph)
    fold = fold_numbers(folds, graph.n_items)
    parts, unit = np.unique(graph.groups * len(folds) + fold, return_inverse=True)
    Y = graph.y.reshape(graph.n_items, -1)
    scores = [
        metric(Y[:, j], held[:, j], unit, per_group=True, undefined="nan")
        for j in range(Y.shape[1])
    ]
    return np.stack(scores, axis=2), graph.group_labels[parts // len(folds)]


def _score_edges(
    graph: PairGraph, held: Array, folds: Folds, metric: Metric
) -> tuple[Array, NDArray[Any]]:
    """Edges inside a fold, in the group of their winner; others join scores of two models."""
    unit, n_units = graph.groups[graph.winner], graph.n_groups
    fold = fold_numbers(folds, graph.n_items)
    is_inside = fold[graph.winner] == fold[graph.loser]
    weight = graph.weight * ((graph.magnitude > 0) & is_inside)
    error = np.stack(
        [
            edge_disagreement(graph.winner, graph.loser, weight, f, unit, n_units)
            for f in held[:, 0].T
        ],
        axis=1,
    )
    value = 1.0 - error if metric.greater_is_better else error
    return value[:, :, None], graph.group_labels


def _leave_pair_out(task: Task, alphas: Array, metric: Metric) -> CrossValidation:
    graph = task.graphs[0]
    y = graph.y.reshape(graph.n_items, -1)
    if metric.name == "auc":
        metric(y, y)  # refuses scores of more than two levels
    assert task.leave_pair_out is not None  # as `choose_way` has seen
    error = task.leave_pair_out(alphas)
    score = 1.0 - error if metric.greater_is_better else error
    rows = score[None, :, 0] if graph.y.ndim == 1 else score[None]
    return CrossValidation(alphas, score, rows, graph.group_labels, 0, "leave-pair-out", None)


def _folds_of_edges(task: Task, alphas: Array, n_folds: Any, metric: Metric) -> CrossValidation:
    """One connected component: hold out edges instead of items, and train again for each fold."""
    graph = task.graphs[0]
    if not isinstance(n_folds, int) or not 2 <= n_folds <= graph.n_pairs:
        raise ValueError(
            f"cv={n_folds!r}: the preferences are all connected, so edges are held out; give a "
            f"number of folds from 2 to the {graph.n_pairs} edges, or build the PairGraph with the "
            "groups of the items to hold these out."
        )
    fold = np.random.default_rng(0).permutation(graph.n_pairs) % n_folds
    wrong = np.empty((n_folds, len(alphas)))
    for k in track(range(n_folds), "training again without edges"):
        scores = task.from_edges(graph.with_edges(fold != k), alphas)
        held = fold == k
        weight = graph.weight[held] * (graph.magnitude[held] > 0)
        for a, f in enumerate(scores.T):
            wrong[k, a] = edge_disagreement(graph.winner[held], graph.loser[held], weight, f)[0]
    score = 1.0 - wrong if metric.greater_is_better else wrong
    return CrossValidation(
        alphas,
        mean_defined(score[:, :, None]),
        score,
        np.arange(n_folds),
        int(np.isnan(score).any(axis=1).sum()),
        "folds of edges",
        None,
    )


def check_scoring(scoring: str | Metric) -> Metric:
    """The metric of a search, which takes the mean over groups (or parts of them) of any metric."""
    metric = get_metric(scoring)
    if dict(metric.options).get("average", "groups") != "groups":
        raise ValueError(
            f"scoring={metric.name!r}: held-out scores are judged in each group, and the groups "
            "count alike; leave out average."
        )
    return metric


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


def best_of(scores: Array, simplicity: Array) -> int:
    """Where the score is largest; of equal ones where the model is simplest."""
    best = np.flatnonzero(scores == np.nanmax(scores))
    return int(best[np.argmax(simplicity[best])])
