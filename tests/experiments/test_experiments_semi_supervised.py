"""The experiments on semi-supervised ranking run and say what their page says."""

import argparse
import gzip
import os
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.linear_model import Ridge
from threadpoolctl import threadpool_limits

mpl.use("agg")

from experiments import (
    corankrls10_letor,
    corankrls10_parses,
    pursuit13_gain,
    pursuit13_jester,
    pursuit13_movielens,
    user_draws,
    user_methods,
    user_preferences,
)
from experiments.shared.letor import Fold, read_folds
from experiments.pursuit13.methods import SEMI_SUPERVISED, SUPERVISED, Method
from experiments.pursuit13.users import Task, judge
from rankwise import CoRankRLS, CoRankRLSCV, RankingPursuit, RankRLS, View
from rankwise.datasets import RankingData
from rankwise.metrics import disagreement_error

DATA = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")
MAINS = {
    "jester": pursuit13_jester.main,
    "movielens": pursuit13_movielens.main,
    "gain": pursuit13_gain.main,
    "letor": corankrls10_letor.main,
    "parses": corankrls10_parses.main,
}
FEW = argparse.Namespace(users=4, hold_out=3, repeats=2, draws=2, widths=(1.0, 4.0))
BY_MODEL = [method for method in SEMI_SUPERVISED if method.learn is None]


def needs(folder):
    return pytest.mark.skipif(
        not (DATA / folder).is_dir(),
        reason=f"no {DATA / folder}; set RANKWISE_DATA to the folder of the real data",
    )


@pytest.fixture(autouse=True)
def _one_thread():
    """Threads wait for each other longer than matrices of this size take, if others run tests."""
    with threadpool_limits(1):
        yield


def make_ratings(n_users=60, n_items=100, seed=0):
    """Users with 36 to 80 ratings of items that all like in about the same order."""
    random = np.random.default_rng(seed)
    quality = random.normal(size=n_items)
    ratings = np.round(quality + random.normal(size=(n_users, n_items)), 2)
    for user, count in enumerate(random.integers(36, 81, size=n_users)):
        ratings[user, random.permutation(n_items)[count:]] = np.nan
    return ratings


def make_part(n_queries, first, random, n_items=12):
    X = random.normal(size=(n_queries * n_items, 6))
    y = np.round(X[:, 0] + X[:, 1] + random.normal(size=len(X)))
    return RankingData(X, y, first + np.repeat(np.arange(n_queries), n_items))


def rows_of(printed, name):
    """Numbers in each line that starts with this name."""
    lines = [line for line in printed.splitlines() if line.startswith(name)]
    return [[float(x) for x in re.findall(r"[-+]?\d+\.\d+", line[len(name) :])] for line in lines]


# -- without data ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", MAINS)
def test_absent_data_are_explained(name, tmp_path):
    with pytest.raises(SystemExit, match=r"does not exist.*--data"):
        MAINS[name](["--data", str(tmp_path)])


def test_one_list_with_all_pairs_is_regression_with_a_free_level():
    random = np.random.default_rng(0)
    X, y, alpha = random.normal(size=(30, 4)), 3 + random.normal(size=30), 0.1
    ranker = RankRLS(alpha).fit(X, y)
    ridge = Ridge(alpha * 29 / 2).fit(X, y)  # W L⁻¹ of 30 items: their pairs over their number
    np.testing.assert_allclose(ranker.coef_, ridge.coef_)
    order = RankingPursuit(6, backfit=None).fit(X, y)
    level = RankingPursuit(6, backfit=None, beta=1).fit(X, y)
    assert order.choice_path_.tolist() == level.choice_path_.tolist()
    np.testing.assert_allclose(order.dual_coef_, level.dual_coef_)


