"""Models from files, and data as they need them: items for a model, files of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.options import TableOptions
from rankwise.cli.session import note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.datasets import RankingData
    from rankwise.estimators import Columns

TELLING_SHARE = 0.1
NOTES = "rankwise train"


@dataclass(frozen=True)
class TrainingNotes:
    """How a model was trained: what a model file notes beside the model.

    Attributes
    ----------
    command, data : str
        The command line and the name of the file; empty if another program trained the model.
    n_rows : int
        Number of items.
    target, group : str
        Names of these columns; empty if there is none.
    other_columns : list of str
        Columns that were left out; empty for svmlight rows.
    sparse : bool
        Whether the features were sparse.
    zero_based : bool
        Whether the features of svmlight rows were counted from 0.
    rows : str
        Sketch of the training rows, see `rankwise.datasets.row_sketch`.
    chosen : dict
        Parameters that were chosen or given.
    """

    command: str = ""
    data: str = ""
    n_rows: int = 0
    target: str = ""
    group: str = ""
    other_columns: list[str] = field(default_factory=list)
    sparse: bool = False
    zero_based: bool = False
    rows: str = ""
    chosen: dict[str, Any] = field(default_factory=dict)

    def as_notes(self) -> dict[str, Any]:
        """For ``save(model, path, notes=...)``."""
        return {NOTES: asdict(self)}


def read_notes(notes: Any) -> TrainingNotes:
    """The notes in a model file; anybody may write them, so what is of another type is left out."""
    given = notes.get(NOTES) if isinstance(notes, Mapping) else None
    known: dict[str, Any] = {}
    for one in fields(TrainingNotes):
        value = given.get(one.name) if isinstance(given, Mapping) else None
        if type(value) is not type(getattr(TrainingNotes(), one.name)):
            continue
        if not isinstance(value, list) or all(isinstance(name, str) for name in value):
            known[one.name] = value
    return TrainingNotes(**known)


class DataFile:
    """A file of items, read as one model or another needs it.

    Parameters
    ----------
    path : Path
        The file.
    table : TableOptions
        What the user says about it.
    target_needed : bool
        Whether items without true scores are of no use.
    """

    def __init__(self, path: Path, table: TableOptions, *, target_needed: bool = True) -> None:
        self.path, self.table, self.target_needed = path, table, target_needed

    @cached_property
    def is_letor(self) -> bool:
        """Whether the file has svmlight rows; told by its content unless the user says it."""
        from rankwise.datasets.any_format import chosen_format

        found = chosen_format(str(self.path), str(self.table.format))  # type: ignore[arg-type]
        if self.table.zero_based and found != "letor":
            raise ValueError(f"{self.path} is a table; leave out --zero-based.")
        return found == "letor"

    @cached_property
    def _opened(self) -> Any:
        from rankwise.datasets.table_files import open_table

        return open_table(str(self.path), **self.layout)

    @property
    def names(self) -> list[str]:
        """Names of the columns of a table."""
        return list(self._opened.names)

    @property
    def layout(self) -> dict[str, Any]:
        """How the cells of a table are told apart."""
        delimiter = self.table.delimiter or ("\t" if self.table.format == "tsv" else None)
        decimal, header = self.table.decimal, not self.table.no_header
        return {"delimiter": delimiter, "decimal": decimal, "header": header}

    def roles(self, **options: Any) -> dict[str, str | None]:
        """Names of the columns that are the target, the group, the names and the weights."""
        from rankwise.datasets.table_columns import ColumnOptions, choose_columns

        given = self.given | {"target_needed": self.target_needed} | options
        chosen = choose_columns(self._opened, ColumnOptions(**given))
        found = {name: getattr(chosen, name) for name in ("target", "group", "id", "weight")}
        return {role: None if at is None else self.names[at] for role, at in found.items()}

    @property
    def given(self) -> dict[str, Any]:
        """The columns that the user names; "none" is no column."""
        target, group = self.table.target or "auto", self.table.group or "auto"
        return {
            "target": None if target == "none" else target,
            "group": None if group == "none" else group,
            "id": self.table.id,
        }

    def read_table(self, **options: Any) -> Any:
        """The columns of a table with their types; rows without score are kept."""
        from rankwise.datasets import read_frame

        known = {**self.given, **self.layout, "target_needed": self.target_needed}
        return read_frame(self.path, **{**known, "keep_unscored": True, **options})

    def read_rows(self, **options: Any) -> RankingData:
        """Svmlight rows."""
        from rankwise.datasets import read_ranking

        given = {"zero_based": self.table.zero_based, **options}
        return read_ranking(self.path, format="letor", **given)

    def read_targets(self) -> Any:
        """The true scores and groups; of a table, no other column is read."""
        return self.read_rows() if self.is_letor else self.read_table(features=[])

    def weights(self, column: str | None) -> NDArray[np.float64] | None:
        """The weights of all items, None if no column is named."""
        if column is None:
            return None
        self.refuse_weights(column)
        others: dict[str, Any] = {"target": None, "group": None, "id": None, "features": []}
        weights: NDArray[np.float64] = self.read_table(weight=column, **others).weight
        return weights

    def refuse_weights(self, column: str | None) -> None:
        """Raise a ValueError if weights are asked for and the file cannot have them."""
        if column is not None and self.is_letor:
            raise ValueError(
                f"{self.path} has svmlight rows, which have no weights and no column {column}; "
                "write the data as a table with a column of weights, or name none."
            )

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Items with the features that the model was trained on, in its order."""
        from rankwise.datasets import RankingData

        names = trained.features
        if self.is_letor:
            return self._read_rows_for(trained)
        if not names:
            return self._read_by_position(trained)
        self._check_names(names, trained)
        columns = trained.columns
        categories = [c.name for c in columns.facts_ if c.kind == "category"] if columns else []
        found = self.read_table(
            **self._roles_of(trained),
            features=names,
            text=categories,
            numeric=[name for name in names if name not in categories],
        )
        X = found.X if columns else _matrix(found.X)
        return RankingData(X, found.y, found.groups, found.ids)

    def _read_by_position(self, trained: TrainedModel) -> RankingData:
        """A table for a model that does not know the names of its features."""
        from rankwise.datasets import RankingData

        if trained.notes.data:
            raise ValueError(
                f"{trained.name} was trained on svmlight rows, whose features have numbers, but "
                f"{self.path} is a table, whose features have names; write it as svmlight rows."
            )
        found = self.read_table()
        if found.X.num_columns != trained.n_features:
            raise ValueError(
                f"{trained.name} has {trained.n_features} features and does not know their names, "
                f"but {self.path} has {found.X.num_columns} columns of features; leave the others "
                "out, or train the model on a data frame with names."
            )
        note(f"{trained.name} does not know the names of its features; matched by position")
        return RankingData(_matrix(found.X), found.y, found.groups, found.ids)

    def _read_rows_for(self, trained: TrainedModel) -> RankingData:
        """Svmlight rows; trailing features that the file does not have are zero."""
        if trained.columns is not None:
            raise ValueError(
                f"{trained.name} takes a table with the columns {', '.join(trained.features)}, but "
                f"{self.path} has svmlight rows, whose features have numbers."
            )
        if trained.features:
            note(f"{self.path} has no column names; its features are matched by position")
        counts = {"zero_based": self.table.zero_based or trained.notes.zero_based}
        data = self.read_rows(**counts)
        n_columns, n_features = data.X.shape[1], trained.n_features
        if n_columns > n_features and trained.notes.sparse:
            note(
                f"features of {self.path} beyond the {n_features} of the training data are left out"
            )
            return data._replace(X=data.X[:, :n_features])
        if n_columns > n_features:
            raise ValueError(
                f"{self.path} has features up to number {n_columns}, but {trained.name} was "
                f"trained on {n_features}; predict from the features of the training data."
            )
        return data if n_columns == n_features else self.read_rows(n_features=n_features, **counts)

    def _roles_of(self, trained: TrainedModel) -> dict[str, str | None]:
        """Target and group of the training data, where the user says nothing else."""
        found: dict[str, str | None] = {}
        for role in ("target", "group"):
            name = getattr(trained.notes, role)
            if getattr(self.table, role) is None and name and name in self.names:
                found[role] = name
        if not self.target_needed and self.table.target is None:
            found["target"] = None
        return found

    def _check_names(self, known: list[str], trained: TrainedModel) -> None:
        from rankwise.options import suggestion

        notes, table, there = trained.notes, self.table, set(self.names)
        missing = [name for name in known if name not in there]
        if missing:
            free = sorted(there - set(known), key=self.names.index)
            listed = (f"{name} ({suggestion(name, free).strip()})" for name in missing)
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the {len(known)} columns that {trained.name} "
                f"was trained on: {', '.join(listed).replace(' ()', '')}."
            )
        roles = (notes.target, notes.group, table.id, table.target, table.group)
        used = {*known, *roles, *notes.other_columns}
        extra = [name for name in self.names if name and name not in used]
        if extra:
            note(f"columns of {self.path} that the model does not know: {', '.join(extra)}")


