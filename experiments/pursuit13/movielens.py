"""[Pursuit13] Tables 3 and 4: the order of movies, from the ratings of other users (MovieLens).

    python -m experiments.pursuit13.movielens [--repeats 10] [--users 12] [--hold-out 4] [--table 4]
    python -m experiments.pursuit13.movielens --density

The experiment of `pursuit13_jester` on MovieLens. Different from the paper: 100,000 ratings of 943
users instead of a million of 6,040, so a group has fewer than 300 reference users (all of them are
taken) and the same test users come again in other repeats; 12 test users a repeat instead of 300
unless --users says otherwise; one choice of parameters for the ten repeats of a group.

--density asks how much of the distance to the paper is that its reference users rated fewer of the
movies: the same users are ranked for again with a part of the reference ratings only.
"""

import numpy as np

from experiments.pursuit13.draws import draw_groups, pool
from experiments.pursuit13.jester import (
    print_comparison,
    print_errors,
    print_half_scored,
    published,
)
from experiments.pursuit13.methods import SUPERVISED
from experiments.pursuit13.users import GROUPS, draw_runs, make_user_parser, measure
from experiments.shared.command_line import record
from experiments.shared.ratings import read_movielens, tied_share
from experiments.shared.tables import print_notes, print_table

PUBLISHED_3 = published(
    (0.495, 0.494, 0.481, 0.479, 0.484, 0.480),
    (0.494, 0.497, 0.472, 0.472, 0.478, 0.472),
    (0.482, 0.484, 0.453, 0.455, 0.460, 0.453),
)
PUBLISHED_4 = published(
    (0.497, 0.498, 0.487, 0.486, 0.490, 0.487, 0.481),
    (0.495, 0.495, 0.479, 0.479, 0.485, 0.479, 0.474),
    (0.487, 0.485, 0.464, 0.463, 0.470, 0.462, 0.458),
    last="SS Ranking Pursuit",
)
RATING_SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03)
N_MOVIES = 3900  # of the paper's data


def tied_shares(runs):
    """The share of tied pairs among the test items of each test user."""
    return np.array([tied_share(task.y[task.n_train :]) for run in runs for task in run.test])


def with_ties(errors, shares):
    """The errors by equation 1 to the letter: a pair of equal ratings costs one half."""
    return (1 - shares) * errors + shares / 2


def print_with_ties(runs, results):
    """The table once more, by equation 1 to the letter."""
    shares_of_groups = [tied_shares(group) for group in runs]
    rows = []
    for name, results_of_groups in results.items():
        row = [name]
        for shares, result in zip(shares_of_groups, results_of_groups, strict=True):
            errors = with_ties(result.values["error"], shares)
            row.append(float(np.nanmean(errors)))
        rows.append(row)
    mean_shares = [float(shares.mean()) for shares in shares_of_groups]
    rows.append(["share of tied pairs", *mean_shares])
    names = [f"rankwise\n{low}–{high}" for low, high in GROUPS]
    print_table(
        "The same if pairs of equal ratings count one half (equation 1)", ["", *names], rows
    )


def ratings_a_movie(ratings, runs, rating_share):
    """How many of the remaining reference ratings a movie has: of all movies, of those to rank."""
    means = []
    means_to_rank = []
    for run in runs:
        n_ratings = rating_share * (~np.isnan(ratings[run.references])).sum(axis=0)
        movies_to_rank = np.concatenate([task.items for task in run.test])
        means.append(n_ratings.mean())
        means_to_rank.append(n_ratings[movies_to_rank].mean())
    return float(np.mean(means)), float(np.mean(means_to_rank))


def print_density(ratings, options):
    """Errors of RankRLS, on the same users, with fewer and fewer of the reference ratings."""
    (method,) = (method for method in SUPERVISED if method.name == "RankRLS")
    rows = []
    for rating_share in RATING_SHARES:
        densities = []
        error_cells = []
        errors_with_ties = []
        for bounds in GROUPS:
            runs = draw_runs(ratings, bounds, options, seed=3, rating_share=rating_share)
            errors = measure(method, runs, widths=options.widths).values["error"]
            standard_error = np.nanstd(errors) / len(errors) ** 0.5
            error_cells.append(f"{np.nanmean(errors):.3f} ±{standard_error:.3f}")
            errors_with_ties.append(float(np.nanmean(with_ties(errors, tied_shares(runs)))))
            of_all, of_movies_to_rank = ratings_a_movie(ratings, runs, rating_share)
            densities.append(f"{of_all:.2f} {of_movies_to_rank:.1f}")
        rows.append([f"{rating_share:g}", *densities, *error_cells, *errors_with_ties])
    published_densities = [f"{300 * n_ratings / N_MOVIES:.1f}" for n_ratings in (30, 50, 70)]
    rows.append(["paper", *published_densities, *2 * PUBLISHED_3[method.name]])
    header = ["kept"]
    for quantity in ("ratings", "error", "ties ½"):
        header += [f"{quantity}\n{low}–{high}" for low, high in GROUPS]
    print_table(
        "RankRLS with a share of the reference ratings: ratings a movie (of all movies, of those "
        "to rank) and disagreement error ± standard error over users",
        header,
        rows,
    )
    print_notes(
        f"The paper's densities are not published: 300 users with 30, 50 or 70 ratings of "
        f"{N_MOVIES} movies would make these.",
        "'ties ½': pairs of equal ratings count one half, as in equation 1.",
        "Users, their movies and halves are the same in all rows; width and alpha are chosen again "
        "in each.",
    )


def main(argv=None):
    """Print the tables."""
    parser = make_user_parser(__doc__)
    parser.add_argument("--table", type=int, choices=(3, 4))
    parser.add_argument(
        "--density", action="store_true", help="only RankRLS, with a part of the reference ratings"
    )
    parser.set_defaults(users=12, hold_out=4)
    options = parser.parse_args(argv)
    ratings = read_movielens(options.data)
    counts = (~np.isnan(ratings)).sum(axis=1)
    sizes = [int(((counts >= low) & (counts <= high)).sum()) for low, high in GROUPS]
    if options.density or options.table is None:
        print_density(ratings, options)
    if options.density:
        return
    if options.table in (None, 3):
        runs, results = pool(draw_groups(SUPERVISED, ratings, options, seed=3))
        title = "Table 3: disagreement error, all training ratings scored"
        print_errors(title, results, PUBLISHED_3)
        print_comparison(runs, results, "Ranking Pursuit")
        print_with_ties(runs, results)
    if options.table in (None, 4):
        print_half_scored("Table 4", ratings, options, PUBLISHED_4, seed=4)
    print_notes(
        f"Data differ: 100,000 ratings of {len(ratings)} users (paper: a million of 6,040); "
        f"{', '.join(map(str, sizes))} users in the three groups, of whom up to 300 are reference "
        f"users. {options.repeats} repeats of {options.users} test users (paper: 10 of 300); "
        f"parameters by {options.repeats * options.hold_out} others.",
        "Tests are over users, each with the mean over the repeats and groups that drew him or "
        "her. Pairs of equal ratings do not count in the tables beside the paper's; pairs of equal "
        "scores count one half.",
        "'items in model' is the mean share of the training items (of Table 4's first six rows: of "
        "the scored ones) that have a coefficient.",
    )


if __name__ == "__main__":
    record(main)
