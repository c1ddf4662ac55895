"""The items of one side of a table: checked features, objects or kernel values."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.utils import check_array

from rankwise.arrays import Array, Matrix, dense_rows
from rankwise.dyadic.sides import DecomposedSide, FeatureSide, KernelSide, feature_side, kernel_side
from rankwise.formatting import join_words
from rankwise.frames import as_array, column_names
from rankwise.kernels.feature_maps import ColumnFeatures, FeatureMap, KernelFeatures
from rankwise.kernels.kernel import Kernel
from rankwise.runtime.memory import check_matrix_fits
from rankwise.validation import as_objects, reject_dtype

KERNEL_MATRICES = 4.0  # matrices in memory at a time: kernel values, their vectors, and products


class ExpectedFeatures(NamedTuple):
    """Number and names of the features that a fitted model expects."""

    n_features: int
    names: list[str] | None


class TableItems(NamedTuple):
    """The items of one side of a table, checked, with their kernel.

    Attributes
    ----------
    argument : {"rows", "columns"}
        Name of the argument that the items were passed as, for messages.
    kernel : Kernel
        Kernel between the items.
    items : array or sparse matrix
        Features, objects, or kernel values if the kernel is precomputed.
    names : list of str or None
        Names of the features, if there are any.
    """

    argument: str
    kernel: Kernel
    items: Matrix
    names: list[str] | None

    @classmethod
    def read(
        cls,
        argument: str,
        kernel: Kernel,
        items: Matrix,
        expected: ExpectedFeatures | None = None,
    ) -> Self:
        """Check the items, of a fit or as the fitted model expects them."""
        reject_dtype(argument, items)
        if kernel.takes_objects:
            objects = as_objects(argument, items)
            if objects is not None:
                return cls(argument, kernel, objects, None)

        if kernel.is_precomputed:
            feature_names = None
            accept_sparse: str | bool = False
            feature_unit = "kernel values to the training items"
        else:
            feature_names = column_names(items)
            accept_sparse = "csr"
            feature_unit = "features"
        is_fit = expected is None
        if expected is not None:
            _check_names(argument, feature_names, expected.names)
        checked_items = check_array(
            as_array(items, argument),
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32],
            input_name=argument,
            copy=is_fit,  # the fitted model keeps the items, which the caller may change
        )
        n_features = checked_items.shape[1]
        if expected is not None and n_features != expected.n_features:
            raise ValueError(
                f"{argument} has {n_features} columns; the model was trained with "
                f"{expected.n_features} {feature_unit}."
            )
        return cls(argument, kernel, checked_items, feature_names)

    def check_n_items(self, n_items: int) -> None:
        """Check the number of items, and of values between them if they are kernel values."""
        shape = self.items.shape
        if self.kernel.is_precomputed:
            is_valid = shape == (n_items, n_items)
            expected = f"the kernel values between them, ({n_items}, {n_items})"
        else:
            is_valid = shape[0] == n_items
            expected = "one for each"
        if not is_valid:
            raise ValueError(
                f"{self.argument} has shape {shape}, but Y has {n_items} {self.argument}; pass "
                f"{expected}, and check whether rows and columns were swapped."
            )

    def make_side(
        self, *, has_constant: bool, is_centered: bool = False, weight: Array | None = None
    ) -> FeatureSide | KernelSide:
        """The side for the solver: features if they are fewer than items, else kernel values.

        Raises an error before a kernel matrix is computed that would not fit in memory.
        """
        n_items = self.items.shape[0]
        if self.kernel.is_linear and self.items.shape[1] < n_items:
            return feature_side(
                dense_rows(self.items),
                has_constant=has_constant,
                weight=weight,
                is_centered=is_centered,
            )
        check_matrix_fits(
            n_items,
            n_items,
            f"a kernel matrix of the {self.argument}",
            f"use a linear kernel on fewer features, or fewer {self.argument}",
            n_matrices=KERNEL_MATRICES,
        )
        return kernel_side(
            self.kernel.matrix(self.items),
            has_constant=has_constant,
            weight=weight,
            is_centered=is_centered,
        )

    def split_constant(self, basis_weights: Array, side: DecomposedSide) -> tuple[Array, Array]:
        """Weights of the basis functions of these items, and the scores that the constant adds.

        For a linear kernel these are the features, also if the solver used kernel values.
        """
        weights, scores_of_constant = side.split_constant(basis_weights)
        if self.kernel.is_linear and isinstance(side, KernelSide):
            # from weights of kernel values to the items, X Xᵀ, to weights of their features
            weights = np.asarray(self.items.T @ weights)
        return weights, scores_of_constant

    def scores(self, training_items: Any, weights: Array) -> Array:
        """``k(items, training_items) weights``, by blocks; weights of features if linear."""
        n_functions = len(weights)
        feature_map: FeatureMap
        if self.kernel.is_linear:
            feature_map = ColumnFeatures(columns=None, n_features=n_functions)
        elif self.kernel.is_precomputed:  # the items are kernel values to the training items
            feature_map = KernelFeatures(self.kernel, columns=None, n_features=n_functions)
        else:
            feature_map = KernelFeatures(
                self.kernel, columns=None, n_features=n_functions, items=training_items
            )
        return np.asarray(feature_map.scores(self.items, weights))


def _check_names(argument: str, names: list[str] | None, expected: list[str] | None) -> None:
    """Check the names of the features of new items; arrays have none."""
    if names is None or expected is None or names == expected:
        return
    raise ValueError(
        f"{argument} has the features {join_words(names, 6)}; the model was trained with "
        f"{join_words(expected, 6)}, in this order: pass {argument}[names] with these names."
    )
