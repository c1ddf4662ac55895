"""Dictionaries of functions that RankingPursuit chooses from."""

from __future__ import annotations

import math
import numbers
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from rankwise.arrays import Indices, Mask, Matrix, MatrixLike
from rankwise.kernels.basis import choose_basis, read_points
from rankwise.kernels.feature_maps import ColumnFeatures, KernelFeatures, take_columns
from rankwise.kernels.views import View
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import check_int, check_option

DICTIONARIES = ("items", "scored", "features")

MAX_COMBINATIONS = 2**20  # of functions of all views, whose inverse systems are stored

Dictionary = ColumnFeatures | KernelFeatures


class CandidateFunctions(NamedTuple):
    """Functions of a dictionary.

    Attributes
    ----------
    functions : ndarray of int
        Numbers of rows of X, of rows of `points`, or of columns of X.
    points : array of shape (n_points, n_features) or None
        Points that kernel functions are centered at, instead of rows of X.
    are_columns : bool, default=False
        Whether the functions are columns of X.
    """

    functions: Indices
    points: Matrix = None
    are_columns: bool = False

    @property
    def are_rows(self) -> bool:
        """Whether the functions are centered at rows of X."""
        return self.points is None and not self.are_columns


def choose_functions(
    dictionary: str | int | ArrayLike,
    rows: Indices,
    scored: Indices,
    n_features: int,
    rng: np.random.RandomState,
) -> CandidateFunctions:
    """Functions of a dictionary, as the parameter of that name describes it."""
    if isinstance(dictionary, str):
        check_option("dictionary", dictionary, DICTIONARIES)
        if dictionary == "features":
            return CandidateFunctions(np.arange(n_features), are_columns=True)
        if dictionary == "scored":
            return CandidateFunctions(scored)
        return CandidateFunctions(rows)  # "items": a kernel function at each training row
    if isinstance(dictionary, numbers.Integral):
        n_functions = min(check_int("dictionary", dictionary, least=1), len(rows))
        random_rows = rng.choice(rows, size=n_functions, replace=False)
        return CandidateFunctions(np.sort(random_rows))
    points = read_points("dictionary", dictionary, n_features)
    if points is None:
        raise ValueError(
            f"dictionary={dictionary!r}; expected one of {', '.join(map(repr, DICTIONARIES))}, a "
            "number of items, or an array of points."
        )
    return CandidateFunctions(np.arange(points.shape[0]), points)


def column_functions(view: View, functions: Indices, columns: Indices | None) -> ColumnFeatures:
    """Columns of X as the functions of a view."""
    kernel = view.make_kernel()
    if not kernel.is_linear or view.n_basis is not None:
        raise ValueError(
            "dictionary='features' uses the columns of X as they are, but "
            f"kernel={view.kernel!r} and n_basis={view.n_basis!r} were passed; use "
            "kernel='linear' without n_basis, or dictionary='items'."
        )
    if columns is None:  # a view without columns uses those of the dictionary
        columns = functions
    return ColumnFeatures(columns, len(columns))


def kernel_functions(
    view: View,
    candidates: CandidateFunctions,
    X: MatrixLike,
    rows: Indices,
    columns: Indices | None,
    rng: np.random.RandomState,
) -> KernelFeatures:
    """Kernel functions of a view; a basis of the view takes precedence over the dictionary."""
    kernel = view.make_kernel()
    items = take_columns(X, columns)
    has_points = candidates.points is not None
    if kernel.is_precomputed and (has_points or items.shape[0] != items.shape[1]):
        raise ValueError(
            f"kernel='precomputed' needs the square matrix of kernel values between all "
            f"training items, and no points as dictionary; X has shape {items.shape}."
        )
    # the kernel centers are rows of `center_items`, and `functions` are the numbers of these rows
    has_row_numbers = not isinstance(view.basis, str)  # else a way to choose, such as "random"
    center_items = items
    if has_row_numbers:
        functions = choose_basis(items, view.n_basis, view.basis, rng)
    elif view.n_basis is not None:
        basis_positions = choose_basis(items[rows], view.n_basis, view.basis, rng)
        functions = rows[basis_positions]
    else:
        functions = candidates.functions
        if has_points:
            center_items = take_columns(candidates.points, columns)
    centers = None
    if not kernel.is_precomputed:  # its values are columns of X
        centers = center_items[functions]
    return KernelFeatures(kernel, columns, len(functions), functions, centers)


