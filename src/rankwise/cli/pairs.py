"""Comparisons in files, and the items that were compared with their features."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rankwise.cli.data import DataFile, TrainedModel
from rankwise.cli.options import TableOptions, flag, option, split_names
from rankwise.cli.session import note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.datasets import PairData, RankingData

PAIRS = "Comparisons"
MOST_FOLDS = 10  # of judges


def _column(help: str, metavar: str = "COLUMN") -> Any:
    return option(help, metavar, panel=PAIRS)


@dataclass
class PairOptions:
    """Which columns say who met whom, and who won."""

    winner: Annotated[str, _column("Item that won.")] = "winner"
    loser: Annotated[str | None, _column("Item that lost; loser if not given.")] = None
    sides: Annotated[str | None, _column("Two columns of items, the first side first.", "A,B")] = (
        None
    )
    outcome: Annotated[
        str | None,
        _column(
            "With --sides, who won: left, first, a, 1, the name of the column or of the item, tie, "
            "both bad, …; --winner if not given."
        ),
    ] = None
    map: Annotated[
        list[str] | None,
        _column(
            "What a word of the outcome means, first, second or tie; may be repeated.", "WORD=SIDE"
        ),
    ] = None
    wins: Annotated[
        str | None, _column("With --sides, how often each side won, and neither.", "A,B[,TIES]")
    ] = None
    scores: Annotated[str | None, _column("With --sides, the points of each side.", "A,B")] = None
    margin: Annotated[
        bool,
        flag("--margin", help="The difference of scores counts, not only who won.", panel=PAIRS),
    ] = False
    magnitude: Annotated[str | None, _column("By how much; 0 is a tie.")] = None
    tie: Annotated[str | None, _column("Whether it was a tie.")] = None
    judge: Annotated[str | None, _column("Who judged; also what is left out as a whole.")] = None

    def columns(self) -> dict[str, Any]:
        """The columns as `read_pairs` takes them."""
        if self.sides is not None and self.loser is not None:
            raise ValueError("--sides says who took part; leave out --loser.")
        alike = ("winner", "outcome", "margin", "magnitude", "tie", "judge")
        columns: dict[str, Any] = {name: getattr(self, name) for name in alike}
        columns["loser"] = self.loser or "loser"
        for name in ("sides", "wins", "scores"):
            given = getattr(self, name)
            columns[name] = None if given is None else split_names([given])
        meanings = [text.rpartition("=") for text in self.map or ()]
        if not all(equals for _, equals, _ in meanings):
            raise ValueError(f"--map {self.map}: expected WORD=first, WORD=second or WORD=tie.")
        columns["outcome_words"] = {word: side for word, _, side in meanings}
        return columns


@dataclass
class ItemOptions(PairOptions):
    """The same for commands that take either scored items or comparisons of items."""

    items: Annotated[
        Path | None,
        _column("DATA are comparisons of the items of this table.", "FILE"),
    ] = None


def open_data(
    path: Path,
    table: TableOptions,
    pairs: ItemOptions,
    *,
    weight: str | None = None,
) -> DataFile:
    """Scored items, or comparisons if their items are named."""
    if pairs.items is not None:
        return PairFile(path, table, pairs, weight)
    if pairs != ItemOptions():
        raise ValueError(
            f"{path}: who won is asked for in comparisons only; name the table of their items with "
            "--items."
        )
    return DataFile(path, table, weight=weight)


class PairFile(DataFile):
    """Comparisons in one file, and the items that were compared in another."""

    rows_are = "comparisons"

    def __init__(
        self, path: Path, table: TableOptions, pairs: ItemOptions, weight: str | None = None
    ) -> None:
        from rankwise.datasets import read_pairs

        assert pairs.items is not None
        if table.target is not None:
            raise ValueError("comparisons take the place of scores; leave out --target or --items.")
        alone = replace(table, target="none", group=table.group or ["none"])
        super().__init__(pairs.items, alone, target_needed=False)
        if self.is_letor:
            raise ValueError(f"{pairs.items} has svmlight rows, expected a table with item names.")
        self.pairs_path = path
        columns = {**pairs.columns(), "weight": weight, "delimiter": table.delimiter}
        self.compared = read_pairs(path, **columns)
        if self.compared.read_as:
            note(f"{self.compared.read_as}; --sides and --outcome say it otherwise.")
        self.table.id = table.id or self._naming_column()
        is_weighted = bool((self.compared.weight != 1).any())
        self.usual_metrics = ["disagreement(average=pairs)" if is_weighted else "disagreement"]

    def _naming_column(self) -> str:
        """The column in which most of the compared items are."""
        from rankwise.datasets.columns import distinct_cells

        names = {str(item) for item in self.compared.items}
        columns = self._opened.read(range(len(self.names)), [])
        best, most = "", 0
        for at, column in columns.items():
            with suppress(ValueError):  # a column of lists has no names
                n_names = len(names.intersection(distinct_cells(column)[1]))
                if n_names > most:
                    best, most = self.names[at], n_names
        if not most:
            example = next(iter(self.compared.items))
            raise ValueError(
                f"{self.path}: no column has names of compared items, such as {example!s}; name it "
                "with --id."
            )
        return best

    def item_rows(self, ids: NDArray[np.object_]) -> NDArray[np.intp]:
        """The row of each compared item; those that are not there, or twice, are told."""
        import numpy as np

        from rankwise.text_tables import listed

        row: dict[str, int] = {}
        twice = set()
        for k, name in enumerate(ids.tolist()):
            if row.setdefault(name, k) != k:
                twice.add(name)
        names = [str(item) for item in self.compared.items]
        missing = [name for name in names if name not in row]
        if missing:
            raise ValueError(
                f"{self.path} lacks {len(missing):,} of the {len(names):,} compared items in its "
                f"column {self.table.id}: {listed(missing, 5)}. Add their rows, leave their "
                f"comparisons out of {self.pairs_path}, or name another column with --id."
            )
        repeated = sorted(twice.intersection(names))
        if repeated:
            raise ValueError(
                f"{self.path} has compared items twice in its column {self.table.id}: "
                f"{listed(repeated, 5)}. Give each item one row."
            )
        return np.array([row[name] for name in names])

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Each comparison as a list of two items with the features of the model."""
        return self._lists(super().read_for(trained))

    def read_judged(self) -> RankingData:
        """The same without features."""
        return self._lists(super().read_judged())

    def _lists(self, items: RankingData) -> RankingData:
        """Each comparison as a list of two items, the winner first."""
        import numpy as np

        assert items.ids is not None
        pairs, rows = self.compared, self.item_rows(items.ids)
        ends = rows[np.column_stack([pairs.winner, pairs.loser])]
        labels = pairs.items.astype(str)
        names = zip(labels[pairs.winner], labels[pairs.loser], strict=True)
        lists = [f"{k}. {winner} – {loser}" for k, (winner, loser) in enumerate(names, start=1)]
        others = np.zeros(pairs.n_pairs)
        return items.take(ends.ravel())._replace(
            y=np.column_stack([pairs.magnitude, others]).ravel(),
            groups=np.repeat(lists, 2),
            weight=np.column_stack([pairs.weight, others + 1]).ravel(),
        )

    def to_recognize(self, trained: TrainedModel, data: Any) -> tuple[str, Any, Any, Any]:
        """The comparisons, which a model may have been trained on."""
        return (trained.notes.rows, *rows_of_pairs(self.compared))


