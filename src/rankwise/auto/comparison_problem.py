"""Training data of AutoRanker's members for comparisons: items, comparisons and held-out folds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array, Indices
from rankwise.auto.capped_link import log_losses, wrong_shares
from rankwise.auto.comparison_folds import HeldOutComparisons
from rankwise.auto.item_cells import ItemCells
from rankwise.auto.item_comparisons import ItemComparisons
from rankwise.auto.pair_models import JointPairs, PairTrees
from rankwise.preprocessing.hinge_features import HingeFeatures

MAX_HINGES = 1000  # columns of an expansion by hinges
MAX_KNOTS = 8


@dataclass(frozen=True, eq=False)
class LinearFeatures:
    """Features of linear members: scaled columns and their hinges.

    Attributes
    ----------
    steps : list of transformer
        Fitted scaler and hinges.
    R : ndarray or sparse array of shape (n_items, n_features)
        The features.
    """

    steps: list[Any]
    R: Any

    @classmethod
    def of_view(cls, X: Any, n_dense: int) -> LinearFeatures:
        """Scale the columns and add hinges of the first `n_dense`, which are not indicators."""
        is_sparse = sp.issparse(X)
        scaler = StandardScaler(with_mean=not is_sparse).fit(X)
        scaler.scale_[n_dense:] = 1.0  # do not give rare values more weight than frequent ones
        scaled = scaler.transform(X)
        n_columns_of_one_knot = 2 * n_dense  # each column, and a hinge of it
        if n_dense == 0 or n_columns_of_one_knot > MAX_HINGES:
            return cls([scaler], scaled)
        n_affordable_knots = MAX_HINGES // n_dense - 1  # k knots turn a column into k + 1
        n_hinged_columns = None  # all of them
        if is_sparse:
            n_hinged_columns = n_dense
        hinges = HingeFeatures(min(MAX_KNOTS, n_affordable_knots), n_columns=n_hinged_columns)
        return cls([scaler, hinges], hinges.fit_transform(scaled))


@dataclass(frozen=True, eq=False)
class ComparisonProblem:
    """Items, comparisons and held-out folds.

    Attributes
    ----------
    linear : LinearFeatures
        Features of linear members.
    view : {"dense", "wide"}
        View that they are computed from.
    cells : ItemCells or None
        Columns for trees and pairs; None for sparse items.
    comparisons : ItemComparisons
        All comparisons.
    hold_out : HeldOutComparisons
        Folds of them.
    name_codes : ndarray of int, shape (n_items,), or None
        Number of the item with this name; None if items have no names.
    is_time_over : callable
        Returns whether the time limit is reached.
    """

    linear: LinearFeatures
    view: str
    cells: ItemCells | None
    comparisons: ItemComparisons
    hold_out: HeldOutComparisons
    name_codes: Indices | None
    is_time_over: Callable[[], bool]

    @property
    def n_names(self) -> int:
        """Number of different names of the items."""
        if self.name_codes is None:
            return 0
        return int(self.name_codes.max()) + 1

    @property
    def n_covariates(self) -> int:
        """Number of covariates that are numbers."""
        return int(self.comparisons.covariates.shape[1])

    def held_out_loss(self, differences: Array, min_upset_probability: float) -> float:
        """Mean log loss of held-out comparisons."""
        first_win_share = self.hold_out.comparisons.first_win_share
        return self.hold_out.mean(log_losses(differences, first_win_share, min_upset_probability))

    def wrong_shares(self, differences: Array) -> Array:
        """1 for each held-out comparison with the wrong winner; see `wrong_shares`."""
        return wrong_shares(differences, self.hold_out.comparisons.first_win_share)


@dataclass(frozen=True, eq=False)
class TrainedOrder:
    """A ranker of items that was trained on all comparisons.

    Attributes
    ----------
    ranker : estimator
        Scores items.
    view : {"wide", "cells"}
        Columns that it receives.
    covariate_coef : ndarray of shape (n_covariates,)
        Effects of the covariates.
    """

    ranker: Any
    view: str
    covariate_coef: Array


@dataclass(frozen=True, eq=False)
class TrainedStrengths:
    """Strengths of the items with names, and effects of the covariates."""

    strengths: Array
    covariate_coef: Array


@dataclass(frozen=True, eq=False)
class TrainedPairs:
    """A model of both items of a comparison."""

    model: JointPairs | PairTrees


TrainedPairMember = TrainedOrder | TrainedStrengths | TrainedPairs


@dataclass(frozen=True, eq=False)
class EvaluatedPairMember:
    """A member with its held-out differences of scores.

    Attributes
    ----------
    name : str
        Name in the table of members.
    is_order : bool
        Whether the differences are differences of item scores.
    differences : ndarray of shape (n_held_out,)
        Held-out differences.
    min_upset_probability : float
        The c of the capped link.
    train : callable
        Trains the member on all comparisons.
    alpha : float, default=nan
        The selected penalty of a linear member.
    n_trees : int, default=0
        The selected number of trees.
    """

    name: str
    is_order: bool
    differences: Array
    min_upset_probability: float
    train: Callable[[], TrainedPairMember]
    alpha: float = np.nan
    n_trees: int = 0
