"""A sample of whole groups from batches of rows, for leave-group-out on data out of core."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Labels, Matrix, MatrixLike
from rankwise.groups import encode_groups, indices_by_group
from rankwise.metrics import Metric
from rankwise.metrics.by_group import check_defined, check_scoring, metric_by_group, nanmean
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.rankers.out_of_core import SufficientStatistics
from rankwise.rankers.rank_rls import RankRLS
from rankwise.validation import check_alphas, check_int


class GroupRows(NamedTuple):
    """Rows of one group from one batch, with the scores in columns."""

    X: Matrix
    y: Array


@dataclass(eq=False)
class GroupSample:
    """All rows of a sample of the groups, whatever the batches and their order.

    Use it next to `SufficientStatistics` to select alpha by exact leave-group-out of a sample of
    the groups, without a second pass over the data. The sample contains the groups whose labels
    have the smallest hash values, so that samples of different workers can be merged.

    Parameters
    ----------
    n_groups : int, default=1000
        Number of groups in the sample; 0 for none. If there are fewer groups, all are in the
        sample.
    labels : collection of hashable, optional
        The labels that `sample_labels` has drawn from all groups. Each worker then keeps the rows
        of these groups only, instead of `n_groups` groups of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.rankers.group_sample import GroupSample
    >>> sample = GroupSample(n_groups=2)
    >>> groups = np.repeat(np.arange(5), 4)
    >>> X = np.arange(20.0).reshape(20, 1)
    >>> sample.add(X[:10], X[:10, 0], groups[:10]).add(X[10:], X[10:, 0], groups[10:]).n_rows
    8
    """

    n_groups: int = 1000
    labels: Collection[Hashable] | None = None
    _pieces: dict[Hashable, list[GroupRows]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check_int("n_groups", self.n_groups, "0 for no sample")

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return sum(len(rows.y) for pieces in self._pieces.values() for rows in pieces)

    def add(self, X: MatrixLike, y: ArrayLike, groups: ArrayLike) -> Self:
        """Add a batch of rows; rows of groups outside the sample are dropped.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_rows, n_features)
            Features.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Relevance.
        groups : array-like of shape (n_rows,)
            Group labels.

        Returns
        -------
        GroupSample
            Itself.
        """
        if self.n_groups == 0:
            return self
        matrix = X if sp.issparse(X) else np.asarray(X)
        relevance = np.asarray(y, dtype=np.float64)
        columns = relevance.reshape(len(relevance), -1)
        encoded = encode_groups(groups, len(columns))
        labels = encoded.labels.tolist()
        self._draw_again(labels)
        is_drawn = np.array([label in self._pieces for label in labels])
        drawn_rows = np.flatnonzero(is_drawn[encoded.codes])
        for part in indices_by_group(encoded.codes[drawn_rows]):
            if len(part):
                rows = drawn_rows[part]
                label = labels[encoded.codes[rows[0]]]
                self._pieces[label].append(GroupRows(matrix[rows], columns[rows]))
        return self

    def merge(self, other: GroupSample) -> Self:
        """Add the sample of other batches; the other sample is left unchanged."""
        self._draw_again(other._pieces)
        for label, pieces in other._pieces.items():
            if label in self._pieces:
                self._pieces[label].extend(pieces)
        return self

    def rows(self) -> tuple[Matrix, Array, Labels]:
        """X, y (with outputs in columns) and group labels of the sample."""
        matrices = [piece.X for pieces in self._pieces.values() for piece in pieces]
        relevance = [piece.y for pieces in self._pieces.values() for piece in pieces]
        sizes = [sum(len(piece.y) for piece in pieces) for pieces in self._pieces.values()]
        labels: Labels = np.array(list(self._pieces))
        if labels.tolist() != list(self._pieces):  # labels of several types
            labels = np.empty(len(sizes), dtype=object)
            labels[:] = list(self._pieces)
        stack = sp.vstack if any(map(sp.issparse, matrices)) else np.vstack
        return stack(matrices), np.vstack(relevance), np.repeat(labels, sizes)

    def _draw_again(self, new_labels: Iterable[Hashable]) -> None:
        """Draw the sample from its groups and new ones.

        The largest hash value in a full sample only decreases, so a group that is in the sample at
        the end was in it from its first row.
        """
        if self.labels is not None:
            drawn: Iterable[Hashable] = [label for label in new_labels if label in self.labels]
            drawn = dict.fromkeys([*self._pieces, *drawn])
        else:
            drawn = sample_labels([*self._pieces, *new_labels], self.n_groups)
        self._pieces = {label: self._pieces.get(label, []) for label in drawn}


def sample_labels(labels: Iterable[Hashable], n_groups: int) -> list[Hashable]:
    """The distinct labels with the smallest hash values, at most `n_groups` of them."""
    return heapq.nsmallest(n_groups, set(labels), key=stable_hash)


@lru_cache(maxsize=2**16, typed=True)
def stable_hash(label: Hashable) -> int:
    """A hash value of a label that is the same in all processes."""
    text = f"{type(label).__name__}:{label!r}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, eq=False)
class AlphaSelection:
    """Alpha selected by leave-group-out, and the model of all rows.

    Attributes
    ----------
    alpha : float
        The selected alpha.
    alphas : ndarray of shape (n_alphas,)
        Candidates.
    mean_score : ndarray of shape (n_alphas,)
        Mean of the metric over the held-out groups, for each candidate.
    group_score : ndarray of shape (n_groups, n_alphas)
        The metric in each held-out group.
    groups : ndarray of shape (n_groups,)
        Labels of the held-out groups.
    metric : Metric
        The metric.
    weights : ndarray of shape (n_features, n_outputs)
        Weights of the features of all rows, with the selected alpha.
    model : RankRLS
        The model with these weights.
    """

    alpha: float
    alphas: Array
    mean_score: Array
    group_score: Array
    groups: Labels
    metric: Metric
    weights: Array
    model: RankRLS

    @property
    def best_score(self) -> float:
        """The metric of the selected alpha."""
        return float(self.mean_score[self.alphas == self.alpha][0])


def select_alpha(
    statistics: SufficientStatistics,
    sample: GroupSample,
    alphas: ArrayLike | None = None,
    scoring: MetricName = "disagreement",
) -> AlphaSelection:
    """Select alpha by exact leave-group-out of the groups of a sample.

    Each group of the sample is held out from the model of all other rows, inside and outside the
    sample ([RankRLS09] section 3.3), so the result does not depend on the sample beyond the choice
    of held-out groups.

    Parameters
    ----------
    statistics : SufficientStatistics
        Of all rows.
    sample : GroupSample
        Of the same rows.
    alphas : array-like of shape (n_alphas,), optional
        Candidates; by default the 40 values of `RankRLSCV`.
    scoring : str, Metric or function, default="disagreement"
        Any metric of `rankwise.metrics` that is a mean over groups.

    Returns
    -------
    AlphaSelection
        The selected alpha, the metric of all candidates, and the model.
    """
    metric = check_scoring(scoring)
    candidates = default_alphas(statistics.pair_distance)
    if alphas is not None:
        candidates = check_alphas(alphas, "alphas")
    X, y, labels = sample.rows()
    outputs = y if statistics.output_shape else y[:, 0]
    held_out = statistics.held_out(X, outputs, labels, candidates)
    groups = encode_groups(labels, len(y))
    columns = held_out.reshape(len(y), y.shape[1], len(candidates))
    values = metric_by_group(metric, y, groups, None, columns).mean(axis=2)
    check_defined(metric, values)
    mean_score = nanmean(values)
    gain = mean_score if metric.greater_is_better else -mean_score
    best = CandidateGrid({"alpha": candidates}).best(gain)
    path = statistics.solve(candidates[[best]])
    return AlphaSelection(
        alpha=float(candidates[best]),
        alphas=candidates,
        mean_score=mean_score,
        group_score=values,
        groups=groups.labels,
        metric=metric,
        weights=path.coefficients[0],
        model=path.model(0),
    )
