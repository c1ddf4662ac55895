"""[TreeRSVM11] section 4: the sweep next to the algorithm of Joachims (2006) for r levels.

    python -m experiments.treersvm11.levels [--examples 20640] [--levels 2 5 …]

Joachims computes the loss and its subgradient with one pass over the sorted scores for each level,
O(m log m + r m); the sweep of the paper takes O(m log m) for any number of levels. The values of
cadata are cut into r levels of about equal size; the last row has all values. The loss of the
passes is compared with that of the sweep.
"""

import time

import numpy as np

from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes, print_table
from experiments.treersvm11.figure1 import read_cadata
from rankwise import ScoreGraph
from rankwise.losses import HingeLoss

LEVELS = (2, 5, 20, 100, 1000)
ALPHA_STEP = 0.1  # of the weights at which the loss is computed
LEAST_SECONDS = 0.3  # of a measurement; clocks have ticks


class LevelsHinge:
    """The hinge loss over pairs of different levels, one pass over the sorted scores for each.

    Parameters
    ----------
    y : ndarray of shape (n_items,)
        Levels.
    """

    def __init__(self, y):
        levels, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
        self._codes = codes
        self._items_of_level = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
        n_below = np.cumsum(counts) - counts
        self._n_pairs = int((counts * n_below).sum())
        self._n_levels = len(levels)

    def value_and_gradient(self, f):
        """The loss and its subgradient at the scores f."""
        order = np.argsort(f, kind="stable")
        codes = self._codes[order]
        n_within_above = np.searchsorted(f[order], f + 1, side="left")  # scores below f + 1
        n_within_below = np.searchsorted(f[order], f - 1, side="right")  # scores up to f − 1
        n_lost = np.zeros(len(f), dtype=np.int64)
        n_won = np.zeros(len(f), dtype=np.int64)
        for level in range(self._n_levels):
            items = self._items_of_level[level]
            higher = np.concatenate([[0], np.cumsum(codes > level)])
            lower = np.concatenate([[0], np.cumsum(codes < level)])
            n_lost[items] = higher[n_within_above[items]]
            n_won[items] = lower[-1] - lower[n_within_below[items]]
        difference = n_lost - n_won
        value = (f @ difference + n_lost.sum()) / self._n_pairs
        return float(value), difference / self._n_pairs


def as_levels(y, n_levels):
    """Values cut into this number of levels; all values for None."""
    if n_levels is None:
        return y
    bounds = np.quantile(y, np.arange(1, n_levels) / n_levels)
    return np.searchsorted(bounds, y, side="right").astype(float)


def measure(X, y, n_levels):
    """Number of levels, and milliseconds of both ways; their results must agree."""
    levels = as_levels(y, n_levels)
    f = ALPHA_STEP * (X @ np.ones(X.shape[1]))
    sweep = HingeLoss(ScoreGraph(levels))
    passes = LevelsHinge(levels)
    exact = sweep.at(f)
    value, gradient = passes.value_and_gradient(f)
    np.testing.assert_allclose(value, exact.value, rtol=1e-9)
    np.testing.assert_allclose(gradient, exact.gradient, atol=1e-12)
    of_sweep = mean_milliseconds(lambda: sweep.at(f))
    of_passes = mean_milliseconds(lambda: passes.value_and_gradient(f))
    return [str(len(np.unique(levels))), of_sweep, of_passes, of_passes / of_sweep]


def mean_milliseconds(work):
    """Processor time of one call, from as many calls as take at least `LEAST_SECONDS`."""
    n_calls = 1
    while True:
        start = time.process_time()
        for _ in range(n_calls):
            work()
        seconds = time.process_time() - start
        if seconds >= LEAST_SECONDS:
            return 1000 * seconds / n_calls
        n_calls *= 2


def main(argv=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--examples", type=int, default=20640, help="(%(default)s)")
    parser.add_argument("--levels", type=int, nargs="+", default=LEVELS, help="(%(default)s)")
    options = parser.parse_args(argv)
    X, y = read_cadata(options.data)
    X = X[: options.examples]
    y = y[: options.examples]
    rows = [measure(X, y, n_levels) for n_levels in (*options.levels, None)]
    header = ["levels", "sweep", "passes over\nthe levels", "ratio"]
    title = f"Loss and subgradient of {len(y):,} examples: milliseconds of processor time"
    print_table(title, header, rows, digits=1)
    print_notes(
        "The paper has no figures. It says: O(m log m) for any scores, where Joachims (2006) needs "
        "O(m log m + r m), which is quadratic if all scores differ.",
        "The sweep is compiled, the passes are NumPy: compare the growth with the levels.",
    )


if __name__ == "__main__":
    record(main)
