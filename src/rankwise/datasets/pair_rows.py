"""From the columns of a table of comparisons to PairData: every row is checked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwise.arrays import Array, Indices
from rankwise.datasets.labels import finite_number, show
from rankwise.datasets.outcome_words import SECOND, TIE, WORDS, meanings
from rankwise.datasets.pair_data import Column, PairColumns, PairData
from rankwise.datasets.pair_tables import PairTable

_TRUE = frozenset({"1", "1.0", "true", "yes", "y", "t", "tie", "draw"})
_FALSE = frozenset({"", "0", "0.0", "false", "no", "n", "f"})
_LARGEST = 10**8  # comparisons that win counts may stand for


class PairRows:
    """The columns of a table of comparisons, by their roles; `ends` are those of the items."""

    def __init__(self, table: PairTable, columns: PairColumns) -> None:
        asked, columns = columns, columns.recognized(table.names)
        self._table, self._columns = table, columns
        self._read_as = "" if columns is asked else _read_as(columns)
        self._at: dict[str, int] = {}
        for role in ("magnitude", "weight", "tie", "group", "judge", "cluster"):
            self._find(role, getattr(columns, role), optional=role not in ("judge", "cluster"))
        self._counted = self._pair("wins")
        self._scored = self._pair("scores")
        is_battle = columns.sides is not None
        if is_battle:
            self._ends = self._pair("sides")
            if len(set(self._ends)) < 2:
                raise ValueError(
                    f"sides is {columns.sides!r}; pass the names of two different columns."
                )
            if not self._counted and not self._scored:
                name = columns.winner if columns.outcome is None else columns.outcome
                self._at["winner"] = table.position(name, "outcome")
        else:
            name = columns.winner if columns.outcome is None else columns.outcome
            hint = " Pass sides= and outcome= if it names two sides and who won."
            self._at["winner"] = table.position(name, "winner", hint)
            self._ends = [self._at["winner"], self._loser()]
        self._is_battle = is_battle
        self._controls = self._covariate_columns()
        self._read()

    def _read(self) -> None:
        numbers = [self._at[role] for role in ("magnitude", "weight") if role in self._at]
        numbers += self._counted + self._scored
        numbers += [at for pair in self._controls.values() if len(pair) == 2 for at in pair]
        if self._is_battle and self._columns.margin and "winner" in self._at:
            numbers.append(self._at["winner"])
        used = {*self._at.values(), *(at for pair in self._controls.values() for at in pair)}
        self._table.read([*self._ends, *(used - {*numbers, *self._ends})], numbers)

    def _find(self, role: str, column: Column | None, *, optional: bool) -> None:
        """The column of a role; by default the one of its name, if there is exactly one."""
        names = self._table.names
        if column is not None:
            self._at[role] = self._table.position(column, role)
        elif optional and names.count(role) == 1:
            self._at[role] = names.index(role)

    def _pair(self, role: str) -> list[int]:
        return [self._table.position(c, role) for c in getattr(self._columns, role) or ()]

    def _loser(self) -> int:
        is_battle = "winner" in self._table.names
        hint = " Pass sides= if the winner column says which of two sides won." if is_battle else ""
        return self._table.position(self._columns.loser, "loser", hint)

    def _covariate_columns(self) -> dict[str, list[int]]:
        found = {}
        for column in self._columns.covariates:
            parts = list(column) if isinstance(column, (tuple, list)) else [column]
            if len(parts) > 2:
                raise ValueError(f"covariates has {column!r}; a pair is one column for each side.")
            at = [self._table.position(part, "covariates") for part in parts]
            found[" − ".join(self._table.names[k] for k in at)] = at
        return found

    def data(self) -> PairData:
        """Check every row and make arrays of them."""
        first, second, texts = self._items()
        outcome = self._outcomes(first, second, texts)
        items, position = np.unique(self._table.named(texts, self._ends), return_inverse=True)
        ends = position.astype(np.intp)
        data = PairData(
            ends[first],
            ends[second],
            outcome,
            self._weights(len(first)),
            items,
            groups=self._labels("group"),
            judges=self._labels("judge"),
            clusters=self._labels("cluster"),
            covariates={name: self._covariate(name, at) for name, at in self._controls.items()},
            read_as=self._read_as,
        )
        return self._expanded(data) if self._counted else data

    def _items(self) -> tuple[Indices, Indices, list[str]]:
        """The two items as positions in the distinct labels."""
        names = [self._table.names[end] for end in self._ends]
        roles = names if self._is_battle else ["winner", "loser"]
        columns = [self._table.labels(at, role) for at, role in zip(self._ends, roles, strict=True)]
        texts = list(dict.fromkeys(text for _, labels in columns for text in labels))
        place = {text: k for k, text in enumerate(texts)}
        one, two = (np.array([place[t] for t in labels])[codes] for codes, labels in columns)
        self._table.refuse(
            one == two,
            lambda row: f"{show(texts[one[row]])} is compared with itself. Leave out the row.",
        )
        return one, two, texts

    def _outcomes(self, first: Indices, second: Indices, texts: list[str]) -> Array:
        """By how much the first side won."""
        n, margin = len(first), self._columns.margin
        if self._counted:
            return np.ones(n)
        if self._scored or (margin and self._is_battle):
            found = self._differences(self._scored or [self._at["winner"]], "score")
            return found if margin else np.sign(found)
        sign = np.ones(n)
        if self._is_battle:
            sign = self._verdicts(first, second, texts).astype(np.float64)
        is_tie = (sign == 0) | self._ties(n)
        return np.where(sign < 0, -1.0, 1.0) * self._magnitudes(is_tie) + 0.0

    def _differences(self, columns: list[int], role: str) -> Array:
        values = [self._table.numbers(at, role) for at in columns]
        for at, value in zip(columns, values, strict=True):
            self._table.refuse_number(~np.isfinite(value), at, role)
        return values[0] - values[1] if len(values) == 2 else values[0]

    def _verdicts(self, first: Indices, second: Indices, texts: list[str]) -> Indices:
        """1 if the first side won, −1 if the second did, 0 for a tie."""
        codes, words = self._table.labels(self._at["winner"], "winner")
        names = [self._table.names[end] for end in self._ends]
        place = {text: k for k, text in enumerate(texts)}
        item = np.array([place.get(word, -1) for word in words])[codes]
        sides = np.column_stack([item == first, item == second])
        side_of_name = {name.lower(): side for name, side in zip(names, (1, -1), strict=True)}
        general = meanings(words)
        is_item = np.bincount(codes, sides.any(axis=1)) == np.bincount(codes)  # in all its rows
        said: list[int | None] = []
        for code, word in enumerate(words):
            meaning = side_of_name.get(word.strip().lower(), general[code])
            is_name = word.strip().lower() in side_of_name
            said.append(None if is_item[code] and not is_name else meaning)
        self._refuse_unknown(said, is_item, codes, words, names, texts, first, second)
        meant = np.array([2 if side is None else side for side in said])[codes]
        by_item = np.where(sides[:, 0], 1, np.where(sides[:, 1], -1, 2))
        verdict = np.where(meant == 2, by_item, meant)
        self._table.refuse(
            (by_item != 2) & (by_item != verdict),
            lambda row: (
                f"the winner {show(words[codes[row]])} can be understood in two ways: as an item, "
                "and as a word for a side or a tie. Rename the item or the column."
            ),
        )
        return verdict

    def _refuse_unknown(
        self, said: list[int | None], is_item: NDArray[np.bool_], codes: Indices,
        words: list[str], names: list[str], texts: list[str], first: Indices, second: Indices,
    ) -> None:  # fmt: skip
        """All words that are neither understood nor the items of their rows, at once."""
        unknown = [k for k, side in enumerate(said) if side is None and not is_item[k]]
        if not unknown:
            return
        counts = np.bincount(codes)
        listed = ", ".join(
            show(words[k]) + (f" ({counts[k]} rows)" if counts[k] > 1 else "") for k in unknown[:20]
        )
        more = f" and {len(unknown) - 20} more" if len(unknown) > 20 else ""

        def problem(row: int) -> str:
            sides = [*names, texts[first[row]], texts[second[row]]]
            expected = f"expected {', '.join(map(show, sides))} or 'tie'"
            others = ", ".join(WORDS[1][1:4] + WORDS[SECOND][1:4] + WORDS[TIE][2:5:2])
            return (
                f"the winner is {listed}{more}, {expected}; also understood: {others}, 1, 2, 0.5."
            )

        self._table.refuse(np.isin(codes, unknown), problem)

    def _ties(self, n_rows: int) -> NDArray[np.bool_]:
        if "tie" not in self._at:
            return np.zeros(n_rows, dtype=bool)
        codes, texts = self._table.cells(self._at["tie"], "tie")
        words = [text.lower() for text in texts]
        self._table.refuse(
            np.array([word not in _TRUE | _FALSE for word in words])[codes],
            lambda row: (
                f"the tie is {show(texts[codes[row]])}, expected 1 or 0, true or false, yes or no."
            ),
        )
        is_tie: NDArray[np.bool_] = np.array([word in _TRUE for word in words])[codes]
        return is_tie

    def _magnitudes(self, is_tie: NDArray[np.bool_]) -> Array:
        if "magnitude" not in self._at:
            return np.where(is_tie, 0.0, 1.0)
        at = self._at["magnitude"]
        found = self._table.numbers(at, "magnitude")
        is_gap = np.isnan(found)
        self._table.refuse_number(np.isinf(found) | (is_gap & ~is_tie), at, "magnitude")
        self._table.refuse(
            found < 0,
            lambda row: (
                f"the magnitude is {found[row]:g}, expected 0 (a tie) or more. "
                "Swap winner and loser instead."
            ),
        )
        self._table.refuse(
            is_tie & (found > 0),
            lambda row: (
                f"the row is a tie, but its magnitude is {found[row]:g}. "
                "Write the magnitude 0 or leave it empty, or correct the tie."
            ),
        )
        return np.where(is_gap, 0.0, found)

    def _weights(self, n_rows: int) -> Array:
        if "weight" not in self._at:
            return np.ones(n_rows)
        at = self._at["weight"]
        found = self._table.numbers(at, "weight")
        self._table.refuse_number(~np.isfinite(found), at, "weight")
        self._table.refuse(
            found <= 0,
            lambda row: f"the weight is {found[row]:g}, expected more than 0. Leave out the row.",
        )
        return found

    def _labels(self, role: str) -> NDArray[Any] | None:
        if role not in self._at:
            return None
        said = "group of the comparison" if role == "group" else role
        codes, texts = self._table.labels(self._at[role], said)
        return self._table.named(texts, [self._at[role]])[codes]

    def _covariate(self, name: str, at: list[int]) -> NDArray[Any]:
        """Numbers if every cell is one, else labels of categories."""
        if len(at) == 2:
            return self._differences(at, f"covariate {name}")
        codes, texts = self._table.labels(at[0], f"covariate {name}")
        numbers = [finite_number(text) for text in texts]
        if any(number is None for number in numbers):
            return np.array(texts, dtype=np.str_)[codes]
        return np.array(numbers, dtype=np.float64)[codes]

    def _expanded(self, data: PairData) -> PairData:
        """As many comparisons as the counts of wins and ties say."""
        counts = np.column_stack([self._table.numbers(at, "wins") for at in self._counted])
        is_bad = ~np.isfinite(counts) | (counts < 0) | (counts != np.round(counts))

        def problem(row: int) -> str:
            at = int(is_bad[row].argmax())
            name = show(self._table.names[self._counted[at]])
            return (
                f"the number of wins, column {name}, is {counts[row, at]:g}, expected a whole "
                "number from 0."
            )

        self._table.refuse(is_bad.any(axis=1), problem)
        if counts.sum() > _LARGEST:
            raise ValueError(
                f"the wins count {counts.sum():.0f} comparisons, at most {_LARGEST} are read; "
                "divide the counts, or pass one row for each outcome with a weight."
            )
        n_rows, n_kinds = counts.shape
        each = np.repeat(np.arange(n_rows * n_kinds), counts.ravel().astype(np.intp))
        taken = data.take(each // n_kinds)
        return replace(taken, outcome=np.array([1.0, -1.0, 0.0])[each % n_kinds])


def _read_as(columns: PairColumns) -> str:
    first, second = columns.sides or ("", "")
    return f"{first!r} and {second!r} are read as the two sides, {columns.outcome!r} as the outcome"
