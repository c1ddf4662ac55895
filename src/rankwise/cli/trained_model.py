"""Models and files of scores that a command evaluates or applies."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from rankwise.arrays import Array, Matrix, Numbers
from rankwise.auto.auto_ranker import AutoRanker
from rankwise.cli.training_notes import TrainingNotes, read_notes
from rankwise.datasets import RankingData
from rankwise.datasets.files import path_on_disk
from rankwise.model_selection.scorer import predict_items
from rankwise.persistence.model_file import load_with_notes
from rankwise.preprocessing.table_vectorizer import TableVectorizer
from rankwise.rankers.pipelines import final_estimator, transform_items
from rankwise.uncertainty import CalibratedRanker


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
    vectorizer : TableVectorizer or None
        Its first step, if that encodes the columns of a table.
    features : list of str
        Names of the columns that it takes; empty if it has no names.
    """

    name: str
    model: BaseEstimator
    notes: TrainingNotes
    vectorizer: TableVectorizer | None
    features: list[str]

    @property
    def n_features(self) -> int:
        """Number of features that it was trained on."""
        return int(self.model.n_features_in_)

    def text_features(self) -> list[str]:
        """Features that are read as they are spelled."""
        if self.vectorizer is None:
            return []
        return [
            column.name
            for column in self.vectorizer.facts_
            if column.kind in ("category", "text", "order")
            or column.form  # of a date, or of a number with a unit, such as $1.5
        ]

    def numeric_features(self) -> list[str]:
        """Features that are read as numbers."""
        if self.vectorizer is None:
            return list(self.features)
        not_numeric = set(self.text_features())
        for column in self.vectorizer.facts_:
            has_words_for_missing = bool(column.why)
            if column.kind in ("date", "vector") or has_words_for_missing:
                not_numeric.add(column.name)
        return [name for name in self.features if name not in not_numeric]

    def predict(self, data: RankingData) -> Array:
        """Predicted scores of items; items without groups are one list."""
        groups = data.groups
        if groups is None:
            groups = np.zeros(data.X.shape[0], int)
        return np.asarray(predict_items(self.model, data.X, groups))

    def intervals(self, data: RankingData, level: float) -> dict[str, Numbers]:
        """Columns of scores, standard errors, ranks and rank intervals of items."""
        ranker, items = self._calibrated_ranker_and_features(data)
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
        ranker, items = self._calibrated_ranker_and_features(data)
        is_in_set = ranker.best_set(items, data.groups, level)
        return {"score": self.predict(data), "in_set": is_in_set.astype(int)}

    def _calibrated_ranker_and_features(self, data: RankingData) -> tuple[CalibratedRanker, Matrix]:
        """The final step of the model, and the items as it gets them."""
        ranker = final_estimator(self.model)
        if not isinstance(ranker, CalibratedRanker):
            raise ValueError(
                f"{self.name} was not calibrated in training, so it has no standard errors; "
                "train it again with rankwise train --calibrate."
            )
        return ranker, transform_items(self.model, data.X, data.groups)


def open_model(path: Path) -> TrainedModel:
    """Load a model that ranks items."""
    source = path_on_disk(str(path))
    if not _is_zip_archive(source):
        raise ValueError(f"{path} is not a rankwise model. Check the order of the files.")
    model, notes = load_with_notes(source)
    is_dyadic = hasattr(model, "n_columns_")  # of rows and columns, or of items and labels
    if is_dyadic or not hasattr(model, "n_features_in_"):
        raise ValueError(
            f"{path} is a {type(model).__name__}, which the command cannot use to rank items; use "
            "it in Python."
        )
    first_step = model[0] if isinstance(model, Pipeline) else model
    vectorizer = _vectorizer_of_step(first_step)
    if vectorizer is None:
        features = [str(name) for name in getattr(first_step, "feature_names_in_", ())]
    else:
        used_columns = [column.name for column in vectorizer.facts_ if column.is_used]
        features = list(dict.fromkeys(used_columns))  # each once
    return TrainedModel(str(path), model, read_notes(notes), vectorizer, features)


def _is_zip_archive(path: str) -> bool:
    with open(path, "rb") as stream:
        return stream.read(2) == b"PK"


def _vectorizer_of_step(step: BaseEstimator) -> TableVectorizer | None:
    """The encoder of table columns in the first step of a model, if it has one."""
    if isinstance(step, CalibratedRanker):
        step = step.estimator_
    if isinstance(step, AutoRanker):
        step = step.table_
    if isinstance(step, TableVectorizer):
        return step
    return None