def _matrix(table: Any) -> Any:
    """An Arrow table as a matrix; it has to be of numbers."""
    from rankwise.frames import frame_matrix

    return frame_matrix("the table", table)


@dataclass
class TrainedModel:
    """A model from a file, with what is noted about its training."""

    name: str
    model: Any
    notes: TrainingNotes

    @property
    def columns(self) -> Columns | None:
        """What makes features of the columns of a table, if the model begins with it."""
        from rankwise.estimators import Columns

        first = self.model[0] if hasattr(self.model, "steps") else None
        return first if isinstance(first, Columns) else None

    @property
    def features(self) -> list[str]:
        """Names of the columns that the model takes, if it knows them."""
        if self.columns is not None:
            return [column.name for column in self.columns.facts_ if column.kind != "left out"]
        first = self.model[0] if hasattr(self.model, "steps") else self.model
        return [str(name) for name in getattr(first, "feature_names_in_", ())]

    @property
    def n_features(self) -> int:
        """Number of features that it was trained on."""
        return int(self.model.n_features_in_)

    def scores(self, file: DataFile) -> tuple[NDArray[np.float64], Any, NDArray[np.intp]]:
        """Predicted scores of the items that have a true one, these items, and where they are."""
        found = file.read_for(self)
        predicted = self.predict(found)  # of all items: those without a score are in groups, too
        kept, data = only_scored(found)
        return predicted[kept], data, kept

    def predict(self, data: Any) -> NDArray[np.float64]:
        """Predicted scores of items; a model that needs their groups says so."""
        from rankwise.model_selection.group_routing import needs_groups, predict_items

        group = self.notes.group
        if data.groups is None and group and needs_groups(self.model):
            raise ValueError(
                f"{self.name} compares the features of an item with those of its group, so it "
                f"needs the groups of new items, too; in training they were in the column {group}. "
                "Add that column, or say which column of these data has them."
            )
        scores: NDArray[np.float64] = predict_items(self.model, data.X, data.groups)
        return scores

    def intervals(self, data: Any, level: float) -> dict[str, NDArray[Any]]:
        """Score, its standard error, rank and interval of the rank of items, by name."""
        from rankwise.estimators.anatomy import last_step, transform_items

        ranker = last_step(self.model)
        if not hasattr(ranker, "rank_interval"):
            raise ValueError(
                f"{self.name} was not calibrated in training, so it has no standard errors; "
                "train it again with rankwise train --calibrate."
            )
        scores = self.predict(data)
        items = transform_items(self.model, data.X, data.groups)
        ranks = ranker.rank_interval(items, data.groups, level)
        return {
            "score": scores,
            "error": ranker.predict_error(items, data.groups),
            "rank": ranks.rank,
            "rank_low": ranks.low,
            "rank_high": ranks.high,
        }

    def flattery(self, data: Any) -> str:
        """What is to be said if the model was trained on these rows, else nothing."""
        import numpy as np

        from rankwise.datasets.row_sketch import sketched_share

        if not self.notes.rows:
            return ""
        X = data.X if self.columns is None else self.columns.transform(data.X)
        scored = np.flatnonzero(~np.isnan(data.y))
        share = sketched_share(self.notes.rows, X[scored], data.y[scored])
        if share < TELLING_SHARE:
            return ""
        how_many = "all" if share > 0.99 else f"about {share:.0%}"
        return (
            f"{self.name} was trained on {how_many} of these items, so the figures flatter it; "
            "judge it on items that it has not seen, or with rankwise cv"
        )


