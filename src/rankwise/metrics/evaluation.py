"""Several metrics of one ranking in a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Labels
from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.environment import require
from rankwise.formatting import TextTable
from rankwise.graphs import PairGraph
from rankwise.metrics.grades import default_metrics
from rankwise.metrics.metric import UNDEFINED, GroupValues, Metric, check_data, make_targets
from rankwise.metrics.ranking import Ranking
from rankwise.metrics.registry import MetricName, get_metric, get_metrics
from rankwise.metrics.shared_items import ComparedItems, dyadic_robust_error, items_of_groups
from rankwise.metrics.survival import SurvivalRanking, read_survival
from rankwise.validation import check_float_array, check_option

FEW_GROUPS = 5
"""An interval from fewer groups is approximate."""


class EvaluationRow(NamedTuple):
    """One row of an `Evaluation`.

    Attributes
    ----------
    name : str
        Name of the metric.
    mean : float
        Mean over groups; NaN if the metric is undefined in all groups.
    n_groups : int
        Number of groups, including those where the metric is undefined.
    n_undefined : int
        Number of groups where the metric is undefined.
    low, high : float
        Confidence interval of the mean; NaN if fewer than two groups have a value, or if all
        values are equal.
    """

    name: str
    mean: float
    n_groups: int
    n_undefined: int
    low: float = np.nan
    high: float = np.nan


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """Result of `evaluate`: means of the metrics, and their values in each group.

    ``evaluation["ndcg@10"]`` is a mean; iterating gives the rows.

    Attributes
    ----------
    rows : tuple of EvaluationRow
        One row for each metric.
    per_group : dict from metric name to ndarray of shape (n_groups,)
        Values of each metric in the order of ``groups``.
    groups : ndarray of shape (n_groups,)
        The distinct group labels, sorted.
    confidence : float
        Confidence level of the intervals.
    n_items : int or None
        Number of different items, if the groups are comparisons of two items and the intervals
        allow for comparisons that share items.

    Examples
    --------
    >>> from rankwise.metrics import evaluate
    >>> groups = [0, 0, 0, 1, 1]
    >>> result = evaluate([2, 1, 0, 1, 0], [3, 1, 2, 5, 4], groups, ["ndcg@10", "tau"])
    >>> round(result["tau"], 3), result.per_group["tau"].round(3).tolist()
    (0.667, [0.333, 1.0])
    """

    rows: tuple[EvaluationRow, ...]
    per_group: dict[str, Array]
    groups: Labels
    confidence: float = DEFAULT_CONFIDENCE
    n_items: int | None = None

    def __getitem__(self, name: str | Metric) -> float:
        return self.to_dict()[get_metric(name).name]

    def __iter__(self) -> Iterator[EvaluationRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, float]:
        """Return ``{metric name: mean}``.

        Returns
        -------
        dict from str to float
            Means.
        """
        return {row.name: row.mean for row in self.rows}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns mean, groups, undefined, low and high.

        Returns
        -------
        pandas.DataFrame
            One row for each metric.
        """
        columns = ["metric", "mean", "groups", "undefined", "low", "high"]
        frame = require("pandas", "Evaluation.to_frame").DataFrame(self.rows, columns=columns)
        return frame.set_index("metric")

    def __repr__(self) -> str:
        return self.table().text()

    def _repr_html_(self) -> str:
        return self.table().html()

    def table(self) -> TextTable:
        """Return the rows as a table for a terminal, Markdown, LaTeX or HTML.

        Returns
        -------
        TextTable
            The table, with `text`, `markdown` and other formats.
        """
        header = ["metric", "mean", f"{100 * self.confidence:g}% interval", "groups", "undefined"]
        cells = [_table_cells(row) for row in self.rows]
        notes = []
        fewest_groups = self._fewest_groups_of_an_interval()
        if fewest_groups < FEW_GROUPS:
            notes.append(f"an interval from {fewest_groups} groups is a rough guess")
        if self.n_items is not None:
            notes.append(
                f"groups are comparisons of {self.n_items:,} items; intervals allow for "
                "comparisons that share items"
            )
        return TextTable(header, cells, notes=notes)

    def _fewest_groups_of_an_interval(self) -> int:
        """Smallest number of defined groups from which an interval over groups is computed."""
        n_defined = [
            row.n_groups - row.n_undefined
            for row in self.rows
            if row.n_groups > 1 and not np.isnan(row.low)
        ]
        return min(n_defined, default=FEW_GROUPS)  # no interval is not one from few groups


