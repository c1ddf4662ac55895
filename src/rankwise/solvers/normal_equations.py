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
        Total weight of the pairs or rows.
    n_terms : int
        Number of pairs or rows.
    """

    gram: Array | float
    moment: Array | float
    weight: float
    n_terms: int

    def plus(self, other: WeightedSums) -> WeightedSums:
        """The sums over the pairs or rows of both."""
        return WeightedSums(
            self.gram + other.gram,
            self.moment + other.moment,
            self.weight + other.weight,
            self.n_terms + other.n_terms,
        )

    def minus(self, other: WeightedSums) -> WeightedSums:
        """The sums without the pairs or rows of the other."""
        return WeightedSums(
            self.gram - other.gram,
            self.moment - other.moment,
            self.weight - other.weight,
            self.n_terms - other.n_terms,
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
        return NormalEquations(self.pairs.minus(other.pairs), self.rows.minus(other.rows))

    def add_pairs(self, pairs: WeightedSums) -> NormalEquations:
        """The equations with further pairs of the same rows."""
        return replace(self, pairs=self.pairs.plus(pairs))

    def subtract_pairs(self, pairs: WeightedSums) -> NormalEquations:
        """The equations without these pairs."""
        return replace(self, pairs=self.pairs.minus(pairs))

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
        # (A + αI) w = b: the pairs weigh 1 − β, and the rows β
        weight_per_pair = 0.0
        if self.pairs.n_terms and self.pairs.weight > 0:
            weight_per_pair = (1 - beta) / self.pairs.weight
        gram = weight_per_pair * self.pairs.gram
        moment = weight_per_pair * self.pairs.moment
        if beta > 0 and self.rows.weight > 0:
            weight_per_row = beta / self.rows.weight
            gram = gram + weight_per_row * self.rows.gram
            moment = moment + weight_per_row * self.rows.moment
        w, _ = solve_shifted(np.asarray(gram), np.asarray(moment), alphas, overwrite=True)
        return w


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
    scatter_root : ndarray of shape (n, n_columns)
        Z with ``Zᵀ Z = Σ w (z − mean)(z − mean)ᵀ``, n at most 2 n_columns.
    """

    n_items: int
    weight: float
    pair_weight: float
    mean: Array
    scatter_root: Array

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.mean.nbytes + self.scatter_root.nbytes

    @classmethod
    def of_rows(cls, Z: Array, weight: Array) -> GroupMoments:
        """The group of these rows, of positive weights."""
        # mean and scatter of the rows (a root of it), and Σ w_i w_j over the pairs i < j
        total_weight = float(weight.sum())
        weight_of_previous_rows = np.cumsum(weight)[:-1]  # of the rows before each but the first
        pair_weight = float(weight[1:] @ weight_of_previous_rows)
        mean = weight @ Z / total_weight
        root = _compress_rows(np.sqrt(weight)[:, None] * (Z - mean))
        return cls(len(Z), total_weight, pair_weight, mean, root)

    def joined(self, other: GroupMoments) -> GroupMoments:
        """The group of the rows of both."""
        # moments of the joined rows, from the moments of both groups
        total_weight = self.weight + other.weight
        other_share = other.weight / total_weight
        pairs_between = self.weight * other.weight
        # the scatter around the common mean is that around both means plus one between them
        between = np.sqrt(self.weight * other_share) * (self.mean - other.mean)
        return GroupMoments(
            self.n_items + other.n_items,
            total_weight,
            self.pair_weight + (other.pair_weight + pairs_between),
            self.mean + other_share * (other.mean - self.mean),
            _compress_rows(np.vstack([self.scatter_root, other.scatter_root, between])),
        )

    def without(self, other: GroupMoments) -> GroupMoments:
        """The group without the rows of the other: the inverse of `joined`."""
        # undo `joined`: its formulas, solved for the group that was joined with the other
        total_weight = self.weight - other.weight
        other_ratio = other.weight / total_weight
        pairs_between = total_weight * other.weight
        between = np.sqrt(self.weight * other_ratio) * (self.mean - other.mean)
        gram = self.scatter_root.T @ self.scatter_root
        removed_root = np.vstack([other.scatter_root, between])
        removed_gram = removed_root.T @ removed_root
        return GroupMoments(
            self.n_items - other.n_items,
            total_weight,
            self.pair_weight - (other.pair_weight + pairs_between),
            self.mean - other_ratio * (other.mean - self.mean),
            _root_of_gram(gram - removed_gram, np.sqrt(gram.diagonal())),
        )

    def equations(self, n_features: int, group_weight: str) -> NormalEquations:
        """The normal equations of this group."""
        return NormalEquations(self.pairs(n_features, group_weight), self.rows(n_features))

    def pairs(self, n_features: int, group_weight: str) -> WeightedSums:
        """Sums over the pairs: L is the weight of the group times centering."""
        factor_of_pairs = 1.0
        if group_weight == "groups" and self.pair_weight > 0:
            factor_of_pairs = 1.0 / self.pair_weight  # so that every group has the weight 1
        elif group_weight == "groups":
            factor_of_pairs = 0.0  # a single item has no pairs
        # with z = (features, scores) of a row, Σ w_i w_j (z_i − z_j)(z_i − z_j)ᵀ over the pairs is
        # the total weight of the rows times their scatter Σ w (z − mean)(z − mean)ᵀ
        gram = factor_of_pairs * self.weight * (self.scatter_root.T @ self.scatter_root)
        return WeightedSums(
            gram[:n_features, :n_features],
            gram[:n_features, n_features:],
            weight=factor_of_pairs * self.pair_weight,
            n_terms=self.n_items * (self.n_items - 1) // 2,
        )

    def rows(self, n_features: int) -> WeightedSums:
        """Sums over the rows."""
        # with z = (features, scores) of a row, Σ w z zᵀ is the scatter plus (Σ w) mean meanᵀ
        scatter = self.scatter_root.T @ self.scatter_root
        gram = scatter + self.weight * np.outer(self.mean, self.mean)
        return WeightedSums(
            gram[:n_features, :n_features],
            gram[:n_features, n_features:],
            weight=self.weight,
            n_terms=self.n_items,
        )


def _compress_rows(Z: Array) -> Array:
    """A matrix with the same ``Zᵀ Z`` and at most about twice as many rows as columns."""
    # replace many rows by at most one for each column, with the same Zᵀ Z
    n_rows, n_columns = Z.shape
    if n_rows <= 2 * n_columns:  # too few to gain much
        return Z
    gram = Z.T @ Z
    return _root_of_gram(gram, np.sqrt(gram.diagonal()))


def _root_of_gram(S: Array, column_norms: Array) -> Array:
    """Z with ``Zᵀ Z = S``, except for rounding errors that make S indefinite.

    Eigenvalues are exact relative to the largest eigenvalue only, so columns of different units are
    divided by their norms first: S_jk is then wrong by a few units in the last place of
    ``column_norms_j column_norms_k``, as is the product that S_jk comes from.
    """
    # a matrix Z with Zᵀ Z = S, by eigenvectors: Z = diag(√eigenvalues) Qᵀ; the columns, which may
    # have different units, are scaled first
    scale = np.where(column_norms > 0, column_norms, 1.0)
    eigenvalues, Q = np.linalg.eigh(S / scale / scale[:, None])
    is_positive = eigenvalues > 0
    scaled_root = (Q[:, is_positive] * np.sqrt(eigenvalues[is_positive])).T
    return np.ascontiguousarray(scaled_root * scale)