@pytest.mark.parametrize("n", [5, 40])
def test_beta_weighs_order_and_level_as_equation_5_does(n):
    beta, n_pairs = user_methods.paper_beta(n), n * (n - 1) / 2
    L = n * np.eye(n) - 1
    ours = (1 - beta) / n_pairs * L + beta / n * np.eye(n)
    paper = 0.5 * L + 0.5 * np.eye(n)
    np.testing.assert_allclose(ours / ours[0, 0], paper / paper[0, 0])


def test_nobody_is_asked_about_by_his_own_ratings():
    ratings = make_ratings()
    for run in user_preferences.draw_runs(ratings, (60, 80), FEW, seed=0, scored=0.5):
        users = [task.user for task in run.test + run.hold_out]
        assert len(set(users)) == FEW.users + FEW.hold_out
        for task in run.test:
            assert len(task.items) >= 50
            assert task.n_train == len(task.items) // 2
            assert task.n_scored == round(task.n_train / 2)
            np.testing.assert_array_equal(task.y, ratings[task.user, task.items])
            assert not (run.X[task.items] == task.y[:, None]).all(axis=0).any()


def test_features_are_ratings_or_the_median_of_the_user():
    ratings = np.array([[1.0, np.nan, 5, 2], [np.nan, np.nan, 3, 4]])
    X = user_preferences.reference_features(ratings, [0, 1])
    np.testing.assert_array_equal(X, [[1, 3.5], [2, 3.5], [5, 3], [2, 4]])


@pytest.mark.parametrize("method", BY_MODEL, ids=lambda method: method.name)
def test_users_are_judged_as_by_hand(method):
    run = user_preferences.draw_runs(make_ratings(), (60, 80), FEW, seed=1, scored=0.5)[0]
    task, value, setting = run.test[0], method.path[2], method.settings[-1]
    found, share = judge(method, run, task, 2.0, setting, [value])
    n_rows = task.n_train if method.uses_unscored else task.n_scored
    K = np.exp(-run.distances[np.ix_(task.items, task.items[:n_rows])] / (8 * run.median))
    y = np.where(np.arange(n_rows) < task.n_scored, task.y[:n_rows], np.nan)
    name = "n_basis" if isinstance(method.model, RankingPursuit) else "alpha"
    parameters = {name: int(value) if name == "n_basis" else value, **setting}
    model = method.model.set_params(**parameters, **method.adapt(task.n_scored)).fit(K[:n_rows], y)
    scores = model.predict(K)[task.n_train :]
    truth = task.y[task.n_train :]
    expected = [disagreement_error(truth, scores), np.mean((truth - scores) ** 2)]
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)
    assert 0 < share <= 1


def test_parameters_are_the_best_of_the_hold_out_users():
    runs = user_preferences.draw_runs(make_ratings(), (60, 80), FEW, seed=2)
    method = Method("RankRLS", RankRLS(kernel="precomputed"), np.array([1e-3, 1.0, 1e3]))
    result = user_preferences.measure(method, runs, ("error", "mse"), FEW.widths)
    held = [(run, task) for run in runs for task in run.hold_out]
    for k, name in enumerate(("error", "mse")):
        choice = result.choices[name]
        means = {
            width: np.mean([judge(method, *h, width, {}, method.path)[0][k] for h in held], axis=0)
            for width in FEW.widths
        }
        assert choice.error == pytest.approx(min(mean.min() for mean in means.values()))
        at = method.path.tolist().index(choice.value)
        assert means[choice.width][at] == pytest.approx(choice.error)
    first = judge(method, runs[0], runs[0].test[0], choice.width, {}, [choice.value])[0]
    assert result.values["mse"][0] == pytest.approx(first[1, 0])


def test_a_user_counts_once():
    def task(user):
        return Task(user, np.arange(2), np.arange(2.0), 1, 1)

    runs = [[make_run([task(user) for user in users])] for users in ((7, 3), (7, 9))]
    values = [np.array([0.2, 0.5]), np.array([0.4, np.nan])]
    np.testing.assert_allclose(user_preferences.by_user(runs, values), [0.5, 0.3, np.nan])


