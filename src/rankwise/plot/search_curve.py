"""SearchCurveDisplay: held-out score over alpha or the number of steps, and the coefficients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.metrics import get_metric
from rankwise.metrics.by_group import nanmean, standard_error
from rankwise.metrics.registry import MetricName
from rankwise.model_selection.validation_curve import curves_of_search
from rankwise.plot.figure import Display, describe_metric, ordered_colors
from rankwise.rankers.pipelines import final_estimator

MEANS = {
    "leave-group-out": "mean over groups",
    "leave-pair-out": "all pairs",
    "folds of groups": "mean over groups",
}
AXES = {"alpha": "alpha", "n_basis": "number of basis functions"}
BESIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
MOST_INSIDE = 3  # curves whose names find a place inside the axes


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
        Standard error of that mean; nan where there are fewer than two values.
    best : int or None
        Where the chosen value is, if this curve holds it.
    """

    label: str
    x: Array
    mean: Array
    error: Array
    best: int | None = None


class SearchCurveDisplay(Display):
    """Held-out score of a search, its spread over the groups, and what was chosen.

    Make it by `from_estimator`. The curve runs over alpha, or over the number of steps for a
    `RankingPursuitCV`. All else that was searched (kernel parameters, nu) gives more lines.

    Parameters
    ----------
    curves : list of Curve
        One for each setting or output.
    metric : str, Metric or function
        The metric.
    parameter : {"alpha", "n_basis"}
        What `x` of the curves is.

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

    lines_: list[Any]
    bands_: list[Any]
    marks_: list[Any]

    def __init__(
        self, *, curves: Sequence[Curve], metric: MetricName, parameter: str = "alpha"
    ) -> None:
        self.curves = list(curves)
        self.metric = metric
        self.parameter = parameter

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
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
        self._begin(ax, name)
        self.lines_, self.bands_, self.marks_ = [], [], []
        for curve, color in zip(self.curves, ordered_colors(len(self.curves)), strict=True):
            self._draw_curve(curve, {"color": color, **kwargs})
        self.ax_.set_ylabel(f"held-out {describe_metric(self.metric)}")
        self.ax_.legend(**(BESIDE if len(self.curves) > MOST_INSIDE else {}))
        self.ax_.set_xlabel(AXES[self.parameter])
        if self.parameter == "alpha":
            self.ax_.set_xscale("log")
        else:
            self.ax_.xaxis.get_major_locator().set_params(integer=True)
        return self

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw what a search has found.

        Parameters
        ----------
        estimator : fitted search, or a Pipeline that ends in one
            RankRLSCV, RankSVMCV, RankLogisticCV, CoRankRLSCV or RankingPursuitCV. Of several
            outputs those of the chosen kernel are shown.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        SearchCurveDisplay
        """
        search = final_estimator(estimator)
        check_is_fitted(search)
        if "mean_score" not in getattr(search, "cv_results_", ()):
            raise TypeError(
                f"estimator is a {type(search).__name__}; expected a fitted search of rankwise, "
                "such as RankRLSCV or RankingPursuitCV, or a Pipeline that ends in one."
            )
        display = cls(
            curves=_curves(search),
            metric=get_metric(search.scoring),
            parameter=curves_of_search(search)[0].parameter,
        )
        return display.plot(ax, **kwargs)

    def _draw_curve(self, curve: Curve, options: dict[str, Any]) -> None:
        """A line; for a curve with the chosen value also its band and a marker."""
        width = 1.3 if curve.best is None else 2.2
        style = {"label": curve.label, "linewidth": width, **options}
        (line,) = self.ax_.plot(curve.x, curve.mean, **style)
        self.lines_.append(line)
        if curve.best is None:
            return
        if np.isfinite(curve.error).any():
            low, high = curve.mean - curve.error, curve.mean + curve.error
            style = {"color": line.get_color(), "alpha": 0.2, "lw": 0}
            self.bands_.append(self.ax_.fill_between(curve.x, low, high, **style))
        x, y = curve.x[curve.best], curve.mean[curve.best]
        style = {"color": line.get_color(), "mec": "black", "ms": 9, "zorder": 5}
        self.marks_ += self.ax_.plot([x], [y], "o", label=f"chosen: {x:.3g}", **style)


def _curves(search: Any) -> list[Curve]:
    """One curve for each kernel or nu, or for each output of the chosen kernel."""
    every = curves_of_search(search)
    chosen = next(each for each in every if each.is_chosen)
    value = search.best_params_[chosen.parameter]
    if chosen.by_group.ndim == 3:
        picked = np.broadcast_to(value, chosen.by_group.shape[2])
        return [
            _curve(f"output {j}", chosen.x, chosen.by_group[:, :, j], chosen.place(alpha))
            for j, alpha in enumerate(picked)
        ]
    usual = MEANS.get(search.cv_results_.get("cv", ""), "mean over folds")
    return [
        _curve(
            ", ".join(f"{name} = {_short(param)}" for name, param in each.params.items()) or usual,
            each.x,
            each.by_group,
            each.place(value) if each.is_chosen else None,
        )
        for each in every
    ]


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, (int, float)) else str(value)


def _curve(label: str, x: Array, by_group: Array, best: int | None) -> Curve:
    """Average over the groups, and sort by x."""
    order = np.argsort(x, kind="stable")
    place = None if best is None else int(np.flatnonzero(order == best)[0])
    mean, error = nanmean(by_group)[order], standard_error(by_group)[order]
    return Curve(label, np.asarray(x, dtype=np.float64)[order], mean, error, place)
