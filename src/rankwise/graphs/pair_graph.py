"""PairGraph: explicit preferences, one edge each."""

from __future__ import annotations

from typing import Any, NamedTuple

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


class EdgeArrays(NamedTuple):
    """Checked arrays of shape (n_edges,); see `PairGraph`."""

    winner: Indices
    loser: Indices
    magnitude: Array
    weight: Array

    def take(self, edges: NDArray[Any]) -> EdgeArrays:
        """Edges given by their numbers or by a mask."""
        return EdgeArrays(
            self.winner[edges], self.loser[edges], self.magnitude[edges], self.weight[edges]
        )


class PairGraph(PreferenceGraph):
    """Explicit preferences: item ``winner[k]`` beats item ``loser[k]`` by ``magnitude[k]``.

    Use it as y if items were compared two at a time. There may be several edges between two items,
    also in opposite directions ([RankRLS09] section 2.1: the preference graph is a multigraph).

    Parameters
    ----------
    winner, loser : array-like of int or str, shape (n_edges,)
        Row numbers of the items in X, or names: then the rows of X are the rows of `items`.
    magnitude : array-like of shape (n_edges,), default=None
        By how much the winner is preferred; 1 if None. Zero is a tie.
    weight : array-like of shape (n_edges,), default=None
        Positive weights of the edges; 1 if None.
    n_items : int, default=None
        Number of rows of X; the largest row number plus one if None.
    cost : {"magnitude", "sign", "relative"}, default="magnitude"
        "magnitude": f_winner − f_loser should be the magnitude (equation 21); "sign": it should be
        1, or 0 for a tie (equation 20); "relative": it should be the magnitude, and the weight is
        divided by the square of the magnitude (equation 22).
    groups : array-like of shape (n_items,), default=None
        Group labels of the items. Cross-validation holds out these groups, together with the edges
        between a held-out group and another group ([RankRLS09] section 3.3). If None, the connected
        components are the groups.
    group_weight : {"pairs", "groups"}, default="pairs"
        "pairs": edges have their weights; "groups": all groups have equal weight, and the weight of
        an edge is divided by the sum of the weights in the group of its winner ([RankRLS09] end of
        section 2.4).
    items : array-like of shape (n_items,), default=None
        Names of the items in the order of the rows of X. If winner and loser are names, None means
        their distinct names in increasing order.

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
        winner, loser, names = _replace_names(winner, loser, items)
        winner_index = _as_indices("winner", winner)
        loser_index = _as_indices("loser", loser)
        largest_index = int(max(winner_index.max(initial=-1), loser_index.max(initial=-1)))
        if n_items is None and names is not None:
            n_items = len(names)
        elif n_items is None:
            n_items = largest_index + 1
        n_items = check_int("n_items", n_items, "the number of rows of X")
        _check_edges(winner_index, loser_index, largest_index, n_items)
        if names is not None and len(names) != n_items:
            raise ValueError(f"there are {len(names)} items, but n_items is {n_items}.")
        encoded_groups = None
        if groups is not None:
            encoded_groups = encode_groups(groups, n_items)
        n_edges = len(winner_index)
        edges = EdgeArrays(
            winner_index,
            loser_index,
            _as_edge_values("magnitude", magnitude, n_edges),
            _as_edge_values("weight", weight, n_edges, positive=True),
        )
        self._set_attributes(edges, n_items, cost, encoded_groups, group_weight, names)
        if cost == "relative" and self.n_pairs and not 0 < self.total_weight < np.inf:
            raise ValueError(
                "cost='relative' divides weights by the squares of the magnitudes, and these "
                "overflow or vanish; drop ties, whose magnitude is 0, and multiply all magnitudes "
                "by one factor that brings them nearer to 1."
            )

    @classmethod
    def from_arrays(
        cls,
        edges: EdgeArrays,
        n_items: int,
        *,
        cost: str,
        groups: Groups | None,
        group_weight: str = "pairs",
        items: NDArray[Any] | None = None,
    ) -> PairGraph:
        """Make a graph of arrays and options that are checked already.

        Parameters
        ----------
        edges : EdgeArrays
            Winner, loser, magnitude and weight of each edge.
        n_items : int
            Number of items.
        cost, groups, group_weight, items
            As in `PairGraph`; groups are encoded.

        Returns
        -------
        PairGraph
            The graph.
        """
        graph = cls.__new__(cls)
        graph._set_attributes(edges, n_items, cost, groups, group_weight, items)
        return graph

    def _set_attributes(
        self,
        edges: EdgeArrays,
        n_items: int,
        cost: str,
        groups: Groups | None,
        group_weight: str,
        items: NDArray[Any] | None,
    ) -> None:
        self.winner = edges.winner
        self.loser = edges.loser
        self.magnitude = edges.magnitude
        self.weight = edges.weight
        self.n_items = n_items
        self.n_pairs = len(edges.winner)
        self.cost = cost
        self.group_weight = group_weight
        self.item_groups = groups
        self._items = items

    def __repr__(self) -> str:
        description = f"{self.n_items} items, {self.n_pairs} edges"
        if self.has_groups:
            description += f", {self.n_groups} groups"
        return f"<PairGraph of {description}>"

    @property
    def items(self) -> NDArray[Any]:
        """Names of the items; row numbers if the items have no names."""
        if self._items is None:
            return np.arange(self.n_items)
        return self._items

    @property
    def has_groups(self) -> bool:
        """Whether `groups` was passed; if not, the connected components are the groups."""
        return self.item_groups is not None

    @cached_property
    def edge_target(self) -> Array:
        """δ_k, the value that f_winner − f_loser should have."""
        if self.cost == "sign":
            return np.asarray(np.sign(self.magnitude))
        return self.magnitude

    @cached_property
    def preference_weight(self) -> Array:
        """ω_k without the division by ``cost="relative"``: the weight in evaluations."""
        if self.group_weight == "pairs":
            return self.weight
        group_of_edge = self.groups[self.winner]
        total_weight = np.bincount(group_of_edge, self.weight)
        return np.asarray(self.weight / total_weight[group_of_edge])

    @cached_property
    def edge_weight(self) -> Array:
        """ω_k."""
        if self.cost != "relative":
            return self.preference_weight
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            return np.asarray(self.preference_weight / self.magnitude**2)

    def subset(self, items: Indices) -> PairGraph:
        """The graph of these items and the edges between them; item ``items[k]`` becomes item k.

        Parameters
        ----------
        items : ndarray of int
            Row numbers of the items.

        Returns
        -------
        PairGraph
            A new graph.
        """
        new_number = np.full(self.n_items, -1)  # -1 for items outside the subset
        new_number[items] = np.arange(len(items))
        winner = new_number[self.winner]
        loser = new_number[self.loser]
        is_in_subset = (winner >= 0) & (loser >= 0)
        edges = EdgeArrays(winner, loser, self.magnitude, self.weight).take(is_in_subset)
        groups = self.item_groups
        if groups is not None:
            groups = groups.take(items)
        names = self._items
        if names is not None:
            names = names[items]
        return PairGraph.from_arrays(
            edges,
            len(items),
            cost=self.cost,
            groups=groups,
            group_weight=self.group_weight,
            items=names,
        )

    def with_edges(self, edges: NDArray[Any], factor: Array | None = None) -> PairGraph:
        """The graph of all items and the selected edges.

        Parameters
        ----------
        edges : ndarray of int or bool
            Numbers of the edges, or a mask.
        factor : ndarray of shape (n_edges,), optional
            Factors of the weights of all edges of this graph.

        Returns
        -------
        PairGraph
            A new graph.
        """
        weight = self.weight
        if factor is not None:
            weight = weight * factor
        all_edges = EdgeArrays(self.winner, self.loser, self.magnitude, weight)
        return PairGraph.from_arrays(
            all_edges.take(edges),
            self.n_items,
            cost=self.cost,
            groups=self.item_groups,
            group_weight=self.group_weight,
            items=self._items,
        )

    def pairs(self) -> PairGraph:
        """The graph itself.

        Returns
        -------
        PairGraph
            This graph.
        """
        return self

    @property
    def _edges(self) -> PairGraph:
        return self  # not cached, so that the graph has no reference to itself


def _check_edges(winner: Indices, loser: Indices, largest_index: int, n_items: int) -> None:
    if len(winner) != len(loser):
        raise ValueError(
            f"winner has {len(winner)} entries but loser has {len(loser)}; "
            "edge k says that winner[k] is preferred to loser[k]."
        )
    if largest_index >= n_items:
        raise ValueError(
            f"an edge names item {largest_index}, but n_items is {n_items}; items are numbered "
            "from 0 as the rows of X."
        )
    is_loop = winner == loser
    if is_loop.any():
        edge = int(np.argmax(is_loop))
        raise ValueError(f"edge {edge} prefers item {winner[edge]} to itself; drop or correct it.")


def _replace_names(
    winner: ArrayLike, loser: ArrayLike, items: ArrayLike | None
) -> tuple[ArrayLike, ArrayLike, NDArray[Any] | None]:
    """Row numbers in place of names, and the names; numbers are returned unchanged."""
    item_names = None
    if items is not None:
        item_names = np.asarray(items)
        if len(np.unique(item_names)) < len(item_names):
            raise ValueError("items contains a name twice; names of items must be distinct.")
    winner_names = np.asarray(winner)
    loser_names = np.asarray(loser)
    if not (_is_text(winner_names) and _is_text(loser_names)):
        return winner, loser, item_names
    if item_names is None:
        item_names = np.unique(np.r_[winner_names.astype(np.str_), loser_names.astype(np.str_)])
    compared_names = [*winner_names.tolist(), *loser_names.tolist()]
    rows = _rows_of_names(compared_names, item_names)
    n_edges = len(winner_names)
    return rows[:n_edges], rows[n_edges:], item_names


def _rows_of_names(compared_names: list[Any], item_names: NDArray[Any]) -> Indices:
    """Position in `item_names` of each name of `compared_names`."""
    row_of_name = {name: row for row, name in enumerate(item_names.tolist())}
    unknown_names = [name for name in compared_names if name not in row_of_name]
    if unknown_names:
        first_unknown = ", ".join(map(repr, unknown_names[:5]))
        raise ValueError(f"items does not contain {first_unknown}, which occur in winner or loser.")
    return np.array([row_of_name[name] for name in compared_names], dtype=np.intp)


def _is_text(values: NDArray[Any]) -> bool:
    if values.dtype == object:
        return any(isinstance(value, str) for value in values.tolist())
    return values.dtype.kind in "UT"


def _as_indices(name: str, values: ArrayLike) -> NDArray[np.intp]:
    array = np.asarray(as_array(values, name))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"{name} has dtype {array.dtype} and shape {array.shape}; expected a flat array of "
            "whole row numbers (encode item names first, e.g. with rankwise.datasets.read_pairs)."
        )
    is_invalid = (array < 0) | (array > np.iinfo(np.intp).max)
    if is_invalid.any():
        edge = int(np.argmax(is_invalid))
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
    if positive:
        is_valid = np.isfinite(array) & (array > 0)
        expected = "a positive number; drop the edge instead of setting its weight to 0"
    else:
        is_valid = np.isfinite(array) & (array >= 0)
        expected = "a number of at least 0; swap winner and loser to reverse the preference"
    if not is_valid.all():
        edge = int(np.argmin(is_valid))
        raise ValueError(f"{name}[{edge}] is {array[edge]}, expected {expected}.")
    if positive:
        return rescale_weights(name, array)
    return array
