"""The normal equations of RankRLS, added up over batches of rows in any order."""

from __future__ import annotations

import copy
import io
import json
import zipfile
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
ONE_LIST = None  # the name of the group that all rows are in if there are no groups
FORMAT = "rankwise.SufficientStatistics 2"
DAMAGES = (ValueError, KeyError, TypeError, EOFError, OSError, RuntimeError, zipfile.BadZipFile)


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
        self._columns = EarlierBatches()
        self._equations = NormalEquations()
        self._open: dict[Hashable, GroupMoments] = {}  # those seen last are last
        self._closed: dict[Hashable, int] = {}  # and how many rows of positive weight they had

    @property
    def rule(self) -> SumOptions:
        """Parameters of the sums."""
        return {**self._options, "beta": self.beta}

    @property
    def n_items(self) -> int:
        """Rows so far."""
        return self._equations.rows.n

    @property
    def n_pairs(self) -> int:
        """Pairs so far."""
        return self._equations.pairs.n

    @property
    def pair_distance(self) -> float:
        """Mean squared distance between the items of a pair, 0 without pairs."""
        pairs = self._equations.pairs
        if not pairs.n:
            return 0.0
        return float(np.trace(pairs.gram) / pairs.weight)

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (n_outputs,) for y of two dimensions."""
        return self._columns.output_shape_

    @property
    def open_bytes(self) -> int:
        """Memory of the groups that may go on."""
        return sum(group.nbytes for group in self._open.values())

    @property
    def takes_parts(self) -> bool:
        """Whether a group may have rows in several batches."""
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
        X, target, rows_by_group = self._read(X, y, groups, sample_weight)
        self._check_groups(rows_by_group.keys())
        equations = self._batch_equations(X, target)
        can_continue = self.takes_parts and not whole_groups
        last_row = len(target.y) - 1
        n_rows_of_closed: dict[Hashable, int] = {}
        open_groups: dict[Hashable, GroupMoments] = {}
        for name, group_rows in rows_by_group.items():
            is_at_edge = group_rows[0] == 0 or group_rows[-1] == last_row
            stays_open = can_continue and (is_at_edge or not is_sorted)
            weighted_rows = _weighted_rows(target, group_rows)
            if not stays_open:
                n_rows_of_closed[name] = len(weighted_rows)
            if len(weighted_rows) and (stays_open or name in self._open):
                open_groups[name] = _group_moments(X, target, weighted_rows)
        self._absorb(equations, open_groups)
        self._close(n_rows_of_closed)
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
        if self._is_like(other):
            for names in (other._open.keys(), other._closed.keys()):
                self._check_groups(names)
            other._check_groups(self._open.keys())
            self._columns = copy.copy(other._columns)
            self._absorb(other._equations, other._open)
            self._closed |= other._closed
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
        if not self._is_like(other):
            return self
        equations = self._equations
        n_rows = self._n_rows_by_group()
        n_removed_rows = other._n_rows_by_group()
        remaining: dict[Hashable, GroupMoments] = {}
        for name, n_removed in n_removed_rows.items():
            if n_removed == n_rows.get(name):
                continue
            group = self._open.get(name)
            removed = other._open.get(name)
            if group is None or removed is None or group.n_items < n_removed:
                raise ValueError(
                    f"{n_removed} rows of {_group_text(name)} cannot be subtracted: "
                    f"{n_rows.get(name, 0)} rows of it were added. Subtract what was added before, "
                    "in whole groups."
                )
            remaining[name] = group.without(removed)
            # pairs between the removed rows and the remaining ones
            equations = equations.add_pairs(remaining[name].pairs(*self._settings))
            equations = equations.subtract_pairs(group.pairs(*self._settings))
            equations = equations.add_pairs(removed.pairs(*self._settings))
        self._equations = equations.subtract(other._equations)
        for name in n_removed_rows:
            self._open.pop(name, None)
            self._closed.pop(name, None)
        self._open.update(remaining)
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
        if groups is None or ONE_LIST in (self._open or self._closed):
            raise ValueError("without groups all rows are one list, and none can be left out.")
        X, target, rows_by_group = self._read(X, y, groups, sample_weight)
        scores = np.empty((*target.y.shape, len(checked_alphas)))
        for name, group_rows in rows_by_group.items():
            group = self._group_equations(name, X, target, group_rows)
            equations = self._equations.subtract(group)
            if not equations.pairs.n and self.beta < 1:
                raise ValueError(f"without {_group_text(name)} there is no pair to train on.")
            coefficients = equations.solve(self.beta, checked_alphas)
            rows = X[group_rows]
            scores[group_rows] = np.stack([rows @ weights for weights in coefficients], axis=-1)
        return scores.reshape((len(scores), *self.output_shape, len(checked_alphas)))

    def _group_equations(
        self, name: Hashable, X: Matrix, target: Relevance, group_rows: Indices
    ) -> NormalEquations:
        """The normal equations of a group that was added before."""
        if name in self._open:
            return self._open[name].equations(*self._settings)
        rows = _weighted_rows(target, group_rows)
        if self._closed.get(name) != len(rows):
            raise ValueError(
                f"{_group_text(name)} has {len(rows)} rows in this batch, but "
                f"{self._closed.get(name, 0)} were added; pass all rows of a group together."
            )
        one_list = encode_groups(None, len(rows))
        weight = take_weights(target.weight, rows)
        return self._batch_equations(X[rows], Relevance(target.y[rows], one_list, weight))

    def to_bytes(self) -> bytes:
        """Return the sums as bytes, which `from_bytes` reads.

        Numbers and words only, no pickle: group labels must be numbers or text.

        Returns
        -------
        bytes
            The sums.
        """
        if not all(isinstance(name, str | int | float | None) for name in self._n_rows_by_group()):
            raise ValueError("group labels can be written if they are numbers and text only.")
        pairs = self._equations.pairs
        rows = self._equations.rows
        n_features = 0
        if self.n_items:
            n_features = self._columns.n_features_in_
        feature_names = vars(self._columns).get("feature_names_in_", [])
        facts = {
            "format": FORMAT,
            "rule": self.rule,
            "n_features": n_features,
            "feature_names": list(feature_names),
            "output_shape": self.output_shape,
            "totals": [pairs.weight, pairs.n, rows.weight, rows.n],
            "open": [
                [name, group.n_items, group.weight, group.pair_weight]
                for name, group in self._open.items()
            ],
            "closed": list(self._closed.items()),
        }
        roots = [group.root for group in self._open.values()] or [np.empty((0, 0))]
        ends = np.cumsum([len(root) for root in roots])
        means = np.array([group.mean for group in self._open.values()])
        text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
        sums = [pairs.gram, pairs.moment, rows.gram, rows.moment]
        stream = io.BytesIO()
        np.savez(stream, text, *sums, means, np.vstack(roots), ends)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the sums that `to_bytes` wrote; other bytes raise a ValueError.

        Parameters
        ----------
        data : bytes
            Result of `to_bytes`.

        Returns
        -------
        SufficientStatistics
            The sums.
        """
        try:
            text, *arrays = np.load(io.BytesIO(data), allow_pickle=False).values()
            facts = json.loads(text.tobytes())
            if facts["format"] != FORMAT:
                raise ValueError(f"the format is {facts['format']!r:.40}, expected {FORMAT!r}")
            gram, moment, row_gram, row_moment, means, roots, ends = arrays
        except DAMAGES as error:
            raise ValueError(
                f"these bytes do not contain rankwise.SufficientStatistics: {error!s:.200}."
            ) from error
        sums = cls(**facts["rule"])
        weight, n_pairs, row_weight, n_items = facts["totals"]
        sums._equations = NormalEquations(
            WeightedSums(gram, moment, weight, n_pairs),
            WeightedSums(row_gram, row_moment, row_weight, n_items),
        )
        groups = zip(facts["open"], means, np.split(roots, ends[:-1]), strict=False)
        for (name, n, total, pair_weight), mean, root in groups:
            sums._open[name] = GroupMoments(n, total, pair_weight, mean, root)
        sums._closed = dict(facts["closed"])
        sums._columns.n_features_in_ = facts["n_features"]
        sums._columns.output_shape_ = tuple(facts["output_shape"])
        if facts["feature_names"]:
            sums._columns.feature_names_in_ = np.array(facts["feature_names"], object)
        return sums

    def close_groups(self) -> Self:
        """Promise that no group so far has rows in batches to come, which frees memory.

        Returns
        -------
        SufficientStatistics
            Itself.
        """
        self._close({name: group.n_items for name, group in self._open.items()})
        return self

    @property
    def _settings(self) -> tuple[int, str]:
        return self._columns.n_features_in_, self._options["group_weight"]

    def _read(
        self,
        X: MatrixLike,
        y: TargetLike,
        groups: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> tuple[Matrix, Relevance, dict[Hashable, Indices]]:
        """Validate a batch: rows, target with outputs in columns, and rows of each group.

        The weights of batches belong together, so that they are not brought nearer to 1.
        """
        is_first = not self.n_items
        y, groups, weight = unpack_target(y, groups, sample_weight)
        target = read_y(y, groups, X=X)
        if isinstance(target, Preferences):
            raise ValueError(
                f"y is a {type(y).__name__}, whose preferences cannot be split into batches; pass "
                "scores and groups."
            )
        X = validate_X(self._columns, X, reset=is_first)
        scores = target.y
        if is_first:
            advice = "use fit with solver='iterative' for this many features"
            check_matrix_fits(X.shape[1], X.shape[1], "a Gram matrix", advice)
            self._columns.output_shape_ = scores.shape[1:]
        elif scores.shape[1:] != self.output_shape:
            raise ValueError(
                f"y has shape {scores.shape}, but the batches before had outputs of shape "
                f"{self.output_shape}; give every batch the same outputs."
            )
        if weight is not None:
            original_weight = check_float_array("sample_weight", weight)
            weight = check_weights(weight, len(scores))
            if not np.array_equal(original_weight, weight):
                raise ValueError(
                    "sample_weight is so large or so small that products of weights cannot be "
                    "held; multiply all weights by one factor that brings them near 1."
                )
        names: list[Hashable] = [ONE_LIST]
        if groups is not None:
            names = target.groups.labels.tolist()
        members = dict(zip(names, indices_by_group(target.groups.codes), strict=True))
        columns = scores.reshape(len(scores), -1)
        return X, replace(target, y=columns, weight=weight), members

    def _batch_equations(self, X: Matrix, target: Relevance) -> NormalEquations:
        """The normal equations of a batch; sums over its rows only if beta > 0."""
        y = target.y
        graph_target = target
        if y.shape[1] == 1:
            graph_target = replace(target, y=y[:, 0])
        graph = ScoreGraph(graph_target, **self._options)
        with np.errstate(over="ignore", invalid="ignore"):
            system = graph.system(X, graph.divergence.reshape(y.shape))
        if not np.isfinite(system[0].diagonal()).all():
            raise ValueError("the squares of some features overflow; scale the features.")
        pairs = WeightedSums(*system, graph.total_weight, graph.n_pairs)
        weight = weights_or_ones(target.weight, len(y))
        total = float(weight.sum())
        if self.beta == 0:
            return NormalEquations(pairs, WeightedSums(0.0, 0.0, total, len(y)))
        row_sums = plain_system(X, y * weight[:, None], target.weight)
        return NormalEquations(pairs, WeightedSums(*row_sums, total, len(y)))

    def _absorb(self, equations: NormalEquations, opened: dict[Hashable, GroupMoments]) -> None:
        """Add sums, and the pairs between the new rows and the old ones of the same groups."""
        for name, new_group in opened.items():
            old_group = self._open.pop(name, None)
            group = new_group
            if old_group is not None:
                group = new_group.joined(old_group)
                equations = equations.add_pairs(group.pairs(*self._settings))
                equations = equations.subtract_pairs(new_group.pairs(*self._settings))
                equations = equations.subtract_pairs(old_group.pairs(*self._settings))
            self._open[name] = group
        self._equations = self._equations.add(equations)
        excess = self.open_bytes - self._limit
        for name, group in list(self._open.items()):
            if excess <= 0:
                break
            excess -= group.nbytes
            self._close({name: group.n_items})

    def _close(self, n_rows: dict[Hashable, int]) -> None:
        """Drop the moments of groups, and store their number of rows of positive weight."""
        for name, count in n_rows.items():
            group = self._open.pop(name, None)
            if group is not None:
                count = group.n_items
            self._closed[name] = count

    def _n_rows_by_group(self) -> dict[Hashable, int]:
        """Number of rows of positive weight of each group."""
        n_rows = dict(self._closed)
        for name, group in self._open.items():
            n_rows[name] = group.n_items
        return n_rows

    @property
    def _limit(self) -> int:
        """Bytes for the moments of open groups."""
        n_columns = self._settings[0] + int(np.prod(self.output_shape))
        return max(OPEN_BYTES, 32 * n_columns**2)

    def _is_like(self, other: BatchSums) -> bool:
        """Whether other sums have rows; an error if they are of another kind."""
        if not isinstance(other, BatchSums):
            raise TypeError(
                f"expected rankwise.SufficientStatistics, got a {type(other).__name__}."
            )
        kind = self._kind()
        other_kind = other._kind()
        for name in kind.keys() & other_kind.keys():
            if kind[name] != other_kind[name]:
                raise ValueError(
                    f"{name} of the sums differ, {kind[name]!r} and {other_kind[name]!r}; only "
                    "sums of the same problem and the same columns can be combined."
                )
        return other.n_items > 0

    def _kind(self) -> dict[str, object]:
        """Properties that sums to be combined share; no columns before the first row."""
        kind: dict[str, object] = dict(self.rule)
        if self.n_items:
            kind["n_features_in_"] = self._columns.n_features_in_
            kind["feature_names_in_"] = list(vars(self._columns).get("feature_names_in_", ()))
            kind["output_shape_"] = self.output_shape
        return kind

    def _check_groups(self, names: Set[Hashable]) -> None:
        """Raise an error for groups that are closed, or missing in only one of the batches."""
        earlier_names = self._open or self._closed
        if earlier_names and names and (ONE_LIST in earlier_names) != (ONE_LIST in names):
            raise ValueError(
                "groups are given in some batches and None in others; give every batch its "
                "groups, or none at all if all rows are one list."
            )
        closed = self._closed.keys() & names
        if closed:
            raise ClosedGroupError(
                f"{_group_text(min(closed, key=str))} has rows in several batches, but its earlier "
                f"rows are no longer kept ({len(closed)} such groups). Only with "
                "cost='magnitude' and ties='include' may a group be split, in batches without "
                "whole_groups, and while the groups seen since take at most "
                f"{self._limit / 2**20:,.0f} MiB. Pass the rows of a group in the same batch, for "
                "example by sorting the rows by group."
            )


def _weighted_rows(target: Relevance, rows: Indices) -> Indices:
    """Rows with a positive weight."""
    if target.weight is None:
        return rows
    return rows[target.weight[rows] > 0]


def _group_moments(X: Matrix, target: Relevance, rows: Indices) -> GroupMoments:
    """Moments of a group from its rows of positive weight."""
    weight = weights_or_ones(take_weights(target.weight, rows), len(rows))
    return GroupMoments.of_rows(np.hstack([dense_rows(X[rows]), target.y[rows]]), weight)


def _group_text(name: Hashable) -> str:
    """Name of a group in messages."""
    if name is ONE_LIST:
        return "the one list of all rows"
    return f"group {name!r}"