def rows_of_pairs(pairs: PairData) -> tuple[Any, NDArray[np.float64], Any]:
    """Comparisons as a table, numbers and labels, of which `sketch_rows` makes a fingerprint."""
    import numpy as np

    from rankwise.datasets.files import import_arrow

    ends = np.column_stack([pairs.winner, pairs.loser])
    ends = np.where(pairs.outcome[:, None] == 0, np.sort(ends), ends)  # ties have no first item
    labels = pairs.items.astype(str)
    columns = {"winner": labels[ends[:, 0]], "loser": labels[ends[:, 1]]}
    return import_arrow().table(columns), pairs.magnitude, pairs.judges


def pair_graph(pairs: PairData, groups: Any, options: Any, *, is_one: bool = False) -> Any:
    """The comparisons as a graph with the options of an estimator, or of another graph.

    If it is one, its edges are held out, not its components.
    """
    from rankwise.graphs import PairGraph

    names = ("cost", "group_weight")
    own = {name: getattr(options, name) for name in names if hasattr(options, name)}
    groups = [0] * pairs.n_items if is_one else groups
    ends = (pairs.winner, pairs.loser, pairs.magnitude, pairs.weight, pairs.n_items)
    return PairGraph(*ends, groups=groups, **own)


def judge_folds(judges: Any) -> Any:
    """Folds of whole judges, if comparisons have judges."""
    if judges is None:
        return "auto"
    from sklearn.model_selection import GroupKFold

    n_judges = len(set(judges.tolist()))
    if n_judges < 2:
        raise ValueError("--judge: there is one judge only, so none can be held out; leave it out.")
    return list(GroupKFold(min(MOST_FOLDS, n_judges)).split(judges, groups=judges))
