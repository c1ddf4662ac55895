"""A member of AutoRanker that was evaluated on held-out data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from rankwise.arrays import Array


@dataclass(eq=False)
class EvaluatedMember:
    """One member with its held-out scores; it is trained by `train`.

    Attributes
    ----------
    alpha : float
        The selected alpha; NaN if it has none.
    scores : ndarray of shape (n_items,)
        Held-out scores.
    metric_by_unit : ndarray of shape (n_units,)
        The metric in each held-out unit.
    train : callable
        Returns the model trained on all items.
    view : {"dense", "wide", "trees"}
        Columns that the model receives; see `TrainingData`.
    n_trees : int
        The selected number of trees; 0 if there are none.
    """

    alpha: float
    scores: Array
    metric_by_unit: Array
    train: Callable[[], Any]
    view: str = "wide"
    n_trees: int = 0


def note_of_trees(n_trees: int) -> str:
    """Number of trees, for the table of members; empty without trees."""
    if not n_trees:
        return ""
    return f"{n_trees} trees"


def as_pipeline(steps: list[Any], ranker: Any) -> Pipeline:
    """Fitted transformers and a fitted ranker as one model."""
    step_names = ["scale", "expand"][: len(steps)]
    named_steps = list(zip(step_names, steps, strict=True))
    return Pipeline([*named_steps, ("rank", ranker)])
