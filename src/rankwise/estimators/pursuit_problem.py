"""From what the user gave to RankingPursuit to what its solver minimizes."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.estimators.training_data import PartlyScored, ranking_loss
from rankwise.features.feature_map import FeatureMap, choose_basis, read_points, take_columns
from rankwise.features.view import View, check_views, view_columns
from rankwise.graphs import PreferenceGraph
from rankwise.inputs import Target, check_option
from rankwise.losses import SquaredLoss
from rankwise.machine import check_matrix_fits
from rankwise.solvers.pursuit import AllPairs, PursuitProblem, SharedIndices

SMALLEST_SQUARE = 1e-290  # smaller ones have lost digits
SEARCHES = ("auto", "pairs", "shared")
DICTIONARIES = ("items", "scored", "features")


def make_loss(
    y: PreferenceGraph | PartlyScored,
    graph_options: tuple[str, str, str],
    beta: float,
    fit_intercept: bool,
) -> tuple[SquaredLoss, float | None]:
    """The loss of the scored rows, and their mean score if there is an intercept.

    `graph_options` are cost, ties and group_weight. Steps compare squares, which must not overflow
    or vanish.
    """
    if isinstance(y, PartlyScored):
        loss = y.loss(*graph_options, beta=beta)
    else:
        loss, shape = ranking_loss(y.n_items, Target(y), *graph_options, beta)
        if shape:
            raise ValueError(
                f"the graph given as y has {shape[0]} outputs; RankingPursuit takes one, so fit a "
                "model for each."
            )
    with np.errstate(over="ignore", invalid="ignore"):
        squares = loss.at_zero
    if not np.isfinite(squares) or (squares < SMALLEST_SQUARE and loss.target.any()):
        raise ValueError(
            f"the scores or magnitudes are so large or so small that their mean square is "
            f"{squares:g}; multiply all of them by one factor that brings them nearer to 1."
        )
    if loss.y is None or beta == 0 or not fit_intercept:
        return loss, None
    mean_score = float(np.average(loss.y, weights=loss.graph.item_weights))
    return SquaredLoss(loss.graph, beta, loss.y - mean_score), mean_score


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
    X: Any,
    rows: Indices,
    scored: Indices,
    dictionary: str | int | ArrayLike,
    views: list[View],
    names: Sequence[str] | None,
    rng: Any,
    *,
    are_split: bool,
) -> list[FeatureMap]:
    """The functions of each view.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_items, n_features)
        All items.
    rows, scored : ndarray of int
        Rows to choose from, and those of them that have a score.
    dictionary : str, int or array
        As in `RankingPursuit`.
    views : list of View
        As `list_views` gives them.
    names : sequence of str or None
        Names of the columns of X.
    rng : RandomState
        For random items and random views.
    are_split : bool
        Whether the views share the functions out instead of having all of them.
    """
    chosen, points = _choose_functions(dictionary, rows, scored, X.shape[1], rng)
    parts = [chosen] * len(views)
    is_features = isinstance(dictionary, str) and dictionary == "features"
    if are_split:
        is_scored = np.isin(chosen, scored) & (points is None) & (not is_features)
        parts = _deal(chosen, is_scored, len(views), rng)
    maps = []
    for view, numbers_of_functions in zip(views, parts, strict=True):
        columns = view_columns(view, X.shape[1], names)
        if is_features:
            maps.append(_features(view, numbers_of_functions if columns is None else columns))
        else:
            maps.append(_kernels(view, X, rows, numbers_of_functions, points, columns, rng))
    return maps


def _choose_functions(
    dictionary: str | int | ArrayLike, rows: Indices, scored: Indices, n_features: int, rng: Any
) -> tuple[Indices, Any]:
    """Numbers of the functions of a dictionary, and the points if these are given."""
    if isinstance(dictionary, str):
        check_option("dictionary", dictionary, DICTIONARIES)
        named = {"items": rows, "scored": scored, "features": np.arange(n_features)}
        return named[dictionary], None
    if isinstance(dictionary, numbers.Integral):
        count = int(dictionary)
        if not 1 <= count <= len(rows):
            raise ValueError(
                f"dictionary={count}; expected a number of items from 1 to {len(rows)}, "
                "the number of training items."
            )
        return np.sort(rng.choice(rows, size=count, replace=False)), None
    points = read_points("dictionary", dictionary, n_features)
    if points is None:
        raise ValueError(
            f"dictionary={dictionary!r}; expected one of {', '.join(map(repr, DICTIONARIES))}, a "
            "number of items, or an array of points."
        )
    return np.arange(points.shape[0]), points


def function_values(functions: FeatureMap, X: Any) -> Any:
    """The functions at the rows of X: a float64 array, or a sparse matrix stored by columns."""
    if not functions.is_columns:
        check_matrix_fits(
            X.shape[0],
            functions.n_features,
            "the values of a dictionary",
            "choose from fewer functions, for example dictionary=2000",
        )
    values = functions.features(X)
    if sp.issparse(values):
        return values.tocsc().astype(np.float64, copy=False)
    return np.asarray(values, dtype=np.float64)


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


def _features(view: View, columns: Indices) -> FeatureMap:
    if not view.make_kernel().is_linear or view.n_basis is not None:
        raise ValueError(
            f"dictionary='features' takes the columns of X as they are, but kernel={view.kernel!r} "
            f"and n_basis={view.n_basis!r} were given; use kernel='linear' without n_basis, or "
            "dictionary='items'."
        )
    return FeatureMap(view.make_kernel(), columns, len(columns))


def _kernels(
    view: View,
    X: Any,
    rows: Indices,
    chosen: Indices,
    points: Any,
    columns: Indices | None,
    rng: Any,
) -> FeatureMap:
    """Kernel functions at chosen rows of X, or of points; a basis of the view comes first."""
    kernel, items = view.make_kernel(), take_columns(X, columns)
    if kernel.is_precomputed and points is not None:
        raise ValueError(
            "dictionary gives points, but kernel='precomputed' has no kernel values to them; use "
            "dictionary='items' or a number of items."
        )
    if kernel.is_precomputed and items.shape[0] != items.shape[1]:
        raise ValueError(
            f"X has shape {items.shape}; kernel='precomputed' needs the square matrix of kernel "
            "values between all training items."
        )
    if not isinstance(view.basis, str):
        chosen, points = choose_basis(items, view.n_basis, view.basis, rng), None
    elif view.n_basis is not None:
        chosen, points = rows[choose_basis(items[rows], view.n_basis, view.basis, rng)], None
    source = items if points is None else take_columns(points, columns)
    centers = None if kernel.is_precomputed else source[chosen]
    return FeatureMap(kernel, columns, len(chosen), chosen, centers)


def choose_search(search: str, dictionaries: list[FeatureMap]) -> str:
    """How to search several views: "pairs" or "shared", checked; "single" for one view."""
    check_option("search", search, SEARCHES)
    n_views, first = len(dictionaries), dictionaries[0]
    if n_views == 1:
        return "single"
    is_shared = all(np.array_equal(d.indices, first.indices) for d in dictionaries)
    if search == "auto":
        search = "pairs" if n_views == 2 else "shared"
    if search == "pairs" and n_views != 2:
        raise ValueError(
            f"search='pairs' is for two views, and there are {n_views}; use 'shared' (one item for "
            "all views)."
        )
    if search == "shared" and not is_shared:
        raise ValueError(
            f"{n_views} views that take the same item need the same dictionary, and theirs differ "
            "(a number of views, n_basis of a View or columns as functions make them differ); use "
            "two views and search='pairs', or a list of View with one dictionary."
        )
    if search == "pairs":
        check_matrix_fits(
            len(first.indices),
            len(dictionaries[1].indices),
            "a matrix of all pairs of functions",
            "use search='shared', or a random part of the items (for example dictionary=2000)",
        )
    return search


def make_search(problem: PursuitProblem, search: str) -> SharedIndices | AllPairs:
    """Compute once what every step needs; a view whose functions are all constant is refused."""
    norms: list[Array] = [problem.norms(view) for view in range(problem.n_views)]
    for view, values in enumerate(norms):
        if not values.any():
            where = f" of view {view}" if len(norms) > 1 else ""
            raise ValueError(
                f"no function of the dictionary{where} tells the scored items of any pair apart: "
                "all are constant inside groups. Give features (or columns of the view) that vary "
                "inside a group, or another kernel."
            )
    return AllPairs(problem, norms) if search == "pairs" else SharedIndices(problem, norms)
