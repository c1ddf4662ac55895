"""The experiments on RankSVM run and say what their README says; real data only where they are."""

import gzip
import os
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

mpl.use("agg")

from experiments import (
    rankrls09_table1,
    rankrls09_table3,
    rankrls09_table5,
    rankrls09_table6,
    treersvm11_covtype,
    treersvm11_figure1,
)
from experiments.shared.letor import Learner, read_folds, score_test_part, with_labels
from experiments.shared.margin_runs import follow, make_objective, standardize, time_fit
from experiments.rankrls09.table4 import Sample
from experiments.treersvm11.figure1 import AllPairsHinge
from rankwise import RankRLS, RankSVM
from rankwise.metrics import auc, disagreement_error

DATA = Path(os.environ.get("RANKWISE_DATA") or Path(__file__).parents[3] / "shared" / "data")


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


def write_rows(path, rows, header=""):
    path.parent.mkdir(parents=True)
    with gzip.open(path, "wt") as file:
        np.savetxt(file, rows, fmt="%.6g", delimiter=",", header=header, comments="")


def make_list(n_items, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_items, 4))
    return X, np.round(X @ [1.0, -1, 0.5, 0] + random.normal(size=n_items), 1)


# -- without data ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "main",
    [
        rankrls09_table5.main,
        rankrls09_table6.main,
        treersvm11_covtype.main,
        treersvm11_figure1.main,
    ],
)
def test_absent_data_are_explained(main, tmp_path):
    with pytest.raises(SystemExit, match=r"does not exist.*--data"):
        main(["--data", str(tmp_path)])


@pytest.mark.parametrize("scale", [0.0, 0.1, 1.0, 30.0])
def test_baseline_over_all_pairs_is_the_same_loss(scale):
    X, y = make_list(300)
    f = scale * X @ [1.0, 1, 0, -1]
    ours, baseline = make_objective(X, y, 1.0).loss.at(f), AllPairsHinge(y, height=64).at(f)
    assert baseline.value == pytest.approx(ours.value)
    np.testing.assert_allclose(baseline.gradient, ours.gradient, atol=1e-15)


def test_slope_is_the_exponent():
    sizes = np.array([10, 100, 1000])
    assert treersvm11_figure1.slope(sizes, 3 * sizes**1.5) == pytest.approx(1.5)


def test_constant_features_become_zero():
    X = standardize(np.column_stack([np.arange(5.0), np.full(5, 7.0)]))
    np.testing.assert_allclose(X.std(axis=0), [1, 0])
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-15)


@pytest.mark.parametrize("solver", ["lbfgs", "bmrm"])
def test_course_closes_the_gap_and_fit_agrees(solver):
    X, y = make_list(200)
    course = follow(make_objective(X, y, 1e-2), solver, tol=1e-3, max_iter=500)
    assert (np.diff(course.seconds) > 0).all()
    assert (np.diff(course.bound) >= 0).all()
    assert (np.diff(course.objective) <= 0).all()
    assert course.bound[-1] >= (1 - 1e-3) * course.objective[-1]
    fit = time_fit(RankSVM(1e-2, solver=solver), X, y)
    assert fit.objective == pytest.approx(course.objective[-1])
    assert fit.iterations == len(course.seconds)
    assert "gap" not in fit.text(1e-3)
    assert "gap" in fit.text(1e-9)


def test_figure1_on_data_of_the_same_form(tmp_path, capsys):
    X, y = make_list(600)
    write_rows(tmp_path / "cadata" / "cal_housing.data.gz", np.column_stack([X, X, y]))
    treersvm11_figure1.main(
        ["--data", str(tmp_path), "--output", str(tmp_path), "--sizes", "200", "600"]
    )
    printed = capsys.readouterr().out
    assert (tmp_path / "treersvm11_figure1.png").stat().st_size > 10_000
    assert re.search(r"^slope( +-?\d+\.\d\d){4}$", printed, re.MULTILINE)
    assert "gap 0" not in printed  # every run reached the gap


