"""Checks of constructor parameters: what came, what was expected, what to do."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import assert_all_finite

from rankwise.solvers import Solutions

__all__ = ["check_beta", "check_finite", "warn_of_solutions"]


def check_beta(beta: float) -> None:
    """A number from 0 to 1."""
    if not isinstance(beta, numbers.Real) or not 0 <= beta <= 1:
        raise ValueError(f"beta={beta!r}; expected a number from 0 (ranking) to 1 (regression).")


def check_finite(X: Any, estimator: Any) -> None:
    """Raise the error of scikit-learn's `validate_data` if X has NaN or infinity."""
    assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")


def warn_of_solutions(
    found: Sequence[Solutions], kernel: Any, tol: float, *, stacklevel: int
) -> None:
    """Warn of kernels that are not positive semidefinite, and of iterations that did not finish."""
    if not all(solutions.is_definite for solutions in found):
        warnings.warn(
            f"the kernel {kernel!r} is not positive semidefinite on these data: the "
            "model is a stationary point of the objective, not its minimum. A larger alpha or "
            "another kernel avoids this.",
            stacklevel=stacklevel + 1,
        )
    unfinished = [alpha for solutions in found for alpha in solutions.unfinished]
    if unfinished:
        n_iter = max(solutions.n_iter for solutions in found)
        warnings.warn(
            f"conjugate gradients stopped after {n_iter} iterations without reaching "
            f"tol={tol:g} at alpha={min(unfinished):g}; raise max_iter, tol or alpha, or "
            "scale the features.",
            ConvergenceWarning,
            stacklevel=stacklevel + 1,
        )
