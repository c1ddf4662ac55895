"""Covariates of comparisons as numbers and codes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from rankwise.arrays import Array
from rankwise.auto.pair_columns import EncodedCovariates
from rankwise.fitted_schema import FittedSchema, Floats, Labels, ListOf, Text, Values
from rankwise.frames import as_array
from rankwise.validation import check_float_array, suggestion

SIDE = "named first"
MAX_CATEGORIES = 50
CovariateValues = Mapping[str, ArrayLike]


class ComparisonCovariates(BaseEstimator):
    """Encoder of the covariates of comparisons.

    A number is seen from the first side, and changes its sign with the sides. A category is the
    same for both sides. If it is known which side was named first, that is a covariate,
    too, alone and in each category.

    Attributes
    ----------
    number_names_ : ndarray of str
        Numbers, without the side.
    number_scales_ : ndarray of shape (n_numbers,)
        Root mean squares, by which they are divided.
    category_names_ : ndarray of str
        Categories.
    categories_ : list of ndarray
        Labels of each category.
    has_side_ : bool
        Whether the side is a covariate.
    """

    _fitted: ClassVar[FittedSchema] = {
        "number_names_": Text("numbers"),
        "number_scales_": Floats("numbers"),
        "category_names_": Text("categories"),
        "categories_": ListOf(Labels("labels")),
        "has_side_": Values(),
    }

    def fit(self, covariates: Mapping[str, NDArray[np.generic]], has_side: bool) -> Self:
        """Learn scales and labels.

        Parameters
        ----------
        covariates : mapping from str to ndarray of shape (n_comparisons,)
            The covariates.
        has_side : bool
            Whether the first side was named first, and either side may win.
        """
        # has_side: whether a comparison says which item was named first, which may be an advantage
        scale_of_number = {}
        labels_of_category = {}
        is_side_passed = False
        for name, values in covariates.items():
            is_number = values.dtype.kind in "fiub"
            if is_number:
                numbers = np.nan_to_num(values.astype(np.float64))
                scale_of_number[name] = float(np.sqrt(np.mean(numbers**2)))
                is_constant = (numbers == numbers[0]).all()
                if is_constant and numbers[0]:  # an advantage of the first side
                    is_side_passed = True
            else:
                labels_of_category[name] = np.unique(values.astype(str))
        number_names = [name for name, scale in scale_of_number.items() if scale > 0]
        category_names = [
            name for name, labels in labels_of_category.items() if len(labels) <= MAX_CATEGORIES
        ]
        self.number_names_ = np.array(number_names, dtype=str)
        self.number_scales_ = np.array([scale_of_number[name] for name in number_names])
        self.category_names_ = np.array(category_names, dtype=str)
        self.categories_ = [labels_of_category[name] for name in category_names]
        self.has_side_ = has_side and not is_side_passed
        return self

    @property
    def names(self) -> list[str]:
        """Names of the covariates that may be passed to a prediction."""
        names = [*self.number_names_.tolist(), *self.category_names_.tolist()]
        if self.has_side_:
            names.append(SIDE)
        return names

    def transform(self, covariates: CovariateValues, n_comparisons: int) -> EncodedCovariates:
        """Numbers and codes of comparisons; a covariate that is not passed is unknown.

        Parameters
        ----------
        covariates : mapping from str to array-like of shape (n_comparisons,) or a single value
            Values by name. "named first" is 1 if the first item was named first, −1 if the second
            one was, and 0 if neither was.
        n_comparisons : int
            Number of comparisons.
        """
        self._check_names(covariates)
        numbers = []
        for name, scale in zip(self.number_names_, self.number_scales_, strict=True):
            values = self._number(name, covariates, n_comparisons)
            numbers.append(np.nan_to_num(values) / scale)
        codes = []
        for name, labels in zip(self.category_names_, self.categories_, strict=True):
            codes.append(self._codes(name, labels, covariates, n_comparisons))
        if self.has_side_:  # 1 if the first item was named first, −1 if the second one was
            side = self._number(SIDE, covariates, n_comparisons)
            numbers.append(side)
            # the effect of the side in each category
            for code, labels in zip(codes, self.categories_, strict=True):
                for category in range(len(labels)):
                    numbers.append(np.where(code == category, side, 0.0))
        return EncodedCovariates(
            _stack_columns(numbers, n_comparisons), _stack_columns(codes, n_comparisons)
        )

    def _number(self, name: str, covariates: CovariateValues, n_comparisons: int) -> Array:
        """A number of each comparison; 0 if it is not passed."""
        values = _broadcast(name, covariates.get(name, 0.0), n_comparisons)  # 0: no effect
        return check_float_array(name, values)

    def _codes(
        self,
        name: str,
        labels: NDArray[np.str_],
        covariates: CovariateValues,
        n_comparisons: int,
    ) -> Array:
        """Position of the label of each comparison; NaN for a new label, or if none is passed."""
        if name not in covariates:
            return np.full(n_comparisons, np.nan)
        values = _broadcast(name, covariates[name], n_comparisons).astype(str)
        position = np.searchsorted(labels, values)  # labels are sorted
        position = np.minimum(position, len(labels) - 1)
        is_known_label = labels[position] == values
        return np.where(is_known_label, position, np.nan)  # NaN: a category that is unknown

    def _check_names(self, covariates: CovariateValues) -> None:
        for name in covariates:
            if name not in self.names:
                used_names = ", ".join(self.names)
                if not used_names:
                    used_names = "none"
                raise ValueError(
                    f"covariates has {name!r}, which the model does not use"
                    f"{suggestion(name, self.names)} It uses {used_names}."
                )


def _broadcast(name: str, values: ArrayLike, n_comparisons: int) -> NDArray[np.generic]:
    array: NDArray[np.generic] = np.asarray(as_array(values, name))
    if array.ndim == 0:  # one value for all comparisons
        return np.full(n_comparisons, array[()])
    if array.shape != (n_comparisons,):
        raise ValueError(
            f"the covariate {name!r} has shape {array.shape}; expected one value, or one for each "
            f"of the {n_comparisons} comparisons."
        )
    return array


def _stack_columns(columns: Sequence[Array], n_comparisons: int) -> Array:
    if not columns:
        return np.zeros((n_comparisons, 0))
    return np.column_stack(columns)
