"""Declarations of fitted attributes: their kinds and shapes.

A class whose objects can be in a model file declares its fitted attributes::

    class RankRLS(RankerMixin):
        _fitted: ClassVar[FittedSchema] = {
            "coef_": Floats("features", "outputs features"),
            "n_iter_": Integer(),
        }

The attributes of its base classes are added. `rankwise.persistence.save` writes the declared
attributes, and `load` compares the values in a file with the declaration. A class with conditions
between several attributes checks them in a method ``_check_fitted()``, which raises ValueError.

A shape is a string of names of axes. All axes of an object with the same name have the same
length, and the length of "features" is ``n_features_in_``. The shape "" is a single number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from rankwise.arrays import AnyArray, Matrix

MAX_NGRAM_CHARACTERS = 2 * 10**7  # in the n-grams of all texts, which a prediction keeps

SCHEMA_ATTRIBUTE = "_fitted"

AxisLengths = dict[str, int]


class Field(ABC):
    """The kind of one fitted attribute."""

    is_saved = True

    @abstractmethod
    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Raise ValueError unless the value is of this kind.

        Parameters
        ----------
        name : str
            Name of the attribute, for messages.
        value : object
            Its value.
        lengths : dict
            Lengths of the axes of the object so far. New axes are added.
        """

    def restore(self, value: object) -> object:
        """Convert the value in a file to the value of the attribute."""
        return value


FittedSchema = Mapping[str, Field]


@runtime_checkable
class ChecksFitted(Protocol):
    """A class with conditions between its fitted attributes."""

    def _check_fitted(self) -> None: ...


class ArrayField(Field):
    """An array with one of several shapes.

    Parameters
    ----------
    *shapes : str
        Names of the axes, separated by spaces.
    optional : bool, default=False
        Whether the attribute may be None.
    """

    dtype_kinds = ""
    may_be_sparse = False

    def __init__(self, *shapes: str, optional: bool = False) -> None:
        self.shapes = [tuple(shape.split()) for shape in shapes]
        self.optional = optional

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check the type, the shape and the entries of an array."""
        if value is None and self.optional:
            return
        may_be_number = () in self.shapes
        if may_be_number and _is_finite_number(value):
            return
        array = self._as_array(value)
        if array is None or array.dtype.kind not in self.dtype_kinds:
            raise ValueError(f"{name} is not an array of {type(self).__name__.lower()}")
        self._check_shape(name, array.shape, lengths)
        entries = array
        if sp.issparse(array):
            entries = array.data
        self._check_entries(name, entries)

    def _as_array(self, value: object) -> Matrix | None:
        """The value if it is an array, or a sparse matrix where one is allowed; else None."""
        if isinstance(value, np.ndarray) or (self.may_be_sparse and sp.issparse(value)):
            return value
        return None

    def _check_shape(self, name: str, shape: tuple[int, ...], lengths: AxisLengths) -> None:
        n_dimensions = len(shape)
        declared_shapes = [axes for axes in self.shapes if len(axes) == n_dimensions]
        if not declared_shapes:
            raise ValueError(f"{name} has {n_dimensions} dimensions")
        # The first array with an axis, such as "features", sets its length for all others.
        axis_names = declared_shapes[0]
        for axis, length in zip(axis_names, shape, strict=True):
            expected_length = lengths.setdefault(axis, length)
            if length != expected_length:
                raise ValueError(f"{name} has shape {shape}, which does not fit the model")

    def _check_entries(self, name: str, entries: AnyArray) -> None:
        if entries.dtype.kind == "f" and not np.isfinite(entries).all():
            raise ValueError(f"{name} has numbers that are not finite")
        if entries.dtype == object and not _is_text(entries):
            raise ValueError(f"{name} has an entry that is not a string")


class Floats(ArrayField):
    """Finite floating-point numbers."""

    dtype_kinds = "f"


class Ints(ArrayField):
    """Integers that are not negative: positions and counts."""

    dtype_kinds = "i"

    def _check_entries(self, name: str, entries: AnyArray) -> None:
        if (entries < 0).any():
            raise ValueError(f"{name} has a negative number")


class Text(ArrayField):
    """Strings."""

    dtype_kinds = "OU"


class Items(ArrayField):
    """Items as a kernel compares them: numbers, dense or sparse, or texts."""

    dtype_kinds = "fO"
    may_be_sparse = True


class Labels(ArrayField):
    """Numbers or strings."""

    dtype_kinds = "fiuOU"


class Values(Field):
    """Results for readers, which are not used by predictions.

    Numbers, strings, arrays of one dimension, and lists and dictionaries of any arrays.
    """

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check that the value is not a matrix."""
        if (isinstance(value, np.ndarray) and value.ndim > 1) or sp.issparse(value):
            raise ValueError(f"{name} is a matrix, which its class does not declare")


