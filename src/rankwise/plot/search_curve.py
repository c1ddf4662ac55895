"""SearchCurveDisplay: held-out score over alpha or over the number of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.metrics import get_metric
from rankwise.metrics.by_group import nanmean_over_units, standard_error
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.validation_curve import curves_of_search
from rankwise.plot.figure import Display, PlotOption, describe_metric, ordered_colors
from rankwise.rankers.pipelines import final_estimator
from rankwise.rankers.search import BaseSearch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D

AVERAGE_OF = {  # units over which a point of a curve is averaged, by cross-validation scheme
    "leave-group-out": "mean over groups",
    "leave-pair-out": "all pairs",
    "folds of groups": "mean over groups",
}
PARAMETER_LABELS = {"alpha": "alpha", "n_basis": "number of basis functions"}
MAX_CURVES_INSIDE = 3  # with more curves the legend is next to the axes
NEXT_TO_AXES: dict[str, PlotOption] = {
    "loc": "center left",
    "bbox_to_anchor": (1.0, 0.5),
    "frameon": False,
}


class Curve(NamedTuple):
    """Mean of a metric as a function of one parameter.

    Attributes
    ----------
    label : str
        Name in the legend.
    x : ndarray of shape (n,)
        Values of the parameter, ascending.
    mean : ndarray of shape (n,)
        Mean over the groups (folds) where the metric is defined.
    error : ndarray of shape (n,)
        Standard error of that mean; NaN where there are fewer than two values.
    best : int or None
        Index of the chosen value; None if it is on another curve.
    """

    label: str
    x: Array
    mean: Array
    error: Array
    best: int | None = None


class SearchCurveDisplay(Display):
    """Held-out score of a search, its standard error over the groups, and the chosen value.

    Use it to check whether the range of the candidates was wide enough.

    Create it with `from_estimator`. The x axis is alpha, or the number of steps of
    `RankingPursuitCV`. Other searched parameters (kernel parameters, nu) give one line each.

    Parameters
    ----------
    curves : list of Curve
        One for each setting or output.
    metric : str, Metric or function
        The metric.
    parameter : {"alpha", "n_basis"}, default="alpha"
        The parameter on the x axis.

    Attributes
    ----------
    ax_, figure_
        Axes of the curves, and their figure.
    lines_, bands_, marks_ : list
        Lines of the curves, bands of one standard error, markers of the chosen value.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.plot import SearchCurveDisplay
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> model = RankRLSCV(scoring="ndcg@10").fit(X, y, groups)
    >>> display = SearchCurveDisplay.from_estimator(model)
    >>> display.ax_.get_ylabel()
    'held-out ndcg@10 (higher is better)'
    >>> plt.close(display.figure_)
    """

    lines_: list[Line2D]
    bands_: list[PolyCollection]
    marks_: list[Line2D]

    def __init__(
        self, *, curves: Sequence[Curve], metric: MetricName, parameter: str = "alpha"
    ) -> None:
        self.curves = list(curves)
        self.metric = metric
        self.parameter = parameter

    def plot(
        self, ax: Axes | None = None, *, name: str | None = None, **kwargs: PlotOption
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Title.
        **kwargs
            Options of the lines of the curves, as for ``ax.plot``.

        Returns
        -------
        SearchCurveDisplay
            The display itself.
        """
        self._create_axes(ax, name)
        self.lines_ = []
        self.bands_ = []
        self.marks_ = []
        colors = ordered_colors(len(self.curves))
        for curve, color in zip(self.curves, colors, strict=True):
            self._draw_curve(curve, {"color": color, **kwargs})
        self.ax_.set_ylabel(f"held-out {describe_metric(self.metric)}")
        if len(self.curves) > MAX_CURVES_INSIDE:
            self.ax_.legend(**NEXT_TO_AXES)
        else:
            self.ax_.legend()
        self.ax_.set_xlabel(PARAMETER_LABELS[self.parameter])
        if self.parameter == "alpha":
            self.ax_.set_xscale("log")
        else:
            self.ax_.locator_params(axis="x", integer=True)
        return self

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None, **kwargs: PlotOption
    ) -> Self:
        """Draw the held-out scores of a search.

        Parameters
        ----------
        estimator : fitted search, or a Pipeline that ends in one
            RankRLSCV, RankSVMCV, RankLogisticCV, CoRankRLSCV or RankingPursuitCV. With several
            outputs, there is one line per output for the chosen kernel.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        SearchCurveDisplay
            The display.
        """
        search = final_estimator(estimator)
        check_is_fitted(search)
        if not isinstance(search, BaseSearch) or "mean_score" not in search.cv_results_:
            raise TypeError(
                f"estimator is a {type(search).__name__}; expected a fitted search of rankwise, "
                "such as RankRLSCV or RankingPursuitCV, or a Pipeline that ends in one."
            )
        display = cls(
            curves=_make_curves(search),
            metric=get_metric(search.scoring),
            parameter=curves_of_search(search)[0].parameter,
        )
        return display.plot(ax, **kwargs)

    def _draw_curve(self, curve: Curve, options: dict[str, PlotOption]) -> None:
        """Draw a line; the curve with the chosen value also gets a band and a marker."""
        if curve.best is None:  # a curve without the chosen value is a thin line
            thin_style = {"label": curve.label, "linewidth": 1.3, **options}
            self.lines_ += self.ax_.plot(curve.x, curve.mean, **thin_style)
            return
        thick_style = {"label": curve.label, "linewidth": 2.2, **options}
        (line,) = self.ax_.plot(curve.x, curve.mean, **thick_style)
        self.lines_.append(line)
        color = line.get_color()
        if np.isfinite(curve.error).any():
            low = curve.mean - curve.error
            high = curve.mean + curve.error
            band = self.ax_.fill_between(curve.x, low, high, color=color, alpha=0.2, linewidth=0)
            self.bands_.append(band)
        chosen_x = curve.x[curve.best]
        chosen_mean = curve.mean[curve.best]
        mark_style: dict[str, PlotOption] = {"color": color, "mec": "black", "ms": 9, "zorder": 5}
        label = f"chosen: {chosen_x:.3g}"
        self.marks_ += self.ax_.plot([chosen_x], [chosen_mean], "o", label=label, **mark_style)


