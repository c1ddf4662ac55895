"""How often 95 % intervals of leaderboards hold the truth, simulated.

    python -m experiments.boards.coverage [--runs N]

True ratings have a spread of 0.3, margins unit noise; "wins" are ±1 with the chances that the
margins give. "log odds" are those of Bradley and Terry's model, of spread 1. Counted are the
intervals of ratings, of margins between two items, of the ratings of thin items (fewer than five
comparisons, or all ended alike), of the effect of the first side where there is one, and the
possible ranks: of all items, of the item that is truly first, and whether those at once hold all.
A prior is the truth with an error of its own, or nothing but error; in a context the ratings of
one of three levels are looked at.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from experiments.shared.command_line import record
from rankwise.datasets import PairData
from rankwise.leaderboard import rate


class Setting(NamedTuple):
    """A kind of data."""

    n_items: int
    n_games: int
    wins: bool = False  # only who won
    n_judges: int = 0
    popular: bool = False  # few items are in most of the comparisons
    newcomers: int = 0  # items with one to four comparisons
    side: float | None = None
    spread: float = 0.3
    odds: bool = False  # ratings are log odds, and the model is Bradley–Terry
    prior: float | None = None  # error of the ratings by a judge
    levels: int = 0  # of a context that the ratings depend on; those of the first are looked at


SETTINGS = {
    "balanced": Setting(10, 300),
    "sparse": Setting(60, 240),
    "few comparisons": Setting(10, 40),
    "wins and ties": Setting(20, 600, wins=True),
    "popular items": Setting(40, 1500, wins=True, popular=True),
    "newcomers": Setting(15, 600, wins=True, newcomers=15),
    "60 judges": Setting(10, 1200, n_judges=60),
    "15 judges": Setting(10, 600, n_judges=15),
    "first side, 60 judges": Setting(10, 1200, n_judges=60, side=0.1),
    "equal items": Setting(20, 600, spread=0.02),
    "prior, many votes": Setting(20, 600, wins=True, prior=0.2),
    "prior, few votes": Setting(30, 60, wins=True, prior=0.2),
    "prior, worthless": Setting(30, 60, wins=True, prior=1e3),
    "prior, 30 judges": Setting(10, 600, n_judges=30, prior=0.2),
    "log odds": Setting(20, 600, spread=1.0, odds=True),
    "log odds, sparse": Setting(30, 240, spread=1.0, odds=True),
    "log odds, newcomers": Setting(15, 600, newcomers=15, spread=1.0, odds=True),
    "log odds, 30 judges": Setting(10, 900, n_judges=30, spread=1.0, odds=True),
    "log odds, context": Setting(15, 900, spread=1.0, odds=True, levels=3),
    "log odds, context, few": Setting(15, 150, spread=1.0, odds=True, levels=3),
    "log odds, prior": Setting(30, 60, spread=1.0, odds=True, prior=0.7),
}


def comparisons(name, rng):
    """Truth, comparisons, and the context of each or None."""
    setting = SETTINGS[name]
    n = setting.n_items + setting.newcomers
    truth = setting.spread * rng.standard_normal(n)
    truth -= truth.mean()
    chance = 1 / np.arange(1, n + 1) if setting.popular else np.ones(n)
    chance[setting.n_items :] = 0
    i, j = rng.choice(n, (2, setting.n_games), p=chance / chance.sum())
    everyone = rng.permutation(setting.n_items)  # a circle, so that all are connected
    new = np.repeat(np.arange(setting.n_items, n), rng.integers(1, 5, size=setting.newcomers))
    known = rng.integers(setting.n_items, size=len(new))
    first = np.r_[everyone, i[i != j], new]
    second = np.r_[np.roll(everyone, 1), j[i != j], known]
    swap = rng.random(len(first)) < 0.5
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    margin = truth[first] - truth[second] + (setting.side or 0.0)
    judge, level = None, None
    if setting.levels:
        offset = 0.5 * rng.standard_normal((setting.levels, n))
        level = rng.integers(setting.levels, size=len(first))
        margin += offset[level, first] - offset[level, second]
        truth = truth + offset[0] - offset[0].mean()
    if setting.n_judges:
        judge = rng.integers(setting.n_judges, size=len(first))
        taste = 0.5 * rng.standard_normal((setting.n_judges, n))
        margin += taste[judge, first] - taste[judge, second]
    if setting.odds:
        margin = np.where(rng.random(len(first)) < expit(margin), 1.0, -1.0)
    elif setting.wins:
        mean = np.clip(margin, -0.95, 0.95)
        tie = 0.3 * (1 - np.abs(mean))
        outcome = rng.random(len(first))
        margin = np.where(outcome < (1 - tie + mean) / 2, 1.0, -1.0)
        margin[(outcome >= (1 - tie + mean) / 2) & (outcome < (1 + tie + mean) / 2)] = 0.0
    else:
        margin = margin + rng.standard_normal(len(first))
    if setting.side is not None:
        margin += 0.2 * rng.standard_normal(setting.n_judges)[judge]
    weight = np.ones(len(first))
    return truth, PairData(first, second, margin, weight, np.arange(n), judges=judge), level


def inside(name, truth, board):
    """Shares that the intervals hold: ratings, margins, thin ratings, side, ranks, the first."""
    columns = board.to_frame().sort_values("item")
    low, high, thin = (columns[of].to_numpy() for of in ("low", "high", "thin"))
    rank = 1 + np.sum(truth > truth[:, None], axis=1)
    rating = (low <= truth) & (truth <= high)
    best, worst = (columns[of].to_numpy() for of in ("best_rank", "worst_rank"))
    ranks = (best <= rank) & (rank <= worst)
    margins = []
    for k in range(1, len(truth)):
        found = board.expected_margin(k - 1, k)
        margins.append(found.low <= truth[k - 1] - truth[k] <= found.high)
    side = np.nan
    if board.effects:
        side = float(board.effects[0].low <= SETTINGS[name].side <= board.effects[0].high)
    return [
        rating.mean(), np.mean(margins), rating[thin].mean() if thin.any() else np.nan, side,
        ranks.mean(), float(ranks[truth.argmax()]), (worst - best + 1).mean() / len(truth),
        float(np.all((columns["best_of_all"] <= rank) & (rank <= columns["worst_of_all"]))),
    ]  # fmt: skip


def main(arguments=None):
    """Print one line for each setting."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args(arguments)
    measured = ("ratings", "margins", "thin", "side", "ranks", "first", "width", "at once")
    print("| " + " | ".join(["setting", *measured]) + " |")
    print("|---" * 9 + "|")
    for name, setting in SETTINGS.items():
        shares = []
        for seed in range(options.runs):
            truth, data, level = comparisons(name, np.random.default_rng(seed))
            has_side = setting.side is not None
            model = "bradley-terry" if setting.odds else "least-squares"
            prior = None
            if setting.prior is not None:
                error = np.random.default_rng([seed, 1]).standard_normal(len(truth))
                prior = dict(enumerate(truth + setting.prior * error))
            if level is None:
                board = rate(data, model=model, side=has_side, prior=prior)
            else:
                board = rate(replace(data, contexts={"level": level})).at(context=0)
            shares.append(inside(name, truth, board))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            cells = [f"{share:.3f}" for share in np.nanmean(shares, axis=0)]
        cells = ["–" if cell == "nan" else cell for cell in cells]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    record(main)