def test_share_of_tied_pairs():
    assert user_preferences.tied_share(np.array([1, 1, 2, 3])) == pytest.approx(1 / 6)
    assert user_preferences.tied_share(np.array([1, 2, 3])) == 0


def test_a_tied_pair_costs_one_half_in_equation_1():
    y, f = np.array([1.0, 1, 2, 3]), np.array([0.3, 0.1, 0.2, 0.4])
    pairs = [(i, j) for i in range(4) for j in range(i)]
    letter = np.mean([abs(np.sign(y[i] - y[j]) - np.sign(f[i] - f[j])) / 2 for i, j in pairs])
    shares = np.array([user_preferences.tied_share(y)])
    errors = np.array([disagreement_error(y, f)])
    assert pursuit13_movielens.with_ties(errors, shares)[0] == pytest.approx(letter)


def make_kernel(seed=0):
    """Kernel values of 16 items to 12, which are to train on; 7 of them have a score."""
    random = np.random.default_rng(seed)
    X, y = random.normal(size=(16, 3)), random.normal(size=12)
    y[7:] = np.nan
    return np.exp(-((X[:, None] - X[None, :12]) ** 2).sum(axis=2) / 4), y


def pursue_by_pairs(K, y, n_steps, length=1.0):
    """Ranking pursuit by a double loop over pairs and a loop over functions; scores at the end."""
    scored = np.flatnonzero(~np.isnan(y))
    pairs = [(i, j) for i in scored for j in scored if i < j]
    D = np.array([K[i] - K[j] for i, j in pairs])
    r, f = np.array([y[i] - y[j] for i, j in pairs]), np.zeros(len(K))
    for _ in range(n_steps):
        a = [d @ r / (d @ d) for d in D.T]
        losses = [np.sum((r - c * d) ** 2) for c, d in zip(a, D.T, strict=True)]
        k = int(np.argmin(losses))
        r, f = r - length * a[k] * D[:, k], f + length * a[k] * K[:, k]
    return f


def test_two_models_apart_are_the_mean_of_two_pursuits():
    K, y = make_kernel()
    found, size = user_methods.pursue_apart(RankingPursuit(backfit=None), K, y, np.array([1, 3]))
    for k, n_steps in enumerate((1, 3)):
        halves = [pursue_by_pairs(K[:, first::2], y, n_steps) for first in (0, 1)]
        np.testing.assert_allclose(found[:, k], np.mean(halves, axis=0), atol=1e-10)
    assert 2 <= size <= 6


def test_half_steps_go_half_of_the_way():
    K, y = make_kernel(1)
    found, size = user_methods.pursue_by_half_steps(None, K, y, np.array([2, 5]))
    for k, n_steps in enumerate((2, 5)):
        expected = pursue_by_pairs(K, y, n_steps, length=0.5)
        np.testing.assert_allclose(found[:, k], expected, atol=1e-10)
    assert 1 <= size <= 5


def test_views_with_nu_0_share_the_residual():
    """So their mean is not that of two models that know nothing of each other."""
    K, y = make_kernel()
    model = RankingPursuit(3, views=2, nu=0, backfit=None, kernel="precomputed", random_state=0)
    model.fit(K[:12], y)
    r, scored = y[:7] - y[:7].mean(), np.arange(7)
    centered = K[scored] - K[scored].mean(axis=0)
    for chosen in model.choice_path_:
        a = [centered[:, j] @ r / (centered[:, j] @ centered[:, j]) for j in chosen]
        r = r - (a[0] * centered[:, chosen[0]] + a[1] * centered[:, chosen[1]]) / 2
    f = model.predict(K)[scored]
    np.testing.assert_allclose(y[:7] - f - np.mean(y[:7] - f), r, atol=1e-8)


def make_run(tasks):
    return user_preferences.Run(np.eye(2), np.eye(2), 1.0, [], tasks, np.arange(2))


