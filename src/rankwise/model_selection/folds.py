"""Which items are held out together: folds from a splitter, a number, groups or components."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold

from rankwise.graphs import PreferenceGraph
from rankwise.graphs.roots import items_of_components

Folds = list[NDArray[np.intp]]


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
        folds = items_of_components(labels)
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
            raise ValueError(f"cv={cv}; expected 2 to {n_units} folds of the {n_units} {unit}.")
        cv = GroupKFold(cv) if n_groups > 1 else KFold(cv, shuffle=True, random_state=0)
    return _check_splits(_splits(cv, graph), graph.n_items)


def read_splits(cv: Any) -> Any:
    """The same with splits in a list, so that they can be read for each model and each output."""
    is_plain = hasattr(cv, "__iter__") and not hasattr(cv, "split")  # a text has both
    return list(cv) if is_plain else cv


def fold_numbers(folds: Folds, n_items: int) -> NDArray[np.intp]:
    """For each item the number of its fold, −1 for items of none."""
    numbers = np.full(n_items, -1, dtype=np.intp)
    if folds:
        sizes = [len(U) for U in folds]
        numbers[np.concatenate(folds)] = np.repeat(np.arange(len(folds)), sizes)
    return numbers


def _splits(cv: Any, graph: PreferenceGraph) -> list[Any]:
    if not hasattr(cv, "split"):
        return list(cv)
    with warnings.catch_warnings():
        # one call serves splitters that know groups and those that say that they do not
        warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
        return list(cv.split(np.empty((graph.n_items, 1)), graph.scores, graph.groups))


def _check_splits(splits: list[Any], n_items: int) -> Folds:
    folds: Folds = []
    owner = np.full(n_items, -1)
    for k, (train, test) in enumerate(splits):
        train, test = (_as_positions(part, n_items) for part in (train, test))
        if len(np.intersect1d(train, test)):
            raise ValueError(f"fold {k} of cv trains on items that it holds out.")
        if len(train) + len(test) != n_items:
            raise ValueError(
                f"fold {k} of cv trains on {len(train)} and holds out {len(test)} of {n_items} "
                "items; it must train on all items that it does not hold out."
            )
        if (owner[test] >= 0).any():
            raise ValueError(f"folds {owner[test].max()} and {k} of cv overlap: they share items.")
        owner[test] = k
        folds.append(test)
    if (owner < 0).any():
        raise ValueError(
            f"cv never holds out {int((owner < 0).sum())} of the {n_items} items; every item must "
            "be in one test set (as KFold and GroupKFold do, and ShuffleSplit does not)."
        )
    return folds


def _as_positions(part: Any, n_items: int) -> NDArray[np.intp]:
    array = np.asarray(part)
    if array.dtype == bool:
        return np.flatnonzero(array)
    positions: NDArray[np.intp] = np.unique(array.astype(np.intp))
    if len(positions) != len(array) or (
        len(array) and not 0 <= positions[0] <= positions[-1] < n_items
    ):
        raise ValueError(f"cv gives item numbers that repeat or are not in 0..{n_items - 1}.")
    return positions
