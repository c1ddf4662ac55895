"""What a metric loses if a column is shuffled inside the groups; for any model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import scipy.stats
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.formatting import TextTable
from rankwise.frames import column_names, narwhals_frame
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import unpack_unweighted_target
from rankwise.inspection.model_parts import input_columns, name_columns
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.by_group import nanmean, standard_error
from rankwise.metrics.metric import check_data
from rankwise.metrics.ranking import GroupedTargets, Ranking
from rankwise.model_selection.scorer import predict_items
from rankwise.runtime.threads import single_threaded
from rankwise.validation import check_int

SHOWN = 20


class ImportanceRow(NamedTuple):
    """One column: what is lost without it, its standard error, and the ends of the interval."""

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
        Of the columns, in the order of X, as in all arrays here.
    importance : ndarray of shape (n_columns,)
        Mean over groups of what the metric loses; positive if the column is of use.
    standard_error : ndarray of shape (n_columns,)
        Over groups; over the repeats if there is one group only.
    low, high : ndarray of shape (n_columns,)
        Student's interval from it.
    per_group : ndarray of shape (n_columns, n_repeats, n_groups)
        What the metric loses in each group, NaN where it is undefined.
    metric : Metric
        The metric.
    score : float
        Its mean for the columns as they are.
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
        for j in np.argsort(-self.importance, kind="stable"):
            numbers = (self.importance, self.standard_error, self.low, self.high)
            yield ImportanceRow(self.names[j], *(float(values[j]) for values in numbers))

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        header = ["column", f"loss of {self.metric.name}", "low", "high"]
        rows = [
            [name, f"{value:.4f} ± {error:.4f}", f"{low:.4f}", f"{high:.4f}"]
            for name, value, error, low, high in list(self)[:SHOWN]
        ]
        more = len(self) - len(rows)
        return TextTable(header, rows, notes=[f"… and {more} more"] if more else []).text()


@single_threaded
def permutation_importance(
    model: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    scoring: str | Metric = "disagreement",
    n_repeats: int = 5,
    confidence: float = DEFAULT_CONFIDENCE,
    random_state: int | np.random.Generator = 0,
) -> PermutationImportance:
    """What a metric loses if a column is shuffled inside the groups.

    Use it to see which columns any model needs.

    A column is shuffled among the items of a group, all others stay: so the model sees values that
    this group has, and a column that is the same for a whole group (a feature of the query) has no
    importance, as it should, for it moves no item past another.

    Parameters
    ----------
    model : estimator
        Anything fitted with a method `predict`: kernel rankers, Pipelines, models of other
        libraries.
    X : array-like, sparse matrix or data frame of shape (n_items, n_columns)
        Items as `predict` takes them, best ones that the model has not been trained on.
    y : array-like of shape (n_items,), target of `make_target`, or graph of scores
        True scores.
    groups : array-like of shape (n_items,), optional
        Group labels; None makes one list.
    scoring : str, Metric or function
        As `rankwise.metrics.get_metric` reads it. A loss is positive whether the metric is an error
        or a gain.
    n_repeats : int
        How often each column is shuffled.
    confidence : float
        Of the intervals. They are over groups: what other groups of this kind would show. Over the
        repeats if there is a single group.
    random_state : int or Generator
        Seed of the shuffling.

    Returns
    -------
    PermutationImportance
        Prints as a table.

    See Also
    --------
    contributions : Exact parts of the score of each item, for linear models.
    sklearn.inspection.permutation_importance : Shuffles over all items, across groups.

    Notes
    -----
    ``n_columns * n_repeats`` predictions of all items. Two columns that say the same stand in for
    each other: each of them alone loses little.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> from rankwise.inspection import permutation_importance
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> y, groups = X[:, 0] ** 3 + X[:, 1], np.repeat(np.arange(20), 10)
    >>> model = RankRLS(kernel="rbf").fit(X, y, groups)
    >>> found = permutation_importance(model, X, y, groups)
    >>> [row.name for row in found]
    ['x0', 'x1', 'x2']
    >>> bool(found.low[0] > found.high[2])
    True
    """
    n_repeats = check_int("n_repeats", n_repeats, least=1)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    metric = get_metric(scoring)
    if isinstance(y, PreferenceGraph):
        if y.scores is None:
            raise ValueError(
                "y is a graph of explicit preferences; a metric needs scores of items."
            )
        y, groups = y.scores, y.groups if groups is None else groups
    y, groups = unpack_unweighted_target(y, groups)
    truth, scores, encoded, _ = check_data(y, predict_items(model, X, groups), groups)
    if scores.ndim != 1:
        raise ValueError(f"the model gives scores of shape {scores.shape}; expected one output.")
    names = column_names(X)
    if names is None:
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        names = name_columns(input_columns(model, X), X.shape[1])
    targets, sign = GroupedTargets(truth, encoded), 1.0 if metric.greater_is_better else -1.0
    before = metric.by_group(Ranking(targets, scores))
    if np.isnan(before.values).all():
        where = f"for each of the {encoded.n_groups} groups"
        raise metric.undefined_error(where, "Check y and groups.")
    lost = np.empty((len(names), n_repeats, encoded.n_groups))
    rng, by_group = np.random.default_rng(random_state), np.argsort(encoded.codes, kind="stable")
    for repeat in range(n_repeats):
        order = np.empty(len(scores), dtype=np.intp)  # another item of the group for each item
        order[by_group] = np.lexsort((rng.random(len(scores)), encoded.codes))
        for j in range(len(names)):
            changed = predict_items(model, _reordered(X, j, order), groups)
            after = metric.by_group(
                Ranking(targets, np.asarray(changed, np.float64).reshape(scores.shape))
            )
            lost[j, repeat] = sign * (before.values - after.values)
    n_defined = int((~np.isnan(lost[0, 0])).sum()) if len(lost) else 0
    by_unit = lost.mean(axis=1) if n_defined > 1 else np.nanmean(lost, axis=2)
    importance, error = nanmean(by_unit.T), standard_error(by_unit.T)
    n_units = n_defined if n_defined > 1 else lost.shape[1]
    half = scipy.stats.t.ppf(0.5 + confidence / 2, max(n_units - 1, 1)) * error
    low, high, score = importance - half, importance + half, float(nanmean(before.values))
    return PermutationImportance(names, importance, error, low, high, lost, metric, score)


def _reordered(X: Any, j: int, order: Indices) -> Any:
    """X with column j in this order."""
    frame = narwhals_frame(X)
    if frame is not None:
        name = frame.columns[j]
        return frame.with_columns(frame[name][order].alias(name)).to_native()
    columns = [X[:, :j], X[:, [j]][order], X[:, j + 1 :]]
    return sp.hstack(columns, format="csr") if sp.issparse(X) else np.hstack(columns)
