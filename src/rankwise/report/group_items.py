"""The items of some groups, in predicted and in true order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rankwise.arrays import Indices
from rankwise.estimators.base import ranks_in_groups
from rankwise.report.certainty import Certainty
from rankwise.report.scored_items import ScoredItems, short_numbers

SHOWN_GROUPS = 2_000
SHOWN_ITEMS = 20_000
ITEMS_A_GROUP = 200
FIRST_ITEMS = 50


def groups_that_fit(scored: ScoredItems, wanted: Indices) -> Indices:
    """The first of the wanted groups whose items the page can hold."""
    sizes = np.minimum(scored.sizes[wanted], ITEMS_A_GROUP)
    n_fitting = int(np.searchsorted(np.cumsum(sizes), SHOWN_ITEMS, side="right"))
    return wanted[: min(max(n_fitting, 1), SHOWN_GROUPS)]


def describe_items(
    scored: ScoredItems,
    groups: Indices,
    contributions: Callable[[Indices], list[list[Any]]] | None,
    certainty: Certainty | None = None,
) -> list[dict[str, Any]]:
    """Names, scores, ranks and swaps of the items of these groups, best predicted first.

    `contributions` gives the rows of the contributions of features to the scores of items,
    `certainty` intervals of ranks.
    """
    predicted = ranks_in_groups(scored.scores, scored.groups.codes)
    true = ranks_in_groups(scored.y, scored.groups.codes)
    too_high, too_low = scored.swaps
    described = []
    for group in groups:
        start = scored.targets.starts[group]
        members = scored.order[start : start + scored.sizes[group]]
        items = members[_shown_positions(true[members])]
        entry = {
            "total": len(members),
            "names": [scored.name_of(item) for item in items],
            "scores": short_numbers(scored.scores[items]),
            "y": short_numbers(scored.y[items], 9),
            "predicted": predicted[items].tolist(),
            "true": true[items].tolist(),
            "tooHigh": too_high[items].tolist(),
            "tooLow": too_low[items].tolist(),
        }
        if certainty is not None:
            entry |= certainty.describe(items)
        if contributions is not None:
            entry["contributions"] = contributions(items)
        described.append(entry)
    return described


def _shown_positions(true: Indices) -> Indices:
    """Of a long group the first predicted items, the truly best, and others at even steps."""
    n = len(true)
    if n <= ITEMS_A_GROUP:
        return np.arange(n)
    best = np.argsort(true, kind="stable")[:FIRST_ITEMS]
    kept = np.union1d(np.arange(FIRST_ITEMS), best)
    others = np.setdiff1d(np.arange(n), kept)
    steps = np.linspace(0, len(others) - 1, ITEMS_A_GROUP - len(kept)).round().astype(np.intp)
    return np.union1d(kept, others[steps])
