"""The training target: scores in groups with weights and nuisance columns, or a graph."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array, Indices
from rankwise.frames import as_array, check_same_index, frame_columns
from rankwise.groups import Groups, encode_groups
from rankwise.validation import (
    check_float_array,
    check_sample_weight,
    check_weights,
    check_y,
    refuse_column_name,
)

MAX_WEIGHT_RATIO = 1e8  # of an item, relative to all others of its group


class GroupedTarget:
    """Scores with the group, and the weight, of each item, as `make_target` makes them.

    Slices keep the three together. NumPy and scikit-learn convert the target to the plain scores,
    so that scorers such as ``"r2"`` work on it.

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
        """The values of a field, ``target["group"]``, or the target of some of the items."""
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

    With metadata routing off (scikit-learn's default) ``GridSearchCV(...).fit(X, y, groups=g)``
    gives the groups to the splitter only and the ranker would learn one global list. A target
    that carries its groups cannot lose them.

    Parameters
    ----------
    y : array-like of shape (n_items,) or (n_items, n_outputs)
        Scores; NaN for unscored items, which only the semi-supervised learners take.
    groups : array-like of shape (n_items,)
        Group labels. Integers and strings are kept; any other labels become codes.
    sample_weight : array-like of shape (n_items,), optional
        Weights of the items; `fit`, `score` and the metrics use them as if they were passed there.

    Returns
    -------
    GroupedTarget
        Pass it as `y` to any estimator or metric of rankwise, with ``groups=None``. It has the
        fields ``target["score"]``, ``target["group"]``, and ``target["weight"]`` if there are
        weights. `numpy.asarray` and the scorers of scikit-learn get the plain scores.

    Examples
    --------
    >>> target = make_target([3.0, 1.0, 2.0], ["a", "a", "b"])
    >>> target["group"]
    array(['a', 'a', 'b'], dtype='<U1')
    """
    check_same_index(y=y, groups=groups, sample_weight=sample_weight)
    scores = check_y(y, allow_nan=True)
    codes, labels = encode_groups(groups, len(scores))
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        words = labels.astype(str)
        labels = words if (words == labels).all() else labels
    return _join_target(
        scores, labels[codes] if labels.dtype.kind in "iuU" else codes, sample_weight
    )


def _join_target(
    scores: Array, members: NDArray[Any], sample_weight: ArrayLike | None
) -> GroupedTarget:
    fields: list[Any] = [("score", np.float64, scores.shape[1:]), ("group", members.dtype)]
    if sample_weight is not None:
        fields.append(("weight", np.float64))
    target = np.empty(len(scores), dtype=fields)
    target["score"], target["group"] = scores, members
    if sample_weight is not None:
        target["weight"] = check_weights(sample_weight, len(scores))
    return GroupedTarget(target)


class Relevance(NamedTuple):
    """What is known about the rows of X, as `read_y` reads it.

    Attributes
    ----------
    y : ndarray of shape (n_items,) or (n_items, n_outputs), or a preference graph
        Scores; or a graph, with the weights of the items in the weights of its edges.
    groups : Groups or None
        Groups of the items; None for a graph, which has its own.
    weight : ndarray of shape (n_items,) or None
        Weights of the items; None for a graph, and if all are 1.
    nuisance : Nuisance or None
        Columns whose effects a learner takes out.
    """

    y: Any
    groups: Groups | None = None
    weight: Array | None = None
    nuisance: Nuisance | None = None


class Nuisance(NamedTuple):
    """Numbers of shape (n_items, n_columns), and the names of the columns."""

    values: Array
    names: list[str]


def read_nuisance(nuisance: Any) -> Nuisance:
    """Columns of numbers as they are; a column of anything else becomes one for each value."""
    columns = frame_columns(nuisance)
    if columns is None:
        is_sparse = hasattr(nuisance, "tocsr")
        array = nuisance.toarray() if is_sparse else np.asarray(as_array(nuisance))
        if array.ndim not in (1, 2) or 0 in array.shape:
            raise ValueError(f"nuisance has shape {array.shape}; expected a column or a table.")
        table = array.reshape(len(array), -1).T
        columns = {str(k) if array.ndim == 2 else "nuisance": row for k, row in enumerate(table)}
    blocks, names = [], []
    for name, column in columns.items():
        values = as_array(column)
        if values.dtype.kind in "OUT":
            codes, labels = encode_groups(values, len(values))
            blocks.append(np.eye(len(labels))[codes])
            names += [f"{name}={label}" for label in labels]
            continue
        numbers = check_float_array(f"nuisance column {name}", values)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(
                f"nuisance column {name} has a gap or infinity, the first in row {row}; fill it in "
                "or leave the row out."
            )
        blocks.append(numbers[:, None])
        names.append(name)
    return Nuisance(np.hstack(blocks), names)


def read_y(
    y: Any,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    nuisance: Any = None,
    *,
    X: Any = None,
    allow_nan: bool = False,
) -> Relevance:
    """Read scores (or a graph), groups, weights and nuisance; what was read is returned as it is.

    X is only compared by its index. With `allow_nan` a score may be NaN, "not scored".
    """
    if isinstance(y, Relevance):
        return y
    refuse_column_name("y", y)
    refuse_column_name("groups", groups)
    check_same_index(X=X, y=y, groups=groups, sample_weight=sample_weight, nuisance=nuisance)
    columns = None if nuisance is None else read_nuisance(nuisance)
    if getattr(y, "is_preference_graph", False):
        if groups is not None:
            raise ValueError(
                "y is a preference graph, which knows its groups, and groups was given as well; "
                "build the graph with these groups instead."
            )
        if sample_weight is not None:
            y = y.weighted(check_sample_weight(sample_weight, y.n_items))
        return Relevance(y, nuisance=columns)
    if hasattr(y, "laplacian"):
        raise ValueError(
            f"y is a {type(y).__name__}, which has a laplacian but is not a PreferenceGraph; "
            "derive its class from rankwise.PreferenceGraph."
        )
    y, groups, sample_weight = unpack_target(y, groups, sample_weight)
    scores = check_y(y, allow_nan=allow_nan)
    shape = (len(X),) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    if shape and shape[0] != len(scores):
        raise ValueError(
            f"y has {len(scores)} entries but X has {shape[0]} rows; pass one score per row."
        )
    weight = None if sample_weight is None else check_sample_weight(sample_weight, len(scores))
    encoded = encode_groups(groups, len(scores))
    if weight is not None:
        check_weight_ratio(weight, encoded)
    return Relevance(scores, encoded, weight, columns)


def check_weight_ratio(weight: Array, groups: Groups) -> None:
    """A ValueError if one item of a group is so heavy that sums over the others lose digits."""
    codes, labels = groups
    heaviest = np.zeros(len(labels))
    np.maximum.at(heaviest, codes, weight)
    others = np.bincount(codes, weight, len(labels)) - heaviest
    has_pairs = np.bincount(codes[weight > 0], minlength=len(labels)) > 1
    lost = has_pairs & (others < heaviest / MAX_WEIGHT_RATIO)
    if lost.any():
        at = int(np.argmax(lost))
        raise ValueError(
            f"sample_weight of one item of group {labels[at]} is {heaviest[at]:g}, that of all "
            f"others {max(others[at], 0.0):g}; one item may weigh up to {MAX_WEIGHT_RATIO:g} times "
            "as much as the others of its group. Give 0 to a row that should not count."
        )


def pack_weights(
    y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None, X: Any = None
) -> tuple[Any, ArrayLike | None]:
    """Return y and groups that carry the weights with them; as they are if there are none.

    For a `fit` that takes no weights: scores become a target of `make_target`, whose labels may be
    of any kind.
    """
    if sample_weight is None:
        return y, groups
    target = read_y(y, groups, sample_weight, X=X, allow_nan=True)
    if target.groups is None:
        return target.y, None
    codes, labels = target.groups
    return _join_target(target.y, labels[codes], target.weight), None


def unpack_target(
    y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None = None
) -> tuple[Any, ArrayLike | None, ArrayLike | None]:
    """Scores, groups and weights, which may come in a target of `make_target` or one by one."""
    if isinstance(y, GroupedTarget):
        y = y.rows
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None:
        return y, groups, sample_weight
    if set(names) not in ({"score", "group"}, {"score", "group", "weight"}):
        raise ValueError(
            f"y is a structured array with the fields {list(names)}; expected the fields "
            "'score' and 'group' as made by rankwise.make_target(y, groups)."
        )
    weights = y["weight"] if "weight" in names else sample_weight
    if groups is not None or ("weight" in names and sample_weight is not None):
        raise ValueError(
            "y carries its groups or weights (make_target), and they were given as well; pass one "
            "of them."
        )
    return y["score"], y["group"], weights


def unpack_unweighted_target(y: Any, groups: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Scores and groups, for what knows no weights: a target that has some is refused."""
    scores, groups, weights = unpack_target(y, groups)
    if weights is not None:
        raise ValueError(
            "y carries weights of items (make_target), which are not used here; pass "
            "make_target(y, groups) without them."
        )
    return scores, groups


def take_rows_of_target(target: Relevance, rows: Indices) -> Relevance:
    """What is known about some rows."""
    codes, labels = target.groups or encode_groups(None, len(target.y))
    weight = None if target.weight is None else target.weight[rows]
    taken = Relevance(target.y[rows], encode_groups(labels[codes[rows]], len(rows)), weight)
    if target.nuisance is None:
        return taken
    values, names = target.nuisance
    return taken._replace(nuisance=Nuisance(values[rows], names))


def row_labels(target: Relevance) -> NDArray[Any] | None:
    """The label of the group of each row."""
    return None if target.groups is None else target.groups.labels[target.groups.codes]
