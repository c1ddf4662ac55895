"""jackknife: standard errors of whatever a ranker says, from leaving out every unit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike
from sklearn.utils.validation import _num_samples

from rankwise.arrays import Array, Indices
from rankwise.leaderboard.jackknife import Spread
from rankwise.machine import calm, check_matrix_fits
from rankwise.model_selection.candidates import check_alphas
from rankwise.uncertainty.left_out import (
    InGroups,
    LeftOut,
    inner_ranker,
    leave_units_out,
    rows_of_pairs,
    scores_of,
    transformed,
)

BLOCK = 2**22  # numbers


class Difference(NamedTuple):
    """By how much items i are above items j, and the standard error of that.

    Attributes
    ----------
    value : ndarray of shape (n_pairs,)
        Differences of the scores.
    error : ndarray of shape (n_pairs,)
        Their standard errors.
    """

    value: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Jackknife:
    """Standard errors of a ranker; what `jackknife` returns.

    Attributes
    ----------
    model : estimator
        Trained on all data.
    units : {"groups", "items", "comparisons", "clusters"}
        What was left out.
    n_units : int
        How many of them; for rankers that are trained again the number of folds.
    alpha : float or None
        Regularization, if there are coefficients.
    coefficients : ndarray of shape (n_coefficients,) or None
        Of the model of all data, its `coef_` or `dual_coef_`; None if it was trained again.
    root : ndarray of shape (n_coefficients, n_columns) or None
        F with F Fᵀ the covariance of the coefficients. At most one column for each unit.
    members : list of estimator or None
        Models without each fold, for rankers that are trained again.
    """

    model: Any
    units: str
    n_units: int
    alpha: float | None = None
    coefficients: Array | None = None
    root: Array | None = None
    members: list[Any] | None = None

    @property
    def freedom(self) -> int:
        """Degrees of freedom of Student's t: one less than there are units."""
        return self.n_units - 1

    @property
    def coefficient_errors(self) -> Array:
        """Standard error of each of the `coefficients`."""
        if self.root is None:
            name = type(self.model).__name__
            raise ValueError(f"{name} was trained again without folds and has no coefficients.")
        return np.asarray(np.linalg.norm(self.root, axis=1))

    @calm
    def predict(self, X: Any) -> Array:
        """Scores of items by the model of all data."""
        if self.coefficients is None:
            return np.asarray(scores_of(self.model, X), dtype=np.float64)
        return self._by(X, self.coefficients[:, None])[:, 0]

    def spread(self, X: Any) -> Spread:
        """Covariance of the scores of items, as its root: errors of scores, and of differences.

        The level of the scores means nothing, so it is the differences that matter.
        """
        n_columns = self.n_units if self.root is None else self.root.shape[1]
        advice = "ask for fewer items at a time"
        check_matrix_fits(_n_rows(X), n_columns, "the changes of the scores", advice)
        if self.root is not None:
            root = self._by(X, self.root)
        else:
            changes = [scores_of(member, X) for member in self.members or []]
            root = np.stack(changes, axis=1) - self.predict(X)[:, None]
            root *= np.sqrt(self.freedom / self.n_units)
        nothing = np.empty((0, root.shape[1]))
        return Spread(root, nothing, self.freedom, is_exact=True)

    def predict_difference(self, X: Any, i: ArrayLike, j: ArrayLike) -> Difference:
        """By how much items i are above items j, with the standard error.

        Parameters
        ----------
        X : array-like of shape (n_items, n_features)
            Items.
        i, j : int or array-like of int
            Rows of X; as many of the one as of the other.

        Returns
        -------
        Difference
            ``value ± t · error`` is an interval, with a quantile t of Student's t distribution of
            `freedom` degrees of freedom. Equal items: 0 and 0.
        """
        first, second = check_rows(_n_rows(X), i, j)
        seen, a, b = rows_of_pairs(X, first, second)
        scores, changes = self.predict(seen), self.spread(seen).root
        error = np.empty(len(first))
        size = max(1, BLOCK // changes.shape[1])
        for start in range(0, len(first), size):
            at = slice(start, start + size)
            error[at] = np.linalg.norm(changes[a[at]] - changes[b[at]], axis=1)
        return Difference(scores[a] - scores[b], error)

    def _by(self, X: Any, columns: Array) -> Array:
        ranker = inner_ranker(self.model)
        assert ranker is not None
        found = ranker.predict_by(transformed(self.model, X), columns)
        return np.asarray(found, dtype=np.float64)


@calm
def jackknife(
    estimator: Any,
    X: Any,
    y: Any,
    groups: ArrayLike | None = None,
    *,
    units: Any = "auto",
    alphas: ArrayLike | None = None,
    n_folds: int = 10,
    progress: bool | None = None,
) -> Any:
    """Standard errors of differences, scores and coefficients by leaving out every unit.

    With w the model of all data and w^(−u) the one without unit u, of U units,

        V = (U − 1)/U Σ_u (w^(−u) − w)(w^(−u) − w)ᵀ

    is a covariance of w that assumes nothing but independent units: inside a unit, errors may be
    correlated and of any size (it is cluster-robust). RankRLS needs no refit for it: the models
    w^(−u) come from the algebra of exact cross-validation ([RankRLS09] section 3.3). V is kept as
    its root.

    Parameters
    ----------
    estimator : RankRLS, RankRLSCV, a Pipeline that ends in one, or any other ranker
        Fitted or not; it is left as it is. A linear RankLogistic makes one Newton step for each
        group or comparison. Other rankers are trained again without each of `n_folds` folds
        of units. The steps of a Pipeline and an alpha that a search chose stay as they are for all
        data.
    X, y, groups
        As in its ``fit``.
    units : {"auto", "groups", "items", "comparisons"} or array-like
        What is independent. "auto": groups if there are several, else the items of a list; for a
        `PairGraph` its groups if there are at least ten and none has half of the comparisons, else
        the comparisons. Labels name clusters, one for each comparison if y is a `PairGraph`, else
        one for each item.
    alphas : array-like of shape (n_alphas,), optional
        Several values of alpha from one decomposition, for a `RankRLS`; the result is a list then.
    n_folds : int
        Number of folds for rankers that are trained again.
    progress : bool, optional
        Whether to draw a bar while models are trained again; by default only on a terminal.

    Returns
    -------
    Jackknife, or list of Jackknife
        One; one for each alpha if they are given; one for each output if y has several (a list of
        lists for both).

    Examples
    --------
    >>> from rankwise import RankRLS
    >>> from rankwise.datasets import make_ranking
    >>> from rankwise.uncertainty import jackknife
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> found = jackknife(RankRLS(), X, y, groups)
    >>> found.units, found.n_units
    ('groups', 30)
    >>> value, error = found.predict_difference(X, [0, 0], [1, 0])
    >>> value.round(2), error.round(2)
    (array([...]), array([..., 0.  ]))
    """
    checked = None if alphas is None else check_alphas(alphas, "alphas")
    check_folds(n_folds)
    left = leave_units_out(
        estimator, X, y, groups, units=units, n_folds=n_folds, alphas=checked, progress=progress
    )
    found = spreads_of(left, checked)
    shape = getattr(inner_ranker(left.model), "output_shape_", ())
    by_alpha = [row if shape else row[0] for row in found]
    return by_alpha[0] if alphas is None else by_alpha


def spreads_of(left: LeftOut, alphas: Array | None = None) -> list[list[Jackknife]]:
    """The standard errors for each alpha and output."""
    n_units, kind = len(left.units.members), left.units.kind
    if left.coefficients is None:
        return [[Jackknife(left.model, kind, n_units, members=left.members)]]
    ranker = inner_ranker(left.model)
    own = np.atleast_1d(ranker.alpha if ranker is not None else 0.0)
    whole = Jackknife(left.model, kind, n_units)
    found = []
    for a, alpha in enumerate(own[:1] if alphas is None else alphas):
        row = []
        for k in range(left.coefficients.shape[2]):
            at = a if alphas is not None or len(own) == 1 else k
            w = left.coefficients[:, -1, k, at].copy()
            changes = left.coefficients[:, :-1, k, at] - w[:, None]
            root = _compressed(changes * np.sqrt((n_units - 1) / n_units))
            value = float(alpha if alphas is not None or len(own) == 1 else own[k])
            row.append(replace(whole, alpha=value, coefficients=w, root=root))
        found.append(row)
    return found


def _compressed(F: Array) -> Array:
    """A root of F Fᵀ with no more columns than rows."""
    if F.shape[1] <= F.shape[0]:
        return np.ascontiguousarray(F)
    (R,) = scipy.linalg.qr(F.T, mode="r", check_finite=False, overwrite_a=True)
    return np.ascontiguousarray(R[: F.shape[0]].T)


def check_folds(n_folds: Any) -> None:
    """A whole number of at least two."""
    if not isinstance(n_folds, Integral) or isinstance(n_folds, bool) or n_folds < 2:
        raise ValueError(f"n_folds={n_folds!r}; expected a whole number of at least 2.")


def check_rows(n_items: int, i: ArrayLike, j: ArrayLike) -> tuple[Indices, Indices]:
    """Row numbers, one of j for each of i."""
    first, second = np.broadcast_arrays(np.atleast_1d(i), np.atleast_1d(j))
    for name, rows in (("i", first), ("j", second)):
        if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
            raise ValueError(
                f"{name} has dtype {rows.dtype} and shape {rows.shape}; expected row numbers of X."
            )
        if rows.size and not 0 <= rows.min() <= rows.max() < n_items:
            bad = rows[(rows < 0) | (rows >= n_items)][0]
            raise ValueError(f"{name} has {bad}, but X has the rows 0 to {n_items - 1}.")
    return first.astype(np.intp), second.astype(np.intp)


def _n_rows(X: Any) -> int:
    return len(X.groups) if isinstance(X, InGroups) else int(_num_samples(X))
