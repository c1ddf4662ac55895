"""Folds of groups, items and edges, and the choice of a cross-validation scheme."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold

from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.groups import indices_by_group

Folds = list[NDArray[np.intp]]

GROUP, PAIR = "leave-group-out", "leave-pair-out"

GROUPS, ITEMS, EDGES = "folds of groups", "folds of items", "folds of edges"

LATER = "later groups"

PAIRWISE = ("disagreement", "concordance", "auc")  # metrics that a held-out pair has

FEWEST_FOR_PAIRS, MOST_FOR_PAIRS = 4, 1500  # items; leave-pair-out is cubic in their number

EXACT_FOLDS, REFIT_FOLDS = 10, 5


def make_folds(cv: Any, graph: PreferenceGraph) -> Folds:
    """The test sets of a cross-validation; every item is in exactly one.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        None holds out one group at a time; a number makes so many folds of whole groups, or of
        items if there is one group only; anything else as in scikit-learn.
    graph : PreferenceGraph
        Its scores and groups go to the splitter. The groups of explicit preferences are those
        that the `PairGraph` was given, or else its connected components.
    """
    labels, n_groups = graph.groups, graph.n_groups
    if cv is None:
        folds = indices_by_group(labels)
        if len(folds) < 2:
            how = (
                "build the PairGraph with the groups of the items, or hold out edges with "
                "RankRLSCV(cv=10)"
                if graph.scores is None
                else "pass groups, hold out items with cv=10, or use leave_pair_out"
            )
            raise ValueError(f"leave-group-out needs at least two groups, and there is one; {how}.")
        return folds
    if isinstance(cv, numbers.Integral):
        cv = int(cv)
        n_units = n_groups if n_groups > 1 else graph.n_items
        if not 2 <= cv <= n_units:
            unit = "groups" if n_groups > 1 else "items"
            raise ValueError(
                f"cv={cv}; expected 2 to {n_units} folds of the {n_units} {unit} "
                f"(n_samples = {graph.n_items})."
            )
        cv = GroupKFold(cv) if n_groups > 1 else KFold(cv, shuffle=True, random_state=0)
    if hasattr(cv, "split"):
        with warnings.catch_warnings():  # of splitters that say that they do not look at groups
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            cv = list(cv.split(np.empty((graph.n_items, 1)), graph.scores, graph.groups))
    return _check_splits(list(cv), graph.n_items)


def read_splits(cv: Any) -> Any:
    """The same with splits in a list, so that they can be read for each model and each output."""
    is_plain = hasattr(cv, "__iter__") and not hasattr(cv, "split")  # a text has both
    return list(cv) if is_plain else cv


def fold_of_item(folds: Folds, n_items: int) -> NDArray[np.intp]:
    """For each item the number of its fold, −1 for items of none."""
    numbers = np.full(n_items, -1, dtype=np.intp)
    if folds:
        numbers[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), list(map(len, folds)))
    return numbers


def _check_splits(splits: list[Any], n_items: int, what: str = "items") -> Folds:
    """The test sets; each item is in one of them, and all others are in its training set."""
    folds: Folds = []
    every = np.arange(n_items)
    for k, split in enumerate(splits):
        train, test = (np.asarray(part) for part in split)
        train, test = (np.flatnonzero(p) if p.dtype == bool else p for p in (train, test))
        if not np.array_equal(np.sort(np.concatenate([train, test])), every):
            raise ValueError(
                f"fold {k} of cv must train on all {what} that it does not hold out, and on no "
                f"others; it has {len(train)} for training and {len(test)} held out of {n_items}."
            )
        folds.append(np.sort(test).astype(np.intp))
    if not np.array_equal(np.sort(np.concatenate(folds)), every):
        raise ValueError(
            f"cv must hold out each of the {n_items} {what} once (as KFold and GroupKFold do, and "
            "ShuffleSplit does not)."
        )
    return folds


def edge_folds(cv: Any, n_edges: int) -> Folds:
    """Folds of the edges: so many of random ones, or what a splitter or splits say."""
    if hasattr(cv, "split"):
        cv = cv.split(np.empty((n_edges, 1)))
    if hasattr(cv, "__iter__"):
        return _check_splits(list(cv), n_edges, "edges")
    if not isinstance(cv, numbers.Integral) or not 2 <= int(cv) <= n_edges:
        raise ValueError(
            f"cv={cv!r}: the preferences are all connected, so edges are held out; give a "
            f"number of folds from 2 to the {n_edges} edges, or splits of them, or build the "
            "PairGraph with the groups of the items to hold these out."
        )
    fold = np.random.default_rng(0).permutation(n_edges) % int(cv)
    return [np.flatnonzero(fold == k) for k in range(int(cv))]


class CrossValidationPlan(NamedTuple):
    """What is held out.

    Attributes
    ----------
    name : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items" (of one list, or
        if a splitter puts items of one group in different folds) or "folds of edges".
    folds : list of ndarray of int
        Items, or edges, that are held out together; none for leave-pair-out.
    """

    name: str
    folds: Folds


def resolve_cv(task: Any, cv: Any, metrics: Sequence[Any]) -> CrossValidationPlan:
    """What is held out, and the folds that say how.

    With "auto":

    ==========================  ==========================  ===============================
    data                        folds are exact shortcuts   every fold is trained again
    ==========================  ==========================  ===============================
    several groups              one group at a time         five folds of groups
    one list, up to 1,500       every pair in turn, if all  five folds of items
    items, all pairs are edges  metrics judge pairs
    any other list              ten folds of items          five folds of items
    connected preferences (in   ten folds of edges          five folds of edges
    one part more than half)
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
    graph = task.graph
    for metric in metrics:
        if graph.item_weights is not None:
            metric.check_takes_weights()
        if graph.scores is None and metric.name not in PAIRWISE[:2]:
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a graph of explicit preferences; "
                "use scoring='disagreement' or 'concordance'."
            )
    if isinstance(cv, str) and cv not in ("auto", PAIR):
        raise ValueError(
            f"cv={cv!r} is unknown; use 'auto', '{PAIR}', None, a number of folds or a splitter."
        )
    if isinstance(cv, str):
        name, cv = _auto_cv(task, metrics) if cv == "auto" else (PAIR, None)
    elif cv is None:
        name = GROUP
    elif graph.n_units > 1:
        name = GROUPS
    else:
        name = EDGES if graph.scores is None else ITEMS
    if name == PAIR:
        return CrossValidationPlan(name, [])
    if name == EDGES:
        return CrossValidationPlan(name, edge_folds(cv, graph.n_pairs))
    folds = make_folds(cv, graph)
    if name == GROUPS and cuts_groups(folds, graph):
        name = ITEMS
    return CrossValidationPlan(name, folds)


