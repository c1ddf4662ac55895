"""[CoRankRLS10] Table 1 and Figure 1 on larger data of the same shape: OHSUMED or MQ2008.

    python -m experiments.corankrls10.letor [--dataset ohsumed|mq2008] [--scored 5] [--repeats 5]
        [--reading groups|items]

As in the paper: half of the training data have scores, two views of 20 random basis items each
from all training documents, regularization parameters by fivefold cross-validation over scored
queries, error averaged over test queries, five repeats with other bases, then a learning curve over
the amount of unscored data. The paper says that "only half of sentence-parse pairs in the training
set are scored" (section 6.1), which is half of the items of all groups (--reading items); one can
also read it as all items of half of the groups (--reading groups).

Different: documents of queries instead of parses of sentences, a Gaussian kernel instead of a graph
kernel (its width is chosen in the cross-validation as well), and the five folds of LETOR, each of
which trains on 3/5, tests on 1/5 and leaves the validation part alone. --scored N scores N queries
of each training set instead of half of them (groups only), --width fixes the width of the kernel
(a narrow one makes views that differ), --grid prints the test error for each α and ν and nothing
else, for half of the groups.

The gain of the agreement is told from that of the second basis by two more learners: ν = 0 (the
mean of two sparse models), and a sparse RankRLS on both bases together. Views by columns (the odd
ones, the even ones) are tried as well.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances

from experiments.shared.command_line import make_parser, record
from experiments.shared.letor import FILES, read_folds
from experiments.shared.tables import print_notes, print_table
from rankwise import CoRankRLS, CoRankRLSCV, RankRLSCV, View
from rankwise.metrics import disagreement_error
from rankwise.model_selection import compare

ALPHAS = 10.0 ** np.arange(-8, 2.0, 0.5)
NUS = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0)
WIDTHS = (1.0, 2.0, 4.0)
"""σ of the Gaussian kernel in units of the median distance of documents."""
SHARES = (0.25, 0.5, 0.75, 1.0)
READINGS = ("groups", "items")
"""What is scored: all items of half of the groups, or half of the items of all groups."""
N_BASIS = 20


class Split(NamedTuple):
    """Training documents, NaN for an unscored one; basis items of two views; the median γ.

    `reading` says whether whole groups are unscored, or single items.
    """

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    bases: tuple[np.ndarray, np.ndarray]
    gamma: float
    reading: str = "groups"


class Learner(NamedTuple):
    """Makes views of a split and a γ; searches ν, or has ν = 0."""

    name: str
    make_views: Callable
    searches: bool = False


class Outcome(NamedTuple):
    """Of one draw: errors of the test queries by learner, what Co-RankRLS chose, its curves.

    `curves` has shape (n_nus, n_shares), for ν > 0 each; `independent` is the error of ν = 0.
    """

    errors: dict[str, np.ndarray]
    nus: dict[str, float]
    disagreement: tuple[float, float]
    independent: float
    curves: np.ndarray


def basis_views(split, gamma):
    """Two views, each with its basis: the paper's."""
    return [View(kernel="rbf", gamma=gamma, basis=basis) for basis in split.bases]


def first_basis(split, gamma):
    """The first basis only: sparse RankRLS."""
    return basis_views(split, gamma)[:1]


def both_bases(split, gamma):
    """One view with both bases: sparse RankRLS with as many basis items as the two views have."""
    return [View(kernel="rbf", gamma=gamma, basis=np.concatenate(split.bases))]


def column_views(split, gamma):
    """The odd and the even columns, each with both bases."""
    basis = np.concatenate(split.bases)
    n_columns = split.X.shape[1]
    return [
        View(np.arange(first, n_columns, 2), kernel="rbf", gamma=2 * gamma, basis=basis)
        for first in (0, 1)
    ]


LEARNERS = (
    Learner("Sparse RankRLS, 20 basis items", first_basis),
    Learner("Sparse RankRLS, 40 basis items", both_bases),
    Learner("Co-RankRLS", basis_views, searches=True),
    Learner("Co-RankRLS, ν = 0", basis_views),
    Learner("Co-RankRLS by columns", column_views, searches=True),
    Learner("Co-RankRLS by columns, ν = 0", column_views),
)
LINEAR = "RankRLS, linear"
READING_OF_BASELINE = (
    "The published 0.348 is of 'standard RankRLS' and stands beside RankRLS. Section 6.2 speaks of "
    "'basis vectors for both methods', so it may be of a sparse one: compare it with 'Sparse "
    "RankRLS, 20 basis items', too."
)
CO_RANK_RLS = "Co-RankRLS"


