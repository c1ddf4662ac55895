"""UnscoredCurveDisplay: what more unscored items are worth."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils import _safe_indexing, check_random_state

from rankwise.arrays import Indices
from rankwise.estimators.pipelines import fit_ranker
from rankwise.groups import encode_groups
from rankwise.machine import track
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection.group_routing import predict_items
from rankwise.plot.curves import describe_metric, draw_band, make_curve
from rankwise.plot.figure import BAD, GOOD, axes_for
from rankwise.targets import as_scores, split_target

NO_AGREEMENT = {"nu": 0.0, "nus": [0.0]}


class UnscoredCurveDisplay:
    """Test error of a semi-supervised ranker over the number of unscored items it learns from.

    Make it by `from_estimator`.

    Parameters
    ----------
    n_unscored : array-like of shape (n_sizes,)
        Numbers of unscored items.
    scores : array-like of shape (n_repeats, n_sizes)
        The metric on the test data, for each random choice of unscored items.
    supervised_score : float
        The same for the supervised learner.
    metric : str
        Name of the metric.

    Attributes
    ----------
    curve : Curve
        Mean over the repeats, with its standard error.
    ax_, figure_
        Axes and figure.
    line_, supervised_line_
        Lines of the two learners.
    band_
        Band of one standard error over the repeats; None if there is one repeat only.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> import matplotlib.pyplot as plt
    >>> from rankwise.plot import UnscoredCurveDisplay
    >>> display = UnscoredCurveDisplay(
    ...     n_unscored=[0, 100],
    ...     scores=[[0.2, 0.1], [0.3, 0.1]],
    ...     supervised_score=0.25,
    ...     metric="disagreement",
    ... ).plot()
    >>> display.curve.mean
    array([0.25, 0.1 ])
    >>> plt.close(display.figure_)
    """

    ax_: Any
    figure_: Any
    line_: Any
    band_: Any
    supervised_line_: Any

    def __init__(
        self,
        *,
        n_unscored: ArrayLike,
        scores: ArrayLike,
        supervised_score: float,
        metric: str,
    ) -> None:
        self.n_unscored = np.asarray(n_unscored, dtype=np.intp)
        self.scores = np.asarray(scores, dtype=np.float64)
        self.supervised_score = float(supervised_score)
        self.metric = metric
        self.curve = make_curve("with unscored items", self.n_unscored, self.scores)

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> Self:
        """Draw the curve and the line of the supervised learner.

        Parameters
        ----------
        ax : axes, optional
            Where to draw; by default a new figure.
        name : str, optional
            Label of the curve.
        **kwargs
            Options of the curve, as for ``ax.plot``.

        Returns
        -------
        UnscoredCurveDisplay
            The display itself.
        """
        self.ax_ = axes_for(ax, "UnscoredCurveDisplay.plot")
        self.figure_ = self.ax_.get_figure()
        curve = self.curve
        options = {"color": GOOD, "marker": "o", "label": name or curve.label}
        (self.line_,) = self.ax_.plot(curve.x, curve.mean, **{**options, **kwargs})
        self.band_ = draw_band(self.ax_, curve, self.line_.get_color())
        self.supervised_line_ = self.ax_.axhline(
            self.supervised_score, color=BAD, linestyle="--", label="supervised"
        )
        self.ax_.set(xlabel="unscored items", ylabel=f"test {describe_metric(self.metric)}")
        self.ax_.legend()
        return self

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        groups: ArrayLike | None,
        X_test: Any,
        y_test: Any,
        groups_test: ArrayLike | None = None,
        *,
        n_unscored: ArrayLike | None = None,
        repeats: int = 5,
        supervised: Any = None,
        metric: str | Metric = "disagreement",
        random_state: Any = None,
        ax: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Train with more and more unscored items, and draw the error on test data.

        Each repeat puts the groups of the unscored items in a random order and takes the first
        ones up to the number wanted. So each larger set contains the smaller ones, and an
        unscored item comes with others of its group.

        Parameters
        ----------
        estimator : CoRankRLS, CoRankRLSCV, RankingPursuit, RankingPursuitCV, or a Pipeline
            Any estimator that takes NaN in y as "not scored"; it is left as it is. The two pursuits
            need `views`.
        X, y, groups
            Training data, NaN in y for an unscored item.
        X_test, y_test, groups_test
            Data to judge by, all scored.
        n_unscored : array-like of int, optional
            Numbers of unscored items; by default six from 0 to all.
        repeats : int
            Number of random orders.
        supervised : ranker, optional
            Trained on the scored items only. By default the estimator itself, with the agreement
            between views switched off (nu = 0).
        metric : str or Metric
            Any name of `rankwise.metrics`.
        random_state : int, RandomState or None
            Seed of the orders.
        ax, name, **kwargs
            As in `plot`.

        Returns
        -------
        UnscoredCurveDisplay
        """
        y, groups = split_target(y, groups)
        y = as_scores(y, allow_nan=True)
        scored, unscored = np.flatnonzero(~np.isnan(y)), np.flatnonzero(np.isnan(y))
        sizes = _check_sizes(n_unscored, len(unscored), repeats)
        judge = get_metric(metric)
        alone = _without_agreement(estimator) if supervised is None else supervised
        codes = None if groups is None else encode_groups(groups, len(y)).codes

        def test_score(model: Any, rows: Indices) -> float:
            part = None if codes is None else codes[rows]
            fitted = fit_ranker(model, _safe_indexing(X, rows), y[rows], part)
            return float(judge(y_test, predict_items(fitted, X_test, groups_test), groups_test))

        rng = check_random_state(random_state)
        orders = list(_orders(unscored, codes, int(repeats), rng))
        runs = [(order, size) for order in orders for size in sizes]
        values = [
            test_score(estimator, np.sort(np.r_[scored, order[:size]]))
            for order, size in track(runs, "training with unscored items")
        ]
        return cls(
            n_unscored=sizes,
            scores=np.reshape(values, (len(orders), len(sizes))),
            supervised_score=test_score(alone, scored),
            metric=judge.name,
        ).plot(ax, name=name, **kwargs)


