"""How often 95% intervals of boards of teams contain the true ratings, simulated.

    python -m experiments.boards.teams [--runs N]

Teams are drawn from 16 players with true ratings of spread 0.7 in log odds (margins: 1, with unit
noise). Counted are the intervals of the ratings of the players, those of the expected margins of
two random teams, and whether the possible ranks at once contain all true ranks.
"""

from __future__ import annotations

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from experiments.shared.command_line import record
from rankwise.leaderboard import rate

N_PLAYERS = 16
N_TEAMS = 20  # pairs of teams whose expected margins are looked at


class Setting(NamedTuple):
    """A kind of games."""

    n_games: int
    sizes: tuple[int, ...]
    is_margin: bool = False
    has_partial_play: bool = False
    side: float = 0.0


SETTINGS = {
    "2 against 2": Setting(300, (2,)),
    "2 against 2, few games": Setting(80, (2,)),
    "5 against 5": Setting(300, (5,)),
    "5 against 5, partial play": Setting(300, (5,), has_partial_play=True),
    "1 to 3 players": Setting(300, (1, 2, 3)),
    "2 against 2, first side": Setting(300, (2,), side=0.5),
    "margins, 5 against 5": Setting(300, (5,), is_margin=True),
    "margins, 1 to 3 players": Setting(300, (1, 2, 3), is_margin=True, has_partial_play=True),
}


def side_of(players, shares):
    """A side of `rate`: a dictionary from player to share."""
    return dict(zip(players.tolist(), shares.tolist(), strict=True))


def play(setting, rng):
    """True ratings, games, and their outcomes."""
    spread = 0.7
    if setting.is_margin:
        spread = 1.0
    truth = spread * rng.standard_normal(N_PLAYERS)
    truth -= truth.mean()
    games = {"home": [], "away": [], "outcome": []}
    for _ in range(setting.n_games):
        sizes = rng.choice(setting.sizes, 2)
        players = rng.permutation(N_PLAYERS)[: sizes.sum()]
        shares = np.ones(len(players))
        if setting.has_partial_play:
            shares = rng.choice([0.25, 0.5, 1.0], len(players))
        home, away = np.split(players, sizes[:1])
        home_shares, away_shares = np.split(shares, sizes[:1])
        margin = truth[home] @ home_shares - truth[away] @ away_shares + setting.side
        if setting.is_margin:
            outcome = margin + rng.standard_normal()
        elif rng.random() < expit(margin):
            outcome = 1.0
        else:
            outcome = -1.0
        games["home"].append(side_of(home, home_shares))
        games["away"].append(side_of(away, away_shares))
        games["outcome"].append(outcome)
    return truth, games


def inside(truth, board, rng):
    """Shares of intervals that contain the truth: ratings, margins of teams, side, ranks."""
    columns = board.to_frame().sort_values("item")
    truth = truth[columns["item"].to_numpy()]
    holds_rating = (columns["low"] <= truth) & (truth <= columns["high"])
    true_rank = 1 + np.sum(truth > truth[:, None], axis=1)
    holds_all_ranks = np.all(
        (columns["best_of_all"] <= true_rank) & (true_rank <= columns["worst_of_all"])
    )
    holds_margin = []
    for _ in range(N_TEAMS):
        home, away = rng.permutation(N_PLAYERS)[:4].reshape(2, 2)
        interval = board.expected_margin(tuple(home.tolist()), tuple(away.tolist()))
        margin = truth[home].sum() - truth[away].sum()
        holds_margin.append(interval.low <= margin <= interval.high)
    holds_side = np.nan
    if board.effects:
        (effect,) = board.effects
        holds_side = float(effect.low <= 0.5 <= effect.high)
    return holds_rating.mean(), np.mean(holds_margin), holds_side, float(holds_all_ranks)


def main(arguments=None):
    """Print one line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args(arguments)
    print("| games | number | ratings | margins of teams | side | ranks at once |")
    print("|---|---|---|---|---|---|")
    for name, setting in SETTINGS.items():
        shares = []
        for seed in range(options.runs):
            rng = np.random.default_rng(seed)
            truth, games = play(setting, rng)
            columns = {"sides": ("home", "away"), "outcome": "outcome"}
            if setting.is_margin:
                columns["margin"] = True
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                board = rate(games, **columns, side=setting.side != 0)
            shares.append(inside(truth, board, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            means = np.nanmean(shares, axis=0)
        cells = ["–" if np.isnan(mean) else f"{mean:.3f}" for mean in means]
        print(f"| {name} | {setting.n_games} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    record(main)
