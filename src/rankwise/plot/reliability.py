"""ReliabilityDisplay: calibration of the probabilities of pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Array
from rankwise.plot.figure import COLORS, NEUTRAL, Display, PlotOption
from rankwise.rankers.pipelines import final_estimator
from rankwise.uncertainty import CalibratedRanker
from rankwise.uncertainty.probability_map import reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer
    from matplotlib.lines import Line2D


class ReliabilityDisplay(Display):
    """Share of correctly ordered pairs over the predicted probability, in bins of equal size.

    Use it to check the calibration of the probabilities of a `CalibratedRanker`.

    Create it with `from_estimator` or `from_probabilities`.

    Parameters
    ----------
    predicted, observed, n_pairs : array-like of shape (n_bins,)
        Mean probability, share of correctly ordered pairs and number of pairs in each bin.

    Attributes
    ----------
    ax_, figure_
        Axes and figure.
    line_, bars_, diagonal_
        The curve, bars of one standard error, the line of perfect calibration.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise import CalibratedRanker
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.plot import ReliabilityDisplay
    >>> X, y, groups = make_ranking(n_queries=40, noise=0.5, random_state=0)[:3]
    >>> display = ReliabilityDisplay.from_estimator(CalibratedRanker().fit(X, y, groups))
    >>> len(display.predicted)
    10
    >>> plt.close(display.figure_)
    """

    line_: Line2D
    bars_: ErrorbarContainer
    diagonal_: Line2D

    def __init__(self, *, predicted: ArrayLike, observed: ArrayLike, n_pairs: ArrayLike) -> None:
        self.predicted = np.asarray(predicted)
        self.observed = np.asarray(observed)
        self.n_pairs = np.asarray(n_pairs)

    @property
    def errors(self) -> Array:
        """Standard error of each share, assuming independent pairs."""
        binomial_variance = self.predicted * (1 - self.predicted) / self.n_pairs
        return np.asarray(np.sqrt(binomial_variance))

    def plot(
        self, ax: Axes | None = None, *, name: str | None = None, **kwargs: PlotOption
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Title.
        **kwargs
            Options of the line, as for ``ax.plot``.

        Returns
        -------
        ReliabilityDisplay
            The display itself.
        """
        self._create_axes(ax, name)
        # Probabilities are of the predicted order, so at least ½
        (self.diagonal_,) = self.ax_.plot([0.5, 1], [0.5, 1], color=NEUTRAL, linestyle="--")
        options = {"marker": "o", "color": COLORS[0], **kwargs}
        (self.line_,) = self.ax_.plot(self.predicted, self.observed, **options)
        self.bars_ = self.ax_.errorbar(
            self.predicted, self.observed, self.errors, fmt="none", color=self.line_.get_color()
        )
        self.ax_.set(xlabel="predicted probability", ylabel="share of correctly ordered pairs")
        return self

    @classmethod
    def from_estimator(
        cls, model: BaseEstimator, *, ax: Axes | None = None, **kwargs: PlotOption
    ) -> Self:
        """Draw the held-out pairs of a fitted model.

        Parameters
        ----------
        model : CalibratedRanker, or a Pipeline that ends in one
            The fitted model.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        ranker = final_estimator(model)
        if not isinstance(ranker, CalibratedRanker):
            raise TypeError(
                f"model is a {type(ranker).__name__}; expected a fitted CalibratedRanker, or use "
                "from_probabilities."
            )
        bins = ranker.reliability()
        display = cls(predicted=bins.predicted, observed=bins.observed, n_pairs=bins.n_pairs)
        return display.plot(ax, **kwargs)

    @classmethod
    def from_probabilities(
        cls,
        probability: ArrayLike,
        *,
        n_bins: int = 10,
        ax: Axes | None = None,
        **kwargs: PlotOption,
    ) -> Self:
        """Draw predicted probabilities of pairs whose first item is truly better.

        Parameters
        ----------
        probability : array-like of shape (n_pairs,)
            Predicted probability that the first item is better, as `predict_above` returns it.
        n_bins : int, default=10
            Number of bins.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        ReliabilityDisplay
            The display.
        """
        probabilities = np.asarray(probability, dtype=np.float64)
        if probabilities.ndim != 1 or not len(probabilities):
            raise ValueError(
                f"probability has shape {probabilities.shape}; pass one number for each pair."
            )
        is_in_range = (probabilities >= 0) & (probabilities <= 1)
        if not is_in_range.all():
            first_outside = probabilities[~is_in_range][0]
            raise ValueError(
                f"probability has the entry {first_outside:g}; expected numbers from 0 to 1."
            )
        bins = reliability(probabilities, n_bins)
        display = cls(predicted=bins.predicted, observed=bins.observed, n_pairs=bins.n_pairs)
        return display.plot(ax, **kwargs)
