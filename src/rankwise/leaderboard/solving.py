"""Ratings of one or many weightings of the same comparisons."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import svd
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.leaderboard.tally import Tally
from rankwise.solvers.least_squares import conjugate_gradients

DENSE_LIMIT = 300  # items; above, conjugate gradients are faster than a dense solve
TOLERANCE = 1e-11
MAX_ITERATIONS = 10_000
TINY = 1e-12  # λ of an effect, as a share of W
RANK = 1e-12  # of the largest singular value of the features; less is rounding


class Solution(NamedTuple):
    """Ratings and effects of the covariates in the natural scale of a model.

    Attributes
    ----------
    ratings : ndarray of shape (n_items,) or (n_weightings, n_items)
        Their mean is 0 in each component.
    effects : ndarray of shape (n_covariates,) or (n_weightings, n_covariates)
        γ of the columns of the tally.
    ties : float or None
        The parameter of the ties, if the model has one.
    note : str
        What a reader of the board must know, such as a separable record; empty if nothing.
    """

    ratings: Array
    effects: Array
    ties: float | None = None
    note: str = ""


class RatingSystem:
    """``Dᵀ W D u + λu = Dᵀ W δ`` with a row ``D = [x_i − x_j, z]`` for each distinct pair.

    The unknowns u are the weights w of the features X, and r = X w, followed by the effects γ of
    the covariates, which are not regularized (but for `TINY`, where the data leave them open).

    Parameters
    ----------
    tally : Tally
        The comparisons.
    X : ndarray of shape (n_items, n_features), optional
        Features of the items; without them X is the identity. They are replaced by as many as
        their rank, whose differences have the same inner products; r is the same. So columns that
        say the same (a gap filled with the median, and its indicator) make no system singular.
    n_free : int
        So many of the last features are not regularized; all features are then taken as they are.

    Attributes
    ----------
    n_ratings : int
        Number of unknowns that ratings are made of: features, or items.
    n_regularized : int
        How many of them, the first ones, are regularized.
    size : int
        Number of unknowns.
    """

    def __init__(self, tally: Tally, X: Array | None = None, n_free: int = 0) -> None:
        self.tally = tally
        if X is not None and np.array_equal(X[tally.first], X[tally.second]):
            raise ValueError(
                "the features of the two items are the same in every comparison, so nothing can be "
                "learned from them; pass other features, or none."
            )
        if X is not None and not n_free:
            self.n_features = min(X.shape)
            centered = np.column_stack([tally.centered(column) for column in X.T])
            _, size, directions = svd(centered, full_matrices=False)
            X = (X - X.mean(axis=0)) @ directions[size > RANK * size[0]].T
        self.X = X
        self.n_ratings = tally.n_items if X is None else X.shape[1]
        self.n_regularized = self.n_ratings - n_free
        self.size = self.n_ratings + tally.n_covariates

    @property
    def has_prior(self) -> bool:
        """Whether some features, a prior's, are not regularized."""
        return self.n_regularized < self.n_ratings

    def of(self, tally: Tally) -> RatingSystem:
        """The same unknowns for other weights, targets or counts of the same pairs."""
        system = copy(self)
        system.tally = tally
        return system

    def penalty(self, shift: float) -> Array:
        """λ of each unknown."""
        tiny = TINY * self.tally.total_weight
        return np.repeat([shift, tiny], [self.n_regularized, self.size - self.n_regularized])

    def solve(self, weights: Array, flows: Array, alpha: float) -> tuple[Array, Array]:
        """Ratings and effects for many weightings.

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
        matrices, right = self.gram(weights), self.right(flows)
        diagonal = np.arange(self.size)
        for matrix, shift in zip(matrices, shifts, strict=True):
            matrix[diagonal, diagonal] += self.penalty(shift)
        return self.unpacked(np.asarray(np.linalg.solve(matrices, right[:, :, None])[:, :, 0]))

    def unpacked(self, unknowns: Array) -> tuple[Array, Array]:
        """Ratings, whose mean is 0, and effects."""
        w, effects = np.split(unknowns, [self.n_ratings], axis=1)
        if self.X is None:
            return w, effects
        ratings = w @ self.X.T
        return ratings - ratings.mean(axis=1, keepdims=True), effects

    def margins(self, unknowns: Array) -> Array:
        """``D u`` of each distinct pair."""
        w, effects = unknowns[: self.n_ratings], unknowns[self.n_ratings :]
        return self.tally.margins(w if self.X is None else self.X @ w, effects)

    def solver(self, curvatures: Array, shift: float, tol: float) -> Callable[[Array], Array]:
        """Solve with ``Dᵀ W D + λI`` for these weights, one right-hand side after the other."""
        if self.X is None and self.tally.n_items > DENSE_LIMIT:
            sparse = SparseSystem(self, curvatures, shift)
            return lambda right: sparse.solve(right, tol)
        matrix = self.grounded(curvatures, shift)
        return lambda right: np.asarray(np.linalg.solve(matrix, right))

    def rows(self, pairs: Any) -> Array:
        """``[x_i − x_j, z]`` of some of the distinct pairs, dense."""
        first, second = self.tally.first[pairs], self.tally.second[pairs]
        if self.X is None:
            items, numbers = np.zeros((len(first), self.n_ratings)), np.arange(len(first))
            items[numbers, first], items[numbers, second] = 1.0, -1.0
        else:
            items = self.X[first] - self.X[second]
        return np.hstack([items, self.tally.covariates[pairs]])

    def free_rows(self, pairs: Any) -> Array:
        """The part of these rows that is not regularized."""
        Z = np.asarray(self.tally.covariates[pairs])
        if self.X is None or not self.has_prior:
            return Z
        free = self.X[:, self.n_regularized :]
        return np.hstack([free[self.tally.first[pairs]] - free[self.tally.second[pairs]], Z])

    def right(self, flows: Array) -> Array:
        """``Dᵀ f`` of each weighting."""
        divergences = (self.tally.incidence.T @ flows.T).T
        items = divergences if self.X is None else divergences @ self.X
        return np.hstack([items, flows @ self.tally.covariates])

    def gram(self, weights: Array) -> Array:
        """``Dᵀ W D`` of each weighting, dense."""
        is_narrow = self.X is not None and self.X.shape[1] < self.tally.n_items
        if is_narrow and self.tally.n_items > DENSE_LIMIT:
            D = self.rows(slice(None))
            return np.array([D.T @ (w[:, None] * D) for w in weights])
        matrices = self._of_items(weights)
        if self.X is None:
            return matrices
        n, p = self.X.shape
        T = np.zeros((n + self.tally.n_covariates, self.size))
        T[:n, :p], T[n:, p:] = self.X, np.eye(self.tally.n_covariates)
        return np.asarray(T.T @ matrices @ T)

    def grounded(self, weights: Array, shift: float) -> Array:
        """``Dᵀ W D + λI``, dense, invertible without features also if λ = 0.

        Right-hand sides ``Bᵀ f`` and their solutions sum to zero in each component. So a multiple
        of the matrix of ones may be added there: it changes no rating, and the condition of the
        matrix no longer depends on λ.
        """
        matrix = np.asarray(self.gram(weights[None])[0])
        if self.X is None:
            n, members = self.tally.n_items, self.tally.components
            items = matrix[:n, :n]
            together = members[:, None] == members
            items += together * (items.trace() / n / np.bincount(members)[members])
            isolated = np.flatnonzero(self.tally.degrees(weights) == 0)
            items[isolated, isolated] += 1.0
        size = np.arange(len(matrix))
        matrix[size, size] += self.penalty(shift)
        return matrix

    def _of_items(self, weights: Array) -> Array:
        """The same for items without features."""
        tally, n, Z = self.tally, self.tally.n_items, self.tally.covariates
        matrices = np.zeros((len(weights), n + Z.shape[1], n + Z.shape[1]))
        first, second = tally.first[tally.edges], tally.second[tally.edges]
        edges = tally.by_edge(weights)
        matrices[:, first, second] = -edges
        matrices[:, second, first] = -edges
        diagonal = np.arange(n)
        matrices[:, diagonal, diagonal] = (abs(tally.incidence).T @ weights.T).T
        if Z.shape[1]:
            for matrix, w in zip(matrices, weights, strict=True):
                weighted = w[:, None] * Z
                matrix[:n, n:] = tally.incidence.T @ weighted
                matrix[n:, :n] = matrix[:n, n:].T
                matrix[n:, n:] = Z.T @ weighted
        return matrices

    def _by_conjugate_gradients(
        self, weights: Array, flows: Array, shifts: Array
    ) -> tuple[Array, Array]:
        unknowns = np.zeros((len(weights), self.size))
        right, start = self.right(flows), None
        for k, (w, shift) in enumerate(zip(weights, shifts, strict=True)):
            system = SparseSystem(self, w, float(shift))
            unknowns[k] = system.solve(right[k], TOLERANCE, start)
            start = unknowns[0]
        return self.unpacked(unknowns)


class SparseSystem:
    """``(Dᵀ W D + λI) u = d`` by conjugate gradients; one weighting, many right-hand sides.

    One at a time: a vector of 1e5 items stays in the cache, a block of them does not, and the
    block took twice as long for each of its columns.

    Parameters
    ----------
    system : RatingSystem
        The comparisons, without features.
    weights : ndarray of shape (n_distinct,)
        Σ ω of each distinct pair.
    shift : float
        λ, at least 0.
    dtype : {float64, float32}
        Precision of the products; single precision is twice as fast and good for a tolerance of
        1e-4 or so.
    """

    def __init__(
        self,
        system: RatingSystem,
        weights: Array,
        shift: float,
        dtype: type[np.floating] = np.float64,
    ) -> None:
        tally, Z = system.tally, system.tally.covariates
        weighted = weights[:, None] * Z
        self._cross = (tally.incidence.T @ weighted if Z.size else weighted[:0]).astype(dtype)
        self._inner = (Z.T @ weighted).astype(dtype)
        own = np.r_[tally.degrees(weights), self._inner.diagonal()] + system.penalty(shift)
        self._diagonal = np.where(own > 0, own, 1.0).astype(dtype)
        self._adjacency = tally.adjacency(weights.astype(dtype))

    def solve(self, right: Array, tol: float, start: Array | None = None) -> Array:
        """The solution for one right-hand side that sums to zero in each component."""
        dtype = self._diagonal.dtype
        solved = conjugate_gradients(
            self._product,
            right[:, None].astype(dtype),
            self._diagonal,
            tol=tol,
            max_iter=MAX_ITERATIONS,
            start=None if start is None else start[:, None].astype(dtype),
        )
        if not solved.converged:
            warn_user(
                f"conjugate gradients stopped after {MAX_ITERATIONS} iterations before the "
                "ratings were exact; a larger alpha makes the system easier.",
                ConvergenceWarning,
            )
        return np.asarray(solved.x[:, 0])

    def _product(self, v: Array) -> Array:
        n = self._adjacency.shape[0]
        product = self._diagonal[:, None] * v
        product[:n] -= self._adjacency @ v[:n]
        if len(v) > n:
            product[:n] += self._cross @ v[n:]
            inner = self._inner - np.diag(self._inner.diagonal())
            product[n:] += self._cross.T @ v[:n] + inner @ v[n:]
        return product


def explained_by_ratings(tally: Tally, start: Array) -> float:
    """rᵀ d of the ratings without regularization, L r = d; without covariates.

    It is the largest value of ``2 rᵀ d − rᵀ L r``, so that the square of the error of r counts.

    Parameters
    ----------
    tally : Tally
        The comparisons.
    start : ndarray of shape (n_items,)
        A first guess, the regularized ratings.
    """
    weights, flows = tally.sums
    system = RatingSystem(tally)
    right = system.right(flows[None])[0]
    if tally.n_items <= DENSE_LIMIT:
        L = system.grounded(weights, 0.0)
        ratings = np.asarray(np.linalg.solve(L, right), np.float64)
    else:
        ratings = SparseSystem(system, weights, 0.0).solve(right, 1e-7, start)
    return float(2 * ratings @ right - weights @ tally.differences(ratings) ** 2)
