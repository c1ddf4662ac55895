"""Targets with unscored rows: NaN in y, groups over all rows."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from rankwise.arrays import Array, Indices
from rankwise.errors import warn_user
from rankwise.estimators.base import RankerMixin
from rankwise.estimators.problem import check_something_to_rank, one_output
from rankwise.frames import as_array, check_same_index, take_rows
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.groups import Groups, encode_groups
from rankwise.inputs import Target, as_scores, check_length, split_weighted
from rankwise.losses import SquaredLoss


class PartlyScored(NamedTuple):
    """Rows with a score and rows without.

    Attributes
    ----------
    scored, unscored : ndarray of int
        Row numbers, in ascending order.
    y : ndarray of shape (n_scored,)
        Scores of the scored rows.
    groups : Groups
        Groups of all rows.
    weights : ndarray or None
        Weights of all rows, if they have any.
    """

    scored: Indices
    unscored: Indices
    y: Array
    groups: Groups
    weights: Array | None = None

    @property
    def scored_labels(self) -> NDArray[Any]:
        """Group labels of the scored rows."""
        labels: NDArray[Any] = self.groups.labels[self.groups.codes[self.scored]]
        return labels

    def weights_of(self, rows: Indices) -> Array | None:
        """Weights of some rows, None without weights."""
        return None if self.weights is None else self.weights[rows]

    def graph(self, cost: str, ties: str, group_weight: str) -> ScoreGraph:
        """The pairs of the scored rows."""
        codes, labels = self.groups
        present, of_row = np.unique(codes[self.scored], return_inverse=True)
        target = Target(self.y, Groups(of_row, labels[present]), self.weights_of(self.scored))
        return ScoreGraph(target, cost=cost, ties=ties, group_weight=group_weight)

    def loss(self, *options: str, beta: float = 0.0) -> SquaredLoss:
        """The loss of the scored rows; `options` are those of `graph`."""
        loss = SquaredLoss(self.graph(*options), beta, self.y)
        check_something_to_rank(loss)
        return loss

    @property
    def agrees_on_unscored(self) -> bool:
        """Whether two unscored rows share a group, so that there is something to agree on."""
        rows = self.unscored
        if self.weights is not None:
            rows = rows[self.weights[rows] > 0]
        return bool(np.bincount(self.groups.codes[rows]).max(initial=0) > 1)

    def agreement(self, group_weight: str = "pairs") -> tuple[Indices, ScoreGraph]:
        """Rows on whose order views are to agree, and all pairs of them inside groups.

        The unscored rows; the scored ones if there are none, or if no two of them share a group.
        """
        rows = self.unscored if self.agrees_on_unscored else self.scored
        groups = encode_groups(self.groups.codes[rows], len(rows))
        zeros = np.zeros(len(rows))  # all pairs of a group, whatever the scores
        weights = self.weights_of(rows)
        return rows, ScoreGraph.of(zeros, groups, group_weight=group_weight, sample_weight=weights)

    def without(self, held: Indices) -> PartlyScored:
        """The same rows but for some of the scored ones, counted among the scored."""
        kept = np.setdiff1d(np.arange(len(self.scored)), held)
        return self._replace(scored=self.scored[kept], y=self.y[kept])


def split_unscored(target: Target, n_items: int) -> PartlyScored:
    """Tell scored from unscored rows of X, and refuse what is neither; a score may be NaN."""
    if isinstance(target.y, PreferenceGraph):
        raise ValueError(
            f"y is a {type(target.y).__name__}, which cannot hold unscored rows; pass scores with "
            "NaN for the rows that have none, and groups."
        )
    scores = check_length(one_output("a semi-supervised learner", target.y), n_items)
    is_scored = ~np.isnan(scores)
    if not is_scored.any():
        raise ValueError(
            f"none of the {n_items} rows has a score (y is all NaN); there is nothing to learn the "
            "order from. Score the rows of at least one group."
        )
    rows = PartlyScored(
        np.flatnonzero(is_scored),
        np.flatnonzero(~is_scored),
        scores[is_scored],
        target.groups or encode_groups(None, n_items),
        target.weight,
    )
    if len(rows.unscored) and not rows.agrees_on_unscored:
        warn_user(
            f"no two of the {len(rows.unscored)} unscored rows are in one group, so there is "
            "nothing to learn from them, and views agree on the scored rows instead. Give unscored "
            "rows group labels that they share with other unscored rows.",
        )
    return rows


class SemiSupervisedMixin(RankerMixin):
    """A ranker that takes NaN in y as "not scored", in `fit` and in `score`."""

    allows_unscored = True

    def score(
        self,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Mean over groups of the fraction of scored pairs that are ordered rightly.

        Parameters
        ----------
        X, groups, sample_weight
            As in ``RankRLS.score``.
        y : array-like or target of `make_target`
            True scores; rows with NaN do not count.

        Returns
        -------
        float
            1 minus the disagreement error; tied predictions count one half.
        """
        if not isinstance(y, PreferenceGraph):
            check_same_index(X=X, y=y, groups=groups)
            y, groups, sample_weight = split_weighted(y, groups, sample_weight)
            y = as_scores(y, allow_nan=True)
            check_consistent_length(X, y, groups, sample_weight)
            scored = np.flatnonzero(~np.isnan(y.reshape(len(y), -1)).any(axis=1))
            if not len(scored):
                raise ValueError("score needs rows with a score, but y is all NaN.")
            X, y = take_rows(X, scored), y[scored]
            groups, sample_weight = (
                None if each is None else np.asarray(as_array(each))[scored]
                for each in (groups, sample_weight)
            )
        return super().score(X, y, groups, sample_weight)
