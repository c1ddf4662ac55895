"""Few combinations of options in which every two values of two options still meet."""

from __future__ import annotations

import itertools


def pairwise(*options):
    """Rows with one value of each option: every pair of values of two options is in some row.

    Greedy: each row is the combination with the most pairs that no row before has.

    >>> pairwise("ab", [0, 1], [True, False])
    [('a', 0, True), ('a', 1, False), ('b', 0, False), ('b', 1, True)]
    """
    combinations = list(itertools.product(*options))
    missing = {pair for row in combinations for pair in _pairs(row)}
    rows = []
    while missing:
        best = max(combinations, key=lambda row: len(missing.intersection(_pairs(row))))
        missing -= _pairs(best)
        rows.append(best)
    return rows


def _pairs(row):
    return set(itertools.combinations(enumerate(row), 2))
