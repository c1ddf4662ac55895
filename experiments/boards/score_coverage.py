"""How often intervals and ranks at once of boards of scores are right, simulated.

    python -m experiments.boards.score_coverage [--runs N] [--rank-runs N]

First table: 8 models; coverage of the 95% intervals of all differences of two models (in "two
sparse models" of the differences that involve one of these two), in the eight settings. Noise is
normal, or skewed (exponential), and four-fold between models where the table says so. Board k of
each setting has the seed k. "Jackknife" is Student's t with the degrees of freedom of each pair; a
row passes if the 99% interval of its coverage overlaps 94 to 97.5%. "Board" is the interval of the
board: with missing cells and five complete models the wider of the jackknife's and that of the
masking test, which is valid also if errors of a kind of task depend on each other.

Second table: 30 models that are near equal, or in six tiers; share of boards whose ranks at once
contain all true ranks, and the mean number of ranks in a range. A row passes if the upper end of
the 99% interval is at least 94%.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from experiments.shared.command_line import record
from rankwise.leaderboard.score_options import ScoreOptions
from rankwise.leaderboard.score_rating import rate_table
from rankwise.leaderboard.score_table import ScoreTable

N_MODELS = 8
N_RANKED = 30
OPTIONS = ScoreOptions(min_tasks=0)


class Setting(NamedTuple):
    """A kind of table."""

    n_tasks: int
    gaps: Callable | None = None
    is_skewed: bool = False
    noise_ratio: float = 1.0
    n_families: int = 0
    leaves_families_out: bool = True
    pairs: str = "all"


def gaps_at_random(share):
    """A share of the cells is missing; every model has at least two tasks."""

    def draw(truth, difficulty, rng):
        shape = (len(truth), len(difficulty))
        missing = rng.random(shape) < share
        for row in missing:
            row[rng.choice(shape[1], 2, replace=False)] = False
        return missing

    return draw


def weak_skip_hard(truth, difficulty, rng):
    """The weaker half of the models lacks most of the harder half of the tasks."""
    weak = truth < np.median(truth)
    hard = difficulty < np.median(difficulty)
    return weak[:, None] & hard & (rng.random((len(truth), len(difficulty))) < 0.7)


def two_sparse(truth, difficulty, rng):
    """The first two models have three and four tasks."""
    missing = np.zeros((len(truth), len(difficulty)), bool)
    for model, n_tasks in ((0, 3), (1, 4)):
        missing[model] = True
        missing[model, rng.choice(len(difficulty), n_tasks, replace=False)] = False
    return missing


SETTINGS = {
    "5 tasks": Setting(5),
    "10 tasks": Setting(10),
    "10 tasks, skewed, four-fold": Setting(10, is_skewed=True, noise_ratio=4),
    "40 tasks": Setting(40),
    "40 tasks, skewed": Setting(40, is_skewed=True),
    "40 tasks, a third missing": Setting(40, gaps_at_random(1 / 3)),
    "40 tasks, weak models skip hard tasks": Setting(40, weak_skip_hard),
    "5 tasks, a third missing": Setting(5, gaps_at_random(1 / 3)),
    "40 tasks, two sparse models": Setting(40, two_sparse, pairs="sparse"),
    "40 tasks, two sparse models, skewed": Setting(40, two_sparse, True, pairs="sparse"),
    "40 tasks in 8 families": Setting(40, n_families=8),
    "40 tasks in 8 families, a third missing": Setting(40, gaps_at_random(1 / 3), n_families=8),
    "the same, families ignored": Setting(40, n_families=8, leaves_families_out=False),
}
UNCHECKED = {"the same, families ignored"}


def noise_of(setting, shape, rng):
    """Errors of the cells, with standard deviation 1 for the first model."""
    noise = rng.standard_normal(shape)
    if setting.is_skewed:
        noise = rng.exponential(size=shape) - 1
    if setting.n_families:
        family = np.arange(shape[1]) % setting.n_families
        shared = rng.standard_normal((shape[0], setting.n_families))[:, family]
        noise = np.sqrt(0.5) * (noise + shared)
    scale = np.geomspace(1, setting.noise_ratio, shape[0])
    return noise * scale[:, None]


def coverage_of_board(setting, rng):
    """Shares of the differences whose interval contains the truth: jackknife, board."""
    truth = 0.5 * rng.standard_normal(N_MODELS)
    difficulty = rng.standard_normal(setting.n_tasks)
    noise = noise_of(setting, (N_MODELS, setting.n_tasks), rng)
    scores = truth[:, None] + difficulty + noise
    if setting.gaps is not None:
        scores[setting.gaps(truth, difficulty, rng)] = np.nan
    families = None
    if setting.n_families and setting.leaves_families_out:
        families = np.arange(setting.n_tasks) % setting.n_families
    board = board_of(scores, families)
    if board is None:
        return [np.nan, np.nan]
    return shares_inside(setting, truth, board)


def shares_inside(setting, truth, board):
    """The same shares for a board."""
    remains_connected = board.score_errors.jackknife.remains_connected
    n_first = N_MODELS
    if setting.pairs == "sparse":
        n_first = 2  # pairs of one of the two sparse models
    is_inside = []
    for i in range(n_first):
        by_jackknife = board.errors.pair_errors.by_tasks_or_seeds.half_widths(i, 0.95)
        by_board = board.errors.pair_errors.half_widths(i, 0.95)
        for j in range(i + 1, N_MODELS):
            if remains_connected[i] and remains_connected[j]:
                error = abs(board.ratings[i] - board.ratings[j] - truth[i] + truth[j])
                is_inside.append([error <= by_jackknife[j], error <= by_board[j]])
    if not is_inside:
        return [np.nan, np.nan]
    return np.mean(is_inside, axis=0)


def board_of(scores, families=None):
    """The board of a table; None if its models have no common tasks."""
    is_usable = np.sum(~np.isnan(scores), axis=0) > 1
    scores = scores[:, is_usable]
    labels = None
    if families is not None:
        families = np.unique(families[is_usable], return_inverse=True)[1]
        labels = np.arange(families.max() + 1)
    models = np.arange(len(scores))
    tasks = np.arange(scores.shape[1])
    table = ScoreTable(models, tasks, scores, families=families, family_labels=labels)
    board = rate_table(table, OPTIONS)
    if board.n_components > 1:
        return None
    return board


def ranks_of_board(n_tasks, share_missing, n_tiers, rng):
    """Whether all true ranks are inside the ranks at once, and the mean number of ranks."""
    tier = np.arange(N_RANKED) * n_tiers // N_RANKED
    truth = 3.0 * tier + 0.02 * rng.standard_normal(N_RANKED)
    scores = truth[:, None] + rng.standard_normal((N_RANKED, n_tasks))
    if share_missing:
        draw_missing = gaps_at_random(share_missing)
        scores[draw_missing(truth, np.zeros(n_tasks), rng)] = np.nan
    board = board_of(scores)
    if board is None:
        return [np.nan, np.nan]
    model_order = np.argsort(board.columns["item"])
    best = board.columns["best_of_all"][model_order]
    worst = board.columns["worst_of_all"][model_order]
    true_rank = 1 + np.sum(truth > truth[:, None], axis=1)
    is_ranked = best > 0
    is_inside = (best <= true_rank) & (true_rank <= worst)
    n_ranks = worst - best + 1
    return [float(np.all(is_inside[is_ranked])), float(np.mean(n_ranks[is_ranked]))]


def coverage_row(name, setting, n_runs):
    """A row of the first table."""
    shares = np.array(
        [coverage_of_board(setting, np.random.default_rng(seed)) for seed in range(n_runs)]
    )
    has_board = ~np.isnan(shares[:, 0])
    shares = shares[has_board]
    jackknife, of_board = shares.mean(axis=0)
    error = shares[:, 0].std(ddof=1) / np.sqrt(len(shares))
    low = jackknife - 2.58 * error
    high = jackknife + 2.58 * error
    if name in UNCHECKED:
        verdict = "–"
    elif high >= 0.94 and low <= 0.975:
        verdict = "passes"
    else:
        verdict = "fails"
    return [
        name,
        str(len(shares)),
        f"{jackknife:.3f}",
        f"{error:.4f}",
        verdict,
        f"{of_board:.3f}",
    ]


def ranks_row(name, n_tiers, share_missing, n_tasks, n_runs):
    """A row of the second table."""
    boards = [
        ranks_of_board(n_tasks, share_missing, n_tiers, np.random.default_rng(seed))
        for seed in range(n_runs)
    ]
    share_inside, n_ranks = np.nanmean(boards, axis=0)
    error = np.sqrt(share_inside * (1 - share_inside) / len(boards))
    verdict = "fails"
    if share_inside + 2.58 * error >= 0.94:
        verdict = "passes"
    return [
        name,
        str(n_tasks),
        f"{share_missing:.0%}",
        f"{share_inside:.3f}",
        f"{error:.4f}",
        f"{n_ranks:.1f}",
        verdict,
    ]


def main(arguments=None):
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--rank-runs", type=int, default=2000)
    options = parser.parse_args(arguments)
    print("| setting | boards | jackknife | ± | 94 to 97.5% | board |")
    print("|---" * 6 + "|")
    for name, setting in SETTINGS.items():
        cells = coverage_row(name, setting, options.runs)
        print("| " + " | ".join(cells) + " |", flush=True)
    print()
    print("| models | tasks | missing | all ranks at once | ± | ranks in a range | ≥ 94% |")
    print("|---" * 7 + "|")
    for n_tiers, name in ((1, "near equal"), (6, "six tiers")):
        for share_missing in (0.0, 0.25):
            for n_tasks in (5, 6, 10, 20):
                cells = ranks_row(name, n_tiers, share_missing, n_tasks, options.rank_runs)
                print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    record(main)
