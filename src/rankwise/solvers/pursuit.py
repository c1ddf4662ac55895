"""Ranking pursuit: greedy selection from a dictionary of functions, [Pursuit13] figures 1 and 2.

A step selects the functions, one for each view, that decrease the objective most. With
e_v = k_vᵀ (t − A f) a choice γ = (γ_1 … γ_M) has the coefficients ``a = S⁻¹ e`` and decreases
the objective by ``eᵀ S⁻¹ e``, where S is the matrix B + C of figure 2:

    S_vv = k_vᵀ A k_v + (M−1) 2ν/W̄ k̄_vᵀ L̄ k̄_v,        S_vu = −2ν/W̄ k̄_vᵀ L̄ k̄_u

with the total weight W̄ of the pairs on which the M views agree.

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
from rankwise.caching import cached_property
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.gram import sums_of_squares
from rankwise.losses import SquaredLoss

Mask = NDArray[np.bool_]
EPSILON = float(np.finfo(float).eps)
CONSTANT_TOLERANCE = 64 * EPSILON  # variance of a constant function, relative to its mean square
BLOCK_ENTRIES = 2**18  # entries of a block, so that it stays in the cache
SINGULAR_DETERMINANT = 1e-14  # relative to the product of the diagonal
DEPENDENCE_TOLERANCE = 1e-10  # relative residual norm of a vector in the span of the others
INITIAL_CAPACITY = 16  # vectors


@dataclass(frozen=True)
class PursuitProblem:
    """The objective of a pursuit.

        J(f_1 … f_M) = Σ_v loss(f_v) + ν/W̄ Σ_v,u (f_v − f_u)ᵀ L̄ (f_v − f_u)

    [Pursuit13] equation 3; L̄ is the Laplacian of the rows on which the views agree.

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

    @cached_property
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
        # pairs ignore constants, but columns far from zero would lose digits
        return self.loss.times_A(self._center_if_free(V))

    def _center_if_free(self, V: Array) -> Array:
        """The columns less their means, if the intercept is free."""
        if self.has_free_intercept:
            return V - self.means(V)
        return V

    def squared_norms(self) -> list[Array]:
        """``kᵀ A k`` of every function, for each view; 0 for functions constant up to rounding."""
        squared_norms_by_view = []
        for K in self.scored:
            if issparse(K):
                squared_norms, squared_lengths = self._sparse_squared_norms(K)
            else:
                squared_norms, squared_lengths = self._dense_squared_norms(K)
            # kᵀ A k is a kind of variance; if it is only rounding, relative to the mean square of
            # the values, the function is constant
            rounding_error = CONSTANT_TOLERANCE * squared_lengths / K.shape[0]
            is_constant = squared_norms <= rounding_error
            squared_norms_by_view.append(np.where(is_constant, 0.0, squared_norms))
        return squared_norms_by_view

    def _sparse_squared_norms(self, K: Matrix) -> tuple[Array, Array]:
        """``kᵀ A k`` and ``kᵀ k`` of every column."""
        # kᵀ A k of each column k of K, and kᵀ k; centering a column, which would make it dense,
        # takes β mean² from kᵀ A k
        squared_norms = self.loss.norms(K)
        if self.has_free_intercept:
            squared_norms = squared_norms - self.loss.beta * self.means(K) ** 2
        return squared_norms, sums_of_squares(K)

    def _dense_squared_norms(self, K: Matrix) -> tuple[Array, Array]:
        """``kᵀ A k`` and ``kᵀ k`` of every column, centered if the intercept is free."""
        squared_norms = np.empty(K.shape[1])
        squared_lengths = np.empty(K.shape[1])
        for columns, V in _dense_blocks(K):
            centered = self._center_if_free(V)
            A_centered = self.loss.times_A(centered)
            squared_norms[columns] = np.einsum("ij,ij->j", centered, A_centered)
            squared_lengths[columns] = np.einsum("ij,ij->j", centered, centered)
        return squared_norms, squared_lengths

    def agreement_product(self, V: Array) -> Array:
        """``2ν/W̄ L̄ V`` at the rows of the agreement."""
        if self.agreement is None or not self.agreement.n_pairs:
            return np.zeros_like(V)
        pair_factor = 2.0 * self.nu / self.agreement.total_weight  # 2ν/W̄
        return self.agreement.laplacian(V) * pair_factor  # 2ν/W̄ L̄ V

    def agreement_products(self, v: int, u: int) -> Array:
        """``2ν/W̄ k̄_vᵀ L̄ k̄_u`` of the functions with the same index in both views."""
        # 2ν/W̄ k_jᵀ L̄ k'_j of function j of view v and function j of view u, for every j, at the
        # items on which the views should agree
        products = []
        blocks_v = _dense_blocks(self.agreeing[v])
        blocks_u = _dense_blocks(self.agreeing[u])
        for (_, functions_of_v), (_, functions_of_u) in zip(blocks_v, blocks_u, strict=True):
            scaled_laplacian_of_u = self.agreement_product(functions_of_u)  # 2ν/W̄ L̄ k'
            products.append(np.einsum("ij,ij->j", functions_of_v, scaled_laplacian_of_u))
        return np.concatenate(products)

    def agreement_cross_products(self, v: int, u: int) -> Array:
        """``2ν/W̄ k̄_vᵀ L̄ k̄_u`` of every function of view v with every function of view u."""
        # 2ν/W̄ k_iᵀ L̄ k'_j of every function i of view v and every function j of view u
        products = np.empty((self.scored[v].shape[1], self.scored[u].shape[1]))
        for columns, block in _dense_blocks(self.agreeing[u]):
            scaled_laplacian_of_u = self.agreement_product(block)  # 2ν/W̄ L̄ k'
            products[:, columns] = self.agreeing[v].T @ scaled_laplacian_of_u
        return products

    def stacked_product(self, x: Array) -> Array:
        """Half the Hessian of J times a vector of the scores of all views at all their rows."""
        # x has the scores of one view after the other: (n_scored + n_agreeing, n_views)
        scores = x.reshape(self.n_views, -1).T
        n_scored = len(self.loss.target)
        products = [self.product(scores[:n_scored])]
        if len(scores) > n_scored:
            agreeing_scores = scores[n_scored:]
            # Σ_u (f_v − f_u) of each view v
            sum_of_views = agreeing_scores.sum(axis=1, keepdims=True)
            differences = self.n_views * agreeing_scores - sum_of_views
            products.append(self.agreement_product(differences))
        return np.concatenate(products).T.ravel()


