"""Facts about the training of a model that are stored in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from rankwise.formatting import JsonObject

NOTES = "rankwise train"  # key of the notes in a model file


@dataclass(frozen=True)
class TrainingNotes:
    """How a model was trained; part of the model file.

    Attributes
    ----------
    command, data : str
        The command line and the name of the file; empty if another program trained the model.
    n_rows : int
        Number of items.
    target, group, event : str
        Names of these columns; empty if there is none. With an event the target has right-censored
        survival times.
    sparse : bool
        Whether the features were sparse.
    zero_based : bool
        Whether the features of svmlight rows were counted from 0.
    rows, whole_rows : str
        Fingerprints of the training rows by their features and by all `columns`, see
        `rankwise.datasets.overlap`; the second is empty for svmlight rows.
    columns : list of str
        Columns of a table without another role.
    missing, levels : list of str
        Words for missing values, and words of the target from the worst to the best.
    lower : bool
        Whether smaller scores are better.
    chosen : dict
        Selected or fixed parameters.
    """

    command: str = ""
    data: str = ""
    n_rows: int = 0
    target: str = ""
    group: str = ""
    event: str = ""
    sparse: bool = False
    zero_based: bool = False
    rows: str = ""
    whole_rows: str = ""
    columns: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    lower: bool = False
    chosen: JsonObject = field(default_factory=dict)

    def as_notes(self) -> dict[str, JsonObject]:
        """Return the argument `notes` of `rankwise.persistence.save`."""
        return {NOTES: asdict(self)}


def read_notes(notes: object) -> TrainingNotes:
    """Read the notes of a model file; values of another type get their default."""
    if not isinstance(notes, Mapping):
        return TrainingNotes()
    saved = notes.get(NOTES)
    if not isinstance(saved, Mapping):
        return TrainingNotes()
    # Take the known fields with values of the right type; defaults replace all others.
    values = {}
    for name, default in asdict(TrainingNotes()).items():
        if type(saved.get(name)) is type(default):
            values[name] = saved[name]
    return TrainingNotes(**values)
