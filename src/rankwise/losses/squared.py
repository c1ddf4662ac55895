"""The squared loss over the edges of a graph, mixed with that over its items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.gram import plain_system, sums_of_squares
from rankwise.graphs.laplacian_roots import GraphRoot
from rankwise.losses.pairwise import LossValue
from rankwise.losses.profiled import center_in_components, hstack_columns, partial_out


class LossTerm(NamedTuple):
    """One of the two sums of `SquaredLoss`: ``share/T (fᵀ A f − 2 fᵀ t)`` with ``A = F Fᵀ``.

    Attributes
    ----------
    share : float
        1 − β for the pairs, β for the items.
    root : GraphRoot
        F.
    target : ndarray
        t.
    amount : ndarray of shape (n_items,)
        What each item adds to T: half the weight of its edges, or its own.
    """

    share: float
    root: GraphRoot
    target: Array
    amount: Array


@dataclass(frozen=True)
class SquaredLoss:
    """Mean squared error over the pairs, mixed with that over the items.

        loss(f) = (1−β)/W Σ_k ω_k (δ_k − (f_i − f_j))² + β/s Σ_i w_i (y_i − f_i)²

    [RankRLS09] equation 11, [Pursuit13] equation 5. β = 0 is ranking, β = 1 plain regression. Items
    have weights w (1 if none were given) of sum s, and an edge has those of its items in ω.

    In matrix form the loss is ``fᵀ A f − 2 fᵀ t`` plus a constant, with ``A = (1−β)/W L + β/s D``,
    ``t = (1−β)/W d + β/s D y`` and D = diag(w). Its gradient is ``2 (A f − t)``, so A is half its
    Hessian: closed forms are written with A and t.

    Attributes
    ----------
    graph : PreferenceGraph
        The pairs.
    beta : float
        Share of the regression part.
    y : ndarray or None
        Scores of the items; needed for beta > 0.
    nuisance : ndarray of shape (n_items, n_columns) or None
        Columns whose effects `system` takes out, centered inside groups; only for beta = 0.
    """

    graph: PreferenceGraph
    beta: float = 0.0
    y: Array | None = None
    nuisance: Array | None = None

    @property
    def _pair_share(self) -> float:
        return (1.0 - self.beta) / self.graph.total_weight if self.beta < 1 else 0.0

    @property
    def _item_share(self) -> float:
        weight = self.graph.item_weights
        return self.beta / (self.graph.n_items if weight is None else float(weight.sum()))

    def _times_D(self, V: Array) -> Array:
        """``D V``, V itself without weights."""
        weight = self.graph.item_weights
        if weight is None:
            return V
        return np.asarray(V * (weight if V.ndim == 1 else weight[:, None]))

    @cached_property
    def target(self) -> Array:
        """``t = (1−β)/W d + β/s D y``."""
        if self.y is None or self.beta == 0:
            return self._pair_share * self.graph.divergence
        items = self._item_share * self._times_D(self.y)
        return items if self.beta == 1 else self._pair_share * self.graph.divergence + items

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives; several outputs are added up."""
        half = self.times_A(f) - self.target
        value = float(np.sum(f * (half - self.target))) + self.at_zero
        return LossValue(value, 2 * half, lambda v: 2 * self.times_A(v))

    def times_A(self, V: Array) -> Array:
        """``A V``: half of what the Hessian makes of V."""
        if self.beta == 0:
            return self._pair_share * self.graph.laplacian(V)
        out = self._item_share * self._times_D(V)
        if self.beta < 1:
            out += self._pair_share * self.graph.laplacian(V)
        return out

    @cached_property
    def at_zero(self) -> float:
        """The loss of f = 0, ``(1−β)/W Σ ω δ² + β/s Σ w y²``."""
        value = self._pair_share * self.graph.squared_magnitude if self.beta < 1 else 0.0
        if self.y is not None and self.beta > 0:
            value += self._item_share * float(np.sum(self._times_D(self.y**2)))
        return value

    def system(self, R: Any) -> tuple[Array, Array]:
        """``Rᵀ A R`` and ``Rᵀ t``, in one pass over the rows of R (two for 0 < β < 1).

        With nuisance what is left of them.
        """
        if self.nuisance is not None:
            plain = replace(self, nuisance=None)
            return partial_out(
                *plain.system(hstack_columns(R, self.nuisance)), self.nuisance.shape[1]
            )
        if self.beta == 1:
            gram, moment = plain_system(R, self.target, self.graph.item_weights)
            return self._item_share * gram, moment
        if self.beta == 0:  # scaled afterwards: no second copy of d
            gram, moment = self.graph.system(R, self.graph.divergence)
            return self._pair_share * gram, self._pair_share * moment
        gram, moment = self.graph.system(R, self.target)
        gram *= self._pair_share
        nothing = np.empty((R.shape[0], 0))
        gram += self._item_share * plain_system(R, nothing, self.graph.item_weights)[0]
        return gram, moment

    def of_items(self, items: Indices, graph: PreferenceGraph) -> SquaredLoss:
        """The loss of some of the items, with their graph."""
        y = None if self.y is None else self.y[items]
        Z = None if self.nuisance is None else center_in_components(self.nuisance[items], graph)
        return SquaredLoss(graph, self.beta, y, Z)

    def norms(self, R: Any, n_entries: int = 2**24) -> Array:
        """``rᵀ A r`` for every column r of R, a chunk of columns at a time if R is dense."""
        out, width = np.zeros(R.shape[1]), max(1, n_entries // R.shape[0])
        if not sp.issparse(R):
            for start in range(0, R.shape[1], width):
                V = np.asarray(R[:, start : start + width], dtype=np.float64)
                out[start : start + width] = np.sum(V * self.times_A(V), axis=0)
            return out
        if self.beta < 1:
            out += self._pair_share * self.graph.sparse_norms(R)
        if self.beta > 0:
            out += self._item_share * sums_of_squares(R, self.graph.item_weights)
        return out

    def moment(self, R: Any) -> Array:
        """``Rᵀ t``."""
        return np.asarray(R.T @ self.target)

    def root(self) -> GraphRoot:
        """F with ``F Fᵀ = A``."""
        return self.graph.root(self._pair_share, self._item_share)

    def terms(self) -> list[LossTerm]:
        """The sum over pairs and the sum over items, those that have a share."""
        graph, terms = self.graph, []
        if self.beta < 1:
            pairs = LossTerm(1 - self.beta, graph.root(), graph.divergence, 0.5 * graph.degrees)
            terms.append(pairs)
        if self.beta > 0 and self.y is not None:
            amount = self._times_D(np.ones(graph.n_items))
            target = self._times_D(self.y)
            terms.append(LossTerm(self.beta, graph.root(0.0, 1.0), target, amount))
        return terms
