"""Checks of constructor parameters: what came, what was expected, what to do."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite

from rankwise.real_numbers import as_real

__all__ = [
    "check_alphas",
    "check_beta",
    "check_finite",
    "check_nus",
]


def check_alphas(alphas: ArrayLike, name: str) -> NDArray[np.float64]:
    """Positive finite numbers, as an array of one dimension."""
    try:
        checked = as_real(name, alphas)
    except ValueError:
        raise ValueError(f"{name}: got {alphas!r}, expected positive numbers.") from None
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} has shape {checked.shape}; expected a flat list of numbers.")
    bad = ~(np.isfinite(checked) & (checked > 0))
    if bad.any():
        raise ValueError(
            f"{name}: got {checked[bad][0]}, expected a positive finite number; alpha is the "
            "weight of the regulariser, and for almost none pass something small such as 1e-9."
        )
    return checked


def check_nus(nus: ArrayLike, name: str) -> NDArray[np.float64]:
    """Finite numbers from 0, as an array of one dimension."""
    try:
        checked = as_real(name, nus)
    except ValueError:
        raise ValueError(f"{name}: got {nus!r}, expected numbers from 0.") from None
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} has shape {checked.shape}; expected a flat list of numbers.")
    bad = ~(np.isfinite(checked) & (checked >= 0))
    if bad.any():
        raise ValueError(
            f"{name}: got {checked[bad][0]}, expected a finite number from 0 (the views are "
            "trained independently) upwards (they agree more and more)."
        )
    return checked


def check_beta(beta: float) -> None:
    """A number from 0 to 1."""
    if not isinstance(beta, numbers.Real) or not 0 <= beta <= 1:
        raise ValueError(f"beta={beta!r}; expected a number from 0 (ranking) to 1 (regression).")


def check_finite(X: Any, estimator: Any) -> None:
    """Raise the error of scikit-learn's `validate_data` if X has NaN or infinity."""
    assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
