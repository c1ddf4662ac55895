"""rate_groups: one board for each group of comparisons."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankwise.arrays import Indices
from rankwise.datasets import PairData
from rankwise.datasets.comparisons import PairColumns
from rankwise.leaderboard.arguments import check_features, check_pairs, encode_labels
from rankwise.leaderboard.board import Leaderboard
from rankwise.leaderboard.rating import rate


def rate_groups(
    pairs: Any,
    groups: ArrayLike | None = None,
    *,
    items: ArrayLike | None = None,
    covariates: Any = None,
    features: Any = None,
    clusters: ArrayLike | None = None,
    **options: Any,
) -> dict[Any, Leaderboard]:
    """One board for each group of comparisons: by prompt, by country, by year.

    Parameters
    ----------
    pairs : data frame, dict of columns, PairData or PairGraph
        As in `rate`.
    groups : array-like of shape (n_comparisons,), optional
        Label of each comparison; by default those of the column `group` (``pairs.groups``).
    items, covariates, features, clusters
        As in `rate`, for all groups together.
    **options
        Other arguments of `rate`, and columns of a frame.

    Returns
    -------
    dict from label to Leaderboard
        A board has the items that its comparisons name.

    Examples
    --------
    >>> from rankwise import PairGraph
    >>> games = PairGraph([0, 1, 1, 2], [1, 0, 2, 1])
    >>> boards = rate_groups(games, ["old", "new", "new", "new"], alpha=0.1, n_resamples=0)
    >>> {label: [row.item for row in board] for label, board in boards.items()}
    {'new': [1, 2, 0], 'old': [0, 1]}
    """
    columns = {name: options.pop(name) for name in PairColumns.names() if name in options}
    data = check_pairs(pairs, items, covariates, columns)
    given = data.groups if groups is None else groups
    if given is None:
        raise ValueError(
            "the comparisons have no groups; read them with group=, or pass one label for each."
        )
    encoded = encode_labels("groups", given, data.n_pairs)
    X = None if features is None else check_features(features, data.n_items)
    if clusters is not None:
        units = encode_labels("clusters", clusters, data.n_pairs)
        clusters = units.labels[units.codes]
    boards = {}
    for code, label in enumerate(encoded.labels.tolist()):
        chosen = np.flatnonzero(encoded.codes == code)
        part, members = _part_of(data, chosen)
        try:
            boards[label] = rate(
                part,
                covariates=list(part.covariates) or None,
                features=None if X is None else X[members],
                clusters=None if clusters is None else np.asarray(clusters)[chosen],
                **options,
            )
        except ValueError as error:
            raise ValueError(f"group {label!s}: {error}") from error
    return boards


def _part_of(data: PairData, chosen: Indices) -> tuple[PairData, Indices]:
    """The chosen comparisons, of the items that they name, and which items these are."""
    part = data.take(chosen)
    ends = np.stack([part.first, part.second])
    members, (first, second) = np.unique(ends, return_inverse=True)
    return replace(part, first=first, second=second, items=data.items[members]), members
