"""Nuisance columns Z: the loss with their effects profiled out, ``min_γ loss(f + Z γ)``.

γ is not penalized. For the squared loss, with features R and weights w, the minimum over γ of
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
from rankwise.losses.pairwise import LossValue, PairwiseLoss, Plane

RANK_TOLERANCE = 1e-12  # eigenvalues below this, per column, of a Gram matrix with unit diagonal
EXPLAINED_TOLERANCE = 1e-10  # share of a column's squares that is rounding after partialling out
CANCELLATION_TOLERANCE = 1e-12  # share of the terms of a sum that is rounding of the sum
MAX_NEWTON_STEPS = 100
SAFE_STEP = 0.1  # Newton steps that change every score by at most this are not shortened
NEWTON_TOLERANCE = 1e-15  # share of the loss that the last Newton step may still gain
RIDGE = 1e-8  # times the mean square of a column; keeps the effects of values that never win finite


def center_in_components(Z: Array, graph: PreferenceGraph) -> Array:
    """The columns less their means in each component; columns constant up to rounding become 0."""
    # subtract from each column its mean in each connected component of the graph
    component = graph.components
    component_sizes = np.bincount(component)
    # (n_components, n_items), 1 where the item is in the component
    membership = sp.csr_array((np.ones(len(Z)), (component, np.arange(len(Z)))))
    component_means = (membership @ Z) / component_sizes[:, None]
    centered = Z - component_means[component]
    largest_value = np.abs(Z).max(axis=0)
    largest_deviation = np.abs(centered).max(axis=0)
    is_constant = largest_deviation <= CANCELLATION_TOLERANCE * largest_value
    return np.where(is_constant, 0.0, centered)


def hstack_columns(R: Any, Z: Array) -> Any:
    """``[R Z]``, sparse if R is sparse."""
    if sp.issparse(R):
        return sp.hstack([R, sp.csr_array(Z)], format="csr")
    return np.hstack([R, Z])


def partial_out(gram: Array, moment: Array, n_nuisance: int) -> tuple[Array, Array]:
    """Eliminate the last, unpenalized, columns from normal equations.

    Parameters
    ----------
    gram : ndarray of shape (n_features + n_nuisance, n_features + n_nuisance)
        Gram matrix of all columns.
    moment : ndarray of shape (n_features + n_nuisance, n_outputs)
        Right-hand side.
    n_nuisance : int
        Number of columns to eliminate.

    Returns
    -------
    gram : ndarray of shape (n_features, n_features)
        Schur complement. Columns that the last ones explain are zero, not their rounding errors.
    moment : ndarray of shape (n_features, n_outputs)
        Its right-hand side.
    """
    # eliminate the last columns, the nuisance, from the normal equations gram w = moment
    n_features = len(gram) - n_nuisance
    features = slice(n_features)
    nuisance = slice(n_features, None)

    # Schur complement: the residuals of the regression of the features on the nuisance
    nuisance_inverse = _pseudo_inverse(gram[nuisance, nuisance])
    coefficients = nuisance_inverse @ gram[nuisance, features]
    reduced_gram = gram[features, features] - gram[features, nuisance] @ coefficients
    reduced_moment = moment[features] - coefficients.T @ moment[nuisance]

    # set rounding errors to zero
    terms = np.abs(moment[features]) + np.abs(coefficients.T) @ np.abs(moment[nuisance])
    reduced_moment[np.abs(reduced_moment) <= CANCELLATION_TOLERANCE * terms] = 0.0
    squared_norms = gram[features, features].diagonal()
    is_explained = reduced_gram.diagonal() <= EXPLAINED_TOLERANCE * squared_norms
    reduced_gram[is_explained] = 0.0
    reduced_gram[:, is_explained] = 0.0
    reduced_moment[is_explained] = 0.0
    return reduced_gram, reduced_moment


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

    With u_g the part of ``[R Z]ᵀ (t − A (Rw + Zγ))`` from group g, less the mean over groups, and
    ``H = [R Z]ᵀ A [R Z] + α [I 0; 0 0]``, group g moves γ by the last entries of ``H⁺ u_g``.

    Parameters
    ----------
    R : ndarray of shape (n_items, n_features)
        Features.
    w : ndarray of shape (n_features,)
        Their weights.
    Z : ndarray of shape (n_items, n_columns)
        Nuisance columns.
    times_A : callable
        Product of A with a matrix.
    target : ndarray of shape (n_items,)
        t.
    groups : ndarray of int
        Group of each item.
    alpha : float
        Penalty of w.

    Returns
    -------
    gamma : ndarray of shape (n_columns,)
        The effects of smallest norm among those that fit equally well.
    error : ndarray of shape (n_columns,)
        Standard errors; nan for a column that differs in no pair, and for a single group.
    """
    # effects γ of the nuisance columns Z and their standard errors, in a model that also has the
    # features R with weights w; the loss of scores f is fᵀ A f − 2 fᵀ target
    R = R - R.mean(axis=0)  # A maps constants to zero
    AR = times_A(R)
    AZ = times_A(Z)

    # γ from its normal equations Zᵀ A Z γ = Zᵀ (t − A R w)
    Z_gram = Z.T @ AZ
    gamma = _pseudo_inverse(Z_gram) @ (Z.T @ target - AZ.T @ (R @ w))
    residual = target - AR @ w - AZ @ gamma
    influence = _influence_of_groups(R, Z, AR, AZ, residual, groups, alpha)

    # the solution of smallest norm among those that fit equally well
    null_space = _null_space(Z_gram)
    gamma = gamma - null_space @ (null_space.T @ gamma)
    influence = influence - (influence @ null_space) @ null_space.T

    # standard errors from the variance of the influence of a group; the influences have mean zero,
    # which costs one degree of freedom
    n_groups = len(influence)
    if n_groups == 1:
        return gamma, np.full(len(gamma), np.nan)
    variance = n_groups / (n_groups - 1) * np.sum(influence**2, axis=0)
    is_identified = Z_gram.diagonal() > 0  # the column differs in some pair
    return gamma, np.where(is_identified, np.sqrt(variance), np.nan)


