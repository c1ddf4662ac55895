"""Scaling of features inside groups."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from rankwise.fitted_schema import FittedSchema, Model, Values
from rankwise.graphs.supervision import unpack_target
from rankwise.groups import encode_groups
from rankwise.preprocessing.group_columns import refuse_other_keywords, warn_of_group_names
from rankwise.preprocessing.group_scaling import scale_in_groups, scale_sparse_in_groups, signed_log
from rankwise.preprocessing.validate_features import validate_X
from rankwise.validation import restored_on_failure


class GroupScaler(TransformerMixin, BaseEstimator):
    """Scale each feature inside each group, to mean 0 and standard deviation 1 there.

    Use it in search, where it counts how an item stands out among those of its query.

        z = (x − mean of the group) / standard deviation of the group

    and 0 where the group has one value only. A ranker then sees how far an item stands out among
    the items that it is compared with. What differs from group to group only, such as the length
    of a query, has no part in it.

    The scaling of a group depends on the X of that group alone, so exact leave-group-out of the
    ranker that follows stays exact. And it needs the groups again when new items are scored.
    Without groups all items, new ones too, are one list, whose mean and deviation `fit` learns.

    Parameters
    ----------
    with_log : bool
        Take ``sign(x) log(1 + |x|)`` first: for counts and other features with long tails.
    with_standard : bool
        Append the columns as `sklearn.preprocessing.StandardScaler` scales them, by the mean and
        deviation of all items. So a ranker has both, the standing in the group and the value.
    with_mean : bool
        Take off the mean. Sparse X needs False, which keeps it sparse; a linear ranker, which
        compares inside groups, learns the same from it.

    Attributes
    ----------
    needs_groups_ : bool
        Whether `fit` had groups; `transform` then asks for them.
    standard_ : StandardScaler
        What scales the appended columns, or the one list (if ``with_standard``, or without
        groups).
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    Notes
    -----
    In a Pipeline the groups come by scikit-learn's metadata routing, which has to be on. Both
    `fit` and `transform` ask for them by themselves, without ``set_transform_request``.

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
        "needs_groups_": Values(),
    }

    __metadata_request__fit = {"groups": True}  # noqa: RUF012
    __metadata_request__transform = {"groups": True}  # noqa: RUF012

    def __init__(
        self, *, with_log: bool = False, with_standard: bool = False, with_mean: bool = True
    ) -> None:
        self.with_log = with_log
        self.with_standard = with_standard
        self.with_mean = with_mean

    @refuse_other_keywords
    @restored_on_failure
    def fit(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Self:
        """Learn the columns; of items in groups, only ``with_standard`` learns their values.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        y : ignored, or target of `make_target`
            Such a target has the groups.
        groups : array-like of shape (n_items,), optional
            Group labels. None makes all items one list, to which new items belong as well.

        Returns
        -------
        GroupScaler
            The fitted scaler.
        """
        warn_of_group_names(X, y, groups)
        X = self._check_items(X, reset=True)
        groups = unpack_target(y, groups)[1]
        encode_groups(groups, X.shape[0])
        self.needs_groups_ = groups is not None
        self.__dict__.pop("standard_", None)
        if self.with_standard or groups is None:
            logged = signed_log(X) if self.with_log else X
            self.standard_ = StandardScaler(with_mean=self.with_mean).fit(logged)
        return self

    def transform(self, X: Any, groups: ArrayLike | None = None) -> Any:
        """Scale items inside their groups.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_items, n_features)
            Items.
        groups : array-like of shape (n_items,), optional
            Group labels, whatever they are; needed if `fit` had some, else not looked at.

        Returns
        -------
        ndarray or sparse matrix of shape (n_items, n_features) or (n_items, 2 n_features)
            Scaled columns and, with ``with_standard``, the columns of the StandardScaler.
        """
        check_is_fitted(self)
        X = self._check_items(X, reset=False)
        if groups is None and self.needs_groups_:
            raise ValueError(
                "this GroupScaler was fitted with groups and needs those of the new items, too: "
                "transform(X, groups=groups). In a Pipeline turn metadata routing on, "
                "sklearn.set_config(enable_metadata_routing=True), and call predict(X, "
                "groups=groups). If the items are one list, pass groups=[0] * len(X)."
            )
        X = signed_log(X) if self.with_log else X
        if not self.needs_groups_:
            scaled = self.standard_.transform(X)
        elif sp.issparse(X):
            scaled = scale_sparse_in_groups(X, encode_groups(groups, X.shape[0]).codes)
        else:
            codes = encode_groups(groups, len(X)).codes
            scaled = scale_in_groups(X, codes, with_mean=self.with_mean)
        if not self.with_standard:
            return scaled
        both = [scaled, self.standard_.transform(X)]
        return sp.hstack(both, format="csr") if sp.issparse(X) else np.hstack(both)

    @refuse_other_keywords
    def fit_transform(self, X: Any, y: Any = None, groups: ArrayLike | None = None) -> Any:
        """Fit, and scale the same items; see `fit` and `transform`."""
        return self.fit(X, y, groups).transform(X, unpack_target(y, groups)[1])

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[Any]:
        """Names of the columns: ``name_in_group``, and the plain names for ``with_standard``."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        scaled = np.array([f"{name}_in_group" for name in names], dtype=object)
        return np.concatenate([scaled, names]) if self.with_standard else scaled

    def _check_items(self, X: Any, *, reset: bool) -> Any:
        if sp.issparse(X) and self.with_mean:
            raise ValueError(
                "X is sparse, and GroupScaler would make it dense to take off the means; use "
                "GroupScaler(with_mean=False), which linear rankers learn the same from."
            )
        return validate_X(self, X, accept_sparse="csr", reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self.with_mean
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
