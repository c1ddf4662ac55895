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

OPEN_BYTES = 2**27  # for groups that may go on, at least four Gram matrices
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
    """Columns and outputs of the batches so far, which later batches must have, too.

    scikit-learn names this class in its messages about other columns.

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

    ``Rᵀ L R`` and ``Rᵀ d`` ([RankRLS09] equation 28), so their size does not depend on the number
    of rows.

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
        # groups that later batches may continue, in the order in which they were seen last
        self._open_groups: dict[Hashable, GroupMoments] = {}
        # number of rows of positive weight of all other groups
        self._n_rows_of_closed_groups: dict[Hashable, int] = {}

    @property
    def rule(self) -> SumOptions:
        """Parameters of the sums."""
        return {**self._options, "beta": self.beta}

    @property
    def n_items(self) -> int:
        """Rows so far."""
        return self._equations.rows.n_terms

    @property
    def n_pairs(self) -> int:
        """Pairs so far."""
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
        """Memory of the groups that may go on."""
        return sum(group.nbytes for group in self._open_groups.values())

    @property
    def takes_parts(self) -> bool:
        """Whether a group may have rows in several batches."""
        # then all pairs of a group count, whatever their scores, and moments of the rows suffice
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
            At least one row; always with the same features.
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
            Scores, or a target of `make_target`; several outputs only for ``cost="magnitude",
            ties="include"``.
        groups : array-like of shape (n_rows,), optional
            Group labels. None in all batches puts all rows of all batches in one group.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows, as in `RankRLS.fit`; batches without have weights of 1.
        whole_groups : bool
            Promise that no group of this batch has rows in another one: only their labels are
            kept, which saves memory and time.
        is_sorted : bool
            Promise that all rows come sorted by group, so that only the first and the last group of
            a batch may have rows in others; nearly as fast.

        Returns
        -------
        SufficientStatistics
            Itself.

        Raises
        ------
        ValueError
            If a group comes back that is no longer kept; nothing is added then.
        """
        X, target, rows_by_group = self._read_batch(X, y, groups, sample_weight)
        self._check_groups(rows_by_group.keys())
        equations = self._batch_equations(X, target)  # of pairs inside the batch
        may_split_groups = self.takes_parts and not whole_groups
        last_row = len(target.y) - 1
        # closed groups are those of which no later batch may have rows
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

        For data that expire: keep the sums of each day, add the new day and subtract the old one.
        Groups are subtracted as a whole or, if `add` may split them, in the parts that were added.

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
            if is_whole_group:  # all its pairs are among those of `other`, subtracted below
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
            # take away the pairs of a removed row and a remaining one, which are those inside the
            # group less those inside the remaining and those inside the removed rows
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

        Leave-group-out, exact: what training again on all rows but those of the group gives.
        Average a metric over the batches for each alpha, and take the best.

        Parameters
        ----------
        X, y, groups, sample_weight
            Rows that were added before. A group must be whole in a batch, unless it is among those
            seen last that may go on.
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
        """Promise that no group so far has rows in batches to come, which frees memory.

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

        The weights of batches belong together, so that they are not brought nearer to 1.
        """
        is_first_batch = not self.n_items
        y, groups, weight = unpack_target(y, groups, sample_weight)
        target = read_y(y, groups, X=X)
        if isinstance(target, Preferences):
            raise ValueError(
                f"y is a {type(y).__name__}, whose preferences cannot be split into batches; pass "
                "scores and groups."
            )

        # columns and outputs are those of the first batch
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
        # divergence (of each row, by how much it is preferred to the others)
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
                # add the pairs of a new row and an old one, which are those inside the joined group
                # less those inside the new and those inside the old rows
                equations = equations.add_pairs(self._pairs_inside(group))
                equations = equations.subtract_pairs(self._pairs_inside(new_group))
                equations = equations.subtract_pairs(self._pairs_inside(old_group))
            self._open_groups[name] = group
        self._equations = self._equations.add(equations)
        self._close_oldest_groups()

    def _close_oldest_groups(self) -> None:
        """Close the groups seen longest ago while the open ones need too much memory."""
        excess_bytes = self.open_bytes - self._max_open_bytes
        for name, group in list(self._open_groups.items()):  # the one seen longest ago first
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
        """Raise an error for groups that are closed, or missing in only one of the batches."""
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
    """Weights, checked; those that `check_weights` would bring nearer to 1 raise an error."""
    original_weight = check_float_array("sample_weight", weight)
    checked_weight = check_weights(weight, n_rows)
    if not np.array_equal(original_weight, checked_weight):
        raise ValueError(
            "sample_weight is so large or so small that products of weights overflow or "
            "underflow; multiply all weights by one factor that brings them near 1."
        )
    return checked_weight


def _rows_of_positive_weight(target: Relevance, rows: Indices) -> Indices:
    """Those of the rows that have a positive weight."""
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