def make_draw(errors):
    """A draw with one method "a" and one "b"; errors[method][group] are lists over runs."""
    tasks = [Task(0, np.arange(2), np.arange(2.0), 1, 1)] * 2
    runs = [[make_run(tasks) for _ in of_group] for of_group in errors["a"]]
    results = {
        name: [
            user_preferences.Results({}, {"error": np.concatenate(of_group)}, np.ones(2), [])
            for of_group in of_method
        ]
        for name, of_method in errors.items()
    }
    return user_draws.Draw(runs, results)


def test_gains_are_means_over_the_users_of_a_run(monkeypatch):
    monkeypatch.setattr(user_draws, "GROUPS", ((20, 40),))
    draws = [
        make_draw({"a": [[[0.5, 0.4], [0.3, 0.3]]], "b": [[[0.4, 0.4], [0.1, np.nan]]]}),
        make_draw({"a": [[[0.5, 0.5], [0.5, 0.5]]], "b": [[[0.6, 0.6], [0.5, 0.5]]]}),
    ]
    gains = user_draws.gains_by_run(draws, "a", "b")
    np.testing.assert_allclose(gains, [[[0.05, 0.2]], [[-0.1, 0.0]]])
    pooled = user_draws.pool(draws)
    assert len(pooled.runs[0]) == 4
    assert len(pooled.results["a"][0].values["error"]) == 8
    assert user_draws.standard_error(gains.ravel()) == pytest.approx(gains.std(ddof=1) / 2)
    assert user_draws.standard_error([1.0]) is None


def test_draws_have_other_users_and_each_its_choice():
    methods = [Method("RankRLS", RankRLS(kernel="precomputed"), np.array([1e-2, 1.0]))]
    draws = user_draws.draw_groups(methods, make_ratings(120), FEW, seed=5)
    users = [[task.user for run in draw.runs[2] for task in run.test] for draw in draws]
    references = [draw.runs[2][0].references.tolist() for draw in draws]
    assert users[0] != users[1]
    assert references[0] != references[1]
    for draw in draws:
        assert draw.results["RankRLS"][0].choices["error"].width in FEW.widths


def test_thinned_ratings_are_a_part_of_the_ratings_of_the_same_users():
    ratings = make_ratings()
    full, thinned = (
        user_preferences.draw_runs(ratings, (60, 80), FEW, seed=0, kept=kept)[0]
        for kept in (1.0, 0.3)
    )
    np.testing.assert_array_equal(full.references, thinned.references)
    for a, b in zip(full.test, thinned.test, strict=True):
        assert a.user == b.user
        np.testing.assert_array_equal(a.items, b.items)
    known = ratings[full.references].T
    same = (known == thinned.X) & ~np.isnan(known)
    assert 0.2 < same.sum() / (~np.isnan(known)).sum() < 0.45  # some are the user's median
    assert thinned.X.shape == full.X.shape
    X = user_preferences.thin(ratings, [0, 1, 2], 0.0, np.random.default_rng(0))
    assert X.shape == (100, 0)


def test_density_on_made_up_ratings(capsys):
    options = argparse.Namespace(users=3, hold_out=2, repeats=1, widths=(2.0,))
    pursuit13_movielens.print_density(make_ratings(150), options)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    table = {row[0]: row for row in rows if row and row[0] in ("1", "0.5", "0.03", "paper")}
    assert len(table) == 4
    assert float(table["0.5"][1]) == pytest.approx(float(table["1"][1]) / 2, abs=0.01)
    assert table["paper"][1:4] == ["2.3", "3.8", "5.4"]
    assert table["paper"][4:7] == ["0.479", "0.472", "0.455"]


@pytest.mark.parametrize("reading", corankrls10_letor.READINGS)
def test_half_of_the_groups_or_of_the_items_is_scored(reading):
    random = np.random.default_rng(0)
    part = make_part(8, 0, random)
    y = corankrls10_letor.draw_scores(part, reading, random)
    known = ~np.isnan(y)
    assert known.sum() == len(y) // 2
    np.testing.assert_array_equal(y[known], part.y[known])
    of_group = [known[part.groups == group].mean() for group in np.unique(part.groups)]
    assert (set(of_group) == {0, 1}) == (reading == "groups")


