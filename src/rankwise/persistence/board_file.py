"""Boards as facts: the comparisons and what was asked, from which `rate` makes the board again."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

import numpy as np

from rankwise.datasets import PairData
from rankwise.datasets.pair_data import Rankings
from rankwise.leaderboard import Leaderboard, PriorScales, rate

OPTIONS = {
    *("side", "scale", "anchor", "order", "ties", "min_comparisons", "intervals", "confidence"),
    *("clusters", "features", "prior", "model", "alpha", "scales"),
}

MOST_PAIRS = 10**5  # of rankings beyond those among the comparisons


def board_facts(board: Leaderboard) -> dict[str, Any]:
    """Numbers and words that say everything about a board."""
    data = board.comparisons
    known = {one.name: getattr(data, one.name) for one in fields(data)}
    if data.rankings is not None:
        known["rankings"] = {one.name: getattr(data.rankings, one.name) for one in fields(Rankings)}
    is_dates = data.times is not None and data.times.dtype.kind == "M"
    if known.get("times") is not None and is_dates:
        known["times"] = known["times"].astype("datetime64[s]").astype(np.int64)
    options = board.rate_arguments()
    options["scales"] = None if board.scales is None else list(board.scales)
    return {"comparisons": known, "is_dates": is_dates, "options": options}


def board_from(facts: dict[str, Any]) -> Leaderboard:
    """The board that the facts are of."""
    known, options = dict(facts["comparisons"]), dict(facts["options"])
    unknown = set(options) - OPTIONS | set(known) - {one.name for one in fields(PairData)}
    if unknown:
        raise ValueError(f"a board has no {min(unknown)!r:.60}")
    if known["times"] is not None and facts["is_dates"]:
        known["times"] = known["times"].astype("datetime64[s]")
    if known["rankings"] is not None:
        known["rankings"] = Rankings(**known["rankings"])
    if options["scales"] is not None:
        options["scales"] = PriorScales(*options["scales"])
    data = PairData(**known)
    is_whole = all(ends.dtype.kind == "i" for ends in (data.first, data.second))
    shapes = {each.shape for each in (data.first, data.second, data.outcome, data.weight)}
    if not is_whole or len(shapes) > 1 or np.unique(data.items).shape != data.items.shape:
        raise ValueError("the comparisons of a board do not fit together")
    if data.rankings is not None:
        _check_rankings(data.rankings, data.n_pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = rate(data, covariates=list(data.covariates) or None, **options)
    if not np.isfinite(board.ratings).all():
        raise ValueError("the ratings of a board are not finite")
    return board


def _check_rankings(rankings: Rankings, n_pairs: int) -> None:
    """Whether there are no more rankings, and pairs of their items, than the board has of both."""
    number = rankings.ranking
    if number.dtype.kind != "i" or number.min() < 0 or number.max() >= rankings.n_rankings:
        raise ValueError("a board has a ranking whose number is another one")
    sizes = np.bincount(number).astype(float)
    if (sizes * (sizes - 1) / 2).sum() > 4 * n_pairs + MOST_PAIRS:
        raise ValueError("the rankings of a board have other pairs than it has")
