"""How often the ranks "at once" of a board with few clusters hold all true ranks, simulated.

    python -m experiments.boards.few_clusters [--runs N]

Thirty items, rated by 5, 6, 10 or 20 judges whose tastes differ; whole judges are left out. In
"near equal" boards the true ratings have a standard deviation of 0.02, in "six tiers" the tiers are
0.6 apart. Outcomes are margins (least squares) or wins and losses (Bradley-Terry). In "one large
judge" half of the comparisons are from one judge. In "three judges know ten items" the other judges
do not compare the last ten items. The data of board k have the seed k.

Reported are the share of boards whose ranks at once contain all true ranks, with its standard
error, and the mean number of ranks in a range: by `rate`, and by the largest of all errors of
differences drawn from a multivariate t distribution (max-t), which needs more clusters.
"""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from experiments.shared.command_line import record
from rankwise.datasets import PairData
from rankwise.leaderboard import rate
from rankwise.uncertainty.possible_ranks import joint_quantile, possible_ranks

N_ITEMS = 30
N_COMPARISONS = 200  # of each judge, on average
CONFIDENCE = 0.95
CLUSTERS = (5, 6, 10, 20)


class Setting(NamedTuple):
    """A kind of data."""

    model: str = "least-squares"
    tiers: int = 1
    has_large_judge: bool = False
    n_rare: int = 0  # items that only three judges compare


SETTINGS = {
    "near equal": Setting(),
    "six tiers": Setting(tiers=6),
    "near equal, one large judge": Setting(has_large_judge=True),
    "near equal, three judges know ten items": Setting(n_rare=10),
    "near equal, wins": Setting(model="bradley-terry"),
    "six tiers, wins": Setting(model="bradley-terry", tiers=6),
}


def comparisons(setting, n_judges, rng):
    """True ratings, and the comparisons of all judges."""
    tier = np.arange(N_ITEMS) * setting.tiers // N_ITEMS
    truth = 0.6 * tier + 0.02 * rng.standard_normal(N_ITEMS)
    n_comparisons = N_COMPARISONS * n_judges
    share = np.ones(n_judges)
    if setting.has_large_judge:
        share[0] = n_judges - 1
    judge = rng.choice(n_judges, n_comparisons, p=share / share.sum())
    first = rng.integers(N_ITEMS, size=n_comparisons)
    second = (first + rng.integers(1, N_ITEMS, size=n_comparisons)) % N_ITEMS
    if setting.n_rare:
        is_rare = np.maximum(first, second) >= N_ITEMS - setting.n_rare
        is_judged = ~is_rare | (judge < 3)
        first = first[is_judged]
        second = second[is_judged]
        judge = judge[is_judged]
        n_comparisons = len(judge)
    taste = 0.5 * rng.standard_normal((n_judges, N_ITEMS))
    margin = truth[first] - truth[second] + taste[judge, first] - taste[judge, second]
    if setting.model == "bradley-terry":
        outcome = np.where(rng.random(n_comparisons) < expit(margin), 1.0, -1.0)
    else:
        outcome = margin + rng.standard_normal(n_comparisons)
    weight = np.ones(n_comparisons)
    data = PairData(first, second, outcome, weight, np.arange(N_ITEMS), judges=judge)
    return truth, data


def coverage(truth, best, worst):
    """Whether all true ranks are inside, and the mean number of ranks in a range."""
    rank = 1 + np.sum(truth > truth[:, None], axis=1)
    is_inside = np.all((best <= rank) & (rank <= worst))
    return [float(is_inside), float(np.mean(worst - best + 1))]


def ranks_of_board(board):
    """Best and worst rank at once, in the order of the items."""
    place = np.argsort(board.columns["item"])
    return board.columns["best_of_all"][place], board.columns["worst_of_all"][place]


def ranks_by_largest_error(board):
    """Best and worst rank by max-t."""
    lists = np.ones(N_ITEMS, np.intp)
    quantile = joint_quantile(board.spread, lists, CONFIDENCE)
    return possible_ranks(board.ratings, board.spread, lists, CONFIDENCE, quantile)


def simulate(setting, n_judges, n_runs):
    """Means over the boards: inside and number of ranks by `rate`, the same by max-t."""
    results = []
    for seed in range(n_runs):
        truth, data = comparisons(setting, n_judges, np.random.default_rng(seed))
        board = rate(data, model=setting.model, confidence=CONFIDENCE)
        by_board = coverage(truth, *ranks_of_board(board))
        by_largest_error = coverage(truth, *ranks_by_largest_error(board))
        results.append(by_board + by_largest_error)
    return np.mean(results, axis=0)


def main(arguments=None):
    """Print one line for each setting and number of judges."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1000)
    options = parser.parse_args(arguments)
    print("| setting | judges | at once | ± | ranks | at once, max-t | ± | ranks |")
    print("|---" * 8 + "|")
    for name, setting in SETTINGS.items():
        for n_judges in CLUSTERS:
            inside, ranks, inside_t, ranks_t = simulate(setting, n_judges, options.runs)
            error, error_t = (
                np.sqrt(share * (1 - share) / options.runs) for share in (inside, inside_t)
            )
            cells = [
                name, str(n_judges), f"{inside:.3f}", f"{error:.3f}", f"{ranks:.1f}",
                f"{inside_t:.3f}", f"{error_t:.3f}", f"{ranks_t:.1f}",
            ]  # fmt: skip
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    record(main)
