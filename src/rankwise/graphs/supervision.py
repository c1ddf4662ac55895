"""The training target: relevance of rows in groups, or a preference graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices, take_weights
from rankwise.frames import as_array, check_same_index, frame_columns
from rankwise.graphs.base import PreferenceGraph
from rankwise.groups import Groups, encode_groups
from rankwise.validation import (
    check_float_array,
    check_sample_weight,
    check_weights,
    check_y,
    refuse_column_name,
)

#: Largest weight of an item relative to the total weight of the other items of its group.
MAX_WEIGHT_RATIO = 1e8


class GroupedTarget:
    """Scores, groups and weights of items, as `make_target` returns them.

    A slice contains the groups and weights of its items. NumPy and scikit-learn convert the target
    to the plain scores, so scorers such as ``"r2"`` accept it.

    Parameters
    ----------
    rows : structured ndarray of shape (n_items,)
        With the fields "score" and "group", and "weight" if there are weights.
    """

    def __init__(self, rows: NDArray[Any]) -> None:
        self.rows = rows

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the scores."""
        return tuple(self.rows["score"].shape)

    @property
    def ndim(self) -> int:
        """Number of dimensions of the scores."""
        return len(self.shape)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, key: Any) -> Any:
        """The values of a field, as in ``target["group"]``, or the target of the selected items."""
        if isinstance(key, str):
            return self.rows[key]
        rows = self.rows[key]
        if np.ndim(rows) == 0:
            return rows["score"]
        return GroupedTarget(rows)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.rows["score"], dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        n_groups = len(np.unique(self.rows["group"]))
        return f"GroupedTarget({len(self)} items, {n_groups} groups)"


def make_target(
    y: ArrayLike, groups: ArrayLike, sample_weight: ArrayLike | None = None
) -> GroupedTarget:
    """Join scores, group labels and weights in one target that scikit-learn can slice.

    Use it in scikit-learn's `cross_val_score`, `GridSearchCV` and Pipelines to pass groups to the
    ranker.

    Without metadata routing (scikit-learn's default) ``GridSearchCV(...).fit(X, y, groups=g)``
    passes the groups to the splitter only, and the ranker would compare all rows with each other. A
    target that contains the groups passes them to the ranker, too.

    Parameters
    ----------
    y : array-like of shape (n_items,) or (n_items, n_outputs)
        Scores; NaN for unscored items, which only the semi-supervised learners accept.
    groups : array-like of shape (n_items,)
        Group labels. Integers and strings are kept; other labels are replaced by codes.
    sample_weight : array-like of shape (n_items,), default=None
        Weights of the items; `fit`, `score` and the metrics use them like a `sample_weight`.

    Returns
    -------
    GroupedTarget
        Pass it as `y` to any estimator or metric of rankwise, with ``groups=None``. It has the
        fields ``target["score"]``, ``target["group"]``, and ``target["weight"]`` if there are
        weights. `numpy.asarray` and the scorers of scikit-learn use the plain scores.

    Examples
    --------
    >>> target = make_target([3.0, 1.0, 2.0], ["a", "a", "b"])
    >>> target["group"]
    array(['a', 'a', 'b'], dtype='<U1')
    """
    check_same_index(y=y, groups=groups, sample_weight=sample_weight)
    scores = check_y(y, allow_nan=True)
    encoded = encode_groups(groups, len(scores))
    labels = encoded.labels
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        text_labels = labels.astype(str)
        is_lossless = (text_labels == labels).all()  # NumPy drops zero bytes at the end
        if is_lossless:
            labels = text_labels
    is_integer_or_text = labels.dtype.kind in "iuU"
    if is_integer_or_text:
        item_labels = labels[encoded.codes]
    else:  # a structured array cannot hold labels of any kind: replace them by codes
        item_labels = encoded.codes
    return _join_target(scores, item_labels, sample_weight)


def _join_target(
    scores: Array, item_labels: NDArray[Any], sample_weight: ArrayLike | None
) -> GroupedTarget:
    fields: list[Any] = [("score", np.float64, scores.shape[1:]), ("group", item_labels.dtype)]
    if sample_weight is not None:
        fields.append(("weight", np.float64))
    rows = np.empty(len(scores), dtype=fields)
    rows["score"] = scores
    rows["group"] = item_labels
    if sample_weight is not None:
        rows["weight"] = check_weights(sample_weight, len(scores))
    return GroupedTarget(rows)