def draw_scores(data, reading, random, n_scored=None):
    """Scores with NaN for those withheld: of half of the groups (or all but `n_scored` of them),
    or of half of the items, whatever group they are in."""
    unit_of_row = units_of_rows(data, reading)
    units = np.unique(unit_of_row)
    scored = random.choice(units, size=n_scored or len(units) // 2, replace=False)
    return np.where(np.isin(unit_of_row, scored), data.y, np.nan)


def draw_split(data, n_scored, random, reading="groups"):
    """Choose the queries or documents that keep their scores, and the bases."""
    y = draw_scores(data, reading, random, n_scored)
    drawn = random.choice(len(y), size=2 * N_BASIS, replace=False)
    sample_X = data.X[random.choice(len(y), size=min(500, len(y)), replace=False)]
    distances = euclidean_distances(sample_X, squared=True)
    gamma = 1 / (2 * np.median(distances[distances > 0]))
    return Split(data.X, y, data.groups, (drawn[:N_BASIS], drawn[N_BASIS:]), gamma, reading)


def units_of_rows(data, reading):
    """What keeps or loses its scores as a whole: the group of each row, or the row itself."""
    if reading == "groups":
        return data.groups
    return np.arange(len(data.y))


def choose(learner, split, widths, nus=NUS):
    """The search over α and ν with the best width; all widths are judged by the same folds."""
    if not learner.searches:
        nus = (0.0,)
    searches = []
    for width in widths:
        views = learner.make_views(split, split.gamma / width**2)
        search = CoRankRLSCV(ALPHAS, nus=nus, views=views, cv=5)
        searches.append(fit_quietly(search, split))
    return min(searches, key=lambda search: search.best_score_)


def fit_quietly(search, data):
    """Fit without a warning if the selected α or ν is at the end of its grid."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*at the edge of the grid")
        return search.fit(data.X, data.y, data.groups)


def errors_of(scores, test):
    """Disagreement error of each test query, NaN where it has no pair; equal scores are wrong."""
    return disagreement_error(
        test.y, scores, test.groups, tied_scores="wrong", per_group=True, undefined="nan"
    )


def run(fold, n_scored, random, widths, nus, reading="groups"):
    """Train all learners on one draw of scores and bases."""
    split = draw_split(fold.train, n_scored, random, reading)
    searches = {learner.name: choose(learner, split, widths, nus) for learner in LEARNERS}
    is_scored = ~np.isnan(split.y)
    scored = split._replace(
        X=split.X[is_scored], y=split.y[is_scored], groups=split.groups[is_scored]
    )
    plain = fit_quietly(RankRLSCV(ALPHAS, cv=5), scored)
    models = {LINEAR: plain, **searches}
    test = fold.test
    errors = {name: errors_of(model.predict(test.X), test) for name, model in models.items()}
    chosen_nus = {name: search.nu_ for name, search in searches.items() if len(search.nus) > 1}
    co_rank_rls = searches[CO_RANK_RLS]
    chosen = co_rank_rls.view_disagreement(test.X, test.groups)[0, 1]
    apart = searches[f"{CO_RANK_RLS}, ν = 0"].view_disagreement(test.X, test.groups)[0, 1]
    return Outcome(
        errors, chosen_nus, (chosen, apart), *learning_curves(split, co_rank_rls, test, random)
    )


def learning_curves(split, search, test, random):
    """The error of ν = 0, and for each other ν those with a part of the unscored data.

    Width and bases are those of `search`, α is the best of each ν in its cross-validation (the
    smallest of equal ones); so the amount of unscored data is all that changes along a curve.
    """
    views = search.best_estimator_.views
    results = search.cv_results_
    best = np.nanargmin(results["mean_score"], axis=1)
    alphas = results["alphas"][0]
    nus = [params["nu"] for params in results["params"]]
    units = units_of_rows(split, split.reading)
    unscored = random.permutation(np.unique(units[np.isnan(split.y)]))
    table = np.empty((len(best), len(SHARES)))
    for k, share in enumerate(SHARES):
        groups = without(split.groups, np.isin(units, unscored[round(share * len(unscored)) :]))
        path = CoRankRLS(views=views).path(split.X, split.y, groups, alphas=alphas, nus=nus)
        predicted = path.predict(test.X)
        for i, at in enumerate(best):
            table[i, k] = np.nanmean(errors_of(predicted[:, i, at], test))
    return float(table[0, 0]), table[1:]


def without(groups, out):
    """Groups in which the rows that are `out` stand alone, so that they make no pair.

    They stay among the rows because basis items are rows.
    """
    _, groups = np.unique(groups, return_inverse=True)
    groups[out] = groups.max() + 1 + np.arange(out.sum())
    return groups


def measure(folds, n_scored, repeats, widths=WIDTHS, nus=NUS, reading="groups"):
    """Outcomes of all repeats and folds, ``outcomes[repeat][fold]``; None scores half."""
    return [
        [
            run(fold, n_scored, np.random.default_rng([repeat, k]), widths, nus, reading)
            for k, fold in enumerate(folds)
        ]
        for repeat in range(repeats)
    ]


def errors_by_query(outcomes):
    """For each learner the error of every test query of all folds, mean over repeats."""
    return {
        name: np.mean(
            [
                np.concatenate([outcome.errors[name] for outcome in of_repeat])
                for of_repeat in outcomes
            ],
            axis=0,
        )
        for name in outcomes[0][0].errors
    }


def print_errors(title, outcomes, tried=NUS):
    """Table 1: ours beside the paper's, and the tests."""
    errors = errors_by_query(outcomes)
    spread = {
        name: np.std(
            [
                np.nanmean(np.concatenate([outcome.errors[name] for outcome in of_repeat]))
                for of_repeat in outcomes
            ]
        )
        for name in errors
    }
    published = {"RankRLS": 0.348, LINEAR: 0.348, CO_RANK_RLS: 0.326}
    flat = [outcome for of_repeat in outcomes for outcome in of_repeat]
    rows = []
    for name, values in errors.items():
        nus = [outcome.nus[name] for outcome in flat if name in outcome.nus]
        chosen = None
        if nus:
            chosen = " ".join(f"{nus.count(nu)}" for nu in tried)
        row = [name, float(np.nanmean(values)), float(spread[name]), published.get(name), chosen]
        rows.append(row)
    print_table(
        f"Table 1 on {title}: disagreement error, mean over the test set",
        [
            "",
            "rankwise\nerror",
            "± over\nrepeats",
            "paper\nparses",
            "how often ν =\n" + " ".join(f"{nu:g}".replace("0.", ".") for nu in tried),
        ],
        rows,
    )
    print(f"\nAgainst {CO_RANK_RLS}, Wilcoxon's signed-rank test over test groups:\n")
    print(compare(errors, baseline=CO_RANK_RLS, test="wilcoxon", greater_is_better=False))
    print_draws(flat)
    chosen, apart = np.mean([outcome.disagreement for outcome in flat], axis=0)
    print(
        f"\nThe two views order {chosen:.1%} of the test pairs differently, {apart:.1%} if ν = 0."
    )


def print_draws(outcomes):
    """The same differences over draws of scored queries, which a test over queries cannot see."""
    means = {
        name: np.array([np.nanmean(outcome.errors[name]) for outcome in outcomes])
        for name in outcomes[0].errors
    }
    rows = []
    for name, values in means.items():
        if name == CO_RANK_RLS:
            continue
        gain = values - means[CO_RANK_RLS]
        standard_error = None
        if len(gain) > 1:
            standard_error = float(gain.std(ddof=1) / len(gain) ** 0.5)
        n_better = f"{(gain > 0).sum()} of {len(gain)}"
        rows.append([name, float(gain.mean()), standard_error, n_better])
    header = ["", "gain of\nCo-RankRLS", "± s.e.\nof draws", "draws in which\nit is better"]
    print_table("Over draws of scored groups and bases", header, rows, 4)


def print_curves(outcomes, tried=NUS):
    """Figure 1 as a table; returns the means."""
    flat = [outcome for of_repeat in outcomes for outcome in of_repeat]
    independent = float(np.mean([outcome.independent for outcome in flat]))
    curves = np.mean([outcome.curves for outcome in flat], axis=0)
    print_table(
        "Figure 1: mean error over the share of the unscored data in use, for each ν",
        ["", "none", *(f"{share:.0%}" for share in SHARES)],
        [
            [f"ν = {nu:g}", independent, *row]
            for nu, row in zip(tried[1:], curves.tolist(), strict=True)
        ],
        4,
    )
    return independent, curves


def print_grid(folds, n_scored, repeats, width):
    """Mean test error for each ν and α, without any choice: does ν do more than α can?"""
    alphas = ALPHAS[::2]
    nus = (0.0, 1.0, 100.0, 1e4)
    tables = []
    for repeat in range(repeats):
        for k, (train, _, test) in enumerate(folds):
            split = draw_split(train, n_scored, np.random.default_rng([repeat, k]))
            predicted = [
                CoRankRLS(views=make(split, split.gamma / width**2))
                .path(split.X, split.y, split.groups, alphas=alphas, nus=several)
                .predict(test.X)
                for make, several in ((basis_views, nus), (both_bases, (0.0,)))
            ]
            scores = np.concatenate(predicted, axis=1)
            errors = errors_of(scores.reshape(len(scores), -1), test)
            tables.append(np.nanmean(errors, axis=0).reshape(scores.shape[1:]))
    names = [*(f"Co-RankRLS, ν = {nu:g}" for nu in nus), "Sparse RankRLS, 40 basis items"]
    means = np.mean(tables, axis=0).tolist()
    print_table(
        f"Test error for each α, kernel width {width:g}",
        ["", *(f"α =\n{alpha:.0e}" for alpha in alphas)],
        [[name, *row] for name, row in zip(names, means, strict=True)],
    )


def plot(path, dataset, n_unscored, independent, curves, unit="queries", tried=NUS):
    """Draw the learning curves."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    amounts = [0, *(round(share * n_unscored) for share in SHARES)]
    for nu, curve in zip(tried[1:], curves, strict=True):
        axes.plot(amounts, [independent, *curve], marker="o", label=f"ν = {nu:g}")
    axes.axhline(independent, color="black", linestyle=":", label="ν = 0")
    axes.set(
        title=f"Co-RankRLS on {dataset}",
        xlabel=f"unscored training {unit}",
        ylabel="disagreement error, test groups",
    )
    low, high = axes.get_ylim()  # differences below 0.01 are to look as small as they are
    axes.set_ylim(min(low, independent - 0.01), max(high, independent + 0.01))
    figure.legend(loc="outside right upper")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(argv=None):
    """Print the tables and draw the curves."""
    parser = make_parser(__doc__, output=True)
    parser.add_argument("--dataset", choices=FILES, default="ohsumed")
    parser.add_argument("--scored", type=int, help="scored queries (half of those of a fold)")
    parser.add_argument(
        "--reading", choices=READINGS, default="items",
        help="score half of the items, or all items of half of the groups (%(default)s)",
    )  # fmt: skip
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--width", type=float, help="of the kernel, in median distances (chosen)")
    parser.add_argument(
        "--nus", type=float, nargs="+", default=NUS, help="0 and others, or one without choice"
    )
    parser.add_argument("--grid", action="store_true", help="only print errors over α and ν")
    options = parser.parse_args(argv)
    reading = options.reading
    if options.scored or options.grid:
        reading = "groups"
    folds = read_folds(options.data, options.dataset)
    if options.grid:
        print_grid(folds, options.scored, options.repeats, options.width or 2.0)
        return
    unit = "documents"
    if reading == "groups":
        unit = "queries"
    n_units = len(np.unique(units_of_rows(folds[0].train, reading)))
    n_scored = options.scored or n_units // 2
    widths = WIDTHS
    suffix = ""  # of the file of the plot
    if options.width is not None:
        widths = (options.width,)
        suffix = f"_width{options.width:g}"
    outcomes = measure(folds, options.scored, options.repeats, widths, options.nus, reading)
    title = f"{options.dataset}, about {n_scored} of {n_units} {unit} scored"
    print_errors(title, outcomes, options.nus)
    print_notes(
        "Data differ: queries and documents, a Gaussian kernel; in the paper sentences and parses "
        "of BioInfer, a graph kernel. Only the sign of a difference can be compared.",
        READING_OF_BASELINE,
        "What the second basis is worth shows in the rows of 40 items and of ν = 0.",
    )
    if len(options.nus) > 1:
        path = options.output / f"corankrls10_{options.dataset}_{n_scored}{suffix}.png"
        means = print_curves(outcomes, options.nus)
        plot(path, options.dataset, n_units - n_scored, *means, unit, tried=options.nus)
        print_notes(f"The curves are in {path}.")


if __name__ == "__main__":
    record(main)
