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
    chosen = np.argpartition(rng.random((n_rankings, n_items), np.float32), length)[:, :length]
    order = np.argsort(-(truth[chosen] + rng.gumbel(size=chosen.shape)), axis=1)
    return np.take_along_axis(chosen, order, axis=1), truth - truth.mean()


def as_frame(ranked):
    """One row for each item of a ranking."""
    n, m = ranked.shape
    places = np.tile(np.arange(1, m + 1), n)
    return {"race": np.repeat(np.arange(n), m), "item": ranked.ravel(), "place": places}


def seconds_of(work):
    """Processor time, and what the work returns."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def main(arguments=None):
    """Print one table."""
    import choix

    parser = make_parser(__doc__)
    parser.add_argument("--rankings", type=int, default=100_000, help="number (%(default)s)")
    parser.add_argument("--items", type=int, default=1000, help="number (%(default)s)")
    parser.add_argument("--length", type=int, default=10, help="of a ranking (%(default)s)")
    options = parser.parse_args(arguments)
    rows = []
    for n, items in ((2000, 50), (options.rankings, options.items)):
        ranked, truth = make_rankings(n, items, options.length)
        data = pairs_from_frame(as_frame(ranked), ranking="race")
        plain, _ = seconds_of(lambda data=data: rate(data, intervals=False))
        full, board = seconds_of(lambda data=data: rate(data))
        z = (board.ratings - truth) / board.spread.errors
        covered = float(np.mean(np.abs(z) < 1.96))
        match = float(np.corrcoef(board.ratings, truth)[0, 1])
        rows.append([f"rankwise, {n} of {items}", plain, full, match, covered])
        if n == 2000:
            theirs, peer = seconds_of(
                lambda r=ranked, n=items: choix.ilsr_rankings(n, r.tolist(), alpha=0.0)
            )
            match = float(np.corrcoef(peer, truth)[0, 1])
            rows.append([f"choix, {n} of {items}", theirs, "–", match, "–"])
            gap = np.abs(peer - peer.mean() - board.ratings).max()
    header = ["rankings", "s", "s with intervals", "correlation", "coverage"]
    print_table(f"Rankings of {options.length} items: seconds of one core", header, rows)
    print_notes(f"largest difference of a rating to that of choix: {gap:.1e}")


if __name__ == "__main__":
    record(main)
