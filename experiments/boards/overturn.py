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
    rest = data.take(np.setdiff1d(np.arange(data.n_pairs), rows))
    ratings = rate(rest, model="least-squares", intervals=False).ratings
    return ratings[a] <= ratings[b] + 1e-9


def main(arguments=None):
    options = make_parser(__doc__).parse_args(arguments)
    (path,) = find_data(options.data, "llmfao/crowd-comparisons.csv.gz")
    columns = {"sides": ("left", "right"), "outcome": "winner", "judge": "worker"}
    data = read_pairs(path, group="prompt", **columns)
    place = {label: k for k, label in enumerate(data.items.tolist())}
    rows = []
    for model in ("least-squares", "bradley-terry"):
        board = rate(data, model=model)
        first, second = (row.item for row in board.rows[:2])
        for by, labels in ((None, None), ("judge", data.judges), ("group", data.groups)):
            found = board.votes_to_flip(first, second, by=by)
            left_out = (
                found.removed if by is None else np.flatnonzero(np.isin(labels, found.removed))
            )
            name = {None: "votes", "judge": "judges", "group": "prompts"}[by]
            if model == "least-squares":
                assert is_turned(data, place[first], place[second], left_out)
            rows.append([model, name, str(found), str(found.of)])
    print_table(f"{first} above {second}", ["model", "by", "at least–found", "of"], rows)
    board = rate(data, model="least-squares")
    start = time.process_time()
    holds = board.votes_to_flip_next
    seconds = time.process_time() - start
    order = [row.item for row in board.rows]
    for a, b in pairwise(order):
        assert is_turned(data, place[a], place[b], holds[a].removed)
    n = np.array([found.n for found in holds.values()])
    least = np.array([found.at_least for found in holds.values()])
    print_notes(
        f"{len(n)} neighbors took {seconds:.2f} s of processor time; refits confirm all of them",
        f"{np.sum(n == 1)} hold by one vote, {np.sum(n <= 3)} by three or fewer, one by {n.max()}",
        f"the lower bound is what was found for {np.sum(n == least)}, one less for "
        f"{np.sum(n == least + 1)}",
    )


if __name__ == "__main__":
    record(main)
