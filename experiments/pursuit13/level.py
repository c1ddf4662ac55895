"""[Pursuit13] Table 5: why the squared error of Ranking Pursuit depends on the kernel's width.

    python -m experiments.pursuit13.level

With β = 0 the objective compares scores only, so it does not see their level. The dual coefficients
of RankRLS sum to zero, which keeps the level near zero whatever the kernel. A pursuit adds one
function at a time: a wide kernel is nearly constant, so its coefficients, and with them the level,
are large. The squared error is therefore split here: with the level of the model, with the level of
the training scores at zero (the mean of the ratings of all users is near zero), and of the
differences only. The 60–80 group of reference users, six steps, α = 2⁻⁴.
"""

import numpy as np

from experiments.pursuit13.methods import KERNEL
from experiments.pursuit13.users import GROUPS, draw_runs, make_user_parser
from experiments.shared.command_line import record
from experiments.shared.ratings import read_jester
from experiments.shared.tables import print_notes, print_table
from rankwise import RankingPursuit, RankRLS

MODELS = {
    "Ranking Pursuit": RankingPursuit(6, backfit=None, **KERNEL),
    "RankRLS": RankRLS(2.0**-4, **KERNEL),
}


def squared_errors(model, run, task, width):
    """Squared error of a test user, with the training level at zero, and of differences only."""
    K = np.exp(-run.distances / (2 * width**2 * run.median))
    train, test = np.split(task.items, [task.n_train])
    y_train, y_test = np.split(task.y, [task.n_train])
    model.fit(K[np.ix_(train, train)], y_train)
    scores = model.predict(K[np.ix_(test, train)])
    level = model.predict(K[np.ix_(train, train)]).mean()
    residual = scores - y_test
    return np.mean(residual**2), np.mean((residual - level) ** 2), residual.var()


def main(argv=None):
    """Print the table."""
    parser = make_user_parser(__doc__)
    parser.set_defaults(repeats=5, hold_out=1)
    options = parser.parse_args(argv)
    runs = draw_runs(read_jester(options.data), GROUPS[-1], options, seed=1)
    rows = []
    for width in options.widths:
        for name, model in MODELS.items():
            errors = np.array(
                [squared_errors(model, run, task, width) for run in runs for task in run.test]
            )
            mean = errors.mean(axis=0)
            rows.append([name, f"{width:g}", mean[0], np.median(errors[:, 0]), mean[1], mean[2]])
    print_table(
        "Squared error on Jester, 60–80 (paper: Ranking Pursuit 29.1, RankRLS 29.2)",
        ["", "width", "mean", "median", "training\nlevel 0", "differences\nonly"],
        rows,
        1,
    )
    print_notes(
        f"{len(runs)} × {options.users} test users; widths in units of the median distance.",
        "'differences only' is the variance of the residuals of a user: the best level for each.",
    )


if __name__ == "__main__":
    record(main)
