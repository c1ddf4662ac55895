"""The normal equations of RankRLS, added up over chunks of rows in any order.

Every sum over pairs is a sum over groups. Under the magnitude cost with ties a group may be cut
between chunks: weight, mean and scatter of its rows are kept until no more of them can come, and

    sums(A ∪ B) = sums(A) + sums(B) + [pairs of one item of A and one of B].

The result is that of one `fit` on all rows, whatever the chunks and their order. Under the other
costs a group must come whole.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array
from rankwise.graphs import ScoreGraph
from rankwise.graphs.gram import plain_system
from rankwise.groups import encode_groups

OPEN_BYTES = 2**27
ONE_LIST = None  # the name of the group that all rows are in if there are no groups


class PairRule(NamedTuple):
    """Which pairs there are and what they weigh, as in `ScoreGraph`."""

    cost: str
    ties: str
    group_weight: str

    @property
    def tells_scores_apart(self) -> bool:
        """Whether the pairs depend on the scores, so that no group may be cut."""
        return not (self.cost == "magnitude" and self.ties == "include")


class PairSums(NamedTuple):
    """Sums over pairs: ``Rᵀ L R``, ``Rᵀ d``, the weight W and the number of the pairs."""

    gram: Array
    moment: Array
    weight: float
    n_pairs: int

    def plus(self, other: PairSums, factor: int = 1) -> PairSums:
        """``self + factor · other``."""
        return PairSums(
            self.gram + factor * other.gram,
            self.moment + factor * other.moment,
            self.weight + factor * other.weight,
            self.n_pairs + factor * other.n_pairs,
        )


class OpenGroup(NamedTuple):
    """A group that may go on in another chunk, under the magnitude cost with ties.

    Attributes
    ----------
    n_items : int
        Rows of positive weight.
    weight, pair_weight : float
        ``Σ w_i`` and ``Σ w_i w_j`` over the pairs i < j.
    mean : ndarray of shape (n_columns,)
        Weighted mean of features and scores.
    root : ndarray of shape (n_rows, n_columns)
        Z with ``Zᵀ Z = Σ w (z − mean)(z − mean)ᵀ``; never more rows than columns once joined.
    """

    n_items: int
    weight: float
    pair_weight: float
    mean: Array
    root: Array

    @classmethod
    def of_rows(cls, Z: Array, weight: Array) -> OpenGroup:
        """The group of these rows, of positive weights."""
        total = float(weight.sum())
        pairs = float(weight[1:] @ np.cumsum(weight)[:-1])
        mean = weight @ Z / total
        return cls(len(Z), total, pairs, mean, _packed(np.sqrt(weight)[:, None] * (Z - mean)))

    def joined(self, other: OpenGroup) -> OpenGroup:
        """The group of the rows of both."""
        total = self.weight + other.weight
        between = np.sqrt(self.weight * other.weight / total) * (self.mean - other.mean)
        return OpenGroup(
            self.n_items + other.n_items,
            total,
            self.pair_weight + other.pair_weight + self.weight * other.weight,
            self.mean + (other.weight / total) * (other.mean - self.mean),
            _packed(np.vstack([self.root, other.root, between])),
        )

    def sums(self, n_features: int, group_weight: str) -> PairSums:
        """Sums over the pairs: L is the weight of the group times "subtract the mean"."""
        factor = 1.0
        if group_weight == "groups":
            factor = 1.0 / self.pair_weight if self.pair_weight > 0 else 0.0
        gram = factor * self.weight * (self.root.T @ self.root)
        n_pairs = self.n_items * (self.n_items - 1) // 2
        moment = gram[:n_features, n_features:]
        return PairSums(gram[:n_features, :n_features], moment, factor * self.pair_weight, n_pairs)


class StreamingSums:
    """Sums over chunks of rows from which RankRLS can be solved.

    Parameters
    ----------
    n_features, n_outputs : int
        Columns of the features R and of the scores.
    rule : PairRule
        Cost, ties and group weight.
    beta : float
        Share of the regression part.
    open_bytes : int
        Memory for open groups, at least that of four Gram matrices. If it is used up, the groups
        that were seen longest ago are closed.

    Examples
    --------
    >>> import numpy as np
    >>> rule = PairRule("magnitude", "include", "pairs")
    >>> sums = StreamingSums(n_features=1, n_outputs=1, rule=rule, beta=0.0)
    >>> sums.add(np.array([[0.0], [1.0]]), np.array([[0.0], [1.0]]), groups=["a", "b"])
    >>> sums.add(np.array([[2.0], [5.0]]), np.array([[4.0], [3.0]]), groups=["a", "b"])
    >>> sums.n_pairs
    2
    >>> sums.system()  # pairs (0, 2) and (1, 5): half of 2² + 4², half of 2 · 4 + 4 · 2
    (array([[10.]]), array([[8.]]))
    """

    def __init__(
        self,
        n_features: int,
        n_outputs: int,
        rule: PairRule,
        beta: float,
        open_bytes: int = OPEN_BYTES,
    ) -> None:
        self.n_features, self.n_outputs = n_features, n_outputs
        self.rule, self.beta = rule, beta
        self.n_items = 0
        self._limit = max(open_bytes, 32 * (n_features + n_outputs) ** 2)
        square, moment = np.zeros((n_features, n_features)), np.zeros((n_features, n_outputs))
        self._pairs = PairSums(square, moment, 0.0, 0)
        self._items = square, moment, 0.0  # Rᵀ D R, Rᵀ D y and Σ w of the regression part
        self._open: dict[Hashable, OpenGroup] = {}  # those seen last are last
        self._closed: set[Hashable] = set()
        self._has_groups: bool | None = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs so far."""
        return self._pairs.n_pairs

    @property
    def open_bytes(self) -> int:
        """Memory that open groups take."""
        return sum(group.mean.nbytes + group.root.nbytes for group in self._open.values())

    def add(
        self,
        R: Any,
        y: Array,
        groups: ArrayLike | None,
        *,
        keep: Collection[Hashable] | None = None,
        remember: bool = True,
        weight: Array | None = None,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        R : array or sparse matrix of shape (n_rows, n_features)
            Features.
        y : ndarray of shape (n_rows, n_outputs)
            Scores.
        groups : array-like of shape (n_rows,) or None
            Group labels.
        keep : collection of labels, optional
            The groups that may go on in another chunk; by default all of them, if the rule allows.
        remember : bool
            Whether to remember the labels of the other groups. Then a later row of such a group is
            an error.
        weight : ndarray of shape (n_rows,), optional
            Weights of the rows; 1 if not given.
        """
        encoded = encode_groups(groups, R.shape[0])
        codes = encoded.codes
        names: list[Hashable] = [ONE_LIST] if groups is None else encoded.labels.tolist()
        self._check(groups is not None, names)
        opened: dict[Hashable, OpenGroup] = {}
        if not self.rule.tells_scores_apart:
            counts = np.ones(len(y)) if weight is None else weight
            counted = np.flatnonzero(counts > 0)
            order = counted[np.argsort(codes[counted], kind="stable")]
            cuts = np.cumsum(np.bincount(codes[counted], minlength=len(names)))[:-1]
            for name, rows in zip(names, np.split(order, cuts), strict=True):
                if len(rows) and (keep is None or name in keep or name in self._open):
                    block = R[rows].toarray() if hasattr(R, "toarray") else R[rows]
                    opened[name] = OpenGroup.of_rows(np.hstack([block, y[rows]]), counts[rows])
        scores = y[:, 0] if y.shape[1] == 1 else y
        graph = ScoreGraph.of(scores, encoded, **self.rule._asdict(), sample_weight=weight)
        gram, moment = graph.system(R, graph.divergence.reshape(y.shape))
        self._absorb(PairSums(gram, moment, graph.total_weight, graph.n_pairs), opened)
        self.n_items += R.shape[0]
        if self.beta > 0:
            target = y if weight is None else y * weight[:, None]
            total = float(R.shape[0] if weight is None else weight.sum())
            self._add_items(*plain_system(R, target, weight), total)
        self._has_groups = groups is not None
        going_on = set() if self.rule.tells_scores_apart else set(names if keep is None else keep)
        self._close(set(names) - going_on, remember)

    def copy(self) -> StreamingSums:
        """One that can be added to while this one stays as it is."""
        other = copy.copy(self)
        other._open, other._closed = dict(self._open), set(self._closed)
        return other

    def merge(self, other: StreamingSums) -> None:
        """Add the rows that another object with the same settings was given; it is not changed."""
        if other._has_groups is None:
            return
        for own, theirs in ((self, other), (other, self)):
            own._check(bool(other._has_groups), [*theirs._open, *theirs._closed])
        self._absorb(other._pairs, other._open)
        self._add_items(*other._items)
        self.n_items += other.n_items
        self._has_groups = other._has_groups
        self._closed |= other._closed

    def system(self) -> tuple[Array, Array]:
        """A and b of ``(A + αI) w = b``, [RankRLS09] equation 28.

        Zero as long as there is no pair (and no regression part).
        """
        gram, moment = np.zeros_like(self._pairs.gram), np.zeros_like(self._pairs.moment)
        if self.beta < 1 and self._pairs.weight > 0:
            share = (1 - self.beta) / self._pairs.weight
            gram += share * self._pairs.gram
            moment += share * self._pairs.moment
        item_gram, item_moment, item_weight = self._items
        if self.beta > 0 and item_weight > 0:
            gram += self.beta / item_weight * item_gram
            moment += self.beta / item_weight * item_moment
        return gram, moment

    def _add_items(self, gram: Array, moment: Array, weight: float) -> None:
        before = self._items
        self._items = before[0] + gram, before[1] + moment, before[2] + weight

    def _absorb(self, pairs: PairSums, opened: dict[Hashable, OpenGroup]) -> None:
        """Add sums, and the pairs between the new rows and the old ones of the same groups."""
        settings = self.n_features, self.rule.group_weight
        for name, group in opened.items():
            before = self._open.pop(name, None)
            if before is not None:
                joined = group.joined(before)
                pairs = pairs.plus(joined.sums(*settings))
                pairs = pairs.plus(group.sums(*settings), -1).plus(before.sums(*settings), -1)
                group = joined
            self._open[name] = group
        self._pairs = self._pairs.plus(pairs)
        excess = self.open_bytes - self._limit
        for name in list(self._open):
            if excess <= 0:
                break
            excess -= self._open[name].mean.nbytes + self._open[name].root.nbytes
            self._close([name], remember=True)

    def _close(self, names: Iterable[Hashable], remember: bool) -> None:
        for name in names:
            self._open.pop(name, None)
            if remember:
                self._closed.add(name)

    def _check(self, has_groups: bool, names: list[Hashable]) -> None:
        if self._has_groups not in (None, has_groups):
            raise ValueError(
                f"groups {'are given' if has_groups else 'is None'} in this chunk but "
                f"{'were None' if has_groups else 'were given'} before; give every chunk its "
                "groups, or none at all if all rows are one list."
            )
        gone = self._closed.intersection(names)
        if gone:
            name = min(gone, key=str)
            what = "the one list of all rows" if name is ONE_LIST else f"group {name!r}"
            why = (
                f"with cost={self.rule.cost!r} and ties={self.rule.ties!r} a group must come whole "
                "in one chunk"
                if self.rule.tells_scores_apart
                else "a chunk was said to have whole groups, or the groups seen since take more "
                f"than {self._limit / 2**20:,.0f} MiB"
            )
            raise ValueError(
                f"{what} has rows in several chunks, but its earlier rows are no longer kept "
                f"({len(gone)} such groups): {why}. Bring the rows of a group in the same chunk, "
                "for example by sorting the rows by group."
            )


def _packed(Z: Array) -> Array:
    """A matrix with the same ``Zᵀ Z`` and no more rows than columns."""
    return Z if len(Z) <= Z.shape[1] else np.asarray(np.linalg.qr(Z, mode="r"))
