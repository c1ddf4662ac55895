"""The search of a pursuit step: which functions, one for each view, lower the objective most.

With e_v = k_vᵀ (t − A f) a choice γ = (γ_1 … γ_M) has the coefficients ``a = S⁻¹ e`` and lowers the
objective by ``eᵀ S⁻¹ e``, where S is the matrix B + C of [Pursuit13] figure 2:

    S_vv = k_vᵀ A k_v + 2ν(M−1) k̄_vᵀ L̄ k̄_v,        S_vu = −2ν k̄_vᵀ L̄ k̄_u

S never changes, so it is computed once, before the first step, as far as memory allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwise.arrays import Array, Indices

Taken = list[Indices]
BLOCK_ENTRIES = 2**18
MAX_SWEEPS = 10
SINGULAR = 1e-14


class DictionaryColumns(Protocol):
    """Functions of a dictionary, as the columns of a matrix K of their values at some rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of functions."""

    def column(self, j: int) -> Array:
        """Values of function j."""

    def correlate(self, G: Array) -> Array:
        """``Kᵀ G``."""

    def blocks(self, *, dense: bool = True) -> Iterator[tuple[slice, Any]]:
        """The columns, a block at a time; sparse ones all at once if they need not be dense."""


class Choice(NamedTuple):
    """One function for each view.

    Attributes
    ----------
    indices : tuple of int
        γ.
    coef : ndarray of shape (n_views,)
        a.
    gain : float
        By how much the objective falls; 0 if nothing is left to choose.
    """

    indices: tuple[int, ...]
    coef: Array
    gain: float


class Search(Protocol):
    """A way to find the best choice, or a good one."""

    def best(self, e: list[Array], taken: Taken) -> Choice:
        """The choice of the largest gain, other than those with all its functions in `taken`."""


@dataclass(frozen=True)
class Single:
    """One view: ``a = e/S`` for every function of the dictionary ([Pursuit13] figure 1)."""

    norms: Array

    def best(self, e: list[Array], taken: Taken) -> Choice:
        """By one pass over the dictionary."""
        gain = _ratio(e[0] ** 2, self.norms)
        gain[taken[0]] = -1.0
        j = int(np.argmax(gain))
        return Choice((j,), _ratio(e[0][[j]], self.norms[[j]]), float(gain[j]))


@dataclass(frozen=True)
class AllPairs:
    """Two views: every pair of functions, by vectorized arithmetic on the 2 × 2 systems.

    Attributes
    ----------
    norms : tuple of two ndarray
        S_11 and S_22 of every function.
    cross : ndarray of shape (n_functions_1, n_functions_2)
        −S_12 of every pair: 2ν K̄_1ᵀ L̄ K̄_2.
    """

    norms: tuple[Array, Array]
    cross: Array

    def best(self, e: list[Array], taken: Taken) -> Choice:
        """Pass over all pairs, a block of rows of `cross` at a time."""
        is_taken = np.zeros(len(self.norms[0]), dtype=bool)
        is_taken[taken[0]] = True
        height = max(1, BLOCK_ENTRIES // self.cross.shape[1])
        best = (0, 0, -1.0)
        for top in range(0, self.cross.shape[0], height):
            rows = slice(top, top + height)
            gain = self._gains(rows, e)
            gain[np.ix_(is_taken[rows], taken[1])] = -1.0
            at = int(np.argmax(gain))
            if gain.flat[at] > best[2]:
                i, j = divmod(at, gain.shape[1])
                best = (top + i, j, float(gain.flat[at]))
        i, j, gain_ij = best
        S = np.diag([self.norms[0][i], self.norms[1][j]])
        S[0, 1] = S[1, 0] = -self.cross[i, j]
        return Choice((i, j), np.linalg.pinv(S, hermitian=True) @ [e[0][i], e[1][j]], gain_ij)

    def _gains(self, rows: slice, e: list[Array]) -> Array:
        """``(S_22 e_1² − 2 S_12 e_1 e_2 + S_11 e_2²) / det S``."""
        p, q, r = self.norms[0][rows, None], self.cross[rows], self.norms[1]
        e1, e2 = e[0][rows, None], e[1]
        product = p * r
        determinant = product - q * q
        determinant[determinant <= SINGULAR * product] = 0.0
        numerator = q * (2.0 * e1)
        numerator *= e2
        numerator += r * e1**2
        numerator += p * e2**2
        return _ratio(numerator, determinant)


@dataclass(frozen=True)
class SharedIndices:
    """Several views on the same items, which all take the same one ([Pursuit13] footnote 4).

    Attributes
    ----------
    inverses : ndarray of shape (n_functions, n_views, n_views)
        S⁻¹ of every item.
    """

    inverses: Array

    def best(self, e: list[Array], taken: Taken) -> Choice:
        """By one pass over the items."""
        E = np.stack(e, axis=1)
        coef = np.einsum("nvu,nu->nv", self.inverses, E)
        gain = np.einsum("nv,nv->n", E, coef)
        for j in set.intersection(*(set(part.tolist()) for part in taken)):
            gain[j] = -1.0
        j = int(np.argmax(gain))
        return Choice((j,) * len(e), coef[j], float(gain[j]))


@dataclass(frozen=True)
class Cyclic:
    """Any number of views: the best function of each in turn, given those of the others.

    Starts from the best function of each view by itself and ends when a whole round changes
    nothing. Never worse than that start, but not always the best of all choices, whose number is
    the product of the sizes of the dictionaries.

    Attributes
    ----------
    norms : tuple of ndarray
        S_vv of every function of every view.
    cross : callable
        ``cross(v, u, j)`` is S_vu of all functions of view v with function j of view u.
    """

    norms: tuple[Array, ...]
    cross: Callable[[int, int, int], Array]

    def best(self, e: list[Array], taken: Taken) -> Choice:
        """By rounds over the views, each at M − 1 passes over a dictionary."""
        n_views = len(e)
        known: dict[tuple[int, int, int], Array] = {}

        def cross(v: int, u: int, j: int) -> Array:
            if (v, u, j) not in known:
                known[v, u, j] = self.cross(v, u, j)
            return known[v, u, j]

        at = [int(np.argmax(_ratio(e_v**2, p))) for e_v, p in zip(e, self.norms, strict=True)]
        for _ in range(MAX_SWEEPS):
            before = list(at)
            for v in range(n_views):
                others = [u for u in range(n_views) if u != v]
                gain = self._gains(v, others, at, e, cross)
                if all(at[u] in taken[u] for u in others):
                    gain[taken[v]] = -1.0
                at[v] = int(np.argmax(gain))
            if at == before:
                break
        best_gain = float(gain[at[-1]])
        S = self._system(list(range(n_views)), at, cross)
        e_at = np.array([e_v[j] for e_v, j in zip(e, at, strict=True)])
        return Choice(tuple(at), np.linalg.pinv(S, hermitian=True) @ e_at, best_gain)

    def _gains(
        self,
        v: int,
        others: list[int],
        at: list[int],
        e: list[Array],
        cross: Callable[[int, int, int], Array],
    ) -> Array:
        """Gain of every function of view v together with the present ones of the other views.

        ``e_oᵀ S_oo⁻¹ e_o + (e_v − S_vo S_oo⁻¹ e_o)² / (S_vv − S_vo S_oo⁻¹ S_ov)``
        """
        inverse = np.linalg.pinv(self._system(others, at, cross), hermitian=True)
        e_o = np.array([e[u][at[u]] for u in others])
        S_vo = np.stack([cross(v, u, at[u]) for u in others], axis=1)
        rest = self.norms[v] - np.einsum("no,op,np->n", S_vo, inverse, S_vo)
        rest[rest <= SINGULAR * self.norms[v]] = 0.0
        alone = float(e_o @ inverse @ e_o)
        return alone + _ratio((e[v] - S_vo @ (inverse @ e_o)) ** 2, rest)

    def _system(
        self, views: list[int], at: list[int], cross: Callable[[int, int, int], Array]
    ) -> Array:
        S = np.diag([float(self.norms[v][at[v]]) for v in views])
        for i, v in enumerate(views):
            for j, u in enumerate(views):
                if v != u:
                    S[i, j] = cross(v, u, at[u])[at[v]]
        return S


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Quotient; 0 where the denominator is 0, for functions that change nothing."""
    out: Array = np.zeros(np.broadcast_shapes(numerator.shape, denominator.shape))
    np.divide(numerator, denominator, out=out, where=denominator > 0)
    return out
