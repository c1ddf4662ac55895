"""How many answers does `rankwise judge` ask for until its goal is settled?

    python -m experiments.boards.answers_needed [--runs 20]

One person answers, with the default settings of the page: the three best items, a confidence of
90%, items without features. The first questions compare every item with its neighbors in a random
cycle; then each question is the best pair of `next_pairs`. A consistent person always chooses the
better item. The other persons answer by Bradley–Terry: the logarithms of the strengths are normal
with a standard deviation of one or two, so they contradict themselves. A run ends after 100 answers
per item.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise import PairGraph
from rankwise.leaderboard import fit_posterior, next_pairs

PRIOR = 1.0  # of the page
TOP = 3
LEVEL = 0.9
MAX_ANSWERS_PER_ITEM = 100
SIZES = (8, 12, 20)
PERSONS = {"consistent": np.inf, "strengths with sd 2": 2.0, "strengths with sd 1": 1.0}


class Session(NamedTuple):
    """The answers of one run, and whether they found the best items."""

    n_answers: int
    is_settled: bool
    is_correct: bool


def first_round(n_items, rng):
    """Each item and its neighbor in a random cycle."""
    cycle = rng.permutation(n_items)
    return list(zip(cycle.tolist(), np.roll(cycle, 1).tolist(), strict=True))


def is_first_better(first, second, strengths, is_consistent, rng):
    """Answer one question."""
    difference = strengths[first] - strengths[second]
    if is_consistent:
        return difference > 0
    return rng.random() < expit(difference)


def judge_until_settled(n_items, spread, rng):
    """Ask until the three best items are settled, or the limit of answers is reached."""
    is_consistent = np.isinf(spread)
    strengths = rng.standard_normal(n_items)
    if not is_consistent:
        strengths *= spread
    true_top = set(np.argsort(-strengths)[:TOP].tolist())

    questions = first_round(n_items, rng)
    winners = []
    losers = []
    while True:
        for first, second in questions:
            if is_first_better(first, second, strengths, is_consistent, rng):
                winners.append(first)
                losers.append(second)
            else:
                winners.append(second)
                losers.append(first)
        posterior = fit_posterior(PairGraph(winners, losers, n_items=n_items), None, PRIOR)
        suggested = next_pairs(
            posterior, k=1, goal="top", top=TOP, level=LEVEL, random_state=int(rng.integers(2**31))
        )
        n_answers = len(winners)
        if suggested.settled or n_answers >= MAX_ANSWERS_PER_ITEM * n_items:
            rated_top = set(np.argsort(-posterior.mean)[:TOP].tolist())
            return Session(n_answers, suggested.settled, rated_top == true_top)
        questions = [(pair.first, pair.second) for pair in suggested]


def row_of(n_items, person, sessions):
    """Quartiles of the number of answers, and shares of settled and of correct runs."""
    answers = np.array([session.n_answers for session in sessions])
    settled = [session for session in sessions if session.is_settled]
    quartiles = np.percentile(answers, [25, 50, 75])
    correct = "–"
    if settled:
        correct = f"{np.mean([session.is_correct for session in settled]):.0%}"
    return [
        n_items,
        person,
        f"{quartiles[1]:.0f}",
        f"{quartiles[0]:.0f} to {quartiles[2]:.0f}",
        f"{quartiles[1] / n_items:.1f}",
        f"{len(settled) / len(sessions):.0%}",
        correct,
    ]


def main(arguments=None):
    """Print a row for each number of items and each person."""
    parser = make_parser(__doc__)
    parser.add_argument("--runs", type=int, default=20)
    options = parser.parse_args(arguments)
    rows = []
    for n_items in SIZES:
        for person, spread in PERSONS.items():
            sessions = [
                judge_until_settled(n_items, spread, np.random.default_rng([n_items, seed]))
                for seed in range(options.runs)
            ]
            rows.append(row_of(n_items, person, sessions))
    header = ["items", "person", "median", "quartiles", "per item", "settled", "correct"]
    print_table(
        f"Answers until the {TOP} best items are settled ({options.runs} runs)", header, rows
    )
    print_notes(
        "A run that is not settled counts with its limit, "
        f"{MAX_ANSWERS_PER_ITEM} answers per item.",
        "per item: the median divided by the number of items.",
        f"correct: share of the settled runs in which the {TOP} items are the best ones.",
    )


if __name__ == "__main__":
    record(main)
