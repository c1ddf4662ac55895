"""Which rows a pursuit holds out, and how its steps are judged on them."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.estimators.unscored import PartlyScored
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.measures import HeldOutLoss, Measure, check_scoring
from rankwise.model_selection.refit_task import RefitTask


class PursuitTask(RefitTask):
    """RankingPursuit with its data: one pursuit for each fold serves all numbers of steps.

    Only scored rows are held out; unscored ones take part in every fold.

    Parameters
    ----------
    part : PartlyScored
        Scores and groups of all rows.
    graph : ScoreGraph
        The scored rows, with the options of the loss.
    n_basis : int
        The value that the learner has, and the largest number of steps by default.
    staged : callable
        From rows to hold out and a number of steps to their scores after each step that a pursuit
        without them made, shape (n_held, n_steps).
    model : callable
        From a number of steps to the learner trained on all data.
    """

    parameters = ("n_basis",)

    def __init__(
        self,
        part: PartlyScored,
        graph: ScoreGraph,
        n_basis: int,
        staged: Callable[[Indices, int], Array],
        model: Callable[..., Any],
    ) -> None:
        _units(part)  # refuses a single row
        super().__init__(graph, len(part.groups.codes), model, part.scored)
        self._n_basis, self._staged = int(n_basis), staged

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default all numbers of steps up to `n_basis`."""
        steps = values.get("n_basis", [self._n_basis])
        if steps is None:
            steps = np.arange(1, self._n_basis + 1)
        return Candidates({"n_basis": np.asarray(steps, dtype=np.float64)})

    def scores_without(self, held: Indices, candidates: Candidates) -> Array:
        """A pursuit that ended early stays as it is for the rest of the steps."""
        steps = candidates.axes["n_basis"].astype(np.intp)
        staged = self._staged(np.asarray(self.rows)[held], int(steps.max()))
        if not staged.shape[1]:
            return np.zeros((len(held), len(steps)))
        return staged[:, np.minimum(steps, staged.shape[1]) - 1]


def measure_of(scoring: Any, beta: float) -> Measure:
    """A metric, or "loss"; a wrong name is told before anything is trained."""
    is_loss = isinstance(scoring, str) and scoring == "loss"
    return HeldOutLoss(beta) if is_loss else check_scoring(scoring)


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
