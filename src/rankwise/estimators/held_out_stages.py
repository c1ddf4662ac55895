"""Which rows a pursuit holds out, and how its stages are judged on them."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwise.errors import UndefinedMetricError
from rankwise.estimators.cross_validation import check_scoring
from rankwise.estimators.folds import Folds, make_folds
from rankwise.estimators.pursuit_problem import TargetOptions
from rankwise.estimators.unscored import PartlyScored
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.losses import SquaredLoss
from rankwise.metrics import get_metric
from rankwise.options import check_option

__all__ = [
    "Judge",
    "folds_of_scored",
    "make_judge",
    "scores_of",
    "validation_rows",
    "without_rows",
]

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
AUTO_FOLDS = 5


class Judge(NamedTuple):
    """A measure of how well scores order held-out rows.

    Attributes
    ----------
    scoring : str or Metric
        Name of a ranking metric, or "loss".
    greater_is_better : bool
        False for errors and the loss.
    options : TargetOptions
        For the loss.
    """

    scoring: Any
    greater_is_better: bool
    options: TargetOptions

    def by_group(self, part: PartlyScored, rows: Indices, scores: Array) -> Array:
        """The measure in each group of the rows, nan where it is undefined.

        Parameters
        ----------
        part : PartlyScored
            Scores and groups of all items.
        rows : ndarray of int
            Held-out rows; each has a score.
        scores : ndarray of shape (n_rows, n_stages)
            What the stages of the model predict for them.

        Returns
        -------
        ndarray of shape (n_groups, n_stages)
            A single row for the loss, which is a mean over all pairs.
        """
        y = part.y[np.searchsorted(part.scored, rows)]
        groups = part.groups.codes[rows]
        if self.scoring != "loss":
            metric = get_metric(self.scoring)
            values = metric(y, scores, groups, per_group=True, undefined="nan")
            return np.asarray(values).reshape(-1, scores.shape[1])
        o = self.options
        graph = ScoreGraph(y, groups, cost=o.cost, ties=o.ties, group_weight=o.group_weight)
        if o.beta < 1 and not graph.n_pairs:
            return np.full((1, scores.shape[1]), np.nan)
        loss = SquaredLoss(graph, o.beta, y)
        return np.array([[loss.at(f).value for f in scores.T]])

    def mean(self, by_group: Array) -> Array:
        """Mean over the groups where the measure is defined."""
        defined = ~np.isnan(by_group).any(axis=1)
        if not defined.any():
            raise UndefinedMetricError(
                f"{self.scoring} is undefined for all held-out groups (no two items of different "
                "score in one group, for example); hold out more, or choose another scoring."
            )
        return np.asarray(by_group[defined].mean(axis=0))

    def is_better(self, new: float, old: float, tol: float = 0.0) -> bool:
        """Whether a mean is better than another by more than `tol`."""
        return new > old + tol if self.greater_is_better else new < old - tol


def make_judge(scoring: Any, options: TargetOptions) -> Judge:
    """Look the measure up, so that a wrong name is told before anything is trained."""
    if isinstance(scoring, str) and scoring == "loss":
        return Judge(scoring, False, options)
    return Judge(scoring, check_scoring(scoring).greater_is_better, options)


def scores_of(target: PreferenceGraph | PartlyScored) -> PartlyScored:
    """Scores and groups, from which rows can be held out; graphs are refused."""
    if isinstance(target, PartlyScored):
        return target
    raise ValueError(
        f"y is a {type(target).__name__}, from which no rows are held out to choose the number of "
        "steps; pass scores and groups, or a fixed n_basis and n_iter_no_change=None to "
        "RankingPursuit."
    )


def without_rows(target: PreferenceGraph | PartlyScored, held: Indices) -> PartlyScored:
    """The same but for some of the scored rows, given by their row numbers."""
    part = scores_of(target)
    return part.without(np.searchsorted(part.scored, held))


def validation_rows(part: PartlyScored, fraction: float, rng: Any) -> Indices:
    """Scored rows of a random part of the groups, or of the items if there is one group.

    Items of one list are taken evenly over the order of their scores (at least two of them), so
    that the part that is held out has an order of its own.
    """
    if not isinstance(fraction, numbers.Real) or not 0 < fraction < 1:
        raise ValueError(f"validation_fraction={fraction!r}; expected a number between 0 and 1.")
    unit = _units(part)
    n_units = int(unit.max()) + 1
    n_held = min(max(1, round(fraction * n_units)), n_units - 1)
    if n_units < len(unit):
        return part.scored[np.isin(unit, rng.permutation(n_units)[:n_held])]
    n_held = min(max(2, n_held), max(1, n_units - 2))
    order = np.lexsort((rng.permutation(n_units), part.y))
    places = ((np.arange(n_held) + rng.uniform()) * (n_units / n_held)).astype(np.intp)
    return part.scored[np.sort(order[places])]


def folds_of_scored(part: PartlyScored, cv: Any) -> Folds:
    """Scored rows to hold out together; unscored rows are never held out.

    Parameters
    ----------
    part : PartlyScored
        Scores and groups of all rows.
    cv : "auto", None, int, splitter or iterable
        "auto" makes five folds of groups, or of items if there is one group; anything else as in
        `make_folds`.
    """
    if isinstance(cv, str):
        check_option("cv", cv, ("auto",))
        cv = max(2, min(AUTO_FOLDS, int(_units(part).max()) + 1))
    graph = ScoreGraph(part.y, part.scored_labels)
    folds = make_folds(cv, graph, np.empty((graph.n_items, 1)), part.y)
    return [part.scored[fold] for fold in folds]


def _units(part: PartlyScored) -> Indices:
    """What is held out together: the group of each scored row, or the row if there is one group."""
    codes = part.groups.codes[part.scored]
    if len(codes) < 2:
        raise ValueError(
            "found 1 sample with a score (n_samples = 1), of which none can be held out; score at "
            "least two items, or fix n_basis."
        )
    if (codes == codes[0]).all():
        return np.arange(len(codes))
    return np.unique(codes, return_inverse=True)[1].astype(np.intp)
