"""Planted bad judges: how many of them the table of judges finds, and what reweighting is worth.

    python -m experiments.boards.judges [--runs 50]

20 items, 30 judges with 20 to 320 votes each. Three judges vote at random, one votes against
everybody, two always take the first side. Printed: the share of each kind with the right remark,
the share of honest judges with any remark, and the correlation of the ratings with the truth
without and with `reweight=True`.
"""

import argparse

import numpy as np

from experiments.shared.command_line import record
from experiments.shared.tables import print_table
from rankwise.datasets import PairData
from rankwise.leaderboard import rate

KINDS = {"random": 3, "against": 1, "first side": 2}
REMARKS = {
    "random": "agrees little with the other judges",
    "against": "votes against the others",
    "first side": "favors the first side",
}


def simulate(n_votes, rng, n_items=20, n_judges=30):
    """Truth, comparisons, and the kind of each judge."""
    bad_kinds = np.repeat(list(KINDS), list(KINDS.values()))
    kinds = np.r_[bad_kinds, np.full(n_judges - len(bad_kinds), "honest")]
    kind_of_vote = np.repeat(kinds, n_votes)
    n = n_judges * n_votes
    truth = 0.7 * rng.standard_normal(n_items)
    judge = np.repeat(np.arange(n_judges), n_votes)
    first = rng.integers(n_items, size=n)
    second = (first + 1 + rng.integers(n_items - 1, size=n)) % n_items
    margin = truth[first] - truth[second] + rng.logistic(scale=0.5, size=n)
    outcome = np.where(np.abs(margin) < 0.2, 0.0, np.sign(margin))
    outcome = np.where(kind_of_vote == "random", rng.choice([-1.0, 1.0], n), outcome)
    outcome = np.where(kind_of_vote == "against", -outcome, outcome)
    outcome = np.where(kind_of_vote == "first side", 1.0, outcome)
    ones = np.ones(n)
    return truth, PairData(first, second, outcome, ones, np.arange(n_items), judges=judge), kinds


def has_expected_remark(judge, kind):
    """For a bad judge whether the remark is the right one; for an honest one any remark."""
    if kind == "honest":
        return bool(judge.remark)
    return REMARKS[kind] in judge.remark


def row_of(n_votes, n_runs):
    """A row of the table: shares of judges by kind, and correlations with the truth."""
    has_remark = {kind: [] for kind in (*KINDS, "honest")}
    plain_correlations = []
    reweighted_correlations = []
    for seed in range(n_runs):
        truth, data, kinds = simulate(n_votes, np.random.default_rng(seed))
        board = rate(data, model="least-squares", intervals=False)
        for judge, kind in zip(board.judges, kinds, strict=True):
            has_remark[kind].append(has_expected_remark(judge, kind))
        reweighted = rate(data, model="least-squares", intervals=False, reweight=True)
        plain_correlations.append(np.corrcoef(truth, board.ratings)[0, 1])
        reweighted_correlations.append(np.corrcoef(truth, reweighted.ratings)[0, 1])
    shares = [float(np.mean(values)) for values in has_remark.values()]
    return [
        n_votes,
        *shares,
        float(np.mean(plain_correlations)),
        float(np.mean(reweighted_correlations)),
    ]


def main(arguments=None):
    """Print one line for each number of votes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="(%(default)s)")
    options = parser.parse_args(arguments)
    rows = [row_of(n_votes, options.runs) for n_votes in (20, 40, 80, 160, 320)]
    header = ["votes", "found:\nrandom", "\nagainst", "\nfirst side", "remark on\nhonest",
              "correlation\nplain", "\nreweighted"]  # fmt: skip
    print_table(f"30 judges, 6 of them bad, {options.runs} runs", header, rows)


if __name__ == "__main__":
    record(main)
