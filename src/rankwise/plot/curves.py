"""Curves with their spread over groups, folds or repeats, and how they are drawn."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.metrics import get_metric
from rankwise.model_selection.measures import mean_defined, standard_error
from rankwise.plot.figure import ordered_colors

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
        Mean over the groups (folds, repeats) where the metric is defined.
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


class DrawnCurves(NamedTuple):
    """What `draw_curves` drew: a line for each curve, bands and markers for some."""

    lines: list[Any]
    bands: list[Any]
    marks: list[Any]


def make_curve(label: str, x: ArrayLike, values: ArrayLike, best: int | None = None) -> Curve:
    """Average values of shape (n_groups, n) over the groups, and sort by x.

    Examples
    --------
    >>> curve = make_curve("linear", [10.0, 1.0], [[0.2, 0.5], [0.4, float("nan")]])
    >>> curve.x, curve.mean, curve.error.round(3)
    (array([ 1., 10.]), array([0.5, 0.3]), array([nan, 0.1]))
    """
    position, table = np.asarray(x, dtype=np.float64), np.asarray(values, dtype=np.float64)
    order = np.argsort(position, kind="stable")
    at = None if best is None else int(np.flatnonzero(order == best)[0])
    mean, error = mean_defined(table)[order], standard_error(table)[order]
    return Curve(label, position[order], mean, error, at)


def describe_params(params: Mapping[str, Any]) -> str:
    """Return the label of a setting, such as ``gamma = 0.1, degree = 2``.

    Examples
    --------
    >>> describe_params({"gamma": 1 / 3, "degree": None})
    'gamma = 0.333, degree = None'
    """
    return ", ".join(
        f"{name} = {value:.3g}" if isinstance(value, numbers.Real) else f"{name} = {value}"
        for name, value in params.items()
    )


def describe_metric(metric: str) -> str:
    """Return the label of an axis: the metric and which way is better."""
    if metric == "loss":
        return "loss (lower is better)"
    way = "higher" if get_metric(metric).greater_is_better else "lower"
    return f"{metric} ({way} is better)"


def draw_legend(ax: Any, n_curves: int) -> None:
    """Name the curves: inside the axes where they are few, beside them where they would hide."""
    if n_curves > MOST_INSIDE:
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    else:
        ax.legend()


def draw_band(ax: Any, curve: Curve, color: Any) -> Any:
    """Shade one standard error around a curve; None if the curve has none."""
    if not np.isfinite(curve.error).any():
        return None
    low, high = curve.mean - curve.error, curve.mean + curve.error
    return ax.fill_between(curve.x, low, high, alpha=0.2, color=color, lw=0)


def draw_curves(ax: Any, curves: Sequence[Curve], mark: str, **kwargs: Any) -> DrawnCurves:
    """Draw lines; where there are several, bands only around those that hold a chosen value.

    The chosen values get markers, named by `mark`, a format such as "best: {:.0f}".
    """
    drawn = DrawnCurves([], [], [])
    some_chosen = any(curve.best is not None for curve in curves)
    for curve, color in zip(curves, ordered_colors(len(curves)), strict=True):
        is_best = curve.best is not None
        options = {"color": color, "linewidth": 2.2 if is_best or not some_chosen else 1.3}
        (line,) = ax.plot(curve.x, curve.mean, label=curve.label, **{**options, **kwargs})
        drawn.lines.append(line)
        color = line.get_color()
        if is_best or not some_chosen:
            band = draw_band(ax, curve, color)
            drawn.bands.extend([] if band is None else [band])
        if curve.best is not None:
            x, y = curve.x[curve.best], curve.mean[curve.best]
            style = {"color": color, "mec": "black", "ms": 9, "zorder": 5}
            drawn.marks.extend(ax.plot([x], [y], "o", label=mark.format(x), **style))
    return drawn
