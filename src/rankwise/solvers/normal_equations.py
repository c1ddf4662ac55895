"""The normal equations of RankRLS as sums, and groups whose rows come in several batches.

Every sum over pairs is a sum over groups. Under the magnitude cost with ties a group may be
cut: weight, mean and scatter of its rows are stored, and

    sums(A ∪ B) = sums(A) + sums(B) + [pairs of one item of A and one of B].
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.solvers.least_squares import solve_shifted


class WeightedSums(NamedTuple):
    """Sums over pairs, ``Rᵀ L R`` and ``Rᵀ d``, or over rows, ``Rᵀ D R`` and ``Rᵀ D y``.

    Attributes
    ----------
    gram : ndarray of shape (n_features, n_features)
        First sum; the number 0.0 before any pair or row.
    moment : ndarray of shape (n_features, n_outputs)
        Second sum.
    weight : float
        Their weight.
    n : int
        Their number.
    """

    gram: Array | float
    moment: Array | float
    weight: float
    n: int

    def plus(self, other: WeightedSums, factor: int = 1) -> WeightedSums:
        """``self + factor · other``."""
        return WeightedSums(
            self.gram + factor * other.gram,
            self.moment + factor * other.moment,
            self.weight + factor * other.weight,
            self.n + factor * other.n,
        )


NO_SUMS = WeightedSums(0.0, 0.0, 0.0, 0)


@dataclass(frozen=True)
class NormalEquations:
    """The normal equations of RankRLS as sums, which are added, subtracted and solved.

    Attributes
    ----------
    pairs : WeightedSums
        Sums over the pairs.
    rows : WeightedSums
        Sums over the rows.
    """

    pairs: WeightedSums = NO_SUMS
    rows: WeightedSums = NO_SUMS

    def add(self, other: NormalEquations) -> NormalEquations:
        """The equations of the pairs and rows of both."""
        return NormalEquations(self.pairs.plus(other.pairs), self.rows.plus(other.rows))

    def subtract(self, other: NormalEquations) -> NormalEquations:
        """The equations without the pairs and rows of the other."""
        return NormalEquations(self.pairs.plus(other.pairs, -1), self.rows.plus(other.rows, -1))

    def add_pairs(self, pairs: WeightedSums, factor: int = 1) -> NormalEquations:
        """The equations with further pairs of the same rows, or without them for factor −1."""
        return replace(self, pairs=self.pairs.plus(pairs, factor))

    def solve(self, beta: float, alphas: Array) -> Array:
        """Solve ``(A + αI) w = b``, [RankRLS09] equation 28; zero without pairs and rows.

        Parameters
        ----------
        beta : float
            Share of the regression part.
        alphas : ndarray of shape (n_alphas,)
            Regularization.

        Returns
        -------
        ndarray of shape (n_alphas, n_features, n_outputs)
            w.
        """
        pair_factor = 0.0
        if self.pairs.n and self.pairs.weight > 0:
            pair_factor = (1 - beta) / self.pairs.weight
        gram = pair_factor * self.pairs.gram
        moment = pair_factor * self.pairs.moment
        if beta > 0 and self.rows.weight > 0:
            row_factor = beta / self.rows.weight
            gram = gram + row_factor * self.rows.gram
            moment = moment + row_factor * self.rows.moment
        system = np.asarray(gram)
        solutions, _ = solve_shifted(system, np.asarray(moment), alphas, overwrite=True)
        return solutions


class GroupMoments(NamedTuple):
    """A group that may have rows in a later batch, under the magnitude cost with ties.

    Attributes
    ----------
    n_items : int
        Rows of positive weight.
    weight, pair_weight : float
        ``Σ w_i`` and ``Σ w_i w_j`` over the pairs i < j.
    mean : ndarray of shape (n_columns,)
        Weighted mean of features and scores.
    root : ndarray of shape (n, n_columns)
        Z with ``Zᵀ Z = Σ w (z − mean)(z − mean)ᵀ``, n at most 2 n_columns.
    """

    n_items: int
    weight: float
    pair_weight: float
    mean: Array
    root: Array

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.mean.nbytes + self.root.nbytes

    @classmethod
    def of_rows(cls, Z: Array, weight: Array) -> GroupMoments:
        """The group of these rows, of positive weights."""
        total = float(weight.sum())
        pairs = float(weight[1:] @ np.cumsum(weight)[:-1])
        mean = weight @ Z / total
        return cls(len(Z), total, pairs, mean, _compressed(np.sqrt(weight)[:, None] * (Z - mean)))

    def joined(self, other: GroupMoments, sign: int = 1) -> GroupMoments:
        """The group of the rows of both; with sign −1 that without the rows of the other."""
        total = self.weight + sign * other.weight
        weight_of_others = min(self.weight, total)  # of the rows that are not those of the other
        ratio = other.weight / total
        between = np.sqrt(self.weight * ratio) * (self.mean - other.mean)
        added = np.vstack([other.root, between])
        if sign > 0:
            root = _compressed(np.vstack([self.root, added]))
        else:
            gram = self.root.T @ self.root
            root = _root(gram - added.T @ added, np.sqrt(gram.diagonal()))
        return GroupMoments(
            self.n_items + sign * other.n_items,
            total,
            self.pair_weight + sign * (other.pair_weight + weight_of_others * other.weight),
            self.mean + sign * ratio * (other.mean - self.mean),
            root,
        )

    def equations(self, n_features: int, group_weight: str) -> NormalEquations:
        """The normal equations of this group."""
        return NormalEquations(self.pairs(n_features, group_weight), self.rows(n_features))

    def pairs(self, n_features: int, group_weight: str) -> WeightedSums:
        """Sums over the pairs: L is the weight of the group times centering."""
        factor = 1.0
        if group_weight == "groups" and self.pair_weight > 0:
            factor = 1.0 / self.pair_weight
        elif group_weight == "groups":
            factor = 0.0  # a single item
        gram = factor * self.weight * (self.root.T @ self.root)
        n_pairs = self.n_items * (self.n_items - 1) // 2
        moment = gram[:n_features, n_features:]
        return WeightedSums(
            gram[:n_features, :n_features], moment, factor * self.pair_weight, n_pairs
        )

    def rows(self, n_features: int) -> WeightedSums:
        """Sums over the rows."""
        gram = self.root.T @ self.root + self.weight * np.outer(self.mean, self.mean)
        moment = gram[:n_features, n_features:]
        return WeightedSums(gram[:n_features, :n_features], moment, self.weight, self.n_items)


def _compressed(Z: Array) -> Array:
    """A matrix with the same ``Zᵀ Z`` and at most about twice as many rows as columns."""
    if len(Z) <= 2 * Z.shape[1]:
        return Z
    gram = Z.T @ Z
    return _root(gram, np.sqrt(gram.diagonal()))


def _root(S: Array, norms: Array) -> Array:
    """Z with ``Zᵀ Z = S``, except for rounding errors that make S indefinite.

    Eigenvalues are exact relative to the largest eigenvalue only, so columns of different units are
    divided by their norms first: S_jk is then wrong by a few units in the last place of
    ``norms_j norms_k``, as is the product that S_jk comes from.
    """
    scale = np.where(norms > 0, norms, 1.0)
    values, Q = np.linalg.eigh(S / scale / scale[:, None])
    is_positive = values > 0
    scaled_root = (Q[:, is_positive] * np.sqrt(values[is_positive])).T
    return np.ascontiguousarray(scaled_root * scale)