@dataclass(frozen=True, eq=False)
class Relevance:
    """Relevance, groups and weights of the rows of X.

    Attributes
    ----------
    y : ndarray of shape (n_items,) or (n_items, n_outputs)
        Scores; larger is better.
    groups : Groups
        Groups of the items.
    weight : ndarray of shape (n_items,) or None
        Weights of the items; None if all are 1.
    nuisance : Nuisance or None
        Columns whose effects a learner removes.
    """

    y: Array
    groups: Groups
    weight: Array | None = None
    nuisance: Nuisance | None = None

    @property
    def item_labels(self) -> NDArray[Any]:
        """Label of the group of each item."""
        return self.groups.item_labels

    def take(self, rows: Indices) -> Relevance:
        """Relevance of the selected rows."""
        weight = take_weights(self.weight, rows)
        nuisance = self.nuisance
        if nuisance is not None:
            nuisance = nuisance.take(rows)
        return Relevance(self.y[rows], self.groups.take(rows), weight, nuisance)


@dataclass(frozen=True, eq=False)
class Preferences:
    """Preferences between the rows of X.

    Attributes
    ----------
    graph : PreferenceGraph
        The preferences; weights of the items are in the weights of the edges.
    nuisance : Nuisance or None
        Columns whose effects a learner removes.
    """

    graph: PreferenceGraph
    nuisance: Nuisance | None = None


TrainingTarget = Relevance | Preferences

TargetLike: TypeAlias = "ArrayLike | PreferenceGraph | TrainingTarget"
"""The parameter y: scores, a target of `make_target`, a graph, or a target that was read."""


class Nuisance(NamedTuple):
    """Columns whose effects a learner removes.

    Attributes
    ----------
    values : ndarray of shape (n_items, n_columns)
        Numbers.
    names : list of str
        Names of the columns.
    """

    values: Array
    names: list[str]

    def take(self, rows: Indices) -> Nuisance:
        """The columns for the selected rows."""
        return Nuisance(self.values[rows], self.names)


def read_nuisance(nuisance: Any) -> Nuisance:
    """Numeric columns unchanged; any other column as one indicator column for each value."""
    blocks = []
    names = []
    for name, column in _nuisance_columns(nuisance).items():
        values = as_array(column)
        if values.dtype.kind in "OUT":
            categories = encode_groups(values, len(values))
            indicators = np.eye(categories.n_groups)[categories.codes]
            blocks.append(indicators)
            names += [f"{name}={label}" for label in categories.labels]
            continue
        numbers = check_float_array(f"nuisance column {name}", values)
        is_finite = np.isfinite(numbers)
        if not is_finite.all():
            row = int(np.argmin(is_finite))
            raise ValueError(
                f"nuisance column {name} has a missing or infinite value, the first in row {row}; "
                "impute it or drop the row."
            )
        blocks.append(numbers[:, None])
        names.append(name)
    return Nuisance(np.hstack(blocks), names)


def _nuisance_columns(nuisance: Any) -> dict[str, Any]:
    columns = frame_columns(nuisance)
    if columns is not None:
        return columns
    if sp.issparse(nuisance):
        array = nuisance.toarray()
    else:
        array = np.asarray(as_array(nuisance))
    if array.ndim not in (1, 2) or 0 in array.shape:
        raise ValueError(f"nuisance has shape {array.shape}; expected a column or a table.")
    if array.ndim == 1:
        return {"nuisance": array}
    return {str(number): column for number, column in enumerate(array.T)}


def read_y(
    y: Any,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    nuisance: Any = None,
    *,
    X: Any = None,
    allow_nan: bool = False,
) -> TrainingTarget:
    """Read the training target; a target that was read before is returned unchanged.

    Parameters
    ----------
    y : array-like, GroupedTarget, PreferenceGraph or TrainingTarget
        Scores of the items, or preferences between them.
    groups, sample_weight : array-like of shape (n_items,), optional
        Group labels and weights of the items.
    nuisance : array-like or data frame, optional
        See `read_nuisance`.
    X : array-like, optional
        Items; their number and their index are compared with y.
    allow_nan : bool
        Whether a score may be NaN, "not scored".
    """
    if isinstance(y, (Relevance, Preferences)):
        return y
    refuse_column_name("y", y)
    refuse_column_name("groups", groups)
    check_same_index(X=X, y=y, groups=groups, sample_weight=sample_weight, nuisance=nuisance)
    nuisance_columns = None
    if nuisance is not None:
        nuisance_columns = read_nuisance(nuisance)
    if isinstance(y, PreferenceGraph):
        return Preferences(_weighted_graph(y, groups, sample_weight), nuisance_columns)
    if hasattr(y, "laplacian"):  # a graph written for another base class
        raise ValueError(
            f"y is a {type(y).__name__}, which has a laplacian but is not a PreferenceGraph; "
            "derive its class from rankwise.PreferenceGraph."
        )
    y, groups, sample_weight = unpack_target(y, groups, sample_weight)
    scores = check_y(y, allow_nan=allow_nan)
    _check_number_of_rows(X, len(scores))
    encoded = encode_groups(groups, len(scores))
    weight = None
    if sample_weight is not None:
        weight = check_sample_weight(sample_weight, len(scores))
        check_weight_ratio(weight, encoded)
    return Relevance(scores, encoded, weight, nuisance_columns)


