"""The normal equations of RankRLS, added up over batches of rows in any order."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Set
from dataclasses import replace
from typing import Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import Tags

from rankwise.arrays import (
    Array,
    Indices,
    Labels,
    Matrix,
    MatrixLike,
    dense_rows,
    take_weights,
    weights_or_ones,
)
from rankwise.errors import ClosedGroupError
from rankwise.graphs import ScoreGraph
from rankwise.graphs.gram import plain_system
from rankwise.graphs.supervision import Preferences, Relevance, TargetLike, read_y, unpack_target
from rankwise.groups import encode_groups, indices_by_group
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.ranking_problem import check_beta
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.normal_equations import GroupMoments, NormalEquations, WeightedSums
from rankwise.validation import check_alphas, check_float_array, check_weights

OPEN_BYTES = 2**27  # for groups that later batches may continue; at least four Gram matrices
NAME_WITHOUT_GROUPS = None  # of the one group that has all rows if groups is None


class PairOptions(TypedDict):
    """Which pairs of a group are compared, and how."""

    cost: str
    ties: str
    group_weight: str


class SumOptions(PairOptions):
    """Parameters of `SufficientStatistics`."""

    beta: float


class EarlierBatches(BaseEstimator):
    """Columns and outputs of the first batches, which later batches must share.

    scikit-learn's error messages about unexpected columns contain the name of this class.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Names of the columns, if the batches are data frames.
    output_shape_ : tuple
        () for one output, (n_outputs,) for y of two dimensions.
    """

    n_features_in_: int
    feature_names_in_: Labels
    output_shape_: tuple[int, ...]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class BatchSums:
    """The normal equations of a linear RankRLS, added up over batches of rows.

    The sums are ``Rᵀ L R`` and ``Rᵀ d`` ([RankRLS09] equation 28); their size does not depend on
    the number of rows.

    Parameters
    ----------
    cost, ties, group_weight, beta
        As in `RankRLS`.
    """

    def __init__(
        self,
        *,
        cost: str = "magnitude",
        ties: str = "include",
        group_weight: str = "pairs",
        beta: float = 0.0,
    ) -> None:
        check_beta(beta)
        self._options: PairOptions = {"cost": cost, "ties": ties, "group_weight": group_weight}
        self.beta = float(beta)
        self._input_schema = EarlierBatches()
        self._equations = NormalEquations()
        # groups that later batches may continue, least recently seen first
        self._open_groups: dict[Hashable, GroupMoments] = {}
        # number of rows of positive weight of each closed group
        self._n_rows_of_closed_groups: dict[Hashable, int] = {}

    @property
    def rule(self) -> SumOptions:
        """Parameters of the sums."""
        return {**self._options, "beta": self.beta}

    @property
    def n_items(self) -> int:
        """Number of rows added so far."""
        return self._equations.rows.n_terms

    @property
    def n_pairs(self) -> int:
        """Number of pairs of these rows."""
        return self._equations.pairs.n_terms

    @property
    def pair_distance(self) -> float:
        """Mean squared distance between the items of a pair, 0 without pairs."""
        pairs = self._equations.pairs
        if not pairs.n_terms:
            return 0.0
        # the trace is Σ ω ‖r_i − r_j‖² over the pairs (i, j) of rows r with weights ω
        return float(np.trace(pairs.gram) / pairs.weight)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (n_outputs,) for y of two dimensions."""
        return self._input_schema.output_shape_

    @property
    def open_bytes(self) -> int:
        """Memory in bytes of the groups that later batches may continue."""
        return sum(group.nbytes for group in self._open_groups.values())

    @property
    def takes_parts(self) -> bool:
        """Whether a group may have rows in several batches."""
        # the pairs then do not depend on the scores, so moments of the rows are sufficient
        return self._options["cost"] == "magnitude" and self._options["ties"] == "include"

    @single_threaded
    def add(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        whole_groups: bool = False,
        is_sorted: bool = False,
    ) -> Self:
        """Add a batch of rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            At least one row; all batches have the same features.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Scores, or a target of `make_target`; several outputs only for ``cost="magnitude",
            ties="include"``.
        groups : array-like of shape (n_rows,), optional
            Group labels. None in all batches puts all rows of all batches in one group.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, as in `RankRLS.fit`; 1 if they are not passed.
        whole_groups : bool, default=False
            Whether no group of this batch has rows in another batch. Only the labels of the groups
            are then stored, which saves memory and time.
        is_sorted : bool, default=False
            Whether the rows of all batches are sorted by group, so that only the first and the last
            group of a batch may have rows in other batches; nearly as fast.

        Returns
        -------
        SufficientStatistics
            Itself.

        Raises
        ------
        ValueError
            If a group continues that is no longer stored; nothing is added then.
        """
        X, target, rows_by_group = self._read_batch(X, y, groups, sample_weight)
        self._check_groups(rows_by_group.keys())
        equations = self._batch_equations(X, target)  # of pairs inside the batch
        may_split_groups = self.takes_parts and not whole_groups
        last_row = len(target.y) - 1
        # a closed group must have no rows in later batches
        n_rows_of_closed_groups: dict[Hashable, int] = {}
        moments_of_groups: dict[Hashable, GroupMoments] = {}  # for pairs with rows of other batches
        for name, group_rows in rows_by_group.items():
            # May later batches have rows of this group? If rows are sorted by group, only groups at
            # the edges of the batch have rows in other batches.
            is_at_edge = group_rows[0] == 0 or group_rows[-1] == last_row
            stays_open = may_split_groups and (is_at_edge or not is_sorted)
            weighted_rows = _rows_of_positive_weight(target, group_rows)
            if not stays_open:
                n_rows_of_closed_groups[name] = len(weighted_rows)
            has_earlier_rows = name in self._open_groups
            # moments give the pairs with rows of later or earlier batches
            if len(weighted_rows) and (stays_open or has_earlier_rows):
                moments_of_groups[name] = _group_moments(X, target, weighted_rows)
        self._add_equations(equations, moments_of_groups)
        self._close_groups(n_rows_of_closed_groups)
        return self

    def merge(self, other: BatchSums) -> Self:
        """Add the rows of other sums, which are not modified.

        Both may have rows of the same groups if `add` may split groups. The order of merges has
        no effect.

        Parameters
        ----------
        other : SufficientStatistics
            Sums with the same options and columns.

        Returns
        -------
        SufficientStatistics
            This object.
        """
        self._check_same_problem(other)
        if not other.n_items:
            return self
        self._check_groups(other._open_groups.keys())
        self._check_groups(other._n_rows_of_closed_groups.keys())
        other._check_groups(self._open_groups.keys())
        self._input_schema = copy.copy(other._input_schema)  # equal, unless this has no rows
        self._add_equations(other._equations, other._open_groups)
        self._n_rows_of_closed_groups |= other._n_rows_of_closed_groups
        return self

    def subtract(self, other: BatchSums) -> Self:
        """Subtract the rows of other sums, which were added or merged before.

        Use it for a moving window: store the sums of each day, merge the new day and subtract the
        oldest one. Groups are subtracted as a whole or, if `add` may split them, in the parts that
        were added.

        Parameters
        ----------
        other : SufficientStatistics
            Sums of rows that this object contains.

        Returns
        -------
        SufficientStatistics
            This object.
        """
        self._check_same_problem(other)
        if not other.n_items:
            return self
        equations = self._equations
        n_rows_by_group = self._n_rows_by_group()
        n_removed_by_group = other._n_rows_by_group()
        remaining_groups: dict[Hashable, GroupMoments] = {}
        for name, n_removed in n_removed_by_group.items():
            n_rows = n_rows_by_group.get(name)  # None if no row of it was added
            is_whole_group = n_removed == n_rows
            if is_whole_group:  # its pairs are subtracted below
                continue
            group = self._open_groups.get(name)
            removed = other._open_groups.get(name)
            if group is None or removed is None or group.n_items < n_removed:
                raise ValueError(
                    f"{n_removed} rows of {_group_text(name)} cannot be subtracted: "
                    f"{n_rows or 0} rows of it were added. Subtract only whole groups that were "
                    "added before."
                )
            remaining = group.without(removed)
            # subtract the pairs of a removed and a remaining row: the pairs of the whole group,
            # minus the pairs of two remaining rows, minus the pairs of two removed rows
            equations = equations.add_pairs(self._pairs_inside(remaining))
            equations = equations.subtract_pairs(self._pairs_inside(group))
            equations = equations.add_pairs(self._pairs_inside(removed))
            remaining_groups[name] = remaining
        self._equations = equations.subtract(other._equations)  # the pairs inside removed rows
        for name in n_removed_by_group:
            self._open_groups.pop(name, None)
            self._n_rows_of_closed_groups.pop(name, None)
        self._open_groups.update(remaining_groups)
        return self

    def coefficients(self, alphas: Array) -> Array:
        """Weights of the features, shape (n_alphas, n_features, n_outputs); 0 without a pair.

        Parameters
        ----------
        alphas : ndarray of shape (n_alphas,)
            Regularization.

        Returns
        -------
        ndarray of shape (n_alphas, n_features, n_outputs)
            Weights.
        """
        return self._equations.solve(self.beta, alphas)

    @single_threaded
    def held_out(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike,
        alphas: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Array:
        """Scores of rows by the models without their group: a second pass over the batches.

        The scores equal those of models refitted without the group (exact leave-group-out). To
        select alpha, average a metric over the batches for each alpha.

        Parameters
        ----------
        X, y, groups, sample_weight
            Rows that were added before. All rows of a group must be in one batch, unless the group
            is still open.
        alphas : array-like of shape (n_alphas,)
            Positive numbers.

        Returns
        -------
        ndarray of shape (n_rows, n_alphas) or (n_rows, n_outputs, n_alphas)
            Held-out scores.
        """
        checked_alphas = check_alphas(alphas, "alphas")
        if groups is None or self._is_one_list:
            raise ValueError(
                "a group cannot be left out, because without groups all rows are one list; pass "
                "groups."
            )
        X, target, rows_by_group = self._read_batch(X, y, groups, sample_weight)
        scores = np.empty((*target.y.shape, len(checked_alphas)))
        for name, group_rows in rows_by_group.items():
            held_out_equations = self._group_equations(name, X, target, group_rows)
            train_equations = self._equations.subtract(held_out_equations)
            if not train_equations.pairs.n_terms and self.beta < 1:
                raise ValueError(f"without {_group_text(name)} there is no pair to train on.")
            weights_by_alpha = train_equations.solve(self.beta, checked_alphas)
            X_test = X[group_rows]
            scores_by_alpha = [X_test @ weights for weights in weights_by_alpha]
            scores[group_rows] = np.stack(scores_by_alpha, axis=-1)
        return scores.reshape((len(scores), *self.output_shape, len(checked_alphas)))

    def _group_equations(
        self, name: Hashable, X: Matrix, target: Relevance, group_rows: Indices
    ) -> NormalEquations:
        """The normal equations of a group that was added before."""
        if name in self._open_groups:
            n_features = self._input_schema.n_features_in_
            return self._open_groups[name].equations(n_features, self._options["group_weight"])
        rows = _rows_of_positive_weight(target, group_rows)
        n_added_rows = self._n_rows_of_closed_groups.get(name)
        if n_added_rows != len(rows):
            raise ValueError(
                f"{_group_text(name)} has {len(rows)} rows in this batch, but "
                f"{n_added_rows or 0} were added; pass all rows of a group together."
            )
        one_group = encode_groups(None, len(rows))  # all these rows
        weight = take_weights(target.weight, rows)
        return self._batch_equations(X[rows], Relevance(target.y[rows], one_group, weight))

    def close_groups(self) -> Self:
        """Declare that no group added so far has rows in later batches, which frees memory.

        Returns
        -------
        SufficientStatistics
            Itself.
        """
        self._close_groups({name: group.n_items for name, group in self._open_groups.items()})
        return self

    def _read_batch(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[Matrix, Relevance, dict[Hashable, Indices]]:
        """Validate a batch: rows, target with outputs in columns, and rows of each group.

        Weights are not rescaled towards 1, because the weights of all batches must have one scale.
        """
        is_first_batch = not self.n_items
        y, groups, weight = unpack_target(y, groups, sample_weight)
        target = read_y(y, groups, X=X)
        if isinstance(target, Preferences):
            raise ValueError(
                f"y is a {type(y).__name__}, whose preferences cannot be split into batches; pass "
                "scores and groups."
            )

        # all batches have the columns and outputs of the first one
        X = validate_X(self._input_schema, X, reset=is_first_batch)
        scores = target.y
        if is_first_batch:
            n_features = X.shape[1]
            advice = "use fit with solver='iterative' for this many features"
            check_matrix_fits(n_features, n_features, "a Gram matrix", advice)
            self._input_schema.output_shape_ = scores.shape[1:]
        elif scores.shape[1:] != self.output_shape:
            raise ValueError(
                f"y has shape {scores.shape}, but the batches before had outputs of shape "
                f"{self.output_shape}; give every batch the same outputs."
            )
        if weight is not None:  # `read_y` may scale the weights, each batch by another factor
            weight = _check_unscaled_weights(weight, len(scores))
        output_columns = scores.reshape(len(scores), -1)
        checked_target = replace(target, y=output_columns, weight=weight)

        group_names: list[Hashable] = [NAME_WITHOUT_GROUPS]
        if groups is not None:
            group_names = target.groups.labels.tolist()
        rows_of_groups = indices_by_group(target.groups.codes)
        rows_by_group = dict(zip(group_names, rows_of_groups, strict=True))
        return X, checked_target, rows_by_group

    def _batch_equations(self, X: Matrix, target: Relevance) -> NormalEquations:
        """The normal equations of a batch; sums over its rows only if beta > 0."""
        y = target.y
        n_rows, n_outputs = y.shape
        graph_target = target
        if n_outputs == 1:  # the graph needs a flat y
            graph_target = replace(target, y=y[:, 0])
        # Sums over pairs: Rᵀ L R and Rᵀ d. R: features, L: Laplacian of the graph of pairs, d: its
        # divergence (for each row, the sum of its signed preferences over the others)
        graph = ScoreGraph(graph_target, **self._options)
        with np.errstate(over="ignore", invalid="ignore"):
            gram, moment = graph.system(X, graph.divergence.reshape(y.shape))
        if not np.isfinite(gram.diagonal()).all():
            raise ValueError("the squares of some features overflow; scale the features.")
        pair_sums = WeightedSums(gram, moment, graph.total_weight, graph.n_pairs)

        # Sums over single rows, for regression on their scores: Rᵀ D R and Rᵀ D y. D: weights
        weight = weights_or_ones(target.weight, n_rows)
        total_weight = float(weight.sum())
        if self.beta == 0:  # no regression
            return NormalEquations(pair_sums, WeightedSums(0.0, 0.0, total_weight, n_rows))
        row_gram, row_moment = plain_system(X, y * weight[:, None], target.weight)
        row_sums = WeightedSums(row_gram, row_moment, total_weight, n_rows)
        return NormalEquations(pair_sums, row_sums)

    def _add_equations(
        self, equations: NormalEquations, moments_of_groups: dict[Hashable, GroupMoments]
    ) -> None:
        """Add sums, and the pairs between the new rows and the old ones of the same groups.

        The groups remain open, as far as memory allows.
        """
        for name, new_group in moments_of_groups.items():
            old_group = self._open_groups.pop(name, None)
            group = new_group
            if old_group is not None:
                group = new_group.joined(old_group)
                # add the pairs of a new and an old row: the pairs of the joined group, minus the
                # pairs of two new rows, minus the pairs of two old rows
                equations = equations.add_pairs(self._pairs_inside(group))
                equations = equations.subtract_pairs(self._pairs_inside(new_group))
                equations = equations.subtract_pairs(self._pairs_inside(old_group))
            self._open_groups[name] = group
        self._equations = self._equations.add(equations)
        self._close_oldest_groups()

    def _close_oldest_groups(self) -> None:
        """Close the least recently seen groups while the open groups need too much memory."""
        excess_bytes = self.open_bytes - self._max_open_bytes
        for name, group in list(self._open_groups.items()):  # least recently seen first
            if excess_bytes <= 0:
                break
            excess_bytes -= group.nbytes
            self._close_groups({name: group.n_items})

    def _pairs_inside(self, group: GroupMoments) -> WeightedSums:
        """Sums over the pairs of the rows of a group."""
        return group.pairs(self._input_schema.n_features_in_, self._options["group_weight"])

    def _close_groups(self, n_rows_of_groups: dict[Hashable, int]) -> None:
        """Drop the moments of groups, and store their number of rows of positive weight."""
        for name, n_rows in n_rows_of_groups.items():
            # of a closed group only the number of rows is kept
            group = self._open_groups.pop(name, None)
            if group is not None:  # includes rows of earlier batches
                n_rows = group.n_items
            self._n_rows_of_closed_groups[name] = n_rows

    def _n_rows_by_group(self) -> dict[Hashable, int]:
        """Number of rows of positive weight of each group."""
        n_rows = dict(self._n_rows_of_closed_groups)
        for name, group in self._open_groups.items():
            n_rows[name] = group.n_items
        return n_rows

    @property
    def _is_one_list(self) -> bool:
        """Whether the batches so far had no groups, so that all their rows are one list."""
        is_open = NAME_WITHOUT_GROUPS in self._open_groups
        return is_open or NAME_WITHOUT_GROUPS in self._n_rows_of_closed_groups

    @property
    def _max_open_bytes(self) -> int:
        """Bytes for the moments of open groups."""
        n_columns = self._input_schema.n_features_in_ + int(np.prod(self.output_shape))
        bytes_of_gram = 8 * n_columns**2
        return max(OPEN_BYTES, 4 * bytes_of_gram)

    def _check_same_problem(self, other: BatchSums) -> None:
        """Raise an error for sums with other options or other columns."""
        if not isinstance(other, BatchSums):
            raise TypeError(
                f"expected rankwise.SufficientStatistics, got a {type(other).__name__}."
            )
        problem = self._describe_problem()
        other_problem = other._describe_problem()
        for name in problem.keys() & other_problem.keys():
            if problem[name] != other_problem[name]:
                raise ValueError(
                    f"{name} of the sums differ, {problem[name]!r} and {other_problem[name]!r}; "
                    "only sums of the same problem and the same columns can be combined."
                )

    def _describe_problem(self) -> dict[str, object]:
        """Properties that sums to be combined share; no columns before the first row."""
        problem: dict[str, object] = dict(self.rule)
        if self.n_items:
            problem["n_features_in_"] = self._input_schema.n_features_in_
            problem["feature_names_in_"] = list(
                vars(self._input_schema).get("feature_names_in_", ())
            )
            problem["output_shape_"] = self.output_shape
        return problem

    def _check_groups(self, names: Set[Hashable]) -> None:
        """Raise an error for closed groups, and for batches with and without groups."""
        has_earlier_groups = bool(self._open_groups or self._n_rows_of_closed_groups)
        if has_earlier_groups and names:
            is_now_one_list = NAME_WITHOUT_GROUPS in names
            if self._is_one_list != is_now_one_list:
                raise ValueError(
                    "groups are given in some batches and None in others; give every batch its "
                    "groups, or none at all if all rows are one list."
                )
        closed_names = self._n_rows_of_closed_groups.keys() & names
        if closed_names:
            example = _group_text(min(closed_names, key=str))
            raise ClosedGroupError(
                f"{example} has rows in several batches, but its earlier "
                f"rows are no longer kept ({len(closed_names)} such groups). Only with "
                "cost='magnitude' and ties='include' may a group be split, in batches without "
                "whole_groups, and while the groups seen since take at most "
                f"{self._max_open_bytes / 2**20:,.0f} MiB. Pass the rows of a group in the same "
                "batch, for example by sorting the rows by group."
            )


def _check_unscaled_weights(weight: ArrayLike, n_rows: int) -> Array:
    """Checked weights; weights that `check_weights` would rescale raise an error."""
    original_weight = check_float_array("sample_weight", weight)
    checked_weight = check_weights(weight, n_rows)
    if not np.array_equal(original_weight, checked_weight):
        raise ValueError(
            "sample_weight is so large or so small that products of weights overflow or "
            "underflow; multiply all weights by one factor that brings them near 1."
        )
    return checked_weight


def _rows_of_positive_weight(target: Relevance, rows: Indices) -> Indices:
    """The rows that have a positive weight."""
    if target.weight is None:
        return rows
    has_weight = target.weight[rows] > 0
    return rows[has_weight]


def _group_moments(X: Matrix, target: Relevance, rows: Indices) -> GroupMoments:
    """Moments of a group from its rows of positive weight."""
    weight = weights_or_ones(take_weights(target.weight, rows), len(rows))
    features_and_scores = np.hstack([dense_rows(X[rows]), target.y[rows]])
    return GroupMoments.of_rows(features_and_scores, weight)


def _group_text(name: Hashable) -> str:
    """Name of a group in messages."""
    if name is NAME_WITHOUT_GROUPS:
        return "the one list of all rows"
    return f"group {name!r}"