def _influence_of_groups(
    R: Array, Z: Array, AR: Array, AZ: Array, residual: Array, groups: Indices, alpha: float
) -> Array:
    """How far each group moves γ: the last entries of ``H⁺ u_g``, shape (n_groups, n_columns)."""
    # for each group the change of the nuisance effects γ by its rows: the inverse Hessian times its
    # contribution to the gradient, in the feature weights w and in γ, less the mean contribution
    residual_by_group = sp.csr_array((residual, (groups, np.arange(len(Z)))))
    group_gradient_w = residual_by_group @ R  # (n_groups, n_features)
    group_gradient_gamma = residual_by_group @ Z  # (n_groups, n_columns)
    group_gradient_w -= group_gradient_w.mean(axis=0)
    group_gradient_gamma -= group_gradient_gamma.mean(axis=0)

    # w is eliminated from the Hessian by its Schur complement
    penalized_gram = R.T @ AR + alpha * np.eye(R.shape[1])
    projection = scipy.linalg.solve(penalized_gram, R.T @ AZ, assume_a="pos")
    reduced_gradient = group_gradient_gamma - group_gradient_w @ projection
    schur_complement = Z.T @ AZ - (AR.T @ Z).T @ projection
    return np.asarray(reduced_gradient @ _pseudo_inverse(schur_complement))


def _pseudo_inverse(gram: Array) -> Array:
    """Pseudo-inverse of a Gram matrix whose columns may have any scale."""
    # a root U of the pseudoinverse, U Uᵀ = gram⁺, from the eigenvalues above rounding
    scale, eigenvalues, eigenvectors = _scaled_spectrum(gram)
    is_positive = eigenvalues > RANK_TOLERANCE * len(eigenvalues)
    root = scale[:, None] * eigenvectors[:, is_positive] / np.sqrt(eigenvalues[is_positive])
    return root @ root.T


def _null_space(gram: Array) -> Array:
    """An orthonormal basis of the null space of a Gram matrix."""
    scale, eigenvalues, eigenvectors = _scaled_spectrum(gram)
    is_null = eigenvalues <= RANK_TOLERANCE * len(eigenvalues)
    return np.asarray(scipy.linalg.orth(scale[:, None] * eigenvectors[:, is_null]))


def _scaled_spectrum(gram: Array) -> tuple[Array, Array, Array]:
    """Scales that give a unit diagonal, and eigenvalues and eigenvectors of the scaled matrix."""
    # eigenvalues of the Gram matrix of columns that are scaled to norm 1
    norms = np.sqrt(np.maximum(gram.diagonal(), 0.0))
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    eigenvalues, eigenvectors = scipy.linalg.eigh(gram * scale[:, None] * scale)
    return scale, eigenvalues, eigenvectors


