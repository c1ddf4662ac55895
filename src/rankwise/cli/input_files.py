"""Files of items that commands read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import numpy as np

from rankwise.cli import terminal
from rankwise.cli.shared_options import TableOptions, split_names
from rankwise.datasets import RankingData, read_ranking
from rankwise.datasets.file_formats import Format
from rankwise.datasets.files import import_arrow
from rankwise.datasets.open_tables import open_unless_letor
from rankwise.datasets.overlap import share_seen
from rankwise.datasets.ranking_reader import COLUMN_ARGUMENTS, read_letor_items
from rankwise.datasets.table_files import TableFile
from rankwise.formatting import join_words
from rankwise.frames import frame_matrix
from rankwise.model_selection.scorer import needs_groups

if TYPE_CHECKING:
    import pyarrow as pa

    from rankwise.cli.trained_model import TrainedModel

NO_COLUMN = "none"  # value of --target and --group
SHOWN_NAMES = 8  # names of columns in a line of a summary


def nested_cells_as_text(X: Any) -> Any:
    """Replace the lists and records of a table by their text, which can be hashed."""
    if not hasattr(X, "column_names"):  # a matrix
        return X
    arrow = import_arrow()
    for position, name in enumerate(X.column_names):
        column = X.column(position)
        if arrow.types.is_nested(column.type):
            texts = [None if cell is None else str(cell) for cell in column.to_pylist()]
            X = X.set_column(position, name, arrow.array(texts, arrow.string()))
    return X


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
        self._opened = open_unless_letor(
            str(path),
            delimiter=table.delimiter,
            decimal=table.decimal,
            header=not table.no_header,
            format=cast("Format", table.input_format),  # checked by the function
        )
        self._letor_data: dict[tuple[bool, int | None], RankingData] = {}
        self.is_letor = self._opened is None
        self.names: list[str] = []
        if self._opened is not None:
            self.names = list(self._opened.names)

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
        arguments: ReadingOptions = {**self._arguments_of_options(), **options}
        if self._opened is None:
            data = self._read_letor(arguments)
        else:
            data = read_ranking(self._opened, as_frame=True, **arguments)
        if lower_is_better and data.y is not None:
            return data._replace(y=-data.y)
        return data

    def _read_letor(self, arguments: ReadingOptions) -> RankingData:
        """Read svmlight rows; a second call with the same arguments returns the same data."""
        zero_based = arguments["zero_based"]
        n_features = arguments.get("n_features")
        if (zero_based, n_features) not in self._letor_data:
            column_arguments: dict[str, Any] = {
                name: arguments.get(name) for name in COLUMN_ARGUMENTS
            }
            self._letor_data[zero_based, n_features] = read_letor_items(
                str(self.path), column_arguments, n_features, zero_based
            )
        return self._letor_data[zero_based, n_features]

    def _arguments_of_options(self) -> ReadingOptions:
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
            "levels": table.target_order(),
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
        was_trained_on_groups = bool(trained.notes.group)
        ranks_one_list = self.table.group == (NO_COLUMN,)
        if data.groups is None and was_trained_on_groups and not ranks_one_list:
            self._refuse_or_note_missing_groups(trained)
        return data

    def _refuse_or_note_missing_groups(self, trained: TrainedModel) -> None:
        """Refuse a file without groups for a model that was trained on groups, or note it."""
        problem = (
            f"{trained.name} was trained on groups by {trained.notes.group}, which {self.path} "
            "lacks"
        )
        # Metrics need the groups. Svmlight rows have no columns to name: without qid they are
        # one list.
        must_name_groups = self.target_needed and not self.is_letor
        if needs_groups(trained.model) or must_name_groups:
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
        self._refuse_missing_features(trained)
        further_columns: list[str] = []
        if self.target_needed:
            # `share_of_training_rows` identifies rows by all training columns: parse them now.
            all_columns = self._columns_of_fingerprint(trained)
            further_columns = [name for name in all_columns if name not in features]
        arguments = self._roles_in_training(trained)
        arguments["features"] = [*features, *further_columns]
        arguments["text"] = trained.text_features()
        arguments["numeric"] = trained.numeric_features()
        data = self.read(lower_is_better=self._lower_is_better(trained), **arguments)
        assert data.feature_names is not None
        X = data.frame.select(features)  # without the further columns, which come last
        takes_table = trained.vectorizer is not None
        if not takes_table:
            X = frame_matrix("the table", X)
        return data._replace(X=X, feature_names=data.feature_names[: len(features)])

    def _refuse_missing_features(self, trained: TrainedModel) -> None:
        """Raise a ValueError if the table lacks a column that the model was trained on."""
        features = trained.features
        missing_features = [name for name in features if name not in self.names]
        if missing_features:
            hint = ""
            if len(self.names) == 1:  # model files do not contain the delimiter
                hint = " If it has several columns, pass their separator as --delimiter."
            raise ValueError(
                f"{self.path} lacks {len(missing_features)} of the {len(features)} columns that "
                f"{trained.name} was trained on: {join_words(missing_features, SHOWN_NAMES)}. "
                f"It has {join_words(self.names, 30)}.{hint}"
            )

    def _read_unnamed_features(self, trained: TrainedModel) -> RankingData:
        """Read all features of a table for a model without feature names."""
        # A model of `rankwise train` without feature names was trained on svmlight rows; other
        # models were trained in Python, and their notes name no file.
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
        if trained.vectorizer is not None:
            raise ValueError(
                f"{trained.name} expects a table with the columns {', '.join(trained.features)}, "
                f"but {self.path} has svmlight rows, whose features have numbers."
            )
        if trained.features:
            terminal.note(f"{self.path} has no column names; features are matched by position")
        zero_based = self.table.zero_based or trained.notes.zero_based
        lower_is_better = self._lower_is_better(trained)
        data = self.read(zero_based=zero_based, lower_is_better=lower_is_better)
        n_features = trained.n_features
        n_features_of_file = data.X.shape[1]
        if n_features_of_file < n_features:
            # again, with the columns that do not occur in the file: they are 0
            return self.read(
                n_features=n_features, zero_based=zero_based, lower_is_better=lower_is_better
            )
        if n_features_of_file > n_features and trained.notes.sparse:
            terminal.note(
                f"features of {self.path} beyond the {n_features} of the training data are dropped"
            )
            return data._replace(X=data.X[:, :n_features])
        return data  # the model refuses additional features

    def share_of_training_rows(self, trained: TrainedModel, data: RankingData) -> float:
        """Estimate the share of the scored items that the model was trained on."""
        # The notes of a model have fingerprints (hashes) of its training rows: of all columns of
        # the file, and of the features alone for a file that lacks other columns.
        notes = trained.notes
        columns = self._columns_of_fingerprint(trained)
        if columns:  # read the rows with the columns that were hashed in training
            arguments = self._roles_in_training(trained)
            arguments["features"] = columns
            data = self.read(lower_is_better=self._lower_is_better(trained), **arguments)
        has_all_columns = bool(columns) and columns == notes.columns
        training_fingerprint = notes.whole_rows if has_all_columns else notes.rows

        assert data.y is not None
        rows_with_score = np.flatnonzero(~np.isnan(data.y))
        scored = data.take(rows_with_score)
        y = data.y[rows_with_score]
        X = nested_cells_as_text(scored.X)
        return share_seen(training_fingerprint, X, y, scored.groups)

    def _columns_of_fingerprint(self, trained: TrainedModel) -> list[str]:
        """All columns of the training data if the file has them, else the features."""
        training_columns = trained.notes.columns
        if not training_columns:  # svmlight rows, or comparisons
            return []
        if set(training_columns) <= set(self.names):
            return training_columns
        return trained.features

    def _lower_is_better(self, trained: TrainedModel) -> bool:
        """Whether smaller scores are better, by the command or by the training data."""
        return self.table.lower_is_better or trained.notes.lower

    def _check_event_column(self, trained: TrainedModel) -> None:
        """Refuse a file with survival times and without their events."""
        notes = trained.notes
        if notes.event not in self.names:
            raise ValueError(
                f"{trained.name} was trained on survival times {notes.target} with the event "
                f"{notes.event}, but {self.path} has no column {notes.event}; name the columns "
                "with --survival-time and --event."
            )

    def _roles_in_training(self, trained: TrainedModel) -> ReadingOptions:
        """Arguments as in training, where no option of the command replaces them."""
        notes = trained.notes
        table = self.table
        arguments: ReadingOptions = {}
        if table.target is None and not self.target_needed:  # predictions need no true scores
            arguments["target"] = None
            arguments["event"] = None
        elif table.target is None and table.survival_time is None and notes.target in self.names:
            arguments["target"] = notes.target
            if notes.event:
                self._check_event_column(trained)
                arguments["event"] = notes.event
        # The notes join several columns of groups with commas.
        training_groups = split_names([notes.group], self.names)
        has_training_groups = bool(training_groups) and set(training_groups) <= set(self.names)
        if has_training_groups and not table.group:
            arguments["group"] = training_groups
        if not table.missing:
            arguments["missing"] = notes.missing
        if not table.target_order():
            arguments["levels"] = notes.levels
        return arguments


def refuse_types_without_use(file: DataFile, frame: pa.Table) -> None:
    """Refuse columns of Parquet and JSON files that a model cannot learn from or predict with."""
    types = import_arrow().types
    for name, column_type in zip(frame.column_names, frame.schema.types, strict=True):
        is_record = types.is_struct(column_type) or types.is_map(column_type)
        is_bytes = types.is_binary(column_type) and not _is_text_in_utf8(frame.column(name))
        if is_record or is_bytes or types.is_duration(column_type):
            raise ValueError(
                f"{file.path}: column {name} has the type {column_type}; convert it to numbers or "
                "text, or leave it out with --ignore."
            )


def _is_text_in_utf8(column: pa.ChunkedArray) -> bool:
    """Whether a column of bytes has text, as in Parquet files without logical types."""
    arrow = import_arrow()
    try:
        column.cast(arrow.string())
    except arrow.ArrowInvalid:
        return False
    return True