class NotSaved(Field):
    """An attribute that only `fit` and `partial_fit` use."""

    is_saved = False

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Refuse the attribute."""
        raise ValueError(f"{name} cannot be in a model file")


@dataclass(frozen=True)
class Integer(Field):
    """One integer that is not negative."""

    optional: bool = False

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check type and sign."""
        if value is None and self.optional:
            return
        if type(value) is not int or value < 0:
            raise ValueError(f"{name} is {value!r:.40}; expected an integer that is not negative")


@dataclass(frozen=True)
class Number(Field):
    """One finite number."""

    optional: bool = False

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check type and value."""
        if value is None and self.optional:
            return
        if not _is_finite_number(value):
            raise ValueError(f"{name} is {value!r:.40}; expected a finite number")


class Word(Field):
    """One string.

    Parameters
    ----------
    *choices : str
        The allowed strings; any string if there are none.
    """

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check the type, and whether the string is allowed."""
        if type(value) is not str:
            raise ValueError(f"{name} is {value!r:.40}; expected a string")
        if self.choices and value not in self.choices:
            raise ValueError(f"{name} is {value!r:.40}; expected {' or '.join(self.choices)}")


@dataclass(frozen=True)
class EnumMember(Field):
    """A member of an enumeration of strings; a file contains its string."""

    enum_class: type[StrEnum]

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check the class."""
        if not isinstance(value, self.enum_class):
            raise ValueError(f"{name} is {value!r:.40}; expected a {self.enum_class.__name__}")

    def restore(self, value: object) -> object:
        """Look up the member by its string."""
        return self.enum_class(str(value))


@dataclass(frozen=True)
class TupleOf(Field):
    """A tuple of strings, or of numbers."""

    entry_type: type

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check the types of the entries."""
        if type(value) is not tuple or any(type(entry) is not self.entry_type for entry in value):
            raise ValueError(f"{name} is not a tuple of {self.entry_type.__name__}")


class Options(Field):
    """A dictionary of keyword arguments, which the class checks itself."""

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check that the value is a dictionary."""
        if type(value) is not dict:
            raise ValueError(f"{name} is not a dictionary")


@dataclass(frozen=True)
class Model(Field):
    """A fitted estimator."""

    optional: bool = False

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check that the value is an estimator."""
        if value is None and self.optional:
            return
        if not isinstance(value, BaseEstimator):
            raise ValueError(f"{name} is not an estimator")


class Record(Field):
    """An object of one of several classes that are declared with `saved_fields`.

    Parameters
    ----------
    *record_classes : type
        The classes.
    """

    def __init__(self, *record_classes: type) -> None:
        self.record_classes = record_classes

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check the class; its attributes have been checked when it was built."""
        if type(value) not in self.record_classes:
            class_names = [record_class.__name__ for record_class in self.record_classes]
            raise ValueError(f"{name} is not a {' or '.join(class_names)}")


@dataclass(frozen=True)
class Length(Field):
    """The length of an axis of the attributes that are declared before."""

    axis: str

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check that the value is the length of the axis."""
        if type(value) is not int or lengths.get(self.axis) != value:
            raise ValueError(f"{name} is {value!r:.40}; expected the number of {self.axis}")


