"""What a user passes: options, numbers, scores, groups and weights, read once and checked."""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.frames import as_array, check_same_index, frame_columns, refuse_masked
from rankwise.groups import Groups, encode_groups

MOST_WEIGHT = 1e8  # of an item, relative to all others of its group


def check_option(name: str, value: object, allowed: Sequence[str]) -> None:
    """Raise a ValueError that lists the choices unless the value is one of them."""
    if not isinstance(value, str) or value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(
            f"{name}={value!r} is unknown; {suggestion(value, allowed)}choose one of {choices}."
        )


def suggestion(value: object, allowed: Sequence[str]) -> str:
    """Return ``"did you mean 'x'? "`` if some allowed word looks like `value`, else nothing."""
    words = {word.lower(): word for word in reversed(allowed)}
    close = difflib.get_close_matches(str(value).lower(), words, n=1)
    return f"did you mean {words[close[0]]!r}? " if close else ""


def check_items(name: str, X: Any) -> None:
    """Raise a ValueError if an array has masked entries, dates, or fields instead of columns."""
    if np.ma.isMaskedArray(X):
        refuse_masked(name, X)
    dtype = getattr(X, "dtype", None)
    if getattr(dtype, "kind", "") in ("m", "M", "V"):
        raise ValueError(
            f"{name} has dtype {dtype}; features are real numbers, so turn these into numbers "
            "(days since a date, for example) or leave them out."
        )


def as_objects(name: str, items: Any) -> NDArray[Any] | None:
    """Items that are no numbers, one in each row of a matrix of objects; None if they are numbers.

    Such items are texts, graphs or anything else that a kernel function compares: a list, a
    column, or a matrix of them.
    """
    values = as_array(items, name)
    if hasattr(values, "tocsr"):  # a sparse matrix
        return None
    try:
        plain = np.asarray(values)
    except ValueError:  # lists of different lengths
        plain = np.empty(0, dtype=object)
    if plain.dtype.kind not in "OUT":
        return None
    if isinstance(values, np.ndarray) and values.ndim == 2:
        objects = values.astype(object)
    else:
        objects = np.empty((len(values), 1), dtype=object)
        for row, value in enumerate(values):
            objects[row, 0] = str(value) if isinstance(value, str) else value
    missing = [row for row, entries in enumerate(objects) if any(_is_missing(e) for e in entries)]
    if missing:
        raise ValueError(
            f"{name} has {len(missing)} missing items, the first in row {missing[0]}; leave them "
            "out, or give an empty text."
        )
    return objects


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and value != value
    return value is None or is_nan or type(value).__name__ == "NAType"


def as_real(name: str, values: Any, advice: str = "pass real numbers") -> Array:
    """Numbers as float64, of any shape; NaN and infinity are left to the caller.

    Refused are complex numbers, dates and durations, which NumPy would turn into numbers; masked
    entries; and whole numbers so large that different ones become equal. Missing entries (None,
    pandas.NA) are NaN. Columns and frames may be of pandas, polars or Arrow.
    """
    array = np.asarray(as_array(values, name))
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} must hold real numbers.")
    if array.dtype == object:
        entries = [np.nan if _is_missing(value) else value for value in array.flat]
        array = np.array(entries, dtype=object).reshape(array.shape)
    try:
        if array.dtype.kind in "mMV":
            raise TypeError
        real = array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name} has dtype {array.dtype}, expected real numbers; {advice}."
        ) from None
    is_large = array.dtype.kind in "iu" and np.abs(real).max(initial=0.0) >= 2.0**53
    if is_large and len(np.unique(real)) < len(np.unique(array)):
        raise ValueError(
            f"{name} has whole numbers beyond 2**53, of which different ones become equal as "
            "float64; subtract a constant from all of them."
        )
    return real


def refuse_column_name(name: str, values: Any) -> None:
    """Raise a ValueError if a column's name was passed instead of its values."""
    if isinstance(values, str):
        raise ValueError(
            f'{name}={values!r} is the name of a column; pass its values: {name}=frame["{values}"].'
        )


