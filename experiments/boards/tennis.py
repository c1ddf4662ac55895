"""Tennis: the board of 2019 with champions where they belong, and who wins next year.

    python -m experiments.boards.tennis [--data DIR] [--first 2012]

ATP matches (winner and loser). (a) The board of 2019 as ratings give it, by the lower end of the
intervals, and with players of fewer than 20 matches below the line. (b) The matches of a year are
predicted from those of the year before: accuracy and log loss by least squares (alpha chosen by
leaving out single matches), other models of `rate` if there are any, Elo (K = 32) and the share of
wins. A match with a player who did not play the year before is left out. Ratings become chances by
a logistic curve whose slope is fitted on the year before.
"""

import warnings

import numpy as np
from scipy.optimize import minimize_scalar

from experiments.shared.command_line import make_parser, read_rows, record
from experiments.shared.tables import print_notes, print_table
from rankwise.leaderboard import rate

MODELS = ("least-squares", "bradley-terry")

YEARS = range(2010, 2020)


def read_matches(data, years=YEARS):
    """The matches of these years, a dict each, in the order of the dates."""
    rows = []
    for year in years:
        rows += read_rows(data, f"atp_tennis/atp_matches_{year}.csv.gz")
    return sorted(rows, key=lambda row: row["tourney_date"])


def read_season(data, year):
    """Winners and losers of a year by name."""
    rows = read_matches(data, [year])
    return {side: [row[f"{side}_name"] for row in rows] for side in ("winner", "loser")}


def board_of(matches, **options):
    """A board; matches that nothing connects with the others are no news here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return rate(matches, **options)


def by_model(model):
    """Ratings by a model, alpha chosen by leaving out single matches."""

    def ratings(matches):
        board = board_of(matches, model=model, alpha="auto", intervals=False)
        return dict(zip(board.items.tolist(), board.ratings.tolist(), strict=True))

    return ratings


def elo(matches, k=32.0):
    """Ratings in logits after all matches of the year, each player starting at 0."""
    ratings = {}
    for winner, loser in zip(matches["winner"], matches["loser"], strict=True):
        winner_rating = ratings.get(winner, 0.0)
        loser_rating = ratings.get(loser, 0.0)
        step = k * np.log(10) / 400 / (1 + np.exp(winner_rating - loser_rating))
        ratings[winner] = winner_rating + step
        ratings[loser] = loser_rating - step
    return ratings


def share_of_wins(matches):
    """Wins over matches."""
    wins = {}
    played = {}
    for side in ("winner", "loser"):
        for name in matches[side]:
            played[name] = played.get(name, 0) + 1
            wins[name] = wins.get(name, 0) + (side == "winner")
    return {name: wins[name] / played[name] for name in played}


def margins(ratings, matches):
    """Winner less loser, of the matches between players that have ratings."""
    pairs = zip(matches["winner"], matches["loser"], strict=True)
    rated_pairs = [(a, b) for a, b in pairs if a in ratings and b in ratings]
    return np.array([ratings[a] - ratings[b] for a, b in rated_pairs])


def log_loss(slope, margins_of_winners):
    """Mean of −log chance of the winner."""
    return float(np.mean(np.logaddexp(0.0, -slope * margins_of_winners)))


def slope_of(method, before, year):
    """Of the logistic curve: the one that predicts `year` best from the year before it."""
    margins_of_winners = margins(method(before), year)
    return minimize_scalar(
        log_loss, bounds=(1e-3, 50), method="bounded", args=(margins_of_winners,)
    ).x


def print_boards(matches):
    """The first ten, in three orders."""
    boards = {
        "by rating": board_of(matches),
        "by lower end": board_of(matches, order="lower"),
        "20 matches or more": board_of(matches, min_comparisons=20),
    }
    rows = []
    for k in range(10):
        players = [board.rows[k] for board in boards.values()]
        rows.append([k + 1, *(f"{player.item} ({player.n})" for player in players)])
    print_table("2019: the first ten players (matches)", ["", *boards], rows)
    print_long_board(boards["20 matches or more"])


def print_long_board(board):
    """The first ten players with all their figures, and how many are thin or without a rank."""
    rows = []
    for row in board.rows[:10]:
        rows.append([
            row.item, row.rating, f"{row.low:.2f} … {row.high:.2f}",
            f"{row.best_rank}–{row.worst_rank}", row.tier, f"{row.wins}/{row.losses}",
        ])  # fmt: skip
    header = ["player", "rating", "95% interval", "rank range", "tier", "won/lost"]
    print_table("2019: players of 20 matches or more", header, rows)
    n_thin = sum(row.thin for row in board)
    n_without_rank = sum(row.rank is None for row in board)
    print_notes(f"{len(board)} players, {n_thin} of them thin, {n_without_rank} below the line")


def print_next_year(data, first):
    """Accuracy and log loss of the years from `first` to 2019."""
    seasons = {year: read_season(data, year) for year in YEARS}
    methods = {name: by_model(name) for name in MODELS}
    methods |= {"Elo": elo, "share of wins": share_of_wins}
    rows = []
    for name, method in methods.items():
        hits_by_year = []
        losses_by_year = []
        for year in range(first, 2020):
            slope = slope_of(method, seasons[year - 2], seasons[year - 1])
            margins_of_winners = margins(method(seasons[year - 1]), seasons[year])
            hits_by_year.append((np.sign(margins_of_winners) + 1) / 2)
            losses_by_year.append(np.logaddexp(0.0, -slope * margins_of_winners))
        hits = np.concatenate(hits_by_year)
        losses = np.concatenate(losses_by_year)
        standard_error = hits.std() / len(hits) ** 0.5
        rows.append(
            [name, float(hits.mean()), float(standard_error), float(losses.mean()), len(hits)]
        )
    header = ["method", "accuracy", "± s.e.", "log loss", "matches"]
    print_table(f"Matches of {first}–2019 from the year before", header, rows, digits=4)


def main(arguments=None):
    """Print the boards and the forecasts."""
    parser = make_parser(__doc__)
    parser.add_argument("--first", type=int, default=2012, help="year (%(default)s)")
    options = parser.parse_args(arguments)
    print_boards(read_season(options.data, 2019))
    print_next_year(options.data, options.first)


if __name__ == "__main__":
    record(main)
