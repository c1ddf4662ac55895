"""Sums over the pairs of groups, from rows or from lumps.

A lump is a set of items of one group, of which only the number, the weight, the mean and the
scatter matrix are known. That is enough to add their pairs to the normal equations of RankRLS. A
lump is one row, or all rows of one group and one score if they would take more memory than a
scatter matrix. Lumps are kept until no more rows of their group can come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices
from rankwise.graphs.gram_blocks import block_rows
from rankwise.graphs.score_graph import ScoreGraph
from rankwise.graphs.score_levels import deviations, sums_of_families


class PairRule(NamedTuple):
    """Which pairs there are and what they weigh, as in `ScoreGraph`."""

    cost: str
    ties: str
    group_weight: str

    @property
    def tells_scores_apart(self) -> bool:
        """Whether the pairs depend on the scores: ties are left out."""
        return not (self.cost == "magnitude" and self.ties == "include")


@dataclass(frozen=True)
class PairSums:
    """Sums over the pairs of some groups.

    Attributes
    ----------
    gram : ndarray of shape (n_features, n_features)
        ``Rᵀ L R``.
    moment : ndarray of shape (n_features, n_outputs)
        ``Rᵀ d``.
    weight : float
        W, the sum of the weights of the pairs.
    n_pairs : int
        How many there are.
    """

    gram: Array
    moment: Array
    weight: float
    n_pairs: int

    def plus(self, other: PairSums, factor: int = 1) -> PairSums:
        """``self + factor · other``."""
        return PairSums(
            self.gram + factor * other.gram,
            self.moment + factor * other.moment,
            self.weight + factor * other.weight,
            self.n_pairs + factor * other.n_pairs,
        )


class Lumps(NamedTuple):
    """The lumps of one group.

    Attributes
    ----------
    amounts : ndarray of shape (n_lumps, 3)
        Sum of the weights w of the items in each, sum of w², and number of items with w > 0.
    means : ndarray of shape (n_lumps, n_features + n_outputs)
        Weighted mean of the features and of the scores.
    scatters : dict of int to ndarray
        ``Σ w (z − mean)(z − mean)ᵀ`` of the lumps that have one; zero for the others.
    """

    amounts: Array
    means: Array
    scatters: dict[int, Array]

    @property
    def weight(self) -> Array:
        """Sum of the weights of the items in each."""
        return self.amounts[:, 0]

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        n_columns: int = self.means.shape[1]
        return 8 * (self.means.size + self.amounts.size + len(self.scatters) * n_columns**2)

    @classmethod
    def of_rows(cls, Z: Array, weight: Array | None = None) -> Lumps:
        """Every row by itself; those of weight 0 are left out."""
        if weight is None:
            return cls(np.ones((len(Z), 3)), Z, {})
        positive = weight > 0
        weight = weight[positive]
        amounts = np.stack([weight, weight**2, np.ones(len(weight))], axis=1)
        return cls(amounts, Z[positive], {})

    @classmethod
    def join(cls, several: Sequence[Lumps]) -> Lumps:
        """All of them, one after the other."""
        starts = np.cumsum([0, *(len(lumps.amounts) for lumps in several)])
        scatters = {
            int(start) + lump: scatter
            for start, lumps in zip(starts, several, strict=False)
            for lump, scatter in lumps.scatters.items()
        }
        amounts = np.concatenate([lumps.amounts for lumps in several])
        return cls(amounts, np.concatenate([lumps.means for lumps in several]), scatters)

    def compressed(self, rule: PairRule, n_features: int) -> Lumps:
        """The same, with one lump for each score whose lumps take more memory than one matrix."""
        n_columns: int = self.means.shape[1]
        if len(self.amounts) + n_columns * len(self.scatters) <= n_columns + 1:
            return self
        level = np.zeros(len(self.amounts), dtype=np.intp)
        if rule.tells_scores_apart:
            level = np.unique(self.means[:, n_features], return_inverse=True)[1]
        n_lumps = np.bincount(level)
        n_matrices = np.bincount(level[list(self.scatters)], minlength=len(n_lumps))
        crowded = np.flatnonzero((n_lumps > 1) & (n_lumps + n_columns * n_matrices > n_columns + 1))
        if not len(crowded):
            return self
        joined = [self._some(np.flatnonzero(~np.isin(level, crowded)))]
        for number in crowded:
            one = self._some(np.flatnonzero(level == number))._as_one_lump()
            if rule.tells_scores_apart:  # rounding must not make another score of the mean
                one.means[0, n_features:] = self.means[np.argmax(level == number), n_features:]
            joined.append(one)
        return Lumps.join(joined)

    def _some(self, lumps: Indices) -> Lumps:
        scatters = {
            new: self.scatters[int(old)]
            for new, old in enumerate(lumps)
            if int(old) in self.scatters
        }
        return Lumps(self.amounts[lumps], self.means[lumps], scatters)

    def _as_one_lump(self) -> Lumps:
        total = self.amounts.sum(axis=0)
        mean = self.weight @ self.means / total[0]
        scatter: Array = np.zeros((len(mean), len(mean)))
        height = block_rows(len(mean))
        for start in range(0, len(self.weight), height):
            block = slice(start, start + height)
            deviation = (self.means[block] - mean) * np.sqrt(self.weight[block])[:, None]
            scatter += deviation.T @ deviation
        for inner in self.scatters.values():
            scatter += inner
        return Lumps(total[None], mean[None], {0: scatter})


def sums_of_rows(
    R: Any, y: Array, groups: Indices, rule: PairRule, weight: Array | None = None
) -> PairSums:
    """Sums over the pairs of items with features R and scores y of shape (n_items, n_outputs)."""
    graph = ScoreGraph(_outputs(y), groups, **rule._asdict(), sample_weight=weight)
    gram, moment = graph.system(R, graph.divergence.reshape(y.shape))
    return PairSums(gram, moment, graph.total_weight, graph.n_pairs)


def sums_of_lumps(groups: Sequence[Lumps], n_features: int, rule: PairRule) -> PairSums:
    """Sums over the pairs of groups that are given by their lumps.

    A lump has items of weight n, mean z and scatter S. L is the Laplacian of the means; inside a
    lump it subtracts the mean and multiplies by w:

        Zᵀ L Z = Σ_lumps w S + Σ_lumps z (L z)ᵀ
    """
    lumps = Lumps.join(groups)
    if not len(lumps.amounts):  # all rows have weight 0
        n_outputs = lumps.means.shape[1] - n_features
        gram, moment = np.zeros((n_features, n_features)), np.zeros((n_features, n_outputs))
        return PairSums(gram, moment, 0.0, 0)
    of_group = np.repeat(np.arange(len(groups)), [len(group.amounts) for group in groups])
    graph = ScoreGraph(_outputs(lumps.means[:, n_features:]), of_group, **rule._asdict())
    graph = graph.lumped(*np.ascontiguousarray(lumps.amounts.T))
    Z = _centered(lumps.means, of_group, len(groups))
    gram = Z.T @ graph.laplacian(Z)
    gram = 0.5 * (gram + gram.T)
    within = graph.within
    for lump, scatter in lumps.scatters.items():
        gram += within[lump] * scatter
    moment = gram[:n_features, n_features:]
    if rule.cost == "sign":
        moment = Z[:, :n_features].T @ graph.divergence[:, None]
    return PairSums(
        gram[:n_features, :n_features].copy(), moment.copy(), graph.total_weight, graph.n_pairs
    )


def _outputs(y: Array) -> Array:
    return y[:, 0] if y.shape[1] == 1 else y


def _centered(Z: Array, of_group: Indices, n_groups: int) -> Array:
    """Z less the mean of each group. L does not see it, and smaller numbers keep more digits."""
    size = np.maximum(np.bincount(of_group, minlength=n_groups), 1)
    means = sums_of_families(Z, of_group, n_groups) / size[:, None]
    return deviations(Z, of_group, means, np.ones(n_groups))
