"""Basis items of reduced-set kernel models."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from rankwise.arrays import Array, Indices, Matrix, RandomState
from rankwise.frames import as_array
from rankwise.kernels.feature_maps import BasisFeatures, take_columns
from rankwise.kernels.kernel import Kernel
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import allow_threads
from rankwise.validation import check_option

BASES = ("random", "kmeans++")


def read_points(name: str, points: Matrix, n_features: int) -> Matrix:
    """Points with the features of X, one row each, as float64; None for anything but a matrix.

    Points need not be training items, may outnumber them, and may have duplicates, which
    `basis_root` merges.
    """
    points = as_array(points, name)
    if np.ndim(points) != 2:  # row numbers, or how to choose them
        return None
    points = check_array(points, accept_sparse="csr", dtype=np.float64, input_name=name, copy=True)
    if points.shape[1] != n_features:
        raise ValueError(
            f"{name} has points with {points.shape[1]} features but X has {n_features}; give each "
            "point the features of X."
        )
    return points


def choose_basis(
    X: Matrix, n_basis: int | None, basis: str | ArrayLike, random_state: RandomState
) -> NDArray[np.intp]:
    """Row numbers of the basis items.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_items, n_features)
        The training items.
    n_basis : int or None
        Number of basis items; None for given row numbers.
    basis : {"random", "kmeans++"} or array of int
        How to select the items, or row numbers. In [RankRLS09] section 3.5 random selection is no
        worse than more elaborate methods.
    random_state : int, RandomState or None
        Seed.

    Returns
    -------
    ndarray of int
        Row numbers.
    """
    n_items = X.shape[0]
    if not isinstance(basis, str):
        return _check_row_numbers(basis, n_basis, n_items)
    check_option("basis", basis, BASES)
    if not isinstance(n_basis, numbers.Integral) or not 1 <= n_basis <= n_items:
        raise ValueError(
            f"n_basis={n_basis!r}; expected a whole number from 1 to {n_items}, the number of "
            "training items."
        )
    rng = check_random_state(random_state)
    if basis == "random":
        return np.sort(rng.choice(n_items, size=n_basis, replace=False)).astype(np.intp)
    from sklearn.cluster import kmeans_plusplus

    if not sp.issparse(X):
        X = X - X.mean(axis=0, dtype=np.float64)  # distances far from zero would cancel
    _, rows = kmeans_plusplus(X, n_basis, random_state=rng)
    return np.unique(rows).astype(np.intp)  # a row may be chosen twice


def _check_row_numbers(basis: ArrayLike, n_basis: int | None, n_items: int) -> NDArray[np.intp]:
    """The row numbers of basis items, checked."""
    rows = np.asarray(as_array(basis, "basis"))
    if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"basis has dtype {rows.dtype} and shape {rows.shape}; expected a flat array of "
            "row numbers or, for rankers that accept points, an array with the features of X."
        )
    if n_basis is not None and n_basis != len(rows):
        raise ValueError(f"n_basis={n_basis} but basis names {len(rows)} rows; drop n_basis.")
    return check_numbers("basis", "row", rows, n_items)


def check_numbers(
    name: str, axis_name: str, numbers: NDArray[Any], axis_length: int
) -> NDArray[np.intp]:
    """Numbers of rows or columns of X, checked: in range and without duplicates."""
    out_of_range = numbers[(numbers < 0) | (numbers >= axis_length)]
    if len(out_of_range):
        raise ValueError(
            f"{name} names {axis_name} {out_of_range[0]}, but the {axis_length} {axis_name}s of X "
            "are numbered from 0."
        )
    if len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"{name} names a {axis_name} twice; name each once.")
    return numbers.astype(np.intp)


def basis_root(K_bb: Array) -> Array:
    """U with ``U Uᵀ = K_bb⁺``, rank-revealing: duplicates and near duplicates are merged.

    With R = K_mb U the primal solution on R is that of sparse RankRLS, [RankRLS09] equations 41
    and 42, and U w are the coefficients of the basis items.
    """
    # a matrix U with U Uᵀ = K_bb⁺, the pseudoinverse, for the kernel matrix of the basis items
    with allow_threads(len(K_bb) ** 3):
        # U = V diag(eigenvalues)^(−½)
        eigenvalues, vectors = scipy.linalg.eigh(K_bb)  # in ascending order
    rounding_error = eigenvalues[-1] * len(eigenvalues) * np.finfo(float).eps
    is_positive = eigenvalues > rounding_error
    return np.asarray(vectors[:, is_positive] / np.sqrt(eigenvalues[is_positive]))


def basis_map(
    kernel: Kernel,
    X: Matrix,
    n_basis: int | None,
    basis: str | ArrayLike,
    random_state: RandomState,
    columns: Indices | None = None,
) -> BasisFeatures:
    """The map of a kernel on basis items.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    X : array or sparse matrix of shape (n_items, n_features)
        The training items.
    n_basis, basis, random_state
        As in `choose_basis`; `basis` may also be an array of points with the features of X.
    columns : ndarray of int, optional
        Columns that the kernel compares; all by default.

    Returns
    -------
    BasisFeatures
        On rows of X or on the points.
    """
    # the basis is given as points, or as rows of X
    rows: Indices | None = None
    points = read_points("basis", basis, X.shape[1])
    if points is None:
        X = take_columns(X, columns)
        rows, basis_items = _basis_rows(kernel, X, n_basis, basis, random_state)
    else:
        _check_basis_points(kernel, points, n_basis)
        basis_items = take_columns(points, columns)
    n_items = basis_items.shape[0]
    check_matrix_fits(n_items, n_items, "the kernel matrix of a basis", "use a smaller n_basis")

    if kernel.is_precomputed:  # rows of kernel values to all training items
        root = basis_root(kernel.matrix(basis_items[:, rows]))
        stored_items = None
    else:
        root = basis_root(kernel.matrix(basis_items))
        stored_items = basis_items
    if not root.shape[1]:  # every kernel value is zero, and so is every score
        root = np.zeros((n_items, 1))
    return BasisFeatures(kernel, columns, rows, stored_items, root)


def _basis_rows(
    kernel: Kernel,
    X: Matrix,
    n_basis: int | None,
    basis: str | ArrayLike,
    random_state: RandomState,
) -> tuple[Indices, Matrix]:
    """Numbers of the basis items, and these rows of X."""
    n_items, n_columns = X.shape
    if kernel.is_precomputed and (sp.issparse(X) or n_items != n_columns):
        raise ValueError(
            f"kernel='precomputed' uses {n_columns} columns of {n_items} items; expected the dense "
            "square matrix of kernel values between all training items; a View selects it with "
            "columns."
        )
    rows = choose_basis(X, n_basis, basis, random_state)
    return rows, X[rows]


def _check_basis_points(kernel: Kernel, points: Matrix, n_basis: int | None) -> None:
    if kernel.is_precomputed:
        raise ValueError(
            "basis contains points, for which kernel='precomputed' has no kernel values; pass row "
            "numbers of the kernel matrix."
        )
    if n_basis is not None and n_basis != points.shape[0]:
        raise ValueError(f"n_basis={n_basis} but basis has {points.shape[0]} points; drop n_basis.")
