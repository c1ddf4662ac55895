"""What can rank: a model file, or a file with one score a line."""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.session import note
from rankwise.cli.training_notes import TrainingNotes, read_notes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.cli.data_file import DataFile


@dataclass
class TrainedModel:
    """A model from a file, with what is noted about its training."""

    name: str
    model: Any
    notes: TrainingNotes

    @property
    def n_features(self) -> int:
        """Number of features that it was trained on."""
        return int(self.model.n_features_in_)

    @property
    def takes_table(self) -> bool:
        """Whether it takes columns by name, text and gaps included."""
        return hasattr(self.model, "steps") and hasattr(self.model[0], "transformers")

    def scores(self, file: DataFile) -> tuple[NDArray[np.float64], Any]:
        """Predicted scores of the items that have a true one, and these items."""
        found = file.read_for(self)
        predicted = self.predict(found)  # of all items: those without a score are in groups, too
        kept = scored_items(found)
        return (predicted, found) if kept is None else (predicted[kept], found.take(kept))

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
        from rankwise.estimators.pipelines import last_step, transform_items

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

    def seen_items(self, file: DataFile) -> str:
        """What is to be said if the model was trained on items of the file, else nothing."""
        import numpy as np

        from rankwise.datasets.row_sketch import seen_shares, seen_words

        notes = self.notes
        data: Any = file.read_for(self)
        sketch, X = notes.rows, data.X
        if notes.columns:
            is_whole = set(notes.columns) <= set(file.names)
            sketch = notes.whole_rows if is_whole else notes.rows
            X = file.read_frame_for(self, notes.columns if is_whole else notes.features)
        if not sketch:
            return ""
        scored = np.flatnonzero(~np.isnan(data.y))
        X = X.take(scored) if hasattr(X, "column_names") else X[scored]
        groups = None if data.groups is None else data.groups[scored]
        return seen_words(seen_shares(sketch, X, data.y[scored], groups), self.name)


@dataclass
class ScoreFile:
    """Scores that any program may have written."""

    path: Path

    def scores(self, file: DataFile) -> tuple[NDArray[np.float64], Any]:
        """The scores in the file of the items that have a true one, and these items."""
        from rankwise.datasets import read_scores

        values = read_scores(self.path)
        data: Any = file.read_targets()
        n_items = len(data.y) if data.rows is None else file.n_rows
        if len(values) != n_items:
            raise ValueError(
                f"{self.path} has {len(values)} scores, but {file.path} has {n_items} items; "
                "one score a line is needed, in the order of the items."
            )
        values = values if data.rows is None else values[data.rows]
        kept = scored_items(data)
        return (values, data) if kept is None else (values[kept], data.take(kept))

    def seen_items(self, file: DataFile) -> str:
        """Nothing: who knows what these scores were trained on."""
        return ""


def scored_items(data: Any) -> NDArray[np.intp] | None:
    """Where the items are that have a true score, None if all have."""
    import numpy as np

    kept = np.flatnonzero(~np.isnan(data.y))
    if len(kept) == len(data.y):
        return None
    if not len(kept):
        raise ValueError("no item of the data has a score, so there is nothing to judge by.")
    note(f"{len(data.y) - len(kept)} items without score are left out")
    return kept


def open_model(path: Path) -> TrainedModel:
    """Load a model."""
    from rankwise.datasets.files import location
    from rankwise.persistence.model_file import load_with_notes

    import_skops()
    model, notes = load_with_notes(location(str(path)))
    if hasattr(model, "n_columns_"):
        raise ValueError(
            f"{path} ranks the columns of tables, which this command does not take; use rankwise "
            "predict, or rankwise report with the features of its rows."
        )
    return TrainedModel(str(path), model, read_notes(notes, model))


def import_skops() -> None:
    """Import skops in a third of its time; for the process of the command only.

    skops trusts all of scikit-learn's estimators, and imports every module of scikit-learn to list
    them. `load` tells it by name what to trust in each file, so the list may be empty. A program
    that uses skops itself needs the list: hence not in the library.
    """
    if "skops.io" in sys.modules:
        return
    import sklearn.utils

    usual = sklearn.utils.all_estimators
    sklearn.utils.all_estimators = lambda: []
    try:
        with suppress(ModuleNotFoundError):  # `load` and `save` say so in their own words
            import_module("skops.io")
    finally:
        sklearn.utils.all_estimators = usual


def open_ranker(path: Path) -> TrainedModel | ScoreFile:
    """Load a model, or take the file as scores if its first line is a single number."""
    return ScoreFile(path) if _starts_with_a_number(path) else open_model(path)


def _starts_with_a_number(path: Path) -> bool:
    from rankwise.datasets.files import numbered_lines
    from rankwise.errors import DataFileError

    try:
        lines = (line for _, line in numbered_lines(str(path)) if line.strip())
        return _number(next(lines, b"")) is not None
    except DataFileError:  # not a text
        return False


def _number(line: bytes) -> float | None:
    try:
        value = float(line)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
