"""A sample of whole groups from batches of rows, for leave-group-out on data out of core."""

from __future__ import annotations

import hashlib
import heapq
import itertools
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
from rankwise.metrics.by_group import (
    check_defined,
    check_scoring,
    metric_by_group,
    nanmean_over_units,
)
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
    """All rows of a random sample of the groups, independent of the order of the batches.

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
        of these groups only, and `n_groups` is ignored.

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
    _batches_of_group: dict[Hashable, list[GroupRows]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        check_int("n_groups", self.n_groups, "0 for no sample")

    @property
    def n_rows(self) -> int:
        """Number of rows in the sample."""
        return sum(len(group_rows.y) for group_rows in self._all_batches())

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
        if not sp.issparse(X):
            X = np.asarray(X)
        relevance = np.asarray(y, dtype=np.float64)
        output_columns = relevance.reshape(len(relevance), -1)
        encoded = encode_groups(groups, len(relevance))
        labels = encoded.labels.tolist()
        self._draw_sample(labels)
        rows_of_groups = indices_by_group(encoded.codes)
        for label, rows in zip(labels, rows_of_groups, strict=True):
            if label in self._batches_of_group:  # it was drawn
                self._batches_of_group[label].append(GroupRows(X[rows], output_columns[rows]))
        return self

    def merge(self, other: GroupSample) -> Self:
        """Add the sample of other batches; the other sample is left unchanged."""
        self._draw_sample(other._batches_of_group)
        for label, batches in other._batches_of_group.items():
            if label in self._batches_of_group:
                self._batches_of_group[label].extend(batches)
        return self

    def rows(self) -> tuple[Matrix, Array, Labels]:
        """X, y (with outputs in columns) and group labels of the sample."""
        matrices = [group_rows.X for group_rows in self._all_batches()]
        y = np.vstack([group_rows.y for group_rows in self._all_batches()])
        if any(sp.issparse(matrix) for matrix in matrices):
            X = sp.vstack(matrices)
        else:
            X = np.vstack(matrices)

        group_labels = list(self._batches_of_group)
        group_sizes = []
        for batches in self._batches_of_group.values():
            group_sizes.append(sum(len(group_rows.y) for group_rows in batches))
        labels: Labels = np.array(group_labels)
        if labels.tolist() != group_labels:  # NumPy has converted labels of several types
            labels = np.empty(len(group_labels), dtype=object)
            labels[:] = group_labels
        return X, y, np.repeat(labels, group_sizes)

    def _all_batches(self) -> list[GroupRows]:
        return list(itertools.chain.from_iterable(self._batches_of_group.values()))

    def _draw_sample(self, new_labels: Iterable[Hashable]) -> None:
        """Draw the sample from its groups and new ones.

        The largest hash value in a full sample only decreases, so a group that is in the sample at
        the end was in it from its first row.
        """
        if self.labels is None:
            candidates = [*self._batches_of_group, *new_labels]
            drawn: Iterable[Hashable] = sample_labels(candidates, self.n_groups)
        else:  # the sample is given
            new_drawn = [label for label in new_labels if label in self.labels]
            drawn = dict.fromkeys([*self._batches_of_group, *new_drawn])  # each once
        # a group that leaves the sample loses its rows; it cannot come back
        self._batches_of_group = {label: self._batches_of_group.get(label, []) for label in drawn}


def sample_labels(labels: Iterable[Hashable], n_groups: int) -> list[Hashable]:
    """The distinct labels with the smallest hash values, at most `n_groups` of them."""
    # labels with the smallest hashes, which do not depend on the order or the machine
    return heapq.nsmallest(n_groups, set(labels), key=stable_hash)


@lru_cache(maxsize=2**16, typed=True)
def stable_hash(label: Hashable) -> int:
    """A hash value of a label that is the same in all processes."""
    text = f"{type(label).__name__}:{label!r}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


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
        position = np.flatnonzero(self.alphas == self.alpha)[0]
        return float(self.mean_score[position])


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
        Sums over all rows.
    sample : GroupSample
        Sample of groups from the same rows.
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
    n_rows, n_outputs = y.shape
    sample_y = y
    if statistics.output_shape == ():
        sample_y = y[:, 0]
    held_out_scores = statistics.held_out(X, sample_y, labels, candidates)

    # the metric of each group and candidate, a mean over the outputs
    groups = encode_groups(labels, n_rows)
    held_out_scores = held_out_scores.reshape(n_rows, n_outputs, len(candidates))
    group_score = metric_by_group(metric, y, groups, weight=None, held_out=held_out_scores)
    group_score = group_score.mean(axis=2)  # it was (n_groups, n_candidates, n_outputs)
    check_defined(metric, group_score)
    mean_score = nanmean_over_units(group_score)
    gain = mean_score
    if not metric.greater_is_better:
        gain = -mean_score
    best = CandidateGrid({"alpha": candidates}).best(gain)
    path = statistics.solve(candidates[[best]])  # of the best alpha only, trained on all rows
    return AlphaSelection(
        alpha=float(candidates[best]),
        alphas=candidates,
        mean_score=mean_score,
        group_score=group_score,
        groups=groups.labels,
        metric=metric,
        weights=path.coefficients[0],
        model=path.model(0),
    )
