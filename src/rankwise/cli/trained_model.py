"""Models and files of scores that a command evaluates or applies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Indices, Labels, Matrix, Numbers
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.cli import terminal
from rankwise.cli.training_notes import TrainingNotes, read_notes
from rankwise.datasets import RankingData, read_scores
from rankwise.datasets.files import numbered_lines, path_on_disk
from rankwise.datasets.overlap import describe_overlap
from rankwise.errors import DataFileError
from rankwise.groups import encode_groups
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence.model_file import load_with_notes
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import final_estimator, transform_items
from rankwise.uncertainty import CalibratedRanker

if TYPE_CHECKING:
    from rankwise.cli.input_files import DataFile


@dataclass
class TrainedModel:
    """A model from a file.

    Attributes
    ----------
    name : str
        The file.
    model : estimator
        The fitted model.
    notes : TrainingNotes
        How it was trained.
    columns : TableVectorizer or None
        Its first step, if that encodes the columns of a table.
    features : list of str
        Names of the columns that it takes; empty if it has no names.
    """

    name: str
    model: BaseEstimator
    notes: TrainingNotes
    columns: TableVectorizer | None
    features: list[str]

    @property
    def n_features(self) -> int:
        """Number of features that it was trained on."""
        return int(self.model.n_features_in_)

    def text_features(self) -> list[str]:
        """Features that are read as they are spelled."""
        if self.columns is None:
            return []
        return [
            column.name
            for column in self.columns.facts_
            if column.kind in ("category", "text", "order") or column.form
        ]

    def numeric_features(self) -> list[str]:
        """Features that are read as numbers."""
        if self.columns is None:
            return list(self.features)
        other = set(self.text_features())
        for column in self.columns.facts_:
            if column.kind in ("date", "vector") or column.why:
                other.add(column.name)
        return [name for name in self.features if name not in other]

    def scores(self, file: DataFile) -> tuple[Array, RankingData]:
        """Predicted scores of the items with a true score, and these items."""
        data = file.read_for(self)
        predicted = self.predict(data)  # of all items: items without a score are in groups, too
        rows = scored_rows(data)
        return predicted[rows], data.take(rows)

    def predict(self, data: RankingData) -> Array:
        """Predicted scores of items; items without groups are one list."""
        groups = data.groups
        if groups is None:
            groups = np.zeros(data.X.shape[0], int)
        return np.asarray(predict_items(self.model, data.X, groups))

    def intervals(self, data: RankingData, level: float) -> dict[str, Numbers]:
        """Columns of scores, standard errors, ranks and rank intervals of items."""
        ranker, items = self._calibrated(data)
        ranks = ranker.rank_interval(items, data.groups, level)
        return {
            "score": self.predict(data),
            "error": ranker.predict_error(items, data.groups),
            "rank": ranks.rank,
            "rank_low": ranks.low,
            "rank_high": ranks.high,
        }

    def best_set(self, data: RankingData, level: float) -> dict[str, Numbers]:
        """Columns of scores, and of 1 for the items of the prediction set of the best item."""
        ranker, items = self._calibrated(data)
        is_in_set = ranker.best_set(items, data.groups, level)
        return {"score": self.predict(data), "in_set": is_in_set.astype(int)}

    def _calibrated(self, data: RankingData) -> tuple[CalibratedRanker, Matrix]:
        """The final step of the model, and the items as it gets them."""
        ranker = final_estimator(self.model)
        if not isinstance(ranker, CalibratedRanker):
            raise ValueError(
                f"{self.name} was not calibrated in training, so it has no standard errors; "
                "train it again with rankwise train --calibrate."
            )
        return ranker, transform_items(self.model, data.X, data.groups)

    def overlap_note(self, file: DataFile, data: RankingData) -> str:
        """Describe the share of the items that the model was trained on; empty if it is small."""
        share = file.share_seen(self, data) if self.notes.rows else 0.0
        return describe_overlap(share, self.name, file.rows_are)


@dataclass
class ScoreFile:
    """A file with one score a line, of any program."""

    path: Path

    def scores(self, file: DataFile) -> tuple[Array, RankingData]:
        """Scores of the items with a true score, and these items."""
        values = read_scores(self.path)
        data = file.read_scored()
        assert data.y is not None
        n_items = len(data.y) if data.rows is None else file.opened.n_rows()
        if len(values) != n_items:
            raise ValueError(
                f"{self.path} has {len(values)} scores, but {file.path} has {n_items} items; "
                "one score a line is needed, in the order of the items."
            )
        if data.rows is not None:
            values = values[data.rows]
        if are_ranks(values, data.groups):
            terminal.note(
                f"{self.path} has the values 1, 2, … in each group, which are evaluated as scores: "
                "larger is better. If they are ranks, write scores: `rankwise predict` without "
                "--rank."
            )
        rows = scored_rows(data)
        return values[rows], data.take(rows)

    def overlap_note(self, file: DataFile, data: RankingData) -> str:
        """Return an empty text, because the training data of the scores are unknown."""
        return ""


def are_ranks(values: Array, groups: Labels | None) -> bool:
    """Whether the values are the ranks 1, 2, … of each group, the smallest value first."""
    ranks = encode_groups(groups, len(values)).rank(-values)
    return bool(ranks.max() > 1 and np.array_equal(ranks, values))


def scored_rows(data: RankingData) -> Indices:
    """Rows of the items with a true score; a note counts the other items."""
    assert data.y is not None
    rows = np.flatnonzero(~np.isnan(data.y))
    if not len(rows):
        raise ValueError("no item of the data has a true score to evaluate with.")
    if len(rows) < len(data.y):
        terminal.note(f"{len(data.y) - len(rows)} items without score are dropped")
    return rows


def open_model(path: Path) -> TrainedModel:
    """Load a model that ranks items."""
    source = path_on_disk(str(path))
    if not _is_zip_archive(source):
        raise ValueError(f"{path} is not a rankwise model. Check the order of the files.")
    model, notes = load_with_notes(source)
    ranks_pairs = hasattr(model, "n_columns_")  # of rows and columns, or of items and labels
    if ranks_pairs or not hasattr(model, "n_features_in_"):
        raise ValueError(
            f"{path} is a {type(model).__name__}, which the command cannot use to rank items; use "
            "it in Python."
        )
    first_step = model[0] if isinstance(model, Pipeline) else model
    columns = _vectorizer(first_step)
    if columns is None:
        features = [str(name) for name in getattr(first_step, "feature_names_in_", ())]
    else:
        names = [column.name for column in columns.facts_ if column.is_used]
        features = list(dict.fromkeys(names))
    return TrainedModel(str(path), model, read_notes(notes), columns, features)


def _is_zip_archive(path: str) -> bool:
    with open(path, "rb") as stream:
        return stream.read(2) == b"PK"


def _vectorizer(step: BaseEstimator) -> TableVectorizer | None:
    """The encoder of table columns in the first step of a model, if it has one."""
    if isinstance(step, CalibratedRanker):
        step = step.estimator_
    if isinstance(step, AutoRanker):
        step = step.table_
    if isinstance(step, TableVectorizer):
        return step
    return None


def open_ranker(path: Path) -> TrainedModel | ScoreFile:
    """Load a model, or a file of scores if the first line is a single number."""
    try:
        lines = (line for _, line in numbered_lines(str(path)) if line.strip())
        is_scores = math.isfinite(float(next(lines, b"")))
    except (DataFileError, ValueError):  # not a text, or not a number
        is_scores = False
    if is_scores:
        return ScoreFile(path)
    return open_model(path)
