"""Cross-validation of tables: rows, columns or both are held out, each row is a group. Exact.

=========  ==========================================  =========================================
held out   complete table, one at a time               anything else
=========  ==========================================  =========================================
rows       `Table.without_rows`                        folds of rows; one at a time from the
                                                       features of all cells, if these are few
columns    `Table.without_columns`                     folds of columns
both       folds of rows, in each of them              folds of rows times folds of columns
           `Table.without_columns` for new rows
=========  ==========================================  =========================================

Folds are trained again. The scores of a row are counted from their mean over the columns that were
trained on, those of one list of cells are on the scale of Y, so that those of different folds can
be compared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.features.feature_map import FeatureMap, Features
from rankwise.features.kernel import Kernel
from rankwise.graphs import ScoreGraph
from rankwise.groups import Groups
from rankwise.inputs import check_alphas, check_option
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.metrics import Metric
from rankwise.model_selection.best_sets import held_out_gaps
from rankwise.model_selection.curves import HeldOutCurves, metric_by_group
from rankwise.model_selection.folds import (
    EXACT_FOLDS,
    REFIT_FOLDS,
    Folds,
    make_folds,
    read_splits,
)
from rankwise.model_selection.hold_out import check_rest, held_out_scores
from rankwise.model_selection.task import Candidates, default_alphas, make_candidates
from rankwise.solvers.tables import Side, Table

OVERFLOW = (
    "the squares of some features or kernel values overflow; scale the features, for example with "
    "sklearn.preprocessing.StandardScaler."
)
ROUNDING = 1e-14  # of a squared length: no spread, but what rounding leaves
FEW_ENTRIES = 2**23  # of the features of all cells, for leave-row-out of incomplete tables


class HeldOutTable(NamedTuple):
    """Held-out scores of a table.

    Attributes
    ----------
    scores : ndarray of shape (q, t, n_alphas)
        Scores by models without the row or the column; nan in unknown cells if only the known ones
        were scored.
    way : str
        What was held out, such as "leave-row-out" or "folds of columns".
    n_folds : int
        Number of folds.
    refits : bool
        Whether each fold was trained again.
    """

    scores: Array
    way: str
    n_folds: int
    refits: bool


class TableTask(ABC):
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

    def __init__(
        self,
        learner: Any,
        table: Table,
        leave: str = "rows",
        names: tuple[str, str] = ("row", "column"),
    ) -> None:
        check_option("leave", leave, ("rows", "columns", "both"))
        self.learner, self.table, self._leave, self._names = learner, table, leave, names

    @abstractmethod
    def train(self, **values: Any) -> Any:
        """The learner trained on all data, with this alpha."""

    def candidates(self, **values: ArrayLike | None) -> Candidates:
        """As of `HoldOutTask`."""
        return make_candidates(self, values)

    def default_values(self, _: str) -> Array:
        """40 alphas from rounding to 1e4 times the mean squared distance in a pair."""
        with np.errstate(over="ignore", invalid="ignore"):
            scale = _spread(self.table.rows) * _spread(self.table.columns)
        if not np.isfinite(scale):
            raise ValueError(OVERFLOW)
        return default_alphas(scale)

    def held_out(self, alphas: Array, cv: Any) -> HeldOutTable:
        """Held-out scores of all cells.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            Positive.
        cv : "auto", None, int, splitter or iterable
            None holds out one row or column at a time. "auto" does so where that needs no training;
            else it makes five folds.
        """
        cv = read_splits(cv)
        if isinstance(cv, str):
            check_option("cv", cv, ("auto",))
        if self._leave == "both":
            return self._leave_both(alphas, cv)
        return self._leave_one_side(alphas, cv)

    def leave_out(self, alphas: ArrayLike | None, cv: Any) -> Array:
        """Held-out scores of all cells by several alphas, or by that of the learner alone."""
        checked = check_alphas([self.learner.alpha] if alphas is None else alphas, "alphas")
        scores = self._as_given(self.held_out(checked, cv).scores)
        return scores if alphas is not None else np.asarray(scores[:, :, 0])

    def _as_given(self, scores: Array) -> Array:
        """Rows and columns as the user has them, who may have asked for ranks of rows."""
        return scores.swapaxes(0, 1) if self._names[0] == "column" else scores

    def gaps(self, alpha: float, cv: Any = "auto") -> Array:
        """From the top of each held-out row to its best column; see `best_sets`."""
        scores, Y = self.held_out(np.array([alpha]), cv).scores[:, :, 0], self.table.loss.Y
        rows = np.repeat(np.arange(len(Y)), Y.shape[1])
        return held_out_gaps(Y.ravel(), scores.ravel(), rows)

    def judge(
        self,
        candidates: Candidates,
        cv: Any,
        metrics: Sequence[Metric],
    ) -> HeldOutCurves:
        """Hold out, and score each row by its known cells."""
        held = self.held_out(candidates.axes["alpha"], cv)
        Y = self.table.loss.Y
        known = ~np.isnan(Y) & ~np.isnan(held.scores).any(axis=2)
        rows = np.nonzero(known)[0] * (not self.table.loss.one_list)
        labels, codes = np.unique(rows, return_inverse=True)
        groups, scores = Groups(codes, labels), held.scores[known][:, None]
        by_group = {
            metric.name: metric_by_group(metric, Y[known][:, None], groups, None, scores)
            for metric in metrics
        }
        predictions = self._as_given(held.scores).reshape(-1, 1, len(candidates))
        return HeldOutCurves(candidates, by_group, labels, *held[1:], predictions)

    def _leave_one_side(self, alphas: Array, cv: Any) -> HeldOutTable:
        table, is_rows = self.table, self._leave == "rows"
        shape = table.loss.shape
        n = shape[0 if is_rows else 1]
        name = self._names[0 if is_rows else 1]
        is_auto = isinstance(cv, str)
        is_exact = table.has_closed_form or (is_rows and _has_few_features(table))
        if is_exact and (cv is None or is_auto):
            check_rest(n > 1 if is_rows else n > 2)
            if not table.has_closed_form:
                scores = _from_features(table, alphas)
            else:
                scores = table.without_rows(alphas) if is_rows else table.without_columns(alphas)
            return HeldOutTable(scores, f"leave-{name}-out", n, False)
        folds = _folds(min(REFIT_FOLDS, n) if is_auto else cv, n)
        scores = np.empty((*shape, len(alphas)))
        for U in track(folds, f"training again without some {name}s"):
            if is_rows:
                scores[U] = _refit(table, U, None, alphas)
            else:
                scores[:, U] = _refit(table, None, U, alphas)
        way = f"leave-{name}-out" if cv is None else f"folds of {name}s"
        return HeldOutTable(scores, way, len(folds), True)

    def _leave_both(self, alphas: Array, cv: Any) -> HeldOutTable:
        table, is_auto = self.table, isinstance(cv, str)
        (q, t), (row, column) = table.loss.shape, self._names
        scores = np.empty((q, t, len(alphas)))
        if table.has_closed_form and (cv is None or isinstance(cv, (int, str))):
            check_rest(t > 2)
            folds = _folds(min(EXACT_FOLDS, q) if is_auto else cv, q)
            for U in track(folds, f"training again without some {row}s"):
                kept = np.setdiff1d(np.arange(q), U)
                new_rows = table.rows.seen_from(U, kept)
                scores[U] = table.subset(kept, np.arange(t)).without_columns(alphas, new_rows)
            way = f"folds of {row}s, leave-{column}-out"
            return HeldOutTable(scores, way, len(folds), False)
        row_folds = _folds(min(REFIT_FOLDS, q) if is_auto else cv, q)
        column_folds = _folds(min(REFIT_FOLDS, t) if is_auto else cv, t)
        pairs = [(U, V) for U in row_folds for V in column_folds]
        for U, V in track(pairs, f"training again without {row}s and {column}s"):
            scores[np.ix_(U, V)] = _refit(table, U, V, alphas)
        return HeldOutTable(scores, f"folds of {row}s and {column}s", len(pairs), True)


def _refit(table: Table, U: Indices | None, V: Indices | None, alphas: Array) -> Array:
    """Scores of the rows U and columns V by models without them; None for all, which are kept."""
    every_row, every_column = (np.arange(n) for n in table.loss.shape)
    rows = every_row if U is None else np.setdiff1d(every_row, U)
    columns = every_column if V is None else np.setdiff1d(every_column, V)
    kept = table.subset(rows, columns)
    check_rest(kept.loss.n_pairs > 0)
    R = table.rows.seen_from(every_row if U is None else U, rows)
    scores = []
    for B in kept.solve(alphas).coef:
        new = trained = np.asarray(R @ B)
        if table.columns.matrix is not None:
            held = table.columns.seen_from(every_column if V is None else V, columns)
            new = new @ np.asarray(held).T
            trained = trained @ np.asarray(table.columns.seen_from(columns, columns)).T
        if table.loss.one_list:
            scores.append(new + kept.intercept(B))
        else:
            scores.append(new - trained.mean(axis=1, keepdims=True))
    return np.stack(scores, axis=2)


def _has_few_features(table: Table) -> bool:
    """Whether the features of all known cells fit in little memory."""
    if not table.rows.is_decomposed or table.loss.one_list:
        return False
    columns = table.columns.matrix
    width = min(table.rows.matrix.shape)
    width *= table.loss.shape[1] if columns is None else min(columns.shape)
    return bool(width * table.loss.known.sum() <= FEW_ENTRIES)


def _from_features(table: Table, alphas: Array) -> Array:
    """Leave-row-out as leave-group-out of RankRLS on the features of all known cells."""
    rows, columns = table.sides()
    i, j = np.nonzero(table.loss.known)
    S = np.eye(table.loss.shape[1]) if columns.features is None else columns.features
    R = (rows.features[i][:, :, None] * S[j][:, None, :]).reshape(len(i), -1)
    features = Features("primal", R, FeatureMap(Kernel("linear"), None, R.shape[1]))
    folds = np.split(np.arange(len(i)), np.flatnonzero(np.diff(i)) + 1)
    scores = np.full((*table.loss.shape, len(alphas)), np.nan)
    loss = SquaredLoss(table.loss.graph)
    limits = {"tol": table.tol, "max_iter": table.max_iter}
    scores[i, j] = held_out_scores(loss, features, folds, alphas, limits)[:, 0]
    return scores


def _folds(cv: Any, n: int) -> Folds:
    """Folds of n rows or columns; None for one at a time."""
    if cv is None:
        return list(np.arange(n)[:, None])
    return make_folds(cv, ScoreGraph(np.zeros(n)))


def _spread(side: Side) -> float:
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
