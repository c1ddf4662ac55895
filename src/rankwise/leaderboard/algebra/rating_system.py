"""The linear system of ratings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import block_diag, eigh, svd
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.errors import warn_user
from rankwise.leaderboard.algebra.comparison_counts import ComparisonCounts
from rankwise.solvers.least_squares import conjugate_gradients
from rankwise.uncertainty.jackknife_errors import COVARIANCE_LIMIT

DENSE_LIMIT = 300  # items; above, conjugate gradients are faster than a dense solve

TOLERANCE = 1e-11

MAX_ITERATIONS = 10_000

TINY = 1e-12  # λ of an effect, as a share of W

RANK = 1e-12  # of the largest singular value of the features; less is rounding

RELATIVE = np.logspace(-5, 3, 33)  # alphas, from almost no regularization to a very strong one

BLOCK = 2**22  # numbers


class RatingSystem:
    """``Dᵀ W D u + Λu = Dᵀ W δ`` with a row of D for each distinct pair.

    A row is ``[x_i − x_j, b_i − b_j, z]``. The unknowns u are the weights w of the features X,
    those β of a prior B, so that r = X w + B β, and the effects γ of the covariates. Only w is
    regularized (the others by `TINY`, where the data leave them open). D is the product of a sparse
    matrix E of shape (n_distinct, n_inner) with T of shape (n_inner, n_unknowns): without features
    T is the identity, and not there.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items; without them X is the identity. They are replaced by as many as
        their rank, whose differences have the same inner products; r is the same. So columns that
        say the same (a gap filled with the median, and its indicator) make no system singular.
    B : ndarray of shape (n_items, n_free), optional
        What is known of the items and not regularized.

    Attributes
    ----------
    is_large : bool
        Whether conjugate gradients solve it.
    is_huge : bool
        Whether its inverse is too large to look at.
    """

    def __init__(
        self, tally: ComparisonCounts, X: Array | None = None, B: Array | None = None
    ) -> None:
        self.tally, self.B = tally, np.empty((tally.n_items, 0)) if B is None else B
        self.has_prior = self.B.shape[1] > 0
        first, second, n = tally.first, tally.second, len(tally.first)
        self.free = np.hstack([self.B[first] - self.B[second], tally.covariates])
        n_free = self.free.shape[1]
        ends = np.column_stack([first, second])
        self.E = fixed_width_csr(ends, np.tile([1.0, -1.0], (n, 1)), self.free, tally.n_items)
        self.X, self.n_regularized = X, tally.n_items
        self.T: Any = None
        if X is not None:
            if np.array_equal(X[first], X[second]):
                raise ValueError(
                    "the features of the two items are the same in every comparison, so nothing "
                    "can be learned from them; pass other features, or none."
                )
            _, size, directions = svd(tally.centered(X), full_matrices=False)
            self.X = (X - X.mean(axis=0)) @ directions[size > RANK * size[0]].T
            self.T = block_diag(self.X, np.eye(n_free))
            self.n_features, self.n_regularized = min(X.shape), self.X.shape[1]
        self.size = self.n_regularized + n_free
        self.is_large = X is None and tally.n_items > DENSE_LIMIT
        self.is_huge = X is None and self.size > COVARIANCE_LIMIT

    def of(self, tally: ComparisonCounts) -> RatingSystem:
        """The same unknowns for other weights, targets or counts of the same pairs."""
        system = copy(self)
        system.tally = tally
        return system

    def penalty(self, shift: float) -> Array:
        """λ of each unknown."""
        tiny = TINY * self.tally.total_weight
        return np.repeat([shift, tiny], [self.n_regularized, self.size - self.n_regularized])

    def inner(self, unknowns: Array) -> Array:
        """``T u``: ratings by the features, β and γ."""
        return unknowns if self.T is None else np.asarray(self.T @ unknowns)

    def margins(self, unknowns: Array) -> Array:
        """``D u`` of each distinct pair; of each column of u."""
        return np.asarray(self.E @ self.inner(unknowns))

    def right(self, flows: Array) -> Array:
        """``Dᵀ f``; of each column of f."""
        pulled = self._turned[0] @ flows
        return np.asarray(pulled if self.T is None else self._turned[1] @ pulled)

    @cached_property
    def _turned(self) -> tuple[sp.csr_matrix, Any]:
        """``Eᵀ`` and ``Tᵀ``."""
        return self.E.T.tocsr(), None if self.T is None else self.T.T

    def rows(self, pairs: Any) -> Any:
        """Some rows of D."""
        return self.E[pairs] if self.T is None else self.E[pairs] @ self.T

    def difference(self, a: int, b: int) -> Array:
        """Return d with dᵀ u = r_a − r_b."""
        inner = np.zeros(self.E.shape[1])
        inner[[a, b]] = 1.0, -1.0
        n = self.tally.n_items
        inner[n : n + self.B.shape[1]] = self.B[a] - self.B[b]
        return inner if self.T is None else np.asarray(self.T.T @ inner)

    def gram(self, weights: Array) -> Any:
        """``Dᵀ W D``, sparse if D is; the Laplacian of the items if nothing else is unknown."""
        tally, n = self.tally, self.tally.n_items
        if self.E.shape[1] == n:
            both = np.bincount(tally.first, weights, n) + np.bincount(tally.second, weights, n)
            matrix = copy(self._places)
            matrix.data = np.concatenate([both, -tally.by_edge(weights)])[matrix.data]
        else:
            E = self.E
            values = E.data * np.repeat(weights, np.diff(E.indptr))
            matrix = self._turned[0] @ sp.csr_matrix((values, E.indices, E.indptr), E.shape)
        return matrix if self.T is None else self._turned[1] @ (matrix @ self.T)

    @cached_property
    def _places(self) -> sp.csr_matrix:
        """The item of each entry of the Laplacian, or n and the number of the edge."""
        tally, n = self.tally, self.tally.n_items
        first, second = tally.first[tally.edges], tally.second[tally.edges]
        item, edge = np.arange(n), n + np.arange(len(first))
        at = np.r_[second, item, first], np.r_[first, item, second]
        return sp.csr_matrix((np.r_[edge, item, edge], at), (n, n))

    def dense_gram(self, weights: Array) -> Array:
        """The same as an array."""
        matrix = self.gram(weights)
        return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)

    def grounded(self, weights: Array, shift: float) -> Array:
        """``Dᵀ W D + Λ``, dense, invertible without features and prior also if λ = 0."""
        matrix = self.dense_gram(weights)
        if self.T is None and not self.has_prior:
            n = self.tally.n_items
            matrix[:n, :n] = regularize_components(matrix[:n, :n], self.tally.components)
        size = np.arange(len(matrix))
        matrix[size, size] += self.penalty(shift)
        return matrix

    def solver(
        self,
        weights: Array,
        shift: float,
        tol: float = TOLERANCE,
        dtype: type[np.floating] = np.float64,
    ) -> Callable[[Array], Array]:
        """Solve with ``Dᵀ W D + Λ`` for these weights, for one right-hand side or for columns.

        A vector of 1e5 items stays in the cache of the processor, a block of them does not: solve
        for one after the other then. Single precision is twice as fast and good for a tolerance of
        1e-4 or so.
        """
        if not self.is_large:
            dense = self.grounded(weights, shift)
            return lambda right: np.asarray(np.linalg.solve(dense, right))
        matrix, penalty = (
            values.astype(dtype, copy=False) for values in (self.gram(weights), self.penalty(shift))
        )

        def product(v: Array) -> Array:
            return np.asarray(matrix @ v + penalty[:, None] * v)

        return iterative_solver(product, matrix.diagonal() + penalty, tol)

    def ratings_and_effects(self, unknowns: Array) -> tuple[Array, Array]:
        """Ratings, of mean 0 (in each component if there are no features), and effects."""
        inner, n = self.inner(unknowns), self.tally.n_items
        split = n + self.B.shape[1]
        if self.X is None and not self.has_prior:
            return self.tally.centered(inner[:n]), inner[n:]
        ratings = inner[:n] + self.B @ inner[n:split]
        return ratings - ratings.mean(axis=0), inner[split:]


def fixed_width_csr(columns: Indices, values: Array, last: Array, size: int) -> sp.csr_matrix:
    """A sparse matrix with as many entries in each row; `last` are dense columns after `size`."""
    n, n_last = last.shape
    values = np.hstack([values, last])
    columns = np.hstack([columns, np.tile(np.arange(size, size + n_last), (n, 1))])
    starts = np.arange(0, values.size + 1, values.shape[1])
    return sp.csr_matrix((values.ravel(), columns.ravel(), starts), (n, size + n_last))


def regularize_components(matrix: Array, components: Indices) -> Array:
    """Make a Laplacian of the items invertible.

    Right-hand sides ``Dᵀ f`` and their solutions sum to zero in each component. So a multiple of
    the matrix of ones may be added there: it changes no rating, and the condition of the matrix no
    longer depends on λ.
    """
    isolated = np.flatnonzero(matrix.diagonal() == 0)
    together = components[:, None] == components
    matrix = matrix + together * (
        matrix.trace() / len(matrix) / np.bincount(components)[components]
    )
    matrix[isolated, isolated] += 1.0
    return matrix


def iterative_solver(
    product: Callable[[Array], Array], diagonal: Array, tol: float, max_iter: int | None = None
) -> Callable[[Array], Array]:
    """Solve by conjugate gradients, with the diagonal of the matrix as preconditioner."""
    diagonal = np.where(diagonal > 0, diagonal, 1.0).astype(diagonal.dtype)

    def solve(right: Array) -> Array:
        columns = right.reshape(len(right), -1).astype(diagonal.dtype)
        limit = max_iter or MAX_ITERATIONS
        solved = conjugate_gradients(product, columns, diagonal, tol=tol, max_iter=limit)
        if not (solved.converged or max_iter):
            warn_user(
                f"conjugate gradients stopped after {MAX_ITERATIONS} iterations before the "
                "ratings were exact; a larger alpha makes the system easier.",
                ConvergenceWarning,
            )
        return np.asarray(solved.x.reshape(right.shape))

    return solve


def alpha_of_prior(alphas: Array, log_likelihoods: Array, middle: float) -> float:
    """The alpha by which a prior is trusted, from how well each foresees votes left out.

    The prior has the share b = α/(α + m) of a rating, m being the `middle`, the votes have the
    others. A prior has to earn its share: the density of b is 2(1 − b) before votes are counted
    (a shrinkage prior; Daniels, A prior for the variance in hierarchical models, 1999). The mean of
    b over the likelihoods is taken. The alpha of the best likelihood would often be infinite for
    few votes: the prior would be taken for the truth, and the intervals would miss it.
    """
    share = alphas / (alphas + middle)
    weights = np.exp(log_likelihoods - log_likelihoods.max()) * share * (1 - share) ** 2
    mean = float(weights @ share / weights.sum())
    return middle * mean / (1 - mean)


def middle_alpha(system: RatingSystem) -> float:
    """The λ that is the mean eigenvalue of ``Xᵀ L X``, as an alpha."""
    tally, X = system.tally, system.X
    weights, _ = tally.sums
    if X is None:
        return float(2 * weights.sum() / tally.n_items / tally.total_weight)
    squares = ((X[tally.first] - X[tally.second]) ** 2).sum(axis=1)
    return float(weights @ squares / system.n_features / tally.total_weight)


def leave_one_out_errors(system: RatingSystem, alphas: Array) -> Array:
    """Weighted mean square of δ − (r_i − r_j), r trained without that comparison; exact.

    With x = x_i − x_j and A = Xᵀ L X + λI the residual of a comparison that is left out is
    ``e / (1 − ω xᵀ A⁻¹ x)``. The λ of that fold is α (W − ω), as in a rating
    that is trained on the rest. One eigendecomposition serves all comparisons. What is not
    regularized is taken out first, by a Schur complement: its part of the leverage does not depend
    on λ.
    """
    tally, p = system.tally, system.n_regularized
    weights, flows = tally.sums
    gram, right = system.dense_gram(weights), system.right(flows)
    inner = gram[p:, p:] + np.diag(system.penalty(0.0)[p:])
    onto = np.linalg.solve(inner, np.column_stack([gram[p:, :p], right[p:]]))
    values, vectors = eigh(gram[:p, :p] - gram[:p, p:] @ onto[:, :-1])
    values = np.maximum(values, 0.0)
    Y = vectors if system.X is None else system.X @ vectors
    right = vectors.T @ (right[:p] - gram[:p, p:] @ onto[:, -1])
    onto = np.column_stack([onto[:, :-1] @ vectors, onto[:, -1]])
    sums = np.zeros(len(alphas))
    for outcomes in _outcomes_of_one_weight(tally, len(values)):
        pairs, omega = tally.pair[outcomes], tally.weight[outcomes[0]]
        z = system.free[pairs]
        scale = 1 / (values[:, None] + alphas * (tally.total_weight - omega))
        x = Y[tally.first[pairs]] - Y[tally.second[pairs]] - z @ onto[:, :-1]
        target = tally.target[outcomes] - z @ onto[:, -1]
        residual = target[:, None] - x @ (scale * right[:, None])
        own = np.einsum("ij,ij->i", z, np.linalg.solve(inner, z.T).T)[:, None]
        held_out = residual / (1 - omega * (own + x**2 @ scale))
        sums += omega * (tally.count[outcomes] @ held_out**2)
    return np.asarray(sums / tally.total_weight)


def _outcomes_of_one_weight(tally: ComparisonCounts, n_columns: int) -> Iterator[Indices]:
    """All outcomes in blocks that fit the cache and have the same weight."""
    order = np.argsort(tally.weight, kind="stable")
    changes = 1 + np.flatnonzero(np.diff(tally.weight[order]))
    size = max(1, BLOCK // n_columns)
    for same in np.split(order, changes):
        for start in range(0, len(same), size):
            yield same[start : start + size]