def _check_number_of_rows(X: Any, n_scores: int) -> None:
    """Raise a ValueError unless X has one row per score; an X of unknown length is accepted."""
    if isinstance(X, (list, tuple)):
        n_rows = len(X)
    elif getattr(X, "shape", ()):
        n_rows = X.shape[0]
    else:
        return
    if n_rows != n_scores:
        raise ValueError(
            f"y has {n_scores} entries but X has {n_rows} rows; pass one score per row."
        )


def read_relevance(
    y: Any, groups: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> Relevance:
    """Read scores; a graph is refused."""
    target = read_y(y, groups, sample_weight)
    if isinstance(target, Preferences):
        raise ValueError(
            f"y is a {type(target.graph).__name__}, which is a PreferenceGraph already; expected "
            "the scores of the items."
        )
    return target


def _weighted_graph(
    graph: PreferenceGraph, groups: ArrayLike | None, sample_weight: ArrayLike | None
) -> PreferenceGraph:
    if groups is not None:
        raise ValueError(
            "y is a preference graph, which contains its groups, and groups was passed as well; "
            "build the graph with these groups instead."
        )
    if sample_weight is None:
        return graph
    return graph.weighted(check_sample_weight(sample_weight, graph.n_items))


def check_weight_ratio(weight: Array, groups: Groups) -> None:
    """Raise a ValueError if sums over a group would lose the digits of all items but one."""
    # one item must not outweigh all others of its group by a factor that costs all digits
    largest_weight = np.zeros(groups.n_groups)
    np.maximum.at(largest_weight, groups.codes, weight)
    weight_of_others = groups.sum(weight) - largest_weight
    n_weighted = np.bincount(groups.codes[weight > 0], minlength=groups.n_groups)
    is_dominated = (n_weighted > 1) & (weight_of_others < largest_weight / MAX_WEIGHT_RATIO)
    if is_dominated.any():
        group = int(np.argmax(is_dominated))
        raise ValueError(
            f"sample_weight of one item of group {groups.labels[group]} is "
            f"{largest_weight[group]:g}, and the sum of the others is "
            f"{max(weight_of_others[group], 0.0):g}; the weight of an item may be up to "
            f"{MAX_WEIGHT_RATIO:g} times the sum of the others in its group. Set the weight of "
            "rows that should not count to 0."
        )


def pack_weights(
    y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None, X: Any = None
) -> tuple[Any, ArrayLike | None]:
    """Return y and groups, with the weights inside y; unchanged if there are no weights.

    For a `fit` without `sample_weight`: scores become a target of `make_target` with labels of any
    kind.
    """
    if sample_weight is None:
        return y, groups
    target = read_y(y, groups, sample_weight, X=X, allow_nan=True)
    if isinstance(target, Preferences):
        return target.graph, None
    return _join_target(target.y, target.item_labels, target.weight), None


def unpack_target(
    y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None = None
) -> tuple[Any, ArrayLike | None, ArrayLike | None]:
    """Scores, groups and weights, passed separately or in a target of `make_target`."""
    if isinstance(y, GroupedTarget):
        y = y.rows
    dtype = getattr(y, "dtype", None)
    fields = getattr(dtype, "names", None)  # of a structured array
    if fields is None:
        return y, groups, sample_weight
    if set(fields) not in ({"score", "group"}, {"score", "group", "weight"}):
        raise ValueError(
            f"y is a structured array with the fields {list(fields)}; expected the fields "
            "'score' and 'group' as made by rankwise.make_target(y, groups)."
        )
    has_weights = "weight" in fields
    if groups is not None or (has_weights and sample_weight is not None):
        raise ValueError(
            "y contains its groups or weights (make_target), and they were passed as well; pass "
            "them once."
        )
    if has_weights:
        sample_weight = y["weight"]
    return y["score"], y["group"], sample_weight


def unpack_unweighted_target(y: Any, groups: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Scores and groups, for functions without weights: a target with weights is refused."""
    scores, groups, weights = unpack_target(y, groups)
    if weights is not None:
        raise ValueError(
            "y contains weights of items (make_target), which are not used here; pass "
            "make_target(y, groups) without them."
        )
    return scores, groups
