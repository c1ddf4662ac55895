"""[TreeRSVM11] section 3: iterations of BMRM by the number of examples and by ε.

    python -m experiments.treersvm11.iterations [--sizes 1000 4000 16000]

The paper says that BMRM reaches an ε-accurate solution in O(1/(λε)) iterations, whatever the number
of examples. Here the iterations until the best objective is at most ε above the lower bound
(algorithm 1, lines 12 and 13), on cadata with standardized features. λ of the paper is alpha.
"""

import numpy as np

from experiments.shared.command_line import make_parser, record
from experiments.shared.margin_runs import follow, make_objective
from experiments.shared.tables import print_notes, print_table
from experiments.treersvm11.figure1 import read_cadata

SIZES = (1000, 4000, 16000)
ALPHAS = (1e-1, 1e-2, 1e-3)
EPSILONS = (1e-1, 1e-2, 1e-3, 1e-4)
MAX_ITERATIONS = 300


def count_iterations(X, y, alpha, epsilons):
    """Iterations of BMRM until the gap is at most each ε; None if it takes more than the limit."""
    objective = make_objective(X, y, alpha)
    course = follow(objective, "bmrm", tol=1e-6, max_iter=MAX_ITERATIONS)
    gaps = np.minimum.accumulate(course.objective) - np.maximum.accumulate(course.bound)
    counts = []
    for epsilon in epsilons:
        is_accurate = gaps <= epsilon
        if is_accurate.any():
            counts.append(int(np.argmax(is_accurate)) + 1)
        else:
            counts.append(None)
    return counts


def main(argv=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="(%(default)s)")
    options = parser.parse_args(argv)
    X, y = read_cadata(options.data)
    rows = []
    for alpha in ALPHAS:
        for m in options.sizes:
            counts = count_iterations(X[:m], y[:m], alpha, EPSILONS)
            texts = [f"> {MAX_ITERATIONS}" if n is None else str(n) for n in counts]
            rows.append([f"{alpha:g}", f"{min(m, len(y)):,}", *texts])
    header = ["alpha", "examples", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    print_table("Iterations of BMRM until the gap is at most ε", header, rows)
    print_notes(
        "The paper has no figures. It says: O(1/(λε)) iterations, independent of the training set "
        "size, and 'typically good solutions can be reached within hundreds of iterations'.",
        "The objective of w = 0 is 1.",
    )


if __name__ == "__main__":
    record(main)
