"""BaseGraph: everything that a preference graph offers, derived from its edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.graphs.disagreement import edge_disagreement
from rankwise.graphs.protocol import GraphDescription, GraphRoot, PreferenceGraph, system_by_columns
from rankwise.graphs.strict import StrictEdges, StrictOrder
from rankwise.targets import as_weights

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph


class BaseGraph(ABC):
    """A preference graph that lists its edges in `pairs` and inherits all the rest.

    A subclass that can do better without the list overrides what is slow: first `laplacian` and
    `divergence`, from which `gram` and `system` follow.
    """

    cost = "magnitude"
    ties = "include"
    group_weight = "pairs"

    @abstractmethod
    def pairs(self) -> PairGraph:
        """The edges, explicitly; with the groups of the items if they have any."""

    @cached_property
    def _edges(self) -> PairGraph:
        return self.pairs()

    @property
    def n_items(self) -> int:
        """Number of items."""
        return self._edges.n_items

    @property
    def n_pairs(self) -> int:
        """Number of edges."""
        return self._edges.n_pairs

    @property
    def groups(self) -> NDArray[np.intp]:
        """For each item the number of its group."""
        return self._edges.groups

    @property
    def group_labels(self) -> NDArray[Any]:
        """Labels of the groups."""
        return self._edges.group_labels

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.group_labels)

    @property
    def n_units(self) -> int:
        """Number of groups; of components that have an edge if there are no groups."""
        return self._edges.n_units

    @property
    def scores(self) -> Array | None:
        """None: there are preferences only."""
        return None

    @property
    def item_weights(self) -> Array | None:
        """None: the items have no weights of their own."""
        return None

    @property
    def is_complete(self) -> bool:
        """False: some two items may be no edge."""
        return False

    @property
    def total_weight(self) -> float:
        """W, the sum of the weights."""
        return self._edges.total_weight

    @property
    def squared_magnitude(self) -> float:
        """Σ ω δ²."""
        return self._edges.squared_magnitude

    @property
    def divergence(self) -> Array:
        """The vector d = Σ ω δ (e_i − e_j)."""
        return self._edges.divergence

    @property
    def degrees(self) -> Array:
        """Weight of the edges of each item: the diagonal of L."""
        return self._edges.degrees

    @property
    def components(self) -> NDArray[np.intp]:
        """For each item the number of its connected component."""
        return self._edges.components

    def laplacian(self, V: Array) -> Array:
        """``L V``."""
        return self._edges.laplacian(V)

    def gram(self, R: Any) -> Array:
        """``Rᵀ L R``."""
        return self.system(R, np.empty((self.n_items, 0)))[0]

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``."""
        return system_by_columns(self.laplacian, R, t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R."""
        return self._edges.sparse_norms(R)

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift I``."""
        return self._edges.root(scale, shift)

    def weighted(self, sample_weight: ArrayLike) -> PreferenceGraph:
        """The edges, each times the weights of its two items; edges of weight 0 are left out."""
        edges, weight = self._edges, as_weights(sample_weight, self.n_items)
        product = weight[edges.winner] * weight[edges.loser]
        return edges.with_edges(product > 0, product)

    def subset(self, items: NDArray[np.intp]) -> PreferenceGraph:
        """The graph of these items and the edges between them, numbered as given."""
        return self._edges.subset(items)

    def strict(self) -> StrictOrder | StrictEdges:
        """The edges that state no tie."""
        return StrictEdges(self._edges)

    def disagreement(
        self, F: NDArray[Any], fold: NDArray[np.intp] | None = None, *, pooled: bool = False
    ) -> Array:
        """Share by weight of the strict edges that F orders wrongly, each in its winner's group."""
        return edge_disagreement(self._edges, F, fold, pooled)

    def describe(self) -> GraphDescription:
        """Counts; the groups are the connected components unless others were given."""
        return self._edges.describe()
