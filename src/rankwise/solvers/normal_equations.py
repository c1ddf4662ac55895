"""The normal equations of RankRLS as sums, and groups of which only a part is there.

Every sum over pairs is a sum over groups. Under the magnitude cost with ties a group may be cut:
weight, mean and scatter of its rows are kept, and

    sums(A ∪ B) = sums(A) + sums(B) + [pairs of one item of A and one of B].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.solvers.least_squares import solve_shifted


class NormalEquations(NamedTuple):
    """Sums over pairs, ``Rᵀ L R`` and ``Rᵀ d``, or over rows, ``Rᵀ D R`` and ``Rᵀ D y``.

    With their weight and number.
    """

    gram: Any
    moment: Any
    weight: float
    n: int

    def plus(self, other: NormalEquations, factor: int = 1) -> NormalEquations:
        """``self + factor · other``."""
        return NormalEquations(
            *(own + factor * theirs for own, theirs in zip(self, other, strict=True))
        )


def solve_normal_equations(
    pairs: NormalEquations, rows: NormalEquations, beta: float, alphas: Array
) -> Array:
    """Solve ``(A + αI) w = b``, [RankRLS09] equation 28; zero without pairs and rows.

    Returns w of shape (n_alphas, n_features, n_outputs).
    """
    share = (1 - beta) / pairs.weight if pairs.n and pairs.weight > 0 else 0.0
    A, b = share * pairs.gram, share * pairs.moment
    if beta > 0 and rows.weight > 0:
        A, b = A + beta / rows.weight * rows.gram, b + beta / rows.weight * rows.moment
    return solve_shifted(A, b, alphas)[0]


class GroupMoments(NamedTuple):
    """A group that may go on in another batch, under the magnitude cost with ties.

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
        """Memory."""
        return self.mean.nbytes + self.root.nbytes

    @classmethod
    def of_rows(cls, Z: Array, weight: Array) -> GroupMoments:
        """The group of these rows, of positive weights."""
        total = float(weight.sum())
        pairs = float(weight[1:] @ np.cumsum(weight)[:-1])
        mean = weight @ Z / total
        return cls(len(Z), total, pairs, mean, _packed(np.sqrt(weight)[:, None] * (Z - mean)))

    def joined(self, other: GroupMoments, sign: int = 1) -> GroupMoments:
        """The group of the rows of both; with sign −1 that without the rows of the other."""
        total = self.weight + sign * other.weight
        least = min(self.weight, total)  # the rows that are not those of the other
        ratio = other.weight / total
        between = np.sqrt(self.weight * ratio) * (self.mean - other.mean)
        added = np.vstack([other.root, between])
        if sign > 0:
            root = _packed(np.vstack([self.root, added]))
        else:
            gram = self.root.T @ self.root
            root = _root(gram - added.T @ added, np.sqrt(gram.diagonal()))
        return GroupMoments(
            self.n_items + sign * other.n_items,
            total,
            self.pair_weight + sign * (other.pair_weight + least * other.weight),
            self.mean + sign * ratio * (other.mean - self.mean),
            root,
        )

    def pairs(self, n_features: int, group_weight: str) -> NormalEquations:
        """Sums over the pairs: L is the weight of the group times "subtract the mean"."""
        factor = 1.0
        if group_weight == "groups":
            factor = 1.0 / self.pair_weight if self.pair_weight > 0 else 0.0
        gram = factor * self.weight * (self.root.T @ self.root)
        n_pairs = self.n_items * (self.n_items - 1) // 2
        moment = gram[:n_features, n_features:]
        return NormalEquations(
            gram[:n_features, :n_features], moment, factor * self.pair_weight, n_pairs
        )

    def rows(self, n_features: int) -> NormalEquations:
        """Sums over the rows."""
        gram = self.root.T @ self.root + self.weight * np.outer(self.mean, self.mean)
        moment = gram[:n_features, n_features:]
        return NormalEquations(gram[:n_features, :n_features], moment, self.weight, self.n_items)


def _packed(Z: Array) -> Array:
    """A matrix with the same ``Zᵀ Z`` and not many more rows than columns."""
    if len(Z) <= 2 * Z.shape[1]:
        return Z
    gram = Z.T @ Z
    return _root(gram, np.sqrt(gram.diagonal()))


def _root(S: Array, norms: Array) -> Array:
    """Z with ``Zᵀ Z = S``, but for rounding that would make S indefinite.

    Eigenvalues are exact relative to the largest one only, so columns of different units are
    divided by their norms first: S_jk is then wrong by a few units in the last place of
    ``norms_j norms_k``, as it is by the product that it comes from.
    """
    scale = np.where(norms > 0, norms, 1.0)
    values, Q = np.linalg.eigh(S / scale / scale[:, None])
    positive = values > 0
    unscaled = (Q[:, positive] * np.sqrt(values[positive])).T
    return np.ascontiguousarray(unscaled * scale)
