"""Runs and relevance judgments (qrels) in the format of TREC, for trec_eval and its kin."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankwise.arrays import Array
from rankwise.datasets.files import PathLike, open_unpacked, replace_file
from rankwise.datasets.words import finite_number
from rankwise.errors import TableFormatError
from rankwise.groups import encode_groups

RUN = ("query", "Q0", "document", "rank", "score", "tag")
QRELS = ("query", "0", "document", "relevance")


class TrecRun(NamedTuple):
    """Documents found for queries, or judged for them, one row each.

    Attributes
    ----------
    query, document : ndarray of str, shape (n_rows,)
        Names; a query is a group.
    score : ndarray of shape (n_rows,)
        Of a run: larger is better. NaN for documents that are judged only.
    relevance : ndarray of shape (n_rows,)
        Of qrels: the grade. NaN for documents that nobody judged.
    """

    query: NDArray[Any]
    document: NDArray[Any]
    score: Array
    relevance: Array

    def judged_by(self, qrels: TrecRun) -> TrecRun:
        """The rows of this run with the relevance of the judgments, NaN where there is none.

        Relevant documents that the run lacks for its queries come after it, with a score below all
        others of the run: they belong to the best order of NDCG, and to all relevant items of
        recall. So NDCG, precision, recall and reciprocal rank equal those of trec_eval, as long as
        the cut-off is no larger than the lists. Queries that have no judgments are left out.
        """
        judged = zip(qrels.query, qrels.document, strict=True)
        known = dict(zip(judged, qrels.relevance, strict=True))
        kept = np.isin(self.query, qrels.query)
        query, document, score = (column[kept] for column in self[:3])
        rows = list(zip(query, document, strict=True))
        relevance = np.array([known.get(row, np.nan) for row in rows], dtype=np.float64)
        found, asked = set(rows), set(query)
        lost = [row for row in known if row not in found and row[0] in asked and known[row] > 0]
        below = np.full(len(lost), score.min(initial=0.0) - 1.0)
        return TrecRun(
            np.r_[query, np.array([row[0] for row in lost], dtype=query.dtype)],
            np.array([*document, *(row[1] for row in lost)]),
            np.r_[score, below],
            np.r_[relevance, [known[row] for row in lost]],
        )


def read_trec_run(path: PathLike) -> TrecRun:
    """Read a run: lines of query, ``Q0``, document, rank, score, name of the run.

    The rank is not looked at, as in trec_eval: the score orders the documents.

    Parameters
    ----------
    path : str or path-like
        The file, compressed or not.

    Returns
    -------
    TrecRun
        Its `relevance` is NaN; see `TrecRun.judged_by`.

    Raises
    ------
    TableFormatError
        If a line has other fields, or a document comes twice for a query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import read_trec_run, write_trec_run
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_trec_run(path, ["q1", "q1"], ["d1", "d2"], [0.5, 2.0])
    >>> print(path.read_text(), end="")
    q1 Q0 d2 1 2.0 rankwise
    q1 Q0 d1 2 0.5 rankwise
    >>> read_trec_run(path).document
    array(['d2', 'd1'], dtype='<U2')
    """
    query, document, score = _read(path, RUN)
    return TrecRun(query, document, score, np.full(len(query), np.nan))


def read_qrels(path: PathLike) -> TrecRun:
    """Read relevance judgments: lines of query, ``0``, document, relevance.

    Parameters
    ----------
    path : str or path-like
        The file, compressed or not.

    Returns
    -------
    TrecRun
        Its `score` is NaN. A relevance below 0 counts as 0, as in trec_eval.

    Raises
    ------
    TableFormatError
        If a line has other fields, or a document comes twice for a query.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import read_qrels, write_qrels
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(path, ["q1", "q1"], ["d1", "d2"], [2, 0])
    >>> read_qrels(path).relevance
    array([2., 0.])
    """
    query, document, relevance = _read(path, QRELS)
    return TrecRun(query, document, np.full(len(query), np.nan), np.maximum(relevance, 0.0))


def write_trec_run(
    path: PathLike, query: ArrayLike, document: ArrayLike, score: ArrayLike, tag: str = "rankwise"
) -> None:
    """Write scores as a run, the best document of each query first.

    Parameters
    ----------
    path : str or path-like
        The file.
    query, document : array-like of str, shape (n_rows,)
        Names without spaces, such as the groups of the items and their identifiers.
    score : array-like of shape (n_rows,)
        As `predict` gives them. Equal scores stay in the order of rows; trec_eval orders them by
        the names of documents.
    tag : str, default="rankwise"
        Name of the run.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import write_trec_run
    >>> path = Path(tempfile.mkdtemp()) / "run.txt"
    >>> write_trec_run(path, ["q1", "q1"], ["d1", "d2"], [0.5, 2.0], tag="mine")
    >>> print(path.read_text(), end="")
    q1 Q0 d2 1 2.0 mine
    q1 Q0 d1 2 0.5 mine
    """
    names, scores = _checked(path, query, document, score)
    groups = encode_groups(names[0], len(scores))
    order, sizes = np.lexsort((-scores, groups.codes)), groups.sizes
    place = 1 + np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    lines = (
        f"{names[0][row]} Q0 {names[1][row]} {rank} {float(scores[row])!r} {tag}\n"
        for row, rank in zip(order, place, strict=True)
    )
    with replace_file(path) as stream:
        stream.write("".join(lines).encode())


def write_qrels(
    path: PathLike, query: ArrayLike, document: ArrayLike, relevance: ArrayLike
) -> None:
    """Write relevance judgments; rows whose relevance is NaN are left out.

    Parameters
    ----------
    path : str or path-like
        The file.
    query, document : array-like of str, shape (n_rows,)
        Names without spaces.
    relevance : array-like of shape (n_rows,)
        Whole numbers.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankwise.datasets import write_qrels
    >>> path = Path(tempfile.mkdtemp()) / "qrels.txt"
    >>> write_qrels(path, ["q1", "q1"], ["d1", "d2"], [2, 0])
    >>> print(path.read_text(), end="")
    q1 0 d1 2
    q1 0 d2 0
    """
    grades = np.asarray(relevance, dtype=np.float64)
    judged = ~np.isnan(grades)
    names, grades = _checked(
        path, np.asarray(query)[judged], np.asarray(document)[judged], grades[judged]
    )
    if (grades % 1 != 0).any():
        raise ValueError(f"{path}: qrels hold whole numbers only.")
    rows = zip(*names, grades, strict=True)
    with replace_file(path) as stream:
        stream.write("".join(f"{q} 0 {d} {int(grade)}\n" for q, d, grade in rows).encode())


def _read(path: PathLike, fields: tuple[str, ...]) -> tuple[NDArray[Any], NDArray[Any], Array]:
    """Queries, documents and the number that follows the documents."""
    place = -2 if len(fields) == len(RUN) else -1
    rows: dict[tuple[str, str], float] = {}
    with open_unpacked(str(path), TableFormatError) as (stream, _):
        for number, line in enumerate(stream, 1):
            cells = line.decode("utf-8", errors="replace").split()
            if not cells:
                continue
            value = finite_number(cells[place]) if len(cells) == len(fields) else None
            if value is None:
                problem = f"{line[:60]!r} is not of TREC's format: {', '.join(fields)}."
                raise TableFormatError(str(path), number, problem)
            if (cells[0], cells[2]) in rows:
                problem = f"document {cells[2]!r} comes twice for query {cells[0]!r}; keep one."
                raise TableFormatError(str(path), number, problem)
            rows[cells[0], cells[2]] = value
    if not rows:
        raise TableFormatError(str(path), None, "the file is empty.")
    query, document = zip(*rows, strict=True)
    return np.array(query), np.array(document), np.array(list(rows.values()))


def _checked(path: PathLike, *columns: Any) -> tuple[list[list[str]], Array]:
    """Names and numbers as they can be written."""
    numbers = np.asarray(columns[-1], dtype=np.float64)
    names = [[str(name) for name in np.asarray(column).tolist()] for column in columns[:-1]]
    for column in names:
        if len(column) != len(numbers):
            raise ValueError(f"{path}: {len(column)} names beside {len(numbers)} numbers.")
        wrong = [name for name in column if len(name.split()) != 1 or name != name.strip()]
        if wrong:
            raise ValueError(f"{path}: the name {wrong[0]!r} has spaces; TREC's format takes none.")
    if not np.isfinite(numbers).all():
        raise ValueError(f"{path}: scores must be finite numbers.")
    return names, numbers
