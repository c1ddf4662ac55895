"""[RankRLS09] section 4.2: how sparse is a kernel RankSVM?

    python -m experiments.rankrls09.support_vectors [--documents 500]

The paper says that SVMs predict faster because their solution may be sparse, which "depends on the
level of regularization and the amount of noise". A document has a coefficient if one of its pairs
has a margin of at most 1. Gaussian kernel on documents of Reuters-21578, topic acq; with noise some
of the topics are drawn at random.
"""

import numpy as np

from experiments.rankrls09.table1 import draw_documents
from experiments.shared.command_line import make_parser, record
from experiments.shared.reuters import make_features, read_reuters
from experiments.shared.tables import print_notes, print_table
from rankwise import RankSVM
from rankwise.metrics import auc

ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
NOISE = (0.0, 0.1, 0.3)  # share of the documents whose topic is drawn at random
TOL = 1e-4
MARGIN = 1.01  # pairs with a smaller margin: the solution is certified to 1e-4 only


def has_coefficient(y, scores):
    """Whether an item is in a pair with a margin of at most 1."""
    positive = scores[y > 0]
    negative = scores[y == 0]
    is_support = np.empty(len(y), dtype=bool)
    is_support[y > 0] = positive - negative.max() < MARGIN
    is_support[y == 0] = positive.min() - negative < MARGIN
    return is_support


def measure(X, y, X_test, y_test, alpha):
    """Share of the documents with a coefficient, and the AUC of the test documents."""
    model = RankSVM(alpha, kernel="rbf", gamma=1.0, tol=TOL).fit(X, y)
    return has_coefficient(y, model.predict(X)).mean(), float(auc(y_test, model.predict(X_test)))


def main(argv=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--documents", type=int, default=500, help="(%(default)s)")
    options = parser.parse_args(argv)
    documents = read_reuters(options.data)
    X = make_features(documents.texts)
    topic = documents.has_topic("acq")
    is_train = documents.split == "train"
    is_test = documents.split == "test"
    X_train, topic_train = draw_documents(X[is_train], topic[is_train], options.documents)
    rows = []
    for noise in NOISE:
        random = np.random.default_rng(0)
        y = topic_train.astype(float)
        is_noise = random.random(len(y)) < noise
        y[is_noise] = random.permutation(y[is_noise])
        for alpha in ALPHAS:
            measured = measure(X_train, y, X[is_test], topic[is_test], alpha)
            rows.append([f"{noise:.0%}", f"{alpha:g}", *measured])
    header = ["noise", "alpha", "share with a\ncoefficient", "test AUC"]
    print_table(f"Kernel RankSVM on {len(y)} documents", header, rows)
    print_notes(
        "The paper has no figures. RankRLS has a coefficient for every item.",
        f"Margins below {MARGIN:g} count: the solution is certified to a gap of {TOL:g}.",
    )


if __name__ == "__main__":
    record(main)
