"""Several metrics of one ranking in a table."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.environment import require
from rankwise.metrics.arguments import check_weighted_data
from rankwise.metrics.averaging import UNDEFINED, check_has_weights, mean, settle
from rankwise.metrics.ranking import Ranking, Targets
from rankwise.metrics.registry import Metric, get_metric
from rankwise.options import check_option


class EvaluationRow(NamedTuple):
    """One line of an `Evaluation`.

    Attributes
    ----------
    name : str
        The metric.
    mean : float
        Mean over groups; NaN if no group has a value.
    n_groups : int
        Number of groups, those without a value among them.
    n_undefined : int
        Number of groups where the metric is undefined.
    """

    name: str
    mean: float
    n_groups: int
    n_undefined: int


class ByMetric(Mapping[str, Array]):
    """Arrays by metric, found under any spelling that `get_metric` reads."""

    def __init__(self, arrays: dict[str, Array]) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str | Metric) -> Array:
        wanted = get_metric(name).name
        if wanted not in self._arrays:
            raise KeyError(f"{wanted} was not evaluated, only {', '.join(self._arrays)}")
        return self._arrays[wanted]

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __repr__(self) -> str:
        return f"ByMetric({self._arrays})"


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """Result of `evaluate`: a table of means that also knows the value of each group.

    ``evaluation["ndcg@10"]`` is a mean; iterating gives the rows.

    Attributes
    ----------
    rows : tuple of EvaluationRow
        One for each metric.
    per_group : mapping from metric name to ndarray of shape (n_groups,)
        In the order of ``groups``.
    groups : ndarray of shape (n_groups,)
        The distinct group labels, sorted.
    """

    rows: tuple[EvaluationRow, ...]
    per_group: ByMetric
    groups: NDArray[Any]

    def __getitem__(self, name: str | Metric) -> float:
        wanted = get_metric(name).name
        means = self.to_dict()
        if wanted not in means:
            raise KeyError(f"{wanted} was not evaluated, only {', '.join(means)}")
        return means[wanted]

    def __iter__(self) -> Iterator[EvaluationRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def to_dict(self) -> dict[str, float]:
        """Return ``{metric name: mean}``."""
        return {row.name: row.mean for row in self.rows}

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with the columns mean, groups and undefined."""
        pandas = require("pandas", "Evaluation.to_frame")
        table = pandas.DataFrame(list(self.rows), columns=["metric", "mean", "groups", "undefined"])
        return table.set_index("metric")

    def __repr__(self) -> str:
        width = max([13, *(len(row.name) + 2 for row in self.rows)])
        lines = [f"{'metric':<{width}} {'mean':<8} {'groups':<7} undefined"]
        for name, value, n_groups, n_undefined in self.rows:
            lines.append(f"{name:<{width}} {value:<8.4f} {n_groups:<7} {n_undefined}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        lines = ["<tr><th>metric</th><th>mean</th><th>groups</th><th>undefined</th></tr>"]
        for name, value, n_groups, n_undefined in self.rows:
            cells = (html.escape(name), f"{value:.4f}", str(n_groups), str(n_undefined))
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        return f"<table>{''.join(lines)}</table>"


def evaluate(
    y_true: ArrayLike,
    y_score: ArrayLike,
    groups: ArrayLike | None = None,
    metrics: str | Metric | Iterable[str | Metric] = ("ndcg@10", "map", "disagreement", "tau"),
    *,
    undefined: str = "skip",
    sample_weight: ArrayLike | None = None,
) -> Evaluation:
    """Evaluate a ranking by several metrics; the items are sorted once for all of them.

    Parameters
    ----------
    y_true : array-like of shape (m,), or structured target
        Relevance.
    y_score : array-like of shape (m,)
        Predicted scores.
    groups : array-like of shape (m,), optional
        Group label of each row, in any order; None puts all rows in one group.
    metrics : iterable of str or Metric
        As `get_metric` reads them: ``"ndcg@10"``, ``"p(relevant=2)@5"``.
    undefined : {"skip", "zero", "one", "nan", "raise"}, default="skip"
        What to do with groups where a metric is undefined; they are counted in any case. Unlike
        the single metrics, "skip" gives NaN where no group is left.
    sample_weight : array-like of shape (m,), optional
        Weights of the items, for all metrics; each says what it makes of them.

    Returns
    -------
    Evaluation
        Prints as a table.

    Examples
    --------
    >>> y, scores = [2, 0, 1, 1, 0, 0, 0], [0.9, 0.3, 0.5, 0.1, 0.4, 0.2, 0.8]
    >>> evaluate(y, scores, ["a", "a", "a", "b", "b", "c", "c"], ["ndcg@10", "disagreement"])
    metric        mean     groups  undefined
    ndcg@10       0.8155   3       1
    disagreement  0.5000   3       1
    """
    check_option("undefined", undefined, UNDEFINED)
    chosen = [metrics] if isinstance(metrics, (str, Metric)) else metrics
    y, score, encoded, weights = check_weighted_data(y_true, y_score, groups, sample_weight)
    if score.ndim != 1:
        raise ValueError(
            f"evaluate takes one list of scores, y_score has shape {score.shape}; "
            "call it for each column, or a single metric for all columns."
        )
    ranking = Ranking(Targets(y, encoded, weights), score)
    rows, per_group = [], {}
    for metric in dict.fromkeys(get_metric(name) for name in chosen):
        if weights is not None:
            check_has_weights(metric.core)
        found = metric.by_group(ranking)
        values = settle(metric.core, found, undefined, ranking.targets)
        average = mean(values, found.weights, undefined)
        n_undefined = int(np.isnan(found.values).sum())
        rows.append(EvaluationRow(metric.name, average, len(values), n_undefined))
        per_group[metric.name] = values
    return Evaluation(tuple(rows), ByMetric(per_group), encoded.labels)