def as_whole(name: str, value: Any, meaning: str = "", least: int = 0) -> int:
    """A whole number of at least `least`; a NumPy integer, too, but no bool, float or text."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_whole or not least <= value <= np.iinfo(np.intp).max:
        expected = f"a whole number from {least}{meaning and ', '}{meaning}"
        raise ValueError(f"{name}={value!r}; expected {expected}.")
    return int(value)


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
    scores = as_scores(y, allow_nan=True)
    codes, labels = encode_groups(groups, len(scores))
    if labels.dtype == object and all(isinstance(label, str) for label in labels):
        words = labels.astype(str)
        labels = words if (words == labels).all() else labels
    return _join(scores, labels[codes] if labels.dtype.kind in "iuU" else codes, sample_weight)


def _join(scores: Array, members: NDArray[Any], sample_weight: ArrayLike | None) -> GroupedTarget:
    fields: list[Any] = [("score", np.float64, scores.shape[1:]), ("group", members.dtype)]
    if sample_weight is not None:
        fields.append(("weight", np.float64))
    target = np.empty(len(scores), dtype=fields)
    target["score"], target["group"] = scores, members
    if sample_weight is not None:
        target["weight"] = as_weights(sample_weight, len(scores))
    return GroupedTarget(target)


class Target(NamedTuple):
    """What is known about the rows of X, as `read_target` reads it.

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
        numbers = as_real(f"nuisance column {name}", values)
        if not np.isfinite(numbers).all():
            row = int(np.argmin(np.isfinite(numbers)))
            raise ValueError(
                f"nuisance column {name} has a gap or infinity, the first in row {row}; fill it in "
                "or leave the row out."
            )
        blocks.append(numbers[:, None])
        names.append(name)
    return Nuisance(np.hstack(blocks), names)


def read_target(
    y: Any,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    nuisance: Any = None,
    *,
    X: Any = None,
    allow_nan: bool = False,
) -> Target:
    """Read scores (or a graph), groups, weights and nuisance; what was read is returned as it is.

    X is only compared by its index. With `allow_nan` a score may be NaN, "not scored".
    """
    if isinstance(y, Target):
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
            y = y.weighted(some_positive(sample_weight, y.n_items))
        return Target(y, nuisance=columns)
    if hasattr(y, "laplacian"):
        raise ValueError(
            f"y is a {type(y).__name__}, which has a laplacian but is not a PreferenceGraph; "
            "derive its class from rankwise.PreferenceGraph."
        )
    y, groups, sample_weight = split_weighted(y, groups, sample_weight)
    scores = as_scores(y, allow_nan=allow_nan)
    shape = (len(X),) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    if shape and shape[0] != len(scores):
        raise ValueError(
            f"y has {len(scores)} entries but X has {shape[0]} rows; pass one score per row."
        )
    weight = None if sample_weight is None else some_positive(sample_weight, len(scores))
    encoded = encode_groups(groups, len(scores))
    if weight is not None:
        check_balance(weight, encoded)
    return Target(scores, encoded, weight, columns)


def check_balance(weight: Array, groups: Groups) -> None:
    """A ValueError if one item of a group is so heavy that sums over the others lose digits."""
    codes, labels = groups
    heaviest = np.zeros(len(labels))
    np.maximum.at(heaviest, codes, weight)
    others = np.bincount(codes, weight, len(labels)) - heaviest
    has_pairs = np.bincount(codes[weight > 0], minlength=len(labels)) > 1
    lost = has_pairs & (others < heaviest / MOST_WEIGHT)
    if lost.any():
        at = int(np.argmax(lost))
        raise ValueError(
            f"sample_weight of one item of group {labels[at]} is {heaviest[at]:g}, that of all "
            f"others {max(others[at], 0.0):g}; one item may weigh up to {MOST_WEIGHT:g} times as "
            "much as the others of its group. Give 0 to a row that should not count."
        )


def with_weights(
    y: Any, groups: ArrayLike | None, sample_weight: ArrayLike | None, X: Any = None
) -> tuple[Any, ArrayLike | None]:
    """Return y and groups that carry the weights with them; as they are if there are none.

    For a `fit` that takes no weights: scores become a target of `make_target`, whose labels may be
    of any kind.
    """
    if sample_weight is None:
        return y, groups
    target = read_target(y, groups, sample_weight, X=X, allow_nan=True)
    if target.groups is None:
        return target.y, None
    codes, labels = target.groups
    return _join(target.y, labels[codes], target.weight), None


def some_positive(sample_weight: ArrayLike, n_items: int) -> Array:
    """Weights of items as in `as_weights`; a ValueError if all are 0."""
    weights = as_weights(sample_weight, n_items)
    if not weights.any():
        raise ValueError(
            "all sample weights are zero, so that no row counts; give a positive weight to the "
            "rows that do, or leave out sample_weight."
        )
    return weights


