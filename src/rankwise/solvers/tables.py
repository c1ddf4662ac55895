"""Complete tables: all alphas from two decompositions, and rows or columns held out. Exact.

Y is a table (q × t), F = G A K its scores by kernels of the rows and of the columns. RankRLS over
the pairs of cells of each row minimizes

    Σ_i ‖C (y_i − f_i)‖² + ρ ‖f‖²,      ρ = α W/t = α q (t − 1)/2,   C = I − 11ᵀ/t

With ``G = U Γ Uᵀ``, ``C K C = V Σ Vᵀ`` and ``Z = Uᵀ Y V``,

    A = U [Z_ab / (ρ + γ_a σ_b)] Vᵀ

so that every alpha is elementwise arithmetic. Labels instead of columns (``K = I``) have no V: the
functions here take None for the spectrum of the columns.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from rankwise.arrays import Array
from rankwise.solvers.hold_out_items import Spectrum


def table_shift(alpha: float, n_rows: int, n_columns: int) -> float:
    """ρ of a table of this size."""
    return alpha * n_rows * (n_columns - 1) / 2


class CompleteTable:
    """A table with the spectra of its two sides.

    Parameters
    ----------
    rows : Spectrum
        Of the kernel of the rows; only eigenvalues that are not zero.
    columns : Spectrum or None
        Of the kernel of the columns, centered; None for labels, which are all different.
    Y : ndarray of shape (q, t)
        Scores, none missing.
    """

    def __init__(self, rows: Spectrum, columns: Spectrum | None, Y: Array) -> None:
        self._rows, self._columns = rows, columns
        self._Y = Y - Y.mean(axis=1, keepdims=True)
        self.values = rows.values[:, None] * (1.0 if columns is None else columns.values)

    @cached_property
    def _down(self) -> Array:
        """``Uᵀ Y C``."""
        return np.asarray(self._rows.vectors.T @ self._Y)

    @cached_property
    def _across(self) -> Array:
        """``Y C V``."""
        return self._Y if self._columns is None else np.asarray(self._Y @ self._columns.vectors)

    @cached_property
    def _both(self) -> Array:
        """Z."""
        return self._down if self._columns is None else self._down @ self._columns.vectors

    @cached_property
    def _row_squares(self) -> Array:
        return self._rows.vectors**2

    @cached_property
    def _beyond_rows(self) -> tuple[Array, Array]:
        """What U does not span: of ``Y C V``, and of the length of each row."""
        rest = 1.0 - self._row_squares.sum(axis=1, keepdims=True)
        return self._across - self._rows.vectors @ self._both, np.maximum(rest, 0.0)

    @cached_property
    def _beyond_columns(self) -> tuple[Array, Array]:
        """What V and the constant do not span: of ``Uᵀ Y C``, and of each column."""
        assert self._columns is not None
        k = 1.0 - 1.0 / self._Y.shape[1]
        rest = k - self._column_squares.sum(axis=1)
        return self._down - self._both @ self._columns.vectors.T, np.maximum(rest, 0.0)

    @cached_property
    def _column_squares(self) -> Array:
        if self._columns is None:
            raise ValueError("labels have no kernel by which a new one could be scored.")
        return self._columns.vectors**2

    def coefficients(self, shift: float) -> Array:
        """``Uᵀ A V``."""
        return np.asarray(self._both / (shift + self.values))

    def without_rows(self, shift: float) -> Array:
        """Scores of each row by a model without it; `shift` is that of q − 1 rows.

        Each direction V_b is a ridge regression over the rows. With ``R = γσ/(ρ + γσ)`` and the
        leverages ``H = (U∘U) R``,

            F V = (U (R∘Z) − H∘(Y V)) / (1 − H)
        """
        U, squares, target = self._rows.vectors, self._row_squares, self._across
        if self._is_large(shift):
            R = self.values / (shift + self.values)
            H = squares @ R
            scores = (U @ (R * self._both) - H * target) / (1.0 - H)
        else:  # 1 − H from its own terms, which do not cancel
            S = shift / (shift + self.values)
            beyond, rest = self._beyond_rows
            scores = target - (beyond + U @ (S * self._both)) / (rest + squares @ S)
        return scores if self._columns is None else np.asarray(scores @ self._columns.vectors.T)

    def without_columns(self, shift: float) -> Array:
        """Scores of each column by a model without it, less the mean score of the others.

        `shift` is that of t − 1 columns. Each direction U_a is a ridge regression over the columns
        with a free intercept. With R as above, ``H = R (V∘V)ᵀ`` and ``k = 1 − 1/t``,

            Uᵀ F = ((R∘Z) Vᵀ − H∘(Uᵀ Y C)/k) / (k − H)
        """
        return np.asarray(self._rows.vectors @ self._without_columns(shift))

    def _without_columns(self, shift: float) -> Array:
        assert self._columns is not None
        V, squares, target = self._columns.vectors, self._column_squares, self._down
        k = 1.0 - 1.0 / self._Y.shape[1]
        if self._is_large(shift):
            R = self.values / (shift + self.values)
            H = R @ squares.T
            return np.asarray(((R * self._both) @ V.T - H * target / k) / (k - H))
        S = shift / (shift + self.values)
        beyond, rest = self._beyond_columns
        residual = (beyond + (S * self._both) @ V.T) / (rest + S @ squares.T)
        return np.asarray(target / k - residual)

    def new_rows_without_columns(self, features: Array, shift: float) -> Array:
        """As `without_columns` for rows that the table does not have, such as `features`.

        What `without_columns` finds for the direction U_a, divided by γ_a; where γ_a is small, from
        ``R/γ = σ/(ρ + γσ)``.
        """
        assert self._columns is not None
        sigma, gamma = self._columns.values, self._rows.values
        scores = self._without_columns(shift)
        small = np.abs(gamma) * np.abs(sigma).max(initial=0.0) < shift
        scores[~small] /= gamma[~small, None]
        k = 1.0 - 1.0 / self._Y.shape[1]
        R = sigma / (shift + self.values[small])
        H = R @ self._column_squares.T
        fitted = (R * self._both[small]) @ self._columns.vectors.T
        scores[small] = (fitted - H * self._down[small] / k) / (k - gamma[small, None] * H)
        return np.asarray(features @ scores)

    def _is_large(self, shift: float) -> bool:
        return bool(shift > np.abs(self.values).max(initial=0.0))
