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
from rankwise.graphs import PairGraph, PreferenceGraph
from rankwise.kernels.solver_input import SolverInput
from rankwise.kernels.stable_products import first_equal_rows
from rankwise.losses import SquaredLoss
from rankwise.losses.profiled import hstack_columns
from rankwise.model_selection.folds import Folds, fold_of_item
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.progress import Progress, track
from rankwise.solvers import minimize
from rankwise.solvers.leave_group_out import (
    WhitenedTerm,
    diagonalize_gram,
    hold_out_dual,
    leave_out_dual_coef,
    leave_out_weights,
)
from rankwise.solvers.leave_items_out import (
    Spectrum,
    center_columns,
    find_spectrum,
    hold_out_items,
    leave_out_items,
)

Limits = dict[str, Any]  # tol and max_iter of the iterative solver, for folds without a shortcut
EDGE_ENTRIES = 2**25  # differences of features held in memory, all edges by all features
ROUNDING = 1e-12  # of a weight: what is left of it when all of it is subtracted
COPIES = 4  # of the features: dense, weighted, and both times the eigenvectors
LONG = 64  # items of a fold: shorter ones are small systems, whatever the features
TIED = 1e-13  # of the largest target: preferences that cancel, but for rounding


class HoldOutUnits(NamedTuple):
    """What is left out together.

    Attributes
    ----------
    kind : {"folds", "groups", "items", "comparisons", "clusters"}
        What a unit is called.
    members : list of ndarray of int
        Numbers of the items of each unit, or of its edges.
    of_edges : bool
        Whether the members are edges.
    """

    kind: str
    members: Folds
    of_edges: bool = False


def cross_val_scores(
    loss: SquaredLoss, features: SolverInput, folds: Folds, alphas: Array, limits: Limits
) -> Array:
    """Scores of every item by models that were trained without its fold.

    A kernel matrix may be overwritten.

    Returns
    -------
    ndarray of shape (n_items, n_outputs, n_alphas)
        For each alpha as a model refitted on the other folds would give; equal rows of a fold
        have equal scores, to the last bit.
    """
    fold = fold_of_item(folds, loss.graph.n_items)
    first = first_equal_rows(features.matrix, fold)
    targets = loss.target.reshape(len(loss.target), -1)
    width = targets.shape[1] * len(alphas)
    if features.method == "primal":
        width += COPIES * features.matrix.shape[1]
    what, advice = "held-out scores and the features behind them,", "give fewer alphas"
    check_matrix_fits(len(targets), width, what, advice)
    out = np.empty((*targets.shape, len(alphas)))
    closed = closed_folds(loss.graph, folds)
    for are_closed in (False, True):  # last those whose shortcut overwrites a kernel matrix
        some = [folds[k] for k in np.flatnonzero(closed == are_closed)]
        if some:
            _hold_out(loss, features, HoldOutUnits("folds", some), alphas, limits, out)
    if loss.beta == 0:  # where nothing is left to learn from, rounding must not order items
        out[_silent(loss.graph, targets, fold, closed)[fold]] = 0.0
    return out if first is None else np.asarray(out[first])


def coefficients_without(
    loss: SquaredLoss, features: SolverInput, units: HoldOutUnits, alphas: Array, limits: Limits
) -> Array:
    """Coefficients of the models without each unit, and last of the model of all data.

    A kernel matrix may be overwritten.

    Returns
    -------
    ndarray of shape (n_coefficients, n_units + 1, n_outputs, n_alphas)
        As an estimator that is trained again without the unit would have them.
    """
    way = shortcut_for(loss, features, units)
    units = units._replace(members=[*units.members, np.empty(0, dtype=np.intp)])
    if way == "items":
        R = None if features.method == "dual" else dense_rows(features.matrix)
        if R is not None and loss.beta == 0:
            R = center_columns(R, loss.graph.item_weights)  # coefficients of items sum to zero
        y, spectrum = _list_of_items(loss, features, units.members, centered=loss.beta == 0)
        w = leave_out_items(spectrum, R, y, units.members, alphas, loss.beta)
    elif way == "closed" and features.method == "dual":
        (term,) = _terms(loss, units.members)
        w = leave_out_dual_coef(
            features.matrix,
            term.root,
            term.target,
            term.amount,
            units.members,
            alphas,
            overwrite=True,
        )
    else:
        n_outputs = loss.target[0].size
        w = np.empty((features.matrix.shape[1], len(units.members), n_outputs, len(alphas)))
        _, Q, weights = _weights_without(way, loss, features, units, alphas, limits)
        for numbers, some in weights:
            w[:, numbers] = some.transpose(1, 0, 2, 3)
        w = w if Q is None else (Q @ w.reshape(len(w), -1)).reshape(w.shape)
    flat = features.coefficients(w.reshape(len(w), -1))
    return flat.reshape(len(flat), *w.shape[1:])


