"""Chameleons: who wins a contest, from measurements of the animals and from the past.

    python -m experiments.boards.chameleons [--data DIR]

106 contests of 35 male Cape dwarf chameleons, 7 measurements of each (Stuart-Fox and others 2006,
the data of Turner and Firth's BradleyTerry2). Boards without and with the measurements (scaled),
with and without the number of wins before as a covariate of the contest. Alpha is chosen by leaving
out one contest at a time; the share of contests predicted that way is printed. An animal that meets
the others for the first time is predicted in the last column: all contests of each animal are left
out in turn, which only boards with measurements survive.
"""

import csv
import gzip
import warnings

import numpy as np
from sklearn.preprocessing import StandardScaler

from experiments.shared.command_line import find_data, make_parser, record
from experiments.shared.tables import print_table
from rankwise.datasets import PairData
from rankwise.leaderboard import rate


def read_contests(data):
    """Contests with the winner first, wins before as a covariate, and the measurements."""
    names = ("winner", "loser", "predictors")
    tables = []
    for path in find_data(data, *(f"chameleons/{name}.csv.gz" for name in names)):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            tables.append(list(csv.reader(file))[1:])
    winner, loser, animals = tables
    items = np.array([row[0] for row in animals])
    place = {name: k for k, name in enumerate(items)}
    X = np.array([[float(cell) for cell in row[1:]] for row in animals])
    first, second = (np.array([place[row[1]] for row in of]) for of in (winner, loser))
    before = np.array([float(row[4]) for row in winner]) - [float(row[4]) for row in loser]
    ones = np.ones(len(first))
    pairs = PairData(first, second, ones, ones, items, covariates={"wins before": before})
    return pairs, StandardScaler().fit_transform(X)


def quiet_rate(*arguments, **options):
    """A board; components are expected where animals are left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return rate(*arguments, **{"model": "least-squares", **options})


def predicted(pairs, folds, **options):
    """Share of held-out contests whose winner has the higher rating; a tie is half."""
    hits = []
    for held_out in folds:
        board = quiet_rate(pairs.take(~held_out), intervals=False, **options)
        gap = board.ratings[pairs.first[held_out]] - board.ratings[pairs.second[held_out]]
        for effect in board.effects:
            gap = gap + effect.value * pairs.covariates[effect.name][held_out]
        hits.append((1 + np.sign(gap.round(9))) / 2)
    return float(np.concatenate(hits).mean())


def main(arguments=None):
    """Print the table, and the effects of the board with everything."""
    options = make_parser(__doc__).parse_args(arguments)
    pairs, X = read_contests(options.data)
    single = list(np.eye(pairs.n_pairs, dtype=bool))
    animals = [(pairs.first == k) | (pairs.second == k) for k in range(pairs.n_items)]
    rows = []
    for title, features in (("animals only", None), ("measurements", X)):
        for control in (None, ["wins before"]):
            board = quiet_rate(pairs, features=features, covariates=control, alpha="auto")
            given = {"features": features, "covariates": control, "alpha": board.alpha}
            known = predicted(pairs, single, **given)
            new = None if features is None else predicted(pairs, animals, **given)
            effect = board.effects[0] if control else None
            shown = None if effect is None else f"{effect.value:.3f} ± {effect.error:.3f}"
            name = title + (", wins before" if control else "")
            rows.append([name, f"{board.alpha:.2g}", shown, known, new])
    header = ["board", "alpha", "effect of a win\nbefore", "contest\nleft out", "animal\nleft out"]
    print_table("Share of contests predicted", header, rows)


if __name__ == "__main__":
    record(main)
