"""Cross-validation of tables: rows or columns are held out, each row is a group."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.machine import check_matrix_fits
from rankwise.metrics import Metric
from rankwise.model_selection.alpha_grid import AlphaGrid, make_grid, median_share
from rankwise.model_selection.candidates import Candidates
from rankwise.model_selection.curves import HeldOutCurves
from rankwise.model_selection.folds import read_splits
from rankwise.model_selection.least_squares_task import alpha_candidates
from rankwise.model_selection.measures import Measure
from rankwise.model_selection.table_hold_out import HeldOutTable, hold_out_table
from rankwise.solvers.table_problem import TableProblem
from rankwise.solvers.table_sides import Side

OVERFLOW = (
    "the squares of some features or kernel values overflow; scale the features, for example with "
    "sklearn.preprocessing.StandardScaler."
)
ROUNDING = 1e-14  # of a squared length: no spread, but what rounding leaves
SWAPPED = {"rows": "columns", "columns": "rows"}


class TableTask:
    """A learner of tables with its data; judges all alphas at once.

    Parameters
    ----------
    problem : TableProblem
        The table.
    leave : {"rows", "columns", "both"}
        What is held out.
    alpha : float
        The value that the learner has.
    model : callable
        From an alpha to the learner trained on all data.
    is_turned : bool
        Whether the rows of the problem are the columns of the user, who ranks rows.
    """

    parameters = ("alpha",)

    def __init__(
        self,
        problem: TableProblem,
        leave: str,
        alpha: float,
        model: Callable[..., Any],
        *,
        is_turned: bool = False,
    ) -> None:
        self._problem, self._alpha, self._model = problem, alpha, model
        self._is_turned = is_turned
        self._leave = SWAPPED.get(leave, leave) if is_turned else leave

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """By default 31 alphas from 1e-8 to 1e2 times the mean squared distance in a pair."""
        return alpha_candidates(values, self._alpha, self._default_grid)

    def held_out(self, alphas: Array, cv: Any, progress: bool | None = None) -> HeldOutTable:
        """Held-out scores of all cells, (n_rows, n_columns, n_alphas)."""
        shape = self._problem.loss.shape
        check_matrix_fits(
            shape[0] * shape[1], len(alphas), "a table of held-out scores", "give fewer alphas"
        )
        found = hold_out_table(self._problem, self._leave, read_splits(cv), alphas, progress)
        if not self._is_turned:
            return found
        other = {"row": "column", "column": "row"}
        way = re.sub("row|column", lambda word: other[word[0]], found.way)
        return found._replace(scores=found.scores.transpose(1, 0, 2), way=way)

    def judge(
        self,
        candidates: Candidates,
        cv: Any,
        metrics: Sequence[Measure],
        progress: bool | None = None,
    ) -> HeldOutCurves:
        """Hold out, and score each row by its known cells."""
        held = self.held_out(candidates.axes["alpha"], cv, progress)
        Y = self._problem.loss.Y.T if self._is_turned else self._problem.loss.Y
        ranked = "rows" if self._is_turned else self._problem.loss.ranked
        by_group = {
            metric.name: _score(metric, Y, held.scores, ranked)[:, :, None] for metric in metrics
        }
        n = len(next(iter(by_group.values())))
        predictions = held.scores.reshape(-1, 1, len(candidates))
        return HeldOutCurves(
            candidates, by_group, np.arange(n), held.way, held.n_folds, held.refits, predictions
        )

    def train(self, **values: Any) -> Any:
        """The learner of one alpha."""
        return self._model(**values)

    def _default_grid(self) -> AlphaGrid:
        rows, columns = self._problem.rows, self._problem.columns
        with np.errstate(over="ignore", invalid="ignore"):
            (size, share), (width, columns_share) = _size(rows), _size(columns)
        if not np.isfinite(size * width):
            raise ValueError(OVERFLOW)
        return make_grid(size * width, share * columns_share)


def _score(metric: Any, Y: Array, held: Array, ranked: str) -> Array:
    """The metric in each row (each column, or both), shape (n_groups, n_alphas)."""
    known = ~np.isnan(Y) & ~np.isnan(held).any(axis=2)
    i, j = np.nonzero(known)
    units: list[NDArray[np.intp]] = [i] if ranked != "rows" else []
    units += [j] if ranked != "columns" else []
    assert isinstance(metric, Metric)
    scores = [
        metric(Y[known], held[known], unit, per_group=True, undefined="nan") for unit in units
    ]
    return np.concatenate([np.asarray(each) for each in scores])


def _size(side: Side) -> tuple[float, float]:
    """Mean squared distance of the items from their mean, and the share of the median column.

    Twice that, the mean squared distance in a pair, if scores count up to a constant on the side.
    What all items have in common is left out: an offset of the features does not tell how much
    alpha their differences need. If the items do not differ, it is their mean squared length.
    """
    R = side.matrix
    if R is None:
        return 2.0, 1.0
    n = R.shape[0]
    factor = 2 * n / max(n - 1, 1) if side.is_centered else 1.0
    if side.is_kernel:
        length = np.trace(R) / n
        lengths, spreads = np.array([length]), np.array([length - R.mean()])
    else:
        mean = np.asarray(R.mean(axis=0)).ravel()
        squares = np.square(R) if not sp.issparse(R) else R.multiply(R)
        lengths = np.asarray(squares.mean(axis=0)).ravel()
        spreads = lengths - mean**2 if sp.issparse(R) else np.square(R - mean).mean(axis=0)
    spreads = np.where(spreads > ROUNDING * lengths, spreads, 0.0)
    spreads = spreads if spreads.any() else lengths
    return factor * float(spreads.sum()), median_share(spreads)
