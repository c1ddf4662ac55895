"""Permutation importance: the loss of a metric if a column is permuted inside the groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.stats
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array, Indices, MatrixLike, as_matrix
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import TextTable
from rankwise.frames import column_names, narwhals_frame
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import TargetLike, unpack_unweighted_target
from rankwise.groups import Groups
from rankwise.inspection.model_parts import input_columns, name_columns
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import nanmean_over_units, standard_error
from rankwise.metrics.metric import check_data
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.scorer import predict_items
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int

MAX_ROWS = 20  # of the printed table


class ImportanceRow(NamedTuple):
    """One column: its importance, the standard error and the ends of the interval."""

    name: str
    importance: float
    standard_error: float
    low: float
    high: float


@dataclass(frozen=True, repr=False, eq=False)
class PermutationImportance:
    """Result of `permutation_importance`: a table, the most important column first.

    Attributes
    ----------
    names : list of str
        Names of the columns, in the order of X; all arrays have this order.
    importance : ndarray of shape (n_columns,)
        Mean loss of the metric over groups; positive if the column improves the metric.
    standard_error : ndarray of shape (n_columns,)
        Standard error over groups, or over the repeats if there is only one group.
    low, high : ndarray of shape (n_columns,)
        Student's interval of the importance.
    per_group : ndarray of shape (n_columns, n_repeats, n_groups)
        Loss of the metric in each group, NaN where the metric is undefined.
    metric : Metric
        The metric.
    score : float
        Mean of the metric without permutation.
    """

    names: list[str]
    importance: Array
    standard_error: Array
    low: Array
    high: Array
    per_group: Array
    metric: Metric
    score: float

    def __iter__(self) -> Iterator[ImportanceRow]:
        most_important_first = np.argsort(-self.importance, kind="stable")
        for j in most_important_first:
            yield ImportanceRow(
                name=self.names[j],
                importance=float(self.importance[j]),
                standard_error=float(self.standard_error[j]),
                low=float(self.low[j]),
                high=float(self.high[j]),
            )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        header = ["column", f"loss of {self.metric.name}", "low", "high"]
        cells = []
        for row in list(self)[:MAX_ROWS]:
            loss = f"{row.importance:.4f} ± {row.standard_error:.4f}"
            cells.append([row.name, loss, f"{row.low:.4f}", f"{row.high:.4f}"])
        notes = []
        if len(self) > MAX_ROWS:
            notes.append(f"… and {len(self) - MAX_ROWS} more")
        return TextTable(header, cells, notes=notes).text()


class _AverageLosses(NamedTuple):
    """Mean loss of each column, its standard error, and the degrees of freedom of Student's t."""

    mean: Array
    standard_error: Array
    degrees_of_freedom: int


@single_threaded
def permutation_importance(
    model: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None = None,
    *,
    scoring: MetricName = "disagreement",
    n_repeats: int = 5,
    confidence: float = DEFAULT_CONFIDENCE,
    random_state: int | np.random.Generator = 0,
) -> PermutationImportance:
    """Measure the loss of a metric if a column is permuted inside the groups.

    Use it to see which columns any model depends on.

    A column is permuted among the items of each group, and all other columns are unchanged. The
    model is therefore evaluated on values that occur in the group, and a column that is constant in
    each group (a feature of the query) has no importance: it cannot change the order inside a
    group.

    Parameters
    ----------
    model : estimator
        Any fitted model with a method `predict`: rankers, Pipelines, models of other libraries.
    X : array-like, sparse matrix or data frame of shape (n_items, n_columns)
        Items as `predict` takes them, preferably items that were not used for training.
    y : array-like of shape (n_items,), target of `make_target`, or graph of scores
        True scores.
    groups : array-like of shape (n_items,), optional
        Group labels; None means one list.
    scoring : str, Metric or function, default="disagreement"
        Any metric that `rankwise.metrics.get_metric` accepts. For errors, the loss is the increase
        of the metric.
    n_repeats : int, default=5
        Number of permutations of each column.
    confidence : float, default=0.95
        Confidence level of the intervals over groups, or over the repeats if there is only one
        group.
    random_state : int or Generator, default=0
        Seed of the permutations.

    Returns
    -------
    PermutationImportance
        A table of the columns, most important first.

    See Also
    --------
    contributions : Exact contributions to the score of each item, for linear models.
    sklearn.inspection.permutation_importance : Permutes over all items, across groups.

    Notes
    -----
    The cost is ``n_columns * n_repeats`` predictions of all items. If two columns contain the same
    information, each of them alone has a small importance.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> from rankwise.inspection import permutation_importance
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y, groups = X[:, 0] ** 3 + X[:, 1], np.repeat(np.arange(20), 10)
    >>> model = RankRLS(kernel="rbf").fit(X, y, groups)
    >>> result = permutation_importance(model, X, y, groups)
    >>> [row.name for row in result]
    ['x0', 'x1', 'x2']
    >>> bool(result.low[0] > result.high[2])
    True
    """
    n_repeats = check_int("n_repeats", n_repeats, least=1)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    metric = get_metric(scoring)
    y, groups = _unpack_relevance(y, groups)
    data = check_data(y, predict_items(model, X, groups), groups)
    if data.score.ndim != 1:
        raise ValueError(f"the model predicts shape {data.score.shape}; expected one output.")
    X, names = _matrix_and_names(model, X)

    # The metric in each group without permutation
    targets = GroupedTargets(data.y, data.groups)
    unpermuted_values = metric.by_group(Ranking(targets, data.score)).values
    n_groups = data.groups.n_groups
    if np.isnan(unpermuted_values).all():
        raise metric.undefined_error(f"for each of the {n_groups} groups", "Check y and groups.")

    def values_with_permuted_column(j: int, order: Indices) -> Array:
        # The metric in each group if column j is in another order
        predicted = predict_items(model, with_permuted_column(X, j, order), groups)
        scores = np.asarray(predicted, np.float64).reshape(data.score.shape)
        return metric.by_group(Ranking(targets, scores)).values

    losses = np.empty((len(names), n_repeats, n_groups))
    rng = np.random.default_rng(random_state)
    for repeat in range(n_repeats):
        order = _permute_inside_groups(data.groups, rng)
        for j in range(len(names)):
            losses[j, repeat] = unpermuted_values - values_with_permuted_column(j, order)
    if not metric.greater_is_better:  # the loss is the increase of an error
        losses = -losses

    average = _average_losses(losses)
    quantile = scipy.stats.t.ppf(0.5 + confidence / 2, average.degrees_of_freedom)
    half_width = quantile * average.standard_error
    return PermutationImportance(
        names=names,
        importance=average.mean,
        standard_error=average.standard_error,
        low=average.mean - half_width,
        high=average.mean + half_width,
        per_group=losses,
        metric=metric,
        score=float(nanmean_over_units(unpermuted_values)),
    )


