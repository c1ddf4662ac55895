"""Checks for common mistakes with groups: wrong keyword, groups left in X, missing groups."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from rankwise.arrays import Labels, Matrix, MatrixLike
from rankwise.errors import UngroupedRowsWarning, warn_user
from rankwise.frames import as_array, check_same_index, frame_columns, narwhals_frame
from rankwise.graphs import PreferenceGraph
from rankwise.graphs.supervision import (
    Preferences,
    Relevance,
    TargetLike,
    TrainingTarget,
    unpack_target,
)
from rankwise.groups import Groups, encode_groups

if TYPE_CHECKING:
    from rankwise.frames import Column

GROUP_COLUMNS = ("qid", "query_id", "group", "group_id", "session_id")
OTHER_KEYWORDS = ("qid", "group", "group_id")  # of XGBoost, LightGBM and CatBoost
MIN_GROUPS = 3  # with fewer, a feature is easily constant in each group by chance
MIN_CODED_GROUPS = 6  # from here on, integers in the order of the groups are taken for labels
MAX_ROWS_OF_A_LIST = 200  # in longer lists with few distinct y the groups were usually forgotten
MIN_DISTINCT_SCORES = 7
LONG_LIST = 3  # times the longest group of the training data

Fit = TypeVar("Fit", bound=Callable[..., Any])

_has_warned_of_one_list = False


def refuse_other_keywords(fit: Fit) -> Fit:
    """Decorate `fit`: the TypeError for ``qid=``, ``group=`` or ``group_id=`` names ``groups=``.

    The signature of `fit` is unchanged, because scikit-learn's metadata routing reads it.
    """

    @functools.wraps(fit)
    def fit_with_groups(self: object, *args: object, **options: object) -> object:
        for name in OTHER_KEYWORDS:
            if name in options:
                raise TypeError(
                    f"{type(self).__name__}.{fit.__name__} got {name}=; rankwise calls it groups=, "
                    "with the group label of each row."
                )
        return fit(self, *args, **options)

    return cast("Fit", fit_with_groups)


def check_groups(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: TargetLike,
    groups: ArrayLike | None,
    target: TrainingTarget,
) -> MatrixLike:
    """Warn about groups that are missing or left in X, in `fit` of a ranker.

    Parameters
    ----------
    estimator : estimator
        Gets `max_group_size_`, the number of rows of the longest group (None for one list or a
        graph), and `group_columns_`, the names of the columns that are dropped.
    X, y, groups
        As passed to `fit`. A `Relevance` was checked before.
    target : Relevance or Preferences
        What `read_y` returned for y and groups.

    Returns
    -------
    array-like, sparse matrix or data frame
        X, a data frame without the columns that contain the groups.
    """
    estimator.max_group_size_ = None
    estimator.group_columns_ = []
    was_checked_before = y is target
    if was_checked_before or not isinstance(target, Relevance):
        return X
    if target.groups.n_groups == 1:  # one list; the groups may have been forgotten
        _, labels, _ = unpack_target(y, groups)
        if labels is None:
            warn_of_group_names(X, y)
            _warn_of_one_list(y)
        return X
    estimator.max_group_size_ = int(target.groups.sizes.max())
    if not _has_features(estimator) or not _has_enough_groups(target.groups):
        return X
    columns = frame_columns(X)
    if columns is None:
        _warn_of_array_columns(_array_columns(X, target.groups))
        return X
    names = group_columns(columns, target.groups)
    has_other_columns = len(names) < len(columns)
    if not names or not has_other_columns:
        return X
    estimator.group_columns_ = names
    warn_user(
        f"X contains the groups, in {', '.join(map(repr, names))}, which is dropped "
        "because it is not a feature. Pass X without it."
    )
    return without_columns(X, names)


def without_group_columns(estimator: BaseEstimator, X: MatrixLike) -> MatrixLike:
    """A data frame without the columns that `fit` of the estimator dropped; other X unchanged."""
    return without_columns(X, getattr(estimator, "group_columns_", []))


def read_items_in_groups(
    estimator: BaseEstimator, X: MatrixLike, groups: ArrayLike | None
) -> MatrixLike:
    """Items to predict, without group columns; an error if groups are in another order."""
    check_same_index(X=X, groups=groups)
    return without_group_columns(estimator, X)


def without_columns(X: MatrixLike, names: list[str]) -> MatrixLike:
    """A data frame without these columns, which may be missing; other X unchanged."""
    if not names:
        return X
    frame = narwhals_frame(X)
    if frame is None:
        return X
    return frame.drop([name for name in frame.columns if str(name) in names]).to_native()


def warn_of_group_names(
    X: MatrixLike, y: TargetLike | None = None, groups: ArrayLike | None = None
) -> None:
    """Warn about a data frame with a column such as "qid" if there are no groups.

    A column with one value, or with a different value in each row, does not group the rows.
    """
    if groups is not None or _is_checked_or_graph(y):
        return
    _, groups_of_target, _ = unpack_target(y, None)
    if groups_of_target is not None:
        return
    columns = frame_columns(X) or {}
    for name, column in columns.items():
        if name.lower() not in GROUP_COLUMNS:
            continue
        column_groups = _encode_labels(as_array(column))
        if column_groups is not None and 1 < column_groups.n_groups < len(column_groups.codes):
            warn_user(
                f"X has a column {name!r}, but there are no groups, so that all rows are compared "
                f'with each other. If the column contains the groups, pass groups=X.pop("{name}"); '
                "if it is a feature, give it another name."
            )


def warn_of_long_list(estimator: object, n_rows: int) -> None:
    """Warn about rows without groups if they are far more than the rows of a training group."""
    max_group_size = getattr(estimator, "max_group_size_", None)
    if max_group_size is not None and n_rows > LONG_LIST * max_group_size:
        warn_user(
            f"{n_rows} rows without groups are ranked as one list, but the longest group in "
            f"training had {max_group_size} rows; pass groups=. If the rows are one list, pass "
            "groups=[0] * len(X)."
        )


def group_columns(columns: Mapping[str, Column], groups: Groups) -> list[str]:
    """Names of the columns of a data frame that contain the groups."""
    return [
        name
        for name, column in columns.items()
        if _contains_groups(as_array(column), groups, is_named=name.lower() in GROUP_COLUMNS)
    ]


def _is_checked_or_graph(y: object) -> bool:
    return isinstance(y, (Relevance, Preferences, PreferenceGraph))


def _has_features(model: object) -> bool:
    """Whether the columns of X are features, not kernel values or objects."""
    kernel = getattr(model, "kernel", "linear")
    return isinstance(kernel, str) and kernel not in ("precomputed", "ngram")


def _warn_of_array_columns(numbers: list[int]) -> None:
    for number in numbers:
        warn_user(
            f"column {number} of X contains the groups: it is constant in each group and differs "
            "between all groups. Leave it out of the features."
        )


def _array_columns(X: MatrixLike, groups: Groups) -> list[int]:
    """Numbers of the columns of an array or a sparse matrix that contain the groups."""
    if sp.issparse(X):
        return _sparse_columns(X, groups)
    if not isinstance(X, (np.ndarray, list, tuple)):
        return []
    try:
        array = np.asarray(X)
    except ValueError:  # lists of different lengths
        return []
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        return []
    # most features vary in the largest group: only the others are compared with the groups
    rows = np.flatnonzero(groups.codes == np.argmax(groups.sizes))
    is_constant = (array[rows] == array[rows[0]]).all(axis=0)
    candidates = np.flatnonzero(is_constant).tolist()
    return [j for j in candidates if _contains_groups(array[:, j], groups, is_named=False)]


def _sparse_columns(X: Matrix, groups: Groups) -> list[int]:
    """Numbers of the columns of a sparse matrix that contain the groups."""
    # columns that contain the groups: at most one group has the label 0, that is no entry
    n_rows, n_columns = X.shape
    n_entries = np.bincount(X.tocoo().col, minlength=n_columns)
    candidates = np.flatnonzero(n_entries >= n_rows - groups.sizes.max()).tolist()
    X = X.tocsc()
    numbers = []
    for j in candidates:
        column = X[:, [j]].toarray()[:, 0]
        if _contains_groups(column, groups, is_named=False):
            numbers.append(j)
    return numbers


def _has_enough_groups(groups: Groups) -> bool:
    """Whether enough groups have two rows to compare a column with the groups."""
    return int((groups.sizes > 1).sum()) >= MIN_GROUPS


def _contains_groups(values: Labels, groups: Groups, *, is_named: bool) -> bool:
    """Whether a column is a relabeling of the groups, and not a feature of queries.

    A feature of queries is constant in each group as well, and may differ between all groups.
    Therefore the column must have the name of a group column, or contain the labels themselves, or
    for at least six groups text, consecutive integers, or integers that increase from group to
    group, in the order of the labels or of the rows.
    """
    if not _has_enough_groups(groups) or values.ndim != 1 or not _may_be_labels(values):
        return False
    column = _encode_labels(values)
    if column is None or not _are_same_groups(column, groups):
        return False
    if is_named or _are_equal(column.labels, groups.labels):
        return True
    if groups.n_groups < MIN_CODED_GROUPS:
        return False
    are_numbers = values.dtype.kind in "biuf"
    if not are_numbers:
        return True
    # integers are codes of the groups if they are consecutive, or rise in the order of the labels
    # or of the rows; others may be a feature of queries
    first_rows = groups.order[groups.starts]
    values_by_label = values[first_rows]
    values_by_row = values[np.sort(first_rows)]
    are_consecutive = float(np.ptp(values)) == groups.n_groups - 1
    return are_consecutive or _is_increasing(values_by_label) or _is_increasing(values_by_row)


def _is_increasing(numbers: Labels) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _may_be_labels(values: Labels) -> bool:
    """Whether values are text, or numbers that are all integers."""
    if values.dtype.kind != "f":
        return True
    return bool(np.isfinite(values).all() and (values == np.rint(values)).all())


def _are_same_groups(column: Groups, groups: Groups) -> bool:
    """Whether the rows form the same groups, with other labels."""
    if column.n_groups != groups.n_groups:
        return False
    # the code of the column in one row of each group, which all rows of the group must have
    code_of_group = np.empty(groups.n_groups, dtype=np.intp)
    code_of_group[groups.codes] = column.codes
    return np.array_equal(code_of_group[groups.codes], column.codes)


def _are_equal(values: Labels, labels: Labels) -> bool:
    """Whether two sets of labels are the same, numbers as numbers and all else as text."""
    if values.dtype.kind in "biuf" and labels.dtype.kind in "biuf":
        return bool(np.array_equal(np.sort(values), np.sort(labels)))
    return {str(value) for value in values} == {str(label) for label in labels}


def _encode_labels(values: Labels) -> Groups | None:
    """The values as codes; None if some are missing or cannot be compared."""
    try:
        return encode_groups(values, len(values))
    except (TypeError, ValueError):
        return None


def _warn_of_one_list(y: object) -> None:
    """Warn once per process about many rows without groups that have few distinct scores.

    Python's registry of issued warnings is not sufficient: scikit-learn enters
    `warnings.catch_warnings` for each fold, which clears the registry.
    """
    global _has_warned_of_one_list
    if _has_warned_of_one_list:
        return
    scores = np.asarray(as_array(y))
    if scores.ndim != 1 or len(scores) <= MAX_ROWS_OF_A_LIST or scores.dtype.kind not in "biuf":
        return
    n_distinct = len(np.unique(scores[~np.isnan(scores)]))
    if 1 < n_distinct < MIN_DISTINCT_SCORES:
        warn_user(
            "y has few distinct values and there are no groups, so that all rows are compared with "
            "each other; pass groups= if the rows belong to several lists. cross_val_score and "
            "GridSearchCV do not pass groups to fit: give them make_target(y, groups) as y. If the "
            "rows are one list, pass groups=[0] * len(X).",
            UngroupedRowsWarning,
        )
        _has_warned_of_one_list = True
