"""Models of RankRLS without some items or edges, and their held-out scores.

`SHORTCUTS` lists the algorithms, and `find_shortcut` returns the first one that applies:

========================  =======================================  =============================
shortcut                  held out                                 model
========================  =======================================  =============================
`ClosedGroups`            items that no edge leaves: groups,       linear, basis
                          components
`ClosedKernelGroups`      the same                                 kernel, β = 0 or 1
`OneList`                 items of one list, magnitude with ties,  linear, basis, kernel; scores
                          no item of weight 0                      of a linear model or a basis
                                                                   only for short folds
`ExplicitEdges`           items of explicit preferences with all   linear, basis; coefficients
                          their edges; single comparisons          also of a kernel model
`Refit`                   anything                                 any
========================  =======================================  =============================

Only `ClosedGroups` and `Refit` support nuisance columns.

Without the items U the sum over explicit edges lacks every edge that touches U. With
x_k = r_i − r_j for edge k = (i, j) and E_U the edges that touch U, a refit has the scores

    f_U = R_U (Rᵀ L R − Σ_{k ∈ E_U} ω_k x_k x_kᵀ + λI)⁻¹ (Rᵀ d − Σ_{k ∈ E_U} ω_k δ_k x_k),

    λ = α (W − Σ_{k ∈ E_U} ω_k)

([RankRLS09] section 3.3 for any graph).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices, Matrix, dense_rows
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.kernels.solver_input import SolverInput
from rankwise.kernels.stable_products import first_equal_rows
from rankwise.losses import SquaredLoss
from rankwise.losses.profiled import hstack_columns
from rankwise.losses.squared import LossTerm
from rankwise.model_selection.fold_structure import (
    _folds_with_all_preferences,
    closed_folds,
    edges_of_folds,
)
from rankwise.model_selection.folds import Folds, fold_of_item
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.progress import Progress, track
from rankwise.solvers import minimize
from rankwise.solvers.least_squares import IterationLimits
from rankwise.solvers.leave_group_out import (
    WhitenedTerm,
    coefficients_without_folds,
    diagonalize_gram,
    hold_out_dual,
    leave_out_dual_coef,
)
from rankwise.solvers.leave_items_out import (
    Spectrum,
    center_columns,
    find_spectrum,
    hold_out_items,
    leave_out_items,
)

EDGE_ENTRIES = 2**25  # differences of features in memory, all edges by all features

RELATIVE_ROUNDING = 1e-12  # share of a sum below which a difference is rounding noise

COPIES = 4  # of the features: dense, weighted, and both times the eigenvectors

SHORT_FOLD = 64  # items; systems of such folds are small for any number of features


class HoldOutUnits(NamedTuple):
    """Items or edges that are left out together.

    Attributes
    ----------
    kind : {"folds", "groups", "items", "comparisons", "clusters"}
        Name of a unit.
    members : list of ndarray of int
        Numbers of the items, or of the edges, of each unit.
    members_are_edges : bool, default=False
        Whether the members are edges.
    """

    kind: str
    members: Folds
    members_are_edges: bool = False


@dataclass(frozen=True, eq=False)
class HoldOutProblem:
    """Loss and features of a RankRLS.

    Attributes
    ----------
    loss : SquaredLoss
        Loss of all data.
    features : SolverInput
        Features or a kernel matrix.
    limits : dict
        IterationLimits of the iterative solver.
    """

    loss: SquaredLoss
    features: SolverInput
    limits: IterationLimits

    @property
    def is_dual(self) -> bool:
        """Whether the features are a kernel matrix."""
        return self.features.method == "dual"

    @property
    def is_iterative(self) -> bool:
        """Whether the model is trained by conjugate gradients."""
        return self.features.method == "iterative"

    @property
    def is_mixed(self) -> bool:
        """Whether the loss mixes ranking and regression."""
        return 0 < self.loss.beta < 1

    @property
    def graph(self) -> PreferenceGraph:
        """Preferences of the loss."""
        return self.loss.graph


class Models(NamedTuple):
    """Models without each unit, in batches.

    Attributes
    ----------
    R : array or sparse matrix of shape (n_items, n_columns)
        Features.
    batches : iterator of (list of int, ndarray)
        Numbers of units, and the weights of the columns of R without them, of shape
        (n_units, n_columns, n_outputs, n_alphas).
    rotation : ndarray or None
        Q, if R is the feature matrix of the problem times Q.
    """

    R: Matrix
    batches: Iterator[tuple[list[int], Array]]
    rotation: Array | None = None


class Shortcut(ABC):
    """Algorithm that computes the models without each unit.

    Parameters
    ----------
    problem : HoldOutProblem
        Loss and features.
    units : HoldOutUnits
        Items or edges that are left out together.
    """

    shows_progress: bool | None = None

    def __init__(self, problem: HoldOutProblem, units: HoldOutUnits) -> None:
        self.problem = problem
        self.units = units

    @staticmethod
    @abstractmethod
    def applies(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether the shortcut equals refits for this problem and these units."""

    @staticmethod
    def is_fast_for_scores(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether the held-out scores cost less than refits."""
        return True

    def models(self, alphas: Array) -> Models:
        """Models without each unit, if the shortcut computes weights of the features."""
        raise NotImplementedError

    def scores(self, alphas: Array, out: Array) -> None:
        """Store the held-out scores in `out`, of shape (n_items, n_outputs, n_alphas)."""
        # R: features (n_items, n_columns), weights of a model: (n_columns, n_outputs, n_alphas)
        folds = self.units.members
        models = self.models(alphas)
        progress = Progress("holding out", len(folds), self.shows_progress)
        n_done = 0
        for fold_numbers, weights_of_folds in models.batches:
            n_done += len(fold_numbers)
            progress.update(n_done)
            for k, weights in zip(fold_numbers, weights_of_folds, strict=True):
                n_columns, n_outputs, n_alphas = weights.shape
                scores = models.R[folds[k]] @ weights.reshape(n_columns, -1)
                out[folds[k]] = scores.reshape(-1, n_outputs, n_alphas)
        progress.close()

    def coefficients(self, alphas: Array) -> Array:
        """Weights of the features, or dual coefficients, of the models without each unit.

        Returns
        -------
        ndarray of shape (n_columns, n_units, n_outputs, n_alphas)
            Weights.
        """
        n_columns = self.problem.features.matrix.shape[1]
        n_units = len(self.units.members)
        n_outputs = self.problem.loss.target[0].size
        weights = np.empty((n_columns, n_units, n_outputs, len(alphas)))
        models = self.models(alphas)
        for unit_numbers, weights_of_units in models.batches:
            weights[:, unit_numbers] = weights_of_units.transpose(1, 0, 2, 3)
        if models.rotation is None:
            return weights
        # The weights w belong to the features times Q; the features have the weights Q w
        return np.asarray((models.rotation @ weights.reshape(n_columns, -1)).reshape(weights.shape))


class ClosedGroups(Shortcut):
    """Items that no edge leaves, of a linear model or one on a basis.

    Downdates of one decomposition for short folds, else of the Gram matrix.
    """

    @staticmethod
    def applies(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether no edge leaves a unit, and the model has weights of features."""
        if problem.is_iterative or problem.is_dual or units.members_are_edges:
            return False
        return bool(closed_folds(problem.graph, units.members).all())

    def models(self, alphas: Array) -> Models:
        """Models without each group."""
        # R: features (n_items, n_columns), then the nuisance columns, which are not penalized
        loss = self.problem.loss
        folds = self.units.members
        R = dense_rows(self.problem.features.matrix)
        n_columns = R.shape[1]
        if loss.nuisance is not None:
            R = hstack_columns(R, loss.nuisance)
        n_unpenalized = R.shape[1] - n_columns

        # Each term of the loss is a quadratic form A = F Fᵀ: its root F whitens the features
        terms = _loss_terms_with_pairs_left(loss, folds)
        white_terms = [
            WhitenedTerm(term.share, term.root.adjoint(R), term.target, term.amount)
            for term in terms
        ]
        rotation = None
        if loss.nuisance is None:  # rotate the features such that their Gram matrix is diagonal
            whiten = terms[0].root.adjoint
            R, white_terms, rotation = diagonalize_gram(R, white_terms, folds, whiten)
        batches = coefficients_without_folds(R, white_terms, folds, alphas, n_unpenalized)
        return Models(R[:, :n_columns], batches, rotation)


class ClosedKernelGroups(Shortcut):
    """Items that no edge leaves, of a kernel model for ranking or for regression."""

    @staticmethod
    def applies(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether no edge leaves a unit, and the model has a single term and a kernel matrix."""
        if not problem.is_dual or problem.is_mixed or units.members_are_edges:
            return False
        return bool(closed_folds(problem.graph, units.members).all())

    def scores(self, alphas: Array, out: Array) -> None:
        """Store the held-out scores in `out`."""
        folds = self.units.members
        (term,) = _loss_terms_with_pairs_left(self.problem.loss, folds)  # of pairs, or of items
        hold_out_dual(
            self.problem.features.matrix,
            term.root,
            self.problem.graph.components,
            term.target,
            term.amount,
            folds,
            alphas,
            out,
        )

    def coefficients(self, alphas: Array) -> Array:
        """Dual coefficients."""
        units = self.units.members
        (term,) = _loss_terms_with_pairs_left(self.problem.loss, units)  # of pairs, or of items
        K = self.problem.features.matrix
        return leave_out_dual_coef(K, term.root, term.target, term.amount, units, alphas)


class OneList(Shortcut):
    """Items of one list in which all pairs are edges."""

    @staticmethod
    def applies(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether all pairs of one list are edges."""
        if problem.is_iterative or problem.loss.nuisance is not None:
            return False
        return problem.graph.is_complete

    @staticmethod
    def is_fast_for_scores(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether the system of a fold is smaller than that of the features."""
        # The shortcut solves systems of the size of a fold, a refit of the number of columns
        n_columns = problem.features.matrix.shape[1]
        longest = max(len(fold) for fold in units.members)
        return problem.is_dual or longest <= max(n_columns, SHORT_FOLD)

    def scores(self, alphas: Array, out: Array) -> None:
        """Store the held-out scores in `out`."""
        loss = self.problem.loss
        spectrum = self._spectrum(centered=False)
        hold_out_items(spectrum, self._y(), self.units.members, alphas, loss.beta, out)

    def coefficients(self, alphas: Array) -> Array:
        """Weights, or dual coefficients, without each unit."""
        loss = self.problem.loss
        # beta = 0: only differences of scores count, so features and y can be centered
        is_centered = loss.beta == 0
        R = None
        if not self.problem.is_dual:
            R = dense_rows(self.problem.features.matrix)
            if is_centered:
                R = center_columns(R, loss.graph.item_weights)
        spectrum = self._spectrum(centered=is_centered)
        return leave_out_items(spectrum, R, self._y(), self.units.members, alphas, loss.beta)

    def _spectrum(self, *, centered: bool) -> Spectrum:
        graph = self.problem.graph
        longest = max(len(unit) for unit in self.units.members)
        is_regression = self.problem.loss.beta == 1
        # Regression needs no pair to train on
        check_pairs_remain(is_regression or graph.n_items - longest >= 2)
        return item_spectrum(self.problem.features, centered=centered, weight=graph.item_weights)

    def _y(self) -> Array:
        loss = self.problem.loss
        y = loss.y
        if y is None:
            y = loss.graph.y
        return np.asarray(y).reshape(loss.graph.n_items, -1)


class ExplicitEdges(Shortcut):
    """Items of explicit preferences with all their edges, or single edges.

    The edges are rows ``√ω (r_i − r_j)`` with the target ω δ and the weight ω.
    """

    @staticmethod
    def applies(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether the weight of an edge does not depend on other edges, and all fit in memory."""
        graph = problem.graph
        if problem.is_iterative or problem.loss.nuisance is not None:
            return False
        has_explicit_edges = graph.hold_out_unit != "items"
        if not has_explicit_edges:
            return False
        # Whether the weight of an edge does not depend on which others are held out
        has_fixed_weights = graph.group_weight == "pairs" or graph.n_groups == 1
        n_entries = (graph.n_pairs + graph.n_items) * problem.features.matrix.shape[1]
        return has_fixed_weights and n_entries <= EDGE_ENTRIES

    @staticmethod
    def is_fast_for_scores(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether the features are not a kernel matrix, which has too many columns."""
        return not problem.is_dual  # a kernel matrix has a column for each item, too many

    def models(self, alphas: Array) -> Models:
        """Models without each unit."""
        return Models(self.problem.features.matrix, self._batches(alphas))

    def _batches(self, alphas: Array) -> Iterator[tuple[list[int], Array]]:
        # Each edge is a row of a regression, whose features are those of the winner minus those
        # of the loser
        pairs = self.problem.graph.pairs()
        edges_of_units = self._edges_of_units(pairs)
        R, to_coefficients = self._features()
        differences = R[pairs.winner] - R[pairs.loser]  # (n_edges, n_columns)
        target = pairs.edge_weight * pairs.edge_target
        root_weight = np.sqrt(pairs.edge_weight)[:, None]
        # The only term of the objective: its share is 1
        term = WhitenedTerm(1.0, root_weight * differences, target[:, None], pairs.edge_weight)
        rotated, terms, rotation = diagonalize_gram(
            differences, [term], edges_of_units, lambda rows: root_weight * rows
        )
        # Coefficients of the problem are this matrix times the weights of the rotated features
        if rotation is not None and to_coefficients is not None:
            to_coefficients = to_coefficients @ rotation
        elif rotation is not None:
            to_coefficients = rotation

        # Weights: (n_units_of_batch, n_columns, n_outputs, n_alphas), 0 if the right-hand side is
        # 0, where computed weights would be rounding noise that ranks items
        is_zero = _is_right_side_zero_without(differences, target, edges_of_units)
        for unit_numbers, weights in coefficients_without_folds(
            rotated, terms, edges_of_units, alphas
        ):
            weights[is_zero[unit_numbers]] = 0.0
            if to_coefficients is None:
                yield unit_numbers, weights
            else:
                flat = to_coefficients @ weights.reshape(*weights.shape[:2], -1)
                yield unit_numbers, flat.reshape(len(weights), -1, *weights.shape[2:])

    def _edges_of_units(self, pairs: PairGraph) -> Folds:
        """Numbers of the edges that each unit removes."""
        edges_of_units = self.units.members
        if not self.units.members_are_edges:  # the edges of the items
            edges_of_units = edges_of_folds(pairs, edges_of_units)
        total_weight = pairs.edge_weight.sum()
        for removed in edges_of_units:
            remaining_weight = total_weight - pairs.edge_weight[removed].sum()
            check_pairs_remain(remaining_weight > RELATIVE_ROUNDING * total_weight)
        return edges_of_units

    def _features(self) -> tuple[Array, Array | None]:
        """R, and the matrix from its weights to coefficients; None for weights of the features."""
        matrix = self.problem.features.matrix
        if not self.problem.is_dual:
            return dense_rows(matrix), None  # weights of R are the coefficients
        R, to_dual_coefficients = _features_of_kernel(matrix)
        return R, to_dual_coefficients


def _is_right_side_zero_without(
    differences: Array, target: Array, edges_of_units: Folds
) -> NDArray[np.bool_]:
    """For each unit: do the targets of the edges of other units cancel, up to rounding?"""
    # Right-hand side Xᵀ t of the normal equations, X: differences of features (n_edges, n_columns).
    # If it is 0 without the edges of a unit, the other edges carry no preference
    right_side = differences.T @ target
    tolerance = RELATIVE_ROUNDING * (np.abs(differences).T @ np.abs(target))
    is_zero = np.zeros(len(edges_of_units), dtype=bool)
    for k, removed in enumerate(edges_of_units):
        right_side_without = right_side - differences[removed].T @ target[removed]
        is_zero[k] = (np.abs(right_side_without) <= tolerance).all()
    return is_zero


class Refit(Shortcut):
    """Any units: the model is refitted on the same features, basis or kernel matrix."""

    shows_progress = False  # the refits show their own progress

    @staticmethod
    def applies(problem: HoldOutProblem, units: HoldOutUnits) -> bool:
        """Whether refits are possible: always."""
        return True

    def models(self, alphas: Array) -> Models:
        """Models without each unit."""
        return Models(self.problem.features.matrix, self._batches(alphas))

    def _batches(self, alphas: Array) -> Iterator[tuple[list[int], Array]]:
        limits = self.problem.limits
        if self.problem.is_iterative:  # the norms of all items approximate those of each fold
            matrix = self.problem.features.matrix
            # of the columns; 0 instead of negative ones, which are rounding errors
            squared_norms = np.maximum(self.problem.loss.norms(matrix), 0.0)
            limits = limits.copy()
            limits["squared_norms"] = squared_norms
        for k, removed in enumerate(track(self.units.members, "refitting without a fold")):
            weights = self._weights_without(removed, alphas, limits)
            yield [k], weights[None]  # a batch of one unit

    def _weights_without(self, removed: Indices, alphas: Array, limits: IterationLimits) -> Array:
        """Weights of one refit, shape (n_columns, n_outputs, n_alphas)."""
        graph = self.problem.graph
        loss = self.problem.loss
        features = self.problem.features
        train_items = np.arange(graph.n_items)
        if self.units.members_are_edges:
            edges = graph.pairs()
            train_graph: PreferenceGraph = edges.with_edges(
                np.delete(np.arange(edges.n_pairs), removed)
            )
        else:
            train_items = np.delete(train_items, removed)
            train_graph = graph.subset(train_items)
        train_loss = loss.of_items(train_items, train_graph)
        is_regression = loss.beta == 1
        check_pairs_remain(is_regression or train_loss.graph.n_pairs > 0)
        if not self.problem.is_dual:
            R = features.matrix[train_items]
            coef = minimize(features.method, train_loss, R, alphas, **limits).coef
            return coef.transpose(1, 2, 0)
        # Dual: one weight for each item, 0 for the items that are left out
        K = features.matrix[np.ix_(train_items, train_items)]
        coef = minimize(features.method, train_loss, K, alphas, **limits).coef
        weights = np.zeros((graph.n_items, coef.shape[2], len(alphas)))
        weights[train_items] = coef.transpose(1, 2, 0)
        return weights


#: In order of preference; `Refit` always applies.
SHORTCUTS: tuple[type[Shortcut], ...] = (
    ClosedGroups,
    ClosedKernelGroups,
    OneList,
    ExplicitEdges,
    Refit,
)


def find_shortcut(problem: HoldOutProblem, units: HoldOutUnits) -> type[Shortcut]:
    """Return the first shortcut that applies."""
    return next(shortcut for shortcut in SHORTCUTS if shortcut.applies(problem, units))


def cross_val_scores(
    loss: SquaredLoss, features: SolverInput, folds: Folds, alphas: Array, limits: IterationLimits
) -> Array:
    """Predict every item by models that were trained without its fold.

    Returns
    -------
    ndarray of shape (n_items, n_outputs, n_alphas)
        Scores of refits on the other folds; equal rows of a fold have equal scores, to the last
        bit.
    """
    problem = HoldOutProblem(loss, features, limits)
    fold_of_items = fold_of_item(folds, loss.graph.n_items)
    first_equal_row = first_equal_rows(
        features.matrix, fold_of_items
    )  # None: all rows of a fold differ
    targets = loss.target.reshape(len(loss.target), -1)
    _check_memory(problem, targets, alphas)

    # Folds that no edge leaves may have a different shortcut
    held_out_scores = np.empty((*targets.shape, len(alphas)))
    is_closed = closed_folds(loss.graph, folds)
    open_folds = [folds[k] for k in np.flatnonzero(~is_closed)]
    folds_without_leaving_edges = [folds[k] for k in np.flatnonzero(is_closed)]
    for members in (open_folds, folds_without_leaving_edges):
        if not members:
            continue
        units = HoldOutUnits("folds", members)
        shortcut = find_shortcut(problem, units)
        if not shortcut.is_fast_for_scores(problem, units):
            shortcut = Refit
        shortcut(problem, units).scores(alphas, out=held_out_scores)
    if loss.beta == 0:  # without a preference to learn from, rounding noise must not rank items
        has_all_preferences = _folds_with_all_preferences(
            loss.graph, targets, fold_of_items, is_closed
        )
        held_out_scores[has_all_preferences[fold_of_items]] = 0.0
    if first_equal_row is None:
        return held_out_scores
    # Equal rows of a fold get the score of the first one, so that rounding does not order them
    return np.asarray(held_out_scores[first_equal_row])


def _check_memory(problem: HoldOutProblem, targets: Array, alphas: Array) -> None:
    """Raise an error if held-out scores and features do not fit in memory."""
    n_items, n_outputs = targets.shape
    n_columns_in_memory = n_outputs * len(alphas)
    if problem.features.method == "primal":
        n_columns_in_memory += COPIES * problem.features.matrix.shape[1]
    check_matrix_fits(
        n_items,
        n_columns_in_memory,
        "held-out scores and the features behind them,",
        "give fewer alphas",
    )


def coefficients_without(
    loss: SquaredLoss,
    features: SolverInput,
    units: HoldOutUnits,
    alphas: Array,
    limits: IterationLimits,
) -> Array:
    """Coefficients of the models without each unit, and last of the model of all data.

    Returns
    -------
    ndarray of shape (n_coefficients, n_units + 1, n_outputs, n_alphas)
        Coefficients of refits without the unit.
    """
    problem = HoldOutProblem(loss, features, limits)
    shortcut = find_shortcut(problem, units)
    # A last, empty unit: the model without it is that of all data
    no_items = np.empty(0, dtype=np.intp)
    units_and_none = units._replace(members=[*units.members, no_items])
    # (n_columns of R or K, n_units + 1, n_outputs, n_alphas)
    solutions = shortcut(problem, units_and_none).coefficients(alphas)
    coefficients = features.coefficients(solutions.reshape(len(solutions), -1))
    return coefficients.reshape(len(coefficients), *solutions.shape[1:])


def _loss_terms_with_pairs_left(loss: SquaredLoss, folds: Folds) -> list[LossTerm]:
    """Terms of the loss, with targets of two dimensions; no fold contains all of a term."""
    terms = []
    for term in loss.terms:
        # term.amount: weight of the pairs of each item, or of the item itself
        total = term.amount.sum()
        held_out = np.array([term.amount[fold].sum() for fold in folds])
        has_training_amount = total - held_out > RELATIVE_ROUNDING * total
        check_pairs_remain(bool(has_training_amount.all()))
        terms.append(term._replace(target=term.target.reshape(len(term.target), -1)))
    return terms


def item_spectrum(
    features: SolverInput,
    *,
    centered: bool = False,
    overwrite: bool = False,
    weight: Array | None = None,
) -> Spectrum:
    """Eigenvalues and eigenvectors of the kernel matrix of items, with weights or without.

    `centered` is for scores that are determined up to a constant; `overwrite` allows to overwrite
    a kernel matrix.
    """
    is_kernel = features.method == "dual"  # else features R, with K = R Rᵀ
    first_equal_item = first_equal_rows(features.matrix)  # before the matrix is overwritten
    matrix = dense_rows(features.matrix)
    spectrum = find_spectrum(
        matrix, weight, is_kernel=is_kernel, centered=centered, overwrite=overwrite
    )
    return spectrum._replace(first_equal_item=first_equal_item)


def check_pairs_remain(is_enough: bool) -> None:
    """Raise a ValueError if a fold leaves no training data."""
    if not is_enough:
        raise ValueError(
            "a fold leaves no pair to train on: the pairs are all in one group (or fold). Use "
            "more or smaller folds, or hold out items of one list."
        )


def _features_of_kernel(K: Array) -> tuple[Array, Array]:
    """R and B with ``K = R Rᵀ`` and dual coefficients a = B w of the same scores ``R w = K a``."""
    # K = V diag(λ) Vᵀ gives features R = V √λ with R Rᵀ = K; their weights w are the dual
    # coefficients (V / √λ) w
    eigenvalues, eigenvectors = scipy.linalg.eigh(K, check_finite=False)
    rounding = len(K) * np.finfo(float).eps * np.abs(eigenvalues).max(initial=0.0)
    is_positive = eigenvalues > rounding
    roots = np.sqrt(eigenvalues[is_positive])
    eigenvectors = eigenvectors[:, is_positive]
    return eigenvectors * roots, eigenvectors / roots
