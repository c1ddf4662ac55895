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
        objects = None
        if kernel.takes_objects:
            objects = as_objects(argument, items)
        if objects is not None:
            return cls(argument, kernel, objects, None)
        names = None if kernel.is_precomputed else column_names(items)
        if expected is not None:
            _check_names(argument, names, expected.names)
        checked = check_array(
            as_array(items, argument),
            accept_sparse=False if kernel.is_precomputed else "csr",
            dtype=[np.float64, np.float32],
            input_name=argument,
            copy=expected is None,  # the fitted model keeps the items, which the caller may change
        )
        if expected is not None and checked.shape[1] != expected.n_features:
            unit = "kernel values to the training items" if kernel.is_precomputed else "features"
            raise ValueError(
                f"{argument} has {checked.shape[1]} columns; the model was trained with "
                f"{expected.n_features} {unit}."
            )
        return cls(argument, kernel, checked, names)

    def check_number(self, n: int) -> None:
        """Check that there are n items, and values between n items if they are kernel values."""
        shape = self.items.shape
        if self.kernel.is_precomputed:
            is_valid = shape == (n, n)
            expected = f"the kernel values between them, ({n}, {n})"
        else:
            is_valid = shape[0] == n
            expected = "one for each"
        if not is_valid:
            raise ValueError(
                f"{self.argument} has shape {shape}, but Y has {n} {self.argument}; pass "
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

    def split_constant(self, B: Array, side: DecomposedSide) -> tuple[Array, Array]:
        """Weights of the functions of these items, and the scores that the constant adds.

        For a linear kernel the functions are the features, also if the solver used kernel values.
        """
        weights, constant = side.split_constant(B)
        if self.kernel.is_linear and isinstance(side, KernelSide):
            weights = np.asarray(self.items.T @ weights)
        return weights, constant

    def scores(self, fitted_items: Any, weights: Array) -> Array:
        """``k(items, fitted_items) weights``, by blocks; weights of features if linear."""
        features: FeatureMap = ColumnFeatures(None, len(weights))
        if not self.kernel.is_linear:
            items = None if self.kernel.is_precomputed else fitted_items
            features = KernelFeatures(self.kernel, None, len(weights), None, items)
        return np.asarray(features.scores(self.items, weights))


def _check_names(argument: str, names: list[str] | None, expected: list[str] | None) -> None:
    """Check the names of the features of new items; arrays have none."""
    if names is None or expected is None or names == expected:
        return
    raise ValueError(
        f"{argument} has the features {join_words(names, 6)}; the model was trained with "
        f"{join_words(expected, 6)}, in this order: pass {argument}[names] with these names."
    )
