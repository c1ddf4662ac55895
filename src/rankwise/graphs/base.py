"""PreferenceGraph, the base class of graphs, and PairGraph, the list of a graph's edges.

They are in one module because they depend on each other: every graph lists its edges as a
PairGraph, and the base class derives everything else from that list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.edges import COSTS, GROUP_WEIGHTS, EdgeArrays, read_edges
from rankwise.graphs.laplacian_roots import CholeskyRoot, GraphRoot
from rankwise.groups import Groups, encode_groups
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_option, check_weights

PREFERENCE_METRICS = ("disagreement", "concordance")
"""Metrics that need preferences between items only, not a relevance of each item."""

SYSTEM_BLOCK_ENTRIES = 2**24


class PreferenceGraph(ABC):
    """Weighted preferences between items.

    With edges k = (i → j), magnitudes δ_k and weights ω_k:

        L = Σ ω_k (e_i − e_j)(e_i − e_j)ᵀ,      d = Σ ω_k δ_k (e_i − e_j)

    [RankRLS09] section 2.3, where L = M Mᵀ and d = M N.

    A subclass lists its edges in `pairs` and inherits everything else. A subclass that can compute
    L and d without the list overrides the slow methods: first `laplacian` and `divergence`, from
    which `gram` and `system` follow. A graph of items with relevance sets `has_relevance` and `y`.
    """

    cost = "magnitude"
    ties = "include"
    group_weight = "pairs"

    has_relevance: bool = False
    """Whether the items have scores `y` that order both items of every edge."""

    y: Array
    """Relevance of the items, (n_items,) or (n_items, n_outputs); only with `has_relevance`."""

    item_weights: Array | None = None
    """Weights of the items, the diagonal of D; None if all are 1."""

    is_complete: bool = False
    """Whether all pairs of items are edges of magnitude y_i − y_j."""

    @abstractmethod
    def pairs(self) -> PairGraph:
        """List the edges; the groups of the items, if any, are passed on.

        Returns
        -------
        PairGraph
            A graph with the same edges, as arrays.
        """

    @cached_property
    def _edges(self) -> PairGraph:
        return self.pairs()

    @cached_property
    def n_items(self) -> int:
        """Number of items."""
        return self._edges.n_items

    @cached_property
    def n_pairs(self) -> int:
        """Number of edges."""
        return self._edges.n_pairs

    @cached_property
    def _groups(self) -> Groups:
        """Groups that were passed; otherwise the connected components."""
        if self._edges.item_groups is not None:  # groups were passed
            return self._edges.item_groups
        return Groups(self.components, np.unique(self.components))  # connected components

    @cached_property
    def groups(self) -> Indices:
        """Number of the group of each item; cross-validation holds out groups as a whole."""
        return self._groups.codes

    @cached_property
    def group_labels(self) -> NDArray[Any]:
        """Labels of the groups; numbers for connected components."""
        return self._groups.labels

    @cached_property
    def n_groups(self) -> int:
        """Number of groups, including groups without edges."""
        return self._groups.n_groups

    @cached_property
    def n_units(self) -> int:
        """Number of groups that were passed; otherwise of connected components with an edge."""
        if self._edges.has_groups:
            return self.n_groups
        component_sizes = np.bincount(self.components)  # a component of one item has no pairs
        return int((component_sizes > 1).sum())

    def sampling_order(self) -> Indices | None:
        """Order of the items in which every k-th item is a sample with typical pairs.

        None if few pairs would remain in such a sample, as for explicit edges.

        Returns
        -------
        ndarray of int, shape (n_items,), or None
            Row numbers.
        """
        return None

    @property
    def hold_out_unit(self) -> str:
        """Held-out unit of cross-validation if there is one group: "items" or "edges".

        "edges" if the edges are passed explicitly, "items" if they follow from values of the items.
        """
        if self.has_relevance:
            return "items"
        return "edges"

    def supports_metric(self, name: str) -> bool:
        """Whether a metric of this name can be evaluated: most metrics need relevance.

        Parameters
        ----------
        name : str
            Name of a metric, without a cut-off.

        Returns
        -------
        bool
            True if the graph has the data that the metric requires.
        """
        return self.has_relevance or name in PREFERENCE_METRICS

    @cached_property
    def total_weight(self) -> float:
        """W = Σ ω_k."""
        return float(self._edges.edge_weight.sum())

    @property
    def squared_magnitude(self) -> float:
        """Σ ω_k δ_k², over all outputs."""
        edges = self._edges
        with np.errstate(over="ignore"):
            return float(edges.edge_weight @ edges.edge_target**2)

    @cached_property
    def divergence(self) -> Array:
        """The vector d; one column per output where the graph holds several."""
        edges = self._edges
        # flows from losers to winners: inflow minus outflow of each item
        flow = edges.edge_weight * edges.edge_target  # ω δ, from the loser to the winner
        inflow = np.bincount(edges.winner, flow, self.n_items)
        outflow = np.bincount(edges.loser, flow, self.n_items)
        return np.asarray(inflow - outflow)

    @cached_property
    def laplacian_matrix(self) -> sp.csr_matrix:
        """L as a sparse matrix."""
        edges = self._edges
        i = edges.winner
        j = edges.loser
        weight = edges.edge_weight
        # an edge adds −ω at (i, j) and (j, i), and ω at (i, i) and (j, j)
        rows = np.r_[i, j, i, j]
        columns = np.r_[j, i, i, j]
        values = np.r_[-weight, -weight, weight, weight]
        shape = (self.n_items, self.n_items)
        return sp.coo_matrix((values, (rows, columns)), shape=shape).tocsr()

    @property
    def degrees(self) -> Array:
        """Total weight of the edges of each item: the diagonal of L."""
        return np.asarray(self.laplacian_matrix.diagonal())

    @cached_property
    def components(self) -> Indices:
        """Number of the connected component of each item."""
        edges = self._edges
        shape = (self.n_items, self.n_items)
        adjacency = sp.coo_matrix((np.ones(self.n_pairs), (edges.winner, edges.loser)), shape=shape)
        _, component_of_item = connected_components(adjacency, directed=False)
        return np.asarray(component_of_item, dtype=np.intp)

    def laplacian(self, V: Array) -> Array:
        """``L V`` for V of shape (n_items,) or (n_items, k).

        Parameters
        ----------
        V : ndarray of shape (n_items,) or (n_items, k)
            Vectors.

        Returns
        -------
        ndarray
            The product, of the shape of V.
        """
        return np.asarray(self.laplacian_matrix @ V)

    def gram(self, R: Any) -> Array:
        """``Rᵀ L R`` for dense or sparse R of shape (n_items, p).

        Parameters
        ----------
        R : ndarray or sparse matrix of shape (n_items, p)
            A matrix with one row per item.

        Returns
        -------
        ndarray of shape (p, p)
            The product.
        """
        no_targets = np.empty((self.n_items, 0))  # of Rᵀ t, which is not needed
        gram, _ = self.system(R, no_targets)
        return gram

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``, a block of columns at a time: sparse R is never densified.

        L maps constants to zero, so each column is centered first: columns with a large offset lose
        no digits. Rows that are computed when they are indexed are stored here.

        Parameters
        ----------
        R : ndarray or sparse matrix of shape (n_items, p)
            A matrix with one row per item.
        t : ndarray of shape (n_items,) or (n_items, k)
            Right side.

        Returns
        -------
        tuple of ndarray
            ``Rᵀ L R`` of shape (p, p), and ``Rᵀ t``.
        """
        # Rᵀ L R and Rᵀ t, with the Laplacian L of the graph
        n_items, n_columns = R.shape
        if not isinstance(R, np.ndarray) and not sp.issparse(R):  # rows computed when indexed
            check_matrix_fits(
                n_items, n_columns, "the features of all items", "use a smaller n_basis"
            )
            R = R[:]
        gram = np.empty((n_columns, n_columns))
        block_columns = max(1, min(n_columns, SYSTEM_BLOCK_ENTRIES // max(1, n_items)))
        for start in range(0, n_columns, block_columns):
            columns = slice(start, start + block_columns)
            block = R[:, columns]
            if sp.issparse(block):
                block = block.toarray()
            # L maps constants to zero; without the mean fewer digits cancel
            centered = block - block.mean(axis=0, dtype=np.float64)
            gram[:, columns] = R.T @ self.laplacian(centered)
        symmetric_gram = 0.5 * (gram + gram.T)  # exactly, in spite of rounding
        return symmetric_gram, np.asarray(R.T @ t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for each column r of sparse R.

        Parameters
        ----------
        R : sparse matrix of shape (n_items, p)
            Columns.

        Returns
        -------
        ndarray of shape (p,)
            Squared norms.
        """
        # rᵀ L r of each column r
        product = self.laplacian_matrix @ R
        return np.asarray(R.multiply(product).sum(axis=0)).ravel()

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``, D the weights of the items.

        Parameters
        ----------
        scale : float, default=1.0
            Factor of the Laplacian.
        shift : float, default=0.0
            Factor of the weights of the items.

        Returns
        -------
        GraphRoot
            F, as products with vectors.
        """
        # F with F Fᵀ = scale L + shift D, for the Laplacian L and the item weights D
        weight = self.item_weights
        if weight is None:
            weight = np.ones(self.n_items)
        return CholeskyRoot(scale * self.laplacian_matrix, shift * weight, self.components)

    def weighted(self, sample_weight: ArrayLike) -> PreferenceGraph:
        """The graph with the weight of each edge multiplied by the weights of both of its items.

        Edges of weight 0 are dropped.

        Parameters
        ----------
        sample_weight : array-like of shape (n_items,)
            Weights of the items.

        Returns
        -------
        PreferenceGraph
            A new graph.
        """
        edges = self._edges
        weight_of_item = check_weights(sample_weight, self.n_items)
        factor = weight_of_item[edges.winner] * weight_of_item[edges.loser]  # of each edge
        has_weight = factor > 0
        return edges.with_edges(has_weight, factor)

    def subset(self, items: Indices) -> PreferenceGraph:
        """The graph of these items and the edges between them; item ``items[k]`` becomes item k.

        Parameters
        ----------
        items : ndarray of int
            Row numbers of the items.

        Returns
        -------
        PreferenceGraph
            A new graph.
        """
        return self._edges.subset(items)

    def permuted(self, items: Indices) -> PreferenceGraph:
        """The graph in which item k has the relevance of item ``items[k]``; weights stay.

        For graphs that follow from values of the items; `items` is a permutation inside groups.

        Parameters
        ----------
        items : ndarray of int, shape (n_items,)
            A permutation inside the groups.

        Returns
        -------
        PreferenceGraph
            A new graph.
        """
        raise ValueError(
            f"y is a {type(self).__name__}; a permutation test needs scores of items; pass scores."
        )

    def disagreement(
        self, F: NDArray[Any], fold: Indices | None = None, *, pooled: bool = False
    ) -> Array:
        """Weighted share of the strict preferences in each group that F misorders.

        An edge belongs to the group of its winner.

        Parameters
        ----------
        F : ndarray of shape (n_items,) or (n_items, k)
            Predicted scores; a pair with equal scores counts as one half.
        fold : ndarray of shape (n_items,), default=None
            Number of the fold of each item. Only pairs inside a fold are counted, because other
            pairs would compare the predictions of two models.
        pooled : bool, default=False
            Return one share for all groups, in a single row.

        Returns
        -------
        ndarray of shape (n_groups,) or (n_groups, k)
            NaN for a group without counted pairs.
        """
        # weighted share of pairs in the wrong order, for each group and each column of scores
        edges = self._edges
        is_counted = edges.magnitude > 0
        if fold is not None:
            is_counted &= fold[edges.winner] == fold[edges.loser]
        winner = edges.winner[is_counted]
        loser = edges.loser[is_counted]
        weight = edges.preference_weight[is_counted]
        n_rows = 1  # of the result: all groups pooled, or one for each group
        row_of_edge = np.zeros(len(winner), dtype=np.intp)
        if not pooled:
            n_rows = edges.n_groups
            row_of_edge = edges.groups[winner]

        total_weight = np.bincount(row_of_edge, weight, n_rows)
        score_columns = F.reshape(len(F), -1)
        shares = np.full((n_rows, score_columns.shape[1]), np.nan)
        for column, scores in enumerate(score_columns.T):
            margin = scores[winner] - scores[loser]
            error = (margin < 0) + 0.5 * (margin == 0)  # equal scores are half an error
            wrong_weight = np.bincount(row_of_edge, weight * error, n_rows)
            np.divide(wrong_weight, total_weight, out=shares[:, column], where=total_weight > 0)
        return shares.reshape(n_rows, *F.shape[1:])

    def describe(self) -> GraphDescription:
        """Count the items, groups and edges of the graph.

        Returns
        -------
        GraphDescription
            Counts, which `print` shows as text.
        """
        edges = self._edges
        winner_group = self.groups[edges.winner]
        is_inside_group = winner_group == self.groups[edges.loser]  # edges may join two groups
        n_groups_with_pairs = len(np.unique(winner_group[is_inside_group]))
        component_sizes = np.bincount(self.components)
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=int((edges.magnitude == 0).sum()),
            n_groups_without_pairs=self.n_groups - n_groups_with_pairs,
            n_isolated_items=int((component_sizes == 1).sum()),
            total_weight=self.total_weight,
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
        Margin of the preference; 1 if None. Zero is a tie.
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
        edges, n_items, item_names = read_edges(winner, loser, magnitude, weight, n_items, items)
        item_groups = None
        if groups is not None:
            item_groups = encode_groups(groups, n_items)
        self._set_attributes(edges, n_items, cost, item_groups, group_weight, item_names)
        if cost == "relative" and self.n_pairs and not 0 < self.total_weight < np.inf:
            raise ValueError(
                "cost='relative' divides weights by the squares of the magnitudes, and these "
                "overflow or underflow; drop ties, whose magnitude is 0, and multiply all "
                "magnitudes by one factor that brings them nearer to 1."
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
        """Make a graph from arrays and options that were validated before.

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
            return np.asarray(np.sign(self.magnitude))  # 1, or 0 for a tie
        return self.magnitude

    @cached_property
    def preference_weight(self) -> Array:
        """ω_k without the division by ``cost="relative"``: the weight in evaluations."""
        if self.group_weight == "pairs":
            return self.weight
        group_of_edge = self.groups[self.winner]
        total_weight = np.bincount(group_of_edge, self.weight)  # of the edges of each group
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


class GraphDescription(NamedTuple):
    """Counts of a preference graph; prints as a small table.

    Attributes
    ----------
    n_items, n_groups, n_pairs : int
        Items, groups (connected components for explicit pairs) and edges.
    n_tied_pairs : int
        Pairs of equal score inside groups, whether or not they are edges; for explicit pairs, edges
        of magnitude zero.
    n_groups_without_pairs : int
        Groups in which no item is preferred to another.
    n_isolated_items : int
        Items that are in no pair.
    total_weight : float
        Sum of the weights of the edges.
    """

    n_items: int
    n_groups: int
    n_pairs: int
    n_tied_pairs: int
    n_groups_without_pairs: int
    n_isolated_items: int
    total_weight: float

    def __str__(self) -> str:
        lines = []
        for field, value in self._asdict().items():
            name = field.removeprefix("n_").replace("_", " ")
            lines.append(f"{name:<22}{value:,.15g}")
        return "\n".join(lines)
