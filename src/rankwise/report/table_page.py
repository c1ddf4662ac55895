"""The page of a table: each row is a group, its columns are the items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwise.datasets.files import PathLike
from rankwise.report.page import write_report

METRICS = ("tau", "disagreement", "spearman", "hit@1")  # for any numbers, unlike ndcg


def write_table_report(
    path: PathLike,
    scores: Any,
    Y: Any,
    *,
    row_names: Sequence[Any] | None = None,
    column_names: Sequence[Any] | None = None,
    **options: Any,
) -> None:
    """Write one HTML page that shows how well the columns of each row are ranked.

    Parameters
    ----------
    path : str or path
        The file to write; it appears whole or not at all.
    scores : array-like of shape (n_rows, n_columns)
        Predicted scores, of ``predict`` of a `LabelRanker` or `ConditionalRankRLS`, or held-out
        ones of ``leave_out``.
    Y : array-like of shape (n_rows, n_columns)
        True scores, NaN where unknown: such cells are left out.
    row_names, column_names : sequence, optional
        Names of the groups and of the items; numbers if not given.
    **options
        Metrics (by default Kendall's τ, the disagreement error, Spearman's ρ and the share of rows
        whose best column is first), title and so on, as in `write_report`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from rankwise import LabelRanker
    >>> from rankwise.report import write_table_report
    >>> X = np.random.default_rng(0).standard_normal((30, 3))
    >>> Y = X @ np.random.default_rng(1).standard_normal((3, 4))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "report.html")
    ...     write_table_report(path, LabelRanker().leave_out(X, Y), Y, column_names=list("abcd"))
    ...     os.path.getsize(path) > 10_000
    True
    """
    found, truth = np.asarray(scores, dtype=float), np.asarray(Y, dtype=float)
    if found.shape != truth.shape or found.ndim != 2:
        raise ValueError(f"scores have shape {found.shape} and Y has {truth.shape}; expected one.")
    i, j = np.nonzero(~np.isnan(truth) & ~np.isnan(found))
    rows = np.arange(len(truth)) if row_names is None else np.asarray(row_names)
    columns = np.arange(truth.shape[1]) if column_names is None else np.asarray(column_names)
    if len(rows) != truth.shape[0] or len(columns) != truth.shape[1]:
        raise ValueError(f"Y has shape {truth.shape}; give one name for each row and column.")
    options.setdefault("metrics", METRICS)
    write_report(path, found[i, j], None, truth[i, j], rows[i], ids=columns[j].tolist(), **options)
