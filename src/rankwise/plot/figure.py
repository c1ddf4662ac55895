"""Axes and colors of the displays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rankwise.environment import require
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Color: TypeAlias = "str | tuple[float, float, float, float]"
PlotOption: TypeAlias = Any  # value of a keyword argument of matplotlib

# The palette of Okabe and Ito, which color-blind people can distinguish.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
GOOD = COLORS[0]
BAD = COLORS[1]
NEUTRAL = "#808080"


class Display:
    """Base class of the displays: axes and their figure."""

    ax_: Axes
    figure_: Figure | SubFigure | None

    def _create_axes(self, ax: Axes | None, name: str | None) -> None:
        """Use the axes or create a figure, and set the title."""
        pyplot = require("matplotlib.pyplot", f"{type(self).__name__}.plot")
        if ax is None:
            _, ax = pyplot.subplots(layout="constrained")
        self.ax_ = ax
        self.figure_ = self.ax_.get_figure()
        title = ""
        if name is not None:
            title = name
        self.ax_.set_title(title)


def describe_metric(metric: MetricName) -> str:
    """Return the label of an axis: the metric and its direction."""
    resolved = get_metric(metric)
    direction = "higher" if resolved.greater_is_better else "lower"
    return f"{resolved} ({direction} is better)"


def ordered_colors(n_colors: int) -> list[Color]:
    """Return n colors: distinct hues for a few lines, a scale from dark to light for many."""
    if n_colors <= len(COLORS):
        return list(COLORS[:n_colors])
    colormap = import_module("matplotlib").colormaps["viridis"]
    return [colormap(position) for position in np.linspace(0.0, 0.9, n_colors)]
