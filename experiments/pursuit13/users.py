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
    reference_ratings = ratings[users]
    medians = np.nanmedian(reference_ratings, axis=1)
    filled = np.where(np.isnan(reference_ratings), medians[:, None], reference_ratings)
    return filled.T


def draw_runs(ratings, bounds, options, seed, scored=1.0, rating_share=1.0):
    """All repeats of a group of reference users, with ``bounds[0]`` to ``bounds[1]`` ratings.

    Nobody is a reference user and a test user at once. Test users have 50 to 300 ratings; one who
    gives the same rating to all is left out. `rating_share` is the share of the ratings of the
    reference users that make the features; users and their items are the same for any share.
    """
    random = np.random.default_rng([seed, *bounds])
    runs = [
        _draw_run(ratings, bounds, options.users, options.hold_out, random, scored)
        for _ in range(options.repeats)
    ]
    if rating_share == 1:
        return runs
    thinning_random = np.random.default_rng([seed, *bounds, 1])
    return [
        _with_features(run, thin(ratings, run.references, rating_share, thinning_random))
        for run in runs
    ]


def thin(ratings, users, rating_share, random):
    """Features from this share of the ratings, drawn at random; a user left with none is no
    feature."""
    reference_ratings = ratings[users]
    is_drawn = random.random(reference_ratings.shape) < rating_share
    reference_ratings = np.where(is_drawn, reference_ratings, np.nan)
    has_ratings = ~np.isnan(reference_ratings).all(axis=1)
    reference_ratings = reference_ratings[has_ratings]
    return reference_features(reference_ratings, np.arange(len(reference_ratings)))


def _with_features(run, X):
    """The run with these features, their distances and the median of the positive ones."""
    distances = euclidean_distances(X, squared=True)
    positive = distances[distances > 0]
    median = 1.0
    if len(positive):
        median = float(np.median(positive))
    return run._replace(X=X, distances=distances, median=median)


def _draw_run(ratings, bounds, n_users, n_hold_out, random, scored):
    n_ratings = (~np.isnan(ratings)).sum(axis=1)
    group = np.flatnonzero((n_ratings >= bounds[0]) & (n_ratings <= bounds[1]))
    references = random.choice(group, size=min(300, len(group)), replace=False)
    has_test_size = (n_ratings >= 50) & (n_ratings <= 300)
    eligible = np.setdiff1d(np.flatnonzero(has_test_size), references)
    users = random.choice(eligible, size=n_users + n_hold_out, replace=False)

    def make_tasks(users):
        varied_users = [user for user in users if _is_varied(ratings[user])]
        return [_make_task(ratings, user, random, scored) for user in varied_users]

    test = make_tasks(users[:n_users])
    hold_out = make_tasks(users[n_users:])
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
    hold_out_means = _hold_out_means(method, runs, widths)
    choices = {name: _choose(method, hold_out_means, name) for name in measures}
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

    row = MEASURES.index(measures[0])
    lowest_by_setting = []
    for k in range(len(method.settings)):
        lowest_by_width = [hold_out_means[width, k][row].min() for width in widths]
        lowest_by_setting.append(float(min(lowest_by_width)))
    return Results(choices, values, density, lowest_by_setting)


def _hold_out_means(method, runs, widths):
    """By width and number of the setting the means over hold-out users, (n_measures, n_path)."""
    means = {}
    for width in widths:
        for k, setting in enumerate(method.settings):
            values = [
                judge(method, run, task, width, setting, method.path)[0]
                for run in runs
                for task in run.hold_out
            ]
            means[width, k] = np.nanmean(values, axis=0)
    return means


def _choose(method, hold_out_means, name):
    """The width, setting and number on the path with the lowest mean on the hold-out users."""
    row = MEASURES.index(name)
    width, k = min(hold_out_means, key=lambda key: hold_out_means[key][row].min())
    means_on_path = hold_out_means[width, k][row]
    best = int(means_on_path.argmin())
    return Choice(float(means_on_path[best]), float(width), method.path[best], method.settings[k])


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
    if method.learn is not None:
        learn = method.learn
    elif isinstance(model, RankingPursuit):
        learn = pursue
    else:
        learn = follow_path
    scores, n_items_in_model = learn(model, X, y, path)
    if method.has_level:
        scores = scores + (y[:, None] - scores[:n_rows]).mean(axis=0)
    truth = task.y[task.n_train :]
    scores = scores[task.n_train :]
    errors = disagreement_error(truth, scores, undefined="nan")
    squared_errors = np.mean((truth[:, None] - scores) ** 2, axis=0)
    return np.stack([errors, squared_errors]), n_items_in_model / n_rows


def _views(run, n_views, width):
    """Parts of the reference users; distances are taken to grow with the number of columns."""
    n_columns = run.X.shape[1]
    scale = 2 * width**2 * run.median
    views = []
    for columns in np.array_split(np.arange(n_columns), n_views):
        gamma = n_columns / len(columns) / scale
        views.append(View(columns, kernel="rbf", gamma=gamma))
    return views


def by_user(runs, values):
    """One value for each user, the mean over the runs that tested him or her.

    `runs` and `values` are lists over groups of reference users.
    """
    users = np.array([task.user for group in runs for run in group for task in run.test])
    _, codes = np.unique(users, return_inverse=True)
    values = np.concatenate(values)
    is_defined = ~np.isnan(values)
    n_users = codes.max() + 1
    sums = np.bincount(codes[is_defined], values[is_defined], minlength=n_users)
    counts = np.bincount(codes[is_defined], minlength=n_users)
    return np.divide(sums, counts, out=np.full(n_users, np.nan), where=counts > 0)


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
