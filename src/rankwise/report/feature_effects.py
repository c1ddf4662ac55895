"""Which features order the items: weights, and what they add inside groups.

Only differences inside a group matter to a ranking, so features are centered there: feature j adds
``w_j (x_ij − mean of x_j in the group)`` to the score of item i less the mean score of its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array, Indices
from rankwise.report.scored_items import ScoredItems, short_numbers

__all__ = ["FeatureEffects"]

LISTED_FEATURES = 40
SHOWN_FEATURES = 8
BLOCK_ENTRIES = 2**22


@dataclass(frozen=True, eq=False)
class FeatureEffects:
    """A linear model on the items of a page.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
        Of the features.
    X : ndarray or csr_matrix of shape (m, n_features)
        Features of the items as the learner sees them.
    scored : ScoredItems
        The items.
    names : list of str
        Of the features.
    errors : ndarray of shape (n_features,) or None
        Standard errors of the weights.
    """

    weights: Array
    X: Any
    scored: ScoredItems
    names: list[str]
    errors: Array | None = None

    @cached_property
    def means(self) -> Any:
        """Mean of each feature in each group."""
        codes, sizes = self.scored.groups.codes, self.scored.sizes
        shape = (len(sizes), len(codes))
        average = sp.csr_matrix((1.0 / sizes[codes], (codes, np.arange(len(codes)))), shape=shape)
        return average @ self.X

    @cached_property
    def spread(self) -> Array:
        """Standard deviation inside groups of what each feature adds."""
        if sp.issparse(self.X):
            squares = np.asarray(self.X.multiply(self.X).sum(axis=0)).ravel()
            sizes = sp.diags(self.scored.sizes.astype(float))
            between = np.asarray((sizes @ self.means.multiply(self.means)).sum(axis=0)).ravel()
            total = np.maximum(squares - between, 0.0)
        else:
            total = np.concatenate([self._squares(columns) for columns in self._blocks()])
        return np.asarray(np.abs(self.weights) * np.sqrt(total / self.scored.n_items))

    @cached_property
    def share(self) -> Array:
        """Share of the variance of the scores inside groups that each feature explains.

        ``w_j Σ_i x_ij f_i / Σ_i f_i²`` for centered scores f. The shares add up to 1; a feature
        that works against the others has a negative one.
        """
        f = self.scored.centered_scores
        largest = float(np.abs(f).max())
        if not largest:
            return np.zeros(len(self.weights))
        f = f / largest  # so that no square is too large or too small
        return np.asarray((self.weights / largest) * (self.X.T @ f) / (f @ f))

    @cached_property
    def shown(self) -> Indices:
        """The features that add most, whose contributions to single items are shown."""
        order = np.argsort(-self.spread, kind="stable")
        useful: Indices = order[self.spread[order] > 0][:SHOWN_FEATURES]
        return useful

    def contributions(self, items: Indices) -> list[list[Any]]:
        """For each item what the shown features add, and at last all other features together."""
        rows = self.X[items][:, self.shown]
        means = self.means[self.scored.groups.codes[items]][:, self.shown]
        added = self.weights[self.shown] * _dense(rows - means)
        others = self.scored.centered_scores[items] - added.sum(axis=1)
        return [short_numbers(row, 4) for row in np.column_stack([added, others])]

    def describe(self) -> dict[str, Any]:
        """The table of the largest weights and effects for the page."""
        by_weight = np.argsort(-np.abs(self.weights), kind="stable")
        by_spread = np.argsort(-self.spread, kind="stable")
        half = LISTED_FEATURES // 2
        listed = list(dict.fromkeys([*by_spread[:half], *by_weight[:half], *by_spread]))
        listed = [j for j in listed if self.weights[j]][:LISTED_FEATURES]
        return {
            "names": [self.names[j] for j in listed],
            "weights": short_numbers(self.weights[listed]),
            "errors": None if self.errors is None else short_numbers(self.errors[listed]),
            "effects": short_numbers((np.sign(self.weights) * self.spread)[listed]),
            "shares": short_numbers(self.share[listed]),
            "total": len(self.weights),
            "nonzero": int(np.count_nonzero(self.weights)),
            "shown": [self.names[j] for j in self.shown],
            "others": len(self.weights) - len(self.shown),
        }

    def _blocks(self) -> list[slice]:
        width = max(1, BLOCK_ENTRIES // self.scored.n_items)
        starts = range(0, len(self.weights), width)
        return [slice(start, start + width) for start in starts]

    def _squares(self, part: slice) -> Array:
        centered = self.X[:, part] - self.means[self.scored.groups.codes, part]
        return np.asarray((centered * centered).sum(axis=0))


def _dense(matrix: Any) -> Array:
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix, dtype=np.float64)
