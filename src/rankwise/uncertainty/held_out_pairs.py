"""Pairs of known order, and what a model that was trained without them says of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.model_selection.folds import Folds
from rankwise.uncertainty.left_out import LeftOut
from rankwise.uncertainty.standard_errors import Jackknife

FEWEST, MOST = 4, 1500  # items of a list of which every pair is held out in turn
N_FOLDS = 10


class JudgedPairs(NamedTuple):
    """Held-out pairs, the better item first.

    Attributes
    ----------
    first, second : ndarray of int, shape (n_pairs,)
        Rows of X.
    difference : ndarray of shape (n_pairs,)
        Score of the first less that of the second, by a model trained without both, or without
        their comparison.
    error : ndarray of shape (n_pairs,)
        Standard error of the difference as a new pair would have it: the changes by the units of
        the pair itself are not in the sum.
    """

    first: Indices
    second: Indices
    difference: Array
    error: Array


def judged_pairs(
    left: LeftOut, found: Jackknife, X: Any, n_pairs: int, rng: np.random.Generator
) -> JudgedPairs:
    """At most `n_pairs` pairs of different score, drawn at random from those held out together.

    Those are the pairs inside a group that are inside a unit, too. Where the units are the items of
    one list, every pair is held out in turn, or ten folds of the items for long lists.
    """
    graph, members = left.graph, left.units.members
    if left.units.of_edges:
        pairs, owner = graph.pairs(), _owners(members, graph.n_pairs)
        chosen = _some(np.flatnonzero(pairs.magnitude > 0), n_pairs, rng)
        first, second, owners = pairs.winner[chosen], pairs.loser[chosen], [owner[chosen]]
        _check_some(first, left.units.kind)
        difference = left.own_margins(X)[chosen]
    else:
        owner = _owners(members, graph.n_items)
        is_list = left.coefficients is not None and max(map(len, members)) == 1
        folds = _folds_of_list(graph.n_items, left.has_pairs, rng) if is_list else owner
        first, second = _weighty(graph, *_strict_pairs(graph, folds, n_pairs, rng))
        _check_some(first, left.units.kind)
        held = left.list_differences(first, second, folds) if is_list else None
        scores = left.own_scores(X) if held is None else np.empty(0)
        difference = scores[first] - scores[second] if held is None else held
        owners = [owner[first], owner[second]] if is_list else [owner[first]]
    error = found.predict_difference(X, first, second).error
    n = len(members)
    own = sum((left.changes(X, first, second, unit) ** 2 for unit in owners), np.zeros(len(first)))
    kept = max(1, n - len(owners))
    rest = np.maximum(n / (n - 1) * error**2 - own, 0.0)
    return JudgedPairs(first, second, difference, np.sqrt((kept - 1) / kept * rest))


def _check_some(first: Indices, kind: str) -> None:
    if not len(first):
        raise ValueError(
            "no pair of items with different scores is held out as a whole, so probabilities "
            f"cannot be fitted; leave out other units than {kind} (units=...), or give more data."
        )


def _weighty(graph: PreferenceGraph, first: Indices, second: Indices) -> tuple[Indices, Indices]:
    """The pairs of which both items have a weight."""
    weight = getattr(graph, "item_weights", None)
    if weight is None or weight.all():
        return first, second
    kept = (weight[first] > 0) & (weight[second] > 0)
    return first[kept], second[kept]


def _owners(members: Folds, size: int) -> Indices:
    owner = np.full(size, -1, dtype=np.intp)
    for k, some in enumerate(members):
        owner[some] = k
    return owner


def _folds_of_list(n_items: int, has_pairs: bool, rng: np.random.Generator) -> Indices:
    """One fold if every pair can be held out in turn, else ten."""
    if n_items < FEWEST:
        raise ValueError(
            f"one list of {n_items} items has no pair that can be held out: at least {FEWEST} "
            "items are needed."
        )
    if has_pairs and n_items <= MOST:
        return np.zeros(n_items, dtype=np.intp)
    return np.asarray(rng.permutation(n_items) % max(2, min(N_FOLDS, n_items // 2)), np.intp)


def _some(numbers: Indices, n: int, rng: np.random.Generator) -> Indices:
    return numbers if len(numbers) <= n else rng.choice(numbers, n, replace=False)


def _strict_pairs(
    graph: PreferenceGraph, fold: Indices, n: int, rng: np.random.Generator
) -> tuple[Indices, Indices]:
    """Pairs of one group and fold, the preferred item first; all of them if there are few."""
    if graph.scores is None:
        pairs = graph.pairs()
        inside = (fold[pairs.winner] == fold[pairs.loser]) & (fold[pairs.winner] >= 0)
        chosen = _some(np.flatnonzero(inside & (pairs.magnitude > 0)), n, rng)
        return pairs.winner[chosen], pairs.loser[chosen]
    y = np.asarray(graph.scores).reshape(graph.n_items)
    kept = np.flatnonzero(fold >= 0)
    _, cell = np.unique(graph.groups[kept] * (fold.max() + 1) + fold[kept], return_inverse=True)
    order = kept[np.argsort(cell, kind="stable")]
    sizes = np.bincount(cell)
    starts = np.cumsum(sizes) - sizes
    n_pairs = sizes * (sizes - 1) // 2
    if n_pairs.sum() <= 4 * n:
        ends = zip(sizes, starts, strict=True)
        found = [np.stack(np.triu_indices(size, 1)) + start for size, start in ends]
        a, b = order[np.concatenate(found, axis=1)]
    else:
        at = rng.choice(len(sizes), 6 * n, p=n_pairs / n_pairs.sum())
        a = rng.integers(sizes[at])
        b = (a + 1 + rng.integers(sizes[at] - 1)) % sizes[at]
        a, b = np.sort(order[np.stack([a, b]) + starts[at]], axis=0)
        a, b = np.divmod(np.unique(a * graph.n_items + b), graph.n_items)
    strict = _some(np.flatnonzero(y[a] != y[b]), n, rng)
    a, b = a[strict], b[strict]
    swap = y[a] < y[b]
    return np.where(swap, b, a), np.where(swap, a, b)
