"""From what the user gave to RankingPursuit to what its solver minimizes."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.estimators.problem import ranking_losses
from rankwise.estimators.unscored import PartlyScored
from rankwise.features import (
    FeatureMap,
    View,
    check_basis,
    check_views,
    choose_basis,
    take_columns,
    view_columns,
)
from rankwise.features.dictionary import choose_functions, function_values
from rankwise.graphs import PreferenceGraph, ScoreGraph
from rankwise.losses import SquaredLoss
from rankwise.machine import check_matrix_fits
from rankwise.options import check_option
from rankwise.solvers.pursuit import PursuitProblem, scored_norms

SMALLEST_SQUARE = 1e-290  # smaller ones have lost digits
SEARCHES = ("auto", "pairs", "shared", "cyclic")
PAIRS_LIMIT = 10**12  # multiplications: about a minute


class PursuitTarget(NamedTuple):
    """What is known about the items.

    Attributes
    ----------
    loss : SquaredLoss
        Of the scored rows; its scores less `level`, if there is one.
    scored : ndarray of int
        Rows that have a score, or all for explicit preferences.
    level : float or None
        Mean of the scores if there is an intercept.
    is_level_free : bool
        Whether adding a constant to the scores of all items does not change what is minimized.
    agreeing : ndarray of int
        Rows on whose order views are to agree; empty for one view.
    agreement : ScoreGraph or None
        Their pairs.
    """

    loss: SquaredLoss
    scored: Indices
    level: float | None
    is_level_free: bool
    agreeing: Indices
    agreement: ScoreGraph | None


@dataclass(frozen=True)
class TargetOptions:
    """Parameters of the loss, as in `RankingPursuit`."""

    cost: str
    ties: str
    group_weight: str
    beta: float
    fit_intercept: bool


class TrainingItems(NamedTuple):
    """Rows to choose functions from.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_items, n_features)
        All items.
    available, scored : ndarray of int
        Rows that are not held out, and those of them that have a score.
    names : sequence of str or None
        Names of the columns of X.
    """

    X: Any
    available: Indices
    scored: Indices
    names: Sequence[str] | None


def read_target(
    y: PreferenceGraph | PartlyScored, options: TargetOptions, n_views: int
) -> PursuitTarget:
    """Make the loss of the scored rows and the graph of those where views are to agree."""
    graph_options = (options.cost, options.ties, options.group_weight)
    if isinstance(y, PartlyScored):
        scored = y.scored
        losses, _ = ranking_losses(len(scored), *y.target, *graph_options, options.beta)
    else:
        scored = np.arange(y.n_items)
        losses, shape = ranking_losses(y.n_items, y, None, *graph_options, options.beta)
        if shape:
            raise ValueError(
                f"the graph given as y has {shape[0]} outputs; RankingPursuit takes one, so fit a "
                "model for each."
            )
    loss, level = losses[0], None
    if loss.y is not None and options.beta > 0 and options.fit_intercept:
        level = float(np.average(loss.y, weights=loss.graph.item_weights))
        loss = SquaredLoss(loss.graph, loss.beta, loss.y - level)
    _check_squares(loss)
    agreeing, agreement = np.empty(0, dtype=np.intp), None
    if n_views > 1 and isinstance(y, PartlyScored):
        agreeing, agreement = y.agreement(options.group_weight)
    is_level_free = options.beta == 0 or level is not None
    return PursuitTarget(loss, scored, level, is_level_free, agreeing, agreement)


def _check_squares(loss: SquaredLoss) -> None:
    """Raise a ValueError if squares of the scores overflow or vanish: steps compare squares."""
    with np.errstate(over="ignore", invalid="ignore"):
        squares = loss.at_zero
    if not np.isfinite(squares) or (squares < SMALLEST_SQUARE and loss.target.any()):
        raise ValueError(
            f"the scores or magnitudes are so large or so small that their mean square is "
            f"{squares:g}; multiply all of them by one factor that brings them nearer to 1."
        )


def list_views(views: int | Sequence[View] | None, single: View) -> list[View]:
    """The views that the user gave, or so many times the kernel of the estimator."""
    if views is None:
        return [single]
    if isinstance(views, numbers.Integral):
        if int(views) < 1:
            raise ValueError(f"views={views}; expected at least 1, or a list of View.")
        return [single] * int(views)
    return check_views(views)


def make_dictionaries(
    items: TrainingItems,
    dictionary: str | int | ArrayLike,
    views: list[View],
    rng: Any,
    *,
    is_dealt: bool,
) -> list[FeatureMap]:
    """The functions of each view.

    Parameters
    ----------
    items : TrainingItems
        What there is to choose from.
    dictionary : str, int or array
        As in `RankingPursuit`.
    views : list of View
        As `list_views` gives them.
    rng : RandomState
        For random items and random views.
    is_dealt : bool
        Whether the views share the functions out instead of having all of them.
    """
    chosen, points = choose_functions(
        dictionary, items.available, items.scored, items.X.shape[1], rng
    )
    parts = [chosen] * len(views)
    is_features = isinstance(dictionary, str) and dictionary == "features"
    if is_dealt:
        is_scored = np.isin(chosen, items.scored)
        parts = _deal(chosen, is_scored & (points is None) & (not is_features), len(views), rng)
    return [
        _features(view, part, items) if is_features else _kernels(view, part, points, items, rng)
        for view, part in zip(views, parts, strict=True)
    ]


def make_problem(
    X: Any, target: PursuitTarget, dictionaries: list[FeatureMap], nu: float
) -> PursuitProblem:
    """Evaluate the dictionaries at the scored rows and at those of the agreement."""
    scored = [function_values(one, _rows(X, target.scored)) for one in dictionaries]
    same = np.array_equal(target.agreeing, target.scored)
    agreeing: list[Any] = []
    if target.agreement is not None:
        rows = _rows(X, target.agreeing)
        agreeing = scored if same else [function_values(one, rows) for one in dictionaries]
    return PursuitProblem(
        target.loss, target.is_level_free, list(scored), list(agreeing), target.agreement, nu
    )


def dictionary_norms(problem: PursuitProblem) -> list[Array]:
    """``kᵀ A k`` of every function of every view; a view where all are 0 is refused."""
    norms = [scored_norms(problem, view) for view in range(problem.n_views)]
    for view, values in enumerate(norms):
        if not values.any():
            where = f" of view {view}" if len(norms) > 1 else ""
            raise ValueError(
                f"no function of the dictionary{where} tells the scored items of any pair apart: "
                "all are constant inside groups. Give features (or columns of the view) that vary "
                "inside a group, or another kernel."
            )
    return norms


def choose_search(search: str, dictionaries: list[FeatureMap], n_agreeing: int) -> str:
    """How to search several views: "pairs", "shared" or "cyclic", checked.

    All pairs take a product of two matrices of `n_agreeing` rows once, which must stay affordable
    to be chosen by itself.
    """
    check_option("search", search, SEARCHES)
    n_views, first = len(dictionaries), dictionaries[0]
    if n_views == 1:
        return "single"
    is_shared = all(np.array_equal(d.indices, first.indices) for d in dictionaries)
    if search == "auto" and n_views == 2:
        n_pairs = len(first.indices) * len(dictionaries[1].indices)
        search = "pairs" if n_pairs * n_agreeing <= PAIRS_LIMIT else "cyclic"
    elif search == "auto":
        search = "shared" if is_shared else "cyclic"
    if search == "pairs" and n_views != 2:
        raise ValueError(
            f"search='pairs' is for two views, and there are {n_views}; use 'shared' (one item for "
            "all views) or 'cyclic' (one view after the other)."
        )
    if search == "shared" and not is_shared:
        raise ValueError(
            "search='shared' needs views with the same dictionary, and theirs differ (a number of "
            "views, n_basis of a View or columns as functions make them differ); use 'cyclic'."
        )
    if search == "pairs":
        check_matrix_fits(
            len(first.indices),
            len(dictionaries[1].indices),
            "a matrix of all pairs of functions",
            "use search='cyclic', or a random part of the items (for example dictionary=2000)",
        )
    return search


def _deal(chosen: Indices, is_scored: Any, n_views: int, rng: Any) -> list[Indices]:
    """Random disjoint parts, each with its share of the scored and of the unscored items."""
    if len(chosen) < n_views:
        raise ValueError(
            f"views={n_views} deals the {len(chosen)} functions of the dictionary out to the "
            "views, which is less than one for each; use fewer views or a larger dictionary."
        )
    shuffled = np.concatenate(
        [rng.permutation(chosen[is_scored]), rng.permutation(chosen[~is_scored])]
    )
    return [np.sort(shuffled[v::n_views]) for v in range(n_views)]


def _features(view: View, part: Indices, items: TrainingItems) -> FeatureMap:
    if not view.make_kernel().is_linear or view.n_basis is not None:
        raise ValueError(
            f"dictionary='features' takes the columns of X as they are, but kernel={view.kernel!r} "
            f"and n_basis={view.n_basis!r} were given; use kernel='linear' without n_basis, or "
            "dictionary='items'."
        )
    columns = view_columns(view, items.X.shape[1], items.names)
    chosen = part if columns is None else columns
    return FeatureMap(view.make_kernel(), chosen, len(chosen))


def _kernels(view: View, part: Indices, points: Any, items: TrainingItems, rng: Any) -> FeatureMap:
    kernel = view.make_kernel()
    columns = view_columns(view, items.X.shape[1], items.names)
    seen = take_columns(items.X, columns)
    if kernel.is_precomputed:
        _check_precomputed(seen, points)
    if not isinstance(view.basis, str):
        check_basis(view.n_basis, view.basis, items.X.shape[0])
        part, points = choose_basis(seen, 0, view.basis, rng), None
    elif view.n_basis is not None:
        count = check_basis(view.n_basis, view.basis, len(items.available))
        part = choose_basis(seen[items.available], count, view.basis, rng)
        part, points = items.available[part], None
    source = seen if points is None else take_columns(points, columns)
    chosen = None if kernel.is_precomputed else source[part]
    return FeatureMap(kernel, columns, len(part), part, chosen)


def _check_precomputed(seen: Any, points: Any) -> None:
    if points is not None:
        raise ValueError(
            "dictionary gives points, but kernel='precomputed' has no kernel values to them; use "
            "dictionary='items' or a number of items."
        )
    if seen.shape[0] != seen.shape[1]:
        raise ValueError(
            f"X has shape {seen.shape}; kernel='precomputed' needs the square matrix of kernel "
            "values between all training items."
        )


def _rows(X: Any, rows: Indices) -> Any:
    return X if len(rows) == X.shape[0] else X[rows]