def _matrix_and_names(model: BaseEstimator, X: MatrixLike) -> tuple[MatrixLike, list[str]]:
    """X as passed to `predict`, and the names of its columns, from the frame or the model."""
    names = column_names(X)
    if names is not None:
        return X, names
    matrix = as_matrix(X)
    return matrix, name_columns(input_columns(model, matrix), matrix.shape[1])


def _unpack_relevance(
    y: TargetLike, groups: ArrayLike | None
) -> tuple[ArrayLike, ArrayLike | None]:
    """Return the relevance and the groups of y, which may be a graph or a target with groups."""
    if not isinstance(y, PreferenceGraph):
        return unpack_unweighted_target(y, groups)
    if not y.has_relevance:
        raise ValueError("y is a graph of explicit preferences; a metric needs scores of items.")
    if groups is None:
        groups = y.groups
    return y.y, groups


def _average_losses(losses: Array) -> _AverageLosses:
    """Average the losses of each column, of shape (n_columns, n_repeats, n_groups).

    The units of the standard error are the groups, or the repeats if only one group has a value.
    """
    # Independent units are the groups, or the repeats if only one group has values.
    _, n_repeats, _ = losses.shape  # (n_columns, n_repeats, n_groups)
    group_has_value = ~np.isnan(losses).all(axis=(0, 1))
    n_groups_with_value = int(group_has_value.sum())
    if n_groups_with_value > 1:
        losses_by_unit = losses.mean(axis=1)  # (n_columns, n_groups)
        n_units = n_groups_with_value
    else:
        losses_by_unit = np.nanmean(losses, axis=2)  # (n_columns, n_repeats)
        n_units = n_repeats
    return _AverageLosses(
        mean=nanmean_over_units(losses_by_unit.T),
        standard_error=standard_error(losses_by_unit.T),
        degrees_of_freedom=max(n_units - 1, 1),
    )


def _permute_inside_groups(groups: Groups, rng: np.random.Generator) -> Indices:
    """Return another item of the same group for each item."""
    n_items = len(groups.codes)
    # Both list the items group after group; one of them in random order inside each group
    items_by_group = groups.order
    shuffled_by_group = np.lexsort((rng.random(n_items), groups.codes))
    permuted_item = np.empty(n_items, dtype=np.intp)
    permuted_item[items_by_group] = shuffled_by_group
    return permuted_item


def with_permuted_column(X: MatrixLike, j: int, order: Indices) -> MatrixLike:
    """Return X with column j in another order."""
    frame = narwhals_frame(X)
    if frame is not None:
        name = frame.columns[j]
        permuted_column = frame[name][order].alias(name)  # replaces the column of this name
        return frame.with_columns(permuted_column).to_native()
    columns_before = X[:, :j]
    permuted = X[:, [j]][order]
    columns_after = X[:, j + 1 :]
    if sp.issparse(X):
        return sp.hstack([columns_before, permuted, columns_after], format="csr")
    return np.hstack([columns_before, permuted, columns_after])
