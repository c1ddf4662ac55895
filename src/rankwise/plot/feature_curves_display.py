"""FeatureCurvesDisplay: what each feature adds to the score of an additive model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from rankwise.inspection.feature_effects import FeatureCurve, feature_curves
from rankwise.plot.figure import Display, ordered_colors

SHOWN = 6  # curves, if no features are named


class FeatureCurvesDisplay(Display):
    """Curves of the features of a linear ranker on `HingeFeatures`.

        f(x) = Σ_j f_j(x_j),    f_j(x) = w_j x + Σ_k w_jk max(x − k, 0)

    Parameters
    ----------
    curves : sequence of FeatureCurve
        Those that add most first.
    scale : str
        What the values of the features are: "value", or "scaled value".

    Attributes
    ----------
    ax_, figure_
        Axes and figure.
    lines_ : list
        Lines of the curves.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from rankwise import HingeFeatures, RankRLSCV, make_target
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.plot import FeatureCurvesDisplay
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> model = make_pipeline(StandardScaler(), HingeFeatures(), RankRLSCV())
    >>> display = FeatureCurvesDisplay.from_estimator(model.fit(X, make_target(y, groups)), X)
    >>> len(display.curves)
    10
    >>> plt.close(display.figure_)
    """

    lines_: list[Any]

    def __init__(self, *, curves: Sequence[FeatureCurve], scale: str = "value") -> None:
        self.curves = list(curves)
        self.scale = scale

    def plot(
        self,
        ax: Any = None,
        *,
        features: Sequence[str] | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        features : sequence of str, optional
            Names of the features; by default the six that add most.
        name : str, optional
            Title.
        **kwargs
            Options of the lines, as for ``ax.plot``.

        Returns
        -------
        FeatureCurvesDisplay
            The display itself.
        """
        known = {curve.name: curve for curve in self.curves}
        missing = [each for each in features or () if each not in known]
        if missing:
            raise ValueError(f"there is no feature {missing[0]!r}; the model has {list(known)}.")
        shown = self.curves[:SHOWN] if features is None else [known[each] for each in features]
        self._begin(ax, name)
        self.lines_ = []
        for curve, color in zip(shown, ordered_colors(len(shown)), strict=True):
            options = {"color": color, "label": curve.name, **kwargs}
            self.lines_ += self.ax_.plot(curve.x, curve.added, **options)
        self.ax_.set(xlabel=f"{self.scale} of the feature", ylabel="added to the score")
        if shown:
            self.ax_.legend()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Pipeline,
        X: Any,
        groups: ArrayLike | None = None,
        *,
        ax: Any = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curves of a fitted Pipeline.

        Parameters
        ----------
        estimator : Pipeline
            Fitted: any scalers, `HingeFeatures`, a linear ranker. A scaler inside groups, or any
            other that mixes items or columns, leaves the axis to the scaled values.
        X : array-like or data frame of shape (n_items, n_features)
            Items between whose values the curves are drawn.
        groups : array-like of shape (n_items,), optional
            Their groups, for a `GroupScaler`.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        FeatureCurvesDisplay
        """
        curves, scale = feature_curves(estimator, X, groups)
        return cls(curves=curves, scale=scale).plot(ax, **kwargs)