def test_curves_leave_out_single_items_where_items_are_unscored():
    random = np.random.default_rng(0)
    split = corankrls10_letor.draw_split(make_part(8, 0, random), None, random, "items")
    views = corankrls10_letor.basis_views(split, 0.1)
    search = corankrls10_letor.fit_quietly(
        CoRankRLSCV([0.1, 1.0], nus=[0.0, 10.0], views=views, cv=3), split
    )
    test = make_part(4, 50, random)
    independent, curves = corankrls10_letor.learning_curves(split, search, test, random)
    at = search.cv_results_["mean_score"].argmin(axis=1)
    errors = [
        np.mean(
            corankrls10_letor.errors_of(
                CoRankRLS(search.cv_results_["alphas"][k], nu=nu, views=views)
                .fit(split.X, split.y, split.groups)
                .predict(test.X),
                test,
            )
        )
        for nu, k in zip((0.0, 10.0), at, strict=True)
    ]
    assert independent == pytest.approx(errors[0])
    assert curves[0, -1] == pytest.approx(errors[1])  # all unscored items are in use


def test_queries_left_out_do_not_count():
    random = np.random.default_rng(0)
    part = make_part(8, 0, random)
    split = corankrls10_letor.draw_split(part, 3, random)
    unscored = np.unique(split.groups[np.isnan(split.y)])
    assert len(unscored) == 5
    groups = corankrls10_letor.without(split.groups, np.isin(split.groups, unscored[2:]))
    basis = np.flatnonzero(np.isin(split.groups, unscored[2:]))[:10]
    views = [View([0, 1, 2], kernel="rbf", basis=basis), View([3, 4, 5], kernel="rbf", basis=basis)]
    found = CoRankRLS(0.1, views=views).fit(split.X, split.y, groups)
    # the same without those rows, on the features of the same bases
    keep = ~np.isin(split.groups, unscored[2:])
    features = [view.features(split.X) for view in found.views_]
    stacked, width = np.hstack(features), features[0].shape[1]
    columns = [View(slice(0, width)), View(slice(width, None))]
    same = CoRankRLS(0.1, views=columns).fit(stacked[keep], split.y[keep], split.groups[keep])
    np.testing.assert_allclose(found.predict(split.X), same.predict(stacked), atol=1e-8)


def test_co_rank_rls_on_made_up_queries(tmp_path, capsys):
    random = np.random.default_rng(0)
    fold = Fold(make_part(12, 0, random), make_part(2, 50, random), make_part(6, 80, random))
    outcomes = corankrls10_letor.measure([fold], 6, repeats=1, widths=(2.0,))
    corankrls10_letor.print_errors("made-up queries", outcomes)
    independent, curves = corankrls10_letor.print_curves(outcomes)
    corankrls10_letor.plot(tmp_path / "a" / "b.png", "made-up queries", 6, independent, curves)
    assert (tmp_path / "a" / "b.png").stat().st_size > 10_000
    assert curves.shape == (len(corankrls10_letor.NUS) - 1, len(corankrls10_letor.SHARES))
    printed = capsys.readouterr().out
    for name, published in (("Co-RankRLS", 0.326), ("Sparse RankRLS, 20 basis items", 0.348)):
        ours, _, paper = rows_of(printed, f"{name} ")[0]
        assert ours < 0.4
        assert paper == published


