"""Models from files, and data as they need them: items, comparisons, files of scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold

from rankwise.cli import terminal
from rankwise.cli.shared_options import PairOptions, TableOptions, split_names
from rankwise.datasets import RankingData, read_pairs, read_ranking, read_scores
from rankwise.datasets.column_values import distinct_cells
from rankwise.datasets.files import import_arrow, location, numbered_lines
from rankwise.datasets.overlap import describe_overlap, share_seen
from rankwise.datasets.table_files import open_unless_letor
from rankwise.errors import DataFileError
from rankwise.formatting import join_words
from rankwise.frames import frame_matrix
from rankwise.graphs import PairGraph
from rankwise.model_selection.scorer import needs_groups, predict_items
from rankwise.persistence.model_file import load_with_notes
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import final_estimator, transform_items

NOTES = "rankwise train"
MOST_FOLDS = 10  # of judges
SHOWN_NAMES = 8


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
    sparse : bool
        Whether the features were sparse.
    zero_based : bool
        Whether the features of svmlight rows were counted from 0.
    rows, whole_rows : str
        Sketches of the training rows by their features and by all `columns`, see
        `rankwise.datasets.overlap`; the second is empty for svmlight rows.
    columns : list of str
        All columns of a table that have no other role.
    missing, levels : list of str
        Words for gaps, and words of the scores from the worst to the best.
    lower : bool
        Whether smaller scores are better.
    chosen : dict
        Parameters that were chosen or given.
    """

    command: str = ""
    data: str = ""
    n_rows: int = 0
    target: str = ""
    group: str = ""
    sparse: bool = False
    zero_based: bool = False
    rows: str = ""
    whole_rows: str = ""
    columns: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    lower: bool = False
    chosen: dict[str, Any] = field(default_factory=dict)

    def as_notes(self) -> dict[str, Any]:
        """For ``save(model, path, notes=...)``."""
        return {NOTES: asdict(self)}


def read_notes(notes: Any) -> TrainingNotes:
    """The notes in a model file; anybody may write them, so what is of another type is left out."""
    given = notes.get(NOTES) if isinstance(notes, Mapping) else None
    known = given if isinstance(given, Mapping) else {}
    usual = asdict(TrainingNotes())
    kept = {name: known[name] for name in usual if type(known.get(name)) is type(usual[name])}
    return TrainingNotes(**kept)