@dataclass
class ScoreFile:
    """Scores that any program may have written."""

    path: Path

    def scores(self, file: DataFile) -> tuple[NDArray[np.float64], Any, NDArray[np.intp]]:
        """The scores in the file, the items that they are for, and where these are."""
        from rankwise.datasets import read_scores

        values = read_scores(self.path)
        data: Any = file.read_targets()
        if len(values) != len(data.y):
            raise ValueError(
                f"{self.path} has {len(values)} scores, but {file.path} has {len(data.y)} items; "
                "one score a line is needed, in the order of the items."
            )
        kept, data = only_scored(data)
        return values[kept], data, kept

    def flattery(self, data: Any) -> str:
        """Nothing: who knows what these scores were trained on."""
        return ""


def only_scored(data: Any) -> tuple[NDArray[np.intp], Any]:
    """Where the items are that have a true score, and these items."""
    import numpy as np

    kept = np.flatnonzero(~np.isnan(data.y))
    if len(kept) == len(data.y):
        return kept, data
    if not len(kept):
        raise ValueError("no item of the data has a score, so there is nothing to judge by.")
    note(f"{len(data.y) - len(kept)} items without score are left out")
    groups = None if data.groups is None else data.groups[kept]
    X = data.X.take(kept) if hasattr(data.X, "column_names") else data.X[kept]
    return kept, data._replace(X=X, y=data.y[kept], groups=groups)


def open_model(path: Path) -> TrainedModel:
    """Load a model."""
    from rankwise.datasets.files import location
    from rankwise.persistence.model_file import load_with_notes

    model, notes = load_with_notes(location(str(path)))
    if hasattr(model, "n_columns_"):
        raise ValueError(
            f"{path} ranks the columns of tables, which the command does not take; use it in "
            "Python."
        )
    return TrainedModel(str(path), model, read_notes(notes))


def open_ranker(path: Path) -> TrainedModel | ScoreFile:
    """Load a model, or take the file as scores if its first line is a single number."""
    from rankwise.datasets.files import numbered_lines
    from rankwise.errors import DataFileError

    try:
        lines = (line for _, line in numbered_lines(str(path)) if line.strip())
        is_scores = math.isfinite(float(next(lines, b"")))
    except (DataFileError, ValueError):  # not a text, or not a number
        is_scores = False
    return ScoreFile(path) if is_scores else open_model(path)
