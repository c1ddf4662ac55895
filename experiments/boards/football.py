"""Football: win, draw or loss of the next season, by boards with and without time.

    python -m experiments.boards.football --data DIR [--first 2018]

First divisions of Germany, Italy, Spain and France from the R package engsoccerdata (0.1.8, GPL;
``data-raw/germany.csv`` and so on, here compressed as ``football/germany.csv.gz``). Seasons 2005 to
2024; those from `--first` on are predicted from all matches before: at the start of the season, or
day by day. Three-way log loss by least squares and by Davidson's model of all seasons before,
by Davidson's model in time, and by Elo with the step that foresaw the past best, frozen and
followed. All have the home advantage. Scales are chosen before each season on all matches
before it, and so is the step of Elo. Error bars are standard errors of the difference to the first
row, match by match.
"""

import numpy as np

from experiments.boards.tennis_in_time import quiet_rate, without
from experiments.shared.command_line import make_parser, read_rows, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets import PairData
from rankwise.leaderboard.backtesting import board_probabilities
from rankwise.leaderboard.forecast import base_rates, elo_probabilities, log_losses

COUNTRIES = ("germany", "italy", "spain", "france")
OLDEST = 2005
DAVIDSON = {"side": True, "ties": "davidson"}


def read_league(data, country):
    """Matches of the first division in the order of time, and the season of each."""
    rows = read_rows(data, f"football/{country}.csv.gz")
    rows = [row for row in rows if row["tier"] == "1" and row["hgoal"].isdigit()]
    rows = [row for row in rows if int(row["Season"]) >= OLDEST and row["Date"] != "NA"]
    rows.sort(key=lambda row: row["Date"])
    clubs, codes = np.unique([[row["home"], row["visitor"]] for row in rows], return_inverse=True)
    home, visitor = codes.reshape(-1, 2).T
    goal_difference = [int(row["hgoal"]) - int(row["vgoal"]) for row in rows]
    outcome = np.sign(goal_difference).astype(float)
    times = np.array([row["Date"] for row in rows], "datetime64[s]")
    data = PairData(home, visitor, outcome, np.ones(len(rows)), clubs, times=times)
    return data, np.array([int(row["Season"]) for row in rows])


def day_by_day(data, season, year, scales):
    """Chances of the matches of a season, those of each day by a board of all before."""
    is_now = season == year
    later = data.take(is_now)
    days = data.times.astype("datetime64[D]").astype(int)
    chances = np.empty((is_now.sum(), 3))
    for day in np.unique(days[is_now]):
        is_before = (days < day) & (season <= year)
        is_today = days[is_now] == day
        board = quiet_rate(data.take(is_before).compact()[0], scales=scales, **DAVIDSON)
        chances[is_today] = board_probabilities(board, later.take(is_today))
    return chances


def predict_season(data, season, year):
    """Chances of the matches of a season by each method, and the scales of the board in time."""
    matches_before = data.take(season < year)
    matches_now = data.take(season == year)
    in_time = quiet_rate(matches_before.compact()[0], **DAVIDSON)
    chances = {
        "in time, at the start": board_probabilities(in_time, matches_now),
        "in time, day by day": day_by_day(data, season, year, in_time.scales),
    }

    without_time = without(data, times=False).take(season < year)
    compact = without_time.compact()[0]
    board = quiet_rate(compact, model="least-squares", side=True, alpha="auto")
    chances["least squares"] = board_probabilities(board, matches_now)
    board = quiet_rate(compact, model="bradley-terry", alpha="auto", **DAVIDSON)
    chances["Davidson"] = board_probabilities(board, matches_now)
    chances |= elo_probabilities(matches_before, matches_now)
    chances["base rate"] = base_rates(without_time, matches_now.n_pairs)
    return chances, in_time.scales


def by_season(data, season, first):
    """Log losses of all matches by each method, season after season, and the last scales."""
    chances_of_seasons = {}
    for year in range(first, season.max() + 1):
        chances, scales = predict_season(data, season, year)
        for method, values in chances.items():
            chances_of_seasons.setdefault(method, []).append(values)
    outcome = data.outcome[season >= first]
    losses = {
        method: log_losses(np.vstack(chances), outcome)
        for method, chances in chances_of_seasons.items()
    }
    return losses, scales


def main(arguments=None):
    """Print one table for all countries."""
    parser = make_parser(__doc__)
    parser.add_argument("--first", type=int, default=2018, help="season (%(default)s)")
    options = parser.parse_args(arguments)
    losses = {}
    notes = []
    for country in COUNTRIES:
        data, season = read_league(options.data, country)
        losses[country], scales = by_season(data, season, options.first)
        notes.append(
            f"{country}: {data.n_pairs} matches of {data.n_items} clubs; scales: constant "
            f"{scales.constant:.2f}, time {scales.time:.2f}, half-life {scales.half_life:.0f} days"
        )
    reference = np.concatenate([losses[country]["in time, day by day"] for country in COUNTRIES])
    rows = []
    for method in losses["germany"]:
        losses_by_country = [losses[country][method] for country in COUNTRIES]
        means = [values.mean() for values in losses_by_country]
        all_losses = np.concatenate(losses_by_country)
        behind = all_losses - reference
        standard_error = behind.std() / np.sqrt(len(behind))
        rows.append([method, *means, all_losses.mean(), behind.mean(), standard_error])
    header = ["method", *COUNTRIES, "all", "behind", "± s.e."]
    title = f"Seasons {options.first}–2024: log loss of win, draw and loss"
    print_table(title, header, rows, digits=4)
    print_notes(*notes)


if __name__ == "__main__":
    record(main)