class DataFile:
    """A file of items, opened once and read as one model or another needs it.

    Parameters
    ----------
    path : Path
        The file.
    table : TableOptions
        What the user says about it.
    target_needed : bool
        Whether items without true scores are of no use.
    weight : str, optional
        The column of weights.
    """

    rows_are = "items"
    usual_metrics: list[str] | None = None  # those that suit the scores

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
        marks: Any = (table.delimiter, table.decimal, not table.no_header, table.input_format)
        opened = open_unless_letor(str(path), *marks)
        self.is_letor, self._opened = opened is None, cast("Any", opened)
        self.names = [] if opened is None else list(opened.names)

    def n_rows(self) -> int:
        """Number of rows of a table, those with gaps included."""
        return len(self._opened.read([0], [])[0])

    def read(self, **options: Any) -> RankingData:
        """The columns of a table with their types, or svmlight rows; a role "none" is no column."""
        table = self.table
        lower = options.pop("lower", table.lower_is_better)
        target, group = table.target or "auto", split_names(table.group, self.names)
        known: dict[str, Any] = {
            "format": "letor" if self.is_letor else "auto",
            "target": None if target == "none" else target,
            "group": None if group == ["none"] else group or "auto",
            "id": table.id,
            "weight": self.weight,
            "missing": table.missing,
            "levels": table.levels(),
            "zero_based": table.zero_based,
            "target_needed": self.target_needed,
        }
        source = self.path if self.is_letor else self._opened
        data = read_ranking(source, as_frame=True, **{**known, **options})
        return data._replace(y=-data.y) if lower and data.y is not None else data

    def read_judged(self) -> RankingData:
        """Items with their true scores, and no features that are not needed."""
        return self.read() if self.is_letor else self.read(features=[])

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Items with the features that the model was trained on, in its order."""
        data = self._rows_for(trained) if self.is_letor else self._columns_for(trained)
        if not self.is_letor and trained.columns is None:
            data = data._replace(X=frame_matrix("the table", data.X))
        group = trained.notes.group
        if data.groups is None and group and self.table.group != ("none",):
            lacks = f"{trained.name} was trained on groups by {group}, which {self.path} lacks"
            if needs_groups(trained.model) or (self.target_needed and not self.is_letor):
                raise ValueError(
                    f"{lacks}; name the column of groups with --group, or rank all items as one "
                    "list with --group none."
                )
            terminal.note(f"{lacks}: all its items are one list")
        return data

    def _columns_for(self, trained: TrainedModel) -> RankingData:
        """The columns of a table, as they were when the model was trained."""
        names = trained.features
        if not names:
            if trained.notes.data:
                raise ValueError(
                    f"{trained.name} was trained on svmlight rows, whose features have numbers, "
                    f"but {self.path} is a table, whose features have names; write it as svmlight "
                    "rows."
                )
            terminal.note(f"{trained.name} knows no names of features; matched by position")
            return self.read()
        missing = [name for name in names if name not in self.names]
        if missing:
            raise ValueError(
                f"{self.path} lacks {len(missing)} of the {len(names)} columns that {trained.name} "
                f"was trained on: {join_words(missing, SHOWN_NAMES)}. "
                f"It has {join_words(self.names, 30)}."
            )
        facts = trained.columns.facts_ if trained.columns else []
        text = [c.name for c in facts if c.kind in ("category", "text", "order") or c.form]
        free = [c.name for c in facts if c.kind in ("date", "vector") or c.why]
        numeric = [name for name in names if name not in text + free]
        return self.read(**self.roles_of(trained), features=names, text=text, numeric=numeric)

    def _rows_for(self, trained: TrainedModel) -> RankingData:
        """Svmlight rows; trailing features that the file does not have are zero."""
        if trained.columns is not None:
            raise ValueError(
                f"{trained.name} takes a table with the columns {', '.join(trained.features)}, but "
                f"{self.path} has svmlight rows, whose features have numbers."
            )
        if trained.features:
            terminal.note(f"{self.path} has no column names; its features are matched by position")
        counts = {
            "zero_based": self.table.zero_based or trained.notes.zero_based,
            "lower": self.table.lower_is_better or trained.notes.lower,
        }
        data = self.read(**counts)
        n_columns, n_features = data.X.shape[1], trained.n_features
        if n_columns < n_features:
            return self.read(n_features=n_features, **counts)
        if n_columns > n_features and trained.notes.sparse:
            terminal.note(
                f"features of {self.path} beyond the {n_features} of the training data are left out"
            )
            return data._replace(X=data.X[:, :n_features])
        return data  # the model refuses more features

    def share_seen(self, trained: TrainedModel, data: Any) -> float:
        """Which share of the scored rows the model was trained on."""
        notes, sketch = trained.notes, trained.notes.rows
        if notes.columns:
            is_whole = set(notes.columns) <= set(self.names)
            sketch = notes.whole_rows if is_whole else notes.rows
            features = notes.columns if is_whole else trained.features
            data = self.read(**self.roles_of(trained), features=features)
        scored = data.take(np.flatnonzero(~np.isnan(data.y)))
        return share_seen(sketch, scored.X, scored.y, scored.groups)

    def roles_of(self, trained: TrainedModel) -> dict[str, Any]:
        """Target and group of the training data, where the user says nothing else."""
        notes, table = trained.notes, self.table
        roles: dict[str, Any] = {"lower": table.lower_is_better or notes.lower}
        if not self.target_needed and table.target is None:
            roles["target"] = None
        elif table.target is None and notes.target in self.names:
            roles["target"] = notes.target
        groups = split_names([notes.group], self.names)
        if not table.group and groups and set(groups) <= set(self.names):
            roles["group"] = groups
        if not table.missing:
            roles["missing"] = notes.missing
        if not table.levels():
            roles["levels"] = notes.levels
        return roles


class PairFile(DataFile):
    """Comparisons in one file, and the items that were compared in another."""

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
            raise ValueError("comparisons take the place of scores; leave out --target or --items.")
        alone = replace(table, target="none", group=table.group or ("none",))
        super().__init__(items, alone, target_needed=False)
        if self.is_letor:
            raise ValueError(f"{items} has svmlight rows, expected a table with item names.")
        self.data_path = path
        roles = {**columns.columns(), "weight": weight}
        self.compared = read_pairs(path, delimiter=table.delimiter, **roles)
        if self.compared.read_as:
            terminal.note(f"{self.compared.read_as}; change it with --sides and --outcome.")
        self.table = replace(alone, id=table.id or self._naming_column())
        is_weighted = bool((self.compared.weight != 1).any())
        self.usual_metrics = ["disagreement(average=pairs)" if is_weighted else "disagreement"]

    def _naming_column(self) -> str:
        """The column in which most of the compared items are."""
        names = {str(item) for item in self.compared.items}
        n_names: dict[str, int] = {}
        for at, column in self._opened.read(range(len(self.names)), []).items():
            with suppress(ValueError):  # a column of lists has no names
                n_names[self.names[at]] = len(names.intersection(distinct_cells(column)[1]))
        best = max(n_names, key=n_names.__getitem__)
        if not n_names[best]:
            raise ValueError(
                f"{self.path}: no column has names of compared items, such as {min(names)}; name "
                "it with --id."
            )
        return best

    def item_rows(self, ids: NDArray[np.object_]) -> NDArray[np.intp]:
        """The row of each compared item."""
        return rows_of_items(self.compared.items, ids, f"{self.path}, column {self.table.id},")

    def read_for(self, trained: TrainedModel) -> RankingData:
        """Each comparison as a list of two items with the features of the model."""
        return self._lists(super().read_for(trained))

    def read_judged(self) -> RankingData:
        """The same without features."""
        return self._lists(super().read_judged())

    def _lists(self, items: RankingData) -> RankingData:
        """Each comparison as a list of two items, the winner first."""
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

    def share_seen(self, trained: TrainedModel, data: Any) -> float:
        """Which share of the comparisons the model was trained on."""
        return share_seen(trained.notes.rows, *self.rows())

    def rows(self) -> tuple[Any, Any, Any]:
        """The comparisons as a table, numbers and labels, of which a sketch is made."""
        pairs = self.compared
        ends = np.column_stack([pairs.winner, pairs.loser])
        ends = np.where(pairs.outcome[:, None] == 0, np.sort(ends), ends)  # ties have no first item
        labels = pairs.items.astype(str)
        columns = {"winner": labels[ends[:, 0]], "loser": labels[ends[:, 1]]}
        return import_arrow().table(columns), pairs.magnitude, pairs.judges

    def graph(self, groups: Any, options: Any, *, is_one: bool = False) -> Any:
        """The comparisons as a graph with the options of an estimator, or of another graph.

        If it is one, its edges are held out, not its components.
        """
        pairs, names = self.compared, ("cost", "group_weight")
        known = {name: getattr(options, name) for name in names if hasattr(options, name)}
        groups = [0] * pairs.n_items if is_one else groups
        ends = (pairs.winner, pairs.loser, pairs.magnitude, pairs.weight, pairs.n_items)
        return PairGraph(*ends, groups=groups, **known)

    def judge_folds(self) -> Any:
        """Folds of whole judges, if comparisons have judges."""
        judges = self.compared.judges
        if judges is None:
            return "auto"
        n_folds = min(MOST_FOLDS, len(set(judges.tolist())))
        if n_folds < 2:
            raise ValueError("--judge: there is one judge only, who cannot be held out.")
        return list(GroupKFold(n_folds).split(judges, groups=judges))


def rows_of_items(items: NDArray[Any], ids: NDArray[np.object_], where: str) -> NDArray[np.intp]:
    """The row of each compared item; those that are not there, or twice, are told."""
    names = [str(item) for item in items]
    row, n_rows = {name: k for k, name in enumerate(ids.tolist())}, Counter(ids.tolist())
    missing = [name for name in names if name not in row]
    if missing:
        raise ValueError(
            f"{where} lacks {len(missing):,} of the {len(names):,} compared items: "
            f"{join_words(missing, 5)}. Add their rows, leave out their comparisons, or name "
            "another column of items."
        )
    repeated = [name for name in names if n_rows[name] > 1]
    if repeated:
        raise ValueError(f"{where} has items twice: {join_words(repeated, 5)}. Give each one row.")
    return np.array([row[name] for name in names])


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


@dataclass
class TrainedModel:
    """A model from a file, with what is noted about its training."""

    name: str
    model: Any
    notes: TrainingNotes
    columns: (
        TableVectorizer | None
    )  # what makes features of the columns of a table, if it begins so
    features: list[str]  # names of the columns that it takes, if it knows them

    @property
    def n_features(self) -> int:
        """Number of features that it was trained on."""
        return int(self.model.n_features_in_)

    def scores(self, file: DataFile) -> tuple[NDArray[np.float64], Any]:
        """Predicted scores of the items that have a true one, and these items."""
        found = file.read_for(self)
        predicted = self.predict(found)  # of all items: those without a score are in groups, too
        kept = scored_items(found)
        return predicted[kept], found.take(kept)

    def predict(self, data: Any) -> NDArray[np.float64]:
        """Predicted scores of items; groups that they lack are one list."""
        groups = np.zeros(data.X.shape[0], int) if data.groups is None else data.groups
        return np.asarray(predict_items(self.model, data.X, groups))

    def intervals(self, data: Any, level: float) -> dict[str, NDArray[Any]]:
        """Score, its standard error, rank and interval of the rank of items, by name."""
        ranker, items = self._calibrated(data)
        ranks = ranker.rank_interval(items, data.groups, level)
        return {
            "score": self.predict(data),
            "error": ranker.predict_error(items, data.groups),
            "rank": ranks.rank,
            "rank_low": ranks.low,
            "rank_high": ranks.high,
        }

    def best_set(self, data: Any, level: float) -> dict[str, NDArray[Any]]:
        """Score, and 1 for the items of each group that hold its best one, else 0, by name."""
        ranker, items = self._calibrated(data)
        inside = ranker.best_set(items, data.groups, level)
        return {"score": self.predict(data), "in_set": inside.astype(int)}

    def _calibrated(self, data: Any) -> tuple[Any, Any]:
        """The CalibratedRanker, and the items as it gets them."""
        ranker = final_estimator(self.model)
        if not hasattr(ranker, "rank_interval"):
            raise ValueError(
                f"{self.name} was not calibrated in training, so it has no standard errors; "
                "train it again with rankwise train --calibrate."
            )
        return ranker, transform_items(self.model, data.X, data.groups)

    def seen_items(self, file: DataFile, data: Any) -> str:
        """What is to be said if the model was trained on these items of the file, else nothing."""
        share = file.share_seen(self, data) if self.notes.rows else 0.0
        return describe_overlap(share, self.name, file.rows_are)


@dataclass
class ScoreFile:
    """Scores that any program may have written."""

    path: Path

    def scores(self, file: DataFile) -> tuple[NDArray[np.float64], Any]:
        """The scores in the file of the items that have a true one, and these items."""
        values = read_scores(self.path)
        data: Any = file.read_judged()
        n_items = len(data.y) if data.rows is None else file.n_rows()
        if len(values) != n_items:
            raise ValueError(
                f"{self.path} has {len(values)} scores, but {file.path} has {n_items} items; "
                "one score a line is needed, in the order of the items."
            )
        values = values if data.rows is None else values[data.rows]
        kept = scored_items(data)
        return values[kept], data.take(kept)

    def seen_items(self, file: DataFile, data: Any) -> str:
        """Nothing: who knows what these scores were trained on."""
        return ""


def scored_items(data: Any) -> NDArray[np.intp]:
    """Where the items are that have a true score."""
    kept = np.flatnonzero(~np.isnan(data.y))
    if not len(kept):
        raise ValueError("no item of the data has a score, so there is nothing to judge by.")
    if len(kept) < len(data.y):
        terminal.note(f"{len(data.y) - len(kept)} items without score are left out")
    return kept


def open_model(path: Path) -> TrainedModel:
    """Load a model."""
    model, notes = load_with_notes(location(str(path)))
    if hasattr(model, "n_columns_") or not hasattr(model, "n_features_in_"):
        raise ValueError(
            f"{path} is a {type(model).__name__}, which the command cannot use to rank items; use "
            "it in Python."
        )
    first = model[0] if hasattr(model, "steps") else model
    inner = getattr(first, "estimator_", first)  # of a CalibratedRanker
    columns = first if isinstance(first, TableVectorizer) else getattr(inner, "table_", None)
    if columns is None:
        features = [str(name) for name in getattr(first, "feature_names_in_", ())]
    else:
        used = (column.name for column in columns.facts_ if column.kind != "left out")
        features = list(dict.fromkeys(used))
    return TrainedModel(str(path), model, read_notes(notes), columns, features)


def open_ranker(path: Path) -> TrainedModel | ScoreFile:
    """Load a model, or take the file as scores if its first line is a single number."""
    try:
        lines = (line for _, line in numbered_lines(str(path)) if line.strip())
        is_scores = math.isfinite(float(next(lines, b"")))
    except (DataFileError, ValueError):  # not a text, or not a number
        is_scores = False
    return ScoreFile(path) if is_scores else open_model(path)