def cuts_groups(folds: Folds, graph: PreferenceGraph) -> bool:
    """Whether two items of one group are in different folds, as with a KFold of items."""
    fold = fold_of_item(folds, graph.n_items)
    fold_of_group = np.zeros(graph.n_groups, dtype=np.intp)
    fold_of_group[graph.groups] = fold
    return bool((fold_of_group[graph.groups] != fold).any())


def _auto_cv(task: Any, metrics: Sequence[Any]) -> tuple[str, int | None]:
    """What "auto" holds out, and in how many folds."""
    graph = task.graph
    n_folds = REFIT_FOLDS if task.refits else EXACT_FOLDS
    if graph.scores is None and _is_mostly_connected(graph):
        return EDGES, min(n_folds, max(2, graph.n_pairs))
    if graph.n_units > 1:
        return (GROUPS, min(n_folds, graph.n_units)) if task.refits else (GROUP, None)
    is_small = FEWEST_FOR_PAIRS <= graph.n_items <= MOST_FOR_PAIRS
    if is_small and all(metric.name in PAIRWISE for metric in metrics) and task.has_pairs:
        return PAIR, None
    return ITEMS, min(n_folds, max(2, graph.n_items // 2))  # a pair in each


def _is_mostly_connected(graph: PreferenceGraph) -> bool:
    """Whether preferences are one unit, or more than half of them are in one component."""
    if graph.n_units < 2 or not isinstance(graph, PairGraph) or graph.has_groups:
        return graph.n_units < 2
    return bool(2 * np.bincount(graph.groups[graph.winner]).max() > graph.n_pairs)
