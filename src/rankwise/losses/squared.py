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
from rankwise.losses.pairwise import LossValue, Plane
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
        Contribution of each item to T: half the weight of its edges for the pairs, its weight for
        the items.
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
    have weights w (1 by default) of sum s; ω of an edge includes the weights of its items.

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
        Relevance of the items; needed for beta > 0.
    nuisance : ndarray of shape (n_items, n_columns) or None
        Columns whose effects `system` partials out, centered inside groups; only for beta = 0.
    """

    graph: PreferenceGraph
    beta: float = 0.0
    y: Array | None = None
    nuisance: Array | None = None

    @cached_property
    def _pair_factor(self) -> float:
        """``(1−β)/W``."""
        if self.beta == 1:
            return 0.0
        return (1.0 - self.beta) / self.graph.total_weight

    @property
    def _item_factor(self) -> float:
        """``β/s``."""
        if self.graph.item_weights is None:
            return self.beta / self.graph.n_items
        return self.beta / float(self.graph.item_weights.sum())

    def _times_item_weights(self, V: Array) -> Array:
        """``D V``; V itself, not a copy, without weights."""
        weight = self.graph.item_weights
        if weight is None:
            return V
        if V.ndim == 2:  # a weight for each row
            weight = weight[:, None]
        return np.asarray(V * weight)

    @cached_property
    def target(self) -> Array:
        """``t = (1−β)/W d + β/s D y``."""
        if self.y is None or self.beta == 0:
            return self._pair_factor * self.graph.divergence  # (1−β)/W d
        item_target = self._item_factor * self._times_item_weights(self.y)  # β/s D y
        if self.beta == 1:
            return item_target
        return self._pair_factor * self.graph.divergence + item_target

    def at(self, f: NDArray[Any]) -> LossValue:
        """Value and derivatives; the losses of several outputs are added up.

        Parameters
        ----------
        f : ndarray of shape (n_items,) or (n_items, n_outputs)
            Scores.

        Returns
        -------
        LossValue
            Value, gradient and Hessian products.
        """
        # the loss is fᵀ A f − 2 fᵀ t + its value at 0, with the target t
        half_gradient = self.times_A(f) - self.target
        gradient = 2 * half_gradient
        # fᵀ A f − 2 fᵀ t = fᵀ ((A f − t) − t)
        value = float(np.sum(f * (half_gradient - self.target))) + self.at_zero

        def hessian_product(v: Array) -> Array:
            return 2 * self.times_A(v)

        plane = Plane.from_difference(value, gradient, f)
        return LossValue(value, gradient, hessian_product, plane)

    def times_A(self, V: Array) -> Array:
        """``A V``, half the Hessian times V.

        Parameters
        ----------
        V : ndarray of shape (n_items,) or (n_items, k)
            Vectors.

        Returns
        -------
        ndarray
            The product, of the shape of V.
        """
        if self.beta == 0:
            return self._pair_factor * self.graph.laplacian(V)  # (1−β)/W L V, with W pairs
        product = self._item_factor * self._times_item_weights(V)  # β/s D V
        if self.beta < 1:
            product += self._pair_factor * self.graph.laplacian(V)
        return product

    @cached_property
    def at_zero(self) -> float:
        """The loss of f = 0, ``(1−β)/W Σ ω δ² + β/s Σ w y²``."""
        value = 0.0
        if self.beta < 1:
            value = self._pair_factor * self.graph.squared_magnitude
        if self.y is not None and self.beta > 0:
            value += self._item_factor * float(np.sum(self._times_item_weights(self.y**2)))
        return value

    def system(self, R: Any) -> tuple[Array, Array]:
        """``Rᵀ A R`` and ``Rᵀ t``, with the nuisance columns partialled out.

        One pass over the rows of R, two for 0 < β < 1.

        Parameters
        ----------
        R : ndarray or sparse matrix of shape (n_items, p)
            A matrix with one row per item.

        Returns
        -------
        tuple of ndarray
            ``Rᵀ A R`` of shape (p, p), and ``Rᵀ t``.
        """
        # Rᵀ A R and Rᵀ t, from sums over the pairs, weighted 1 − β, and over the items, weighted β
        if self.nuisance is not None:
            n_nuisance = self.nuisance.shape[1]
            # the nuisance columns are appended to the features, and eliminated from the equations
            without_nuisance = replace(self, nuisance=None)
            gram, moment = without_nuisance.system(hstack_columns(R, self.nuisance))
            return partial_out(gram, moment, n_nuisance)
        item_weights = self.graph.item_weights
        if self.beta == 1:  # no pairs
            gram, moment = plain_system(R, self.target, item_weights)
            return self._item_factor * gram, moment
        pair_factor = self._pair_factor
        if self.beta == 0:  # no items; scaled afterwards: no second copy of the divergence
            gram, moment = self.graph.system(R, self.graph.divergence)
            return pair_factor * gram, pair_factor * moment
        # pairs and items: the target has both factors already, the two Gram matrices do not
        pair_gram, moment = self.graph.system(R, self.target)
        no_target = np.empty((R.shape[0], 0))  # `moment` contains the items already
        item_gram, _ = plain_system(R, no_target, item_weights)
        pair_gram *= pair_factor
        pair_gram += self._item_factor * item_gram
        return pair_gram, moment

    def of_items(self, items: Indices, graph: PreferenceGraph) -> SquaredLoss:
        """The loss of these items, with their graph.

        Parameters
        ----------
        items : ndarray of int
            Row numbers of the items.
        graph : PreferenceGraph
            Graph of these items.

        Returns
        -------
        SquaredLoss
            The loss.
        """
        y = None
        if self.y is not None:
            y = self.y[items]
        nuisance = None
        if self.nuisance is not None:
            nuisance = center_in_components(self.nuisance[items], graph)
        return SquaredLoss(graph, self.beta, y, nuisance)

    def norms(self, R: Any, n_entries: int = 2**24) -> Array:
        """``rᵀ A r`` for every column r of R; of dense R at most `n_entries` entries at a time.

        Parameters
        ----------
        R : ndarray or sparse matrix of shape (n_items, p)
            Columns.
        n_entries : int, default=2**24
            Largest block of dense R.

        Returns
        -------
        ndarray of shape (p,)
            Squared norms.
        """
        if sp.issparse(R):
            return self._sparse_norms(R)
        # vᵀ A v of each column v of R, for the matrix A of the loss
        squared_norms = np.zeros(R.shape[1])
        columns_per_block = max(1, n_entries // R.shape[0])
        for start in range(0, R.shape[1], columns_per_block):
            columns = slice(start, start + columns_per_block)
            V = np.asarray(R[:, columns], dtype=np.float64)
            squared_norms[columns] = np.sum(V * self.times_A(V), axis=0)
        return squared_norms

    def _sparse_norms(self, R: Any) -> Array:
        # vᵀ A v of each column v of R, with A = (1−β)/W L + β/s D
        squared_norms = np.zeros(R.shape[1])
        if self.beta < 1:
            squared_norms += self._pair_factor * self.graph.sparse_norms(R)
        if self.beta > 0:
            squared_norms += self._item_factor * sums_of_squares(R, self.graph.item_weights)
        return squared_norms

    def moment(self, R: Any) -> Array:
        """``Rᵀ t``.

        Parameters
        ----------
        R : ndarray or sparse matrix of shape (n_items, p)
            A matrix with one row per item.

        Returns
        -------
        ndarray
            The product.
        """
        return np.asarray(R.T @ self.target)

    def root(self) -> GraphRoot:
        """F with ``F Fᵀ = A``.

        Returns
        -------
        GraphRoot
            F, as products with vectors.
        """
        return self.graph.root(self._pair_factor, self._item_factor)

    @cached_property
    def terms(self) -> list[LossTerm]:
        """The sum over pairs and the sum over items, those with a positive share."""
        # each is share/T (fᵀ F Fᵀ f − 2 fᵀ target), T the sum of the amounts
        graph = self.graph
        terms = []
        if self.beta < 1:
            sum_over_pairs = LossTerm(
                share=1 - self.beta,
                root=graph.root(),
                target=graph.divergence,
                amount=0.5 * graph.degrees,
            )
            terms.append(sum_over_pairs)
        if self.beta > 0 and self.y is not None:
            sum_over_items = LossTerm(
                share=self.beta,
                root=graph.root(0.0, 1.0),  # of D alone
                target=self._times_item_weights(self.y),
                amount=self._times_item_weights(np.ones(graph.n_items)),
            )
            terms.append(sum_over_items)
        return terms