def shortcut_for(loss: SquaredLoss, features: SolverInput, units: HoldOutUnits) -> str:
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
    # explicit edges whose weights do not depend on which others there are
    is_fixed = graph.scores is None and (graph.group_weight == "pairs" or graph.n_groups == 1)
    n_entries = (graph.n_pairs + graph.n_items) * features.matrix.shape[1]
    return "edges" if is_fixed and n_entries <= EDGE_ENTRIES else "refit"


def _hold_out(
    loss: SquaredLoss,
    features: SolverInput,
    units: HoldOutUnits,
    alphas: Array,
    limits: Limits,
    out: Array,
) -> None:
    """Fill `out` for these folds, which are closed or not."""
    way, folds = shortcut_for(loss, features, units), units.members
    is_dual, longest = features.method == "dual", max(map(len, folds))
    if way == "items" and (is_dual or longest <= max(features.matrix.shape[1], LONG)):
        y, spectrum = _list_of_items(loss, features, folds)
        hold_out_items(spectrum, y, folds, alphas, loss.beta, out)
    elif way == "closed" and is_dual:
        (term,) = _terms(loss, folds)
        parts = loss.graph.components, term.target, term.amount
        hold_out_dual(features.matrix, term.root, *parts, folds, alphas, out, overwrite=True)
    else:
        way = "refit" if way == "items" or is_dual else way
        line, done = Progress("holding out", len(folds), False if way == "refit" else None), 0
        R, _, weights = _weights_without(way, loss, features, units, alphas, limits)
        for numbers, some in weights:
            done += len(numbers)
            line.update(done)
            for k, w in zip(numbers, some, strict=True):
                scores = R[folds[k]] @ w.reshape(len(w), -1)
                out[folds[k]] = scores.reshape(-1, *w.shape[1:])
        line.close()


def _weights_without(
    way: str,
    loss: SquaredLoss,
    features: SolverInput,
    units: HoldOutUnits,
    alphas: Array,
    limits: Limits,
) -> tuple[Any, Array | None, Iterator[tuple[list[int], Array]]]:
    """Features, and the weights of their columns without some units, whose numbers come with them.

    Weights are of shape (k, n_columns, n_outputs, n_alphas). The features are those of
    ``features.matrix``, turned by the matrix that comes second, if it is not None.
    """
    if way == "edges":
        return features.matrix, None, _without_edges(loss.graph.pairs(), features, units, alphas)
    if way == "refit":
        return features.matrix, None, _refit_scores(loss, features, units, alphas, limits)
    R, Z, folds = dense_rows(features.matrix), loss.nuisance, units.members
    n_columns = R.shape[1]
    R = R if Z is None else hstack_columns(R, Z)
    terms, Q = _terms(loss, folds), None
    white = [WhitenedTerm(share, root.adjoint(R), *both) for share, root, *both in terms]
    if Z is None:
        R, white, Q = diagonalize_gram(R, white, folds, terms[0].root.adjoint)
    n_free = R.shape[1] - n_columns
    return R[:, :n_columns], Q, leave_out_weights(R, white, folds, alphas, n_free)


def _without_edges(
    pairs: PairGraph, features: SolverInput, units: HoldOutUnits, alphas: Array
) -> Iterator[tuple[list[int], Array]]:
    """Rows are edges: ``√ω (r_i − r_j)``, with ω δ for target and ω for amount."""
    edges = units.members if units.of_edges else edges_of_folds(pairs, units.members)
    omega = pairs.edge_weight
    total = omega.sum()
    check_rest(all(total - omega[some].sum() > ROUNDING * total for some in edges))
    if features.method == "dual":
        R, back = _features_of_kernel(features.matrix)
    else:
        R, back = dense_rows(features.matrix), None
    x = R[pairs.winner] - R[pairs.loser]
    flow = omega * pairs.edge_target
    root = np.sqrt(omega)[:, None]
    term = WhitenedTerm(1.0, root * x, flow[:, None], omega)
    moment, size = x.T @ flow, np.abs(x).T @ np.abs(flow)
    turned, terms, Q = diagonalize_gram(x, [term], edges, lambda rows: root * rows)
    if Q is not None:
        back = Q if back is None else back @ Q
    for numbers, weights in leave_out_weights(turned, terms, edges, alphas):
        for k, w in zip(numbers, weights, strict=True):
            left = moment - x[edges[k]].T @ flow[edges[k]]
            if (np.abs(left) <= ROUNDING * size).all():  # rounding must not order items
                w[:] = 0.0
        if back is not None:
            flat = back @ weights.reshape(*weights.shape[:2], -1)
            weights = flat.reshape(len(weights), len(back), *weights.shape[2:])
        yield numbers, weights


