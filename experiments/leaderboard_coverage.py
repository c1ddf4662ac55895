"""How often 95 % intervals of leaderboards hold the truth: jackknife and bootstrap, simulated.

    python -m experiments.leaderboard_coverage [--runs N] [--bootstrap-runs N]

True ratings have a spread of 0.3, margins unit noise. Counted are the intervals of ratings, of
margins between two items, of ranks, and of the ratings of items with at most four comparisons.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from rankwise import PairGraph
from rankwise.leaderboard import rate

SETTINGS = {  # items, comparisons, judges
    "balanced": (10, 300, 0),
    "sparse": (60, 240, 0),
    "few comparisons": (10, 40, 0),
    "wins and ties": (20, 600, 0),
    "popular items": (40, 1500, 0),
    "60 judges": (10, 1200, 60),
    "15 judges": (10, 600, 15),
}


def simulate(setting, rng):
    """Truth, comparisons, and the judge of each or None."""
    n_items, n_games, n_judges = SETTINGS[setting]
    truth = 0.3 * rng.standard_normal(n_items)
    truth -= truth.mean()
    chance = 1 / np.arange(1, n_items + 1) if setting == "popular items" else np.ones(n_items)
    i, j = rng.choice(n_items, (2, n_games), p=chance / chance.sum())
    everyone = rng.permutation(n_items)  # a circle, so that all are connected
    i, j = np.r_[everyone, i[i != j]], np.r_[np.roll(everyone, 1), j[i != j]]
    margin = truth[i] - truth[j]
    judge = None
    if setting in ("wins and ties", "popular items"):
        mean = np.clip(margin, -0.95, 0.95)
        tie = 0.3 * (1 - np.abs(mean))
        outcome = rng.random(len(i))
        margin = np.where(outcome < (1 - tie + mean) / 2, 1.0, -1.0)
        margin[(outcome >= (1 - tie + mean) / 2) & (outcome < (1 + tie + mean) / 2)] = 0.0
    else:
        margin = margin + rng.standard_normal(len(i))
    if n_judges:
        judge = rng.integers(n_judges, size=len(i))
        taste = 0.5 * rng.standard_normal((n_judges, n_items))
        margin += taste[judge, i] - taste[judge, j]
    won, lost = np.where(margin >= 0, i, j), np.where(margin >= 0, j, i)
    return truth, PairGraph(won, lost, np.abs(margin), n_items=n_items), judge


def inside(truth, board):
    """Shares of ratings, margins, ranks and ratings of thin items that the intervals hold."""
    rows = [board[k] for k in range(len(truth))]
    rank = 1 + np.sum(truth > truth[:, None], axis=1)
    rating = np.array(
        [row.low <= value <= row.high for row, value in zip(rows, truth, strict=True)]
    )
    ranks = np.array(
        [row.rank_low <= k <= row.rank_high for row, k in zip(rows, rank, strict=True)]
    )
    margins = []
    for k in range(1, len(truth)):
        found = board.expected_margin(k - 1, k)
        margins.append(found.low <= truth[k - 1] - truth[k] <= found.high)
    thin = rating[np.array([row.n for row in rows]) <= 4]
    return np.mean(rating), np.mean(margins), np.mean(ranks), np.mean(thin) if len(thin) else np.nan


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--bootstrap-runs", type=int, default=100)
    options = parser.parse_args(arguments)
    print("| setting | intervals | ratings | margins | ranks | ratings of thin items |")
    print("|---|---|---|---|---|---|")
    for setting in SETTINGS:
        for kind in ("jackknife", "bootstrap"):
            n_runs = options.runs if kind == "jackknife" else options.bootstrap_runs
            shares = []
            for seed in range(n_runs):
                truth, games, judge = simulate(setting, np.random.default_rng(seed))
                board = rate(games, clusters=judge, intervals=kind, n_resamples=400)
                shares.append(inside(truth, board))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)
                cells = [f"{share:.3f}" for share in np.nanmean(shares, axis=0)]
            cells = ["–" if cell == "nan" else cell for cell in cells]
            print(f"| {setting} | {kind} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
