"""Models of RankRLS without each unit: the shortcut where there is one, else an honest refit.

=====================================  ===================  ======================================
units                                  model                way
=====================================  ===================  ======================================
items that no edge leaves (groups)     linear, basis        `leave_out_primal`, `leave_out_few`
the same                               kernel, β = 0 or 1   `leave_out_dual`
items of one list, magnitude, ties in  all but iterative    `leave_out_items`
comparisons; items of explicit         all but iterative    `leave_out_few` on the edges, unless
preferences with all their edges                            there are too many
anything else                          any                  train again without the unit
=====================================  ===================  ======================================
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.linalg

from rankwise.arrays import Array
from rankwise.features import Design
from rankwise.graphs import PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.model_selection.exact_hold_out import (
    Refit,
    check_rest,
    closed_folds,
    dense_rows,
    has_fixed_edges,
    item_spectrum,
    sort_folds,
    whitened_parts,
)
from rankwise.model_selection.exact_hold_out_edges import edges_of_folds, fits_edges
from rankwise.model_selection.folds import Folds
from rankwise.solvers import minimize
from rankwise.solvers.hold_out import Part
from rankwise.solvers.leave_out import (
    leave_out_dual,
    leave_out_few,
    leave_out_items,
    leave_out_primal,
)

ROUNDING = 1e-12  # of a weight: what is left of it when all of it is subtracted


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
    loss: SquaredLoss, design: Design, units: Units, alphas: Array, refit: Refit
) -> Array:
    """Coefficients of the models without each unit, and last of the model of all data.

    The kernel matrix of a dual design may be overwritten.

    Returns
    -------
    ndarray of shape (n_coefficients, n_units + 1, n_outputs, n_alphas)
        As an estimator that is trained again without the unit would have them.
    """
    solution = _solutions(loss, design, units, alphas, refit)
    flat = design.coefficients(solution.reshape(len(solution), -1))
    return flat.reshape(len(flat), *solution.shape[1:])


def way_without(loss: SquaredLoss, design: Design, units: Units) -> str:
    """How the units are left out: "closed", "items", "edges" or "refit"."""
    graph, is_mixed = loss.graph, design.method == "dual" and 0 < loss.beta < 1
    if design.method == "iterative":
        return "refit"
    if not units.of_edges and closed_folds(graph, units.members).all():
        return "refit" if is_mixed else "closed"
    if graph.is_complete:
        return "items"
    has_room = has_fixed_edges(graph) and fits_edges(graph.pairs(), _n_features(design))
    return "edges" if has_room else "refit"


def _solutions(
    loss: SquaredLoss, design: Design, units: Units, alphas: Array, refit: Refit
) -> Array:
    graph, members = loss.graph, [*units.members, np.empty(0, dtype=np.intp)]
    way = way_without(loss, design, units)
    if way == "closed":
        return _closed(loss, design, members, alphas)
    if way == "items":
        check_rest(max(map(len, members)) < graph.n_items - 1 or loss.beta == 1)
        return _items(loss, design, members, alphas)
    if way == "edges":
        pairs = graph.pairs()
        edges = members if units.of_edges else [*edges_of_folds(pairs, units.members), members[-1]]
        return _edges(graph, design, edges, alphas)
    return _refit(loss, design, units, alphas, refit)


def _n_features(design: Design) -> int:
    return len(design.matrix) if design.method == "dual" else design.matrix.shape[1]


def _closed(loss: SquaredLoss, design: Design, members: Folds, alphas: Array) -> Array:
    parts = loss.parts()
    for part in parts:
        total = part.amount.sum()
        check_rest(all(total - part.amount[U].sum() > ROUNDING * total for U in members))
    if design.method == "dual":
        (part,) = parts
        target = part.target.reshape(len(part.target), -1)
        return leave_out_dual(design.matrix, part.root, target, part.amount, members, alphas)
    R = dense_rows(design.matrix)
    return _by_size(R, whitened_parts(loss, R), members, alphas)


def _by_size(R: Array, white: list[Part], members: Folds, alphas: Array) -> Array:
    """Small units by downdates, large ones by systems of their own."""
    small, large = sort_folds(members, white, len(alphas))
    found = np.empty((R.shape[1], len(members), white[0].target.shape[1], len(alphas)))
    if len(small):
        found[:, small] = leave_out_few(R, white[0], [members[k] for k in small], alphas)
    if len(large):
        found[:, large] = leave_out_primal(R, white, [members[k] for k in large], alphas)
    return found


def _items(loss: SquaredLoss, design: Design, members: Folds, alphas: Array) -> Array:
    graph = loss.graph
    y = np.asarray(graph.scores if loss.y is None else loss.y).reshape(graph.n_items, -1)
    spectrum = item_spectrum(design, centered=loss.beta == 0, weight=graph.item_weights)
    R = None if design.method == "dual" else dense_rows(design.matrix)
    if R is not None and loss.beta == 0:
        R = R - R.mean(axis=0)  # the coefficients of the items sum to zero
    return leave_out_items(spectrum, R, y, members, alphas, loss.beta)


def _edges(graph: PreferenceGraph, design: Design, edges: Folds, alphas: Array) -> Array:
    """Rows are edges: ``√ω (r_i − r_j)``, with ω δ for target and ω for amount."""
    pairs = graph.pairs()
    omega = pairs.edge_weight
    total = omega.sum()
    check_rest(all(total - omega[some].sum() > ROUNDING * total for some in edges))
    R, back = (
        _features_of_kernel(design.matrix)
        if design.method == "dual"
        else (
            dense_rows(design.matrix),
            None,
        )
    )
    x = R[pairs.winner] - R[pairs.loser]
    part = Part(1.0, np.sqrt(omega)[:, None] * x, (omega * pairs.edge_target)[:, None], omega)
    w = _by_size(x, [part], edges, alphas)
    return w if back is None else (back @ w.reshape(len(w), -1)).reshape(len(back), *w.shape[1:])


def _features_of_kernel(K: Array) -> tuple[Array, Array]:
    """R and B with ``K = R Rᵀ`` and dual coefficients a = B w of the same scores ``R w = K a``."""
    values, Q = scipy.linalg.eigh(K, check_finite=False)
    kept = values > len(K) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    root = np.sqrt(values[kept])
    return Q[:, kept] * root, Q[:, kept] / root


def _refit(loss: SquaredLoss, design: Design, units: Units, alphas: Array, refit: Refit) -> Array:
    """Train again without each unit, on the same features, basis or kernel matrix."""
    every, graph = np.arange(loss.graph.n_items), loss.graph
    is_dual, found = design.method == "dual", []
    for U in track([*units.members, every[:0]], "training again without a unit", refit.progress):
        rest = every if units.of_edges else np.setdiff1d(every, U)
        if units.of_edges:
            seen = graph.pairs()
            part = SquaredLoss(seen.with_edges(np.delete(np.arange(seen.n_pairs), U)), loss.beta)
        else:
            y = None if loss.y is None else loss.y[rest]
            part = SquaredLoss(graph.subset(rest), loss.beta, y)
        check_rest(loss.beta == 1 or part.graph.n_pairs > 0)
        matrix = design.matrix[np.ix_(rest, rest)] if is_dual else design.matrix[rest]
        tol, max_iter = refit.tol, refit.max_iter
        coef = minimize(design.method, part, matrix, alphas, tol=tol, max_iter=max_iter).coef
        coef = coef.transpose(1, 2, 0)
        if is_dual:
            whole = np.zeros((len(every), *coef.shape[1:]))
            whole[rest] = coef
            coef = whole
        found.append(coef)
    return np.stack(found, axis=1)