def _check_sizes(n_unscored: ArrayLike | None, n_available: int, repeats: int) -> Indices:
    if not isinstance(repeats, numbers.Integral) or repeats < 1:
        raise ValueError(f"repeats={repeats!r}; expected a whole number of at least 1.")
    if n_available < 2:
        raise ValueError(
            f"y has {n_available} unscored items (NaN); this curve needs at least two."
        )
    if n_unscored is None:
        return np.unique(np.linspace(0, n_available, 6).astype(np.intp))
    sizes = np.asarray(n_unscored)
    if sizes.ndim != 1 or not sizes.size or sizes.dtype.kind not in "iu":
        raise ValueError(f"n_unscored={n_unscored!r}; expected a list of whole numbers.")
    if sizes.min() < 0 or sizes.max() > n_available:
        raise ValueError(
            f"n_unscored goes from {sizes.min()} to {sizes.max()}, but there are {n_available} "
            "unscored items (NaN in y); expected numbers from 0 to that."
        )
    return np.unique(sizes).astype(np.intp)


def _orders(
    unscored: Indices, groups: Indices | None, repeats: int, rng: np.random.RandomState
) -> Iterator[Indices]:
    """Random orders of the unscored rows in which those of a group stand together."""
    if groups is None:
        codes = np.arange(len(unscored))
    else:
        codes = encode_groups(groups[unscored], len(unscored)).codes
    for _ in range(repeats):
        place = rng.permutation(int(codes.max()) + 1)
        yield unscored[np.argsort(place[codes], kind="stable")]


def _without_agreement(estimator: Any) -> Any:
    """A copy of the estimator in which the unscored items have no effect."""
    model = clone(estimator)
    off = {
        name: NO_AGREEMENT[name.rpartition("__")[2]]
        for name in model.get_params()
        if name.rpartition("__")[2] in NO_AGREEMENT
    }
    if not off:
        raise ValueError(
            f"{type(estimator).__name__} has no parameter nu to switch the agreement off; pass the "
            "learner to compare with as supervised=..., for example RankRLSCV()."
        )
    return model.set_params(**off)
