"""Files of comparisons with a table of the compared items."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold

from rankwise.arrays import Array, Indices, Labels, Texts
from rankwise.cli import terminal
from rankwise.cli.input_files import NO_COLUMN, DataFile
from rankwise.cli.pair_options import PairOptions
from rankwise.cli.shared_options import TableOptions
from rankwise.datasets import RankingData, read_pairs
from rankwise.datasets.column_values import distinct_cells
from rankwise.datasets.files import import_arrow
from rankwise.datasets.overlap import share_seen
from rankwise.formatting import join_words
from rankwise.graphs import PairGraph

if TYPE_CHECKING:
    import pyarrow as pa

    from rankwise.cli.trained_model import TrainedModel

MAX_JUDGE_FOLDS = 10


class FingerprintedComparisons(NamedTuple):
    """Comparisons as a table of winners and losers, with their magnitudes and judges."""

    X: pa.Table
    y: Array
    groups: Labels | None


class PairFile(DataFile):
    """Comparisons in one file, and the compared items in another.

    Parameters
    ----------
    path : Path
        The file of comparisons.
    table : TableOptions
        How the table of items is read.
    items : Path
        The table of items.
    columns : PairOptions
        Columns of the comparisons.
    weight : str, optional
        Column of the weights of the comparisons.

    Attributes
    ----------
    comparisons : PairData
        The comparisons.
    """

    rows_are = "comparisons"

    def __init__(
        self,
        path: Path,
        table: TableOptions,
        items: Path,
        columns: PairOptions,
        weight: str | None = None,
    ) -> None:
        if table.target is not None:
            raise ValueError(
                "--items reads comparisons, which have no target; leave out --target or --items."
            )
        item_table = replace(table, target=NO_COLUMN, group=table.group or (NO_COLUMN,))
        super().__init__(items, item_table, target_needed=False)
        if self.is_letor:
            raise ValueError(f"{items} has svmlight rows, expected a table with item names.")
        self.data_path = path
        pair_columns = columns.columns()
        pair_columns["weight"] = weight
        self.comparisons = read_pairs(path, delimiter=table.delimiter, **pair_columns)
        if self.comparisons.read_as:
            terminal.note(f"{self.comparisons.read_as}; change it with --sides and --outcome.")
        self.table = replace(item_table, id=table.id or self._id_column())
        is_weighted = bool((self.comparisons.weight != 1).any())
        self.default_metrics = ("disagreement(average=pairs)" if is_weighted else "disagreement",)

    def _id_column(self) -> str:
        """The column that contains the most names of compared items."""
        compared_names = {str(item) for item in self.comparisons.items}
        columns = self.opened.read(range(len(self.names)), [])  # all as texts
        most_names = 0
        id_column = ""
        for position, column in columns.items():
            with suppress(ValueError):  # a column of lists has no names
                _, texts = distinct_cells(column)
                n_names = len(compared_names.intersection(texts))
                if n_names > most_names:
                    most_names = n_names
                    id_column = self.names[position]
        if most_names == 0:
            raise ValueError(
                f"{self.path}: no column has names of compared items, such as "
                f"{min(compared_names)}; name it with --id."
            )
        return id_column

    def item_rows(self, ids: Texts) -> Indices:
        """Return the row of each compared item."""
        return rows_of_items(self.comparisons.items, ids, f"{self.path}, column {self.table.id},")

    def read_items(self, trained: TrainedModel) -> RankingData:
        """Read the items with the features of the model."""
        return super().read_for(trained)

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Read each comparison as a list of two items with the features of the model."""
        return self._as_lists_of_two(self.read_items(trained))

    def read_scored(self) -> RankingData:
        """Read each comparison as a list of two items without features."""
        return self._as_lists_of_two(super().read_scored())

    def _as_lists_of_two(self, items: RankingData) -> RankingData:
        """Each comparison as a list of two items, the winner first."""
        assert items.ids is not None
        pairs = self.comparisons
        row_of_item = self.item_rows(items.ids)
        label_of_item = pairs.items.astype(str)
        winners = label_of_item[pairs.winner]
        losers = label_of_item[pairs.loser]
        list_names = [
            f"{number}. {winner} – {loser}"
            for number, (winner, loser) in enumerate(zip(winners, losers, strict=True), start=1)
        ]
        # (n_pairs, 2): winner and loser
        rows = np.column_stack([row_of_item[pairs.winner], row_of_item[pairs.loser]])
        y = np.column_stack([pairs.magnitude, np.zeros(pairs.n_pairs)])
        # Metrics multiply the weights of two items, so each list has the weight of its comparison.
        weight = np.column_stack([pairs.weight, np.ones(pairs.n_pairs)])
        return items.take(rows.ravel())._replace(
            y=y.ravel(), groups=np.repeat(list_names, 2), weight=weight.ravel()
        )

    def items_of_comparisons(self, data: RankingData) -> Texts:
        """The two items of each comparison in lists of `read_for`, sorted by group."""
        assert data.ids is not None
        assert data.groups is not None
        # Every comparison is a group of two rows.
        sorted_by_group = np.argsort(data.groups, kind="stable")
        return data.ids[sorted_by_group].reshape(-1, 2)

    def share_of_training_rows(self, trained: TrainedModel, data: RankingData) -> float:
        """Estimate the share of the comparisons that the model was trained on."""
        # The notes of a model have a fingerprint (hash) of its training comparisons.
        comparisons = self.comparisons_to_fingerprint()
        return share_seen(trained.notes.rows, comparisons.X, comparisons.y, comparisons.groups)

    def comparisons_to_fingerprint(self) -> FingerprintedComparisons:
        """The comparisons as the arguments of `fingerprint_rows`."""
        pairs = self.comparisons
        winner_and_loser = np.column_stack([pairs.winner, pairs.loser])
        # The order of tied items has no meaning.
        is_tie = pairs.outcome[:, np.newaxis] == 0
        sorted_items = np.sort(winner_and_loser, axis=1)
        winner_and_loser = np.where(is_tie, sorted_items, winner_and_loser)
        label_of_item = pairs.items.astype(str)
        names = label_of_item[winner_and_loser]
        table = import_arrow().table({"winner": names[:, 0], "loser": names[:, 1]})
        return FingerprintedComparisons(X=table, y=pairs.magnitude, groups=pairs.judges)

    def graph(self, groups: ArrayLike | None, options: BaseEstimator | PairGraph) -> PairGraph:
        """Return the comparisons as a graph.

        Parameters
        ----------
        groups : array-like or None
            Groups of items that are held out together; None: connected components.
        options : estimator or PairGraph
            Its attributes `cost` and `group_weight` are used if it has them.
        """
        pairs = self.comparisons
        graph_options = {
            name: getattr(options, name)
            for name in ("cost", "group_weight")
            if hasattr(options, name)
        }
        return PairGraph(
            pairs.winner,
            pairs.loser,
            pairs.magnitude,
            pairs.weight,
            pairs.n_items,
            groups=groups,
            items=pairs.items,
            **graph_options,
        )

    def one_group_of_items(self) -> list[int]:
        """One group of all items: edges are held out, not connected components."""
        return [0] * self.comparisons.n_items

    def judge_folds(self) -> list[tuple[Indices, Indices]] | None:
        """Folds of whole judges, or None if the comparisons have no judges."""
        judges = self.comparisons.judges
        if judges is None:
            return None
        n_folds = min(MAX_JUDGE_FOLDS, len(set(judges.tolist())))
        if n_folds < 2:
            raise ValueError("--judge: there is only one judge, who cannot be held out.")
        return list(GroupKFold(n_folds).split(judges, groups=judges))


