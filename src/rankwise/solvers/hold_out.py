"""Scores of held-out items as a model trained without them would give, without training again.

All functions here are exact (DESIGN.md section 4). They take the objective in parts

    Σ_parts share / T · (fᵀ A f − 2 fᵀ t)  +  α ‖f‖²

where A and T are sums over the items in the sense that a fold which no edge leaves can be taken
out of both: A becomes A − A_U and T becomes T − T_U. The pairs of a graph are such a part (T = W),
the items of a regression another (T = m).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from rankwise.graphs import GraphRoot
from rankwise.solvers.closed_form import solve_shifted

__all__ = ["Part", "hold_out_dual", "hold_out_few", "hold_out_primal"]

Array = NDArray[np.float64]
Fold = NDArray[np.intp]


class Part(NamedTuple):
    """One part of the objective, seen through features or a kernel.

    Attributes
    ----------
    share : float
        Weight of the part, 1 − β or β.
    white : ndarray of shape (m, p)
        ``Fᵀ R`` with ``F Fᵀ = A``; F joins no item of a fold to one outside.
    target : ndarray of shape (m, n_outputs)
        t.
    amount : ndarray of shape (m,)
        What each item contributes to T.
    """

    share: float
    white: Array
    target: Array
    amount: Array


def hold_out_primal(
    R: Array, parts: Sequence[Part], folds: Sequence[Fold], alphas: Array
) -> Iterator[tuple[Fold, Array]]:
    """Held-out scores of each fold, shape (|U|, n_outputs, n_alphas).

        f_U = R_U (Σ ω (Rᵀ A R − R_Uᵀ A_U R_U) + αI)⁻¹ Σ ω (Rᵀ t − R_Uᵀ t_U),   ω = share/(T − T_U)

    The Gram matrix of each fold is taken out of that of all, and one tridiagonal reduction of the
    p × p rest serves all alphas. A fold that holds most of the Gram matrix is not subtracted but
    the rest is added up, so that no digits cancel.
    """
    wholes = [_Whole(part, R) for part in parts]
    for U in folds:
        R_U = R[U]
        gram, moment = wholes[0].without(U, R_U)
        for whole in wholes[1:]:
            more_gram, more_moment = whole.without(U, R_U)
            gram, moment = gram + more_gram, moment + more_moment
        coef = _solve_definite(gram, moment, alphas)
        yield U, (R_U @ coef.reshape(len(gram), -1)).reshape(len(U), -1, len(alphas))


class _Whole:
    """A part of the objective summed over all items, from which folds are taken."""

    def __init__(self, part: Part, R: Array) -> None:
        self._part = part
        self._gram = part.white.T @ part.white
        self._moment = R.T @ part.target
        self._amount = part.amount.sum()

    def without(self, U: Fold, R_U: Array) -> tuple[Array, Array]:
        """``ω (Rᵀ A R − R_Uᵀ A_U R_U)`` and ``ω (Rᵀ t − R_Uᵀ t_U)``."""
        part = self._part
        white_U = part.white[U]
        gram_U = white_U.T @ white_U
        rest = self._gram - gram_U
        if rest.trace() < gram_U.trace():
            others = np.delete(part.white, U, axis=0)
            rest = others.T @ others
        weight = part.share / (self._amount - part.amount[U].sum())
        rest *= weight
        return rest, weight * (self._moment - R_U.T @ part.target[U])


def _solve_definite(gram: Array, moment: Array, alphas: Array) -> Array:
    """``(G + αI)⁻¹ m``, shape (p, n_outputs, n_alphas); G is semidefinite but for rounding."""
    x, is_definite = solve_shifted(gram.copy(), moment, alphas)
    if is_definite:
        return x.transpose(1, 2, 0)
    values, Q = scipy.linalg.eigh(gram, check_finite=False)
    shrink = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas)
    return np.asarray(np.einsum("ij,jo,jk->iok", Q, Q.T @ moment, shrink, optimize=True))


def hold_out_few(
    R: Array, part: Part, folds: Sequence[Fold], alphas: Array
) -> Iterator[tuple[Fold, Array]]:
    """As `hold_out_primal` for one part and folds that are small beside p.

    With ``Rᵀ A R = Q Λ Qᵀ`` decomposed once, Z = Fᵀ R Q and ``D = (Λ + λ)⁻¹``, taking out a fold is
    a downdate of rank |U|:

        f_U = R_U Q (D + D Z_Uᵀ (I − Z_U D Z_Uᵀ)⁻¹ Z_U D) Qᵀ (Rᵀ t − R_Uᵀ t_U),   λ = α (T − T_U)
    """
    values, Q = scipy.linalg.eigh(part.white.T @ part.white, check_finite=False)
    values = np.maximum(values, 0.0)
    white, features = part.white @ Q, R @ Q
    moment = features.T @ part.target
    total = part.amount.sum() / part.share
    for U in folds:
        Z, P = white[U], features[U]
        rest = moment - P.T @ part.target[U]
        scale = total - part.amount[U].sum() / part.share
        shrink = 1.0 / (values + scale * alphas[:, None])
        ZD = Z * shrink[:, None, :]  # (n_alphas, |U|, p), and so are the others
        u = shrink[:, :, None] * rest
        lift = np.linalg.solve(np.eye(len(U)) - ZD @ Z.T, Z @ u)
        yield U, (P @ (u + ZD.transpose(0, 2, 1) @ lift)).transpose(1, 2, 0)


def hold_out_dual(
    K: Array,
    root: GraphRoot,
    target: Array,
    amount: Array,
    folds: Sequence[Fold],
    alphas: Array,
) -> Iterator[tuple[Fold, Array]]:
    """As `hold_out_primal` for a kernel matrix and one part; K is overwritten.

    With ``F Fᵀ = A``, ``F b = t``, ``Fᵀ K F = Q Λ Qᵀ`` decomposed once and ``G = Q (Λ + λ)⁻¹ Qᵀ``:

        c = G b,    f_U = (K F c)_U − (K F G)_UU (G_UU)⁻¹ c_U,    λ = α (T − T_U)

    [RankRLS09] equation 33, with a symmetric G.
    """
    KF = root.adjoint(K).T
    values, Q = scipy.linalg.eigh(root.adjoint(KF), check_finite=False)
    z = Q.T @ root.solve(target)
    KFQ = KF @ Q
    total = amount.sum()
    for U in folds:
        Q_U, KFQ_U = Q[U], KFQ[U]
        scores = np.empty((len(U), z.shape[1], len(alphas)))
        for k, alpha in enumerate(alphas):
            shrink = 1.0 / (values + alpha * (total - amount[U].sum()))
            G_UU = (Q_U * shrink) @ Q_U.T
            moved = KFQ_U * shrink
            c_U = Q_U @ (shrink[:, None] * z)
            scores[:, :, k] = moved @ z - (moved @ Q_U.T) @ scipy.linalg.solve(
                G_UU, c_U, assume_a="sym", check_finite=False
            )
        yield U, scores
