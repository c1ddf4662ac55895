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


def read_league(data, country):
    """Matches of the first division in the order of time, and the season of each."""
    rows = read_rows(data, f"football/{country}.csv.gz")
    rows = [row for row in rows if row["tier"] == "1" and row["hgoal"].isdigit()]
    rows = [row for row in rows if int(row["Season"]) >= OLDEST and row["Date"] != "NA"]
    rows.sort(key=lambda row: row["Date"])
    names, ends = np.unique([[row["home"], row["visitor"]] for row in rows], return_inverse=True)
    first, second = ends.reshape(-1, 2).T
    said = np.sign([int(row["hgoal"]) - int(row["vgoal"]) for row in rows]).astype(float)
    times = np.array([row["Date"] for row in rows], "datetime64[s]")
    data = PairData(first, second, said, np.ones(len(rows)), names, times=times)
    return data, np.array([int(row["Season"]) for row in rows])


def by_season(data, season, first):
    """Chances of each match by each method, season after season."""
    out = {}

    def add(name, chances):
        out.setdefault(name, []).append(chances)

    plain, days = without(data, times=False), data.times.astype("datetime64[D]").astype(int)
    davidson = {"side": True, "ties": "davidson"}
    for year in range(first, season.max() + 1):
        past, now = season < year, season == year
        later = data.take(now)
        board = quiet_rate(data.take(past).compact()[0], **davidson)
        scales = board.scales
        add("in time, at the start", board_probabilities(board, later))
        daily = np.empty((now.sum(), 3))
        for day in np.unique(days[now]):
            before = (days < day) & (season <= year)
            at = days[now] == day
            board = quiet_rate(data.take(before).compact()[0], scales=scales, **davidson)
            daily[at] = board_probabilities(board, later.take(at))
        add("in time, day by day", daily)
        known = plain.take(past).compact()[0]
        board = quiet_rate(known, model="least-squares", side=True, alpha="auto")
        add("least squares", board_probabilities(board, later))
        board = quiet_rate(known, model="bradley-terry", alpha="auto", **davidson)
        add("Davidson", board_probabilities(board, later))
        for method, chances in elo_probabilities(data.take(past), later).items():
            add(method, chances)
        add("base rate", base_rates(plain.take(past), now.sum()))
    said = data.outcome[season >= first]
    return {name: log_losses(np.vstack(parts), said) for name, parts in out.items()}, scales


def main(arguments=None):
    """Print one table for all countries."""
    parser = make_parser(__doc__)
    parser.add_argument("--first", type=int, default=2018, help="season (%(default)s)")
    options = parser.parse_args(arguments)
    losses, notes = {}, []
    for country in COUNTRIES:
        data, season = read_league(options.data, country)
        losses[country], scales = by_season(data, season, options.first)
        notes.append(
            f"{country}: {data.n_pairs} matches of {data.n_items} clubs; scales: constant "
            f"{scales.constant:.2f}, time {scales.time:.2f}, half-life {scales.half_life:.0f} days"
        )
    rows = []
    for name in losses["germany"]:
        each = [losses[country][name] for country in COUNTRIES]
        all_losses = np.concatenate(each)
        best = np.concatenate([losses[c]["in time, day by day"] for c in COUNTRIES])
        behind = all_losses - best
        error = behind.std() / np.sqrt(len(behind))
        rows.append([name, *(e.mean() for e in each), all_losses.mean(), behind.mean(), error])
    header = ["method", *COUNTRIES, "all", "behind", "± s.e."]
    title = f"Seasons {options.first}–2024: log loss of win, draw and loss"
    print_table(title, header, rows, digits=4)
    print_notes(*notes)


if __name__ == "__main__":
    record(main)
