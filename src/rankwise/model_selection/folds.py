"""Folds of groups, items and edges, and the choice of a cross-validation scheme."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import GroupKFold, KFold

from rankwise.arrays import CrossValidation, Splitter
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.groups import indices_by_group
from rankwise.metrics import Metric

Folds = list[NDArray[np.intp]]

Split = tuple[ArrayLike, ArrayLike]  # row numbers of a training and a test set

GROUP = "leave-group-out"  # each group in turn

PAIR = "leave-pair-out"  # each two items of one list in turn

GROUPS = "folds of groups"

ITEMS = "folds of items"  # of one list, or of groups that a splitter splits

EDGES = "folds of edges"  # of connected preferences

LATER = "later groups"  # models are trained on earlier groups

PAIRWISE = ("disagreement", "concordance", "auc")  # metrics that are defined for a held-out pair

FEWEST_FOR_PAIRS = 4  # items; fewer leave no pair to train on

MOST_FOR_PAIRS = 1500  # items; leave-pair-out is cubic in their number

EXACT_FOLDS = 10  # of cv="auto" if the folds have a shortcut

REFIT_FOLDS = 5  # of cv="auto" if every fold needs a refit


def make_folds(cv: CrossValidation, graph: PreferenceGraph) -> Folds:
    """Test sets of a cross-validation; every item is in exactly one.

    Parameters
    ----------
    cv : None, int, splitter or iterable of (train, test)
        None holds out one group at a time. A number is a number of folds of whole groups, or of
        items if there is only one group. Splitters and iterables work as in scikit-learn.
    graph : PreferenceGraph
        A splitter receives its scores and groups. The groups of explicit preferences are those
        of the `PairGraph`, or else its connected components.

    Returns
    -------
    list of ndarray of int
        Items of each fold.
    """
    if cv is None:
        return _one_group_folds(graph)
    if isinstance(cv, str):
        raise ValueError(
            f"cv={cv!r} is not supported; expected None, a number of folds, a splitter or its "
            "splits."
        )
    if isinstance(cv, int | np.integer):
        cv = _make_splitter(int(cv), graph)
    if not isinstance(cv, Splitter):
        return _check_splits(list(cv), graph.n_items)
    y = None
    if graph.has_relevance:
        y = graph.y
    X_without_values = np.empty((graph.n_items, 1))
    with warnings.catch_warnings():  # splitters that ignore groups warn
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        splits = list(cv.split(X_without_values, y, graph.groups))
    return _check_splits(splits, graph.n_items)


def _one_group_folds(graph: PreferenceGraph) -> Folds:
    """One fold for each group."""
    folds = indices_by_group(graph.groups)
    if len(folds) < 2:
        advice = "pass groups, hold out items with cv=10, or use leave_pair_out"
        if graph.hold_out_unit == "edges":
            advice = (
                "build the PairGraph with the groups of the items, or hold out edges with "
                "RankRLSCV(cv=10)"
            )
        raise ValueError(f"leave-group-out needs at least two groups, and there is one; {advice}.")
    return folds


def _make_splitter(n_folds: int, graph: PreferenceGraph) -> Splitter:
    """Splitter of scikit-learn for a number of folds of groups, or of items of one list."""
    has_groups = graph.n_groups > 1
    unit = "items"
    n_units = graph.n_items
    if has_groups:
        unit = "groups"
        n_units = graph.n_groups
    if not 2 <= n_folds <= n_units:
        raise ValueError(
            f"cv={n_folds}; expected 2 to {n_units} folds of the {n_units} {unit} "
            f"(n_samples = {graph.n_items})."
        )
    splitter: Splitter = KFold(n_folds, shuffle=True, random_state=0)
    if has_groups:
        splitter = GroupKFold(n_folds)
    return splitter


def read_splits(cv: CrossValidation) -> CrossValidation:
    """Turn an iterable of splits into a list, so that it can be read more than once."""
    if isinstance(cv, Iterable) and not isinstance(cv, str | Splitter):
        return list(cv)
    return cv


def fold_of_item(folds: Folds, n_items: int) -> NDArray[np.intp]:
    """Number of the fold of each item, −1 for items that are in no fold."""
    fold_numbers = np.full(n_items, -1, dtype=np.intp)  # −1: in no fold
    for number, items in enumerate(folds):
        fold_numbers[items] = number
    return fold_numbers


def _check_splits(splits: list[Split], n_items: int, unit: str = "items") -> Folds:
    """Test sets of the splits, after a check that they partition the items."""
    folds: Folds = []
    all_items = np.arange(n_items)
    for k, (train, test) in enumerate(splits):
        train_items = _item_numbers(train)
        test_items = _item_numbers(test)
        used_items = np.sort(np.concatenate([train_items, test_items]))
        if not np.array_equal(used_items, all_items):
            raise ValueError(
                f"fold {k} of cv must train on exactly the {unit} that it does not hold out; it "
                f"trains on {len(train_items)} and holds out {len(test_items)} of {n_items}."
            )
        folds.append(np.sort(test_items).astype(np.intp))
    held_out_items = np.sort(np.concatenate(folds))
    if not np.array_equal(held_out_items, all_items):
        raise ValueError(
            f"cv must hold out each of the {n_items} {unit} once (as KFold and GroupKFold do, and "
            "ShuffleSplit does not)."
        )
    return folds


def _item_numbers(items: ArrayLike) -> NDArray[np.intp]:
    """Numbers of items from numbers or from a boolean mask."""
    numbers_or_mask = np.asarray(items)
    if numbers_or_mask.dtype == bool:
        return np.flatnonzero(numbers_or_mask)
    return numbers_or_mask


def edge_folds(cv: CrossValidation, n_edges: int) -> Folds:
    """Folds of the edges: a number of random ones, or those of a splitter or of splits."""
    if isinstance(cv, Splitter) and not isinstance(cv, str):  # a str has a method split, too
        cv = cv.split(np.empty((n_edges, 1)))
    if isinstance(cv, Iterable) and not isinstance(cv, str):
        return _check_splits(list(cv), n_edges, "edges")
    if not isinstance(cv, int | np.integer) or not 2 <= int(cv) <= n_edges:
        raise ValueError(
            f"cv={cv!r}: all comparisons form one connected graph, so cv must be a number of folds "
            f"over edges, from 2 to {n_edges}, or splits of them. Build the PairGraph with the "
            "groups of the items to hold out groups."
        )
    n_folds = int(cv)
    fold_of_edge = np.random.default_rng(0).permutation(n_edges) % n_folds
    return [np.flatnonzero(fold_of_edge == fold) for fold in range(n_folds)]


class CrossValidationPlan(NamedTuple):
    """Cross-validation scheme and its folds.

    Attributes
    ----------
    scheme : str
        "leave-group-out", "leave-pair-out", "folds of groups", "folds of items" (of one list, or
        if a splitter assigns items of one group to different folds) or "folds of edges".
    folds : list of ndarray of int
        Items, or edges, that are held out together; empty for leave-pair-out.
    """

    scheme: str
    folds: Folds


class CrossValidatedTask(Protocol):
    """The part of a hold-out task that decides about the folds; see `HoldOutTask`."""

    graph: PreferenceGraph
    refits: bool

    @property
    def has_pairs(self) -> bool:
        """Whether leave-pair-out has a shortcut."""
        ...


def resolve_cv(
    task: CrossValidatedTask, cv: CrossValidation, metrics: Sequence[Metric]
) -> CrossValidationPlan:
    """Cross-validation scheme and folds for a learner and its data.

    With "auto":

    ==========================  ==========================  ===============================
    data                        folds have a shortcut       folds are refitted
    ==========================  ==========================  ===============================
    several groups              one group at a time         five folds of groups
    one list, up to 1,500       every pair in turn, if all  five folds of items
    items, all pairs are edges  metrics are pairwise
    any other list              ten folds of items          five folds of items
    connected preferences       ten folds of edges          five folds of edges
    (more than half of the
    edges in one component)
    ==========================  ==========================  ===============================

    Parameters
    ----------
    task : HoldOutTask
        The learner and its data.
    cv : "auto", "leave-pair-out", None, int, splitter or iterable
        None holds out one group at a time. A number is a number of folds of groups, of items if
        there is one list, or of edges if there are connected preferences without groups.
    metrics : sequence of Metric
        Metrics of the held-out data.

    Returns
    -------
    CrossValidationPlan
        Name of the scheme and the folds.
    """
    graph = task.graph
    _check_metrics(metrics, graph)
    if isinstance(cv, str) and cv not in ("auto", PAIR):
        raise ValueError(
            f"cv={cv!r} is unknown; use 'auto', '{PAIR}', None, a number of folds or a splitter."
        )
    # What is held out together: the items of a group or a pair, or a fold of groups, items or edges
    if cv == "auto":
        scheme, cv = _auto_cv(task, metrics)
    elif cv == PAIR:
        scheme = PAIR
    elif cv is None:
        scheme = GROUP
    elif graph.n_units > 1:  # groups, or components of a graph of edges
        scheme = GROUPS
    elif graph.hold_out_unit == "items":
        scheme = ITEMS
    else:  # hold_out_unit == "edges"
        scheme = EDGES
    if scheme == PAIR:
        return CrossValidationPlan(PAIR, [])
    if scheme == EDGES:
        return CrossValidationPlan(EDGES, edge_folds(cv, graph.n_pairs))
    folds = make_folds(cv, graph)
    if scheme == GROUPS and splits_a_group(folds, graph):
        return CrossValidationPlan(ITEMS, folds)
    return CrossValidationPlan(scheme, folds)


def _check_metrics(metrics: Sequence[Metric], graph: PreferenceGraph) -> None:
    """Raise a ValueError for a metric that cannot be evaluated on the graph."""
    for metric in metrics:
        if graph.item_weights is not None:
            metric.check_accepts_weights()
        if not graph.supports_metric(metric.name):
            raise ValueError(
                f"scoring={metric.name!r} needs scores, but y is a {type(graph).__name__}, which "
                "has preferences only; use scoring='disagreement' or 'concordance'."
            )


def splits_a_group(folds: Folds, graph: PreferenceGraph) -> bool:
    """Whether items of one group are in different folds, as with a KFold of items."""
    fold_of_items = fold_of_item(folds, graph.n_items)
    # The fold of one item of each group; another item may be in another fold
    one_fold_of_group = np.zeros(graph.n_groups, dtype=np.intp)
    one_fold_of_group[graph.groups] = fold_of_items
    is_in_other_fold = fold_of_items != one_fold_of_group[graph.groups]
    return bool(is_in_other_fold.any())


def _auto_cv(task: CrossValidatedTask, metrics: Sequence[Metric]) -> tuple[str, int | None]:
    """Scheme of cv="auto", and the number of folds or None."""
    graph = task.graph
    n_folds = EXACT_FOLDS
    if task.refits:  # for each fold, so fewer folds
        n_folds = REFIT_FOLDS
    if graph.hold_out_unit == "edges" and _is_mostly_connected(graph):
        return EDGES, min(n_folds, max(2, graph.n_pairs))

    # Several groups: each in turn if that needs no refits
    if graph.n_units > 1 and task.refits:
        return GROUPS, min(n_folds, graph.n_units)
    if graph.n_units > 1:
        return GROUP, None

    # One list: each pair in turn if there is a shortcut and the list is small, otherwise folds
    is_small = FEWEST_FOR_PAIRS <= graph.n_items <= MOST_FOR_PAIRS
    are_pairwise = all(metric.name in PAIRWISE for metric in metrics)
    if is_small and are_pairwise and task.has_pairs:
        return PAIR, None
    most_folds_with_a_pair = max(2, graph.n_items // 2)
    return ITEMS, min(n_folds, most_folds_with_a_pair)


def _is_mostly_connected(graph: PreferenceGraph) -> bool:
    """Whether the preferences are one unit, or more than half of them are in one component."""
    if graph.n_units < 2:
        return True
    if not isinstance(graph, PairGraph) or graph.has_groups:
        return False
    # Without groups of the user, groups are connected components: has one of them most edges?
    n_edges_of_component = np.bincount(graph.groups[graph.winner])
    return bool(2 * n_edges_of_component.max() > graph.n_pairs)
