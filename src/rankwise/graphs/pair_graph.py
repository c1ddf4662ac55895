"""PairGraph: explicit preferences, one edge each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.frames import as_array
from rankwise.graphs.base import PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.validation import check_float_array, check_int, check_option, rescale_weights

COSTS = ("magnitude", "sign", "relative")
GROUP_WEIGHTS = ("pairs", "groups")


class PairGraph(PreferenceGraph):
    """Explicit preferences: item ``winner[k]`` beats item ``loser[k]`` by ``magnitude[k]``.

    Use it as y if items were compared two at a time.

    Several edges between the same two items are fine, also in opposite directions
    ([RankRLS09] section 2.1: the preference graph is a multigraph).

    Parameters
    ----------
    winner, loser : array-like of int or str, shape (n_edges,)
        Row numbers of the items in X, or names: then the rows of X are those of `items`.
    magnitude : array-like of shape (n_edges,), optional
        By how much; 1 if not given. Zero states a tie.
    weight : array-like of shape (n_edges,), optional
        Importance of the edge, positive; 1 if not given.
    n_items : int, optional
        Number of rows of X; the largest index plus one if not given.
    cost : {"magnitude", "sign", "relative"}
        "magnitude": f_winner − f_loser should be the magnitude (equation 21); "sign": it should be
        1, or 0 for a tie (equation 20); "relative": the magnitude, with the weight divided by its
        square (equation 22).
    groups : array-like of shape (n_items,), optional
        Labels of the items. Cross-validation holds out these groups, and with them the edges
        that cross into others ([RankRLS09] section 3.3). By default connected components are
        groups.
    group_weight : {"pairs", "groups"}
        "pairs": every edge counts by its weight; "groups": every group counts alike, the weight of
        an edge is divided by the sum of the weights in its group, which is that of the winner
        ([RankRLS09] end of section 2.4).
    items : array-like of shape (n_items,), optional
        Names of the items in the order of the rows of X; if winner and loser are names, their
        distinct names in increasing order if not given.

    Examples
    --------
    >>> graph = PairGraph([0, 0, 1], [1, 2, 2], magnitude=[1, 2, 1])
    >>> graph.n_items, graph.n_pairs
    (3, 3)
    >>> graph.divergence
    array([ 3.,  0., -3.])
    >>> PairGraph(["Cleo", "Ann"], ["Ann", "Bob"]).items
    array(['Ann', 'Bob', 'Cleo'], dtype='<U4')
    """

    def __init__(
        self,
        winner: ArrayLike,
        loser: ArrayLike,
        magnitude: ArrayLike | None = None,
        weight: ArrayLike | None = None,
        n_items: int | None = None,
        *,
        cost: str = "magnitude",
        groups: ArrayLike | None = None,
        items: ArrayLike | None = None,
        group_weight: str = "pairs",
    ) -> None:
        check_option("cost", cost, COSTS)
        check_option("group_weight", group_weight, GROUP_WEIGHTS)
        winner, loser, names = _numbered(winner, loser, items)
        winner, loser = _as_indices("winner", winner), _as_indices("loser", loser)
        largest = int(max(winner.max(initial=-1), loser.max(initial=-1)))
        if n_items is None:
            n_items = largest + 1 if names is None else len(names)
        n_items = check_int("n_items", n_items, "the number of rows of X")
        _check_edges(winner, loser, largest, n_items)
        if names is not None and len(names) != n_items:
            raise ValueError(f"there are {len(names)} items, but n_items is {n_items}.")
        known = None if groups is None else encode_groups(groups, n_items)
        magnitude = _as_edge_values("magnitude", magnitude, len(winner))
        weight = _as_edge_values("weight", weight, len(winner), positive=True)
        options: Any = {"cost": cost, "group_weight": group_weight, "groups": known, "items": names}
        self._set(winner, loser, magnitude, weight, n_items, **options)
        if cost == "relative" and self.n_pairs and not 0 < self.total_weight < np.inf:
            raise ValueError(
                "cost='relative' divides weights by the squares of the magnitudes, and these "
                "overflow or vanish; drop ties, whose magnitude is 0, and bring the others nearer "
                "to 1 by one common factor."
            )

    def _set(
        self,
        winner: Indices,
        loser: Indices,
        magnitude: Array,
        weight: Array,
        n_items: int,
        *,
        cost: str,
        groups: Groups | None,
        group_weight: str = "pairs",
        items: NDArray[Any] | None = None,
    ) -> None:
        self.winner, self.loser, self.magnitude, self.weight = winner, loser, magnitude, weight
        self.n_items, self.n_pairs = n_items, len(winner)
        self.cost, self.group_weight = cost, group_weight
        self.known_groups, self._items = groups, items

    @classmethod
    def of(cls, *edges: Any, **options: Any) -> PairGraph:
        """The graph of arrays and options that were checked already: those of `_set`."""
        graph = cls.__new__(cls)
        graph._set(*edges, **options)
        return graph

    def __repr__(self) -> str:
        groups = f", {self.n_groups} groups" if self.has_groups else ""
        return f"<PairGraph of {self.n_items} items, {self.n_pairs} edges{groups}>"

    @property
    def items(self) -> NDArray[Any]:
        """Names of the items, their numbers if none were given."""
        return np.arange(self.n_items) if self._items is None else self._items

    @property
    def has_groups(self) -> bool:
        """Whether the items were given groups; if not, the connected components are groups."""
        return self.known_groups is not None

    @cached_property
    def edge_target(self) -> Array:
        """δ_k: what f_winner − f_loser should be."""
        return np.sign(self.magnitude) if self.cost == "sign" else self.magnitude

    @cached_property
    def preference_weight(self) -> Array:
        """ω_k before ``cost="relative"`` divides it: what a preference counts when it is judged."""
        if self.group_weight == "pairs":
            return self.weight
        group = self.groups[self.winner]
        return np.asarray(self.weight / np.bincount(group, self.weight)[group])

    @cached_property
    def edge_weight(self) -> Array:
        """ω_k."""
        if self.cost != "relative":
            return self.preference_weight
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return np.asarray(self.preference_weight / self.magnitude**2)

    def subset(self, items: Indices) -> PairGraph:
        """The graph of these items and the edges between them, numbered as given."""
        number = np.full(self.n_items, -1)
        number[items] = np.arange(len(items))
        winner, loser = number[self.winner], number[self.loser]
        kept = (winner >= 0) & (loser >= 0)
        graph = self.with_edges(kept)
        graph.winner, graph.loser, graph.n_items = winner[kept], loser[kept], len(items)
        if self.has_groups:
            present, codes = np.unique(self.groups[items], return_inverse=True)
            graph.known_groups = Groups(codes, self.group_labels[present])
        if self._items is not None:
            graph._items = self._items[items]
        return graph

    def with_edges(self, kept: NDArray[Any], factor: Array | None = None) -> PairGraph:
        """The graph of all items and some of the edges, given by their numbers or a mask.

        Weights are multiplied by the factor of each edge of this graph, if given.
        """
        weight = self.weight if factor is None else self.weight * factor
        return PairGraph.of(
            self.winner[kept],
            self.loser[kept],
            self.magnitude[kept],
            weight[kept],
            self.n_items,
            cost=self.cost,
            group_weight=self.group_weight,
            groups=self.known_groups,
            items=self._items,
        )

    def pairs(self) -> PairGraph:
        """The graph itself."""
        return self

    @property
    def _edges(self) -> PairGraph:
        return self  # not cached: no graph holds itself


def _check_edges(winner: Indices, loser: Indices, largest: int, n_items: int) -> None:
    if len(winner) != len(loser):
        raise ValueError(
            f"winner has {len(winner)} entries but loser has {len(loser)}; "
            "edge k says that winner[k] is preferred to loser[k]."
        )
    if largest >= n_items:
        raise ValueError(
            f"an edge names item {largest}, but n_items is {n_items}; items are numbered "
            "from 0 as the rows of X."
        )
    loops = winner == loser
    if loops.any():
        edge = int(np.argmax(loops))
        raise ValueError(f"edge {edge} prefers item {winner[edge]} to itself; drop or correct it.")


def _numbered(
    winner: ArrayLike, loser: ArrayLike, items: ArrayLike | None
) -> tuple[ArrayLike, ArrayLike, NDArray[Any] | None]:
    """Names as numbers; numbers stay what they are."""
    names = None if items is None else np.asarray(items)
    if names is not None and len(np.unique(names)) < len(names):
        raise ValueError("items has a label twice; every item needs its own.")
    ends = [np.asarray(winner), np.asarray(loser)]
    for end in ends:
        is_text = end.dtype == object and any(isinstance(entry, str) for entry in end.tolist())
        if end.dtype.kind not in "UT" and not is_text:
            return winner, loser, names
    if names is None:
        names = np.unique(np.concatenate([end.astype(np.str_) for end in ends]))
    place = {name: k for k, name in enumerate(names.tolist())}
    strange = [e for end in ends for e in end.tolist() if e not in place][:5]
    if strange:
        raise ValueError(
            f"items does not have {', '.join(map(repr, strange))}, which were compared."
        )
    one, two = (np.array([place[e] for e in end.tolist()], dtype=np.intp) for end in ends)
    return one, two, names


def _as_indices(name: str, values: ArrayLike) -> NDArray[np.intp]:
    array = np.asarray(as_array(values, name))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has dtype {array.dtype} and shape {array.shape}; expected a flat array of "
            "whole row numbers (encode item names first, e.g. with rankwise.datasets.read_pairs)."
        )
    bad = (array < 0) | (array > np.iinfo(np.intp).max)
    if bad.any():
        edge = int(np.argmax(bad))
        raise ValueError(
            f"{name}[{edge}] is {array[edge]}; items are numbered from 0 as the rows of X."
        )
    return array.astype(np.intp)


def _as_edge_values(
    name: str, values: ArrayLike | None, n_edges: int, positive: bool = False
) -> Array:
    if values is None:
        return np.ones(n_edges)
    array = check_float_array(name, values)
    if array.shape != (n_edges,):
        raise ValueError(
            f"{name} has shape {array.shape} but there are {n_edges} edges; pass one number for "
            "each edge."
        )
    bad = ~np.isfinite(array) | ((array <= 0) if positive else (array < 0))
    if bad.any():
        edge = int(np.argmax(bad))
        expected = "a number of at least 0; swap winner and loser to turn the preference round"
        if positive:
            expected = "a positive number; drop the edge instead of giving it no weight"
        raise ValueError(f"{name}[{edge}] is {array[edge]}, expected {expected}.")
    return rescale_weights(name, array) if positive else array
