"""ReliabilityDisplay: how often pairs come out as their probability said."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.plot.figure import COLORS, NEUTRAL, Display
from rankwise.rankers.pipelines import final_estimator
from rankwise.uncertainty import CalibratedRanker
from rankwise.uncertainty.calibrated_ranker import reliability


class ReliabilityDisplay(Display):
    """Share of right answers over the probability that was said, in bins of equal size.

    Make it by `from_estimator` or `from_probabilities`.

    Parameters
    ----------
    predicted, observed, n_pairs : array-like of shape (n_bins,)
        Mean probability, share of right answers and number of pairs of each bin.

    Attributes
    ----------
    ax_, figure_
        Axes and figure.
    line_, bars_, diagonal_
        The curve, bars of one standard error, the line of right probabilities.

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

    line_: Any
    bars_: Any
    diagonal_: Any

    def __init__(self, *, predicted: ArrayLike, observed: ArrayLike, n_pairs: ArrayLike) -> None:
        self.predicted, self.observed = np.asarray(predicted), np.asarray(observed)
        self.n_pairs = np.asarray(n_pairs)

    @property
    def errors(self) -> Array:
        """Standard error of each share, as if the pairs were independent."""
        p = self.predicted
        return np.asarray(np.sqrt(p * (1 - p) / self.n_pairs))

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
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
            Itself.
        """
        self._begin(ax, name)
        (self.diagonal_,) = self.ax_.plot([0.5, 1], [0.5, 1], color=NEUTRAL, linestyle="--")
        options = {"marker": "o", "color": COLORS[0], **kwargs}
        (self.line_,) = self.ax_.plot(self.predicted, self.observed, **options)
        self.bars_ = self.ax_.errorbar(
            self.predicted, self.observed, self.errors, fmt="none", color=self.line_.get_color()
        )
        self.ax_.set(xlabel="probability that was said", ylabel="share of right answers")
        return self

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the held-out pairs of a fitted `CalibratedRanker`, or of a Pipeline with one."""
        ranker = final_estimator(model)
        if not isinstance(ranker, CalibratedRanker):
            raise TypeError(
                f"model is a {type(ranker).__name__}; expected a fitted CalibratedRanker, or use "
                "from_probabilities."
            )
        return cls(**ranker.reliability()._asdict()).plot(ax, **kwargs)

    @classmethod
    def from_probabilities(
        cls, probability: ArrayLike, *, n_bins: int = 10, ax: Any = None, **kwargs: Any
    ) -> Self:
        """Draw probabilities of pairs whose first item is the better one.

        Parameters
        ----------
        probability : array-like of shape (n_pairs,)
            That the first item is above, such as `predict_above` gives.
        n_bins : int
            Number of bins.
        ax, **kwargs
            As in `plot`.
        """
        p = np.asarray(probability, dtype=np.float64)
        if p.ndim != 1 or not len(p) or not ((p >= 0) & (p <= 1)).all():
            raise ValueError("probability must be a flat list of numbers from 0 to 1.")
        return cls(**reliability(p, n_bins)._asdict()).plot(ax, **kwargs)
