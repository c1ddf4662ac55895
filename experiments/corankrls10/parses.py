"""[CoRankRLS10] Table 1 and Figure 1: parse ranking with half of the parses unscored.

    python -m experiments.corankrls10.parses [--kernel linear|rbf] [--repeats 20]
        [--reading items|groups]

As in the paper: half of the sentence-parse pairs of the training set have scores (--reading items;
all parses of half of the sentences with --reading groups), two views of 20 random basis parses
each, parameters by fivefold cross-validation over sentences with scores, error averaged over test
sentences, a learning curve over the amount of unscored data. Different: **the data are far too
small**, 22 training and 20 test sentences of at most 5 parses (paper: 500 and 600 of 30), with a
linear or Gaussian kernel on the sample's features instead of a graph kernel; so everything is done
with training and test data exchanged as well, and 20 times instead of 5, with other scored halves
and bases. `corankrls10_letor` is the same on more data.
"""

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from experiments.corankrls10.letor import (
    CO_RANK_RLS,
    N_BASIS,
    NUS,
    READING_OF_BASELINE,
    READINGS,
    Outcome,
    Split,
    draw_scores,
    errors_of,
    fit_quietly,
    learning_curves,
    plot,
    print_curves,
    print_errors,
)
from experiments.rankrls09.parses import KERNELS, read_parses
from experiments.shared.command_line import make_parser, record
from experiments.shared.tables import print_notes
from rankwise import CoRankRLSCV, RankRLSCV, View

ALPHAS = 2.0 ** np.arange(-30, 17, 2)
LEARNERS = {  # bases of the views, by their numbers, and νs
    "Sparse RankRLS, 20 basis items": (((0,),), (0.0,)),
    "Sparse RankRLS, 40 basis items": (((0, 1),), (0.0,)),
    CO_RANK_RLS: (((0,), (1,)), NUS),
    f"{CO_RANK_RLS}, ν = 0": (((0,), (1,)), (0.0,)),
}


def run(train, test, kernels, random, reading="groups"):
    """Train all learners on one draw of scores and bases."""
    y = draw_scores(train, reading, random)
    drawn = random.choice(len(y), size=2 * N_BASIS, replace=False)
    halves = drawn[:N_BASIS], drawn[N_BASIS:]
    splits = [
        Split(pairwise_kernels(train.X, **kernel), y, train.groups, halves, None, reading)
        for kernel in kernels
    ]
    tests = [test._replace(X=pairwise_kernels(test.X, train.X, **kernel)) for kernel in kernels]
    models = {"RankRLS": choose(splits, fit_plain)}
    for name, (bases, nus) in LEARNERS.items():
        models[name] = choose(splits, lambda split, b=bases, n=nus: fit_views(split, b, n))
    errors = {
        name: errors_of(predict(model, tests[k], y), test) for name, (model, k) in models.items()
    }
    co_rank_rls, at = models[CO_RANK_RLS]
    apart, at_zero = models[f"{CO_RANK_RLS}, ν = 0"]
    disagreement = (
        co_rank_rls.view_disagreement(tests[at].X, test.groups)[0, 1],
        apart.view_disagreement(tests[at_zero].X, test.groups)[0, 1],
    )
    curves = learning_curves(splits[at], co_rank_rls, tests[at], random)
    return Outcome(errors, {CO_RANK_RLS: co_rank_rls.nu_}, disagreement, *curves)


def choose(splits, fit):
    """The search with the lowest error in cross-validation, and the number of its kernel."""
    searches = [fit(split) for split in splits]
    best = int(np.argmin([search.best_score_ for search in searches]))
    return searches[best], best


def fit_plain(split):
    """RankRLS on the scored parses, each of which is a basis item."""
    scored = np.flatnonzero(~np.isnan(split.y))
    K = split.X[np.ix_(scored, scored)]
    y = split.y[scored]
    groups = split.groups[scored]
    model = RankRLSCV(ALPHAS, cv=5, kernel="precomputed")
    return fit_quietly(model, split._replace(X=K, y=y, groups=groups))


def fit_views(split, bases, nus):
    """Views with these of the two bases."""
    views = [
        View(kernel="precomputed", basis=np.concatenate([split.bases[k] for k in numbers]))
        for numbers in bases
    ]
    return fit_quietly(CoRankRLSCV(ALPHAS, nus=nus, views=views, cv=5), split)


def predict(model, test, y):
    """Scores of the test parses; the plain model knows the scored parses only."""
    is_plain = isinstance(model, RankRLSCV)
    return model.predict(test.X[:, ~np.isnan(y)] if is_plain else test.X)


def main(argv=None):
    """Print the tables and draw the curves."""
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--kernel", choices=KERNELS, default="linear")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--reading", choices=READINGS, default="items", help="(%(default)s)")
    options = parser.parse_args(argv)
    parses = read_parses(options.data)
    kernels = KERNELS[options.kernel]
    outcomes = [
        [
            run(*pair, kernels, np.random.default_rng([repeat, k]), options.reading)
            for k, pair in enumerate((parses, parses[::-1]))
        ]
        for repeat in range(options.repeats)
    ]
    n_train, n_test = (len(np.unique(lists.groups)) for lists in parses)
    of_items = options.reading == "items"
    unit = "parses" if of_items else "sentences"
    n_unscored = len(parses[0].y) // 2 if of_items else n_train // 2
    title = (
        f"the parse sample ({n_train} + {n_test} sentences), half of the {unit} scored, "
        f"{options.kernel} kernel"
    )
    print_errors(title, outcomes)
    name = f"corankrls10_parses_{options.kernel}.png"
    plot(
        options.output / name,
        "the parse sample",
        n_unscored,
        *print_curves(outcomes),
        unit,
    )
    print_notes(
        f"Data differ: {n_train} and {n_test} sentences, used for training and test in turn, at "
        "most 5 parses each; in the paper 500 and 600 with 30 parses and a graph kernel. The test "
        "has 42 sentences; nothing can be concluded from a difference of 0.02.",
        READING_OF_BASELINE,
        f"The curves are in {options.output / name}.",
    )


if __name__ == "__main__":
    record(main)
