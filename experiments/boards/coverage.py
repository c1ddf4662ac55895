"""How often 95% intervals of leaderboards contain the truth, simulated.

    python -m experiments.boards.coverage [--runs N]

Wins, ties and losses are rated by Bradley and Terry's model, the default, and true log odds have a
spread of 1. Margins are rated by least squares, and true ratings have a spread of 0.3 with unit
noise; "mean outcomes" are wins and ties by least squares. Counted are the intervals of ratings, of
margins between two items, of the ratings of thin items (fewer than five comparisons, or all ended
alike), of the effect of the first side where there is one, and the possible ranks: of all items, of
the item that is truly first, and whether those at once contain all true ranks. A prior is the truth
with an error of its own, or nothing but error; in a context the ratings of one of three levels are
looked at. Each judge has a taste for each item; the true log odds are then those of the votes of
all possible judges. The mean of the true ratings is that of the items whose mean is 0 on the board.
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
from rankwise.leaderboard.models.bradley_terry import BradleyTerry, RatingOrigin


class Setting(NamedTuple):
    """A kind of data."""

    n_items: int
    n_games: int
    outcomes: str = "wins"  # "wins" of Bradley and Terry's model, "margins" or "mean outcomes"
    ties: float = 0.0  # share of the smaller of the two chances that becomes ties, twice
    n_judges: int = 0
    popular: bool = False  # few items are in most of the comparisons
    newcomers: int = 0  # items with one to four comparisons
    side: float | None = None
    prior: float | None = None  # error of the ratings by a judge
    levels: int = 0  # of a context that the ratings depend on; those of the first are looked at
    spread: float | None = None

    @property
    def true_spread(self):
        """Standard deviation of the true ratings."""
        if self.spread is not None:
            return self.spread
        if self.outcomes == "wins":
            return 1.0
        return 0.3


SETTINGS = {
    "balanced": Setting(20, 600),
    "sparse": Setting(30, 240),
    "few comparisons": Setting(10, 40),
    "ties": Setting(20, 600, ties=0.5),
    "popular items": Setting(40, 1500, popular=True),
    "newcomers": Setting(15, 600, newcomers=15),
    "equal items": Setting(20, 600, spread=0.05),
    "first side": Setting(10, 600, side=0.4),
    "60 judges": Setting(10, 1200, n_judges=60),
    "30 judges": Setting(10, 900, n_judges=30),
    "15 judges": Setting(10, 900, n_judges=15),
    "context": Setting(15, 900, levels=3),
    "context, few": Setting(15, 150, levels=3),
    "prior, many votes": Setting(20, 600, prior=0.7),
    "prior, few votes": Setting(30, 60, prior=0.7),
    "prior, worthless": Setting(30, 60, prior=1e3),
    "prior, 30 judges": Setting(10, 600, n_judges=30, prior=0.7),
    "margins, balanced": Setting(10, 300, "margins"),
    "margins, sparse": Setting(60, 240, "margins"),
    "margins, newcomers": Setting(15, 600, "margins", newcomers=15),
    "margins, 60 judges": Setting(10, 1200, "margins", n_judges=60),
    "margins, 15 judges": Setting(10, 600, "margins", n_judges=15),
    "margins, side, 60 judges": Setting(10, 1200, "margins", n_judges=60, side=0.1),
    "margins, prior, few": Setting(30, 60, "margins", prior=0.2),
    "mean outcomes": Setting(20, 600, "mean outcomes"),
    "mean outcomes, newcomers": Setting(15, 600, "mean outcomes", newcomers=15),
}
TASTE = 0.5  # standard deviation of a judge's taste for an item
OFFSET = 0.5  # standard deviation of a rating between contexts


def chance_of_a_judge(margin):
    """Probability of a win by a random judge, whose tastes differ."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(30)
    noise = TASTE * np.sqrt(2) * nodes
    return expit(np.asarray(margin)[..., None] + noise) @ (weights / weights.sum())


def ratings_of_all_judges(truth):
    """Log odds of Bradley and Terry's model that fit the votes of all possible judges best."""
    first, second = np.triu_indices(len(truth), k=1)
    chance = chance_of_a_judge(truth[first] - truth[second])
    ones = np.ones(len(first))
    votes = PairData(
        np.tile(first, 2),
        np.tile(second, 2),
        np.concatenate([ones, -ones]),
        np.concatenate([chance, 1 - chance]),
        np.arange(len(truth)),
    )
    return rate(votes, intervals=False).ratings


def draw_pairs(setting, rng):
    """First and second item of each comparison; the items after `n_items` are newcomers."""
    n_items = setting.n_items + setting.newcomers
    popularity = np.ones(n_items)
    if setting.popular:
        popularity = 1 / np.arange(1, n_items + 1)
    popularity[setting.n_items :] = 0
    i, j = rng.choice(n_items, (2, setting.n_games), p=popularity / popularity.sum())
    is_pair = i != j

    circle = rng.permutation(setting.n_items)  # connects all items
    games_of_newcomers = rng.integers(1, 5, size=setting.newcomers)
    newcomer = np.repeat(np.arange(setting.n_items, n_items), games_of_newcomers)
    opponent = rng.integers(setting.n_items, size=len(newcomer))

    one_side = np.concatenate([circle, i[is_pair], newcomer])
    other_side = np.concatenate([np.roll(circle, 1), j[is_pair], opponent])
    is_swapped = rng.random(len(one_side)) < 0.5
    first = np.where(is_swapped, other_side, one_side)
    second = np.where(is_swapped, one_side, other_side)
    return first, second