def _refit_scores(
    loss: SquaredLoss, features: SolverInput, units: HoldOutUnits, alphas: Array, limits: Limits
) -> Iterator[tuple[list[int], Array]]:
    """By training on the same features, basis or kernel matrix."""
    graph, is_dual = loss.graph, features.method == "dual"
    edges = graph.pairs() if units.of_edges else None
    fold = fold_of_item([] if units.of_edges else units.members, graph.n_items)
    if features.method == "iterative":  # near enough to those without a fold
        limits = {**limits, "norms": np.maximum(loss.norms(features.matrix), 0.0)}
    for k, U in enumerate(track(units.members, "training again without a fold")):
        rest = np.flatnonzero(fold != k)
        if edges is None:
            rest_graph = graph.subset(rest)
        else:
            rest_graph = edges.with_edges(np.delete(np.arange(edges.n_pairs), U))
        rest_loss = loss.of_items(rest, rest_graph)
        check_rest(loss.beta == 1 or rest_loss.graph.n_pairs > 0)
        R = features.matrix[np.ix_(rest, rest)] if is_dual else features.matrix[rest]
        w = minimize(features.method, rest_loss, R, alphas, **limits).coef
        if is_dual:
            of_rest, w = w, np.zeros((len(alphas), graph.n_items, w.shape[2]))
            w[:, rest] = of_rest
        yield [k], w.transpose(1, 2, 0)[None]


def _terms(loss: SquaredLoss, folds: Folds) -> list[Any]:
    """The sums of the loss, with targets of two dimensions; each fold leaves something of them."""
    terms = []
    for term in loss.terms():
        total = term.amount.sum()
        for U in folds:
            check_rest(total - term.amount[U].sum() > ROUNDING * total)
        terms.append(term._replace(target=term.target.reshape(len(term.target), -1)))
    return terms


def _list_of_items(
    loss: SquaredLoss, features: SolverInput, folds: Folds, *, centered: bool = False
) -> tuple[Array, Spectrum]:
    """The scores of one list in which all pairs are edges, and the spectrum of its items."""
    graph = loss.graph
    check_rest(loss.beta == 1 or max(map(len, folds)) < graph.n_items - 1)
    y = np.asarray(graph.scores if loss.y is None else loss.y).reshape(graph.n_items, -1)
    return y, item_spectrum(features, centered=centered, weight=graph.item_weights)


def item_spectrum(
    features: SolverInput,
    *,
    centered: bool = False,
    overwrite: bool = False,
    weight: Array | None = None,
) -> Spectrum:
    """Eigenvalues and vectors of the kernel matrix of items with weights or without.

    `centered` is for scores that count up to a constant; `overwrite` gives up a kernel matrix.
    """
    first, is_dual = first_equal_rows(features.matrix), features.method == "dual"
    matrix = dense_rows(features.matrix)
    spectrum = find_spectrum(
        matrix, weight, is_kernel=is_dual, centered=centered, overwrite=overwrite
    )
    return spectrum._replace(first=first)


def _silent(
    graph: PreferenceGraph, targets: Array, fold: Indices, closed: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """For each fold and output whether all that prefer anything are in the fold."""
    if graph.is_complete:  # in one list an item counts whose score is not the median
        y = np.asarray(graph.scores).reshape(targets.shape)
        prefers = y != np.sort(y, axis=0)[(len(y) - 1) // 2]
    else:
        prefers = np.abs(targets) > TIED * np.abs(targets).max(axis=0)
    low = np.where(prefers, fold[:, None], len(closed)).min(axis=0)
    high = np.where(prefers, fold[:, None], -1).max(axis=0)
    is_last = np.arange(len(closed))[:, None] == high
    silent = ((low == high) & is_last) | (low > high)
    for k in np.flatnonzero(silent.any(axis=1) & ~closed):
        silent[k] &= _is_tied(graph, np.flatnonzero(fold != k))
    return np.asarray(silent)


def _is_tied(graph: PreferenceGraph, items: Indices) -> NDArray[np.bool_]:
    """For each output whether these items have equal scores in each group; edges do not tell."""
    if graph.scores is None:
        return np.zeros(1, dtype=bool)
    if graph.item_weights is not None:
        items = items[graph.item_weights[items] > 0]
    Y = graph.scores.reshape(graph.n_items, -1)[items]
    _, first, group = np.unique(graph.groups[items], return_index=True, return_inverse=True)
    return np.asarray((Y[first][group] == Y).all(axis=0))


def closed_folds(graph: PreferenceGraph, folds: Folds) -> NDArray[np.bool_]:
    """For each fold whether no edge leaves it."""
    fold = fold_of_item(folds, graph.n_items)
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


def edges_of_folds(graph: PairGraph, folds: Folds) -> Folds:
    """For each fold the edges that touch it."""
    fold = fold_of_item(folds, graph.n_items)
    ends = np.concatenate([fold[graph.winner], fold[graph.loser]])
    order = np.argsort(ends, kind="stable")
    bounds = np.searchsorted(ends[order], np.arange(len(folds) + 1))
    return [np.unique(order[a:b] % graph.n_pairs) for a, b in itertools.pairwise(bounds)]


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


def _features_of_kernel(K: Array) -> tuple[Array, Array]:
    """R and B with ``K = R Rᵀ`` and dual coefficients a = B w of the same scores ``R w = K a``."""
    values, Q = scipy.linalg.eigh(K, check_finite=False)
    kept = values > len(K) * np.finfo(float).eps * np.abs(values).max(initial=0.0)
    root = np.sqrt(values[kept])
    return Q[:, kept] * root, Q[:, kept] / root
