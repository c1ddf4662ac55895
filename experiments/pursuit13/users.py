"""[Pursuit13] section 6: each test user's ratings are a list to rank, other users the features.

A run draws up to 300 reference users of one group (by their number of ratings), whose ratings are
the features of the items; where one has not rated an item, the median of his or her ratings stands
in. Half of the ratings of a test user are for training, half for testing; in semi-supervised runs
only half of the former have a score. All parameters are those with the lowest mean error over
hold-out users drawn in the same way, as in the paper.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics.pairwise import euclidean_distances

from experiments.pursuit13.methods import follow_path, pursue
from experiments.shared.command_line import make_parser
from rankwise import RankingPursuit, View
from rankwise.metrics import disagreement_error

__all__ = [
    "GROUPS",
    "WIDTHS",
    "Results",
    "Run",
    "Task",
    "by_user",
    "draw_runs",
    "judge",
    "make_user_parser",
    "measure",
    "prepare",
    "reference_features",
    "rows_of_table",
    "thin",
]

GROUPS = ((20, 40), (40, 60), (60, 80))
WIDTHS = tuple(2.0 ** np.arange(-2, 4))
"""σ of exp(−d²/(2σ²)) in units of the median distance of items: 1/4, 1/2 … 8."""
MEASURES = ("error", "mse")


class Task(NamedTuple):
    """The ratings of a user: the first `n_train` are to train on, the first `n_scored` known."""

    user: int
    items: np.ndarray
    y: np.ndarray
    n_train: int
    n_scored: int


class Run(NamedTuple):
    """Features of all items, their squared distances and the median of those; users to choose by,
    to test on and to take features from."""

    X: np.ndarray
    distances: np.ndarray
    median: float
    hold_out: list[Task]
    test: list[Task]
    references: np.ndarray


class Choice(NamedTuple):
    """Width, number on the path and other parameters with the lowest mean error on hold-out."""

    error: float
    width: float
    value: float
    setting: dict


class Results(NamedTuple):
    """Of one method: by measure its choice and a value per test user; then the share of the
    training items that are in the model, and the lowest hold-out error of each setting."""

    choices: dict[str, Choice]
    values: dict[str, np.ndarray]
    density: np.ndarray
    by_setting: list[float]


def make_user_parser(doc):
    """The command line of an experiment of this kind."""
    parser = make_parser(doc)
    parser.add_argument("--repeats", type=int, default=10, help="runs of a group (%(default)s)")
    parser.add_argument("--users", type=int, default=30, help="test users a run (%(default)s)")
    parser.add_argument(
        "--draws", type=int, default=1,
        help="times that all is drawn and chosen again (%(default)s)",
    )  # fmt: skip
    parser.add_argument(
        "--widths", type=float, nargs="+", default=WIDTHS,
        help="of the kernel, in median distances; one is chosen (1/4, 1/2 … 8)",
    )  # fmt: skip
    parser.add_argument(
        "--hold-out", type=int, default=10, help="hold-out users a run (%(default)s)"
    )
    return parser


def reference_features(ratings, users):
    """Ratings of the reference users as columns; the median of a user where there is none."""
    known = ratings[users]
    return np.where(np.isnan(known), np.nanmedian(known, axis=1)[:, None], known).T


def draw_runs(ratings, bounds, options, seed, scored=1.0, kept=1.0):
    """All repeats of a group of reference users, with ``bounds[0]`` to ``bounds[1]`` ratings.

    Nobody is a reference user and a test user at once. Test users have 50 to 300 ratings; one who
    gives the same rating to all is left out. `kept` is the share of the ratings of the reference
    users that make the features; users and their items are the same for any share.
    """
    random = np.random.default_rng([seed, *bounds])
    runs = [
        _draw_run(ratings, bounds, options.users, options.hold_out, random, scored)
        for _ in range(options.repeats)
    ]
    if kept == 1:
        return runs
    thinner = np.random.default_rng([seed, *bounds, 1])
    return [_with_features(run, thin(ratings, run.references, kept, thinner)) for run in runs]


def thin(ratings, users, kept, random):
    """Features from this share of the ratings, drawn at random; a user left with none is no
    feature."""
    known = ratings[users]
    known = np.where(random.random(known.shape) < kept, known, np.nan)
    known = known[~np.isnan(known).all(axis=1)]
    return reference_features(known, np.arange(len(known)))


def _with_features(run, X):
    distances = euclidean_distances(X, squared=True)
    positive = distances[distances > 0]
    median = float(np.median(positive)) if len(positive) else 1.0
    return run._replace(X=X, distances=distances, median=median)


def _draw_run(ratings, bounds, n_users, n_hold_out, random, scored):
    counts = (~np.isnan(ratings)).sum(axis=1)
    group = np.flatnonzero((counts >= bounds[0]) & (counts <= bounds[1]))
    references = random.choice(group, size=min(300, len(group)), replace=False)
    eligible = np.setdiff1d(np.flatnonzero((counts >= 50) & (counts <= 300)), references)
    users = random.choice(eligible, size=n_users + n_hold_out, replace=False)
    test, hold_out = (
        [_make_task(ratings, user, random, scored) for user in part if _is_varied(ratings[user])]
        for part in (users[:n_users], users[n_users:])
    )
    run = Run(None, None, None, hold_out, test, references)
    return _with_features(run, reference_features(ratings, references))


def _is_varied(ratings):
    return np.nanmin(ratings) < np.nanmax(ratings)


def _make_task(ratings, user, random, scored):
    items = random.permutation(np.flatnonzero(~np.isnan(ratings[user])))
    n_train = len(items) // 2
    n_scored = max(2, round(scored * n_train))
    while not _is_varied(ratings[user, items[:n_scored]]):  # nothing to learn the order from
        items = random.permutation(items)
    return Task(int(user), items, ratings[user, items], n_train, n_scored)


def measure(method, runs, measures=("error",), widths=WIDTHS):
    """Choose parameters on the hold-out users of all runs, then judge by the test users."""
    found = {}  # of a width and a setting: mean over users, shape (n_measures, n_path)
    for width in widths:
        for k, setting in enumerate(method.settings):
            values = [
                judge(method, run, task, width, setting, method.path)[0]
                for run in runs
                for task in run.hold_out
            ]
            found[width, k] = np.nanmean(values, axis=0)
    choices = {name: _choose(method, found, name) for name in measures}
    values = {}
    density = np.empty(0)
    for name, choice in choices.items():
        judged = [
            judge(method, run, task, choice.width, choice.setting, [choice.value])
            for run in runs
            for task in run.test
        ]
        values[name] = np.array([value[MEASURES.index(name), 0] for value, _ in judged])
        if name == measures[0]:
            density = np.array([share for _, share in judged])
    by_setting = [
        float(min(found[width, k][MEASURES.index(measures[0])].min() for width in widths))
        for k in range(len(method.settings))
    ]
    return Results(choices, values, density, by_setting)


def _choose(method, found, name):
    row = MEASURES.index(name)
    (width, k), table = min(found.items(), key=lambda pair: pair[1][row].min())
    at = int(table[row].argmin())
    return Choice(float(table[row, at]), float(width), method.path[at], method.settings[k])


def prepare(method, run, task, width, setting):
    """A model with its parameters, features or kernel values of all items of a user, and the
    scores of the training items, NaN for an unscored one."""
    n_rows = task.n_train if method.uses_unscored else task.n_scored
    y = np.where(np.arange(n_rows) < task.n_scored, task.y[:n_rows], np.nan)
    model = clone(method.model).set_params(**setting, **method.adapt(task.n_scored))
    if method.views:
        model.set_params(kernel="rbf", views=_views(run, method.views, width))
        return model, run.X[task.items], y
    distances = run.distances[np.ix_(task.items, task.items[:n_rows])]
    return model, np.exp(-distances / (2 * width**2 * run.median)), y


def judge(method, run, task, width, setting, path):
    """Error and mean squared error on the test items for each number of the path, shape (2, n),
    and the share of training items that the (first) model uses."""
    model, X, y = prepare(method, run, task, width, setting)
    n_rows = len(y)
    way = pursue if isinstance(model, RankingPursuit) else follow_path
    scores, size = (method.learn or way)(model, X, y, path)
    if method.has_level:
        scores = scores + (y[:, None] - scores[:n_rows]).mean(axis=0)
    truth = task.y[task.n_train :]
    scores = scores[task.n_train :]
    errors = disagreement_error(truth, scores, undefined="nan")
    return np.stack([errors, np.mean((truth[:, None] - scores) ** 2, axis=0)]), size / n_rows


def _views(run, n_views, width):
    """Parts of the reference users; distances are taken to grow with the number of columns."""
    n_columns = run.X.shape[1]
    parts = np.array_split(np.arange(n_columns), n_views)
    scale = 2 * width**2 * run.median
    return [View(part, kernel="rbf", gamma=n_columns / len(part) / scale) for part in parts]


def by_user(runs, values):
    """One value for each user, the mean over the runs that tested him or her.

    `runs` and `values` are lists over groups of reference users.
    """
    users = np.array([task.user for group in runs for run in group for task in run.test])
    _, codes = np.unique(users, return_inverse=True)
    values = np.concatenate(values)
    known = ~np.isnan(values)
    sums = np.bincount(codes[known], values[known], minlength=codes.max() + 1)
    counts = np.bincount(codes[known], minlength=codes.max() + 1)
    return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)


def rows_of_table(results, published, measure="error"):
    """Rows of a table from ``results[name]``, a list over groups: ours, published, and the share
    of the items in the model, which is known for the first measure only."""
    rows = []
    for name, of_group in results.items():
        ours = [float(np.nanmean(result.values[measure])) for result in of_group]
        row = [name, *ours, *published.get(name, (None,) * len(of_group))]
        if measure == next(iter(of_group[0].choices)):
            row.append(float(np.mean([result.density.mean() for result in of_group])))
        rows.append(row)
    return rows