def rows_of_items(items: Labels, ids: Texts, source: str) -> Indices:
    """Return the row of each compared item; refuse items without a row, or with several.

    Parameters
    ----------
    items : ndarray
        The compared items.
    ids : ndarray of str
        The item of each row of a table.
    source : str
        File and column of `ids`, for messages.
    """
    names = [str(item) for item in items]
    row_of_name = {name: row for row, name in enumerate(ids.tolist())}
    n_rows_of_name = Counter(ids.tolist())
    missing = [name for name in names if name not in row_of_name]
    if missing:
        raise ValueError(
            f"{source} lacks {len(missing):,} of the {len(names):,} compared items: "
            f"{join_words(missing, 5)}. Add their rows, leave out their comparisons, or name "
            "another column of items."
        )
    repeated = [name for name in names if n_rows_of_name[name] > 1]
    if repeated:
        raise ValueError(
            f"{source} has several rows for {join_words(repeated, 5)}; expected one row per item."
        )
    return np.array([row_of_name[name] for name in names])


def open_data(
    path: Path,
    table: TableOptions,
    items: Path | None,
    pair_columns: PairOptions,
    *,
    weight: str | None = None,
) -> DataFile:
    """Open scored items, or comparisons if there is a table of the compared items."""
    if items is not None:
        return PairFile(path, table, items, pair_columns, weight)
    if not pair_columns.is_empty():
        raise ValueError(
            f"{path}: --winner, --sides and the like need --items, the table of the compared items."
        )
    return DataFile(path, table, weight=weight)
