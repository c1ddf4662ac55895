"""Input files of commands: models, items, comparisons, and files of scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold

from rankwise.arrays import Array, Indices, Labels, Texts
from rankwise.cli import terminal
from rankwise.cli.pair_options import PairOptions
from rankwise.cli.shared_options import TableOptions, split_names
from rankwise.datasets import RankingData, read_pairs, read_ranking
from rankwise.datasets.column_values import distinct_cells
from rankwise.datasets.file_formats import Format
from rankwise.datasets.files import import_arrow
from rankwise.datasets.open_tables import open_unless_letor
from rankwise.datasets.overlap import share_seen
from rankwise.datasets.table_files import TableFile
from rankwise.formatting import join_words
from rankwise.frames import frame_matrix
from rankwise.graphs import PairGraph
from rankwise.model_selection.scorer import needs_groups

if TYPE_CHECKING:
    import pyarrow as pa

    from rankwise.cli.trained_model import TrainedModel

NO_COLUMN = "none"  # value of --target and --group
MAX_JUDGE_FOLDS = 10
SHOWN_NAMES = 8  # names of columns in a line of a summary


class ReadingOptions(TypedDict, total=False):
    """Arguments of `read_ranking` that name columns or say how their cells are read."""

    target: str | None
    group: str | list[str] | None
    id: str | None
    weight: str | None
    time: str | None
    event: str | None
    features: Sequence[str] | None
    ignore: Sequence[str]
    text: Sequence[str]
    numeric: Sequence[str]
    missing: Sequence[str]
    levels: Sequence[str]
    n_features: int
    zero_based: bool
    target_needed: bool


class DataFile:
    """A file of items that is opened and parsed once.

    Parameters
    ----------
    path : Path
        The file.
    table : TableOptions
        Options of the command.
    target_needed : bool, default=True
        Whether a table without true scores is refused.
    weight : str, optional
        Column of the weights.

    Attributes
    ----------
    data_path : Path
        The argument DATA: this file, or the file of comparisons of its items.
    is_letor : bool
        Whether the file has svmlight rows.
    names : list of str
        Names of the columns; empty for svmlight rows.
    """

    rows_are = "items"
    default_metrics: tuple[str, ...] = ()  # empty: those of `rankwise.metrics.evaluate`

    def __init__(
        self,
        path: Path,
        table: TableOptions,
        *,
        target_needed: bool = True,
        weight: str | None = None,
    ) -> None:
        self.path = path
        self.data_path = path
        self.table = table
        self.target_needed = target_needed
        self.weight = weight
        opened = open_unless_letor(
            str(path),
            delimiter=table.delimiter,
            decimal=table.decimal,
            header=not table.no_header,
            format=cast("Format", table.input_format),  # checked by the function
        )
        self.is_letor = opened is None
        self._opened = opened
        self._letor_data: dict[tuple[bool, int | None], RankingData] = {}
        self.names = [] if opened is None else list(opened.names)

    @property
    def opened(self) -> TableFile:
        """The table; svmlight rows are none."""
        assert self._opened is not None
        return self._opened

    def read(
        self, *, lower_is_better: bool | None = None, **options: Unpack[ReadingOptions]
    ) -> RankingData:
        """Read the items: a frame for a table, a matrix for svmlight rows.

        Parameters
        ----------
        lower_is_better : bool, optional
            Replaces the option of the command.
        **options
            Replace arguments that follow from the options of the command.
        """
        if lower_is_better is None:
            lower_is_better = self.table.lower_is_better
        arguments: ReadingOptions = {**self._options(), **options}
        if self._opened is None:
            key = (arguments["zero_based"], arguments.get("n_features"))
            if key not in self._letor_data:
                self._letor_data[key] = read_ranking(
                    self.path, as_frame=True, format="letor", **arguments
                )
            data = self._letor_data[key]
        else:
            data = read_ranking(self._opened, as_frame=True, **arguments)
        if lower_is_better and data.y is not None:
            return data._replace(y=-data.y)
        return data

    def _options(self) -> ReadingOptions:
        """Arguments of `read_ranking` that follow from the options of the command."""
        table = self.table
        target: str | None = table.survival_column() or table.target or "auto"
        if target == NO_COLUMN:
            target = None
        group: str | list[str] | None = split_names(table.group, self.names) or "auto"
        if group == [NO_COLUMN]:
            group = None
        return {
            "target": target,
            "group": group,
            "id": table.id,
            "event": table.event,
            "weight": self.weight,
            "missing": table.missing,
            "levels": table.levels(),
            "zero_based": table.zero_based,
            "target_needed": self.target_needed,
        }

    def read_scored(self) -> RankingData:
        """Read items with their true scores and without features."""
        if self.is_letor:
            return self.read()
        return self.read(features=[])

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Read items with the features of a trained model, in the order of the model."""
        if self.is_letor:
            data = self._read_letor_for(trained)
        else:
            data = self._read_table_for(trained)
        group = trained.notes.group
        if data.groups is None and group and self.table.group != (NO_COLUMN,):
            self._check_groups(trained)
        return data

    def _check_groups(self, trained: TrainedModel) -> None:
        """Refuse a file without groups for a model that was trained on groups, or note it."""
        problem = (
            f"{trained.name} was trained on groups by {trained.notes.group}, which {self.path} "
            "lacks"
        )
        if needs_groups(trained.model) or (self.target_needed and not self.is_letor):
            raise ValueError(
                f"{problem}; name the column of groups with --group, or rank all items as one "
                "list with --group none."
            )
        terminal.note(f"{problem}: all items are ranked as one list")

    def _read_table_for(self, trained: TrainedModel) -> RankingData:
        """Read the features of a trained model from a table."""
        features = trained.features
        if not features:
            return self._read_unnamed_features(trained)
        missing = [name for name in features if name not in self.names]
        if missing:
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the {len(features)} columns that "
                f"{trained.name} was trained on: {join_words(missing, SHOWN_NAMES)}. "
                f"It has {join_words(self.names, 30)}."
            )
        columns = list(features)
        if self.target_needed:  # `share_seen` identifies training rows by all training columns
            all_columns = self._fingerprint_columns(trained)
            columns += [name for name in all_columns if name not in features]
        options = self._trained_roles(trained)
        options["features"] = columns
        options["text"] = trained.text_features()
        options["numeric"] = trained.numeric_features()
        data = self.read(lower_is_better=self._lower_is_better(trained), **options)
        assert data.feature_names is not None
        data = data._replace(
            X=data.frame.select(features), feature_names=data.feature_names[: len(features)]
        )
        if trained.columns is None:
            return data._replace(X=frame_matrix("the table", data.X))
        return data

    def _read_unnamed_features(self, trained: TrainedModel) -> RankingData:
        """Read all features of a table for a model without feature names."""
        if trained.notes.data:
            raise ValueError(
                f"{trained.name} was trained on svmlight rows, whose features have numbers, but "
                f"{self.path} is a table, whose features have names; write it as svmlight rows."
            )
        terminal.note(f"{trained.name} has no feature names; features are matched by position")
        data = self.read()
        return data._replace(X=frame_matrix("the table", data.X))

    def _read_letor_for(self, trained: TrainedModel) -> RankingData:
        """Read svmlight rows; trailing features that the file does not have are zero."""
        if trained.columns is not None:
            raise ValueError(
                f"{trained.name} expects a table with the columns {', '.join(trained.features)}, "
                f"but {self.path} has svmlight rows, whose features have numbers."
            )
        if trained.features:
            terminal.note(f"{self.path} has no column names; features are matched by position")
        zero_based = self.table.zero_based or trained.notes.zero_based
        lower_is_better = self._lower_is_better(trained)
        data = self.read(zero_based=zero_based, lower_is_better=lower_is_better)
        n_columns = data.X.shape[1]
        n_features = trained.n_features
        if n_columns < n_features:
            return self.read(
                n_features=n_features, zero_based=zero_based, lower_is_better=lower_is_better
            )
        if n_columns > n_features and trained.notes.sparse:
            terminal.note(
                f"features of {self.path} beyond the {n_features} of the training data are dropped"
            )
            return data._replace(X=data.X[:, :n_features])
        return data  # the model refuses additional features

    def share_seen(self, trained: TrainedModel, data: RankingData) -> float:
        """Estimate the share of the scored items that the model was trained on."""
        notes = trained.notes
        fingerprint = notes.rows
        columns = self._fingerprint_columns(trained)
        if columns:
            if columns == notes.columns:
                fingerprint = notes.whole_rows
            options = self._trained_roles(trained)
            options["features"] = columns
            data = self.read(lower_is_better=self._lower_is_better(trained), **options)
        assert data.y is not None
        rows = np.flatnonzero(~np.isnan(data.y))
        scored = data.take(rows)
        return share_seen(fingerprint, scored.X, data.y[rows], scored.groups)

    def _fingerprint_columns(self, trained: TrainedModel) -> list[str]:
        """All columns of the training data if the file has them, else the features."""
        columns = trained.notes.columns
        if not columns:
            return []
        if set(columns) <= set(self.names):
            return columns
        return trained.features

    def _lower_is_better(self, trained: TrainedModel) -> bool:
        """Whether smaller scores are better, by the command or by the training data."""
        return self.table.lower_is_better or trained.notes.lower

    def _check_event(self, trained: TrainedModel) -> None:
        """Refuse a file with survival times and without their events."""
        notes = trained.notes
        if notes.event not in self.names:
            raise ValueError(
                f"{trained.name} was trained on survival times {notes.target} with the event "
                f"{notes.event}, but {self.path} has no column {notes.event}; name the columns "
                "with --survival-time and --event."
            )

    def _trained_roles(self, trained: TrainedModel) -> ReadingOptions:
        """Roles of columns in the training data that no option of the command replaces."""
        notes = trained.notes
        table = self.table
        options: ReadingOptions = {}
        if table.target is None and not self.target_needed:
            options["target"] = None
            options["event"] = None
        elif table.survival_time is None and table.target is None and notes.target in self.names:
            options["target"] = notes.target
            if notes.event:
                self._check_event(trained)
                options["event"] = notes.event
        groups = split_names([notes.group], self.names)
        if groups and not table.group and set(groups) <= set(self.names):
            options["group"] = groups
        if not table.missing:
            options["missing"] = notes.missing
        if not table.levels():
            options["levels"] = notes.levels
        return options


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
    compared : PairData
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
            raise ValueError("comparisons replace the target; leave out --target or --items.")
        item_table = replace(table, target=NO_COLUMN, group=table.group or (NO_COLUMN,))
        super().__init__(items, item_table, target_needed=False)
        if self.is_letor:
            raise ValueError(f"{items} has svmlight rows, expected a table with item names.")
        self.data_path = path
        pair_columns = columns.columns()
        pair_columns["weight"] = weight
        self.compared = read_pairs(path, delimiter=table.delimiter, **pair_columns)
        if self.compared.read_as:
            terminal.note(f"{self.compared.read_as}; change it with --sides and --outcome.")
        self.table = replace(item_table, id=table.id or self._id_column())
        is_weighted = bool((self.compared.weight != 1).any())
        self.default_metrics = ("disagreement(average=pairs)" if is_weighted else "disagreement",)

    def _id_column(self) -> str:
        """The column that contains the most names of compared items."""
        names = {str(item) for item in self.compared.items}
        n_names: dict[str, int] = {}
        for position, column in self.opened.read(range(len(self.names)), []).items():
            with suppress(ValueError):  # a column of lists has no names
                texts = distinct_cells(column)[1]
                n_names[self.names[position]] = len(names.intersection(texts))
        best = max(n_names, key=n_names.__getitem__)
        if not n_names[best]:
            raise ValueError(
                f"{self.path}: no column has names of compared items, such as {min(names)}; name "
                "it with --id."
            )
        return best

    def item_rows(self, ids: Texts) -> Indices:
        """Return the row of each compared item."""
        return rows_of_items(self.compared.items, ids, f"{self.path}, column {self.table.id},")

    def read_items(self, trained: TrainedModel) -> RankingData:
        """Read the items with the features of the model."""
        return super().read_for(trained)

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Read each comparison as a list of two items with the features of the model."""
        return self._lists(self.read_items(trained))

    def read_scored(self) -> RankingData:
        """Read each comparison as a list of two items without features."""
        return self._lists(super().read_scored())

    def _lists(self, items: RankingData) -> RankingData:
        """Each comparison as a list of two items, the winner first."""
        assert items.ids is not None
        pairs = self.compared
        rows = self.item_rows(items.ids)
        winners_and_losers = np.column_stack([rows[pairs.winner], rows[pairs.loser]])
        labels = pairs.items.astype(str)
        names = zip(labels[pairs.winner], labels[pairs.loser], strict=True)
        lists = [f"{k}. {winner} – {loser}" for k, (winner, loser) in enumerate(names, start=1)]
        zeros = np.zeros(pairs.n_pairs)
        ones = np.ones(pairs.n_pairs)
        return items.take(winners_and_losers.ravel())._replace(
            y=np.column_stack([pairs.magnitude, zeros]).ravel(),
            groups=np.repeat(lists, 2),
            weight=np.column_stack([pairs.weight, ones]).ravel(),
        )

    def items_of_comparisons(self, data: RankingData) -> Texts:
        """The two items of each comparison in lists of `read_for`, sorted by group."""
        assert data.ids is not None
        assert data.groups is not None
        order = np.argsort(data.groups, kind="stable")
        return data.ids[order].reshape(-1, 2)

    def share_seen(self, trained: TrainedModel, data: RankingData) -> float:
        """Estimate the share of the comparisons that the model was trained on."""
        return share_seen(trained.notes.rows, *self.rows())

    def rows(self) -> tuple[pa.Table, Array, Labels | None]:
        """The comparisons as a table, magnitudes and judges, for a fingerprint."""
        pairs = self.compared
        ends = np.column_stack([pairs.winner, pairs.loser])
        is_tie = pairs.outcome[:, None] == 0
        ends = np.where(is_tie, np.sort(ends), ends)  # the order of tied items has no meaning
        labels = pairs.items.astype(str)
        columns = {"winner": labels[ends[:, 0]], "loser": labels[ends[:, 1]]}
        return import_arrow().table(columns), pairs.magnitude, pairs.judges

    def graph(self, groups: ArrayLike | None, options: BaseEstimator | PairGraph) -> PairGraph:
        """Return the comparisons as a graph.

        Parameters
        ----------
        groups : array-like or None
            Groups of items that are held out together; None: connected components.
        options : estimator or PairGraph
            Its attributes `cost` and `group_weight` are used if it has them.
        """
        pairs = self.compared
        settings = {
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
            **settings,
        )

    def one_list(self) -> list[int]:
        """One group of all items: edges are held out, not connected components."""
        return [0] * self.compared.n_items

    def judge_folds(self) -> list[tuple[Indices, Indices]] | None:
        """Folds of whole judges, or None if the comparisons have no judges."""
        judges = self.compared.judges
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
    row_of = {name: row for row, name in enumerate(ids.tolist())}
    n_rows_of = Counter(ids.tolist())
    missing = [name for name in names if name not in row_of]
    if missing:
        raise ValueError(
            f"{source} lacks {len(missing):,} of the {len(names):,} compared items: "
            f"{join_words(missing, 5)}. Add their rows, leave out their comparisons, or name "
            "another column of items."
        )
    repeated = [name for name in names if n_rows_of[name] > 1]
    if repeated:
        raise ValueError(
            f"{source} has several rows for {join_words(repeated, 5)}; expected one row per item."
        )
    return np.array([row_of[name] for name in names])


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
