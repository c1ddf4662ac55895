"""Where displays are drawn: matplotlib, imported when needed, and colors that all can see."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from rankwise.environment import require

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
GOOD, BAD, NEUTRAL = "#0072B2", "#D55E00", "#808080"


def import_pyplot(caller: str) -> Any:
    """Return pyplot, or raise an ImportError that names the remedy."""
    return require("matplotlib.pyplot", caller)


def axes_for(ax: Any, caller: str) -> Any:
    """Return the axes given, or those of a new figure."""
    pyplot = import_pyplot(caller)
    if ax is None:
        return pyplot.subplots(layout="constrained")[1]
    if not hasattr(ax, "get_figure"):
        raise TypeError(
            f"ax is a {type(ax).__name__}; expected matplotlib axes, as plt.subplots() gives them."
        )
    return ax


def ordered_colors(n: int) -> list[Any]:
    """Return colors of n lines: distinct hues for a few, a scale from dark to light for many."""
    if n <= len(COLORS):
        return list(COLORS[:n])
    scale = import_module("matplotlib").colormaps["viridis"]
    return [scale(position) for position in np.linspace(0.0, 0.9, n)]
