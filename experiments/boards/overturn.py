"""How many votes hold a place on the board of language models.

    python -m experiments.boards.overturn [--data DIR]

LLMFAO: 8,931 votes of 124 people on answers of 59 models to 13 prompts. By how many votes, judges
and prompts does the first place hold, and each place against the next? Every result is confirmed by
a refit without what was left out.
"""

import time
from itertools import pairwise

import numpy as np

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import read_pairs
from rankwise.leaderboard import rate


def is_turned(data, a, b, rows):
    """Whether a is not above b in a refit without these rows."""
    remaining = data.take(np.setdiff1d(np.arange(data.n_pairs), rows))
    ratings = rate(remaining, model="least-squares", intervals=False).ratings
    return ratings[a] <= ratings[b] + 1e-9


def print_first_place(data):
    """Votes, judges and prompts that must be left out until the first is not above the second."""
    number_of = {label: number for number, label in enumerate(data.items.tolist())}
    rows = []
    for model in ("least-squares", "bradley-terry"):
        board = rate(data, model=model)
        first, second = (row.item for row in board.rows[:2])
        for unit, by, labels in (
            ("votes", None, None),
            ("judges", "judge", data.judges),
            ("prompts", "group", data.groups),
        ):
            flip = board.votes_to_flip(first, second, by=by)
            rows_left_out = flip.removed
            if by is not None:  # the labels that are left out, not the rows
                rows_left_out = np.flatnonzero(np.isin(labels, flip.removed))
            if model == "least-squares":
                assert is_turned(data, number_of[first], number_of[second], rows_left_out)
            rows.append([model, unit, str(flip), str(flip.of)])
    print_table(f"{first} above {second}", ["model", "by", "at least–found", "of"], rows)


def print_neighbors(data):
    """By how many votes each place holds against the next."""
    number_of = {label: number for number, label in enumerate(data.items.tolist())}
    board = rate(data, model="least-squares")
    start = time.process_time()
    flips = board.votes_to_flip_next
    seconds = time.process_time() - start
    for upper, lower in pairwise(row.item for row in board.rows):
        assert is_turned(data, number_of[upper], number_of[lower], flips[upper].removed)
    n = np.array([flip.n for flip in flips.values()])
    lower_bound = np.array([flip.at_least for flip in flips.values()])
    print_notes(
        f"{len(n)} neighbors took {seconds:.2f} s of processor time; refits confirm all of them",
        f"{np.sum(n == 1)} hold by one vote, {np.sum(n <= 3)} by three or fewer, one by {n.max()}",
        f"the lower bound is what was found for {np.sum(n == lower_bound)}, one less for "
        f"{np.sum(n == lower_bound + 1)}",
    )


def main(arguments=None):
    """Print the table of the first place, and notes on all neighbors."""
    options = make_parser(__doc__).parse_args(arguments)
    (path,) = find_data(options.data, "llmfao/crowd-comparisons.csv.gz")
    columns = {"sides": ("left", "right"), "outcome": "winner", "judge": "worker"}
    data = read_pairs(path, group="prompt", **columns)
    print_first_place(data)
    print_neighbors(data)


if __name__ == "__main__":
    record(main)
