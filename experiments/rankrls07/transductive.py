"""[RankRLS07] section 4: do the items to be ranked help if they are seen without scores?

    python -m experiments.rankrls07.transductive [--dataset ohsumed|mq2008] [--scored 10]

The paper announces experiments with a transductive RankRLS on search results. It is defined in a
workshop paper that is not available to us, so this is the question, not the algorithm: some
training queries are scored, and `CoRankRLS` has two views (the odd and the even features) that are
to agree on unscored documents: on those of the test queries (transductive), or on those of other
training queries (semi-supervised). ν = 0 is the mean of the views without unscored documents.
"""

import warnings

import numpy as np

from experiments.shared.command_line import make_parser, record
from experiments.shared.letor import FILES, read_folds
from experiments.shared.tables import print_notes, print_table
from rankwise import CoRankRLSCV, RankRLSCV, View
from rankwise.metrics import disagreement_error
from rankwise.model_selection import compare

ALPHAS = 10.0 ** np.arange(-6, 2.0, 0.5)
NUS = (0.0, 1.0, 100.0, 1e4)
DRAWS = 3


def fit_views(X, y, groups, nus):
    """Two views of every second column; alpha and ν by five folds of scored queries."""
    n_columns = X.shape[1]
    views = [View(np.arange(first, n_columns, 2)) for first in (0, 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of edges of the grid
        return CoRankRLSCV(ALPHAS, nus=nus, views=views, cv=5).fit(X, y, groups)


def measure(fold, n_scored, random):
    """Error of each test query by learner, for one draw of scored queries."""
    train = fold.train
    test = fold.test
    queries = random.permutation(np.unique(train.groups))
    is_scored = np.isin(train.groups, queries[:n_scored])
    is_unscored = np.isin(train.groups, queries[n_scored : n_scored + len(np.unique(test.groups))])
    X = train.X[is_scored]
    y = train.y[is_scored]
    groups = train.groups[is_scored]
    unscored = {
        "ν = 0": (X[:0], groups[:0], (0.0,)),
        "other queries unscored": (train.X[is_unscored], train.groups[is_unscored], NUS),
        "test queries unscored": (test.X, test.groups + train.groups.max() + 1, NUS),
    }
    models = {"RankRLS": RankRLSCV(ALPHAS, cv=5).fit(X, y, groups)}
    for name, (X_unscored, unscored_groups, nus) in unscored.items():
        all_X = np.concatenate([X, X_unscored])
        all_y = np.concatenate([y, np.full(len(X_unscored), np.nan)])
        models[name] = fit_views(all_X, all_y, np.concatenate([groups, unscored_groups]), nus)
    return {
        name: disagreement_error(test.y, model.predict(test.X), test.groups, per_group=True)
        for name, model in models.items()
    }


def main(argv=None):
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--dataset", choices=FILES, default="ohsumed")
    parser.add_argument("--scored", type=int, default=10, help="queries (%(default)s)")
    options = parser.parse_args(argv)
    random = np.random.default_rng(0)
    folds = read_folds(options.data, options.dataset)
    measured = [measure(fold, options.scored, random) for fold in folds for _ in range(DRAWS)]
    n_queries = [len(next(iter(errors.values()))) for errors in measured]
    errors = {
        name: np.concatenate(
            [
                np.mean([metrics[name] for metrics in measured[k : k + DRAWS]], axis=0)
                for k in range(0, len(measured), DRAWS)
            ]
        )
        for name in measured[0]
    }
    rows = [[name, float(np.nanmean(values))] for name, values in errors.items()]
    title = (
        f"{options.dataset}, {options.scored} queries scored, about {np.mean(n_queries):.0f} test "
        f"queries a fold, {DRAWS} draws: disagreement error"
    )
    print_table(title, ["", "error"], rows)
    print("\nAgainst the agreement on other queries, Wilcoxon's signed-rank test over queries:\n")
    print(
        compare(errors, baseline="other queries unscored", test="wilcoxon", greater_is_better=False)
    )
    print_notes("The paper has no figures.")


if __name__ == "__main__":
    record(main)
