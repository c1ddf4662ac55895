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
    "random": "hardly follows the others",
    "against": "votes against the others",
    "first side": "favors the first side",
}


def simulate(n_votes, rng, n_items=20, n_judges=30):
    """Truth, comparisons, and the kind of each judge."""
    kinds = np.array([kind for kind, n in KINDS.items() for _ in range(n)])
    kinds = np.r_[kinds, np.full(n_judges - len(kinds), "honest")]
    n = n_judges * n_votes
    truth = 0.7 * rng.standard_normal(n_items)
    judge = np.repeat(np.arange(n_judges), n_votes)
    first = rng.integers(n_items, size=n)
    second = (first + 1 + rng.integers(n_items - 1, size=n)) % n_items
    margin = truth[first] - truth[second] + rng.logistic(scale=0.5, size=n)
    outcome = np.where(np.abs(margin) < 0.2, 0.0, np.sign(margin))
    outcome = np.where(kinds[judge] == "random", rng.choice([-1.0, 1.0], n), outcome)
    outcome = np.where(kinds[judge] == "against", -outcome, outcome)
    outcome = np.where(kinds[judge] == "first side", 1.0, outcome)
    ones = np.ones(n)
    return truth, PairData(first, second, outcome, ones, np.arange(n_items), judges=judge), kinds


def main(arguments=None):
    """Print one line for each number of votes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="(%(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for n_votes in (20, 40, 80, 160, 320):
        found = {kind: [] for kind in (*KINDS, "honest")}
        plain, weighted = [], []
        for seed in range(options.runs):
            truth, data, kinds = simulate(n_votes, np.random.default_rng(seed))
            board = rate(data, model="least-squares", intervals=False)
            for judge, kind in zip(board.judges, kinds, strict=True):
                is_found = REMARKS.get(kind, "") in judge.remark
                found[kind].append(bool(judge.remark) if kind == "honest" else is_found)
            again = rate(data, model="least-squares", intervals=False, reweight=True)
            plain.append(np.corrcoef(truth, board.ratings)[0, 1])
            weighted.append(np.corrcoef(truth, again.ratings)[0, 1])
        shares = [float(np.mean(values)) for values in found.values()]
        rows.append([n_votes, *shares, float(np.mean(plain)), float(np.mean(weighted))])
    header = ["votes", "found:\nrandom", "\nagainst", "\nfirst side", "remark on\nhonest",
              "correlation\nplain", "\nreweighted"]  # fmt: skip
    print_table(f"30 judges, 6 of them bad, {options.runs} runs", header, rows)


if __name__ == "__main__":
    record(main)