class ProfileLoss(PairwiseLoss):
    """``min_γ loss(f + Z γ)`` of a smooth loss: again a convex function of the scores f.

    At the best γ its gradient is that of the loss, and its Hessian is
    ``H − H Z (Zᵀ H Z)⁺ Zᵀ H``. A value that never wins a pair would have the effect −∞; a ridge
    too small to matter otherwise keeps it finite.

    Parameters
    ----------
    loss : PairwiseLoss
        A loss with a Hessian.
    Z : ndarray of shape (n_items, n_columns)
        The columns, centered inside groups.

    Attributes
    ----------
    gamma : ndarray of shape (n_columns,)
        γ of the last scores, where the next Newton iteration starts.
    """

    def __init__(self, loss: PairwiseLoss, Z: Array) -> None:
        # loss(f + Z γ) as a function of f; γ minimizes it for each f
        super().__init__(loss.graph)
        self.loss = loss
        self.Z = Z  # nuisance columns
        self.total_weight = loss.total_weight
        self.gamma = np.zeros(Z.shape[1])  # where the next minimization starts
        self._ridge = RIDGE * np.mean(Z**2, axis=0)

    def explains_all_of(self, R: Array) -> bool:
        """Whether the columns explain all features, or order all pairs correctly by themselves."""
        self.at(np.zeros(len(self.Z)))  # sets γ to the effects without features
        if self.loss.is_separated_by(self.Z @ self.gamma):
            return True
        # residuals of the features after the nuisance columns are partialled out
        columns = np.hstack([center_in_components(R, self.graph), self.Z])
        no_moment = np.zeros(columns.shape[1])  # only the Gram matrix is needed
        unexplained_gram, _ = partial_out(columns.T @ columns, no_moment, self.Z.shape[1])
        return not unexplained_gram.any()

    def of_items(self, items: Indices, graph: PreferenceGraph) -> Self:
        """The loss of these items, with their graph."""
        return type(self)(type(self.loss)(graph), center_in_components(self.Z[items], graph))

    def at(self, f: NDArray[Any]) -> LossValue:
        """Minimize over γ by Newton's method, then take derivatives in f.

        A step that moves a score by r is shortened by 1 + r, which is safe for the logistic loss,
        and then doubled as long as that lowers the loss.
        """
        # the loss of f + Z γ, minimized over γ by Newton's method from the γ of the last call
        gamma = self.gamma
        current = self._with_gamma(f, gamma)
        for _ in range(MAX_NEWTON_STEPS):
            HZ = self.times_hessian(current, self.Z)
            gradient_gamma = self.Z.T @ current.gradient + 2 * self._ridge * gamma
            hessian_gamma = self.Z.T @ HZ + 2 * np.diag(self._ridge)
            inverse_hessian_gamma = _pseudo_inverse(hessian_gamma)
            newton_step = inverse_hessian_gamma @ gradient_gamma
            expected_decrease = gradient_gamma @ newton_step
            if expected_decrease <= NEWTON_TOLERANCE * current.value:
                break
            gamma, current = self._line_search(f, gamma, newton_step, current)
        self.gamma = gamma

        def hessian_product(v: Array) -> Array:
            # H v − H Z (Zᵀ H Z)⁺ Zᵀ H v
            Hv = current.hessian_product(v)
            return Hv - HZ @ (inverse_hessian_gamma @ (self.Z.T @ Hv))

        return current._replace(hessian_product=hessian_product)

    def _line_search(
        self, f: Array, gamma: Array, newton_step: Array, current: LossValue
    ) -> tuple[Array, LossValue]:
        """γ less a multiple of the Newton step, and the loss there."""
        largest_change_of_score = float(np.abs(self.Z @ newton_step).max())
        if largest_change_of_score <= SAFE_STEP:
            gamma = gamma - newton_step
            return gamma, self._with_gamma(f, gamma)

        # a shortened step, which is doubled as long as that lowers the loss
        length = 1.0 / (1.0 + largest_change_of_score)
        previous_value = current.value
        current = self._with_gamma(f, gamma - length * newton_step)
        while current.value < previous_value:
            previous_value = current.value
            trial = self._with_gamma(f, gamma - 2 * length * newton_step)
            if trial.value < current.value:
                length = 2 * length
                current = trial
        return gamma - length * newton_step, current

    def _with_gamma(self, f: Array, gamma: Array) -> LossValue:
        """The loss at f + Z γ, as a function of f, with the ridge on γ in its value."""
        effect = self.Z @ gamma
        ridge_penalty = float(self._ridge @ gamma**2)
        loss = self.loss.at(f + effect)

        # the plane of the loss at f + Z γ, as a plane in f
        offset = loss.plane.offset + float(loss.gradient @ effect)
        offset_terms = loss.plane.offset_terms + float(np.abs(loss.gradient) @ np.abs(effect))
        plane = Plane(
            offset + ridge_penalty, offset_terms + ridge_penalty, loss.plane.gradient_terms
        )
        return loss._replace(value=loss.value + ridge_penalty, plane=plane)

    @staticmethod
    def times_hessian(loss_value: LossValue, V: Array) -> Array:
        """``H V``, one column at a time."""
        columns = np.ascontiguousarray(V.T)
        return np.stack([loss_value.hessian_product(v) for v in columns], axis=1)

    def effects(self, R: Array, w: Array, f: Array, alpha: float) -> tuple[Array, Array]:
        """γ and its standard errors at f = R w + Z γ, from the quadratic approximation there."""
        loss = self.loss.at(f)

        # near f the loss is vᵀ A v − 2 vᵀ t up to a constant, with A half its Hessian; its gradient
        # at f is 2 (A f − t)
        def times_A(V: Array) -> Array:
            return self.times_hessian(loss, V) / 2

        target = times_A(f[:, None])[:, 0] - loss.gradient / 2
        return nuisance_effects(R, w, self.Z, times_A, target, self.graph.groups, alpha)
