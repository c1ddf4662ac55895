"""Ratings of one or many weightings of the same comparisons."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from rankwise.leaderboard.tally import Tally

__all__ = ["DENSE_LIMIT", "RatingSystem", "potential"]

Array = NDArray[np.float64]
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
        replaced by as many as items, which have the same inner products and give the same r.
    """

    def __init__(self, tally: Tally, X: Array | None = None) -> None:
        self.tally = tally
        if X is not None and np.array_equal(X[tally.first], X[tally.second]):
            raise ValueError(
                "the features of the two items are the same in every comparison, so nothing can be "
                "learned from them; pass other features, or none."
            )
        if X is not None and X.shape[1] > X.shape[0]:
            X = qr(X.T, mode="economic")[1].T
        self.X = X

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
        divergences = (self.tally.incidence.T @ flows.T).T
        if self.X is None and self.tally.n_items > DENSE_LIMIT:
            return self._by_conjugate_gradients(weights, divergences, shifts)
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
        differences = self.X[self.tally.first] - self.X[self.tally.second]
        return np.array([differences.T @ (w[:, None] * differences) for w in weights])

    def _laplacians(self, weights: Array) -> Array:
        tally, n = self.tally, self.tally.n_items
        matrices = np.zeros((len(weights), n, n))
        matrices[:, tally.first, tally.second] = -weights
        matrices[:, tally.second, tally.first] = -weights
        diagonal = np.arange(n)
        matrices[:, diagonal, diagonal] = (abs(tally.incidence).T @ weights.T).T
        return matrices

    def _by_conjugate_gradients(self, weights: Array, divergences: Array, shifts: Array) -> Array:
        ratings = np.zeros((len(weights), self.tally.n_items))
        start = None
        for k, (w, d, shift) in enumerate(zip(weights, divergences, shifts, strict=True)):
            ratings[k] = _conjugate_gradients(self.tally, w, d, float(shift), start)
            start = ratings[0]
        return ratings


def potential(tally: Tally, weights: Array, flows: Array) -> Array:
    """The rating without regularisation: of all solutions of L r = d the one of least norm."""
    divergence = tally.incidence.T @ flows
    if tally.n_items > DENSE_LIMIT:
        return _conjugate_gradients(tally, weights, divergence, 0.0, None)
    L = RatingSystem(tally).gram(weights[None])[0]
    return np.asarray(np.linalg.lstsq(L, divergence, rcond=None)[0])


def _conjugate_gradients(
    tally: Tally, weights: Array, divergence: Array, shift: float, start: Array | None
) -> Array:
    B, n = tally.incidence, tally.n_items
    degrees = abs(B).T @ weights + shift
    degrees[degrees == 0] = 1.0
    A = LinearOperator((n, n), matvec=lambda v: B.T @ (weights * (B @ v)) + shift * v)
    M = LinearOperator((n, n), matvec=lambda v: v / degrees)
    ratings, failure = cg(A, divergence, x0=start, rtol=TOLERANCE, maxiter=MAX_ITERATIONS, M=M)
    if failure:
        warnings.warn(
            f"conjugate gradients stopped after {MAX_ITERATIONS} iterations before the ratings "
            "were exact; a larger alpha makes the system easier.",
            ConvergenceWarning,
            stacklevel=5,
        )
    return np.asarray(ratings)
