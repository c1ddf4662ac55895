"""Rankings: Plackett and Luce's model beside choix, ratings and time.

    python -m experiments.boards.rankings [--rankings 100000] [--items 1000] [--length 10]

Made rankings of some of the items, drawn from the model. Largest difference of the ratings to those
of choix (on the first 2,000 rankings of 50 items), correlation with the truth, coverage of the 95%
intervals, and processor time with and without intervals. choix has no intervals; its time is that
of `choix.ilsr_rankings`.
"""

import time

import numpy as np

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from rankwise.datasets.comparisons import pairs_from_frame
from rankwise.leaderboard import rate


def make_rankings(n_rankings, n_items, length, seed=0):
    """Items of each ranking, best first, and the true ratings."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n_items)
    random_keys = rng.random((n_rankings, n_items), np.float32)
    chosen = np.argpartition(random_keys, length)[:, :length]  # items of each ranking
    # the order of ratings plus Gumbel noise is a draw from Plackett and Luce's model
    order = np.argsort(-(truth[chosen] + rng.gumbel(size=chosen.shape)), axis=1)
    return np.take_along_axis(chosen, order, axis=1), truth - truth.mean()


def as_frame(ranked):
    """One row for each item of a ranking."""
    n_rankings, length = ranked.shape
    return {
        "race": np.repeat(np.arange(n_rankings), length),
        "item": ranked.ravel(),
        "place": np.tile(np.arange(1, length + 1), n_rankings),
    }


def seconds_of(work):
    """Processor time, and what the work returns."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def row_of_rankwise(title, data, truth):
    """A row of the table, and the ratings."""
    seconds, _ = seconds_of(lambda: rate(data, intervals=False))
    seconds_with_intervals, board = seconds_of(lambda: rate(data))
    z = (board.ratings - truth) / board.spread.errors
    coverage = float(np.mean(np.abs(z) < 1.96))
    correlation = float(np.corrcoef(board.ratings, truth)[0, 1])
    return [title, seconds, seconds_with_intervals, correlation, coverage], board.ratings


def row_of_choix(title, ranked, truth):
    """A row of the table, and the ratings."""
    import choix

    rankings = ranked.tolist()
    seconds, ratings = seconds_of(lambda: choix.ilsr_rankings(len(truth), rankings, alpha=0.0))
    correlation = float(np.corrcoef(ratings, truth)[0, 1])
    return [title, seconds, "–", correlation, "–"], ratings


def main(arguments=None):
    """Print one table."""
    parser = make_parser(__doc__)
    parser.add_argument("--rankings", type=int, default=100_000, help="number (%(default)s)")
    parser.add_argument("--items", type=int, default=1000, help="number (%(default)s)")
    parser.add_argument("--length", type=int, default=10, help="of a ranking (%(default)s)")
    options = parser.parse_args(arguments)

    ranked, truth = make_rankings(2000, 50, options.length)
    data = pairs_from_frame(as_frame(ranked), ranking="race")
    small_row, ratings = row_of_rankwise("rankwise, 2000 of 50", data, truth)
    choix_row, choix_ratings = row_of_choix("choix, 2000 of 50", ranked, truth)
    largest_difference = np.abs(choix_ratings - choix_ratings.mean() - ratings).max()

    ranked, truth = make_rankings(options.rankings, options.items, options.length)
    data = pairs_from_frame(as_frame(ranked), ranking="race")
    title = f"rankwise, {options.rankings} of {options.items}"
    large_row, _ = row_of_rankwise(title, data, truth)

    header = ["rankings", "s", "s with intervals", "correlation", "coverage"]
    title = f"Rankings of {options.length} items: seconds of one core"
    print_table(title, header, [small_row, choix_row, large_row])
    print_notes(f"largest difference of a rating to that of choix: {largest_difference:.1e}")


if __name__ == "__main__":
    record(main)