def _table_cells(row: EvaluationRow) -> list[str]:
    interval = ""
    if not np.isnan(row.low):
        interval = f"{row.low:.4f} … {row.high:.4f}"
    return [row.name, f"{row.mean:.4f}", interval, str(row.n_groups), str(row.n_undefined)]


def evaluate(
    y_true: ArrayLike | PairGraph,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    metrics: MetricName | Iterable[MetricName] | None = None,
    *,
    items: ArrayLike | None = None,
    undefined: str = "skip",
    sample_weight: ArrayLike | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Evaluation:
    """Evaluate a ranking by several metrics; the items are sorted only once.

    Use it to evaluate rankings of any source, including other libraries.

    Parameters
    ----------
    y_true : array-like of shape (m,), or structured target
        Relevance. NaN marks unjudged items; it is accepted only if "judged" is among the metrics,
        and the other metrics treat it as 0. Or right-censored survival times, see `concordance`: a
        `SurvivalGraph`, a structured array of a boolean event and a time, or the two columns time
        and event. Or a `PairGraph` of comparisons, each of which is a group of two items.
    y_score : array-like of shape (m,)
        Predicted scores; of the items of a `PairGraph`.
    groups : array-like of shape (m,), default=None
        Group label of each row, in any order; None puts all rows in one group.
    metrics : str, Metric, function, or several of them, default=None
        Metrics as `get_metric` reads them: ``"ndcg@10"``, ``"p(relevant=2)@5"``, or a function of
        y and scores of one group (`make_metric`). None reports the disagreement error and
        Kendall's tau; if y_true contains only grades (whole numbers from 0 to 32), also NDCG of
        the first ten and MAP (MAP only without weights, and if some item has grade 0).
    items : array-like of shape (m,), default=None
        The item of each row, if each group is a comparison of two items. Comparisons that share an
        item are not independent; the intervals allow for that. A `PairGraph` has its own items.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        Treatment of groups where a metric is undefined; they are always counted. Unlike
        the functions of single metrics, "skip" gives NaN if a metric is undefined in all groups.
    sample_weight : array-like of shape (m,), default=None
        Weights of the items, for all metrics; the docstring of each metric describes their effect.
    confidence : float, default=0.95
        Confidence level of the intervals of the means: Student's over the groups; DeLong's for
        "pooled_auc" and for the AUC of one list; dyadic-robust ones for comparisons of `items`,
        see `dyadic_robust_mean`.

    Returns
    -------
    Evaluation
        Means, intervals and values of each group; prints as a table.

    Examples
    --------
    >>> y, scores = [2, 0, 1, 1, 0, 0, 0], [0.9, 0.3, 0.5, 0.1, 0.4, 0.2, 0.8]
    >>> evaluate(y, scores, ["a", "a", "a", "b", "b", "c", "c"], ["ndcg@10", "disagreement"])
    metric          mean     95% interval  groups  undefined
    ndcg@10       0.8155  0.0000 … 1.0000       3          1
    disagreement  0.5000  0.0000 … 1.0000       3          1
    an interval from 2 groups is a rough guess
    """
    check_option("undefined", undefined, UNDEFINED)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    requested_metrics = []
    if metrics is not None:
        requested_metrics = get_metrics(metrics)
    data = _read_data(y_true, y_score, groups, items, sample_weight, requested_metrics)
    rows = []
    per_group = {}
    for metric in requested_metrics or get_metrics(data.default_metrics):
        row, values = _evaluate_metric(metric, data, undefined, confidence)
        rows.append(row)
        per_group[metric.name] = values
    n_items = None
    if data.compared is not None:
        n_items = data.compared.n_items
    return Evaluation(
        tuple(rows), per_group, data.ranking.targets.labels, confidence, n_items=n_items
    )


def _evaluate_metric(
    metric: Metric, data: _CheckedData, undefined: str, confidence: float
) -> tuple[EvaluationRow, Array]:
    """One row of the evaluation, and the values of the groups."""
    by_group = metric.by_group(data.ranking)
    n_undefined = int(np.isnan(by_group.values).sum())
    values = metric.fill_undefined(by_group, undefined, data.ranking.targets)
    if undefined == "nan" and n_undefined:
        mean = low = high = np.nan
    else:
        filled = with_error_for_shared_items(by_group._replace(values=values), data.compared)
        mean, low, high = metric.interval(filled, confidence)
    return EvaluationRow(metric.name, mean, len(values), n_undefined, low, high), values


class _CheckedData(NamedTuple):
    """Checked arguments of `evaluate`.

    Attributes
    ----------
    ranking : Ranking or SurvivalRanking
        True values and scores.
    default_metrics : sequence of str
        Metrics if none are requested.
    compared : ComparedItems or None
        The items of each group, if groups are comparisons of two items.
    """

    ranking: Ranking | SurvivalRanking
    default_metrics: Sequence[str]
    compared: ComparedItems | None = None


def _read_data(
    y_true: ArrayLike | PairGraph,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    items: ArrayLike | None,
    sample_weight: ArrayLike | None,
    metrics: Sequence[Metric],
) -> _CheckedData:
    """Read comparisons, survival times or relevance."""
    if isinstance(y_true, PairGraph):
        if groups is not None or items is not None or sample_weight is not None:
            raise ValueError(
                "y_true is a PairGraph with its own items and weights; omit groups, items and "
                "sample_weight."
            )
        return _read_comparisons(y_true, y_score, metrics)
    survival = read_survival(y_true, y_score, groups, sample_weight)
    if survival is not None:
        if items is not None:
            raise ValueError("items= is for comparisons of two items; omit it for survival times.")
        return _CheckedData(survival, ["concordance"])
    return _read_relevance(y_true, y_score, groups, items, sample_weight, metrics)


def _read_comparisons(
    graph: PairGraph, y_score: ArrayLike, metrics: Sequence[Metric]
) -> _CheckedData:
    """Each comparison as a group of two items, the winner first."""
    score = check_float_array("y_score", y_score)
    if score.shape != (graph.n_items,):
        raise ValueError(
            f"y_score has shape {score.shape}; expected one score for each of the "
            f"{graph.n_items} items of the PairGraph."
        )
    # Comparison k becomes the group k of two rows: the winner with y = its margin, the loser with 0
    n_pairs = graph.n_pairs
    item_of_row = np.column_stack([graph.winner, graph.loser]).ravel()
    y_of_row = np.column_stack([graph.magnitude, np.zeros(n_pairs)]).ravel()
    group_of_row = np.repeat(np.arange(n_pairs), 2)
    weight_of_row = None
    default_metric = "disagreement"
    if (graph.preference_weight != 1).any():
        # The weight of a pair is the product of the weights of its rows
        weight_of_row = np.column_stack([graph.preference_weight, np.ones(n_pairs)]).ravel()
        default_metric = "disagreement(average=pairs)"
    data = _read_relevance(
        y_of_row,
        score[item_of_row],
        groups=group_of_row,
        items=item_of_row,
        sample_weight=weight_of_row,
        metrics=metrics,
    )
    return data._replace(default_metrics=[default_metric])


def _read_relevance(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None,
    items: ArrayLike | None,
    sample_weight: ArrayLike | None,
    metrics: Sequence[Metric],
) -> _CheckedData:
    """Relevance of items in groups."""
    data = check_data(y_true, y_score, groups, sample_weight, metrics)
    if data.score.ndim != 1:
        raise ValueError(
            f"evaluate takes one list of scores, y_score has shape {data.score.shape}; "
            "call it for each column, or a single metric for all columns."
        )
    compared = None
    if items is not None:
        compared = items_of_groups(items, data.groups)
    ranking = Ranking(make_targets(data.y, data.groups, data.weights), data.score)
    names = default_metrics(data.y, has_weights=data.weights is not None)
    return _CheckedData(ranking, names, compared)


def with_error_for_shared_items(
    by_group: GroupValues, compared: ComparedItems | None
) -> GroupValues:
    """Values of comparisons with an error of their mean that allows for shared items.

    Parameters
    ----------
    by_group : GroupValues
        Values of a metric in each group.
    compared : ComparedItems or None
        The two items of each group. The values are unchanged if it is None, or if the metric
        computes its own error.
    """
    # Comparisons that share items correlate, so that their mean has another error
    has_own_error = by_group.standard_error is not None
    if compared is None or has_own_error:
        return by_group
    is_value_of_comparison = len(by_group.values) == len(compared.first)
    if not is_value_of_comparison:  # a pooled metric has one value
        return by_group
    error = dyadic_robust_error(by_group.values, by_group.weights, compared)
    return by_group._replace(
        standard_error=error.standard_error, degrees_of_freedom=error.degrees_of_freedom
    )
