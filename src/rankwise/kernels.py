"""Kernels by name, and the factors R with K ≈ R Rᵀ that a basis of items gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS, pairwise_kernels
from sklearn.utils import check_random_state

__all__ = ["Kernel", "KernelRoot", "basis_root", "choose_basis", "kernel_root"]

Array = NDArray[np.float64]
CHUNK_ENTRIES = 2**23


@dataclass(frozen=True)
class Kernel:
    """A kernel function: one of scikit-learn's names, a callable on two rows, or "precomputed".

    Attributes
    ----------
    function : str or callable
        Name or function.
    gamma, degree, coef0
        Parameters of the named kernels; each kernel takes those that it knows.
    params : dict
        Further keyword arguments of a callable.
    """

    function: str | Callable[..., float]
    gamma: float | None = None
    degree: float = 3
    coef0: float = 1
    params: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [*sorted(PAIRWISE_KERNEL_FUNCTIONS), "precomputed"]
        if not callable(self.function) and self.function not in known:
            raise ValueError(
                f"kernel={self.function!r} is unknown; choose one of {', '.join(known)}, "
                "or pass a function of two rows."
            )
        if self.gamma is not None and not self.gamma > 0:
            raise ValueError(f"gamma={self.gamma!r}; expected a positive number or None.")
        if self.params and not callable(self.function):
            raise ValueError(
                f"kernel_params={self.params!r} is for callable kernels; the kernel "
                f"{self.function!r} takes gamma, degree and coef0."
            )

    @property
    def is_linear(self) -> bool:
        """Whether the model is a weight per feature."""
        return isinstance(self.function, str) and self.function == "linear"

    @property
    def is_precomputed(self) -> bool:
        """Whether X is the kernel matrix itself."""
        return isinstance(self.function, str) and self.function == "precomputed"

    def matrix(self, X: Any, Y: Any = None) -> Array:
        """Kernel values between the rows of X and of Y (of X if None), as float64."""
        if self.is_precomputed:
            return np.array(X, dtype=np.float64)
        if callable(self.function):
            K = pairwise_kernels(X, Y, metric=self.function, **self.params)
        else:
            named = {"degree": self.degree, "coef0": self.coef0}
            if self.gamma is not None:  # None is the default of each kernel, not always a value
                named["gamma"] = self.gamma
            K = pairwise_kernels(X, Y, metric=self.function, filter_params=True, **named)
        K = K.toarray() if hasattr(K, "toarray") else K
        return np.asarray(K, dtype=np.float64)

    def product(self, X: Any, Y: Any, coef: Array) -> Array:
        """``k(X, Y) coef``, a chunk of rows of X at a time."""
        if self.is_precomputed:
            return np.asarray(X @ coef)
        size = max(1, CHUNK_ENTRIES // max(1, Y.shape[0]))
        out = np.empty((X.shape[0], *coef.shape[1:]))
        for start in range(0, X.shape[0], size):
            out[start : start + size] = self.matrix(X[start : start + size], Y) @ coef
        return out


def choose_basis(X: Any, n_basis: int, how: str | ArrayLike, random_state: Any) -> NDArray[np.intp]:
    """Row numbers of the basis items.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_items, n_features)
        The training items.
    n_basis : int
        How many.
    how : {"random", "kmeans++"} or array of int
        [RankRLS09] section 3.5 finds random choice no worse than more careful ones.
    random_state : int, RandomState or None
        Seed.
    """
    if not isinstance(how, str):
        rows: NDArray[np.intp] = np.asarray(how, dtype=np.intp)
        return rows
    rng = check_random_state(random_state)
    if how == "random":
        return np.sort(rng.choice(X.shape[0], size=n_basis, replace=False)).astype(np.intp)
    from sklearn.cluster import kmeans_plusplus

    _, rows = kmeans_plusplus(X, n_basis, random_state=rng)
    return np.unique(rows).astype(np.intp)


def basis_root(K_bb: Array) -> Array:
    """U with ``U Uᵀ = K_bb⁺``, rank-revealing: duplicates and near duplicates are merged.

    With R = K_mb U the primal solution on R is that of sparse RankRLS, [RankRLS09] equations 41
    and 42, and U w are the coefficients of the basis items.
    """
    values, vectors = scipy.linalg.eigh(K_bb)
    keep = values > values[-1] * len(values) * np.finfo(float).eps
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))


class KernelRoot(NamedTuple):
    """Features R of the items with ``K = R Rᵀ``: the empirical kernel map.

    Attributes
    ----------
    features : ndarray of shape (n_items, rank)
        R.
    coefficients : callable
        Takes weights w on R to dual coefficients a with ``K a = R w``.
    is_definite : bool
        False if K has negative eigenvalues, which R leaves out.
    """

    features: Array
    coefficients: Callable[[Array], Array]
    is_definite: bool


def kernel_root(K: Array) -> KernelRoot:
    """The empirical kernel map of a whole kernel matrix, [RankRLS09] section 4.2; K is overwritten.

    A pivoted Cholesky factorisation, which also finds the rank; the dual coefficients are on the
    pivots alone. A matrix that is not positive semidefinite goes by its eigenvectors instead.
    """
    probe = np.random.default_rng(0).standard_normal(len(K))
    exact, diagonal = K @ probe, np.diagonal(K).copy()
    columns_first = K if K.flags.f_contiguous else K.T
    factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(columns_first, lower=1, overwrite_a=1)
    order = pivots - 1
    R = np.zeros((len(K), rank))
    for row, item in enumerate(order):
        width = min(row + 1, rank)
        R[item, :width] = factor[row, :width]
    if np.linalg.norm(R @ (R.T @ probe) - exact) > 1e-6 * np.linalg.norm(exact):
        U = basis_root(_from_upper(factor, diagonal))
        return KernelRoot(K @ U, lambda w: np.asarray(U @ w), False)

    def on_pivots(w: Array) -> Array:
        a = np.zeros((len(R), *w.shape[1:]))
        chosen = order[:rank]
        a[chosen] = scipy.linalg.solve_triangular(R[chosen], w, lower=True, trans="T")
        return a

    return KernelRoot(R, on_pivots, True)


def _from_upper(factor: Array, diagonal: Array) -> Array:
    """The symmetric matrix whose upper triangle a factorisation of the lower one left alone."""
    for row in range(1, len(factor)):
        factor[row, :row] = factor[:row, row]
    factor[np.diag_indices(len(factor))] = diagonal
    return factor
