"""Tennis: the board of 2019 with champions where they belong, and who wins next year.

    python -m experiments.boards.tennis [--data DIR] [--first 2012]

ATP matches (winner and loser). (a) The board of 2019 as ratings give it, by the lower end of the
intervals, and with players of fewer than 20 matches below the line. (b) The matches of a year are
predicted from those of the year before: accuracy and log loss by least squares (alpha chosen by
leaving out single matches), other models of `rate` if there are any, Elo (K = 32) and the share of
wins. A match with a player who did not play the year before is left out. Ratings become chances by
a logistic curve whose slope is fitted on the year before.
"""

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
    import warnings

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
        gap = ratings.get(winner, 0.0) - ratings.get(loser, 0.0)
        step = k * np.log(10) / 400 / (1 + np.exp(gap))
        ratings[winner] = ratings.get(winner, 0.0) + step
        ratings[loser] = ratings.get(loser, 0.0) - step
    return ratings


def share_of_wins(matches):
    """Wins over matches."""
    wins, played = {}, {}
    for side in ("winner", "loser"):
        for name in matches[side]:
            played[name] = played.get(name, 0) + 1
            wins[name] = wins.get(name, 0) + (side == "winner")
    return {name: wins[name] / played[name] for name in played}


def margins(ratings, matches):
    """Winner less loser, of the matches between players that have ratings."""
    pairs = zip(matches["winner"], matches["loser"], strict=True)
    known = [(a, b) for a, b in pairs if a in ratings and b in ratings]
    return np.array([ratings[a] - ratings[b] for a, b in known])


def log_loss(slope, gaps):
    """Mean of −log chance of the winner."""
    return float(np.mean(np.logaddexp(0.0, -slope * gaps)))


def slope_of(method, before, year):
    """Of the logistic curve: the one that predicts `year` best from the year before it."""
    gaps = margins(method(before), year)
    return minimize_scalar(log_loss, bounds=(1e-3, 50), method="bounded", args=(gaps,)).x


def print_boards(matches):
    """The first ten, in three orders."""
    boards = {
        "by rating": board_of(matches),
        "by lower end": board_of(matches, order="lower"),
        "20 matches or more": board_of(matches, min_comparisons=20),
    }
    rows = [
        [k + 1, *(f"{of.rows[k].item} ({of.rows[k].n})" for of in boards.values())]
        for k in range(10)
    ]
    header = ["", *(f"{title}" for title in boards)]
    print_table("2019: the first ten players (matches)", header, rows)
    board = boards["20 matches or more"]
    lines = [
        [row.item, row.rating, f"{row.low:.2f} … {row.high:.2f}",
         f"{row.best_rank}–{row.worst_rank}", row.tier, f"{row.wins}/{row.losses}"]
        for row in board.rows[:10]
    ]  # fmt: skip
    header = ["player", "rating", "95% interval", "rank range", "tier", "won/lost"]
    print_table("2019: players of 20 matches or more", header, lines)
    thin = sum(row.thin for row in board)
    below = sum(row.rank is None for row in board)
    print_notes(f"{len(board)} players, {thin} of them thin, {below} below the line")


def print_next_year(data, first):
    """Accuracy and log loss of the years from `first` to 2019."""
    seasons = {year: read_season(data, year) for year in YEARS}
    methods = {name: by_model(name) for name in MODELS}
    methods |= {"Elo": elo, "share of wins": share_of_wins}
    rows = []
    for name, method in methods.items():
        hits, losses = [], []
        for year in range(first, 2020):
            slope = slope_of(method, seasons[year - 2], seasons[year - 1])
            gaps = margins(method(seasons[year - 1]), seasons[year])
            hits += [(np.sign(gaps) + 1) / 2]
            losses += [np.logaddexp(0.0, -slope * gaps)]
        hit, loss = np.concatenate(hits), np.concatenate(losses)
        error = float(hit.std() / len(hit) ** 0.5)
        rows.append([name, float(hit.mean()), error, float(loss.mean()), len(hit)])
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
