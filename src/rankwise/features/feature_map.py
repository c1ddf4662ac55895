"""Features: how to solve, what the solver sees, and the way back to scores of new items."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_random_state

from rankwise.arrays import Array, Indices
from rankwise.features.kernel import Kernel, KernelParameters, center_kernel
from rankwise.frames import as_array
from rankwise.inputs import check_option
from rankwise.machine import available_bytes, check_matrix_fits, idle_cores
from rankwise.rows import first_equal_rows, row_products

BASES = ("random", "kmeans++")
SOLVERS = ("auto", "primal", "dual", "iterative")
MATRICES = 2.5  # kernel matrices in memory at a time
SPARSE_DIRECT_LIMIT = 5000  # sparse X with more rows and columns than this is solved iteratively


class FeatureMap(NamedTuple):
    """From items to features R with ``f = R w``, and from w to coefficients that score new items.

    ==================  ==========================  ======================  ==================
    map                 features R of the rows      coefficients            set
    ==================  ==========================  ======================  ==================
    columns             the columns as they are     w                       neither
    kernel values       ``K_mb``                    w                       items (or basis)
    orthogonal basis    ``K_mb U``, U Uᵀ = K_bb⁺    ``U w``                 items and root
    ==================  ==========================  ======================  ==================

    The first and the last have ``‖f‖² = ‖w‖²``: [RankRLS09] equations 28, 41 and 42. The second
    gives the functions that a pursuit chooses from.

    Attributes
    ----------
    kernel : Kernel
        The kernel; linear for columns as they are.
    columns : ndarray of int or None
        Columns of X that the map sees; None for all.
    n_features : int
        Number of columns of R.
    basis : ndarray of int or None
        Numbers of the items b: rows of the training data, or of given points. None if they have
        none.
    items : array, sparse matrix or None
        Those columns of the items b; None for columns as they are and for precomputed kernels.
    root : ndarray of shape (n_items, n_features) or None
        U.
    """

    kernel: Kernel
    columns: Indices | None
    n_features: int
    basis: Indices | None = None
    items: Any = None
    root: Array | None = None

    @property
    def is_columns(self) -> bool:
        """Whether the features are columns of X as they are."""
        return self.items is None and not self.kernel.is_precomputed

    @property
    def indices(self) -> Indices:
        """Numbers of the columns or items that the coefficients belong to."""
        numbers = self.columns if self.is_columns else self.basis
        return np.arange(self.n_features) if numbers is None else numbers

    def features(self, X: Any) -> Any:
        """R of the rows of X: columns are as X is, anything else is dense.

        Kernel values are computed for a chunk of rows at a time.
        """
        seen = self._seen(X)
        if self.is_columns:
            return seen
        if self.root is None:
            return self.kernel.matrix(seen, self.items)
        return self.kernel.product(seen, self.items, self.root)

    def coefficients(self, w: Array) -> Array:
        """From weights of the features to weights of the columns or items."""
        return w if self.root is None else self.root @ w

    def scores(self, X: Any, coef: Array) -> NDArray[Any]:
        """Scores of the rows of X for `coefficients` of shape (n,) or (n, k)."""
        seen = self._seen(X)
        if self.is_columns:
            return row_products(seen.astype(np.float64, copy=False), coef)
        return self.kernel.product(seen, self.items, coef)

    def take(self, chosen: Indices) -> FeatureMap:
        """The map of some of its columns or kernel values."""
        numbers = self.indices[chosen]
        if self.is_columns:
            return self._replace(columns=numbers, n_features=len(chosen))
        items = None if self.items is None else self.items[chosen]
        return self._replace(basis=numbers, items=items, n_features=len(chosen))

    def _seen(self, X: Any) -> Any:
        """What the kernel takes: the columns of X, or precomputed values to the items."""
        X = take_columns(X, self.columns)
        return take_columns(X, self.basis) if self.kernel.is_precomputed else X


class FeatureRows:
    """``[R_1 … R_M]`` of some rows of X (all if None), made a block at a time when it is indexed.

    Offers what `PreferenceGraph.gram` and `PreferenceGraph.system` ask of features, so Gram
    matrices over any number of rows need the memory of one block.
    """

    def __init__(self, maps: Sequence[FeatureMap], X: Any, rows: Indices | None = None) -> None:
        self._maps = maps
        self._X = X
        self._rows = rows
        n_rows = X.shape[0] if rows is None else len(rows)
        self.shape = (n_rows, sum(one.n_features for one in maps))

    def __getitem__(self, part: slice | Indices) -> Array:
        """Dense features of these of the rows."""
        X = self._X[part if self._rows is None else self._rows[part]]
        blocks = [one.features(X) for one in self._maps]
        dense = [block.toarray() if sp.issparse(block) else block for block in blocks]
        whole = dense[0] if len(dense) == 1 else np.hstack(dense)
        return np.asarray(whole, dtype=np.float64)


def read_points(name: str, points: Any, n_features: int) -> Any:
    """Points with the features of X, one row each, as float64; None for anything but a matrix.

    Points need not be training items, may be more than those, and may have duplicates, which
    `basis_root` merges.
    """
    points = as_array(points, name)
    if np.ndim(points) != 2:
        return None
    points = check_array(points, accept_sparse="csr", dtype=np.float64, input_name=name, copy=True)
    if points.shape[1] != n_features:
        raise ValueError(
            f"{name} has points with {points.shape[1]} features but X has {n_features}; give each "
            "point the features of X."
        )
    return points


def choose_basis(
    X: Any, n_basis: int | None, basis: str | ArrayLike, random_state: Any
) -> NDArray[np.intp]:
    """Row numbers of the basis items.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_items, n_features)
        The training items.
    n_basis : int or None
        How many; None for given row numbers.
    basis : {"random", "kmeans++"} or array of int
        A way of choosing, or row numbers. [RankRLS09] section 3.5 finds random choice no worse than
        more careful ones.
    random_state : int, RandomState or None
        Seed.
    """
    n_items = X.shape[0]
    if not isinstance(basis, str):
        rows = np.asarray(as_array(basis, "basis"))
        if rows.ndim != 1 or not len(rows) or rows.dtype.kind not in "iu":
            raise ValueError(
                f"basis has dtype {rows.dtype} and shape {rows.shape}; expected a flat array of "
                "row numbers, or an array of points with the features of X where points are taken."
            )
        if n_basis is not None and n_basis != len(rows):
            raise ValueError(f"n_basis={n_basis} but basis names {len(rows)} rows; drop n_basis.")
        return check_numbers("basis", "row", rows, n_items)
    check_option("basis", basis, BASES)
    if not isinstance(n_basis, numbers.Integral) or not 1 <= n_basis <= n_items:
        raise ValueError(
            f"n_basis={n_basis!r}; expected a whole number from 1 to {n_items}, the number of "
            "training items."
        )
    rng = check_random_state(random_state)
    if basis == "random":
        return np.sort(rng.choice(n_items, size=n_basis, replace=False)).astype(np.intp)
    from sklearn.cluster import kmeans_plusplus

    if not sp.issparse(X):
        X = X - X.mean(axis=0, dtype=np.float64)  # distances far from zero would cancel
    _, rows = kmeans_plusplus(X, n_basis, random_state=rng)
    return np.unique(rows).astype(np.intp)


def check_numbers(name: str, what: str, numbers: NDArray[Any], n: int) -> NDArray[np.intp]:
    """Numbers of rows or columns of X, of which there are n, each named once."""
    outside = numbers[(numbers < 0) | (numbers >= n)]
    if len(outside):
        raise ValueError(f"{name} names {what} {outside[0]}; the {n} {what}s of X count from 0.")
    if len(np.unique(numbers)) != len(numbers):
        raise ValueError(f"{name} names a {what} twice; name each once.")
    return numbers.astype(np.intp)


def basis_root(K_bb: Array) -> Array:
    """U with ``U Uᵀ = K_bb⁺``, rank-revealing: duplicates and near duplicates are merged.

    With R = K_mb U the primal solution on R is that of sparse RankRLS, [RankRLS09] equations 41
    and 42, and U w are the coefficients of the basis items.
    """
    with idle_cores(len(K_bb) ** 3):
        values, vectors = scipy.linalg.eigh(K_bb)
    keep = values > values[-1] * len(values) * np.finfo(float).eps
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]))


def basis_map(
    kernel: Kernel,
    X: Any,
    n_basis: int | None,
    basis: str | ArrayLike,
    random_state: Any,
    columns: Indices | None = None,
) -> FeatureMap:
    """The map of a kernel on basis items that are chosen from the rows of X, or on given points."""
    rows, points = None, read_points("basis", basis, X.shape[1])
    if points is None:
        seen = take_columns(X, columns)
        if kernel.is_precomputed and (sp.issparse(X) or seen.shape[0] != seen.shape[1]):
            raise ValueError(
                f"kernel='precomputed' sees {seen.shape[1]} columns of {seen.shape[0]} items; "
                "expected the dense square matrix of kernel values between all training items; a "
                "View selects it with columns."
            )
        rows = choose_basis(seen, n_basis, basis, random_state)
        items = seen[rows]
    elif kernel.is_precomputed:
        raise ValueError(
            "basis gives points, but kernel='precomputed' has no kernel values to them; give row "
            "numbers of the kernel matrix."
        )
    elif n_basis is not None and n_basis != points.shape[0]:
        raise ValueError(f"n_basis={n_basis} but basis has {points.shape[0]} points; drop n_basis.")
    else:
        items = take_columns(points, columns)
    size = items.shape[0]
    check_matrix_fits(size, size, "the kernel matrix of a basis", "use a smaller n_basis")
    root = basis_root(kernel.matrix(items[:, rows] if kernel.is_precomputed else items))
    if not root.shape[1]:  # every kernel value is zero, and so is every score
        root = np.zeros((items.shape[0], 1))
    kept = None if kernel.is_precomputed else items
    return FeatureMap(kernel, columns, root.shape[1], rows, kept, root)


def take_columns(X: Any, columns: Indices | None) -> Any:
    """These columns of a dense or sparse matrix; X itself, not a copy, for None or all of them."""
    if columns is None or np.array_equal(columns, np.arange(X.shape[1])):
        return X
    return X[:, columns]


class Features(NamedTuple):
    """What the solver sees of a `FeatureMap`.

    Attributes
    ----------
    method : {"primal", "dual", "iterative"}
        How to solve.
    matrix : array, sparse matrix or FeatureRows
        Features R of the items for "primal" and "iterative", the kernel matrix for "dual". Features
        that a basis gives are made when they are read; see `stored`.
    map : FeatureMap
        What scores new items by the coefficients.
    back : callable or None
        Takes solutions to weights of columns or kernel items; None if they are that already.
    is_definite : bool
        False if negative eigenvalues of the kernel had to be left out.
    columns : array, sparse matrix or None
        The features of a linear model, whose scales tell what an alpha does to each.
    """

    method: str
    matrix: Any
    map: FeatureMap
    back: Callable[[Array], Array] | None = None
    is_definite: bool = True
    columns: Any = None

    def coefficients(self, solution: Array) -> Array:
        """From solutions of shape (n, k) to coefficients of columns or kernel items."""
        return solution if self.back is None else self.back(solution)

    def stored(self) -> Features:
        """The same with all features in memory, for those who read them more than once."""
        if not isinstance(self.matrix, FeatureRows):
            return self
        check_matrix_fits(*self.matrix.shape, "a kernel matrix", "use a smaller n_basis")
        return self._replace(matrix=self.matrix[:])


def make_features(
    kernel: Kernel,
    X: Any,
    solver: str,
    *,
    n_basis: int | None = None,
    basis: str | ArrayLike = "random",
    random_state: Any = None,
    shift_invariant: bool = False,
    explicit: bool = False,
) -> Features:
    """Choose how to solve.

    ===================================  ============================================
    data                                 method and matrix
    ===================================  ============================================
    linear, at most as many features     "primal" on X
    as items
    linear, more features than items     "dual" on the kernel matrix
    linear, sparse and large both ways,  "iterative" on X
    or no room for the matrix
    kernel                               "dual" on the kernel matrix
    kernel with a basis                  "primal" on the features of the basis
    ===================================  ============================================

    `shift_invariant` says that adding a constant to all scores does not change the loss; dense
    features of a dual linear model are then centered, which keeps digits. `explicit` asks for
    features in the place of a kernel matrix: [RankRLS09] sections 4.2 and 4.4.
    """
    check_option("solver", solver, SOLVERS)
    n_rows, n_columns = X.shape
    if kernel.is_precomputed and n_rows != n_columns:
        raise ValueError(
            f"X has shape {X.shape}; kernel='precomputed' needs the square matrix of kernel "
            "values between all training items."
        )
    if n_basis is not None or not isinstance(basis, str):
        # R = K_mb K_bb^(−1/2), a block of rows at a time: [RankRLS09] equations 41 and 42
        if kernel.is_linear:
            raise ValueError(
                "n_basis and basis are for kernel models; a linear model already has just one "
                "weight per feature. Drop them or choose another kernel."
            )
        if solver not in ("auto", "primal"):
            raise ValueError(f"a basis is solved by solver='primal', not {solver!r}.")
        of_basis = basis_map(kernel, X, n_basis, basis, random_state)
        return Features("primal", FeatureRows([of_basis], X), of_basis, of_basis.coefficients)
    if not kernel.is_linear:
        if solver not in ("auto", "dual"):
            raise ValueError(
                f"solver={solver!r} needs explicit features; with kernel={kernel.function!r} use "
                "solver='auto', or n_basis for a primal solution on basis items."
            )
        _check_kernel_fits(n_rows)
        items = None if kernel.is_precomputed else X.copy()  # the caller may change X
        K, of_items = kernel.matrix(X), FeatureMap(kernel, None, n_rows, None, items)
        return _empirical_map(K, of_items) if explicit else Features("dual", K, of_items)
    method, of_columns = solver, FeatureMap(kernel, None, n_columns)
    if solver == "auto":
        free, smaller = available_bytes(), min(X.shape)
        is_large = free is not None and 8 * smaller**2 > free
        is_large |= sp.issparse(X) and smaller > SPARSE_DIRECT_LIMIT
        direct = "primal" if n_columns <= n_rows else "dual"
        method = "iterative" if is_large else direct
    if method == "dual" and not explicit:
        _check_kernel_fits(n_rows)
        R = X
        if shift_invariant and not sp.issparse(X):
            R = X - X.mean(axis=0, dtype=np.float64)
        K = kernel.matrix(R)
        return Features("dual", K, of_columns, lambda a: np.asarray(R.T @ a), columns=R)
    if method != "iterative":
        method, advice = "primal", "use solver='iterative' for so many features"
        check_matrix_fits(n_columns, n_columns, "a Gram matrix", advice)
    return Features(method, X, of_columns, columns=X)


def _empirical_map(K: Array, of_items: FeatureMap) -> Features:
    """Features R of the items with ``K = R Rᵀ`` instead of K: [RankRLS09] section 4.2.

    A pivoted Cholesky factorization, which also finds the rank; the dual coefficients are on the
    pivots alone. A matrix that is not positive semidefinite goes by its eigenvectors instead.
    """
    K = center_kernel(K)
    first = first_equal_rows(K)
    probe = np.random.default_rng(0).standard_normal(len(K))
    exact, diagonal = K @ probe, np.diagonal(K).copy()
    columns_first = K if K.flags.f_contiguous else K.T
    with idle_cores(len(K) ** 3):
        factor, pivots, rank, _ = scipy.linalg.lapack.dpstrf(columns_first, lower=1, overwrite_a=1)
    order = pivots - 1
    R = np.zeros((len(K), rank))
    for row, item in enumerate(order):
        width = min(row + 1, rank)
        R[item, :width] = factor[row, :width]
    R = R if first is None else R[first]
    is_definite = bool(np.linalg.norm(R @ (R.T @ probe) - exact) <= 1e-6 * np.linalg.norm(exact))
    root = None
    if not is_definite:
        for row in range(1, len(factor)):  # the upper triangle was left alone
            factor[row, :row] = factor[:row, row]
        factor[np.diag_indices(len(factor))] = diagonal
        root = basis_root(factor)
        R = factor @ root

    def dual_coefficients(w: Array) -> Array:
        if root is not None:
            a = root @ w
        else:
            a = np.zeros((len(R), *w.shape[1:]))
            chosen = order[:rank]
            a[chosen] = scipy.linalg.solve_triangular(R[chosen], w, lower=True, trans="T")
        return np.asarray(a - a.mean(axis=0))  # a centered kernel does not see the mean

    return Features("primal", R, of_items, dual_coefficients, is_definite)


def _check_kernel_fits(n_items: int) -> None:
    advice = "pass n_basis (for example n_basis=1000) to train on a basis of items"
    check_matrix_fits(n_items, n_items, "a kernel matrix", advice, n_matrices=MATRICES)


@dataclass(eq=False)
class View(KernelParameters):
    """One way of looking at the items, for the learners that take several.

    Views differ in the columns that they see, in the kernel, or in the basis items alone: a basis
    of its own makes a hypothesis space of its own ([CoRankRLS10] section 3.4). A view is a bundle
    of parameters; it can be cloned and compared like an estimator, but has no `fit`.

    Parameters
    ----------
    columns : array-like of int, bool or str, slice, or None
        Columns of X: numbers, a mask, a slice, or names if X is a data frame. None takes all.
    kernel : str or callable
        As in `RankRLS`. With "precomputed" the columns are kernel values to the training items.
    gamma, degree, coef0
        Parameters of the named kernels, as in scikit-learn.
    kernel_params : dict, optional
        Keyword arguments of a callable kernel.
    n_basis : int, optional
        Number of basis items. None leaves it to the learner; a linear view then uses its columns
        as they are.
    basis : {"random", "kmeans++"}, array of int, or array of shape (n_basis, n_features)
        How the basis is chosen, the row numbers of the basis items, or points with all columns.

    Examples
    --------
    >>> from rankwise import View
    >>> View(slice(0, 3), kernel="rbf", n_basis=20).columns
    slice(0, 3, None)
    """

    columns: Any = None
    _: KW_ONLY
    n_basis: int | None = None
    basis: str | ArrayLike = "random"


def check_views(views: Any) -> list[View]:
    """A list of views that the user gave."""
    is_list = isinstance(views, (list, tuple))
    if not is_list or not views or not all(isinstance(view, View) for view in views):
        raise ValueError(
            f"views={views!r}; expected a number of random views, or a list with at least one "
            "View, such as rankwise.View(columns, kernel=...)."
        )
    return list(views)


def view_columns(view: View, n_features: int, names: Sequence[str] | None) -> Indices | None:
    """Numbers of the columns of a view; None for all."""
    columns = view.columns
    if columns is None:
        return None
    if not isinstance(columns, slice):
        columns = np.atleast_1d(np.asarray(columns))
        if columns.dtype.kind in "UO" or not len(columns):
            position = {name: k for k, name in enumerate(() if names is None else names)}
            unknown = [name for name in columns if name not in position]
            if unknown:
                raise ValueError(f"a view names the column '{unknown[0]}', which X does not have.")
            columns = np.array([position[name] for name in columns], dtype=np.intp)
    try:
        numbers = np.arange(n_features)[columns]
    except IndexError as error:
        raise ValueError(f"columns={view.columns!r} of a view: {error}.") from None
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError(
            f"a view has no columns (columns={columns!r}); give at least one, or None for all."
        )
    return check_numbers("a view", "column", numbers, n_features)
