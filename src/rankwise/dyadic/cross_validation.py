"""Cross-validation of tables: rows, columns or both are held out, each row is a group. Exact.

=========  ==========================================  =========================================
held out   complete table, one at a time               anything else
=========  ==========================================  =========================================
rows       `DyadicProblem.without_rows`                        folds of rows; one at a time from the
                                                       features of all cells, if these are few
columns    `DyadicProblem.without_columns`                     folds of columns
both       folds of rows, in each of them              folds of rows times folds of columns
           `DyadicProblem.without_columns` for new rows
=========  ==========================================  =========================================

Folds are trained again. The scores of a row are counted from their mean over the columns that were
trained on, those of one list of cells are on the scale of Y, so that those of different folds can
be compared.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.dyadic.solver import DyadicProblem, KernelSide
from rankwise.graphs import ScoreGraph
from rankwise.groups import Groups
from rankwise.kernels.feature_maps import FeatureMap
from rankwise.kernels.kernel import Kernel
from rankwise.kernels.solver_input import SolverInput
from rankwise.losses import SquaredLoss
from rankwise.metrics import Metric
from rankwise.metrics.by_group import metric_by_group
from rankwise.model_selection.candidate_grid import CandidateGrid, default_alphas
from rankwise.model_selection.conformal import held_out_gaps
from rankwise.model_selection.folds import EXACT_FOLDS, REFIT_FOLDS, Folds, make_folds, read_splits
from rankwise.model_selection.grid_search import CrossValidationResult
from rankwise.model_selection.protocol import HoldOutTask
from rankwise.model_selection.shortcuts import check_rest, cross_val_scores
from rankwise.runtime.progress import track
from rankwise.validation import check_alphas, check_option

OVERFLOW = (
    "the squares of some features or kernel values overflow; scale the features, for example with "
    "sklearn.preprocessing.StandardScaler."
)
ROUNDING = 1e-14  # of a squared length: no spread, but what rounding leaves
FEW_ENTRIES = 2**23  # of the features of all cells, for leave-row-out of incomplete tables


class DyadicTask(ABC):
    """A learner of tables with its data; judges all alphas at once. A subclass has `train`.

    Parameters
    ----------
    learner : estimator
        With the value of its alpha.
    table : Table
        The table; the columns of each row are ranked.
    leave : {"rows", "columns", "both"}
        What is held out.
    names : tuple of str
        What the user calls a row and a column of the table.
    """

    parameters = ("alpha",)
    candidates = HoldOutTask.candidates

    def __init__(
        self,
        learner: Any,
        table: DyadicProblem,
        leave: str = "rows",
        names: tuple[str, str] = ("row", "column"),
    ) -> None:
        check_option("leave", leave, ("rows", "columns", "both"))
        self.learner, self.table, self._leave, self._names = learner, table, leave, names

    @abstractmethod
    def train(self, **values: Any) -> Any:
        """The learner trained on all data, with this alpha."""

    def default_values(self, _: str) -> Array:
        """40 alphas from rounding to 1e4 times the mean squared distance in a pair."""
        with np.errstate(over="ignore", invalid="ignore"):
            scale = _spread(self.table.rows) * _spread(self.table.columns)
        if not np.isfinite(scale):
            raise ValueError(OVERFLOW)
        return default_alphas(scale)

    def held_out(self, alphas: Array, cv: Any) -> tuple[Array, str, int, bool]:
        """Held-out scores of all cells.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            Positive.
        cv : "auto", None, int, splitter or iterable
            None holds out one row or column at a time. "auto" does so where that needs no training;
            else it makes five folds.

        Returns
        -------
        scores : ndarray of shape (q, t, n_alphas)
            Scores by models without the row or the column; nan in unknown cells if only the known
            ones were scored.
        way : str
            What was held out, such as "leave-row-out" or "folds of columns".
        n_folds : int
            Number of folds.
        refits : bool
            Whether each fold was trained again.
        """
        cv = read_splits(cv)
        is_auto = isinstance(cv, str)
        if is_auto:
            check_option("cv", cv, ("auto",))
        table, leave, is_single = self.table, self._leave, cv is None or is_auto
        (q, t), (row, column) = table.loss.shape, self._names
        if leave == "rows" and is_single and (table.has_closed_form or _has_few_features(table)):
            check_rest(q > 1)
            find = table.without_rows if table.has_closed_form else partial(_from_features, table)
            return find(alphas), f"leave-{row}-out", q, False
        if leave == "columns" and is_single and table.has_closed_form:
            check_rest(t > 2)
            return table.without_columns(alphas), f"leave-{column}-out", t, False
        scores = np.empty((q, t, len(alphas)))
        if leave == "both" and table.has_closed_form and (is_single or isinstance(cv, int)):
            check_rest(t > 2)
            folds = _folds(min(EXACT_FOLDS, q) if is_auto else cv, q)
            for U in track(folds, f"training again without some {row}s"):
                kept = np.setdiff1d(np.arange(q), U)
                new_rows = table.rows.seen_from(U, kept)
                scores[U] = table.subset(kept, np.arange(t)).without_columns(alphas, new_rows)
            return scores, f"folds of {row}s, leave-{column}-out", len(folds), False
        by_side: list[Folds] = [[np.empty(0, np.intp)]] * 2  # nothing is held out
        names = []
        for side, (name, n) in enumerate(((row, q), (column, t))):
            if leave in (("rows", "columns")[side], "both"):
                by_side[side] = _folds(min(REFIT_FOLDS, n) if is_auto else cv, n)
                names.append(f"{name}s")
        what = " and ".join(names)
        pairs = list(itertools.product(*by_side))
        for U, V in track(pairs, f"training again without some {what}"):
            _refit(table, U, V, alphas, scores)
        is_one = cv is None and len(names) == 1
        way = f"leave-{what[:-1]}-out" if is_one else f"folds of {what}"
        return scores, way, len(pairs), True

    def leave_out(self, alphas: ArrayLike | None, cv: Any) -> Array:
        """Held-out scores of all cells by several alphas, or by that of the learner alone."""
        checked = check_alphas([self.learner.alpha] if alphas is None else alphas, "alphas")
        scores = self._as_given(self.held_out(checked, cv)[0])
        return scores if alphas is not None else np.asarray(scores[:, :, 0])

    def _as_given(self, scores: Array) -> Array:
        """Rows and columns as the user has them, who may have asked for ranks of rows."""
        return scores.swapaxes(0, 1) if self._names[0] == "column" else scores

    def gaps(self, alpha: float, cv: Any = "auto") -> Array:
        """From the top of each held-out row to its best column; see `best_sets`."""
        scores, Y = self.held_out(np.array([alpha]), cv)[0][:, :, 0], self.table.loss.Y
        rows = np.repeat(np.arange(len(Y)), Y.shape[1])
        return held_out_gaps(Y.ravel(), scores.ravel(), rows)

    def judge(
        self, candidates: CandidateGrid, cv: Any, metrics: Sequence[Metric]
    ) -> CrossValidationResult:
        """Hold out, and score each row by its known cells."""
        held, way, n_folds, refits = self.held_out(candidates.axes["alpha"], cv)
        Y = self.table.loss.Y
        known = ~np.isnan(Y) & ~np.isnan(held).any(axis=2)
        rows = np.nonzero(known)[0] * (not self.table.loss.one_list)
        labels, codes = np.unique(rows, return_inverse=True)
        groups, scores = Groups(codes, labels), held[known][:, None]
        by_group = {
            metric.name: metric_by_group(metric, Y[known][:, None], groups, None, scores)
            for metric in metrics
        }
        predictions = self._as_given(held).reshape(-1, 1, len(candidates))
        return CrossValidationResult(
            candidates, by_group, labels, way, n_folds, refits, predictions
        )


def _refit(table: DyadicProblem, U: Indices, V: Indices, alphas: Array, scores: Array) -> None:
    """Scores of the rows U and columns V by models without them; of all if none are held out."""
    every_row, every_column = (np.arange(n) for n in table.loss.shape)
    rows, columns = np.setdiff1d(every_row, U), np.setdiff1d(every_column, V)
    U, V = U if len(U) else every_row, V if len(V) else every_column
    kept = table.subset(rows, columns)
    check_rest(kept.loss.n_pairs > 0)
    R = table.rows.seen_from(U, rows)
    for k, B in enumerate(kept.solve(alphas).coef):
        new = trained = np.asarray(R @ B)
        if table.columns.matrix is not None:
            new = new @ np.asarray(table.columns.seen_from(V, columns)).T
            trained = trained @ np.asarray(table.columns.seen_from(columns, columns)).T
        level = kept.intercept(B) if table.loss.one_list else -trained.mean(axis=1, keepdims=True)
        scores[U[:, None], V, k] = new + level


def _has_few_features(table: DyadicProblem) -> bool:
    """Whether the features of all known cells fit in little memory."""
    if not table.rows.is_decomposed or table.loss.one_list:
        return False
    columns = table.columns.matrix
    width = min(table.rows.matrix.shape)
    width *= table.loss.shape[1] if columns is None else min(columns.shape)
    return bool(width * table.loss.known.sum() <= FEW_ENTRIES)


def _from_features(table: DyadicProblem, alphas: Array) -> Array:
    """Leave-row-out as leave-group-out of RankRLS on the features of all known cells."""
    rows, columns = table.sides()
    i, j = np.nonzero(table.loss.known)
    S = np.eye(table.loss.shape[1]) if columns.features is None else columns.features
    R = (rows.features[i][:, :, None] * S[j][:, None, :]).reshape(len(i), -1)
    features = SolverInput("primal", R, FeatureMap(Kernel("linear"), None, R.shape[1]))
    folds = np.split(np.arange(len(i)), np.flatnonzero(np.diff(i)) + 1)
    scores = np.full((*table.loss.shape, len(alphas)), np.nan)
    loss = SquaredLoss(table.loss.graph)
    scores[i, j] = cross_val_scores(loss, features, folds, alphas, {})[:, 0]  # no iterations
    return scores


def _folds(cv: Any, n: int) -> Folds:
    """Folds of n rows or columns; None for one at a time."""
    if cv is None:
        return list(np.arange(n)[:, None])
    return make_folds(cv, ScoreGraph(np.zeros(n)))


def _spread(side: KernelSide) -> float:
    """Mean squared distance of the items from their mean.

    Twice that, the mean squared distance in a pair, if scores count up to a constant on the side.
    What all items have in common is left out: an offset of the features does not tell how much
    alpha their differences need. If the items do not differ, it is their mean squared length.
    """
    R = side.matrix
    if R is None:
        return 2.0
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
    return factor * float(spreads.sum())
