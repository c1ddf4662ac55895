"""When time helps and when it does not: backtests of two sets.

    python -m experiments.boards.time_or_not [--data DIR]

Tennis (ATP 2014–2019, the matches of 2019 foreseen at its beginning), whose players come, peak and
go; and votes on answers of language models (LLMFAO, in a random order, since the file has no dates,
the last third foreseen), which do not change. Each by `backtest`: with time, without, and Elo.
"""

import csv
import gzip
import warnings

import numpy as np

from experiments.shared.command_line import find_data, make_parser, record
from rankwise.leaderboard import backtest


def rows_of(path):
    """The rows of a compressed table."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def main(arguments=None):
    """Print both tables."""
    options = make_parser(__doc__).parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # players who met nobody else
    paths = find_data(
        options.data, *(f"atp_tennis/atp_matches_{year}.csv.gz" for year in range(2014, 2020))
    )
    rows = [row for path in paths for row in rows_of(path)]
    tennis = {name: [row[name] for row in rows] for name in ("winner_name", "loser_name")}
    tennis["date"] = [row["tourney_date"] for row in rows]
    columns = {"winner": "winner_name", "loser": "loser_name"}
    print("tennis")
    print(backtest(tennis, "2019-01-01", time="date", n_resamples=0, **columns))
    (path,) = find_data(options.data, "llmfao/crowd-comparisons.csv.gz")
    rows = rows_of(path)
    np.random.default_rng(0).shuffle(rows)
    votes = {name: [row[name] for row in rows] for name in ("left", "right", "winner")}
    columns = {"sides": ("left", "right"), "outcome": "winner", "ties": "davidson", "side": True}
    print("\nvotes on language models")
    print(backtest(votes, 2 * len(rows) // 3, time="rows", n_resamples=0, **columns))


if __name__ == "__main__":
    record(main)