def test_covtype_on_data_of_the_same_form(tmp_path, capsys):
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(400, 5)), np.ones(400)])
    y = np.clip(np.round(4 + X[:, 0] + random.normal(size=400)), 1, 7)
    write_rows(
        tmp_path / "covtype" / "covtype.csv.gz", np.column_stack([X, y]), header="a,b,c,d,e,f,class"
    )
    treersvm11_covtype.main(
        ["--data", str(tmp_path), "--output", str(tmp_path), "--examples", "300",
         "--bmrm-iterations", "3"]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert "300 examples, 6 features" in printed
    assert "< 6000" in printed
    assert (tmp_path / "treersvm11_covtype.png").stat().st_size > 10_000
    for line in printed.splitlines():
        if "lbfgs" in line and line.startswith(("0.01", "0.0001", "1e-06")):
            assert float(line.split()[-3]) <= 1e-3


def test_svm_on_explicit_pairs_finds_the_same_model():
    random = np.random.default_rng(0)
    X = random.normal(size=(50, 3))
    y = (X[:, 0] + 0.5 * random.normal(size=50) > 0.5).astype(float)
    found = rankrls09_table1.train_on_pairs(X[:30], y[:30], X[30:], y[30:])
    options = {"kernel": "rbf", "gamma": rankrls09_table1.GAMMA, "tol": 1e-5}
    model = RankSVM(rankrls09_table1.ALPHA, **options).fit(X[:30], y[:30])
    assert found.objective == pytest.approx(model.objective_, rel=1e-2)
    assert found.objective > (1 - 1e-9) * model.lower_bound_
    assert found.auc == pytest.approx(auc(y[30:], model.predict(X[30:])), abs=0.02)


def test_table5_chooses_lambda_by_the_pooled_auc_of_separate_fits(monkeypatch):
    lambdas = np.array([1.0, 300.0])
    monkeypatch.setattr(rankrls09_table5, "LAMBDAS", lambdas)
    random = np.random.default_rng(1)
    X = random.normal(size=(80, 10))
    y = (X[:, :1] + random.normal(size=(80, 1)) > 1).astype(float)
    sample = Sample(X[:40] @ X[:40].T, y[:40], X[40:] @ X[:40].T, y[40:])
    scores, (chosen,) = rankrls09_table5.score_by_rank_svm(sample)
    value = auc(sample.Y_test[:, 0], scores[:, 0])
    pooled, test, y_train = [], [], y[:40, 0]
    for lam in lambdas:
        model = RankSVM(lam / (y_train.sum() * (1 - y_train).sum()))
        scores = np.empty(40)
        for rest, held in KFold(10, shuffle=True, random_state=0).split(X[:40]):
            scores[held] = model.fit(X[rest], y_train[rest]).predict(X[held])
        pooled.append(auc(y_train, scores))
        test.append(auc(y[40:, 0], model.fit(X[:40], y_train).predict(X[40:])))
    assert abs(pooled[0] - pooled[1]) > 0.01  # else the tolerance of the solver might decide
    assert chosen == lambdas[np.argmax(pooled)]
    assert value == pytest.approx(test[np.argmax(pooled)], abs=0.02)


def test_table5_says_zero_where_all_positives_are_held_out(monkeypatch):
    monkeypatch.setattr(rankrls09_table5, "LAMBDAS", np.array([10.0]))
    X = np.random.default_rng(0).normal(size=(30, 5))
    y = np.zeros(30)
    y[next(KFold(10, shuffle=True, random_state=0).split(X))[1]] = 1
    model, lam = rankrls09_table5._fit_topic(X @ X.T, y)
    assert lam == 10
    assert model.predict(X @ X.T).shape == (30,)


def test_jester_tasks_are_those_of_the_paper(monkeypatch):
    monkeypatch.setattr(rankrls09_table6, "N_REFERENCE", 1)
    monkeypatch.setitem(rankrls09_table6.DENSITIES, "all", (0, 8))
    random = np.random.default_rng(0)
    ratings = np.full((3, 8), np.nan)
    ratings[:, :6] = random.uniform(-10, 10, size=(3, 6))
    tasks = rankrls09_table6.draw_tasks(ratings, "all", 2, random)
    users = [next(u for u in range(3) if task.y_train[0] in ratings[u]) for task in tasks]
    (reference,) = set(range(3)) - set(users)
    for user, task in zip(users, tasks, strict=True):
        jokes = [ratings[user].tolist().index(value) for value in (*task.y_train, *task.y_test)]
        assert sorted(jokes) == list(range(6))
        x = ratings[reference, jokes]
        np.testing.assert_allclose(task.D_train, np.subtract.outer(x[:3], x[:3]) ** 2, atol=1e-9)
        np.testing.assert_allclose(task.D_test, np.subtract.outer(x[3:], x[:3]) ** 2, atol=1e-9)


def test_jester_choice_and_test_have_no_user_in_common(monkeypatch):
    monkeypatch.setattr(rankrls09_table6, "N_REFERENCE", 5)
    ratings = np.arange(50.0)[:, None] + np.linspace(0, 0.9, 40)
    for density in ("20-40", "all"):
        parts = rankrls09_table6.draw_parts(ratings, density, 20, np.random.default_rng(0))
        users = [{int(y) for task in part for y in task.y_train} for part in parts]
        assert users[0]
        assert not users[0] & users[1]


def test_jester_errors_by_hand():
    random = np.random.default_rng(0)
    D, y = random.uniform(1, 2, size=(6, 4)), random.normal(size=6)
    D_train = np.abs(np.subtract.outer(np.arange(4), np.arange(4)))
    task = rankrls09_table6.Task(D_train, y[:4], D[4:], y[4:])
    for learner in rankrls09_table6.LEARNERS.values():
        errors = rankrls09_table6.measure(learner, [task], np.array([0.5]), np.array([0.1, 0.01]))
        for k, alpha in enumerate((0.1, 0.01)):
            model = type(learner)(**{**learner.get_params(), "alpha": alpha})
            model.fit(np.exp(-0.5 * D_train), y[:4] - y[:4].mean())
            expected = disagreement_error(y[4:], model.predict(np.exp(-0.5 * D[4:])))
            assert errors[0, 0, k] == expected


# -- with data -------------------------------------------------------------------------------


@needs("ohsumed")
def test_rank_svm_is_level_with_rank_rls_on_a_fold_of_ohsumed():
    fold = with_labels(read_folds(DATA, "ohsumed")[:1], lambda y: (y >= 2).astype(float))[0]
    alphas = 2.0 ** np.arange(-10, 3, 4)
    errors = []
    for model in (RankSVM(), RankRLS(ties="exclude")):
        learner = Learner(type(model).__name__, (model,))
        scores, _ = score_test_part(learner, fold, rankrls09_table3._quality, alphas)
        errors.append(disagreement_error(fold.test.y, scores, fold.test.groups))
    assert errors[0] == pytest.approx(errors[1], abs=0.02)
    assert errors[0] < 0.4


@needs("cadata")
def test_cadata_is_complete():
    X, y = treersvm11_figure1.read_cadata(DATA)
    assert X.shape == (20640, 8)
    assert len(np.unique(y)) == 3842
    np.testing.assert_allclose(X.std(axis=0), 1)
