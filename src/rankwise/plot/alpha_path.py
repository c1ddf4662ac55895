"""AlphaPathDisplay: held-out score, and coefficients, over the regularization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import Array
from rankwise.estimators import (
    CoRankRLSCV,
    RankLogistic,
    RankLogisticCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.estimators.pipelines import fit_transform_items, last_step, transform_items
from rankwise.frames import column_names
from rankwise.graphs import PreferenceGraph
from rankwise.groups import encode_groups
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection import held_out_curves
from rankwise.model_selection.search_curves import curves_of_search
from rankwise.plot.curves import (
    Curve,
    describe_metric,
    describe_params,
    draw_curves,
    draw_legend,
    make_curve,
)
from rankwise.plot.figure import COLORS, axes_for, import_pyplot
from rankwise.targets import as_scores, split_target

MEANS = {
    "leave-group-out": "mean over groups",
    "leave-pair-out": "all pairs",
    "folds of groups": "mean over groups",
    "folds of items": "mean over folds",
    "folds of edges": "mean over folds",
}
N_NAMED = 5  # coefficients with a color and a name; the others are gray


class AlphaPathDisplay:
    """Held-out score over alpha, its spread over the groups, and the alpha that is chosen.

    Make it by `from_estimator` or `from_data`.

    Parameters
    ----------
    curves : list of Curve
        One for each kernel parameter, nu or output; `x` are the alphas.
    metric : str
        Name of the metric.
    coefficients : ndarray of shape (n_alphas, n_features), optional
        Weights of the features at the alphas of the curve that holds the chosen one.
    coefficient_names : sequence of str, optional
        Names of the features; by default their numbers.

    Attributes
    ----------
    ax_, figure_
        Axes of the curves, and their figure.
    lines_, bands_, marks_ : list
        Lines of the curves, bands of one standard error, markers of the chosen alpha.
    coefficient_ax_, coefficient_lines_
        Axes and lines of the coefficients; None and [] if they are not drawn.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise import RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.plot import AlphaPathDisplay
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> model = RankRLSCV(scoring="ndcg@10").fit(X, y, groups)
    >>> display = AlphaPathDisplay.from_estimator(model)
    >>> display.ax_.get_ylabel()
    'held-out ndcg@10 (higher is better)'
    >>> plt.close(display.figure_)
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    bands_: list[Any]
    marks_: list[Any]
    coefficient_ax_: Any
    coefficient_lines_: list[Any]

    def __init__(
        self,
        *,
        curves: Sequence[Curve],
        metric: str,
        coefficients: Array | None = None,
        coefficient_names: Sequence[str] | None = None,
    ) -> None:
        self.curves = list(curves)
        self.metric = metric
        self.coefficients = coefficients
        self.coefficient_names = coefficient_names

    def plot(
        self, ax: Any = None, *, name: str | None = None, coefficients: bool = False, **kwargs: Any
    ) -> Self:
        """Draw the curves, and below them the coefficients if asked for.

        Parameters
        ----------
        ax : axes, or two axes if there are coefficients
            Where to draw; by default a new figure.
        name : str, optional
            Title of the curves; the label of the line if there is only one.
        coefficients : bool
            Whether to draw the paths of the coefficients in a second pair of axes.
        **kwargs
            Options of the lines of the curves, as for ``ax.plot``.

        Returns
        -------
        AlphaPathDisplay
            The display itself.
        """
        self.ax_, self.coefficient_ax_ = self._axes(ax, coefficients)
        self.figure_ = self.ax_.get_figure()
        curves = self.curves
        if name is not None and len(curves) == 1:
            curves = [curves[0]._replace(label=name)]
        elif name is not None:
            self.ax_.set_title(name)
        drawn = draw_curves(self.ax_, curves, "chosen: {:.2g}", **kwargs)
        self.lines_, self.bands_, self.marks_ = drawn
        self.ax_.set(xscale="log", ylabel=f"held-out {describe_metric(self.metric)}")
        (self.coefficient_ax_ or self.ax_).set_xlabel("alpha")
        draw_legend(self.ax_, len(curves))
        self.coefficient_lines_ = self._draw_coefficients() if coefficients else []
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        groups: ArrayLike | None = None,
        *,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw what a search for alpha has found.

        Parameters
        ----------
        estimator : fitted search for alpha, or a Pipeline that ends in one
            Such as RankRLSCV or RankLogisticCV. Searched kernel parameters, the values of nu and
            several outputs become lines; of several outputs those of the chosen kernel are shown.
        X, y, groups : optional
            Training data. If given, the paths of the coefficients are computed and drawn, too, for
            a linear RankRLSCV, RankSVMCV or RankLogisticCV of one output.
        ax, name, **kwargs
            As in `plot`.

        Returns
        -------
        AlphaPathDisplay
        """
        ranker = last_step(estimator)
        if not isinstance(ranker, (RankRLSCV, RankSVMCV, RankLogisticCV, CoRankRLSCV)):
            raise TypeError(
                f"estimator is a {type(ranker).__name__}; expected a fitted RankRLSCV, RankSVMCV "
                "or CoRankRLSCV, or a Pipeline that ends in one. For RankRLS and RankSVM use "
                "from_data."
            )
        check_is_fitted(ranker)
        display = cls(curves=_curves(ranker), metric=get_metric(ranker.scoring).name)
        if X is not None:
            model = ranker.best_estimator_
            items = transform_items(estimator, X, split_target(y, groups)[1])
            display._add_coefficients(model, items, y, groups)
            display.coefficient_names = _names(X, display.coefficients)
        drawn = display.coefficients is not None
        return display.plot(ax, name=name, **{"coefficients": drawn, **kwargs})

    @classmethod
    def from_data(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        alphas: ArrayLike | None = None,
        metric: str | Metric = "disagreement",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Hold out every group in turn, for each alpha, and draw how it is ranked.

        The scores are those of `rankwise.model_selection.held_out_curves`, exact and, for
        RankRLS, without training again.

        Parameters
        ----------
        estimator : RankRLS, RankSVM or RankLogistic, or a Pipeline that ends in one
            Fitted or not; it is left as it is. The steps before the ranker are fitted once, to
            all items, not for each group.
        X, y, groups
            As in ``RankRLS.fit``, with scores of one output and at least two groups.
        alphas : array-like of shape (n_alphas,), optional
            Candidates; by default those of the search.
        metric : str or Metric
            Any name of `rankwise.metrics`.
        ax, name, **kwargs
            As in `plot`; the coefficients of linear models are drawn unless ``coefficients=False``
            or `ax` is given.

        Returns
        -------
        AlphaPathDisplay
        """
        ranker = last_step(estimator)
        if not isinstance(ranker, (RankRLS, RankSVM, RankLogistic)):
            raise TypeError(
                f"estimator is a {type(ranker).__name__}; expected RankRLS or RankSVM, or a "
                "Pipeline that ends in one. For a fitted search use from_estimator."
            )
        y, groups = _check_target(y, groups)
        items = fit_transform_items(estimator, X, y, groups)
        judge = get_metric(metric)
        found = held_out_curves(
            ranker, items, y, groups, scoring=judge, cv=None, candidates={"alpha": alphas}
        )
        curve = make_curve(
            "mean over groups",
            found.candidates.axes["alpha"],
            found.by_group[judge.name][:, :, 0],
            found.best(judge),
        )
        display = cls(curves=[curve], metric=judge.name)
        if kwargs.get("coefficients", ax is None):
            display._add_coefficients(ranker, items, y, groups)
            display.coefficient_names = _names(X, display.coefficients)
        drawn = display.coefficients is not None
        return display.plot(ax, name=name, **{"coefficients": drawn, **kwargs})

    def _axes(self, ax: Any, coefficients: bool) -> tuple[Any, Any]:
        caller = type(self).__name__ + ".plot"
        if not coefficients:
            return axes_for(ax, caller), None
        if self.coefficients is None:
            raise ValueError(
                "this display has no coefficients; from_estimator computes them if it gets X, y "
                "and groups of a linear model with one output."
            )
        if ax is None:
            pyplot = import_pyplot(caller)
            size = (6.4, 6.8)
            _, ax = pyplot.subplots(2, 1, sharex=True, figsize=size, layout="constrained")
        if np.size(ax) != 2:
            raise ValueError("with coefficients=True ax must be two axes: plt.subplots(2, 1)[1].")
        upper, lower = ax
        return axes_for(upper, caller), axes_for(lower, caller)

    def _add_coefficients(self, model: Any, X: Any, y: Any, groups: ArrayLike | None) -> None:
        """Compute the path of a linear model at the alphas of the chosen curve."""
        if not isinstance(model, (RankRLS, RankSVM, RankLogistic)) or model.kernel != "linear":
            return
        path = model.path(X, y, groups, alphas=self._chosen.x)
        if path.coefficients.shape[2] == 1:
            self.coefficients = path.coefficients[:, :, 0]

    @property
    def _chosen(self) -> Curve:
        return next(curve for curve in self.curves if curve.best is not None)

    def _draw_coefficients(self) -> list[Any]:
        assert self.coefficients is not None  # as `_axes` has seen
        curve, ax = self._chosen, self.coefficient_ax_
        names = self.coefficient_names
        largest = np.argsort(-np.abs(self.coefficients[curve.best]), kind="stable")[:N_NAMED]
        color = dict(zip(largest.tolist(), COLORS, strict=False))
        lines: list[Any] = [None] * self.coefficients.shape[1]
        rest = [j for j in range(len(lines)) if j not in color]
        for j in [*rest, *largest.tolist()]:  # the named ones last: on top, and in order of size
            label = f"feature {j}" if names is None else str(names[j])
            style = {"color": color[j], "label": label} if j in color else {"color": "#BBBBBB"}
            (lines[j],) = ax.plot(curve.x, self.coefficients[:, j], **style)
        ax.axvline(curve.x[curve.best], color="black", linestyle=":", linewidth=1)
        ax.set(xscale="log", ylabel="coefficient")
        more = f"largest {N_NAMED} of {len(lines)}" if rest else None
        ax.legend(title=more, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        return lines


def _check_target(y: Any, groups: ArrayLike | None) -> tuple[Array, ArrayLike | None]:
    if isinstance(y, PreferenceGraph):
        raise TypeError(
            f"y is a {type(y).__name__}; from_data takes scores and groups. Fit a RankRLSCV to the "
            "graph and use from_estimator."
        )
    y, groups = split_target(y, groups)
    scores = as_scores(y)
    if scores.ndim != 1:
        raise ValueError(f"y has {scores.shape[1]} outputs; pass one column of it.")
    n_groups = len(encode_groups(groups, len(scores)).labels)
    if n_groups < 2:
        raise ValueError(
            f"from_data holds out whole groups and got {n_groups}; pass at least two groups, or "
            "fit a RankRLSCV to the list and use from_estimator."
        )
    return scores, groups


def _curves(search: Any) -> list[Curve]:
    """One curve for each kernel or nu, or for each output of the chosen kernel."""
    found = curves_of_search(search)
    chosen = next(each for each in found if each.is_chosen)
    if chosen.by_group.ndim == 3:
        picked = np.broadcast_to(search.alpha_, chosen.by_group.shape[2])
        return [
            make_curve(f"output {j}", chosen.x, chosen.by_group[:, :, j], chosen.place(alpha))
            for j, alpha in enumerate(picked)
        ]
    return [
        make_curve(
            describe_params(each.params) or MEANS[search.cv_results_["cv"]],
            each.x,
            each.by_group,
            each.place(search.alpha_) if each.is_chosen else None,
        )
        for each in found
    ]


def _names(X: Any, coefficients: Array | None) -> list[str] | None:
    """Names of the columns of a data frame, if each of them has a coefficient."""
    columns = column_names(X)
    if columns is None or coefficients is None or len(columns) != coefficients.shape[1]:
        return None
    return columns
