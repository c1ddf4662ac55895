"""Models of tables on the command line: what they need, and their predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankwise.cli.table_side import TableSide

KEY = "rankwise table"


def is_table_model(path: Path) -> bool:
    """Whether a model file ranks the columns of a table."""
    from rankwise.errors import ModelFileError
    from rankwise.persistence import read_header

    if str(path) == "-":
        return False
    try:
        return str(read_header(path)["ranker"]).startswith("ConditionalRankRLS")
    except ModelFileError:
        return False


def new_items(notes: Any, what: str, path: Path, names: Any = None) -> tuple[Any, Any]:
    """Names and features of a file, scaled as in training."""
    from rankwise.datasets import read_item_features

    side = TableSide(**notes[KEY][what])
    items = read_item_features(path, categories=side.categories)
    place = {name: k for k, name in enumerate(items.feature_names)}
    missing = [name for name in side.features if name not in place]
    if missing:
        raise ValueError(
            f"{path} has the columns {', '.join(items.feature_names[:5])}, …, and not "
            f"{missing[0]}, with which the model was trained for its {what}; add it."
        )
    items = items._replace(X=items.X[:, [place[name] for name in side.features]])
    X = items.X if names is None else items.of(names, path, what[:-1])
    return (items.names if names is None else names), side.scaled(X)


def predict_table(
    model: Path, rows: Path, columns: Path | None, output: Path | None, rank: bool
) -> None:
    """Score the rows of a file, in the columns of training or those of another file."""
    import numpy as np

    from rankwise.cli.output import write_csv
    from rankwise.persistence.model_file import load_with_notes

    ranker, notes = load_with_notes(model)
    check_notes(notes, model)
    names, X = new_items(notes, "rows", rows)
    titles, Z = notes[KEY]["names"], None  # type: ignore[index]
    if columns is not None:
        if "columns" not in notes[KEY]:  # type: ignore[index]
            raise ValueError(f"{model} was trained without features of columns; drop --columns.")
        titles, Z = new_items(notes, "columns", columns)
    scores = (ranker.rank if rank else ranker.predict)(X, Z)
    lines = zip(names.tolist(), scores.tolist(), strict=True)
    header = ["row", *np.asarray(titles).tolist()]
    write_csv(output or Path("-"), header, ([name, *line] for name, line in lines))


def check_notes(notes: Any, model: Path) -> None:
    """Refuse a file that another program wrote, or with notes that are not those of a table."""
    sides = notes.get(KEY) if isinstance(notes, dict) else None
    try:
        for what in {"rows", "columns"} & set(sides or {}):
            side = TableSide(**sides[what])  # type: ignore[index]
            words = [word for words in side.categories.values() for word in words]
            ok = all(isinstance(name, str) for name in (*side.names, *side.features, *words))
            numbers = all(isinstance(x, (int, float)) for x in (*side.mean, *side.scale))
            if not ok or not numbers or len(side.mean) != len(side.scale):
                raise TypeError
        if not sides or "rows" not in sides or not isinstance(sides["names"], list):
            raise TypeError
    except (TypeError, KeyError, AttributeError):
        raise ValueError(
            f"{model} does not say how its table was read; train it on a table with rankwise "
            "train, or use it in Python."
        ) from None
