"""Nuisance columns Z: what they explain is taken out of a loss, ``min_γ loss(f + Z γ)``.

γ is not penalized. For the squared loss, in features R with w for weights, the minimum over γ of
``(Rw + Zγ)ᵀ A (Rw + Zγ) − 2 (Rw + Zγ)ᵀ t`` leaves the system

    Rᵀ A R − Rᵀ A Z (Zᵀ A Z)⁺ Zᵀ A R    and    Rᵀ t − Rᵀ A Z (Zᵀ A Z)⁺ Zᵀ t
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.graphs import PreferenceGraph
from rankwise.losses.pairwise import LossValue, PairwiseLoss

RANK = 1e-12  # smallest eigenvalue of a scaled Gram matrix, times its size
EXPLAINED = 1e-10  # share of a column that is rounding when the rest was taken out
ROUNDING = 1e-12  # the same of a sum
STEPS = 100  # of Newton at most
NEAR = 0.1  # of a score: smaller steps are not shortened
DONE = 1e-15  # of the loss: what the last step may still gain
RIDGE = 1e-8  # times the mean square of a column: effects of values that always lose stay finite


def center_in_components(Z: Array, graph: PreferenceGraph) -> Array:
    """The columns less their means in each component; zero where that leaves rounding only."""
    component = graph.components
    member = sp.csr_array((np.ones(len(Z)), (component, np.arange(len(Z)))))
    means = (member @ Z) / np.bincount(component)[:, None]
    centered = Z - means[component]
    is_constant = np.abs(centered).max(axis=0) <= ROUNDING * np.abs(Z).max(axis=0)
    return np.where(is_constant, 0.0, centered)


def hstack_columns(R: Any, Z: Array) -> Any:
    """``[R Z]``, sparse if R is."""
    return sp.hstack([R, sp.csr_array(Z)], format="csr") if sp.issparse(R) else np.hstack([R, Z])


def partial_out(gram: Array, moment: Array, n: int) -> tuple[Array, Array]:
    """Gram matrix and moment of the other columns when the last n, unpenalized, are taken out.

    What rounding leaves of a column or a moment that is explained is zero.
    """
    p = len(gram) - n
    B = _inverse(gram[p:, p:]) @ gram[p:, :p]
    rest = gram[:p, :p] - gram[:p, p:] @ B
    left = moment[:p] - B.T @ moment[p:]
    size = np.abs(moment[:p]) + np.abs(B.T) @ np.abs(moment[p:])
    left[np.abs(left) <= ROUNDING * size] = 0.0
    explained = rest.diagonal() <= EXPLAINED * gram.diagonal()[:p]
    rest[explained], rest[:, explained], left[explained] = 0.0, 0.0, 0.0
    return rest, left


def nuisance_effects(
    R: Array,
    w: Array,
    Z: Array,
    times_A: Callable[[Array], Array],
    target: Array,
    groups: Indices,
    alpha: float,
) -> tuple[Array, Array]:
    """γ and its standard errors, robust to any dependence inside groups.

    Of effects that fit alike γ is the smallest in norm. Errors are nan for a column that differs in
    no pair, and if there is one group only.

    With u_g the part of ``[R Z]ᵀ (t − A (Rw + Zγ))`` that group g adds, less the mean, and
    ``H = [R Z]ᵀ A [R Z] + α [I 0; 0 0]``, group g moves γ by the last entries of ``H⁺ u_g``.
    """
    R = R - R.mean(axis=0)
    p, AR, AZ = R.shape[1], times_A(R), times_A(Z)
    G = Z.T @ AZ
    gamma = _inverse(G) @ (Z.T @ target - AZ.T @ (R @ w))
    residual = target - AR @ w - AZ @ gamma
    member = sp.csr_array((residual, (groups, np.arange(len(Z)))))
    U = np.hstack([member @ R, member @ Z])
    U -= U.mean(axis=0)
    C = scipy.linalg.solve(R.T @ AR + alpha * np.eye(p), R.T @ AZ, assume_a="pos")
    moves = (U[:, p:] - U[:, :p] @ C) @ _inverse(G - (AR.T @ Z).T @ C)
    null = _null_space(G)
    gamma, moves = gamma - null @ (null.T @ gamma), moves - (moves @ null) @ null.T
    n = len(U)
    if n == 1:
        return gamma, np.full(len(gamma), np.nan)
    error = np.sqrt(n / (n - 1) * np.sum(moves**2, axis=0))
    return gamma, np.where(G.diagonal() > 0, error, np.nan)


def _inverse(G: Array) -> Array:
    """A generalized inverse of a Gram matrix whose columns may be on any scale."""
    scale, values, Q = _scaled(G)
    kept = values > RANK * len(values)
    half = scale[:, None] * Q[:, kept] / np.sqrt(values[kept])
    return half @ half.T


def _null_space(G: Array) -> Array:
    """An orthonormal basis of the effects that change nothing."""
    scale, values, Q = _scaled(G)
    return np.asarray(scipy.linalg.orth(scale[:, None] * Q[:, values <= RANK * len(values)]))


def _scaled(G: Array) -> tuple[Array, Array, Array]:
    size = np.sqrt(np.maximum(G.diagonal(), 0.0))
    scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    values, Q = scipy.linalg.eigh(G * scale[:, None] * scale)
    return scale, values, Q


class ProfileLoss(PairwiseLoss):
    """``min_γ loss(f + Z γ)`` of a smooth loss: again a convex function of the scores f.

    At the best γ its gradient is that of the loss, and its Hessian ``H − H Z (Zᵀ H Z)⁺ Zᵀ H``. A
    value that never wins a pair would have the effect −∞: a ridge too small to be seen elsewhere
    keeps it finite.

    Parameters
    ----------
    loss : PairwiseLoss
        A loss with a Hessian.
    Z : ndarray of shape (n_items, n_columns)
        The columns, centered inside groups.
    """

    def __init__(self, loss: PairwiseLoss, Z: Array) -> None:
        super().__init__(loss.graph)
        self.loss, self.Z, self.total_weight = loss, Z, loss.total_weight
        self.gamma = np.zeros(Z.shape[1])  # where the next search begins
        self._ridge = RIDGE * np.mean(Z**2, axis=0)

    def explains(self, R: Array) -> bool:
        """Whether the columns explain all those of features, or order all pairs rightly alone."""
        self.at(np.zeros(len(self.Z)))
        loss: Any = self.loss
        if loss.is_separated_by(self.Z @ self.gamma):
            return True
        both = np.hstack([center_in_components(R, self.graph), self.Z])
        rest, _ = partial_out(both.T @ both, np.zeros(both.shape[1]), self.Z.shape[1])
        return not rest.any()

    def of_items(self, items: Indices, graph: PreferenceGraph) -> Self:
        """The same for some of the items and their graph."""
        return type(self)(type(self.loss)(graph), center_in_components(self.Z[items], graph))

    def at(self, f: NDArray[Any]) -> LossValue:
        """Newton's method over γ, then derivatives in f.

        A step that moves scores by r is shortened by 1 + r, which is safe for the logistic loss,
        and doubled as long as that helps.
        """
        gamma = self.gamma
        now = self._with_gamma(f, gamma)
        for _ in range(STEPS):
            HZ = self.times_hessian(now, self.Z)
            inverse = _inverse(self.Z.T @ HZ + 2 * np.diag(self._ridge))
            slope = self.Z.T @ now.gradient + 2 * self._ridge * gamma
            step = inverse @ slope
            if slope @ step <= DONE * now.value:
                break
            reach = float(np.abs(self.Z @ step).max())
            share = 1.0 / (1.0 + reach) if reach > NEAR else 1.0
            now, before = self._with_gamma(f, gamma - share * step), now.value
            while reach > NEAR and now.value < before:  # longer steps, as long as they help
                trial, before = self._with_gamma(f, gamma - 2 * share * step), now.value
                if trial.value < now.value:
                    share, now = 2 * share, trial
            gamma = gamma - share * step
        self.gamma = gamma

        def curvature(v: Array) -> Array:
            Hv = now.curvature(v)
            return Hv - HZ @ (inverse @ (self.Z.T @ Hv))

        return now._replace(curvature=curvature)

    def _with_gamma(self, f: Array, gamma: Array) -> LossValue:
        """The loss at f + Z γ, with the ridge on γ in its value."""
        effect, ridge = self.Z @ gamma, float(self._ridge @ gamma**2)
        now = self.loss.at(f + effect)
        offset = now.offset
        if offset is None:
            offset = now.value - float(now.gradient @ (f + effect))
        offset += float(now.gradient @ effect) + ridge
        return now._replace(value=now.value + ridge, offset=offset)

    @staticmethod
    def times_hessian(at: LossValue, V: Array) -> Array:
        """``H V``, a column at a time."""
        return np.stack([at.curvature(v) for v in np.ascontiguousarray(V.T)], axis=1)

    def effects(self, R: Array, w: Array, f: Array, alpha: float) -> tuple[Array, Array]:
        """γ and its errors at f = R w + Z γ, from the parabola that touches the loss there."""
        now = self.loss.at(f)

        def times_A(V: Array) -> Array:
            return self.times_hessian(now, V) / 2

        target = times_A(f[:, None])[:, 0] - now.gradient / 2
        return nuisance_effects(R, w, self.Z, times_A, target, self.graph.groups, alpha)
