"""What is to be judged: rows of a table, lines of a text file, or files of a folder."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Array
from rankwise.formatting import count

MOST_ITEMS = 2000
LONGEST_TEXT = 100_000
IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp"}
TEXTS = {".txt", ".md"}
NAMES = ("id", "name", "item", "title", "key")  # columns that name their rows, best first


class Item(NamedTuple):
    """One thing to judge.

    Attributes
    ----------
    name : str
        Tells it from all others; what the board and the export show.
    cells : tuple of (str, str)
        What a judge sees of it, in this order: names of columns, empty for the only one, and texts.
    image : Path or None
        A picture to show above the cells.
    """

    name: str
    cells: tuple[tuple[str, str], ...]
    image: Path | None = None

    @property
    def digest(self) -> str:
        """Changes if a judge would see something else."""
        shown = [list(self.cells), str(self.image or "")]
        return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


class ItemSet(NamedTuple):
    """Items, and their features if there are any.

    Attributes
    ----------
    items : list of Item
        At least two, with different names.
    features : ndarray of shape (n_items, n_features) or None
        Numbers and categories of a table, scaled.
    feature_names : list of str
        The columns that they were made of.
    """

    items: list[Item]
    features: Array | None = None
    feature_names: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """Names of the items."""
        return [item.name for item in self.items]


def read_items(
    path: str | Path,
    *,
    name: str | None = None,
    show: Sequence[str] = (),
    image: str | None = None,
    use_features: bool = True,
    is_blind: bool = False,
) -> ItemSet:
    r"""Read what is to be judged.

    Parameters
    ----------
    path : str or Path
        A table with one item a row (CSV, TSV, Parquet, Feather, JSON), a text file (.txt)
        with one item a line, or a folder with one picture or text (.txt, .md) for each item.
    name : str, optional
        Column that names the items; by default one called id, name, item, title or key, or else
        the first column without gaps and repetitions.
    show : sequence of str
        Columns that judges see; all but the picture if not given.
    image : str, optional
        Column with the file name of a picture, seen from the folder of the table.
    use_features : bool
        Whether numbers and categories of the table help to choose the next question.
    is_blind : bool
        Whether the column of the names is not shown.

    Returns
    -------
    ItemSet

    Raises
    ------
    ValueError
        If there are fewer than two items, or more than 2,000, or two of one name, or empty ones,
        or a picture is missing or outside of its folder.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "cheese.csv"
    ...     _ = file.write_text("name,town,price\nBrie,Meaux,9\nComté,Arbois,14\n")
    ...     found = read_items(file)
    >>> found.names, found.items[0].cells[1:], found.features.shape
    (['Brie', 'Comté'], (('town', 'Meaux'), ('price', '9')), (2, 3))
    """
    path = Path(path)
    is_table = not path.is_dir() and path.suffix != ".txt"
    if is_table:
        items = _from_table(path, name, show, image, use_features, is_blind)
    elif name or show or image:
        raise ValueError(f"name=, show= and image= are for tables, but {path} is none.")
    else:
        items = ItemSet(_from_folder(path) if path.is_dir() else _from_lines(path))
    _check(items.items, path)
    return items


def _from_folder(path: Path) -> list[Item]:
    items = []
    for file in sorted(path.iterdir()):
        is_image = file.suffix.lower() in IMAGES
        if not (is_image or file.suffix.lower() in TEXTS) or not file.is_file():
            continue
        _check_inside(file, path, file.name)
        if is_image:
            items.append(Item(file.stem, (), file.resolve()))
        else:
            items.append(Item(file.stem, (("", file.read_text("utf-8-sig").strip()),)))
    return items


def _check_inside(file: Path, folder: Path, what: str) -> None:
    """Refuse a file that judges would see although it is elsewhere, by a link or by dots."""
    if not file.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{what} is outside of {folder}; copy it there, or leave it out.")


def _from_lines(path: Path) -> list[Item]:
    lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    return [Item(line, (("", line),)) for line in lines if line]


def _from_table(
    path: Path,
    name: str | None,
    show: Sequence[str],
    image: str | None,
    use_features: bool,
    is_blind: bool,
) -> ItemSet:
    from rankwise.datasets import read_ranking
    from rankwise.datasets.table_files import open_table

    opened: Any = open_table(str(path))
    options: dict[str, Any] = {"target": None, "group": None, "as_frame": True}
    spelled: Any = read_ranking(opened, text=opened.names, **options).X
    columns = {
        column: ["" if value is None else str(value).strip() for value in values]
        for column, values in spelled.to_pydict().items()
    }
    for asked in (name, image, *show):
        if asked is not None and asked not in columns:
            raise ValueError(
                f"{path} has no column {asked!r}; its columns are {', '.join(columns)}."
            )
    name = name or _naming_column(columns, path)
    shown = list(show) or [column for column in columns if column != image]
    if is_blind and name in shown:
        shown.remove(name)
    items = [
        Item(
            columns[name][k],
            tuple((column, columns[column][k]) for column in shown if columns[column][k]),
            _picture(columns[image][k], path.parent, k) if image else None,
        )
        for k in range(spelled.num_rows)
    ]
    if not use_features or len(items) < 2:
        return ItemSet(items)
    described = [column for column in columns if column not in (name, image)]
    return ItemSet(items, *_features(read_ranking(opened, features=described, **options).X))


def _naming_column(columns: dict[str, list[str]], path: Path) -> str:
    by_lower = {column.lower(): column for column in reversed(columns)}
    for known in NAMES:
        if known in by_lower:
            return by_lower[known]
    for column, texts in columns.items():
        if all(texts) and len(set(texts)) == len(texts):
            return column
    raise ValueError(
        f"no column of {path} tells its rows apart (no gaps, no repetitions); "
        "remove rows that are there twice, or name a column with name=."
    )


def _picture(name: str, folder: Path, row: int) -> Path | None:
    if not name:
        return None
    file = (folder / name).resolve()
    _check_inside(file, folder, f"the picture {name!r} of row {row + 1}")
    if file.suffix.lower() not in IMAGES or not file.is_file():
        raise ValueError(
            f"row {row + 1}: {file} is no picture ({', '.join(sorted(IMAGES))}), or is not there."
        )
    return file


def _features(table: Any) -> tuple[Array | None, list[str]]:
    """Scaled numbers and categories, as `rankwise train` makes them, or None if there are none."""
    from sklearn.preprocessing import StandardScaler

    from rankwise.preprocessing.table_vectorizer import TableVectorizer

    columns = TableVectorizer()
    try:
        X = columns.decide_columns(table).transform(table)
    except ValueError:  # no column is of use
        return None, []
    used = [column.name for column in columns.facts_ if column.kind != "left out"]
    dense = np.asarray(X.todense() if hasattr(X, "todense") else X, dtype=np.float64)
    largest = np.abs(dense).max(axis=0)
    dense = dense / np.where(largest > 0, largest, 1.0)  # or the square of 1e200 is infinite
    return StandardScaler().fit_transform(dense), used


def _check(items: list[Item], path: Path) -> None:
    if len(items) < 2:
        raise ValueError(f"{path} has {count(len(items), 'item')}; two are needed.")
    if len(items) > MOST_ITEMS:
        raise ValueError(
            f"{path} has {len(items):,} items, but people can judge {MOST_ITEMS:,} at most; "
            "take a sample of them, and let a model rank the others."
        )
    names = Counter(item.name for item in items)
    for k, item in enumerate(items, start=1):
        if not item.name:
            wrong = "has no name"
        elif not item.cells and item.image is None:
            wrong = "has nothing to show"
        elif sum(len(text) for _, text in item.cells) > LONGEST_TEXT:
            wrong = f"has more than {LONGEST_TEXT:,} characters"
        elif names[item.name] > 1:
            wrong = "is there twice"
        else:
            continue
        raise ValueError(f"{path}: item {k} {wrong}: {item.name!r:.60}. Mend or remove it.")
