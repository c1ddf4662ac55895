"""When time helps and when it does not: backtests of two sets.

    python -m experiments.boards.time_or_not [--data DIR]

Tennis (ATP 2014–2019, the matches of 2019 predicted at its beginning), whose players come, peak and
go; and votes on answers of language models (LLMFAO, in a random order, since the file has no dates,
the last third predicted), which do not change. Each by `backtest`: with time, without, and Elo.
"""

import warnings

import numpy as np

from experiments.boards.tennis import read_matches
from experiments.shared.command_line import make_parser, read_rows, record
from rankwise.leaderboard import backtest


def main(arguments=None):
    """Print both tables."""
    options = make_parser(__doc__).parse_args(arguments)
    warnings.simplefilter("ignore", UserWarning)  # players who met nobody else
    rows = read_matches(options.data, range(2014, 2020))
    tennis = {name: [row[name] for row in rows] for name in ("winner_name", "loser_name")}
    tennis["date"] = [row["tourney_date"] for row in rows]
    columns = {"winner": "winner_name", "loser": "loser_name"}
    print("tennis")
    print(backtest(tennis, "2019-01-01", time="date", intervals=False, **columns))
    rows = read_rows(options.data, "llmfao/crowd-comparisons.csv.gz")
    np.random.default_rng(0).shuffle(rows)
    votes = {name: [row[name] for row in rows] for name in ("left", "right", "winner")}
    columns = {"sides": ("left", "right"), "outcome": "winner", "ties": "davidson", "side": True}
    print("\nvotes on language models")
    print(backtest(votes, 2 * len(rows) // 3, time="rows", intervals=False, **columns))


if __name__ == "__main__":
    record(main)
