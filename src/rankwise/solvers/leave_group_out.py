"""Models without some items, and the scores that they give these, without training again.

All functions here are exact (docs/exact_cross_validation.md). They take the objective in terms

    Σ_parts share / T · (fᵀ A f − 2 fᵀ t)  +  α ‖f‖²

A fold that no edge leaves can be taken out of A and of T: A becomes A − A_U, and T becomes T − T_U.
The pairs of a graph are one term (T = W), the items of a regression are another (T = m).
Scores go to `out`, of shape (m, n_outputs, n_alphas).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.linalg import lapack

from rankwise.arrays import Array, Indices
from rankwise.caching import cached_property
from rankwise.graphs.laplacian_roots import GraphRoot
from rankwise.losses.profiled import partial_out
from rankwise.runtime.threads import allow_threads
from rankwise.solvers.least_squares import solve_shifted

Fold = Indices
BATCH_ENTRIES = 2**18  # numbers in a batch of folds: as many as fit in a cache
LARGE_BATCH = 2**21  # the same for blocks of a kernel matrix that is much larger
ROUNDING = np.finfo(float).eps
SHORT = 4  # a fold is short if there are so many times more features


@dataclass(frozen=True, eq=False)
class WhitenedTerm:
    """One term of the objective, seen through features or a kernel.

    Attributes
    ----------
    share : float
        Weight of the term, 1 − β or β.
    white : ndarray of shape (m, p)
        ``Fᵀ R`` with ``F Fᵀ = A``; F joins no item of a fold to one outside.
    target : ndarray of shape (m, n_outputs)
        t.
    amount : ndarray of shape (m,)
        What each item contributes to T.
    values : ndarray of shape (p,), optional
        The eigenvalues of ``Rᵀ A R``, if R was turned such that it is diagonal.
    """

    share: float
    white: Array
    target: Array
    amount: Array
    values: Array | None = None

    @cached_property
    def gram(self) -> Array:
        """``Rᵀ A R``; not to be written to."""
        if self.values is not None:
            return np.diag(self.values)
        with allow_threads(self.white.size * self.white.shape[1]):
            return self.white.T @ self.white


def diagonalize_gram(
    R: Array, terms: list[WhitenedTerm], folds: Sequence[Fold], whiten: Callable[[Array], Array]
) -> tuple[Array, list[WhitenedTerm], Array | None]:
    """Features ``R Q``, whose Gram matrix is diagonal, their only term, and Q.

    If no fold is short, all stays as it was, and Q is None. `whiten` gives ``Fᵀ R``.
    """
    if len(terms) > 1 or min(map(len, folds)) > R.shape[1] / SHORT:
        return R, terms, None
    values, Q = scipy.linalg.eigh(terms[0].gram, check_finite=False)
    R = R @ Q
    term = replace(terms[0], white=whiten(R), values=np.maximum(values, 0.0))
    return R, [term], Q


def leave_out_weights(
    R: Array, terms: Sequence[WhitenedTerm], folds: Sequence[Fold], alphas: Array, n_free: int = 0
) -> Iterator[tuple[list[int], Array]]:
    """Weights of the features without each fold: numbers of folds of one size, and their weights.

        w = (Σ ω (Rᵀ A R − R_Uᵀ A_U R_U) + αI)⁻¹ Σ ω (Rᵀ t − R_Uᵀ t_U),   ω = share/(T − T_U)

    of shape (k, p, n_outputs, n_alphas). A fold that is short beside p is a downdate of a diagonal
    matrix, if features were turned. For a longer one its Gram matrix is taken out of that
    of all, and one tridiagonal reduction of the p × p rest serves all alphas. If a fold holds most
    of the Gram matrix, the rest is added up instead, so that no digits cancel. Folds may overlap.
    The last `n_free` features are not penalized: they are eliminated, and have no weights.
    """
    squares = np.einsum("ij,ij->i", terms[0].white, terms[0].white)
    limit = -1 if terms[0].values is None else R.shape[1] / SHORT
    half = squares.sum() / 2
    is_short = [len(U) <= limit and (squares[U].sum() or -1.0) < half for U in folds]
    short = np.flatnonzero(is_short).tolist()
    if short:
        for numbers, w in _weights_by_downdates(R, terms[0], [folds[k] for k in short], alphas):
            yield [short[k] for k in numbers], w
    moments = [R.T @ term.target for term in terms]
    for k in np.flatnonzero(~np.array(is_short, dtype=bool)).tolist():
        U = folds[k]
        gram, moment = np.zeros((R.shape[1], R.shape[1])), np.zeros_like(moments[0])
        for term, of_all in zip(terms, moments, strict=True):
            white_U = term.white[U]
            gram_U = white_U.T @ white_U
            rest = term.gram - gram_U
            if rest.trace() < gram_U.trace():
                others = np.delete(term.white, U, axis=0)
                rest = others.T @ others
            weight = term.share / (term.amount.sum() - term.amount[U].sum())
            gram += weight * rest
            moment += weight * (of_all - R[U].T @ term.target[U])
        if n_free:
            gram, moment = partial_out(gram, moment, n_free)
        yield [k], _solve_definite(gram, moment, alphas)[None]


def _solve_definite(gram: Array, moment: Array, alphas: Array) -> Array:
    """``(G + αI)⁻¹ m``, shape (p, n_outputs, n_alphas); G is semidefinite up to rounding."""
    x, is_definite = solve_shifted(gram.copy(), moment, alphas)
    if is_definite:
        return x.transpose(1, 2, 0)
    values, Q = scipy.linalg.eigh(gram, check_finite=False)
    shrink = 1.0 / (np.maximum(values, 0.0)[:, None] + alphas)
    return np.asarray(np.einsum("ij,jo,jk->iok", Q, Q.T @ moment, shrink, optimize=True))


def _weights_by_downdates(
    R: Array, term: WhitenedTerm, folds: Sequence[Fold], alphas: Array
) -> Iterator[tuple[list[int], Array]]:
    """Numbers of some folds and the weights without each, (k, p, n_outputs, n_alphas).

    With ``Rᵀ A R = Λ``, Z = Fᵀ R and ``D = (Λ + λ)⁻¹`` a fold is taken out by |U| downdates:

        w = (D + D Z_Uᵀ (I − Z_U D Z_Uᵀ)⁻¹ Z_U D) (Rᵀ t − R_Uᵀ t_U),   λ = α (T − T_U)

    Folds of one size go together, for all alphas at once.
    """
    values = np.asarray(term.values)
    moment, total = R.T @ term.target, term.amount.sum()
    p, n_columns = len(values), len(alphas) * term.target.shape[1]

    def entries(n: int) -> int:
        return int(n * n * (p + 2 * len(alphas)) + (3 * p + 2 * n) * n_columns)

    for numbers in _equal_folds(folds, entries):
        U = np.stack([folds[k] for k in numbers])
        rest = moment - R[U].transpose(0, 2, 1) @ term.target[U]
        scale = (total - term.amount[U].sum(axis=1)) / term.share
        shrink = 1.0 / (values[:, None] + scale[:, None, None] * alphas)
        yield numbers, _downdate(term.white[U], rest, shrink)


def _equal_folds(folds: Sequence[Fold], entries: Callable[[int], int]) -> Iterator[list[int]]:
    """Numbers of folds of one size in batches, bounded by the entries that a fold takes."""
    sizes = np.array([len(U) for U in folds])
    for n in np.unique(sizes).tolist():
        same = np.flatnonzero(sizes == n).tolist()
        count = max(1, BATCH_ENTRIES // max(1, entries(n)))
        for start in range(0, len(same), count):
            yield same[start : start + count]


def _downdate(Z: Array, rest: Array, shrink: Array) -> Array:
    """``(D + D Zᵀ (I − Z D Zᵀ)⁻¹ Z D) rest``, shape (k, p, n_outputs, n_alphas).

    Z is (k, n, p), rest is (k, p, n_outputs); shrink holds D for each alpha, (k, p, n_alphas).
    """
    k, n, p = Z.shape
    i, j = np.triu_indices(n)
    overlap = np.empty((k, n, n, shrink.shape[2]))
    overlap[:, i, j] = -((Z[:, i] * Z[:, j]) @ shrink)
    overlap[:, j, i] = overlap[:, i, j]
    diagonal = np.arange(n)
    overlap[:, diagonal, diagonal] = np.maximum(overlap[:, diagonal, diagonal] + 1.0, ROUNDING)
    u = rest[:, :, :, None] * shrink[:, :, None, :]
    right = (Z @ u.reshape(k, p, -1)).reshape(k, n, *u.shape[2:])
    systems, right = overlap.transpose(0, 3, 1, 2), right.transpose(0, 3, 1, 2)
    try:
        lift = np.linalg.solve(systems, right)
    except np.linalg.LinAlgError:  # singular by rounding
        lift = np.linalg.solve(systems + 64 * ROUNDING * np.eye(n), right)
    back = Z.transpose(0, 2, 1) @ lift.transpose(0, 2, 3, 1).reshape(k, n, u[0, 0].size)
    u += shrink[:, :, None, :] * back.reshape(u.shape)
    return np.asarray(u)


def hold_out_dual(
    K: Array,
    root: GraphRoot,
    component: Indices,
    target: Array,
    amount: Array,
    folds: Sequence[Fold],
    alphas: Array,
    out: Array,
) -> None:
    """Held-out scores of each fold for a kernel matrix and one term; K is overwritten.

    With ``F Fᵀ = A``, ``F b = t``, ``S = Fᵀ K F = Q Λ Qᵀ`` decomposed once and
    ``G = Q (Λ + λ)⁻¹ Qᵀ``:

        c = G b,    Fᵀ f = r with r = S (c − G_{·U} (G_UU)⁻¹ c_U),    λ = α (T − T_U)

    [RankRLS09] equation 33, with a symmetric G. F does not see the mean of a connected component.
    The same equation gives that mean, with the mean of the component's rows of K F in the place of
    rows of S. `component` is the number of the component of each item.
    """
    weight = 1.0 / np.bincount(component)[component]
    mean = sp.csr_array((weight, (component, np.arange(len(component)))))  # of each component
    E = root.adjoint(np.ascontiguousarray((mean @ K).T)).T
    S, b = root.sandwich(K), root.solve(target)
    shift = amount.sum() - np.array([amount[U].sum() for U in folds])
    inverse: _InverseModel | None = None
    if len(alphas) == 1 and (shift == shift[0]).all():
        inverse = _InverseModel.of(S, float(shift[0] * alphas[0]), E, b)
    if inverse is None:
        models = _SpectralModel(S, b)
        E = E @ models.vectors.T
    r, means = np.zeros_like(out), np.zeros((len(E), *out.shape[1:]))
    for U, step in zip(folds, shift, strict=True):
        inside = np.unique(component[U])
        if inverse is not None:
            r[U], means[inside] = inverse.hold_out(U, inside)
            continue
        size = max(1, min(LARGE_BATCH, K.size // 16) // (len(U) ** 2 + target.size))
        for start in range(0, len(alphas), size):
            some = slice(start, start + size)
            u = models.without(U, step * alphas[some])
            flat, shape = u.reshape(len(u), -1), u.shape[1:]
            fitted = models.vectors[:, U].T @ (models.values[:, None] * flat)
            r[U, :, some] = fitted.reshape(-1, *shape)
            means[inside, :, some] = (E[inside] @ flat).reshape(-1, *shape)
    f = root.solve_adjoint(r.reshape(len(r), -1))
    f += (means.reshape(len(means), -1) - mean @ f)[component]
    rows = np.concatenate(folds)
    out[rows] = f.reshape(out.shape)[rows]


class _InverseModel(NamedTuple):
    """``G = (S + λI)⁻¹`` for one λ, which costs a sixth of a decomposition; c = G b, E G and E c.

    ``S G = I − λG``, so that ``r_U = b_U − (G_UU)⁻¹ c_U``.
    """

    G: Array
    b: Array
    c: Array
    EG: Array
    Ec: Array

    @classmethod
    def of(cls, S: Array, shift: float, E: Array, b: Array) -> _InverseModel | None:
        """None if S + λI is not definite, or λ so large that digits would cancel in b_U."""
        if shift > np.diagonal(S).max():
            return None
        with allow_threads(len(S) ** 3):
            upper, info = lapack.dpotrf(S + shift * np.eye(len(S)), lower=0, clean=1, overwrite_a=1)
            if info != 0:
                return None
            upper, _ = lapack.dpotri(upper, lower=0, overwrite_c=1)
        G = upper + np.triu(upper, 1).T
        return cls(G, b, G @ b, E @ G, E @ (G @ b))

    def hold_out(self, U: Fold, inside: Fold) -> tuple[Array, Array]:
        """r_U, shape (|U|, n_outputs, 1), and the same for the rows `inside` of E."""
        lift = scipy.linalg.solve(self.G[np.ix_(U, U)], self.c[U], assume_a="pos")
        moved = self.EG[np.ix_(inside, U)] @ lift
        return (self.b[U] - lift)[:, :, None], (self.Ec[inside] - moved)[:, :, None]


class _SpectralModel:
    """``S = Q Λ Qᵀ`` in place of S, and the models without some items; `vectors` is Qᵀ."""

    def __init__(self, S: Array, b: Array) -> None:
        with allow_threads(len(S) ** 3):
            self.values, Q = scipy.linalg.eigh(S.T, overwrite_a=True, check_finite=False)
        S[:] = Q.T
        self.vectors, self._z = S, S @ b

    def without(self, U: Fold, shifts: Array) -> Array:
        """Qᵀ c of the models without U, shape (m, n_outputs, n_shifts).

        With z = Qᵀ b and ``D = (Λ + λ)⁻¹`` it is ``D z − D Q_Uᵀ (Q_U D Q_Uᵀ)⁻¹ Q_U D z``: c is zero
        on U, and G = Q D Qᵀ.
        """
        D = 1.0 / (self.values[:, None] + shifts)
        u = self._z[:, :, None] * D[:, None, :]
        n, (m, n_outputs, n_shifts) = len(U), u.shape
        V = np.ascontiguousarray(self.vectors[:, U].T)
        G = np.empty((n, n, n_shifts))
        for i in range(n):
            G[i, i:] = (V[i:] * V[i]) @ D
            G[i:, i] = G[i, i:]
        c = (V @ u.reshape(m, -1)).reshape(n, n_outputs, n_shifts)
        lift = np.linalg.solve(G.transpose(2, 0, 1), c.transpose(2, 0, 1)).transpose(1, 2, 0)
        u -= D[:, None, :] * (V.T @ lift.reshape(n, u[0].size)).reshape(u.shape)
        return np.asarray(u)


def leave_out_dual_coef(
    K: Array,
    root: GraphRoot,
    target: Array,
    amount: Array,
    units: Sequence[Indices],
    alphas: Array,
) -> Array:
    """Dual coefficients for a kernel matrix and one term; K is overwritten.

    ``a = F c`` with the c of `hold_out_dual`, which is zero on U ([RankRLS09] equation 33).
    """
    models = _SpectralModel(root.sandwich(K), root.solve(target))
    out = np.empty((len(K), len(units), target.shape[1], len(alphas)))
    for k, U in enumerate(units):
        out[:, k] = models.without(U, alphas * (amount.sum() - amount[U].sum()))
    flat = models.vectors.T @ out.reshape(len(K), -1)
    for k, U in enumerate(units):
        flat.reshape(out.shape)[U, k] = 0.0  # what rounding leaves
    return root.apply(flat).reshape(out.shape)
