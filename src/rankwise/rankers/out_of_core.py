"""Sums: all that RankRLS needs to know of rows, added up over batches in any order."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.graphs import ScoreGraph
from rankwise.graphs.gram import plain_system
from rankwise.graphs.supervision import Preferences, Relevance, read_y, unpack_target
from rankwise.groups import encode_groups, indices_by_group
from rankwise.model_selection.shortcuts import dense_rows
from rankwise.preprocessing.validate_features import validate_X
from rankwise.rankers.rank_rls import RankRLS, RankRLSPath
from rankwise.rankers.ranking_problem import check_beta
from rankwise.runtime.memory import check_matrix_fits
from rankwise.runtime.threads import single_threaded
from rankwise.solvers.normal_equations import GroupMoments, NormalEquations, solve_normal_equations
from rankwise.validation import check_alphas, check_float_array, check_weights

OPEN_BYTES = 2**27  # for groups that may go on, at least four Gram matrices
ONE_LIST = None  # the name of the group that all rows are in if there are no groups
FORMAT = "rankwise.SufficientStatistics 2"
DAMAGES = (ValueError, KeyError, TypeError, EOFError, OSError, RuntimeError, zipfile.BadZipFile)


class SufficientStatistics:
    """All that a linear RankRLS needs to know of rows, added up.

    Use it for data that do not fit in memory, or that live elsewhere: whatever reads the rows
    (DuckDB, Polars, Spark, Dask, a loop over files) adds them up in batches, in as many processes
    as there are; the sums are merged and solved. The models are those of `RankRLS.fit` on all rows
    at once, to rounding, whatever the batches and their order. It is ``Rᵀ L R`` and ``Rᵀ d``
    ([RankRLS09] equation 28), so its size does not depend on the number of rows.

    Parameters
    ----------
    cost, ties, group_weight, beta
        As in `RankRLS`. With ``cost="magnitude", ties="include"`` a group may have rows in several
        batches, with others it must come whole in one.

    Attributes
    ----------
    n_items, n_pairs : int
        Rows and pairs so far.

    See Also
    --------
    RankRLS.partial_fit : A model after each batch; kernels with a basis, too.

    Notes
    -----
    Groups that may go on are kept in 128 MiB, those seen last. Of all others the labels are kept,
    and a row that comes later is refused, never counted wrongly.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS, Sums
    >>> rng = np.random.default_rng(0)
    >>> X, y, groups = rng.random((90, 2)), rng.random(90), np.repeat(np.arange(9), 10)
    >>> one, two = SufficientStatistics(), SufficientStatistics()
    >>> one.add(X[:25], y[:25], groups[:25]).add(X[60:], y[60:], groups[60:]).n_items
    55
    >>> sent = two.add(X[25:60], y[25:60], groups[25:60]).to_bytes()  # in another process
    >>> path = one.merge(Sums.from_bytes(sent)).solve([0.01, 0.1])
    >>> np.allclose(path.model(1).coef_, RankRLS(0.1).fit(X, y, groups).coef_, rtol=1e-10)
    True
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
        options = {"cost": cost, "ties": ties, "group_weight": group_weight}
        self.rule: dict[str, Any] = {**options, "beta": float(beta)}
        self._model = RankRLS(**self.rule)  # knows the features and outputs
        self._pairs = self._rows = NormalEquations(0.0, 0.0, 0.0, 0)
        self._open: dict[Hashable, GroupMoments] = {}  # those seen last are last
        self._closed: dict[Hashable, int] = {}  # and how many rows of positive weight they had

    @property
    def n_items(self) -> int:
        """Rows so far."""
        return self._rows.n

    @property
    def n_pairs(self) -> int:
        """Pairs so far."""
        return self._pairs.n

    @property
    def output_shape(self) -> tuple[int, ...]:
        """() for one output, (n_outputs,) for y of two dimensions."""
        return self._model.output_shape_

    @property
    def open_bytes(self) -> int:
        """Memory of the groups that may go on."""
        return sum(group.nbytes for group in self._open.values())

    @property
    def takes_parts(self) -> bool:
        """Whether a group may have rows in several batches."""
        return bool(self.rule["cost"] == "magnitude" and self.rule["ties"] == "include")

    @single_threaded
    def add(
        self,
        X: Any,
        y: Any,
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
        Sums
            Itself.

        Raises
        ------
        ValueError
            If a group comes back that is no longer kept; nothing is added then.
        """
        X, target, members = self._read(X, y, groups, sample_weight)
        self._check_groups(members)
        pairs, rows = self._parts(X, target)
        is_kept, last = self.takes_parts and not whole_groups, len(target.y) - 1
        counts, opened = {}, {}
        for name, own in members.items():
            may_go_on = is_kept and (not is_sorted or own[0] == 0 or own[-1] == last)
            counted = _counted(target, own)
            if not may_go_on:
                counts[name] = len(counted)
            if len(counted) and (may_go_on or name in self._open):
                opened[name] = _open_group(X, target, counted)
        self._absorb(pairs, rows, opened)
        self._close(counts)
        return self

    def merge(self, other: SufficientStatistics) -> Self:
        """Add the rows that other sums of the same kind were given; those are left as they are.

        Both may have rows of the same groups, if `add` may. The order of merges does not matter.
        """
        if self._is_like(other):
            for own, theirs in ((self, other), (other, self)):
                own._check_groups([*theirs._open, *theirs._closed])
            self._model = copy.copy(other._model)
            self._absorb(other._pairs, other._rows, other._open)
            self._closed |= other._closed
        return self

    def subtract(self, other: SufficientStatistics) -> Self:
        """Take away the rows that other sums were given, which were added or merged before.

        For data that expire: keep the sums of each day, add the new day and subtract the old one.
        Groups leave whole, or, if `add` may cut them, in the parts that they came in.
        """
        if not self._is_like(other):
            return self
        pairs, left = self._pairs, {}
        here, leaving = self._counts(), other._counts()
        for name, n_items in leaving.items():
            if n_items == here.get(name):
                continue
            own, part = self._open.get(name), other._open.get(name)
            if own is None or part is None or own.n_items < n_items:
                raise ValueError(
                    f"{n_items} rows of {_named(name)} cannot be subtracted: {here.get(name, 0)} "
                    "rows of it are there. Subtract what was added before, in whole groups."
                )
            left[name] = own.joined(part, -1)
            for group, factor in ((left[name], 1), (own, -1), (part, 1)):
                pairs = pairs.plus(group.pairs(*self._settings), factor)
        self._pairs, self._rows = pairs.plus(other._pairs, -1), self._rows.plus(other._rows, -1)
        for name in leaving:
            self._open.pop(name, None)
            self._closed.pop(name, None)
        self._open.update(left)
        return self

    @single_threaded
    def solve(self, alphas: ArrayLike) -> RankRLSPath:
        """The models of a list of alphas, as `RankRLS.path` of all rows gives them.

        Parameters
        ----------
        alphas : array-like of shape (n_alphas,)
            Positive numbers in any order.

        Returns
        -------
        RankRLSPath
            ``path.model(k)`` is the `RankRLS` of ``alphas[k]``, ready to predict and to be saved.
        """
        checked = check_alphas(alphas, "alphas")
        if not self.n_pairs and (self.rule["beta"] < 1 or not self.n_items):
            raise ValueError(
                f"there is nothing to rank: {self.n_items} items make no pair; give group labels "
                "that are shared by items to be compared, and scores that differ."
            )
        model = copy.copy(self._model)
        model.n_pairs_, model.solver_, model.n_iter_ = self.n_pairs, "primal", 1
        return RankRLSPath(model, checked, self.coefficients(checked))

    def coefficients(self, alphas: Array) -> Array:
        """Weights of the features, shape (n_alphas, n_features, n_outputs); 0 without a pair."""
        return solve_normal_equations(self._pairs, self._rows, self.rule["beta"], alphas)

    @single_threaded
    def held_out(
        self,
        X: Any,
        y: Any,
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
        checked, beta = check_alphas(alphas, "alphas"), self.rule["beta"]
        if groups is None or ONE_LIST in (self._open or self._closed):
            raise ValueError("without groups all rows are one list, and none can be left out.")
        X, target, members = self._read(X, y, groups, sample_weight)
        out = np.empty((*target.y.shape, len(checked)))
        for name, rows in members.items():
            counted = _counted(target, rows)
            if name in self._open:
                own = self._open[name]
                pairs, items = own.pairs(*self._settings), own.rows(self._settings[0])
            elif self._closed.get(name) == len(counted):
                one_list = encode_groups(None, len(counted))
                weight = None if target.weight is None else target.weight[counted]
                pairs, items = self._parts(
                    X[counted], Relevance(target.y[counted], one_list, weight)
                )
            else:
                raise ValueError(
                    f"{_named(name)} has {len(counted)} rows in this batch, but "
                    f"{self._closed.get(name, 0)} were added; give all rows of a group together."
                )
            pairs, items = self._pairs.plus(pairs, -1), self._rows.plus(items, -1)
            if not pairs.n and beta < 1:
                raise ValueError(f"without {_named(name)} there is no pair to train on.")
            for k, w in enumerate(solve_normal_equations(pairs, items, beta, checked)):
                out[rows, :, k] = X[rows] @ w
        return out.reshape((len(out), *self.output_shape, len(checked)))

    def to_bytes(self) -> bytes:
        """The sums as bytes, to be sent or kept; `from_bytes` reads them.

        Numbers and words only, no pickle: group labels must be numbers or text.
        """
        if not all(isinstance(name, str | int | float | None) for name in self._counts()):
            raise ValueError("group labels can be written if they are numbers and text only.")
        groups = list(self._open.values())
        facts = {
            "format": FORMAT,
            "rule": self.rule,
            "n_features": self._settings[0] if self.n_items else 0,
            "feature_names": list(getattr(self._model, "feature_names_in_", [])),
            "output_shape": self.output_shape,
            "totals": [*self._pairs[2:], *self._rows[2:]],
            "open": [[name, *group[:3]] for name, group in self._open.items()],
            "closed": list(self._closed.items()),
        }
        roots = [group.root for group in groups] or [np.empty((0, 0))]
        ends = np.cumsum([len(root) for root in roots])
        means = np.array([group.mean for group in groups])
        text = np.frombuffer(json.dumps(facts).encode(), np.uint8)
        stream = io.BytesIO()
        sums = *self._pairs[:2], *self._rows[:2]
        np.savez(stream, text, *sums, means, np.vstack(roots), ends)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> SufficientStatistics:
        """The sums that `to_bytes` wrote; a ValueError if the bytes are anything else."""
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
        sums._pairs = NormalEquations(gram, moment, weight, n_pairs)
        sums._rows = NormalEquations(row_gram, row_moment, row_weight, n_items)
        groups = zip(facts["open"], means, np.split(roots, ends[:-1]), strict=False)
        for (name, n, total, pair_weight), mean, root in groups:
            sums._open[name] = GroupMoments(n, total, pair_weight, mean, root)
        sums._closed = dict(facts["closed"])
        sums._model.n_features_in_ = facts["n_features"]
        sums._model.output_shape_ = tuple(facts["output_shape"])
        if facts["feature_names"]:
            vars(sums._model)["feature_names_in_"] = np.array(facts["feature_names"], object)
        return sums

    @property
    def _settings(self) -> tuple[int, str]:
        return self._model.n_features_in_, self.rule["group_weight"]

    def _read(
        self, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> tuple[Any, Relevance, dict[Hashable, Indices]]:
        """Rows, target with outputs in columns, and rows of each group; checked as one more batch.

        The weights of batches belong together, so that they are not brought nearer to 1.
        """
        is_first = not self.n_items
        y, groups, weight = unpack_target(y, groups, sample_weight)
        target = read_y(y, groups, X=X)
        if isinstance(target, Preferences):
            raise ValueError(
                f"y is a {type(y).__name__}, whose preferences cannot be cut in batches; pass "
                "scores and groups."
            )
        X = validate_X(self._model, X, reset=is_first)
        scores = target.y
        if is_first:
            advice = "use fit with solver='iterative' for so many features"
            check_matrix_fits(X.shape[1], X.shape[1], "a Gram matrix", advice)
            self._model.output_shape_ = scores.shape[1:]
        elif scores.shape[1:] != self.output_shape:
            raise ValueError(
                f"y has shape {scores.shape}, but the batches before had outputs of shape "
                f"{self.output_shape}; give every batch the same outputs."
            )
        if weight is not None:
            asked, weight = (
                check_float_array("sample_weight", weight),
                check_weights(weight, len(scores)),
            )
            if not np.array_equal(asked, weight):
                raise ValueError(
                    "sample_weight is so large or so small that products of weights cannot be "
                    "held; multiply all weights by one factor that brings them near 1."
                )
        names = [ONE_LIST] if groups is None else target.groups.labels.tolist()
        members = dict(zip(names, indices_by_group(target.groups.codes), strict=True))
        columns = scores.reshape(len(scores), -1)
        return X, replace(target, y=columns, weight=weight), members

    def _parts(self, X: Any, target: Relevance) -> tuple[NormalEquations, NormalEquations]:
        """Sums over the pairs of a batch, and over its rows; the latter's only if beta > 0."""
        y, weight = target.y, target.weight
        options = {name: value for name, value in self.rule.items() if name != "beta"}
        scores = y[:, 0] if y.shape[1] == 1 else y
        graph = ScoreGraph(replace(target, y=scores), **options)
        with np.errstate(over="ignore", invalid="ignore"):
            system = graph.system(X, graph.divergence.reshape(y.shape))
        if not np.isfinite(system[0].diagonal()).all():
            raise ValueError("the squares of some features overflow; scale the features.")
        total = float(len(y) if weight is None else weight.sum())
        rows: tuple[Any, Any] = (0.0, 0.0)
        if self.rule["beta"] > 0:
            rows = plain_system(X, y if weight is None else y * weight[:, None], weight)
        return NormalEquations(*system, graph.total_weight, graph.n_pairs), NormalEquations(
            *rows, total, len(y)
        )

    def _absorb(
        self, pairs: NormalEquations, rows: NormalEquations, opened: dict[Hashable, GroupMoments]
    ) -> None:
        """Add sums, and the pairs between the new rows and the old ones of the same groups."""
        for name, group in opened.items():
            before = self._open.pop(name, None)
            if before is not None:
                joined = group.joined(before)
                for one, factor in ((joined, 1), (group, -1), (before, -1)):
                    pairs = pairs.plus(one.pairs(*self._settings), factor)
                group = joined
            self._open[name] = group
        self._pairs, self._rows = self._pairs.plus(pairs), self._rows.plus(rows)
        excess = self.open_bytes - self._limit
        for name, group in list(self._open.items()):
            if excess <= 0:
                break
            excess -= group.nbytes
            self._close({name: group.n_items})

    def _close(self, counts: dict[Hashable, int]) -> None:
        for name, count in counts.items():
            before = self._open.pop(name, None)
            self._closed[name] = count if before is None else before.n_items

    def _counts(self) -> dict[Hashable, int]:
        """How many rows of positive weight each group has."""
        return {**self._closed, **{name: group.n_items for name, group in self._open.items()}}

    @property
    def _limit(self) -> int:
        n_columns = self._settings[0] + int(np.prod(self.output_shape))
        return max(OPEN_BYTES, 32 * n_columns**2)

    def _is_like(self, other: SufficientStatistics) -> bool:
        """Whether other sums have rows; an error if they are of another kind."""
        if not isinstance(other, SufficientStatistics):
            raise TypeError(
                f"expected rankwise.SufficientStatistics, got a {type(other).__name__}."
            )
        own, theirs = self._kind(), other._kind()
        for name in own.keys() & theirs.keys():
            if own[name] != theirs[name]:
                raise ValueError(
                    f"{name} of the sums differ, {own[name]!r} and {theirs[name]!r}; only sums of "
                    "the same problem and the same columns belong together."
                )
        return other.n_items > 0

    def _kind(self) -> dict[str, Any]:
        """What must be the same in sums that belong together; no columns before the first row."""
        names = ("n_features_in_", "feature_names_in_", "output_shape_") if self.n_items else ()
        columns = {name: np.array(getattr(self._model, name, ())).tolist() for name in names}
        return {**self.rule, **columns}

    def _check_groups(self, names: Iterable[Hashable]) -> None:
        known, names = self._open or self._closed, set(names)
        if known and names and (ONE_LIST in known) != (ONE_LIST in names):
            raise ValueError(
                "groups are given in some batches and None in others; give every batch its "
                "groups, or none at all if all rows are one list."
            )
        gone = self._closed.keys() & names
        if gone:
            raise ValueError(
                f"{_named(min(gone, key=str))} has rows in several batches, but its earlier rows "
                f"are no longer kept ({len(gone)} such groups). Only with cost='magnitude' and "
                "ties='include' may a group be cut, in batches without whole_groups, and while the "
                f"groups seen since take at most {self._limit / 2**20:,.0f} MiB. Bring the rows of "
                "a group in the same batch, for example by sorting the rows by group."
            )


def _counted(target: Relevance, rows: Indices) -> Indices:
    """Those of the rows that have a positive weight."""
    return rows if target.weight is None else rows[target.weight[rows] > 0]


def _open_group(X: Any, target: Relevance, rows: Indices) -> GroupMoments:
    """The group of rows of positive weight."""
    weight = np.ones(len(rows)) if target.weight is None else target.weight[rows]
    return GroupMoments.of_rows(np.hstack([dense_rows(X[rows]), target.y[rows]]), weight)


def _named(name: Hashable) -> str:
    return "the one list of all rows" if name is ONE_LIST else f"group {name!r}"