def comparisons(name, rng):
    """Truth, comparisons, and the context of each or None."""
    setting = SETTINGS[name]
    n_items = setting.n_items + setting.newcomers
    truth = setting.true_spread * rng.standard_normal(n_items)
    truth -= truth.mean()
    first, second = draw_pairs(setting, rng)
    margin = truth[first] - truth[second] + (setting.side or 0.0)
    judge = None
    level = None
    if setting.levels:
        offset = OFFSET * rng.standard_normal((setting.levels, n_items))
        level = rng.integers(setting.levels, size=len(first))
        margin += offset[level, first] - offset[level, second]
        truth = truth + offset[0] - offset[0].mean()
    if setting.n_judges:
        judge = rng.integers(setting.n_judges, size=len(first))
        taste = TASTE * rng.standard_normal((setting.n_judges, n_items))
        margin += taste[judge, first] - taste[judge, second]
        if setting.outcomes == "wins":
            truth = ratings_of_all_judges(truth)
    outcome = draw_outcomes(setting, margin, rng)
    if setting.side is not None and setting.n_judges:
        outcome += 0.2 * rng.standard_normal(setting.n_judges)[judge]  # side bias of each judge
    weight = np.ones(len(first))
    return truth, PairData(first, second, outcome, weight, np.arange(n_items), judges=judge), level


def draw_outcomes(setting, margin, rng):
    """Outcomes for the first items: 1, 0 and −1, or margins."""
    if setting.outcomes == "margins":
        return margin + rng.standard_normal(len(margin))
    if setting.outcomes == "wins":
        mean = 2 * expit(margin) - 1
        tie_probability = setting.ties * (1 - np.abs(mean))
    else:
        mean = np.clip(margin, -0.95, 0.95)
        tie_probability = 0.3 * (1 - np.abs(mean))
    win_probability = (1 - tie_probability + mean) / 2
    drawn = rng.random(len(margin))
    is_win = drawn < win_probability
    is_tie = drawn < win_probability + tie_probability  # if it is not a win
    return np.where(is_win, 1.0, np.where(is_tie, 0.0, -1.0))


def inside(name, truth, board):
    """Shares that the intervals hold: ratings, margins, thin ratings, side, ranks, the first."""
    if isinstance(board.fitted, BradleyTerry):
        truth = RatingOrigin.of(board.fitted.counts, board.fitted.system).center(truth)
    columns = board.to_frame().sort_values("item")
    low, high, is_thin = (columns[name].to_numpy() for name in ("low", "high", "thin"))
    holds_rating = (low <= truth) & (truth <= high)
    share_of_thin = np.nan
    if is_thin.any():
        share_of_thin = holds_rating[is_thin].mean()

    true_rank = 1 + np.sum(truth > truth[:, None], axis=1)
    best, worst = (columns[name].to_numpy() for name in ("best_rank", "worst_rank"))
    holds_rank = (best <= true_rank) & (true_rank <= worst)
    range_widths = worst - best + 1
    holds_all_ranks = np.all(
        (columns["best_of_all"] <= true_rank) & (true_rank <= columns["worst_of_all"])
    )

    holds_margin = []
    for item in range(1, len(truth)):
        interval = board.expected_margin(item - 1, item)
        holds_margin.append(interval.low <= truth[item - 1] - truth[item] <= interval.high)

    holds_side = np.nan
    if board.effects:
        side = board.effects[0]
        holds_side = float(side.low <= SETTINGS[name].side <= side.high)
    return [
        holds_rating.mean(),
        np.mean(holds_margin),
        share_of_thin,
        holds_side,
        holds_rank.mean(),
        float(holds_rank[truth.argmax()]),
        range_widths.mean() / len(truth),
        float(holds_all_ranks),
    ]


def rate_simulated(setting, seed, truth, data, level):
    """The board of simulated comparisons, with the prior or the context of the setting."""
    if level is not None:
        return rate(replace(data, contexts={"level": level})).at(context=0)
    model = None
    if setting.outcomes == "mean outcomes":
        model = "least-squares"
    prior = None
    if setting.prior is not None:
        error = np.random.default_rng([seed, 1]).standard_normal(len(truth))
        prior = dict(enumerate(truth + setting.prior * error))
    return rate(data, model=model, side=setting.side is not None, prior=prior)


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
            board = rate_simulated(setting, seed, truth, data, level)
            shares.append(inside(name, truth, board))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of means of nothing
            means = np.nanmean(shares, axis=0)
        cells = [f"{mean:.3f}" for mean in means]
        cells = ["–" if cell == "nan" else cell for cell in cells]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    record(main)
