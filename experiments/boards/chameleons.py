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


def read_table(path):
    """The rows of a compressed table, without its header."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file))[1:]


def read_contests(data):
    """Contests with the winner first, wins before as a covariate, and the measurements."""
    names = ("winner", "loser", "predictors")
    paths = find_data(data, *(f"chameleons/{name}.csv.gz" for name in names))
    winner_rows, loser_rows, animal_rows = (read_table(path) for path in paths)

    animals = np.array([row[0] for row in animal_rows])
    X = np.array([[float(cell) for cell in row[1:]] for row in animal_rows])
    number_of = {name: number for number, name in enumerate(animals)}
    winner = np.array([number_of[row[1]] for row in winner_rows])
    loser = np.array([number_of[row[1]] for row in loser_rows])
    winner_wins_before = np.array([float(row[4]) for row in winner_rows])
    loser_wins_before = np.array([float(row[4]) for row in loser_rows])
    covariates = {"wins before": winner_wins_before - loser_wins_before}
    ones = np.ones(len(winner))
    contests = PairData(winner, loser, ones, ones, animals, covariates=covariates)
    return contests, StandardScaler().fit_transform(X)


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
        winner_rating = board.ratings[pairs.first[held_out]]
        loser_rating = board.ratings[pairs.second[held_out]]
        margin = winner_rating - loser_rating
        for effect in board.effects:
            margin = margin + effect.value * pairs.covariates[effect.name][held_out]
        hits.append((1 + np.sign(margin.round(9))) / 2)
    return float(np.concatenate(hits).mean())


def row_of(pairs, title, features, covariates):
    """A row of the table: alpha, the effect of a win before, and the shares predicted."""
    board = quiet_rate(pairs, features=features, covariates=covariates, alpha="auto")
    options = {"features": features, "covariates": covariates, "alpha": board.alpha}

    each_contest = list(np.eye(pairs.n_pairs, dtype=bool))
    share_of_contests = predicted(pairs, each_contest, **options)
    share_of_new_animals = None
    if features is not None:
        contests_of_animal = [
            (pairs.first == animal) | (pairs.second == animal) for animal in range(pairs.n_items)
        ]
        share_of_new_animals = predicted(pairs, contests_of_animal, **options)

    effect_text = None
    if covariates:
        effect = board.effects[0]
        effect_text = f"{effect.value:.3f} ± {effect.error:.3f}"
        title = f"{title}, wins before"
    return [title, f"{board.alpha:.2g}", effect_text, share_of_contests, share_of_new_animals]


def main(arguments=None):
    """Print the table."""
    options = make_parser(__doc__).parse_args(arguments)
    pairs, X = read_contests(options.data)
    rows = []
    for title, features in (("animals only", None), ("measurements", X)):
        for covariates in (None, ["wins before"]):
            rows.append(row_of(pairs, title, features, covariates))
    header = ["board", "alpha", "effect of a win\nbefore", "contest\nleft out", "animal\nleft out"]
    print_table("Share of contests predicted", header, rows)


if __name__ == "__main__":
    record(main)