def split_weighted(
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


def split_target(y: Any, groups: ArrayLike | None) -> tuple[Any, ArrayLike | None]:
    """Scores and groups, for what knows no weights: a target that has some is refused."""
    scores, groups, weights = split_weighted(y, groups)
    if weights is not None:
        raise ValueError(
            "y carries weights of items (make_target), which are not used here; pass "
            "make_target(y, groups) without them."
        )
    return scores, groups


def as_weights(sample_weight: ArrayLike, n_items: int) -> Array:
    """Weights of items as float64: finite numbers of at least 0, one for each item.

    Only ratios count, so weights whose products would overflow or vanish are divided by a power of
    two near the largest.
    """
    weights = as_real("sample_weight", sample_weight)
    if weights.shape != (n_items,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but there are {n_items} rows; "
            f"pass one weight per row, shape ({n_items},)."
        )
    bad = ~(weights >= 0) | np.isinf(weights)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight[{row}] is {weights[row]}; weights must be 0 or larger, and finite. "
            "Give 0 to a row that should not count."
        )
    return near_one("sample_weight", weights)


def near_one(name: str, weights: Array) -> Array:
    """Weights whose products neither overflow nor vanish: as they are, or times a power of two."""
    positive = weights[weights > 0]
    smallest, largest = positive.min(initial=np.inf), positive.max(initial=0.0)
    if smallest < largest / 1e150:
        raise ValueError(
            f"{name} has values from {smallest:g} to {largest:g}; weights must be within a factor "
            "of 1e150. Give 0 to a row that should not count."
        )
    if smallest > 1e-100 and largest < 1e100:
        return weights
    return np.asarray(np.ldexp(weights, -np.frexp(largest)[1]))


def as_scores(y: Any, *, allow_nan: bool = False) -> Array:
    """Finite real scores as float64, shape (n_items,) or (n_items, n_outputs).

    With `allow_nan` a score may be NaN, "not scored", as the semi-supervised learners take it. An
    array of float64 is not copied: the result is a view of it that cannot be written.
    """
    if y is None:
        raise ValueError(
            "this ranker requires y to be passed, but the target y is None; give scores, "
            "a target of make_target, or a preference graph."
        )
    if type(y) is np.ndarray and y.dtype == np.float64:
        scores = y.view()
        scores.flags.writeable = False
    else:
        advice = "map the labels to numbers so that a larger number means a better item"
        values = as_array(y, "y")
        is_array_like = isinstance(values, (list, tuple)) or hasattr(values, "__array__")
        if not is_array_like and not np.isscalar(values) and np.ndim(values) == 0:
            raise ValueError(
                f"y is a {type(y).__name__}; expected scores, a target of make_target, or a "
                "PreferenceGraph."
            )
        scores = as_real("y", values, advice)
    if scores.ndim not in (1, 2) or 0 in scores.shape:
        raise ValueError(
            f"y has shape {scores.shape}; expected one score per item, shape (n_items,), "
            "or several outputs, shape (n_items, n_outputs), and at least one item."
        )
    from sklearn.utils import assert_all_finite

    try:
        assert_all_finite(scores, allow_nan=allow_nan, input_name="y")
    except ValueError as error:
        bad = np.isinf(scores) if allow_nan else ~np.isfinite(scores)
        row = int(np.argmax(bad.reshape(len(scores), -1).any(axis=1)))
        raise ValueError(
            f"{error} The first such row is {row}; give every item a finite score or drop the row "
            "(only the semi-supervised learners take NaN, as 'not scored')."
        ) from None
    return scores


def check_alphas(alphas: ArrayLike, name: str) -> Array:
    """Finite numbers as an array of one dimension: positive alphas, or nus from 0."""
    is_nu = name.startswith("nu")
    expected = (
        "a finite number from 0 (the views are trained independently) upwards (they agree more "
        "and more)"
        if is_nu
        else "a positive finite number. For almost no regularization use a small value such as 1e-9"
    )
    try:
        checked = as_real(name, alphas)
    except ValueError:
        raise ValueError(f"{name}: got {alphas!r}, expected {expected}.") from None
    if checked.ndim != 1 or not len(checked):
        raise ValueError(f"{name} has shape {checked.shape}; expected a flat list of numbers.")
    bad = ~(np.isfinite(checked) & (checked >= 0 if is_nu else checked > 0))
    if bad.any():
        raise ValueError(f"{name}: got {checked[bad][0]}, expected {expected}.")
    return checked
