"""FeatureCurvesDisplay: the contribution of each feature to the score of an additive model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline

from rankwise.arrays import MatrixLike
from rankwise.inspection.feature_effects import FeatureCurve, feature_curves
from rankwise.plot.figure import Display, PlotOption, ordered_colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

MAX_CURVES = 6  # drawn if no features are named


class FeatureCurvesDisplay(Display):
    """Curves of the features of a linear ranker on `HingeFeatures`.

    Use it to see how each feature changes the score.

        f(x) = Σ_j f_j(x_j),    f_j(x) = w_j x + Σ_k w_jk max(x − k, 0)

    Parameters
    ----------
    curves : sequence of FeatureCurve
        Curves, largest contribution first.
    scale : str, default="value"
        Label of the x axis: "value", or "scaled value".

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

    lines_: list[Line2D]

    def __init__(self, *, curves: Sequence[FeatureCurve], scale: str = "value") -> None:
        self.curves = list(curves)
        self.scale = scale

    def plot(
        self,
        ax: Axes | None = None,
        *,
        features: Sequence[str] | None = None,
        name: str | None = None,
        **kwargs: PlotOption,
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        features : sequence of str, optional
            Names of the features; by default the six with the largest contributions.
        name : str, optional
            Title.
        **kwargs
            Options of the lines, as for ``ax.plot``.

        Returns
        -------
        FeatureCurvesDisplay
            The display itself.
        """
        curves = self._select_curves(features)
        self._create_axes(ax, name)
        self.lines_ = []
        for curve, color in zip(curves, ordered_colors(len(curves)), strict=True):
            options = {"color": color, "label": curve.name, **kwargs}
            self.lines_ += self.ax_.plot(curve.x, curve.added, **options)
        self.ax_.set(xlabel=f"{self.scale} of the feature", ylabel="added to the score")
        if curves:
            self.ax_.legend()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Pipeline,
        X: MatrixLike,
        groups: ArrayLike | None = None,
        *,
        ax: Axes | None = None,
        **kwargs: PlotOption,
    ) -> Self:
        """Draw the curves of a fitted Pipeline.

        Parameters
        ----------
        estimator : Pipeline
            Fitted scalers, `HingeFeatures` and a linear ranker. If a scaler mixes items or columns,
            as `GroupScaler` does, the x axis shows scaled values.
        X : array-like or data frame of shape (n_items, n_features)
            Items; each curve spans the range of their values.
        groups : array-like of shape (n_items,), optional
            Their groups, for a `GroupScaler`.
        ax, **kwargs
            As in `plot`.

        Returns
        -------
        FeatureCurvesDisplay
            The display.
        """
        curves, scale = feature_curves(estimator, X, groups)
        display = cls(curves=curves, scale=scale)
        return display.plot(ax, **kwargs)

    def _select_curves(self, features: Sequence[str] | None) -> list[FeatureCurve]:
        """Return the curves of these features, or the first few."""
        if features is None:
            return self.curves[:MAX_CURVES]
        curve_by_name = {curve.name: curve for curve in self.curves}
        for feature in features:
            if feature not in curve_by_name:
                raise ValueError(
                    f"features names {feature!r}; the model has the features "
                    f"{', '.join(map(repr, curve_by_name))}."
                )
        return [curve_by_name[feature] for feature in features]
