"""Where the gain of semi-supervised ranking pursuit comes from: Jester, one thing varied at a time.

    python -m experiments.pursuit13.gain [--shares 0.5 0.25 0.12] [--users 10] [--hold-out 4]

The experiment of [Pursuit13] Table 2 for the group 60–80, with ν fixed (kernel width and number of
steps are chosen by hold-out users for each), fewer and fewer scored jokes, and other views: the
paper's random halves of the dictionary without and with back-fitting, or halves of the reference
users (the columns), which see different features. With ν = 0 the unscored jokes have no say (but
as functions of the dictionary); the two views share the residual and nothing else. What is better
than that is the gain of the unscored jokes.
"""

import numpy as np

from experiments.pursuit13.methods import NUS, PURSUIT, STEPS, TWO_VIEWS, Method
from experiments.pursuit13.users import (
    GROUPS,
    WIDTHS,
    by_user,
    draw_runs,
    make_user_parser,
    measure,
    prepare,
)
from experiments.shared.command_line import record
from experiments.shared.ratings import read_jester
from experiments.shared.tables import print_notes, print_table
from rankwise.metrics import disagreement_error
from rankwise.model_selection import compare

BOUNDS = (60, 80)
SHARES = (0.5, 0.25, 0.12)
ONE_VIEW = (
    Method("Ranking Pursuit", PURSUIT, STEPS),
    Method("unscored jokes in the dictionary", PURSUIT, STEPS, uses_unscored=True),
)
VARIANTS = (
    Method("two views: halves of the jokes", TWO_VIEWS, STEPS, uses_unscored=True),
    Method(
        "– back-fitted in every step", TWO_VIEWS, STEPS, ({"backfit": "every"},), uses_unscored=True
    ),
    Method("two views: halves of the users", TWO_VIEWS, STEPS, uses_unscored=True, views=2),
)


def with_nu(variant, nu):
    """The variant with this ν only."""
    settings = tuple({**setting, "nu": nu} for setting in variant.settings)
    return variant._replace(settings=settings)


def measure_share(runs, widths=WIDTHS):
    """Errors by user of each method; of the variants with every ν."""
    results = {(method.name, None): measure(method, runs, widths=widths) for method in ONE_VIEW}
    for variant in VARIANTS:
        for nu in NUS:
            results[variant.name, nu] = measure(with_nu(variant, nu), runs, widths=widths)
    return {key: by_user([runs], [result.values["error"]]) for key, result in results.items()}


def make_rows(errors):
    """Mean errors, a row for each variant; p of the best ν > 0 against ν = 0, corrected for 4."""
    rows = [
        [method.name, float(np.nanmean(errors[method.name, None])), *(None,) * len(NUS)]
        for method in ONE_VIEW
    ]
    for variant in VARIANTS:
        values = {f"{nu:g}": errors[variant.name, nu] for nu in NUS}
        tests = compare(values, baseline="0", test="wilcoxon", greater_is_better=False).rows
        best = min(tests, key=lambda row: row.mean_a)
        means = [float(np.nanmean(errors_of_nu)) for errors_of_nu in values.values()]
        rows.append([variant.name, *means, f"{best.p_adjusted:.2g}"])
    return rows


def print_dependence(runs, width=3.0, n_steps=8):
    """How differently two views that need not agree order the test jokes."""
    rows = []
    for variant in VARIANTS:
        errors_of_users = [
            _view_errors(with_nu(variant, 0.0), run, task, width, n_steps)
            for run in runs
            for task in run.test
        ]
        first, second, disagreement = np.nanmean(errors_of_users, axis=0).tolist()
        disagreement_if_independent = first * (1 - second) + second * (1 - first)
        rows.append([variant.name, first, second, disagreement, disagreement_if_independent])
    print_table(
        f"ν = 0, {n_steps} steps, width {width:g}: how dependent are the views?",
        ["", "error\nfirst", "error\nsecond", "pairs that\ndiffer", "were errors\nindependent"],
        rows,
    )


def _view_errors(variant, run, task, width, n_steps):
    """Errors of both views, and the share of pairs that they order differently."""
    model, X, y = prepare(variant, run, task, width, variant.settings[0])
    model.set_params(n_basis=n_steps).fit(X[: len(y)], y)
    scores = model.predict_views(X[task.n_train :])
    truth = task.y[task.n_train :]
    errors = disagreement_error(truth, scores, undefined="nan")
    return [*errors, disagreement_error(scores[:, 0], scores[:, 1], undefined="nan")]


def print_confirmation(ratings, options):
    """The strongest agreement with the fewest scores once more, on other users of all groups."""
    methods = [ONE_VIEW[0], *(with_nu(VARIANTS[0], nu) for nu in (0.0, NUS[-1]))]
    names = ["one view", "ν = 0", f"ν = {NUS[-1]:g}"]
    runs = [draw_runs(ratings, bounds, options, seed=8, scored=SHARES[-1]) for bounds in GROUPS]
    errors = {}
    for name, method in zip(names, methods, strict=True):
        results = [measure(method, group, widths=options.widths) for group in runs]
        errors[name] = by_user(runs, [result.values["error"] for result in results])
    print(f"\nOther users, {SHARES[-1]:.0%} of the training jokes scored, halves of the jokes:\n")
    print(compare(errors, baseline=names[-1], test="wilcoxon", greater_is_better=False))


def main(argv=None):
    """Print a table for each number of scored jokes."""
    parser = make_user_parser(__doc__)
    parser.set_defaults(users=10, hold_out=4)
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="of scored jokes")
    options = parser.parse_args(argv)
    ratings = read_jester(options.data)
    for share in options.shares:
        runs = draw_runs(ratings, BOUNDS, options, seed=7, scored=share)
        tasks = [task for run in runs for task in run.test]
        n_scored = np.mean([task.n_scored for task in tasks])
        n_train = np.mean([task.n_train for task in tasks])
        print_table(
            f"{n_scored:.1f} of {n_train:.1f} training jokes scored: disagreement error",
            ["", *(f"ν = {nu:g}" for nu in NUS), "p of best\nagainst 0"],
            make_rows(measure_share(runs, options.widths)),
            4,
        )
    print_dependence(draw_runs(ratings, BOUNDS, options, seed=7, scored=0.5))
    print_confirmation(ratings, options)
    print_notes(
        f"{options.repeats * options.users} test users; p is Wilcoxon's over users, by Holm "
        f"corrected for {len(NUS) - 1} comparisons; the best ν is picked on the test users, so "
        "p is what the most favorable reading gives.",
        "The first two rows have one view and no ν.",
    )


if __name__ == "__main__":
    record(main)
