"""Validation of X for an estimator: floats, or objects for kernels that compare objects."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import validate_data

from rankwise.arrays import Matrix, MatrixLike
from rankwise.frames import frame_matrix, narwhals_frame, with_names
from rankwise.preprocessing.group_columns import without_group_columns
from rankwise.validation import as_objects, reject_dtype


def validate_X(
    estimator: BaseEstimator, X: MatrixLike, *, reset: bool = True, **options: object
) -> Matrix:
    """The items as a matrix of floats, or of objects if the kernel compares objects.

    Names and number of the features are kept or compared.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set if `reset` is true, else compared with
        X.
    X : array-like, sparse matrix, data frame or Arrow table
        Items.
    reset : bool
        Whether these are the items of a fit.
    **options
        Options of scikit-learn's `check_array`. The tags of the estimator determine whether X may
        be sparse.
    """
    reject_dtype("X", X)
    if not reset:
        X = without_group_columns(estimator, X)
    if _compares_objects(estimator):  # texts, or items of a kernel in Python
        objects = as_objects("X", X)
        if objects is not None:
            validate_data(estimator, objects, reset=reset, skip_check_array=True)
            return objects
    if getattr(estimator, "kernel", None) == "ngram":
        raise ValueError("kernel='ngram' compares texts, but X has numbers; pass a list of texts.")
    accept_sparse = "csr" if get_tags(estimator).input_tags.sparse else False
    dtype = [np.float64, np.float32]
    options = {"dtype": dtype, "accept_sparse": accept_sparse, **options}
    frame = narwhals_frame(X)
    if frame is None:
        return validate_data(estimator, X, reset=reset, **options)
    validate_data(estimator, with_names(frame), reset=reset, skip_check_array=True)
    matrix = frame_matrix("X", X, allow_missing=False)
    return check_array(matrix, estimator=estimator, input_name="X", **options)


def _compares_objects(estimator: BaseEstimator) -> bool:
    """Whether the kernel of the estimator, or of one of its views, may compare objects."""
    kernels = [getattr(estimator, "kernel", None)]
    views = getattr(estimator, "views", None)
    if isinstance(views, (list, tuple)):
        kernels += [getattr(view, "kernel", None) for view in views]
    return any(callable(kernel) or kernel == "ngram" for kernel in kernels)
