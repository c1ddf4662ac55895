"""Validation of X for an estimator: floats, or objects for kernels that compare objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import validate_data

from rankwise.frames import frame_matrix, narwhals_frame, with_names
from rankwise.preprocessing.group_columns import without_group_columns
from rankwise.validation import as_objects, reject_dtype


def validate_X(estimator: Any, X: Any, *, reset: bool = True, **options: Any) -> Any:
    """The items as a matrix of floats, or of objects if the kernel compares objects.

    Names and number of the features are kept or compared.

    Parameters
    ----------
    estimator : estimator
        Gets `n_features_in_` and `feature_names_in_`, or has them.
    X : array-like, sparse matrix, data frame or Arrow table
        Items.
    reset : bool
        Whether these are the items of a fit.
    **options
        Of scikit-learn's `check_array`. The tags of the estimator say whether X may be sparse.
    """
    reject_dtype("X", X)
    if not reset:
        X = without_group_columns(estimator, X)
    views = getattr(estimator, "views", None)
    users = [estimator, *views] if isinstance(views, (list, tuple)) else [estimator]
    takes_objects = False
    for user in users:
        kernel = getattr(user, "kernel", None)
        takes_objects |= callable(kernel) or kernel == "ngram"
    objects = as_objects("X", X) if takes_objects else None
    if objects is None and getattr(estimator, "kernel", None) == "ngram":
        raise ValueError("kernel='ngram' compares texts, but X has numbers; pass a list of texts.")
    if objects is not None:
        validate_data(estimator, objects, reset=reset, skip_check_array=True)
        return objects
    is_sparse = get_tags(estimator).input_tags.sparse
    dtype = [np.float64, np.float32]
    options = {"dtype": dtype, "accept_sparse": "csr" if is_sparse else False, **options}
    frame = narwhals_frame(X)
    if frame is None:
        return validate_data(estimator, X, reset=reset, **options)
    validate_data(estimator, with_names(frame), reset=reset, skip_check_array=True)
    matrix = frame_matrix("X", X, gaps=False)
    return check_array(matrix, estimator=estimator, input_name="X", **options)
