"""Models of RankRLS without some items or edges, and the scores that they give.

The shortcut where there is one, an honest refit where there is none:

========================================  ====================  ===============================
held out                                  model                 way
========================================  ====================  ===============================
items that no edge leaves: groups,        linear, basis         downdates of one decomposition,
components                                                      or of the Gram matrix
the same                                  kernel, β = 0 or 1    `hold_out_dual`
items of explicit preferences with all    linear, basis (whole  the edges as rows of features,
their edges; comparisons                  models: any)          unless there are too many
items of one list, magnitude with ties,   all but iterative     `hold_out_items`, unless folds are
no item of weight 0                                             longer than there are features
anything else; nuisance columns, but for  any                   train again
folds that no edge leaves
========================================  ====================  ===============================

Without the items U the sum over explicit edges lacks every edge that touches U. With
x_k = r_i − r_j for edge k = (i, j) and E_U the edges that touch U,

    f_U = R_U (Rᵀ L R − Σ_{k ∈ E_U} ω_k x_k x_kᵀ + λI)⁻¹ (Rᵀ d − Σ_{k ∈ E_U} ω_k δ_k x_k),

    λ = α (W − Σ_{k ∈ E_U} ω_k)

is what training again gives ([RankRLS09] section 3.3 for any graph).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.features.feature_map import Features
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.losses.nuisance import beside
from rankwise.machine import track
from rankwise.model_selection.folds import Folds, fold_numbers
from rankwise.rows import first_equal_rows
from rankwise.solvers import minimize
from rankwise.solvers.hold_out import (
    WhitenedTerm,
    hold_out_dual,
    leave_out_dual,
    leave_out_primal,
    weights_without,
)
from rankwise.solvers.hold_out_list import (
    Spectrum,
    hold_out_items,
    leave_out_items,
    spectrum_of_features,
    spectrum_of_kernel,
)

EDGE_ENTRIES = 2**25  # differences of features held in memory, all edges by all features
ROUNDING = 1e-12  # of a weight: what is left of it when all of it is subtracted
LONG = 64  # items of a fold: shorter ones are small systems, whatever the features
TIED = 1e-13  # of the largest target: preferences that cancel, but for rounding


def fits_edges(graph: PairGraph, n_features: int) -> bool:
    """Whether there are few enough edges to hold the difference of features of each."""
    return (graph.n_pairs + graph.n_items) * n_features <= EDGE_ENTRIES


def edges_of_folds(graph: PairGraph, folds: Folds) -> Folds:
    """For each fold the edges that touch it."""
    fold = np.full(graph.n_items, -1)
    for k, U in enumerate(folds):
        fold[U] = k
    ends = np.concatenate([fold[graph.winner], fold[graph.loser]])
    order = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[order], np.arange(len(folds) + 1))
    return [np.unique(order[a:b] % graph.n_pairs) for a, b in itertools.pairwise(bounds)]


class Refit(NamedTuple):
    """How folds without a shortcut are trained: limits of the iterative solver, a bar or none."""

    tol: float
    max_iter: int | None
    progress: bool | None = None


def held_out_scores(
    loss: SquaredLoss,
    features: Features,
    folds: Folds,
    alphas: Array,
    refit: Refit,
    white: list[WhitenedTerm] | None = None,
) -> Array:
    """Scores of every item by models that were trained without its fold.

    The kernel matrix of a dual features may be overwritten. `white` is what `whitened_terms` gives,
    if it is there already.

    Returns
    -------
    ndarray of shape (n_items, n_outputs, n_alphas)
        For each alpha as a model refitted on the other folds would give; equal rows of a fold
        have equal scores, to the last bit.
    """
    fold = fold_numbers(folds, loss.graph.n_items)
    first = first_equal_rows(features.matrix, fold)
    targets = loss.target.reshape(len(loss.target), -1)
    out = np.empty((*targets.shape, len(alphas)))
    _hold_out(loss, features, folds, alphas, refit, out, white)
    if loss.beta == 0:  # where nothing is left to learn from, rounding must not order items
        preferring = _preferring(loss.graph, targets)
        silent = _sums(preferring, fold) == preferring.sum(axis=0)
        for k in np.flatnonzero(silent.any(axis=1) & ~closed_folds(loss.graph, folds)):
            silent[k] &= _is_tied(loss.graph, np.flatnonzero(fold != k))
        out[silent[fold]] = 0.0
    return out if first is None else np.asarray(out[first])


def item_spectrum(
    features: Features,
    *,
    centered: bool = False,
    overwrite: bool = False,
    weight: Array | None = None,
) -> Spectrum:
    """Eigenvalues and vectors of the kernel matrix of a features, of items with weights or without.

    `centered` is for scores that count up to a constant; `overwrite` gives up a kernel matrix.
    """
    first = first_equal_rows(features.matrix)
    if features.method == "dual":
        spectrum = spectrum_of_kernel(
            features.matrix, centered=centered, overwrite=overwrite, weight=weight
        )
        return spectrum._replace(first=first)
    R = dense_rows(features.matrix)
    if R.shape[1] < R.shape[0]:
        return spectrum_of_features(R, centered=centered, weight=weight)._replace(first=first)
    R = R - R.mean(axis=0) if centered else R
    return spectrum_of_kernel(R @ R.T, overwrite=True, weight=weight)._replace(first=first)


def _preferring(graph: PreferenceGraph, targets: Array) -> NDArray[np.bool_]:
    """For each item and output whether the item is not tied with all others.

    In a complete list an item counts as preferring if its score is not the median.
    """
    if graph.is_complete:
        y = np.asarray(graph.scores).reshape(targets.shape)
        return np.asarray(y != np.sort(y, axis=0)[(len(y) - 1) // 2])
    return np.asarray(np.abs(targets) > TIED * np.abs(targets).max(axis=0))


def _is_tied(graph: PreferenceGraph, items: Indices) -> NDArray[np.bool_]:
    """For each output whether these items have equal scores in each group; edges do not tell."""
    if graph.scores is None:
        return np.zeros(1, dtype=bool)
    if graph.item_weights is not None:
        items = items[graph.item_weights[items] > 0]
    Y = graph.scores.reshape(graph.n_items, -1)[items]
    _, first, group = np.unique(graph.groups[items], return_index=True, return_inverse=True)
    return np.asarray((Y[first][group] == Y).all(axis=0))


def _hold_out(
    loss: SquaredLoss,
    features: Features,
    folds: Folds,
    alphas: Array,
    refit: Refit,
    out: Array,
    white: list[WhitenedTerm] | None,
) -> None:
    """Fill `out` by the ways of the table above; the matrix of a dual features is overwritten."""
    closed = closed_folds(loss.graph, folds)
    whole = [U for U, is_closed in zip(folds, closed, strict=True) if is_closed]
    cut = [U for U, is_closed in zip(folds, closed, strict=True) if not is_closed]
    if features.method == "iterative":
        cut, whole = folds, []
    elif cut and _hold_out_cut(loss, features, cut, alphas, out):
        cut = []
    if features.method == "dual" and 0 < loss.beta < 1:
        cut, whole = [*cut, *whole], []
    for U, rest, coef in _train_again(loss, features, Units("folds", cut), alphas, refit):
        held = features.matrix[np.ix_(U, rest)] if features.method == "dual" else features.matrix[U]
        out[U] = np.stack([held @ columns for columns in coef], axis=2)
    if whole:
        _closed_shortcut(loss, features, whole, alphas, out, white)


def _hold_out_cut(
    loss: SquaredLoss, features: Features, folds: Folds, alphas: Array, out: Array
) -> bool:
    """Fill `out` for folds that edges leave, if there is a shortcut that pays; say whether."""
    graph = loss.graph
    if loss.nuisance is not None:
        return False
    weight = graph.item_weights
    longest, n_columns = max(map(len, folds)), features.matrix.shape[1]
    has_long_folds = features.method == "primal" and longest > max(n_columns, LONG)
    if graph.is_complete and not has_long_folds:
        for U in folds:
            check_rest(graph.n_items - len(U) > 1 or loss.beta == 1)
        y = np.asarray(graph.scores if loss.y is None else loss.y).reshape(graph.n_items, -1)
        spectrum = item_spectrum(features, weight=weight)
        for U, scores in hold_out_items(spectrum, y, folds, alphas, loss.beta):
            out[U] = scores
        return True
    if has_fixed_edges(graph) and features.method == "primal":
        R, pairs = features.matrix, graph.pairs()
        if fits_edges(pairs, R.shape[1]):
            coef = _edges(graph, features, edges_of_folds(pairs, folds), alphas)
            for k, U in enumerate(folds):
                out[U, 0] = dense_rows(R[U]) @ coef[:, k, 0]
            return True
    return False


def _closed_shortcut(
    loss: SquaredLoss,
    features: Features,
    folds: Folds,
    alphas: Array,
    out: Array,
    white: list[WhitenedTerm] | None,
) -> None:
    terms = loss.terms()
    fold = fold_numbers(folds, len(out))
    for term in terms:
        total = term.amount.sum()
        check_rest(bool((total - _sums(term.amount, fold) > ROUNDING * total).all()))
    if features.method == "dual":
        (term,) = terms
        target = term.target.reshape(len(term.target), -1)
        K, component = features.matrix, loss.graph.components
        hold_out_dual(K, term.root, component, target, term.amount, folds, alphas, out)
        return
    R = dense_rows(features.matrix)
    V, n_free = _with_nuisance(loss, R)
    white = white or whitened_terms(loss, V)
    for numbers, w in weights_without(V, white, folds, alphas, n_free):
        U = np.stack([folds[k] for k in numbers])
        out[U] = (R[U] @ w.reshape(*w.shape[:2], -1)).reshape(*U.shape, *w.shape[2:])


def whitened_terms(loss: SquaredLoss, R: Array) -> list[WhitenedTerm]:
    """The terms of the objective, seen through features R."""
    return [
        WhitenedTerm(p.share, p.root.adjoint(R), p.target.reshape(len(R), -1), p.amount)
        for p in loss.terms()
    ]


def _with_nuisance(loss: SquaredLoss, R: Array) -> tuple[Array, int]:
    """The features and, last, the columns of the nuisance; the number of these."""
    return (R, 0) if loss.nuisance is None else (beside(R, loss.nuisance), loss.nuisance.shape[1])


def _sums(values: NDArray[Any], fold: Indices) -> Array:
    """Sums of the rows of each fold; items of no fold have the number −1."""
    kept = fold >= 0
    columns = values[kept].reshape(int(kept.sum()), -1).T
    sums = [np.bincount(fold[kept], column) for column in columns]
    return np.stack(sums, axis=1, dtype=np.float64).reshape(-1, *values.shape[1:])


def closed_folds(graph: PreferenceGraph, folds: Folds) -> NDArray[np.bool_]:
    """For each fold whether no edge leaves it."""
    fold = fold_numbers(folds, graph.n_items)
    closed = np.ones(len(folds), dtype=bool)
    families = [graph.components]
    if graph.scores is None and graph.group_weight == "groups":
        families.append(graph.groups)  # without some of its edges, the others of a group weigh more
    for family in families:
        low, high = np.full(family.max() + 1, len(folds)), np.full(family.max() + 1, -1)
        np.minimum.at(low, family, fold)
        np.maximum.at(high, family, fold)
        closed[fold[(low != high)[family]]] = False
    return closed


def has_fixed_edges(graph: PreferenceGraph) -> bool:
    """Whether there are explicit edges whose weights do not depend on which others there are."""
    return graph.scores is None and (graph.group_weight == "pairs" or graph.n_groups == 1)


def check_rest(enough: bool) -> None:
    """Raise a ValueError if a fold leaves nothing to train on."""
    if not enough:
        raise ValueError(
            "a fold leaves no pair to train on: the pairs are all in one group (or fold). Use "
            "more or smaller folds, or hold out items of one list."
        )


def dense_rows(R: Any) -> Array:
    """Features as a dense float64 array."""
    return np.asarray(R.toarray() if sp.issparse(R) else R, dtype=np.float64)


class Units(NamedTuple):
    """What is left out together.

    Attributes
    ----------
    kind : {"groups", "items", "comparisons", "clusters"}
        What a unit is called.
    members : list of ndarray of int
        Numbers of the items of each unit, or of its edges.
    of_edges : bool
        Whether the members are edges.
    """

    kind: str
    members: Folds
    of_edges: bool = False


def coefficients_without(
    loss: SquaredLoss, features: Features, units: Units, alphas: Array, refit: Refit
) -> Array:
    """Coefficients of the models without each unit, and last of the model of all data.

    The kernel matrix of a dual features may be overwritten.

    Returns
    -------
    ndarray of shape (n_coefficients, n_units + 1, n_outputs, n_alphas)
        As an estimator that is trained again without the unit would have them.
    """
    solution = _solutions(loss, features, units, alphas, refit)
    flat = features.coefficients(solution.reshape(len(solution), -1))
    return flat.reshape(len(flat), *solution.shape[1:])


def shortcut_for(loss: SquaredLoss, features: Features, units: Units) -> str:
    """How the units are left out: "closed", "items", "edges" or "refit"."""
    graph, is_mixed = loss.graph, features.method == "dual" and 0 < loss.beta < 1
    if features.method == "iterative":
        return "refit"
    if not units.of_edges and closed_folds(graph, units.members).all():
        return "refit" if is_mixed else "closed"
    if loss.nuisance is not None:
        return "refit"
    if graph.is_complete:
        return "items"
    has_room = has_fixed_edges(graph) and fits_edges(graph.pairs(), features.matrix.shape[1])
    return "edges" if has_room else "refit"


def _solutions(
    loss: SquaredLoss, features: Features, units: Units, alphas: Array, refit: Refit
) -> Array:
    graph, members = loss.graph, [*units.members, np.empty(0, dtype=np.intp)]
    way = shortcut_for(loss, features, units)
    if way == "closed":
        return _closed(loss, features, members, alphas)
    if way == "items":
        check_rest(max(map(len, members)) < graph.n_items - 1 or loss.beta == 1)
        return _items(loss, features, members, alphas)
    if way == "edges":
        pairs = graph.pairs()
        edges = members if units.of_edges else [*edges_of_folds(pairs, units.members), members[-1]]
        return _edges(graph, features, edges, alphas)
    return _refit(loss, features, units, alphas, refit)


def _closed(loss: SquaredLoss, features: Features, members: Folds, alphas: Array) -> Array:
    terms = loss.terms()
    for term in terms:
        total = term.amount.sum()
        check_rest(all(total - term.amount[U].sum() > ROUNDING * total for U in members))
    if features.method == "dual":
        (term,) = terms
        target = term.target.reshape(len(term.target), -1)
        return leave_out_dual(features.matrix, term.root, target, term.amount, members, alphas)
    V, n_free = _with_nuisance(loss, dense_rows(features.matrix))
    return leave_out_primal(V, whitened_terms(loss, V), members, alphas, n_free)


def _items(loss: SquaredLoss, features: Features, members: Folds, alphas: Array) -> Array:
    graph = loss.graph
    y = np.asarray(graph.scores if loss.y is None else loss.y).reshape(graph.n_items, -1)
    spectrum = item_spectrum(features, centered=loss.beta == 0, weight=graph.item_weights)
    R = None if features.method == "dual" else dense_rows(features.matrix)
    if R is not None and loss.beta == 0:
        R = R - R.mean(axis=0)  # the coefficients of the items sum to zero
    return leave_out_items(spectrum, R, y, members, alphas, loss.beta)


def _edges(graph: PreferenceGraph, features: Features, edges: Folds, alphas: Array) -> Array:
    """Rows are edges: ``√ω (r_i − r_j)``, with ω δ for target and ω for amount."""
    pairs = graph.pairs()
    omega = pairs.edge_weight
    total = omega.sum()
    check_rest(all(total - omega[some].sum() > ROUNDING * total for some in edges))
    is_dual = features.method == "dual"
    R, back = (
        _features_of_kernel(features.matrix) if is_dual else (dense_rows(features.matrix), None)
    )
    x = R[pairs.winner] - R[pairs.loser]
    flow = omega * pairs.edge_target
    term = WhitenedTerm(1.0, np.sqrt(omega)[:, None] * x, flow[:, None], omega)
    w = leave_out_primal(x, [term], edges, alphas)
    moment, size = x.T @ flow, np.abs(x).T @ np.abs(flow)
    for k, some in enumerate(edges):  # where nothing is preferred, rounding must not order items
        if (np.abs(moment - x[some].T @ flow[some]) <= ROUNDING * size).all():
            w[:, k] = 0.0
    return w if back is None else (back @ w.reshape(len(w), -1)).reshape(len(back), *w.shape[1:])


def _features_of_kernel(K: Array) -> tuple[Array, Array]:
    """R and B with ``K = R Rᵀ`` and dual coefficients a = B w of the same scores ``R w = K a``."""
    values, Q = scipy.linalg.eigh(K, check_finite=False)
    kept = values > len(K) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    root = np.sqrt(values[kept])
    return Q[:, kept] * root, Q[:, kept] / root


def _refit(
    loss: SquaredLoss, features: Features, units: Units, alphas: Array, refit: Refit
) -> Array:
    """Train again without each unit, and with all data; coefficients of all features or items."""
    every = np.arange(0)
    units, solutions = units._replace(members=[*units.members, every]), []
    for _, rest, coef in _train_again(loss, features, units, alphas, refit):
        if features.method == "dual":
            whole = np.zeros((len(alphas), loss.graph.n_items, coef.shape[2]))
            whole[:, rest] = coef
            coef = whole
        solutions.append(coef.transpose(1, 2, 0))
    return np.stack(solutions, axis=1)


def _train_again(
    loss: SquaredLoss, features: Features, units: Units, alphas: Array, refit: Refit
) -> Iterator[tuple[Indices, Indices, Array]]:
    """Each unit, the other items, and the coefficients of the models without the unit.

    They are trained on the same features, basis or kernel matrix.
    """
    every, graph = np.arange(loss.graph.n_items), loss.graph
    for U in track(units.members, "training again without a fold", refit.progress):
        rest = every if units.of_edges else np.setdiff1d(every, U)
        if units.of_edges:
            edges = graph.pairs()
            rest_graph: PreferenceGraph = edges.with_edges(np.delete(np.arange(edges.n_pairs), U))
        else:
            rest_graph = graph.subset(rest)
        rest_loss = loss.of_items(rest, rest_graph)
        check_rest(loss.beta == 1 or rest_loss.graph.n_pairs > 0)
        is_dual = features.method == "dual"
        matrix = features.matrix[np.ix_(rest, rest)] if is_dual else features.matrix[rest]
        tol, max_iter = refit.tol, refit.max_iter
        yield (
            U,
            rest,
            minimize(features.method, rest_loss, matrix, alphas, tol=tol, max_iter=max_iter).coef,
        )
