"""What can rank: a model file, or a file with one score a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rankwise.cli.record import TrainingRecord, read_record
from rankwise.cli.session import note

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankwise.cli.source import Source

__all__ = ["ScoreFile", "TrainedModel", "open_model", "open_ranker"]


@dataclass
class TrainedModel:
    """A model from a file, with what is noted about its training."""

    name: str
    model: Any
    record: TrainingRecord

    @property
    def n_features(self) -> int:
        """Number of features that it was trained on."""
        return int(self.model.n_features_in_)

    def scores(self, source: Source) -> tuple[NDArray[np.float64], Any]:
        """Predicted scores of the items that have a true one, and these items."""
        _, data = _only_scored(source.read_for(self))
        return self.model.predict(data.X), data


@dataclass
class ScoreFile:
    """Scores that any program may have written."""

    path: Path

    def scores(self, source: Source) -> tuple[NDArray[np.float64], Any]:
        """The scores in the file, and the items that they are for."""
        from rankwise.datasets import read_scores

        values = read_scores(self.path)
        data: Any = source.read_targets()
        if len(values) != len(data.y):
            raise ValueError(
                f"{self.path} has {len(values)} scores, but {source.path} has {len(data.y)} items; "
                "one score a line is needed, in the order of the items."
            )
        kept, data = _only_scored(data)
        return values[kept], data


def _only_scored(data: Any) -> tuple[NDArray[np.intp], Any]:
    """Where the items are that have a true score, and these items."""
    import numpy as np

    kept = np.flatnonzero(~np.isnan(data.y))
    if len(kept) == len(data.y):
        return kept, data
    note(f"{len(data.y) - len(kept)} items without score are left out")
    groups = None if data.groups is None else data.groups[kept]
    return kept, data._replace(X=data.X[kept], y=data.y[kept], groups=groups)


def open_model(path: Path) -> TrainedModel:
    """Load a model."""
    from rankwise.persistence.model_file import load_with_notes

    model, notes = load_with_notes(path)
    return TrainedModel(str(path), model, read_record(notes, model))


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
