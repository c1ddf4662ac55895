"""Training data, and the use of each column of the file."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from rankwise.arrays import Array, Indices, Labels, Matrix
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.caching import cached_property
from rankwise.cli import terminal
from rankwise.cli.input_files import SHOWN_NAMES, DataFile, nested_cells_as_text
from rankwise.cli.pair_file import PairFile
from rankwise.cli.training_notes import TrainingNotes
from rankwise.datasets import RankingData
from rankwise.datasets.files import import_arrow
from rankwise.datasets.overlap import fingerprint_rows
from rankwise.formatting import JsonObject, TextTable, join_words
from rankwise.graphs import PairGraph, PreferenceGraph, ScoreGraph, SurvivalGraph
from rankwise.preprocessing.column_types import ColumnInfo
from rankwise.preprocessing.group_scaler import GroupScaler
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import fit_transform

if TYPE_CHECKING:
    import pyarrow as pa

Steps: TypeAlias = list[tuple[str, TransformerMixin]]
Folds: TypeAlias = list[tuple[Indices, Indices]]

ROLES = {"id": "names of the items", "weight": "weights of the items"}  # in the table of columns


class Fingerprints(NamedTuple):
    """Fingerprints of the training rows, see `TrainingNotes`."""

    rows: str
    whole_rows: str = ""
    columns: Sequence[str] = ()


@dataclass(frozen=True)
class ColumnUse:
    """Use of a column of the file, for JSON."""

    name: str
    use: str
    n_missing: int
    why: str


@dataclass(frozen=True)
class DataSummary:
    """Columns and counts of training data; JSON documents have the same names.

    Attributes
    ----------
    file : Path
        The file of scores or of comparisons.
    items_file : Path or None
        The table of compared items.
    items, items_without_score, rows_left_out : int
        Number of items, of those without a score, and of rows that are not used.
    target, group, weight : str or None
        Columns with these roles.
    nuisance : list of str
        Columns whose effects are estimated and removed.
    n_features : int
        Number of columns or features that are used.
    features : list of str or None
        Their names; None without names.
    columns : list of ColumnUse
        Use of each column without a role.
    groups, pairs, tied_pairs, groups_without_pairs : int
        Counts of groups and pairs.
    """

    file: Path
    items_file: Path | None
    items: int
    items_without_score: int
    rows_left_out: int
    target: str | None
    group: str | None
    weight: str | None
    nuisance: list[str]
    n_features: int
    features: list[str] | None
    columns: list[ColumnUse]
    groups: int
    pairs: int
    tied_pairs: int
    groups_without_pairs: int


@dataclass
class TrainingSet:
    """Training data, and the use of each column of the file.

    Attributes
    ----------
    file : DataFile
        The items, or the comparisons of items.
    data : RankingData
        The training rows with all columns without a role: they identify training rows later.
    X : pyarrow.Table, ndarray or sparse matrix
        The columns of a table that are used, or the features of svmlight rows.
    y : ndarray, SurvivalGraph or PairGraph
        Scores, survival times, or comparisons of the items.
    steps : list of (str, transformer)
        The steps before the ranker in a Pipeline; a TableVectorizer is fitted, other steps are
        fitted by `prepared`.
    facts : list of ColumnInfo
        Use of each column of a table without a role.
    n_dropped : int
        Number of rows that are not used.
    nuisance : pyarrow.Table or None
        Columns whose effects are estimated and removed.
    folds : list of (train, test) or None
        What a search holds out; None: the default of the search.
    """

    file: DataFile
    data: RankingData
    X: Matrix
    y: Array | SurvivalGraph | PairGraph
    steps: Steps
    facts: list[ColumnInfo] = field(default_factory=list)
    n_dropped: int = 0
    nuisance: pa.Table | None = None
    folds: Folds | None = None

    @property
    def path(self) -> Path:
        """The file of scores or of comparisons."""
        return self.file.data_path

    @property
    def pairs(self) -> PairFile | None:
        """The comparisons, or None for scored items."""
        if isinstance(self.file, PairFile):
            return self.file
        return None

    @property
    def groups(self) -> Labels | None:
        """Groups of scored items, or None; a graph contains its groups."""
        if isinstance(self.y, PreferenceGraph):
            return None
        return self.data.groups

    @property
    def sample_weight(self) -> Array | None:
        """Weights of scored items, or None; a graph of survival times contains them."""
        if isinstance(self.y, SurvivalGraph):
            return None
        return self.data.weight

    @property
    def names(self) -> list[str]:
        """Names of the columns of a table that are used."""
        return used_names(self.facts)

    @property
    def scaler_name(self) -> str | None:
        """Class of the scaler, or None."""
        for _, step in self.steps:
            if isinstance(step, StandardScaler | GroupScaler):
                return str(type(step).__name__)
            vectorizer_scales = isinstance(step, TableVectorizer) and step.scale
            if vectorizer_scales:
                return "StandardScaler"
        return None

    @cached_property
    def prepared(self) -> Matrix:
        """The features as the ranker gets them."""
        X = self.X
        for _, step in self.steps:
            if isinstance(step, TableVectorizer):  # fitted when the file was read
                X = step.transform(X)
            else:
                X = fit_transform(step, X, self.groups)
        return X

    def fit(self, model: BaseEstimator) -> BaseEstimator:
        """Fit a ranker and return it, in a Pipeline with the steps before it if there are any.

        The steps before the ranker are not weighted.
        """
        is_prepared_by_steps = bool(self.steps)
        has_only_comparisons = self.pairs is not None and self.data.groups is None
        if isinstance(model, AutoRanker) and has_only_comparisons and not is_prepared_by_steps:
            # it encodes the table, and learns from both items of a comparison
            return self._fit_to_items_and_comparisons(model)
        fit_arguments = {"groups": self.groups, "sample_weight": self.sample_weight}
        if self.data.time is not None:
            if "time" not in inspect.signature(model.fit).parameters:
                raise ValueError(
                    f"--time holds out later groups to choose parameters, but "
                    f"{type(model).__name__} does not choose parameters; leave out --time, or "
                    "--alpha, --calibrate or --model auto."
                )
            fit_arguments["time"] = self.data.time
        if self.nuisance is not None:
            fit_arguments["nuisance"] = self.nuisance
        model.fit(self.prepared, self.y, **fit_arguments)
        if not is_prepared_by_steps:
            return model
        # `prepared` has fitted the steps
        return Pipeline([*self.steps, ("rank", model)])

    def _fit_to_items_and_comparisons(self, model: AutoRanker) -> BaseEstimator:
        """Fit an AutoRanker to the table of items and the comparisons, with their sides."""
        assert self.pairs is not None
        id_column = self.data.roles["id"]
        item_names = import_arrow().array(self.data.ids)
        items = self.X.append_column(id_column, item_names)
        return model.fit(items, self.pairs.comparisons, item_id=id_column)

    def notes(self, command: str, chosen: JsonObject) -> TrainingNotes:
        """Facts about the training for the model file."""
        table = self.file.table
        roles = self.data.roles
        fingerprints = self._fingerprints()
        return TrainingNotes(
            command=command,
            data=self.path.name,
            n_rows=self.X.shape[0],
            target=roles.get("target") or "",
            group=roles.get("group") or "",
            event=roles.get("event") or "",
            sparse=bool(issparse(self.X)),
            zero_based=table.zero_based,
            missing=list(table.missing),
            levels=table.target_order(),
            lower=table.lower_is_better,
            chosen=chosen,
            rows=fingerprints.rows,
            whole_rows=fingerprints.whole_rows,
            columns=list(fingerprints.columns),
        )

    def _fingerprints(self) -> Fingerprints:
        """Fingerprints of the training rows."""
        if self.pairs is not None:
            comparisons = self.pairs.comparisons_to_fingerprint()
            rows = fingerprint_rows(comparisons.X, comparisons.y, comparisons.groups)
            return Fingerprints(rows=rows)
        y = self._true_scores()
        groups = self.data.groups
        if self.file.is_letor:
            return Fingerprints(rows=fingerprint_rows(self.X, y, groups))
        all_columns = nested_cells_as_text(self.data.frame)
        features = all_columns.select(self.names)
        return Fingerprints(
            rows=fingerprint_rows(features, y, groups),
            whole_rows=fingerprint_rows(all_columns, y, groups),
            columns=list(all_columns.column_names),
        )

    def _true_scores(self) -> Array:
        """The true scores of the items."""
        if isinstance(self.y, PairGraph):
            raise TypeError("comparisons have no scores of single items.")
        if isinstance(self.y, SurvivalGraph):
            return self.y.time
        return self.y

    @cached_property
    def summary(self) -> DataSummary:
        """Columns and counts."""
        roles = self.data.roles
        n_items = self.X.shape[0]
        counts = self._graph().describe()
        columns = [
            ColumnUse(column.name, column.kind, column.n_missing, column.why)
            for column in self.facts
        ]
        return DataSummary(
            file=self.path,
            items_file=None if self.pairs is None else self.pairs.path,
            items=n_items,
            items_without_score=n_items - counts.n_items,  # the graph has the scored items
            rows_left_out=self.n_dropped,
            target=roles.get("target"),
            group=roles.get("group"),
            weight=roles.get("weight"),
            nuisance=[] if self.nuisance is None else self.nuisance.column_names,
            n_features=len(self.names) or int(self.X.shape[1]),
            features=self.names or None,
            columns=columns,
            groups=counts.n_groups,
            pairs=counts.n_pairs,
            tied_pairs=counts.n_tied_pairs,
            groups_without_pairs=counts.n_groups_without_pairs,
        )

    def _graph(self) -> PairGraph | SurvivalGraph | ScoreGraph:
        """The graph of comparisons or of survival times, or that of the items with a score."""
        if isinstance(self.y, PairGraph | SurvivalGraph):
            return self.y
        rows_with_score = np.flatnonzero(~np.isnan(self.y))
        scored = self.data.take(rows_with_score)
        return ScoreGraph(self.y[rows_with_score], scored.groups, sample_weight=scored.weight)

    def lines(self) -> list[tuple[str, str]]:
        """The summary as names and values."""
        summary = self.summary
        name_of_pairs = "pairs" if self.pairs is None else "comparisons"
        return [
            ("data", str(self.path)),
            ("items", self._items_text()),
            self._target_line(),
            ("weights", summary.weight or ""),
            ("nuisance", ", ".join(summary.nuisance)),
            ("features", _features_text(summary.n_features, self.names)),
            ("groups", self._groups_text()),
            (name_of_pairs, f"{summary.pairs:,}, {summary.tied_pairs:,} of them tied"),
        ]

    def _target_line(self) -> tuple[str, str]:
        """The column of scores, or of survival times."""
        target = self.summary.target or ""
        if not isinstance(self.y, SurvivalGraph):
            return "scores", target
        n_events = int(self.y.event.sum())
        event = self.data.roles["event"]
        return "survival times", f"{target}, with the event {event} in {n_events:,} items"

    def _items_text(self) -> str:
        text = f"{self.summary.items:,}"
        if self.pairs is not None:
            text += f", {self.data.roles['id']} in {self.pairs.path}"
        n_unscored = self.summary.items_without_score
        if n_unscored:
            text += f", {n_unscored:,} without score"
        return text

    def _groups_text(self) -> str:
        n_groups = self.summary.groups  # of comparisons: connected components, without a column
        text = f"{n_groups:,}"
        if self.summary.group:
            text += f" by {self.summary.group}"
        elif self.pairs is None:
            text += ": no column of groups, so one list"
        elif n_groups > 1:
            text += " that no comparison connects"
        else:
            text += ": all are connected"
        n_without_pairs = self.summary.groups_without_pairs
        if n_without_pairs:
            text += f", {n_without_pairs:,} without pairs"
        return text

    def print_columns(self) -> None:
        """Print the use of each column, unless all columns are plain numbers."""
        plain_numbers = [
            column.name for column in self.facts if column.words == "number" and not column.why
        ]
        if len(plain_numbers) == len(self.facts):
            return
        # rows of the table: column, use, reason
        rows = [[name, ROLES.get(role, role), ""] for role, name in self.data.roles.items() if name]
        if plain_numbers:
            rows.append([join_words(plain_numbers, SHOWN_NAMES), "number", ""])
        for column in self.facts:
            if column.name not in plain_numbers:
                rows.append([column.name or "(no name)", column.words, column.why])
        header = ["column", "used as", "because"]
        has_reasons = any(reason for _, _, reason in rows)
        if not has_reasons:
            header = ["column", "used as"]
            rows = [[name, use] for name, use, _ in rows]
        all_columns = tuple(range(len(header)))
        terminal.echo("")
        terminal.print_table(TextTable(header, rows, names=all_columns))
        terminal.echo("")


def used_names(facts: Iterable[ColumnInfo]) -> list[str]:
    """Names of the columns that are used, each once."""
    return list(dict.fromkeys(column.name for column in facts if column.is_used))


def _features_text(n_features: int, names: Sequence[str]) -> str:
    if not names:
        return f"{n_features:,}"
    return f"{n_features:,}: {join_words(names, SHOWN_NAMES)}"
