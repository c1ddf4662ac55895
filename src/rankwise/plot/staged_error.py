"""StagedErrorDisplay: error of a pursuit over its number of functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rankwise.estimators import RankingPursuit, RankingPursuitCV
from rankwise.estimators.pipelines import last_step, transform_items
from rankwise.groups import encode_groups
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection.search_curves import curves_of_search
from rankwise.plot.curves import (
    Curve,
    describe_metric,
    describe_params,
    draw_curves,
    draw_legend,
    make_curve,
)
from rankwise.plot.figure import axes_for
from rankwise.targets import as_scores, split_target


class StagedErrorDisplay:
    """A metric after each step of a pursuit, on training data and on data held out.

    Make it by `from_estimator` or `from_cv_results`.

    Parameters
    ----------
    curves : list of Curve
        Training and held-out data, or one curve for each setting of a search; `x` are the numbers
        of steps.
    metric : str
        Name of the metric.

    Attributes
    ----------
    ax_, figure_
        Axes and figure.
    lines_, bands_, marks_ : list
        Lines of the curves, bands of one standard error, markers of the best number of steps.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise import RankingPursuit
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.plot import StagedErrorDisplay
    >>> X, y, groups = make_ranking(n_queries=20, noise=0.5, random_state=0)[:3]
    >>> model = RankingPursuit(8, kernel="linear", dictionary="features").fit(X, y, groups)
    >>> display = StagedErrorDisplay.from_estimator(model, X, y, groups)
    >>> display.curves[0].x
    array([1., 2., 3., 4., 5., 6., 7., 8.])
    >>> plt.close(display.figure_)
    """

    ax_: Any
    figure_: Any
    lines_: list[Any]
    bands_: list[Any]
    marks_: list[Any]

    def __init__(self, *, curves: Sequence[Curve], metric: str) -> None:
        self.curves = list(curves)
        self.metric = metric

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Title.
        **kwargs
            Options of the lines, as for ``ax.plot``.

        Returns
        -------
        StagedErrorDisplay
            The display itself.
        """
        self.ax_ = axes_for(ax, "StagedErrorDisplay.plot")
        self.figure_ = self.ax_.get_figure()
        drawn = draw_curves(self.ax_, self.curves, "best: {:.0f}", **kwargs)
        self.lines_, self.bands_, self.marks_ = drawn
        self.ax_.set(xlabel="number of basis functions", ylabel=describe_metric(self.metric))
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        if name is not None:
            self.ax_.set_title(name)
        draw_legend(self.ax_, len(self.curves))
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        groups: ArrayLike | None = None,
        *,
        X_test: Any = None,
        y_test: Any = None,
        groups_test: ArrayLike | None = None,
        metric: str | Metric = "disagreement",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the error of a fitted pursuit after each of its steps.

        Parameters
        ----------
        estimator : RankingPursuit or RankingPursuitCV, or a Pipeline that ends in one
            Fitted. Without test data the held-out curve of a RankingPursuitCV is that of its
            folds, if `metric` is its `scoring`.
        X, y, groups
            Training data; unscored items (NaN in y) are left out.
        X_test, y_test, groups_test : optional
            Data held out.
        metric : str or Metric
            Any name of `rankwise.metrics`; it is averaged over the groups.
        ax, name, **kwargs
            As in `plot`.

        Returns
        -------
        StagedErrorDisplay
        """
        ranker = last_step(estimator)
        if not isinstance(ranker, (RankingPursuit, RankingPursuitCV)):
            raise TypeError(
                f"estimator is a {type(ranker).__name__}; expected a fitted RankingPursuit or "
                "RankingPursuitCV, or a Pipeline that ends in one."
            )
        check_is_fitted(ranker)
        if (X_test is None) != (y_test is None):
            raise ValueError("X_test and y_test go together; pass both or none of them.")
        judge = get_metric(metric)
        curves = [_staged_curve("training", estimator, X, y, groups, judge)]
        if X_test is not None:
            held = _staged_curve("held out", estimator, X_test, y_test, groups_test, judge)
            score = held.mean if judge.greater_is_better else -held.mean
            curves.append(held._replace(best=int(np.nanargmax(score))))
        elif isinstance(ranker, RankingPursuitCV) and _is_metric(ranker.scoring, judge):
            folds = next(each for each in curves_of_search(ranker) if each.is_chosen)
            at = folds.place(ranker.n_basis_)
            curves.append(make_curve("held out (folds)", folds.x, folds.by_group, at))
        return cls(curves=curves, metric=judge.name).plot(ax, name=name, **kwargs)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Mapping[str, Any],
        *,
        metric: str | Metric = "disagreement",
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the held-out error of each setting that a RankingPursuitCV tried.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of a fitted `RankingPursuitCV`.
        metric : str or Metric
            The `scoring` of the search; "loss" is fine, too.
        ax, name, **kwargs
            As in `plot`.

        Returns
        -------
        StagedErrorDisplay
        """
        missing = {"params", "mean_score", "group_score"} - set(cv_results)
        if missing or "alphas" in cv_results:
            raise ValueError(
                f"cv_results has the keys {', '.join(map(str, cv_results))}; expected the "
                "cv_results_ of a fitted RankingPursuitCV: params, mean_score and group_score."
            )
        is_loss = isinstance(metric, str) and metric == "loss"
        judge = None if is_loss else get_metric(metric)
        curves = _curves_of_search(cv_results, judge is not None and judge.greater_is_better)
        return cls(curves=curves, metric=judge.name if judge else "loss").plot(
            ax, name=name, **kwargs
        )


def _staged_curve(
    label: str, estimator: Any, X: Any, y: Any, groups: ArrayLike | None, metric: Metric
) -> Curve:
    """The metric of every stage in each group, averaged."""
    y, groups = split_target(y, groups)
    scores = as_scores(y, allow_nan=True)
    scored = np.flatnonzero(~np.isnan(scores))
    known = None if groups is None else encode_groups(groups, len(scores)).codes[scored]
    stages = last_step(estimator).staged_predict(transform_items(estimator, X, groups))
    staged = np.array([stage[scored] for stage in stages]).T
    if not staged.size:
        raise ValueError(f"the pursuit has no step, or no item of the {label} data has a score.")
    values = metric(scores[scored], staged, known, per_group=True, undefined="nan")
    curve = make_curve(label, np.arange(1, staged.shape[1] + 1), values)
    if np.isnan(curve.mean).all():
        raise ValueError(f"{metric} is undefined in every group of the {label} data.")
    return curve


def _curves_of_search(cv_results: Mapping[str, Any], greater_is_better: bool) -> list[Curve]:
    """One curve for each setting; the best mark is where the search found it."""
    mean = cv_results["mean_score"]
    score = mean if greater_is_better else -mean
    chosen, at = np.unravel_index(int(np.nanargmax(score)), score.shape)  # the first of equal ones
    curves, settings = [], cv_results["params"]
    for k, params in enumerate(settings):
        varying = {n: v for n, v in params.items() if any(v != p[n] for p in settings)}
        label = describe_params(varying) or "held out"
        values = cv_results["group_score"][k]
        steps = np.arange(1, values.shape[1] + 1)
        curves.append(make_curve(label, steps, values, int(at) if k == chosen else None))
    return curves


def _is_metric(scoring: Any, metric: Metric) -> bool:
    return scoring != "loss" and get_metric(scoring) == metric
