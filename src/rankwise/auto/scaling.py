"""Scalings of the columns that members of AutoRanker receive."""

from __future__ import annotations

from typing import Any, NamedTuple

import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Indices
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.rankers.pipelines import fit_transform


class Scaling(NamedTuple):
    """How features are scaled.

    Attributes
    ----------
    name : str
        Name in the names of members.
    in_groups : bool
        Whether features are scaled inside their groups.
    with_log : bool
        Whether the logarithm of features is taken first.
    with_standard : bool
        Whether features with standard scaling are added to those scaled in groups.
    """

    name: str
    in_groups: bool = False
    with_log: bool = False
    with_standard: bool = False

    @property
    def has_standard(self) -> bool:
        """Whether there are features that are scaled over all items."""
        is_over_all_items = not self.in_groups
        return is_over_all_items or self.with_standard


STANDARD = Scaling("standard")
LOG_STANDARD = Scaling("log+standard", with_log=True)
GROUP = Scaling("group", in_groups=True)
LOG_GROUP = Scaling("log+group", in_groups=True, with_log=True)
STANDARD_GROUP = Scaling("standard+group", in_groups=True, with_standard=True)


class ScaledView(NamedTuple):
    """A fitted scaler, and the scaled columns."""

    scaler: Any
    columns: Any


def scale_view(X: Any, n_dense: int, scaling: Scaling, groups: Indices | None) -> ScaledView:
    """Fit a scaler to X and scale it.

    Parameters
    ----------
    X : ndarray or sparse array of shape (n_items, n_columns)
        Columns of a view. Those after the first `n_dense` are indicators of values and words.
    n_dense : int
        Number of the first columns.
    scaling : Scaling
        How they are scaled.
    groups : ndarray of int or None
        Number of the group of each item.
    """
    is_sparse = sp.issparse(X)
    scaler: Any
    if scaling == STANDARD:
        scaler = StandardScaler(with_mean=not is_sparse)
    else:
        scaler = GroupScaler(
            with_log=scaling.with_log,
            with_standard=scaling.with_standard,
            with_mean=not is_sparse,
        )
    columns = fit_transform(scaler, X, groups)  # with groups where the scaler has them
    has_indicators = X.shape[1] > n_dense
    if has_indicators:  # do not give rare values and words more weight than frequent ones
        scaler.scale_[n_dense:] = 1.0
        columns = scaler.transform(X)
    return ScaledView(scaler, columns)
