"""Where displays are drawn: matplotlib, imported when needed, and colors that all can see."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from rankwise.environment import require
from rankwise.metrics import get_metric
from rankwise.metrics.registry import MetricName

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
GOOD, BAD, NEUTRAL = "#0072B2", "#D55E00", "#808080"


class Display:
    """What all displays have: axes and their figure."""

    ax_: Any
    figure_: Any

    def _begin(self, ax: Any, name: str | None) -> None:
        """Take the axes, or those of a new figure."""
        pyplot = require("matplotlib.pyplot", f"{type(self).__name__}.plot")
        self.ax_ = pyplot.subplots(layout="constrained")[1] if ax is None else ax
        self.figure_ = self.ax_.get_figure()
        self.ax_.set_title(name or "")


def describe_metric(metric: MetricName) -> str:
    """Return the label of an axis: the metric and which way is better."""
    known = get_metric(metric)
    return f"{known} ({'higher' if known.greater_is_better else 'lower'} is better)"


def ordered_colors(n: int) -> list[Any]:
    """Return colors of n lines: distinct hues for a few, a scale from dark to light for many."""
    if n <= len(COLORS):
        return list(COLORS[:n])
    scale = import_module("matplotlib").colormaps["viridis"]
    return [scale(position) for position in np.linspace(0.0, 0.9, n)]
