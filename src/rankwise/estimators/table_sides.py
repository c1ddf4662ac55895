"""The kernel of the rows or of the columns of a table: what is checked, trained on and scored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils import check_array

from rankwise.arrays import Array
from rankwise.features import FeatureMap, Kernel
from rankwise.frames import as_array, column_names
from rankwise.machine import check_matrix_fits
from rankwise.real_numbers import check_items
from rankwise.solvers.table_sides import Side

DELTA = "delta"
MATRICES = 4.0  # kernel matrices in memory at a time: values, vectors, and what is made of them


class SideKernel(NamedTuple):
    """The kernel of one side.

    Attributes
    ----------
    what : {"rows", "columns"}
        For messages.
    kernel : Kernel or None
        None for "delta": an item is like itself only.
    """

    what: str
    kernel: Kernel | None

    @property
    def is_delta(self) -> bool:
        """Whether the items have names only."""
        return self.kernel is None

    @property
    def is_precomputed(self) -> bool:
        """Whether kernel values are given."""
        return self.kernel is not None and self.kernel.is_precomputed

    @property
    def is_linear(self) -> bool:
        """Whether the model has weights of features."""
        return self.kernel is not None and self.kernel.is_linear

    def names(self, items: Any) -> list[str] | None:
        """Names of the features, if the items are a frame of them."""
        return None if self.kernel is None or self.is_precomputed else column_names(items)

    def check(
        self, items: Any, n_features: int | None = None, names: list[str] | None = None
    ) -> Any:
        """Features or kernel values of items, checked; names for "delta".

        `n_features` and `names` are what a fitted model expects.
        """
        if self.kernel is None:
            return _check_names(items)
        if items is None:
            raise ValueError(f"{self.what} is None; only column_kernel='delta' needs no features.")
        check_items(self.what, items)
        found = self.names(items)
        if names is not None and found is not None and found != names:
            raise ValueError(
                f"{self.what} has the features {_some(found)}; the model was trained with "
                f"{_some(names)}, in this order: pass {self.what}[names] with these names."
            )
        items = as_array(items, self.what)
        checked = check_array(
            items,
            accept_sparse=False if self.is_precomputed else "csr",
            dtype=[np.float64, np.float32],
            input_name=self.what,
            copy=n_features is None,  # a model keeps them, and the caller may change them
        )
        if n_features is not None and checked.shape[1] != n_features:
            unit = "kernel values to the training items" if self.is_precomputed else "features"
            raise ValueError(
                f"{self.what} has {checked.shape[1]} columns; the model was trained with "
                f"{n_features} {unit}."
            )
        return checked

    def check_count(self, items: Any, n: int) -> None:
        """As many items as the table has; square if kernel values are given."""
        shape = items.shape
        side = "rows" if self.what == "rows" else "columns"
        if self.is_precomputed and shape != (n, n):
            raise ValueError(
                f"{self.what} has shape {shape}, but Y has {n} {side}; a precomputed kernel of the "
                f"{self.what} is the square matrix of kernel values between them, ({n}, {n})."
            )
        if shape[0] != n:
            other = "columns" if self.what == "rows" else "rows"
            raise ValueError(
                f"{self.what} has {shape[0]} items but Y has {n} {side}; give one for each, and "
                f"look whether {self.what} and {other} were swapped."
            )

    def make(self, items: Any, *, constant: bool, is_centered: bool) -> Side:
        """What the solver sees: features if they are fewer than items, else kernel values.

        Refused before memory is taken if a kernel matrix would not fit.
        """
        n, added = items.shape[0], self.mean_square(items) if constant else 0.0
        if self.is_linear and items.shape[1] < n:
            R = items.toarray() if sp.issparse(items) else items
            R = np.asarray(R, dtype=np.float64)
            column = np.full((n, 1), np.sqrt(added))
            return Side(np.hstack([R, column]) if constant else R, False, is_centered)
        check_matrix_fits(
            n,
            n,
            f"a kernel matrix of the {self.what}",
            f"use a linear kernel on fewer features, or fewer {self.what}",
            n_matrices=MATRICES,
        )
        K = np.eye(n) if self.kernel is None else self.kernel.matrix(items)
        return Side(K + added, True, is_centered)

    def mean_square(self, items: Any) -> float:
        """Mean of k(x, x): the constant that an intercept adds to the kernel."""
        if self.kernel is None:
            return 1.0
        if self.is_precomputed:
            found = np.diagonal(items).mean()
        elif self.kernel.is_linear:
            squares = items.multiply(items) if sp.issparse(items) else np.square(items)
            found = squares.sum() / items.shape[0]
        else:
            found = np.mean(
                [self.kernel.matrix(items[k : k + 1])[0, 0] for k in range(items.shape[0])]
            )
        return float(found) or 1.0

    def split(self, B: Array, items: Any, side: Side, *, constant: bool) -> tuple[Array, Array]:
        """Weights of the functions of this side, and what the constant among them adds.

        B has a row for each column of ``side.matrix``.
        """
        shared = np.zeros(B.shape[1])
        if constant:
            added = self.mean_square(items)
            shared = added * B.sum(axis=0) if side.is_kernel else np.sqrt(added) * B[-1]
            B = B if side.is_kernel else B[:-1]
        if self.is_linear and side.is_kernel:
            B = np.asarray(items.T @ B)
        return B, shared

    def scores(self, items: Any, fitted: Any, weights: Array) -> Array:
        """``k(items, fitted) weights``, kernel values in blocks; weights of features if linear."""
        if self.kernel is None:
            return np.asarray(weights[self._places(items, fitted)])
        kept = None if self.is_precomputed or self.is_linear else fitted
        features = FeatureMap(self.kernel, None, len(weights), None, kept)
        return np.asarray(features.scores(items, weights))

    def _places(self, names: NDArray[Any], fitted: NDArray[Any]) -> list[int]:
        place = {name: k for k, name in enumerate(fitted.tolist())}
        unknown = [name for name in names.tolist() if name not in place]
        if unknown:
            raise ValueError(
                f"the column {unknown[0]!r} is unknown to the model, which was trained with "
                f"{len(place)} columns without features; give columns of these, or train with "
                "features of the columns."
            )
        return [place[name] for name in names.tolist()]


def side_kernel(what: str, function: Any, gamma: Any, params: dict[str, Any] | None) -> SideKernel:
    """The kernel that these parameters name, checked."""
    params = dict(params or {})
    if isinstance(function, str) and function == DELTA:
        if what == "rows":
            raise ValueError(
                "row_kernel='delta': rows without features teach nothing about other rows. If the "
                "columns have features, swap rows and columns, with column_kernel='delta' and "
                "ranked='rows'."
            )
        if gamma is not None or params:
            raise ValueError("column_kernel='delta' has no parameters; leave them out.")
        return SideKernel(what, None)
    if callable(function):
        return SideKernel(what, Kernel(function, params=params))
    unknown = sorted(set(params) - {"degree", "coef0"})
    if unknown:
        raise ValueError(
            f"{what[:-1]}_kernel_params has {unknown[0]!r}; a named kernel takes 'degree' and "
            f"'coef0' there, and {what[:-1]}_gamma."
        )
    return SideKernel(what, Kernel(function, gamma, **params))


def _some(names: list[str]) -> str:
    return ", ".join(names[:6]) + (f", … ({len(names)} in all)" if len(names) > 6 else "")


def _check_names(items: Any) -> NDArray[Any]:
    """Names of columns without features, each once."""
    names = np.asarray(as_array(items, "columns"))
    if names.ndim != 1 or names.dtype.kind not in "iuUO":
        raise ValueError(
            f"columns has dtype {names.dtype} and shape {names.shape}; with column_kernel='delta' "
            "give a name (text or whole number) for each column, or None."
        )
    names = names if names.dtype.kind in "iu" else names.astype(str)
    if len(np.unique(names)) < len(names):
        raise ValueError("columns names a column twice; give each name once.")
    return names
