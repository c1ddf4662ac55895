"""[RankRLS09] section 4.3: linear RankRLS on all of Reuters-21578 by conjugate gradients.

    python -m experiments.rankrls09.reuters_all [--short]

The paper trains on "more than 12000 inputs and features, which generate over 23 million pairwise
preferences", needs "only a couple of hundred iterations" and "only a few seconds". Here: all
documents of the ModApte split, the topic acq, TF-IDF features (`reuters.make_features`; the paper
does not say theirs), relevant pairs only, several alphas and tolerances, since the paper gives
neither. The test AUC is that of a second model, trained on the training documents alone.
"""

import os
import time

from experiments.shared.command_line import make_parser, record
from experiments.shared.reuters import make_features, read_reuters
from experiments.shared.tables import print_notes, print_table
from rankwise import RankRLS
from rankwise.metrics import auc

ALPHAS = (1e-2, 1e-3, 1e-4, 1e-5)
TOLERANCES = (1e-4, 1e-8)
TOPIC = "acq"


def ranker(alpha, tol):
    """Relevant pairs only: a tie asks for nothing."""
    return RankRLS(alpha, ties="exclude", solver="iterative", tol=tol)


def measure(X, y, train, alpha, tol):
    """Iterations and seconds on all documents, pairs, and test AUC without the test documents."""
    start = time.perf_counter()
    model = ranker(alpha, tol).fit(X, y)
    seconds = time.perf_counter() - start
    apart = ranker(alpha, tol).fit(X[train], y[train])
    return model.n_iter_, seconds, model.n_pairs_, float(auc(y[~train], apart.predict(X[~train])))


def measure_path(X, y, tol):
    """Iterations of the slowest alpha, and seconds of all, each started from the one before."""
    model = ranker(1.0, tol)
    start = time.perf_counter()
    path = model.path(X, y, alphas=ALPHAS)
    return path.model(0).n_iter_, time.perf_counter() - start


def main(argv=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="only the loose tolerance")
    options = parser.parse_args(argv)
    documents = read_reuters(options.data)
    X = make_features(documents.texts)
    y = documents.has_topic(TOPIC)
    train = documents.split == "train"
    rows = []
    for tol in TOLERANCES[:1] if options.short else TOLERANCES:
        for alpha in ALPHAS:
            n_iter, seconds, n_pairs, area = measure(X, y, train, alpha, tol)
            rows.append([f"{alpha:g}", f"{tol:g}", n_iter, seconds, area])
        rows.append(["path of all", f"{tol:g}", *measure_path(X, y, tol), None])
    rows.append(["paper", "–", "a couple of hundred", "a few", None])
    print(
        f"Reuters-21578, ModApte: {X.shape[0]} documents, {X.shape[1]} words, {X.nnz} non-zeros, "
        f"{int(y.sum())} documents about {TOPIC}, {n_pairs / 1e6:.1f} million pairs (paper: over "
        "12000 inputs and features, over 23 million)"
    )
    print_table(
        "Section 4.3: conjugate gradients on all documents",
        ["alpha", "tol", "iterations", "seconds", "test AUC"],
        rows,
    )
    print_notes(
        "Iterations of a path are those of its slowest alpha; seconds are of all four.",
        f"Load of the machine ({os.cpu_count()} processors): {os.getloadavg()[0]:.1f}; sparse "
        "products use one of them.",
    )


if __name__ == "__main__":
    record(main)
