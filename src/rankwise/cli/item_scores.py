"""Scores of the items of a file, by a model or from a file of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rankwise.arrays import Array, Indices, Labels
from rankwise.cli import terminal
from rankwise.cli.input_files import DataFile
from rankwise.cli.trained_model import TrainedModel, open_model
from rankwise.datasets import RankingData, read_scores
from rankwise.datasets.files import numbered_lines
from rankwise.datasets.overlap import describe_overlap
from rankwise.errors import DataFileError
from rankwise.groups import encode_groups


@dataclass
class ScoreFile:
    """A file with one score per line, of any program."""

    path: Path


class ScoredItems(NamedTuple):
    """Items with a true score, and their scores by a ranker.

    Attributes
    ----------
    scores : ndarray of shape (n_items,)
        The scores by the ranker.
    items : RankingData
        The items.
    """

    scores: Array
    items: RankingData


def open_ranker(path: Path) -> TrainedModel | ScoreFile:
    """Load a model, or a file of scores if the first line is a single number."""
    if _starts_with_number(path):
        return ScoreFile(path)
    return open_model(path)


def _starts_with_number(path: Path) -> bool:
    """Whether the first line of a text is a finite number."""
    try:
        lines_with_text = (line for _, line in numbered_lines(str(path)) if line.strip())
        first_line = next(lines_with_text, b"")
        return math.isfinite(float(first_line))
    except (DataFileError, ValueError):  # not a text, or not a number
        return False


def score_items(ranker: TrainedModel | ScoreFile, file: DataFile) -> ScoredItems:
    """Score the items of a file; items without a true score are dropped."""
    if isinstance(ranker, TrainedModel):
        items = file.read_for(ranker)
        # Of all items: a prediction may depend on the other items of the group, and they include
        # those without a true score.
        scores = ranker.predict(items)
    else:
        items = file.read_scored()
        scores = _read_scores_of_items(ranker, file, items)
    rows = _rows_with_true_score(items)
    return ScoredItems(scores[rows], items.take(rows))


def _read_scores_of_items(score_file: ScoreFile, file: DataFile, items: RankingData) -> Array:
    """Read one score for each item; a line for each row of the file is expected."""
    assert items.y is not None
    scores = read_scores(score_file.path)
    n_rows = len(items.y) if items.rows is None else file.opened.n_rows()
    if len(scores) != n_rows:
        raise ValueError(
            f"{score_file.path} has {len(scores)} scores, but {file.path} has {n_rows} items; "
            "one score per line is needed, in the order of the items."
        )
    if items.rows is not None:  # some rows were dropped
        scores = scores[items.rows]
    if are_ranks(scores, items.groups):
        terminal.note(
            f"{score_file.path} has the values 1, 2, … in each group, which are evaluated as "
            "scores: larger is better. If they are ranks, write scores: `rankwise predict` "
            "without --rank."
        )
    return scores


def are_ranks(values: Array, groups: Labels | None) -> bool:
    """Whether the values are the ranks 1, 2, … of each group, the smallest value first."""
    ranks = encode_groups(groups, len(values)).rank(-values)  # 1 is the smallest value
    return bool(ranks.max() > 1 and np.array_equal(ranks, values))


def _rows_with_true_score(items: RankingData) -> Indices:
    """Rows of the items with a true score; a note counts the other items."""
    assert items.y is not None
    rows = np.flatnonzero(~np.isnan(items.y))
    if not len(rows):
        raise ValueError("no item of the data has a true score to evaluate with.")
    n_dropped = len(items.y) - len(rows)
    if n_dropped:
        terminal.note(f"{n_dropped} items without score are dropped")
    return rows


def overlap_note(ranker: TrainedModel | ScoreFile, file: DataFile, items: RankingData) -> str:
    """Describe the share of the items that the model was trained on; empty if it is small."""
    if isinstance(ranker, ScoreFile) or not ranker.notes.rows:
        return ""  # the training data are unknown
    share = file.share_of_training_rows(ranker, items)
    return describe_overlap(share, ranker.name, file.rows_are)