@dataclass(frozen=True)
class ListOf(Field):
    """A list, for example with one array for each view.

    The entries share the length of the axis "features" only.
    """

    entry: Field
    optional: bool = False

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check every entry."""
        if value is None and self.optional:
            return
        if type(value) is not list:
            raise ValueError(f"{name} is not a list")
        for position, entry in enumerate(value):
            # Entries have the same number of features; all their other axes may differ.
            lengths_of_entry: AxisLengths = {}
            if "features" in lengths:
                lengths_of_entry["features"] = lengths["features"]
            self.entry.check(f"{name}[{position}]", entry, lengths_of_entry)


@dataclass(frozen=True)
class Either(Field):
    """One of several kinds, for example an array for one output and a list for views."""

    kinds: tuple[Field, ...]

    def check(self, name: str, value: object, lengths: AxisLengths) -> None:
        """Check that one of the kinds accepts the value; the last one explains a refusal."""
        *first_kinds, last_kind = self.kinds
        for kind in first_kinds:
            lengths_of_kind = dict(lengths)  # a failed check does not set lengths
            try:
                kind.check(name, value, lengths_of_kind)
            except ValueError:
                continue
            lengths.update(lengths_of_kind)
            return
        last_kind.check(name, value, lengths)  # raises its error if no kind fits


# What scikit-learn's base class and its mixins set.
ESTIMATOR_SCHEMA: FittedSchema = {
    "n_features_in_": Integer(),
    "feature_names_in_": Text("features"),
    "_sklearn_output_config": Values(),
    "_metadata_request": NotSaved(),
}


def fitted_schema(estimator_class: type) -> dict[str, Field]:
    """The declared attributes of a class and of its base classes.

    Examples
    --------
    >>> from rankwise import HingeFeatures
    >>> from rankwise.fitted_schema import fitted_schema
    >>> sorted(name for name in fitted_schema(HingeFeatures) if name.endswith("_"))
    ['columns_', 'feature_names_in_', 'knots_', 'n_features_in_']
    """
    schema: dict[str, Field] = {}
    if issubclass(estimator_class, BaseEstimator):
        schema.update(ESTIMATOR_SCHEMA)
    for base_class in reversed(estimator_class.__mro__):  # a subclass overrides its bases
        schema_of_base = vars(base_class).get(SCHEMA_ATTRIBUTE, {})
        schema.update(schema_of_base)
    return schema


RecordClass = TypeVar("RecordClass", bound=type)


def saved_fields(schema: FittedSchema) -> Callable[[RecordClass], RecordClass]:
    """Decorate a named tuple or dataclass that is saved as a part of models."""

    def declare(record_class: RecordClass) -> RecordClass:
        setattr(record_class, SCHEMA_ATTRIBUTE, schema)
        return record_class

    return declare


def check_values(class_name: str, schema: FittedSchema, values: Mapping[str, object]) -> None:
    """Raise ValueError unless all values match the schema."""
    undeclared = sorted(name for name in values if name not in schema)
    if undeclared:
        raise ValueError(f"{class_name} has no {undeclared[0]!r:.60}")
    lengths: AxisLengths = {}
    n_features = values.get("n_features_in_")
    if n_features is not None:
        Integer().check(f"n_features_in_ of {class_name}", n_features, lengths)
        assert isinstance(n_features, int)
        lengths["features"] = n_features
    for name, field in schema.items():
        if name in values:
            field.check(f"{name} of {class_name}", values[name], lengths)


def check_kernel_items(
    items: Matrix, kernel: object, kernel_params: Mapping[str, Any] | None
) -> None:
    """Raise ValueError unless the kernel compares items of this kind.

    Only the kernel "ngram" compares texts. Their n-grams together must not be too long.
    """
    is_dense_matrix = isinstance(items, np.ndarray) and items.ndim == 2
    if not is_dense_matrix and not sp.issparse(items):
        return
    are_texts = items.dtype == object
    compares_texts = isinstance(kernel, str) and kernel == "ngram"
    if are_texts != compares_texts:
        raise ValueError(f"the kernel {kernel!r:.40} does not compare such items")
    if compares_texts:
        if kernel_params is None:
            kernel_params = {}
        shortest, longest = kernel_params.get("ngram_range", (1, 3))
        # shortest + … + longest: at each position of a text starts one n-gram of each length
        ngram_characters_per_position = (longest - shortest + 1) * (longest + shortest) // 2
        n_text_characters = sum(len(text) for text in items.flat)
        if n_text_characters * ngram_characters_per_position > MAX_NGRAM_CHARACTERS:
            raise ValueError(
                f"the n-grams of the texts have more than {MAX_NGRAM_CHARACTERS:,} characters"
            )


def _is_finite_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value)


def _is_text(array: AnyArray) -> bool:
    return all(isinstance(entry, str) for entry in array.flat)
