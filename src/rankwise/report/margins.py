"""How far apart the two items of each pair are scored, and on which side."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.arrays import Array
from rankwise.report.scored_items import ScoredItems, short_numbers

EXACT_PAIRS = 2_000_000
SAMPLED_PAIRS = 500_000
BINS = 60
OUTER = 0.0025  # share of the pairs beyond either end of the drawing


def describe_margins(scored: ScoredItems, rng: np.random.Generator) -> dict[str, Any]:
    """A histogram of f_i − f_j over pairs with y_i > y_j, and the exact numbers of pairs."""
    total = int(scored.pairs.sum())
    if not total:
        return {"total": 0}
    margins = pair_margins(scored, rng)
    zero = margins == 0
    edges = _edges(margins)
    counts = np.histogram(np.clip(margins[~zero], edges[0], edges[-1]), edges)[0]
    return {
        "total": total,
        "used": len(margins),
        "edges": short_numbers(edges),
        "counts": counts.tolist(),
        "zero": int(zero.sum()),
        "wrong": scored.n_wrong,
        "tied": scored.n_tied,
        "median": short_numbers(np.median(margins))[0],
    }


def _edges(margins: Array) -> Array:
    """Edges of bins of equal width, 0 among them."""
    low, high = np.quantile(margins, [OUTER, 1 - OUTER])
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    width = (high - low) / (BINS - 2) or float(np.abs(margins).max()) or 1.0
    first, last = min(np.floor(low / width), -1), max(np.ceil(high / width), 1)
    return np.asarray(np.arange(first, last + 1) * width)


def pair_margins(scored: ScoredItems, rng: np.random.Generator) -> Array:
    """The margins of all pairs, or of a sample drawn with replacement if there are too many.

    Sorted by group and rising y, the items below item i are a stretch of ``lower[i]`` items at the
    start of its group, so pair number k is found by a search in the cumulative sum of `lower`.
    """
    codes, lower = scored.groups.codes, scored.lower
    rising = np.lexsort((scored.y, codes))
    ends = np.cumsum(lower[rising])
    total = int(ends[-1])
    if total <= EXACT_PAIRS:
        numbers = np.arange(total)
    else:
        numbers = rng.integers(total, size=SAMPLED_PAIRS)
    upper = np.searchsorted(ends, numbers, side="right")
    within = numbers - (ends[upper] - lower[rising][upper])
    below = scored.targets.starts[codes[rising][upper]] + within
    scores = scored.scores[rising]
    return np.asarray(scores[upper] - scores[below])
