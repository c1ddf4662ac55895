"""Checks of constructor parameters: what came, what was expected, what to do."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import assert_all_finite, check_array

from rankwise.options import check_option
from rankwise.real_numbers import as_real, refuse_masked

__all__ = [
    "basis_points",
    "check_alphas",
    "check_basis",
    "check_beta",
    "check_finite",
    "check_nus",
]

BASES = ("random", "kmeans++")


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


def check_basis(n_basis: int | None, basis: str | ArrayLike, n_items: int) -> int:
    """Number of basis items, for a named way of choosing them or for given row numbers."""
    if isinstance(basis, str):
        check_option("basis", basis, BASES)
        if not isinstance(n_basis, numbers.Integral) or not 1 <= n_basis <= n_items:
            raise ValueError(
                f"n_basis={n_basis!r}; expected a whole number from 1 to {n_items}, the number of "
                "training items."
            )
        return int(n_basis)
    refuse_masked("basis", basis)
    rows = np.asarray(basis)
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"basis has dtype {rows.dtype} and shape {rows.shape}; expected a flat array of row "
            "numbers, or an array of points with the features of X where points are taken."
        )
    if rows.min() < 0 or rows.max() >= n_items:
        worst = rows.min() if rows.min() < 0 else rows.max()
        raise ValueError(f"basis names row {worst}; the {n_items} rows of X count from 0.")
    if len(np.unique(rows)) != len(rows):
        raise ValueError("basis names a row twice; give each basis item once.")
    if n_basis is not None and n_basis != len(rows):
        raise ValueError(f"n_basis={n_basis} but basis names {len(rows)} rows; drop n_basis.")
    return len(rows)


def basis_points(basis: Any, n_basis: int | None, n_features: int) -> Any:
    """Basis points, one row of features each, checked; None if `basis` is anything else.

    Points need not be training items, may be more than those, and may have duplicates, which
    `basis_root` merges.
    """
    if isinstance(basis, str) or np.ndim(basis) != 2:
        return None
    refuse_masked("basis", basis)
    points = check_array(
        basis, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="basis"
    )
    if points.shape[1] != n_features:
        raise ValueError(
            f"basis has points with {points.shape[1]} features but X has {n_features}; give each "
            "basis point the features of X, or a flat array of row numbers."
        )
    if n_basis is not None and n_basis != points.shape[0]:
        raise ValueError(f"n_basis={n_basis} but basis has {points.shape[0]} points; drop n_basis.")
    return points


def check_finite(X: Any, estimator: Any) -> None:
    """Raise the error of scikit-learn's `validate_data` if X has NaN or infinity."""
    assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
