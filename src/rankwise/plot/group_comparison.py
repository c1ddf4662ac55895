"""GroupComparisonDisplay: a metric of two rankers in each group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.defaults import DEFAULT_CONFIDENCE
from rankwise.graphs.supervision import unpack_unweighted_target
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName
from rankwise.model_selection import ComparisonRow, compare
from rankwise.plot.figure import BAD, GOOD, NEUTRAL, Display, PlotOption, describe_metric

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.lines import Line2D


class GroupComparisonDisplay(Display):
    """Scatter plot of a metric of two rankers, one point per group.

    Use it to see in which groups one ranker is better than another.

    Create it with `from_predictions`. Groups where the metric is undefined are dropped and counted.

    Parameters
    ----------
    values_a, values_b : array-like of shape (n_groups,)
        The metric in each group; NaN where it is undefined.
    metric : str, Metric or function
        The metric.
    names : pair of str, default=("A", "B")
        Names of the rankers.
    confidence : float, default=0.95
        Confidence level of the interval of the mean difference.

    Attributes
    ----------
    row : ComparisonRow
        Mean difference, its interval, wins and p-value of `rankwise.model_selection.compare`.
    n_dropped : int
        Number of groups that were dropped.
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
    >>> a = [0.9, 0.7, 0.8, 0.6, 0.9, 0.8, 0.7, 0.8, 0.9, 0.6, 0.7]
    >>> b = [0.6, 0.7, 0.5, 0.5, 0.8, 0.9, 0.5, 0.6, 0.7, 0.5, 0.4]
    >>> display = GroupComparisonDisplay(
    ...     values_a=a, values_b=b, metric="ndcg@10", names=("A", "B")
    ... ).plot()
    >>> round(display.row.difference, 2), display.winner.tolist()
    (0.15, [1, 0, 1, 1, 1, -1, 1, 1, 1, 1, 1])
    >>> plt.close(display.figure_)
    """

    points_: list[PathCollection]
    line_: Line2D

    def __init__(
        self,
        *,
        values_a: ArrayLike,
        values_b: ArrayLike,
        metric: MetricName,
        names: Sequence[str] = ("A", "B"),
        confidence: float = DEFAULT_CONFIDENCE,
    ) -> None:
        are_two = not isinstance(names, str) and len(names) == 2
        if not are_two or str(names[0]) == str(names[1]):
            raise ValueError(f"names={names!r}; expected two different names, one for each ranker.")
        self.names = (str(names[0]), str(names[1]))
        self.metric = get_metric(metric)
        self.confidence = confidence
        name_a, name_b = self.names
        values_by_name = {name_a: values_a, name_b: values_b}
        result = compare(values_by_name, confidence=confidence, metric=self.metric)
        self.row: ComparisonRow = result.rows[0]  # the only pair of rankers
        self.n_dropped = result.n_dropped
        all_a = np.asarray(values_a, dtype=np.float64)
        all_b = np.asarray(values_b, dtype=np.float64)
        is_defined = np.isfinite(all_a) & np.isfinite(all_b)
        self.values_a = all_a[is_defined]
        self.values_b = all_b[is_defined]
        self.winner = self._find_winners()

    def plot(
        self, ax: Axes | None = None, *, name: str | None = None, **kwargs: PlotOption
    ) -> Self:
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
        self._create_axes(ax, name)
        name_a, name_b = self.names
        self.points_ = []
        # By winner: 1 for A, −1 for B, 0 for equal values
        self._draw_points(1, f"{name_a} better: {self.row.wins}", GOOD, "o", kwargs)
        self._draw_points(-1, f"{name_b} better: {self.row.losses}", BAD, "s", kwargs)
        self._draw_points(0, f"equal: {self.row.ties}", NEUTRAL, "D", kwargs)

        # The same limits on both axes, and a line of equal values
        limits = self._find_axis_limits()
        (self.line_,) = self.ax_.plot(limits, limits, color="black", linewidth=1, linestyle="--")
        metric = describe_metric(self.metric)
        self.ax_.set(xlim=limits, ylim=limits, aspect="equal")
        self.ax_.set(xlabel=f"{name_a}: {metric}", ylabel=f"{name_b}: {metric}")
        self.ax_.legend(fontsize="small")
        title = self._describe_difference()
        if name is not None:
            title = f"{name}\n{title}"
        self.ax_.set_title(title, fontsize="medium")
        return self

    def _draw_points(
        self,
        winner: int,
        label: str,
        color: str,
        marker: str,
        options_of_user: dict[str, PlotOption],
    ) -> None:
        """Draw the groups with this winner: 1 for A, −1 for B, 0 for equal values."""
        has_winner = self.winner == winner  # 1: A is better, −1: B is better, 0: equal
        options: dict[str, PlotOption] = {
            "s": 28,
            "alpha": 0.75,
            "linewidth": 0,
            "color": color,
            "marker": marker,
            "label": label,
            **options_of_user,
        }
        points = self.ax_.scatter(self.values_a[has_winner], self.values_b[has_winner], **options)
        self.points_.append(points)

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        scores_a: ArrayLike,
        scores_b: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        metric: MetricName = "ndcg@10",
        names: Sequence[str] = ("A", "B"),
        confidence: float = DEFAULT_CONFIDENCE,
        ax: Axes | None = None,
        **kwargs: PlotOption,
    ) -> Self:
        """Compare the predictions of two rankers for the same items.

        Parameters
        ----------
        y : array-like of shape (n_items,), or target of `make_target`
            True scores.
        scores_a, scores_b : array-like of shape (n_items,)
            Predicted scores of the two rankers.
        groups : array-like of shape (n_items,), optional
            Group labels, unless y carries them.
        metric : str, Metric or function, default="ndcg@10"
            Any name of `rankwise.metrics`, or a function of y and scores of one group.
        names : pair of str, default=("A", "B")
            Names of the rankers.
        confidence : float, default=0.95
            Confidence level of the interval of the mean difference.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        GroupComparisonDisplay
            The display.
        """
        relevance, groups = unpack_unweighted_target(y, groups)
        if groups is None:
            raise ValueError(
                "a comparison group by group needs groups; pass one label per item, or a target of "
                "make_target as y."
            )
        metric = get_metric(metric)
        y = np.asarray(relevance)
        values_a = metric(y, scores_a, groups, per_group=True, undefined="nan")
        values_b = metric(y, scores_b, groups, per_group=True, undefined="nan")
        display = cls(
            values_a=np.asarray(values_a),
            values_b=np.asarray(values_b),
            metric=metric,
            names=names,
            confidence=confidence,
        )
        return display.plot(ax, **kwargs)

    def _find_winners(self) -> NDArray[np.int_]:
        """Return 1 where a is better, −1 where b is; values that `compare` calls equal give 0."""
        largest_value = max(np.abs(self.values_a).max(), np.abs(self.values_b).max())
        if largest_value == 0.0:
            return np.zeros(len(self.values_a), dtype=int)
        # 1 where A is better, −1 where B is better, 0 where they are equal. Differences in the
        # twelfth digit of the largest value are rounding errors.
        difference = (self.values_a - self.values_b) / largest_value
        sign: NDArray[np.int_] = np.sign(np.round(difference, 12)).astype(int)
        if self.metric.greater_is_better:
            return sign
        return np.negative(sign)

    def _find_axis_limits(self) -> list[float]:
        """Return the limits of both axes: the range of the values and a margin."""
        values = np.concatenate([self.values_a, self.values_b])
        value_range = float(np.ptp(values))
        margin = 0.05
        if value_range > 0.0:
            margin = 0.05 * value_range
        return [float(values.min()) - margin, float(values.max()) + margin]

    def _describe_difference(self) -> str:
        row = self.row
        difference = f"{row.a} − {row.b}: {row.difference:+.3g}"
        if np.isfinite(row.low):
            level = f"{100 * self.confidence:g}%"
            difference += f" ({level} interval {row.low:+.3g} … {row.high:+.3g})"
        groups = f"{len(self.values_a)} groups"
        if self.n_dropped:
            groups += f", {self.n_dropped} undefined dropped"
        return f"{difference}\np = {row.p:.2g} (paired t test), {groups}"
