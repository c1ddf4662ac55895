"""Which way to hold out: the one place where "auto" is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rankwise.model_selection.folds import read_splits
from rankwise.model_selection.task import HoldOutTask

GROUP, PAIR = "leave-group-out", "leave-pair-out"
GROUPS, ITEMS, EDGES = "folds of groups", "folds of items", "folds of edges"
PAIRWISE = ("disagreement", "concordance", "auc")  # metrics that a held-out pair has
FEWEST_FOR_PAIRS, MOST_FOR_PAIRS = 4, 1500  # items; leave-pair-out is cubic in their number
EXACT_FOLDS, REFIT_FOLDS = 10, 5


class Way(NamedTuple):
    """How data are held out.

    Attributes
    ----------
    name : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items" or "folds of
        edges".
    cv : None, int, splitter or list
        What makes the folds; None for one group at a time.
    """

    name: str
    cv: Any = None


def choose_way(task: HoldOutTask, cv: Any, metrics: Sequence[Any]) -> Way:
    """What is held out, and the folds that say how.

    With "auto":

    ==========================  ==========================  ===============================
    data                        folds are exact shortcuts   every fold is trained again
    ==========================  ==========================  ===============================
    several groups              one group at a time         five folds of groups
    one list, up to 1,500       every pair in turn, if all  five folds of items
    items, all pairs are edges  metrics judge pairs
    any other list              ten folds of items          five folds of items
    connected preferences       ten folds of edges          five folds of edges
    ==========================  ==========================  ===============================

    Parameters
    ----------
    task : HoldOutTask
        The learner and its data.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable
        None holds out one group at a time; a number makes so many folds of groups, of items if
        there is one list, or of edges if there are connected preferences without groups.
    metrics : sequence of Metric
        How held-out data will be judged.
    """
    graph = task.graphs[0]
    several, has_scores = graph.n_units > 1, graph.scores is not None
    if isinstance(cv, str):
        if cv == "auto":
            return _automatic(task, metrics)
        if cv == PAIR:
            return Way(PAIR)
        raise ValueError(
            f"cv={cv!r} is unknown; use 'auto', '{PAIR}', None, a number of folds or a splitter."
        )
    if cv is None:
        return Way(GROUP)
    if not several and not has_scores:
        return Way(EDGES, cv)
    return Way(GROUPS if several else ITEMS, read_splits(cv))


def _automatic(task: HoldOutTask, metrics: Sequence[Any]) -> Way:
    graph = task.graphs[0]
    n_folds = REFIT_FOLDS if task.refits else EXACT_FOLDS
    if graph.n_units > 1:
        return Way(GROUPS, min(n_folds, graph.n_units)) if task.refits else Way(GROUP)
    if graph.scores is None:
        return Way(EDGES, min(n_folds, max(2, graph.n_pairs)))
    is_small = FEWEST_FOR_PAIRS <= graph.n_items <= MOST_FOR_PAIRS
    if is_small and all(metric.name in PAIRWISE for metric in metrics) and task.has_pairs:
        return Way(PAIR)
    return Way(ITEMS, min(n_folds, graph.n_items))
