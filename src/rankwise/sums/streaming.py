"""The normal equations of RankRLS, added up over chunks of rows in any order.

Every sum over pairs is a sum over groups. A group whose rows come in several chunks also has pairs
between the chunks. Its rows are therefore kept, as `Lumps`, until no more of them can come:

    sums(A ∪ B) = sums(A) + sums(B) + [pairs of one item of A and one of B]

The bracket follows from the lumps of the groups that are in both. The result is that of one `fit`
on all rows, whatever the chunks and their order. Rounding is that of a fit on rows in another
order. There is one exception: with ``group_weight="groups"`` the weight of a pair falls as its
group grows, and the bracket is a difference. A row far from the others can then cost a digit or
two more.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Array, Indices
from rankwise.graphs.gram_blocks import plain_system
from rankwise.groups import encode_groups
from rankwise.sums.group_sums import Lumps, PairRule, PairSums, sums_of_lumps, sums_of_rows

OPEN_BYTES = 2**27
ONE_LIST = None  # the name of the group that all rows are in if there are no groups


@dataclass(frozen=True)
class _ItemSums:
    """Sums over items, for the regression part: how many, their weight, ``Rᵀ D R``, ``Rᵀ D y``."""

    n_items: int
    weight: float
    gram: Array
    moment: Array

    def plus(self, other: _ItemSums) -> _ItemSums:
        gram, moment = self.gram + other.gram, self.moment + other.moment
        n_items, weight = self.n_items + other.n_items, self.weight + other.weight
        return _ItemSums(n_items, weight, gram, moment)


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
        Memory for the rows of open groups, at least that of four Gram matrices. If it is used up,
        the groups that were seen longest ago are closed.

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
        self._limit = max(open_bytes, 32 * (n_features + n_outputs) ** 2)
        moment = np.zeros((n_features, n_outputs))
        square = np.zeros((n_features, n_features))
        self._pairs = PairSums(square, moment, 0.0, 0)
        self._items = _ItemSums(0, 0.0, square if beta > 0 else np.zeros((0, 0)), moment)
        self._open: dict[Hashable, Lumps] = {}  # those seen last are last
        self._closed: set[Hashable] = set()
        self._has_groups: bool | None = None

    @property
    def n_items(self) -> int:
        """Number of rows so far."""
        return self._items.n_items

    @property
    def n_pairs(self) -> int:
        """Number of pairs so far."""
        return self._pairs.n_pairs

    @property
    def open_bytes(self) -> int:
        """Memory that the rows of open groups take."""
        return sum(lumps.n_bytes for lumps in self._open.values())

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
            The groups that may go on in another chunk; by default all of them.
        remember : bool
            Whether to remember the labels of the other groups. Then a later row of such a group is
            an error.
        weight : ndarray of shape (n_rows,), optional
            Weights of the rows; 1 if not given.
        """
        codes, labels = encode_groups(groups, R.shape[0])
        names: list[Hashable] = [ONE_LIST] if groups is None else labels.tolist()
        self._check_kind(groups is not None)
        self._check_open(names)
        opened = self._rows_to_keep(R, y, codes, names, keep, weight)
        sums = self._sums_of_chunk(R, y, codes, names, opened, weight)
        self._absorb(sums, self._sum_items(R, y, weight), opened)
        self._has_groups = groups is not None
        passing = set(names) - set(opened)
        if keep is not None:
            passing.update(name for name in opened if name not in keep)
        self._close(passing, remember)

    def copy(self) -> StreamingSums:
        """One that can be added to while this one stays as it is."""
        other = copy.copy(self)
        other._open, other._closed = dict(self._open), set(self._closed)
        return other

    def settle(self) -> None:
        """Give up the rows of open groups, when no more rows can come; the sums stay."""
        self._close(list(self._open), remember=True)

    def merge(self, other: StreamingSums) -> None:
        """Add the rows that another object with the same settings was given; it is not changed."""
        if other._has_groups is None:
            return
        self._check_kind(other._has_groups)
        for own, theirs in ((self, other), (other, self)):
            own._check_open([*theirs._open, *theirs._closed])
        self._absorb(other._pairs, other._items, other._open)
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
        if self.beta > 0 and self._items.weight > 0:
            gram += self.beta / self._items.weight * self._items.gram
            moment += self.beta / self._items.weight * self._items.moment
        return gram, moment

    def _rows_to_keep(
        self,
        R: Any,
        y: Array,
        codes: Indices,
        names: list[Hashable],
        keep: Collection[Hashable] | None,
        weight: Array | None,
    ) -> dict[Hashable, Lumps]:
        """Lumps of the groups that go on or may do so, as many as there is room for."""
        last = np.zeros(len(names), dtype=np.intp)
        last[codes] = np.arange(len(codes))
        by_group = np.argsort(codes, kind="stable")
        rows_of = np.split(by_group, np.cumsum(np.bincount(codes))[:-1])
        opened, n_bytes = {}, 0
        for code in np.argsort(-last):
            name = names[code]
            may_go_on = keep is None or name in keep
            if name in self._open or (may_go_on and n_bytes < self._limit):
                rows = rows_of[code]
                Z = np.hstack([_dense(R, rows), y[rows]])
                lumps = Lumps.of_rows(Z, None if weight is None else weight[rows])
                opened[name] = lumps.compressed(self.rule, self.n_features)
                n_bytes += opened[name].n_bytes
        return dict(reversed(opened.items()))

    def _sums_of_chunk(
        self,
        R: Any,
        y: Array,
        codes: Indices,
        names: list[Hashable],
        opened: dict[Hashable, Lumps],
        weight: Array | None,
    ) -> PairSums:
        """From rows, except for compressed groups, whose scatter is known already."""
        lumpy = np.array([name in opened and bool(opened[name].scatters) for name in names])
        if not lumpy.any():
            return sums_of_rows(R, y, codes, self.rule, weight)
        packed = [opened[names[code]] for code in np.flatnonzero(lumpy)]
        sums = sums_of_lumps(packed, self.n_features, self.rule)
        rest = np.flatnonzero(~lumpy[codes])
        if len(rest):
            some = None if weight is None else weight[rest]
            sums = sums.plus(sums_of_rows(R[rest], y[rest], codes[rest], self.rule, some))
        return sums

    def _sum_items(self, R: Any, y: Array, weight: Array | None) -> _ItemSums:
        total = float(R.shape[0] if weight is None else weight.sum())
        if self.beta == 0:
            return _ItemSums(R.shape[0], total, self._items.gram, self._items.moment)
        target = y if weight is None else y * weight[:, None]
        return _ItemSums(R.shape[0], total, *plain_system(R, target, weight))

    def _absorb(self, pairs: PairSums, items: _ItemSums, opened: dict[Hashable, Lumps]) -> None:
        """Add sums, and the pairs between the new rows and the old ones of the same groups."""
        both = [name for name in opened if name in self._open]
        if both:
            old, new = [self._open[name] for name in both], [opened[name] for name in both]
            joined = [Lumps.join(parts) for parts in zip(old, new, strict=True)]
            pairs = pairs.plus(sums_of_lumps(joined, self.n_features, self.rule))
            for part in (old, new):
                pairs = pairs.plus(sums_of_lumps(part, self.n_features, self.rule), -1)
            packed = (lumps.compressed(self.rule, self.n_features) for lumps in joined)
            opened = {**opened, **dict(zip(both, packed, strict=True))}
        self._pairs = self._pairs.plus(pairs)
        self._items = self._items.plus(items)
        for name, lumps in opened.items():
            self._open.pop(name, None)
            self._open[name] = lumps
        self._make_room()

    def _make_room(self) -> None:
        excess = self.open_bytes - self._limit
        oldest = []
        for name, lumps in self._open.items():
            if excess <= 0:
                break
            excess -= lumps.n_bytes
            oldest.append(name)
        self._close(oldest, remember=True)

    def _close(self, names: Iterable[Hashable], remember: bool) -> None:
        for name in names:
            self._open.pop(name, None)
            if remember:
                self._closed.add(name)

    def _check_kind(self, has_groups: bool) -> None:
        if self._has_groups not in (None, has_groups):
            raise ValueError(
                f"groups {'are given' if has_groups else 'is None'} in this chunk but "
                f"{'were None' if has_groups else 'were given'} before; give every chunk its "
                "groups, or none at all if all rows are one list."
            )

    def _check_open(self, names: list[Hashable]) -> None:
        gone = self._closed.intersection(names)
        if gone:
            raise ValueError(
                f"{_name_of(min(gone, key=str))} has rows in several chunks, but its earlier rows "
                f"are no longer kept ({len(gone)} such groups): a chunk was said to have whole "
                f"groups, or the groups seen since take more than {self._limit / 2**20:,.0f} MiB. "
                "Bring the rows of a group in the same chunk or in chunks that follow each other, "
                "for example by sorting the rows by group; cost='magnitude' with ties takes least "
                "room."
            )


def _dense(R: Any, rows: Indices) -> Array:
    part = R[rows]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def _name_of(name: Hashable) -> str:
    return "the one list of all rows" if name is ONE_LIST else f"group {name!r}"
