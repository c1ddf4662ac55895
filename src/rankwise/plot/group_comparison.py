"""GroupComparisonDisplay: two rankers, group by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.graphs.supervision import unpack_unweighted_target
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName
from rankwise.model_selection import ComparisonRow, compare
from rankwise.plot.figure import BAD, GOOD, NEUTRAL, Display, describe_metric


class GroupComparisonDisplay(Display):
    """A metric of two rankers in every group, against each other.

    Make it by `from_predictions`. Groups where the metric is undefined are
    left out and counted.

    Parameters
    ----------
    values_a, values_b : array-like of shape (n_groups,)
        The metric in each group; nan where it is undefined.
    metric : str, Metric or function
        Its name.
    names : pair of str
        Names of the rankers.
    confidence : float
        Probability of the interval of the mean difference, such as 0.95.

    Attributes
    ----------
    row : ComparisonRow
        Mean difference, its interval, wins and Wilcoxon's p of `rankwise.model_selection.compare`.
    n_dropped : int
        Number of groups left out.
    winner : ndarray of shape (n_groups,), int
        1 where a is better, −1 where b is, 0 where they are equal.
    ax_, figure_
        Axes and figure.
    points_ : list
        Points of the groups where a is better, b is better, and where both are equal.
    line_
        The diagonal.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise.plot import GroupComparisonDisplay
    >>> display = GroupComparisonDisplay(
    ...     values_a=[0.9, 0.7, 0.8], values_b=[0.6, 0.7, 0.5], metric="ndcg@10", names=("A", "B")
    ... ).plot()
    >>> round(display.row.difference, 2), display.winner
    (0.2, array([1, 0, 1]))
    >>> plt.close(display.figure_)
    """

    points_: list[Any]
    line_: Any

    def __init__(
        self,
        *,
        values_a: ArrayLike,
        values_b: ArrayLike,
        metric: MetricName,
        names: Sequence[str] = ("A", "B"),
        confidence: float = DEFAULT_CONFIDENCE,
    ) -> None:
        if isinstance(names, str) or len(names) != 2 or str(names[0]) == str(names[1]):
            raise ValueError(f"names={names!r}; expected two different names, one for each ranker.")
        self.names = (str(names[0]), str(names[1]))
        self.metric = get_metric(metric)
        self.confidence = confidence
        better = self.metric.greater_is_better
        values = dict(zip(self.names, (values_a, values_b), strict=True))
        result = compare(values, confidence=confidence, greater_is_better=better)
        self.row: ComparisonRow = result.rows[0]
        self.n_dropped = result.n_dropped
        a, b = np.asarray(values_a, dtype=np.float64), np.asarray(values_b, dtype=np.float64)
        kept = np.isfinite(a) & np.isfinite(b)
        self.values_a, self.values_b = a[kept], b[kept]
        difference = self.values_a - self.values_b
        largest = max(np.abs(self.values_a).max(), np.abs(self.values_b).max()) or 1.0
        sign = np.sign(np.round(difference / largest, 12))  # as `compare` tells values apart
        self.winner = (sign if better else -sign).astype(int)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw one point for each group, a against b, and the diagonal.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Title above the numbers of the comparison.
        **kwargs
            Options of the points, as for ``ax.scatter``.

        Returns
        -------
        GroupComparisonDisplay
            The display itself.
        """
        self._begin(ax, name)
        a, b = self.names
        outcomes = [
            (self.winner == 1, f"{a} better: {self.row.wins}", GOOD, "o"),
            (self.winner == -1, f"{b} better: {self.row.losses}", BAD, "s"),
            (self.winner == 0, f"equal: {self.row.ties}", NEUTRAL, "D"),
        ]
        self.points_ = []
        for rows, label, color, marker in outcomes:
            options = {"s": 28, "alpha": 0.75, "linewidth": 0, "color": color, "marker": marker}
            x, y = self.values_a[rows], self.values_b[rows]
            self.points_.append(self.ax_.scatter(x, y, label=label, **options | kwargs))
        values = np.concatenate([self.values_a, self.values_b])
        margin = 0.05 * (np.ptp(values) or 1.0)
        ends = [values.min() - margin, values.max() + margin]
        (self.line_,) = self.ax_.plot(ends, ends, color="black", linewidth=1, linestyle="--")
        a, b = (f"{one}: {describe_metric(self.metric)}" for one in self.names)
        self.ax_.set(xlim=ends, ylim=ends, aspect="equal", xlabel=a, ylabel=b)
        self.ax_.legend(fontsize="small")
        self.ax_.set_title("\n".join(filter(None, [name, self._summary()])), fontsize="medium")
        return self

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        scores_a: ArrayLike,
        scores_b: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        metric: MetricName = "ndcg@10",
        names: Sequence[str] = ("A", "B"),
        confidence: float = DEFAULT_CONFIDENCE,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Compare two lists of scores of the same items.

        Parameters
        ----------
        y : array-like of shape (n_items,), or target of `make_target`
            True scores.
        scores_a, scores_b : array-like of shape (n_items,)
            What the two rankers predict.
        groups : array-like of shape (n_items,), optional
            Group labels, unless y carries them.
        metric : str, Metric or function
            Any name of `rankwise.metrics`, or a function of y and scores of one group.
        names : pair of str
            Names of the rankers.
        confidence : float
            Probability of the interval of the mean difference, such as 0.95.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        GroupComparisonDisplay
        """
        y, groups = unpack_unweighted_target(y, groups)
        if groups is None:
            raise ValueError(
                "a comparison group by group needs groups; pass one label per item, or a target of "
                "make_target as y."
            )
        judge = get_metric(metric)
        a, b = (
            np.asarray(judge(y, scores, groups, per_group=True, undefined="nan"))
            for scores in (scores_a, scores_b)
        )
        options: dict[str, Any] = {"metric": judge, "names": names, "confidence": confidence}
        return cls(values_a=a, values_b=b, **options).plot(ax, **kwargs)

    def _summary(self) -> str:
        row, level = self.row, 100 * self.confidence
        text = f"{row.a} − {row.b}: {row.difference:+.3g}"
        if np.isfinite(row.low):
            text += f" ({level:g} %: {row.low:+.3g} … {row.high:+.3g})"
        dropped = f", {self.n_dropped} undefined left out" if self.n_dropped else ""
        return f"{text}\nWilcoxon p = {row.p:.2g}, {len(self.values_a)} groups{dropped}"
