"""Items to compare: rows of a table, lines of a text file, or files in a folder."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import Array
from rankwise.formatting import count

if TYPE_CHECKING:
    import pyarrow as pa

    from rankwise.datasets.table_files import TableFile

TextColumns: TypeAlias = dict[str, list[str]]

MAX_ITEMS = 2000
MAX_CHARACTERS = 100_000  # of an item
IMAGES = {".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".bmp"}
TEXTS = {".txt", ".md"}
NAME_COLUMNS = ("id", "name", "item", "title", "key")  # in order of preference


class Item(NamedTuple):
    """One item.

    Attributes
    ----------
    name : str
        Unique name, shown on the board and in the exported answers.
    cells : tuple of (str, str)
        Contents that a judge sees, in this order: names of columns (empty for a single content)
        and texts.
    image : Path or None
        A picture to show above the cells.
    """

    name: str
    cells: tuple[tuple[str, str], ...]
    image: Path | None = None

    @property
    def digest(self) -> str:
        """Hash of the contents that a judge sees."""
        image_path = ""
        if self.image is not None:
            image_path = str(self.image)
        contents = json.dumps([list(self.cells), image_path])
        return hashlib.sha256(contents.encode()).hexdigest()


class ItemSet(NamedTuple):
    """Items and their features.

    Attributes
    ----------
    items : list of Item
        At least two items with different names.
    features : ndarray of shape (n_items, n_features) or None
        Numbers and categories of the table, scaled; None without such columns.
    feature_names : list of str
        The columns that the features are computed from.
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
    r"""Read the items of a table, a text file or a folder.

    Parameters
    ----------
    path : str or Path
        A table with one item a row (CSV, TSV, Parquet, Feather, JSON), a text file (.txt)
        with one item a line, or a folder with one picture or text (.txt, .md) for each item.
    name : str, optional
        Column that names the items; by default a column named id, name, item, title or key, else
        the first column with unique values and none missing.
    show : sequence of str, default=()
        Columns that judges see; all except the picture if empty.
    image : str, optional
        Column with the file names of pictures, relative to the folder of the table.
    use_features : bool, default=True
        Whether to compute features from numbers and categories of the table.
    is_blind : bool, default=False
        Whether the column of names is hidden.

    Returns
    -------
    ItemSet

    Raises
    ------
    ValueError
        If there are fewer than 2 or more than 2,000 items, if names are not unique, if an item is
        empty, or if a picture is missing or outside its folder.

    Examples
    --------
    >>> import tempfile
    >>> from rankwise.judge.item_set import read_items
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "cheese.csv"
    ...     _ = file.write_text("name,town,price\nBrie,Meaux,9\nComté,Arbois,14\n")
    ...     item_set = read_items(file)
    >>> item_set.names, item_set.items[0].cells[1:], item_set.features.shape
    (['Brie', 'Comté'], (('town', 'Meaux'), ('price', '9')), (2, 3))
    """
    path = Path(path)
    is_table = not path.is_dir() and path.suffix != ".txt"
    if is_table:
        items = _read_table(path, name, show, image, use_features, is_blind)
    elif name or show or image:
        raise ValueError(f"name=, show= and image= are for tables, but {path} is not a table.")
    elif path.is_dir():
        items = ItemSet(_read_folder(path))
    else:
        items = ItemSet(_read_lines(path))
    _check_items(items.items, path)
    return items


def _read_folder(path: Path) -> list[Item]:
    items = []
    for file in sorted(path.iterdir()):
        is_image = file.suffix.lower() in IMAGES
        is_text = file.suffix.lower() in TEXTS
        if not (is_image or is_text) or not file.is_file():
            continue
        _check_inside(file, path, file.name)
        if is_image:
            items.append(Item(file.stem, cells=(), image=file.resolve()))
        else:
            text = file.read_text("utf-8-sig").strip()
            items.append(Item(file.stem, cells=(("", text),)))  # a cell without a column
    return items


def _check_inside(file: Path, folder: Path, description: str) -> None:
    """Refuse a file outside the folder, which a link or ".." can name."""
    if not file.resolve().is_relative_to(folder.resolve()):
        raise ValueError(f"{description} is outside {folder}; copy it there, or remove it.")


def _read_lines(path: Path) -> list[Item]:
    lines = [line.strip() for line in path.read_text("utf-8-sig").splitlines()]
    return [Item(line, cells=(("", line),)) for line in lines if line]


