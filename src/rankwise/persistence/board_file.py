"""Leaderboards in model files: comparisons and arguments, from which `rate` computes the board."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray, Array
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
    comparisons: dict[str, Any] = {name: getattr(data, name) for name in COMPARISON_FIELDS}
    if data.rankings is not None:
        comparisons["rankings"] = {name: getattr(data.rankings, name) for name in RANKING_FIELDS}
    if data.teams is not None:
        comparisons["teams"] = {name: getattr(data.teams, name) for name in TEAM_FIELDS}
    has_dates = False
    if data.times is not None and data.times.dtype.kind == "M":
        has_dates = True
        times_in_seconds = data.times.astype("datetime64[s]")
        comparisons["times"] = times_in_seconds.astype(np.int64)
    arguments = board.rate_arguments()
    arguments["scales"] = None
    if board.scales is not None:
        arguments["scales"] = list(board.scales)
    return {"comparisons": comparisons, "is_dates": has_dates, "options": arguments}


def restore_board(facts: object) -> Leaderboard:
    """Compute the board from the values of `board_facts`, which may come from an untrusted file."""
    facts = _check_keys(facts, {"comparisons", "is_dates", "options"})
    arguments = dict(_check_keys(facts["options"], RATE_ARGUMENTS))
    if arguments["scales"] is not None:
        arguments["scales"] = PriorScales(*arguments["scales"])
    data = _read_comparisons(facts["comparisons"], has_dates=bool(facts["is_dates"]))
    covariates: list[str] | None = None
    if data.covariates:
        covariates = list(data.covariates)
    with warnings.catch_warnings():  # the warnings were shown when the board was computed
        warnings.simplefilter("ignore")
        board = rate(data, covariates=covariates, **arguments)
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
    have_one_length = len({column.shape for column in columns}) == 1
    are_item_numbers = data.first.dtype.kind == "i" and data.second.dtype.kind == "i"
    are_items_unique = np.unique(data.items).shape == data.items.shape
    if not (are_item_numbers and have_one_length and are_items_unique):
        raise ValueError("the comparisons of a board do not fit together")
    for values_by_name in (data.covariates, data.contexts):
        if not isinstance(values_by_name, dict):
            raise ValueError(
                f"the covariates or contexts of a board are {values_by_name!r:.40}; "
                "expected a dictionary"
            )
    if data.rankings is not None:
        _check_rankings(data.rankings, data.n_pairs)
    if data.teams is not None:
        _check_teams(data.teams, data.n_items)
    return data


def _check_keys(values: object, names: Collection[str]) -> Mapping[str, Any]:
    """Return the dictionary; raise ValueError if it has another key."""
    if not isinstance(values, dict):
        raise ValueError(f"a value of a board is {values!r:.40}; expected a dictionary")
    unknown_keys = set(values).difference(names)
    if unknown_keys:
        raise ValueError(f"a board has no {min(unknown_keys)!r:.60}")
    return values


def _check_rankings(rankings: Rankings, n_pairs: int) -> None:
    """Refuse rankings with invalid numbers, or with far more pairs than the board has."""
    ranking_number = rankings.ranking
    is_valid = (
        ranking_number.dtype.kind == "i"
        and ranking_number.min() >= 0
        and ranking_number.max() < rankings.n_rankings
    )
    if not is_valid:
        raise ValueError("a board has a ranking with an invalid number")
    n_items = np.bincount(ranking_number)
    n_without_place = np.bincount(ranking_number, weights=~np.isfinite(rankings.place))
    # Two items without a place are not compared.
    n_ranked_pairs = (_n_pairs_of(n_items) - _n_pairs_of(n_without_place)).sum()
    # A board may lack pairs that were left out. The limit keeps a damaged file from taking far more
    # memory than its comparisons.
    if n_ranked_pairs > 4 * n_pairs + MAX_PAIRS:
        raise ValueError("the rankings of a board have more pairs than the board")


def _n_pairs_of(n_items: AnyArray) -> Array:
    """Return n (n − 1) / 2, the number of pairs of n items, as floats, which cannot overflow."""
    return n_items * (n_items - 1.0) / 2


def _check_teams(teams: Teams, n_items: int) -> None:
    """Refuse teams with invalid numbers, or without members."""
    # Each row is a member of a team: number of the team, number of the item, share of the play.
    are_integers = teams.team.dtype.kind == "i" and teams.item.dtype.kind == "i"
    have_one_length = teams.team.shape == teams.item.shape == teams.share.shape
    if not are_integers or not have_one_length or not len(teams.team):
        raise ValueError("the teams of a board do not fit together")
    increments = np.diff(teams.team)
    are_numbered = teams.team[0] == 0 and bool(np.isin(increments, (0, 1)).all())  # 0, 0, 1, 2, …
    are_items = teams.item.min() >= 0 and teams.item.max() < n_items
    are_shares_positive = bool(np.all((teams.share > 0) & np.isfinite(teams.share)))
    if not (are_numbered and are_items and are_shares_positive):
        raise ValueError("a board has a team with an invalid member")
