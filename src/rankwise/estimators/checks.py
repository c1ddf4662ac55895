"""Checks of constructor parameters: what came, what was expected, what to do."""

from __future__ import annotations

import numbers
from typing import Any

from sklearn.utils import assert_all_finite

__all__ = ["check_beta", "check_finite"]


def check_beta(beta: float) -> None:
    """A number from 0 to 1."""
    if not isinstance(beta, numbers.Real) or not 0 <= beta <= 1:
        raise ValueError(f"beta={beta!r}; expected a number from 0 (ranking) to 1 (regression).")


def check_finite(X: Any, estimator: Any) -> None:
    """Raise the error of scikit-learn's `validate_data` if X has NaN or infinity."""
    assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
