"""PreferenceGraph: what every preference graph offers, derived from the list of its edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.csgraph import connected_components

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.laplacian_roots import CholeskyRoot, GraphRoot
from rankwise.groups import Groups
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_weights

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph
    from rankwise.graphs.violated_pairs import EdgePairs, OrderedPairs


class PreferenceGraph(ABC):
    """Items and weighted preferences between them, known by what the graph does to a vector.

    With edges k = (i → j), magnitudes δ_k and weights ω_k:

        L = Σ ω_k (e_i − e_j)(e_i − e_j)ᵀ,      d = Σ ω_k δ_k (e_i − e_j)

    [RankRLS09] section 2.3, where L = M Mᵀ and d = M N.

    A subclass lists its edges in `pairs` and inherits all else. One that can do better without the
    list overrides what is slow: first `laplacian` and `divergence`, from which `gram` and `system`
    follow.
    """

    cost = "magnitude"
    ties = "include"
    group_weight = "pairs"

    is_preference_graph = True
    """How functions that cannot import this class recognize its objects."""

    scores: Array | None = None
    """Scores of the items, (n_items,) or (n_items, v); None if there are preferences only."""

    item_weights: Array | None = None
    """Weights of the items, the diagonal of D; None if all have weight 1."""

    is_complete: bool = False
    """Whether every two items are an edge of magnitude y_i − y_j, y being the scores."""

    @abstractmethod
    def pairs(self) -> PairGraph:
        """The edges, explicitly; with the groups of the items if they have any."""

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
        """The groups that the edges were given; else the connected components."""
        if self._edges.known_groups is not None:
            return self._edges.known_groups
        return Groups(self.components, np.unique(self.components))

    @cached_property
    def groups(self) -> Indices:
        """For each item the number of its group: what cross-validation holds out together."""
        return self._groups.codes

    @cached_property
    def group_labels(self) -> NDArray[Any]:
        """Labels of the groups, by number; their numbers if none were given."""
        return self._groups.labels

    @cached_property
    def n_groups(self) -> int:
        """Number of groups, those without edges included."""
        return len(self.group_labels)

    @cached_property
    def n_units(self) -> int:
        """Number of groups that were given; else of connected components that have an edge."""
        if self._edges.has_groups:
            return self.n_groups
        return int((np.bincount(self.components) > 1).sum())

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
        edges, n = self._edges, self.n_items
        flow = edges.edge_weight * edges.edge_target
        d = np.bincount(edges.winner, flow, n)
        return np.asarray(d - np.bincount(edges.loser, flow, n))

    @cached_property
    def laplacian_matrix(self) -> sp.csr_matrix:
        """L as a sparse matrix."""
        edges, n = self._edges, self.n_items
        i, j, w = edges.winner, edges.loser, edges.edge_weight
        rows, columns = np.r_[i, j, i, j], np.r_[j, i, i, j]
        return sp.coo_matrix((np.r_[-w, -w, w, w], (rows, columns)), shape=(n, n)).tocsr()

    @property
    def degrees(self) -> Array:
        """Weight of the edges of each item: the diagonal of L."""
        return np.asarray(self.laplacian_matrix.diagonal())

    @cached_property
    def components(self) -> Indices:
        """For each item the number of its connected component."""
        edges, n = self._edges, self.n_items
        links = sp.coo_matrix((np.ones(self.n_pairs), (edges.winner, edges.loser)), shape=(n, n))
        return np.asarray(connected_components(links, directed=False)[1], dtype=np.intp)

    def laplacian(self, V: Array) -> Array:
        """``L V`` for V of shape (n_items,) or (n_items, k)."""
        return np.asarray(self.laplacian_matrix @ V)

    def gram(self, R: Any) -> Array:
        """``Rᵀ L R`` for dense or sparse R of shape (n_items, p)."""
        return self.system(R, np.empty((self.n_items, 0)))[0]

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``, a chunk of columns at a time: sparse R is never copied whole.

        L takes constants to zero, so each column is centered first: features with a large offset
        lose no digits. Features that are made a row at a time have no columns and are stored here.
        """
        n_items, n_columns = R.shape
        if not hasattr(R, "T"):
            what = "the features of all items"
            check_matrix_fits(n_items, n_columns, what, "use a smaller n_basis")
            R = R[:]
        gram = np.empty((n_columns, n_columns))
        width = max(1, min(n_columns, 2**24 // max(1, n_items)))
        for start in range(0, n_columns, width):
            chunk = R[:, start : start + width]
            chunk = chunk.toarray() if hasattr(chunk, "toarray") else chunk
            centered = chunk - chunk.mean(axis=0, dtype=np.float64)
            gram[:, start : start + width] = R.T @ self.laplacian(centered)
        return 0.5 * (gram + gram.T), np.asarray(R.T @ t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R."""
        return np.asarray(R.multiply(self.laplacian_matrix @ R).sum(axis=0)).ravel()

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``, D the weights of the items."""
        weight = np.ones(self.n_items) if self.item_weights is None else self.item_weights
        return CholeskyRoot(scale * self.laplacian_matrix, shift * weight, self.components)

    def weighted(self, sample_weight: ArrayLike) -> PreferenceGraph:
        """The graph in which an edge weighs the product of the weights of its items as well.

        Edges of weight 0 are left out.
        """
        edges, weight = self._edges, check_weights(sample_weight, self.n_items)
        product = weight[edges.winner] * weight[edges.loser]
        return edges.with_edges(product > 0, product)

    def subset(self, items: Indices) -> PreferenceGraph:
        """The graph of these items and the edges between them, numbered as given."""
        return self._edges.subset(items)

    def strict(self) -> OrderedPairs | EdgePairs:
        """The strict preferences, over which margin losses are taken; ties are left out."""
        from rankwise.graphs.violated_pairs import EdgePairs

        return EdgePairs(self._edges)

    def disagreement(
        self, F: NDArray[Any], fold: Indices | None = None, *, pooled: bool = False
    ) -> Array:
        """Share by weight of the strict preferences in each group that F orders wrongly.

        An edge belongs to the group of its winner.

        Parameters
        ----------
        F : ndarray of shape (n_items,) or (n_items, k)
            Predicted scores; equal ones count one half.
        fold : ndarray of shape (n_items,), optional
            Number of the fold of each item. Only pairs inside one fold count: others would compare
            the predictions of two models.
        pooled : bool
            One share over all groups, in a single row.

        Returns
        -------
        ndarray of shape (n_groups,) or (n_groups, k)
            nan where no pair counts.
        """
        edges = self._edges
        counted = edges.magnitude > 0
        if fold is not None:
            counted &= fold[edges.winner] == fold[edges.loser]
        winner, loser = edges.winner[counted], edges.loser[counted]
        weight = edges.preference_weight[counted]
        n_rows = 1 if pooled else edges.n_groups
        row = np.zeros(len(winner), dtype=np.intp) if pooled else edges.groups[winner]
        total = np.bincount(row, weight, n_rows)
        shares = np.full((n_rows, F[:1].size), np.nan)
        for column, f in enumerate(F.reshape(len(F), -1).T):
            gap = f[winner] - f[loser]
            wrong = np.bincount(row, weight * ((gap < 0) + 0.5 * (gap == 0)), n_rows)
            np.divide(wrong, total, out=shares[:, column], where=total > 0)
        return shares.reshape(n_rows, *F.shape[1:])

    def describe(self) -> GraphDescription:
        """Counts that tell what a learner would be trained on."""
        edges, group = self._edges, self.groups
        inside = edges.winner[group[edges.winner] == group[edges.loser]]
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=int((edges.magnitude == 0).sum()),
            n_groups_without_pairs=self.n_groups - len(np.unique(group[inside])),
            n_isolated_items=int((np.bincount(self.components) == 1).sum()),
            total_weight=self.total_weight,
        )


class GraphDescription(NamedTuple):
    """What a preference graph holds; prints as a small table.

    Attributes
    ----------
    n_items, n_groups, n_pairs : int
        Items, groups (connected components for explicit pairs) and edges.
    n_tied_pairs : int
        Pairs of equal score inside groups (edges of magnitude zero for explicit pairs), whether
        or not they are edges.
    n_groups_without_pairs : int
        Groups that teach nothing.
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
        rows = self._asdict().items()
        named = [(name.removeprefix("n_").replace("_", " "), value) for name, value in rows]
        return "\n".join(f"{name:<22}{value:,.15g}" for name, value in named)
