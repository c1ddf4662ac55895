"""Held-out scores of RankRLS: the shortcut where there is one, an honest refit where there is none.

========================================  ====================  ===============================
folds                                     model                 way
========================================  ====================  ===============================
no edge leaves them: groups, components   linear, basis         `hold_out_primal`, `hold_out_few`
the same                                  kernel, β = 0 or 1    `hold_out_dual`
edges leave them: items, groups with      linear, basis         `hold_out_with_edges`, unless
edges between them (`PairGraph`)                                there are too many edges
items of one list, magnitude with ties,   all but iterative     `hold_out_items`, unless training
no item of weight 0                                             again costs less: long folds, few
                                                                features
anything else                             any                   train again without the fold
========================================  ====================  ===============================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankwise.arrays import Array
from rankwise.features import Design
from rankwise.graphs import PreferenceGraph
from rankwise.losses import SquaredLoss
from rankwise.machine import track
from rankwise.model_selection.exact_hold_out_edges import (
    edges_of_folds,
    fits_edges,
    hold_out_with_edges,
)
from rankwise.model_selection.folds import Folds, fold_numbers
from rankwise.rows import first_equal_rows
from rankwise.solvers import minimize
from rankwise.solvers.hold_out import Part, hold_out_dual, hold_out_few, hold_out_primal
from rankwise.solvers.hold_out_items import (
    Spectrum,
    hold_out_items,
    spectrum_of_features,
    spectrum_of_kernel,
)

HeldOut = Iterator[tuple[NDArray[np.intp], Array]]
ROUNDING = 1e-12  # of a weight: what is left of it when all of it is subtracted
TIED = 1e-13  # of the largest target: preferences that cancel, but for rounding

# Multiplications, or as much time as so many take, measured from 10 to 300 features.
DECOMPOSITION = 10  # × p³: one eigendecomposition of p features
DOWNDATE_PRODUCT = 30  # × n p: products of the n rows that a downdate takes out, beside n² p
DOWNDATE_SOLUTION = 1.5  # × n³: the system of a downdate
REDUCTION_SOLUTION = 6  # × p²: one alpha in a reduced system
REDUCTION_START = 4e5  # what a reduction costs at any size: calls of LAPACK
ROTATION = 1.1  # × m p²: all features in the basis that downdates need, and 4 p³ to find it


class Refit(NamedTuple):
    """How folds without a shortcut are trained: limits of the iterative solver, a bar or none."""

    tol: float
    max_iter: int | None
    progress: bool | None = None


def held_out_scores(
    loss: SquaredLoss,
    design: Design,
    folds: Folds,
    alphas: Array,
    refit: Refit,
    white: list[Part] | None = None,
) -> Array:
    """Scores of every item by models that were trained without its fold.

    The kernel matrix of a dual design may be overwritten. `white` is what `whitened_parts` gives,
    if it is there already.

    Returns
    -------
    ndarray of shape (n_items, n_outputs, n_alphas)
        For each alpha as a model refitted on the other folds would give; equal rows of a fold
        have equal scores, to the last bit.
    """
    fold = fold_numbers(folds, loss.graph.n_items)
    first = first_equal_rows(design.matrix, fold)
    targets = loss.target.reshape(len(loss.target), -1)
    out = np.empty((*targets.shape, len(alphas)))
    _hold_out(loss, design, folds, alphas, refit, out, white)
    if loss.beta == 0:  # where nothing is left to learn from, rounding must not order items
        preferring = _preferring(loss.graph, targets)
        silent = _sums(preferring, fold) == preferring.sum(axis=0)
        for k in np.flatnonzero(silent.any(axis=1) & ~closed_folds(loss.graph, folds)):
            silent[k] &= _is_tied(loss.graph, np.flatnonzero(fold != k))
        out[silent[fold]] = 0.0
    return out if first is None else np.asarray(out[first])


def item_spectrum(
    design: Design,
    *,
    centered: bool = False,
    overwrite: bool = False,
    weight: Array | None = None,
) -> Spectrum:
    """Eigenvalues and vectors of the kernel matrix of a design, of items with weights or without.

    `centered` is for scores that count up to a constant; `overwrite` gives up a kernel matrix.
    """
    first = first_equal_rows(design.matrix)
    if design.method == "dual":
        spectrum = spectrum_of_kernel(
            design.matrix, centered=centered, overwrite=overwrite, weight=weight
        )
        return spectrum._replace(first=first)
    R = dense_rows(design.matrix)
    if R.shape[1] < R.shape[0]:
        return spectrum_of_features(R, centered=centered, weight=weight)._replace(first=first)
    R = R - R.mean(axis=0) if centered else R
    return spectrum_of_kernel(R @ R.T, overwrite=True, weight=weight)._replace(first=first)


def _preferring(graph: PreferenceGraph, targets: Array) -> NDArray[np.bool_]:
    """For each item and output whether the item is not tied with all others.

    In a complete list: whether it differs from the median, as then it does from at least half of
    the others.
    """
    if graph.is_complete:
        y = np.asarray(graph.scores).reshape(targets.shape)
        return np.asarray(y != np.sort(y, axis=0)[(len(y) - 1) // 2])
    return np.asarray(np.abs(targets) > TIED * np.abs(targets).max(axis=0))


def _is_tied(graph: PreferenceGraph, items: NDArray[np.intp]) -> NDArray[np.bool_]:
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
    design: Design,
    folds: Folds,
    alphas: Array,
    refit: Refit,
    out: Array,
    white: list[Part] | None,
) -> None:
    """Fill `out` by the ways of the table above; the matrix of a dual design is overwritten."""
    closed = closed_folds(loss.graph, folds)
    whole = [U for U, is_closed in zip(folds, closed, strict=True) if is_closed]
    cut = [U for U, is_closed in zip(folds, closed, strict=True) if not is_closed]
    if design.method == "iterative":
        cut, whole = folds, []
    elif cut and _hold_out_cut(loss, design, cut, alphas, out):
        cut = []
    if design.method == "dual" and 0 < loss.beta < 1:
        cut, whole = [*cut, *whole], []
    for U, scores in _refit(loss, design, cut, alphas, refit):
        out[U] = scores
    if whole:
        _closed_shortcut(loss, design, whole, alphas, out, white)


def _hold_out_cut(
    loss: SquaredLoss, design: Design, folds: Folds, alphas: Array, out: Array
) -> bool:
    """Fill `out` for folds that edges leave, if there is a shortcut that pays; say whether."""
    graph = loss.graph
    weight = graph.item_weights
    if graph.is_complete and not _is_cheaper_to_refit(design, folds, len(alphas), weight):
        for U in folds:
            check_rest(graph.n_items - len(U) > 1 or loss.beta == 1)
        y = np.asarray(graph.scores if loss.y is None else loss.y).reshape(graph.n_items, -1)
        spectrum = item_spectrum(design, weight=weight)
        for U, scores in hold_out_items(spectrum, y, folds, alphas, loss.beta):
            out[U] = scores
        return True
    if has_fixed_edges(graph) and design.method == "primal":
        R, pairs = design.matrix, graph.pairs()
        if fits_edges(pairs, R.shape[1]):
            edges = edges_of_folds(pairs, folds)
            for touching in edges:
                check_rest(len(touching) < pairs.n_pairs)
            hold_out_with_edges(dense_rows(R), pairs, folds, edges, alphas, out)
            return True
    return False


def _is_cheaper_to_refit(design: Design, folds: Folds, n_alphas: int, weight: Array | None) -> bool:
    """Whether p features cost less than systems as large as the folds, one for each alpha.

    With weights every fold has a resolvent of its own, of three products with the vectors.
    """
    if design.method == "dual":
        return False
    m, p = design.matrix.shape
    spectrum, systems = m * p**2, sum(len(U) ** 3 + len(U) ** 2 * p for U in folds)
    if weight is not None:
        systems += 3 * m * p * len(folds)
    refit = m * p**2 + DECOMPOSITION * p**3
    return bool(len(folds) * refit < spectrum + n_alphas * systems)


def _closed_shortcut(
    loss: SquaredLoss,
    design: Design,
    folds: Folds,
    alphas: Array,
    out: Array,
    white: list[Part] | None,
) -> None:
    parts = loss.parts()
    fold = fold_numbers(folds, len(out))
    for part in parts:
        total = part.amount.sum()
        check_rest(bool((total - _sums(part.amount, fold) > ROUNDING * total).all()))
    if design.method == "dual":
        (part,) = parts
        target = part.target.reshape(len(part.target), -1)
        component = loss.graph.components
        hold_out_dual(design.matrix, part.root, component, target, part.amount, folds, alphas, out)
        return
    R = dense_rows(design.matrix)
    white = white or whitened_parts(loss, R)
    small, large = sort_folds(folds, white, len(alphas))
    if small:
        hold_out_few(R, white[0], [folds[k] for k in small], alphas, out)
    if large:
        hold_out_primal(R, white, [folds[k] for k in large], alphas, out)


def whitened_parts(loss: SquaredLoss, R: Array) -> list[Part]:
    """The parts of the objective, seen through features R."""
    return [
        Part(p.share, p.root.adjoint(R), p.target.reshape(len(R), -1), p.amount)
        for p in loss.parts()
    ]


def sort_folds(folds: Folds, parts: list[Part], n_alphas: int) -> tuple[list[int], list[int]]:
    """Numbers of the folds for `hold_out_few` and for `hold_out_primal`.

    A fold that holds half of the squares is for the latter, which does not subtract it.
    """
    if len(parts) > 1:
        return [], list(range(len(folds)))
    white = parts[0].white
    squares = np.einsum("ij,ij->i", white, white)
    held = np.add.reduceat(
        np.append(squares[np.concatenate(folds)], 0.0),
        np.cumsum([0, *(len(U) for U in folds[:-1])]),
    )
    p = white.shape[1]
    saved = np.array([_saved(len(U), p, n_alphas) for U in folds])
    sizes = np.array([len(U) for U in folds])
    is_small = (saved > 0) & ((sizes == 0) | (held < squares.sum() / 2))
    if saved[is_small].sum() < ROTATION * len(white) * p**2 + 4 * p**3:
        is_small[:] = False
    return np.flatnonzero(is_small).tolist(), np.flatnonzero(~is_small).tolist()


def _sums(values: NDArray[Any], fold: NDArray[np.intp]) -> Array:
    """Sums of the rows of each fold; items of no fold have the number −1."""
    kept = fold >= 0
    columns = values[kept].reshape(int(kept.sum()), -1).T
    sums = [np.bincount(fold[kept], column) for column in columns]
    return np.stack(sums, axis=1, dtype=np.float64).reshape(-1, *values.shape[1:])


def _saved(n: int, p: int, n_alphas: int) -> float:
    """How much a downdate by n items for each alpha saves of a reduction of p features."""
    downdate = DOWNDATE_PRODUCT * n * p + n**2 * p + DOWNDATE_SOLUTION * n**3
    reduction = p**3 + n_alphas * REDUCTION_SOLUTION * p**2 + REDUCTION_START
    return reduction - n_alphas * downdate


def _refit(
    loss: SquaredLoss,
    design: Design,
    folds: Folds,
    alphas: Array,
    refit: Refit,
) -> HeldOut:
    """Train again without each fold."""
    for U in track(folds, "training again without a fold", refit.progress):
        yield U, refit_without(loss, design, U, U, alphas, refit)


def refit_without(
    loss: SquaredLoss,
    design: Design,
    left_out: NDArray[np.intp],
    scored: NDArray[np.intp],
    alphas: Array,
    refit: Refit,
) -> Array:
    """Train again without some items, on the same features, basis or kernel matrix.

    Returns the scores of some of these, shape (n_scored, n_outputs, n_alphas).
    """
    rest = np.setdiff1d(np.arange(loss.graph.n_items), left_out)
    graph = loss.graph.subset(rest)
    check_rest(loss.beta == 1 or graph.n_pairs > 0)
    part = SquaredLoss(graph, loss.beta, None if loss.y is None else loss.y[rest])
    is_dual = design.method == "dual"
    seen = design.matrix[np.ix_(rest, rest)] if is_dual else design.matrix[rest]
    held = design.matrix[np.ix_(scored, rest)] if is_dual else design.matrix[scored]
    tol, max_iter = refit.tol, refit.max_iter
    coef = minimize(design.method, part, seen, alphas, tol=tol, max_iter=max_iter).coef
    return np.stack([held @ columns for columns in coef]).transpose(1, 2, 0)


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
