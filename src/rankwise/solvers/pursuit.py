"""Ranking pursuit: greedy selection from a dictionary of functions, [Pursuit13] figures 1 and 2.

A step selects the functions, one for each view, that decrease the objective most. With
e_v = k_vᵀ (t − A f) a choice γ = (γ_1 … γ_M) has the coefficients ``a = S⁻¹ e`` and decreases
the objective by ``eᵀ S⁻¹ e``, where S is the matrix B + C of figure 2:

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

from rankwise.arrays import Array, Matrix
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.gram import sums_of_squares
from rankwise.losses import SquaredLoss

Mask = NDArray[np.bool_]
EPSILON = float(np.finfo(float).eps)
CONSTANT_TOLERANCE = 64 * EPSILON  # variance of a constant function, relative to its mean square
BLOCK_ENTRIES = 2**18  # entries of a block, so that it stays in the cache
SINGULAR_DETERMINANT = 1e-14  # relative to the product of the diagonal
DEPENDENCE_TOLERANCE = (
    1e-10  # residual norm of a vector in the span of others, relative to its norm
)
INITIAL_CAPACITY = 16  # vectors


@dataclass(frozen=True)
class PursuitProblem:
    """The objective of a pursuit.

        J(f_1 … f_M) = Σ_v loss(f_v) + ν/W̄ Σ_v,u (f_v − f_u)ᵀ L̄ (f_v − f_u)

    [Pursuit13] equation 3; L̄ is the graph of the rows on which the views are to agree.

    Attributes
    ----------
    loss : SquaredLoss
        Loss of the scored rows; with centered y if the intercept is free.
    has_free_intercept : bool
        Whether an intercept is profiled out: the loss then does not depend on constants.
    scored : list of array or sparse matrix
        For each view the values of its functions, as columns, at the scored rows.
    agreeing : list of array or sparse matrix
        For each view the values of its functions at the rows of the agreement; empty for a single
        view.
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
        """Weighted mean of each column, dense or sparse, over the scored rows."""
        weight = self.loss.graph.item_weights
        if weight is None:
            return np.asarray(V.mean(axis=0)).ravel()
        return np.asarray(V.T @ weight / weight.sum())

    def product(self, V: Array) -> Array:
        """``A V`` at the scored rows; with a free intercept, of the centered columns."""
        return self.loss.times_A(self._centered(V))

    def _centered(self, V: Array) -> Array:
        """The columns less their means, if the intercept is free."""
        if self.has_free_intercept:
            return V - self.means(V)
        return V

    def norms(self) -> list[Array]:
        """``kᵀ A k`` of every function, for each view; 0 for functions constant up to rounding."""
        norms_by_view = []
        for K in self.scored:
            if issparse(K):
                norms, squares = self._sparse_norms(K)
            else:
                norms, squares = self._dense_norms(K)
            is_constant = norms <= CONSTANT_TOLERANCE * squares / K.shape[0]
            norms_by_view.append(np.where(is_constant, 0.0, norms))
        return norms_by_view

    def _sparse_norms(self, K: Matrix) -> tuple[Array, Array]:
        """``kᵀ A k`` and ``kᵀ k`` of every column."""
        norms = self.loss.norms(K)
        if self.has_free_intercept:
            norms = norms - self.loss.beta * self.means(K) ** 2
        return norms, sums_of_squares(K)

    def _dense_norms(self, K: Matrix) -> tuple[Array, Array]:
        """``kᵀ A k`` and ``kᵀ k`` of every column, centered if the intercept is free."""
        norms = np.empty(K.shape[1])
        squares = np.empty(K.shape[1])
        for columns, V in _blocks(K):
            centered = self._centered(V)
            norms[columns] = np.einsum("ij,ij->j", centered, self.loss.times_A(centered))
            squares[columns] = np.einsum("ij,ij->j", centered, centered)
        return norms, squares

    def agree(self, V: Array) -> Array:
        """``2ν/W̄ L̄ V`` at the rows of the agreement."""
        if self.agreement is None or not self.agreement.n_pairs:
            return np.zeros_like(V)
        return self.agreement.laplacian(V) * (2.0 * self.nu / self.agreement.total_weight)

    def inner_products(self, v: int, u: int) -> Array:
        """``2ν/W̄ k̄_vᵀ L̄ k̄_u`` of the functions with the same index in both views."""
        products = []
        blocks_v = _blocks(self.agreeing[v])
        blocks_u = _blocks(self.agreeing[u])
        for (_, V), (_, U) in zip(blocks_v, blocks_u, strict=True):
            products.append(np.einsum("ij,ij->j", V, self.agree(U)))
        return np.concatenate(products)

    def cross_products(self, v: int, u: int) -> Array:
        """``2ν/W̄ k̄_vᵀ L̄ k̄_u`` of every function of view v with every function of view u."""
        products = np.empty((self.scored[v].shape[1], self.scored[u].shape[1]))
        for columns, block in _blocks(self.agreeing[u]):
            products[:, columns] = self.agreeing[v].T @ self.agree(block)
        return products

    def stacked_product(self, x: Array) -> Array:
        """Half the Hessian of J times a vector of the scores of all views at all their rows."""
        scores = x.reshape(self.n_views, -1).T
        n_scored = len(self.loss.target)
        products = [self.product(scores[:n_scored])]
        if len(scores) > n_scored:
            agreeing = scores[n_scored:]
            differences = self.n_views * agreeing - agreeing.sum(axis=1, keepdims=True)
            products.append(self.agree(differences))
        return np.concatenate(products).T.ravel()