def function_values(functions: Dictionary, X: MatrixLike, rows: Indices) -> Matrix:
    """The functions at some rows of X: a float64 array, or a sparse matrix stored by columns."""
    if not isinstance(functions, ColumnFeatures):
        advice = "choose from fewer functions, for example dictionary=2000"
        check_matrix_fits(len(rows), functions.n_features, "the values of a dictionary", advice)
    if len(rows) < X.shape[0]:
        X = X[rows]
    values = functions.transform(X)
    if sp.issparse(values):
        return values.tocsc().astype(np.float64, copy=False)
    return np.asarray(values, dtype=np.float64)


def deal_functions(
    functions: Indices, is_scored: Mask, n_views: int, rng: np.random.RandomState
) -> list[Indices]:
    """Deal functions to views at random, scored and unscored items in equal shares."""
    if len(functions) < n_views:
        raise ValueError(
            f"views={n_views}, but the dictionary has {len(functions)} functions only."
        )
    shuffled_scored = rng.permutation(functions[is_scored])
    shuffled_unscored = rng.permutation(functions[~is_scored])
    shuffled = np.concatenate([shuffled_scored, shuffled_unscored])
    return [np.sort(shuffled[view::n_views]) for view in range(n_views)]  # in turn, like cards


def choose_search(search: str, dictionaries: list[Dictionary]) -> str:
    """Search of several views: "pairs", "all" or "shared"; "single" for one view."""
    check_option("search", search, ("auto", "pairs", "all", "shared"))
    n_views = len(dictionaries)
    if n_views == 1:
        return "single"
    # numbers of the functions of each view: of items for kernel functions, or of columns
    functions_of_views = [dictionary.indices for dictionary in dictionaries]
    have_same_functions = all(
        np.array_equal(functions, functions_of_views[0]) for functions in functions_of_views
    )
    if search == "auto":
        search = _default_search(n_views, have_same_functions)
    if search == "pairs" and n_views != 2:
        raise ValueError(
            f"search='pairs' needs two views, but there are {n_views}; use 'shared' (one item for "
            "all views) or 'all' (every combination of functions)."
        )
    if search == "all":
        _check_combinations([len(functions) for functions in functions_of_views])
    elif search == "pairs":
        n_first, n_second = map(len, functions_of_views)
        matrix = "a matrix of all pairs of functions"
        advice = "use search='shared', or a random part of the items (for example dictionary=2000)"
        check_matrix_fits(n_first, n_second, matrix, advice)
    elif search == "shared" and not have_same_functions:
        raise ValueError(
            f"{n_views} views that share an item need the same dictionary, but their dictionaries "
            "differ (because of random views, n_basis of a View, or columns as functions); use "
            "search='all', or a list of View with one dictionary."
        )
    return search


def _default_search(n_views: int, have_same_functions: bool) -> str:
    # the most thorough search that is not too slow: "pairs" tries all pairs of functions, "all" all
    # combinations of more, and "shared" the same item in all views
    if n_views == 2:
        return "pairs"
    if have_same_functions:
        return "shared"
    return "all"


def _check_combinations(n_functions: list[int]) -> None:
    """Raise a ValueError if there are too many combinations of functions."""
    n_combinations = math.prod(n_functions)
    if n_combinations > MAX_COMBINATIONS:
        sizes = " × ".join(map(str, n_functions))
        raise ValueError(
            f"search='all' tries every combination of {sizes} functions, "
            f"more than the limit of {MAX_COMBINATIONS:,}; use a smaller dictionary (for example "
            "dictionary=100), or a list of View with one dictionary and search='shared'."
        )
