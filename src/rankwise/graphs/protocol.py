"""What every preference graph offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.machine import check_matrix_fits

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph
    from rankwise.graphs.strict import StrictEdges, StrictOrder


class GraphRoot(Protocol):
    """A matrix F with ``F Fᵀ = scale L + shift D``, known by what it does to arrays."""

    def apply(self, V: Array) -> Array:
        """``F V``."""

    def adjoint(self, V: Array) -> Array:
        """``Fᵀ V``."""

    def solve(self, d: Array) -> Array:
        """Some b with ``F b = d``, for d in the range of F."""

    def solve_adjoint(self, r: Array) -> Array:
        """Some f with ``Fᵀ f = r``, for r in the range of Fᵀ."""

    def sandwich(self, K: Array) -> Array:
        """``Fᵀ K F`` in place of the symmetric matrix K."""


@runtime_checkable
class PreferenceGraph(Protocol):
    """Items and weighted preferences between them, known by what the graph does to a vector.

    With edges k = (i → j), magnitudes δ_k and weights ω_k:

        L = Σ ω_k (e_i − e_j)(e_i − e_j)ᵀ,      d = Σ ω_k δ_k (e_i − e_j)

    [RankRLS09] section 2.3, where L = M Mᵀ and d = M N.
    """

    cost: str
    ties: str
    group_weight: str

    @property
    def n_items(self) -> int:
        """Number of vertices."""

    @property
    def n_pairs(self) -> int:
        """Number of edges."""

    @property
    def groups(self) -> NDArray[np.intp]:
        """For each item the number of its group: what cross-validation holds out together."""

    @property
    def group_labels(self) -> NDArray[Any]:
        """Labels of the groups, by number."""

    @property
    def n_groups(self) -> int:
        """Number of groups, those without edges included."""

    @property
    def n_units(self) -> int:
        """Number of groups that were given; else of connected components that have an edge."""

    @property
    def scores(self) -> Array | None:
        """Scores of the items, (n_items,) or (n_items, v); None if there are preferences only."""

    @property
    def item_weights(self) -> Array | None:
        """Weights of the items, the diagonal of D; None if all have weight 1."""

    @property
    def is_complete(self) -> bool:
        """Whether every two items are an edge of magnitude y_i − y_j, y being the scores."""

    @property
    def total_weight(self) -> float:
        """W = Σ ω_k."""

    @property
    def squared_magnitude(self) -> float:
        """Σ ω_k δ_k², over all outputs."""

    @property
    def divergence(self) -> Array:
        """The vector d; one column per output where the graph holds several."""

    @property
    def degrees(self) -> Array:
        """Weight of the edges of each item: the diagonal of L."""

    @property
    def components(self) -> NDArray[np.intp]:
        """For each item the number of its connected component."""

    def laplacian(self, V: Array) -> Array:
        """``L V`` for V of shape (n_items,) or (n_items, k)."""

    def gram(self, R: Any) -> Array:
        """``Rᵀ L R`` for dense or sparse R of shape (n_items, p)."""

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``, in one pass over the rows of R where the graph allows it."""

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R."""

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``, D the weights of the items."""

    def weighted(self, sample_weight: ArrayLike) -> PreferenceGraph:
        """The graph in which an edge weighs the product of the weights of its items as well."""

    def subset(self, items: NDArray[np.intp]) -> PreferenceGraph:
        """The graph of these items and the edges between them, numbered as given."""

    def pairs(self) -> PairGraph:
        """The edges, explicitly: the slow truth, for tests and small data."""

    def strict(self) -> StrictOrder | StrictEdges:
        """The strict preferences, over which margin losses are taken; ties are left out."""

    def disagreement(
        self, F: NDArray[Any], fold: NDArray[np.intp] | None = None, *, pooled: bool = False
    ) -> Array:
        """Share by weight of the strict preferences in each group that F orders wrongly.

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

    def describe(self) -> GraphDescription:
        """Counts that tell what a learner would be trained on."""


@dataclass(frozen=True)
class GraphDescription:
    """What a preference graph holds; prints as a small table.

    Attributes
    ----------
    n_items, n_groups, n_pairs : int
        Items, groups (connected components for explicit pairs) and edges.
    n_tied_pairs : int
        Pairs of equal score inside groups (edges of magnitude zero for explicit pairs), whether
        or not they are edges.
    ties : str
        "include" if the tied pairs are edges, else "exclude".
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
    ties: str
    n_groups_without_pairs: int
    n_isolated_items: int
    total_weight: float

    def __str__(self) -> str:
        used = "in use" if self.ties == "include" else "not in use"
        rows = [
            ("items", f"{self.n_items:,}"),
            ("groups", f"{self.n_groups:,}"),
            ("pairs", f"{self.n_pairs:,}"),
            ("tied pairs", f"{self.n_tied_pairs:,} ({used})"),
            ("groups without pairs", f"{self.n_groups_without_pairs:,}"),
            ("isolated items", f"{self.n_isolated_items:,}"),
            ("total weight", f"{self.total_weight:g}"),
        ]
        return "\n".join(f"{name:<22}{value}" for name, value in rows)


def sums_of_squares(S: Any, weight: Array | None = None) -> Array:
    """``Σ_i w_i s_i²`` for every column s of sparse S; the weights are 1 if not given."""
    weight = np.ones(S.shape[0]) if weight is None else weight
    return np.asarray(S.multiply(S).T @ weight)


def system_by_columns(
    laplacian: Callable[[Array], Array], R: Any, t: Array, n_entries: int = 2**24
) -> tuple[Array, Array]:
    """``Rᵀ (L R)`` and ``Rᵀ t``, a chunk of columns at a time: sparse R is never copied whole.

    L takes constants to zero, so each column is centered first: features with a large offset
    lose no digits. Features that are made a row at a time have no columns and are stored here.
    """
    n_items, n_columns = R.shape
    if not hasattr(R, "T"):
        check_matrix_fits(n_items, n_columns, "the features of all items", "use a smaller n_basis")
        R = R[:]
    out = np.empty((n_columns, n_columns))
    width = max(1, min(n_columns, n_entries // max(1, n_items)))
    for start in range(0, n_columns, width):
        chunk = R[:, start : start + width]
        chunk = chunk.toarray() if hasattr(chunk, "toarray") else chunk
        centered = chunk - chunk.mean(axis=0, dtype=np.float64)
        out[:, start : start + width] = R.T @ laplacian(centered)
    return 0.5 * (out + out.T), np.asarray(R.T @ t)
