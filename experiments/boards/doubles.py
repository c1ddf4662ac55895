"""Doubles in tennis: are players or pairs of players the items to rate?

    python -m experiments.boards.doubles --data DIR

ATP doubles matches 2010 to 2019 (J. Sackmann's tennis_atp, as the files
atp_doubles/atp_matches_doubles_YEAR.csv.gz in DIR). Each year from 2014 on is predicted from the
three years before it. "players" is a board of teams, "pairs" one with each pair of players as an
item, "players and time" one with ratings that change. The regularization (the scales) is the one
with the least loss in 2013. An unknown player or pair counts as average. Elo adds the ratings of
the two players and is updated after every match.
"""

import argparse
import warnings
from dataclasses import replace

import numpy as np

from experiments.shared.command_line import make_parser, read_rows, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import PairData, pairs_from_frame
from rankwise.leaderboard import PriorScales, rate
from rankwise.leaderboard.backtesting import board_probabilities
from rankwise.leaderboard.forecast import elo_margins

YEARS = range(2010, 2020)
SELECTION = 2013
WINDOW = 3
ALPHAS = (10.0 ** np.arange(-6, -2, 0.5)).tolist()
STEPS = (0.05, 0.1, 0.2, 0.3)
SCALES = [
    PriorScales(constant, time, half_life=365.0) for constant in (0.3, 0.6) for time in (0.2, 0.4)
]


def read_matches(folder, years=YEARS):
    """Winners and losers, two players each, with the dates; and the year of each match."""
    rows = []
    for year in years:
        rows += read_rows(folder, f"atp_doubles/atp_matches_doubles_{year}.csv.gz")
    rows.sort(key=lambda row: (row["tourney_date"], row["tourney_id"], int(row["match_num"])))
    rng = np.random.default_rng(0)
    games = {"first": [], "second": [], "winner": [], "date": []}
    for row in rows:
        winner = (row["winner1_id"], row["winner2_id"])
        loser = (row["loser1_id"], row["loser2_id"])
        players = {*winner, *loser} - {""}
        if len(players) < 4:  # placeholders of unknown players
            continue
        is_swapped = rng.random() < 0.5
        if is_swapped:
            games["first"].append(loser)
            games["second"].append(winner)
            games["winner"].append("second")
        else:
            games["first"].append(winner)
            games["second"].append(loser)
            games["winner"].append("first")
        games["date"].append(row["tourney_date"])
    data = pairs_from_frame(games, sides=("first", "second"), outcome="winner", time="date")
    return data, np.array([int(date[:4]) for date in games["date"]])


def with_pairs_as_items(data):
    """The same matches with each pair of players as one item."""
    return replace(data, items=np.arange(data.teams.n_teams), teams=None)


def chances_by_year(data: PairData, years, tested, **options):
    """Probability of the actual outcome of the matches of some years, each from those before."""
    probabilities = []
    for year in tested:
        is_before = (years < year) & (years >= year - WINDOW)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            board = rate(data.take(is_before).compact()[0], intervals=False, **options)
        later = data.take(years == year)
        probability_of_outcome = board_probabilities(board, later)  # win, tie, loss
        win = probability_of_outcome[:, 0]
        loss = probability_of_outcome[:, 2]
        probabilities.append(np.where(later.outcome > 0, win, loss))
    return np.concatenate(probabilities)


def best_of(data, years, choices):
    """The options with the least loss in the year of selection."""

    def loss(options):
        return -np.log(chances_by_year(data, years, [SELECTION], **options)).mean()

    return min(choices, key=loss)


def elo_chances(data, years, tested, step):
    """Probability of the actual outcome by Elo, updated after every match of all years."""
    margins = elo_margins(data, step)[0]
    chances = 1 / (1 + np.exp(-np.sign(data.outcome) * margins))
    return chances[np.isin(years, tested)]


def choose_methods(data, years):
    """For each kind of board its matches, and the options with the least loss in 2013."""
    without_time = replace(data, times=None)
    pairs = with_pairs_as_items(without_time)
    alphas = [{"alpha": alpha} for alpha in ALPHAS]
    scales = [{"scales": choice} for choice in SCALES]
    return {
        "players": (without_time, best_of(without_time, years, alphas)),
        "pairs": (pairs, best_of(pairs, years, alphas)),
        "players and time": (data, best_of(data, years, scales)),
    }


def row_of(name, chances, reference_losses):
    """A row of the table: log loss, its difference to the reference, and accuracy."""
    losses = -np.log(chances)
    behind = losses - reference_losses
    standard_error = behind.std() / len(behind) ** 0.5
    is_right = (chances > 0.5) + 0.5 * (chances == 0.5)
    return [
        name,
        f"{losses.mean():.4f}",
        f"{behind.mean():+.4f}",
        f"{standard_error:.4f}",
        f"{is_right.mean():.1%}",
    ]


def main(arguments=None):
    """Print log loss and accuracy of each method."""
    parser: argparse.ArgumentParser = make_parser(__doc__)
    options = parser.parse_args(arguments)
    data, years = read_matches(options.data)
    tested = [year for year in YEARS if year > SELECTION]

    methods = choose_methods(data, years)
    chances = {
        name: chances_by_year(matches, years, tested, **settings)
        for name, (matches, settings) in methods.items()
    }
    step = min(STEPS, key=lambda s: -np.log(elo_chances(data, years, [SELECTION], s)).mean())
    chances["players, Elo followed"] = elo_chances(data, years, tested, step)

    reference_losses = -np.log(chances["players"])
    rows = [row_of(name, values, reference_losses) for name, values in chances.items()]
    header = ["method", "log loss", "behind players", "± s.e.", "right"]
    print_table(f"ATP doubles {tested[0]}-{tested[-1]}", header, rows)
    print_notes(
        f"{data.n_pairs} matches of {data.n_items} players in {data.teams.n_teams} pairs; "
        f"{len(reference_losses)} are predicted",
        *(f"{name}: {settings}" for name, (_, settings) in methods.items()),
        f"players, Elo followed: step {step}",
    )


if __name__ == "__main__":
    record(main)
