"""Coefficients of the models that are trained without each unit, without training again.

The algebra of `rankwise.solvers.hold_out` and `rankwise.solvers.hold_out_items` with another last
step: where those give the scores of the items that are held out, these give the whole model, so
that it can score any item. A unit is a set of items that no edge leaves, of items of one complete
list, or of edges; units may overlap, and an empty one gives the model of all data.

Coefficients have the shape (n, n_units, n_outputs, n_alphas).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from rankwise.arrays import Array, Indices
from rankwise.graphs.roots import GraphRoot
from rankwise.solvers.hold_out import Part, transposed_eigh, weights_without
from rankwise.solvers.hold_out_items import (
    Resolvent,
    Spectrum,
    fitted,
    resolvent,
    rest_without,
)


def leave_out_primal(
    R: Array, parts: Sequence[Part], units: Sequence[Indices], alphas: Array
) -> Array:
    """Weights of the features without each unit."""
    out = _empty(R.shape[1], units, parts[0].target, alphas)
    for numbers, w in weights_without(R, parts, units, alphas):
        out[:, numbers] = w.transpose(1, 0, 2, 3)
    return out


def leave_out_dual(
    K: Array,
    root: GraphRoot,
    target: Array,
    amount: Array,
    units: Sequence[Indices],
    alphas: Array,
) -> Array:
    """Dual coefficients for a kernel matrix and one part; K is overwritten.

    With ``F Fᵀ = A``, ``F b = t``, ``S = Fᵀ K F = Q Λ Qᵀ`` decomposed once, z = Qᵀ b and
    ``D = (Λ + λ)⁻¹``, the model without U is

        a = F c,    c = Q (D z − D Q_Uᵀ (Q_U D Q_Uᵀ)⁻¹ Q_U D z),    λ = α (T − T_U)

    c is zero on U ([RankRLS09] equation 33, with a symmetric G = Q D Qᵀ).
    """
    values, K[:] = transposed_eigh(root.sandwich(K))
    z = K @ root.solve(target)
    total = amount.sum()
    out = _empty(len(K), units, target, alphas)
    for k, U in enumerate(units):
        V = np.ascontiguousarray(K[:, U])  # Q_Uᵀ
        for a, alpha in enumerate(alphas):
            D = 1.0 / (values + alpha * (total - amount[U].sum()))
            c = D[:, None] * z
            if len(U):
                DV = D[:, None] * V
                c -= DV @ scipy.linalg.solve(V.T @ DV, V.T @ c, assume_a="sym")
            out[:, k, :, a] = c
    flat = K.T @ out.reshape(len(K), -1)
    for k, U in enumerate(units):
        flat.reshape(out.shape)[U, k] = 0.0  # what rounding leaves
    return root.apply(flat).reshape(out.shape)


def leave_out_items(
    basis: Spectrum,
    R: Array | None,
    y: Array,
    units: Sequence[Indices],
    alphas: Array,
    beta: float,
) -> Array:
    """Items of one complete list left out: dual coefficients, or weights of the features R.

        c_without = c − G_{·U} (G_UU)⁻¹ c_U,     w = Rᵀ c

    with the G of `rankwise.solvers.hold_out_items` for the list without U.
    """
    y = y - y.mean(axis=0) if beta == 0 else y
    left = _Left(basis, R)
    out = _empty(left.size, units, y, alphas)
    rests = [(len(U), rest_without(basis, U)) for U in units]
    for size, rest in sorted(set(rests)):
        numbers = [k for k, other in enumerate(rests) if other == (size, rest)]
        for a, alpha in enumerate(alphas):
            inverse = resolvent(basis, float(alpha), beta, rest)
            c, _ = fitted(basis, inverse, y)
            if size == 1:
                items = np.concatenate([units[k] for k in numbers])
                lift = c[items] / inverse.diagonal[items, None]
                moved = left.times_G(inverse, items)[:, :, None] * lift
                out[..., a][:, numbers] = left.times(c)[:, None] - moved
                continue
            for k in numbers:
                U = units[k]
                V_U, v_U = basis.vectors[U], inverse.v[U]
                G_UU = (V_U * inverse.factors) @ V_U.T + np.diag(inverse.rest[U])
                G_UU -= np.outer(v_U, v_U) / inverse.s
                moved = left.times_G(inverse, U) @ np.linalg.solve(G_UU, c[U])
                out[:, k, :, a] = left.times(c) - moved
    if R is None:
        for k, U in enumerate(units):
            out[U, k] = 0.0  # what rounding leaves
    return out


class _Left:
    """Rᵀ from the left, or nothing."""

    def __init__(self, basis: Spectrum, R: Array | None) -> None:
        self._basis, self._R = basis, R
        self._TV = self.times(basis.vectors)
        self.size = len(self._TV)

    def times(self, c: Array) -> Array:
        return c if self._R is None else self._R.T @ c

    def times_G(self, inverse: Resolvent, U: Indices) -> Array:
        """``Rᵀ G`` in the columns U."""
        v = self.times(inverse.v)
        found = (self._TV * inverse.factors) @ self._basis.vectors[U].T
        found -= np.outer(v / inverse.s, inverse.v[U])
        if inverse.rest.any():
            rows = np.eye(len(v))[:, U] if self._R is None else self._R[U].T
            found += rows * inverse.rest[U]
        return np.asarray(found)


def _empty(n: int, units: Sequence[Indices], target: Array, alphas: Array) -> Array:
    return np.empty((n, len(units), target.shape[1], len(alphas)))