def _read_table(
    path: Path,
    name: str | None,
    show: Sequence[str],
    image: str | None,
    use_features: bool,
    is_blind: bool,
) -> ItemSet:
    from rankwise.datasets.open_tables import open_table

    file = open_table(str(path))
    columns = _read_texts(file)
    for column in (name, image, *show):
        if column is not None and column not in columns:
            raise ValueError(
                f"{path} has no column {column!r}; its columns are {', '.join(columns)}."
            )
    name_column = name
    if not name_column:
        name_column = _find_name_column(columns, path)
    visible_columns = list(show)
    if not visible_columns:
        visible_columns = [column for column in columns if column != image]
    if is_blind and name_column in visible_columns:
        visible_columns.remove(name_column)
    items = _make_items(columns, name_column, visible_columns, image, path.parent)
    if not use_features or len(items) < 2:
        return ItemSet(items)
    feature_columns = [column for column in columns if column not in (name_column, image)]
    features, feature_names = _standardized_features(_read_frame(file, feature_columns))
    return ItemSet(items, features, feature_names)


def _read_texts(file: TableFile) -> TextColumns:
    """Read all columns as text; a missing cell is an empty text."""
    from rankwise.datasets import read_ranking

    data = read_ranking(file, target=None, group=None, as_frame=True, text=file.names)
    columns = {}
    for column, values in data.frame.to_pydict().items():
        texts = []
        for value in values:
            is_missing = value is None
            texts.append("" if is_missing else str(value).strip())
        columns[column] = texts
    return columns


def _read_frame(file: TableFile, columns: Sequence[str]) -> pa.Table:
    """Read columns with their types."""
    from rankwise.datasets import read_ranking

    return read_ranking(file, target=None, group=None, as_frame=True, features=columns).frame


def _make_items(
    columns: TextColumns,
    name_column: str,
    visible_columns: Sequence[str],
    image_column: str | None,
    folder: Path,
) -> list[Item]:
    """Make an item of each row: its name, its cells that are not empty, its picture."""
    items = []
    for row, name in enumerate(columns[name_column]):
        cells = []
        for column in visible_columns:
            text = columns[column][row]
            if text:
                cells.append((column, text))
        picture = None
        if image_column is not None:
            picture = _find_picture(columns[image_column][row], folder, row)
        items.append(Item(name, tuple(cells), picture))
    return items


def _find_name_column(columns: TextColumns, path: Path) -> str:
    # Reversed: of columns that differ in case only, the first one counts
    column_by_lowercase = {column.lower(): column for column in reversed(columns)}
    for usual_name in NAME_COLUMNS:
        if usual_name in column_by_lowercase:
            return column_by_lowercase[usual_name]
    for column, texts in columns.items():
        has_no_empty_text = all(texts)
        is_unique = len(set(texts)) == len(texts)
        if has_no_empty_text and is_unique:
            return column
    raise ValueError(
        f"no column of {path} has unique values without missing ones; remove duplicate rows, or "
        "choose a column with name=."
    )


def _find_picture(name: str, folder: Path, row: int) -> Path | None:
    if not name:
        return None
    file = (folder / name).resolve()
    _check_inside(file, folder, f"the picture {name!r} of row {row + 1}")
    if file.suffix.lower() not in IMAGES or not file.is_file():
        raise ValueError(
            f"row {row + 1}: {file} does not exist or is not a picture "
            f"({', '.join(sorted(IMAGES))})."
        )
    return file


def _standardized_features(table: pa.Table) -> tuple[Array | None, list[str]]:
    """Compute scaled features and their columns; None if no column can be used."""
    from sklearn.preprocessing import StandardScaler

    from rankwise.preprocessing.table_vectorizer import TableVectorizer

    vectorizer = TableVectorizer()
    try:
        X = vectorizer.fit_without_warning(table).transform(table)
    except ValueError:  # no column can be used
        return None, []
    names = [column.name for column in vectorizer.facts_ if column.is_used]
    if sp.issparse(X):
        X = X.toarray()
    features = np.asarray(X, dtype=np.float64)
    largest = np.abs(features).max(axis=0)
    divisor = np.where(largest > 0, largest, 1.0)  # the square of 1e200 would be infinite
    return StandardScaler().fit_transform(features / divisor), names


def _check_items(items: list[Item], path: Path) -> None:
    if len(items) < 2:
        raise ValueError(f"{path} has {count(len(items), 'item')}; expected at least two.")
    if len(items) > MAX_ITEMS:
        raise ValueError(
            f"{path} has {len(items):,} items, expected at most {MAX_ITEMS:,}; judge a sample of "
            "them, and rank the others with a model."
        )
    n_with_name = Counter(item.name for item in items)
    for number, item in enumerate(items, start=1):
        problem = _describe_problem(item, n_with_name[item.name])
        if problem:
            raise ValueError(
                f"{path}: item {number} {problem}: {item.name!r:.60}. Fix or remove it."
            )


def _describe_problem(item: Item, n_with_name: int) -> str:
    """Return why an item cannot be judged; an empty text if it can."""
    if not item.name:
        return "has no name"
    if not item.cells and item.image is None:
        return "has nothing to show"
    n_characters = sum(len(text) for _, text in item.cells)
    if n_characters > MAX_CHARACTERS:
        return f"has more than {MAX_CHARACTERS:,} characters"
    if n_with_name > 1:
        return "has the name of another item"
    return ""