def _blocks(K: Matrix) -> Iterator[tuple[slice, Array]]:
    """The columns of a dense or sparse matrix, dense, a block at a time."""
    width = max(1, BLOCK_ENTRIES // max(1, K.shape[0]))
    for start in range(0, K.shape[1], width):
        columns = slice(start, start + width)
        block = K[:, columns]
        if issparse(block):
            block = block.toarray()
        yield columns, block


def _column(K: Matrix, j: int) -> Array:
    """One column of a dense or sparse matrix, dense."""
    if issparse(K):
        return np.asarray(K[:, [j]].toarray()[:, 0])
    return np.asarray(K[:, j])


class Choice(NamedTuple):
    """One function for each view, with its coefficient; it decreases the objective by `gain`."""

    indices: tuple[int, ...]
    coef: Array
    gain: float


class SharedIndices:
    """Search for a single view, or for views on the same items that all select the same item.

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
                products = -problem.inner_products(v, u)
                S[:, v, u] = products
                S[:, u, v] = products
        self._inverses = np.asarray(np.linalg.pinv(S, hermitian=True), dtype=np.float64)

    def best(self, e: list[Array], exhausted: list[Mask]) -> Choice:
        """The choice with the largest gain whose functions are not all exhausted.

        Parameters
        ----------
        e : list of ndarray
            For each view e of its functions.
        exhausted : list of ndarray of bool
            For each view the functions that would change nothing.
        """
        E = np.stack(e, axis=1)
        coef = np.einsum("nvu,nu->nv", self._inverses, E)
        gain = np.einsum("nv,nv->n", E, coef)
        gain[np.logical_and.reduce(exhausted)] = -1.0
        j = int(np.argmax(gain))
        return Choice((j,) * len(e), coef[j], float(gain[j]))


class AllPairs:
    """Search over every pair of functions of two views, by arithmetic on the 2 × 2 systems.

    Needs memory for −S_12 of every pair.
    """

    def __init__(self, problem: PursuitProblem, norms: list[Array]) -> None:
        self._norms = [norms[v] + problem.inner_products(v, v) for v in range(2)]
        self._cross = problem.cross_products(0, 1)

    def best(self, e: list[Array], exhausted: list[Mask]) -> Choice:
        """The choice with the largest gain, by a pass over all pairs, in blocks of rows."""
        height = max(1, BLOCK_ENTRIES // self._cross.shape[1])
        i = 0
        j = 0
        best_gain = -1.0
        for top in range(0, self._cross.shape[0], height):
            rows = slice(top, top + height)
            gain = self._gains(rows, e)
            gain[np.ix_(exhausted[0][rows], exhausted[1])] = -1.0
            largest = int(np.argmax(gain))
            if gain.flat[largest] > best_gain:
                best_gain = float(gain.flat[largest])
                row, j = divmod(largest, gain.shape[1])
                i = top + row
        S = np.diag([self._norms[0][i], self._norms[1][j]])
        S[0, 1] = -self._cross[i, j]
        S[1, 0] = -self._cross[i, j]
        coef = np.linalg.pinv(S, hermitian=True) @ [e[0][i], e[1][j]]
        return Choice((i, j), coef, best_gain)

    def _gains(self, rows: slice, e: list[Array]) -> Array:
        """``(S_22 e_1² − 2 S_12 e_1 e_2 + S_11 e_2²) / det S``; 0 where S is singular."""
        S_11 = self._norms[0][rows, None]
        S_22 = self._norms[1]
        cross = self._cross[rows]  # −S_12
        e_1 = e[0][rows, None]
        e_2 = e[1]
        product = S_11 * S_22
        determinant = product - cross * cross
        numerator = cross * (2.0 * e_1)
        numerator *= e_2
        numerator += S_22 * e_1**2
        numerator += S_11 * e_2**2
        is_regular = determinant > SINGULAR_DETERMINANT * product
        return np.divide(numerator, determinant, out=np.zeros_like(cross), where=is_regular)


class AllCombinations:
    """Search over every combination of one function of each view, for any number of views.

    [Pursuit13] figure 2 as it is written, O(n^M (M³ + M² l)). The M × M systems do not change
    from step to step, so their inverses are computed once and stored.
    """

    def __init__(self, problem: PursuitProblem, norms: list[Array]) -> None:
        n_views = problem.n_views
        shape = tuple(len(values) for values in norms)
        S = np.zeros((*shape, n_views, n_views))
        for v in range(n_views):
            diagonal = norms[v] + (n_views - 1) * problem.inner_products(v, v)
            S[..., v, v] = _along_axes(diagonal, (v,), n_views)
            for u in range(v):
                cross = _along_axes(-problem.cross_products(u, v), (u, v), n_views)
                S[..., u, v] = cross
                S[..., v, u] = cross
        self._inverses = np.empty_like(S)
        for i in range(shape[0]):  # the singular values of one slice at a time
            self._inverses[i] = np.linalg.pinv(S[i], hermitian=True)

    def best(self, e: list[Array], exhausted: list[Mask]) -> Choice:
        """The choice with the largest gain whose functions are not all exhausted."""
        n_views = len(e)
        E = np.stack(np.meshgrid(*e, indexing="ij"), axis=-1)
        coef = np.einsum("...vu,...u->...v", self._inverses, E)
        gain = np.einsum("...v,...v->...", E, coef)
        gain[np.ix_(*exhausted)] = -1.0
        indices = np.unravel_index(int(np.argmax(gain)), gain.shape)
        chosen = tuple(int(indices[v]) for v in range(n_views))
        return Choice(chosen, coef[chosen], float(gain[chosen]))


def _along_axes(values: Array, axes: tuple[int, ...], n_axes: int) -> Array:
    """Values with these axes (in ascending order) among `n_axes`; the other axes have length 1."""
    shape = [1] * n_axes
    for axis, length in zip(axes, values.shape, strict=True):
        shape[axis] = length
    return values.reshape(shape)


class OrthogonalBasis:
    """Minimize ``fᵀ A f − 2 fᵀ t`` over the span of the vectors added so far.

    Keeps ``X = V R`` with ``Vᵀ A V = I`` and R upper triangular (the Cholesky factor of
    ``Xᵀ A X``, which is never formed: twice iterated Gram-Schmidt keeps the digits that squaring
    would lose). Adding a vector costs one product with A and O(n k) for k vectors of length n.

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
        self._vectors = np.empty((INITIAL_CAPACITY, len(target)))  # rows of Vᵀ
        self._images = np.empty((INITIAL_CAPACITY, len(target)))  # rows of (A V)ᵀ
        self._triangle = np.zeros((INITIAL_CAPACITY, INITIAL_CAPACITY))  # R
        self._moments = np.empty(INITIAL_CAPACITY)  # Vᵀ t
        self.fitted = np.zeros(len(target))

    def add(self, x: Array) -> bool:
        """Add a vector unless it is in the span of the others, in the seminorm of A.

        Returns
        -------
        bool
            Whether it was added.
        """
        k = self._size
        V = self._vectors[:k]
        AV = self._images[:k]
        overlap = np.zeros(k)
        for _ in range(2):
            correction = AV @ x
            x = x - correction @ V
            overlap += correction
        image = self._product(x)
        residual_square = max(0.0, float(x @ image))
        square = residual_square + float(overlap @ overlap)
        if residual_square <= DEPENDENCE_TOLERANCE**2 * square:
            return False
        if k == len(self._vectors):
            self._double_capacity()
        norm = np.sqrt(residual_square)
        self._vectors[k] = x / norm
        self._images[k] = image / norm
        self._triangle[:k, k] = overlap
        self._triangle[k, k] = norm
        self._moments[k] = self._vectors[k] @ self._target
        self.fitted += self._moments[k] * self._vectors[k]
        self._size = k + 1
        return True

    def coefficients(self) -> Array:
        """Coefficients of the added vectors in the minimizer, ``R⁻¹ Vᵀ t``."""
        k = self._size
        return np.asarray(solve_triangular(self._triangle[:k, :k], self._moments[:k]))

    def _double_capacity(self) -> None:
        capacity = len(self._vectors)
        self._vectors = np.concatenate([self._vectors, np.empty_like(self._vectors)])
        self._images = np.concatenate([self._images, np.empty_like(self._images)])
        self._triangle = np.pad(self._triangle, (0, capacity))
        self._moments = np.pad(self._moments, (0, capacity))


class Step(NamedTuple):
    """The expansion after a step.

    Attributes
    ----------
    chosen : tuple of int
        The function of each view that this step selected.
    basis : list of list of int
        For each view its distinct functions so far, in the order of their first selection.
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
    """The selected functions, with their coefficients.

    Attributes
    ----------
    basis : list of list of int
        For each view the selected functions.
    exhausted : list of ndarray of bool
        For each view the functions that would change nothing if they were selected.
    """

    def __init__(self, problem: PursuitProblem, backfit: str | None) -> None:
        self._problem = problem
        self._backfit = backfit
        self._is_guided_by_fit = backfit == "every"
        self._coef: list[dict[int, float]] = [{} for _ in problem.scored]
        self._scores = np.zeros((len(problem.loss.target), problem.n_views))
        n_agreeing = problem.agreeing[0].shape[0] if problem.agreeing else 0
        target_of_view = np.concatenate([problem.loss.target, np.zeros(n_agreeing)])
        target = np.tile(target_of_view, problem.n_views)
        self._least_squares = OrthogonalBasis(problem.stacked_product, target)
        self._fitted: list[tuple[int, int]] = []  # (view, function) in the order of that basis
        self.basis: list[list[int]] = [[] for _ in problem.scored]
        self.exhausted: list[Mask] = [np.zeros(K.shape[1], dtype=bool) for K in problem.scored]

    def add(self, choice: Choice) -> bool:
        """Add the selected functions.

        Returns
        -------
        bool
            Whether the scores that guide the search changed.
        """
        is_changed = not self._is_guided_by_fit
        for view, (j, coefficient) in enumerate(zip(choice.indices, choice.coef, strict=True)):
            values = _column(self._problem.scored[view], j)
            self._coef[view][j] = self._coef[view].get(j, 0.0) + float(coefficient)
            self._scores[:, view] += coefficient * values
            if j in self.basis[view]:
                continue
            is_independent = False
            if self._backfit is not None:
                is_independent = self._add_to_least_squares(view, j, values)
            if is_independent or not self._is_guided_by_fit:
                self.basis[view].append(j)
            if self._is_guided_by_fit:
                self.exhausted[view][j] = True
                is_changed |= is_independent
        return is_changed

    def _add_to_least_squares(self, view: int, j: int, values: Array) -> bool:
        """Add a function to the least-squares fit unless it is a combination of the others."""
        problem = self._problem
        if problem.agreeing:
            values = np.concatenate([values, _column(problem.agreeing[view], j)])
        stacked = np.zeros((problem.n_views, len(values)))
        stacked[view] = values
        is_independent = self._least_squares.add(stacked.ravel())
        if is_independent:
            self._fitted.append((view, j))
        return is_independent

    def guiding_scores(self) -> Array:
        """Scores of the rows by each view, of which the next step fits the residual."""
        return self._scores_of_rows(is_fitted=self._is_guided_by_fit)

    def _scores_of_rows(self, *, is_fitted: bool) -> Array:
        """Scores of the scored rows by each view: by least squares, or by the steps."""
        if not is_fitted:
            return self._scores
        n_rows, n_views = self._scores.shape
        return self._least_squares.fitted.reshape(n_views, -1).T[:n_rows]

    def step(self, chosen: tuple[int, ...]) -> Step:
        """The current expansion; the coefficient is 0 for functions in the span of earlier ones."""
        problem = self._problem
        is_fitted = self._backfit is not None
        coef_by_view = self._coef
        if is_fitted:
            coef_by_view = [{} for _ in problem.scored]
            coefficients = self._least_squares.coefficients()
            for (view, j), coefficient in zip(self._fitted, coefficients, strict=True):
                coef_by_view[view][j] = coefficient
        coef = []
        for coef_of, functions in zip(coef_by_view, self.basis, strict=True):
            coef.append(np.array([coef_of.get(j, 0.0) for j in functions]))
        scores = self._scores_of_rows(is_fitted=is_fitted)
        means = problem.means(scores)
        basis = [list(functions) for functions in self.basis]
        return Step(chosen, basis, coef, means, self._error(scores.mean(axis=1), means))

    def _error(self, f: Array, means: Array) -> float:
        """Loss of the mean of the views."""
        problem = self._problem
        intercept = means.mean() if problem.has_free_intercept else 0.0
        explained = 2 * problem.loss.target - problem.product(f)
        return max(0.0, problem.loss.at_zero - float((f - intercept) @ explained))


def pursue(
    problem: PursuitProblem,
    search: SharedIndices | AllPairs | AllCombinations,
    n_steps: int,
    backfit: str | None,
) -> Iterator[Step]:
    """Add one function to each view, step by step, until nothing decreases the objective.

    Parameters
    ----------
    problem : PursuitProblem
        The objective.
    search : SharedIndices, AllPairs or AllCombinations
        Selects the functions of a step.
    n_steps : int
        Limit of steps.
    backfit : {None, "final", "every"}
        None: coefficients are those of the steps, and a function may be selected again. "final":
        the same functions, with the coefficients of a least-squares fit on them. "every": that fit
        is made after each step and the next step starts from its residual.

    Yields
    ------
    Step
        The expansion after each step.
    """
    expansion = _Expansion(problem, backfit)
    smallest_gain = EPSILON * problem.loss.at_zero
    n_done = 0
    while n_done < n_steps:
        f = expansion.guiding_scores().mean(axis=1)
        residual = problem.loss.target - problem.product(f)
        correlations = [np.asarray(K.T @ residual) for K in problem.scored]
        choice = search.best(correlations, expansion.exhausted)
        if not choice.gain > smallest_gain:
            return
        if expansion.add(choice):
            n_done += 1
            yield expansion.step(choice.indices)