def _make_curves(search: BaseSearch) -> list[Curve]:
    """Return one curve per kernel or nu, or one per output of the chosen kernel."""
    validation_curves = curves_of_search(search)
    chosen = next(curve for curve in validation_curves if curve.is_chosen)
    # The chosen value of the parameter on the horizontal axis, one for each output
    best_value = np.asarray(search.best_params_[chosen.parameter], dtype=np.float64)
    has_outputs = chosen.by_group.ndim == 3  # (n_groups, n_values, n_outputs)
    if has_outputs:  # a curve for each output, each with its best value
        n_outputs = chosen.by_group.shape[2]
        curves = []
        for output, value in enumerate(np.broadcast_to(best_value, n_outputs)):
            by_group = chosen.by_group[:, :, output]
            curve_of_output = _make_curve(
                f"output {output}", chosen.x, by_group, chosen.place(value)
            )
            curves.append(curve_of_output)
        return curves

    curves = []
    for curve in validation_curves:
        label = ", ".join(f"{name} = {_short_text(value)}" for name, value in curve.params.items())
        if not label:
            label = AVERAGE_OF.get(str(search.cv_results_.get("cv")), "mean over folds")
        # Position of the best value, on the curve that has it
        best = curve.place(float(best_value)) if curve.is_chosen else None
        curves.append(_make_curve(label, curve.x, curve.by_group, best, curve.error))
    return curves


def _short_text(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:.3g}"
    return str(value)


def _make_curve(
    label: str, x: Array, by_group: Array, best: int | None, error: Array | None = None
) -> Curve:
    """Average the values over the groups, and sort the curve by x.

    Without `error`, standard errors of means over independent groups are computed.
    """
    if error is None:
        error = standard_error(by_group)
    order = np.argsort(x, kind="stable")
    sorted_best = None
    if best is not None:  # the position of the best value after sorting
        sorted_best = int(np.flatnonzero(order == best)[0])
    return Curve(
        label=label,
        x=np.asarray(x, dtype=np.float64)[order],
        mean=nanmean_over_units(by_group)[order],
        error=error[order],
        best=sorted_best,
    )
