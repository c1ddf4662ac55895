"""Ranking pursuit: greedy choice of the functions of a dictionary, [Pursuit13] figures 1 and 2.

A step finds the functions, one for each view, that lower the objective most. With
e_v = k_vᵀ (t − A f) a choice γ = (γ_1 … γ_M) has the coefficients ``a = S⁻¹ e`` and lowers the
objective by ``eᵀ S⁻¹ e``, where S is the matrix B + C of figure 2:

    S_vv = k_vᵀ A k_v + 2ν(M−1) k̄_vᵀ L̄ k̄_v,        S_vu = −2ν k̄_vᵀ L̄ k̄_u

S never changes, so it is computed once, before the first step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.sparse import issparse

from rankwise.arrays import Array
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.gram import sums_of_squares
from rankwise.losses import SquaredLoss

Mask = NDArray[np.bool_]
NOISE = 64 * np.finfo(float).eps
BLOCK_ENTRIES = 2**18  # numbers at a time: what is done to a block stays in the cache
SINGULAR = 1e-14
DEPENDENT = 1e-10  # what is left of a vector that the others span, relative to its norm
FIRST_ROOM = 16


@dataclass(frozen=True)
class PursuitProblem:
    """What a pursuit minimizes.

        J(f_1 … f_M) = Σ_v loss(f_v) + ν/W̄ Σ_v,u (f_v − f_u)ᵀ L̄ (f_v − f_u)

    [Pursuit13] equation 3; L̄ is the graph of the rows on which the views are to agree.

    Attributes
    ----------
    loss : SquaredLoss
        Of the scored rows; with its scores centered if the intercept is free.
    has_free_intercept : bool
        Whether an intercept is minimized away: the loss then does not see constants.
    scored : list of array or sparse matrix
        For each view its functions, as columns, at the scored rows.
    agreeing : list of array or sparse matrix
        For each view its functions at the rows of the agreement; empty for a single view.
    agreement : PreferenceGraph or None
        The graph L̄.
    nu : float
        ν.
    """

    loss: SquaredLoss
    has_free_intercept: bool
    scored: list[Any]
    agreeing: list[Any]
    agreement: PreferenceGraph | None = None
    nu: float = 0.0

    @property
    def n_views(self) -> int:
        """M."""
        return len(self.scored)

    def means(self, V: Any) -> Array:
        """Mean of each column, dense or sparse, over the scored rows by their weights."""
        weight = self.loss.graph.item_weights
        if weight is None:
            return np.asarray(V.mean(axis=0)).ravel()
        return np.asarray(V.T @ weight / weight.sum())

    def product(self, V: Array) -> Array:
        """``A V`` at the scored rows; a free intercept takes the mean of each column off first."""
        return self.loss.times_A(V - self.means(V) if self.has_free_intercept else V)

    def norms(self) -> list[Array]:
        """``kᵀ A k`` of every function, for each view; 0 for those that vary by rounding only."""
        by_view = []
        for K in self.scored:
            if issparse(K):
                norms, size = self.loss.norms(K), sums_of_squares(K)
                if self.has_free_intercept:
                    norms = norms - self.loss.beta * self.means(K) ** 2
            else:
                norms, size = np.empty((2, K.shape[1]))
                for columns, V in _blocks(K):
                    centered = V - self.means(V) if self.has_free_intercept else V
                    norms[columns] = np.einsum("ij,ij->j", centered, self.loss.times_A(centered))
                    size[columns] = np.einsum("ij,ij->j", centered, centered)
            by_view.append(np.where(norms <= NOISE * size / K.shape[0], 0.0, norms))
        return by_view

    def agree(self, V: Array) -> Array:
        """``2ν/W̄ L̄ V`` at the rows of the agreement."""
        if self.agreement is None or not self.agreement.n_pairs:
            return np.zeros_like(V)
        return self.agreement.laplacian(V) * (2.0 * self.nu / self.agreement.total_weight)

    def inner_products(self, v: int, u: int) -> Array:
        """``2ν/W̄ k̄_vᵀ L̄ k̄_u`` of the functions that have the same index in both views."""
        pairs = zip(_blocks(self.agreeing[v]), _blocks(self.agreeing[u]), strict=True)
        return np.concatenate([np.einsum("ij,ij->j", V, self.agree(U)) for (_, V), (_, U) in pairs])

    def stacked_product(self, x: Array) -> Array:
        """Half the Hessian of J at the functions of all views at all their rows, as one vector."""
        F = x.reshape(self.n_views, -1).T
        n = len(self.loss.target)
        parts = [self.product(F[:n])]
        if len(F) > n:
            U = F[n:]
            parts.append(self.agree(self.n_views * U - U.sum(axis=1, keepdims=True)))
        return np.concatenate(parts).T.ravel()


def _blocks(K: Any) -> Iterator[tuple[slice, Array]]:
    """The columns of a dense or sparse matrix, dense, a block at a time."""
    width = max(1, BLOCK_ENTRIES // max(1, K.shape[0]))
    for start in range(0, K.shape[1], width):
        columns = slice(start, start + width)
        block = K[:, columns]
        yield columns, block.toarray() if issparse(block) else block


def _column(K: Any, j: int) -> Array:
    return np.asarray(K[:, [j]].toarray()[:, 0] if issparse(K) else K[:, j])


class Choice(NamedTuple):
    """One function for each view, with its coefficient; the objective falls by `gain`."""

    indices: tuple[int, ...]
    coef: Array
    gain: float


class SharedIndices:
    """One view, or several on the same items, which all take the same one.

    [Pursuit13] figure 1, and figure 2 with footnote 4.
    """

    def __init__(self, problem: PursuitProblem, norms: list[Array]) -> None:
        n_views = problem.n_views
        S = np.empty((len(norms[0]), n_views, n_views))
        for v in range(n_views):
            S[:, v, v] = norms[v]
            if n_views > 1:
                S[:, v, v] += (n_views - 1) * problem.inner_products(v, v)
            for u in range(v):
                S[:, v, u] = S[:, u, v] = -problem.inner_products(v, u)
        self._inverses = np.asarray(np.linalg.pinv(S, hermitian=True), dtype=np.float64)

    def best(self, e: list[Array], spent: list[Mask]) -> Choice:
        """The choice of the largest gain, other than those whose functions are all spent."""
        E = np.stack(e, axis=1)
        coef = np.einsum("nvu,nu->nv", self._inverses, E)
        gain = np.einsum("nv,nv->n", E, coef)
        gain[np.logical_and.reduce(spent)] = -1.0
        j = int(np.argmax(gain))
        return Choice((j,) * len(e), coef[j], float(gain[j]))


class AllPairs:
    """Two views: every pair of functions, by vectorized arithmetic on the 2 × 2 systems.

    Takes memory for a matrix of one dictionary times the other: −S_12 of every pair.
    """

    def __init__(self, problem: PursuitProblem, norms: list[Array]) -> None:
        self._norms = [norms[v] + problem.inner_products(v, v) for v in range(2)]
        self._cross = np.empty([len(norms) for norms in self._norms])
        for columns, block in _blocks(problem.agreeing[1]):
            self._cross[:, columns] = problem.agreeing[0].T @ problem.agree(block)

    def best(self, e: list[Array], spent: list[Mask]) -> Choice:
        """The choice of the largest gain, by a pass over all pairs, some rows at a time."""
        height = max(1, BLOCK_ENTRIES // self._cross.shape[1])
        i, j, best_gain = 0, 0, -1.0
        for top in range(0, self._cross.shape[0], height):
            rows = slice(top, top + height)
            gain = self._gains(rows, e)
            gain[np.ix_(spent[0][rows], spent[1])] = -1.0
            at = int(np.argmax(gain))
            if gain.flat[at] > best_gain:
                best_gain = float(gain.flat[at])
                i, j = top + at // gain.shape[1], at % gain.shape[1]
        S = np.diag([self._norms[0][i], self._norms[1][j]])
        S[0, 1] = S[1, 0] = -self._cross[i, j]
        coef = np.linalg.pinv(S, hermitian=True) @ [e[0][i], e[1][j]]
        return Choice((i, j), coef, best_gain)

    def _gains(self, rows: slice, e: list[Array]) -> Array:
        """``(S_22 e_1² − 2 S_12 e_1 e_2 + S_11 e_2²) / det S``; 0 where S is singular."""
        p, q, r = self._norms[0][rows, None], self._cross[rows], self._norms[1]
        e1, e2 = e[0][rows, None], e[1]
        product = p * r
        determinant = product - q * q
        numerator = q * (2.0 * e1)
        numerator *= e2
        numerator += r * e1**2
        numerator += p * e2**2
        regular = determinant > SINGULAR * product
        return np.divide(numerator, determinant, out=np.zeros_like(q), where=regular)


class OrthogonalBasis:
    """Minimize ``fᵀ A f − 2 fᵀ t`` over the span of the vectors added so far.

    Keeps ``X = V R`` with ``Vᵀ A V = I`` and R upper triangular (the Cholesky factor of
    ``Xᵀ A X``, which is never formed: twice iterated Gram-Schmidt keeps the digits that squaring
    would lose). One more vector costs one product with A and O(n k) for k vectors of length n.

    Parameters
    ----------
    product : callable
        ``A v`` for a vector v; A is symmetric and positive semidefinite.
    target : ndarray of shape (n,)
        t.

    Attributes
    ----------
    fitted : ndarray of shape (n,)
        The minimizer f.
    """

    def __init__(self, product: Callable[[Array], Array], target: Array) -> None:
        self._product = product
        self._target = target
        self._size = 0
        self._vectors = np.empty((FIRST_ROOM, len(target)))  # the rows are V and A V
        self._images = np.empty((FIRST_ROOM, len(target)))
        self._triangle = np.zeros((FIRST_ROOM, FIRST_ROOM))
        self._moments = np.empty(FIRST_ROOM)
        self.fitted = np.zeros(len(target))

    def add(self, x: Array) -> bool:
        """Add a vector unless the others span it (in the seminorm of A); tell whether it was."""
        k = self._size
        V, AV = self._vectors[:k], self._images[:k]
        overlap = np.zeros(k)
        for _ in range(2):
            correction = AV @ x
            x = x - correction @ V
            overlap += correction
        image = self._product(x)
        rest = max(0.0, float(x @ image))
        if rest <= DEPENDENT**2 * (rest + float(overlap @ overlap)):
            return False
        if k == len(self._vectors):
            self._make_room()
        norm = np.sqrt(rest)
        self._vectors[k], self._images[k] = x / norm, image / norm
        self._triangle[:k, k], self._triangle[k, k] = overlap, norm
        self._moments[k] = self._vectors[k] @ self._target
        self.fitted += self._moments[k] * self._vectors[k]
        self._size = k + 1
        return True

    def coefficients(self) -> Array:
        """Coefficients of the added vectors in the minimizer, ``R⁻¹ Vᵀ t``."""
        k = self._size
        return np.asarray(solve_triangular(self._triangle[:k, :k], self._moments[:k]))

    def _make_room(self) -> None:
        room = len(self._vectors)
        self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)])
        self._images = np.concatenate([self._images, np.empty_like(self._images)])
        self._triangle = np.pad(self._triangle, (0, room))
        self._moments = np.pad(self._moments, (0, room))


class Step(NamedTuple):
    """The expansion after a step.

    Attributes
    ----------
    chosen : tuple of int
        The function that each view took in this step.
    basis : list of list of int
        For each view the distinct functions so far, in the order of their first choice.
    coef : list of ndarray
        Their coefficients.
    means : ndarray of shape (n_views,)
        Mean of each view's scores over the scored rows.
    error : float
        Loss of the mean of the views.
    """

    chosen: tuple[int, ...]
    basis: list[list[int]]
    coef: list[Array]
    means: Array
    error: float


class _Expansion:
    """The functions that were chosen, with coefficients as `backfit` asks for.

    Attributes
    ----------
    basis : list of list of int
        For each view the chosen functions.
    spent : list of ndarray of bool
        For each view which functions would change nothing if they were chosen.
    """

    def __init__(self, problem: PursuitProblem, backfit: str | None) -> None:
        self._problem, self._backfit = problem, backfit
        self._coef: list[dict[int, float]] = [{} for _ in problem.scored]
        self._scores = np.zeros((len(problem.loss.target), problem.n_views))
        n_agreeing = problem.agreeing[0].shape[0] if problem.agreeing else 0
        target = np.concatenate([problem.loss.target, np.zeros(n_agreeing)])
        target = np.tile(target, problem.n_views)
        self._least_squares = OrthogonalBasis(problem.stacked_product, target)
        self._fitted: list[tuple[int, int]] = []  # (view, function) in the order of that basis
        self.basis: list[list[int]] = [[] for _ in problem.scored]
        self.spent: list[Mask] = [np.zeros(K.shape[1], dtype=bool) for K in problem.scored]

    def take(self, choice: Choice) -> bool:
        """Add the chosen functions; tell whether the scores that guide the search changed."""
        problem, is_guided_by_fit = self._problem, self._backfit == "every"
        is_changed = not is_guided_by_fit
        for view, (j, a) in enumerate(zip(choice.indices, choice.coef, strict=True)):
            values = _column(problem.scored[view], j)
            self._coef[view][j] = self._coef[view].get(j, 0.0) + float(a)
            self._scores[:, view] += a * values
            if j in self.basis[view]:
                continue
            is_new = False  # a combination of those before
            if self._backfit is not None:
                if problem.agreeing:
                    values = np.concatenate([values, _column(problem.agreeing[view], j)])
                stacked = np.zeros((problem.n_views, len(values)))
                stacked[view] = values
                is_new = self._least_squares.add(stacked.ravel())
            if is_new:
                self._fitted.append((view, j))
            if is_new or not is_guided_by_fit:
                self.basis[view].append(j)
            if is_guided_by_fit:
                self.spent[view][j] = True
                is_changed |= is_new
        return is_changed

    def scores(self, is_fitted: bool) -> Array:
        """Of the scored rows by each view: by least squares, or as the steps found them."""
        if not is_fitted:
            return self._scores
        n_rows, n_views = self._scores.shape
        return self._least_squares.fitted.reshape(n_views, -1).T[:n_rows]

    def step(self, chosen: tuple[int, ...]) -> Step:
        """What there is now; 0 for functions that earlier ones span."""
        problem, is_fitted = self._problem, self._backfit is not None
        values = self._coef
        if is_fitted:
            values = [{} for _ in problem.scored]
            for (view, j), a in zip(self._fitted, self._least_squares.coefficients(), strict=True):
                values[view][j] = a
        coef = []
        for known, functions in zip(values, self.basis, strict=True):
            coef.append(np.array([known.get(j, 0.0) for j in functions]))
        scores = self.scores(is_fitted)
        f, means = scores.mean(axis=1), problem.means(scores)
        explained = 2 * problem.loss.target - problem.product(f)
        intercept = means.mean() if problem.has_free_intercept else 0.0
        error = max(0.0, problem.loss.at_zero - float((f - intercept) @ explained))
        return Step(chosen, [list(functions) for functions in self.basis], coef, means, error)


def pursue(
    problem: PursuitProblem,
    search: SharedIndices | AllPairs,
    n_steps: int,
    backfit: str | None,
) -> Iterator[Step]:
    """Add one function to each view, step by step, until nothing lowers the objective.

    Parameters
    ----------
    problem : PursuitProblem
        What to minimize.
    search : SharedIndices or AllPairs
        How a step finds its functions.
    n_steps : int
        At most so many steps.
    backfit : {None, "final", "every"}
        None: coefficients stay as their step found them, and a function may be taken again.
        "final": the same functions, with the coefficients of a least-squares fit on them. "every":
        that fit is made after each step and the next one starts from its residual.
    """
    expansion = _Expansion(problem, backfit)
    tiny = np.finfo(float).eps * problem.loss.at_zero
    done = 0
    while done < n_steps:
        f = expansion.scores(backfit == "every").mean(axis=1)
        residual = problem.loss.target - problem.product(f)  # correlates with the next functions
        choice = search.best([np.asarray(K.T @ residual) for K in problem.scored], expansion.spent)
        if not choice.gain > tiny:
            return
        if expansion.take(choice):
            done += 1
            yield expansion.step(choice.indices)
