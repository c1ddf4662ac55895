"""What the command notes in a model file about its training, and reads back with care.

Anybody may write a model file, with any notes: what is not of the right kind is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

KEY = "rankwise train"


@dataclass(frozen=True)
class TrainingNotes:
    """How a model was trained.

    Attributes
    ----------
    command, data : str
        The command line and the name of the file; empty if another program trained the model.
    n_rows : int
        Number of items.
    target, group : str
        Names of these columns; empty if there is none.
    features, categories, other_columns : list of str
        Columns that were learned from, those of them that are categories, and those that were left
        out; empty for svmlight rows.
    sparse : bool
        Whether the features were sparse.
    zero_based : bool
        Whether the features of svmlight rows were counted from 0.
    rows, whole_rows : str
        Sketches of the training rows by their features and by all `columns`, see
        `rankwise.datasets.row_sketch`; the second is empty for svmlight rows.
    columns : list of str
        All columns of a table that are neither target, group, name nor weight.
    chosen : dict
        Parameters that were chosen or given.
    """

    command: str = ""
    data: str = ""
    n_rows: int = 0
    target: str = ""
    group: str = ""
    features: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    other_columns: list[str] = field(default_factory=list)
    sparse: bool = False
    zero_based: bool = False
    rows: str = ""
    columns: list[str] = field(default_factory=list)
    whole_rows: str = ""
    chosen: dict[str, Any] = field(default_factory=dict)

    def as_notes(self) -> dict[str, Any]:
        """For ``save(model, path, notes=...)``."""
        return {KEY: asdict(self)}


def read_notes(notes: Any, model: Any = None) -> TrainingNotes:
    """The notes in a model file; the model itself may know the names of its features."""
    given = notes.get(KEY) if isinstance(notes, Mapping) else None
    found: dict[str, Any] = {}
    for known in fields(TrainingNotes):
        value = given.get(known.name) if isinstance(given, Mapping) else None
        usual = getattr(TrainingNotes(), known.name)
        is_list = isinstance(value, list) and all(isinstance(name, str) for name in value)
        if type(value) is type(usual) and (is_list or not isinstance(usual, list)):
            found[known.name] = value
    if not found.get("features"):
        found["features"] = _names_seen(model)
    return TrainingNotes(**found)


def _names_seen(model: Any) -> list[str]:
    first = model[0] if hasattr(model, "steps") else model
    return [str(name) for name in getattr(first, "feature_names_in_", ())]
