"""Scaling of features inside groups."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rankwise.arrays import Matrix, MatrixLike, Numbers
from rankwise.fitted_schema import FittedSchema, Model, Values
from rankwise.graphs.supervision import TargetLike, unpack_target
from rankwise.groups import encode_groups
from rankwise.preprocessing.group_columns import refuse_other_keywords, warn_of_group_names
from rankwise.preprocessing.group_scaling import (
    scale_in_groups,
    scale_sparse_in_groups,
    scale_to_range_in_groups,
    signed_log,
)
from rankwise.preprocessing.validate_features import validate_X
from rankwise.validation import check_option, restored_on_failure

METHODS = ("standard", "minmax")


class GroupScaler(TransformerMixin, BaseEstimator):
    """Scale each feature inside each group.

    Use it for search results, where the position of an item relative to the other items of its
    query matters more than the value of a feature.

        z = (x − mean of the group) / standard deviation of the group

    or, with ``method="minmax"``, ``z = (x − minimum of the group)/(maximum − minimum)``, as
    [RankRLS09] section 5.2 scales the features of queries.

    In both cases z is 0 for features that are constant in the group. Features that differ only
    between groups, such as the length of a query, therefore have no effect.

    The scaling of a group depends only on the X of that group, so exact leave-group-out of the
    following ranker stays exact, and `transform` needs the groups of new items. Without groups all
    items, including new ones, are one list, whose mean and standard deviation (or minimum and
    maximum) `fit` learns.

    Parameters
    ----------
    method : {"standard", "minmax"}, default="standard"
        Mean 0 and standard deviation 1 in each group, or minimum 0 and maximum 1.
    with_log : bool, default=False
        Whether to apply ``sign(x) log(1 + |x|)`` first, for counts and other features with long
        tails.
    with_standard : bool, default=False
        Whether to append the columns of `sklearn.preprocessing.StandardScaler`, which uses the mean
        and standard deviation of all items, so that a ranker has both the relative and the absolute
        value.
    with_mean : bool, default=True
        Whether to subtract the mean. Sparse X needs False to stay sparse; a linear ranker, which
        compares items inside groups, learns the same model either way. Only for
        ``method="standard"``.

    Attributes
    ----------
    needs_groups_ : bool
        Whether `fit` had groups; `transform` then requires them.
    standard_ : StandardScaler
        Scaler of the appended columns, or of the single list (if ``with_standard``, or without
        groups).
    list_scaler_ : MinMaxScaler
        Scaler of the single list (if ``method="minmax"``, without groups).
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Names of the features, if X had any.

    Notes
    -----
    In a Pipeline the groups are passed by scikit-learn's metadata routing, which must be enabled.
    `fit` and `transform` request them by default, without ``set_transform_request``.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.pipeline import make_pipeline
    >>> from rankwise import GroupScaler, RankRLSCV
    >>> from rankwise.datasets import make_ranking
    >>> GroupScaler().fit_transform([[1.0], [3.0], [7.0], [9.0]], groups=[0, 0, 1, 1]).T
    array([[-1.,  1., -1.,  1.]])
    >>> X, y, groups = make_ranking(n_queries=30, noise=0.5, random_state=0)[:3]
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     model = make_pipeline(GroupScaler(), RankRLSCV()).fit(X, y, groups=groups)
    ...     scores = model.predict(X, groups=groups)
    """

    _fitted: ClassVar[FittedSchema] = {
        "standard_": Model(),
        "list_scaler_": Model(),
        "needs_groups_": Values(),
    }

    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def __init__(
        self,
        *,
        method: str = "standard",
        with_log: bool = False,
        with_standard: bool = False,
        with_mean: bool = True,
    ) -> None:
        self.method = method
        self.with_log = with_log
        self.with_standard = with_standard
        self.with_mean = with_mean

    @refuse_other_keywords
    @restored_on_failure
    def fit(
        self, X: MatrixLike, y: TargetLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Learn the number of columns; without groups or ``with_standard``, also their scales.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        y : ignored, or target of `make_target`
            A target of `make_target` carries the groups.
        groups : array-like of shape (n_items,), default=None
            Group labels. None makes all items one list, to which new items belong as well.

        Returns
        -------
        GroupScaler
            The fitted scaler.
        """
        check_option("method", self.method, METHODS)
        warn_of_group_names(X, y, groups)
        X = self._check_items(X, reset=True)
        _, group_labels, _ = unpack_target(y, groups)
        encode_groups(group_labels, X.shape[0])  # raises an error for invalid labels
        self.needs_groups_ = group_labels is not None
        self.__dict__.pop("standard_", None)  # of an earlier fit
        self.__dict__.pop("list_scaler_", None)
        if self.with_log:
            X = signed_log(X)
        is_one_list = group_labels is None
        if self.with_standard or (is_one_list and self.method == "standard"):
            self.standard_ = StandardScaler(with_mean=self.with_mean).fit(X)
        if is_one_list and self.method == "minmax":
            self.list_scaler_ = MinMaxScaler().fit(X)
        return self

    def transform(self, X: MatrixLike, groups: ArrayLike | None = None) -> Matrix:
        """Scale items inside their groups.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), default=None
            Group labels; required if `fit` had groups, else ignored.

        Returns
        -------
        ndarray or sparse matrix of shape (n_items, n_features) or (n_items, 2 n_features)
            Scaled columns and, with ``with_standard``, the columns of the StandardScaler.
        """
        check_is_fitted(self)
        X = self._check_items(X, reset=False)
        if groups is None and self.needs_groups_:
            raise ValueError(
                "this GroupScaler was fitted with groups and needs the groups of the new items: "
                "transform(X, groups=groups). In a Pipeline enable metadata routing, "
                "sklearn.set_config(enable_metadata_routing=True), and call predict(X, "
                "groups=groups). If the items are one list, pass groups=[0] * len(X)."
            )
        if self.with_log:
            X = signed_log(X)
        scaled = self._scale(X, groups)
        if not self.with_standard:
            return scaled
        columns = [scaled, self.standard_.transform(X)]
        if sp.issparse(X):
            return sp.hstack(columns, format="csr")
        return np.hstack(columns)

    def _scale(self, X: Matrix, groups: ArrayLike | None) -> Matrix:
        """Columns scaled inside the groups, or in the single list."""
        if not self.needs_groups_ and self.method == "minmax":
            return self.list_scaler_.transform(X)
        if not self.needs_groups_:
            return self.standard_.transform(X)
        codes = encode_groups(groups, X.shape[0]).codes
        if sp.issparse(X):
            return scale_sparse_in_groups(X, codes)
        if self.method == "minmax":
            return scale_to_range_in_groups(X, codes)
        return scale_in_groups(X, codes, with_mean=self.with_mean)

    @refuse_other_keywords
    def fit_transform(
        self, X: MatrixLike, y: TargetLike | None = None, groups: ArrayLike | None = None
    ) -> Matrix:
        """Fit, and scale the same items; see `fit` and `transform`.

        Parameters
        ----------
        X, y, groups
            As in `fit`.

        Returns
        -------
        ndarray or sparse matrix
            As returned by `transform`.
        """
        _, group_labels, _ = unpack_target(y, groups)
        return self.fit(X, y, groups).transform(X, group_labels)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> Numbers:
        """Return the names of the output columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input columns; None takes those seen in `fit`.

        Returns
        -------
        ndarray of str
            ``name_in_group``, followed by the input names for ``with_standard``.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        names_in_group = np.array([f"{name}_in_group" for name in names], dtype=object)
        if self.with_standard:
            return np.concatenate([names_in_group, names])
        return names_in_group

    def _check_items(self, X: MatrixLike, *, reset: bool) -> Matrix:
        if sp.issparse(X) and self.method == "minmax":
            raise ValueError(
                "X is sparse, and method='minmax' would make it dense; use "
                "GroupScaler(with_mean=False)."
            )
        if sp.issparse(X) and self.with_mean:
            raise ValueError(
                "X is sparse, and subtracting the means would make it dense; use "
                "GroupScaler(with_mean=False), with which linear rankers learn the same model."
            )
        return validate_X(self, X, accept_sparse="csr", reset=reset)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean and self.method == "standard"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
