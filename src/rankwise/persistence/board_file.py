"""Leaderboards in model files: comparisons and arguments, from which `rate` computes the board."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from rankwise.datasets import PairData
from rankwise.datasets.pair_data import Rankings
from rankwise.datasets.teams import Teams
from rankwise.leaderboard import Leaderboard, PriorScales, rate

RATE_ARGUMENTS = {
    "alpha",
    "anchor",
    "clusters",
    "confidence",
    "features",
    "intervals",
    "min_comparisons",
    "model",
    "order",
    "prior",
    "scale",
    "scales",
    "side",
    "ties",
}

COMPARISON_FIELDS = [field.name for field in fields(PairData)]
RANKING_FIELDS = [field.name for field in fields(Rankings)]
TEAM_FIELDS = [field.name for field in fields(Teams)]

MAX_PAIRS = 10**5  # of rankings, in addition to a multiple of the comparisons


def board_facts(board: Leaderboard) -> dict[str, object]:
    """The comparisons of a board and the arguments of `rate`, as plain values and arrays."""
    data = board.comparisons
    comparisons = {name: getattr(data, name) for name in COMPARISON_FIELDS}
    if data.rankings is not None:
        comparisons["rankings"] = {name: getattr(data.rankings, name) for name in RANKING_FIELDS}
    if data.teams is not None:
        comparisons["teams"] = {name: getattr(data.teams, name) for name in TEAM_FIELDS}
    is_dates = False
    if data.times is not None and data.times.dtype.kind == "M":
        is_dates = True
        comparisons["times"] = data.times.astype("datetime64[s]").astype(np.int64)
    arguments = board.rate_arguments()
    arguments["scales"] = None
    if board.scales is not None:
        arguments["scales"] = list(board.scales)
    return {"comparisons": comparisons, "is_dates": is_dates, "options": arguments}


def board_from(facts: object) -> Leaderboard:
    """Compute the board from the values of `board_facts`, which a stranger may have changed."""
    facts = _check_keys(facts, {"comparisons", "is_dates", "options"})
    arguments = dict(_check_keys(facts["options"], RATE_ARGUMENTS))
    if arguments["scales"] is not None:
        arguments["scales"] = PriorScales(*arguments["scales"])
    data = _read_comparisons(facts["comparisons"], has_dates=bool(facts["is_dates"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        board = rate(data, covariates=list(data.covariates) or None, **arguments)
    if not np.isfinite(board.ratings).all():
        raise ValueError("the ratings of a board are not finite")
    return board


def _read_comparisons(values: object, *, has_dates: bool) -> PairData:
    comparisons = dict(_check_keys(values, COMPARISON_FIELDS))
    if comparisons["times"] is not None and has_dates:
        comparisons["times"] = comparisons["times"].astype("datetime64[s]")
    if comparisons["rankings"] is not None:
        comparisons["rankings"] = Rankings(**comparisons["rankings"])
    if comparisons["teams"] is not None:
        comparisons["teams"] = Teams(**comparisons["teams"])
    data = PairData(**comparisons)
    columns = (data.first, data.second, data.outcome, data.weight)
    has_positions = data.first.dtype.kind == "i" and data.second.dtype.kind == "i"
    has_one_length = len({column.shape for column in columns}) == 1
    has_unique_items = np.unique(data.items).shape == data.items.shape
    if not (has_positions and has_one_length and has_unique_items):
        raise ValueError("the comparisons of a board do not fit together")
    if data.rankings is not None:
        _check_rankings(data.rankings, data.n_pairs)
    if data.teams is not None:
        _check_teams(data.teams, data.n_items)
    return data


def _check_keys(values: object, names: Collection[str]) -> Mapping[str, Any]:
    """Return the dictionary; raise ValueError if it has another key."""
    if not isinstance(values, dict):
        raise ValueError(f"a value of a board is {values!r:.40}; expected a dictionary")
    unknown = set(values).difference(names)
    if unknown:
        raise ValueError(f"a board has no {min(unknown)!r:.60}")
    return values


def _check_rankings(rankings: Rankings, n_pairs: int) -> None:
    """Refuse rankings with invalid numbers, or with far more pairs than the board has."""
    number = rankings.ranking
    if number.dtype.kind != "i" or number.min() < 0 or number.max() >= rankings.n_rankings:
        raise ValueError("a board has a ranking with an invalid number")
    sizes = np.bincount(number).astype(float)
    n_ranked_pairs = (sizes * (sizes - 1) / 2).sum()
    if n_ranked_pairs > 4 * n_pairs + MAX_PAIRS:
        raise ValueError("the rankings of a board have more pairs than the board")


def _check_teams(teams: Teams, n_items: int) -> None:
    """Refuse teams with invalid numbers, or without members."""
    have_numbers = teams.team.dtype.kind == "i" and teams.item.dtype.kind == "i"
    have_one_length = teams.team.shape == teams.item.shape == teams.share.shape
    if not have_numbers or not have_one_length or not len(teams.team):
        raise ValueError("the teams of a board do not fit together")
    steps = np.diff(teams.team, prepend=-1)
    are_numbered = bool(np.isin(steps, (0, 1)).all()) and teams.team[0] == 0
    are_items = teams.item.min() >= 0 and teams.item.max() < n_items
    are_weights = bool(np.all((teams.share > 0) & np.isfinite(teams.share)))
    if not (are_numbered and are_items and are_weights):
        raise ValueError("a board has a team with an invalid member")
