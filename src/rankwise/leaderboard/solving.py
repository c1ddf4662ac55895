"""Ratings of one or many weightings of the same comparisons."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.linalg import qr
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.leaderboard.tally import Tally
from rankwise.solvers.iterative import conjugate_gradients

__all__ = ["DENSE_LIMIT", "RatingSystem", "SparseSystem", "explained_by_ratings"]

DENSE_LIMIT = 300  # items; above, conjugate gradients are faster than a dense solve
TOLERANCE = 1e-11
MAX_ITERATIONS = 10_000


class RatingSystem:
    """``(Xᵀ L X + λI) w = Xᵀ d`` for weights and flows of the distinct pairs, and r = X w.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items; without them X is the identity. More features than items are
        replaced by as many as items, whose differences have the same inner products; r is the same.
    """

    def __init__(self, tally: Tally, X: Array | None = None) -> None:
        self.tally = tally
        if X is not None and np.array_equal(X[tally.first], X[tally.second]):
            raise ValueError(
                "the features of the two items are the same in every comparison, so nothing can be "
                "learned from them; pass other features, or none."
            )
        if X is not None and X.shape[1] > X.shape[0]:
            X = qr((X - X.mean(axis=0)).T, mode="economic")[1].T
        self.X = X

    @property
    def size(self) -> int:
        """Number of unknowns: features, or items."""
        return self.tally.n_items if self.X is None else self.X.shape[1]

    def solve(self, weights: Array, flows: Array, alpha: float) -> Array:
        """Ratings of shape (n_weightings, n_items).

        Parameters
        ----------
        weights, flows : ndarray of shape (n_weightings, n_distinct)
            Σ ω and Σ ω δ of each distinct pair.
        alpha : float
            λ of a weighting is alpha times the sum of its weights.
        """
        shifts = alpha * weights.sum(axis=1)
        if self.X is None and self.tally.n_items > DENSE_LIMIT:
            return self._by_conjugate_gradients(weights, flows, shifts)
        divergences = (self.tally.incidence.T @ flows.T).T
        matrices = self.gram(weights)
        right = divergences if self.X is None else divergences @ self.X
        diagonal = np.arange(matrices.shape[1])
        matrices[:, diagonal, diagonal] += shifts[:, None]
        found = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
        if self.X is None:
            return found
        ratings = found @ self.X.T
        return np.asarray(ratings - ratings.mean(axis=1, keepdims=True))

    def gram(self, weights: Array) -> Array:
        """``Xᵀ L X`` of each weighting, dense."""
        if self.X is None:
            return self._laplacians(weights)
        if self.tally.n_items <= DENSE_LIMIT:
            return np.asarray(self.X.T @ self._laplacians(weights) @ self.X)
        differences = self.tally.differences(self.X)
        return np.array([differences.T @ (w[:, None] * differences) for w in weights])

    def grounded(self, weights: Array, shift: float) -> Array:
        """``Xᵀ L X + λI``, dense, invertible without features also if λ = 0.

        Right-hand sides ``Bᵀ f`` and their solutions sum to zero in each component. So a multiple
        of the matrix of ones may be added there: it changes no rating, and the condition of the
        matrix no longer depends on λ.
        """
        matrix = np.asarray(self.gram(weights[None])[0])
        size = np.arange(len(matrix))
        if self.X is None:
            members = self.tally.components
            together = members[:, None] == members
            matrix += together * (matrix.trace() / len(matrix) / np.bincount(members)[members])
            isolated = self.tally.degrees(weights) == 0
            matrix[size[isolated], size[isolated]] += 1.0
        matrix[size, size] += shift
        return matrix

    def _laplacians(self, weights: Array) -> Array:
        tally, n = self.tally, self.tally.n_items
        matrices = np.zeros((len(weights), n, n))
        matrices[:, tally.first, tally.second] = -weights
        matrices[:, tally.second, tally.first] = -weights
        diagonal = np.arange(n)
        matrices[:, diagonal, diagonal] = (abs(tally.incidence).T @ weights.T).T
        return matrices

    def _by_conjugate_gradients(self, weights: Array, flows: Array, shifts: Array) -> Array:
        ratings = np.zeros((len(weights), self.tally.n_items))
        start = None
        for k, (w, f, shift) in enumerate(zip(weights, flows, shifts, strict=True)):
            system = SparseSystem(self.tally, w, float(shift))
            ratings[k] = system.solve(self.tally.divergence(f), TOLERANCE, start)
            start = ratings[0]
        return ratings


class SparseSystem:
    """``(L + λI) r = d`` by conjugate gradients; one weighting, any number of right-hand sides.

    One at a time: a vector of 1e5 items stays in the cache, a block of them does not, and the
    block took twice as long for each of its columns.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    weights : ndarray of shape (n_distinct,)
        Σ ω of each distinct pair.
    shift : float
        λ, at least 0.
    dtype : {float64, float32}
        Precision of the products; single precision is twice as fast and good for a tolerance of
        1e-4 or so.
    """

    def __init__(
        self, tally: Tally, weights: Array, shift: float, dtype: type[np.floating] = np.float64
    ) -> None:
        diagonal = tally.degrees(weights) + shift
        self._diagonal = np.where(diagonal > 0, diagonal, 1.0).astype(dtype)
        self._adjacency = tally.adjacency(weights.astype(dtype))

    def solve(self, right: Array, tol: float, start: Array | None = None) -> Array:
        """The solution for one right-hand side that sums to zero in each component."""
        dtype = self._diagonal.dtype
        found = conjugate_gradients(
            lambda v: self._diagonal[:, None] * v - self._adjacency @ v,
            right[:, None].astype(dtype),
            self._diagonal,
            tol=tol,
            max_iter=MAX_ITERATIONS,
            start=None if start is None else start[:, None].astype(dtype),
        )
        if not found.converged:
            warnings.warn(
                f"conjugate gradients stopped after {MAX_ITERATIONS} iterations before the "
                "ratings were exact; a larger alpha makes the system easier.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return np.asarray(found.x[:, 0])


def explained_by_ratings(tally: Tally, start: Array) -> float:
    """rᵀ d of the ratings without regularization, L r = d.

    It is the largest value of ``2 rᵀ d − rᵀ L r``, so that the square of the error of r counts.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    start : ndarray of shape (n_items,)
        A first guess, the regularized ratings.
    """
    weights, flows = tally.sums
    divergence = tally.divergence(flows)
    if tally.n_items <= DENSE_LIMIT:
        L = RatingSystem(tally).grounded(weights, 0.0)
        ratings = np.asarray(np.linalg.solve(L, divergence), np.float64)
    else:
        ratings = SparseSystem(tally, weights, 0.0).solve(divergence, 1e-7, start)
    return float(2 * ratings @ divergence - weights @ tally.differences(ratings) ** 2)