def test_jester_on_made_up_ratings(tmp_path, capsys):
    ratings = make_ratings(n_users=90)
    counts = (~np.isnan(ratings)).sum(axis=1)
    filled = np.where(np.isnan(ratings), pursuit13_jester.NOT_RATED, ratings)
    (tmp_path / "jester").mkdir()
    with gzip.open(tmp_path / "jester" / "jester-data-1.csv.gz", "wt") as file:
        np.savetxt(file, np.column_stack([counts, filled]), fmt="%g", delimiter=",")
    np.testing.assert_array_equal(pursuit13_jester.read_jester(tmp_path), ratings)
    few = ["--repeats", "1", "--users", "2", "--hold-out", "1", "--widths", "3"]
    pursuit13_jester.main(["--data", str(tmp_path), *few])
    printed = capsys.readouterr().out
    first, second, *_ = rows_of(printed, "Ranking Pursuit  ")
    assert first[3:6] == [0.410, 0.404, 0.373]
    assert second[3:6] == [34.0, 30.9, 29.1]
    assert "Gain of SS Ranking Pursuit" in printed
    assert printed.count(", draw 1") == 3
    (last,) = [row for row in rows_of(printed, "SS Ranking Pursuit ") if len(row) == 7]
    assert last[3:6] == [0.419, 0.411, 0.381]
    equal = [rows_of(printed, f"{name}  ")[0][:3] for name in ("RankRLS", "RLS, free level")]
    assert equal[0] == equal[1]


def test_gain_on_made_up_ratings(capsys, monkeypatch):
    monkeypatch.setattr(pursuit13_gain, "NUS", (0.0, 1.0))
    runs = user_preferences.draw_runs(make_ratings(), (60, 80), FEW, seed=3, scored=0.5)
    rows = pursuit13_gain.make_rows(pursuit13_gain.measure_share(runs, widths=(3.0,)))
    assert [len(row) for row in rows] == [4] * 5
    assert all(0 < row[1] < 0.5 for row in rows)
    pursuit13_gain.print_dependence(runs)
    printed = capsys.readouterr().out
    for variant in pursuit13_gain.VARIANTS:
        ((first, second, differ, independent),) = rows_of(printed, variant.name)
        assert max(first, second) < 0.5
        assert 0 < differ < independent


# -- with data -------------------------------------------------------------------------------


@needs("jester")
def test_jester_is_file_one_of_three():
    ratings = pursuit13_jester.read_jester(DATA)
    counts = (~np.isnan(ratings)).sum(axis=1)
    assert ratings.shape == (24983, 100)
    assert counts.min() == 36


@needs("movielens100k")
def test_movielens_needs_a_level(capsys):
    options = argparse.Namespace(users=10, hold_out=5, repeats=1, draws=1, widths=(3.0,))
    methods = [method for method in SUPERVISED if method.name in ("RLS", "RankRLS")]
    ratings = pursuit13_movielens.read_movielens(DATA)
    runs, results = user_draws.pool(user_draws.draw_groups(methods, ratings, options, seed=0))
    pursuit13_movielens.print_with_ties(runs, results)
    ((*shares,),) = rows_of(capsys.readouterr().out, "share of tied pairs")
    assert min(shares) > 0.2
    regression, ranking = (
        np.mean([found.values["error"].mean() for found in results[name]])
        for name in ("RLS", "RankRLS")
    )
    assert ranking < regression - 0.02


@needs("ohsumed")
def test_views_of_random_bases_are_nearly_the_same_on_ohsumed():
    fold = read_folds(DATA, "ohsumed")[0]
    random = np.random.default_rng(0)
    split = corankrls10_letor.draw_split(fold.train, 31, random)
    views = corankrls10_letor.basis_views(split, split.gamma / 4)
    model = CoRankRLS(1e-3, nu=0, views=views).fit(split.X, split.y, split.groups)
    assert model.view_disagreement(fold.test.X, fold.test.groups)[0, 1] < 0.15


@needs("bioinfer_parse")
def test_parses(tmp_path, capsys):
    corankrls10_parses.main(["--data", str(DATA), "--output", str(tmp_path), "--repeats", "1"])
    printed = capsys.readouterr().out
    assert (tmp_path / "corankrls10_parses_linear.png").stat().st_size > 10_000
    assert rows_of(printed, "Co-RankRLS  ")[0][2] == 0.326
    assert "22 and 20 sentences" in printed
