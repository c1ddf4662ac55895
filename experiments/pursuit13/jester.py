"""[Pursuit13] Tables 1, 2 and 5: the order of jokes, from the ratings of other users (Jester).

    python -m experiments.pursuit13.jester [--table 2] [--draws 3] [--users 30] [--hold-out 6]

As in the paper: 300 reference users of three groups by their number of ratings, test users with 50
ratings or more, half of their ratings to train and half to test, half of the former without score
in Table 2, a Gaussian kernel, all parameters by hold-out users, disagreement error averaged over
users, ten repeats. Different: the ratings are file 1 of 3, in which every user rated 36 jokes or
more, so the group "20–40" is 36 to 40; 30 test users a repeat instead of 300 unless --users says
otherwise; one choice of parameters for the ten repeats of a group; widths from 1/4 to 8 median
distances. --draws does all of it again with other users and another choice of parameters.
"""

from experiments.pursuit13.draws import draw_groups, pool, print_choices, print_gains, print_widths
from experiments.pursuit13.methods import (
    ALPHAS,
    KERNEL,
    SEMI_SUPERVISED,
    STEPS,
    SUPERVISED,
    Method,
    paper_beta,
)
from experiments.pursuit13.users import GROUPS, by_user, make_user_parser, rows_of_table
from experiments.shared.command_line import record
from experiments.shared.ratings import read_jester
from experiments.shared.tables import print_notes, print_table
from rankwise import RankingPursuit, RankRLS
from rankwise.model_selection import compare

PURSUIT = RankingPursuit(backfit=None, **KERNEL)
COMBINED = RankingPursuit(backfit=None, fit_intercept=False, **KERNEL)
LEVELS = (
    Method("CRRP", COMBINED, STEPS, adapt=lambda n_scored: {"beta": paper_beta(n_scored)}),
    Method("CRRP, rankwise's β = 1/2", COMBINED, STEPS, ({"beta": 0.5},)),
    Method("RLS, free level", RankRLS(**KERNEL), ALPHAS, has_level=True),
    Method("Matching Pursuit, free level", PURSUIT, STEPS, ({"beta": 1},)),
)
NAMES = ("RLS", "Matching Pursuit", "RankSVM", "RankRLS", "Sparse RankRLS", "Ranking Pursuit")


def published(*groups, last=None):
    """By method what the paper has for the three groups of reference users."""
    names = NAMES
    if last is not None:
        names = (*NAMES, last)
    errors_of_methods = zip(*groups, strict=True)
    return dict(zip(names, errors_of_methods, strict=True))


PUBLISHED_1 = published(
    (0.425, 0.428, 0.412, 0.409, 0.414, 0.410, 0.413),
    (0.419, 0.417, 0.404, 0.407, 0.410, 0.404, 0.408),
    (0.383, 0.381, 0.372, 0.374, 0.380, 0.373, 0.373),
    last="CRRP",
)
PUBLISHED_2 = published(
    (0.449, 0.451, 0.428, 0.429, 0.431, 0.428, 0.419),
    (0.434, 0.433, 0.417, 0.418, 0.424, 0.417, 0.411),
    (0.405, 0.404, 0.391, 0.393, 0.397, 0.393, 0.381),
    last="SS Ranking Pursuit",
)
PUBLISHED_5 = published(  # the row of CRRP is cut off in our copy of the paper
    (21.6, 20.1, 34.2, 33.8, 36.5, 34.0),
    (19.3, 18.7, 31.6, 31.3, 33.8, 30.9),
    (15.2, 14.9, 28.9, 29.2, 32.9, 29.1),
)


def print_errors(title, results, published, measure="error", digits=3):
    """A table of ours beside the paper's."""
    names = [f"{low}–{high}" for low, high in GROUPS]
    rows = rows_of_table(results, published, measure)
    header = ["", *(f"rankwise\n{name}" for name in names), *(f"paper\n{name}" for name in names)]
    header += ["items in\nmodel"] * (len(rows[0]) - len(header))
    print_table(title, header, rows, digits)


def print_comparison(runs, results, baseline, measure="error"):
    """Wilcoxon's test over users of each method against the baseline."""
    values = {
        name: by_user(runs, [result.values[measure] for result in of_group])
        for name, of_group in results.items()
    }
    print(f"\nAgainst {baseline}, Wilcoxon's signed-rank test over users, groups taken together:\n")
    print(compare(values, baseline=baseline, test="wilcoxon", greater_is_better=False))


def print_half_scored(table, ratings, options, published, seed):
    """What the learners make of half of the scores, and where the gain comes from; the draws."""
    draws = draw_groups(SEMI_SUPERVISED, ratings, options, seed=seed, scored=0.5)
    runs, results = pool(draws)
    title = f"{table}: disagreement error, half of the training ratings scored"
    print_errors(title, results, published)
    print_comparison(runs, results, "SS Ranking Pursuit")
    print_gains(draws, "SS Ranking Pursuit")
    print_choices(draws)
    return draws


def main(argv=None):
    """Print the tables."""
    parser = make_user_parser(__doc__)
    parser.add_argument("--table", type=int, choices=(1, 2, 5), help="1 and 5 come together")
    options = parser.parse_args(argv)
    ratings = read_jester(options.data)
    if options.table != 2:
        draws = draw_groups(
            (*SUPERVISED, *LEVELS), ratings, options, seed=1, measures=("error", "mse")
        )
        runs, results = pool(draws)
        title = "Tables 1 and 5: disagreement error, all training ratings scored"
        print_errors(title, results, PUBLISHED_1)
        print_comparison(runs, results, "Ranking Pursuit")
        title = "Table 5: mean squared error, parameters chosen by it"
        print_errors(title, results, PUBLISHED_5, "mse", 1)
        print_comparison(runs, results, "CRRP", "mse")
    if options.table in (None, 2):
        draws = print_half_scored("Table 2", ratings, options, PUBLISHED_2, seed=2)
    print_widths(draws)
    n_users = options.draws * options.repeats * options.users
    print_notes(
        f"Data differ: file 1 of 3 ({len(ratings)} of 73,421 users), where all rated 36 jokes or "
        f"more; group 20–40 is 36–40. {options.draws} × {options.repeats} repeats of "
        f"{options.users} test users, {n_users} a group (paper: 10 of 300); parameters of a draw "
        f"by {options.repeats * options.hold_out} others.",
        "'items in model' is the mean share of the training items (of Table 2's first six rows: of "
        "the scored ones) that have a coefficient.",
        "A list of one user with all its pairs has the loss of regression with a free level: "
        "RankRLS is RLS with a free level, Ranking Pursuit is Matching Pursuit with one. What "
        "sets 'RLS' apart is that it has no level of its own (nor in the paper, it seems).",
        "CRRP has β = 1/2 of the paper, whose L is a sum over pairs; ours is a mean, so it is "
        "β = 2/(n + 1) here.",
    )


if __name__ == "__main__":
    record(main)