def _dense_blocks(K: Matrix) -> Iterator[tuple[slice, Array]]:
    """The columns of a dense or sparse matrix, dense, a block at a time."""
    n_rows, n_columns = K.shape
    block_columns = max(1, BLOCK_ENTRIES // max(1, n_rows))
    for start in range(0, n_columns, block_columns):
        columns = slice(start, start + block_columns)
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


class SharedIndexSearch:
    """Search for a single view, or for views on the same items that all select the same item.

    [Pursuit13] figure 1, and figure 2 with footnote 4.
    """

    def __init__(self, problem: PursuitProblem, squared_norms: list[Array]) -> None:
        # S, the quadratic part of the objective in the coefficients of one function for each view:
        # S_vv = k_vᵀ A k_v + (M−1) 2ν/W̄ k̄_vᵀ L̄ k̄_v and S_vu = −2ν/W̄ k̄_vᵀ L̄ k̄_u, with the values k
        # of a function at the scored rows, k̄ at the rows on which the M views are to agree
        n_views = problem.n_views
        n_functions = len(squared_norms[0])
        S = np.empty((n_functions, n_views, n_views))
        for v in range(n_views):
            S[:, v, v] = squared_norms[v]
            if n_views > 1:
                S[:, v, v] += (n_views - 1) * problem.agreement_products(v, v)
            for u in range(v):
                off_diagonal = -problem.agreement_products(v, u)
                S[:, v, u] = off_diagonal
                S[:, u, v] = off_diagonal
        self._inverses_of_S = np.asarray(np.linalg.pinv(S, hermitian=True), dtype=np.float64)

    def best(self, correlations: list[Array], exhausted: list[Mask]) -> Choice:
        """The choice with the largest gain whose functions are not all exhausted.

        Parameters
        ----------
        correlations : list of ndarray
            For each view e of its functions.
        exhausted : list of ndarray of bool
            For each view the functions whose selection would have no effect.
        """
        # a function has the coefficients S⁻¹ e in the views, and decreases the objective by its
        # gain eᵀ S⁻¹ e, with the correlations e of its values and the residuals of each view
        n_views = len(correlations)
        e = np.stack(correlations, axis=1)  # (n_functions, n_views)
        coef = np.einsum("nvu,nu->nv", self._inverses_of_S, e)  # S⁻¹ e of each function
        gain = np.einsum("nv,nv->n", e, coef)
        is_exhausted = np.all(exhausted, axis=0)
        gain[is_exhausted] = -1.0
        j = int(np.argmax(gain))
        return Choice((j,) * n_views, coef[j], float(gain[j]))


class AllPairsSearch:
    """Search over every pair of functions of two views, by arithmetic on the 2 × 2 systems.

    Needs memory for −S_12 of every pair.
    """

    def __init__(self, problem: PursuitProblem, squared_norms: list[Array]) -> None:
        # S, the quadratic part of the objective in the coefficients of one function for each view:
        # S_vv = k_vᵀ A k_v + (M−1) 2ν/W̄ k̄_vᵀ L̄ k̄_v and S_vu = −2ν/W̄ k̄_vᵀ L̄ k̄_u, with the values k
        # of a function at the scored rows, k̄ at the rows on which the M views are to agree
        # here M = 2, so M − 1 = 1
        self._S_11 = squared_norms[0] + problem.agreement_products(0, 0)
        self._S_22 = squared_norms[1] + problem.agreement_products(1, 1)
        self._negative_S_12 = problem.agreement_cross_products(0, 1)  # of every pair of functions

    def best(self, correlations: list[Array], exhausted: list[Mask]) -> Choice:
        """The choice with the largest gain, by a pass over all pairs, in blocks of rows."""
        # the functions i of the first and j of the second view that decrease the objective most: by
        # eᵀ S⁻¹ e, with the correlations e of their values and the residuals
        n_first, n_second = self._negative_S_12.shape
        e_1, e_2 = correlations
        first_exhausted, second_exhausted = exhausted
        best_gain = -1.0
        i = 0
        j = 0
        block_rows = max(1, BLOCK_ENTRIES // n_second)
        for top in range(0, n_first, block_rows):
            rows = slice(top, top + block_rows)
            gain = self._gains(rows, e_1, e_2)
            gain[np.ix_(first_exhausted[rows], second_exhausted)] = -1.0
            largest = int(np.argmax(gain))
            if gain.flat[largest] > best_gain:
                best_gain = float(gain.flat[largest])
                row_in_block, j = divmod(largest, n_second)
                i = top + row_in_block
        # coefficients S⁻¹ e of the best pair
        S_12 = -self._negative_S_12[i, j]
        S = np.array([[self._S_11[i], S_12], [S_12, self._S_22[j]]])
        coef = np.linalg.pinv(S, hermitian=True) @ [e_1[i], e_2[j]]
        return Choice((i, j), coef, best_gain)

    def _gains(self, rows: slice, e_1: Array, e_2: Array) -> Array:
        """``(S_22 e_1² − 2 S_12 e_1 e_2 + S_11 e_2²) / det S``; 0 where S is singular."""
        # decrease of the objective by each pair of functions of the two views, from the
        # correlations e of their values and the residuals:
        # eᵀ S⁻¹ e = (S_22 e_1² − 2 S_12 e_1 e_2 + S_11 e_2²) / det S
        S_11 = self._S_11[rows, None]
        S_22 = self._S_22
        negative_S_12 = self._negative_S_12[rows]
        e_1 = e_1[rows, None]
        product = S_11 * S_22
        determinant = product - negative_S_12 * negative_S_12
        numerator = negative_S_12 * (2.0 * e_1)  # in place from here on: the blocks are large
        numerator *= e_2
        numerator += S_22 * e_1**2
        numerator += S_11 * e_2**2
        is_regular = determinant > SINGULAR_DETERMINANT * product
        return np.divide(numerator, determinant, out=np.zeros_like(determinant), where=is_regular)


class AllCombinationsSearch:
    """Search over every combination of one function of each view, for any number of views.

    [Pursuit13] figure 2, O(n^M (M³ + M² l)). The M × M systems do not change
    from step to step, so their inverses are computed once and stored.
    """

    def __init__(self, problem: PursuitProblem, squared_norms: list[Array]) -> None:
        # S, the quadratic part of the objective in the coefficients of one function for each view:
        # S_vv = k_vᵀ A k_v + (M−1) 2ν/W̄ k̄_vᵀ L̄ k̄_v and S_vu = −2ν/W̄ k̄_vᵀ L̄ k̄_u, with the values k
        # of a function at the scored rows, k̄ at the rows on which the M views are to agree
        n_views = problem.n_views
        n_functions = tuple(len(squared_norms_of_view) for squared_norms_of_view in squared_norms)
        S = np.zeros((*n_functions, n_views, n_views))  # one axis for each view's function
        for v in range(n_views):
            diagonal = squared_norms[v] + (n_views - 1) * problem.agreement_products(v, v)
            S[..., v, v] = _place_on_axes(diagonal, (v,), n_views)
            for u in range(v):
                products = problem.agreement_cross_products(u, v)
                off_diagonal = _place_on_axes(-products, (u, v), n_views)
                S[..., u, v] = off_diagonal
                S[..., v, u] = off_diagonal
        self._inverses_of_S = np.empty_like(S)
        for i in range(n_functions[0]):  # pinv of all at once would take much more memory
            self._inverses_of_S[i] = np.linalg.pinv(S[i], hermitian=True)

    def best(self, correlations: list[Array], exhausted: list[Mask]) -> Choice:
        """The choice with the largest gain whose functions are not all exhausted."""
        # a combination of one function for each view has the coefficients S⁻¹ e, and decreases the
        # objective by its gain eᵀ S⁻¹ e, with the correlations e of their values and the residuals
        e = np.stack(np.meshgrid(*correlations, indexing="ij"), axis=-1)
        coef = np.einsum("...vu,...u->...v", self._inverses_of_S, e)  # S⁻¹ e of each combination
        gain = np.einsum("...v,...v->...", e, coef)
        gain[np.ix_(*exhausted)] = -1.0
        best_combination = np.unravel_index(int(np.argmax(gain)), gain.shape)
        indices = tuple(int(index) for index in best_combination)
        return Choice(indices, coef[indices], float(gain[indices]))


def _place_on_axes(values: Array, axes: tuple[int, ...], n_axes: int) -> Array:
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
        # for the vectors X added so far X = V R, with Vᵀ A V = I and an upper triangular R
        self._product = product  # A v of a vector v
        self._target = target  # t
        self._size = 0
        self._vectors = np.empty((INITIAL_CAPACITY, len(target)))  # rows of Vᵀ
        self._images = np.empty((INITIAL_CAPACITY, len(target)))  # rows of (A V)ᵀ
        self._triangle = np.zeros((INITIAL_CAPACITY, INITIAL_CAPACITY))  # R
        self._moments = np.empty(INITIAL_CAPACITY)  # Vᵀ t
        self.fitted = np.zeros(len(target))  # f that minimizes fᵀ A f − 2 fᵀ t in their span

    def add(self, x: Array) -> bool:
        """Add a vector unless it is in the span of the others, in the seminorm of A.

        Returns
        -------
        bool
            Whether it was added.
        """
        # extend the basis V of the span by x; False if x is in the span already
        k = self._size
        V = self._vectors[:k]
        AV = self._images[:k]

        # Gram-Schmidt in the seminorm of A; the second pass removes the rounding of the first
        residual = x
        projections = np.zeros(k)
        for _ in range(2):
            projection = AV @ residual
            residual = residual - projection @ V
            projections += projection
        image = self._product(residual)
        squared_residual_norm = max(0.0, float(residual @ image))
        squared_norm = squared_residual_norm + float(projections @ projections)
        if squared_residual_norm <= DEPENDENCE_TOLERANCE**2 * squared_norm:
            return False

        if k == len(self._vectors):
            self._double_capacity()
        # x = Σ projections · vectors + residual: a column of R, and a vector with vᵀ A v = 1
        residual_norm = np.sqrt(squared_residual_norm)
        self._vectors[k] = residual / residual_norm
        self._images[k] = image / residual_norm
        self._triangle[:k, k] = projections
        self._triangle[k, k] = residual_norm
        self._moments[k] = self._vectors[k] @ self._target
        self.fitted += self._moments[k] * self._vectors[k]
        self._size = k + 1
        return True

    def coefficients(self) -> Array:
        """Coefficients of the added vectors in the minimizer, ``R⁻¹ Vᵀ t``."""
        # of the vectors that were added, from R coef = Vᵀ t
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
        For each view the functions whose selection would have no effect.
    """

    def __init__(self, problem: PursuitProblem, backfit: str | None) -> None:
        self._problem = problem
        self._backfit = backfit
        self._refits_every_step = backfit == "every"
        self._coef_of_steps: list[dict[int, float]] = [{} for _ in problem.scored]
        self._scores_of_steps = np.zeros((len(problem.loss.target), problem.n_views))
        n_agreeing = problem.agreeing[0].shape[0] if problem.agreeing else 0
        # the fit has the scored rows and then the agreeing rows of each view; the latter have no
        # target, the views are only to agree there
        target_of_view = np.concatenate([problem.loss.target, np.zeros(n_agreeing)])
        target = np.tile(target_of_view, problem.n_views)
        self._least_squares = OrthogonalBasis(problem.stacked_product, target)
        # (view, function) of each vector of that basis
        self._functions_of_fit: list[tuple[int, int]] = []
        self.basis: list[list[int]] = [[] for _ in problem.scored]
        self.exhausted: list[Mask] = [np.zeros(K.shape[1], dtype=bool) for K in problem.scored]

    def add(self, choice: Choice) -> bool:
        """Add the selected functions.

        Returns
        -------
        bool
            Whether the scores that guide the search changed.
        """
        # one function j of each view; False if refitting after this step has no effect
        is_fit_changed = False
        for view, (j, coefficient) in enumerate(zip(choice.indices, choice.coef, strict=True)):
            values = _column(self._problem.scored[view], j)
            coef_of_view = self._coef_of_steps[view]
            coef_of_view[j] = coef_of_view.get(j, 0.0) + float(coefficient)
            self._scores_of_steps[:, view] += coefficient * values
            if j not in self.basis[view]:
                is_fit_changed |= self._add_to_basis(view, j, values)
        return is_fit_changed or not self._refits_every_step

    def _add_to_basis(self, view: int, j: int, values: Array) -> bool:
        """Add a function that was not selected before.

        Returns
        -------
        bool
            Whether the least-squares fit changed.
        """
        # a function that is a combination of the others leaves the least-squares fit as it was; if
        # that fit is the model of every step, the function is no step, and is not tried again
        is_fit_changed = False
        if self._backfit is not None:
            is_fit_changed = self._add_to_least_squares(view, j, values)
        if self._refits_every_step:
            self.exhausted[view][j] = True
            if not is_fit_changed:
                return False
        self.basis[view].append(j)
        return is_fit_changed

    def _add_to_least_squares(self, view: int, j: int, values: Array) -> bool:
        """Add a function to the least-squares fit unless it is a combination of the others."""
        # the fit is over the rows of all views, and the function is zero in the other views
        problem = self._problem
        if problem.agreeing:
            values = np.concatenate([values, _column(problem.agreeing[view], j)])
        values_in_all_views = np.zeros((problem.n_views, len(values)))
        values_in_all_views[view] = values
        is_independent = self._least_squares.add(values_in_all_views.ravel())
        if is_independent:
            self._functions_of_fit.append((view, j))
        return is_independent

    def scores_for_next_choice(self) -> Array:
        """Scores of the rows by each view, of which the next step fits the residual."""
        if self._refits_every_step:
            return self._least_squares_scores()
        return self._scores_of_steps

    def _least_squares_scores(self) -> Array:
        """Scores of the scored rows by each view, by the least-squares fit."""
        # the fit has the scores of all rows, one view after the other, scored rows first
        n_rows, n_views = self._scores_of_steps.shape
        return self._least_squares.fitted.reshape(n_views, -1).T[:n_rows]

    def make_step(self, chosen: tuple[int, ...], A_mean_scores: Array) -> Step:
        """The current expansion; the coefficient is 0 for functions in the span of earlier ones.

        `A_mean_scores` is A times the mean of `scores_for_next_choice` over the views.
        """
        # the model after this step, with the coefficients of the steps or of a least-squares fit
        if self._backfit is None:
            coef_by_view = self._coef_of_steps
            scores = self._scores_of_steps
        else:
            coef_by_view = self._least_squares_coef()
            scores = self._least_squares_scores()
        basis = []
        coef = []
        for functions, coef_of_function in zip(self.basis, coef_by_view, strict=True):
            basis.append(list(functions))
            coef.append(np.array([coef_of_function.get(j, 0.0) for j in functions]))
        means = self._problem.means(scores)
        mean_of_views = scores.mean(axis=1)
        if self._backfit == "final":  # the next choice starts from the scores of the steps
            A_mean_scores = self._problem.product(mean_of_views)
        error = self._loss_of_mean(mean_of_views, A_mean_scores, means)
        return Step(chosen, basis, coef, means, error)

    def _least_squares_coef(self) -> list[dict[int, float]]:
        """For each view the coefficients of its functions in the least-squares fit."""
        coef_by_view: list[dict[int, float]] = [{} for _ in self.basis]
        coefficients = self._least_squares.coefficients()
        for (view, j), coefficient in zip(self._functions_of_fit, coefficients, strict=True):
            coef_by_view[view][j] = coefficient
        return coef_by_view

    def _loss_of_mean(
        self, mean_of_views: Array, A_mean_of_views: Array, view_means: Array
    ) -> float:
        """Loss of the mean of the views, less the best intercept if that is free."""
        problem = self._problem
        f = mean_of_views
        if problem.has_free_intercept:
            f = mean_of_views - view_means.mean()
        # loss at the mean f of the views: loss(0) − loss(f) = fᵀ (2 t − A f); the product A f is
        # the same with and without a free intercept
        decrease = float(f @ (2 * problem.loss.target - A_mean_of_views))
        return max(0.0, problem.loss.at_zero - decrease)


def pursue(
    problem: PursuitProblem,
    search: SharedIndexSearch | AllPairsSearch | AllCombinationsSearch,
    n_steps: int,
    backfit: str | None,
) -> Iterator[Step]:
    """Add one function to each view, step by step, until no function decreases the objective.

    Parameters
    ----------
    problem : PursuitProblem
        The objective.
    search : SharedIndexSearch, AllPairsSearch or AllCombinationsSearch
        Selects the functions of a step.
    n_steps : int
        Limit of steps.
    backfit : {None, "final", "every"}
        None: the coefficients of the steps are kept, and a function may be selected again. "final":
        the same functions, with the coefficients of a least-squares fit on them. "every": that fit
        is made after each step and the next step starts from its residual.

    Yields
    ------
    Step
        The expansion after each step.
    """
    # greedy: each step adds the functions, one for each view, that decrease the objective most
    expansion = _Expansion(problem, backfit)
    smallest_gain = EPSILON * problem.loss.at_zero
    A_mean_scores = np.zeros_like(problem.loss.target)  # scores are 0 before the first step
    n_steps_made = 0
    while n_steps_made < n_steps:
        residual = problem.loss.target - A_mean_scores
        correlations = [np.asarray(K.T @ residual) for K in problem.scored]
        choice = search.best(correlations, expansion.exhausted)
        if not choice.gain > smallest_gain:
            return
        if expansion.add(choice):  # else the scores are the same, and the functions are exhausted
            mean_scores = expansion.scores_for_next_choice().mean(axis=1)  # of the views
            A_mean_scores = problem.product(mean_scores)
            n_steps_made += 1
            yield expansion.make_step(choice.indices, A_mean_scores)
