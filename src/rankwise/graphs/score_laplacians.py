"""The two forms that L has in a graph of scores: nested means, and one weight for each pair."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.graphs.gram_blocks import Nesting, nested_scatter
from rankwise.graphs.protocol import GraphRoot, system_by_columns
from rankwise.graphs.roots import (
    ComponentRoot,
    NestedRoot,
    WeightedRoot,
    connect_groups,
    items_of_components,
)
from rankwise.graphs.score_levels import ScoreLevels, deviations, score_differences, sums_of_others


class NestedLaplacian:
    """L of the magnitude and sign costs, which only scales deviations from means.

    Deviations from the mean of the level are scaled by `within`, those of the means of levels from
    the mean of the group by `between`, and means of groups by 0. With weights w the means are
    weighted, and item i is multiplied by w_i at the end: a clique has ``L v = w ∘ (s v − Σ w v)``,
    s = Σ w.

    Parameters
    ----------
    levels : ScoreLevels
        Those of the scores; with ties each group is one level.
    pair_weights : ndarray of shape (n_groups,)
        Weight of each pair of a group.
    has_ties : bool
        Whether pairs inside a level are edges.
    """

    def __init__(self, levels: ScoreLevels, pair_weights: Array, has_ties: bool) -> None:
        self._levels, self._pair_weights, self._has_ties = levels, pair_weights, has_ties
        self._pull = pair_weights * levels.group_size
        self.within: Array = self._pull[levels.group]
        self.between: Array = np.zeros_like(self.within)
        if not has_ties:
            self.between = self.within
            self.within = pair_weights[levels.group] * levels.others

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the pairs."""
        levels = self._levels
        pairs = levels.pairs if self._has_ties else levels.untied_pairs
        return float(pairs @ self._pair_weights)

    @property
    def degrees(self) -> Array:
        """Diagonal of L."""
        levels, within = self._levels, self.within[self._levels.of_item]
        own: Any = 0.0  # no item is paired with itself
        if self._has_ties:
            own = self._pair_weights[levels.group[levels.of_item]]
        if levels.weight is None or levels.squares is None:
            return np.asarray(within - own)
        if not self._has_ties or levels.is_lumped:
            return np.asarray(levels.weight * within - own * levels.squares)
        others = sums_of_others(levels.weight, levels.of_item, len(levels.group))
        return np.asarray(own * levels.weight * others)

    def divergence(self, y: Array) -> Array:
        """``L y`` in place of y."""
        return self.apply(y, out=y)

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """``L V``; `out` may be V."""
        levels = self._levels
        means = levels.means(V)
        out = deviations(V, levels.of_item, means, self.within, out, levels.weight)
        is_weighted = levels.weight is not None and not levels.is_lumped
        if is_weighted:
            levels.balance_items(out)
        if not self._has_ties:
            pull = self.between if V.ndim == 1 else self.between[:, None]
            pull = pull * (means - levels.group_means(means)[levels.group])
            if is_weighted:
                levels.balance(pull)
            out += levels.to_items(pull)
        return out

    def root(self, scale: float, shift: float) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``, O(m)."""
        within, between = scale * self.within + shift, scale * self.between + shift
        root = NestedRoot(self._levels, within, between, shift)
        return root if self._levels.weight is None else WeightedRoot(root, self._levels.weight)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; for dense R in one blocked pass over its rows."""
        if sp.issparse(R):
            return system_by_columns(self.apply, R, t)
        nestings = [Nesting(self._levels.of_item, self.within)]
        if not self._has_ties:
            nestings.append(Nesting(self._levels.group, self._pull))
        return nested_scatter(R, nestings, t, self._levels.weight)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R, O(non-zeros)."""
        return self._levels.sparse_norms(R, self.within, self.between)


class RelativeLaplacian:
    """L of the relative cost: pairs weigh w_i w_j/(y_i − y_j)², O(levels²) for each group.

    Parameters
    ----------
    levels, scores
        The levels and their scores.
    pair_weights : ndarray of shape (n_groups,)
        Factor of the weights of the pairs of a group.
    """

    def __init__(self, levels: ScoreLevels, scores: Array, pair_weights: Array) -> None:
        self._levels, self._scores = levels, scores
        self._of_level = pair_weights[levels.group]

    @cached_property
    def within(self) -> Array:
        """Weight of the pairs of an item (of weight 1) of each level."""
        return self._sums(_inverse_square)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights of the pairs."""
        return float(0.5 * (self._levels.size @ self.within))

    @property
    def degrees(self) -> Array:
        """Diagonal of L."""
        return self._levels.to_items(self.within)

    def divergence(self, y: Array) -> Array:
        """Σ w_i w_j/(y_i − y_j) (e_i − e_j), from the levels."""
        return self._levels.to_items(self._sums(_inverse))

    def apply(self, V: Array, out: Array | None = None) -> Array:
        """``L V``; `out` may be V."""
        levels = self._levels
        means = levels.means(V)
        out = deviations(V, levels.of_item, means, self.within, out, levels.weight)
        columns_of = means.reshape(len(means), -1)
        between = columns_of * self.within[:, None]
        for rows, columns, difference in score_differences(levels, self._scores):
            weight = _inverse_square(difference) * levels.size[columns][:, None, :]
            weight *= self._of_level[rows][:, :, None]
            between[rows] -= weight @ columns_of[columns]
        out += levels.to_items(between.reshape(means.shape))
        return out

    def root(self, scale: float, shift: float) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift D``, dense in each group."""
        levels = self._levels
        connected = (levels.untied_pairs > 0)[levels.group[levels.of_item]]
        if levels.weight is not None:
            connected &= levels.weight > 0
        blocks = items_of_components(connect_groups(levels.group[levels.of_item], connected))
        return ComponentRoot(blocks, lambda items: scale * self._dense(items), shift, levels.weight)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``."""
        return system_by_columns(self.apply, R, t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R."""
        columns = (R[:, [j]].toarray()[:, 0] for j in range(R.shape[1]))
        return np.array([r @ self.apply(r) for r in columns])

    def _sums(self, function: Any) -> Array:
        """Sum of a function of y_i − y_j over the other items j, for an item i of each level."""
        out = np.zeros(len(self._levels.group))
        for rows, columns, difference in score_differences(self._levels, self._scores):
            sizes = self._levels.size[columns]
            out[rows] = np.einsum("brc,bc->br", function(difference), sizes)
        return np.asarray(out * self._of_level)

    def _dense(self, items: NDArray[np.intp]) -> Array:
        """L of one component as a matrix."""
        level = self._levels.of_item[items]
        y = self._scores[level]
        L: Array = -_inverse_square(y[:, None] - y) * self._of_level[level[0]]
        if self._levels.weight is not None:
            L *= np.outer(self._levels.weight[items], self._levels.weight[items])
        L[np.diag_indices(len(items))] = -L.sum(axis=1)
        return L


def _inverse_square(difference: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.square(_inverse(difference))


def _inverse(difference: Array) -> Array:
    """1/difference, and 0 for a level or item with itself or its equals."""
    out = np.zeros_like(difference)
    np.divide(1.0, difference, out=out, where=difference != 0)
    return out
