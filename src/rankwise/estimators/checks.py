"""Checks of parameters, items and tables: what came, what was expected, what to do."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite, check_array
from sklearn.utils.validation import validate_data

from rankwise.arrays import Array
from rankwise.errors import warn_user
from rankwise.frames import as_frame, frame_matrix
from rankwise.real_numbers import check_items
from rankwise.solvers import Solutions
from rankwise.text_tables import count


def check_beta(beta: float) -> None:
    """A number from 0 to 1."""
    if not isinstance(beta, numbers.Real) or not 0 <= beta <= 1:
        raise ValueError(f"beta={beta!r}; expected a number from 0 (ranking) to 1 (regression).")


def check_finite(X: Any, estimator: Any) -> None:
    """Raise the error of scikit-learn's `validate_data` if X has NaN or infinity."""
    assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")


def check_rows(estimator: Any, X: Any, *, reset: bool = True, **options: Any) -> Any:
    """The items as a matrix of floats; names and number of the features are kept or compared.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`, or has them.
    X : array-like, sparse matrix, data frame or Arrow table
        Items.
    reset : bool
        Whether these are the items of a fit.
    **options
        Of scikit-learn's `check_array`.
    """
    check_items("X", X)
    options = {"dtype": [np.float64, np.float32], **options}
    frame = as_frame(X)
    if frame is None:
        return validate_data(estimator, X, reset=reset, **options)
    validate_data(estimator, frame, reset=reset, skip_check_array=True)
    matrix = frame_matrix("X", frame, gaps=False)
    return check_array(matrix, estimator=estimator, input_name="X", **options)


def warn_of_solutions(found: Solutions, kernel: Any, tol: float) -> None:
    """Warn of kernels that are not positive semidefinite, and of iterations that did not finish."""
    if not found.is_definite:
        warn_user(
            f"the kernel {kernel!r} is not positive semidefinite on these data: the "
            "model is a stationary point of the objective, not its minimum. A larger alpha or "
            "another kernel avoids this.",
        )
    if found.unfinished:
        warn_user(
            f"conjugate gradients stopped after {found.n_iter} iterations without reaching "
            f"tol={tol:g} at alpha={min(found.unfinished):g}; raise max_iter, tol or alpha, or "
            "scale the features.",
            ConvergenceWarning,
        )


def check_table(Y: Array, row: str, column: str) -> Array:
    """Two columns or more, no infinity, and in each row and column a known score."""
    if Y.shape[1] < 2:
        raise ValueError(
            f"Y has the scores of one {column} only; expected at least two {column}s to rank for "
            f"each {row}. One score for each {row} is a list of items: RankRLS ranks those."
        )
    if np.isinf(Y).any():
        i, j = np.argwhere(np.isinf(Y))[0]
        raise ValueError(
            f"Y contains infinity, the first in row {i}, column {j}; give finite scores, and NaN "
            "where a score is unknown."
        )
    for axis, what in ((1, row), (0, column)):
        empty = np.flatnonzero(np.isnan(Y).all(axis=axis))
        if len(empty):
            raise ValueError(
                f"Y has no score for {count(len(empty), what)}, the first is number {empty[0]}; "
                "leave out what has none."
            )
    return Y
