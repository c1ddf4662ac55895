"""Ranking pursuit: greedy choice of the functions of a dictionary, [Pursuit13] figures 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from rankwise.arrays import Array
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.graph import sums_of_squares
from rankwise.losses import SquaredLoss
from rankwise.solvers.orthogonal_basis import OrthogonalBasis
from rankwise.solvers.pursuit_search import (
    AllPairs,
    Choice,
    Cyclic,
    DictionaryColumns,
    Search,
    SharedIndices,
    Single,
)

NOISE = 64 * np.finfo(float).eps


@dataclass(frozen=True)
class PursuitProblem:
    """What a pursuit minimizes.

        J(f_1 … f_M) = Σ_v loss(f_v) + ν/W̄ Σ_v,u (f_v − f_u)ᵀ L̄ (f_v − f_u)

    [Pursuit13] equation 3; L̄ is the graph of the rows on which the views are to agree.

    Attributes
    ----------
    loss : SquaredLoss
        Of the scored rows; with its scores centered if the level is free.
    is_level_free : bool
        Whether an intercept is minimized away: the loss then does not see constants.
    scored : list of DictionaryColumns
        For each view its dictionary at the scored rows.
    agreeing : list of DictionaryColumns
        For each view its dictionary at the rows of the agreement; empty for a single view.
    agreement : PreferenceGraph or None
        The graph L̄.
    nu : float
        ν.
    """

    loss: SquaredLoss
    is_level_free: bool
    scored: list[DictionaryColumns]
    agreeing: list[DictionaryColumns]
    agreement: PreferenceGraph | None = None
    nu: float = 0.0

    @property
    def n_views(self) -> int:
        """M."""
        return len(self.scored)

    def center(self, V: Array) -> Array:
        """V less the mean of each column, if the loss does not see it."""
        return V - self.means(V) if self.is_level_free else V

    def means(self, V: Any) -> Array:
        """Mean of each column, dense or sparse, over the scored rows by their weights."""
        weight = self.loss.graph.item_weights
        if weight is None:
            return np.asarray(V.mean(axis=0)).ravel()
        return np.asarray(V.T @ weight / weight.sum())

    def product(self, V: Array) -> Array:
        """``A V`` at the scored rows."""
        return self.loss.times_A(self.center(V))

    def squared_norms(self, V: Any) -> tuple[Array, Array]:
        """``vᵀ A v`` and ``vᵀ v`` for every (centered) column v, dense or sparse."""
        if not issparse(V):
            V = self.center(V)
            norms = np.einsum("ij,ij->j", V, self.loss.times_A(V))
            return norms, np.einsum("ij,ij->j", V, V)
        norms, size = self.loss.sparse_norms(V), sums_of_squares(V)
        if self.is_level_free:
            norms -= self.loss.beta * self.means(V) ** 2
        return norms, size

    def agree(self, V: Array) -> Array:
        """``2ν/W̄ L̄ V`` at the rows of the agreement."""
        if self.agreement is None or not self.agreement.n_pairs:
            return np.zeros_like(V)
        return self.agreement.laplacian(V) * (2.0 * self.nu / self.agreement.total_weight)

    def residual(self, f: Array) -> Array:
        """``t − A f`` for scores f of the scored rows: what a function must correlate with."""
        return np.asarray(self.loss.target - self.product(f))

    def error(self, f: Array, residual: Array) -> float:
        """The loss of scores f with this residual, and not below zero by rounding."""
        return max(0.0, self.loss.at_zero - float(self.center(f) @ (self.loss.target + residual)))

    def stack(self, view: int, scored: Array, agreeing: Array) -> Array:
        """The functions of all views at all their rows as one vector; all zero but this one."""
        out = np.zeros((self.n_views, len(scored) + len(agreeing)))
        out[view] = np.concatenate([scored, agreeing])
        return out.ravel()

    def stacked_product(self, x: Array) -> Array:
        """Half the Hessian of J at stacked functions."""
        F = x.reshape(self.n_views, -1).T
        n = len(self.loss.target)
        parts = [self.product(F[:n])]
        if len(F) > n:
            U = F[n:]
            parts.append(self.agree(self.n_views * U - U.sum(axis=1, keepdims=True)))
        return np.concatenate(parts).T.ravel()

    def stacked_target(self) -> Array:
        """The linear part of J at stacked functions."""
        n_agreeing = self.agreeing[0].shape[0] if self.agreeing else 0
        target = np.concatenate([self.loss.target, np.zeros(n_agreeing)])
        return np.tile(target, self.n_views)


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


class _Plain:
    """Coefficients as each step finds them, [Pursuit13] figure 1 line 8."""

    def __init__(self, problem: PursuitProblem) -> None:
        self._coef: list[dict[int, float]] = [{} for _ in problem.scored]
        self.scores = np.zeros((len(problem.loss.target), problem.n_views))

    def add(self, view: int, j: int, values: Array, a: float) -> None:
        self._coef[view][j] = self._coef[view].get(j, 0.0) + a
        self.scores[:, view] += a * values

    def coefficients(self, basis: list[list[int]]) -> list[Array]:
        return [
            np.array([coef[j] for j in part]) for coef, part in zip(self._coef, basis, strict=True)
        ]


class _BackFitted:
    """All coefficients of all views minimize J together after each step."""

    def __init__(self, problem: PursuitProblem) -> None:
        self._problem = problem
        self._basis = OrthogonalBasis(problem.stacked_product, problem.stacked_target())
        self._functions: list[tuple[int, int]] = []

    def add(self, view: int, j: int, values: Array) -> bool:
        """Tell whether the function is not a combination of those before."""
        problem = self._problem
        agreeing = problem.agreeing[view].column(j) if problem.agreeing else np.empty(0)
        is_new = self._basis.add(problem.stack(view, values, agreeing))
        if is_new:
            self._functions.append((view, j))
        return is_new

    @property
    def scores(self) -> Array:
        n = len(self._problem.loss.target)
        return self._basis.fitted.reshape(self._problem.n_views, -1).T[:n]

    def coefficients(self, basis: list[list[int]]) -> list[Array]:
        """One for each function; 0 for those that the earlier ones span."""
        value = dict(zip(self._functions, self._basis.coefficients(), strict=True))
        return [
            np.array([value.get((view, j), 0.0) for j in part]) for view, part in enumerate(basis)
        ]


class _Expansion:
    """The functions that were chosen, with coefficients as `backfit` asks for.

    Attributes
    ----------
    guide : _Plain or _BackFitted
        Whose residual the next step is to explain.
    result : _Plain or _BackFitted
        Whose coefficients are reported.
    basis : list of list of int
        For each view the chosen functions.
    spent : list of set of int
        For each view functions whose choice would change nothing.
    """

    def __init__(self, problem: PursuitProblem, backfit: str | None) -> None:
        self._problem = problem
        self._plain, self._fitted = _Plain(problem), _BackFitted(problem)
        self.guide = self._fitted if backfit == "every" else self._plain
        self.result = self._plain if backfit is None else self._fitted
        self.basis: list[list[int]] = [[] for _ in problem.scored]
        self.spent: list[set[int]] = [set() for _ in problem.scored]

    def take(self, choice: Choice) -> bool:
        """Add the chosen functions; tell whether the residual of the guide has changed."""
        is_changed = self.guide is self._plain
        for view, (j, a) in enumerate(zip(choice.indices, choice.coef, strict=True)):
            values = self._problem.scored[view].column(j)
            self._plain.add(view, j, values, float(a))
            if j in self.basis[view]:
                continue
            is_new = self.result is self._fitted and self._fitted.add(view, j, values)
            if is_new or self.guide is self._plain:
                self.basis[view].append(j)
            if self.guide is self._fitted:
                self.spent[view].add(j)
                is_changed |= is_new
        return is_changed

    def step(self, chosen: tuple[int, ...], residual: Array) -> Step:
        """What there is now; the residual is that of the guide."""
        problem, scores = self._problem, self.result.scores
        f = scores.mean(axis=1)
        if self.result is not self.guide:
            residual = problem.residual(f)
        return Step(
            chosen,
            [list(part) for part in self.basis],
            self.result.coefficients(self.basis),
            problem.means(scores),
            problem.error(f, residual),
        )


def pursue(
    problem: PursuitProblem, search: Search, n_steps: int, backfit: str | None
) -> Iterator[Step]:
    """Add one function to each view, step by step, until nothing lowers the objective.

    Parameters
    ----------
    problem : PursuitProblem
        What to minimize.
    search : Search
        How a step finds its functions.
    n_steps : int
        At most so many steps.
    backfit : {None, "final", "every"}
        None: coefficients stay as their step found them, and a function may be taken again.
        "final": the same functions, with the coefficients of a least-squares fit on them. "every":
        that fit is made after each step and the next one starts from its residual.
    """
    expansion = _Expansion(problem, backfit)
    residual = problem.loss.target
    tiny = np.finfo(float).eps * problem.loss.at_zero
    done = 0
    while done < n_steps:
        e = [columns.correlate(residual) for columns in problem.scored]
        spent = [np.array(sorted(part), dtype=np.intp) for part in expansion.spent]
        choice = search.best(e, spent)
        if not choice.gain > tiny:
            return
        if expansion.take(choice):
            done += 1
            residual = problem.residual(expansion.guide.scores.mean(axis=1))
            yield expansion.step(choice.indices, residual)


def make_search(problem: PursuitProblem, norms: list[Array], how: str) -> Search:
    """Compute once what every step needs.

    Parameters
    ----------
    problem : PursuitProblem
        With one view or more.
    norms : list of ndarray
        `scored_norms` of each view.
    how : {"pairs", "shared", "cyclic"}
        For several views; "pairs" takes memory for a matrix of one dictionary times the other.
    """
    if problem.n_views == 1:
        return Single(norms[0])
    weight = problem.n_views - 1
    diagonal = [own + weight * _inner_products(problem, v, v) for v, own in enumerate(norms)]
    if how == "pairs":
        cross = np.empty((len(norms[0]), len(norms[1])))
        for columns, block in problem.agreeing[1].blocks():
            cross[:, columns] = problem.agreeing[0].correlate(problem.agree(block))
        return AllPairs((diagonal[0], diagonal[1]), cross)
    if how == "shared":
        S = np.empty((len(norms[0]), problem.n_views, problem.n_views))
        for v, own in enumerate(diagonal):
            S[:, v, v] = own
            for u in range(v):
                S[:, v, u] = S[:, u, v] = -_inner_products(problem, v, u)
        return SharedIndices(np.asarray(np.linalg.pinv(S, hermitian=True), dtype=np.float64))

    def cross_of(v: int, u: int, j: int) -> Array:
        return -problem.agreeing[v].correlate(problem.agree(problem.agreeing[u].column(j)))

    return Cyclic(tuple(diagonal), cross_of)


def scored_norms(problem: PursuitProblem, view: int) -> Array:
    """``kᵀ A k`` of every function; 0 for those that vary by rounding only."""
    norms = np.empty(problem.scored[view].shape[1])
    for columns, block in problem.scored[view].blocks(dense=False):
        value, size = problem.squared_norms(block)
        value[value <= NOISE * size / block.shape[0]] = 0.0
        norms[columns] = value
    return norms


def _inner_products(problem: PursuitProblem, v: int, u: int) -> Array:
    """``2ν/W̄ k̄_vᵀ L̄ k̄_u`` of the functions that have the same index in both views."""
    pairs = zip(problem.agreeing[v].blocks(), problem.agreeing[u].blocks(), strict=True)
    return np.concatenate(
        [np.einsum("ij,ij->j", block, problem.agree(other)) for (_, block), (_, other) in pairs]
    )
