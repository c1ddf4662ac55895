"""ScoreGraph: the preferences that scores induce inside groups, never materialised."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise.graphs.base import BaseGraph
from rankwise.graphs.cells import (
    Cells,
    deviations,
    score_cells,
    score_differences,
    sums_of_families,
)
from rankwise.graphs.disagreement import score_disagreement
from rankwise.graphs.gram_blocks import Level, nested_scatter
from rankwise.graphs.protocol import GraphDescription, GraphRoot, system_by_columns
from rankwise.graphs.roots import ComponentRoot, NestedRoot, items_of_components
from rankwise.graphs.strict import StrictOrder
from rankwise.groups import encode_groups
from rankwise.options import check_option
from rankwise.targets import as_scores, split_target

if TYPE_CHECKING:
    from rankwise.graphs.pair_graph import PairGraph

__all__ = ["ScoreGraph"]

Array = NDArray[np.float64]
COSTS = ("magnitude", "sign", "relative")
TIES = ("include", "exclude")
GROUP_WEIGHTS = ("pairs", "groups")


class ScoreGraph(BaseGraph):
    """All pairs inside each group, preferred by score.

    With cells = (group, distinct score) and P the item-to-cell indicator, every cost below has
    ``L = D − P C Pᵀ`` with one small block of C per group ([RankRLS09] equation 25 is the first):

    * ``cost="magnitude"`` (equation 21): δ = y_i − y_j. With ties, L of a group of n items is n
      times the centring matrix; without, the cliques of equal scores are taken out of it.
    * ``cost="sign"`` (equation 20): δ = 1 for every pair of different scores.
    * ``cost="relative"`` (equation 22): δ = y_i − y_j, weight 1/δ².

    Parameters
    ----------
    y : array-like of shape (n_items,) or (n_items, n_outputs)
        Scores, larger is better. Several outputs only where L does not depend on the scores, that
        is for ``cost="magnitude", ties="include"``. A target of `make_target` is fine, too.
    groups : array-like of shape (n_items,), optional
        Group labels, any hashable ones in any order; None puts all items in one group.
    cost : {"magnitude", "sign", "relative"}
        Which of the three costs of [RankRLS09] section 2.4.
    ties : {"include", "exclude"}
        Whether pairs of equal score are edges of magnitude zero. Only the magnitude cost can have
        them; the other two leave them out whatever is given here.
    group_weight : {"pairs", "groups"}
        "pairs": every pair counts alike; "groups": every group counts alike, a pair weighs one
        over the number of pairs of its group ([RankRLS09] end of section 2.4).

    Examples
    --------
    >>> graph = ScoreGraph([3, 1, 1, 5, 4], groups=["a", "a", "a", "b", "b"])
    >>> graph.n_pairs
    4
    >>> graph.divergence
    array([ 4., -2., -2.,  1., -1.])
    >>> print(graph.describe())
    items                 5
    groups                2
    pairs                 4
    tied pairs            1 (in use)
    groups without pairs  0
    isolated items        0
    total weight          4
    """

    def __init__(
        self,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
    ) -> None:
        check_option("cost", cost, COSTS)
        check_option("ties", ties, TIES)
        check_option("group_weight", group_weight, GROUP_WEIGHTS)
        y, groups = split_target(y, groups)
        self.y = as_scores(y)
        self.cost = cost
        self.ties = ties if cost == "magnitude" else "exclude"
        self.group_weight = group_weight
        self._groups = encode_groups(groups, len(self.y))
        if self.y.ndim == 2 and not self._same_for_all_scores:
            raise ValueError(
                f"y has {self.y.shape[1]} outputs, but with cost={cost!r} and ties={ties!r} the "
                "pairs depend on the scores; make one ScoreGraph per output."
            )
        if self.cost == "relative" and not np.isfinite(self._within).all():
            raise ValueError(
                "cost='relative' weighs a pair by 1/(y_i − y_j)², which overflows: some scores "
                "differ by less than 1e-150. Round the scores or use cost='magnitude'."
            )

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.y)

    @property
    def groups(self) -> NDArray[np.intp]:
        """For each item the number of its group."""
        return self._groups.codes

    @property
    def group_labels(self) -> NDArray[Any]:
        """The distinct labels in the order of the group numbers."""
        return self._groups.labels

    @property
    def n_units(self) -> int:
        """Number of groups, those without pairs included."""
        return self.n_groups

    @property
    def scores(self) -> Array:
        """Scores of the items."""
        return self.y

    @property
    def is_complete(self) -> bool:
        """Whether all items are in one group and every two of them are a pair."""
        return self._same_for_all_scores and self.n_groups == 1

    @cached_property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return int(self._pairs_in_group.sum())

    @cached_property
    def total_weight(self) -> float:
        """W, the sum of the weights of the pairs."""
        if self.cost == "relative":
            return float(0.5 * (self.cells.size @ self._within))
        return float(self._pairs_in_group @ self.pair_weights)

    @property
    def cells(self) -> Cells:
        """Items that the graph cannot tell apart: groups, or groups × distinct scores."""
        return self._cells_and_scores[0]

    @cached_property
    def pair_weights(self) -> Array:
        """Weight that `group_weight` gives to each pair of a group, shape (n_groups,)."""
        pairs = self._pairs_in_group
        if self.group_weight == "pairs":
            return np.ones_like(pairs)
        return np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0)

    @property
    def squared_magnitude(self) -> float:
        """Σ ω δ²; 1 for each pair under the sign cost, else δ = y_i − y_j and the sum is yᵀ d."""
        if self.cost == "sign":
            return self.total_weight
        return float(np.sum(self._centred_scores * self.divergence))

    @cached_property
    def divergence(self) -> Array:
        """The vector d = Σ ω δ (e_i − e_j): L y for the magnitude cost, counts for sign."""
        if self.cost == "magnitude":
            centered = self._centred_scores
            return self.laplacian(centered, out=centered)
        if self.cost == "sign":
            return self._balance[self.cells.of_item]
        out = np.zeros(len(self.cells.group))
        for rows, columns, difference in score_differences(*self._cells_and_scores):
            out[rows] = np.einsum("brc,bc->br", _inverse(difference), self.cells.size[columns])
        out *= self.pair_weights[self.cells.group]
        return out[self.cells.of_item]

    @property
    def degrees(self) -> Array:
        """Weight of the pairs of each item: the diagonal of L."""
        cells = self.cells
        weight = self._within
        if self.ties == "include":  # an item is not paired with itself
            weight = weight - self.pair_weights
        return weight[cells.of_item]

    @cached_property
    def components(self) -> NDArray[np.intp]:
        """For each item the number of its connected component; groups without pairs fall apart."""
        lonely = self._pairs_in_group[self.groups] == 0
        labels = np.where(lonely, self.n_groups + np.arange(self.n_items), self.groups)
        return np.unique(labels, return_inverse=True)[1].astype(np.intp)

    def laplacian(self, V: Array, out: Array | None = None) -> Array:
        """``L V`` in O(m), plus levels² of each group for the relative cost; `out` may be V."""
        cells = self.cells
        means = cells.means(V)
        out = deviations(V, cells.of_item, means, self._within, out)
        if self.ties == "exclude":
            out += self._between(means)[cells.of_item]
        return out

    def whiten(self, V: Array) -> Array:
        """``Fᵀ V`` with ``F Fᵀ = L``; "subtract the mean of the group, scale by √n" with ties."""
        return self.root().adjoint(V)

    def root(self, scale: float = 1.0, shift: float = 0.0) -> GraphRoot:
        """F with ``F Fᵀ = scale L + shift I``; O(m) but for the relative cost."""
        if self.cost == "relative":
            return ComponentRoot(
                items_of_components(self.components),
                lambda items: scale * self._dense(items),
                shift,
            )
        between = np.zeros_like(self._within)
        if self.ties == "exclude":
            between = self._pull
        return NestedRoot(self.cells, scale * self._within + shift, scale * between + shift, shift)

    def system(self, R: Any, t: Array) -> tuple[Array, Array]:
        """``Rᵀ L R`` and ``Rᵀ t``; for dense R in one blocked pass over its rows."""
        if self.cost == "relative" or sp.issparse(R):
            return system_by_columns(self.laplacian, R, t)
        levels = [Level(self.cells.of_item, self._within)]
        if self.ties == "exclude":
            pull = self.pair_weights * self.cells.group_size
            levels.append(Level(self.cells.group, pull))
        return nested_scatter(R, levels, t)

    def sparse_norms(self, R: Any) -> Array:
        """``rᵀ L r`` for every column r of sparse R; O(non-zeros) but for the relative cost."""
        if self.cost == "relative":
            columns = (R[:, [j]].toarray()[:, 0] for j in range(R.shape[1]))
            return np.array([r @ self.laplacian(r) for r in columns])
        between = np.zeros_like(self._within) if self.ties == "include" else self._pull
        return self.cells.sparse_norms(R, self._within, between)

    def subset(self, items: NDArray[np.intp]) -> ScoreGraph:
        """The graph that the scores of these items induce."""
        return ScoreGraph(
            self.y[items],
            self.group_labels[self.groups[items]],
            cost=self.cost,
            ties=self.ties,
            group_weight=self.group_weight,
        )

    def counted(self, counts: Array) -> ScoreGraph:
        """The graph in which item i stands for ``counts[i]`` items of its group and score.

        Vectors keep one value for each item of this graph. With ties in, the scores of the items
        that it stands for may differ, and y is their mean.

        Examples
        --------
        >>> graph = ScoreGraph([2.0, 1.0]).counted(np.array([3.0, 2.0]))
        >>> graph.n_pairs, graph.laplacian(np.array([1.0, 0.0]))
        (10, array([ 2., -3.]))
        """
        cells, scores = self._cells_and_scores
        other = copy.copy(self)
        for name in vars(self):
            if isinstance(getattr(type(self), name, None), cached_property):
                del other.__dict__[name]
        other._cells_and_scores = Cells(cells.of_item, cells.group, self.n_groups, counts), scores
        return other

    def pairs(self) -> PairGraph:
        """Every pair explicitly: for tests and small data, O(m²)."""
        from rankwise.graphs.pair_graph import PairGraph

        self._check_one_output("pairs()")
        i, j = np.triu_indices(self.n_items, k=1)
        keep = self.groups[i] == self.groups[j]
        if self.ties == "exclude":
            keep &= self.y[i] != self.y[j]
        i, j = i[keep], j[keep]
        swap = self.y[i] < self.y[j]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        return PairGraph(
            i,
            j,
            magnitude=self.y[i] - self.y[j],
            weight=self.pair_weights[self.groups[i]],
            n_items=self.n_items,
            cost=self.cost,
        )

    def strict(self) -> StrictOrder:
        """All pairs of different score, never formed."""
        if self.cost == "relative":
            raise ValueError(
                "a ScoreGraph with cost='relative' weighs every pair differently, which the sweep "
                "over sorted scores cannot do; use cost='sign', or graph.pairs() for a small graph."
            )
        if self.ties == "exclude":
            return StrictOrder(self)
        weight = self.group_weight  # other pairs: count again
        return StrictOrder(ScoreGraph(self.y, self.groups, cost="sign", group_weight=weight))

    def disagreement(
        self, F: NDArray[Any], fold: NDArray[np.intp] | None = None, *, pooled: bool = False
    ) -> Array:
        """Share of the pairs of different score in each group that F orders wrongly."""
        self._check_one_output("disagreement()")
        return score_disagreement(self.y, self.groups, self.pair_weights, F, fold, pooled)

    def describe(self) -> GraphDescription:
        """Counts of groups, pairs, ties (over all outputs) and of items that are in no pair."""
        columns = self.y.reshape(self.n_items, -1).T
        tied = sum(
            _pairs(score_cells(y, self.groups, self.n_groups)[0].size).sum() for y in columns
        )
        empty = self._pairs_in_group == 0
        return GraphDescription(
            n_items=self.n_items,
            n_groups=self.n_groups,
            n_pairs=self.n_pairs,
            n_tied_pairs=int(tied),
            ties=self.ties,
            n_groups_without_pairs=int(empty.sum()),
            n_isolated_items=int(empty[self.groups].sum()),
            total_weight=self.total_weight,
        )

    def _check_one_output(self, method: str) -> None:
        if self.y.ndim == 2:
            raise ValueError(f"{method} needs one output; make a ScoreGraph of one column of y.")

    @property
    def _same_for_all_scores(self) -> bool:
        return self.cost == "magnitude" and self.ties == "include"

    @cached_property
    def _cells_and_scores(self) -> tuple[Cells, Array]:
        if self._same_for_all_scores:  # a cell need not tell scores apart
            every = np.arange(self.n_groups)
            return Cells(self.groups, every, self.n_groups), np.zeros(self.n_groups)
        return score_cells(self.y, self.groups, self.n_groups)

    @cached_property
    def _pairs_in_group(self) -> Array:
        cells = self.cells
        pairs = _pairs(cells.group_size)
        if self.ties == "exclude":
            pairs -= np.bincount(cells.group, weights=_pairs(cells.size), minlength=self.n_groups)
        return pairs

    @property
    def _pull(self) -> Array:
        """Eigenvalue of L on vectors that are constant in cells and sum to zero in the group."""
        return (self.pair_weights * self.cells.group_size)[self.cells.group]

    @cached_property
    def _within(self) -> Array:
        """Eigenvalue of L on vectors that live in one cell and sum to zero there."""
        cells = self.cells
        if self.ties == "include":
            return self._pull
        if self.cost != "relative":
            return self._pull - self.pair_weights[cells.group] * cells.size
        out = np.zeros(len(cells.group))
        for rows, columns, difference in score_differences(*self._cells_and_scores):
            out[rows] = np.einsum("brc,bc->br", _inverse_square(difference), cells.size[columns])
        return out * self.pair_weights[cells.group]

    def _between(self, means: Array) -> Array:
        """L on vectors that are constant in cells, by their value in each cell; without ties."""
        cells = self.cells
        if self.cost != "relative":
            pull = self._pull if means.ndim == 1 else self._pull[:, None]
            return pull * (means - cells.group_means(means)[cells.group])
        columns_of = means.reshape(len(means), -1)
        out = columns_of * self._within[:, None]
        for rows, columns, difference in score_differences(*self._cells_and_scores):
            weight = _inverse_square(difference) * cells.size[columns][:, None, :]
            weight *= self.pair_weights[cells.group[rows]][:, :, None]
            out[rows] -= weight @ columns_of[columns]
        return out.reshape(means.shape)

    @property
    def _centred_scores(self) -> Array:
        sums = sums_of_families(self.y, self.groups, self.n_groups)
        size = np.maximum(np.bincount(self.groups, minlength=self.n_groups), 1)
        means = (sums.T / size).T
        return deviations(self.y, self.groups, means, np.ones(self.n_groups))

    @property
    def _balance(self) -> Array:
        """Number of lower minus number of higher items, for each cell, times the pair weight."""
        cells = self.cells
        lower = np.cumsum(cells.size) - cells.size
        lower -= lower[cells.first][cells.group]
        higher = cells.group_size[cells.group] - lower - cells.size
        return self.pair_weights[cells.group] * (lower - higher)

    def _dense(self, items: NDArray[np.intp]) -> Array:
        """L of one component of the relative cost, as a matrix."""
        difference: Array = self.y[items][:, None] - self.y[items]
        L: Array = -_inverse_square(difference) * self.pair_weights[self.groups[items[0]]]
        L[np.diag_indices(len(items))] = -L.sum(axis=1)
        return L


def _inverse_square(difference: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.square(_inverse(difference))


def _inverse(difference: Array) -> Array:
    """1/difference, and 0 for a cell or item with itself or its equals."""
    out = np.zeros_like(difference)
    np.divide(1.0, difference, out=out, where=difference != 0)
    return out


def _pairs(size: Array) -> Array:
    return 0.5 * size * (size - 1)
